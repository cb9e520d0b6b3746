//! Every Rust file is part of some build, and every fuzz target of the tests.

use super::Finding;
use crate::tree::Tree;
use std::collections::BTreeSet;

/// No `.rs` file that nothing declares.
pub(super) fn no_dead_file(tree: &Tree) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<String> = roots(tree);
    while let Some(path) = waiting.pop() {
        let Some(content) = tree.files.get(&path) else { continue };
        if reached.insert(path.clone()) {
            waiting.extend(declared(&path, content));
        }
    }
    let what = "no crate declares this file";
    let dead = tree.ending(".rs").filter(|(path, _)| !reached.contains(*path));
    dead.map(|(path, _)| Finding::new(path, 1, what)).collect()
}

/// Where cargo starts reading: what it finds by name, and what manifests name.
fn roots(tree: &Tree) -> Vec<String> {
    let mut roots = Vec::new();
    for (directory, manifest) in tree.packages() {
        let by_name = |path: &str| {
            let inside = path.strip_prefix(directory).and_then(|p| p.strip_prefix('/'));
            inside.is_some_and(is_root)
        };
        roots.extend(tree.ending(".rs").filter(|(p, _)| by_name(p)).map(|(p, _)| p.to_owned()));
        for kind in ["lib", "bin", "test", "bench", "example"] {
            let entries = match manifest.get(kind) {
                Some(toml::Value::Array(list)) => list.as_slice(),
                Some(one) => std::slice::from_ref(one),
                None => &[],
            };
            let paths = entries.iter().filter_map(|e| e.get("path").and_then(toml::Value::as_str));
            roots.extend(paths.map(|p| join(directory, p)));
        }
    }
    roots
}

/// Whether cargo takes this path inside a package for a target by its place.
fn is_root(inside: &str) -> bool {
    if matches!(inside, "src/lib.rs" | "src/main.rs" | "build.rs") {
        return true;
    }
    ["src/bin/", "tests/", "benches/", "examples/"].iter().any(|place| {
        let rest = inside.strip_prefix(place);
        rest.is_some_and(|r| {
            !r.contains('/') || (r.ends_with("/main.rs") && r.matches('/').count() == 1)
        })
    })
}

/// The files that a file's `mod name;`, `#[path]` and `include!` may mean.
pub(super) fn declared(path: &str, content: &str) -> Vec<String> {
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.trim_end_matches(".rs");
    let nested = join(directory, stem);
    // A crate root or `mod.rs` owns its directory, any other file one of its name.
    let owners = [directory.to_owned(), nested];
    let mut found = Vec::new();
    for line in content.lines() {
        if let Some(quoted) =
            quoted_after(line, "#[path = \"").or(quoted_after(line, "include!(\""))
        {
            found.push(join(directory, quoted));
        }
        let Some(name) = module_name(line) else { continue };
        for owner in &owners {
            found.push(join(owner, &format!("{name}.rs")));
            found.push(join(owner, &format!("{name}/mod.rs")));
        }
    }
    found
}

fn quoted_after<'a>(line: &'a str, opening: &str) -> Option<&'a str> {
    line.trim_start().strip_prefix(opening)?.split('"').next()
}

fn module_name(line: &str) -> Option<&str> {
    let (before, name) = line.trim().strip_suffix(';')?.rsplit_once("mod ")?;
    let qualifier = before.trim();
    (qualifier.is_empty() || qualifier.starts_with("pub")).then_some(name)
}

/// `base/relative`, with `..` resolved.
pub(super) fn join(base: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = base.split('/').filter(|p| !p.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// A decoder that is fuzzed also runs, on stable, over its seeds and mutations.
pub(super) fn fuzz_targets_are_tested(tree: &Tree) -> Vec<Finding> {
    let tests: String = tree
        .files
        .iter()
        .filter(|(p, _)| p.starts_with("fuzz/tests/"))
        .map(|(_, c)| c.as_str())
        .collect();
    let mut findings = Vec::new();
    let path = "fuzz/src/targets.rs";
    let listed = tree.files.get(path).map(String::as_str).unwrap_or_default();
    for (line, text) in (1..).zip(listed.lines()) {
        let entry = text.trim().strip_prefix("(\"").and_then(|rest| rest.split_once("\", crate::"));
        let Some((name, _)) = entry else { continue };
        if !tests.contains(&format!("plain!({name},")) {
            let what = format!("no `plain!({name}, …)` in fuzz/tests");
            findings.push(Finding::new(path, line, what));
        }
    }
    findings
}

/// `make test` names its test targets, so that it can run some beside others: it names all. It builds
/// all benchmarks, but for those that only a feature has.
pub(super) fn targets_are_named(tree: &Tree) -> Vec<Finding> {
    let Some(makefile) = tree.files.get("Makefile") else { return Vec::new() };
    let words: Vec<&str> = makefile.split_whitespace().collect();
    let mut findings = Vec::new();
    for (directory, manifest) in tree.packages() {
        for (kind, folder) in [("test", "tests"), ("bench", "benches")] {
            let folder = format!("{directory}/{folder}/");
            for (path, _) in tree.ending(".rs") {
                let Some(rest) = path.strip_prefix(&folder) else { continue };
                let name = rest.strip_suffix("/main.rs").or_else(|| rest.strip_suffix(".rs"));
                let Some(name) = name.filter(|name| !name.contains('/')) else { continue };
                let flag = format!("--{kind}");
                if !words.windows(2).any(|pair| pair == [flag.as_str(), name])
                    && !needs_feature(&manifest, kind, name)
                {
                    let what = format!("the Makefile names no `{flag} {name}`");
                    findings.push(Finding::new(path, 1, what));
                }
            }
        }
    }
    findings
}

/// Whether a target of a package is built with a feature of it alone.
fn needs_feature(manifest: &toml::Table, kind: &str, name: &str) -> bool {
    let targets = manifest.get(kind).and_then(toml::Value::as_array);
    targets.into_iter().flatten().any(|target| {
        target.get("name").and_then(toml::Value::as_str) == Some(name)
            && target.get("required-features").is_some()
    })
}

/// An example in the documentation of a crate is run, or marked as text.
pub(super) fn examples_are_tested(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (directory, manifest) in tree.packages() {
        let lib = manifest.get("lib").and_then(|lib| lib.get("doctest"));
        if lib.and_then(toml::Value::as_bool) != Some(false) {
            continue;
        }
        let source = format!("{directory}/src/");
        for (path, content) in tree.ending(".rs").filter(|(path, _)| path.starts_with(&source)) {
            let mut inside = false;
            for (number, line) in (1..).zip(content.lines()) {
                let comment = line.trim_start().strip_prefix("//").unwrap_or_default();
                let Some(fence) = comment.trim_start_matches(['/', '!', ' ']).strip_prefix("```")
                else {
                    continue;
                };
                if !inside && (fence.is_empty() || fence.starts_with("rust")) {
                    let what = "this example is not run: its crate has `doctest = false`";
                    findings.push(Finding::new(path, number, what));
                }
                inside = !inside;
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn refuses_an_example_that_is_not_run() {
        let manifest = |doctest| format!("[package]\nname = \"a\"\n[lib]\ndoctest = {doctest}\n");
        let source = "//! ```text\n//! a → b\n//! ```\n\n/// ```\n/// f();\n/// ```\nfn f() {}\n";
        let (off, on) = (manifest(false), manifest(true));
        let tree = Tree::from([
            ("crates/a/Cargo.toml", off.as_str()),
            ("crates/a/src/lib.rs", source),
            ("crates/b/Cargo.toml", on.as_str()),
            ("crates/b/src/lib.rs", source),
        ]);
        let found = messages(&examples_are_tested(&tree));
        let what = "this example is not run: its crate has `doctest = false`";
        assert_eq!(found, [format!("crates/a/src/lib.rs:5: {what}")]);
    }

    #[test]
    fn refuses_a_test_target_or_a_benchmark_that_nothing_builds() {
        let manifest = "[package]\nname = \"a\"\n[[bench]]\nname = \"own\"\nrequired-features = [\"f\"]\n\
            [[bench]]\nname = \"slow\"\n";
        let tree = Tree::from([
            ("Makefile", "test:\n\tcargo test --lib --test all --bench fast\n"),
            ("crates/a/Cargo.toml", manifest),
            ("crates/a/tests/all/main.rs", "mod x;\n"),
            ("crates/a/tests/all/x.rs", ""),
            ("crates/a/tests/new.rs", ""),
            ("crates/a/tests/other/main.rs", ""),
            ("crates/a/benches/fast.rs", ""),
            ("crates/a/benches/own.rs", ""),
            ("crates/a/benches/slow.rs", ""),
        ]);
        let expected = [
            "crates/a/tests/new.rs:1: the Makefile names no `--test new`",
            "crates/a/tests/other/main.rs:1: the Makefile names no `--test other`",
            "crates/a/benches/slow.rs:1: the Makefile names no `--bench slow`",
        ];
        assert_eq!(messages(&targets_are_named(&tree)), expected);
    }

    #[test]
    fn refuses_a_file_that_nothing_declares() {
        let tree = Tree::from([
            (
                "crates/a/Cargo.toml",
                "[package]\nname = \"a\"\n[[bench]]\nname = \"x\"\npath = \"speed/x.rs\"\n",
            ),
            ("crates/a/src/lib.rs", "pub mod used;\nmod deep;\n// mod dead;\n"),
            ("crates/a/src/used.rs", "#[cfg(test)]\nmod inner;\n"),
            ("crates/a/src/used/inner.rs", ""),
            ("crates/a/src/deep/mod.rs", "pub(crate) mod er;\n"),
            ("crates/a/src/deep/er.rs", ""),
            ("crates/a/src/dead.rs", ""),
            ("crates/a/tests/t.rs", "mod common;\n"),
            ("crates/a/tests/common/mod.rs", ""),
            ("crates/a/tests/unused/mod.rs", ""),
            ("crates/a/speed/x.rs", "#[path = \"../src/deep/shared.rs\"]\nmod shared;\n"),
            ("crates/a/src/deep/shared.rs", ""),
        ]);
        let expected = [
            "crates/a/src/dead.rs:1: no crate declares this file",
            "crates/a/tests/unused/mod.rs:1: no crate declares this file",
        ];
        assert_eq!(messages(&no_dead_file(&tree)), expected);
    }

    #[test]
    fn refuses_a_fuzz_target_without_a_plain_test() {
        let tree = Tree::from([
            (
                "fuzz/src/targets.rs",
                "    (\"frame\", crate::frame),\n    (\"query\", crate::query),\n",
            ),
            ("fuzz/tests/plain.rs", "plain!(frame, seeds());\n"),
        ]);
        let expected = "fuzz/src/targets.rs:2: no `plain!(query, …)` in fuzz/tests";
        assert_eq!(messages(&fuzz_targets_are_tested(&tree)), [expected]);
    }
}
