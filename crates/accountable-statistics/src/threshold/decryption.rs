//! Partial decryptions, each with a proof that it is right, and what t of them open.

use super::{KeyShare, Member, SharedKey, interpolate, place};
use crate::error::{PartialError, ProvingError, TooFewPartialsError};
use crate::sums::{Ciphertext, Part};
use alpheus_crypto::group::{Element, IdentityError, SecretScalar, Total};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::sigma::{Claim, Proof, Statement};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// D = s_i·R, and the proof that s_i is the member's (Chaum, Pedersen 1992).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct PartialDecryption {
    member: Member,
    element: Element,
    proof: Proof,
}

/// A partial decryption of one ciphertext in one context, with a valid proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedPartial {
    member: Member,
    element: Element,
    of: (Digest, Ciphertext, Digest),
}

/// m·M for the sum m of one part: [`crate::logarithm`] reads it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OpenedSum {
    part: Part,
    total: Total,
}

impl KeyShare {
    /// This member's part in opening a ciphertext. **It opens any ciphertext.** The caller
    /// decides first that the sum is of one agreed set, was not opened with another, and has enough
    /// samples.
    ///
    /// # Errors
    /// [`ProvingError::OtherKey`] if the share belongs to another key, [`ProvingError::Generator`].
    ///
    /// # Privacy
    /// Anyone with t of them for one ciphertext learns what it encrypts.
    pub fn dangerous_open(
        &self,
        key: &SharedKey,
        ciphertext: &Ciphertext,
        context: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Result<PartialDecryption, ProvingError> {
        if self.key != key.transcript {
            return Err(ProvingError::OtherKey);
        }
        let failed = ProvingError::Generator;
        let element = ciphertext.r().times(&self.secret).map_err(|IdentityError| failed)?;
        let share = key.share(self.member).ok_or(failed)?;
        let statement = same_share(key, self.member, share, ciphertext, &element, context);
        let proof = statement.prove(&[&self.secret], rng).map_err(|_| failed)?;
        Ok(PartialDecryption { member: self.member, element, proof })
    }
}

/// The member knows s with s·B = V_i and s·R = D.
fn same_share(
    key: &SharedKey,
    member: Member,
    share: &Element,
    ciphertext: &Ciphertext,
    element: &Element,
    context: &Digest,
) -> Statement {
    let (member, sum) = (member.to_be_bytes(), ciphertext.to_bytes());
    let fields: [&[u8]; 4] = [key.transcript.as_bytes(), &member, &sum, context.as_bytes()];
    about(&fields, [share, ciphertext.r(), element])
}

fn about(fields: &[&[u8]], [share, r, element]: [&Element; 3]) -> Statement {
    let mut s = Statement::new(labels::STATISTICS_PARTIAL, fields);
    let secret = s.secret();
    let base = s.element(&Element::base());
    let [share, r, element] = [share, r, element].map(|e| s.element(e));
    s.equation(share, &[(1, secret, base)]);
    s.equation(element, &[(1, secret, r)]);
    s
}

impl PartialDecryption {
    /// member:16, D, two commitments, a response.
    pub const LENGTH: usize = 2 + 4 * Element::LENGTH;

    /// The member that it names.
    #[must_use]
    pub fn member(&self) -> Member {
        self.member
    }

    /// Decodes a partial decryption.
    ///
    /// # Errors
    /// [`PartialError::Malformed`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PartialError> {
        let malformed = PartialError::Malformed;
        let (member, rest) = bytes.split_first_chunk().ok_or(malformed)?;
        let (element, proof) = rest.split_first_chunk().ok_or(malformed)?;
        let element = Element::from_bytes(element).map_err(|_| malformed)?;
        let shape = about(&[], [&element; 3]);
        let proof = Proof::from_bytes(proof, &shape).map_err(|_| malformed)?;
        Ok(Self { member: Member::from_be_bytes(*member), element, proof })
    }

    /// The encoding.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = self.member.to_be_bytes().into_iter().chain(*self.element.as_bytes());
        head.chain(self.proof.to_bytes()).collect()
    }
}

impl TryFrom<Vec<u8>> for PartialDecryption {
    type Error = PartialError;

    fn try_from(bytes: Vec<u8>) -> Result<Self, PartialError> {
        Self::from_bytes(&bytes)
    }
}

impl From<PartialDecryption> for Vec<u8> {
    fn from(partial: PartialDecryption) -> Self {
        partial.to_bytes()
    }
}

impl SharedKey {
    /// Checks a partial decryption. A wrong one is its member's fault: use another's.
    ///
    /// # Errors
    /// [`PartialError`].
    pub fn verify(
        &self,
        partial: PartialDecryption,
        ciphertext: &Ciphertext,
        context: &Digest,
    ) -> Result<VerifiedPartial, PartialError> {
        let PartialDecryption { member, element, proof } = partial;
        let share = self.share(member).ok_or(PartialError::NoMember(member))?;
        let statement = same_share(self, member, share, ciphertext, &element, context);
        if !Claim::new(statement, proof).holds() {
            return Err(PartialError::Wrong(member));
        }
        Ok(VerifiedPartial { member, element, of: (self.transcript, *ciphertext, *context) })
    }

    /// Opens a ciphertext with t members' partial decryptions of it in one context: C − Σ λ_i·D_i.
    ///
    /// # Errors
    /// [`TooFewPartialsError`] with fewer; those of other ciphertexts or contexts do not count.
    pub fn combine(
        &self,
        ciphertext: &Ciphertext,
        context: &Digest,
        partials: &[VerifiedPartial],
    ) -> Result<OpenedSum, TooFewPartialsError> {
        let of = (self.transcript, *ciphertext, *context);
        let fitting = partials.iter().filter(|partial| partial.of == of);
        let by_member: BTreeMap<Member, &Element> =
            fitting.map(|partial| (partial.member, &partial.element)).collect();
        let needed = usize::from(self.committee.threshold);
        if by_member.len() < needed {
            return Err(TooFewPartialsError { have: by_member.len(), needed });
        }
        let used: Vec<(Member, &Element)> = by_member.into_iter().take(needed).collect();
        let places: Vec<SecretScalar> = used.iter().map(|(member, _)| place(*member)).collect();
        let points: Vec<Element> = used.iter().map(|(_, element)| **element).collect();
        let mut total = Total::zero();
        total.add(ciphertext.c());
        // s·R, which vanishes for no R.
        if let Some(blinding) = interpolate(&places, &points, &SecretScalar::from_small(0)) {
            total.subtract(&blinding);
        }
        Ok(OpenedSum { part: ciphertext.part(), total })
    }
}

impl OpenedSum {
    /// The part whose sum it is.
    #[must_use]
    pub fn part(&self) -> Part {
        self.part
    }

    /// m·M.
    #[must_use]
    pub fn total(&self) -> &Total {
        &self.total
    }
}
