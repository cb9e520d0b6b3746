//! Who connects to whom: each connection to another process is made in one place, and a test shows
//! that it demands the role at the other end.

use super::{Finding, rust};
use crate::tree::Tree;

/// What connects to another process. A `Probe` is made by a client alone, for the same role.
const CONNECTORS: &[&str] = &[
    "HttpClient::anonymous(",
    "HttpClient::identified(",
    "BlockingClient::new(",
    "ClientConfig::builder",
    "TlsConnector::from(",
];
/// The test in which every caller meets every other role.
const TEST: &str = "crates/alpheus/tests/processes/roles.rs";

/// Connections to other processes are made by `links.rs` of the crate, so that its callers cannot
/// forget the role. A provider of logins has no role.
fn may_connect(path: &str) -> bool {
    path.starts_with("crates/node/src/network/")
        || path.ends_with("/src/links.rs")
        || path == "crates/pass-service/src/issuer/oidc.rs"
}

/// Product code connects only through `links.rs`.
pub(super) fn connections_stand_in_links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (directory, _) in tree.packages().filter(|(path, _)| path.starts_with("crates/")) {
        for (path, content) in rust::shipped_files(tree, directory) {
            for (line, code) in rust::shipped_code(content) {
                let connector = CONNECTORS.iter().find(|connector| code.contains(*connector));
                if let Some(connector) = connector.filter(|_| !may_connect(path)) {
                    let name = connector.trim_end_matches('(');
                    let what = format!("`{name}` connects: do it in the crate's links.rs");
                    findings.push(Finding::new(path, line, what));
                }
            }
        }
    }
    findings
}

/// Every function of a `links.rs` is in the test of roles.
pub(super) fn links_are_tested(tree: &Tree) -> Vec<Finding> {
    let test = rust::code(tree.files.get(TEST).map_or("", String::as_str));
    let links = tree.ending("/src/links.rs");
    let mut findings = Vec::new();
    for (path, content) in links {
        let used = uses(&test, path);
        for (line, code) in rust::shipped_code(content) {
            let name = code.strip_prefix("pub fn ").and_then(rust::identifier);
            let is_tested =
                |name: &str| used.iter().any(|module| test.contains(&format!("{module}::{name}(")));
            if let Some(name) = name.filter(|name| !is_tested(name)) {
                findings.push(Finding::new(path, line, format!("`{name}` is not in {TEST}")));
            }
        }
    }
    findings
}

/// What the test calls this `links.rs`: its path, or the name under which it is imported.
fn uses(test: &str, path: &str) -> Vec<String> {
    let directory = path.trim_start_matches("crates/").trim_end_matches("/src/links.rs");
    let module = format!("alpheus_{}::links", directory.replace('-', "_"));
    let import = format!("use {module} as ");
    let alias = test.lines().find_map(|line| line.strip_prefix(&import));
    std::iter::once(module).chain(alias.map(|name| name.trim_end_matches(';').to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    const MANIFEST: (&str, &str) =
        ("crates/pass-service/Cargo.toml", "[package]\nname = \"alpheus-pass-service\"\n");

    #[test]
    fn refuses_a_connection_outside_of_links_but_not_in_tests() {
        let call = "fn f() {\n    HttpClient::anonymous(base, peer, None);\n}\n";
        let tests = format!("#[cfg(test)]\nmod tests {{\n    {call}}}\n");
        let (links, verifier) = (format!("{call}{tests}"), format!("{tests}{call}"));
        let tree = Tree::from([
            MANIFEST,
            ("crates/pass-service/src/links.rs", links.as_str()),
            ("crates/pass-service/src/verifier.rs", verifier.as_str()),
            ("crates/pass-service/tests/all.rs", call),
        ]);
        let line = verifier.lines().count() - 1;
        let expected = format!(
            "crates/pass-service/src/verifier.rs:{line}: `HttpClient::anonymous` connects: do it in the crate's links.rs"
        );
        assert_eq!(messages(&connections_stand_in_links(&tree)), [expected]);
    }

    #[test]
    fn refuses_tls_that_is_set_up_by_hand() {
        let code = "fn f() {\n    ClientConfig::builder_with_provider(p);\n    TlsConnector::from(c);\n}\n";
        let tree = Tree::from([
            MANIFEST,
            ("crates/pass-service/src/gate.rs", code),
            ("crates/node/src/network/connector.rs", code),
        ]);
        assert_eq!(connections_stand_in_links(&tree).len(), 2);
    }

    #[test]
    fn refuses_a_link_that_the_test_of_roles_leaves_out() {
        let links =
            "pub fn issuer(\n) {}\npub fn gateway() {}\npub fn verifier() {}\nfn own() {}\n";
        let test = "use alpheus_pass_service::links as pass;\n// pass::gateway(\nfn t() {\n    pass::issuer(base);\n    alpheus_pass_service::links::verifier(base);\n    other::gateway();\n}\n";
        let tree = Tree::from([("crates/pass-service/src/links.rs", links), (TEST, test)]);
        let expected = format!("crates/pass-service/src/links.rs:3: `gateway` is not in {TEST}");
        assert_eq!(messages(&links_are_tested(&tree)), [expected]);
    }
}
