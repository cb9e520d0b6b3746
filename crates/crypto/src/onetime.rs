//! Keys for one message to one recipient. The sender signs with its key and seals for the recipient
//! with the same key. The recipient can prove to anybody what a sealed message opens to, or that it
//! does not open, and discloses nothing else by that.
//!
//! E = e·G is the sender's key and A = a·G the recipient's. Both know Z = e·A = a·E. The recipient
//! discloses Z with a proof of equal discrete logarithms (Chaum, Pedersen 1992). A signature is a
//! proof of knowledge of e (Schnorr), so nobody can put another sender's E on a message of its own
//! and have its Z disclosed. Labels and parts are the protocol's.

use crate::group::{Element, ElementError, IdentityError, SecretScalar};
use crate::kdf::derive;
use crate::seal::UnsealError;
use crate::secret::Secret;
use crate::sigma::{Claim, Proof, ProvingError, Statement};
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// A sender's key for one message. Not `Clone`, not `Debug`, wiped on drop.
pub struct OneTimeKey {
    secret: SecretScalar,
    public: Element,
}

/// The public half of a [`OneTimeKey`], as bytes: whether they are an element shows when it is used.
/// Nobody can sign for bytes that are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OneTimePublic([u8; 32]);

/// A signature: commitment, then response. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneTimeSignature([[u8; 32]; 2]);

/// A recipient's key. Not `Clone`, not `Debug`, wiped on drop.
pub struct RecipientKey {
    secret: SecretScalar,
    public: Element,
}

/// Z, which opens one message, and the proof that it is Z. Public once it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disclosure {
    shared: Element,
    proof: Vec<u8>,
}

/// A disclosure that holds. Made by [`Disclosure::verify`].
pub struct VerifiedDisclosure {
    shared: Element,
    to: Element,
    from: OneTimePublic,
}

/// The signature, the disclosure or the key is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proof does not hold for this key and message")]
pub struct OneTimeProofError;

/// How much longer a sealed message is than its content, in bytes.
pub const SEAL: usize = 16;

/// "I know e with E = e·G", about a message.
fn knowledge(label: &str, message: &[u8], key: &Element) -> Statement {
    let mut s = Statement::new(label, &[message]);
    let secret = s.secret();
    let (base, key) = (s.element(&Element::base()), s.element(key));
    s.equation(key, &[(1, secret, base)]);
    s
}

/// "A = a·G and Z = a·E", about a subject.
fn same(label: &str, about: &[u8], [to, from, shared]: [&Element; 3]) -> Statement {
    let mut s = Statement::new(label, &[about]);
    let secret = s.secret();
    let base = s.element(&Element::base());
    let [to, from, shared] = [to, from, shared].map(|element| s.element(element));
    s.equation(to, &[(1, secret, base)]);
    s.equation(shared, &[(1, secret, from)]);
    s
}

/// The key of one message: HKDF of Z, bound to both parties and to what the message is for.
fn cipher(
    shared: &Element,
    to: &Element,
    from: &OneTimePublic,
    (label, context): (&str, &[&[u8]]),
) -> ChaCha20Poly1305 {
    let parts: Vec<&[u8]> = [to.as_bytes().as_slice(), from.as_bytes()]
        .into_iter()
        .chain(context.iter().copied())
        .collect();
    let key: Secret<32> = derive(shared.as_bytes(), label, &parts);
    ChaCha20Poly1305::new(key.expose().into())
}

fn open(cipher: &ChaCha20Poly1305, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
    // One key seals one message, so the nonce is constant.
    cipher.decrypt(&Nonce::default(), sealed).map(Zeroizing::new).map_err(|_| UnsealError)
}

impl OneTimeKey {
    /// The key that a seed determines under a label.
    ///
    /// # Errors
    /// [`IdentityError`], with a probability of 2^-252.
    pub fn from_seed(label: &str, seed: &Secret<32>) -> Result<Self, IdentityError> {
        let secret = SecretScalar::from_hash(label, &[seed.expose()]);
        let public = Element::base().times(&secret)?;
        Ok(Self { secret, public })
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> OneTimePublic {
        OneTimePublic(*self.public.as_bytes())
    }

    /// Signs a message.
    ///
    /// # Errors
    /// [`ProvingError::Identity`], with a probability of 2^-252.
    pub fn sign(
        &self,
        label: &str,
        message: &[u8],
        rng: &mut impl CryptoRng,
    ) -> Result<OneTimeSignature, ProvingError> {
        let proof = knowledge(label, message, &self.public).prove(&[&self.secret], rng)?.to_bytes();
        let (chunks, _) = proof.as_chunks::<32>();
        let signature = <[[u8; 32]; 2]>::try_from(chunks).map_err(|_| ProvingError::Identity)?;
        Ok(OneTimeSignature(signature))
    }

    /// Seals one message for a recipient. **Two messages under one key need different contexts**,
    /// so put a digest of the message into it. The result is [`SEAL`] bytes longer.
    ///
    /// # Errors
    /// [`UnsealError`] if Z is the identity, with a probability of 2^-252.
    ///
    /// # Privacy
    /// Only sender and recipient can open it (gap Diffie–Hellman, random-oracle model), until the
    /// recipient discloses Z.
    pub fn seal(
        &self,
        to: &Element,
        (label, context): (&str, &[&[u8]]),
        message: &[u8],
    ) -> Result<Vec<u8>, UnsealError> {
        let shared = to.times(&self.secret).map_err(|IdentityError| UnsealError)?;
        let cipher = cipher(&shared, to, &self.public(), (label, context));
        cipher.encrypt(&Nonce::default(), message).map_err(|_| UnsealError)
    }
}

impl OneTimePublic {
    /// A key from its bytes, not checked yet.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The element.
    ///
    /// # Errors
    /// [`ElementError`].
    pub fn element(&self) -> Result<Element, ElementError> {
        Element::from_bytes(&self.0)
    }

    /// The claim that a signature is by this key over a message, to be checked alone or with others.
    ///
    /// # Errors
    /// [`OneTimeProofError`] if key or signature is malformed.
    pub fn claim(
        &self,
        label: &str,
        message: &[u8],
        signature: &OneTimeSignature,
    ) -> Result<Claim, OneTimeProofError> {
        let key = self.element().map_err(|_| OneTimeProofError)?;
        let statement = knowledge(label, message, &key);
        let proof = Proof::from_bytes(signature.0.as_flattened(), &statement);
        Ok(Claim::new(statement, proof.map_err(|_| OneTimeProofError)?))
    }

    /// Checks a signature over a message.
    ///
    /// # Errors
    /// [`OneTimeProofError`].
    pub fn verify(
        &self,
        label: &str,
        message: &[u8],
        signature: &OneTimeSignature,
    ) -> Result<(), OneTimeProofError> {
        if self.claim(label, message, signature)?.holds() { Ok(()) } else { Err(OneTimeProofError) }
    }
}

impl OneTimeSignature {
    /// A signature from its bytes. It is checked only when it is verified.
    #[must_use]
    pub fn from_bytes(bytes: [[u8; 32]; 2]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [[u8; 32]; 2] {
        self.0
    }
}

impl RecipientKey {
    /// The key that a seed determines under a label.
    ///
    /// # Errors
    /// [`IdentityError`], with a probability of 2^-252.
    pub fn from_seed(label: &str, seed: &Secret<32>) -> Result<Self, IdentityError> {
        let OneTimeKey { secret, public } = OneTimeKey::from_seed(label, seed)?;
        Ok(Self { secret, public })
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> &Element {
        &self.public
    }

    fn shared(&self, from: &OneTimePublic) -> Result<(Element, Element), UnsealError> {
        let from = from.element().map_err(|_| UnsealError)?;
        let shared = from.times(&self.secret).map_err(|IdentityError| UnsealError)?;
        Ok((from, shared))
    }

    /// Opens a message of a sender.
    ///
    /// # Errors
    /// [`UnsealError`].
    pub fn open(
        &self,
        from: &OneTimePublic,
        (label, context): (&str, &[&[u8]]),
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        let (_, shared) = self.shared(from)?;
        open(&cipher(&shared, &self.public, from, (label, context)), sealed)
    }

    /// Discloses what opens the one message of a sender, with a proof about a subject.
    ///
    /// # Errors
    /// [`UnsealError`] if the sender's key is no element, so that nobody can have signed with it.
    ///
    /// # Privacy
    /// Everybody who sees it can open the message. It reveals nothing about the recipient's key or
    /// other messages (decisional Diffie–Hellman).
    pub fn disclose(
        &self,
        from: &OneTimePublic,
        (label, about): (&str, &[u8]),
        rng: &mut impl CryptoRng,
    ) -> Result<Disclosure, UnsealError> {
        let (from, shared) = self.shared(from)?;
        let statement = same(label, about, [&self.public, &from, &shared]);
        let proof = statement.prove(&[&self.secret], rng).map_err(|_| UnsealError)?;
        Ok(Disclosure { shared, proof: proof.to_bytes() })
    }
}

impl Disclosure {
    /// A disclosure from Z and the proof's bytes, not checked yet.
    #[must_use]
    pub fn from_parts(shared: Element, proof: Vec<u8>) -> Self {
        Self { shared, proof }
    }

    /// Checks the proof.
    ///
    /// # Errors
    /// [`OneTimeProofError`].
    pub fn verify(
        &self,
        to: &Element,
        from: &OneTimePublic,
        (label, about): (&str, &[u8]),
    ) -> Result<VerifiedDisclosure, OneTimeProofError> {
        let element = from.element().map_err(|_| OneTimeProofError)?;
        let statement = same(label, about, [to, &element, &self.shared]);
        let proof = Proof::from_bytes(&self.proof, &statement).map_err(|_| OneTimeProofError)?;
        if !Claim::new(statement, proof).holds() {
            return Err(OneTimeProofError);
        }
        Ok(VerifiedDisclosure { shared: self.shared, to: *to, from: *from })
    }
}

impl VerifiedDisclosure {
    /// Opens the message as its recipient would.
    ///
    /// # Errors
    /// [`UnsealError`]: it opens for its recipient no more than here.
    pub fn open(
        &self,
        (label, context): (&str, &[&[u8]]),
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, UnsealError> {
        open(&cipher(&self.shared, &self.to, &self.from, (label, context)), sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use chacha20::rand_core::SeedableRng;

    const SEALING: (&str, &[&[u8]]) = ("alpheus/test-sealing/v1", &[b"what", b"for"]);
    const PROOF: &str = "alpheus/test-disclosure/v1";
    const OTHER: &str = "alpheus/test-other/v1";

    fn recipient(seed: u8) -> RecipientKey {
        RecipientKey::from_seed("alpheus/test-recipient/v1", &Secret::from_bytes([seed; 32]))
            .unwrap()
    }

    fn sender(seed: u8) -> OneTimeKey {
        OneTimeKey::from_seed("alpheus/test-sender/v1", &Secret::from_bytes([seed; 32])).unwrap()
    }

    #[test]
    fn a_message_opens_for_its_recipient_and_context_alone() {
        let (to, from) = (recipient(1), sender(2));
        let sealed = from.seal(to.public(), SEALING, b"content").unwrap();
        assert_eq!(sealed.len(), 7 + SEAL);
        assert_eq!(*to.open(&from.public(), SEALING, &sealed).unwrap(), b"content");
        let others: [(&str, &[&[u8]]); 3] =
            [(OTHER, SEALING.1), (SEALING.0, &[b"what", b"else"]), (SEALING.0, &[b"whatfor"])];
        for other in others {
            assert_eq!(to.open(&from.public(), other, &sealed), Err(UnsealError));
        }
        assert_eq!(recipient(3).open(&from.public(), SEALING, &sealed), Err(UnsealError));
        assert_eq!(to.open(&sender(3).public(), SEALING, &sealed), Err(UnsealError));
        assert_eq!(to.open(&from.public(), SEALING, &sealed[1..]), Err(UnsealError));
        let none = OneTimePublic::from_bytes([0xff; 32]);
        assert_eq!(to.open(&none, SEALING, &sealed), Err(UnsealError));
    }

    #[test]
    fn a_disclosure_opens_what_its_recipient_opens_and_proves_it() {
        let rng = &mut ChaCha20Rng::from_seed([4; 32]);
        let (to, from) = (recipient(1), sender(2));
        let sealed = from.seal(to.public(), SEALING, b"content").unwrap();
        let about = (PROOF, b"slot 7".as_slice());
        let shown = to.disclose(&from.public(), about, rng).unwrap();
        let seen = shown.verify(to.public(), &from.public(), about).unwrap();
        assert_eq!(*seen.open(SEALING, &sealed).unwrap(), b"content");
        // What is not for it opens for nobody.
        let mut damaged = sealed.clone();
        damaged[3] ^= 1;
        assert_eq!(seen.open(SEALING, &damaged), Err(UnsealError));
        let refused = |shown: &Disclosure, to: &Element, from: &OneTimePublic, about| {
            assert_eq!(shown.verify(to, from, about).err(), Some(OneTimeProofError));
        };
        refused(&shown, recipient(3).public(), &from.public(), about);
        refused(&shown, to.public(), &sender(3).public(), about);
        refused(&shown, to.public(), &from.public(), (PROOF, b"slot 8"));
        refused(&shown, to.public(), &from.public(), (OTHER, b"slot 7"));
        refused(&shown, to.public(), &OneTimePublic::from_bytes([0; 32]), about);
        let lie = Disclosure { shared: *to.public(), ..shown.clone() };
        refused(&lie, to.public(), &from.public(), about);
        let short = Disclosure { proof: shown.proof[1..].to_vec(), ..shown };
        refused(&short, to.public(), &from.public(), about);
        // Somebody who proves by another key than the recipient's.
        let other = recipient(3).disclose(&from.public(), about, rng).unwrap();
        refused(&other, to.public(), &from.public(), about);
    }

    #[test]
    fn a_signature_is_by_one_key_over_one_message_under_one_label() {
        let (key, rng) = (sender(2), &mut ChaCha20Rng::from_seed([5; 32]));
        let signature = key.sign(PROOF, b"entry", rng).unwrap();
        assert_eq!(key.public().verify(PROOF, b"entry", &signature), Ok(()));
        let refused = Err(OneTimeProofError);
        assert_eq!(key.public().verify(PROOF, b"entrY", &signature), refused);
        assert_eq!(key.public().verify(OTHER, b"entry", &signature), refused);
        assert_eq!(sender(3).public().verify(PROOF, b"entry", &signature), refused);
        for at in [0, 1] {
            let mut other = signature.to_bytes();
            other[at] = key.sign(PROOF, b"entry", rng).unwrap().to_bytes()[at];
            let other = OneTimeSignature::from_bytes(other);
            assert_eq!(key.public().verify(PROOF, b"entry", &other), refused);
        }
        for bytes in [[0; 32], [0xff; 32]] {
            assert_eq!(
                OneTimePublic::from_bytes(bytes).verify(PROOF, b"entry", &signature),
                refused
            );
        }
    }
}
