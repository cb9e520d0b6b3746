//! Clients that run on: over borders of periods, without an issuer for a while, and
//! until they are asked to stop.

use crate::common::{PATIENCE, in_some_attempt};
use crate::pass::service::{Wire, open};
use crate::pass::town::{Town, read_answer, until};
use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Periods of two epochs: the session ends at each border, and another begins with
/// a pass that the client has fetched meanwhile.
#[test]
fn a_client_has_the_next_pass_before_it_needs_it() {
    let town = Town::new("2", 1, &["--epochs-per-period", "2"]);
    let (issuer, _verifiers, _gateway) = town.all();
    town.subscriber("ada");
    let mut ada = town.connected("ada");
    let epoch = || town.clock.now().0 / 2_000_000;
    let (first, mut seen, mut served) = (epoch(), BTreeSet::new(), BTreeSet::new());
    until("the next pass, twice", || {
        // Each epoch is looked at, however late this thread is, and none ends meanwhile.
        let same_epoch = town.clock.hold();
        let now = epoch();
        if !served.contains(&now) {
            seen.insert(now);
            if ada.is_served() {
                served.insert(now);
            }
        }
        drop(same_epoch);
        let fetched = ada.process.log().matches("the next pass was fetched").count();
        (fetched >= 2 && epoch() - first >= 16).then_some(())
    });
    // Where a session ends, the next one begins with the next epoch.
    assert!(
        2 * served.len() > seen.len(),
        "served in {served:?} of {seen:?}\n{}",
        ada.process.log()
    );
    // Without the issuer it goes on as far as its passes do: what lives, lives to its
    // end, and only then is there no pass.
    drop(issuer);
    let status = ada.process.wait();
    let log = ada.process.log();
    assert!(!status.success() && log.contains("there is no pass for this period"), "{log}");
    assert!(log.contains("not fetched; will retry"), "{log}");
}

#[test]
fn a_logout_is_said_until_it_is_heard() {
    let town = Town::new("20", 1, &[]);
    let (_issuer, _verifiers, mut gateway) = town.all();
    town.subscriber("ada");
    let mut ada = town.connected("ada");
    gateway.kill();
    let _same_epoch = town.clock.hold();
    assert_eq!(crate::pass::sessions::log_out(&ada).0, 202);
    ada.process.wait_for("another try", |line| line.contains("the logout failed").then_some(()));
    let _gateway = town.gateway(&town.urls(), &[]);
    let status = ada.process.wait();
    assert!(status.success(), "{}", ada.process.log());
    // It was heard: another client with the same login hears so.
    let mut again = town.client("ada", &[]);
    let ended = |line: &str| line.contains("the session has ended").then_some(());
    again.process.wait_for("an end", ended);
}

/// The gateway cuts, whatever becomes of the client: its logout is heard on the way, and
/// the client is frozen before anybody answers.
#[test]
fn a_logout_cuts_what_runs_at_the_gateway() {
    in_some_attempt("requests that are cut", cut_at_once);
}

/// By itself the gateway checks every five seconds, counted from the first request of a session.
/// A cut proves a notice only if no such check can lie between the logout and it.
fn cut_at_once() -> Option<()> {
    const CHECK: u64 = 5;
    let checks = |since: Instant| since.elapsed().as_secs() / CHECK;
    let mut town = Town::new("20", 1, &[]);
    // In a replay the gateway looks at its clock more often.
    town.in_machine_time = true;
    std::fs::write(town.path("accounts"), "").unwrap();
    let _issuer = town.issuer(&["--new-state"]);
    let (_verifier, _gateway) = (town.verifier(0), town.gateway(&town.urls(), &["--plain"]));
    town.subscriber("ada");
    let wire = Wire::to(town.gateway_at.to_string());
    let mut ada = town.client("ada", &["--gateway", &format!("http://{}", wire.address)]);
    ada.process.wait_for_prefix("connected");
    let opened = Instant::now();
    let _unread = ada.open("/flood?logout", "");
    let _socket = ada.open("/ws?logout", "Connection: upgrade\r\nUpgrade: websocket\r\n");
    // With its epoch the session ends.
    let epoch = || alpheus_node::clock::now().0 / 20_000_000;
    let first = epoch();
    let runs = || open("/flood?logout") == 1 && open("/ws?logout") == 1;
    until("a flood and a socket", || runs().then_some(()));
    let running = Instant::now();
    wire.hold(true);
    assert_eq!(crate::pass::sessions::log_out(&ada).0, 202);
    // Head and 96 bytes of body.
    let said = until("a logout", || {
        let heard = wire.heard.lock().unwrap().clone();
        let mut windows = heard.windows(26);
        let start = windows.rposition(|bytes| bytes == b"POST /.alpheus/pass/logout")?;
        let head = heard[start..].windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
        heard.get(start..start + head + 96).map(<[u8]>::to_vec)
    });
    ada.process.freeze();
    assert!(runs() || epoch() > first, "the gateway does not know yet");
    // Half a second after a check, for checks that come late.
    let since = running.elapsed().as_millis() % u128::from(CHECK * 1000);
    let next = u64::try_from(u128::from(CHECK * 1000) - since).unwrap();
    std::thread::sleep(Duration::from_millis(next + 500));
    let sent = checks(running);
    let gateway = TcpStream::connect(town.gateway_at).unwrap();
    gateway.set_read_timeout(Some(PATIENCE)).unwrap();
    (&gateway).write_all(&said).unwrap();
    let ended = || open("/flood?logout") == 0 && open("/ws?logout") == 0;
    until("the end of flood and socket", || ended().then_some(()));
    let woken = checks(opened) == sent;
    let (status, answer) = read_answer(gateway);
    assert!(status == 200 || epoch() > first, "{answer}");
    ada.process.thaw();
    (woken && epoch() == first).then_some(())
}
