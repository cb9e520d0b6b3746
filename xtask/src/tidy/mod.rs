//! The house rules that the compiler does not know, each a function from the
//! tree to what breaks it.

mod arrows;
mod documents;
mod exceptions;
mod licences;
mod purity;
mod reach;
mod source;
mod text;

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
    documents::every_crate_explains_itself,
    documents::links_lead_somewhere,
    documents::readme_is_short,
    exceptions::still_needed,
    purity::no_ambient_input,
    reach::no_dead_file,
    reach::fuzz_targets_are_tested,
    source::first_line_says_what_for,
    source::files_are_short,
    source::functions_are_short,
    source::exceptions_carry_reasons,
    text::labels_stand_once,
    text::no_leftovers,
    text::nothing_of_this_machine,
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
    Err(format!("{}\ntidy: {} to mend", lines.join("\n"), lines.len()))
}

#[cfg(test)]
fn said(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}
