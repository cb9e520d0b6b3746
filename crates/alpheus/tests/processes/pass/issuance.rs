//! One pass for each account and period, whatever happens in between.

use crate::common::{begin_fence, write_secret};
use crate::pass::town::{Town, key, pass};

/// Exit code, and what it said.
pub(super) fn fetch(town: &Town, name: &str) -> (Option<i32>, String) {
    let file = ["--pass", &pass(name), "--key-file", &key(name)];
    let output = town.run(&[&["pass", "client", "fetch"], &file[..]].concat());
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// An issuer that does not start.
fn issue(town: &Town, more: &[&str]) -> (Option<i32>, String) {
    let at = town.issuer_at.to_string();
    let issuer = ["pass", "issuer", "--identity", "pki/issuer", "--deployment", "deployment"];
    let rest = ["--accounts", "accounts", "--state", "run/issuer", "--api", &at];
    let output = town.run(&[&issuer[..], &rest, more].concat());
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Killed between its first commit and the fence that shows it, it has issued nothing. Without any
/// fence its state may be a copy from before the first pass.
#[test]
fn an_issuer_that_is_killed_at_its_first_start_starts_again() {
    let town = Town::new("60", 1, &[]);
    std::fs::write(town.path("accounts"), "").unwrap();
    let fence = town.path("run/issuer.fence");
    town.issuer(&["--new-state"]).kill();
    std::fs::remove_file(&fence).unwrap();
    for declared in [&[][..], &["--new-state"]] {
        let (code, said) = issue(&town, declared);
        assert_eq!(code, Some(4), "without a fence: {said}");
    }
    begin_fence(&fence);
    assert_eq!(issue(&town, &[]).0, Some(4), "nobody says that it is the first time");
    town.issuer(&["--new-state"]);
}

#[test]
fn an_account_gets_one_pass_and_an_issuer_does_not_forget() {
    let town = Town::new("60", 1, &[]);
    std::fs::write(town.path("accounts"), "").unwrap();
    let fence = town.path("run/issuer.fence");
    let mut issuer = town.issuer(&["--new-state"]);
    let fetch = |name: &str| fetch(&town, name);
    town.join("ada", "ada");
    // A secret that is not the account's.
    write_secret(&town.path("eve.secret"), "guessed");
    town.join("eve", "eve");
    let (code, said) = fetch("eve");
    assert!(code == Some(3) && said.contains("no such account, or a wrong secret"), "{said}");
    let (code, said) = fetch("ada");
    assert!(code == Some(0) && said.matches("fetched").count() == 2, "{said}");
    assert!(fetch("ada").1.matches("already there").count() == 2);
    // A second file of the same account asks for a second pass.
    town.join("again", "ada");
    let (code, said) = fetch("again");
    assert!(code == Some(3) && said.contains("already-issued"), "{said}");
    // Killed and started again it still knows; --new-state is then refused, without the
    // fence too.
    issuer.kill();
    let first = ["--new-state"];
    let issue = |more: &[&str]| issue(&town, more);
    assert_eq!(issue(&first).0, Some(4));
    let kept = std::fs::read(&fence).unwrap();
    std::fs::remove_file(&fence).unwrap();
    assert_eq!(issue(&first).0, Some(4));
    std::fs::write(&fence, kept).unwrap();
    let mut issuer = town.issuer(&[]);
    assert!(fetch("again").1.contains("already-issued"));
    // Without its state it does not start by itself, and gives nothing for periods
    // that somebody may have a pass of.
    issuer.terminate();
    issuer.wait();
    std::fs::remove_dir_all(town.path("run/issuer")).unwrap();
    let (code, said) = issue(&[]);
    assert!(code == Some(4) && said.contains("--restored-state"), "{said}");
    let _issuer = town.issuer(&["--restored-state"]);
    assert!(fetch("again").1.contains("may-have-forgotten"));
}

#[test]
fn a_command_may_know_the_accounts() {
    let town = Town::new("60", 1, &[]);
    let at = town.issuer_at.to_string();
    let hook = "read name; read secret; test \"$name $secret\" = 'ada open sesame' && echo 17";
    let args = ["pass", "issuer", "--identity", "pki/issuer", "--deployment", "deployment"];
    let rest = ["--accounts-command", hook, "--state", "run/issuer", "--api", &at, "--new-state"];
    let mut process =
        crate::common::Process::start(&mut town.command(&[&args[..], &rest].concat()));
    process.wait_for_prefix("serving at ");
    write_secret(&town.path("ada.secret"), "open sesame\n");
    town.subscriber("ada");
}
