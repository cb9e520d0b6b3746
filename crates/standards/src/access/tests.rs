//! Lists of many tools, and what their words allow.

use super::*;

fn found(yaml: &str) -> Vec<Vec<String>> {
    let tree = Tree::parse(yaml).unwrap();
    let names = |list: ReaderList| list.names.into_iter().map(|name| name.value).collect();
    lists(&Cursor::root(&tree)).into_iter().map(names).collect()
}

/// Accesses that let nobody read.
const NO_READING: &[&str] = &[
    "write",
    "WRITE_ONLY",
    "insert",
    "none",
    "denied",
    "no access",
    "[write]",
    "update",
    "delete",
    "truncate",
    "modify",
    "upsert",
    "'insert, update and delete'",
    "OWNERSHIP",
    "revoked",
    "forbidden",
    "blocked",
    "disabled",
    "not allowed",
    "no read",
    "read denied",
    "'read: no'",
    "false",
    "{read: false}",
    "{write: true}",
];

#[test]
fn each_access_but_writing_reads() {
    for access in [
        "SELECT",
        "READ_ONLY",
        "admin",
        "full",
        "ReadWrite",
        "rw",
        "'Read, Write'",
        "'read, no write'",
        "[write, query]",
        "{read: true, write: true}",
        "lesen",
        "'no idea'",
        "null",
        "{}",
    ] {
        let yaml = format!("roles: [{{ role: x, access: {access} }}]");
        assert_eq!(found(&yaml), [["x"]], "{access}");
    }
    for access in NO_READING {
        let yaml = format!("roles: [{{ role: x, access: {access} }}]");
        assert_eq!(found(&yaml), [[""; 0]], "{access}");
    }
}

#[test]
fn flags_of_a_reader_count() {
    for (yaml, names) in [
        ("roles: [{group: ops, read: false, write: true}]", &[][..]),
        ("roles: [{group: ops, write: true}, {group: b, canRead: true}]", &["b"]),
        ("roles: [{role: x, effect: deny}, {role: x}, {role: y, effect: Allow}]", &["y"]),
        ("roles: [{role: x, action: write}, {role: x, effect: allow, action: read}]", &["x"]),
        ("acl: {a: {read: true}, b: {read: false}, c: [read, write], d: admin}", &["a", "c", "d"]),
        ("acl: {read: true, write: false, select: none}", &[]),
        ("acl: {hr_team: read, admin: read, etl: {write: true}}", &["hr_team", "admin"]),
        ("roles: [{user: alice, role: viewer}, {user: bob, role: writer}]", &["alice"]),
        ("accessControl: {allowedGroups: [a], deniedGroups: [c], writeRoles: [etl]}", &["a"]),
        ("accessControl: {groups: [a, c], denyList: [c], notAllowedUsers: [d]}", &["a"]),
        ("accessControl: {groups: [a], effect: deny}", &[]),
        ("x-security: {readers: [a, c], deniedGroups: [{group: c}]}", &["a"]),
        ("x-security: {denyList: [c]}", &[]),
        ("grants: {select: [a], update: [b], delete: [c]}", &["a"]),
        ("grants: {select: reader, insert: x}", &["reader"]),
    ] {
        assert_eq!(found(yaml), [names], "{yaml}");
    }
}

#[test]
fn lists_of_many_tools_are_found() {
    for (yaml, names) in [
        ("config: {grants: {select: [a, b], insert: [c]}}", &["a", "b"][..]),
        ("config: {+grants: {+select: a}}", &["a"]),
        ("x-security: {bronze: {allowedGroups: [a]}}", &["a"]),
        ("accessControl: {readers: [a], writers: [b]}", &["a"]),
        ("permissions: {a: read, b: write}", &["a"]),
        ("permissions: [{group: a, description: all of them}]", &["a"]),
        ("access_roles: a", &["a"]),
        ("roles: [{role: [l], access: read}, {role: null}, {role: {n: m}}]", &[]),
        ("customProperties: [{property: allowedGroups, value: [a]}]", &["a"]),
        ("meta: [{key: denyList, value: [a]}, {name: readers, value: [a, b]}]", &["b"]),
        ("allowedGroups: []", &[]),
        ("readers: []", &[]),
    ] {
        assert_eq!(found(yaml), [names], "{yaml}");
    }
    for key in [
        "x-allowed-groups",
        "x-roles",
        "visibleTo",
        "sharedWith",
        "accessibleBy",
        "consumers",
        "allowedReaders",
        "authorizedTeams",
        "authorised_users",
        "data_readers",
    ] {
        assert_eq!(found(&format!("{key}: [a]")), [["a"]], "{key}");
    }
    for none in [
        "roles: []",
        "grants: {}",
        "roles: null",
        "properties: {readers: {type: int}}",
        "a: readers",
        "allowedValues: [a]",
        "customProperties: [{property: unit, value: readers}]",
    ] {
        assert!(found(none).is_empty(), "{none}");
    }
}
