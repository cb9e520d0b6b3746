//! The options that every command has, as a process: what is wrong with them is
//! said with its place and the exit code of whose fault it is.

use crate::common::{Process, alpheus};
use std::process::Command;

/// Runs it to its end: exit code and what it said.
fn run(command: &mut Command) -> (Option<i32>, String) {
    let mut process = Process::start(command);
    let code = process.wait().code();
    (code, process.log())
}

#[test]
fn settings_are_refused_with_their_place() {
    let quiet = ["completions", "bash"];
    assert_eq!(run(&mut alpheus(quiet)).0, Some(0));

    let (code, said) = run(alpheus(quiet).env("ALPHEUS_DRAIN_SECONDS", "soon"));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("error: variable ALPHEUS_DRAIN_SECONDS: drain-seconds"), "{said}");
    // Others may set variables of that prefix too.
    let (code, said) = run(alpheus(quiet).env("ALPHEUS_DRAIN_SECOND", "5"));
    assert_eq!(code, Some(0), "{said}");
    let warning = "warning: variable ALPHEUS_DRAIN_SECOND: unknown setting";
    assert_eq!(said.matches(warning).count(), 1, "{said}");

    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("alpheus.toml");
    std::fs::write(&config, "log = 'info'\n[tls]\nkee = 'x'\n").unwrap();
    let (code, said) = run(alpheus(quiet).arg("--config").arg(&config));
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("alpheus.toml:3: unknown setting"), "{said}");

    let (code, said) = run(alpheus(quiet).args(["--log", "loud,"]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("a log filter is"), "{said}");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let line = format!(
        "{} completions bash | true; echo ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_alpheus")
    );
    for _ in 0..5 {
        let (_, said) = run(Command::new("bash").args(["-c", &line]));
        assert_eq!(said.trim(), "0");
    }
    let (code, said) = run(Command::new("bash")
        .args(["-c", &format!("{} completions bash > /dev/full", env!("CARGO_BIN_EXE_alpheus"))]));
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("error: No space left"), "{said}");
}

#[test]
fn the_address_where_it_listens_is_printed() {
    let (code, said) = run(&mut alpheus(["completions", "bash", "--listen", "127.0.0.1:0"]));
    assert_eq!(code, Some(0), "{said}");
    let port =
        said.lines().find_map(|line| line.strip_prefix("/healthz and /metrics at 127.0.0.1:"));
    assert!(port.is_some_and(|port| port.parse::<u16>().unwrap() > 0), "{port:?}");
}

#[test]
fn an_address_in_use_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = run(&mut alpheus(["completions", "bash", "--listen", &address]));
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains(&format!("error: {address}: cannot listen at this address")), "{said}");
    assert!(said.contains("help: choose another address"), "{said}");
}
