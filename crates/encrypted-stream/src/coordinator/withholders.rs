//! Controllers that gave a token and then no opening. Such a window is lost: a member that has opened S answers no other
//! set. They are left out of later windows for a while, if these can open without them, so that nobody ruins one
//! window after the other.
//!
//! The first time costs a controller one window, each further one four times as many. One time is forgiven after as
//! many windows as [`FORGIVEN`] that it has opened. So whatever it does, it ruins about one window of 65 in the long
//! run.
//!
//! The service chooses who is asked in any case, so no bound rests on this.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_policy::ids::ControllerId;
use alpheus_policy::plan::Plan;
use alpheus_time::{Span, Timestamp};

use super::output::Outcome;

/// After so many times they are left out of 1,024 windows, and of no more.
const MAX_TIMES: u32 = 6;
/// How many windows with its opening it takes until one time is forgiven.
const FORGIVEN: u32 = 64;

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
        for id in &outcome.unopened {
            let none = Strikes { times: 0, until: Timestamp(0), opened: 0 };
            let strikes = self.known.entry(*id).or_insert(none);
            // Windows that were under way at the first one are one time.
            if strikes.times == 0 || window.start >= strikes.until {
                strikes.times = (strikes.times + 1).min(MAX_TIMES);
                let length = window.end.0.saturating_sub(window.start.0);
                let out = Span(length.saturating_mul(1 << (2 * (strikes.times - 1))));
                (strikes.until, strikes.opened) = (self.newest.plus(out), 0);
            }
        }
        let Some(set) = &outcome.opening_set else { return };
        self.known.retain(|id, strikes| {
            let position = plan.roster.binary_search(id).ok();
            let position = position.and_then(|at| u32::try_from(at).ok());
            if outcome.result.is_ok() && position.is_some_and(|at| set.contains(at)) {
                strikes.opened += 1;
                if strikes.opened >= FORGIVEN {
                    (strikes.times, strikes.opened) = (strikes.times - 1, 0);
                }
            }
            strikes.times > 0
        });
    }

    /// Those whom a window that starts then is to open without.
    #[must_use]
    pub fn left_out(&self, start: Timestamp) -> BTreeSet<ControllerId> {
        let known = self.known.iter().filter(|(_, strikes)| start < strikes.until);
        known.map(|(id, _)| *id).collect()
    }

    /// Those whom the next window is to open without.
    #[must_use]
    pub fn left_out_now(&self) -> BTreeSet<ControllerId> {
        self.left_out(self.newest)
    }
}
