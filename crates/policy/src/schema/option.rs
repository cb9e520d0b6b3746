//! The policies that a schema offers to its owners (Zeph §4.1).

use crate::ids::ControllerId;
use crate::plan::Fraction;
use crate::schema::Edges;
use crate::time::Span;
use serde::{Deserialize, Serialize};

/// One policy that owners may choose for an attribute. Where it offers several
/// windows or populations, the owner's choice picks one of them; an owner who
/// picks none gets the most private, i.e. the largest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyOption {
    /// Its name, as annotations say it.
    pub name: String,
    /// What it allows.
    pub kind: OptionKind,
    /// Positions of the attributes that it is offered for, ascending.
    pub attributes: Vec<u16>,
    /// Windows to choose from, ascending, each a multiple of the tick; never
    /// empty (the tick itself where the schema names none).
    pub windows: Vec<Span>,
    /// Minimum populations to choose from, ascending; never empty (1 for kinds
    /// that release a single stream).
    pub clients: Vec<u32>,
    /// Names that choices may use for some of these, ascending.
    pub named_clients: Vec<(String, u32)>,
    /// Buckets that are the finest view of an attribute.
    pub generalise: Vec<Generalise>,
    /// Privacy budget; present exactly for [`OptionKind::DpAggregate`].
    pub budget: Option<Budget>,
    /// Consumers it may be released to; empty: any.
    pub to: Vec<String>,
    /// Least share of colluding controllers that a plan must tolerate.
    pub alpha: Fraction,
    /// Greatest share of controllers that a plan may let drop out.
    pub dropout: Fraction,
    /// Ticks that may be missing where several sessions tile a window (g).
    pub missing_ticks: u32,
    /// Whether a window may be split into several compliant populations.
    pub split_populations: bool,
    /// Controllers that the owner trusts not to collude, ascending.
    pub trusted: Vec<ControllerId>,
}

/// What an option allows: the paper's three core functions and the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OptionKind {
    /// Nothing.
    Private,
    /// Everything, over any window of the tick's multiples.
    Public,
    /// ΣS: sums over time of one stream.
    StreamAggregate,
    /// ΣM: sums over a population.
    Aggregate,
    /// ΣDP: sums over a population with noise.
    DpAggregate,
}

impl OptionKind {
    /// As schemas and messages write it.
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

/// The finest buckets in which an attribute may be seen. Its sums, squares and
/// moments, which are no buckets, are then not released at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generalise {
    /// Position of the attribute.
    pub attribute: u16,
    /// Buckets on the schema's grid: every edge is an edge of the grid.
    pub to: Coarse,
}

impl Generalise {
    /// Whether it asks for nothing coarser than the grid's own bins.
    #[must_use]
    pub fn is_as_fine_as(&self, grid: &Edges) -> bool {
        self.groups(grid).is_some_and(|starts| starts.len() == usize::from(grid.bins()))
    }

    /// The first cell of each bucket over the grid's cells; none where the
    /// buckets do not lie on the grid or do not begin where it begins.
    #[must_use]
    pub fn groups(&self, grid: &Edges) -> Option<Vec<u16>> {
        let groups: Option<Vec<u16>> = match (&self.to, grid) {
            (Coarse::Width(wide), Edges::Uniform { width, bins, .. }) => {
                if *width <= 0 || wide % width != 0 {
                    return None;
                }
                let step = usize::try_from(wide / width).ok().filter(|step| *step > 0)?;
                Some((0..*bins).step_by(step).collect())
            }
            (Coarse::Width(_), Edges::Explicit(_)) => None,
            (Coarse::Edges(edges), grid) => edges.iter().map(|edge| grid.cell_at(*edge)).collect(),
        };
        groups.filter(|starts| starts.first() == Some(&0))
    }
}

/// Coarser buckets over a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coarse {
    /// Buckets of this scaled width, from the grid's first edge.
    Width(i64),
    /// Explicit lower edges.
    Edges(Vec<i64>),
}

/// What differential privacy may cost one owner for one attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// ε of one window, in millionths.
    pub window_micro_epsilon: u64,
    /// ε in total, in millionths.
    pub total_micro_epsilon: u64,
    /// δ in total, in units of 10^-18; 0: pure ε.
    pub atto_delta: u64,
    /// What is protected.
    pub unit: PrivacyUnit,
}

/// The unit of protection: what two neighbouring inputs differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrivacyUnit {
    /// One event.
    Event,
    /// All of one person's events in one window.
    PersonPerWindow,
    /// All of one person's events in a period of this length.
    PersonPerPeriod(Span),
}
