//! `docs/statistics.md`, command by command.

use crate::common::run_script;

const GUIDE: &str = include_str!("../../../../docs/statistics.md");

#[test]
fn the_guide_works_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = GUIDE.split("```sh\n").skip(1);
    let script: String = blocks.filter_map(|block| block.split("```").next()).collect();
    let (said, log) = run_script(folder.path(), 300, &script);
    assert!(said.contains("speed/road,1330560000000,1330563600000,17,955.7,"), "{said}\n{log}");
    assert!(said.trim_end().ends_with(",24,7"), "{said}\n{log}");
}
