//! An owner's choice for one stream, with every name turned into a number.

mod choice;
mod offered;
mod policies;

pub use offered::NotOffered;
pub use policies::Policies;

use crate::ids::ControllerId;
use crate::plan::Fraction;
use crate::schema::{Budget, Generalise, OptionKind};
use crate::time::Span;
use serde::{Deserialize, Serialize};

/// What one owner allows of one stream: self-contained, so that a signature
/// over it does not depend on what a schema's option is later said to mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedPolicy {
    /// One entry for each attribute of the schema, in its order.
    pub attributes: Vec<AttributePolicy>,
}

impl ResolvedPolicy {
    /// The policy of the attribute at `position`; none where there is no such
    /// attribute, which allows nothing.
    #[must_use]
    pub fn attribute(&self, position: u16) -> Option<&AttributePolicy> {
        self.attributes.get(usize::from(position))
    }
}

/// What is allowed of one attribute: a release complies if one of the
/// alternatives allows it. None: private.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributePolicy {
    /// The chosen options (an owner may, say, give aggregates to anyone and
    /// their own stream to one service).
    pub alternatives: Vec<ResolvedOption>,
}

/// One chosen option, resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedOption {
    /// The schema's name for it.
    pub name: String,
    /// What it allows.
    pub kind: OptionKind,
    /// Windows must be multiples of this.
    pub window: Span,
    /// Least population, in owners with data.
    pub min_population: u32,
    /// Buckets that are the finest view of an attribute.
    pub generalise: Vec<Generalise>,
    /// Privacy budget, for [`OptionKind::DpAggregate`].
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
