//! `docs/board.md` and `docs/board-passes.md`, command by command.

use crate::common::{free_address, run_script, until_serving};

const GUIDE: &str = include_str!("../../../../../docs/board.md");
const PASSES: &str = include_str!("../../../../../docs/board-passes.md");

/// A guide's blocks of a shell, on ports that are free; those of a terminal run beside the
/// others.
fn script(guide: &str) -> String {
    let mut script = String::new();
    for block in guide.split("```sh").skip(1) {
        let (title, rest) = block.split_once('\n').unwrap();
        let commands = rest.split("```").next().unwrap();
        if title.trim().is_empty() {
            script += commands;
        } else {
            script += &format!("{} 2> {}.log &\n", commands.trim(), title.trim());
            // People are slower.
            script += &until_serving(&format!("{}.log", title.trim()));
        }
    }
    (7601..=7605).chain(7611..=7613).fold(script, |script, port| {
        script.replace(&format!(":{port}"), &format!(":{}", free_address().port()))
    })
}

#[test]
fn the_guide_works_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{}\ncat board.txt", script(GUIDE));
    let (said, log) = run_script(folder.path(), &script);
    assert!(said.contains(": delivered") || said.contains(": recovered"), "{said}\n{log}");
    assert!(said.contains("The river runs under the sea"), "{said}\n{log}");
    assert!(said.contains("3 lines into 9 rows"), "{said}\n{log}");
    assert!(said.contains("It comes up in Syracuse"), "{said}\n{log}");
    // Three in one row are lost together, which happens once in 81 times.
    let lost = said.contains(" 3 lost");
    for line in ["\none\n", "\ntwo\n", "\nthree\n"] {
        assert!(said.contains(line) != lost, "{said}\n{log}");
    }
}

/// Everything of the guide; then one message after the other, of which one has the epoch of the one
/// before it; and one by a key, which this board does not take.
#[test]
fn writers_come_in_by_passes_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let more = "
until echo another | alpheus board post --card board.json --pass ada.pass --key-file ada.key --no-wait 2>&1 | grep quota; do sleep 0.1; done
echo third | alpheus board post --card board.json --key door.key --no-wait 2>&1 || true
";
    let (said, log) = run_script(folder.path(), &(script(PASSES) + more));
    for expected in ["Nobody knows that I was here", "quota", "the ticket does not allow a write"] {
        assert!(said.contains(expected), "`{expected}` is not in:\n{said}\n{log}");
    }
}
