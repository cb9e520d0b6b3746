//! A real nginx before a service asks the gateway about each request; and the
//! guide, command by command.

use crate::common::{Process, free_address, run_script};
use crate::pass::service::Wire;
use crate::pass::town::{Town, read_answer, read_head, until};
use alpheus_test_support::skip::has_program;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

const GUIDE: &str = include_str!("../../../../../docs/pass.md");

/// The guide's blocks of a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    let blocks = GUIDE.split(opening.as_str()).skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap()).collect()
}

/// The guide's text with other ports, which nobody uses now.
fn with_ports(text: &str, ports: &[(u16, SocketAddr)]) -> String {
    ports.iter().fold(text.to_owned(), |text, (port, at)| {
        let port = format!(":{port}");
        text.replace(&port, &format!(":{}", at.port()))
    })
}

#[test]
fn nginx_asks_about_each_request() {
    if !has_program("nginx") {
        return;
    }
    let town = Town::new("5", 1, &[]);
    std::fs::write(town.path("accounts"), "").unwrap();
    let (_issuer, _verifier) = (town.issuer(&["--new-state"]), town.verifier(0));
    let (check, listen) = (free_address(), free_address());
    let _gateway = town.gateway(&town.urls(), &["--plain", "--check", &check.to_string()]);
    let ports = [(8080, listen), (7445, town.gateway_at), (7444, check), (8000, town.upstream)];
    std::fs::write(town.path("nginx.conf"), with_ports(blocks("nginx")[0], &ports)).unwrap();
    let mut nginx = Command::new("nginx");
    let mut nginx = Process::start(nginx.arg("-p").arg(town.path("")).args(["-c", "nginx.conf"]));
    until("nginx", || TcpStream::connect(listen).ok());
    let bare = |target: &str, more: &str| {
        let stream = TcpStream::connect(listen).unwrap();
        write!(
            &stream,
            "GET {target} HTTP/1.1\r\nHost: {listen}\r\n{more}Connection: close\r\n\r\n"
        )
        .unwrap();
        read_answer(stream)
    };
    assert_eq!(bare("/song", "").0, 401, "{}", nginx.log());
    town.subscriber("ada");
    let wire = Wire::to(listen.to_string());
    let mut ada = town.client("ada", &["--gateway", &format!("http://{}", wire.address)]);
    ada.process.wait_for_prefix("connected");
    let (status, answer) = ada.get("/song?from=0");
    assert!(status == 200 && answer.contains("GET /song?from=0"), "{answer}");
    assert!(!answer.to_lowercase().contains("alpheus-pass"), "{answer}");
    // The stamp is used; and it was for the wire's name, not for nginx's own.
    let heard = wire.heard();
    let request = &heard[heard.rfind("GET /song").unwrap()..];
    let stamp = request.lines().find_map(|line| line.strip_prefix("alpheus-pass: ")).unwrap();
    assert_eq!(bare("/song?from=0", &format!("Alpheus-Pass: {stamp}\r\n")).0, 401);
    // A client says itself what it asked for: nobody listens.
    let lie = format!("Alpheus-Pass: {stamp}\r\nX-Forwarded-Uri: /song?from=0\r\n");
    assert_eq!(bare("/other", &lie).0, 401);
    // An upgrade would outlive its session.
    let upgrade = ada.open("/ws", "Upgrade: websocket\r\nConnection: upgrade\r\n");
    let (status, answer) = read_head(&upgrade);
    assert_eq!(status, 403, "{answer}");
    drop(upgrade);
    asks_like_traefik_and_envoy(check, &mut ada, &wire);
    nginx.terminate();
    nginx.wait();
}

/// The forms in which Traefik, Caddy and Envoy ask: with a stamp that nobody has
/// used, taken off the wire before it reaches nginx.
fn asks_like_traefik_and_envoy(
    check: SocketAddr,
    ada: &mut crate::pass::town::Client,
    wire: &Wire,
) {
    let host = wire.address;
    let fresh = |path: &str| {
        wire.hold(true);
        let _pending = ada.open(path, "");
        let stamp = until("a stamp", || {
            let heard = wire.heard();
            let request = &heard[heard.rfind(&format!("GET {path} "))?..];
            request.lines().find_map(|line| Some(line.strip_prefix("alpheus-pass: ")?.to_owned()))
        });
        wire.hold(false);
        stamp
    };
    let ask = |path: &str, host: &str, more: &str| {
        let stream = TcpStream::connect(check).unwrap();
        write!(&stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n")
            .unwrap();
        read_answer(stream)
    };
    let stamp = fresh("/traefik");
    let said = format!(
        "Alpheus-Pass: {stamp}\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /traefik\r\nX-Forwarded-Host: {host}\r\n"
    );
    let (status, answer) = ask("/check", "check", &said);
    assert!(status == 204 && answer.contains("alpheus-until: "), "{answer}");
    assert_eq!(ask("/check", "check", &said).0, 401);
    // Said twice, in two ways: nobody knows which one counts.
    let twice = format!("{said}X-Original-Method: GET\r\n");
    assert_eq!(ask("/check", "check", &twice).0, 400);
    // They take `Upgrade` off before they ask: a WebSocket shows by its own headers.
    let stamp = fresh("/socket");
    let said = format!(
        "Alpheus-Pass: {stamp}\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /socket\r\nX-Forwarded-Host: {host}\r\nSec-WebSocket-Key: AAAA\r\n"
    );
    assert_eq!(ask("/check", "check", &said).0, 403);
    let stamp = fresh("/envoy?a=b");
    let said = format!("Alpheus-Pass: {stamp}\r\n");
    assert_eq!(ask("/path/envoy?a=b", &host.to_string(), &said).0, 204);
}

#[test]
fn the_guide_works_as_it_is_written() {
    if !has_program("curl") || !has_program("python3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let numbers = [8000, 7501, 7502, 7443, 7600, 8080, 7445, 7444];
    let ports: Vec<(u16, SocketAddr)> = numbers.map(|port| (port, free_address())).into();
    let nginx = has_program("nginx");
    let mut parts = blocks("sh");
    assert_eq!(parts.len(), 4, "keys, processes, subscriber, nginx");
    if !nginx {
        parts.pop();
    }
    std::fs::write(folder.path().join("nginx.conf"), with_ports(blocks("nginx")[0], &ports))
        .unwrap();
    // Shorter epochs, so that the test need not wait; and the port of Python's server.
    let script = with_ports(&parts.concat(), &ports).replace("--epoch 15", "--epoch 3");
    let script = script.replace(" 8000 ", &format!(" {} ", ports[0].1.port()));
    let (said, log) = run_script(folder.path(), &script);
    assert!(said.contains("this service needs a pass"), "{said}");
    assert_eq!(said.matches("la la la").count(), parts.len() - 2, "{said}\n{log}");
    assert!(said.matches("fetched").count() == 2, "{said}");
}
