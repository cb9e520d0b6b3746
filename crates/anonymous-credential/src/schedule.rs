//! Time as the credential divides it. In each epoch a credential is presented at most L times.
//! For each period it is issued again.

use crate::error::ConfigurationError;
use alpheus_time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// The number of an epoch since the schedule's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch(pub u64);

/// The number of a period since the schedule's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Period(pub u64);

/// Epochs and periods of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// When epoch 0 of period 0 starts.
    pub start: Timestamp,
    /// Length of an epoch (the paper's is 15 s).
    pub epoch: Span,
    /// How long before an epoch its logins open.
    pub pre_login: Span,
    /// The same for a period's first epoch. No re-up reaches it, so everybody logs in there.
    pub border_pre_login: Span,
    /// Epochs in a period.
    pub epochs_per_period: u64,
    /// How many epochs after the running one a login code also spends; 0 for no codes. A shard
    /// that may have forgotten tags waits for as many more.
    pub ahead: u64,
}

/// The highest number of epochs that a login code spends after its own.
const MAX_AHEAD: u64 = 16;

/// Epochs and their lengths are below this, so arithmetic on them cannot overflow.
const MAX_NUMBER: u64 = 1 << 40;

impl Epoch {
    /// The next epoch.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Schedule {
    pub(crate) fn check(&self) -> Result<(), ConfigurationError> {
        let lengths = self.epoch > Span(0) && self.epochs_per_period > 0;
        let windows =
            self.pre_login <= self.border_pre_login && self.border_pre_login <= self.epoch;
        let sizes = self.start < Timestamp::LIMIT
            && self.epoch < Span(MAX_NUMBER)
            && self.epochs_per_period < MAX_NUMBER;
        let codes = self.ahead <= MAX_AHEAD;
        if lengths && windows && sizes && codes {
            Ok(())
        } else {
            Err(ConfigurationError::Schedule)
        }
    }

    /// The running epoch, if the schedule has begun.
    #[must_use]
    pub fn epoch_at(&self, now: Timestamp) -> Option<Epoch> {
        let since = now.0.checked_sub(self.start.0)?;
        Some(Epoch(since.checked_div(self.epoch.0)?))
    }

    /// When an epoch starts.
    #[must_use]
    pub fn starts(&self, epoch: Epoch) -> Timestamp {
        Timestamp(self.start.0.saturating_add(epoch.0.saturating_mul(self.epoch.0)))
    }

    /// When logins for an epoch, and re-ups to it, open.
    #[must_use]
    pub fn opens(&self, epoch: Epoch) -> Timestamp {
        let first = epoch.0.is_multiple_of(self.epochs_per_period);
        let early = if first { self.border_pre_login } else { self.pre_login };
        Timestamp(self.starts(epoch).0.saturating_sub(early.0))
    }

    /// Whether logins for an epoch, and re-ups to it, are accepted: from its pre-login to its
    /// end.
    #[must_use]
    pub fn is_open(&self, epoch: Epoch, now: Timestamp) -> bool {
        self.opens(epoch) <= now && now < self.starts(epoch.next())
    }

    /// Whether a tag of an epoch may be held for a login code: from `ahead` epochs before its
    /// pre-login to its end.
    #[must_use]
    pub fn may_hold(&self, epoch: Epoch, now: Timestamp) -> bool {
        let first = Epoch(epoch.0.saturating_sub(self.ahead));
        self.opens(first) <= now && now < self.starts(epoch.next())
    }

    /// How many later epochs a login code for an epoch spends: `ahead`, but not beyond its
    /// period.
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
        start: Timestamp(1_000),
        epoch: Span(100),
        pre_login: Span(10),
        border_pre_login: Span(50),
        epochs_per_period: 3,
        ahead: 2,
    };

    #[test]
    fn an_epoch_is_open_from_its_pre_login_to_its_end() {
        let open = |epoch, now| SCHEDULE.is_open(Epoch(epoch), Timestamp(now));
        assert!(!open(1, 1_089) && open(1, 1_090) && open(1, 1_199) && !open(1, 1_200));
        // The first of a period opens earlier.
        assert!(!open(3, 1_249) && open(3, 1_250) && open(3, 1_399));
        assert_eq!(SCHEDULE.epoch_at(Timestamp(999)), None);
        assert_eq!(SCHEDULE.epoch_at(Timestamp(1_099)), Some(Epoch(0)));
        assert_eq!(SCHEDULE.period_of(Epoch(5)), Period(1));
        assert_eq!(SCHEDULE.first_epoch(Period(2)), Epoch(6));
    }

    #[test]
    fn a_code_does_not_reach_beyond_its_period() {
        let carried = [0, 1, 2, 3].map(|epoch| SCHEDULE.carried_by_code(Epoch(epoch)));
        assert_eq!(carried, [2, 1, 0, 2]);
        let hold = |epoch, now| SCHEDULE.may_hold(Epoch(epoch), Timestamp(now));
        assert!(!hold(5, 1_249) && hold(5, 1_250) && hold(5, 1_599) && !hold(5, 1_600));
    }

    #[test]
    fn inconsistent_schedules_are_rejected() {
        assert_eq!(SCHEDULE.check(), Ok(()));
        for bad in [
            Schedule { epoch: Span(0), pre_login: Span(0), border_pre_login: Span(0), ..SCHEDULE },
            Schedule { epochs_per_period: 0, ..SCHEDULE },
            Schedule { border_pre_login: Span(9), ..SCHEDULE },
            Schedule { border_pre_login: Span(101), ..SCHEDULE },
            Schedule { ahead: 17, ..SCHEDULE },
            Schedule { start: Timestamp(u64::MAX), ..SCHEDULE },
        ] {
            assert_eq!(bad.check(), Err(ConfigurationError::Schedule));
        }
    }
}
