//! Ten thousand strangers and a hostile device, which sends what costs the service the most memory for its size, at a
//! service with default limits that may have 512 MB: each window opens whole, and `/healthz` answers at once.

use super::memory_group::{MemoryGroup, peak_of};
use crate::common::deployment::{QUERY, RunningSite, Site, until};
use crate::common::{get, tls};
use crate::floods::{Flooder, frame};
use crate::strangers::Flood;
use alpheus_encrypted_stream::frame::DATA_HEAD;
use alpheus_encrypted_stream::tick::claim::ClaimKind;
use alpheus_node::service::descriptors;
use alpheus_streams::wire::Upload;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What the service may have.
const MEMORY: u64 = 512_000_000;
/// How long all of it goes on at least.
const LASTS: Duration = Duration::from_secs(60);
/// The largest body of a device.
const BODY: usize = 16 << 20;
/// Such bodies at once: as many as one certificate may send.
const BODIES: usize = 8;
/// Heads of requests that do not end, at once.
const HEADS: usize = 100;
/// What the service waits for comes last, at once on all connections.
const LAST: usize = 1 << 10;

/// Bodies of the greatest length, each of as many parts as possible.
fn bodies(stream: &str) -> Vec<Vec<u8>> {
    let upload = |frames: Vec<Vec<u8>>| {
        let (stream, outbox) = (stream.parse().unwrap(), [8; 16]);
        postcard::to_allocvec(&Upload { stream, outbox, number: 1, frames }).unwrap()
    };
    let shortest = postcard::to_allocvec(&vec![0_u8; DATA_HEAD]).unwrap();
    let gap = postcard::to_allocvec(&frame(ClaimKind::Gap, 0)).unwrap();
    // The head of an upload without the number of its frames.
    let mut head = vec![1];
    head.extend(upload(Vec::new()));
    head.pop();
    vec![
        repeated(&[], &upload(Vec::new())),
        repeated(&head, &shortest),
        repeated(&head, &gap),
        // Something that is no upload, and one that announces more than there is.
        vec![0xff; BODY],
        [&[0xff, 0xff, 0xff, 0x7f][..], &vec![0; BODY - 4]].concat(),
    ]
}

/// A sequence of as many parts as a body may have after a head.
fn repeated(head: &[u8], part: &[u8]) -> Vec<u8> {
    let times = (BODY - head.len() - 5) / part.len();
    let count = postcard::to_allocvec(&times).unwrap();
    let mut body = [head, &count].concat();
    (0..times).for_each(|_| body.extend_from_slice(part));
    assert!(body.len() <= BODY && body.len() + part.len() + 8 > BODY);
    body
}

/// The hostile device.
struct Hostile<'a> {
    running: &'a RunningSite,
    api: &'a str,
    stream: String,
    over: &'a AtomicBool,
    /// Whole bodies that were sent.
    sent: AtomicUsize,
}

impl<'a> Hostile<'a> {
    /// Certified like all others, with a stream of its own, which the query is not about.
    fn of(running: &'a RunningSite, over: &'a AtomicBool) -> Hostile<'a> {
        let place = &running.place;
        let stream = place.add_device("eve", "owner-eve", &running.hosts[0].0);
        let api = running.server.strip_prefix("https://").unwrap();
        Hostile { running, api, stream, over, sent: AtomicUsize::new(0) }
    }

    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    /// Does all that it can at once.
    fn attacks(&self) {
        let (bodies, barrier) = (bodies(&self.stream), Barrier::new(BODIES));
        std::thread::scope(|scope| {
            for number in 0..BODIES {
                let (bodies, barrier) = (&bodies, &barrier);
                scope.spawn(move || self.sends(number, bodies, barrier));
            }
            scope.spawn(|| self.floods());
            scope.spawn(|| self.begins_heads());
        });
    }

    /// Sends bodies on a connection; all connections end theirs at once.
    fn sends(&self, number: usize, bodies: &[Vec<u8>], barrier: &Barrier) {
        for round in 0.. {
            // All go on, or none does.
            barrier.wait();
            let goes_on = self.goes_on();
            barrier.wait();
            if !goes_on {
                return;
            }
            // At first all of one kind, then all kinds at once.
            let turn = if round % 2 == 0 { round / 2 } else { round / 2 + number };
            if self.send(&bodies[turn % bodies.len()], barrier) {
                self.sent.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// A connection, if the service is still there.
    fn connected(&self) -> Option<tls::Connection> {
        TcpStream::connect(self.api).ok()?;
        Some(tls::connect(&self.running.place.path("pki/eve"), self.api))
    }

    /// Whether the service has answered.
    fn send(&self, body: &[u8], barrier: &Barrier) -> bool {
        let Some(mut connection) = self.connected() else {
            barrier.wait();
            return false;
        };
        let head = format!(
            "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let (most, last) = body.split_at(body.len() - LAST);
        // It may be refused before its end.
        let begun = connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(most));
        let begun = begun.and_then(|()| connection.flush());
        barrier.wait();
        let ended = begun.and_then(|()| connection.write_all(last));
        let mut answer = [0; 12];
        let ended = ended.and_then(|()| connection.flush());
        ended.and_then(|()| connection.read_exact(&mut answer)).is_ok()
    }

    /// Fills what its stream may send in a day, and goes on.
    fn floods(&self) {
        let mut flooder = Flooder::of(self.running, "eve", &self.stream);
        let gap = frame(ClaimKind::Gap, 0);
        while self.goes_on() {
            // It is refused once the day's quota is used up, or as too much at once.
            let _ = flooder.send(&gap, 10_000);
        }
    }

    /// Begins heads of requests, and opens a connection for each that was closed.
    fn begins_heads(&self) {
        let head = format!("GET /{} HTTP/1.1\r\n", "x".repeat(60 << 10));
        let begin = || {
            let mut connection = self.connected()?;
            let _ = connection.write_all(head.as_bytes()).and_then(|()| connection.flush());
            Some(connection)
        };
        while self.goes_on() {
            let held: Vec<_> = (0..HEADS).map(|_| begin()).collect();
            let since = Instant::now();
            while self.goes_on() && since.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(100));
            }
            drop(held);
        }
    }
}

/// The longest that `/healthz` took, which is asked ten times a second until it is over, and how often it was asked.
fn longest_health(listen: SocketAddr, over: &AtomicBool) -> (Duration, usize) {
    let (mut longest, mut asked) = (Duration::ZERO, 0);
    while !over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let answer = get(listen, "/healthz");
        longest = longest.max(begun.elapsed());
        assert_eq!(answer.as_ref().map(|(status, _)| *status), Some(200), "{answer:?}");
        asked += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    (longest, asked)
}

/// Ends all at its own end, also if that is a panic.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Windows that are whole, and all, from this one on.
fn windows(running: &RunningSite, from: u64) -> (usize, usize) {
    let rows = running.place.rows(&running.server);
    let rows = rows.iter().filter(|row| row["window_start"].as_u64().unwrap() >= from);
    let whole = |row: &&serde_json::Value| {
        (row["status"] == "ok" && row["population"] == 3)
            && row["sum_reading"].as_str() == Some("12")
    };
    let rows: Vec<_> = rows.collect();
    rows.iter().filter(|row| !whole(row)).for_each(|row| println!("not whole: {row}"));
    (rows.iter().copied().filter(whole).count(), rows.len())
}

/// A service with default limits, and hosts, whose windows open.
fn limited() -> (Option<MemoryGroup>, RunningSite) {
    let group = MemoryGroup::of(MEMORY);
    let place = Site::new().watched();
    let place = match &group {
        Some(group) => place.started_by(group.starter()),
        None => place,
    };
    println!("limit: {}", if group.is_some() { "by the system" } else { "only looked at" });
    (group, RunningSite::start_in(place, |_, api| api.to_owned()))
}

/// `ALPHEUS_STRANGERS` says how many strangers there are.
#[test]
#[ignore = "minutes; `drills/memory.sh` runs it"]
fn strangers_and_a_hostile_device_find_a_small_service_whole() {
    let strangers = std::env::var("ALPHEUS_STRANGERS").map_or(10_000, |many| many.parse().unwrap());
    let files = descriptors::raise_limit();
    assert!(files > strangers as u64 + 1_000, "{files} open files are too few: ulimit -n");
    let (_group, mut running) = limited();
    let (listen, process) = (running.place.health("run/service"), running.service.id());
    let asked = running.place.ask(&running.server, QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let over = AtomicBool::new(false);
    let hostile = Hostile::of(&running, &over);
    let _devices = running.feed();
    let first = running.row(3)["window_start"].as_u64().unwrap();
    let flood = Flood::start(hostile.api, strangers);
    let (longest, asked) = std::thread::scope(|scope| {
        let _end = Ending(&over);
        scope.spawn(|| hostile.attacks());
        let health = scope.spawn(|| longest_health(listen, &over));
        // It ends early if there is no answer.
        let goes_on = || !health.is_finished();
        until("a flood", || (flood.opened() >= strangers || !goes_on()).then_some(()));
        let begun = Instant::now();
        while goes_on() && begun.elapsed() < LASTS {
            std::thread::sleep(Duration::from_millis(100));
        }
        over.store(true, Ordering::Relaxed);
        health.join().unwrap()
    });
    drop(flood);
    let peak = peak_of(process);
    let sent = hostile.sent.into_inner();
    let (whole, all) = windows(&running, first);
    println!("figure: strangers = {strangers}");
    println!("figure: bodies of 16 MiB = {sent}");
    println!("figure: peak memory = {} MB", peak.unwrap_or_default() / 1_000_000);
    println!("figure: longest /healthz of {asked} = {} ms", longest.as_millis());
    println!("figure: windows whole = {whole} of {all}");
    assert!(!running.service.has_ended(), "{}", running.service.log());
    assert!(peak.is_some_and(|peak| peak <= MEMORY), "{peak:?} bytes");
    assert!(longest < Duration::from_secs(1), "{longest:?}");
    assert!(whole == all && all > 20, "{whole} of {all}");
}
