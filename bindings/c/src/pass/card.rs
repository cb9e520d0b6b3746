//! The public card of a deployment of passes: its configuration and addresses, signed by its operator.

use crate::codes::Code;
use crate::refusal::Refusal;
use alpheus_anonymous_credential::configuration::{Configuration, PinnedConfiguration};
use alpheus_anonymous_credential::limit::Limit;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::{Message, Signed, Verified};
use data_encoding::HEXLOWER_PERMISSIVE;
use serde::{Deserialize, Serialize};

const VERSION: u32 = 2;

/// A valid card.
pub struct Card {
    /// The configuration.
    pub pinned: PinnedConfiguration,
    /// Covers the whole card. Subscribers compare it: another card could be used to track them.
    pub fingerprint: Digest,
    /// The issuer's address.
    pub issuer: String,
    /// The gateway's address.
    pub gateway: String,
    /// Certificate authorities of both, in PEM form; `None` without TLS.
    pub authority: Option<String>,
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CardFile {
    version: u32,
    operator: String,
    card: String,
}

/// What its operator signed.
#[derive(Serialize, Deserialize)]
struct Content {
    operator: [u8; 32],
    configuration: Signed<Configuration>,
    issuer: String,
    gateway: String,
    authority: Option<String>,
}

impl Message for Content {
    const LABEL: &'static str = labels::PASS_CARD;
}

impl Card {
    /// Reads a card, and checks its signatures.
    ///
    /// # Errors
    /// [`Code::CardInvalid`].
    pub fn read(text: &[u8]) -> Result<Card, Refusal> {
        let damaged = || invalid("Damaged", "this is not a card, or it is damaged; copy it again");
        let file: CardFile = serde_json::from_slice(text).map_err(|_| damaged())?;
        if file.version != VERSION {
            let what = "the card's version is not the one that this library reads, 2; ask its operator \
                        for a current card";
            return Err(invalid("Version", what));
        }
        let decode = |hex: &str| HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok();
        let operator = decode(&file.operator).and_then(|bytes| bytes.try_into().ok());
        let operator = operator.and_then(|bytes| VerifyingKey::from_bytes(bytes).ok());
        let signed = decode(&file.card).and_then(|bytes| postcard::from_bytes(&bytes).ok());
        let (Some(operator), Some(signed)) = (operator, signed) else { return Err(damaged()) };
        let signed: Signed<Content> = signed;
        let opened = signed.open(&operator).map_err(|error| Refusal::of(Code::CardInvalid, &error));
        Card::check(opened?, &operator)
    }

    fn check(content: Verified<Content>, operator: &VerifyingKey) -> Result<Card, Refusal> {
        let fingerprint = content.digest();
        let content = content.into_inner();
        if content.operator != *operator.as_bytes() {
            return Err(invalid("Operator", "the card names a different operator from its signer"));
        }
        let pinned = PinnedConfiguration::open(&content.configuration, operator);
        let pinned = pinned.map_err(|error| Refusal::of(Code::CardInvalid, &error))?;
        if pinned.limit != Limit::ONE {
            return Err(invalid("Limit", "a pass allows one presentation in an epoch"));
        }
        let Content { issuer, gateway, authority, .. } = content;
        Ok(Card { pinned, fingerprint, issuer, gateway, authority })
    }
}

fn invalid(reason: &str, message: &str) -> Refusal {
    Refusal::new(Code::CardInvalid, reason, message)
}
