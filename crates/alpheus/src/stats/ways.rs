//! The ways to a deployment's parties, and what crosses them.

use crate::failure::{Category, Failure};
use crate::network::identity::IdentityFolder;
use crate::pass::link::{Base, Link, LinkError, Most};
use crate::stats::card::Opened;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::refused::{NotContributed, NotRegistered};
use alpheus_anonymous_credential::error::HolderRefused;
use axum::http::{Method, header::HeaderName};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The largest answer: a release of a million slots is fetched in parts of this.
pub const LARGEST: usize = 64 << 20;
/// How long a large answer may take.
const LARGE: Duration = Duration::from_secs(120);
/// How long somebody who does not answer is waited for.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// How often whoever waits asks again.
pub const AGAIN: Duration = Duration::from_millis(100);

/// A way to one party.
#[derive(Clone)]
pub struct Way(Link);

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
            StatsError::Link(_) | StatsError::TooFew { .. } | StatsError::Machine(_) => {
                Category::Io
            }
            StatsError::NotContributed(_)
            | StatsError::Holder(_)
            | StatsError::NotRegistered(_) => Category::Refused,
        };
        Self::new(category, error)
    }
}

impl Way {
    /// A way that does not say who goes it.
    ///
    /// # Errors
    /// If the card's authority cannot be used.
    pub fn anonymous(base: &Base, card: &Opened) -> Result<Self, Failure> {
        Ok(Self(Link::new(base.clone(), card.authority.as_deref())?))
    }

    /// A way of a process that says who it is.
    ///
    /// # Errors
    /// If a file of the identity cannot be used.
    pub fn named(base: &Base, identity: &IdentityFolder) -> Result<Self, Failure> {
        Ok(Self(Link::of(base.clone(), identity)?))
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
        let most = Most { bytes: LARGEST, time: LARGE };
        let answer = self.0.exchange_within(method, path, headers, body, most).await?;
        postcard::from_bytes(&answer).map_err(|_| self.malformed())
    }

    fn malformed(&self) -> LinkError {
        LinkError::Malformed(self.0.base().origin())
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
}

impl Ways {
    /// New ones.
    ///
    /// # Errors
    /// As [`Way::anonymous`].
    pub fn new(card: &Opened) -> Result<Self, Failure> {
        let smoothers = card.smoothers.iter().map(|(clients, _)| Way::anonymous(clients, card));
        Ok(Self {
            registrar: Way::anonymous(&card.registrar, card)?,
            aggregator: Way::anonymous(&card.aggregator, card)?,
            smoothers: smoothers.collect::<Result<_, _>>()?,
        })
    }

    /// To a smoother.
    #[must_use]
    pub fn smoother(&self, id: SmootherId) -> Option<&Way> {
        self.smoothers.get(usize::from(id.0))
    }
}
