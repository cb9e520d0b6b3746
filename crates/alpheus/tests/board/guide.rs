//! `docs/board.md`, command by command.

use crate::common::{free_address, run_script};

const GUIDE: &str = include_str!("../../../../docs/board.md");

/// The guide's blocks of a shell; those of a terminal run beside the others.
fn script() -> String {
    let mut script = String::new();
    for block in GUIDE.split("```sh").skip(1) {
        let (title, rest) = block.split_once('\n').unwrap();
        let commands = rest.split("```").next().unwrap();
        if title.trim().is_empty() {
            script += commands;
        } else {
            script += &format!("{} 2> {}.log &\n", commands.trim(), title.trim());
            // People are slower.
            script +=
                &format!("until grep -q 'serving at' {}.log; do sleep 0.1; done\n", title.trim());
        }
    }
    script
}

#[test]
fn the_guide_works_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let ports = [7601, 7602, 7603].map(|port: u16| (port, free_address()));
    let script = ports.iter().fold(script(), |script, (port, at)| {
        script.replace(&format!(":{port}"), &format!(":{}", at.port()))
    });
    let (said, log) = run_script(folder.path(), 120, &format!("{script}\ncat board.txt"));
    assert!(said.contains(": delivered") || said.contains(": recovered"), "{said}\n{log}");
    assert!(said.contains("The river runs under the sea"), "{said}\n{log}");
    assert!(said.contains("3 lines into 9 rows"), "{said}\n{log}");
    // Three in one row are lost together, which happens once in 81 times.
    let lost = said.contains(" 3 lost");
    for line in ["\none\n", "\ntwo\n", "\nthree\n"] {
        assert!(said.contains(line) != lost, "{said}\n{log}");
    }
}
