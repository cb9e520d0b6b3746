//! The ways to a deployment's parties, and what crosses them.

use crate::failure::{Category, Failure};
use crate::network::identity::IdentityFolder;
use crate::pass::link::{Base, Link, LinkError, Most};
use crate::stats::card::Opened;
use crate::stats::names::hex;
use crate::stats::settings::StatsSettings;
use crate::stats::smoother::engine::RELEASED;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::messages::Release;
use alpheus_accountable_statistics::refused::{NotContributed, NotRegistered};
use alpheus_anonymous_credential::error::HolderRefused;
use alpheus_crypto::hash::Digest;
use axum::http::{Method, header::HeaderName};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The largest answer: of a release so much is fetched at a time.
pub const LARGEST: usize = 64 << 20;
/// How long a large answer may take.
const LARGE: Duration = Duration::from_secs(120);
/// How long an answer of a few bytes may take: who needs longer is away.
pub const BRIEF: Duration = Duration::from_secs(5);
/// How long one of the aggregator, which examines all there is beside answering.
const PUBLIC: Duration = Duration::from_secs(20);
/// How long those are waited for without whom it goes on too.
pub const GRACE: Duration = Duration::from_millis(500);
/// How often whoever waits asks again.
pub const AGAIN: Duration = Duration::from_millis(100);

/// A way to one party.
#[derive(Clone)]
pub struct Way {
    link: Link,
    /// How long it is waited for an answer.
    time: Duration,
}

/// Why a party's answer does not help.
#[derive(Debug, thiserror::Error)]
pub enum StatsError {
    /// It did not answer, or refused.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Nothing was contributed.
    #[error(transparent)]
    NotContributed(#[from] NotContributed),
    /// No credentials were given.
    #[error("no credentials: {0}")]
    Holder(#[from] HolderRefused),
    /// The registrar refuses.
    #[error(transparent)]
    NotRegistered(#[from] NotRegistered),
    /// There is no key to define with.
    #[error(
        "the smoothers have not made the day's key; see in their logs whom they wait for, or wait longer with --patience-seconds"
    )]
    NoKey,
    /// Too few smoothers answered alike.
    #[error("too few smoothers answer ({have} of {needed}); see whether they run, and ask again")]
    TooFew {
        /// So many did.
        have: usize,
        /// So many are needed.
        needed: usize,
    },
    /// This machine failed.
    #[error("this machine: {0}")]
    Machine(String),
}

impl From<StatsError> for Failure {
    fn from(error: StatsError) -> Self {
        let category = match &error {
            StatsError::Link(LinkError::Refused(problem)) if problem.status < 500 => {
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

/// Asks somebody who may just come back, again until so long has passed.
///
/// # Errors
/// What the last answer was.
pub async fn patiently<T, F>(
    patience: Duration,
    mut ask: impl FnMut() -> F,
) -> Result<T, StatsError>
where
    F: Future<Output = Result<T, StatsError>>,
{
    let until = Instant::now() + patience;
    loop {
        match ask().await {
            Err(StatsError::Link(error)) if error.may_pass() && Instant::now() < until => {
                tokio::time::sleep(AGAIN).await;
            }
            answer => return answer,
        }
    }
}

impl Way {
    /// A way that does not say who goes it.
    ///
    /// # Errors
    /// If the card's authority cannot be used.
    pub fn anonymous(base: &Base, card: &Opened) -> Result<Self, Failure> {
        Ok(Self { link: Link::new(base.clone(), card.authority.as_deref())?, time: LARGE })
    }

    /// A way of a process that says who it is.
    ///
    /// # Errors
    /// If a file of the identity cannot be used.
    pub fn named(base: &Base, identity: &IdentityFolder) -> Result<Self, Failure> {
        Ok(Self { link: Link::of(base.clone(), identity)?, time: LARGE })
    }

    /// The same, with less patience.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// Asks.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, LinkError> {
        self.exchange(Method::GET, path, &[], Vec::new()).await
    }

    /// Sends.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        value: &impl Serialize,
    ) -> Result<T, LinkError> {
        self.post_as(path, &[], value).await
    }

    /// Sends with headers.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn post_as<T: DeserializeOwned>(
        &self,
        path: &str,
        headers: &[(HeaderName, &str)],
        value: &impl Serialize,
    ) -> Result<T, LinkError> {
        let body = postcard::to_allocvec(value).map_err(|_| self.malformed())?;
        self.exchange(Method::POST, path, headers, body).await
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: Vec<u8>,
    ) -> Result<T, LinkError> {
        let most = Most { bytes: LARGEST, time: self.time };
        let answer = self.link.exchange_within(method, path, headers, body, most).await?;
        postcard::from_bytes(&answer).map_err(|_| self.malformed())
    }

    fn malformed(&self) -> LinkError {
        LinkError::Malformed(self.link.base().origin())
    }
}

/// All that a smoother releases of an aggregate.
///
/// # Errors
/// [`LinkError`].
pub async fn release(way: &Way, aggregate: &Digest) -> Result<Release, LinkError> {
    let mut whole = Release { aggregate: *aggregate, listed: Vec::new() };
    loop {
        let from = whole.listed.last().map_or(0, |last| last.entry.slot.saturating_add(1));
        let path = format!("/v1/release/{}/{from}", hex(aggregate));
        let part = way.get::<Release>(&path).await?;
        let last = part.listed.len() < RELEASED;
        // One that goes back would go on for ever.
        if part.listed.iter().any(|listed| listed.entry.slot < from) {
            return Err(way.malformed());
        }
        whole.listed.extend(part.listed);
        if last {
            return Ok(whole);
        }
    }
}

/// A client's ways: to everybody, without saying who it is. Those of one upload share
/// connections; another upload has others.
#[derive(Clone)]
pub struct Ways {
    /// To the registrar, which is told.
    pub registrar: Way,
    /// To the aggregator.
    pub aggregator: Way,
    /// To the smoothers.
    pub smoothers: Vec<Way>,
    /// How long somebody who does not answer is waited for.
    pub patience: Duration,
}

impl Ways {
    /// New ones.
    ///
    /// # Errors
    /// As [`Way::anonymous`].
    pub fn new(card: &Opened) -> Result<Self, Failure> {
        let smoother = |(clients, _): &(Base, Base)| -> Result<Way, Failure> {
            Ok(Way::anonymous(clients, card)?.within(BRIEF))
        };
        Ok(Self {
            registrar: Way::anonymous(&card.registrar, card)?,
            aggregator: Way::anonymous(&card.aggregator, card)?.within(PUBLIC),
            smoothers: card.smoothers.iter().map(smoother).collect::<Result<_, _>>()?,
            patience: StatsSettings::default().patience(),
        })
    }

    /// To a smoother.
    #[must_use]
    pub fn smoother(&self, id: SmootherId) -> Option<&Way> {
        self.smoothers.get(usize::from(id.0))
    }
}

/// What many were asked at once. When as many answers as it takes have helped, the others have
/// a moment left; who is later is not heard, but what it was asked goes on.
pub async fn gathered<T: Send + 'static>(
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

    #[tokio::test]
    async fn who_never_answers_is_not_waited_for_once_there_are_enough() {
        let mut asked = JoinSet::new();
        asked.spawn(std::future::pending());
        for helps in [true, false, true] {
            asked.spawn(std::future::ready(helps));
        }
        let mut answers = gathered(asked, 2, |helps| *helps).await;
        answers.sort_unstable();
        assert_eq!(answers, [false, true, true]);
    }

    #[tokio::test]
    async fn all_are_heard_if_too_few_help() {
        let asked: JoinSet<bool> = (0..3).map(|_| std::future::ready(false)).collect();
        assert_eq!(gathered(asked, 2, |helps| *helps).await.len(), 3);
    }
}
