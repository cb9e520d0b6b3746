//! `docs/statistics.md`, command by command.

use crate::common::{free_address, run_script, until_serving};
use std::fmt::Write as _;

const GUIDE: &str = include_str!("../../../../../docs/statistics.md");

/// A block of a shell: where it runs, and its commands.
struct Block {
    title: &'static str,
    commands: &'static str,
}

fn blocks() -> Vec<Block> {
    let read = |block: &'static str| {
        let (title, rest) = block.split_once('\n').unwrap();
        Block { title: title.trim(), commands: rest.split("```").next().unwrap().trim() }
    };
    GUIDE.split("```sh").skip(1).map(read).collect()
}

/// What starts in a terminal of its own, and serves.
fn served(Block { title, commands }: &Block) -> String {
    // People are slower.
    let until = until_serving(&format!("{title}.log"));
    format!("{commands} 2> {title}.log &\n{until}")
}

/// On ports that are free.
fn elsewhere(script: &str) -> String {
    [7701, 7702]
        .into_iter()
        .chain(7711..=7714)
        .chain(7721..=7724)
        .fold(script.to_owned(), |script, port| {
            script.replace(&format!(":{port}"), &format!(":{}", free_address().port()))
        })
}

/// The guide's deployment, with nothing defined: registrar, aggregator, smoothers and three
/// accounts, as they stand in the guide.
pub(crate) fn deployment() -> String {
    let part = |block: &Block| {
        let sets_up = ["alpheus ca init", "umask"].iter().any(|it| block.commands.starts_with(it));
        match block.title.starts_with("terminal") {
            true => served(block),
            false if sets_up => format!("{}\n", block.commands),
            false => String::new(),
        }
    };
    elsewhere(&blocks().iter().map(part).collect::<String>())
}

/// All of it. Clients run together, and are waited for.
fn script() -> String {
    let (mut script, mut clients) = (String::new(), String::new());
    for block in blocks() {
        let Block { title, commands } = block;
        if title.starts_with("client") {
            let running = "clients=\"${clients-} $!\"";
            writeln!(script, "{commands} > {title}.log 2>&1 &\n{running}").unwrap();
            write!(clients, " {title}.log").unwrap();
            continue;
        }
        if !clients.is_empty() {
            let waiting = "for client in $clients; do wait $client || failed=1; done";
            writeln!(script, "{waiting}\ncat{clients}\n[ -z \"${{failed-}}\" ]").unwrap();
            clients.clear();
        }
        script += &if title.is_empty() { format!("{commands}\n") } else { served(&block) };
    }
    elsewhere(&script)
}

#[test]
fn the_guide_works_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (said, log) = run_script(folder.path(), &script());
    assert!(said.contains("speed/road,1330560000000,1330563600000,17,955.7,"), "{said}\n{log}");
    assert!(said.contains(",24,7\n"), "{said}\n{log}");
    // Nine contributions of three clients, each of which says what it gave.
    for given in ["3 samples and", "2 samples and", ": result; ", ", 0 left out"] {
        assert!(said.contains(given), "`{given}` is not in:\n{said}\n{log}");
    }
    let last = said.trim_end().lines().last().unwrap();
    assert!(last.starts_with("speed/road,"), "{said}\n{log}");
    // 481.7 in all; 8 of 9 slots.
    assert!(last.contains(",8,481.7,60.2125,") && last.ends_with(",9,1,result"), "{said}\n{log}");
}
