//! Fetches definitions from smoothers, and takes each due aggregate from its release to its result:
//! it fetches the releases, has them examined, closes the aggregate, sends the closing to the
//! smoothers, and fetches their outcomes.

use super::engine::{Call, Due};
use crate::client::definitions::is_known;
use crate::names::hex;
use crate::parties::{BRIEF, FetchTimes, GRACE, PartyClient, fetch_definitions, gather, release};
use alpheus_accountable_statistics::aggregator::{ExaminationReport, ShownUploads};
use alpheus_accountable_statistics::configuration::{PinnedConfiguration, SmootherId};
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::messages::{Closing, Outcome, Release};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::clock::Clock;
use alpheus_node::engine::Handle;
use alpheus_node::entropy;
use alpheus_node::network::error::RequestError;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The pause between rounds.
const ROUND: Duration = Duration::from_millis(100);
/// The pause between requests for definitions.
const DEFINITIONS_PAUSE: Duration = Duration::from_secs(2);
/// Tuples, or disclosed uploads, per request.
const SHOWN: usize = 256;

/// The driver's own state.
struct ClosingDriver {
    parties: Vec<(SmootherId, PartyClient)>,
    /// The smoothers' public addresses, for definitions.
    public: Vec<PartyClient>,
    asked: Option<Instant>,
    fetched: FetchTimes,
    clock: Clock,
    /// Definitions that the engine knows.
    known: BTreeSet<Digest>,
    pinned: PinnedConfiguration,
    engine: Handle<Call>,
    /// The smoothers that have agreed to a closing.
    agreed: BTreeSet<(Digest, SmootherId)>,
    /// Requests under way, each with its own task, since a smoother may not answer.
    under_way: BTreeSet<(RequestKind, Digest, SmootherId)>,
    requests: JoinSet<RequestOutcome>,
    /// When a quorum's releases were complete.
    enough: BTreeMap<Digest, Instant>,
}

/// A request to a smoother.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RequestKind {
    Release,
    Show,
}

/// A release, or `None` if the smoother has agreed to the closing.
type Response = Option<Box<Release>>;
type RequestOutcome = ((RequestKind, Digest, SmootherId), Result<Response, RequestError>);

/// The size of a smoother's outcomes: of some hundred thousand aggregates.
const OUTCOMES_BYTES: usize = 16 << 20;

/// Runs for as long as the engine does. The answers of a quorum are enough, so a silent smoother
/// delays nothing.
pub async fn run(
    parties: Vec<(SmootherId, PartyClient)>,
    public: Vec<PartyClient>,
    pinned: PinnedConfiguration,
    (engine, clock): (Handle<Call>, Clock),
) {
    let mut driver = ClosingDriver {
        parties,
        public,
        asked: None,
        fetched: FetchTimes::default(),
        clock,
        known: BTreeSet::new(),
        pinned,
        engine,
        agreed: BTreeSet::new(),
        under_way: BTreeSet::new(),
        requests: JoinSet::new(),
        enough: BTreeMap::new(),
    };
    loop {
        tokio::time::sleep(ROUND).await;
        driver.handle_finished().await;
        driver.learn().await;
        let Ok(due) = driver.engine.ask(Call::Due).await else { continue };
        driver.forget(&due);
        if due.is_empty() {
            continue;
        }
        for due in due {
            driver.advance(due).await;
        }
        driver.outcomes().await;
    }
}

impl ClosingDriver {
    /// Fetches definitions from a quorum of smoothers.
    async fn learn(&mut self) {
        if self.asked.is_some_and(|asked| asked.elapsed() < DEFINITIONS_PAUSE) {
            return;
        }
        self.asked = Some(Instant::now());
        let (quorum, now) = (self.pinned.quorum(), self.clock.now());
        let fetching = (&mut self.fetched, now);
        let definitions = fetch_definitions(&self.public, quorum, fetching).await;
        for signed in definitions.into_iter().flatten() {
            if is_known(&signed, |name| self.known.contains(name)) {
                continue;
            }
            // The sender chooses which signatures to include, so the signed content is the name.
            let name = AgreedDefinition::open(&signed, &self.pinned).map(|agreed| agreed.name());
            let Some(name) = name.ok().filter(|name| !self.known.contains(name)) else { continue };
            match self.engine.ask(|reply| Call::Learn(Box::new(signed), reply)).await {
                Ok(Ok(())) => drop(self.known.insert(name)),
                Ok(Err(why)) => tracing::warn!(%why, "rejected a definition"),
                Err(error) => {
                    tracing::debug!(%error, "cannot learn a definition yet");
                    self.fetched = FetchTimes::default();
                }
            }
        }
    }

    /// Deletes its state of aggregates that have ended.
    fn forget(&mut self, due: &[Due]) {
        let open: BTreeSet<Digest> = due.iter().map(|due| due.name).collect();
        self.agreed.retain(|(name, _)| open.contains(name));
        self.enough.retain(|name, _| open.contains(name));
    }

    async fn advance(&mut self, due: Due) {
        match due.closed {
            None if due.sits_out => {}
            None => {
                self.gather(due.name).await;
                self.ask_releases(due.name, due.slots);
            }
            Some((closing, shown)) => self.show(due.name, &closing, &shown),
        }
    }

    /// Handles finished requests.
    async fn handle_finished(&mut self) {
        while let Some(done) = self.requests.try_join_next() {
            let Ok((what, response)) = done else { continue };
            self.under_way.remove(&what);
            let (_, name, by) = what;
            match response {
                Ok(Some(release)) => self.take(name, by, release).await,
                Ok(None) => drop(self.agreed.insert((name, by))),
                Err(error) => log_error(&error, "a request on an aggregate failed"),
            }
        }
    }

    async fn take(&mut self, name: Digest, by: SmootherId, release: Box<Release>) {
        match self.engine.ask(|reply| Call::Take(by, release, reply)).await {
            Ok(Ok(true)) => drop(self.enough.entry(name).or_insert_with(Instant::now)),
            Ok(Err(why)) => tracing::warn!(%why, by = by.0, "rejected a release"),
            Ok(Ok(false)) | Err(_) => {}
        }
    }

    /// Whether all smoothers have answered, or a quorum has and the grace period is over.
    fn is_gathered(&self, name: &Digest) -> bool {
        let of_it = |(kind, of, _): &(RequestKind, Digest, SmootherId)| {
            *kind == RequestKind::Release && of == name
        };
        let since = self.enough.get(name);
        !self.under_way.iter().any(of_it) || since.is_some_and(|at| at.elapsed() >= GRACE)
    }

    /// Examines the releases and closes the aggregate.
    async fn gather(&mut self, name: Digest) {
        if !self.is_gathered(&name) {
            return;
        }
        let work = match self.engine.ask(|reply| Call::Work(name, reply)).await {
            Ok(Ok(work)) => work,
            Ok(Err(why)) => return tracing::debug!(%why, "cannot examine the aggregate yet"),
            Err(_) => return,
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let parts = work.split(threads).into_iter();
        let Ok(mut rng) = entropy::rng() else { return };
        let parts = parts.map(|part| {
            let mut rng = ChaCha20Rng::from_rng(&mut rng);
            tokio::task::spawn_blocking(move || part.run(&mut rng))
        });
        let parts: Vec<_> = parts.collect();
        let mut examined = Vec::new();
        for part in parts {
            let Ok(part) = part.await else { return };
            examined.push(part);
        }
        let Some(examined) = ExaminationReport::join(examined, &mut rng).map(Box::new) else {
            return;
        };
        tracing::info!(rejected = examined.rejected(), "examined an aggregate");
        if let Ok(Err(why)) = self.engine.ask(|reply| Call::Examined(examined, reply)).await {
            tracing::warn!(%why, "cannot close an aggregate");
        }
    }

    /// Requests the release of each smoother that has no request under way.
    fn ask_releases(&mut self, name: Digest, slots: u32) {
        for (by, party) in self.parties.clone() {
            let what = (RequestKind::Release, name, by);
            if self.under_way.insert(what) {
                self.requests.spawn(async move {
                    let release = release(&party, &name, slots).await;
                    (what, release.map(|release| Some(Box::new(release))))
                });
            }
        }
    }

    /// Sends the closing and what it shows of uploads to every smoother that has not agreed yet.
    fn show(&mut self, name: Digest, closing: &Signed<Closing>, shown: &Arc<ShownUploads>) {
        for (by, party) in self.parties.clone() {
            let what = (RequestKind::Show, name, by);
            if !self.agreed.contains(&(name, by)) && self.under_way.insert(what) {
                let (closing, shown) = (closing.clone(), Arc::clone(shown));
                self.requests.spawn(async move {
                    (what, show_one(&party, name, &closing, &shown).await.map(|()| None))
                });
            }
        }
    }

    async fn outcomes(&self) {
        let mut asked = JoinSet::new();
        for (by, party) in self.parties.clone() {
            let party = party.within(BRIEF).up_to(OUTCOMES_BYTES);
            let path = "/v1/outcomes";
            asked.spawn(async move { (by, party.get::<Vec<Signed<Outcome>>>(path).await) });
        }
        for (by, outcomes) in
            gather(asked, self.pinned.quorum(), |(_, answer)| answer.is_ok()).await
        {
            match outcomes {
                Ok(outcomes) => self.engine.tell(Call::Outcomes(by, outcomes)).await,
                Err(error) => log_error(&error, "cannot fetch outcomes"),
            }
        }
    }
}

async fn show_one(
    party: &PartyClient,
    name: Digest,
    closing: &Signed<Closing>,
    shown: &ShownUploads,
) -> Result<(), RequestError> {
    let path = format!("/v1/check/{}", hex(&name));
    for chunk in shown.tuples.chunks(SHOWN) {
        party.post::<()>(&path, &chunk).await?;
    }
    let path = format!("/v1/disclosed/{}", hex(&name));
    for chunk in shown.disclosed.chunks(SHOWN) {
        party.post::<()>(&path, &chunk).await?;
    }
    party.post("/v1/close", closing).await
}

fn log_error(error: &RequestError, what: &str) {
    tracing::debug!(%error, what);
}
