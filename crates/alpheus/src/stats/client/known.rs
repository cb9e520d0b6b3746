//! An aggregate that a client takes part in, from its definition to its closing.

use crate::pass::link::LinkError;
use crate::stats::ways::{StatsError, Way};
use alpheus_accountable_statistics::client::{Attempt, Records};
use alpheus_accountable_statistics::closing::Inclusion;
use alpheus_accountable_statistics::configuration::Pinned;
use alpheus_accountable_statistics::definition::{Agreed, Turn};
use alpheus_accountable_statistics::messages::{Closing, Entry};
use alpheus_accountable_statistics::refused::NotContributed;
use alpheus_accountable_statistics::tuple::Prover;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::signed::{Signed, Verified};
use std::sync::Arc;

/// How long after somebody did not answer it is asked again, in microseconds.
const LATER: u64 = 500_000;

/// The aggregate.
pub struct Known {
    /// What it is.
    pub agreed: Agreed,
    /// Proves for it.
    pub prover: Arc<Prover>,
    /// Uploads under way.
    pub open: Vec<Waiting>,
    /// How many of them are on their way now.
    pub under_way: usize,
    /// At this turn no keeper has a free slot.
    pub full: Option<Turn>,
    /// Not before then the next dummy.
    pub next_dummy: Time,
    /// Nothing is left to do.
    pub over: bool,
}

/// An upload that waits.
pub struct Waiting {
    attempt: Attempt,
    kind: Kind,
    when: When,
}

/// What an upload is; one that was under way before this start is taken for a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sample.
    Sample,
    /// A volunteer's dummy.
    Dummy,
}

/// What is to be done with an upload.
pub enum Next {
    /// It goes on.
    Upload,
    /// It has no slot, and gets none any more.
    GiveUp,
    /// It was deposited, and too few have answered: its closing will tell.
    Doubt(Entry),
}

enum When {
    /// At another turn than this one.
    After(Option<Turn>),
    /// From a time on.
    From(Time),
}

impl Waiting {
    /// For another turn than the present one.
    #[must_use]
    pub fn turn((attempt, kind): (Attempt, Kind), agreed: &Agreed, now: Time) -> Self {
        Self { attempt, kind, when: When::After(agreed.turn(now)) }
    }

    /// For a moment.
    #[must_use]
    pub fn moment((attempt, kind): (Attempt, Kind), now: Time) -> Self {
        Self { attempt, kind, when: When::From(Time(now.0.saturating_add(LATER))) }
    }

    fn is_due(&self, agreed: &Agreed, now: Time) -> bool {
        match self.when {
            When::After(turn) => agreed.turn(now) != turn,
            When::From(time) => now >= time,
        }
    }
}

impl Known {
    /// A definition that was learnt, and what was under way for it before this start.
    ///
    /// # Errors
    /// If what is stored is damaged.
    pub fn new(agreed: Agreed, records: &Records) -> Result<Self, NotContributed> {
        let attempts = Attempt::restore_all(&agreed, records)?.into_iter();
        let (kind, when) = (Kind::Sample, || When::From(Time(0)));
        let open = attempts.map(|attempt| Waiting { attempt, kind, when: when() });
        let (prover, open) = (Arc::new(Prover::new(*agreed.terms())), open.collect());
        let (full, next_dummy) = (None, Time(0));
        Ok(Self { agreed, prover, open, under_way: 0, full, next_dummy, over: false })
    }

    /// Takes samples now.
    #[must_use]
    pub fn measures(&self, now: Time) -> bool {
        self.agreed.start <= now && now < self.agreed.end
    }

    /// Wants a dummy now: samples are in, and slots may be free.
    #[must_use]
    pub fn wants_dummy(&self, now: Time) -> bool {
        let turn = self.agreed.turn(now).filter(|turn| self.agreed.fills(*turn));
        let idle = self.open.is_empty() && self.under_way == 0;
        turn.is_some() && turn != self.full && idle && now >= self.next_dummy
    }

    /// What is to be done with an upload now.
    #[must_use]
    pub fn step(&self, attempt: &Attempt, pinned: &Pinned, now: Time) -> Next {
        match (attempt.entry(), attempt.certificate(pinned)) {
            _ if now < self.agreed.filled() => Next::Upload,
            (None, _) => Next::GiveUp,
            // All have it, or get it before the release; it is kept as proof.
            (Some(_), Some(_)) => Next::Upload,
            // Smoothers that have signed it give the same receipts again.
            (Some(_), None) if now < self.agreed.release() => Next::Upload,
            (Some(entry), None) => Next::Doubt(*entry),
        }
    }

    /// The uploads that are to go on now.
    pub fn due(&mut self, now: Time) -> Vec<(Attempt, Kind)> {
        let (agreed, open) = (&self.agreed, std::mem::take(&mut self.open));
        let (due, later) = open.into_iter().partition(|waiting| waiting.is_due(agreed, now));
        self.open = later;
        let due: Vec<Waiting> = due;
        due.into_iter().map(|waiting| (waiting.attempt, waiting.kind)).collect()
    }
}

fn is_missing(error: &LinkError) -> bool {
    matches!(error, LinkError::Refused(problem) if problem.status == 404)
}

/// The closing, once there is one.
///
/// # Errors
/// If the aggregator does not answer, or with something else.
pub async fn closing(
    way: &Way,
    name: &str,
    pinned: &Pinned,
) -> Result<Option<Verified<Closing>>, StatsError> {
    let path = format!("/v1/closings/{name}");
    match way.get::<Signed<Closing>>(&path).await {
        Ok(closing) => Ok(closing.open(&pinned.aggregator).ok()),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a closing counts an entry.
///
/// # Errors
/// If the aggregator does not answer.
pub async fn is_counted(
    way: &Way,
    name: &str,
    agreed: &Agreed,
    closing: &Verified<Closing>,
    entry: &Entry,
) -> Result<bool, StatsError> {
    let path = format!("/v1/inclusion/{name}/{}", entry.slot);
    match way.get::<Inclusion>(&path).await {
        Ok(proof) => Ok(proof.check(agreed, closing, entry).is_ok()),
        Err(error) if is_missing(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
