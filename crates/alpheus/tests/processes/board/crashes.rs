//! Servers killed over and over while an epoch goes through, and one that comes
//! back from an old copy.

use crate::board::town::Town;
use crate::common::PATIENCE;
use std::time::{Duration, Instant};

/// Each server is killed many times, at points that a seed chooses: the epoch goes
/// through, and what was posted is read.
#[test]
fn killed_servers_go_on_where_they_were() {
    // Rows enough that no three meet.
    let mut town = Town::new(5, &["--complaints", "1", "--rows", "4000"]);
    town.is_read_though_killed(7);
}

/// A database comes back from a copy of its state that is older than what it has
/// said: the epoch is burnt, by name, and nothing is revealed.
#[test]
fn an_old_copy_burns_the_epoch() {
    let mut town = Town::new(3, &["--complaints", "1", "--rows", "4000"]);
    town.put_an_old_copy_back();
    assert!(town.servers[0].log().contains("burnt"), "{}", town.servers[0].log());
    let refused = town.try_post(2, "late", &["--no-wait"]);
    assert!(!refused.status.success());
    let until = Instant::now() + PATIENCE;
    while !town
        .messages()
        .is_err_and(|said| said.contains("may be an old copy") || said.contains("burnt"))
    {
        assert!(Instant::now() < until, "{:?}", town.messages());
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A writer who waits asks on while a server is away, and learns in the end what became of
/// the message.
#[test]
fn a_writer_who_waits_outlives_a_silent_server() {
    let mut town = Town::new(3, &["--complaints", "1", "--rows", "4000"]);
    town.servers[2].kill();
    let mut waiting = town.posting(0, "mine", &[]);
    town.post(1, "another");
    town.post(2, "a third");
    // Long enough for several rounds of asking in vain.
    std::thread::sleep(Duration::from_secs(2));
    assert!(waiting.try_wait().unwrap().is_none(), "it gave up");
    town.restart(2);
    let until = Instant::now() + PATIENCE;
    while waiting.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            waiting.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let done = waiting.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("epoch 0: delivered"), "{said}");
}
