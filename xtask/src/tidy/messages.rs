//! What processes say to people comes out in whole lines.

use super::{Finding, rust};
use crate::tree::Tree;

/// Where lines of standard error are made, and crates that know no `node`.
const SPEAKS: &[&str] =
    &["crates/node/src/note.rs", "crates/test-support/", "crates/results-database/"];

/// Messages go through `node::note`: standard error has no buffer, and lines of processes that share
/// it would mix.
pub(super) fn are_whole_lines(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (directory, _) in tree.packages().filter(|(path, _)| path.starts_with("crates/")) {
        for (path, content) in rust::shipped_files(tree, directory) {
            if SPEAKS.iter().any(|speaks| path.starts_with(speaks)) {
                continue;
            }
            for (line, code) in rust::shipped_code(content) {
                let parts = code.contains("eprint!(")
                    || code.contains("eprintln!(")
                    || code.contains("stderr().lock()")
                    || code.contains("write") && code.contains("!(") && code.contains("stderr()");
                if parts {
                    let what =
                        "lines of processes would mix: use `alpheus_node::note!` or `note::lines`";
                    findings.push(Finding::new(path, line, what));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_half_lines_on_standard_error() {
        for half in [
            "eprintln!(\"{a}\");",
            "eprint!(\"{a}\");",
            "writeln!(std::io::stderr(), \"{a}\");",
            "report(&mut io::stderr().lock());",
        ] {
            let content = format!("//! x\nfn f() {{\n    {half}\n}}\n");
            let findings = |path: &str| {
                let package = path.split("src/").next().unwrap_or_default();
                let manifest = format!("{package}Cargo.toml");
                let named = "[package]\nname = \"x\"\n";
                are_whole_lines(&Tree::from([(path, content.as_str()), (&manifest, named)])).len()
            };
            assert_eq!(findings("crates/streams/src/read.rs"), 1, "{half}");
            assert_eq!(findings("crates/node/src/note.rs"), 0, "{half}");
            assert_eq!(findings("xtask/src/main.rs"), 0, "{half}");
        }
    }
}
