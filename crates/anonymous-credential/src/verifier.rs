//! Verification of presentations, which needs the issuer's key, and of re-ups, which needs no
//! key.

use crate::codes::Code;
use crate::configuration::PinnedConfiguration;
use crate::error::{IssuerError, MessageError, RefutationError, VerifierError};
use crate::keys::IssuerKey;
use crate::lookups::{DueReUp, UnspentCode, UnspentLogin};
use crate::messages::{JointPresentation, Login, ReUp};
use crate::refutation::{OpenPresentation, Refutation};
use crate::statements;
use crate::subjects::{ProvenPresentation, Subject};
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sigma::{Claim, Proof, Statement, check_all};
use rand_core::CryptoRng;

/// Checks logins with the issuer's key. Anyone who has this key can issue credentials, so the
/// verifier runs in a process of its own.
pub struct Verifier {
    key: IssuerKey,
    pinned: PinnedConfiguration,
}

/// A login whose tag was unspent when it was looked up, and whose proof holds.
pub struct ProvenLogin(pub(crate) Box<Login>);

/// A code whose tag was unspent when it was looked up, and whose proofs hold.
pub struct ProvenCode(pub(crate) Box<Code>);

/// A re-up that is due, and whose proof holds.
pub struct ProvenReUp(pub(crate) DueReUp);

impl Verifier {
    /// A verifier of one configuration.
    ///
    /// # Errors
    /// [`IssuerError::OtherKey`] if the key is not the configuration's.
    pub fn new(key: IssuerKey, pinned: PinnedConfiguration) -> Result<Self, IssuerError> {
        if *key.public() != pinned.issuer {
            return Err(IssuerError::OtherKey);
        }
        Ok(Self { key, pinned })
    }

    /// Checks the proofs of logins in one batch and returns a verdict for each.
    ///
    /// # Privacy
    /// The verifier learns that the holder has some credential of the epoch's period, and its
    /// tag. It learns nothing that links the login to another login or to an issuance, unless
    /// the holder exceeds the limit (decisional Diffie–Hellman inversion, random-oracle model).
    pub fn verify(&self, logins: Vec<UnspentLogin>) -> Vec<Result<ProvenLogin, VerifierError>> {
        let claims = logins.iter().map(|login| self.claim(&self.pinned, &login.0)).collect();
        verdicts(logins, claims, |UnspentLogin(login)| ProvenLogin(login))
    }

    /// Checks the proofs of presentations about a subject in one batch and returns a verdict for
    /// each.
    ///
    /// # Privacy
    /// As for [`Verifier::verify`].
    pub fn verify_for_subject(
        &self,
        subject: &Subject,
        presentations: Vec<Login>,
    ) -> Vec<Result<ProvenPresentation, VerifierError>> {
        let claim = |login: &Login| {
            let here = login.epoch == subject.epoch();
            if here { self.claim(subject.pinned(), login) } else { Err(VerifierError::Epoch) }
        };
        let claims = presentations.iter().map(claim).collect();
        verdicts(presentations, claims, ProvenPresentation)
    }

    /// Checks the proofs of open presentations about a subject in one batch and returns a verdict
    /// for each. One whose V is not the one that the key gives is invalid.
    ///
    /// # Privacy
    /// As for [`Verifier::verify`]. This verifier computes V anyway.
    pub fn verify_open(
        &self,
        subject: &Subject,
        presentations: Vec<OpenPresentation>,
    ) -> Vec<Result<ProvenPresentation, VerifierError>> {
        let claim = |open: &OpenPresentation| {
            if open.login.epoch != subject.epoch() {
                return Err(VerifierError::Epoch);
            }
            if self.keyed(subject.pinned(), &open.login)? != open.v {
                return Err(VerifierError::Proof);
            }
            let (statement, proof) = of_presentation(subject.pinned(), &open.login, &open.v)?;
            Ok(Claim::new(statement, proof))
        };
        let claims = presentations.iter().map(claim).collect();
        verdicts(presentations, claims, |open| ProvenPresentation(open.login))
    }

    /// Proves to everybody that the V of an open presentation is wrong, in a context that the caller
    /// has in mind.
    ///
    /// # Errors
    /// [`RefutationError`].
    ///
    /// # Privacy
    /// Reveals that V is wrong and nothing of the right one (decisional Diffie–Hellman,
    /// random-oracle model).
    pub fn refute(
        &self,
        subject: &Subject,
        open: &OpenPresentation,
        about: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Result<Refutation, RefutationError> {
        Refutation::new(&self.key, subject, open, about, rng)
    }

    /// Checks the proofs of joint presentations about a subject in one batch and returns a
    /// verdict for each. Presentations for other verifiers are rejected.
    ///
    /// # Privacy
    /// As for [`Verifier::verify`]. Verifiers that compare notes see which presentations were
    /// made together.
    pub fn verify_joint(
        &self,
        subject: &Subject,
        presentations: Vec<JointPresentation>,
    ) -> Vec<Result<ProvenPresentation, VerifierError>> {
        let claim = |joint: &JointPresentation| {
            if joint.login.epoch != subject.epoch() {
                return Err(VerifierError::Epoch);
            }
            let (statement, proof) = self.statement(subject.pinned(), &joint.login)?;
            Claim::joint(statement, proof, &joint.context).ok_or(VerifierError::Proof)
        };
        let claims = presentations.iter().map(claim).collect();
        verdicts(presentations, claims, |joint| ProvenPresentation(joint.login))
    }

    /// Checks all proofs of a code in one batch: the login's, and those of the re-ups to the
    /// following epochs.
    ///
    /// # Errors
    /// [`VerifierError`].
    ///
    /// # Privacy
    /// As for a login. The tags of a code are linked to each other.
    pub fn verify_code(&self, unspent: UnspentCode) -> Result<ProvenCode, VerifierError> {
        let code = unspent.code();
        let carried = self.pinned.schedule.carried_by_code(code.login.epoch);
        if code.onward.len() as u64 != carried {
            return Err(MessageError::Length.into());
        }
        let mut claims = vec![self.claim(&self.pinned, &unspent.login().0)?];
        for (from, re_up) in code.re_ups(code.session(&self.pinned)) {
            claims.push(re_up_claim(&self.pinned, &from, &re_up)?);
        }
        check_all(&claims).map_err(|_| VerifierError::Proof)?;
        Ok(ProvenCode(unspent.0))
    }

    fn claim(&self, pinned: &PinnedConfiguration, login: &Login) -> Result<Claim, VerifierError> {
        let (statement, proof) = self.statement(pinned, login)?;
        Ok(Claim::new(statement, proof))
    }

    fn statement(
        &self,
        pinned: &PinnedConfiguration,
        login: &Login,
    ) -> Result<(Statement, Proof), VerifierError> {
        of_presentation(pinned, login, &self.keyed(pinned, login)?)
    }

    /// V = (x0 + x2·m2)·Ũ + x1·Cm − C', in constant time. For a check the key is used for nothing
    /// else: it receives an element and public scalars.
    fn keyed(&self, pinned: &PinnedConfiguration, login: &Login) -> Result<Element, VerifierError> {
        let period = pinned.schedule.period_of(login.epoch);
        let m2 = SecretScalar::from_public(&pinned.attributes(period));
        let factor = self.key.x0.plus(&self.key.x2.times(&m2));
        let terms = [(&factor, &login.u), (&self.key.x1, &login.cm)];
        Element::combine(&terms, &[], &[&login.c]).map_err(|_| VerifierError::Proof)
    }
}

/// The statement of a presentation with a V, and its proof.
fn of_presentation(
    pinned: &PinnedConfiguration,
    login: &Login,
    v: &Element,
) -> Result<(Statement, Proof), VerifierError> {
    let statement = statements::presentation(pinned, login, v).statement;
    let proof = Proof::from_bytes(&login.proof, &statement).map_err(MessageError::from)?;
    Ok((statement, proof))
}

/// Checks the proofs of re-ups in one batch and returns a verdict for each. Needs no key.
///
/// # Privacy
/// Re-ups of one session are linked to it and to each other, by design.
pub fn verify_re_ups(
    pinned: &PinnedConfiguration,
    re_ups: Vec<DueReUp>,
) -> Vec<Result<ProvenReUp, VerifierError>> {
    let claim = |due: &DueReUp| re_up_claim(pinned, &due.from, &due.re_up);
    let claims = re_ups.iter().map(claim).collect();
    verdicts(re_ups, claims, ProvenReUp)
}

fn re_up_claim(
    pinned: &PinnedConfiguration,
    from: &Element,
    re_up: &ReUp,
) -> Result<Claim, VerifierError> {
    let statement = statements::re_up(pinned, from, re_up);
    let proof = Proof::from_bytes(&re_up.proof, &statement).map_err(MessageError::from)?;
    Ok(Claim::new(statement, proof))
}

/// Checks all claims in one batch, and pairs each message with its verdict.
fn verdicts<M, P>(
    messages: Vec<M>,
    claims: Vec<Result<Claim, VerifierError>>,
    proven: impl Fn(M) -> P,
) -> Vec<Result<P, VerifierError>> {
    let mut refusals: Vec<Option<VerifierError>> = Vec::with_capacity(claims.len());
    let (mut batch, mut places) = (Vec::with_capacity(claims.len()), Vec::new());
    for (place, claim) in claims.into_iter().enumerate() {
        refusals.push(claim.as_ref().err().copied());
        if let Ok(claim) = claim {
            batch.push(claim);
            places.push(place);
        }
    }
    if let Err(culprits) = check_all(&batch) {
        culprits.0.iter().for_each(|at| refusals[places[*at]] = Some(VerifierError::Proof));
    }
    let messages = messages.into_iter().zip(refusals);
    messages.map(|(message, refusal)| refusal.map_or(Ok(proven(message)), Err)).collect()
}
