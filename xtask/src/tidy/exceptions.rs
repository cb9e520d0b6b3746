//! Where a rule about shape is broken on purpose, and why.

use super::{Finding, source};
use crate::tree::Tree;

/// Files that may be longer, and why.
const LONG_FILES: &[(&str, &str)] = &[];

/// Crates that may be larger, and why.
const LARGE_CRATES: &[(&str, &str)] = &[(
    "crates/encrypted-stream",
    "devices send frames of events or of ticks; frames of events go once all clients send ticks",
)];

/// Functions that may be longer, and why.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];

pub(super) fn long_file(path: &str) -> bool {
    LONG_FILES.iter().any(|(file, _)| *file == path)
}

pub(super) fn large_crate(directory: &str) -> bool {
    LARGE_CRATES.iter().any(|(crate_, _)| *crate_ == directory)
}

pub(super) fn long_function(path: &str, name: &str) -> bool {
    LONG_FUNCTIONS.iter().any(|(file, function, _)| *file == path && *function == name)
}

/// An exception whose cause is gone goes too.
pub(super) fn still_needed(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, _) in LONG_FILES {
        if !tree.has(path) {
            findings.push(Finding::new(path, 1, "exception for a file that is gone"));
        }
    }
    for (directory, _) in LARGE_CRATES {
        if !tree.has(&format!("{directory}/Cargo.toml")) {
            findings.push(Finding::new(directory, 1, "exception for a crate that is gone"));
        }
    }
    for (path, name, _) in LONG_FUNCTIONS {
        let content = tree.files.get(*path).map(String::as_str).unwrap_or_default();
        if !source::functions(content).iter().any(|f| f.name == *name && f.lines > 50) {
            let what = format!("exception for `{name}`, which is gone or short");
            findings.push(Finding::new(path, 1, what));
        }
    }
    findings
}
