//! A subscriber uses the service; nobody else does on the same pass.

use crate::pass::service::{Wire, open};
use crate::pass::town::{Town, read_answer};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn one_pass_is_one_session_and_goes_on_over_epochs() {
    let town = Town::new("6", 1, &[]);
    let _all = town.all();
    town.subscriber("ada");
    town.copy("ada", "eve");
    let ada = town.connected("ada");
    let (status, answer) = ada.get("/songs/7?from=0");
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("GET /songs/7?from=0"), "{answer}");
    // The service sees neither the stamp nor the local secret, and the gateway's name.
    let lower = answer.to_lowercase();
    assert!(!lower.contains("alpheus-pass") && !lower.contains("alpheus-local"), "{answer}");
    assert!(lower.contains(&format!("host: {}", town.gateway_at)), "{answer}");
    let cookie =
        lower.split("set-cookie: ").nth(1).and_then(|rest| rest.split('=').next()).unwrap();
    let jar = cookie.strip_prefix("alpheus-").and_then(|rest| rest.strip_suffix(".id"));
    assert_eq!(jar.map(str::len), Some(16), "{answer}");
    let mine = ada.open("/", &format!("Cookie: {cookie}=7\r\nConnection: close\r\n"));
    assert!(read_answer(mine).1.to_lowercase().contains("\r\ncookie: id=7\r\n"));
    // Anyone who does not know the local secret, or comes from another page, gets nothing.
    let bare = TcpStream::connect(ada.at).unwrap();
    write!(&bare, "GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", ada.at).unwrap();
    assert_eq!(read_answer(bare).0, 403);
    let foreign = ada.open("/", "Origin: https://evil.example\r\nConnection: close\r\n");
    assert_eq!(read_answer(foreign).0, 403);
    // A friend with a copy waits, epoch after epoch, while hers goes on.
    let mut eve = town.client("eve", &[]);
    eve.process.wait_for("refusal", |line| line.contains("in use").then_some(()));
    let started = town.clock.now();
    while town.clock.since(started) < Duration::from_secs(13) {
        let (status, answer) = ada.get("/");
        assert_eq!(status, 200, "{answer}\n{}", ada.process.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(!eve.process.log().contains("connected"), "{}", eve.process.log());
    // She leaves; the friend gets in within an epoch or two.
    drop(ada);
    eve.process.wait_for_prefix("connected");
    // A browser that still has the cookie of hers, at a client that was started since,
    // in a later session: the service sees none, and the browser forgets it.
    let old = eve.open("/", &format!("Cookie: {cookie}=7\r\nConnection: close\r\n"));
    let (status, answer) = read_answer(old);
    let lower = answer.to_lowercase();
    assert!(status == 200 && !lower.contains("\r\ncookie:"), "{answer}");
    assert!(lower.contains(&format!("set-cookie: {cookie}=; path=/; max-age=0")), "{answer}");
}

/// It cannot know whom it served before.
#[test]
fn a_new_verifier_waits_for_the_next_epoch() {
    let town = Town::new("600", 1, &[]);
    let _all = town.all();
    town.subscriber("ada");
    let mut ada = town.client("ada", &[]);
    let doubt = |line: &str| line.contains("may lack tags of the epoch").then_some(());
    ada.process.wait_for("refusal", doubt);
}

#[test]
fn a_stolen_header_is_worth_nothing_once_used() {
    let town = Town::new("5", 1, &[]);
    std::fs::write(town.path("accounts"), "").unwrap();
    let _issuer = town.issuer(&["--new-state"]);
    let (_verifier, _gateway) = (town.verifier(0), town.gateway(&town.urls(), &["--plain"]));
    town.subscriber("ada");
    let wire = Wire::to(town.gateway_at.to_string());
    let at = format!("http://{}", wire.address);
    let mut ada = town.client("ada", &["--gateway", &at]);
    ada.process.wait_for_prefix("connected");
    let (status, answer) = ada.get("/secret-page");
    assert_eq!(status, 200, "{answer}");
    let heard = wire.heard();
    let request = heard.rfind("GET /secret-page").map(|start| &heard[start..]).unwrap();
    let stamp = request.lines().find_map(|line| line.strip_prefix("alpheus-pass: ")).unwrap();
    let host = wire.address;
    let steal = |path: &str, stamp: &str| {
        let thief = TcpStream::connect(town.gateway_at).unwrap();
        write!(&thief, "GET {path} HTTP/1.1\r\nHost: {host}\r\nAlpheus-Pass: {stamp}\r\nConnection: close\r\n\r\n").unwrap();
        read_answer(thief)
    };
    let (status, answer) = steal("/secret-page", stamp);
    assert!(status == 401 && answer.contains("replayed"), "{answer}");
    let (status, answer) = steal("/another-page", stamp);
    assert!(status == 401 && answer.contains("unauthentic"), "{answer}");
    let (status, answer) = steal("/", "v1.x.1.y");
    assert!(status == 400 && answer.contains("malformed"), "{answer}");
    // Everything that was heard, again on other connections: neither the login nor the
    // connection gives a thief anything that it could stamp requests with, nor is
    // the subscriber thrown out.
    let replayed = TcpStream::connect(town.gateway_at).unwrap();
    (&replayed).write_all(wire.heard.lock().unwrap().as_slice()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(ada.get("/").0, 200);
}

/// Asks the local proxy to end the session.
pub(crate) fn log_out(client: &crate::pass::town::Client) -> (u16, String) {
    let stream = TcpStream::connect(client.at).unwrap();
    let (at, secret) = (client.at, &client.secret);
    write!(
        &stream,
        "POST /.alpheus/local/logout HTTP/1.1\r\nHost: {at}\r\nAlpheus-Local: {secret}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    read_answer(stream)
}

#[test]
fn what_runs_is_cut_when_its_session_is_over() {
    let town = Town::new("6", 1, &[]);
    let _all = town.all();
    ["ada", "bob"].iter().for_each(|name| town.subscriber(name));
    let mut ada = town.connected("ada");
    let mut bob = town.connected("bob");
    let streams = ["", "Connection: upgrade\r\nUpgrade: websocket\r\n"];
    let both = |client: &crate::pass::town::Client, name: &str| {
        let [stream, socket] = ["/stream?", "/ws?"].map(|path| format!("{path}{name}"));
        (client.open(&stream, streams[0]), client.open(&socket, streams[1]))
    };
    let (mut stream, mut socket) = both(&bob, "bob");
    let (mut other, _other_socket) = both(&ada, "ada");
    // Nobody reads this one, so that all buffers on the way are full.
    let _unread = ada.open("/flood", "");
    let runs = || (open("/flood") == 1 && open("/ws?ada") == 1).then_some(());
    crate::pass::town::until("a flood and a socket", runs);
    // They live longer than an epoch, since the session is carried on.
    let mut bytes = [0; 4096];
    let started = town.clock.now();
    while town.clock.since(started) < Duration::from_secs(7) {
        assert_ne!(stream.read(&mut bytes).unwrap(), 0, "{}", bob.process.log());
    }
    let read = socket.read(&mut bytes).unwrap();
    let head = String::from_utf8_lossy(&bytes[..read]).into_owned();
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    socket.write_all(b"ping").unwrap();
    assert_eq!(socket.read(&mut bytes).unwrap(), 4);
    // Logout cuts them at once.
    assert_eq!(log_out(&bob).0, 202);
    assert!(bob.process.wait().success());
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"0\r\n\r\n"), "nobody takes it for the whole");
    let ended = socket.read(&mut bytes);
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    // A client that is frozen does not carry its session on: its streams and sockets are
    // cut when the epoch and the overlap are over, by the gateway.
    ada.process.freeze();
    crate::pass::town::until("an end", || (open("/flood") + open("/ws?ada") == 0).then_some(()));
    ada.process.thaw();
    let mut rest = Vec::new();
    other.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let _ = other.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"0\r\n\r\n"));
    // It notices, and has a session again by itself.
    crate::pass::town::until("another session", || (ada.get("/").0 == 200).then_some(()));
    ada.process.terminate();
    assert!(ada.process.wait().success());
}
