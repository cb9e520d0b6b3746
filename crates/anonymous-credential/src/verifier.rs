//! Verification of showings, which needs the issuer's key, and of re-ups, which
//! needs none: gateways hold no key.

use crate::codes::Code;
use crate::configuration::Pinned;
use crate::error::{IssueRefused, Malformed, Refused};
use crate::keys::IssuerKey;
use crate::messages::{Joint, Login, ReUp};
use crate::sessions::codes::UnspentCode;
use crate::sessions::{DueReUp, Unspent};
use crate::statements;
use crate::subjects::{ProvenAbout, Subject};
use alpheus_crypto::group::{Element, SecretScalar};
use alpheus_crypto::sigma::{Claim, Proof, Statement, check_all};

/// Checks logins with the issuer's key. Whoever holds it can mint credentials:
/// it runs in a process of its own.
pub struct Verifier {
    key: IssuerKey,
    pinned: Pinned,
}

/// A login whose tag was not spent when it was looked up, and whose proof holds.
pub struct ProvenLogin(pub(crate) Box<Login>);

/// A code whose tag was not spent when it was looked up, and whose proofs hold.
pub struct ProvenCode(pub(crate) Box<Code>);

/// A re-up that is due, and whose proof holds.
pub struct ProvenReUp(pub(crate) DueReUp);

impl Verifier {
    /// A verifier of one configuration.
    ///
    /// # Errors
    /// [`IssueRefused::OtherKey`] if the key is not the configuration's.
    pub fn new(key: IssuerKey, pinned: Pinned) -> Result<Self, IssueRefused> {
        if *key.public() != pinned.issuer {
            return Err(IssueRefused::OtherKey);
        }
        Ok(Self { key, pinned })
    }

    /// Checks the proofs of logins together; each gets its own verdict.
    ///
    /// # Privacy
    /// The verifier learns of each that its holder has some credential of the
    /// epoch's period, the tag, and nothing that links it to another login or to
    /// an issuance, unless the holder shows more often than the limit (decisional
    /// Diffie–Hellman inversion, random-oracle model).
    pub fn verify(&self, logins: Vec<Unspent>) -> Vec<Result<ProvenLogin, Refused>> {
        let claims = logins.iter().map(|login| self.claim(&self.pinned, &login.0)).collect();
        verdicts(logins, claims, |Unspent(login)| ProvenLogin(login))
    }

    /// Checks the proofs of showings about a subject together; each gets its own verdict.
    ///
    /// # Privacy
    /// As of [`Verifier::verify`].
    pub fn verify_about(
        &self,
        subject: &Subject,
        showings: Vec<Login>,
    ) -> Vec<Result<ProvenAbout, Refused>> {
        let claim = |login: &Login| {
            let here = login.epoch == subject.epoch();
            if here { self.claim(subject.pinned(), login) } else { Err(Refused::Epoch) }
        };
        let claims = showings.iter().map(claim).collect();
        verdicts(showings, claims, ProvenAbout)
    }

    /// Checks the proofs of showings about a subject that were each made together with others', for
    /// other verifiers; each gets its own verdict. What was shown to another verifier is refused.
    ///
    /// # Privacy
    /// As of [`Verifier::verify`]; verifiers who compare see which showings were made together.
    pub fn verify_joint(
        &self,
        subject: &Subject,
        showings: Vec<Joint>,
    ) -> Vec<Result<ProvenAbout, Refused>> {
        let claim = |joint: &Joint| {
            if joint.login.epoch != subject.epoch() {
                return Err(Refused::Epoch);
            }
            let (statement, proof) = self.statement(subject.pinned(), &joint.login)?;
            Claim::beside(statement, proof, &joint.beside).ok_or(Refused::Proof)
        };
        let claims = showings.iter().map(claim).collect();
        verdicts(showings, claims, |joint| ProvenAbout(joint.login))
    }

    /// Checks all proofs of a code together: the login's, and those of the re-ups
    /// that carry it to each of the epochs that codes spend.
    ///
    /// # Errors
    /// [`Refused`].
    ///
    /// # Privacy
    /// As of a login; the tags of a code are linked to each other.
    pub fn verify_code(&self, unspent: UnspentCode) -> Result<ProvenCode, Refused> {
        let code = unspent.code();
        let carried = self.pinned.schedule.carried_by_code(code.login.epoch);
        if code.onward.len() as u64 != carried {
            return Err(Malformed::Length.into());
        }
        let mut claims = vec![self.claim(&self.pinned, &unspent.login().0)?];
        for (from, re_up) in code.re_ups(code.session(&self.pinned)) {
            claims.push(re_up_claim(&self.pinned, &from, &re_up)?);
        }
        check_all(&claims).map_err(|_| Refused::Proof)?;
        Ok(ProvenCode(unspent.0))
    }

    fn claim(&self, pinned: &Pinned, login: &Login) -> Result<Claim, Refused> {
        let (statement, proof) = self.statement(pinned, login)?;
        Ok(Claim::new(statement, proof))
    }

    /// V = (x0 + x2·m2)·Ũ + x1·Cm − C', in constant time: the key meets nothing
    /// else. What goes on into the check is an element and public scalars.
    fn statement(&self, pinned: &Pinned, login: &Login) -> Result<(Statement, Proof), Refused> {
        let period = pinned.schedule.period_of(login.epoch);
        let m2 = SecretScalar::from_public(&pinned.attributes(period));
        let factor = self.key.x0.plus(&self.key.x2.times(&m2));
        let terms = [(&factor, &login.u), (&self.key.x1, &login.cm)];
        let v = Element::combine(&terms, &[], &[&login.c]).map_err(|_| Refused::Proof)?;
        let statement = statements::showing(pinned, login, &v).statement;
        let proof = Proof::from_bytes(&login.proof, &statement).map_err(Malformed::from)?;
        Ok((statement, proof))
    }
}

/// Checks the proofs of re-ups together; each gets its own verdict. Needs no key.
///
/// # Privacy
/// Re-ups of one session are linked to it and to each other, by design.
pub fn verify_re_ups(pinned: &Pinned, re_ups: Vec<DueReUp>) -> Vec<Result<ProvenReUp, Refused>> {
    let claim = |due: &DueReUp| re_up_claim(pinned, &due.from, &due.re_up);
    let claims = re_ups.iter().map(claim).collect();
    verdicts(re_ups, claims, ProvenReUp)
}

fn re_up_claim(pinned: &Pinned, from: &Element, re_up: &ReUp) -> Result<Claim, Refused> {
    let statement = statements::re_up(pinned, from, re_up);
    let proof = Proof::from_bytes(&re_up.proof, &statement).map_err(Malformed::from)?;
    Ok(Claim::new(statement, proof))
}

/// Checks the claims that there are in one batch, and pairs each message with
/// its own verdict.
fn verdicts<M, P>(
    messages: Vec<M>,
    claims: Vec<Result<Claim, Refused>>,
    proven: impl Fn(M) -> P,
) -> Vec<Result<P, Refused>> {
    let mut refusals: Vec<Option<Refused>> = Vec::with_capacity(claims.len());
    let (mut batch, mut places) = (Vec::with_capacity(claims.len()), Vec::new());
    for (place, claim) in claims.into_iter().enumerate() {
        refusals.push(claim.as_ref().err().copied());
        if let Ok(claim) = claim {
            batch.push(claim);
            places.push(place);
        }
    }
    if let Err(culprits) = check_all(&batch) {
        culprits.0.iter().for_each(|at| refusals[places[*at]] = Some(Refused::Proof));
    }
    let messages = messages.into_iter().zip(refusals);
    messages.map(|(message, refusal)| refusal.map_or(Ok(proven(message)), Err)).collect()
}
