//! A deployment's card: its configuration, where its parties are, their authority. It is
//! public, signed, and pinned by everybody.

use crate::failure::{Blame, Category, Failure};
use crate::pass::link::{BadBase, Base};
use crate::replay::inputs::read_text;
use alpheus_accountable_statistics::configuration::{BadConfiguration, Configuration, Pinned};
use alpheus_crypto::labels;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed::{Message, Rejected, Signed};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};
use std::path::Path;

const VERSION: u32 = 1;

/// The card's file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    version: u32,
    /// Verifies the rest: 32 bytes in hexadecimal digits.
    operator: String,
    /// What is signed, in hexadecimal digits.
    card: String,
}

/// Where a smoother is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmootherAt {
    /// For clients.
    pub clients: String,
    /// For the other smoothers and the aggregator.
    pub peers: String,
}

/// Where everybody is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// The registrar.
    pub registrar: String,
    /// The aggregator.
    pub aggregator: String,
    /// In the order of the configuration.
    pub smoothers: Vec<SmootherAt>,
}

/// What is signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    configuration: Signed<Configuration>,
    at: Addresses,
    /// Authorities of their certificates, in PEM form.
    authority: Option<String>,
}

impl Message for Content {
    const LABEL: &'static str = labels::STATISTICS_CARD_FILE;
}

/// A card that was checked.
#[derive(Clone)]
pub struct Opened {
    /// The deployment.
    pub pinned: Pinned,
    /// Where the registrar is.
    pub registrar: Base,
    /// Where the aggregator is.
    pub aggregator: Base,
    /// Where each smoother is, for clients and for peers.
    pub smoothers: Vec<(Base, Base)>,
    /// Authorities of their certificates.
    pub authority: Option<String>,
}

/// A card that is not to be used.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// Another version.
    #[error("version {0} of a statistics' card is not known here, only version 1")]
    Version(u32),
    /// Not what it should be.
    #[error(
        "the card is damaged: `operator` and `card` hold hexadecimal digits of a key and of what it signed; copy it again from whoever runs the deployment"
    )]
    Damaged,
    /// Not signed by its operator.
    #[error("the card is not signed by its operator: {0}")]
    Signature(Rejected),
    /// The configuration is not to be used.
    #[error(transparent)]
    Configuration(#[from] BadConfiguration),
    /// An address is none.
    #[error("an address on the card: {0}")]
    Address(#[from] BadBase),
    /// Not one address for each smoother.
    #[error("the card has not one address for each smoother")]
    Number,
}

impl Card {
    /// Signs a card.
    #[must_use]
    pub fn new(
        configuration: &Configuration,
        at: Addresses,
        authority: Option<String>,
        operator: &SigningKey,
    ) -> Self {
        let configuration = Signed::new(configuration, operator);
        let signed = Signed::new(&Content { configuration, at, authority }, operator);
        let card = HEXLOWER.encode(&postcard::to_allocvec(&signed).unwrap_or_default());
        let operator = HEXLOWER.encode(operator.verifying_key().as_bytes());
        Self { version: VERSION, operator, card }
    }

    /// Checks a card.
    ///
    /// # Errors
    /// [`CardError`].
    pub fn open(&self) -> Result<Opened, CardError> {
        if self.version != VERSION {
            return Err(CardError::Version(self.version));
        }
        let digits = |text: &str| HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
        let operator = digits(&self.operator).and_then(|bytes| bytes.try_into().ok());
        let operator = operator.and_then(|bytes| VerifyingKey::from_bytes(bytes).ok());
        let operator = operator.ok_or(CardError::Damaged)?;
        let bytes = digits(&self.card).ok_or(CardError::Damaged)?;
        let signed: Signed<Content> =
            postcard::from_bytes(&bytes).map_err(|_| CardError::Damaged)?;
        let content = signed.open(&operator).map_err(CardError::Signature)?.into_inner();
        let pinned = Pinned::open(&content.configuration, &operator)?;
        let Addresses { registrar, aggregator, smoothers } = &content.at;
        if smoothers.len() != pinned.smoothers.len() {
            return Err(CardError::Number);
        }
        let both = |at: &SmootherAt| Ok((Base::parse(&at.clients)?, Base::parse(&at.peers)?));
        Ok(Opened {
            pinned,
            registrar: Base::parse(registrar)?,
            aggregator: Base::parse(aggregator)?,
            smoothers: smoothers.iter().map(both).collect::<Result<_, BadBase>>()?,
            authority: content.authority.clone(),
        })
    }
}

/// Reads a card and opens it.
///
/// # Errors
/// If it cannot be read, or is not to be used.
pub fn open(path: &Path) -> Result<Opened, Failure> {
    let card: Card = serde_json::from_str(&read_text(path)?).blame_input(path)?;
    card.open().map_err(|error| Failure::new(Category::Input, error).at(path.display().to_string()))
}
