//! Which of our crates may know which, and where versions stand.

use super::Finding;
use crate::tree::Tree;

/// Every arrow that is wanted. A crate that is not listed here is a finding,
/// so that adding one is a decision.
const ALLOWED: &[(&str, &[&str])] = &[
    ("alpheus-test-support", &[]),
    ("alpheus-time", &[]),
    ("alpheus-crypto", &["alpheus-test-support"]),
    ("alpheus-policy", &["alpheus-test-support", "alpheus-time"]),
    ("alpheus-range-proof", &["alpheus-crypto"]),
    (
        "alpheus-bounded-influence",
        &["alpheus-test-support", "alpheus-crypto", "alpheus-range-proof"],
    ),
    ("alpheus-doctor", &[]),
    ("alpheus-transport", &["alpheus-test-support"]),
    ("alpheus-discover", &["alpheus-test-support", "alpheus-time"]),
    ("alpheus-standards", &["alpheus-test-support", "alpheus-time", "alpheus-policy"]),
    (
        "alpheus-encrypted-stream",
        &[
            "alpheus-test-support",
            "alpheus-time",
            "alpheus-bounded-influence",
            "alpheus-crypto",
            "alpheus-policy",
        ],
    ),
    ("alpheus-anonymous-credential", &["alpheus-time", "alpheus-crypto", "alpheus-test-support"]),
    (
        "alpheus-access-pass",
        &["alpheus-test-support", "alpheus-time", "alpheus-crypto", "alpheus-anonymous-credential"],
    ),
    (
        "alpheus-accountable-statistics",
        &[
            "alpheus-test-support",
            "alpheus-time",
            "alpheus-crypto",
            "alpheus-range-proof",
            "alpheus-anonymous-credential",
        ],
    ),
    ("alpheus-anonymous-board", &["alpheus-test-support", "alpheus-time", "alpheus-crypto"]),
    ("alpheus-verifiable-table", &["alpheus-test-support", "alpheus-crypto"]),
    (
        "alpheus-pairing-table",
        &["alpheus-test-support", "alpheus-crypto", "alpheus-verifiable-table"],
    ),
    ("alpheus-model", &["alpheus-policy"]),
    ("alpheus-node", &["alpheus-time", "alpheus-crypto", "alpheus-transport"]),
    ("alpheus-input", &["alpheus-time", "alpheus-policy", "alpheus-discover", "alpheus-node"]),
    (
        "alpheus-stream-runtime",
        &[
            "alpheus-time",
            "alpheus-crypto",
            "alpheus-policy",
            "alpheus-transport",
            "alpheus-bounded-influence",
            "alpheus-encrypted-stream",
            "alpheus-standards",
            "alpheus-node",
            "alpheus-input",
        ],
    ),
    (
        "alpheus-streams",
        &[
            "alpheus-time",
            "alpheus-doctor",
            "alpheus-crypto",
            "alpheus-policy",
            "alpheus-transport",
            "alpheus-encrypted-stream",
            "alpheus-standards",
            "alpheus-node",
            "alpheus-input",
            "alpheus-stream-runtime",
        ],
    ),
    (
        "alpheus-otlp",
        &[
            "alpheus-test-support",
            "alpheus-time",
            "alpheus-policy",
            "alpheus-transport",
            "alpheus-node",
            "alpheus-input",
            "alpheus-standards",
            "alpheus-streams",
        ],
    ),
    (
        "alpheus-worker",
        &[
            "alpheus-time",
            "alpheus-crypto",
            "alpheus-policy",
            "alpheus-transport",
            "alpheus-encrypted-stream",
            "alpheus-node",
            "alpheus-stream-runtime",
            "alpheus-streams",
        ],
    ),
    // What C links is a producer and a client of passes: protocols alone.
    (
        "alpheus-c",
        &[
            "alpheus-time",
            "alpheus-crypto",
            "alpheus-policy",
            "alpheus-encrypted-stream",
            "alpheus-anonymous-credential",
            "alpheus-access-pass",
        ],
    ),
    // What Python links is a device and a consumer.
    (
        "alpheus-python",
        &[
            "alpheus-time",
            "alpheus-crypto",
            "alpheus-policy",
            "alpheus-encrypted-stream",
            "alpheus-node",
            "alpheus-input",
            "alpheus-stream-runtime",
            "alpheus-streams",
        ],
    ),
    (
        "alpheus-pass-service",
        &[
            "alpheus-time",
            "alpheus-crypto",
            "alpheus-anonymous-credential",
            "alpheus-access-pass",
            "alpheus-node",
        ],
    ),
    (
        "alpheus-board-service",
        &[
            "alpheus-time",
            "alpheus-crypto",
            "alpheus-transport",
            "alpheus-anonymous-credential",
            "alpheus-anonymous-board",
            "alpheus-node",
            "alpheus-pass-service",
        ],
    ),
    (
        "alpheus-stats-service",
        &[
            "alpheus-time",
            "alpheus-crypto",
            "alpheus-policy",
            "alpheus-transport",
            "alpheus-encrypted-stream",
            "alpheus-anonymous-credential",
            "alpheus-accountable-statistics",
            "alpheus-node",
            "alpheus-input",
            "alpheus-pass-service",
        ],
    ),
    (
        "alpheus-table-service",
        &[
            "alpheus-time",
            "alpheus-crypto",
            "alpheus-policy",
            "alpheus-discover",
            "alpheus-transport",
            "alpheus-encrypted-stream",
            "alpheus-verifiable-table",
            "alpheus-node",
            "alpheus-input",
        ],
    ),
    (
        "alpheus",
        &[
            "alpheus-test-support",
            "alpheus-time",
            "alpheus-crypto",
            "alpheus-policy",
            "alpheus-transport",
            "alpheus-encrypted-stream",
            "alpheus-accountable-statistics",
            "alpheus-anonymous-board",
            "alpheus-verifiable-table",
            "alpheus-node",
            "alpheus-input",
            "alpheus-discover",
            "alpheus-doctor",
            "alpheus-standards",
            "alpheus-otlp",
            "alpheus-stream-runtime",
            "alpheus-streams",
            "alpheus-worker",
            "alpheus-pass-service",
            "alpheus-board-service",
            "alpheus-stats-service",
            "alpheus-table-service",
        ],
    ),
    (
        "alpheus-bench",
        &[
            "alpheus-time",
            "alpheus-crypto",
            "alpheus-policy",
            "alpheus-transport",
            "alpheus-encrypted-stream",
            "alpheus-anonymous-credential",
            "alpheus-access-pass",
            "alpheus-accountable-statistics",
            "alpheus-anonymous-board",
            "alpheus-verifiable-table",
            "alpheus-pairing-table",
            "alpheus-node",
            "alpheus-input",
            "alpheus-stream-runtime",
            "alpheus-streams",
            "alpheus-pass-service",
            "alpheus-board-service",
            "alpheus-stats-service",
            "alpheus-table-service",
        ],
    ),
    (
        "alpheus-fuzz",
        &[
            "alpheus-time",
            "alpheus-bounded-influence",
            "alpheus-crypto",
            "alpheus-policy",
            "alpheus-transport",
            "alpheus-encrypted-stream",
            "alpheus-anonymous-credential",
            "alpheus-access-pass",
            "alpheus-accountable-statistics",
            "alpheus-anonymous-board",
            "alpheus-verifiable-table",
            "alpheus-pairing-table",
            "alpheus-discover",
            "alpheus-otlp",
            "alpheus-standards",
            "alpheus-input",
            "alpheus-node",
            "alpheus-stream-runtime",
            "alpheus-streams",
            "alpheus-worker",
            "alpheus-pass-service",
            "alpheus-stats-service",
            "alpheus-table-service",
        ],
    ),
    // Its own workspace: what it compares ours with is part of no other build.
    ("alpheus-bench-prio", &["alpheus-crypto", "alpheus-range-proof", "alpheus-bounded-influence"]),
    // It calls the program `alpheus`, and holds no key.
    ("alpheus-results-database", &[]),
    ("xtask", &[]),
];

const TABLES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// Arrows between our crates are the allowed ones.
pub(super) fn allowed_only(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (directory, manifest) in tree.packages() {
        let path = format!("{directory}/Cargo.toml");
        let name = package_name(&manifest);
        let Some((_, targets)) = ALLOWED.iter().find(|(crate_, _)| *crate_ == name) else {
            let what = format!("crate `{name}` has no row in xtask/src/tidy/arrows.rs");
            findings.push(Finding::new(&path, 1, what));
            continue;
        };
        for (dependency, _) in dependencies(&manifest) {
            let ours = ALLOWED.iter().any(|(crate_, _)| *crate_ == dependency);
            if ours && dependency != name && !targets.contains(&dependency.as_str()) {
                let line = line_of(tree, &path, &dependency);
                let what = format!("`{name}` must not know `{dependency}`");
                findings.push(Finding::new(&path, line, what));
            }
        }
    }
    findings
}

/// A member crate names dependencies; the workspace gives their versions.
pub(super) fn versions_in_one_place(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (directory, manifest) in tree.packages() {
        // A package that is its own workspace cannot inherit.
        if manifest.contains_key("workspace") {
            continue;
        }
        let path = format!("{directory}/Cargo.toml");
        for (dependency, value) in dependencies(&manifest) {
            let inherits = value.get("workspace").and_then(toml::Value::as_bool) == Some(true);
            if !inherits {
                let line = line_of(tree, &path, &dependency);
                let what =
                    format!("say `{dependency}.workspace = true`; versions stand in the root");
                findings.push(Finding::new(&path, line, what));
            }
        }
    }
    findings
}

pub(super) fn package_name(manifest: &toml::Table) -> String {
    let name = manifest.get("package").and_then(|p| p.get("name")).and_then(toml::Value::as_str);
    name.unwrap_or_default().to_owned()
}

/// Every dependency, of whatever kind and target, under its package's name.
fn dependencies(manifest: &toml::Table) -> Vec<(String, toml::Value)> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let per_target = targets.into_iter().flat_map(|t| t.values().filter_map(toml::Value::as_table));
    let mut found = Vec::new();
    for table in std::iter::once(manifest).chain(per_target) {
        for kind in TABLES {
            let Some(list) = table.get(*kind).and_then(toml::Value::as_table) else { continue };
            for (key, value) in list {
                let renamed = value.get("package").and_then(toml::Value::as_str);
                found.push((renamed.unwrap_or(key).to_owned(), value.clone()));
            }
        }
    }
    found
}

fn line_of(tree: &Tree, path: &str, word: &str) -> usize {
    let content = tree.files.get(path).map(String::as_str).unwrap_or_default();
    content.lines().position(|line| line.starts_with(word)).map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn refuses_an_arrow_that_points_up() {
        let tree = Tree::from([(
            "crates/policy/Cargo.toml",
            "[package]\nname = \"alpheus-policy\"\n[dev-dependencies]\nalpheus-crypto.workspace = true\n",
        )]);
        let expected =
            "crates/policy/Cargo.toml:4: `alpheus-policy` must not know `alpheus-crypto`";
        assert_eq!(messages(&allowed_only(&tree)), [expected]);
    }

    #[test]
    fn refuses_an_arrow_behind_another_name_or_a_target() {
        let tree = Tree::from([(
            "crates/crypto/Cargo.toml",
            "[package]\nname = \"alpheus-crypto\"\n[target.'cfg(unix)'.dependencies]\np = { package = \"alpheus-policy\", workspace = true }\n",
        )]);
        assert_eq!(allowed_only(&tree).len(), 1);
    }

    #[test]
    fn refuses_a_crate_that_nobody_placed() {
        let tree = Tree::from([("crates/new/Cargo.toml", "[package]\nname = \"alpheus-new\"\n")]);
        assert_eq!(allowed_only(&tree).len(), 1);
    }

    #[test]
    fn lets_allowed_arrows_and_a_crate_testing_itself_pass() {
        let tree = Tree::from([(
            "crates/encrypted-stream/Cargo.toml",
            "[package]\nname = \"alpheus-encrypted-stream\"\n[dependencies]\nalpheus-crypto.workspace = true\nserde.workspace = true\n[dev-dependencies]\nalpheus-encrypted-stream.workspace = true\n",
        )]);
        assert_eq!(allowed_only(&tree), []);
        assert_eq!(versions_in_one_place(&tree), []);
    }

    #[test]
    fn refuses_a_version_outside_the_root() {
        let tree = Tree::from([(
            "crates/policy/Cargo.toml",
            "[package]\nname = \"alpheus-policy\"\n[dependencies]\nserde = \"1\"\ntoml = { version = \"1\" }\n",
        )]);
        assert_eq!(versions_in_one_place(&tree).len(), 2);
    }
}
