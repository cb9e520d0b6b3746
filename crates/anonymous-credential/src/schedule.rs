//! Time as the credential sees it: epochs, in each of which a credential is
//! shown at most L times, and periods, for each of which it is issued anew.

use crate::error::BadConfiguration;
use serde::{Deserialize, Serialize};

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Time(pub u64);

/// The number of an epoch, counted from the schedule's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch(pub u64);

/// The number of a period, counted from the schedule's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Period(pub u64);

/// Epochs and periods of a deployment. Lengths are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// When epoch 0 of period 0 starts.
    pub start: Time,
    /// Length of an epoch (the paper's is 15 s).
    pub epoch: u64,
    /// How long before an epoch logins for it begin.
    pub pre_login: u64,
    /// The same for a period's first epoch, which no re-up reaches: everybody
    /// logs in there.
    pub border_pre_login: u64,
    /// Epochs of a period.
    pub epochs_per_period: u64,
    /// Epochs after the running one that a login code spends as well; none for
    /// no codes. A shard that may have forgotten tags waits out as many more.
    pub ahead: u64,
}

/// The most epochs that a login code spends beside its own.
const MOST_AHEAD: u64 = 16;

/// Epochs are below this, so that no arithmetic on them overflows.
const LAST: u64 = 1 << 40;
/// Times are below this (some 142 years after 1970).
const LAST_TIME: u64 = 1 << 52;

impl Epoch {
    /// The one after.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Schedule {
    pub(crate) fn check(&self) -> Result<(), BadConfiguration> {
        let lengths = self.epoch > 0 && self.epochs_per_period > 0;
        let windows =
            self.pre_login <= self.border_pre_login && self.border_pre_login <= self.epoch;
        let sizes = self.start.0 < LAST_TIME && self.epoch < LAST && self.epochs_per_period < LAST;
        let codes = self.ahead <= MOST_AHEAD;
        if lengths && windows && sizes && codes { Ok(()) } else { Err(BadConfiguration::Schedule) }
    }

    /// The epoch that runs, if the schedule has begun.
    #[must_use]
    pub fn epoch_at(&self, now: Time) -> Option<Epoch> {
        let since = now.0.checked_sub(self.start.0)?;
        Some(Epoch(since.checked_div(self.epoch)?))
    }

    /// When an epoch starts.
    #[must_use]
    pub fn starts(&self, epoch: Epoch) -> Time {
        Time(self.start.0.saturating_add(epoch.0.saturating_mul(self.epoch)))
    }

    /// When logins for an epoch, and re-ups to it, begin.
    #[must_use]
    pub fn opens(&self, epoch: Epoch) -> Time {
        let first = epoch.0.is_multiple_of(self.epochs_per_period);
        let early = if first { self.border_pre_login } else { self.pre_login };
        Time(self.starts(epoch).0.saturating_sub(early))
    }

    /// Whether logins for an epoch, and re-ups to it, are taken: from a little
    /// before its start to its end.
    #[must_use]
    pub fn is_open(&self, epoch: Epoch, now: Time) -> bool {
        self.opens(epoch) <= now && now < self.starts(epoch.next())
    }

    /// Whether a tag of an epoch may be held for a login code: from as many
    /// epochs before its pre-login as codes spend, to its end.
    #[must_use]
    pub fn may_hold(&self, epoch: Epoch, now: Time) -> bool {
        let first = Epoch(epoch.0.saturating_sub(self.ahead));
        self.opens(first) <= now && now < self.starts(epoch.next())
    }

    /// How many epochs a login code for an epoch spends beside it: as many as
    /// codes do, as far as its period goes.
    #[must_use]
    pub fn carried_by_code(&self, epoch: Epoch) -> u64 {
        let next = self.first_epoch(Period(self.period_of(epoch).0.saturating_add(1)));
        self.ahead.min(next.0.saturating_sub(epoch.0).saturating_sub(1))
    }

    /// The period of an epoch.
    #[must_use]
    pub fn period_of(&self, epoch: Epoch) -> Period {
        Period(epoch.0.checked_div(self.epochs_per_period).unwrap_or(0))
    }

    /// The first epoch of a period.
    #[must_use]
    pub fn first_epoch(&self, period: Period) -> Epoch {
        Epoch(period.0.saturating_mul(self.epochs_per_period))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULE: Schedule = Schedule {
        start: Time(1_000),
        epoch: 100,
        pre_login: 10,
        border_pre_login: 50,
        epochs_per_period: 3,
        ahead: 2,
    };

    #[test]
    fn an_epoch_is_open_from_a_little_before_it_to_its_end() {
        let open = |epoch, now| SCHEDULE.is_open(Epoch(epoch), Time(now));
        assert!(!open(1, 1_089) && open(1, 1_090) && open(1, 1_199) && !open(1, 1_200));
        // The first of a period opens earlier.
        assert!(!open(3, 1_249) && open(3, 1_250) && open(3, 1_399));
        assert_eq!(SCHEDULE.epoch_at(Time(999)), None);
        assert_eq!(SCHEDULE.epoch_at(Time(1_099)), Some(Epoch(0)));
        assert_eq!(SCHEDULE.period_of(Epoch(5)), Period(1));
        assert_eq!(SCHEDULE.first_epoch(Period(2)), Epoch(6));
    }

    #[test]
    fn a_code_goes_as_far_as_its_period() {
        let carried = [0, 1, 2, 3].map(|epoch| SCHEDULE.carried_by_code(Epoch(epoch)));
        assert_eq!(carried, [2, 1, 0, 2]);
        let hold = |epoch, now| SCHEDULE.may_hold(Epoch(epoch), Time(now));
        assert!(!hold(5, 1_249) && hold(5, 1_250) && hold(5, 1_599) && !hold(5, 1_600));
    }

    #[test]
    fn schedules_that_make_no_sense_are_refused() {
        assert_eq!(SCHEDULE.check(), Ok(()));
        for bad in [
            Schedule { epoch: 0, pre_login: 0, border_pre_login: 0, ..SCHEDULE },
            Schedule { epochs_per_period: 0, ..SCHEDULE },
            Schedule { border_pre_login: 9, ..SCHEDULE },
            Schedule { border_pre_login: 101, ..SCHEDULE },
            Schedule { ahead: 17, ..SCHEDULE },
            Schedule { start: Time(u64::MAX), ..SCHEDULE },
        ] {
            assert_eq!(bad.check(), Err(BadConfiguration::Schedule));
        }
    }
}
