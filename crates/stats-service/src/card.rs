//! A deployment's card: its configuration, the addresses of its parties, and their certificate
//! authority. The card is public and signed, and all participants pin it.

use alpheus_accountable_statistics::configuration::{
    Configuration, ConfigurationError, PinnedConfiguration,
};
use alpheus_crypto::labels;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Message, Signed, Verified};
use alpheus_node::card::{self, CardContent, CardError};
use alpheus_node::failure::Failure;
use alpheus_node::network::base::{Base, BaseUrlError};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The card's file.
pub type Card = card::Card<Content>;

/// A smoother's addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmootherAt {
    /// For clients.
    pub clients: String,
    /// For the other smoothers and the aggregator.
    pub peers: String,
}

/// The addresses of all parties.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// The registrar.
    pub registrar: String,
    /// The aggregator.
    pub aggregator: String,
    /// In the order of the configuration.
    pub smoothers: Vec<SmootherAt>,
}

/// The signed content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    configuration: Signed<Configuration>,
    at: Addresses,
    /// Certificate authorities of the parties, in PEM form.
    authority: Option<String>,
}

impl Message for Content {
    const LABEL: &'static str = labels::STATISTICS_CARD_FILE;
}

/// A verified card.
#[derive(Clone)]
pub struct VerifiedCard {
    /// The deployment.
    pub pinned: PinnedConfiguration,
    /// The registrar's address.
    pub registrar: Base,
    /// The aggregator's address.
    pub aggregator: Base,
    /// Each smoother's addresses for clients and for peers.
    pub smoothers: Vec<(Base, Base)>,
    /// Certificate authorities of the parties.
    pub authority: Option<String>,
}

/// A card cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StatsCardError {
    /// The file is invalid.
    #[error(transparent)]
    File(#[from] CardError),
    /// The configuration is invalid.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// An address is invalid.
    #[error("an address on the card: {0}")]
    Address(#[from] BaseUrlError),
    /// The number of addresses is wrong.
    #[error(
        "the card must have one address per smoother; get the card from the deployment's operator again"
    )]
    Number,
}

impl Content {
    /// The content for a configuration, which `operator` signs.
    #[must_use]
    pub fn new(
        configuration: &Configuration,
        at: Addresses,
        authority: Option<String>,
        operator: &SigningKey,
    ) -> Self {
        Self { configuration: Signed::new(configuration, operator), at, authority }
    }
}

impl CardContent for Content {
    const VERSION: u32 = 1;
    type ValidCard = VerifiedCard;
    type Error = StatsCardError;

    fn check(content: Verified<Self>) -> Result<VerifiedCard, StatsCardError> {
        let pinned = PinnedConfiguration::open(&content.configuration, content.signer())?;
        let Self { at: Addresses { registrar, aggregator, smoothers }, authority, .. } =
            content.into_inner();
        if smoothers.len() != pinned.smoothers.len() {
            return Err(StatsCardError::Number);
        }
        let both = |at: &SmootherAt| Ok((Base::parse(&at.clients)?, Base::parse(&at.peers)?));
        Ok(VerifiedCard {
            pinned,
            registrar: Base::parse(&registrar)?,
            aggregator: Base::parse(&aggregator)?,
            smoothers: smoothers.iter().map(both).collect::<Result<_, BaseUrlError>>()?,
            authority,
        })
    }
}

/// Reads a card and opens it.
///
/// # Errors
/// If it cannot be read or used.
pub fn open(path: &Path) -> Result<VerifiedCard, Failure> {
    Ok(Card::load(path)?.1)
}
