//! Protocol crates do no I/O, read no clock and draw no randomness: all of it
//! is an argument, so that a simulator can lie about it.

use super::{Finding, source};
use crate::tree::Tree;

const PURE: &[&str] = &[
    "crates/crypto/",
    "crates/policy/",
    "crates/encrypted-stream/",
    "crates/anonymous-credential/",
    "crates/access-pass/",
    "crates/accountable-statistics/",
    "crates/anonymous-board/",
    "crates/verifiable-table/",
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
        if !pure {
            continue;
        }
        for (number, line) in source::production_lines(content) {
            let code = line.split("//").next().unwrap_or_default();
            if let Some((door, instead)) = DOORS.iter().find(|(door, _)| code.contains(door)) {
                let what =
                    format!("a protocol crate must not use `{door}`: take {instead} instead");
                findings.push(Finding::new(path, number, what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::said;
    use super::*;

    #[test]
    fn refuses_a_clock() {
        let tree = Tree::from([("crates/crypto/src/lib.rs", "//! x\nuse std::time::Instant;\n")]);
        let expected = "crates/crypto/src/lib.rs:2: a protocol crate must not use `std::time`: take time instead";
        assert_eq!(said(&no_ambient_input(&tree)), [expected]);
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
    fn sees_code_after_a_test_module() {
        let content = "//! x\n#[cfg(test)]\nmod tests {\n}\nuse std::fs;\n";
        let tree = Tree::from([("crates/policy/src/lib.rs", content)]);
        assert_eq!(no_ambient_input(&tree).len(), 1);
    }
}
