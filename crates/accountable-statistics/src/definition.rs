//! The definition of an aggregate: its location and time, allowed values and rules. A quorum of
//! smoothers signs it, each only if it overlaps nothing that this smoother has signed before.

use crate::configuration::{KeyEpoch, PinnedConfiguration, SmootherId};
use crate::endorsement::{Endorsed, EndorsementError};
use crate::interval::Interval;
use crate::logarithm::readable;
use crate::tuple::{Terms, ThresholdKey};
use alpheus_anonymous_credential::configuration::PinnedConfiguration as Pass;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::schedule::Period;
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::signed_message::{Message, Verified};
use alpheus_time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is measured, and where: a path such as `speed/boston/i93/4`. A path lies inside another
/// one that it begins with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Location(String);

/// A path that names no location or has another spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a location is a path of 1 to 128 bytes: lower-case letters, digits, `-`, `_`, `.`, in parts separated by `/`; no part may be empty or consist of dots alone"
)]
pub struct LocationError;

/// What is published of a closed aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReleaseRule {
    /// The mean, rounded to a multiple of so many steps. A mean to nine digits reveals the count.
    Mean {
        /// Steps: at least the resolution divided by the smallest crowd.
        grain: u32,
        /// Samples differ by multiples of so many steps.
        resolution: u32,
    },
    /// Count, sum and, with squares, sum of squares.
    Full,
}

/// What follows an aggregate's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosingSchedule {
    /// Length of one turn of filling.
    pub turn: Span,
    /// Number of those turns.
    pub turns: u16,
    /// Time for smoothers to exchange receipts. Then deposits are released.
    pub settling: Span,
    /// Time for everything else. Then the aggregate ends without a result.
    pub patience: Span,
}

/// The definition of one aggregate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The configuration's fingerprint.
    pub deployment: Digest,
    /// What is measured, and where.
    pub location: Location,
    /// Start of the interval, inclusive.
    pub start: Timestamp,
    /// End of the interval, exclusive.
    pub end: Timestamp,
    /// Number of turns in the interval. At each turn, every slot has another smoother as its
    /// keeper.
    pub during: u16,
    /// L: how many contributions of one account count.
    pub quota: Limit,
    /// k: more accounts than one party can obtain. Below that crowd nothing is opened.
    pub accounts: u32,
    /// The allowed values, in steps.
    pub interval: Interval,
    /// U: contributions that the aggregator sees, dummies included.
    pub slots: u32,
    /// Expected samples.
    pub expected: u32,
    /// Clients that are expected to contribute or to volunteer.
    pub clients: u32,
    /// The key epoch.
    pub key_epoch: KeyEpoch,
    /// Its key.
    pub key: ThresholdKey,
    /// What is published.
    pub rule: ReleaseRule,
    /// What follows the end.
    pub closing: ClosingSchedule,
}

impl Message for Definition {
    const LABEL: &'static str = labels::STATISTICS_DEFINITION;
}

/// An unusable definition, even with signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// Another deployment's.
    #[error("the definition belongs to another deployment")]
    Deployment,
    /// Not signed by a quorum.
    #[error(transparent)]
    NotEndorsed(#[from] EndorsementError),
    /// Times out of order, too few turns, or beyond one key epoch, credential period or limit.
    #[error(
        "the interval must lie in its key epoch and one credential period; interval and filling need at least as many turns as the threshold; filling, settling and patience must be above zero and within this deployment's limit"
    )]
    Time,
    /// Fewer slots than samples, or more than clients fill.
    #[error(
        "slots must hold all expected samples and be at most 8/10 of quota times clients, and at most a million"
    )]
    Slots,
    /// The crowd is below this deployment's minimum, or above the slots.
    #[error(
        "a crowd must have at least as many accounts as this deployment requires, and fit into the slots"
    )]
    Crowd,
    /// The tolerance for missing slots is too small.
    #[error(
        "wasteful accounts could leave more slots empty than the tolerance allows; define more slots, a smaller quota or a larger tolerance"
    )]
    Wasteful,
    /// Squares are for a deviation, and a mean publishes none.
    #[error("an aggregate that publishes its mean must not sum squares")]
    Squares,
    /// Its sums could not be read.
    #[error("its sums could not be read; use larger steps, a narrower interval or fewer slots")]
    Unreadable,
    /// A mean so fine that it could reveal the count.
    #[error(
        "a mean must be rounded to at least one step, and to at least the resolution of the samples divided by the smallest crowd, or it could reveal the count; use a larger grain or more accounts"
    )]
    Grain,
}

/// The maximum number of slots of an aggregate.
pub const MAX_SLOTS: u32 = 1_000_000;

/// One of the times at which slots are granted: those of the interval, then those of filling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Turn(#[serde(with = "postcard::fixint::be")] pub u16);

/// A definition that a quorum has signed. Cheap to clone.
#[derive(Clone)]
pub struct AgreedDefinition(Arc<Inner>);

struct Inner {
    definition: Verified<Definition>,
    terms: Terms,
    crowd: u64,
    period: Period,
}

impl Location {
    /// Whether one location lies inside the other, or both are the same.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.0.split('/'), other.0.split('/'));
        mine.zip(theirs).all(|(a, b)| a == b)
    }

    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Location {
    type Error = LocationError;

    fn try_from(path: String) -> Result<Self, LocationError> {
        let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        let part = |part: &str| part.chars().all(letter) && part.chars().any(|c| c != '.');
        let good = path.len() <= 128 && path.split('/').all(part);
        if good { Ok(Self(path)) } else { Err(LocationError) }
    }
}

impl From<Location> for String {
    fn from(location: Location) -> Self {
        location.0
    }
}

impl Definition {
    /// Whether both cover a common location and time: one sum could be subtracted from the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let times = self.start < other.end && other.start < self.end;
        times && self.location.overlaps(&other.location)
    }

    /// When filling ends.
    #[must_use]
    pub fn filled(&self) -> Timestamp {
        let ClosingSchedule { turn, turns, .. } = self.closing;
        self.end.plus(Span(turn.0.saturating_mul(u64::from(turns))))
    }

    /// When deposits are released.
    #[must_use]
    pub fn release(&self) -> Timestamp {
        self.filled().plus(self.closing.settling)
    }

    /// When it ends, with a result or without.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        self.release().plus(self.closing.patience)
    }

    /// The turn at a time, how much of it has passed, and its length in microseconds.
    fn at(&self, now: Timestamp) -> Option<(Turn, u64, u64)> {
        if now >= self.filled() {
            return None;
        }
        let (first, since, length) = match now.0.checked_sub(self.end.0) {
            Some(since) => (self.during, since, self.closing.turn.0),
            None => (0, now.0.checked_sub(self.start.0)?, self.turn_during()),
        };
        let number = since.checked_div(length)?;
        let turn = u64::from(first).saturating_add(number);
        let turn = if now < self.end { turn.min(u64::from(self.during) - 1) } else { turn };
        Some((Turn(u16::try_from(turn).ok()?), since.saturating_sub(number * length), length))
    }

    fn turn_during(&self) -> u64 {
        let span = self.end.0.saturating_sub(self.start.0);
        span.div_ceil(u64::from(self.during).max(1))
    }

    /// The turn at a time, for deposits: those of the interval, then those of filling.
    #[must_use]
    pub fn turn(&self, now: Timestamp) -> Option<Turn> {
        self.at(now).map(|(turn, ..)| turn)
    }

    /// The turn at a time, for grants. None in a turn's last quarter, which is for deposits under
    /// way.
    #[must_use]
    pub fn granting(&self, now: Timestamp) -> Option<Turn> {
        let (turn, over, length) = self.at(now)?;
        (over < length - length / 4).then_some(turn)
    }

    /// Whether volunteers may come at a turn: the interval is over.
    #[must_use]
    pub fn fills(&self, turn: Turn) -> bool {
        turn.0 >= self.during
    }

    /// Checks everything that does not depend on who asks and when.
    ///
    /// # Errors
    /// [`DefinitionError`].
    pub fn check(&self, pinned: &PinnedConfiguration) -> Result<(), DefinitionError> {
        if self.deployment != pinned.fingerprint() {
            return Err(DefinitionError::Deployment);
        }
        self.check_times(pinned)?;
        let (slots, quota) = (u64::from(self.slots), u64::from(self.quota.get()));
        let fillable = 10 * slots <= 8 * quota.saturating_mul(u64::from(self.clients));
        if self.slots == 0 || self.slots > MAX_SLOTS || self.expected > self.slots || !fillable {
            return Err(DefinitionError::Slots);
        }
        let wasted = pinned.max_wasted_slots(
            self.quota.get(),
            pinned.limits.wasteful_accounts,
            self.closing.turns,
        );
        if u64::from(pinned.max_missing(self.slots)) < wasted {
            return Err(DefinitionError::Wasteful);
        }
        if self.accounts < pinned.limits.min_accounts || self.crowd(pinned) > slots {
            return Err(DefinitionError::Crowd);
        }
        self.check_result(pinned)
    }

    /// Checks that sums can be read and that what is read is published.
    fn check_result(&self, pinned: &PinnedConfiguration) -> Result<(), DefinitionError> {
        match self.rule {
            ReleaseRule::Mean { grain, resolution } if self.is_fine(grain, resolution, pinned) => {
                return Err(DefinitionError::Grain);
            }
            ReleaseRule::Mean { .. } if self.interval.square() => {
                return Err(DefinitionError::Squares);
            }
            ReleaseRule::Mean { .. } | ReleaseRule::Full => {}
        }
        let readable = readable(&self.interval, self.slots, pinned.limits.table_bits);
        if readable { Ok(()) } else { Err(DefinitionError::Unreadable) }
    }

    /// Whether a mean of so many steps could exclude a count. The means of N samples lie at most
    /// resolution / N apart. If that is at most the grain, every multiple of the grain is the mean of
    /// any N; it is so from the smallest N that is opened on.
    fn is_fine(&self, grain: u32, resolution: u32, pinned: &PinnedConfiguration) -> bool {
        let apart = u64::from(grain).saturating_mul(self.crowd(pinned));
        grain == 0 || resolution == 0 || apart < u64::from(resolution)
    }

    fn check_times(&self, pinned: &PinnedConfiguration) -> Result<(), DefinitionError> {
        let last = Timestamp(self.end.0.saturating_sub(1));
        let ClosingSchedule { turn, turns, settling, patience } = self.closing;
        let days = [self.start, last].map(|time| pinned.key_epoch(time));
        let lengths =
            [turn, settling, patience].iter().all(|span| span.0 > 0) && self.turn_during() > 0;
        // Over so many turns, each slot has some honest keeper.
        let keepers = turns.min(self.during) >= pinned.threshold;
        let after = lengths && keepers;
        let bounded = self.deadline().0.saturating_sub(self.end.0) <= pinned.limits.max_closing.0;
        let period = |time| period(pinned.uploads(), time);
        let periods = period(self.start).is_some() && period(self.start) == period(last);
        let good = self.start < self.end && after && bounded && periods;
        if good && days == [Some(self.key_epoch); 2] { Ok(()) } else { Err(DefinitionError::Time) }
    }

    /// k_min: more slots than k − 1 accounts together can have filled.
    fn crowd(&self, pinned: &PinnedConfiguration) -> u64 {
        let others = self.accounts.saturating_sub(1);
        pinned.max_slots_of_accounts(self.quota.get(), others).saturating_add(1)
    }
}

fn period(pass: &Pass, time: Timestamp) -> Option<Period> {
    pass.schedule.epoch_at(time).map(|epoch| pass.schedule.period_of(epoch))
}

impl AgreedDefinition {
    /// Opens a definition that a quorum has signed.
    ///
    /// # Errors
    /// [`DefinitionError`].
    pub fn open(
        signed: &Endorsed<Definition>,
        pinned: &PinnedConfiguration,
    ) -> Result<Self, DefinitionError> {
        let definition = signed.open(pinned, pinned.quorum())?;
        definition.check(pinned)?;
        let period = period(pinned.uploads(), definition.start).ok_or(DefinitionError::Time)?;
        let terms = Terms::new(definition.key, definition.interval);
        let crowd = definition.crowd(pinned);
        Ok(Self(Arc::new(Inner { definition, terms, crowd, period })))
    }

    /// A: the digest that names the aggregate everywhere.
    #[must_use]
    pub fn name(&self) -> Digest {
        self.0.definition.digest()
    }

    /// The terms under which its tuples are made and checked.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.0.terms
    }

    /// k_min: with fewer samples nothing more is opened.
    #[must_use]
    pub fn crowd(&self) -> u64 {
        self.0.crowd
    }

    /// The period of the credentials that are presented about it.
    #[must_use]
    pub fn period(&self) -> Period {
        self.0.period
    }

    /// The subject that a credential is presented about.
    #[must_use]
    pub fn subject(&self, pass: &Pass) -> Subject {
        Subject::new(pass, &self.name(), self.quota, self.0.period)
    }

    /// The keeper of a slot at a turn.
    #[must_use]
    pub fn keeper(&self, pinned: &PinnedConfiguration, slot: u32, turn: Turn) -> SmootherId {
        let sum = u64::from(slot) + u64::from(turn.0);
        let keeper = sum.checked_rem(pinned.smoothers.len() as u64).unwrap_or(0);
        SmootherId(u16::try_from(keeper).unwrap_or(0))
    }
}

impl std::ops::Deref for AgreedDefinition {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        &self.0.definition
    }
}
