//! `alpheus demo --check` does all that the demo promises, and says so.

use crate::common::alpheus;

#[test]
fn all_of_the_demo_happens() {
    let ran = alpheus(["demo", "--check", "--owners", "24"]).output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    let failed = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{said}\n{failed}");
    let steps = [
        "[1] What the service sees",
        " bytes  …",
        "revealed in each window",
        "[2] An allowed query, live",
        " bpm ",
        "[3] A forbidden query, refused",
        "only in buckets of width 5.0",
        "The nearest query that would be allowed:",
        "[4] An owner changes the policy",
        "Left out: 1 stream in 2 windows, because the owner's policy does not allow it",
        "+ you changed your policy; version 2 is in force",
        "[5] A controller is killed",
        "because its controller takes no part in this window",
        "[6] A service that cheats, caught",
        "WITH (integrity = 'verified', alpha = '1/3');",
        "as published  mean speed  ",
        "holds: signed by 22 controllers, any of which could have changed it",
        "changed       mean speed  ",
        "REFUSED: the row differs from what the controllers have signed",
        "forged        mean speed  ",
        "REFUSED: the share of controller ",
        " is not signed by it",
        "[7] The results compared with the plaintext",
        "9 of 9 windows equal the plaintext to the last digit",
        "Every step succeeded",
    ];
    let mut rest = said.as_str();
    for step in steps {
        let at =
            rest.find(step).unwrap_or_else(|| panic!("{step:?} is missing or late in:\n{said}"));
        rest = &rest[at..];
    }
    // What is changed is another number, and the forgery has the same one.
    let numbers = said.split("mean speed").skip(1).map(|after| after.split_whitespace().next());
    let [published, changed, forged] = <[_; 3]>::try_from(numbers.collect::<Vec<_>>()).unwrap();
    assert!(published != changed && changed == forged, "{said}");
}

#[test]
fn a_recording_that_is_too_short_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("short.csv");
    std::fs::write(&file, "activity_id,timestamp,heart_rate,altitude_m,speed_mps\na,100,90,1,1\n")
        .unwrap();
    let ran = alpheus(["demo", "--check", "--input", file.to_str().unwrap()]).output().unwrap();
    let failed = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(4), "{failed}");
    assert!(failed.contains("the recording is too short"), "{failed}");
}
