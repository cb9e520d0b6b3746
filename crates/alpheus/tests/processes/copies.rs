//! Copies of a state that run beside it, and states of others: one process runs, the other is refused.

use crate::common::copy_folder;
use crate::common::deployment::{HOUSES, Site, free};

/// Starts the first house's host with this identity, state and fence, which must be refused; what it says.
fn refused(place: &Site, (identity, state, fence): (&str, &str, &str)) -> String {
    let who = ["controller", "run", "--identity", identity, "--state", state, "--fence", fence];
    let (api, nowhere) = (free(), format!("https://{}", free()));
    let what = ["--key-file", "key", "--schema", "schema.yaml", "--server", &nowhere];
    let output = place.run(&[&who[..], &what, &["--api", &api]].concat());
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_copy_of_a_host_that_goes_by_the_same_fence_is_refused() {
    let place = Site::new();
    let own = free();
    let host = || place.controller(HOUSES[0], &own, &format!("https://{}", free()));
    let mut running = host();
    // Two starts in one folder.
    let state = ("pki/host-a", "run/host-a", "run/host-a.fence");
    let said = refused(&place, state);
    assert!(said.contains("alpheus errors state-in-use"), "{said}");
    // A copy of the state, as on another machine that shares the fence's folder.
    copy_folder(&place.path("run/host-a"), &place.path("run/copy"));
    let copy = ("pki/host-a", "run/copy", "run/host-a.fence");
    let said = refused(&place, copy);
    assert!(said.contains("another process uses the fence file"), "{said}");
    assert!(said.contains("alpheus errors state-in-use"), "{said}");
    assert!(!running.has_ended());
    // Nothing is left behind by one that was killed.
    running.kill();
    drop(host());
}

#[test]
fn a_state_of_another_host_is_refused() {
    let place = Site::new();
    let own = free();
    drop(place.controller(HOUSES[0], &own, &format!("https://{}", free())));
    let said = refused(&place, ("pki/host-b", "run/host-a", "run/host-a.fence"));
    assert!(said.contains("is the state of alpheus://controller/host-a"), "{said}");
    assert!(said.contains("alpheus errors state-of-other"), "{said}");
}
