//! A client behind a SOCKS proxy: every connection goes through it, under a name for each purpose,
//! and names of servers are looked up by it alone.

use crate::common::socks::Socks;
use crate::pass::town::{Town, key, pass, until};
use std::collections::BTreeSet;
use std::fs;

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
    let gateway = format!("gateway.test:{}", town.gateway_at.port());
    let issuer = format!("issuer.test:{}", town.issuer_at.port());
    let sessions = || socks.seen().into_values().filter(|to| to.contains(&gateway)).count();
    until("second session", || (sessions() >= 2).then_some(()));
    let seen = socks.seen();
    let servers: BTreeSet<&String> = seen.values().flatten().collect();
    assert_eq!(servers.into_iter().collect::<Vec<_>>(), [&gateway, &issuer]);
    // A name is for one server, and each session has its own.
    assert!(seen.iter().all(|(name, to)| name.len() == 32 && to.len() == 1), "{seen:?}");
}

#[test]
fn the_doctor_connects_through_its_proxy_alone() {
    let town = town();
    let _service = town.all();
    let socks = Socks::start();
    let proxy = format!("socks5h://{}", socks.address);
    town.done(&["doctor", "--card", "deployment/card.json", "--proxy", &proxy]);
    let seen = socks.seen();
    let asked: BTreeSet<&str> =
        seen.values().flatten().filter_map(|to| to.split(':').next()).collect();
    assert_eq!(asked.into_iter().collect::<Vec<_>>(), ["gateway.test", "issuer.test"]);
    assert_eq!(seen.len(), 2, "each has a name of its own: {seen:?}");
}

#[test]
fn a_proxy_that_would_show_names_is_refused() {
    let town = Town::new("60", 1, &[]);
    let said = town.run(&["pass", "card", "deployment/card.json", "--proxy", "socks5://a:1"]);
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&said.stderr).contains("socks5h://"), "{said:?}");
}
