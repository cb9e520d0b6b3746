//! A client's participation in an aggregate, from the definition to the closing.

use alpheus_accountable_statistics::client::{Attempt, Records};
use alpheus_accountable_statistics::configuration::PinnedConfiguration;
use alpheus_accountable_statistics::definition::{AgreedDefinition, Turn};
use alpheus_accountable_statistics::messages::Entry;
use alpheus_accountable_statistics::role_error::ContributionError;
use alpheus_accountable_statistics::tuple::Prover;
use alpheus_time::Timestamp;
use rand_core::Rng;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pause after a party did not answer, in microseconds.
const LATER: u64 = 500_000;
/// The part of a turn after the end in which nobody gives dummies.
const LATE_SAMPLES: u64 = 4;
/// The average pause from an aggregate's release to the first inclusion check, and the maximum pause
/// between checks.
const SOON: Duration = Duration::from_secs(2);
const SELDOM: Duration = Duration::from_secs(60);

/// The participation.
pub struct Participation {
    /// The aggregate's definition.
    pub agreed: AgreedDefinition,
    /// The prover.
    pub prover: Arc<Prover>,
    /// Pending uploads.
    pub open: Vec<PendingUpload>,
    /// The number of uploads being sent now.
    pub under_way: usize,
    /// The turn in which no keeper has a free slot.
    pub full: Option<Turn>,
    /// The earliest time of the next dummy.
    pub next_dummy: Timestamp,
    /// The time of the next sample of a file.
    next_sample: Option<Timestamp>,
    /// The time of the next inclusion check, and the average pause after it.
    next_check: Option<Instant>,
    pause: Duration,
    /// Whether nothing is left to do.
    pub over: bool,
}

/// A pending upload.
pub struct PendingUpload {
    attempt: Attempt,
    kind: Kind,
    when: RetryTime,
}

/// The kind of an upload; one from before this start counts as a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sample.
    Sample,
    /// A volunteer's dummy.
    Dummy,
}

/// The next step of an upload.
pub enum NextStep {
    /// Continue it.
    Upload,
    /// Give it up: it can get no slot any more.
    GiveUp,
    /// Keep it as unconfirmed: it was deposited, but too few smoothers have answered. The closing
    /// will show whether it counts.
    Unconfirmed(Entry),
}

enum RetryTime {
    /// At any turn but this one.
    After(Option<Turn>),
    /// From a time on.
    From(Timestamp),
}

/// The time after which no party answers for an aggregate any more.
#[must_use]
pub fn over(agreed: &AgreedDefinition) -> Timestamp {
    Timestamp(agreed.deadline().0.saturating_add(agreed.closing.patience.0))
}

impl PendingUpload {
    /// Waits for another turn than the current one.
    #[must_use]
    pub fn turn(
        (attempt, kind): (Attempt, Kind),
        agreed: &AgreedDefinition,
        now: Timestamp,
    ) -> Self {
        Self { attempt, kind, when: RetryTime::After(agreed.turn(now)) }
    }

    /// Waits for a moment.
    #[must_use]
    pub fn moment((attempt, kind): (Attempt, Kind), now: Timestamp) -> Self {
        Self { attempt, kind, when: RetryTime::From(Timestamp(now.0.saturating_add(LATER))) }
    }

    fn is_due(&self, agreed: &AgreedDefinition, now: Timestamp) -> bool {
        match self.when {
            RetryTime::After(turn) => agreed.turn(now) != turn,
            RetryTime::From(time) => now >= time,
        }
    }
}

impl Participation {
    /// Takes part in an aggregate, with the uploads pending from before this start.
    ///
    /// # Errors
    /// If a stored upload is corrupt.
    pub fn new(agreed: AgreedDefinition, records: &Records) -> Result<Self, ContributionError> {
        let attempts = Attempt::restore_all(&agreed, records)?.into_iter();
        let (kind, when) = (Kind::Sample, || RetryTime::From(Timestamp(0)));
        let open = attempts.map(|attempt| PendingUpload { attempt, kind, when: when() });
        let (prover, open) = (Arc::new(Prover::new(*agreed.terms())), open.collect());
        // Samples that came late need slots, which dummies of others would take.
        let late = agreed.closing.turn.0 / LATE_SAMPLES;
        let next_dummy = Timestamp(agreed.end.0.saturating_add(late));
        let (full, next_sample, next_check) = (None, None, None);
        Ok(Self {
            agreed,
            prover,
            open,
            under_way: 0,
            full,
            next_dummy,
            next_sample,
            next_check,
            pause: SOON,
            over: false,
        })
    }

    /// Whether the aggregate accepts samples now.
    #[must_use]
    pub fn measures(&self, now: Timestamp) -> bool {
        self.agreed.start <= now && now < self.agreed.end
    }

    /// Whether a sample of a file is due now, if `left` more may be contributed. Samples come at random
    /// times over the rest of the aggregate: a burst would reveal that they belong to one client.
    pub fn takes(&mut self, now: Timestamp, left: u32, rng: &mut impl Rng) -> bool {
        let (start, end, during) = (self.agreed.start, self.agreed.end, self.agreed.during);
        let drawn = || {
            // The last quarter of the last turn is for pending deposits.
            let quarter = end.0.saturating_sub(start.0) / u64::from(during).max(1) / 4;
            let rest = end.0.saturating_sub(quarter).saturating_sub(now.0);
            let most = rest / u64::from(left).saturating_add(1);
            Timestamp(now.0.saturating_add(rng.next_u64().checked_rem(most).unwrap_or(0)))
        };
        let due = *self.next_sample.get_or_insert_with(drawn) <= now;
        if due {
            self.next_sample = None;
        }
        due
    }

    /// Whether an inclusion check is due. Checks come at random times, less and less often. Otherwise
    /// all clients would ask at the release, and a fixed rhythm would identify each.
    pub fn check_is_due(&mut self, rng: &mut impl Rng) -> bool {
        let now = Instant::now();
        let due = self.next_check.is_some_and(|at| at <= now);
        if due || self.next_check.is_none() {
            let most = u64::try_from(self.pause.as_millis()).unwrap_or(u64::MAX);
            let drawn = Duration::from_millis(rng.next_u64().checked_rem(most).unwrap_or(0));
            self.next_check = Some(now + self.pause / 2 + drawn);
            self.pause = (self.pause * 2).min(SELDOM);
        }
        due
    }

    /// Whether a dummy is due: samples are in, and slots may be free.
    #[must_use]
    pub fn wants_dummy(&self, now: Timestamp) -> bool {
        let turn = self.agreed.turn(now).filter(|turn| self.agreed.fills(*turn));
        let idle = self.open.is_empty() && self.under_way == 0;
        turn.is_some() && turn != self.full && idle && now >= self.next_dummy
    }

    /// The next step of an upload now.
    #[must_use]
    pub fn step(
        &self,
        attempt: &Attempt,
        pinned: &PinnedConfiguration,
        now: Timestamp,
    ) -> NextStep {
        match (attempt.entry(), attempt.certificate(pinned)) {
            _ if now < self.agreed.filled() => NextStep::Upload,
            (None, _) => NextStep::GiveUp,
            // All smoothers have it, or get it before the release; it is kept as proof.
            (Some(_), Some(_)) => NextStep::Upload,
            // Smoothers that have signed it return the same receipts again.
            (Some(_), None) if now < self.agreed.release() => NextStep::Upload,
            (Some(entry), None) => NextStep::Unconfirmed(*entry),
        }
    }

    /// The uploads that are due now.
    pub fn due(&mut self, now: Timestamp) -> Vec<(Attempt, Kind)> {
        let (agreed, open) = (&self.agreed, std::mem::take(&mut self.open));
        let (due, later) = open.into_iter().partition(|waiting| waiting.is_due(agreed, now));
        self.open = later;
        let due: Vec<PendingUpload> = due;
        due.into_iter().map(|waiting| (waiting.attempt, waiting.kind)).collect()
    }
}
