//! docs/tables.md works as it is written, on a port that is free.

use crate::common::{Process, free_address, path};
use std::path::Path;
use std::process::Command;

#[test]
fn the_guide_runs_as_it_is_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs/tables.md")).unwrap();
    let text = text.replace("7601", &free_address().port().to_string());
    let blocks: Vec<&str> =
        text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 11, "all of the guide's commands");
    let script = format!("{}\necho the guide ends; kill $!\n", blocks.join("\n"));
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("bash");
    command.args(["-e", "-c", &script]).current_dir(folder.path()).env("PATH", path());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut guide = Process::start(&mut command);
    guide.wait_for("the end", |line| (line == "the guide ends").then_some(()));
    let said = guide.log();
    guide.hang_up();
    for expected in [
        "2 blocks with",
        "4016 rows wait here",
        "slope_trucks_cars",
        "2013-05-01,north,24,",
        "noise_margin_bits",
        "\"weighted_cars\": \"",
        "1 rows corrected, 1 blocks rewritten",
        "1 old blocks deleted",
        "2 blocks rewritten; 2 runs became 1",
        "2 blocks are intact",
        "table `Street` recovered in ada",
        "20400 rows copied under a new key",
        "and 1 saved states deleted",
    ] {
        assert!(said.contains(expected), "`{expected}` is not in:\n{said}");
    }
}
