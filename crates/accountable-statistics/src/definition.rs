//! Which aggregate there is: over what place and time, of what values, under what
//! rules. A quorum of smoothers signs it, each of them only if it overlaps nothing
//! that this smoother has signed before.

use crate::configuration::{KeyEpoch, Pinned, SmootherId};
use crate::endorsed::{Endorsed, NotEndorsed};
use crate::interval::Interval;
use crate::logarithm::readable;
use crate::tuple::{Terms, ThresholdKey};
use alpheus_anonymous_credential::configuration::Pinned as Pass;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::schedule::{Period, Time};
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::signed::{Message, Verified};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is measured, and where: a path such as `speed/boston/i93/4`. Of two paths that
/// begin alike the longer one is inside of the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Place(String);

/// A path that names no place, or one that could be spelt in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a place is a path of 1 to 128 bytes: small letters, digits, `-`, `_`, `.`, parts divided by `/`, none empty or of dots alone"
)]
pub struct BadPlace;

/// What of a closed aggregate is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rule {
    /// The mean, rounded to a multiple of so many steps: one to nine digits gives the
    /// count away.
    Mean {
        /// Steps.
        grain: u32,
    },
    /// Count, sum and, with squares, sum of squares.
    Full,
}

/// Time after an aggregate's end, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    /// Of one turn of filling.
    pub turn: u64,
    /// How many such turns.
    pub turns: u16,
    /// For smoothers to hear each other's receipts; then deposits are released.
    pub settling: u64,
    /// For everything else; then the aggregate ends without a result.
    pub patience: u64,
}

/// One aggregate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The configuration's fingerprint.
    pub deployment: Digest,
    /// What, where.
    pub place: Place,
    /// From when on.
    pub start: Time,
    /// Until when, exclusive.
    pub end: Time,
    /// Turns of this time: at each one every slot is another smoother's to give.
    pub during: u16,
    /// L: contributions that count of one account.
    pub quota: Limit,
    /// k: more accounts than one party can obtain. Below that crowd nothing is opened.
    pub accounts: u32,
    /// What values may be, in steps.
    pub interval: Interval,
    /// U: contributions that the aggregator sees, dummies included.
    pub slots: u32,
    /// Samples that are expected.
    pub expected: u32,
    /// Clients that are expected to contribute or to volunteer.
    pub clients: u32,
    /// The key epoch.
    pub key_epoch: KeyEpoch,
    /// Its key.
    pub key: ThresholdKey,
    /// What is published.
    pub rule: Rule,
    /// What comes after the end.
    pub after: After,
}

impl Message for Definition {
    const LABEL: &'static str = labels::STATISTICS_DEFINITION;
}

/// A definition that is not to be used, whoever signed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDefinition {
    /// Of another deployment.
    #[error("the definition is another deployment's")]
    Deployment,
    /// Not signed by a quorum.
    #[error(transparent)]
    NotEndorsed(#[from] NotEndorsed),
    /// No time, too few turns, or more than one key epoch, credential period or limit.
    #[error(
        "the aggregate lies in its key epoch and one credential period; it and its filling have as many turns as the threshold at least, and what comes after takes some time, and no more than this deployment's limit"
    )]
    Time,
    /// Fewer slots than samples, or more than clients fill.
    #[error(
        "slots must hold all expected samples and be at most 8/10 of quota times clients, and at most a million"
    )]
    Slots,
    /// The crowd is smaller than this deployment's least, or larger than the slots.
    #[error(
        "a crowd has as many accounts as this deployment asks for, and no more than its slots show"
    )]
    Crowd,
    /// Too few slots may be missing.
    #[error(
        "too few slots may be missing for what wasteful accounts can leave empty; define more slots, a smaller quota, or a larger tolerance"
    )]
    Wasteful,
    /// Squares are opened for a deviation, which a mean has none of.
    #[error("an aggregate that publishes its mean sums no squares")]
    Squares,
    /// Nobody could read its sums.
    #[error("its sums could not be read; larger steps, a narrower interval or fewer slots")]
    Unreadable,
    /// Means rounded to nothing.
    #[error("a mean is rounded to at least one step")]
    Grain,
}

/// The most slots of an aggregate.
pub const MOST_SLOTS: u32 = 1_000_000;

/// One of the times at which slots are given out: those of the interval, then those of filling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Turn(#[serde(with = "postcard::fixint::be")] pub u16);

/// A definition that a quorum has signed. Cheap to clone.
#[derive(Clone)]
pub struct Agreed(Arc<Opened>);

struct Opened {
    definition: Verified<Definition>,
    terms: Terms,
    crowd: u64,
    period: Period,
}

impl Place {
    /// Whether one is inside of the other, or both are one.
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

impl TryFrom<String> for Place {
    type Error = BadPlace;

    fn try_from(path: String) -> Result<Self, BadPlace> {
        let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        let part = |part: &str| part.chars().all(letter) && part.chars().any(|c| c != '.');
        let good = path.len() <= 128 && path.split('/').all(part);
        if good { Ok(Self(path)) } else { Err(BadPlace) }
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        place.0
    }
}

impl Definition {
    /// Whether both are about one place at one time: from two such sums somebody
    /// could take one away from the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let times = self.start < other.end && other.start < self.end;
        times && self.place.overlaps(&other.place)
    }

    /// When no more slots are filled.
    #[must_use]
    pub fn filled(&self) -> Time {
        let After { turn, turns, .. } = self.after;
        Time(self.end.0.saturating_add(turn.saturating_mul(u64::from(turns))))
    }

    /// When deposits are released.
    #[must_use]
    pub fn release(&self) -> Time {
        Time(self.filled().0.saturating_add(self.after.settling))
    }

    /// When it ends, with a result or without.
    #[must_use]
    pub fn deadline(&self) -> Time {
        Time(self.release().0.saturating_add(self.after.patience))
    }

    /// The turn at a time, and how much of it is over, in microseconds of how many.
    fn at(&self, now: Time) -> Option<(Turn, u64, u64)> {
        if now >= self.filled() {
            return None;
        }
        let (first, since, length) = match now.0.checked_sub(self.end.0) {
            Some(since) => (self.during, since, self.after.turn),
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
    pub fn turn(&self, now: Time) -> Option<Turn> {
        self.at(now).map(|(turn, ..)| turn)
    }

    /// The turn at a time, for grants: none in a turn's last quarter, which is for deposits that
    /// are under way.
    #[must_use]
    pub fn granting(&self, now: Time) -> Option<Turn> {
        let (turn, over, length) = self.at(now)?;
        (over < length - length / 4).then_some(turn)
    }

    /// Whether volunteers come at a turn: the interval is over.
    #[must_use]
    pub fn fills(&self, turn: Turn) -> bool {
        turn.0 >= self.during
    }

    /// Checks all that does not depend on who asks and when.
    ///
    /// # Errors
    /// [`BadDefinition`].
    pub fn check(&self, pinned: &Pinned) -> Result<(), BadDefinition> {
        if self.deployment != pinned.fingerprint() {
            return Err(BadDefinition::Deployment);
        }
        self.check_times(pinned)?;
        let (slots, quota) = (u64::from(self.slots), u64::from(self.quota.get()));
        let fillable = 10 * slots <= 8 * quota.saturating_mul(u64::from(self.clients));
        if self.slots == 0 || self.slots > MOST_SLOTS || self.expected > self.slots || !fillable {
            return Err(BadDefinition::Slots);
        }
        let wasted = pinned.wasted_by(self.quota.get(), pinned.limits.wasteful, self.after.turns);
        if u64::from(pinned.missing_at_most(self.slots)) < wasted {
            return Err(BadDefinition::Wasteful);
        }
        if self.accounts < pinned.limits.accounts || self.crowd(pinned) > slots {
            return Err(BadDefinition::Crowd);
        }
        self.check_result(pinned)
    }

    /// Sums can be read, and what is read is published.
    fn check_result(&self, pinned: &Pinned) -> Result<(), BadDefinition> {
        match self.rule {
            Rule::Mean { grain: 0 } => return Err(BadDefinition::Grain),
            Rule::Mean { .. } if self.interval.square() => return Err(BadDefinition::Squares),
            Rule::Mean { .. } | Rule::Full => {}
        }
        let readable = readable(&self.interval, self.slots, pinned.limits.bits);
        if readable { Ok(()) } else { Err(BadDefinition::Unreadable) }
    }

    fn check_times(&self, pinned: &Pinned) -> Result<(), BadDefinition> {
        let last = Time(self.end.0.saturating_sub(1));
        let After { turn, turns, settling, patience } = self.after;
        let days = [self.start, last].map(|time| pinned.key_epoch(time));
        let lengths = turn > 0 && settling > 0 && patience > 0 && self.turn_during() > 0;
        // At so many turns one after the other, some keeper of each slot keeps to the protocol.
        let keepers = turns.min(self.during) >= pinned.threshold;
        let after = lengths && keepers;
        let bounded = self.deadline().0.saturating_sub(self.end.0) <= pinned.limits.after;
        let period = |time| period(pinned.uploads(), time);
        let periods = period(self.start).is_some() && period(self.start) == period(last);
        let good = self.start < self.end && after && bounded && periods;
        if good && days == [Some(self.key_epoch); 2] { Ok(()) } else { Err(BadDefinition::Time) }
    }

    /// k_min: k − 1 accounts, also together, cannot have filled so many slots.
    fn crowd(&self, pinned: &Pinned) -> u64 {
        let others = self.accounts.saturating_sub(1);
        pinned.slots_of_accounts(self.quota.get(), others).saturating_add(1)
    }
}

fn period(pass: &Pass, time: Time) -> Option<Period> {
    pass.schedule.epoch_at(time).map(|epoch| pass.schedule.period_of(epoch))
}

impl Agreed {
    /// Opens a definition that a quorum has signed.
    ///
    /// # Errors
    /// [`BadDefinition`].
    pub fn open(signed: &Endorsed<Definition>, pinned: &Pinned) -> Result<Self, BadDefinition> {
        let definition = signed.open(pinned, pinned.quorum())?;
        definition.check(pinned)?;
        let period = period(pinned.uploads(), definition.start).ok_or(BadDefinition::Time)?;
        let terms = Terms::new(definition.key, definition.interval);
        let crowd = definition.crowd(pinned);
        Ok(Self(Arc::new(Opened { definition, terms, crowd, period })))
    }

    /// A: the digest that names the aggregate everywhere.
    #[must_use]
    pub fn name(&self) -> Digest {
        self.0.definition.digest()
    }

    /// What its tuples are made and checked by.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.0.terms
    }

    /// k_min: with fewer samples nothing more is opened.
    #[must_use]
    pub fn crowd(&self) -> u64 {
        self.0.crowd
    }

    /// The period of the credentials that are shown about it.
    #[must_use]
    pub fn period(&self) -> Period {
        self.0.period
    }

    /// What a credential is shown about.
    #[must_use]
    pub fn subject(&self, pass: &Pass) -> Subject {
        Subject::new(pass, &self.name(), self.quota, self.0.period)
    }

    /// Who keeps a slot at a turn.
    #[must_use]
    pub fn keeper(&self, pinned: &Pinned, slot: u32, turn: Turn) -> SmootherId {
        let sum = u64::from(slot) + u64::from(turn.0);
        let keeper = sum.checked_rem(pinned.smoothers.len() as u64).unwrap_or(0);
        SmootherId(u16::try_from(keeper).unwrap_or(0))
    }
}

impl std::ops::Deref for Agreed {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        &self.0.definition
    }
}
