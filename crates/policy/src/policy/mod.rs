//! An owner's choice for one stream, with every name resolved to numbers.

mod choice;
mod offers;
pub(crate) mod policies;
mod sections;

pub use offers::OfferError;
pub use policies::Policies;
pub use sections::Section;

use crate::fraction::Fraction;
use crate::ids::ControllerId;
use crate::schema::{Budget, Generalisation, OptionKind};
use alpheus_time::Span;
use serde::{Deserialize, Serialize};

/// The most sets of a day that a choice may state: controllers remember each.
pub const MAX_SETS_PER_DAY: u32 = 1024;

/// What an owner allows of a stream. It is self-contained: a signature over it does not
/// depend on how a schema's option is later defined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedPolicy {
    /// One entry for each attribute of the schema, in schema order.
    pub attributes: Vec<AttributePolicy>,
}

impl ResolvedPolicy {
    /// The policy of the attribute at `position`. An attribute that does not exist allows
    /// nothing.
    #[must_use]
    pub fn attribute(&self, position: u16) -> Option<&AttributePolicy> {
        self.attributes.get(usize::from(position))
    }

    /// Over how many different sets of owners these attributes may be summed on a day, by the
    /// strictest chosen option, if one says so.
    #[must_use]
    pub fn sets_per_day(&self, attributes: &[u16]) -> Option<u32> {
        let chosen = attributes.iter().filter_map(|attribute| self.attribute(*attribute));
        chosen.flat_map(|own| &own.alternatives).filter_map(|option| option.sets_per_day).min()
    }
}

/// What is allowed of one attribute. A release complies if one of the alternatives allows
/// it. Without alternatives, the attribute is private.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributePolicy {
    /// The chosen options. For example, an owner may allow aggregates for anyone and their own
    /// stream for one service.
    pub alternatives: Vec<ResolvedOption>,
}

/// One chosen option, resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedOption {
    /// Its name in the schema.
    pub name: String,
    /// What it allows.
    pub kind: OptionKind,
    /// Windows must be multiples of this.
    pub window: Span,
    /// Minimum population, in owners with data.
    pub min_population: u32,
    /// The finest buckets in which attributes may be seen.
    pub generalise: Vec<Generalisation>,
    /// Privacy budget, for [`OptionKind::DpAggregate`].
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
    /// Whether a window may be split into several compliant populations.
    pub split_populations: bool,
    /// Controllers that the owner trusts not to collude, ascending.
    pub trusted: Vec<ControllerId>,
    /// Whether it allows plans whose members decide what a row says.
    pub verified: bool,
    /// Over how many different sets of owners a controller may sum the data of one UTC day. The
    /// owner's own choice: it only makes an option stricter. If `None`, there is no bound.
    pub sets_per_day: Option<u32>,
}
