//! A smoother that is absent when the day's key is made: the others make it without, and it takes
//! part in everything else once it is there.

use crate::common::{road, run_script};
use crate::stats::clients::{FREEZE, GIVE, SLOW};
use crate::stats::guide::deployment;
use std::fs;

/// The first smoother comes once an aggregate is defined; then the last one hangs, so that no
/// quorum is without the one that has no share, and what is decrypted the other two decrypt.
const LATE: &str = "
alpheus stats define road.yaml --card roads/card.json --key roads/definer.key
ABSENT
kill -STOP $frozen
";

/// Who was waited for while the key was made.
const NAMED: &str = "grep 'making a key' terminal-4.log\n";

#[test]
fn a_key_is_made_without_a_smoother_that_comes_later() {
    let folder = tempfile::tempdir().unwrap();
    let plan = road(SLOW);
    fs::write(folder.path().join("road.yaml"), plan).unwrap();
    let hurried = "alpheus stats smoother --message-timeout-seconds 3 --attempt-timeout-seconds 15";
    let script = deployment().replace("alpheus stats smoother", hurried);
    let (absent, others): (Vec<&str>, Vec<&str>) =
        script.lines().partition(|line| line.contains("terminal-3.log"));
    assert!(absent.len() == 2 && absent[0].contains("run/smoother-1"), "{script}");
    let late = LATE.replace("ABSENT", &absent.join("\n"));
    let script = [&others.join("\n"), FREEZE, &late, GIVE, NAMED].concat();
    let (said, log) = run_script(folder.path(), &script);
    // It was waited for, and named.
    assert!(said.contains("smoother=1") && said.contains("making a key"), "{said}\n{log}");
    let result = said.lines().rev().find(|line| line.starts_with("speed/road,")).unwrap();
    assert!(result.contains(",8,481.7,") && result.ends_with(",result"), "{said}\n{log}");
}
