//! A simulated day of members that write in every epoch, beside a database that garbles its share,
//! with kills of members and of the honest database.

use crate::board::liar::{LIAR, Liar, Plan, key_file, tag_of};
use crate::board::town::{Town, member};
use crate::common::{PATIENCE, Process};
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::messages::{BurnReason, Fault, Tag};
use alpheus_board_service::card;
use alpheus_time::Timestamp;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const MEMBERS: usize = 5;
/// Epochs of two hours.
const EPOCHS: u64 = 12;
pub(crate) const SECOND: u64 = 1_000_000;

fn start(town: &Town, i: usize) -> Process {
    let state = format!("run/member-{i}");
    let key = member(i);
    let args = ["board", "member", "--card", "board.json", "--key", &key, "--state", &state];
    let mut process = Process::start(&mut town.command(&args));
    process.wait_for_prefix("writing in every epoch");
    process
}

fn queue(town: &Town, i: usize, message: &str) {
    let state = format!("run/member-{i}");
    let args = ["board", "queue", "--card", "board.json", "--state", &state];
    let mut command = town.command(&args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(message.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Waits until each member has reported a line about the epoch, and moves the clock by so many
/// seconds at a time meanwhile, up to a time.
pub(crate) fn wait_for(
    town: &mut Town,
    members: &[Process],
    epoch: u64,
    what: &[&str],
    (step, last): (u64, Timestamp),
) {
    let until = Instant::now() + PATIENCE;
    let reported = |member: &Process| {
        let log = member.log();
        let mut lines =
            log.lines().filter_map(|line| line.strip_prefix(&format!("epoch {epoch}: ")));
        lines.any(|line| what.iter().any(|what| line.starts_with(what)))
    };
    while !members.iter().all(reported) {
        let logs: Vec<String> = members.iter().map(Process::log).collect();
        assert!(Instant::now() < until, "epoch {epoch}, {what:?}: {logs:?}");
        std::thread::sleep(Duration::from_millis(50));
        let clock = town.clock.as_mut().unwrap();
        let now = clock.now.load(Ordering::SeqCst);
        clock.set(Timestamp((now + step * SECOND).min(last.0)));
    }
}

/// How an epoch ended, as the liar has heard.
fn blamed(liar: &Liar, epoch: u64) -> bool {
    let heard = liar.transcript(Epoch(epoch)).unwrap();
    let why = heard.abort_reason(Party::Auditor);
    let fault = BurnReason::Blamed(LIAR, Fault::Share);
    assert!(why.is_none() || why == Some(fault), "epoch {epoch}: {why:?}");
    why.is_some()
}

/// Every member writes once in every epoch, whatever it has to say, whatever was lost, and whichever
/// process was killed. About half of the epochs are burnt, with the liar blamed. Messages come through.
#[test]
fn nobody_comes_back() {
    let more = ["--epoch", "7200", "--complaints", "1", "--timeout", "3000", "--rows", "64"];
    let plan = Plan { garbles: true, ..Plan::default() };
    let (mut town, liar) =
        Town::with_liar(MEMBERS + 1, &[&more[..], &["--min-writes", "3"]].concat(), plan);
    let schedule = card::open(&town.path("board.json")).unwrap().board.schedule;
    let everybody: BTreeSet<Tag> =
        (0..MEMBERS).map(|i| tag_of(&key_file(&town.path(""), i))).collect();
    let mut members: Vec<Process> = (0..MEMBERS).map(|i| start(&town, i)).collect();
    (0..3).for_each(|n| queue(&town, 0, &format!("first member, message {n}")));
    queue(&town, 1, "second member");
    let mut caught = 0;
    for epoch in 0..EPOCHS {
        let at = |percent: u64| {
            Timestamp(schedule.start_of(Epoch(epoch)).0 + schedule.length.0 / 100 * percent)
        };
        town.clock.as_mut().unwrap().set(at(80));
        if epoch % 3 == 1 {
            // It may have written or not.
            members[0].kill();
            members[0] = start(&town, 0);
        }
        wait_for(&mut town, &members, epoch, &["written"], (10, at(94)));
        if epoch % 4 == 2 {
            town.restart(0);
        }
        if epoch % 5 == 3 {
            members[1].kill();
            members[1] = start(&town, 1);
        }
        town.clock.as_mut().unwrap().set(Timestamp(at(100).0 + SECOND));
        wait_for(&mut town, &members, epoch, &["in a crowd", "burnt"], (1, at(140)));
        let came = liar.came(Epoch(epoch));
        let tags: BTreeSet<Tag> = came.iter().map(|(tag, _)| *tag).collect();
        assert_eq!(tags, everybody, "epoch {epoch}");
        assert_eq!(came.len(), MEMBERS, "epoch {epoch}: one write each");
        caught += u64::from(blamed(&liar, epoch));
    }
    assert!((1..EPOCHS).contains(&caught), "{caught} of {EPOCHS}");
    assert!([0, 1].map(|i| delivered(&town, i)).iter().sum::<usize>() > 0, "messages come through");
}

/// How many messages of a member were delivered. None may have been given up.
fn delivered(town: &Town, i: usize) -> usize {
    let state = format!("run/member-{i}");
    let list = ["board", "queue", "--list", "--card", "board.json", "--state", &state];
    let list = town.done(&[&list[..], &["--format", "json"]].concat());
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let ended = list["ended"].as_array().unwrap();
    assert!(ended.iter().all(|outcome| outcome.get("unsafe").is_none()), "{list}");
    ended.iter().filter(|outcome| outcome.get("delivered").is_some()).count()
}
