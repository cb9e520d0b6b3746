//! `alpheus stats client` as people run it: what a sample costs the process, with handshakes,
//! ledger, questions for definitions and the check at the end; and what it costs to wait.

use crate::program::processor_seconds;
use crate::report::{Figure, Goal};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::listeners::block_on;
use alpheus_node::service::children;
use alpheus_stats_service::define::define;
use alpheus_stats_service::parties::Parties;
use alpheus_stats_service::plan::Plan;
use alpheus_stats_service::replay::stage::{Size, Stage};
use alpheus_time::Timestamp;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const GROUP: &str = "statistics, the client's command";
const CLIENTS: u32 = 3;
/// Of each client. Together they fill all slots.
const SAMPLES: u32 = 60;
const HOUR: u64 = 3_600_000_000;
const DAY: u64 = 24 * HOUR;
/// When the hour begins: at noon of some day.
const NOON: u64 = 15_400 * DAY + DAY / 2;
/// How long the wait for the end is measured, and the most that anything may take.
const WAIT: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(300);

fn plan() -> String {
    let slots = CLIENTS * SAMPLES;
    format!(
        "place: bench/command\nattribute: value\ninterval: {{ lowest: 0, highest: 65535 }}\n\
         deviation: true\nevery: 1hr\nduring: 4\nquota: 100\naccounts: 2\nslots: {slots}\n\
         expected: {slots}\nclients: {CLIENTS}\nrelease: full\n\
         after: {{ turn: 5min, turns: 3, settling: 1min, patience: 6hr }}\n"
    )
}

/// A client's process. It ends when this is dropped.
struct ClientProcess {
    child: Child,
    /// Seconds at its start, once it is registered.
    before: f64,
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        // It may have ended already, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ClientProcess {
    /// Starts one and waits until it is registered.
    fn start(stage: &Stage, number: usize) -> Result<Self, Failure> {
        let (name, secret) =
            stage.accounts.get(number).ok_or("no account").blame(Category::Check)?;
        let folder = stage.folder();
        let file = format!("{name}.secret");
        let mut opened = std::fs::File::create(folder.join(&file)).blame(Category::Io)?;
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        opened.set_permissions(private).blame(Category::Io)?;
        opened.write_all(secret.as_bytes()).blame(Category::Io)?;
        let state = format!("run/{name}");
        let mut command = Command::new(children::program()?);
        command.args(["stats", "client", "plan.yaml", "--card", "keys/card.json"]);
        command.args(["--account", name, "--secret-file", &file, "--state", &state]);
        command.args(["--replay-clock", "clock"]).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut running = Self { child: command.spawn().blame(Category::Io)?, before: 0.0 };
        let said = running.child.stderr.take().ok_or("no standard error").blame(Category::Io)?;
        let mut lines = BufReader::new(said);
        let mut line = String::new();
        while !line.starts_with("taking part as") {
            line.clear();
            if lines.read_line(&mut line).blame(Category::Io)? == 0 {
                return Err("a client did not start").blame(Category::Check);
            }
        }
        std::thread::spawn(move || lines.read_to_string(&mut String::new()));
        running.before = running.seconds()?;
        Ok(running)
    }

    fn seconds(&self) -> Result<f64, Failure> {
        processor_seconds(self.child.id())
    }

    /// Gives all its samples at once.
    fn give(&mut self) -> Result<(), Failure> {
        let lines: String = (0..SAMPLES).map(|at| format!("{}\n", at * 7919 % 65_536)).collect();
        let mut input = self.child.stdin.take().ok_or("no standard input").blame(Category::Io)?;
        input.write_all(lines.as_bytes()).blame(Category::Io)
    }

    /// Waits for its end. Returns the seconds that it took in all.
    fn ended(&mut self) -> Result<f64, Failure> {
        let (mut last, until) = (self.seconds()?, Instant::now() + PATIENCE);
        loop {
            if let Some(status) = self.child.try_wait().blame(Category::Io)? {
                let failed = Err("a client's samples are not known to count");
                return if status.success() { Ok(last) } else { failed.blame(Category::Check) };
            }
            if Instant::now() > until {
                return Err("a client does not end").blame(Category::Check);
            }
            // The kernel forgets it when it has ended.
            last = self.seconds().unwrap_or(last).max(last);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn all(clients: &[ClientProcess]) -> Result<f64, Failure> {
    clients.iter().map(ClientProcess::seconds).sum()
}

/// Waits until clients have nothing left to give.
fn settled(clients: &[ClientProcess]) -> Result<(), Failure> {
    let (mut before, until) = (all(clients)?, Instant::now() + PATIENCE);
    while Instant::now() < until {
        std::thread::sleep(Duration::from_secs(2));
        let now = all(clients)?;
        // Uploads take a hundred times as much.
        if now - before < 0.1 * clients.len() as f64 {
            return Ok(());
        }
        before = now;
    }
    Err("clients do not come to rest").blame(Category::Check)
}

/// Milliseconds for a sample, and for a second of waiting.
///
/// # Errors
/// If a process does not start, or a sample does not count.
pub(super) fn figures() -> Result<Vec<Figure>, Failure> {
    let plan = plan();
    let parsed = Plan::parse(&plan).blame(Category::Check)?;
    let size = Size {
        smoothers: 4,
        threshold: 2,
        clients: CLIENTS as usize,
        start: Timestamp(NOON / DAY * DAY - DAY),
        days: 3,
        now: Timestamp(NOON - HOUR),
        first: Timestamp(NOON),
    };
    let mut stage = Stage::start(size, Some(&parsed))?;
    std::fs::write(stage.folder().join("plan.yaml"), &plan).blame(Category::Io)?;
    let agreed = block_on(async {
        let parties = Parties::new(&stage.card)?;
        Ok(define(&stage.card, &parties, (&parsed, &stage.definer), Timestamp(NOON)).await?)
    })?;
    let clients = (0..CLIENTS as usize).map(|number| ClientProcess::start(&stage, number));
    let mut clients = clients.collect::<Result<Vec<_>, _>>()?;
    stage.clock_writer.set(Timestamp(NOON))?;
    // They ask for definitions at times of their own.
    std::thread::sleep(Duration::from_secs(2));
    clients.iter_mut().try_for_each(ClientProcess::give)?;
    settled(&clients)?;
    let (given, before) = (all(&clients)?, clients.iter().map(|client| client.before).sum::<f64>());
    std::thread::sleep(WAIT);
    let waiting = all(&clients)? - given;
    stage.clock_writer.set(agreed.release())?;
    let ended = clients.iter_mut().map(ClientProcess::ended).sum::<Result<f64, Failure>>()?;
    let each = |seconds: f64| 1000.0 * seconds / f64::from(CLIENTS * SAMPLES);
    let figure = |what: &str, value| Figure::alone(GROUP, what.into(), "ms", value);
    Ok(vec![
        figure(
            "a sample, 16 bit and square, until all have receipts, with TLS handshakes: processor time",
            each(given - before),
        )
        .with_goal(Goal::AtMost(6.0)),
        figure("the same, with the wait for the end and the check that it counts", each(ended - before)),
        figure(
            "a second of waiting, with 60 samples given",
            1000.0 * waiting / WAIT.as_secs_f64() / f64::from(CLIENTS),
        ),
    ])
}
