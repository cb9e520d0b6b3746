//! Presentations whose proof anybody can check, and the proof that one is not of a valid credential.
//!
//! A verifier computes V with its key, and V is part of the proof. To tell others that a
//! presentation is invalid it must not tell them V: with V of elements that somebody chose, that
//! somebody has a credential. So the holder of an *open* presentation says what V is. Then
//! everybody can check the proof, and only the verifier knows whether V is right. If it is not, the
//! verifier proves that, and reveals no more than that.

use crate::configuration::PinnedConfiguration;
use crate::error::{MessageError, RefutationError, VerifierError};
use crate::keys::{IssuerKey, IssuerPublic};
use crate::limit::Limit;
use crate::messages::{Login, Reader};
use crate::statements;
use crate::subjects::Subject;
use alpheus_crypto::group::{Element, IdentityError, SecretScalar};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sigma::{Claim, Proof, Statement};
use rand_core::CryptoRng;

/// A presentation, and V as its holder has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPresentation {
    /// V = z·X1 − r·G.
    pub v: Element,
    /// The presentation.
    pub login: Login,
}

/// The proof that the V of an open presentation is not the one that the issuer's key gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refutation {
    /// N = ρ·(V − V'), where V' is right.
    masked: Element,
    /// Q = ρ⁻¹·Y, which shows that ρ⁻¹ is not zero.
    nonzero: Element,
    proof: Vec<u8>,
}

impl OpenPresentation {
    /// Length under a limit, in bytes.
    #[must_use]
    pub fn length(limit: Limit) -> usize {
        Element::LENGTH + Login::length(limit)
    }

    /// Decodes V, then the presentation, under a limit.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn from_bytes(bytes: &[u8], limit: Limit) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        let v = reader.element()?;
        Ok(Self { v, login: Login::from_bytes(reader.0, limit)? })
    }

    /// Encodes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.v.as_bytes().as_slice(), &self.login.to_bytes()].concat()
    }

    /// Checks everything that needs no key: the epoch, and the proof under its own V. A presentation
    /// that fails here is invalid, and one that passes is valid if V is right.
    ///
    /// # Errors
    /// [`VerifierError::Epoch`], [`VerifierError::Malformed`], [`VerifierError::Proof`].
    pub fn check(&self, subject: &Subject) -> Result<(), VerifierError> {
        if self.login.epoch != subject.epoch() {
            return Err(VerifierError::Epoch);
        }
        self.shifted().map_err(|IdentityError| VerifierError::Proof)?;
        let statement = statements::presentation(subject.pinned(), &self.login, &self.v).statement;
        let proof = Proof::from_bytes(&self.login.proof, &statement).map_err(MessageError::from)?;
        if Claim::new(statement, proof).holds() { Ok(()) } else { Err(VerifierError::Proof) }
    }

    /// S = V + C', which is x0·Ũ + x1·Cm + x2·m2·Ũ if V is right.
    fn shifted(&self) -> Result<Element, IdentityError> {
        Element::combine(&[], &[&self.v, &self.login.c], &[])
    }
}

/// m2·Ũ.
fn attributed(pinned: &PinnedConfiguration, login: &Login) -> Result<Element, IdentityError> {
    let period = pinned.schedule.period_of(login.epoch);
    login.u.times(&SecretScalar::from_public(&pinned.attributes(period)))
}

/// Secrets (x0, x1, x2, xb, σ): S = x0·Ũ + x1·Cm + x2·m2·Ũ + σ·N by the pinned key, and Q = σ·Y. As
/// Q is not the identity, σ is not zero, and σ·N is not the identity either.
fn statement(
    subject: &Subject,
    open: &OpenPresentation,
    about: &Digest,
    [masked, nonzero]: [&Element; 2],
) -> Result<Statement, IdentityError> {
    let (pinned, fingerprint) = (subject.pinned(), subject.fingerprint());
    let fields: [&[u8]; 2] = [fingerprint.as_bytes(), about.as_bytes()];
    let mut s = Statement::new(labels::CREDENTIAL_REFUTATION, &fields);
    let [x0, x1, x2, xb, sigma] = std::array::from_fn(|_| s.secret());
    let (g, h) = (s.element(&Element::base()), s.element(&Element::second_base()));
    let IssuerPublic { x0: px0, x1: px1, x2: px2 } = &pinned.issuer;
    let [px0, px1, px2] = [px0, px1, px2].map(|element| s.element(element));
    let (shifted, m2u) = (open.shifted()?, attributed(pinned, &open.login)?);
    let of = [&open.login.u, &open.login.cm, &m2u, &shifted, masked];
    let [u, cm, m2u, shifted, masked] = of.map(|element| s.element(element));
    let y = s.element(&base(subject, open, about));
    let nonzero = s.element(nonzero);
    s.equation(px0, &[(1, x0, g), (1, xb, h)]);
    s.equation(px1, &[(1, x1, h)]);
    s.equation(px2, &[(1, x2, h)]);
    s.equation(shifted, &[(1, x0, u), (1, x1, cm), (1, x2, m2u), (1, sigma, masked)]);
    s.equation(nonzero, &[(1, sigma, y)]);
    Ok(s)
}

/// Y, whose logarithm nobody knows.
fn base(subject: &Subject, open: &OpenPresentation, about: &Digest) -> Element {
    let fingerprint = subject.fingerprint();
    let parts: [&[u8]; 3] = [fingerprint.as_bytes(), &open.to_bytes(), about.as_bytes()];
    Element::from_hash(labels::CREDENTIAL_REFUTATION_BASE, &parts)
}

/// V − V', in constant time; none if V is right.
fn difference(
    key: &IssuerKey,
    pinned: &PinnedConfiguration,
    open: &OpenPresentation,
) -> Result<Option<Element>, IdentityError> {
    let (shifted, m2u) = (open.shifted()?, attributed(pinned, &open.login)?);
    let terms = [(&key.x0, &open.login.u), (&key.x1, &open.login.cm), (&key.x2, &m2u)];
    let right = Element::combine(&terms, &[], &[])?;
    Ok(Element::combine(&[], &[&shifted], &[&right]).ok())
}

impl Refutation {
    /// The length in bytes.
    pub const LENGTH: usize = 12 * Element::LENGTH;

    pub(crate) fn new(
        key: &IssuerKey,
        subject: &Subject,
        open: &OpenPresentation,
        about: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, RefutationError> {
        let failed = |IdentityError| RefutationError::NotProven;
        let wrong = difference(key, subject.pinned(), open).map_err(failed)?;
        let wrong = wrong.ok_or(RefutationError::Right)?;
        let (fresh, secret) = (Secret::<32>::random(rng), key.expose());
        let fingerprint = subject.fingerprint();
        let hedge: [&[u8]; 5] = [
            fresh.expose(),
            secret.expose(),
            fingerprint.as_bytes(),
            &open.to_bytes(),
            about.as_bytes(),
        ];
        let rho = SecretScalar::from_hash(labels::CREDENTIAL_REFUTATION_SECRET, &hedge);
        let sigma = rho.inverse().map_err(|_| RefutationError::NotProven)?;
        let masked = wrong.times(&rho).map_err(failed)?;
        let nonzero = base(subject, open, about).times(&sigma).map_err(failed)?;
        let statement = statement(subject, open, about, [&masked, &nonzero]).map_err(failed)?;
        let proof = statement.prove(&[&key.x0, &key.x1, &key.x2, &key.xb, &sigma], rng);
        let proof = proof.map_err(|_| RefutationError::NotProven)?.to_bytes();
        Ok(Self { masked, nonzero, proof })
    }

    /// Checks that V is wrong, about a subject and in a context that the caller has in mind.
    ///
    /// # Errors
    /// [`VerifierError::Proof`], [`VerifierError::Malformed`].
    pub fn verify(
        &self,
        subject: &Subject,
        open: &OpenPresentation,
        about: &Digest,
    ) -> Result<(), VerifierError> {
        if open.login.epoch != subject.epoch() {
            return Err(VerifierError::Epoch);
        }
        let statement = statement(subject, open, about, [&self.masked, &self.nonzero]);
        let statement = statement.map_err(|IdentityError| VerifierError::Proof)?;
        let proof = Proof::from_bytes(&self.proof, &statement).map_err(MessageError::from)?;
        if Claim::new(statement, proof).holds() { Ok(()) } else { Err(VerifierError::Proof) }
    }

    /// Decodes N, Q and the proof.
    ///
    /// # Errors
    /// [`MessageError`]. The proof's content is checked later.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        let (masked, nonzero) = (reader.element()?, reader.element()?);
        if bytes.len() != Self::LENGTH {
            return Err(MessageError::Length);
        }
        Ok(Self { masked, nonzero, proof: reader.0.to_vec() })
    }

    /// Encodes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.masked.as_bytes(), self.nonzero.as_bytes(), self.proof.as_slice()].concat()
    }
}
