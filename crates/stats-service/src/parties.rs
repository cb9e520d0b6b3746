//! Connections to a deployment's parties, and shared requests.

use crate::card::VerifiedCard;
use crate::links;
use crate::membership;
use crate::names::hex;
use crate::settings::StatsSettings;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::definition::Definition;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::{Release, ReleasedSlot};
use alpheus_accountable_statistics::role_error::{ContributionError, RegistrationError};
use alpheus_anonymous_credential::error::HolderError;
use alpheus_crypto::hash::Digest;
use alpheus_node::failure::{Category, Failure};
use alpheus_node::network::base::Base;
use alpheus_node::network::client::{HttpClient, Limits};
use alpheus_node::network::error::RequestError;
use alpheus_node::retry::{Attempts, RetryPolicy, retry};
use alpheus_time::{Span, Timestamp};
use axum::http::{Method, header::HeaderName};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The maximum size of a body; larger releases are fetched in pages.
pub const MAX_BODY: usize = 64 << 20;
/// Slots that a smoother releases, and certificates that it lists, at a time.
pub const PAGE_SLOTS: usize = 4096;
/// The timeout for a large response.
const LARGE: Duration = Duration::from_secs(120);
/// The timeout for a small response; a slower party counts as unreachable.
pub const BRIEF: Duration = Duration::from_secs(5);
/// The timeout for the aggregator, which also examines uploads while it answers.
pub const PUBLIC: Duration = Duration::from_secs(20);
/// How long to wait for further answers once there are enough.
pub const GRACE: Duration = Duration::from_millis(500);
/// The pause before a retry.
pub const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// The pause between looks at what may have changed. No retry: nothing has failed, and no number of
/// looks ends it.
pub const LOOK: Duration = Duration::from_millis(100);

/// A connection to one party.
#[derive(Clone)]
pub struct PartyClient {
    link: HttpClient,
    /// What this process has signed of itself, for a smoother's address for peers.
    member: Option<Arc<str>>,
    /// What an answer may take.
    limits: Limits,
}

/// A request to a party failed.
#[derive(Debug, thiserror::Error)]
pub enum StatsError {
    /// The party did not answer, or refused.
    #[error(transparent)]
    Link(#[from] RequestError),
    /// Nothing was contributed.
    #[error(transparent)]
    NotContributed(#[from] ContributionError),
    /// The credentials cannot be used.
    #[error("cannot use the credentials: {0}")]
    Holder(#[from] HolderError),
    /// The registrar refuses.
    #[error(transparent)]
    NotRegistered(#[from] RegistrationError),
    /// The key epoch has no key yet.
    #[error(
        "the smoothers have not created the day's key; check their logs for the smoother they wait for, or wait longer with --timeout-seconds"
    )]
    NoKey,
    /// Too few smoothers gave the same answer.
    #[error("too few smoothers answer ({have} of {needed}); check that they run, and retry")]
    TooFew {
        /// The number that did.
        have: usize,
        /// The number needed.
        needed: usize,
    },
    /// This machine failed.
    #[error("this machine: {0}")]
    Machine(String),
}

impl From<StatsError> for Failure {
    fn from(error: StatsError) -> Self {
        let category = match &error {
            StatsError::Link(RequestError::Refused(problem)) if problem.status < 500 => {
                Category::Refused
            }
            StatsError::Link(_)
            | StatsError::NoKey
            | StatsError::TooFew { .. }
            | StatsError::Machine(_) => Category::Io,
            StatsError::NotContributed(_)
            | StatsError::Holder(_)
            | StatsError::NotRegistered(_) => Category::Refused,
        };
        Self::new(category, error)
    }
}

/// Repeats a request until a timeout while the party is unreachable.
///
/// # Errors
/// The last error.
pub async fn retry_unreachable<T, F>(
    patience: Duration,
    ask: impl FnMut() -> F,
) -> Result<T, StatsError>
where
    F: Future<Output = Result<T, StatsError>>,
{
    let may_pass =
        |error: &StatsError| matches!(error, StatsError::Link(error) if error.may_pass());
    retry(RetryPolicy::every(RETRY_PAUSE).within(patience), may_pass, ask).await
}

impl PartyClient {
    /// A connection over an HTTP client.
    #[must_use]
    pub fn over(link: HttpClient) -> Self {
        Self { link, member: None, limits: Limits { bytes: MAX_BODY, time: LARGE } }
    }

    /// A connection to a smoother's address for peers, by what this process has signed of itself.
    #[must_use]
    pub fn of_member(link: HttpClient, stated: Arc<str>) -> Self {
        Self { member: Some(stated), ..Self::over(link) }
    }

    /// The same connection with another timeout.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { limits: Limits { time, ..self.limits }, ..self }
    }

    /// The same connection for answers up to so many bytes.
    #[must_use]
    pub fn up_to(self, bytes: usize) -> Self {
        Self { limits: Limits { bytes, ..self.limits }, ..self }
    }

    /// The same party over connections of their own.
    #[must_use]
    pub fn unlinked(&self) -> Self {
        Self { link: self.link.unlinked(), ..self.clone() }
    }

    /// Sends a `GET` request.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RequestError> {
        self.exchange(Method::GET, path, &[], Vec::new()).await
    }

    /// Sends a `POST` request.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        value: &impl Serialize,
    ) -> Result<T, RequestError> {
        self.post_as(path, &[], value).await
    }

    /// Sends a `POST` request with headers.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn post_as<T: DeserializeOwned>(
        &self,
        path: &str,
        headers: &[(HeaderName, &str)],
        value: &impl Serialize,
    ) -> Result<T, RequestError> {
        let body = postcard::to_allocvec(value).map_err(|_| self.malformed())?;
        self.exchange(Method::POST, path, headers, body).await
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: Vec<u8>,
    ) -> Result<T, RequestError> {
        let member = self.member.iter().map(|stated| (membership::HEADER, &**stated));
        let headers: Vec<_> = headers.iter().cloned().chain(member).collect();
        let answer = self.link.exchange(method, path, &headers, body, self.limits).await?;
        postcard::from_bytes(&answer).map_err(|_| self.malformed())
    }

    /// The answer breaks the rules.
    pub(crate) fn malformed(&self) -> RequestError {
        self.link.malformed()
    }
}

/// Definitions that a smoother has learnt since a time, by name. A full page is followed by another.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DefinitionsPage {
    /// The definitions.
    pub definitions: Vec<(Digest, Endorsed<Definition>)>,
}

/// Definitions that a smoother sends at a time.
pub const PAGE_DEFINITIONS: usize = 512;
/// Times of questions for definitions are rounded down to a multiple of this.
const GRID: Span = Span(60_000_000);

/// When each smoother's definitions were fetched: this process's own time, rounded, so that a
/// smoother chooses nothing in the next question by which it would know this client again.
#[derive(Clone, Debug, Default)]
pub struct FetchTimes(BTreeMap<usize, Timestamp>);

impl FetchTimes {
    /// The time since which definitions are new. It is one to two minutes before the last fetch, for
    /// a smoother whose clock is behind.
    fn since(&self, smoother: usize) -> Timestamp {
        let last = self.0.get(&smoother).copied().unwrap_or(Timestamp(0));
        Timestamp(last.floor(GRID).0.saturating_sub(GRID.0))
    }
}

/// Fetches the definitions of a quorum of smoothers, since a single one may hide some: of each those
/// that it has learnt since the last time.
pub async fn fetch_definitions(
    smoothers: &[PartyClient],
    quorum: usize,
    (fetched, now): (&mut FetchTimes, Timestamp),
) -> Vec<Vec<Endorsed<Definition>>> {
    let mut asking = JoinSet::new();
    for (number, party) in smoothers.iter().cloned().enumerate() {
        let since = fetched.since(number);
        asking.spawn(async move {
            let answer = definitions_since(&party, since).await;
            let answer = answer
                .inspect_err(|error| tracing::debug!(%error, "cannot fetch definitions"))
                .ok()?;
            Some((number, answer))
        });
    }
    let answers = gather(asking, quorum, Option::is_some).await.into_iter().flatten();
    let taken = answers.map(|(number, definitions)| {
        fetched.0.insert(number, now);
        definitions
    });
    taken.collect()
}

async fn definitions_since(
    party: &PartyClient,
    since: Timestamp,
) -> Result<Vec<Endorsed<Definition>>, RequestError> {
    let (mut all, mut after, mut bytes) = (Vec::new(), None::<Digest>, 0_usize);
    let mut path = format!("/v1/definitions/{}", since.0);
    loop {
        let page = party.get::<DefinitionsPage>(&path).await?.definitions;
        let names: Vec<Digest> =
            after.into_iter().chain(page.iter().map(|(name, _)| *name)).collect();
        let lengths = page.iter().flat_map(|(_, signed)| signed.signatures());
        bytes = lengths.fold(bytes, |bytes, (_, signed)| bytes.saturating_add(signed.length()));
        // A smoother whose names do not rise, or never end, would keep this loop going.
        if !names.is_sorted_by(|one, next| one < next) || bytes > MAX_BODY {
            return Err(party.malformed());
        }
        let last = page.len() < PAGE_DEFINITIONS;
        all.extend(page.into_iter().map(|(_, signed)| signed));
        after = names.last().copied();
        match after {
            Some(name) if !last => path = format!("/v1/definitions/{}/{}", since.0, hex(&name)),
            _ => return Ok(all),
        }
    }
}

/// Fetches a smoother's complete release of an aggregate with so many slots.
///
/// # Errors
/// [`RequestError`].
pub async fn release(
    party: &PartyClient,
    aggregate: &Digest,
    slots: u32,
) -> Result<Release, RequestError> {
    let mut whole = Release { aggregate: *aggregate, slots: Vec::new() };
    loop {
        let from = whole.slots.last().map_or(0, |last| last.entry.slot.saturating_add(1));
        let path = format!("/v1/release/{}/{from}", hex(aggregate));
        let part = party.get::<Release>(&path).await?;
        let (before, last) = (whole.slots.len(), part.slots.len() < PAGE_SLOTS);
        // A smoother that goes back, or beyond the last slot, would keep this loop going.
        let within = |released: &ReleasedSlot| (from..slots).contains(&released.entry.slot);
        whole.slots.extend(part.slots);
        let many = whole.slots.len() > usize::try_from(slots).unwrap_or(usize::MAX);
        if many || !whole.slots.iter().skip(before).all(within) {
            return Err(party.malformed());
        }
        if last {
            return Ok(whole);
        }
    }
}

/// A client's anonymous connections to all parties. One upload uses one set of connections; another
/// upload uses another.
#[derive(Clone)]
pub struct Parties {
    /// To the registrar, to which the account authenticates.
    pub registrar: PartyClient,
    /// To the aggregator.
    pub aggregator: PartyClient,
    /// To the smoothers.
    pub smoothers: Vec<PartyClient>,
    /// The timeout for parties that do not answer.
    pub patience: Duration,
}

impl Parties {
    /// The attempts at something that others must do first, until patience ends.
    #[must_use]
    pub fn attempts(&self) -> Attempts {
        Attempts::new(RetryPolicy::every(RETRY_PAUSE).within(self.patience))
    }

    /// Opens new connections.
    ///
    /// # Errors
    /// If the card's authority cannot be used.
    pub fn new(card: &VerifiedCard) -> Result<Self, Failure> {
        let authority = card.authority.as_deref();
        let smoother = |(clients, _): &(Base, Base)| -> Result<PartyClient, Failure> {
            Ok(PartyClient::over(links::smoother(clients.clone(), authority)?).within(BRIEF))
        };
        let aggregator = links::aggregator(card.aggregator.clone(), authority)?;
        Ok(Self {
            registrar: PartyClient::over(links::registrar(card.registrar.clone(), authority)?),
            aggregator: PartyClient::over(aggregator).within(PUBLIC),
            smoothers: card.smoothers.iter().map(smoother).collect::<Result<_, _>>()?,
            patience: StatsSettings::default().patience(),
        })
    }

    /// The same parties over connections of their own, which nothing links with these: for another
    /// upload. There is no ticket to resume a connection with.
    #[must_use]
    pub fn unlinked(&self) -> Self {
        Self {
            registrar: self.registrar.unlinked(),
            aggregator: self.aggregator.unlinked(),
            smoothers: self.smoothers.iter().map(PartyClient::unlinked).collect(),
            patience: self.patience,
        }
    }

    /// To a smoother.
    #[must_use]
    pub fn smoother(&self, id: SmootherId) -> Option<&PartyClient> {
        self.smoothers.get(usize::from(id.0))
    }
}

/// Collects the answers to parallel requests. Once enough answers are useful, the others have a
/// short grace period. Later answers are ignored, but their requests are not cancelled.
pub async fn gather<T: Send + 'static>(
    mut asked: JoinSet<T>,
    needed: usize,
    helps: impl Fn(&T) -> bool,
) -> Vec<T> {
    let (mut answers, mut have) = (Vec::new(), 0);
    let mut until = (needed == 0).then(|| Instant::now() + GRACE);
    loop {
        let next = match until {
            None => asked.join_next().await,
            Some(until) => match tokio::time::timeout_at(until, asked.join_next()).await {
                Ok(next) => next,
                Err(_) => break,
            },
        };
        let Some(answer) = next else { break };
        let Ok(answer) = answer else { continue };
        have += usize::from(helps(&answer));
        answers.push(answer);
        if have >= needed && until.is_none() {
            until = Some(Instant::now() + GRACE);
        }
    }
    asked.detach_all();
    answers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_deployment::answering;
    use alpheus_accountable_statistics::configuration::KeyEpoch;
    use alpheus_accountable_statistics::messages::{Entry, SealedUpload};
    use alpheus_crypto::onetime::OneTimePublic;

    /// A smoother that fills every page, and whose slots rise.
    #[tokio::test]
    async fn a_release_ends_at_the_last_slot() {
        let key = OneTimePublic::from_bytes([9; 32]);
        let (aggregate, sealed) = (Digest([1; 32]), SealedUpload::from_bytes(vec![7]));
        let entry = move |slot| Entry {
            aggregate,
            key_epoch: KeyEpoch(0),
            slot,
            revision: 0,
            ephemeral: key,
            content: aggregate,
            sealed: aggregate,
        };
        let page = move |path: &str| {
            let from: u32 = path.rsplit('/').next().unwrap().parse().unwrap();
            // A client without a limit would end after some pages, too.
            let many = if from > 40_000 { 0 } else { u32::try_from(PAGE_SLOTS).unwrap() };
            let slots = (from..from + many)
                .map(|slot| ReleasedSlot { entry: entry(slot), sealed: sealed.clone() });
            postcard::to_allocvec(&Release { aggregate, slots: slots.collect() }).unwrap()
        };
        let (_serving, party) = answering(page).await;
        assert!(release(&party, &aggregate, 5000).await.is_err());
        assert!(release(&party, &aggregate, 8192).await.is_err(), "more than all");
        let short = move |_: &str| {
            let slots = (0..4).map(|slot| ReleasedSlot {
                entry: entry(slot),
                sealed: SealedUpload::from_bytes(vec![7]),
            });
            postcard::to_allocvec(&Release { aggregate, slots: slots.collect() }).unwrap()
        };
        let (_serving, party) = answering(short).await;
        assert_eq!(release(&party, &aggregate, 4).await.unwrap().slots.len(), 4);
        assert!(release(&party, &aggregate, 3).await.is_err(), "a slot that there is not");
    }

    #[tokio::test]
    async fn a_silent_party_does_not_delay_a_sufficient_set() {
        let mut asked = JoinSet::new();
        asked.spawn(std::future::pending());
        for helps in [true, false, true] {
            asked.spawn(std::future::ready(helps));
        }
        let mut answers = gather(asked, 2, |helps| *helps).await;
        answers.sort_unstable();
        assert_eq!(answers, [false, true, true]);
    }

    #[tokio::test]
    async fn all_answers_are_collected_if_too_few_are_useful() {
        let asked: JoinSet<bool> = (0..3).map(|_| std::future::ready(false)).collect();
        assert_eq!(gather(asked, 2, |helps| *helps).await.len(), 3);
    }
}
