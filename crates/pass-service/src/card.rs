//! The public card of a deployment: its configuration, and the addresses of issuer and
//! gateway, signed by the operator. All subscribers must have the same card. A subscriber
//! with a different one could be tracked by it, so compare its fingerprint.

use alpheus_anonymous_credential::configuration::{Configuration, PinnedConfiguration};
use alpheus_anonymous_credential::error::ConfigurationError;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::{Message, Signed, Verified};
use alpheus_node::card::{self, CardContent, CardError};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::settings::Format;
use alpheus_time::Span;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus pass card deployment/card.json
  alpheus pass card card.json --format json

The fingerprint covers the whole card. It must equal the one that `alpheus pass init` printed, and
that other subscribers see: a different card could be used to track you.";

/// The name of the card's file.
pub const CARD: &str = "card.json";

/// Arguments of `alpheus pass card`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The card
    file: PathBuf,
}

/// The card's file.
pub type Card = card::Card<Content>;

/// The content of a card. Any field that differs could identify a subscriber.
#[derive(Serialize, Deserialize)]
pub struct Content {
    operator: [u8; 32],
    configuration: Signed<Configuration>,
    issuer: String,
    gateway: String,
    authority: Option<String>,
}

impl Message for Content {
    const LABEL: &'static str = labels::PASS_CARD;
}

/// A valid card.
#[derive(Clone)]
pub struct VerifiedCard {
    /// The configuration.
    pub pinned: PinnedConfiguration,
    /// Covers the whole card. Subscribers compare it.
    pub fingerprint: Digest,
    /// The issuer's address.
    pub issuer: String,
    /// The gateway's address.
    pub gateway: String,
    /// Certificate authorities of both, in PEM form; `None` without TLS.
    pub authority: Option<String>,
}

/// Why a card is rejected.
#[derive(Debug, thiserror::Error)]
pub enum PassCardError {
    /// The file is invalid.
    #[error(transparent)]
    File(#[from] CardError),
    /// The content names another operator's key.
    #[error("the card names a different operator from the one that signed it; copy the card again")]
    Operator,
    /// The configuration.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The credential is not a pass.
    #[error(
        "the configuration allows {0} presentations of a credential in an epoch; a pass allows one"
    )]
    Limit(u32),
}

impl Content {
    /// The content for a signed configuration.
    #[must_use]
    pub fn new(
        configuration: &Signed<Configuration>,
        operator: &SigningKey,
        issuer: String,
        gateway: String,
        authority: Option<String>,
    ) -> Self {
        let operator = *operator.verifying_key().as_bytes();
        Self { operator, configuration: configuration.clone(), issuer, gateway, authority }
    }
}

impl CardContent for Content {
    const VERSION: u32 = 2;
    type ValidCard = VerifiedCard;
    type Error = PassCardError;

    fn check(content: Verified<Self>) -> Result<VerifiedCard, PassCardError> {
        let (fingerprint, signer) = (content.digest(), *content.signer());
        let Self { operator, configuration, issuer, gateway, authority } = content.into_inner();
        if operator != *signer.as_bytes() {
            return Err(PassCardError::Operator);
        }
        let pinned = PinnedConfiguration::open(&configuration, &signer)?;
        if pinned.limit != Limit::ONE {
            return Err(PassCardError::Limit(pinned.limit.get()));
        }
        Ok(VerifiedCard { pinned, fingerprint, issuer, gateway, authority })
    }
}

/// Prints a card's content.
///
/// # Errors
/// As [`Card::load`].
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (_, card) = Card::load(&args.file)?;
    let schedule = &card.pinned.schedule;
    let seconds = |span: Span| (span.0 / 1_000_000).to_string();
    let fields = [
        ("fingerprint", card.fingerprint.to_string()),
        ("issuer", card.issuer),
        ("gateway", card.gateway),
        ("tier", card.pinned.tier.to_string()),
        ("epoch_seconds", seconds(schedule.epoch)),
        ("epochs_per_period", schedule.epochs_per_period.to_string()),
        ("epochs_of_a_code", schedule.ahead.to_string()),
    ];
    match globals.format.unwrap_or_default() {
        Format::Table => {
            fields.iter().for_each(|(name, value)| println!("{name:18} {value}"));
        }
        Format::Json => {
            let fields: std::collections::BTreeMap<_, _> = fields.into_iter().collect();
            println!("{}", serde_json::to_string_pretty(&fields).blame(Category::Io)?);
        }
        Format::Csv => {
            println!("name,value");
            fields.iter().for_each(|(name, value)| println!("{name},{value}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_anonymous_credential::keys::IssuerKey;
    use alpheus_anonymous_credential::schedule::Schedule;
    use alpheus_crypto::secret::Secret;
    use alpheus_time::{Span, Timestamp};

    fn configuration() -> Configuration {
        let mut rng = alpheus_node::entropy::rng().unwrap();
        Configuration {
            deployment: [1; 32],
            kind: 1,
            tier: 1,
            limit: Limit::ONE,
            incarnation: 1,
            schedule: Schedule {
                start: Timestamp(0),
                epoch: Span(15),
                pre_login: Span(3),
                border_pre_login: Span(10),
                epochs_per_period: 100,
                ahead: 0,
            },
            issuer: *IssuerKey::random(&mut rng).unwrap().public(),
        }
    }

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&Secret::from_bytes([seed; 32]))
    }

    /// An operator who gives one subscriber a different address or authority must give
    /// them a different card, and its fingerprint shows it.
    #[test]
    fn cards_that_differ_anywhere_have_different_fingerprints() {
        let signed = Signed::new(&configuration(), &key(1));
        let card = |issuer: &str, gateway: &str, authority: Option<&str>| {
            let authority = authority.map(str::to_owned);
            let content = Content::new(&signed, &key(1), issuer.into(), gateway.into(), authority);
            Card::new(&content, &key(1))
        };
        let usual = ("https://issuer.example", "https://music.example", Some("authority"));
        let fingerprint = |card: &Card| card.open().unwrap().fingerprint;
        let everybodys = card(usual.0, usual.1, usual.2);
        assert_eq!(fingerprint(&everybodys), fingerprint(&card(usual.0, usual.1, usual.2)));
        for other in [
            card(usual.0, "https://ada.music.example", usual.2),
            card("https://ada.issuer.example", usual.1, usual.2),
            card(usual.0, usual.1, Some("another")),
            card(usual.0, usual.1, None),
        ] {
            assert_ne!(fingerprint(&everybodys), fingerprint(&other));
            let pinned = |card: &Card| card.open().unwrap().pinned.fingerprint();
            assert_eq!(pinned(&everybodys), pinned(&other), "the configuration is the same");
        }
    }

    #[test]
    fn a_card_names_the_operator_that_signed_it_and_the_configuration() {
        let signed = Signed::new(&configuration(), &key(1));
        let card = |named, signer| {
            let content = Content::new(&signed, &key(named), "a".into(), "b".into(), None);
            Card::new(&content, &key(signer)).open()
        };
        assert!(card(1, 1).is_ok());
        assert!(matches!(card(1, 2), Err(PassCardError::Operator)));
        // Another operator signs this operator's configuration into a card.
        assert!(matches!(card(2, 2), Err(PassCardError::Configuration(_))));
    }
}
