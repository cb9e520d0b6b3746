//! Clients that run on: over borders of periods, without an issuer for a while, and
//! until they are told to stop.

use crate::town::Town;
use std::time::{Duration, Instant};

/// Periods of two epochs: the session ends at each border, and another begins with
/// a pass that the client has fetched meanwhile.
#[test]
fn a_client_has_the_next_pass_before_it_needs_it() {
    let town = Town::new("2", 1, &["--epochs-per-period", "2"]);
    let (issuer, _verifiers, _gateway) = town.all();
    town.subscriber("ada");
    let mut ada = town.connected("ada");
    let mut served = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(7) {
        served += usize::from(ada.get("/").0 == 200);
        std::thread::sleep(Duration::from_millis(100));
    }
    let log = ada.process.log();
    assert!(log.matches("the next pass is there").count() >= 1, "{log}");
    assert!(served > 35, "{served} requests were served\n{log}");
    // Without the issuer it goes on as far as its passes do: what lives, lives to its
    // end, and only then is there no pass.
    drop(issuer);
    let status = ada.process.wait();
    let log = ada.process.log();
    assert!(!status.success() && log.contains("there is no pass for this period"), "{log}");
    assert!(log.contains("not fetched; trying again"), "{log}");
}

#[test]
fn a_logout_is_said_until_it_is_heard() {
    let town = Town::new("20", 1, &[]);
    let (_issuer, _verifiers, mut gateway) = town.all();
    town.subscriber("ada");
    let mut ada = town.connected("ada");
    gateway.kill();
    let started = Instant::now();
    assert_eq!(crate::sessions::log_out(&ada).0, 202);
    ada.process.wait_for("another try", |line| line.contains("not ended yet").then_some(()));
    let _gateway = town.gateway(&town.urls(), &[]);
    let status = ada.process.wait();
    assert!(status.success(), "{}", ada.process.log());
    assert!(started.elapsed() < Duration::from_secs(15), "it lapsed by itself");
    // It was heard: the same login is told so.
    let mut again = town.client("ada", &[]);
    again.process.wait_for("refusal", |line| line.contains("the session has ended").then_some(()));
}
