//! Databases that choose a victim's crowd, and servers that come back as copies of themselves, against
//! real processes.

use crate::board::liar::{LIAR, Liar, Plan, key_file, tag_of};
use crate::board::town::{Keepers, Town};
use crate::common::deployment::until;
use crate::common::{PATIENCE, in_some_attempt};
use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::dpf::Side;
use alpheus_anonymous_board::messages::{BurnReason, Fault};
use alpheus_anonymous_board::transcript::Transcript;
use alpheus_board_service::card::{self, Card, Content};
use alpheus_board_service::keys;
use alpheus_time::Timestamp;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const HONEST: Party = Party::Database(Side::First);
const SECOND: u64 = 1_000_000;

/// Moves the clock on, second by second, until the liar has heard how the epoch ended.
fn until_ended(town: &mut Town, liar: &Liar) -> Transcript {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(heard) = end_heard(liar, until) {
            return heard;
        }
        later(town, 1);
    }
}

/// How the epoch ended, once the liar has heard it. Waits a moment if it has not.
fn end_heard(liar: &Liar, until: Instant) -> Option<Transcript> {
    let heard = liar.transcript(Epoch(0)).unwrap();
    if heard.has_ended() {
        return Some(heard);
    }
    let each = [LIAR, HONEST, Party::Auditor];
    let state = each.map(|by| (heard.statement_count(by), heard.abort_reason(by)));
    assert!(Instant::now() < until, "it does not end: {state:?}");
    std::thread::sleep(Duration::from_millis(100));
    None
}

fn later(town: &mut Town, seconds: u64) {
    let clock = town.clock.as_mut().unwrap();
    let now = clock.now.load(std::sync::atomic::Ordering::SeqCst);
    clock.set(Timestamp(now + seconds * SECOND));
}

/// Waits until the first epoch has begun, as writers see it, and posts.
fn post_all(town: &Town, members: impl Iterator<Item = usize>) {
    for member in members {
        let until = Instant::now() + PATIENCE;
        loop {
            let output = town.try_post(member, "hello", &["--no-wait"]);
            if output.status.success() {
                break;
            }
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(Instant::now() < until, "{said}");
        }
    }
}

/// Nine honest members and two of the liar's own. It opens wrong digests for all but the victim. The
/// honest database ends the epoch, and a writer who waits, as it does by default, shows the auditor
/// who is to blame.
#[test]
fn a_liar_that_fails_the_audit_of_others_chooses_no_crowd() {
    let more = ["--epoch", "900", "--complaints", "1", "--rows", "200", "--min-writes", "3"];
    let (mut town, liar) = Town::with_liar(11, &more, Plan::default());
    let folder = town.path("");
    let fails = (1..9).map(|member| tag_of(&key_file(&folder, member))).collect();
    liar.plan(|plan| plan.fails = fails);
    post_all(&town, (0..3).chain(4..11));
    // The last one closes the epoch.
    let waiting = town.posting(3, "mine", &[]);
    let heard = until_ended(&mut town, &liar);
    let set = heard.set().unwrap().unwrap();
    assert_eq!(set.accepted.len(), 3, "the victim and the liar's own");
    assert_eq!(heard.abort_reason(HONEST), Some(BurnReason::Dwindled));
    let done = waiting.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && said.contains("upheld=true"), "{said}");
    assert!(said.contains("more than half of the writes"), "{said}");
    assert!(town.messages().is_err());
}

/// The liar shows one writer alone a wrong digest of its write, and everybody else the right one. The
/// writer shows the auditor no key: the honest database has agreed to another set. It hands the
/// liar's statement on, and each server that has the other one then has the proof.
#[test]
fn a_writer_that_alone_is_lied_to_hands_the_lie_on_and_shows_no_key() {
    let (heard, said) = in_some_attempt("a writer that is lied to", lied_to_alone);
    assert!(!said.contains("complaint"), "{said}");
    let blamed = BurnReason::Blamed(LIAR, Fault::Equivocation);
    let reasons = [HONEST, Party::Auditor].map(|by| heard.abort_reason(by));
    assert!(reasons.contains(&Some(blamed)), "{reasons:?}: {said}");
    assert_eq!(heard.settled_set(), None, "so no seed is revealed");
}

/// Five writers, one of whom the liar deceives: how the epoch ended, and what that writer's command
/// said. Nothing if a busy machine's servers answered that writer too late: then it has not waited.
fn lied_to_alone() -> Option<(Transcript, String)> {
    let more = ["--epoch", "900", "--complaints", "3600", "--rows", "200", "--min-writes", "3"];
    let (town, liar) = Town::with_liar(5, &more, Plan::default());
    let victim = tag_of(&key_file(&town.path(""), 4));
    liar.plan(|plan| plan.deceives = Some(victim));
    // The same board, with the liar under its other name.
    let card = card::open(&town.path("board.json")).unwrap();
    let mut at: Vec<String> =
        (0..3).map(|place| format!("https://{}", town.address(place))).collect();
    at[1].clone_from(&liar.at);
    let operator = keys::load(&key_file(&town.path(""), 0)).unwrap();
    let content = Content::new(&card.board, at, card.authority.clone(), None, &operator);
    let other = serde_json::to_string(&Card::new(&content, &operator)).unwrap();
    std::fs::write(town.path("victim.json"), other).unwrap();
    let same = card::open(&town.path("victim.json")).unwrap().board.fingerprint();
    assert_eq!(same, card.board.fingerprint());

    post_all(&town, 0..4);
    // The last one closes the epoch, so no clock has to move: it would run away from a slow writer.
    let mut writer = town.posting_by("victim.json", 4, "mine", &[]);
    until("a writer that ends", || writer.try_wait().unwrap());
    let ended = writer.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    println!("the writer has ended: {said}");
    if !said.contains("the epoch is burnt:") {
        assert!(!said.contains("complaint"), "{said}");
        return None;
    }
    let until = Instant::now() + PATIENCE;
    let heard = std::iter::repeat_with(|| end_heard(&liar, until)).find_map(|heard| heard);
    heard.map(|heard| (heard, said))
}

/// The liar answers nobody but the victim and its own two members. The others leave a knock at the
/// honest database, which then reveals nothing.
#[test]
fn a_liar_that_answers_few_chooses_no_crowd() {
    let more = ["--epoch", "900", "--complaints", "1", "--rows", "200", "--min-writes", "3"];
    let (mut town, liar) = Town::with_liar(11, &more, Plan::default());
    post_all(&town, [0, 9, 10].into_iter());
    liar.plan(|plan| plan.silent = true);
    for member in 1..8 {
        let refused = town.try_post(member, "hello", &["--no-wait"]);
        assert!(!refused.status.success());
    }
    liar.plan(|plan| plan.silent = false);
    later(&mut town, 901);
    let heard = until_ended(&mut town, &liar);
    assert_eq!(heard.closing_list(LIAR).map(<[_]>::len), Some(3));
    assert_eq!(heard.abort_reason(HONEST), Some(BurnReason::Thinned(LIAR)));
    assert!(town.messages().is_err());
}

/// The whole folder of an equal server is copied while it runs, with its fence, and put back later:
/// it may have sent a share that the copy does not know. It burns the epoch, and makes no second one.
#[test]
fn a_copy_of_a_whole_server_burns_the_epoch() {
    let mut town = Town::of(Keepers::Equal(3), 3, &["--rows", "4000"]);
    town.post(0, "before the copy");
    town.servers[0].freeze();
    let copied = |from: &str, to: &str| {
        let (from, to) = (town.path(from), town.path(to));
        assert!(Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
    };
    copied("run/server-1", "state-copy");
    copied("fences/server-1", "fence-copy");
    town.servers[0].thaw();
    town.post(1, "after the copy");
    town.servers[0].kill();
    std::fs::remove_dir_all(town.path("run/server-1")).unwrap();
    std::fs::rename(town.path("state-copy"), town.path("run/server-1")).unwrap();
    std::fs::rename(town.path("fence-copy"), town.path("fences/server-1")).unwrap();
    town.restart(0);
    let until = Instant::now() + PATIENCE;
    while !town.messages().is_err_and(|said| said.contains("or is a copy of it")) {
        assert!(Instant::now() < until, "{:?}", town.messages());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(!town.try_post(2, "late", &["--no-wait"]).status.success());
}

/// The fence guards nothing if a copy of the state holds it too.
#[test]
fn a_fence_inside_the_state_is_refused() {
    let town = Town::of(Keepers::Equal(3), 2, &[]);
    let serve = ["board", "serve", "--role", "server", "--identity", "pki/server-1"];
    let files = ["--card", "board.json", "--key", "server-1.key", "--members", "members.txt"];
    for fence in ["run/x/fence", "run/x/../x/fence"] {
        let rest = ["--state", "run/x", "--fence", fence, "--api", "127.0.0.1:0"];
        let output = town.run(&[serve.as_slice(), &files, &rest].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("inside the state folder"), "{said}");
    }
}

/// `--background` returns once the write is made; another process waits.
/// `--crowd` sends nothing into a smaller one.
#[test]
fn a_writer_waits_in_the_background_and_asks_for_a_crowd() {
    let town = Town::new(3, &["--complaints", "1", "--rows", "4000"]);
    let small = town.try_post(0, "mine", &["--crowd", "50"]);
    let said = String::from_utf8_lossy(&small.stderr).into_owned();
    assert!(!small.status.success() && said.contains("nothing was sent"), "{said}");
    assert!(said.contains("alpheus errors board-not-written"), "{said}");
    std::fs::write(town.path("message.txt"), "from a file\n").unwrap();
    let file = ["--file", "message.txt", "--background", "--crowd", "3"];
    let output = town.try_post(0, "", &file);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "epoch 0: posted\n");
    town.post(1, "second");
    let child: Child = town
        .command(&["board", "post", "--cover", "--card", "board.json", "--key", "member-2.key"])
        .args(["--within", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "epoch 0: cover\n");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("in a crowd of at most 3 writes (3 were listed, 3 arrived)"), "{said}");
    let mut messages = town.messages().unwrap();
    messages.sort();
    assert_eq!(messages, ["from a file", "second"]);
}
