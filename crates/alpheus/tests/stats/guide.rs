//! `docs/statistics.md`, command by command.

use crate::common::{free_address, run_script};
use std::fmt::Write as _;

const GUIDE: &str = include_str!("../../../../docs/statistics.md");

/// The blocks of a shell, on ports that are free. Those of a terminal run beside the others;
/// clients run together, and are waited for.
fn script() -> String {
    let (mut script, mut clients) = (String::new(), String::new());
    for block in GUIDE.split("```sh").skip(1) {
        let (title, rest) = block.split_once('\n').unwrap();
        let (title, commands) = (title.trim(), rest.split("```").next().unwrap().trim());
        if title.starts_with("client") {
            writeln!(script, "{commands} > {title}.log 2>&1 &\nclients=\"${{clients-}} $!\"")
                .unwrap();
            write!(clients, " {title}.log").unwrap();
            continue;
        }
        if !clients.is_empty() {
            let waiting = "for client in $clients; do wait $client || failed=1; done";
            writeln!(script, "{waiting}\ncat{clients}\n[ -z \"${{failed-}}\" ]").unwrap();
            clients.clear();
        }
        if title.is_empty() {
            writeln!(script, "{commands}").unwrap();
        } else {
            writeln!(script, "{commands} 2> {title}.log &").unwrap();
            // People are slower.
            writeln!(script, "until grep -q 'serving at' {title}.log; do sleep 0.1; done").unwrap();
        }
    }
    [7701, 7702].into_iter().chain(7711..=7714).chain(7721..=7724).fold(script, |script, port| {
        script.replace(&format!(":{port}"), &format!(":{}", free_address().port()))
    })
}

#[test]
fn the_guide_works_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (said, log) = run_script(folder.path(), 500, &script());
    assert!(said.contains("speed/road,1330560000000,1330563600000,17,955.7,"), "{said}\n{log}");
    assert!(said.contains(",24,7\n"), "{said}\n{log}");
    // Nine contributions of three clients, each of which says what it gave.
    for given in ["3 samples and", "2 samples and", ", 0 left out"] {
        assert!(said.contains(given), "`{given}` is not in:\n{said}\n{log}");
    }
    let last = said.trim_end().lines().last().unwrap();
    assert!(last.starts_with("speed/road,"), "{said}\n{log}");
    // 481.7 in all; 8 of 9 slots.
    assert!(last.contains(",8,481.7,60.2125,") && last.ends_with(",9,1,result"), "{said}\n{log}");
}
