//! What things may be called: limits are `MAX_…` and `MIN_…`, errors end in `Error`, a type is named
//! for the thing that it is, and a module for what it holds.

use super::{Finding, not_yet, rust};
use crate::tree::Tree;

/// A first word of a constant's name, and what is written in its place.
const LIMITS: &[(&str, &str)] = &[
    ("MOST", "MAX"),
    ("LARGEST", "MAX"),
    ("LEAST", "MIN"),
    ("FEWEST", "MIN"),
    ("SMALLEST", "MIN"),
];

/// Question words, and participles that do not end in `ed` or `ing`. They name no thing.
const NOT_THINGS: &str = "\
    What Which Who Whose How Why Where When Way Ways Place Places \
    Said Told Untold Heard Known Unknown Found Meant Seen Unseen Given Shown Done Taken Held Kept \
    Withheld Made Sent Begun Ran Bought Broken Brought Built Caught Chosen Dealt Drawn Overdrawn \
    Withdrawn Driven Forgotten Frozen Gone Hidden Learnt Lent Lost Met Paid Proven Risen Sold \
    Sought Spent Unspent Spoken Stolen Stood Struck Sworn Thrown Torn Understood Woken Worn \
    Written Unwritten Rewritten";

/// Nouns that end in `ed` or `ing`.
const NOUNS: &str = "\
    Binding Blinding Closing Dealing Encoding Ending Feed Finding Keymaking Listing Mapping Need \
    Opening Packing Pairing Reading Recording Ring Sampling Seed Setting Sighting Tiling Timing \
    Understanding";

/// Types that describe the type that they wrap, such as `Signed<T>`. The last two are of a library's
/// trait.
const WRAPPERS: &str = "Endorsed Signed Verified Compressed Decompressed";

/// Constants, types and errors are named as the rest of the field names them.
pub(super) fn names_say_the_thing(tree: &Tree) -> Vec<Finding> {
    let files = tree.ending(".rs");
    let modules = tree.ending(".rs").filter_map(|(path, _)| module_name(path));
    let findings =
        files.flat_map(|(path, content)| in_file(path, content)).chain(modules).collect();
    not_yet::without(tree, not_yet::NAMES, findings)
}

fn in_file(path: &str, content: &str) -> Vec<Finding> {
    let code = rust::code(content);
    let mut findings = Vec::new();
    for (at, line) in code.lines().enumerate() {
        let said = constant(line).or_else(|| type_name(line));
        findings.extend(said.map(|what| Finding::new(path, at + 1, what)));
    }
    findings.extend(errors(&code).into_iter().map(|(line, name)| {
        Finding::new(path, line, format!("`{name}` is an error: end its name in `Error`"))
    }));
    findings
}

/// A limit that is called MOST and the like.
fn constant(line: &str) -> Option<String> {
    let item = without_visibility(line.trim_start());
    let rest = ["const ", "static "].iter().find_map(|keyword| item.strip_prefix(keyword))?;
    let name = rust::identifier(rest)?;
    let first = name.split('_').next()?;
    let (_, instead) = LIMITS.iter().find(|(word, _)| *word == first)?;
    Some(format!("constant `{name}`: say `{instead}…`"))
}

/// A type that is called by a participle or a question word.
fn type_name(line: &str) -> Option<String> {
    let item = without_visibility(line.trim_start());
    let rest = ["struct ", "enum ", "type ", "trait ", "union "]
        .iter()
        .find_map(|keyword| item.strip_prefix(keyword))?;
    let name = rust::identifier(rest)?;
    let is_wrapper = is_in(WRAPPERS, name);
    (names_no_thing(name) && !is_wrapper)
        .then(|| format!("type `{name}`: name the thing, not what happened to it"))
}

/// A module that is called by a participle or a question word. `a/mod.rs` is called `a`.
fn module_name(path: &str) -> Option<Finding> {
    let (_, inside) = path.rsplit_once("/src/")?;
    let module = inside.strip_suffix(".rs")?.trim_end_matches("/mod");
    let name = module.rsplit('/').next()?;
    // Of several words, the last is a noun.
    let first = name.chars().next().filter(|_| !name.contains('_'))?;
    let as_type: String = first.to_uppercase().chain(name.chars().skip(1)).collect();
    let what = || format!("module `{name}`: name it for the thing that it holds");
    names_no_thing(&as_type).then(|| Finding::new(path, 1, what()))
}

/// Whether a name is one participle or question word. Of several words, the last is a noun.
fn names_no_thing(name: &str) -> bool {
    let is_one_word = !name.chars().skip(1).any(char::is_uppercase);
    let is_participle = ["ed", "ing"].iter().any(|ending| name.ends_with(ending));
    is_in(NOT_THINGS, name) || (is_one_word && is_participle && !is_in(NOUNS, name))
}

fn is_in(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|word| word == name)
}

fn without_visibility(item: &str) -> &str {
    let Some(rest) = item.strip_prefix("pub") else { return item };
    let rest =
        if rest.starts_with('(') { rest.split_once(')').map_or("", |(_, r)| r) } else { rest };
    rest.strip_prefix(' ').unwrap_or(item)
}

/// Errors by another name: types that derive or implement `Error`.
fn errors(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut derives = false;
    for (at, line) in code.lines().enumerate() {
        let line = line.trim();
        // `Error` itself, or thiserror's: the last name of a path.
        let named = |text: &str| {
            text.split([',', '(', ')', ' ']).any(|word| word.rsplit("::").next() == Some("Error"))
        };
        derives |= line.starts_with("#[derive(") && named(line);
        let item = without_visibility(line);
        let declared = ["struct ", "enum "].iter().find_map(|keyword| item.strip_prefix(keyword));
        let name = match declared {
            Some(rest) => rust::identifier(rest).filter(|_| std::mem::take(&mut derives)),
            None => implementor(line),
        };
        found.extend(name.filter(|n| !n.ends_with("Error")).map(|n| (at + 1, n.to_owned())));
    }
    found
}

/// `X` of `impl Error for X`.
fn implementor(line: &str) -> Option<&str> {
    let (trait_, target) = line.strip_prefix("impl")?.split_once(" for ")?;
    let trait_ = trait_.rsplit([' ', '>']).next()?;
    let of_error = matches!(trait_, "Error" | "std::error::Error" | "core::error::Error");
    of_error.then(|| rust::identifier(target.rsplit("::").next()?)).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    fn lines(content: &str) -> Vec<String> {
        messages(&in_file("a.rs", content))
    }

    #[test]
    fn refuses_limits_by_other_names() {
        let content = "pub(crate) const MOST_ROWS: u8 = 1;\nconst LEAST: u8 = 1;\nconst ALMOST: u8 = 1;\nconst MAX: u8 = 1; // const MOST\n";
        let expected =
            ["a.rs:1: constant `MOST_ROWS`: say `MAX…`", "a.rs:2: constant `LEAST`: say `MIN…`"];
        assert_eq!(lines(content), expected);
    }

    #[test]
    fn refuses_types_that_name_no_thing() {
        let content =
            "pub struct Seen(u8);\npub(super) enum What {}\n    struct Known;\nstruct Sighting;\n";
        let expected = [
            "a.rs:1: type `Seen`: name the thing, not what happened to it",
            "a.rs:2: type `What`: name the thing, not what happened to it",
            "a.rs:3: type `Known`: name the thing, not what happened to it",
        ];
        assert_eq!(lines(content), expected);
    }

    #[test]
    fn refuses_types_that_are_one_participle() {
        let content = "struct Solved;\nenum Running<'a> {}\ntype Spent = u8;\npub(crate) trait Committing {}\n\
                       struct Signed<T>(T);\nstruct Opening;\nstruct SolvedNumber;\nstruct HTTPServed;\nconst USED: u8 = 1;\n\
                       enum State { Running, Solved }\nimpl Solved {}\n";
        let expected = ["Solved", "Running", "Spent", "Committing"]
            .map(|name| format!("type `{name}`: name the thing, not what happened to it"));
        let said: Vec<String> =
            in_file("a.rs", content).into_iter().map(|finding| finding.what).collect();
        assert_eq!(said, expected);
    }

    #[test]
    fn refuses_modules_that_name_no_thing() {
        let tree = Tree::from([
            ("crates/a/src/revoked.rs", ""),
            ("crates/a/src/whose.rs", ""),
            ("crates/a/src/deep/signed.rs", ""),
            ("crates/a/src/sealed/mod.rs", ""),
            ("crates/a/src/opening.rs", ""),
            ("crates/a/src/revoked_certificates.rs", ""),
            ("crates/a/src/lib.rs", ""),
            ("crates/a/src/resolve.rs", ""),
            ("crates/a/tests/all/revoked.rs", ""),
        ]);
        let found = names_say_the_thing(&tree);
        let expected = [
            "crates/a/src/deep/signed.rs:1: module `signed`: name it for the thing that it holds",
            "crates/a/src/revoked.rs:1: module `revoked`: name it for the thing that it holds",
            "crates/a/src/sealed/mod.rs:1: module `sealed`: name it for the thing that it holds",
            "crates/a/src/whose.rs:1: module `whose`: name it for the thing that it holds",
        ];
        assert_eq!(messages(&found), expected);
    }

    #[test]
    fn no_word_is_in_two_lists_or_twice() {
        let mut words: Vec<&str> =
            [NOT_THINGS, NOUNS, WRAPPERS].into_iter().flat_map(str::split_whitespace).collect();
        words.sort_unstable();
        assert!(words.is_sorted_by(|one, next| one != next), "{words:?}");
    }

    #[test]
    fn refuses_errors_by_other_names() {
        let content = "#[derive(Debug, thiserror::Error)]\n#[error(\"x\")]\npub struct BadShape;\n#[derive(Error)]\nenum Fault {}\nimpl std::error::Error for crate::Damaged {}\nimpl<T> Error for Lost<T> {}\n#[derive(Debug)]\nstruct Fine;\n#[derive(Error)]\nenum FineError {}\n";
        let names = ["BadShape", "Fault", "Damaged", "Lost"];
        let found = errors(&rust::code(content));
        assert_eq!(found.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), names);
    }
}
