//! What a client does when: learns what is defined, gives samples while an aggregate runs and
//! dummies after it, and looks at the end whether all of it is counted.

use super::book::Book;
use super::input::{Input, Sample};
use super::known::{Kind, Known, Waiting, closing, is_counted};
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::stats::card::Opened;
use crate::stats::clock::Clock;
use crate::stats::names::hex;
use crate::stats::person::{self, Shared, Upload};
use crate::stats::plan::Plan;
use crate::stats::results::{OPEN, Row, fetch};
use crate::stats::ways::{AGAIN, StatsError, Way, Ways};
use alpheus_accountable_statistics::client::Attempt;
use alpheus_accountable_statistics::definition::{Agreed, Definition};
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::Ledger;
use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often smoothers are asked for definitions while something is defined, and while nothing is.
const SELDOM: Duration = Duration::from_secs(20);
const OFTEN: Duration = Duration::from_secs(1);
/// Dummies come at drawn moments, on average this many in half a turn.
const DUMMIES: u64 = 32;

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

/// A client at work.
pub struct Contributor {
    card: Opened,
    clock: Clock,
    plan: Plan,
    person: Shared<Book>,
    volunteers: bool,
    known: BTreeMap<Digest, Known>,
    /// Definitions that are not what this client has agreed to.
    others: BTreeSet<Digest>,
    asked: Option<Instant>,
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
        let (known, others, rng) = (BTreeMap::new(), BTreeSet::new(), entropy::rng()?);
        let (asked, summary) = (None, Summary::default());
        Ok(Self { card, clock, plan, person, volunteers, known, others, asked, rng, summary })
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
            self.look_after().await?;
            if input.ended() && !self.takes_part() {
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
        for way in Ways::new(&self.card)?.smoothers {
            match way.get::<Vec<Endorsed<Definition>>>("/v1/definitions").await {
                Ok(definitions) => self.take_up(&definitions)?,
                Err(error) => tracing::debug!(%error, "asking for definitions"),
            }
        }
        Ok(())
    }

    fn take_up(&mut self, definitions: &[Endorsed<Definition>]) -> Result<(), Failure> {
        for signed in definitions {
            let name = signed.signatures().next().map(|(_, signed)| signed.digest());
            let Some(name) = name else { continue };
            if self.known.contains_key(&name) || self.others.contains(&name) {
                continue;
            }
            match Agreed::open(signed, &self.card.pinned) {
                Ok(agreed) if self.agrees(&agreed) => {
                    let records = person::lock(&self.person).ledger().records();
                    let known = Known::new(agreed, &records).blame(Category::Input)?;
                    self.known.insert(name, known);
                }
                _ => drop(self.others.insert(name)),
            }
        }
        Ok(())
    }

    /// Whether a definition says what this client has agreed to, and is not over.
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
        same && self.clock.now() < over(agreed)
    }

    /// Gives samples to the aggregate that runs.
    async fn give(&mut self, input: &mut Input) -> Result<(), Failure> {
        loop {
            let now = self.clock.now();
            let running = self.known.iter().find(|(_, known)| known.measures(now));
            let running = running.map(|(name, known)| (*name, known.agreed.clone()));
            let left = |(_, agreed): &(Digest, Agreed)| person::left(&self.person, agreed);
            let free = running.as_ref().map(left).transpose()?.unwrap_or(0) > 0;
            let Some(Sample { value, beside }) = input.next(free) else { return Ok(()) };
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
            let filled = now >= known.agreed.filled();
            for (attempt, kind) in known.due(now) {
                if filled {
                    let forgotten = attempt.forget();
                    forgotten.commit(person::lock(&self.person).ledger()).map_err(ledger)?;
                    self.summary.unplaced += u64::from(kind == Kind::Sample);
                } else {
                    self.upload(name, attempt, kind).await?;
                }
            }
        }
        Ok(())
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

    /// Brings an upload as far as it goes now, over connections of its own.
    async fn upload(&mut self, name: Digest, attempt: Attempt, kind: Kind) -> Result<(), Failure> {
        let Some(known) = self.known.get(&name) else { return Ok(()) };
        let (agreed, prover) = (known.agreed.clone(), Arc::clone(&known.prover));
        let ways = Ways::new(&self.card)?;
        let (person, about) = (Arc::clone(&self.person), (&self.card.pinned, &self.clock));
        let upload = person::go_on(person, &ways, prover, attempt, about, Book::keep).await?;
        let now = self.clock.now();
        let later = match upload {
            Upload::Done(_) => {
                match kind {
                    Kind::Sample => self.summary.samples += 1,
                    Kind::Dummy => self.summary.dummies += 1,
                }
                return Ok(());
            }
            Upload::Waits(attempt) => {
                let full = agreed.turn(now);
                if let Some(known) = self.known.get_mut(&name) {
                    known.full = full;
                }
                Waiting::turn((*attempt, kind), &agreed, now)
            }
            Upload::Away(attempt) => Waiting::moment((*attempt, kind), now),
            Upload::Lost(attempt) => {
                let (person, clock) = (Arc::clone(&self.person), self.clock.clone());
                match person::again(person, *attempt, clock).await {
                    Ok(attempt) => Waiting::moment((attempt, kind), now),
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

    /// Looks whether what was given to aggregates that were closed is counted.
    async fn look_after(&mut self) -> Result<(), Failure> {
        let now = self.clock.now();
        let due = |known: &&Known| !known.over && now >= known.agreed.release();
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
        let (name, pinned) = (agreed.name(), &self.card.pinned);
        let kept = person::lock(&self.person).ledger().kept(&name, pinned);
        if kept.is_empty() {
            return Ok(true);
        }
        let text = hex(&name);
        let rows = fetch(&Ways::new(&self.card).map_err(machine)?).await?;
        let row = rows.into_iter().find(|row| row.name == text && row.state != OPEN);
        let Some(Row { state, .. }) = row else { return Ok(false) };
        let way = || -> Result<Way, StatsError> {
            Ok(Ways::new(&self.card).map_err(machine)?.aggregator)
        };
        let about = format!("{} from {}: {state}", agreed.place.as_str(), agreed.start.0 / 1000);
        let Some(closing) = closing(&way()?, &text, pinned).await? else {
            println!("{about}");
            return Ok(true);
        };
        let (mut counted, mut left_out) = (Vec::new(), 0);
        for (entry, forgotten) in kept {
            // Each over a connection of its own: together they would be one client's.
            if is_counted(&way()?, &text, agreed, &closing, &entry).await? {
                counted.push(forgotten);
            } else {
                left_out += 1;
            }
        }
        println!("{about}; {} contributions counted, {left_out} left out", counted.len());
        self.summary.left_out += left_out;
        person::lock(&self.person).ledger().commit(&counted)?;
        Ok(true)
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
