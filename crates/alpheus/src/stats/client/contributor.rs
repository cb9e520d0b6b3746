//! What a client does when: learns what is defined, gives samples while an aggregate runs and
//! dummies after it, and looks at the end whether all of it is counted ([`super::looking`]).

use super::book::Book;
use super::heard::{Heard, definitions};
use super::input::{Input, Sample};
use super::known::{Kind, Known, Next, Waiting, over};
use super::looking::Complaint;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::stats::card::Opened;
use crate::stats::clock::Clock;
use crate::stats::names::hex;
use crate::stats::person::{self, Shared, Upload};
use crate::stats::plan::Plan;
use crate::stats::ways::{AGAIN, StatsError, Ways};
use alpheus_accountable_statistics::client::{Attempt, forget_before};
use alpheus_accountable_statistics::definition::{Agreed, Definition};
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Step};
use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How often smoothers are asked for definitions while something is defined, and while nothing is.
const SELDOM: Duration = Duration::from_secs(20);
const OFTEN: Duration = Duration::from_secs(1);
/// Dummies come at drawn moments, on average this many in half a turn.
const DUMMIES: u64 = 32;
/// Uploads under way at the same time: each that is when a client is killed may lose its slot at a
/// turn's border, and costs another showing of the quota.
const TOGETHER: usize = 1;

/// What came of it all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Samples with receipts of a quorum.
    pub samples: u64,
    /// Dummies with receipts of a quorum.
    pub dummies: u64,
    /// Samples that found no slot in time.
    pub unplaced: u64,
    /// Lines that were no sample, or came when nothing took one.
    pub dropped: u64,
    /// Contributions that are not known to count, and why.
    pub complaints: BTreeMap<Complaint, u64>,
}

/// An upload that was begun or went on at some time, and what became of it.
type Done = (Digest, Kind, Time, Result<Upload, StatsError>);

/// A client at work.
pub struct Contributor {
    pub(super) card: Opened,
    pub(super) clock: Clock,
    plan: Plan,
    pub(super) person: Shared<Book>,
    volunteers: bool,
    pub(super) known: BTreeMap<Digest, Known>,
    heard: Heard,
    uploads: JoinSet<Done>,
    asked: Option<Instant>,
    /// Whether a quorum has said what is defined since this start.
    learnt: bool,
    pub(super) rng: ChaCha20Rng,
    pub(super) summary: Summary,
}

impl Contributor {
    /// A client that has its credentials.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn new(
        card: Opened,
        clock: Clock,
        plan: Plan,
        person: Shared<Book>,
        volunteers: bool,
    ) -> Result<Self, Failure> {
        Ok(Self {
            card,
            clock,
            plan,
            person,
            volunteers,
            known: BTreeMap::new(),
            heard: Heard::default(),
            uploads: JoinSet::new(),
            asked: None,
            learnt: false,
            rng: entropy::rng()?,
            summary: Summary::default(),
        })
    }

    /// Runs until its input has ended and all that it gave is counted.
    ///
    /// # Errors
    /// If its ledger cannot be written.
    pub async fn run(mut self, mut input: Input) -> Result<Summary, Failure> {
        loop {
            self.learn().await?;
            self.give(&mut input).await?;
            self.go_on().await?;
            self.volunteer().await?;
            while let Some(done) = self.uploads.try_join_next() {
                self.note(done.blame(Category::Io)?).await?;
            }
            self.look_after().await?;
            let done = self.learnt && self.uploads.is_empty() && !self.takes_part();
            if input.ended() && done {
                self.summary.dropped = input.dropped;
                return Ok(self.summary);
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Whether an aggregate that has begun is not over.
    fn takes_part(&self) -> bool {
        let now = self.clock.now();
        self.known.values().any(|known| known.agreed.start <= now && !known.over)
    }

    /// Learns definitions from all smoothers, since one may hide some.
    async fn learn(&mut self) -> Result<(), Failure> {
        let now = self.clock.now();
        let coming = self.known.values().any(|known| now < known.agreed.start);
        let pause = if coming { SELDOM } else { OFTEN };
        if self.asked.is_some_and(|asked| asked.elapsed() < pause) {
            return Ok(());
        }
        self.asked = Some(Instant::now());
        let quorum = self.card.pinned.quorum();
        let told = definitions(&Ways::new(&self.card)?.smoothers, quorum).await;
        for definitions in &told {
            self.take_up(definitions)?;
        }
        if told.len() >= quorum && !self.learnt {
            self.learnt = true;
            self.sweep()?;
        }
        Ok(())
    }

    fn take_up(&mut self, definitions: &[Endorsed<Definition>]) -> Result<(), Failure> {
        for agreed in self.heard.new_among(definitions, &self.card.pinned) {
            if self.agrees(&agreed) && self.is_to_do(&agreed)? {
                let records = person::lock(&self.person).ledger().records();
                let name = agreed.name();
                let known = Known::new(agreed, &records).blame(Category::Input)?;
                self.known.insert(name, known);
            }
        }
        Ok(())
    }

    /// Whether an aggregate is not over, or something is left that was given to it.
    fn is_to_do(&self, agreed: &Agreed) -> Result<bool, Failure> {
        if self.clock.now() < over(agreed) {
            return Ok(true);
        }
        let mut person = person::lock(&self.person);
        let left = Attempt::restore_all(agreed, &person.ledger().records());
        Ok(!left.blame(Category::Input)?.is_empty() || person.ledger().awaits(&agreed.name()))
    }

    /// Removes what is left of uploads to aggregates that are so old that none of a quorum knows
    /// them, and of past periods.
    fn sweep(&self) -> Result<(), Failure> {
        let period = person::running(&self.card.pinned, &self.clock)?;
        let mut person = person::lock(&self.person);
        let records = person.ledger().records();
        let swept = forget_before(&self.card.pinned, period, &self.heard.all(), &records);
        swept.commit(person.ledger()).map_err(ledger)
    }

    /// Whether a definition says what this client has agreed to.
    fn agrees(&self, agreed: &Agreed) -> bool {
        if agreed.place != self.plan.place {
            return false;
        }
        let ours = self.plan.definition(&self.card.pinned, agreed.start, agreed.key);
        let same = ours.is_ok_and(|ours| ours == **agreed);
        if !same {
            tracing::warn!(
                aggregate = hex(&agreed.name()),
                "it is defined otherwise; gets nothing"
            );
        }
        same
    }

    /// Gives samples to the aggregate that runs.
    async fn give(&mut self, input: &mut Input) -> Result<(), Failure> {
        loop {
            let now = self.clock.now();
            let running = self.known.iter_mut().find(|(_, known)| known.measures(now));
            let (mut taken, mut name) = (None, None);
            if let Some((of, known)) = running {
                let left = person::left(&self.person, &known.agreed)?;
                let due = left > 0 && (input.is_live() || known.takes(now, left, &mut self.rng));
                (taken, name) = (due.then(|| known.agreed.clone()), Some(*of));
            }
            let Some(Sample { value, beside }) = input.next(taken.as_deref())? else {
                return Ok(());
            };
            let Some((name, agreed)) = name.zip(taken) else { continue };
            let (person, clock) = (Arc::clone(&self.person), self.clock.clone());
            let sample = Contribution::Sample(value);
            match person::begin(person, agreed, sample, clock, beside).await {
                Ok(attempt) => self.upload(name, attempt, Kind::Sample).await?,
                Err(StatsError::NotContributed(why)) => {
                    tracing::info!(%why, "a sample is not given");
                    self.summary.unplaced += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Goes on with uploads that wait; gives those up whose time is over.
    async fn go_on(&mut self) -> Result<(), Failure> {
        let names: Vec<Digest> = self.known.keys().copied().collect();
        for name in names {
            let now = self.clock.now();
            let Some(known) = self.known.get_mut(&name) else { continue };
            let due = known.due(now).into_iter();
            let pinned = &self.card.pinned;
            let due = due.map(|(attempt, kind)| (known.step(&attempt, pinned, now), attempt, kind));
            let due: Vec<_> = due.collect();
            for (next, attempt, kind) in due {
                let sample = kind == Kind::Sample;
                match next {
                    Next::Upload => self.upload(name, attempt, kind).await?,
                    Next::GiveUp => {
                        self.forget(attempt, Vec::new())?;
                        self.summary.unplaced += u64::from(sample);
                    }
                    Next::Doubt(entry) => {
                        self.forget(attempt, vec![Book::doubt(&entry, sample)])?
                    }
                }
            }
        }
        Ok(())
    }

    /// Forgets an upload; `beside` is durable in the same commit.
    fn forget(&self, attempt: Attempt, beside: Vec<Change>) -> Result<(), Failure> {
        let forgotten = attempt.forget().then(|()| Step::new(beside, ()));
        forgotten.commit(person::lock(&self.person).ledger()).map_err(ledger)
    }

    /// A dummy for an aggregate whose slots are being filled, if it is time for one.
    async fn volunteer(&mut self) -> Result<(), Failure> {
        let now = self.clock.now();
        let wants = |(_, known): &(&Digest, &Known)| self.volunteers && known.wants_dummy(now);
        let Some((name, known)) = self.known.iter().find(wants) else { return Ok(()) };
        let (name, agreed) = (*name, known.agreed.clone());
        let most = (agreed.after.turn / DUMMIES).max(1);
        let pause = self.rng.next_u64().checked_rem(most).unwrap_or(0);
        if let Some(known) = self.known.get_mut(&name) {
            known.next_dummy = Time(now.0.saturating_add(pause));
        }
        if person::left(&self.person, &agreed)? == 0 {
            if let Some(known) = self.known.get_mut(&name) {
                known.next_dummy = agreed.filled();
            }
            return Ok(());
        }
        let (person, clock) = (Arc::clone(&self.person), self.clock.clone());
        match person::begin(person, agreed, Contribution::Dummy, clock, Vec::new()).await {
            Ok(attempt) => self.upload(name, attempt, Kind::Dummy).await,
            // The last turn has ended since.
            Err(StatsError::NotContributed(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Brings an upload as far as it goes now, over connections of its own, beside the others.
    async fn upload(&mut self, name: Digest, attempt: Attempt, kind: Kind) -> Result<(), Failure> {
        let Some(known) = self.known.get_mut(&name) else { return Ok(()) };
        known.under_way += 1;
        let (ways, prover) = (Ways::new(&self.card)?, Arc::clone(&known.prover));
        let (person, pinned) = (Arc::clone(&self.person), self.card.pinned.clone());
        let (clock, now) = (self.clock.clone(), self.clock.now());
        self.uploads.spawn(async move {
            let about = (&pinned, &clock);
            let done = person::go_on(person, &ways, prover, attempt, about, Book::keep).await;
            (name, kind, now, done)
        });
        while self.uploads.len() >= TOGETHER {
            let Some(done) = self.uploads.join_next().await else { break };
            self.note(done.blame(Category::Io)?).await?;
        }
        Ok(())
    }

    /// Takes note of what became of an upload that set out at a time.
    async fn note(&mut self, (name, kind, then, upload): Done) -> Result<(), Failure> {
        let Some(known) = self.known.get_mut(&name) else { return Ok(()) };
        known.under_way = known.under_way.saturating_sub(1);
        let later = match upload? {
            Upload::Done(_) => {
                self.counts(kind);
                return Ok(());
            }
            Upload::Waits(attempt) => {
                known.full = known.agreed.turn(then);
                Waiting::turn((*attempt, kind), &known.agreed, then)
            }
            Upload::Away(attempt) => Waiting::moment((*attempt, kind), self.clock.now()),
            // Nobody can have it, and nothing is given any more.
            Upload::Lost(attempt) if self.clock.now() >= known.agreed.filled() => {
                self.summary.unplaced += u64::from(kind == Kind::Sample);
                return self.forget(*attempt, Vec::new());
            }
            Upload::Lost(attempt) => {
                let (person, clock) = (Arc::clone(&self.person), self.clock.clone());
                match person::again(person, *attempt, clock).await {
                    Ok(attempt) => Waiting::moment((attempt, kind), self.clock.now()),
                    Err(StatsError::NotContributed(_)) => {
                        self.summary.unplaced += u64::from(kind == Kind::Sample);
                        return Ok(());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        if let Some(known) = self.known.get_mut(&name) {
            known.open.push(later);
        }
        Ok(())
    }

    pub(super) fn counts(&mut self, kind: Kind) {
        match kind {
            Kind::Sample => self.summary.samples += 1,
            Kind::Dummy => self.summary.dummies += 1,
        }
    }
}

fn ledger(error: alpheus_crypto::ledger::LedgerError) -> Failure {
    Failure::new(Category::Io, error)
}
