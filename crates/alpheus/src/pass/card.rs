//! The public card of a deployment: the signed configuration, who signed it, and
//! where issuer and gateway are. Everybody gets the same card; a subscriber who
//! got another one is in a crowd of its own, so compare its fingerprint.

use crate::failure::{Blame, Category, Failure};
use alpheus_anonymous_credential::configuration::{Configuration, Pinned};
use alpheus_anonymous_credential::error::BadConfiguration;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Signed;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The card's file.
pub const CARD: &str = "card.json";
const VERSION: u32 = 1;

/// The card, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    version: u32,
    /// The operator's key: 32 bytes in hex.
    operator: String,
    /// The signed configuration: in hex.
    configuration: String,
    /// Where accounts get passes.
    pub issuer: String,
    /// Where the service is used.
    pub gateway: String,
    /// Authorities of both, in PEM form; none if they are not reached by TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
}

/// Why a card is not to be used.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// Of another version.
    #[error("version {0} of the card is not known here, only version 1")]
    Version(u32),
    /// A field is not what it should be.
    #[error("`{0}` is not what it should be, in hexadecimal digits")]
    Hex(&'static str),
    /// The configuration.
    #[error(transparent)]
    Configuration(#[from] BadConfiguration),
    /// Not a pass.
    #[error(
        "the configuration lets a credential be shown {0} times in an epoch; a pass is shown once"
    )]
    NoPass(u32),
}

impl Card {
    /// The card of a signed configuration.
    #[must_use]
    pub fn new(
        configuration: &Signed<Configuration>,
        operator: &VerifyingKey,
        issuer: String,
        gateway: String,
        authority: Option<String>,
    ) -> Self {
        let configuration =
            HEXLOWER.encode(&postcard::to_allocvec(configuration).unwrap_or_default());
        let operator = HEXLOWER.encode(operator.as_bytes());
        Self { version: VERSION, operator, configuration, issuer, gateway, authority }
    }

    /// Reads a card.
    ///
    /// # Errors
    /// If the file cannot be read or understood.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read(path).blame_io(path)?;
        serde_json::from_slice(&text).blame_input(path)
    }

    /// Checks the card and opens its configuration.
    ///
    /// # Errors
    /// [`CardError`].
    pub fn open(&self) -> Result<Pinned, CardError> {
        if self.version != VERSION {
            return Err(CardError::Version(self.version));
        }
        let hex = |text: &str| HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
        let operator: Option<[u8; 32]> = hex(&self.operator).and_then(|b| b.try_into().ok());
        let operator = operator.and_then(|bytes| VerifyingKey::from_bytes(bytes).ok());
        let operator = operator.ok_or(CardError::Hex("operator"))?;
        let signed = hex(&self.configuration).and_then(|b| postcard::from_bytes(&b).ok());
        let signed: Signed<Configuration> = signed.ok_or(CardError::Hex("configuration"))?;
        let pinned = Pinned::open(&signed, &operator)?;
        if pinned.limit != Limit::ONE {
            return Err(CardError::NoPass(pinned.limit.get()));
        }
        Ok(pinned)
    }
}

/// Reads a card and opens it.
///
/// # Errors
/// If it cannot be read, or is not to be used.
pub fn open(path: &Path) -> Result<(Card, Pinned), Failure> {
    let card = Card::load(path)?;
    let pinned = card.open();
    let pinned =
        pinned.map_err(|e| Failure::new(Category::Input, e).at(path.display().to_string()))?;
    Ok((card, pinned))
}
