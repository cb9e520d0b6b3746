//! Signs of faults, counted lately: what `GET /v1/status` and `GET /v1/diagnosis` say of the time before now.
//!
//! Counters count since the start, so a repaired fault would show forever. The totals of each second in
//! which they changed are kept for an hour.

use alpheus_doctor::facts::Sign;
use alpheus_encrypted_stream::error::ExclusionError;
use alpheus_encrypted_stream::tick::ingest::AuthenticityError;
use alpheus_stream_runtime::counters::Counters;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long totals are kept.
const KEPT: Duration = Duration::from_secs(3_600);
/// Totals are taken this often at most.
const BETWEEN: Duration = Duration::from_secs(1);

type Totals = BTreeMap<Sign, u64>;

/// The totals of the last hour. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Signs(Arc<Mutex<History>>);

#[derive(Debug, Default)]
struct History {
    /// When, by the steady clock, and since then what.
    changes: VecDeque<(Duration, Totals)>,
    looked: Duration,
}

impl Signs {
    /// Takes the totals, now and then.
    pub fn note(&self, steady: Duration, counters: &Counters) {
        let mut history = self.history();
        if steady < history.looked + BETWEEN {
            return;
        }
        history.looked = steady;
        history.add(steady, totals(counters));
    }

    /// What was counted in the time before now.
    #[must_use]
    pub fn within(&self, steady: Duration, time: Duration) -> Totals {
        let history = self.history();
        let Some((_, last)) = history.changes.back() else { return Totals::new() };
        let since = steady.saturating_sub(time);
        let before = history.changes.iter().rev().find(|(at, _)| *at <= since);
        let before = |sign: &Sign| before.and_then(|(_, totals)| totals.get(sign)).copied();
        let news = |(sign, total): (&Sign, &u64)| (*sign, total - before(sign).unwrap_or(0));
        last.iter().map(news).filter(|(_, times)| *times > 0).collect()
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
    fn add(&mut self, steady: Duration, totals: Totals) {
        if self.changes.back().is_none_or(|(_, last)| *last != totals) {
            self.changes.push_back((steady, totals));
        }
        // The one before the hour says what the hour began with.
        while self.changes.get(1).is_some_and(|(at, _)| *at + KEPT < steady) {
            self.changes.pop_front();
        }
    }
}

fn totals(counters: &Counters) -> Totals {
    let mut totals = Totals::new();
    let mut add = |sign: Option<Sign>, times: u64| {
        if let Some(sign) = sign {
            *totals.entry(sign).or_default() += times;
        }
    };
    counters.exclusions.iter().for_each(|(why, streams)| add(of_exclusion(*why), *streams));
    counters.refused_frames.iter().for_each(|(why, frames)| add(of_frame(why), *frames));
    totals
}

fn of_exclusion(why: ExclusionError) -> Option<Sign> {
    match why {
        ExclusionError::BudgetSpent => Some(Sign::BudgetSpent),
        ExclusionError::Unconfirmed => Some(Sign::Unconfirmed),
        ExclusionError::Policy => Some(Sign::PolicyForbids),
        ExclusionError::ControllerAbsent => Some(Sign::ControllerAbsent),
        ExclusionError::ForgedBorder | ExclusionError::CheckWord => Some(Sign::Forged),
        _ => None,
    }
}

/// The sign in a refused frame's short reason.
fn of_frame(why: &str) -> Option<Sign> {
    let forged = [AuthenticityError::BadMac, AuthenticityError::BadSignature];
    match why {
        _ if why == AuthenticityError::UnknownSession.name() => Some(Sign::UnknownSession),
        _ if forged.iter().any(|known| known.name() == why) => Some(Sign::Forged),
        "future" => Some(Sign::FutureFrames),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(frames: u64, streams: u64) -> Counters {
        let mut counters = Counters::default();
        counters.refused_frames.insert("bad-mac".into(), frames);
        counters.refused_frames.insert("late".into(), 9);
        counters.exclusions.insert(ExclusionError::ForgedBorder, streams);
        counters.exclusions.insert(ExclusionError::Incomplete, 9);
        counters
    }

    #[test]
    fn what_was_counted_shows_for_as_long_as_it_is_recent() {
        let (signs, at) = (Signs::default(), Duration::from_secs);
        assert_eq!(signs.within(at(5), at(600)), Totals::new());
        signs.note(at(10), &counted(2, 1));
        signs.note(at(100), &counted(2, 1));
        signs.note(at(200), &counted(5, 1));
        // Too soon after the last look.
        signs.note(at(200), &counted(50, 1));
        let forged = |steady, time| signs.within(at(steady), at(time)).get(&Sign::Forged).copied();
        assert_eq!(forged(201, 600), Some(6), "since the start");
        assert_eq!(forged(201, 60), Some(3));
        assert_eq!(forged(300, 60), None);
        assert_eq!(forged(300, 150), Some(3));
        signs.note(at(9_000), &counted(6, 1));
        assert_eq!(forged(9_000, 60), Some(1));
        assert!(signs.history().changes.len() <= 2, "an hour is kept");
    }
}
