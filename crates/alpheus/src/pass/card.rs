//! The public card of a deployment: its configuration and where issuer and gateway
//! are, signed by its operator. Everybody gets the same card; a subscriber who got
//! another one is in a crowd of its own, so compare its fingerprint.

use crate::commands::{Format, Globals};
use crate::failure::{Blame, Category, Failure};
use alpheus_anonymous_credential::configuration::{Configuration, Pinned};
use alpheus_anonymous_credential::error::BadConfiguration;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed::{Message, Rejected, Signed};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus pass card deployment/card.json
  alpheus pass card card.json --format json

The fingerprint covers all of the card. It is the one that `alpheus pass init` printed, and the same
for everybody: whoever has another one may be followed by it.";

/// The card's file.
pub const CARD: &str = "card.json";
const VERSION: u32 = 2;

/// Arguments of `alpheus pass card`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The card
    file: PathBuf,
}

/// The card, as JSON. What it says comes out by [`Card::open`] only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    version: u32,
    /// The operator's key: 32 bytes in hex.
    operator: String,
    /// What it says, signed: in hex.
    card: String,
}

/// What a card says: all that one subscriber could be told apart by.
#[derive(Serialize, Deserialize)]
struct Terms {
    operator: [u8; 32],
    configuration: Signed<Configuration>,
    issuer: String,
    gateway: String,
    authority: Option<String>,
}

impl Message for Terms {
    const LABEL: &'static str = labels::PASS_CARD;
}

/// A card whose signatures hold.
#[derive(Clone)]
pub struct Opened {
    /// The configuration.
    pub pinned: Pinned,
    /// Of the whole card: what subscribers compare.
    pub fingerprint: Digest,
    /// Where accounts get passes.
    pub issuer: String,
    /// Where the service is used.
    pub gateway: String,
    /// Authorities of both, in PEM form; none if they are not reached by TLS.
    pub authority: Option<String>,
}

/// Why a card is not to be used.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// Of another version.
    #[error("version {0} of the card is not known here, only version 2; ask its operator for one")]
    Version(u32),
    /// A field is not what it should be.
    #[error("`{0}` is not what it should be, in hexadecimal digits")]
    Hex(&'static str),
    /// Not what its operator signed.
    #[error("the card is not what its operator signed: {0}; get it again")]
    Signature(#[from] Rejected),
    /// Signed by another operator's key than it names.
    #[error("the card names another operator than the one that signed it; get it again")]
    Operator,
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
        operator: &SigningKey,
        issuer: String,
        gateway: String,
        authority: Option<String>,
    ) -> Self {
        let key = *operator.verifying_key().as_bytes();
        let configuration = configuration.clone();
        let terms = Terms { operator: key, configuration, issuer, gateway, authority };
        let signed = Signed::new(&terms, operator);
        let card = HEXLOWER.encode(&postcard::to_allocvec(&signed).unwrap_or_default());
        Self { version: VERSION, operator: HEXLOWER.encode(&key), card }
    }

    /// Reads a card.
    ///
    /// # Errors
    /// If the file cannot be read or understood.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read(path).blame_io(path)?;
        serde_json::from_slice(&text).blame_input(path)
    }

    /// Checks the card and opens it.
    ///
    /// # Errors
    /// [`CardError`].
    pub fn open(&self) -> Result<Opened, CardError> {
        if self.version != VERSION {
            return Err(CardError::Version(self.version));
        }
        let hex = |text: &str| HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
        let operator: Option<[u8; 32]> = hex(&self.operator).and_then(|b| b.try_into().ok());
        let operator = operator.and_then(|bytes| VerifyingKey::from_bytes(bytes).ok());
        let operator = operator.ok_or(CardError::Hex("operator"))?;
        let signed = hex(&self.card).and_then(|b| postcard::from_bytes(&b).ok());
        let signed: Signed<Terms> = signed.ok_or(CardError::Hex("card"))?;
        let terms = signed.open(&operator)?;
        let fingerprint = terms.digest();
        let Terms { operator: named, configuration, issuer, gateway, authority } =
            terms.into_inner();
        if named != *operator.as_bytes() {
            return Err(CardError::Operator);
        }
        let pinned = Pinned::open(&configuration, &operator)?;
        if pinned.limit != Limit::ONE {
            return Err(CardError::NoPass(pinned.limit.get()));
        }
        Ok(Opened { pinned, fingerprint, issuer, gateway, authority })
    }
}

/// Reads a card and opens it.
///
/// # Errors
/// If it cannot be read, or is not to be used.
pub fn open(path: &Path) -> Result<(Card, Opened), Failure> {
    let card = Card::load(path)?;
    let opened = card.open();
    let opened =
        opened.map_err(|e| Failure::new(Category::Input, e).at(path.display().to_string()))?;
    Ok((card, opened))
}

/// Says what a card says.
///
/// # Errors
/// As [`open`].
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (_, card) = open(&args.file)?;
    let schedule = &card.pinned.schedule;
    let seconds = |micros: u64| (micros / 1_000_000).to_string();
    let said = [
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
            said.iter().for_each(|(name, value)| println!("{name:18} {value}"));
        }
        Format::Json => {
            let said: std::collections::BTreeMap<_, _> = said.into_iter().collect();
            println!("{}", serde_json::to_string_pretty(&said).blame(Category::Io)?);
        }
        Format::Csv => {
            println!("name,value");
            said.iter().for_each(|(name, value)| println!("{name},{value}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_anonymous_credential::keys::IssuerKey;
    use alpheus_anonymous_credential::schedule::{Schedule, Time};
    use alpheus_crypto::secret::Secret;

    fn configuration() -> Configuration {
        let mut rng = crate::entropy::rng().unwrap();
        Configuration {
            deployment: [1; 32],
            kind: 1,
            tier: 1,
            limit: Limit::ONE,
            incarnation: 1,
            schedule: Schedule {
                start: Time(0),
                epoch: 15,
                pre_login: 3,
                border_pre_login: 10,
                epochs_per_period: 100,
                ahead: 0,
            },
            issuer: *IssuerKey::random(&mut rng).unwrap().public(),
        }
    }

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&Secret::from_bytes([seed; 32]))
    }

    /// An operator gives one person another address, or another authority: to
    /// follow them the card must differ, and then its fingerprint does.
    #[test]
    fn cards_that_differ_anywhere_have_other_fingerprints() {
        let signed = Signed::new(&configuration(), &key(1));
        let card = |issuer: &str, gateway: &str, authority: Option<&str>| {
            let authority = authority.map(str::to_owned);
            Card::new(&signed, &key(1), issuer.into(), gateway.into(), authority)
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
    fn a_card_is_as_its_operator_signed_it() {
        let signed = Signed::new(&configuration(), &key(1));
        let card = |operator| Card::new(&signed, &key(operator), "a".into(), "b".into(), None);
        let good = card(1);
        assert!(good.open().is_ok());
        let other =
            Card { operator: HEXLOWER.encode(key(2).verifying_key().as_bytes()), ..card(1) };
        assert!(matches!(other.open(), Err(CardError::Signature(_))));
        // Somebody else signs the operator's configuration into a card of their own.
        assert!(matches!(card(2).open(), Err(CardError::Configuration(_))));
        for at in 0..good.card.len() {
            let mut damaged = good.card.clone().into_bytes();
            damaged[at] = if damaged[at] == b'0' { b'1' } else { b'0' };
            let damaged = Card { card: String::from_utf8(damaged).unwrap(), ..good.clone() };
            assert!(damaged.open().is_err(), "digit {at}");
        }
        let old = Card { version: 1, ..good };
        assert!(matches!(old.open(), Err(CardError::Version(1))));
    }
}
