//! The paper's three applications, as they stand in `examples`.

use crate::common::{bash, ended_well, free_address, in_some_attempt};
use alpheus_test_support::skip::has_program;
use std::path::Path;
use std::process::Command;

/// Runs an example's script; what it said.
fn run(example: &str) -> Option<String> {
    script(example).map(|mut script| ended_well(&mut script).0)
}

/// An example's script, with ports that nobody uses now.
fn script(example: &str) -> Option<Command> {
    if !["bash", "curl", "python3"].into_iter().all(has_program) {
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut script = bash(&root);
    script.arg(root.join(example).join("run.sh")).env("EPOCH", "3").env("PAUSE", "0.7");
    for port in ["ISSUER", "VERIFIER", "GATEWAY", "SERVICE", "LOCAL", "SITE"] {
        script.env(port, free_address().port().to_string());
    }
    Some(script)
}

#[test]
fn a_song_plays_over_epochs_and_a_copy_of_the_pass_hears_nothing() {
    let Some(said) = run("pass-music") else { return };
    assert_eq!(said.matches("20000 bytes").count(), 8, "{said}");
    assert!(said.contains("a copy of the pass: in use"), "{said}");
}

#[test]
fn a_page_is_read_through_the_content_proxy() {
    let Some(said) = run("pass-content-proxy") else { return };
    for line in ["<h1>The news</h1>", "without a pass: 401", "another site: 403"] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn a_turnstile_opens_once() {
    // On a loaded machine the code may expire before the copy is shown, or its epoch last too long.
    in_some_attempt("a copy of a code that is still valid", || {
        let Some(mut script) = script("pass-transit") else { return Some(()) };
        let output = script.output().unwrap();
        let [said, log] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        if log.contains("presented as often as this epoch allows") {
            return None;
        }
        assert!(output.status.success(), "{said}\n{log}");
        assert!(said.starts_with("open\n") && said.contains('█'), "{said}");
        assert!(said.matches("open\n").count() == 1, "{said}");
        said.contains("a copy: the code was used already").then_some(())
    });
}
