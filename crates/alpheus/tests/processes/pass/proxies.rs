//! A client behind a SOCKS proxy: every connection goes through it, under a name for each purpose,
//! and names of servers are looked up by it alone.

use crate::pass::town::{Town, key, pass, until};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Names under which clients came, and the servers that they asked for.
type Seen = Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>;

/// A proxy (RFC 1928, RFC 1929) for which all names are this machine.
struct Socks {
    address: SocketAddr,
    seen: Seen,
}

impl Socks {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), Seen::default());
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&shared);
                std::thread::spawn(move || serve(near, &seen));
            }
        });
        Self { address, seen }
    }

    fn seen(&self) -> BTreeMap<String, BTreeSet<String>> {
        self.seen.lock().unwrap().clone()
    }
}

fn take(stream: &mut TcpStream, bytes: usize) -> Option<Vec<u8>> {
    let mut taken = vec![0; bytes];
    stream.read_exact(&mut taken).ok().map(|()| taken)
}

/// A byte, and as many as it says.
fn text(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let length = take(stream, 1)?[0];
    take(stream, length.into())
}

fn serve(mut near: TcpStream, seen: &Seen) -> Option<()> {
    assert_eq!(take(&mut near, 1)?, [5]);
    assert!(text(&mut near)?.contains(&2), "it has no name");
    near.write_all(&[5, 2]).ok()?;
    assert_eq!(take(&mut near, 1)?, [1]);
    let (name, _) = (text(&mut near)?, text(&mut near)?);
    near.write_all(&[1, 0]).ok()?;
    // To connect, to a name.
    assert_eq!(take(&mut near, 4)?, [5, 1, 0, 3]);
    let host = String::from_utf8(text(&mut near)?).unwrap();
    let port = take(&mut near, 2)?;
    let port = u16::from_be_bytes([port[0], port[1]]);
    let name = String::from_utf8(name).unwrap();
    seen.lock().unwrap().entry(name).or_default().insert(host);
    let far = TcpStream::connect(("127.0.0.1", port)).ok()?;
    near.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).ok()?;
    let (mut from, mut to) = (near.try_clone().ok()?, far.try_clone().ok()?);
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    let (mut from, mut to) = (far, near);
    std::io::copy(&mut from, &mut to).ok().map(drop)
}

/// A town whose issuer and gateway have names that only the proxy can look up.
fn town() -> Town {
    let town = Town::new("3", 1, &[]);
    fs::remove_dir_all(town.path("deployment")).unwrap();
    for role in ["issuer", "gateway"] {
        fs::remove_dir_all(town.path(&format!("pki/{role}"))).unwrap();
        let host = format!("{role}.test");
        town.done(&["ca", "issue", "pki", "--role", role, "--name", role, "--host", &host]);
    }
    let issuer = format!("https://issuer.test:{}", town.issuer_at.port());
    let gateway = format!("https://gateway.test:{}", town.gateway_at.port());
    let init = ["pass", "init", "deployment", "--issuer", &issuer, "--gateway", &gateway];
    town.done(&[&init[..], &["--authority", "pki/ca.pem", "--epoch", "3"]].concat());
    town
}

#[test]
fn a_client_connects_through_its_proxy_alone() {
    let town = town();
    let _service = town.all();
    let socks = Socks::start();
    let proxy = format!("socks5h://{}", socks.address);
    town.join("ada", "ada");
    let fetch = ["pass", "client", "fetch", "--pass", &pass("ada"), "--key-file", &key("ada")];
    assert!(!town.run(&fetch).status.success(), "it looked the name up itself");
    assert!(socks.seen().is_empty());
    town.done(&[&fetch[..], &["--proxy", &proxy]].concat());
    let mut ada = town.client("ada", &["--no-fetch", "--proxy", &proxy, "--epochs", "2"]);
    ada.process.wait_for_prefix("connected");
    assert_eq!(ada.get("/song").0, 200);
    // A second session begins.
    let sessions = || socks.seen().into_values().filter(|to| to.contains("gateway.test")).count();
    until("second session", || (sessions() >= 2).then_some(()));
    let seen = socks.seen();
    let hosts: BTreeSet<&String> = seen.values().flatten().collect();
    assert_eq!(hosts.into_iter().collect::<Vec<_>>(), ["gateway.test", "issuer.test"]);
    // A name is for one server, and each session has its own.
    assert!(seen.iter().all(|(name, hosts)| name.len() == 32 && hosts.len() == 1), "{seen:?}");
}

#[test]
fn a_proxy_that_would_show_names_is_refused() {
    let town = Town::new("60", 1, &[]);
    let said = town.run(&["pass", "card", "deployment/card.json", "--proxy", "socks5://a:1"]);
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&said.stderr).contains("socks5h://"), "{said:?}");
}
