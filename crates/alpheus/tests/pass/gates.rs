//! Login codes at gates: once, here, now.

use crate::town::{Town, key, pass};

#[test]
fn a_code_opens_one_gate_once() {
    let town = Town::new("4", 2, &["--ahead", "3"]);
    std::fs::write(town.path("accounts"), "").unwrap();
    let _issuer = town.issuer(&["--first"]);
    let _verifiers = [town.verifier(0), town.verifier(1)];
    ["ada", "bob"].iter().for_each(|name| town.subscriber(name));
    let urls = town.urls();
    let code = |name: &str, more: &[&str]| {
        let file = ["pass", "client", "code", "--pass", &pass(name), "--key-file", &key(name)];
        town.run(&[&file[..], more].concat())
    };
    let scan = |code: &str, more: &[&str]| {
        let gate = ["pass", "scan", "--identity", "pki/gateway", "--card", "deployment/card.json"];
        let output = town.run(&[&gate[..], &["--verifiers", &urls, code], more].concat());
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    // New shards wait out the epochs of codes that they may have forgotten.
    let shown = crate::town::until("a code that is taken", || {
        let shown = String::from_utf8(code("ada", &[]).stdout).unwrap();
        (scan(&shown, &[]).0 == Some(0)).then_some(shown)
    });
    let (status, said) = scan(&shown, &[]);
    assert!(status == Some(3) && said.contains("used already"), "{said}");
    // Bound to a gate's nonce, and drawn. Another nonce does not do.
    let nonce = "00112233445566778899aabbccddeeff";
    crate::town::until("a code for a nonce", || {
        let shown = String::from_utf8(code("bob", &["--nonce", nonce]).stdout).unwrap();
        let other = scan(&shown, &["--nonce", &nonce.replace('0', "1")]);
        let drawn = String::from_utf8(code("bob", &["--qr"]).stdout).unwrap();
        let opens = !shown.is_empty() && scan(&shown, &["--nonce", nonce]).0 == Some(0);
        opens.then(|| {
            assert!(other.0 == Some(3), "{}", other.1);
            assert!(drawn.lines().count() > 40 && drawn.contains('█'), "{drawn}");
        })
    });
    assert!(scan("NONSENSE", &[]).1.contains("no login code"));
    let args = ["--offline", "--deployment", "deployment", "--state", "run/gate", "--gates", "3"];
    let output = town.run(&[&["pass", "scan", &shown][..], &args].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("opens each of 3 gates once, so at most 3 people"), "{said}");
    assert_eq!(output.status.code(), Some(3), "new, so it waits out what it may have forgotten");
}
