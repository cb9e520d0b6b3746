//! What is wrong with a query, with the change that would mend it.

use super::refusal::{Rule, Violation};
use crate::query::{At, Call, Decimal};
use crate::time::Span;

/// A violation and how the query could be changed not to commit it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) at: At,
    pub(super) rule: Rule,
    pub(super) mend: Option<Mend>,
}

impl Finding {
    /// Mended by leaving the item at `position` out.
    pub(super) fn drop(at: At, rule: Rule, position: usize) -> Finding {
        Finding { at, rule, mend: Some(Mend::Drop(position)) }
    }

    /// Not to be mended by us.
    pub(super) fn plain(at: At, rule: Rule) -> Finding {
        Finding { at, rule, mend: None }
    }

    pub(super) fn violation(&self) -> Violation {
        Violation { at: self.at, rule: self.rule.clone() }
    }
}

/// A change to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mend {
    /// Leave an item out.
    Drop(usize),
    /// Ask another call in an item's place.
    Call(usize, Call),
    /// See an attribute in these buckets only.
    Generalise(u16, crate::schema::Generalise),
    /// Ask nothing of an attribute.
    Without(u16),
    /// Another size of window.
    Window(Span),
    /// Other bounds of the population.
    Population(u32, u32),
    /// Another consumer.
    Consumer(String),
    /// Another schema.
    Schema(String),
    /// Another name.
    Name(String),
    /// No noise.
    NoNoise,
    /// So much noise.
    Epsilon(Decimal),
    /// So much noise, or nothing of the attribute that asks for it.
    Noise(Decimal, u16),
    /// Laplace noise, for each window anew.
    Laplace,
    /// Windows for themselves, not their totals.
    Tumbling,
    /// No more events of one stream than this.
    Events(u64),
    /// Everybody in one group.
    NoGroups,
    /// Every stream of the schema.
    NoFilter,
}

impl Mend {
    /// Where noise leads to no query that is accepted: nothing of the attribute.
    pub(super) fn without_noise(self) -> Mend {
        match self {
            Mend::Noise(_, attribute) => Mend::Without(attribute),
            other => other,
        }
    }
}
