//! A refusal with the file that decided: which line of the policies says what the query breaks, or
//! leaves it open.

use alpheus_node::failure::Failure;
use alpheus_node::files::read_text;
use alpheus_policy::document::{Node, Value, parse_duration};
use alpheus_policy::planner::{ExclusionError, PlanningError, RuleError};
use alpheus_policy::schema::{PolicyOption, Schema};
use alpheus_stream_runtime::query_planner;
use alpheus_time::Span;
use std::path::Path;

/// Why a query was refused, in words, with the line of the policies that decided.
#[must_use]
pub fn failure(
    refusal: &PlanningError,
    (text, place): (&str, &str),
    policies: Option<&Path>,
    schema: Option<&Schema>,
) -> Failure {
    let failure = query_planner::failure(refusal, text, place, policies.is_some());
    let decided =
        policies.zip(schema).and_then(|(path, schema)| decided(refusal, text, path, schema));
    decided.into_iter().fold(failure, Failure::with_help)
}

/// Whether a query may be allowed over another number of owners.
#[must_use]
pub fn counts_owners(refusal: &PlanningError) -> bool {
    refusal.violations.iter().any(|violation| match &violation.rule {
        RuleError::Excluded { exclusion, .. } => matches!(
            exclusion,
            ExclusionError::TooFew { .. }
                | ExclusionError::Brittle { .. }
                | ExclusionError::BeyondMaximum { .. }
                | ExclusionError::BeyondCapacity { .. }
        ),
        rule => matches!(rule, RuleError::OutOfReach { .. } | RuleError::NoMasks { .. }),
    })
}

/// What a policy demands.
#[derive(Clone, Copy)]
enum Demand {
    Clients(u32),
    Window(Span),
}

fn demand(refusal: &PlanningError) -> Option<Demand> {
    refusal.violations.iter().find_map(|violation| match &violation.rule {
        RuleError::Excluded { exclusion, .. } => match exclusion {
            ExclusionError::TooFew { needed: least, .. }
            | ExclusionError::MaximumTooLow { least, .. } => Some(Demand::Clients(*least)),
            ExclusionError::Window { allowed, .. } => Some(Demand::Window(*allowed)),
            _ => None,
        },
        _ => None,
    })
}

fn decided(refusal: &PlanningError, query: &str, path: &Path, schema: &Schema) -> Option<String> {
    let demand = demand(refusal)?;
    let root = Node::from_yaml(&read_text(path).ok()?).ok()?;
    let mut choices = Vec::new();
    choices_in("", &root, &mut choices);
    // What is chosen for other attributes does not count.
    let words: Vec<&str> =
        query.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))).collect();
    choices.retain(|(attribute, _)| *attribute == "*" || words.contains(attribute));
    let file = path.file_name()?.to_string_lossy();
    choices.into_iter().find_map(|(_, choice)| {
        let (name, stated) = stated(choice, demand.key())?;
        let option = schema.options.iter().find(|option| option.name == name)?;
        // Its path may have an owner's name, so the line is enough.
        let line = choice.at.line.map_or_else(String::new, |(line, _)| format!(", line {line},"));
        demand.words(option, stated).map(|said| format!("{file}{line} {said}"))
    })
}

/// Every choice in a file of policies, an option's name or a map with it, and the attribute that it is for.
fn choices_in<'a>(key: &'a str, node: &'a Node, found: &mut Vec<(&'a str, &'a Node)>) {
    match &node.value {
        Value::Map(entries) if entries.iter().any(|(key, _)| key == "option") => {
            found.push((key, node));
        }
        Value::Map(entries) => {
            entries.iter().for_each(|(key, own)| choices_in(key, own, found));
        }
        Value::List(items) => items.iter().for_each(|item| choices_in(key, item, found)),
        Value::Scalar { .. } => found.push((key, node)),
        Value::Null => {}
    }
}

/// The option of a choice, and what the choice states for a key.
fn stated<'a>(choice: &'a Node, key: &str) -> Option<(&'a str, Option<&'a str>)> {
    let text = |node: &'a Node| match &node.value {
        Value::Scalar { text, .. } => Some(text.as_str()),
        _ => None,
    };
    let Value::Map(entries) = &choice.value else { return Some((text(choice)?, None)) };
    let of = |key: &str| entries.iter().find(|(own, _)| own == key).map(|(_, node)| node);
    Some((text(of("option")?)?, of(key).and_then(text)))
}

impl Demand {
    fn key(self) -> &'static str {
        match self {
            Demand::Clients(_) => "clients",
            Demand::Window(_) => "window",
        }
    }

    /// How a choice comes to demand this, if it does.
    fn words(self, option: &PolicyOption, stated: Option<&str>) -> Option<String> {
        let (key, name) = (self.key(), &option.name);
        let (applies, others): (String, Vec<String>) = match self {
            Demand::Clients(least) => {
                let named = |text: &str| {
                    let own = option.named_clients.iter().find(|(name, _)| name == text);
                    own.map(|(_, least)| *least).or_else(|| text.parse().ok())
                };
                let usual = option.clients.last().copied();
                (stated.map_or(usual, named)? == least).then_some(())?;
                (least.to_string(), option.clients.iter().map(u32::to_string).collect())
            }
            Demand::Window(allowed) => {
                let usual = option.windows.last().copied();
                (stated.map_or(usual, parse_duration)? == allowed).then_some(())?;
                (allowed.to_string(), option.windows.iter().map(Span::to_string).collect())
            }
        };
        Some(match (stated, &others[..]) {
            (Some(text), _) => format!("sets `{key}: {text}` for `{name}`"),
            (None, [_]) => {
                format!("chooses `{name}`, which the schema offers with `{key}: {applies}` alone")
            }
            (None, _) => format!(
                "leaves `{key}` open, so {applies} applies; the schema offers {} for `{name}`",
                others.join(", ")
            ),
        })
    }
}
