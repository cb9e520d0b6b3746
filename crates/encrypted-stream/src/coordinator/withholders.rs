//! Controllers that gave a token and then no opening. Such a window is lost: a member that has opened S answers no other
//! set. They are left out of later windows for a while, if these can open without them, so that nobody ruins one
//! window after the other.
//!
//! The first time costs a controller one window, each further one four times as many. One time is forgiven after as
//! many windows as [`FORGIVEN`] that it has opened. So whatever it does, it ruins about one window of 65 in the long
//! run.
//!
//! Where owners bound the sets of a day, who is in the first window of a day and then gives no token may end all
//! others of that day. So that costs it whole days: the first time one, then four, then sixteen. It then ruins one day
//! of 17 at most.
//!
//! The service chooses who is asked in any case, so no bound rests on this.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_policy::ids::ControllerId;
use alpheus_policy::plan::Plan;
use alpheus_time::{Span, Timestamp};

use super::output::Outcome;
use crate::error::{ReleaseError, WindowRefusalError};
use crate::keys::{DAY, day_of};

/// After so many times they are left out of 1,024 windows, and of no more.
const MAX_TIMES: u32 = 6;
/// How many windows with its opening it takes until one time is forgiven.
const FORGIVEN: u32 = 64;
/// After so many days that they have ruined, they are left out of [`MAX_DAYS_OUT`], and of no more.
const MAX_RUINED_DAYS: u32 = 3;
/// Days. After as many in which it could take part, one is forgiven.
const MAX_DAYS_OUT: u64 = 16;

/// Who has ruined windows. Not durable: a restarted service learns it again.
#[derive(Clone, Debug)]
pub struct Withholders {
    known: BTreeMap<ControllerId, Strikes>,
    /// The latest end of a window that has had its outcome.
    newest: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Strikes {
    times: u32,
    /// Windows that start before are to open without it.
    until: Timestamp,
    /// Windows that it has opened since.
    opened: u32,
    /// How often it has ruined a day.
    days: u32,
    /// Windows of days before are to open without it.
    back: Timestamp,
}

impl Strikes {
    const NONE: Self =
        Self { times: 0, until: Timestamp(0), opened: 0, days: 0, back: Timestamp(0) };

    /// It has ruined the rest of the day that a window begins on.
    fn ruin_day(&mut self, start: Timestamp) {
        let Some(since) = start.0.checked_sub(self.back.0) else { return };
        let forgiven = u32::try_from(since / (MAX_DAYS_OUT * DAY)).unwrap_or(u32::MAX);
        self.days = self.days.saturating_sub(forgiven).saturating_add(1).min(MAX_RUINED_DAYS);
        let midnight = Timestamp(day_of(start).saturating_add(1).saturating_mul(DAY));
        self.back = midnight.plus(Span(DAY << (2 * (self.days - 1))));
    }

    /// Whether anything of it still counts.
    fn counts(&self, now: Timestamp) -> bool {
        self.times > 0 || now < self.back.plus(Span(MAX_DAYS_OUT * DAY * u64::from(self.days)))
    }
}

impl Default for Withholders {
    fn default() -> Self {
        Self { known: BTreeMap::new(), newest: Timestamp(0) }
    }
}

impl Withholders {
    /// Takes what the outcome of a window says of its members.
    pub fn note(&mut self, plan: &Plan, outcome: &Outcome) {
        let window = outcome.window;
        self.newest = self.newest.max(window.end);
        let reason = outcome.result.as_ref().err();
        let uses_up_sets = matches!(
            reason,
            Some(ReleaseError::ControllerRefused(WindowRefusalError::TooManySets { .. }))
        );
        for id in &outcome.unopened {
            let strikes = self.known.entry(*id).or_insert(Strikes::NONE);
            if uses_up_sets {
                strikes.ruin_day(window.start);
            }
            // Windows that were under way at the first one are one time.
            if strikes.times == 0 || window.start >= strikes.until {
                strikes.times = (strikes.times + 1).min(MAX_TIMES);
                let length = window.end.0.saturating_sub(window.start.0);
                let out = Span(length.saturating_mul(1 << (2 * (strikes.times - 1))));
                (strikes.until, strikes.opened) = (self.newest.plus(out), 0);
            }
        }
        let Some(set) = &outcome.opening_set else { return };
        let now = self.newest;
        self.known.retain(|id, strikes| {
            let position = plan.roster.binary_search(id).ok();
            let position = position.and_then(|at| u32::try_from(at).ok());
            if outcome.result.is_ok() && position.is_some_and(|at| set.contains(at)) {
                strikes.opened += 1;
                if strikes.opened >= FORGIVEN {
                    (strikes.times, strikes.opened) = (strikes.times.saturating_sub(1), 0);
                }
            }
            strikes.counts(now)
        });
    }

    /// Those whom a window that starts then is to open without.
    #[must_use]
    pub fn left_out(&self, start: Timestamp) -> BTreeSet<ControllerId> {
        let known = self.known.iter();
        let known = known.filter(|(_, own)| start < own.until.max(own.back));
        known.map(|(id, _)| *id).collect()
    }

    /// Those whom the next window is to open without.
    #[must_use]
    pub fn left_out_now(&self) -> BTreeSet<ControllerId> {
        self.left_out(self.newest)
    }
}
