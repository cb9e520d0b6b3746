//! Login codes at gates: once, here, now.

use crate::pass::town::{Town, key, pass};
use std::time::Duration;

/// What is shown; nothing if the client has none.
fn code(town: &Town, name: &str, more: &[&str]) -> String {
    let file = ["pass", "client", "code", "--pass", &pass(name), "--key-file", &key(name)];
    String::from_utf8(town.run(&[&file[..], more].concat()).stdout).unwrap()
}

/// The exit code, and what is said.
fn scan(town: &Town, more: &[&str]) -> (Option<i32>, String) {
    let gate = ["pass", "scan", "--identity", "pki/gateway", "--card", "deployment/card.json"];
    let output = town.run(&[&gate[..], more].concat());
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// Tries it in one epoch after the other until it is done.
fn within_an_epoch<T>(town: &Town, what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    crate::pass::town::until(what, || {
        let same_epoch = town.clock.hold();
        let done = attempt();
        drop(same_epoch);
        if done.is_none() {
            town.clock.skip(Duration::from_secs(1));
        }
        done
    })
}

#[test]
fn a_code_opens_one_gate_once() {
    let town = Town::new("4", 2, &["--ahead", "3"]);
    std::fs::write(town.path("accounts"), "").unwrap();
    let _issuer = town.issuer(&["--new-state"]);
    let _verifiers = [town.verifier(0), town.verifier(1)];
    ["ada", "bob"].iter().for_each(|name| town.subscriber(name));
    let urls = town.urls();
    let code = |name: &str, more: &[&str]| code(&town, name, more);
    let scan =
        |code: &str, more: &[&str]| scan(&town, &[&["--verifiers", &urls, code], more].concat());
    // New shards wait out the epochs of codes that they may have forgotten.
    let (shown, (status, said)) = within_an_epoch(&town, "a code that is taken", || {
        let shown = code("ada", &[]);
        (scan(&shown, &[]).0 == Some(0)).then(|| (shown.clone(), scan(&shown, &[])))
    });
    assert!(status == Some(3) && said.contains("used already"), "{said}");
    // Bound to a gate's nonce, and drawn. Another nonce does not do.
    let nonce = "00112233445566778899aabbccddeeff";
    within_an_epoch(&town, "a code for a nonce", || {
        let shown = code("bob", &["--nonce", nonce]);
        let other = scan(&shown, &["--nonce", &nonce.replace('0', "1")]);
        let drawn = code("bob", &["--qr"]);
        let opens = !shown.is_empty() && scan(&shown, &["--nonce", nonce]).0 == Some(0);
        opens.then(|| {
            assert!(other.0 == Some(3), "{}", other.1);
            assert!(drawn.lines().count() > 40 && drawn.contains('█'), "{drawn}");
        })
    });
    assert!(scan("NONSENSE", &[]).1.contains("not a login code"));
    let args = ["--offline", "--deployment", "deployment", "--state", "run/gate", "--gates", "3"];
    let output = town.run(&[&["pass", "scan", &shown][..], &args].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("opens each of 3 gates once, so at most 3 people"), "{said}");
    assert_eq!(output.status.code(), Some(3), "new, so it waits out what it may have forgotten");
}

/// Another scan of the code would be kept out by what the first one holds.
#[test]
fn a_shard_that_hangs_for_a_moment_costs_no_code() {
    let town = Town::new("8", 2, &["--ahead", "1"]);
    std::fs::write(town.path("accounts"), "").unwrap();
    let _issuer = town.issuer(&["--new-state"]);
    let (_home, other) = (town.verifier(0), town.verifier(1));
    let names = ["ada", "bob", "cy", "dee", "eve", "fay", "gus"];
    names.iter().for_each(|name| town.subscriber(name));
    let urls = town.urls();
    let scan = |code: &str| scan(&town, &["--verifiers", &urls, code]);
    // Its first epoch begins: there is time until the next.
    crate::pass::town::until("a code that is taken", || {
        (scan(&code(&town, "ada", &[])).0 == Some(0)).then_some(())
    });
    // The other shard may have started an epoch later.
    town.clock.skip(Duration::from_secs(8));
    let _same_epoch = town.clock.hold();
    let codes: Vec<String> = names[1..].iter().map(|name| code(&town, name, &[])).collect();
    other.freeze();
    std::thread::scope(|scope| {
        let scans: Vec<_> = codes.iter().map(|code| scope.spawn(|| scan(code))).collect();
        std::thread::sleep(Duration::from_millis(2_500));
        other.thaw();
        let scanned: Vec<_> = scans.into_iter().map(|scan| scan.join().unwrap()).collect();
        for (status, said) in scanned {
            assert_eq!(status, Some(0), "{said}");
        }
    });
}
