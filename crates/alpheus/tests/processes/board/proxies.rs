//! A writer behind a SOCKS proxy: no connection goes beside it, and none serves two epochs.

use crate::board::day::{SECOND, wait_for};
use crate::board::liar::Plan;
use crate::board::town::Town;
use crate::common::socks::Socks;
use crate::common::{Process, free_address};
use alpheus_anonymous_board::configuration::Epoch;
use alpheus_board_service::card;
use alpheus_time::Timestamp;
use std::collections::BTreeSet;

#[test]
fn a_writer_connects_through_its_proxy_alone() {
    let town = Town::new(2, &["--complaints", "1", "--rows", "4000"]);
    let socks = Socks::start();
    let proxy = |address| format!("socks5h://{address}");
    let nobody = town.try_post(0, "mine", &["--no-wait", "--proxy", &proxy(free_address())]);
    let said = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert!(!nobody.status.success() && said.contains("the proxy"), "{said}");
    town.post(1, "second");
    let posted = town.try_post(0, "mine", &["--proxy", &proxy(socks.address)]);
    assert!(posted.status.success(), "{}", String::from_utf8_lossy(&posted.stderr));
    let seen = socks.seen();
    let servers: BTreeSet<String> = seen.values().flatten().cloned().collect();
    assert_eq!(servers, [0, 1, 2].map(|place| town.address(place)).into());
    // A name is for one server: behind Tor each has a circuit of its own.
    assert!(seen.values().all(|to| to.len() == 1), "{seen:?}");
    let mut messages = town.messages().unwrap();
    messages.sort();
    assert_eq!(messages, ["mine", "second"]);
}

/// A member goes on for two epochs. Each server is asked under a new name in each: so nothing links
/// the writes of a holder of a pass, neither a connection nor a circuit.
#[test]
fn a_member_has_connections_of_its_own_in_every_epoch() {
    let more = ["--epoch", "7200", "--complaints", "1", "--timeout", "3000", "--rows", "64"];
    let (mut town, _second) = Town::with_liar(2, &more, Plan::default());
    let schedule = card::open(&town.path("board.json")).unwrap().board.schedule;
    let socks = Socks::start();
    let proxy = format!("socks5h://{}", socks.address);
    let files = ["--card", "board.json", "--key", "member-0.key", "--state", "run/member-0"];
    let args = [&["board", "member", "--proxy", &proxy], &files[..]].concat();
    let mut members = [Process::start(&mut town.command(&args))];
    members[0].wait_for_prefix("writing in every epoch");
    for epoch in 0..2 {
        let at = |percent: u64| {
            Timestamp(schedule.start_of(Epoch(epoch)).0 + schedule.length.0 / 100 * percent)
        };
        town.clock.as_mut().unwrap().set(at(80));
        wait_for(&mut town, &members, epoch, &["written"], (10, at(94)));
        town.clock.as_mut().unwrap().set(Timestamp(at(100).0 + SECOND));
        // It is over before the next write can be due.
        wait_for(&mut town, &members, epoch, &["in a crowd", "burnt"], (1, at(104)));
        let seen = socks.seen();
        for place in 0..3 {
            let address = town.address(place);
            let port = address.rsplit(':').next().unwrap();
            let names = seen.values().filter(|to| to.iter().any(|to| to.ends_with(port)));
            assert_eq!(names.count() as u64, epoch + 1, "{address}: {seen:?}");
        }
    }
}
