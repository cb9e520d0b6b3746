//! A smoother whose state is put back from a copy, with its fence: it finds among what the others
//! know what it has signed, and takes no part any more.

use crate::common::{Process, copy_folder, in_some_attempt};
use crate::stats::crashes::{LONG, Role, kill, roles_of};
use crate::stats::replay::{START, check_rows, small};
use alpheus_node::clock::Clock;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

const SITS_OUT: &str = "a statement missing from its state, and sits out";

/// Waits for something of a replay that goes on; nothing if it has ended well meanwhile.
fn wait<T>(
    replay: &mut Process,
    what: &str,
    mut find: impl FnMut(&[Role]) -> Option<T>,
) -> Option<T> {
    let until = Instant::now() + LONG;
    loop {
        if replay.has_ended() {
            assert!(replay.wait().success(), "{what}\n{}", replay.log());
            return None;
        }
        assert!(Instant::now() < until, "{what}\n{}", replay.log());
        let found = find(&roles_of(replay.id()));
        if found.is_some() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn first_smoother(roles: &[Role]) -> Option<&Role> {
    let first = |role: &&Role| role.arguments.iter().any(|argument| argument == "run/smoother-1");
    roles.iter().find(first)
}

/// Whether a replay's clock has come to so many seconds.
fn has_come_to(seconds: u64, roles: &[Role]) -> Option<()> {
    let clock = Clock::replayed(&roles.first()?.folder.join("clock")).ok()?;
    (clock.now().0 >= seconds * 1_000_000).then_some(())
}

/// The end of the first hour: what was measured in it is uploaded, and as much is still to come.
fn is_half_way(roles: &[Role]) -> Option<()> {
    has_come_to(START + 3600, roles)
}

#[test]
fn a_smoother_that_is_put_back_from_a_copy_sits_out() {
    in_some_attempt("a copy from before the first upload", put_back_from_a_copy);
}

fn put_back_from_a_copy() -> Option<()> {
    let folder = tempfile::tempdir().unwrap();
    let mut replay = Process::start(small(folder.path()).env("ALPHEUS_LOG", "warn"));
    // A copy of what it has before it has signed anything of an upload.
    let (state, fence) = wait(&mut replay, "no smoother", |roles| {
        let run = first_smoother(roles)?.folder.join("run");
        let (state, fence) = (run.join("smoother-1"), run.join("smoother-1.fence"));
        fence.join("fence").exists().then_some((state, fence))
    })?;
    let backup = folder.path().join("backup");
    replay.freeze();
    if has_come_to(START, &roles_of(replay.id())).is_some() {
        return None;
    }
    let id = first_smoother(&roles_of(replay.id()))?.id.to_string();
    let signal = |signal: &str| Command::new("kill").args([signal, &id]).status().unwrap();
    signal("-STOP");
    copy_folder(&state, &backup);
    copy_folder(&fence, &folder.path().join("backup.fence"));
    signal("-CONT");
    replay.thaw();
    wait(&mut replay, "nothing is given", is_half_way)?;
    assert!(!replay.log().contains(SITS_OUT), "it remembers all it has said");
    replay.freeze();
    kill(first_smoother(&roles_of(replay.id()))?);
    fs::remove_dir_all(&state).unwrap();
    fs::remove_dir_all(&fence).unwrap();
    copy_folder(&backup, &state);
    copy_folder(&folder.path().join("backup.fence"), &fence);
    replay.thaw();
    wait(&mut replay, "nobody starts it again", |roles| {
        first_smoother(roles).filter(|role| role.id.to_string() != id).map(|_| ())
    })?;
    // The recording waits until it has looked at what the others know.
    replay.freeze();
    let until = Instant::now() + LONG;
    while !replay.log().contains(SITS_OUT) {
        assert!(Instant::now() < until, "it does not sit out\n{}", replay.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    replay.thaw();
    assert!(replay.wait().success(), "{}", replay.log());
    check_rows(&fs::read_to_string(folder.path().join("out.csv")).unwrap());
    Some(())
}
