//! Fetches definitions from smoothers, and brings each aggregate whose time has come from the
//! release to its result: fetches what smoothers release, has it examined, closes, shows all of
//! it, hears how it ended.

use super::engine::{Due, Job};
use crate::pass::link::LinkError;
use crate::service::engine::Handle;
use crate::stats::client::heard::definitions;
use crate::stats::names::hex;
use crate::stats::ways::{BRIEF, GRACE, Way, gathered, release};
use alpheus_accountable_statistics::aggregator::Examined;
use alpheus_accountable_statistics::configuration::{Pinned, SmootherId};
use alpheus_accountable_statistics::definition::Agreed;
use alpheus_accountable_statistics::messages::{Closing, Outcome, Release, Shown};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::Signed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How often.
const ROUND: Duration = Duration::from_millis(100);
/// How often smoothers are asked what is defined.
const ANEW: Duration = Duration::from_secs(2);
/// Tuples that are shown at a time.
const SHOWN: usize = 256;

/// What it knows beside the role.
struct Conductor {
    ways: Vec<(SmootherId, Way)>,
    /// Where smoothers tell everybody what is defined.
    public: Vec<Way>,
    asked: Option<Instant>,
    /// Definitions that were learnt.
    known: BTreeSet<Digest>,
    pinned: Pinned,
    engine: Handle<Job>,
    /// Who has agreed to which closing.
    agreed: BTreeSet<(Digest, SmootherId)>,
    /// Who is being asked or shown what: each in its own time, since one may not answer.
    under_way: BTreeSet<(Errand, Digest, SmootherId)>,
    errands: JoinSet<Done>,
    /// Since when a quorum's releases are there.
    enough: BTreeMap<Digest, Instant>,
}

/// What is wanted of a smoother.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Errand {
    Release,
    Show,
}

/// A release, or that what was shown is agreed to.
type Brought = Option<Box<Release>>;
type Done = ((Errand, Digest, SmootherId), Result<Brought, LinkError>);

/// Runs for as long as the engine does. What a quorum of smoothers answers is enough: one that
/// does not answer holds up nothing.
pub async fn run(
    ways: Vec<(SmootherId, Way)>,
    public: Vec<Way>,
    pinned: Pinned,
    engine: Handle<Job>,
) {
    let mut conductor = Conductor {
        ways,
        public,
        asked: None,
        known: BTreeSet::new(),
        pinned,
        engine,
        agreed: BTreeSet::new(),
        under_way: BTreeSet::new(),
        errands: JoinSet::new(),
        enough: BTreeMap::new(),
    };
    loop {
        tokio::time::sleep(ROUND).await;
        conductor.come_back().await;
        conductor.learn().await;
        let Ok(due) = conductor.engine.ask(Job::Due).await else { continue };
        conductor.forget(&due);
        if due.is_empty() {
            continue;
        }
        for due in due {
            conductor.advance(due).await;
        }
        conductor.outcomes().await;
    }
}

impl Conductor {
    /// Learns what is defined, from a quorum of smoothers: nobody else need tell it.
    async fn learn(&mut self) {
        if self.asked.is_some_and(|asked| asked.elapsed() < ANEW) {
            return;
        }
        self.asked = Some(Instant::now());
        for signed in definitions(&self.public, self.pinned.quorum()).await.into_iter().flatten() {
            // Who sends it chooses which signatures come with it: what they sign names it.
            let name = Agreed::open(&signed, &self.pinned).map(|agreed| agreed.name());
            let Some(name) = name.ok().filter(|name| !self.known.contains(name)) else { continue };
            match self.engine.ask(|reply| Job::Learn(Box::new(signed), reply)).await {
                Ok(Ok(())) => drop(self.known.insert(name)),
                Ok(Err(why)) => tracing::warn!(%why, "a definition is not learnt"),
                Err(error) => tracing::debug!(%error, "a definition waits"),
            }
        }
    }

    /// Forgets what it knows of aggregates that have ended.
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
                self.ask_releases(due.name);
            }
            Some((closing, shown)) => self.show(due.name, &closing, &shown),
        }
    }

    /// Takes note of what errands have brought.
    async fn come_back(&mut self) {
        while let Some(done) = self.errands.try_join_next() {
            let Ok((what, brought)) = done else { continue };
            self.under_way.remove(&what);
            let (_, name, by) = what;
            match brought {
                Ok(Some(release)) => self.take(name, by, release).await,
                Ok(None) => drop(self.agreed.insert((name, by))),
                Err(error) => told(&error, "bringing an aggregate to its end"),
            }
        }
    }

    async fn take(&mut self, name: Digest, by: SmootherId, release: Box<Release>) {
        match self.engine.ask(|reply| Job::Take(by, release, reply)).await {
            Ok(Ok(true)) => drop(self.enough.entry(name).or_insert_with(Instant::now)),
            Ok(Err(why)) => tracing::warn!(%why, by = by.0, "a release is not taken"),
            Ok(Ok(false)) | Err(_) => {}
        }
    }

    /// Whether all have answered, or a quorum, and the others had a moment.
    fn is_gathered(&self, name: &Digest) -> bool {
        let of_it = |(errand, of, _): &(Errand, Digest, SmootherId)| {
            *errand == Errand::Release && of == name
        };
        let since = self.enough.get(name);
        !self.under_way.iter().any(of_it) || since.is_some_and(|at| at.elapsed() >= GRACE)
    }

    /// From what smoothers release to the closing.
    async fn gather(&mut self, name: Digest) {
        if !self.is_gathered(&name) {
            return;
        }
        let work = match self.engine.ask(|reply| Job::Work(name, reply)).await {
            Ok(Ok(work)) => work,
            Ok(Err(why)) => return tracing::debug!(%why, "nothing to examine yet"),
            Err(_) => return,
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let parts = work.split(threads).into_iter();
        let parts: Vec<_> =
            parts.map(|part| tokio::task::spawn_blocking(move || part.run())).collect();
        let mut examined = Vec::new();
        for part in parts {
            let Ok(part) = part.await else { return };
            examined.push(part);
        }
        let Some(examined) = Examined::join(examined).map(Box::new) else { return };
        tracing::info!(rejected = examined.rejected(), "an aggregate is examined");
        if let Ok(Err(why)) = self.engine.ask(|reply| Job::Examined(examined, reply)).await {
            tracing::warn!(%why, "an aggregate is not closed");
        }
    }

    /// Asks those who are not being asked what they release.
    fn ask_releases(&mut self, name: Digest) {
        for (by, way) in self.ways.clone() {
            let what = (Errand::Release, name, by);
            if self.under_way.insert(what) {
                self.errands.spawn(async move {
                    (what, release(&way, &name).await.map(|release| Some(Box::new(release))))
                });
            }
        }
    }

    /// All that counts, to every smoother that has not agreed yet.
    fn show(&mut self, name: Digest, closing: &Signed<Closing>, shown: &Arc<Vec<Shown>>) {
        for (by, way) in self.ways.clone() {
            let what = (Errand::Show, name, by);
            if !self.agreed.contains(&(name, by)) && self.under_way.insert(what) {
                let (closing, shown) = (closing.clone(), Arc::clone(shown));
                self.errands.spawn(async move {
                    (what, show_one(&way, name, &closing, &shown).await.map(|()| None))
                });
            }
        }
    }

    async fn outcomes(&self) {
        let mut asked = JoinSet::new();
        for (by, way) in self.ways.clone() {
            let way = way.within(BRIEF);
            let path = "/v1/outcomes";
            asked.spawn(async move { (by, way.get::<Vec<Signed<Outcome>>>(path).await) });
        }
        for (by, outcomes) in
            gathered(asked, self.pinned.quorum(), |(_, answer)| answer.is_ok()).await
        {
            match outcomes {
                Ok(outcomes) => self.engine.tell(Job::Outcomes(by, outcomes)).await,
                Err(error) => told(&error, "asking for outcomes"),
            }
        }
    }
}

async fn show_one(
    way: &Way,
    name: Digest,
    closing: &Signed<Closing>,
    shown: &[Shown],
) -> Result<(), LinkError> {
    let path = format!("/v1/check/{}", hex(&name));
    for chunk in shown.chunks(SHOWN) {
        way.post::<()>(&path, &chunk).await?;
    }
    way.post("/v1/close", closing).await
}

fn told(error: &LinkError, what: &str) {
    tracing::debug!(%error, what);
}
