//! The house rules that the compiler does not know, each a function from the
//! tree to what breaks it.

mod arrows;
mod clauses;
mod documents;
mod exceptions;
mod licences;
mod map;
mod messages;
mod modules;
mod names;
mod not_yet;
mod purity;
mod reach;
mod roles;
mod rust;
mod sentences;
mod source;
mod text;
mod words;

use crate::tree::Tree;
use std::fmt;
use std::path::Path;

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: &[Rule] = &[
    arrows::allowed_only,
    arrows::versions_in_one_place,
    clauses::statements_have_subjects,
    documents::every_crate_explains_itself,
    documents::links_lead_somewhere,
    documents::readme_is_short,
    exceptions::still_needed,
    map::steps_lead_to_code,
    modules::crates_are_small,
    modules::no_import_cycle,
    names::names_say_the_thing,
    purity::no_ambient_input,
    messages::are_whole_lines,
    reach::no_dead_file,
    reach::examples_are_tested,
    reach::targets_are_named,
    reach::fuzz_targets_are_tested,
    roles::connections_stand_in_links,
    roles::links_are_tested,
    sentences::sentences_are_short,
    source::first_line_says_what_for,
    source::files_are_short,
    source::functions_are_short,
    source::exceptions_carry_reasons,
    text::labels_stand_once,
    text::no_leftovers,
    text::nothing_of_this_machine,
    words::plain_words,
];

/// Applies every rule to the tree at `root`.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let tree = Tree::load(root)?;
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    findings.extend(licences::allowed_only(root)?);
    findings.sort();
    findings.dedup();
    if findings.is_empty() {
        return Ok(format!("tidy: {} files keep {} rules", tree.files.len(), RULES.len() + 1));
    }
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    Err(format!("{}\ntidy: {} to fix", lines.join("\n"), lines.len()))
}

#[cfg(test)]
fn messages(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}
