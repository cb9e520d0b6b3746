//! Public cards: JSON files whose content an operator has signed. Everyone who uses a
//! deployment pins its card.

use crate::failure::{Blame, Failure};
use crate::files::read_text;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_crypto::signed_message::{Message, Signed, SignedMessageError, Verified};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::marker::PhantomData;
use std::path::Path;

/// The content of a kind of card. Its [`Message::LABEL`] separates it from other kinds.
pub trait CardContent: Message {
    /// The version of the card's format.
    const VERSION: u32;
    /// What a valid card says.
    type ValidCard;
    /// Why a card is rejected.
    type Error: From<CardError> + Error + Send + Sync + 'static;

    /// Checks content whose signature holds.
    ///
    /// # Errors
    /// [`Self::Error`] if the content is invalid.
    fn check(content: Verified<Self>) -> Result<Self::ValidCard, Self::Error>;
}

/// A card as its file holds it. Only [`Card::open`] gives access to the content.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
pub struct Card<T> {
    version: u32,
    /// The operator's public key: 32 bytes in hexadecimal.
    operator: String,
    /// The signed content, in hexadecimal.
    card: String,
    #[serde(skip)]
    content: PhantomData<fn() -> T>,
}

/// Why the file of a card is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// Another version of the format.
    #[error(
        "the card has version {found}, but this build reads version {expected}; ask its operator for a current card"
    )]
    Version {
        /// The card's.
        found: u32,
        /// The one that is supported.
        expected: u32,
    },
    /// A field cannot be decoded.
    #[error(
        "the card is damaged: `{0}` must hold the hexadecimal digits that its operator published; copy the card again"
    )]
    Damaged(&'static str),
    /// The signature is invalid.
    #[error("the card is not signed by its operator: {0}; copy the card again")]
    Signature(#[from] SignedMessageError),
}

impl<T: CardContent> Card<T> {
    /// Signs a card.
    #[must_use]
    pub fn new(content: &T, operator: &SigningKey) -> Self {
        let signed = Signed::new(content, operator);
        Self {
            version: T::VERSION,
            operator: HEXLOWER.encode(operator.verifying_key().as_bytes()),
            card: HEXLOWER.encode(&postcard::to_allocvec(&signed).unwrap_or_default()),
            content: PhantomData,
        }
    }

    /// Reads a card, and checks it.
    ///
    /// # Errors
    /// If the file cannot be read, or the card is invalid.
    pub fn load(path: &Path) -> Result<(Self, T::ValidCard), Failure> {
        let card: Self = serde_json::from_str(&read_text(path)?).blame_input(path)?;
        let checked = card.open().blame_input(path)?;
        Ok((card, checked))
    }

    /// Checks the card.
    ///
    /// # Errors
    /// [`CardError`], or what [`CardContent::check`] rejects.
    pub fn open(&self) -> Result<T::ValidCard, T::Error> {
        T::check(self.verify()?)
    }

    fn verify(&self) -> Result<Verified<T>, CardError> {
        if self.version != T::VERSION {
            return Err(CardError::Version { found: self.version, expected: T::VERSION });
        }
        let decode = |text: &str| HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
        let operator = decode(&self.operator).and_then(|bytes| bytes.try_into().ok());
        let operator = operator.and_then(|bytes| VerifyingKey::from_bytes(bytes).ok());
        let operator = operator.ok_or(CardError::Damaged("operator"))?;
        let signed = decode(&self.card).and_then(|bytes| postcard::from_bytes(&bytes).ok());
        let signed: Signed<T> = signed.ok_or(CardError::Damaged("card"))?;
        Ok(signed.open(&operator)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_crypto::secret::Secret;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Name(String);

    impl Message for Name {
        const LABEL: &'static str = "alpheus/test/card/v1";
    }

    impl CardContent for Name {
        const VERSION: u32 = 2;
        type ValidCard = String;
        type Error = CardError;

        fn check(content: Verified<Self>) -> Result<String, CardError> {
            Ok(content.into_inner().0)
        }
    }

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&Secret::from_bytes([seed; 32]))
    }

    #[test]
    fn only_what_the_operator_signed_opens() {
        let card = || Card::new(&Name("a board".into()), &key(1));
        assert_eq!(card().open().unwrap(), "a board");
        let other = HEXLOWER.encode(key(2).verifying_key().as_bytes());
        let other = Card { operator: other, ..card() };
        assert_eq!(other.open(), Err(CardError::Signature(SignedMessageError::Signature)));
        for at in 0..card().card.len() {
            let mut damaged = card().card.into_bytes();
            damaged[at] = if damaged[at] == b'0' { b'1' } else { b'0' };
            let damaged = Card { card: String::from_utf8(damaged).unwrap(), ..card() };
            assert!(damaged.open().is_err(), "digit {at}");
        }
        for operator in ["", "0g", "00"] {
            let damaged = Card { operator: operator.into(), ..card() };
            assert_eq!(damaged.open(), Err(CardError::Damaged("operator")));
        }
        let old = Card { version: 1, ..card() };
        assert_eq!(old.open(), Err(CardError::Version { found: 1, expected: 2 }));
    }

    /// Distributed cards stay valid: the fields and their order are fixed.
    #[test]
    fn the_file_has_three_fields() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.json");
        let card = Card::new(&Name("a board".into()), &key(1));
        let text = serde_json::to_string(&card).unwrap();
        let Card { operator, card: signed, .. } = &card;
        let expected = format!(r#"{{"version":2,"operator":"{operator}","card":"{signed}"}}"#);
        assert_eq!(text, expected);
        std::fs::write(&path, &text).unwrap();
        assert_eq!(Card::<Name>::load(&path).unwrap(), (card, "a board".to_owned()));
        std::fs::write(&path, text.replace('}', r#","content":null}"#)).unwrap();
        assert!(Card::<Name>::load(&path).is_err());
    }
}
