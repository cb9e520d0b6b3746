//! Protocol crates do no I/O, read no clock and draw no randomness: all of it
//! is an argument, so that a simulator can lie about it.

use super::{Finding, rust};
use crate::tree::Tree;

const PURE: &[&str] = &[
    "crates/time/",
    "crates/crypto/",
    "crates/policy/",
    "crates/encrypted-stream/",
    "crates/anonymous-credential/",
    "crates/access-pass/",
    "crates/accountable-statistics/",
    "crates/anonymous-board/",
    "crates/verifiable-table/",
    "crates/range-proof/",
    "crates/bounded-influence/",
    "crates/discover/",
    "crates/doctor/",
    "crates/standards/",
    "bindings/c/",
];

/// Files below these folders that open a door on purpose, and why.
const OPEN: &[(&str, &str)] = &[
    ("bindings/c/src/abi/mod.rs", "C has no clock of microseconds that is the same everywhere"),
    ("bindings/c/src/home.rs", "a handle belongs to a process"),
    ("bindings/c/src/randomness.rs", "a caller who chose random numbers could use a pad twice"),
];

/// Doors to the outside, and what to take as an argument instead.
const DOORS: &[(&str, &str)] = &[
    ("std::time", "time"),
    ("SystemTime", "time"),
    ("Instant::now", "time"),
    ("std::fs", "bytes"),
    ("std::io", "bytes"),
    ("std::net", "bytes"),
    ("std::env", "a parameter"),
    ("std::process", "nothing"),
    ("std::thread", "nothing"),
    ("thread_rng", "`&mut impl CryptoRng`"),
    ("getrandom", "`&mut impl CryptoRng`"),
    ("OsRng", "`&mut impl CryptoRng`"),
    ("SysRng", "`&mut impl CryptoRng`"),
    ("println!", "a returned value"),
    ("print!", "a returned value"),
    ("tokio", "nothing"),
];

/// No door to the outside in a protocol crate, tests and examples apart.
pub(super) fn no_ambient_input(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, content) in tree.ending(".rs") {
        let pure = PURE.iter().any(|c| path.starts_with(c) && path[c.len()..].starts_with("src/"));
        if !pure || OPEN.iter().any(|(open, _)| *open == path) {
            continue;
        }
        for (number, (door, instead)) in doors(content) {
            let what = format!("a protocol crate must not use `{door}`: take {instead} instead");
            findings.push(Finding::new(path, number, what));
        }
    }
    findings
}

/// The doors that code opens, each with its line: named whole, or in a tree below `std`.
fn doors(content: &str) -> Vec<(usize, (&'static str, &'static str))> {
    let code = rust::shipped_code(content);
    let mut found = Vec::new();
    for (number, line) in &code {
        found.extend(
            DOORS.iter().find(|(door, _)| line.contains(door)).map(|door| (*number, *door)),
        );
    }
    for (number, name) in rust::names_after(&code, "std::") {
        let named = |(door, _): &&(&str, &str)| door.strip_prefix("std::") == Some(&name);
        found.extend(DOORS.iter().find(named).map(|door| (number, *door)));
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn refuses_a_clock() {
        let tree = Tree::from([("crates/crypto/src/lib.rs", "//! x\nuse std::time::Instant;\n")]);
        let expected = "crates/crypto/src/lib.rs:2: a protocol crate must not use `std::time`: take time instead";
        assert_eq!(messages(&no_ambient_input(&tree)), [expected]);
    }

    #[test]
    fn refuses_a_clock_in_a_tree() {
        for tree in ["{fmt, time::Instant}", "{\n    fmt::{self, Write},\n    time,\n}"] {
            let content = format!("//! x\nuse std::{tree};\n");
            let tree = Tree::from([("crates/crypto/src/lib.rs", content.as_str())]);
            assert_eq!(no_ambient_input(&tree).len(), 1, "{content}");
        }
        let fine = "//! x\nuse std::{fmt::time, hash};\n";
        assert_eq!(no_ambient_input(&Tree::from([("crates/crypto/src/lib.rs", fine)])), []);
    }

    #[test]
    fn lets_comments_tests_and_services_pass() {
        let tests =
            "//! x\n// std::fs is not for us\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        let tree = Tree::from([
            ("crates/policy/src/lib.rs", tests),
            ("crates/policy/tests/vectors.rs", "use std::fs;\n"),
            ("crates/alpheus/src/lib.rs", "use std::fs;\n"),
        ]);
        assert_eq!(no_ambient_input(&tree), []);
    }

    #[test]
    fn only_named_files_of_the_interface_for_c_open_a_door() {
        let content = "//! x\nuse std::process::id;\n";
        let in_file = |path| no_ambient_input(&Tree::from([(path, content)])).len();
        assert_eq!(in_file("bindings/c/src/session.rs"), 1);
        assert_eq!(in_file("bindings/c/src/home.rs"), 0);
    }

    #[test]
    fn sees_code_after_a_test_module() {
        let content = "//! x\n#[cfg(test)]\nmod tests {\n}\nuse std::fs;\n";
        let tree = Tree::from([("crates/policy/src/lib.rs", content)]);
        assert_eq!(no_ambient_input(&tree).len(), 1);
    }
}
