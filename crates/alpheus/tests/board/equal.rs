//! A board of three equal servers as processes: posted to, read, one of them killed.

use crate::common::{PATIENCE, alpheus, free_address};
use crate::town::{Keepers, Town};
use std::time::{Duration, Instant};

const THREE: Keepers = Keepers::Equal(3);

/// Each server is killed at points that a seed chooses, in the middle of the epoch too: it
/// goes through, and what was posted is read, the same from each of them.
#[test]
fn what_was_posted_is_read_though_servers_are_killed() {
    // Rows enough that no three meet.
    let mut town = Town::of(THREE, 5, &["--rows", "4000"]);
    for i in 0..5 {
        town.post(i, &format!("message {i}"));
        if i % 2 == 0 {
            town.restart(i % 3);
        }
    }
    let mut seed = 11_u64;
    let until = Instant::now() + PATIENCE;
    let mut messages = loop {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis(seed >> 40 & 0x1ff));
        town.restart(usize::try_from(seed >> 33).unwrap() % 3);
        match town.messages() {
            Ok(messages) => break messages,
            Err(said) => assert!(!said.contains("burnt"), "{said}"),
        }
        assert!(Instant::now() < until, "not published in time: {:?}", town.messages());
    };
    messages.sort();
    assert_eq!(messages, (0..5).map(|i| format!("message {i}")).collect::<Vec<_>>());
}

/// A server that comes back from an older copy of its state burns the epoch, by name.
#[test]
fn an_old_copy_burns_the_epoch() {
    let mut town = Town::of(THREE, 3, &["--rows", "4000"]);
    town.post(0, "before the copy");
    town.servers[0].kill();
    let (state, copy) = (town.path("run/server-1"), town.path("copy"));
    let copied = std::process::Command::new("cp").arg("-r").args([&state, &copy]).status().unwrap();
    assert!(copied.success());
    town.restart(0);
    town.post(1, "after the copy");
    town.servers[0].kill();
    // The fence stays: it is what shows the rest to be old.
    std::fs::rename(state.join("fence"), town.path("fence")).unwrap();
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(&copy, &state).unwrap();
    std::fs::rename(town.path("fence"), state.join("fence")).unwrap();
    town.restart(0);
    let until = Instant::now() + PATIENCE;
    while !town.messages().is_err_and(|said| said.contains("burnt")) {
        assert!(Instant::now() < until, "{:?}", town.messages());
        std::thread::sleep(Duration::from_millis(100));
    }
    let refused =
        town.run(&["board", "post", "late", "--card", "board.json", "--key", "member-2.key"]);
    assert!(!refused.status.success());
}

/// `alpheus board replay --servers`: every line comes back, or its writer knows.
#[test]
fn a_replay_over_equal_servers_gives_every_line_back() {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..12).map(|i| format!("line {i}")).collect();
    std::fs::write(folder.path().join("posts.txt"), lines.join("\n") + "\n").unwrap();
    let replay = ["board", "replay", "--input", "posts.txt", "--output", "board.txt"];
    let more = ["--servers", "3", "--rows", "4000", "--format", "json"];
    let output =
        alpheus([replay.as_slice(), &more].concat()).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let counts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&counts["lost"], &counts["rejected"]), (&0.into(), &0.into()));
    let text = std::fs::read_to_string(folder.path().join("board.txt")).unwrap();
    let mut came: Vec<&str> = text.lines().collect();
    came.sort_unstable();
    let mut expected: Vec<&str> = lines.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(came, expected);
}

/// What does not fit together is refused by name: another number of servers than said, a
/// role that the card does not have.
#[test]
fn what_does_not_fit_is_refused_by_name() {
    let town = Town::of(THREE, 2, &[]);
    let init = ["board", "init", "other.json", "--members", "members.txt", "--servers", "4"];
    let server = ["--server", "https://localhost:1", "--server-key"];
    let key = town.done(&["board", "key", "one.key"]);
    let output = town.run(&[init.as_slice(), &server, &[&key]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("--servers says"), "{said}");
    let serve = ["board", "serve", "--role", "database", "--identity", "pki/server-1"];
    let at = free_address().to_string();
    let rest = ["--card", "board.json", "--key", "server-1.key", "--state", "run/x", "--api", &at];
    let output = town.run(&[serve.as_slice(), &rest].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("no server of this role"), "{said}");
}
