//! Selects streams by their public metadata.

use super::error::RuleError;
use super::finding::Finding;
use crate::catalog::CatalogStream;
use crate::query::{Comparison, Condition, Decimal, Word, nearest};
use crate::schema::{MetadataAttribute, Schema};
use std::cmp::Ordering;

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
        let rule = RuleError::UnknownMetadata {
            word: word.text.clone(),
            schema: schema.name.clone(),
            suggestion: nearest(&word.text, names()),
            known: names().collect::<Vec<_>>().join(", "),
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

/// Whether a stream matches. As in SQL, a comparison with a missing value is neither true
/// nor false, and only true matches.
pub(super) fn fits(condition: &Condition, stream: &CatalogStream) -> bool {
    truth(condition, stream) == Some(true)
}

fn truth(condition: &Condition, stream: &CatalogStream) -> Option<bool> {
    match condition {
        Condition::And(links) => all(links.iter().map(|link| truth(link, stream))),
        Condition::Or(links) => {
            all(links.iter().map(|link| truth(link, stream).map(|t| !t))).map(|t| !t)
        }
        Condition::Not(inner) => truth(inner, stream).map(|truth| !truth),
        Condition::Compare { attribute, comparison, value } => {
            let ordering = compare(stream.value(&attribute.text)?, &value.text);
            Some(match comparison {
                Comparison::Equal => ordering == Ordering::Equal,
                Comparison::NotEqual => ordering != Ordering::Equal,
                Comparison::Less => ordering == Ordering::Less,
                Comparison::LessOrEqual => ordering != Ordering::Greater,
                Comparison::Greater => ordering == Ordering::Greater,
                Comparison::GreaterOrEqual => ordering != Ordering::Less,
            })
        }
        Condition::In { attribute, values, negated } => {
            let own = stream.value(&attribute.text)?;
            Some(
                values.iter().any(|value| compare(own, &value.text) == Ordering::Equal) != *negated,
            )
        }
    }
}

/// False if any is false, else unknown if any is unknown, else true.
fn all(mut truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    truths
        .try_fold(Some(true), |sofar, truth| match truth {
            Some(false) => Err(()),
            None => Ok(None),
            Some(true) => Ok(sofar),
        })
        .unwrap_or(Some(false))
}

/// Compares numbers if both are numbers, else text.
fn compare(one: &str, other: &str) -> Ordering {
    match (Decimal::parse(one), Decimal::parse(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one.cmp(other),
    }
}
