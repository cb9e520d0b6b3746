//! What people without a pass may do at a gateway: little, and not for long.

use crate::pass::town::{Town, read_answer};
use alpheus_test_support::skip::{has_program, skip};
use data_encoding::BASE64URL;
use serde_json::Value;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
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

/// A request without a pass receives a challenge in the terms of Privacy Pass, and the issuer's directory
/// says the same.
#[test]
fn strangers_are_asked_for_a_token_of_privacy_pass() {
    if !has_program("curl") {
        return skip("curl is missing");
    }
    let town = Town::new("600", 1, &[]);
    std::fs::write(town.path("accounts"), "").unwrap();
    let _issuer = town.issuer(&["--new-state"]);
    let _gateway = town.gateway(&town.urls(), &["--plain"]);
    let asked = || {
        let mut stream = connect(town.gateway_at);
        write!(stream, "GET /song HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let (status, answer) = read_answer(stream);
        assert_eq!(status, 401);
        let line =
            answer.lines().find_map(|line| line.strip_prefix("www-authenticate: PrivateToken "));
        line.unwrap().to_owned()
    };
    let said = asked();
    assert_eq!(asked(), said, "everybody is asked for the same");
    let of = |name: &str| {
        let rest = said.split_once(&format!("{name}=\"")).unwrap().1;
        rest.split_once('"').unwrap().0.to_owned()
    };
    let bytes = BASE64URL.decode(of("challenge").as_bytes()).unwrap();
    // struct { uint16 type; opaque issuer<1..>; opaque context<0..32>; opaque origin<0..> }
    let (issuer, gateway) = (town.issuer_at.to_string(), town.gateway_at.to_string());
    let issuer =
        [&u16::try_from(issuer.len()).unwrap().to_be_bytes()[..], issuer.as_bytes()].concat();
    let gateway =
        [&u16::try_from(gateway.len()).unwrap().to_be_bytes()[..], gateway.as_bytes()].concat();
    assert!(bytes.starts_with(&[&[0xa1, 0xfe][..], &issuer, &[32]].concat()));
    assert!(bytes.ends_with(&gateway));
    assert_eq!(bytes.len(), 2 + issuer.len() + 1 + 32 + gateway.len());
    let url = format!("https://{}/.well-known/private-token-issuer-directory", town.issuer_at);
    let mut curl = Command::new("curl");
    let args = ["-sf", "--cacert", "pki/ca.pem", "-w", "%{content_type}", &url];
    let output = curl.current_dir(town.path("")).args(args).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.ends_with("application/private-token-issuer-directory"), "{said}");
    let (directory, _) = said.rsplit_once('}').unwrap();
    let directory: Value = serde_json::from_str(&format!("{directory}}}")).unwrap();
    assert_eq!(directory["issuer-request-uri"], "/v1/pass");
    let key = &directory["token-keys"][0];
    assert_eq!(
        (key["token-type"].as_u64(), key["token-key"].as_str()),
        (Some(0xa1fe), Some(of("token-key").as_str()))
    );
}
