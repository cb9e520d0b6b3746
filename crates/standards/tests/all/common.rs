//! What the tests share.

use alpheus_policy::policy::{Policies, ResolvedPolicy};
use alpheus_policy::schema::{OptionKind, PolicyOption, Schema};
use alpheus_standards::inventory::Entry;
use alpheus_standards::tree::Tree;
use alpheus_standards::{Import, TableFiles, import, readers};
use std::collections::BTreeSet;

/// The paths of all leaves of a contract.
pub(crate) fn leaves(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    walk(&readers::opened(Tree::parse(text).unwrap()), String::new(), &mut found);
    found
}

fn walk(tree: &Tree, path: String, found: &mut BTreeSet<String>) {
    match tree {
        Tree::List(items) if !items.is_empty() => {
            for (place, item) in items.iter().enumerate() {
                walk(item, format!("{path}[{place}]"), found);
            }
        }
        Tree::Map(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                let plain =
                    key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
                let below = match (plain && !key.is_empty(), path.is_empty()) {
                    (true, true) => key.clone(),
                    (true, false) => format!("{path}.{key}"),
                    (false, _) => format!("{path}[{}]", serde_json::to_string(key).unwrap()),
                };
                walk(value, below, found);
            }
        }
        _ => assert!(found.insert(path)),
    }
}

/// Each leaf is in exactly one list, no path is twice in either, and each has a reason.
pub(crate) fn is_complete(text: &str, import: &Import) {
    let (carried, left) = (&import.report.carried, &import.report.not_carried);
    let paths = |list: &[Entry]| list.iter().map(|e| e.path.clone()).collect::<BTreeSet<_>>();
    let (one, other) = (paths(carried), paths(left));
    assert_eq!(one.len() + other.len(), carried.len() + left.len(), "a path stands twice");
    let both: Vec<_> = one.intersection(&other).collect();
    assert!(both.is_empty(), "in both lists: {both:?}");
    let missing: Vec<_> =
        leaves(text).into_iter().filter(|p| !one.contains(p) && !other.contains(p)).collect();
    assert!(missing.is_empty(), "in neither list: {missing:?}");
    assert!(carried.iter().chain(left).all(|entry| !entry.why.is_empty()));
}

/// The schema and policies of a table, as their own parsers read them.
pub(crate) fn parsed(table: &TableFiles) -> (Schema, Policies) {
    let schema = Schema::from_yaml(&table.schema).unwrap();
    let policies = Policies::from_yaml(&table.policies, &schema).unwrap();
    (schema, policies)
}

/// Imports a contract and checks what holds of every import.
pub(crate) fn imported(text: &str) -> Import {
    let import = import(text, None).unwrap();
    is_complete(text, &import);
    for table in &import.tables {
        parsed(table);
    }
    import
}

/// The options that release an attribute.
pub(crate) fn offers<'a>(schema: &'a Schema, attribute: &str) -> Vec<&'a PolicyOption> {
    let Some(position) = schema.position(attribute) else { return Vec::new() };
    let all = schema.options.iter().filter(|option| option.kind != OptionKind::Private);
    all.filter(|option| option.attributes.contains(&position)).collect()
}

/// The policy of an owner who chose nothing.
pub(crate) fn default(policies: &Policies) -> &ResolvedPolicy {
    policies.of_owner("anybody")
}

/// The reason for the part at `path`, and whether it is carried.
pub(crate) fn verdict<'a>(import: &'a Import, path: &str) -> (bool, &'a str) {
    let find =
        |list: &'a [Entry]| list.iter().find(|entry| entry.path == path).map(|e| e.why.as_str());
    match (find(&import.report.carried), find(&import.report.not_carried)) {
        (Some(why), None) => (true, why),
        (None, Some(why)) => (false, why),
        other => panic!("{path}: {other:?}"),
    }
}
