//! The edits of a change in words.

use super::super::accuracy::Bounds;
use super::super::digits::many;
use super::super::finding::Fix;
use super::Owners;
use super::slots::{Act, Edit, Grant, SolvedNumber};
use crate::policy::Section;
use crate::query::{Create, Item, Percent, QuerySpan};
use crate::schema::OptionKind;
use alpheus_time::Span;
use serde::Serialize;
use std::fmt;

/// One edit of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Change {
    /// Owners also choose an option.
    Grant {
        /// The part of the policies file.
        section: Section,
        /// The number of its streams.
        streams: usize,
        /// The attribute.
        attribute: String,
        /// The option.
        option: String,
        /// Its kind.
        kind: OptionKind,
        /// The minimum population.
        clients: u32,
        /// Windows are multiples of this, in microseconds.
        window: Span,
    },
    /// A clause or a setting of the query is another one.
    Query {
        /// The clause.
        clause: &'static str,
        /// What it is, if it is there.
        before: Option<String>,
        /// What it becomes, if it stays.
        after: Option<String>,
    },
    /// The schema has narrower bounds.
    Schema {
        /// The attribute.
        attribute: String,
        /// Its minimum and maximum.
        before: [String; 2],
        /// What they become.
        after: [String; 2],
    },
}

/// The clause of how exact results have to be.
const ERROR: &str = "the error";

impl Change {
    /// Whether owners would have to choose something.
    #[must_use]
    pub fn is_grant(&self) -> bool {
        matches!(self, Change::Grant { .. })
    }

    /// Whether results would be less exact than the query asks.
    #[must_use]
    pub fn loosens_error(&self) -> bool {
        matches!(self, Change::Query { clause: ERROR, .. })
    }

    /// Whether results have less noise with it.
    #[must_use]
    pub fn keeps_error(&self) -> bool {
        matches!(self, Change::Schema { .. } | Change::Query { clause: "events" | "epsilon", .. })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Grant { section, streams, attribute, option, kind, clients, window } => {
                let many = many(*streams as u64, "stream");
                let also = if matches!(section, Section::Owner(_)) { "chooses" } else { "choose" };
                write!(f, "{section} ({many}) also {also} `{option}` for `{attribute}`: ")?;
                match kind {
                    OptionKind::Public => f.write_str("anything of it may be released"),
                    OptionKind::StreamAggregate => write!(
                        f,
                        "totals of one stream, in windows that are multiples of {}",
                        QuerySpan(*window)
                    ),
                    _ => write!(
                        f,
                        "totals of at least {clients} owners{}, in windows that are multiples of {}",
                        if *kind == OptionKind::DpAggregate { " with noise" } else { "" },
                        QuerySpan(*window)
                    ),
                }
            }
            Change::Query { clause, before: Some(before), after: Some(after) } => {
                write!(f, "{clause} of the query becomes {after} instead of {before}")
            }
            Change::Query { clause, before: None, after: Some(after) } => {
                write!(f, "the query gets {clause} {after}")
            }
            Change::Query { clause, before: Some(before), after: None } => {
                write!(f, "the query loses {clause} {before}")
            }
            Change::Query { clause, before: None, after: None } => {
                write!(f, "the query loses {clause}")
            }
            Change::Schema { attribute, before: [min, max], after: [least, most] } => write!(
                f,
                "the schema bounds `{attribute}` by {least} and {most} instead of {min} and {max}: devices refuse readings beyond, and owners join again"
            ),
        }
    }
}

/// The edits that lead from one query to another.
pub(super) fn changes(
    edits: &[&Edit],
    (before, after): (&Create, &Create),
    bounds: Option<&Bounds>,
    owners: &Owners<'_>,
) -> Vec<Change> {
    let number = |of: fn(&Create) -> Option<String>| (of(before), of(after));
    let one = |edit: &&Edit| {
        let (clause, (was, becomes)) = match &edit.act {
            Act::Grant(grant) => return Some(granted(grant, before, owners)),
            Act::Fix(fix) => return Some(of_query(fix, before, after)),
            Act::Solve(SolvedNumber::Bounds) => {
                return bounds.map(|own| Change::Schema {
                    attribute: own.name.clone(),
                    before: own.before.clone(),
                    after: own.after.clone(),
                });
            }
            Act::Solve(SolvedNumber::Population) => ("BETWEEN", number(population)),
            Act::Solve(SolvedNumber::Epsilon) => ("epsilon", number(epsilon)),
            Act::Solve(SolvedNumber::Accuracy) => (ERROR, number(accuracy)),
            Act::Solve(SolvedNumber::Events) => ("events", number(events)),
        };
        Some(query(clause, was, becomes))
    };
    edits.iter().filter_map(one).collect()
}

fn query(clause: &'static str, before: Option<String>, after: Option<String>) -> Change {
    Change::Query { clause, before, after }
}

fn population(query: &Create) -> Option<String> {
    query.population.map(|(min, max)| format!("{min} AND {max}"))
}

fn epsilon(query: &Create) -> Option<String> {
    query.settings.epsilon.map(|own| own.to_string())
}

fn events(query: &Create) -> Option<String> {
    query.settings.events.map(|own| own.to_string())
}

fn accuracy(query: &Create) -> Option<String> {
    let own = &query.settings.accuracy;
    let share = own.error.map(|error| Percent(error).to_string());
    let margin = own.within.map(|within| format!("WITHIN {within}"));
    match (share, margin) {
        (Some(share), Some(margin)) => Some(format!("{share} and {margin}")),
        (share, margin) => share.or(margin),
    }
}

fn granted(grant: &Grant, query: &Create, owners: &Owners<'_>) -> Change {
    let known = owners.catalog.schema(&query.from.text);
    Change::Grant {
        section: grant.section,
        streams: owners.sections.values().filter(|own| **own == grant.section).count(),
        attribute: known.map_or("", |known| known.schema.name_of(grant.attribute)).to_owned(),
        option: grant.option.name.clone(),
        kind: grant.option.kind,
        clients: grant.option.min_population,
        window: grant.option.window,
    }
}

/// A query's window, and with how many values in it if another query has another number.
fn window(query: &Create, other: &Create) -> String {
    let of = |query: &Create| query.settings.accuracy.values;
    let values = of(query).filter(|_| of(query) != of(other));
    let values = values.map_or_else(String::new, |values| format!(" (`values = {values}`)"));
    format!("{}{values}", QuerySpan(query.window))
}

fn of_query(fix: &Fix, before: &Create, after: &Create) -> Change {
    let items = |query: &Create, other: &Create| {
        let own = query.items.iter().filter(|item| !other.items.contains(item));
        let own: Vec<String> = own.map(Item::to_string).collect();
        (!own.is_empty()).then(|| own.join(", "))
    };
    match fix {
        Fix::Window(_) => query("WINDOW", Some(window(before, after)), Some(window(after, before))),
        Fix::AnyEpsilon => query("epsilon", epsilon(before), epsilon(after)),
        Fix::Consumer(name) => {
            let to = before.release_to.as_ref().map(|to| to.text.clone());
            query("RELEASE TO", to, Some(name.clone()))
        }
        Fix::Drop(position) => {
            query("SELECT", before.items.get(*position).map(Item::to_string), None)
        }
        Fix::Generalise(..) => query("SELECT", items(before, after), items(after, before)),
        Fix::NoNoise if before.settings.accuracy != after.settings.accuracy => {
            query("its settings of noise and error", None, None)
        }
        Fix::NoNoise => query("its noise", None, None),
        Fix::Laplace => {
            let drawn = before.settings.mechanism.map(|own| own.to_string());
            query("mechanism", drawn, Some("laplace".to_owned()))
        }
        Fix::Tumbling => {
            query("WINDOW", Some("CUMULATING".to_owned()), Some("TUMBLING".to_owned()))
        }
        Fix::NoGroups => query("GROUP BY", None, None),
        Fix::NoFilter => query("WHERE", None, None),
        Fix::NoAlpha => query("alpha", None, None),
        Fix::NoMasks => query("masks", None, None),
        Fix::PlainIntegrity => query("integrity", None, None),
        Fix::VerifiedIntegrity => {
            let asked = before.settings.integrity.map(|choice| choice.word().to_owned());
            query("integrity", asked, Some("verified".to_owned()))
        }
        _ => query("another clause", None, None),
    }
}
