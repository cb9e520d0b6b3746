//! The shape of a crate: its top modules do not import each other in a circle, and it is small
//! enough to rebuild while one waits.

use super::{Finding, exceptions, rust};
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Lines that a crate ships, at most.
pub(super) const CRATE_LINES: usize = 20_000;

/// Top module to top module, and where the first import stands.
type Imports<'a> = BTreeMap<String, BTreeMap<String, (&'a str, usize)>>;

/// No two top modules of a crate import each other, directly or through others.
pub(super) fn no_import_cycle(tree: &Tree) -> Vec<Finding> {
    let cycles = tree.packages().filter_map(|(directory, _)| shortest_cycle(tree, directory));
    let finding =
        |(place, line, text): (_, _, _)| Finding::new(place, line, format!("import cycle: {text}"));
    cycles.map(finding).collect()
}

/// No crate is so large that an edit rebuilds too much.
pub(super) fn crates_are_small(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (directory, _) in tree.packages() {
        let lines = shipped_lines(tree, directory);
        let what = match (lines > CRATE_LINES, exceptions::large_crate(directory)) {
            (true, false) => format!("ships {lines} lines, more than {CRATE_LINES}: split it"),
            (false, true) => "exception for a large crate that is no longer large".to_owned(),
            _ => continue,
        };
        findings.push(Finding::new(directory, 1, what));
    }
    findings
}

fn shipped_lines(tree: &Tree, directory: &str) -> usize {
    let files = rust::shipped_files(tree, directory);
    files.iter().map(|(_, content)| super::source::production_lines(content).len()).sum()
}

/// Where the shortest cycle's first import stands, and the cycle in words.
fn shortest_cycle<'a>(tree: &'a Tree, directory: &str) -> Option<(&'a str, usize, String)> {
    let imports = imports(tree, directory);
    let cycle =
        imports.keys().filter_map(|start| cycle_through(&imports, start)).min_by_key(Vec::len)?;
    let step = |at: usize| -> Option<(&'a str, usize)> {
        imports.get(&cycle[at])?.get(&cycle[(at + 1) % cycle.len()]).copied()
    };
    let (path, line) = step(0)?;
    let mut text = cycle[0].clone();
    for at in 0..cycle.len() {
        let next = &cycle[(at + 1) % cycle.len()];
        let (path, line) = step(at)?;
        text.push_str(&format!(" → {next} ({path}:{line})"));
    }
    Some((path, line, text))
}

/// The shortest way from a module back to itself.
fn cycle_through(imports: &Imports<'_>, start: &str) -> Option<Vec<String>> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(module) = waiting.pop_front() {
        for next in imports.get(module).into_iter().flat_map(BTreeMap::keys) {
            if next == start {
                let mut cycle = vec![module.to_owned()];
                while let Some(before) = from.get(cycle[cycle.len() - 1].as_str()) {
                    cycle.push((*before).to_owned());
                }
                cycle.reverse();
                return Some(cycle);
            }
            if !from.contains_key(next.as_str()) {
                from.insert(next, module);
                waiting.push_back(next);
            }
        }
    }
    None
}

fn imports<'a>(tree: &'a Tree, directory: &str) -> Imports<'a> {
    let files = rust::shipped_files(tree, directory);
    let inside = format!("{directory}/src/");
    let place = |path: &str| module_path(path.strip_prefix(&inside).unwrap_or(path));
    let tops: BTreeSet<String> =
        files.iter().filter_map(|(path, _)| place(path).first().cloned()).collect();
    let exports = root_exports(&files, &inside);
    let mut imports = Imports::new();
    for (path, content) in &files {
        let module = place(path);
        let Some(top) = module.first() else { continue };
        let code = rust::shipped_code(content);
        let up = "super::".repeat(module.len());
        let named = ["crate::", up.as_str()].map(|prefix| rust::names_after(&code, prefix));
        for (line, name) in named.into_iter().flatten() {
            let target = if tops.contains(&name) { Some(&name) } else { exports.get(&name) };
            if let Some(target) = target.filter(|target| *target != top) {
                let of_top = imports.entry(top.clone()).or_default();
                of_top.entry(target.clone()).or_insert((path, line));
            }
        }
    }
    imports
}

/// `a`, `b` of `a/b.rs` and `a/b/mod.rs`; nothing of a crate's root.
fn module_path(inside: &str) -> Vec<String> {
    let stem = inside.trim_end_matches(".rs");
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    if matches!(stem, "lib" | "main") || stem.starts_with("bin/") {
        return Vec::new();
    }
    stem.split('/').map(str::to_owned).collect()
}

/// What the crate's root takes from its modules under a shorter path, by name.
fn root_exports(files: &[(&str, &str)], inside: &str) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    let root = files.iter().filter(|(path, _)| path.strip_prefix(inside) == Some("lib.rs"));
    for (_, content) in root {
        let code = rust::code(content);
        for statement in code.split(';') {
            let Some((_, path)) = statement.rsplit_once("use ") else { continue };
            let path = path.trim().trim_start_matches("crate::").trim_start_matches("self::");
            let Some(module) = rust::identifier(path) else { continue };
            let words = path.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            exports.extend(words.skip(1).map(|name| (name.to_owned(), module.to_owned())));
        }
    }
    let own: BTreeSet<String> = files
        .iter()
        .filter_map(|(path, _)| module_path(path.strip_prefix(inside)?).first().cloned())
        .collect();
    exports.retain(|_, module| own.contains(module));
    exports
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    const MANIFEST: (&str, &str) = ("crates/x/Cargo.toml", "[package]\nname = \"x\"\n");

    #[test]
    fn refuses_a_cycle_and_shows_the_shortest() {
        let tree = Tree::from([
            MANIFEST,
            ("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;\npub use c::Thing;\n"),
            ("crates/x/src/a.rs", "use crate::b::B;\n"),
            ("crates/x/src/b/mod.rs", "mod deep;\n"),
            ("crates/x/src/b/deep.rs", "use super::super::{a, deep};\nuse crate::Thing;\n"),
            ("crates/x/src/c.rs", "use crate::{\n    a,\n};\n"),
        ]);
        let expected = "crates/x/src/a.rs:1: import cycle: a → b (crates/x/src/a.rs:1) → a (crates/x/src/b/deep.rs:1)";
        assert_eq!(messages(&no_import_cycle(&tree)), [expected]);
    }

    #[test]
    fn follows_what_the_root_exports() {
        let tree = Tree::from([
            MANIFEST,
            ("crates/x/src/lib.rs", "pub use a::{A, sub::Other};\n"),
            ("crates/x/src/a.rs", "use crate::b::B;\n"),
            ("crates/x/src/b.rs", "use crate::Other;\n"),
        ]);
        assert_eq!(no_import_cycle(&tree).len(), 1);
    }

    #[test]
    fn allows_imports_that_point_one_way_and_those_of_tests() {
        let tree = Tree::from([
            MANIFEST,
            ("crates/x/src/lib.rs", "mod a;\nmod b;\n"),
            ("crates/x/src/a.rs", "use crate::b::B; // crate::a\nuse super::b;\n"),
            (
                "crates/x/src/b.rs",
                "//! See [`crate::a`].\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n",
            ),
        ]);
        assert_eq!(no_import_cycle(&tree), []);
    }

    #[test]
    fn refuses_a_large_crate_but_counts_no_tests() {
        let line = "fn f() {}\n";
        let large = line.repeat(CRATE_LINES);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    fn f() {}\n".repeat(9));
        let tree = |more: &str| {
            let content = format!("{large}{tests}{more}");
            Tree::from([MANIFEST, ("crates/x/src/lib.rs", content.as_str())])
        };
        assert_eq!(crates_are_small(&tree("")), []);
        assert_eq!(crates_are_small(&tree(line)).len(), 1);
    }
}
