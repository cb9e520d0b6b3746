//! A plan: what exactly a query releases, from which streams and controllers.

pub use crate::fraction::Fraction;
use crate::ids::{ConsumerId, ControllerId, OwnerId, PlanId, SchemaId, StreamId};
use crate::membership::tolerated;
use crate::privacy::Privacy;
pub use crate::release::Release;
use crate::select::ReleasePlan;
use crate::selection::Selection;
use alpheus_time::{Span, Timestamp, Window};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// What a query releases from one group of streams, window after window. Its id is its
/// hash. Controllers check the whole plan before they take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Fresh randomness, so that no two plans are equal.
    pub nonce: [u8; 16],
    /// Name of the result stream.
    pub name: String,
    /// Who runs the query, as shown in owners' logs.
    pub consumer: String,
    /// With `RELEASE TO`: the certificate of the consumer whose key alone opens results.
    /// `None`: the service opens them.
    pub sealed_to: Option<ConsumerId>,
    /// Schema of all its streams.
    pub schema: SchemaId,
    /// The values of the group's columns.
    pub group: Vec<(String, String)>,
    /// Size of its tumbling windows.
    pub window: Span,
    /// How long after its end a window waits for late events.
    pub grace: Span,
    /// Windows that start before this are not released.
    pub from: Timestamp,
    /// The map from events to the released outputs.
    pub release: Release,
    /// How the released rows become the columns of a result.
    pub select: ReleasePlan,
    /// Who decides what a row says.
    pub integrity: Integrity,
    /// What the streams' metadata must be besides the group's values. Stated where controllers
    /// check it: in verified plans.
    pub selection: Selection,
    /// The noise of released windows, if any.
    pub privacy: Option<Privacy>,
    /// Attributes that the release derives from, ascending. These are locked.
    pub attributes: Vec<u16>,
    /// Minimum and maximum number of owners with data in a window.
    pub population: PopulationBounds,
    /// Fraction of controllers that may collude with the service (α).
    pub alpha: Fraction,
    /// How many controllers of the whole deployment may collude with the service (c): the
    /// largest number that a member's policy thinks of.
    pub colluders: u32,
    /// Fraction of controllers that may drop out of a window (d).
    pub dropout: Fraction,
    /// Bound on the probability that some mask graph of an epoch, or of a controller's
    /// lifetime, is not connected as it must be: 10^-δ.
    pub delta_exponent: u8,
    /// How masks are shared among controllers.
    pub masks: MaskStrategy,
    /// The membership epoch whose list the roster is. `None` if the roster was fixed with the
    /// query.
    pub epoch: Option<Epoch>,
    /// All controllers, ascending. Elsewhere, a controller is its position in this list.
    pub roster: Vec<ControllerId>,
    /// All streams, ascending by id.
    pub streams: Vec<PlannedStream>,
}

impl Plan {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> PlanId {
        // A plan holds only integers and strings, so serialisation cannot fail.
        let bytes = postcard::to_allocvec(self).unwrap_or_default();
        PlanId(crate::ids::labelled_hash("alpheus/plan/v5", &[&bytes]))
    }

    /// The terms of epochs: the plan without those who take part, which is known for each
    /// window only.
    #[must_use]
    pub fn terms(&self) -> Plan {
        let (roster, streams, masks) = (Vec::new(), Vec::new(), MaskStrategy::Single);
        Plan { roster, streams, masks, ..self.clone() }
    }

    /// Whether it names nobody who takes part.
    #[must_use]
    pub fn is_terms(&self) -> bool {
        self.roster.is_empty() && self.epoch.is_none()
    }

    /// The window that starts at `start`.
    #[must_use]
    pub fn window_at(&self, start: Timestamp) -> Window {
        Window { start, end: start.plus(self.window) }
    }

    /// The plan that lists are made for, if the roster is one of its lists, else the plan
    /// itself. Plans of one family release different windows.
    #[must_use]
    pub fn family(&self) -> PlanId {
        self.epoch.map_or_else(|| self.id(), |epoch| epoch.terms)
    }

    /// The end of the last window of the plan's epoch, if it has one.
    #[must_use]
    pub fn epoch_end(&self) -> Option<Timestamp> {
        let windows = u64::from(self.epoch?.windows);
        Some(self.from.plus(Span(self.window.0.saturating_mul(windows))))
    }

    /// The maximum number of streams of one owner.
    #[must_use]
    pub fn max_streams_per_owner(&self) -> u32 {
        let mut counts: HashMap<OwnerId, u32> = HashMap::new();
        for stream in &self.streams {
            *counts.entry(stream.owner).or_default() += 1;
        }
        counts.into_values().max().unwrap_or(0)
    }

    /// How many controllers may collude with the service without learning more than the
    /// result (t).
    #[must_use]
    pub fn tolerated(&self) -> u32 {
        let controllers = u32::try_from(self.roster.len()).unwrap_or(u32::MAX);
        tolerated(controllers, self.alpha, self.colluders)
    }

    /// Members of an opening set that do not count: t that may collude, and r honest ones
    /// that the mask graph may have cut off.
    #[must_use]
    pub fn discounted(&self) -> u32 {
        self.tolerated().saturating_add(self.masks.cut_off())
    }
}

/// Who decides what a row says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Integrity {
    /// The service and the controllers together: anyone who deviates can change a row.
    #[default]
    Plain,
    /// The controllers of a window, who sign it. No ciphertext of the service enters the row.
    Verified,
    /// The same, and they prove that no owner moves it by more than its bounds.
    Bounded {
        /// Maximum number of events of a stream in a window. The bounds follow from it.
        events: u64,
    },
}

impl Integrity {
    /// The word for it in queries.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Integrity::Plain => "plain",
            Integrity::Verified => "verified",
            Integrity::Bounded { .. } => "bounded",
        }
    }

    /// Whether the members of a window decide what its row says.
    #[must_use]
    pub const fn is_verified(self) -> bool {
        matches!(self, Integrity::Verified | Integrity::Bounded { .. })
    }

    /// Whether they also prove that no owner moves it by more than its bounds.
    #[must_use]
    pub const fn is_bounded(self) -> bool {
        matches!(self, Integrity::Bounded { .. })
    }
}

/// Why a plan cannot be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum NotVerifiableError {
    /// Devices send a frame for each event, without a root of their sums.
    #[error("devices of the schema send a frame for each event (`frames: events`)")]
    Frames,
    /// A reader of receipts counts as the service in every bound, and a plan that thinks of no
    /// colluders bounds nothing that they learn together.
    #[error(
        "no controller is assumed to collude (alpha is 0; `alpha = '1/3'` assumes that some do)"
    )]
    NoColluders,
    /// Results are running totals, which the service adds up.
    #[error("results are running totals, which the service adds up")]
    Totals,
    /// It is bounded, and the members are fixed for each window.
    #[error("members are fixed for each window (`membership = 'epochs'`)")]
    Epochs,
}

impl Plan {
    /// Why this plan cannot be verified, as far as that does not depend on the schema; nothing if
    /// it can be, or need not be.
    #[must_use]
    pub fn not_verifiable(&self) -> Option<NotVerifiableError> {
        if !self.integrity.is_verified() {
            None
        } else if self.integrity.is_bounded() && (self.epoch.is_some() || self.is_terms()) {
            Some(NotVerifiableError::Epochs)
        } else if self.horizon().is_some() {
            Some(NotVerifiableError::Totals)
        } else if self.thinks_of_nobody() {
            Some(NotVerifiableError::NoColluders)
        } else {
            None
        }
    }

    /// Whether it thinks of no colluders where there could be some. A plan whose roster names one
    /// controller has no others. One that a list names may have had.
    fn thinks_of_nobody(&self) -> bool {
        if self.is_terms() {
            return self.alpha.numerator == 0;
        }
        let is_lone = self.roster.len() == 1 && self.epoch.is_none();
        !is_lone && self.tolerated() == 0
    }
}

/// The membership epoch that a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    /// The plan that states who may take part, without roster and streams.
    pub terms: PlanId,
    /// Digest of the list.
    pub list: [u8; 32],
    /// How many windows the epoch has, from the plan's first on.
    pub windows: u32,
}

/// A stream in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStream {
    /// The stream.
    pub stream: StreamId,
    /// Its owner.
    pub owner: OwnerId,
    /// Position of its controller in the roster.
    pub controller: u32,
}

/// Bounds on a window's population, in owners with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PopulationBounds {
    /// Minimum.
    pub min: u32,
    /// Maximum.
    pub max: u32,
}

/// How the controllers of a plan share masks (see `encrypted-stream`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MaskStrategy {
    /// One controller: no mask is needed.
    Single,
    /// Every pair, in every window.
    Clique,
    /// Each pair with probability 2^-bits, drawn again for each window.
    Dream {
        /// b.
        bits: u8,
    },
    /// Each pair in one of 2^bits graphs per segment, drawn once an epoch.
    Epoch {
        /// b.
        bits: u8,
    },
    /// Each controller with those that it picks and those that pick it, for the lifetime of
    /// the roster.
    Neighbours {
        /// m: how many others each controller picks.
        picks: u32,
        /// r: honest members that dropouts may cut off from the rest unnoticed.
        cut_off: u32,
    },
}

impl MaskStrategy {
    /// r: honest members of an opening set that may be cut off from the result. With more,
    /// the probability is at most 10^-δ. 0 if the whole graph is connected.
    #[must_use]
    pub const fn cut_off(self) -> u32 {
        match self {
            Self::Neighbours { cut_off, .. } => cut_off,
            Self::Single | Self::Clique | Self::Dream { .. } | Self::Epoch { .. } => 0,
        }
    }

    /// How many of its own picks a controller needs in a membership and in an opening set:
    /// ⌈(1 − ρ)m⌉ with ρ = ⅕. `None` if it picks nobody.
    #[must_use]
    pub const fn needed_picks(self) -> Option<u32> {
        match self {
            Self::Neighbours { picks, .. } => Some(needed_picks(picks)),
            Self::Single | Self::Clique | Self::Dream { .. } | Self::Epoch { .. } => None,
        }
    }
}

/// ⌈(1 − ρ)m⌉ of m picks, ρ = ⅕.
#[must_use]
pub const fn needed_picks(picks: u32) -> u32 {
    picks - picks / 5
}

impl fmt::Display for MaskStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single => f.write_str("none"),
            Self::Clique => f.write_str("clique"),
            Self::Dream { bits } => write!(f, "dream, b = {bits}"),
            Self::Epoch { bits } => write!(f, "epoch, b = {bits}"),
            Self::Neighbours { picks, cut_off } => {
                write!(f, "neighbours, m = {picks}, r = {cut_off}")
            }
        }
    }
}
