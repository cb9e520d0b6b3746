//! Clients that run on: over borders of periods, without an issuer for a while, and
//! until they are told to stop.

use crate::service::{Wire, open};
use crate::town::{Town, read_answer, until};
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

/// The gateway cuts, whatever becomes of the client: its logout is heard on the way, and
/// the client is frozen before anybody answers.
#[test]
fn a_logout_cuts_what_runs_at_the_gateway() {
    let town = Town::new("20", 1, &[]);
    std::fs::write(town.path("accounts"), "").unwrap();
    let _issuer = town.issuer(&["--first"]);
    let (_verifier, _gateway) = (town.verifier(0), town.gateway(&town.urls(), &["--plain"]));
    town.subscriber("ada");
    let wire = Wire::to(town.gateway_at.to_string());
    let mut ada = town.client("ada", &["--gateway", &format!("http://{}", wire.address)]);
    ada.process.wait_for_prefix("connected");
    let _unread = ada.open("/flood?logout", "");
    let _socket = ada.open("/ws?logout", "Connection: upgrade\r\nUpgrade: websocket\r\n");
    let runs = || open("/flood?logout") == 1 && open("/ws?logout") == 1;
    until("a flood and a socket", || runs().then_some(()));
    wire.hold(true);
    assert_eq!(crate::sessions::log_out(&ada).0, 202);
    // Head and 96 bytes of body.
    let said = until("a logout", || {
        let heard = wire.heard.lock().unwrap().clone();
        let mut windows = heard.windows(26);
        let start = windows.rposition(|bytes| bytes == b"POST /.alpheus/pass/logout")?;
        let head = heard[start..].windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
        heard.get(start..start + head + 96).map(<[u8]>::to_vec)
    });
    ada.process.freeze();
    assert!(runs(), "nobody has told the gateway");
    let told = Instant::now();
    let gateway = TcpStream::connect(town.gateway_at).unwrap();
    gateway.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    (&gateway).write_all(&said).unwrap();
    let (status, answer) = read_answer(gateway);
    assert_eq!(status, 200, "{answer}");
    let ended = || open("/flood?logout") == 0 && open("/ws?logout") == 0;
    until("the end of flood and socket", || ended().then_some(()));
    assert!(told.elapsed() < Duration::from_secs(8), "the epoch has ended by itself");
    ada.process.thaw();
}
