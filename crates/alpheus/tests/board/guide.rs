//! `docs/board.md`, command by command.

use crate::common::{alpheus, free_address};
use std::path::Path;
use std::process::Command;

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
    let ports = [7601, 7602, 7603, 7611, 7612, 7613].map(|port: u16| (port, free_address()));
    let script = ports.iter().fold(script(), |script, (port, at)| {
        script.replace(&format!(":{port}"), &format!(":{}", at.port()))
    });
    let script =
        format!("set -eu\ntrap 'kill $(jobs -p) 2> /dev/null' EXIT\n{script}\ncat board.txt");
    let binary = alpheus([]).get_program().to_owned();
    let paths = std::env::var("PATH").unwrap();
    let path = format!("{}:{paths}", Path::new(&binary).parent().unwrap().display());
    let mut bash = Command::new("timeout");
    bash.args(["--kill-after=5", "120", "bash", "-c", &script])
        .env("PATH", path)
        .current_dir(folder.path());
    let output = bash.output().unwrap();
    let (said, log) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{log}");
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
