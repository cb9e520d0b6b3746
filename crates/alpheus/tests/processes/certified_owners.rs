//! An owner who makes the signing key themselves has it certified, and stays the same owner
//! with another key.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::deployment::Site;
use alpheus_encrypted_stream::certificate::CertifiedOwner;
use alpheus_streams::deployment::{DeploymentFile, from_hex};
use std::fs;

const SEED: &str = "pki/ada/owner.seed";
const CERTIFICATE: &str = "pki/ada/owner.txt";

/// The owner in a certificate's file.
fn owner(site: &Site, certificate: &str) -> CertifiedOwner {
    let read = |name: &str| fs::read_to_string(site.path(name)).unwrap();
    let file: DeploymentFile = serde_json::from_str(&read("pki/deployment.json")).unwrap();
    file.check().unwrap().owner(&from_hex(&read(certificate)).unwrap()).unwrap()
}

/// Runs a command that succeeds and writes what it prints to a file.
fn print_to(site: &Site, args: &[&str], file: &str) {
    fs::write(site.path(file), site.done(args)).unwrap();
}

/// What a command that is refused says.
fn refusal(site: &Site, args: &[&str]) -> String {
    let ran = site.run(args);
    assert!(!ran.status.success(), "{args:?}");
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

#[test]
fn an_owner_with_another_certified_key_stays_the_same_owner() {
    let site = Site::new();
    site.issue("owner", "ada");
    let first = owner(&site, CERTIFICATE);
    // A key that the owner makes on their own machine.
    fs::rename(site.path(SEED), site.path("old.seed")).unwrap();
    fs::rename(site.path(CERTIFICATE), site.path("old.txt")).unwrap();
    print_to(&site, &["owner", "request", "--identity", "pki/ada"], "request.txt");
    let certify = ["ca", "certify", "pki", "request.txt", "--name"];
    let renew = ["--renew", "old.txt"];
    print_to(&site, &[&certify[..], &["ada"], &renew].concat(), CERTIFICATE);
    let renewed = owner(&site, CERTIFICATE);
    assert_eq!(renewed.id(), first.id());
    assert_ne!(renewed.key(), first.key());
    // Asked again, the key is the same.
    print_to(&site, &["owner", "request", "--identity", "pki/ada"], "again.txt");
    let read = |name: &str| fs::read_to_string(site.path(name)).unwrap();
    assert_eq!(read("again.txt"), read("request.txt"));
    // Certified as somebody new, it is another owner.
    print_to(&site, &[&certify[..], &["ada"]].concat(), "new.txt");
    assert_ne!(owner(&site, "new.txt").id(), first.id());
    // Nobody is certified under a name that is not asked for, or on another's certificate.
    let other = refusal(&site, &[&certify[..], &["bob"]].concat());
    assert!(other.contains("the request is for the name `ada`, not for `bob`"), "{other}");
    let consumer = ["ada", "--renew", "pki/analyst/consumer.txt"];
    let wrong = refusal(&site, &[&certify[..], &consumer].concat());
    assert!(wrong.contains("for another role or name"), "{wrong}");
    let bad = refusal(&site, &[&certify[..], &["ada", "--renew", "request.txt"]].concat());
    assert!(bad.contains("not a certificate of this authority"), "{bad}");
    let bad = refusal(&site, &["ca", "certify", "pki", "key", "--name", "ada"]);
    assert!(bad.contains("`alpheus owner request`"), "{bad}");
    // The old key does not belong to the new certificate.
    fs::rename(site.path("old.seed"), site.path(SEED)).unwrap();
    let stale =
        ["owner", "streams", "--identity", "pki/ada", "--controller", "https://localhost:1"];
    let stale = refusal(&site, &stale);
    assert!(stale.contains("the certificate is for other keys"), "{stale}");
}
