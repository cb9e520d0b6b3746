//! Selects streams by their public metadata.

use super::error::RuleError;
use super::finding::Finding;
use crate::query::{Comparison, Condition, Word, nearest};
use crate::schema::{MetadataAttribute, Schema};
use crate::selection::{Selection, SelectionStep};

/// Names in conditions and groups that the schema does not have.
pub(super) fn unknown_names(
    filter: Option<&Condition>,
    groups: &[Word],
    schema: &Schema,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(condition) = filter {
        check(condition, schema, &mut findings);
    }
    for word in groups {
        if let Err(finding) = metadata(word, schema) {
            findings.push(*finding);
        }
    }
    findings
}

fn metadata<'a>(word: &Word, schema: &'a Schema) -> Result<&'a MetadataAttribute, Box<Finding>> {
    let names = || schema.metadata.iter().map(|known| known.name.as_str());
    schema.metadata.iter().find(|known| known.name == word.text).ok_or_else(|| {
        let (known, text) = (names().collect::<Vec<_>>().join(", "), word.text.clone());
        let rule = match schema.position(&word.text) {
            Some(_) => RuleError::IsData { word: text, known },
            None => {
                let (schema, suggestion) = (schema.name.clone(), nearest(&word.text, names()));
                RuleError::UnknownMetadata { word: text, schema, suggestion, known }
            }
        };
        Box::new(Finding::plain(word.at, rule))
    })
}

fn check(condition: &Condition, schema: &Schema, findings: &mut Vec<Finding>) {
    match condition {
        Condition::And(links) | Condition::Or(links) => {
            links.iter().for_each(|link| check(link, schema, findings));
        }
        Condition::Not(inner) => check(inner, schema, findings),
        Condition::Compare { attribute, comparison, value } => match metadata(attribute, schema) {
            Ok(known) if matches!(comparison, Comparison::Equal | Comparison::NotEqual) => {
                findings.extend(unknown_symbol(known, value));
            }
            Ok(_) => {}
            Err(finding) => findings.push(*finding),
        },
        Condition::In { attribute, values, .. } => match metadata(attribute, schema) {
            Ok(known) => {
                findings.extend(values.iter().filter_map(|value| unknown_symbol(known, value)))
            }
            Err(finding) => findings.push(*finding),
        },
    }
}

fn unknown_symbol(metadata: &MetadataAttribute, value: &Word) -> Option<Finding> {
    if metadata.symbols.is_empty() || metadata.symbols.contains(&value.text) {
        return None;
    }
    let rule = RuleError::UnknownSymbol {
        metadata: metadata.name.clone(),
        word: value.text.clone(),
        suggestion: nearest(&value.text, metadata.symbols.iter().map(String::as_str)),
        known: metadata.symbols.join(", "),
    };
    Some(Finding::plain(value.at, rule))
}

/// The condition as a plan states it.
#[must_use]
pub fn selection(condition: &Condition) -> Selection {
    let mut steps = Vec::new();
    add_steps(condition, &mut steps);
    Selection { steps }
}

fn add_steps(condition: &Condition, steps: &mut Vec<SelectionStep>) {
    let many = |links: &[Condition]| u32::try_from(links.len()).unwrap_or(u32::MAX);
    let step = match condition {
        Condition::And(links) => {
            links.iter().for_each(|link| add_steps(link, steps));
            SelectionStep::All(many(links))
        }
        Condition::Or(links) => {
            links.iter().for_each(|link| add_steps(link, steps));
            SelectionStep::Any(many(links))
        }
        Condition::Not(inner) => {
            add_steps(inner, steps);
            SelectionStep::Not
        }
        Condition::Compare { attribute, comparison, value } => SelectionStep::Compare {
            attribute: attribute.text.clone(),
            comparison: *comparison,
            value: value.text.clone(),
        },
        Condition::In { attribute, values, negated } => SelectionStep::In {
            attribute: attribute.text.clone(),
            values: values.iter().map(|value| value.text.clone()).collect(),
            negated: *negated,
        },
    };
    steps.push(step);
}
