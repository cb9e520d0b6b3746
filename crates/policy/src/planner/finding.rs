//! What is wrong with a query, with the change that would fix it.

use super::accuracy::Bounds;
use super::error::{RuleError, ViolationError};
use crate::query::{Call, Decimal, Location};
use alpheus_time::Span;

/// A violation and a change to the query that avoids it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) at: Location,
    pub(super) rule: RuleError,
    pub(super) fix: Option<Fix>,
}

impl Finding {
    /// A finding fixed by removing the item at `position`.
    pub(super) fn drop(at: Location, rule: RuleError, position: usize) -> Finding {
        Finding { at, rule, fix: Some(Fix::Drop(position)) }
    }

    /// A finding without a known fix.
    pub(super) fn plain(at: Location, rule: RuleError) -> Finding {
        Finding { at, rule, fix: None }
    }

    pub(super) fn violation(&self) -> ViolationError {
        ViolationError { at: self.at, rule: self.rule.clone() }
    }
}

/// The changes that help at once: of everything that is wrong with the query itself, and of the
/// first reason why nobody takes part. Whether other reasons remain, the next attempt shows.
pub(super) fn first_fixes(findings: &[Finding]) -> impl Iterator<Item = &Fix> {
    let excluded = |finding: &Finding| matches!(finding.rule, RuleError::Excluded { .. });
    let first = findings.iter().position(excluded);
    let counts = move |(at, finding): &(usize, &Finding)| !excluded(finding) || Some(*at) == first;
    findings.iter().enumerate().filter(counts).filter_map(|(_, finding)| finding.fix.as_ref())
}

/// A change to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fix {
    /// Remove an item.
    Drop(usize),
    /// Replace an item's call.
    Call(usize, Call),
    /// Use only these buckets of an attribute.
    Generalise(u16, crate::schema::Generalisation),
    /// Remove all items of an attribute.
    Without(u16),
    /// Use another window size.
    Window(Span),
    /// Use other population bounds.
    Population(u32, u32),
    /// Release to another consumer.
    Consumer(String),
    /// Use another schema.
    Schema(String),
    /// Use another name.
    Name(String),
    /// Remove noise.
    NoNoise,
    /// Set epsilon.
    Epsilon(Decimal),
    /// Set epsilon, or remove the attribute that requires noise.
    Noise(Decimal, u16),
    /// Use Laplace noise in tumbling windows.
    Laplace,
    /// Use tumbling windows instead of running totals.
    Tumbling,
    /// Limit the events of a stream.
    Events(u64),
    /// Narrow an attribute's bounds in the schema.
    Bounds(Bounds),
    /// Let the planner choose ε.
    AnyEpsilon,
    /// Ask for this error instead, as a share of results and as a margin.
    Accuracy(Option<Decimal>, Option<Decimal>),
    /// Do not ask for more colluders to be tolerated than policies do.
    NoAlpha,
    /// Let the planner choose masks.
    NoMasks,
    /// Remove `GROUP BY`.
    NoGroups,
    /// Remove `WHERE`.
    NoFilter,
    /// Fix the members with the query.
    FixedMembership,
    /// Let the service and the controllers decide together what rows say.
    PlainIntegrity,
    /// Let the controllers of a window decide what rows say, without proofs.
    VerifiedIntegrity,
}

impl Fix {
    /// The fix if no query with noise is accepted: remove the attribute.
    pub(super) fn without_noise(self) -> Fix {
        match self {
            Fix::Noise(_, attribute) => Fix::Without(attribute),
            other => other,
        }
    }
}
