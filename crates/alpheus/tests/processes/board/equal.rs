//! A board of three equal servers as processes: posted to, read, one of them killed.

use crate::board::town::{Keepers, Town};
use crate::common::{PATIENCE, alpheus, free_address};
use std::time::{Duration, Instant};

const THREE: Keepers = Keepers::Equal(3);

/// Each server is stopped at points that a seed chooses, in the middle of the epoch too: it goes
/// through, and what was posted is read, the same from each of them.
#[test]
fn what_was_posted_is_read_though_servers_are_stopped() {
    // Rows enough that no three meet.
    let mut town = Town::of(THREE, 5, &["--rows", "4000"]);
    town.is_read_though_killed(11);
}

/// A server that comes back from an older copy of its state burns the epoch, by name.
#[test]
fn an_old_copy_burns_the_epoch() {
    let mut town = Town::of(THREE, 3, &["--rows", "4000"]);
    town.put_an_old_copy_back();
    let until = Instant::now() + PATIENCE;
    while !town.messages().is_err_and(|said| said.contains("burnt")) {
        assert!(Instant::now() < until, "{:?}", town.messages());
        std::thread::sleep(Duration::from_millis(100));
    }
    let refused = town.try_post(2, "late", &["--no-wait"]);
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

/// Settings that do not fit together are rejected with a specific error: another number of servers than said, a
/// role that the card does not have.
#[test]
fn what_does_not_fit_is_rejected_with_a_specific_error() {
    let town = Town::of(THREE, 2, &[]);
    let init = ["board", "init", "other.json", "--members", "members.txt", "--servers", "4"];
    let server = ["--server", "https://localhost:1", "--server-key"];
    let key = town.done(&["board", "key", "one.key"]);
    let output = town.run(&[init.as_slice(), &server, &[&key]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("--servers says"), "{said}");
    let serve = ["board", "serve", "--role", "database", "--identity", "pki/server-1"];
    let at = free_address().to_string();
    let rest = ["--card", "board.json", "--key", "server-1.key", "--state", "run/x"];
    let rest = [rest.as_slice(), &["--fence", "fences/x", "--api", &at]].concat();
    let output = town.run(&[serve.as_slice(), &rest].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("no server of this role"), "{said}");
}
