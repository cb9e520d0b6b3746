//! An owner moves a stream from one host to another while a query runs: each window has each owner once, on
//! either side of the border.
//!
//! Time is that of a clock which waits for all processes.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::Process;
use crate::common::deployment::{HOUSES, QUERY, RunningSite, Site, until};
use crate::common::live::WINDOW;
use crate::latecomers::Street;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A line to a host that lets no more than so many bytes of clients through.
struct Gate {
    address: SocketAddr,
    passed: Arc<AtomicU64>,
    most: Arc<AtomicU64>,
    has_held: Arc<AtomicBool>,
}

impl Gate {
    fn to(host: &str) -> Gate {
        let host: SocketAddr = host.parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (passed, most) = (Arc::default(), Arc::new(AtomicU64::new(u64::MAX)));
        let gate = Gate { address, passed, most, has_held: Arc::default() };
        let (passed, most) = (Arc::clone(&gate.passed), Arc::clone(&gate.most));
        let has_held = Arc::clone(&gate.has_held);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(host) else { continue };
                let (mut back, mut home) = (far.try_clone().unwrap(), near.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut back, &mut home);
                    let _ = home.shutdown(Shutdown::Write);
                });
                let (passed, most) = (Arc::clone(&passed), Arc::clone(&most));
                let has_held = Arc::clone(&has_held);
                std::thread::spawn(move || forward((near, far), &passed, &most, &has_held));
            }
        });
        gate
    }

    /// From now on only so much more passes.
    fn hold_after(&self, bytes: u64) {
        self.most.store(self.passed.load(Ordering::SeqCst) + bytes, Ordering::SeqCst);
    }
}

fn forward(
    (mut near, mut far): (TcpStream, TcpStream),
    passed: &AtomicU64,
    most: &AtomicU64,
    has_held: &AtomicBool,
) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = near.read(&mut bytes) {
        let all = passed.fetch_add(read as u64, Ordering::SeqCst) + read as u64;
        if all > most.load(Ordering::SeqCst) {
            // What the client sends stays here until it is gone.
            has_held.store(true, Ordering::SeqCst);
            while matches!(near.read(&mut bytes), Ok(1..)) {}
            return;
        }
        if far.write_all(&bytes[..read]).is_err() {
            return;
        }
    }
    let _ = far.shutdown(Shutdown::Write);
}

impl Street {
    /// Three houses, of which a query asks by epochs.
    fn asked() -> Street {
        let mut street = Street::new("frames: events\n");
        HOUSES.into_iter().for_each(|house| street.come(house));
        let asked = format!("{QUERY} WITH (membership = 'epochs')");
        let asked = street.place.ask(&street.server, &asked);
        assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
        street
    }

    /// The beginning of a window that is a few windows ahead, in milliseconds.
    fn ahead(&self, windows: u64) -> u64 {
        (self.clock.now().0 / 1000 / WINDOW + windows) * WINDOW
    }

    pub(crate) fn stream(&self) -> String {
        let listed = self.owner("streams", &[]);
        let stream = listed.split_whitespace().find(|word| word.len() == 32);
        stream.unwrap().to_owned()
    }

    /// The first house's owner asks the first house's host.
    pub(crate) fn owner(&self, what: &str, more: &[&str]) -> String {
        let host = format!("https://{}", self.addresses["a"]);
        let reach = ["owner", what, "--identity", "pki/owner-a", "--controller", &host];
        self.place.done(&[&reach[..], more].concat())
    }

    /// A line to the third host by which a command can ask something, and bring nothing: that is longer.
    fn gate(&self) -> Gate {
        let gate = Gate::to(&self.addresses["c"]);
        let through = format!("https://{}", gate.address);
        let asks = ["owner", "streams", "--identity", "pki/owner-a", "--controller", &through];
        self.place.done(&asks);
        gate.hold_after(gate.passed.load(Ordering::SeqCst) + 600);
        gate
    }

    /// The host that the stream has left sends its owner to the other one.
    fn refuses_a_choice(&self, host: &str, stream: &str) {
        let words = ["owner", "choose", "--identity", "pki/owner-a", "--controller", host];
        let wish = ["--schema", "schema.yaml", "--policies", "policies.yaml", "--stream", stream];
        let chosen = self.place.run(&[&words[..], &wish].concat());
        let said = String::from_utf8_lossy(&chosen.stderr);
        assert!(!chosen.status.success() && said.contains("has moved to the controller"), "{said}");
    }

    /// The row of a window.
    fn row(&self, start: u64) -> Value {
        until(&format!("row of {start}"), || {
            self.rows().into_iter().find(|row| row["window_start"] == start)
        })
    }

    /// The row is the truth over these houses.
    fn is_over(&self, row: &Value, houses: &[usize]) {
        let houses: BTreeSet<usize> = houses.iter().copied().collect();
        let truth = self.truth(row["window_start"].as_u64().unwrap(), &houses);
        assert_eq!((&row["status"], &row["population"]), (&"ok".into(), &houses.len().into()));
        assert_eq!(row["sum_reading"], truth.to_string(), "{row}");
    }

    /// Each window that opened is the truth over some of the houses, so nobody is in one twice.
    fn has_nobody_twice(&self) {
        let some = (0..8_usize).map(|set| (0..3).filter(|at| set >> at & 1 == 1).collect());
        let some: Vec<BTreeSet<usize>> = some.collect();
        for row in self.rows().iter().filter(|row| row["status"] == "ok") {
            let start = row["window_start"].as_u64().unwrap();
            let is_of = |set: &&BTreeSet<usize>| {
                let truth = self.truth(start, set).to_string();
                row["population"] == set.len() && row["sum_reading"].as_str() == Some(&truth)
            };
            assert!(some.iter().any(|set| is_of(&set)), "{row}");
        }
    }
}

/// The command is killed between its two requests, and the next host once the stream has arrived.
#[test]
fn a_stream_moves_to_another_host_while_a_query_runs() {
    let mut street = Street::asked();
    let first = street.window_after(0, &[0, 1, 2]);
    let [a, b, c] = HOUSES.map(|house| format!("https://{}", street.addresses[house]));
    let stream = street.stream();
    let clock = Arc::clone(&street.clock);
    let still = clock.hold();
    // Within a window.
    let across = street.ahead(6);
    let border = (across + WINDOW / 2).to_string();
    let to = |url: &str, at: &str| {
        ["owner", "move", "--identity", "pki/owner-a", "--controller", &a, "--stream", &stream]
            .into_iter()
            .chain(["--to", url, "--at", at])
            .map(str::to_owned)
            .collect::<Vec<String>>()
    };
    let gate = street.gate();
    let through = format!("https://{}", gate.address);
    let words = to(&through, &border);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = Process::start(&mut street.place.command(&words));
    until("arrival that is held", || gate.has_held.load(Ordering::SeqCst).then_some(()));
    command.kill();
    // Whatever the owner asks now, the first host has given the stream away.
    let run = |url: &str, at: u64| {
        let words = to(url, &at.to_string());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = street.place.run(&words);
        let said = [ran.stdout, ran.stderr].concat();
        (ran.status.success(), String::from_utf8(said).unwrap())
    };
    let (done, said) = run(&b, across + 9 * WINDOW);
    assert!(!done && said.contains("moved to the controller"), "{said}");
    let (done, said) = run(&c, across + 9 * WINDOW);
    assert!(done && said.contains("`host-a` answers for windows that end by then"), "{said}");
    street.hosts.get_mut("c").unwrap().kill();
    street.wake("c");
    drop(still);
    street.refuses_a_choice(&a, &stream);
    // Before the border, across it, and after it.
    street.is_over(&street.row(across - WINDOW), &[0, 1, 2]);
    street.is_over(&street.row(across), &[1, 2]);
    let after = street.window_after(across, &[0, 1, 2]);
    assert!(first < across && after > across);
    // The first host has no part in it any more.
    street.hosts.get_mut("a").unwrap().kill();
    street.window_after(street.ahead(1), &[0, 1, 2]);
    street.has_nobody_twice();
}

/// The border is the next one that all windows share, and no budget begins again.
#[test]
fn what_was_spent_goes_along() {
    let running = RunningSite::start_in(Site::new().that_waits(), |_, api| api.to_owned());
    let alarms = "CREATE STREAM Alarms AS SELECT SUM(alarms) \
        WINDOW TUMBLING (SIZE 2 SECONDS, GRACE PERIOD 1 SECONDS) FROM Meters \
        WITH (epsilon = 1, events = 4)";
    let asked = running.place.ask(&running.server, alarms);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let _devices = running.feed();
    let spent = until("a window after the budgets are spent", || {
        let spent = running.owner(0, "budgets");
        let rows = running.place.rows_of(&running.server, "Alarms");
        let left_out = rows.last().is_some_and(|row| row["population"] == 0);
        (left_out && spent.contains("100.0 %")).then_some(spent)
    });
    let b = format!("https://{}", running.hosts[1].0);
    let said = running.owner_with(0, "move", &["--to", &b]);
    assert!(said.contains("`host-b` for those that begin from then on"), "{said}");
    let reach = ["owner", "budgets", "--identity", "pki/owner-a", "--controller", &b];
    let there = running.place.done(&[&reach[..], &["--stream", &running.streams[0]]].concat());
    assert_eq!(there.trim(), spent.trim());
}

/// Nobody knows what a lost host has charged, so everything counts as spent.
#[test]
fn a_stream_of_a_lost_host_goes_on_at_another_with_the_devices_key() {
    let mut street = Street::asked();
    street.window_after(0, &[0, 1, 2]);
    let stream = street.stream();
    street.hosts.get_mut("a").unwrap().kill();
    let without = street.window_after(street.ahead(0), &[1, 2]);
    let clock = Arc::clone(&street.clock);
    let still = clock.hold();
    let border = street.ahead(2);
    let c = format!("https://{}", street.addresses["c"]);
    let moved = |at: u64| {
        let at = at.to_string();
        let reach = ["owner", "move", "--identity", "pki/owner-a", "--lost", "--stream", &stream];
        let wish = ["--schema", "schema.yaml", "--policies", "policies.yaml"];
        let device = ["--to", &c, "--device", "a.device", "--producer", "meter-a", "--at", &at];
        street.place.done(&[&reach[..], &wish, &device].concat())
    };
    let said = moved(border);
    assert!(said.contains("is at `host-c`"), "{said}");
    assert_eq!(moved(border + 7 * WINDOW), said, "run again, it stands");
    drop(still);
    let after = street.window_after(border - 1, &[0, 1, 2]);
    assert!(without < border && border <= after);
    let budgets = ["owner", "budgets", "--identity", "pki/owner-a", "--controller", &c];
    let budgets = street.place.done(&[&budgets[..], &["--stream", &stream]].concat());
    assert!(budgets.contains("100.0 %"), "{budgets}");
    street.has_nobody_twice();
}
