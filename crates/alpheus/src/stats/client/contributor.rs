//! What a client does when: learns what is defined, gives samples while an aggregate runs and
//! dummies after it, and looks at the end whether all of it is counted.

use super::book::Book;
use super::heard::Heard;
use super::input::{Input, Sample};
use super::known::{Kind, Known, Next, Waiting, closing, is_counted};
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::stats::card::Opened;
use crate::stats::clock::Clock;
use crate::stats::names::hex;
use crate::stats::person::{self, Shared, Upload};
use crate::stats::plan::Plan;
use crate::stats::results::{OPEN, Row, fetch};
use crate::stats::ways::{AGAIN, StatsError, Way, Ways, gathered};
use alpheus_accountable_statistics::client::{Attempt, forget_before};
use alpheus_accountable_statistics::definition::{Agreed, Definition};
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Ledger, Step};
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Samples with receipts of a quorum.
    pub samples: u64,
    /// Dummies with receipts of a quorum.
    pub dummies: u64,
    /// Samples that found no slot in time.
    pub unplaced: u64,
    /// Lines that were no sample, or came when nothing took one.
    pub dropped: u64,
    /// Contributions with receipts that are not counted.
    pub left_out: u64,
}

/// An upload that was begun or went on at some time, and what became of it.
type Done = (Digest, Kind, Time, Result<Upload, StatsError>);

/// A client at work.
pub struct Contributor {
    card: Opened,
    clock: Clock,
    plan: Plan,
    person: Shared<Book>,
    volunteers: bool,
    known: BTreeMap<Digest, Known>,
    heard: Heard,
    uploads: JoinSet<Done>,
    asked: Option<Instant>,
    /// Whether a quorum has said what is defined since this start.
    learnt: bool,
    rng: ChaCha20Rng,
    summary: Summary,
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
        let mut asking = JoinSet::new();
        for way in Ways::new(&self.card)?.smoothers {
            asking.spawn(
                async move { way.get::<Vec<Endorsed<Definition>>>("/v1/definitions").await },
            );
        }
        let (quorum, mut have) = (self.card.pinned.quorum(), 0);
        for answer in gathered(asking, quorum, Result::is_ok).await {
            match answer {
                Ok(definitions) => {
                    have += 1;
                    self.take_up(&definitions)?;
                }
                Err(error) => tracing::debug!(%error, "asking for definitions"),
            }
        }
        if have >= quorum && !self.learnt {
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
            let running = self.known.iter().find(|(_, known)| known.measures(now));
            let running = running.map(|(name, known)| (*name, known.agreed.clone()));
            let left = |(_, agreed): &(Digest, Agreed)| person::left(&self.person, agreed);
            let free = running.as_ref().map(left).transpose()?.unwrap_or(0) > 0;
            let Some(Sample { value, beside }) = input.next(free)? else { return Ok(()) };
            let Some((name, agreed)) = running else { continue };
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

    fn counts(&mut self, kind: Kind) {
        match kind {
            Kind::Sample => self.summary.samples += 1,
            Kind::Dummy => self.summary.dummies += 1,
        }
    }

    /// Looks whether what was given to aggregates that were closed is counted.
    async fn look_after(&mut self) -> Result<(), Failure> {
        let now = self.clock.now();
        let idle = |known: &Known| known.under_way == 0 && known.open.is_empty();
        let due = |known: &&Known| !known.over && idle(known) && now >= known.agreed.release();
        let due: Vec<Agreed> =
            self.known.values().filter(due).map(|known| known.agreed.clone()).collect();
        for agreed in due {
            let looked = self.look(&agreed).await;
            let done = match looked {
                Ok(done) => done,
                Err(StatsError::Link(error)) => {
                    tracing::debug!(%error, "asking for a closing");
                    false
                }
                Err(error) => return Err(error.into()),
            };
            if let Some(known) = self.known.get_mut(&agreed.name()) {
                known.over = done || now >= over(&agreed);
            }
        }
        Ok(())
    }

    /// Whether nothing is left to look at: the aggregate has ended, and what was given to it is
    /// looked up in its closing.
    async fn look(&mut self, agreed: &Agreed) -> Result<bool, StatsError> {
        let (name, pinned) = (agreed.name(), self.card.pinned.clone());
        let (kept, doubtful) = {
            let mut person = person::lock(&self.person);
            let book = person.ledger();
            (book.kept(&name, &pinned), book.doubtful(&name))
        };
        if kept.is_empty() && doubtful.is_empty() {
            return Ok(true);
        }
        let text = hex(&name);
        let rows = fetch(&Ways::new(&self.card).map_err(machine)?).await?;
        let row = rows.into_iter().find(|row| row.name == text && row.state != OPEN);
        let Some(Row { state, .. }) = row else { return Ok(false) };
        let about = format!("{} from {}: {state}", agreed.place.as_str(), agreed.start.0 / 1000);
        let Some(closing) = closing(&self.way()?, &text, &pinned).await? else {
            println!("{about}");
            self.settle(doubtful.into_iter().map(|(_, sample, gone)| (false, sample, gone)))?;
            return Ok(true);
        };
        // Each over a connection of its own: together they would be one client's.
        let (mut counted, mut left_out, mut settled) = (Vec::new(), 0, Vec::new());
        for (entry, forgotten) in kept {
            if is_counted(&self.way()?, &text, agreed, &closing, &entry).await? {
                counted.push(forgotten);
            } else {
                left_out += 1;
            }
        }
        for (entry, sample, forgotten) in doubtful {
            let counts = is_counted(&self.way()?, &text, agreed, &closing, &entry).await?;
            settled.push((counts, sample, forgotten));
        }
        println!("{about}; {} contributions counted, {left_out} left out", counted.len());
        self.summary.left_out += left_out;
        person::lock(&self.person).ledger().commit(&counted)?;
        self.settle(settled.into_iter())?;
        Ok(true)
    }

    /// Deposits without receipts of a quorum, of which is known now whether they count.
    fn settle(
        &mut self,
        settled: impl Iterator<Item = (bool, bool, Change)>,
    ) -> Result<(), StatsError> {
        let mut gone = Vec::new();
        for (counts, sample, forgotten) in settled {
            match (counts, sample) {
                (true, true) => self.counts(Kind::Sample),
                (true, false) => self.counts(Kind::Dummy),
                (false, sample) => self.summary.unplaced += u64::from(sample),
            }
            gone.push(forgotten);
        }
        Ok(person::lock(&self.person).ledger().commit(&gone)?)
    }

    fn way(&self) -> Result<Way, StatsError> {
        Ok(Ways::new(&self.card).map_err(machine)?.aggregator)
    }
}

/// When nobody answers for an aggregate any more.
fn over(agreed: &Agreed) -> Time {
    Time(agreed.deadline().0.saturating_add(agreed.after.patience))
}

fn machine(failure: Failure) -> StatsError {
    StatsError::Machine(failure.to_string())
}

fn ledger(error: alpheus_crypto::ledger::LedgerError) -> Failure {
    Failure::new(Category::Io, error)
}
