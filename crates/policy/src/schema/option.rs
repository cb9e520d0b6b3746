//! The policy options that a schema offers to owners (Zeph §4.1).

use crate::fraction::Fraction;
use crate::ids::ControllerId;
use crate::schema::Edges;
use alpheus_time::Span;
use serde::{Deserialize, Serialize};

/// A policy that owners may choose for an attribute. If it offers several windows or
/// populations, the owner picks one of them. An owner who picks none gets the most
/// private one, which is the largest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyOption {
    /// Its name in annotations.
    pub name: String,
    /// What it allows.
    pub kind: OptionKind,
    /// Positions of the attributes that it is offered for, ascending.
    pub attributes: Vec<u16>,
    /// Windows to choose from, ascending, each a multiple of the tick. Never empty: the
    /// tick itself if the schema names none.
    pub windows: Vec<Span>,
    /// Minimum populations to choose from, ascending. Never empty: 1 for kinds that
    /// release a single stream.
    pub clients: Vec<u32>,
    /// Names for some of these populations, ascending.
    pub named_clients: Vec<(String, u32)>,
    /// The finest buckets in which attributes may be seen.
    pub generalise: Vec<Generalisation>,
    /// Privacy budget, only for [`OptionKind::DpAggregate`].
    pub budget: Option<Budget>,
    /// Consumers that may receive the results. If empty, anyone may.
    pub to: Vec<String>,
    /// Minimum share of colluding controllers that a plan must tolerate (α).
    pub alpha: Fraction,
    /// How many controllers of the whole deployment a plan must take for colluders (c).
    pub colluders: u32,
    /// Maximum share of controllers that a plan may allow to drop out (d).
    pub dropout: Fraction,
    /// Ticks that may be missing between the sessions that make up a window (g).
    pub missing_ticks: u32,
    /// Whether a window may be split into several compliant populations: never yet. Schemas that say so
    /// are refused.
    pub split_populations: bool,
    /// Controllers that owners trust not to collude, ascending.
    pub trusted: Vec<ControllerId>,
    /// Whether it allows plans whose members decide what a row says, for which controllers see
    /// more. Left out of the schema's id where it does, as in every schema before there was a
    /// choice.
    #[serde(default = "allowed", skip_serializing_if = "is_allowed")]
    pub verified: bool,
}

const fn allowed() -> bool {
    true
}

const fn is_allowed(verified: &bool) -> bool {
    *verified
}

/// What an option allows: the paper's three core functions, nothing or everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OptionKind {
    /// Nothing.
    Private,
    /// Everything, over any window of whole ticks.
    Public,
    /// ΣS: sums over time of one stream.
    StreamAggregate,
    /// ΣM: sums over a population.
    Aggregate,
    /// ΣDP: sums over a population with noise.
    DpAggregate,
}

impl OptionKind {
    /// Its name in schemas and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OptionKind::Private => "private",
            OptionKind::Public => "public",
            OptionKind::StreamAggregate => "stream-aggregate",
            OptionKind::Aggregate => "aggregate",
            OptionKind::DpAggregate => "dp-aggregate",
        }
    }
}

/// The finest buckets in which an attribute may be seen. Its sums, squares and moments
/// have no buckets, so they are not released at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generalisation {
    /// Position of the attribute.
    pub attribute: u16,
    /// Buckets on the schema's grid: each edge is an edge of the grid.
    pub to: CoarseBuckets,
}

impl Generalisation {
    /// Whether it allows the grid's own bins.
    #[must_use]
    pub fn is_as_fine_as(&self, grid: &Edges) -> bool {
        self.groups(grid).is_some_and(|starts| starts.len() == usize::from(grid.bins()))
    }

    /// The first of the grid's cells of each bucket, or `None` if the buckets do not match
    /// the grid or start elsewhere.
    #[must_use]
    pub fn groups(&self, grid: &Edges) -> Option<Vec<u16>> {
        let groups: Option<Vec<u16>> = match (&self.to, grid) {
            (CoarseBuckets::Width(wide), Edges::Uniform { width, bins, .. }) => {
                if *width <= 0 || wide % width != 0 {
                    return None;
                }
                let step = usize::try_from(wide / width).ok().filter(|step| *step > 0)?;
                Some((0..*bins).step_by(step).collect())
            }
            (CoarseBuckets::Width(_), Edges::Explicit(_)) => None,
            (CoarseBuckets::Edges(edges), grid) => {
                edges.iter().map(|edge| grid.cell_at(*edge)).collect()
            }
        };
        groups.filter(|starts| starts.first() == Some(&0))
    }
}

/// Coarser buckets over a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CoarseBuckets {
    /// Buckets of this scaled width, from the grid's first edge.
    Width(i64),
    /// Explicit lower edges.
    Edges(Vec<i64>),
}

/// The privacy budget of one owner for one attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// ε of one window, in millionths.
    pub window_micro_epsilon: u64,
    /// ε in total, in millionths.
    pub total_micro_epsilon: u64,
    /// δ in total, in units of 10^-18; 0 for pure ε.
    pub atto_delta: u64,
    /// The unit of protection.
    pub unit: PrivacyUnit,
}

/// The unit of protection: the difference between two neighbouring inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrivacyUnit {
    /// One event.
    Event,
    /// All events of one person in one window.
    PersonPerWindow,
    /// All events of one person in a period of this length.
    PersonPerPeriod(Span),
}
