//! A plan: what exactly a query releases, from whom, and among whom.

use crate::ids::{ConsumerId, ControllerId, OwnerId, PlanId, SchemaId, StreamId};
use crate::privacy::Privacy;
use crate::select::ReleasePlan;
use crate::time::{Span, Timestamp, Window};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;

/// What a query releases from one group of streams, window after window. Its
/// id is its hash; controllers check it whole before they take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Fresh randomness, so that no two plans are alike.
    pub nonce: [u8; 16],
    /// Name of the stream of results.
    pub name: String,
    /// Who asks, as owners see it in their log.
    pub consumer: String,
    /// Of a query with `RELEASE TO`: the certificate of that consumer, whose key
    /// alone opens results. None: the service opens them.
    pub sealed_to: Option<ConsumerId>,
    /// Schema of every stream in it.
    pub schema: SchemaId,
    /// The values of the group's columns.
    pub group: Vec<(String, String)>,
    /// Distance and size of its tumbling windows.
    pub window: Span,
    /// How long after its end a window waits for late events.
    pub grace: Span,
    /// Windows that start before this are not released.
    pub from: Timestamp,
    /// What leaves the streams.
    pub release: Release,
    /// How the released rows become the columns of a result.
    pub select: ReleasePlan,
    /// The noise that windows are released with, if any.
    pub privacy: Option<Privacy>,
    /// Attributes that the release derives from, ascending: these are locked.
    pub attributes: Vec<u16>,
    /// Owners with data that a window needs at least and takes at most.
    pub population: PopulationBounds,
    /// Fraction of controllers that may collude with the service.
    pub alpha: Fraction,
    /// Fraction of controllers that may drop out of a window.
    pub dropout: Fraction,
    /// Bound on the chance that any round of an epoch, or any roster's graph of a
    /// controller's life, is not connected as it must be: 10^-δ.
    pub delta_exponent: u8,
    /// How masks are shared among controllers.
    pub masks: MaskStrategy,
    /// Every controller, ascending; positions in it name controllers elsewhere.
    pub roster: Vec<ControllerId>,
    /// Every stream, ascending by id.
    pub streams: Vec<PlannedStream>,
}

impl Plan {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> PlanId {
        // A plan holds only integers and strings, so serialisation cannot fail.
        let bytes = postcard::to_allocvec(self).unwrap_or_default();
        PlanId(crate::ids::labelled_hash("alpheus/plan/v3", &[&bytes]))
    }

    /// The window that starts at `start`.
    #[must_use]
    pub fn window_at(&self, start: Timestamp) -> Window {
        Window { start, end: start.plus(self.window) }
    }

    /// Number of the window: its start in windows since the Unix epoch.
    #[must_use]
    pub fn window_number(&self, window: Window) -> u64 {
        window.start.0 / self.window.0
    }

    /// Most streams that one owner has in it.
    #[must_use]
    pub fn most_streams_of_an_owner(&self) -> u32 {
        let mut counts: HashMap<OwnerId, u32> = HashMap::new();
        for stream in &self.streams {
            *counts.entry(stream.owner).or_default() += 1;
        }
        counts.into_values().max().unwrap_or(0)
    }

    /// Controllers that may collude with the service without learning more
    /// than the result: 0 for one controller or α = 0, else max(1, ⌊αN⌋).
    #[must_use]
    pub fn tolerated(&self) -> usize {
        self.alpha.tolerated(self.roster.len())
    }

    /// Members of an opening set that nobody counts on: t that may collude, and r
    /// honest ones that its mask graph may have lost.
    #[must_use]
    pub fn discounted(&self) -> usize {
        self.tolerated().saturating_add(self.masks.cut_off() as usize)
    }
}

/// A stream as a plan names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStream {
    /// The stream.
    pub stream: StreamId,
    /// Whose it is.
    pub owner: OwnerId,
    /// Position of its controller in the roster.
    pub controller: u32,
}

/// A sparse 0/1 linear map from an event's words to outputs. The last row is
/// the check word alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// Each output is the sum of these words, positions ascending.
    pub rows: Vec<Vec<u16>>,
}

impl Release {
    /// Number of outputs.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.rows.len()
    }

    /// Adds the map of `words` to `outputs`, modulo 2^64.
    pub fn add(&self, words: &[u64], outputs: &mut [u64]) {
        for (row, output) in self.rows.iter().zip(outputs) {
            for word in row {
                *output = output.wrapping_add(words[usize::from(*word)]);
            }
        }
    }
}

/// Bounds on a window's population, in owners with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PopulationBounds {
    /// Fewest.
    pub min: u32,
    /// Most.
    pub max: u32,
}

/// An exact fraction between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fraction {
    /// Above the line.
    pub numerator: u32,
    /// Below the line; never 0.
    pub denominator: u32,
}

impl Fraction {
    /// 0.
    pub const ZERO: Fraction = Fraction { numerator: 0, denominator: 1 };
    /// ⅓, the default share of colluding controllers.
    pub const THIRD: Fraction = Fraction { numerator: 1, denominator: 3 };
    /// ⅕, the default share that may drop out.
    pub const FIFTH: Fraction = Fraction { numerator: 1, denominator: 5 };
    /// ⅒, the default share that may drop out under `Neighbours`.
    pub const TENTH: Fraction = Fraction { numerator: 1, denominator: 10 };

    /// ⌊fraction × n⌋.
    #[must_use]
    pub fn floor_of(self, n: usize) -> usize {
        let product = n as u128 * u128::from(self.numerator) / u128::from(self.denominator);
        usize::try_from(product).unwrap_or(usize::MAX)
    }

    /// 0 if n = 1 or the fraction is 0, else max(1, ⌊fraction × n⌋).
    #[must_use]
    pub fn tolerated(self, n: usize) -> usize {
        if n <= 1 || self.numerator == 0 { 0 } else { self.floor_of(n).max(1) }
    }
}

/// By value; of two ways to write one value the one with smaller numbers first.
impl Ord for Fraction {
    fn cmp(&self, other: &Fraction) -> Ordering {
        let cross =
            |one: &Fraction, two: &Fraction| u64::from(one.numerator) * u64::from(two.denominator);
        cross(self, other).cmp(&cross(other, self)).then(self.denominator.cmp(&other.denominator))
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// How the controllers of a plan share masks (see `encrypted-stream`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MaskStrategy {
    /// One controller: no mask is needed.
    Single,
    /// Every pair, every window.
    Clique,
    /// Each pair with probability 2^-bits, drawn anew each window.
    Dream {
        /// b.
        bits: u8,
    },
    /// Each pair in one of 2^bits graphs per segment, drawn once an epoch.
    Epoch {
        /// b.
        bits: u8,
    },
    /// Each controller with those that it picks, and those that pick it, as long
    /// as the roster lives.
    Neighbours {
        /// m: how many others each controller picks.
        picks: u32,
        /// r: honest members that drops may cut off from the rest unnoticed.
        cut_off: u32,
    },
}

impl MaskStrategy {
    /// r: honest members of an opening set that may have no part in what opens, but
    /// with a chance of 10^-δ. None of them where the whole graph is connected.
    #[must_use]
    pub const fn cut_off(self) -> u32 {
        match self {
            Self::Neighbours { cut_off, .. } => cut_off,
            Self::Single | Self::Clique | Self::Dream { .. } | Self::Epoch { .. } => 0,
        }
    }

    /// Picks of its own that a controller needs in a membership and in an opening
    /// set: ⌈(1 − ρ)m⌉ with ρ = ⅕. None where it picks nobody.
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
