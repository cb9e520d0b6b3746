//! A machine whose clock is wrong when it starts: processes wait, or refuse to start, and change nothing.

use crate::common::Process;
use crate::common::clock::{faketime, set_clock};
use crate::common::deployment::{Site, free};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A service under the clock in the file `service.clock`.
fn service(place: &Site, library: &Path, api: &str) -> Command {
    let who = ["server", "--identity", "pki/service", "--schema", "schema.yaml"];
    let mut command =
        place.command(&[&who[..], &["--state", "run/service", "--api", api]].concat());
    set_clock(&mut command, library, &place.path("service.clock"));
    command
}

#[test]
fn a_process_waits_for_a_clock_that_starts_in_1970_and_refuses_one_that_is_years_ahead() {
    let Some(library) = faketime() else { return };
    let (place, api) = (Site::new(), free());
    fs::write(place.path("service.clock"), "@1970-01-02 00:00:00").unwrap();
    let mut waiting = Process::start(&mut service(&place, &library, &api));
    waiting.wait_for("complaint", |line| {
        (line.contains("the machine's clock shows 1970-01-0") && line.contains("waits"))
            .then_some(())
    });
    assert!(!place.path("run/service").exists(), "it has touched its state");
    fs::write(place.path("service.clock"), "+0").unwrap();
    waiting.wait_for_prefix("serving at ");
    waiting.terminate();
    assert!(waiting.wait().success());

    // Years ahead everything in the state would be old.
    fs::write(place.path("service.clock"), "+2000d").unwrap();
    let state = || {
        Command::new("sh")
            .args(["-c", "cd run/service && find . -type f -exec cksum {} +"])
            .current_dir(place.path(""))
            .output()
            .unwrap()
            .stdout
    };
    let before = state();
    let refused = service(&place, &library, &api).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(5) && said.contains("ended at"), "{said}");
    assert!(said.contains("alpheus errors clock-wrong"), "{said}");
    assert_eq!(state(), before, "it has touched its state");
}
