//! What people without a pass may do at a gateway: little, and not for long.

use crate::pass::town::{Town, read_answer};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

fn post(at: SocketAddr, what: &str, length: usize, body: &[u8]) -> (u16, String) {
    let mut stream = connect(at);
    let head = format!("POST /.alpheus/pass/{what} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Length: {length}\r\n\r\n").unwrap();
    stream.write_all(body).unwrap();
    read_answer(stream)
}

#[test]
fn strangers_cost_little_and_hold_nothing() {
    let town = Town::new("600", 1, &[]);
    // There is no verifier: what asks it fails as such.
    let _gateway = town.gateway(&town.urls(), &["--plain"]);
    let at = town.gateway_at;
    let (status, answer) = post(at, "connect", 160, &[7; 160]);
    assert!(status == 401 && answer.contains("challenge"), "{answer}");
    assert_eq!(post(at, "login", 5000, b"").0, 413);
    let mut logout = vec![0; 96];
    logout[95] = 1;
    let (status, answer) = post(at, "logout", 96, &logout);
    assert!(status == 503 && answer.contains("unreachable"), "no verifier: {answer}");
    // A head that is longer than any of ours is not kept.
    let mut long = connect(at);
    // Sent at once: the gateway hangs up as soon as it has seen enough.
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Long: {}\r\n\r\n", "x".repeat(200_000));
    long.write_all(head.as_bytes()).unwrap();
    assert_eq!(read_answer(long).0, 431);
    let mut tunnel = connect(at);
    write!(tunnel, "CONNECT a:443 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(read_answer(tunnel).0, 401);
}
