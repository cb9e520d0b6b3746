//! A writer behind a SOCKS proxy: no connection goes beside it.

use crate::board::town::Town;
use crate::common::free_address;
use crate::common::socks::Socks;
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
