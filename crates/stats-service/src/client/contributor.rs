//! A client's main loop: it fetches definitions, contributes samples during an aggregate and dummies
//! after it, and checks at the end that all of them count ([`super::inclusion_check`]).

use super::definitions::Definitions;
use super::inclusion_check::InclusionError;
use super::input::{Input, Sample};
use super::participation::{Kind, NextStep, Participation, PendingUpload, over};
use super::resolution::Resolution;
use crate::card::VerifiedCard;
use crate::client_ledger::ClientLedger;
use crate::contributor_state::{self, SharedState, Upload};
use crate::names::hex;
use crate::parties::{FetchTimes, LOOK, Parties, StatsError, fetch_definitions};
use crate::plan::Plan;
use alpheus_accountable_statistics::client::{Attempt, forget_before};
use alpheus_accountable_statistics::definition::{AgreedDefinition, Definition};
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, Step};
use alpheus_node::clock::Clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::note;
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use rand_core::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The pause between requests for definitions while an aggregate is coming, and the least and the
/// most while none is: a part of an aggregate's length.
const SELDOM: Duration = Duration::from_secs(20);
const OFTEN: Duration = Duration::from_secs(1);
const PART: u64 = 60;
/// Dummies come at random times, this many in half a turn on average.
const DUMMIES: u64 = 32;
/// Parallel uploads. If a client is killed, each one under way may lose its slot at the end of a turn,
/// and then costs another presentation of the quota.
const TOGETHER: usize = 1;

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Samples with a quorum's receipts.
    pub samples: u64,
    /// Dummies with a quorum's receipts.
    pub dummies: u64,
    /// Samples that found no slot in time.
    pub unplaced: u64,
    /// Lines that were not a sample, or came while no aggregate accepted one.
    pub dropped: u64,
    /// The number of contributions not known to count, by reason.
    pub complaints: BTreeMap<InclusionError, u64>,
}

/// An upload, the time it was continued, and its result.
type UploadOutcome = (Digest, Kind, Timestamp, Result<Upload, StatsError>);

/// A client at work.
pub struct Contributor {
    pub(super) card: VerifiedCard,
    /// For questions that are the same for every client. Uploads and checks use connections of
    /// their own.
    pub(super) parties: Parties,
    pub(super) clock: Clock,
    plan: Plan,
    pub(super) state: SharedState<ClientLedger>,
    volunteers: bool,
    pub(super) participations: BTreeMap<Digest, Participation>,
    definitions: Definitions,
    fetched: FetchTimes,
    resolution: Resolution,
    uploads: JoinSet<UploadOutcome>,
    asked: Option<Instant>,
    /// Whether a quorum has sent its definitions since this start.
    learnt: bool,
    pub(super) rng: ChaCha20Rng,
    pub(super) summary: Summary,
}

impl Contributor {
    /// A client with credentials.
    ///
    /// # Errors
    /// If the card's authority cannot be used, or the operating system provides no randomness.
    pub fn new(
        card: VerifiedCard,
        clock: Clock,
        plan: Plan,
        state: SharedState<ClientLedger>,
        volunteers: bool,
    ) -> Result<Self, Failure> {
        Ok(Self {
            parties: Parties::new(&card)?,
            resolution: Resolution::new(plan.rule),
            card,
            clock,
            plan,
            state,
            volunteers,
            participations: BTreeMap::new(),
            definitions: Definitions::default(),
            fetched: FetchTimes::default(),
            uploads: JoinSet::new(),
            asked: None,
            learnt: false,
            rng: entropy::rng()?,
            summary: Summary::default(),
        })
    }

    /// Runs until its input has ended and its contributions are settled.
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
            self.check_inclusion().await?;
            self.participations.retain(|_, participation| !participation.over);
            let done = self.learnt && self.uploads.is_empty() && !self.participates();
            if input.ended() && done {
                self.summary.dropped = input.dropped;
                return Ok(self.summary);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether an aggregate has begun and is not over.
    fn participates(&self) -> bool {
        let now = self.clock.now();
        self.participations.values().any(|participation| participation.agreed.start <= now)
    }

    /// Fetches definitions from all smoothers, since a single one may hide some.
    async fn learn(&mut self) -> Result<(), Failure> {
        let now = self.clock.now();
        let coming =
            self.participations.values().any(|participation| now < participation.agreed.start);
        let part = Duration::from_micros(self.plan.every.0 / PART).clamp(OFTEN, SELDOM);
        let pause = match (coming, self.learnt) {
            (_, false) => OFTEN,
            (true, _) => SELDOM,
            (false, _) => part,
        };
        if self.asked.is_some_and(|asked| asked.elapsed() < pause) {
            return Ok(());
        }
        self.asked = Some(Instant::now());
        let quorum = self.card.pinned.quorum();
        let parties = &self.parties.smoothers;
        let answers = fetch_definitions(parties, quorum, (&mut self.fetched, now)).await;
        if coming {
            // A smoother need not keep a connection open for each client that waits.
            self.parties = self.parties.unlinked();
        }
        for definitions in &answers {
            self.take_up(definitions)?;
        }
        if answers.len() >= quorum && !self.learnt {
            self.learnt = true;
            self.sweep()?;
        }
        Ok(())
    }

    fn take_up(&mut self, definitions: &[Endorsed<Definition>]) -> Result<(), Failure> {
        for agreed in self.definitions.new_among(definitions, &self.card.pinned) {
            if self.agrees(&agreed) && self.is_to_do(&agreed)? {
                let records = contributor_state::lock(&self.state).ledger().records();
                let name = agreed.name();
                let participation = Participation::new(agreed, &records).blame(Category::Input)?;
                self.participations.insert(name, participation);
            }
        }
        Ok(())
    }

    /// Whether an aggregate is not over, or contributions to it are unsettled.
    fn is_to_do(&self, agreed: &AgreedDefinition) -> Result<bool, Failure> {
        if self.clock.now() < over(agreed) {
            return Ok(true);
        }
        let mut state = contributor_state::lock(&self.state);
        let left = Attempt::restore_all(agreed, &state.ledger().records());
        Ok(!left.blame(Category::Input)?.is_empty() || state.ledger().awaits(&agreed.name()))
    }

    /// Deletes uploads of past periods, and of aggregates so old that no quorum knows them any more.
    fn sweep(&self) -> Result<(), Failure> {
        let period = contributor_state::running(&self.card.pinned, &self.clock)?;
        let mut state = contributor_state::lock(&self.state);
        let records = state.ledger().records();
        let swept = forget_before(&self.card.pinned, period, &self.definitions.all(), &records);
        swept.commit(state.ledger()).map_err(ledger)
    }

    /// Whether a definition matches the plan that this client has agreed to.
    fn agrees(&self, agreed: &AgreedDefinition) -> bool {
        if agreed.location != self.plan.place {
            return false;
        }
        let ours = self.plan.definition(&self.card.pinned, agreed.start, agreed.key);
        let same = ours.is_ok_and(|ours| ours == **agreed);
        if !same {
            tracing::warn!(
                aggregate = hex(&agreed.name()),
                "the definition differs from the plan; nothing is contributed"
            );
        }
        same
    }

    /// Contributes samples to the current aggregate.
    async fn give(&mut self, input: &mut Input) -> Result<(), Failure> {
        loop {
            let now = self.clock.now();
            let running = self
                .participations
                .iter_mut()
                .find(|(_, participation)| participation.measures(now));
            let (mut taken, mut name) = (None, None);
            if let Some((of, participation)) = running {
                let left = contributor_state::left(&self.state, &participation.agreed)?;
                let due =
                    left > 0 && (input.is_live() || participation.takes(now, left, &mut self.rng));
                let prover = Arc::clone(&participation.prover);
                taken = due.then(|| (participation.agreed.clone(), prover));
                name = Some(*of);
            }
            let Some(Sample { value, beside }) =
                input.next(taken.as_ref().map(|(agreed, _)| &**agreed))?
            else {
                return Ok(());
            };
            let Some((name, of)) = name.zip(taken) else { continue };
            self.note_resolution(value);
            let (state, clock) = (Arc::clone(&self.state), self.clock.clone());
            let sample = Contribution::Sample(value);
            match contributor_state::begin(state, of, sample, clock, beside).await {
                Ok(attempt) => self.upload(name, attempt, Kind::Sample).await?,
                Err(StatsError::NotContributed(why)) => {
                    tracing::info!(%why, "cannot contribute a sample");
                    self.summary.unplaced += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Warns if samples are coarser than the plan says.
    fn note_resolution(&mut self, value: i64) {
        if let Some(steps) = self.resolution.note(value) {
            note!(
                "samples are multiples of {steps} steps, but the plan states a smaller resolution: a published mean may reveal how many there were; ask the definer to set `resolution: {steps}`"
            );
        }
    }

    /// Continues pending uploads; gives up those whose time is over.
    async fn go_on(&mut self) -> Result<(), Failure> {
        let names: Vec<Digest> = self.participations.keys().copied().collect();
        for name in names {
            let now = self.clock.now();
            let Some(participation) = self.participations.get_mut(&name) else { continue };
            let due = participation.due(now).into_iter();
            let pinned = &self.card.pinned;
            let due = due
                .map(|(attempt, kind)| (participation.step(&attempt, pinned, now), attempt, kind));
            let due: Vec<_> = due.collect();
            for (next, attempt, kind) in due {
                let sample = kind == Kind::Sample;
                match next {
                    NextStep::Upload => self.upload(name, attempt, kind).await?,
                    NextStep::GiveUp => {
                        self.forget(attempt, Vec::new())?;
                        self.summary.unplaced += u64::from(sample);
                    }
                    NextStep::Unconfirmed(entry) => {
                        self.forget(attempt, vec![ClientLedger::keep_unconfirmed(&entry, sample)])?
                    }
                }
            }
        }
        Ok(())
    }

    /// Deletes an upload; the changes in `beside` are durable in the same commit.
    fn forget(&self, attempt: Attempt, beside: Vec<Change>) -> Result<(), Failure> {
        let forgotten = attempt.forget().then(|()| Step::new(beside, ()));
        forgotten.commit(contributor_state::lock(&self.state).ledger()).map_err(ledger)
    }

    /// Contributes a dummy to an aggregate that is being filled, if one is due.
    async fn volunteer(&mut self) -> Result<(), Failure> {
        let now = self.clock.now();
        let wants = |(_, participation): &(&Digest, &Participation)| {
            self.volunteers && participation.wants_dummy(now)
        };
        let Some((name, participation)) = self.participations.iter().find(wants) else {
            return Ok(());
        };
        let (name, agreed) = (*name, participation.agreed.clone());
        let of = (agreed.clone(), Arc::clone(&participation.prover));
        let most = (agreed.closing.turn.0 / DUMMIES).max(1);
        let pause = self.rng.next_u64().checked_rem(most).unwrap_or(0);
        if let Some(participation) = self.participations.get_mut(&name) {
            participation.next_dummy = Timestamp(now.0.saturating_add(pause));
        }
        if contributor_state::left(&self.state, &agreed)? == 0 {
            if let Some(participation) = self.participations.get_mut(&name) {
                participation.next_dummy = agreed.filled();
            }
            return Ok(());
        }
        let (state, clock) = (Arc::clone(&self.state), self.clock.clone());
        match contributor_state::begin(state, of, Contribution::Dummy, clock, Vec::new()).await {
            Ok(attempt) => self.upload(name, attempt, Kind::Dummy).await,
            // The last turn has ended meanwhile.
            Err(StatsError::NotContributed(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Advances an upload as far as possible now, over its own connections and in its own task.
    async fn upload(&mut self, name: Digest, attempt: Attempt, kind: Kind) -> Result<(), Failure> {
        let Some(participation) = self.participations.get_mut(&name) else { return Ok(()) };
        participation.under_way += 1;
        let parties = self.parties.unlinked();
        let (state, pinned) = (Arc::clone(&self.state), self.card.pinned.clone());
        let (clock, now) = (self.clock.clone(), self.clock.now());
        self.uploads.spawn(async move {
            let about = (&pinned, &clock);
            let kept = ClientLedger::keep;
            let done = contributor_state::go_on(state, &parties, attempt, about, kept).await;
            (name, kind, now, done)
        });
        while self.uploads.len() >= TOGETHER {
            let Some(done) = self.uploads.join_next().await else { break };
            self.note(done.blame(Category::Io)?).await?;
        }
        Ok(())
    }

    /// Handles the result of an upload that was continued at a time.
    async fn note(&mut self, (name, kind, then, upload): UploadOutcome) -> Result<(), Failure> {
        let Some(participation) = self.participations.get_mut(&name) else { return Ok(()) };
        participation.under_way = participation.under_way.saturating_sub(1);
        let later = match upload? {
            Upload::Done(_) => {
                self.counts(kind);
                return Ok(());
            }
            Upload::Waits(attempt) => {
                participation.full = participation.agreed.turn(then);
                PendingUpload::turn((*attempt, kind), &participation.agreed, then)
            }
            Upload::Away(attempt) => PendingUpload::moment((*attempt, kind), self.clock.now()),
            // The slot is lost, and the time for contributions is over.
            Upload::Lost(attempt) if self.clock.now() >= participation.agreed.filled() => {
                self.summary.unplaced += u64::from(kind == Kind::Sample);
                return self.forget(*attempt, Vec::new());
            }
            Upload::Lost(attempt) => {
                let (state, clock) = (Arc::clone(&self.state), self.clock.clone());
                let prover = Arc::clone(&participation.prover);
                match contributor_state::again(state, *attempt, prover, clock).await {
                    Ok(attempt) => PendingUpload::moment((attempt, kind), self.clock.now()),
                    Err(StatsError::NotContributed(_)) => {
                        self.summary.unplaced += u64::from(kind == Kind::Sample);
                        return Ok(());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        if let Some(participation) = self.participations.get_mut(&name) {
            participation.open.push(later);
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
