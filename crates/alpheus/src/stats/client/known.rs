//! An aggregate that a client takes part in, from its definition to its closing.

use alpheus_accountable_statistics::client::{Attempt, Records};
use alpheus_accountable_statistics::configuration::Pinned;
use alpheus_accountable_statistics::definition::{Agreed, Turn};
use alpheus_accountable_statistics::messages::Entry;
use alpheus_accountable_statistics::refused::NotContributed;
use alpheus_accountable_statistics::tuple::Prover;
use alpheus_anonymous_credential::schedule::Time;
use rand_core::Rng;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long after somebody did not answer it is asked again, in microseconds.
const LATER: u64 = 500_000;
/// About how long after an aggregate's release it is first asked how it ended, and the longest
/// pause until it is asked again.
const SOON: Duration = Duration::from_secs(2);
const SELDOM: Duration = Duration::from_secs(60);

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
    /// When the next sample of a file is given.
    next_sample: Option<Time>,
    /// When it is next asked how it ended, and about how long after that again.
    next_look: Option<Instant>,
    pause: Duration,
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

/// When nobody answers for an aggregate any more.
#[must_use]
pub fn over(agreed: &Agreed) -> Time {
    Time(agreed.deadline().0.saturating_add(agreed.after.patience))
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
        let (full, next_dummy, next_sample, next_look) = (None, Time(0), None, None);
        Ok(Self {
            agreed,
            prover,
            open,
            under_way: 0,
            full,
            next_dummy,
            next_sample,
            next_look,
            pause: SOON,
            over: false,
        })
    }

    /// Takes samples now.
    #[must_use]
    pub fn measures(&self, now: Time) -> bool {
        self.agreed.start <= now && now < self.agreed.end
    }

    /// Whether a sample of a file is given now, of whom so many more may be given. They come at
    /// drawn moments over what is left of the aggregate's time: one after the other, they would
    /// be known for one client's.
    pub fn takes(&mut self, now: Time, left: u32, rng: &mut impl Rng) -> bool {
        let (start, end, during) = (self.agreed.start, self.agreed.end, self.agreed.during);
        let drawn = || {
            // The last turn's last quarter is for deposits that are under way.
            let quarter = end.0.saturating_sub(start.0) / u64::from(during).max(1) / 4;
            let rest = end.0.saturating_sub(quarter).saturating_sub(now.0);
            let most = rest / u64::from(left).saturating_add(1);
            Time(now.0.saturating_add(rng.next_u64().checked_rem(most).unwrap_or(0)))
        };
        let due = *self.next_sample.get_or_insert_with(drawn) <= now;
        if due {
            self.next_sample = None;
        }
        due
    }

    /// Whether it is time to ask how it ended: at drawn moments, ever less often. Else all clients
    /// would ask at the release, and each be known by its rhythm.
    pub fn looks(&mut self, rng: &mut impl Rng) -> bool {
        let now = Instant::now();
        let due = self.next_look.is_some_and(|at| at <= now);
        if due || self.next_look.is_none() {
            let most = u64::try_from(self.pause.as_millis()).unwrap_or(u64::MAX);
            let drawn = Duration::from_millis(rng.next_u64().checked_rem(most).unwrap_or(0));
            self.next_look = Some(now + self.pause / 2 + drawn);
            self.pause = (self.pause * 2).min(SELDOM);
        }
        due
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
