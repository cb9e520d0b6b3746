//! A key that t of n hold: made without a trusted dealer ([`ceremony`], [`dealing`],
//! [`settlement`]) and used by partial decryptions with proofs ([`decryption`]).
//!
//! Every member announces a key for this attempt alone. Then it deals a polynomial of degree t − 1.
//! It first binds itself to the dealing by a hash, so that nobody chooses after seeing the others'.
//! Then it reveals the dealing, with a proof that it knows the constant (Feldman 1987; Pedersen
//! 1991). A member that deals wrongly gets complaints, and answers them in public or is left out.
//! t − 1 members learn nothing of the key. With n ≥ 3t − 2 and at most t − 1 members lying, silent
//! or gone, all who received the same settle the same key, and sums are opened.
//! [`crate::keymaking`] ensures that all receive the same.

pub mod ceremony;
pub mod dealing;
pub mod decryption;
pub mod settlement;

use crate::error::{CommitteeError, ShareError, SharedKeyError};
use crate::tuple::ThresholdKey;
use alpheus_crypto::group::{Element, IdentityError, SecretScalar, Total};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use serde::{Deserialize, Serialize};

/// A member of a committee, from 0.
pub type Member = u16;

/// The maximum number of members of a committee.
pub const MAX_MEMBERS: u16 = 64;

/// The members that hold a key, and how many of them are needed to use it. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct Committee {
    purpose: Digest,
    members: u16,
    threshold: u16,
}

/// The stored and sent form of a committee.
#[derive(Serialize, Deserialize)]
struct Fields {
    purpose: Digest,
    members: u16,
    threshold: u16,
}

/// The public side of a shared key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Public", into = "Public")]
pub struct SharedKey {
    committee: Committee,
    key: ThresholdKey,
    /// s_i·B of each member.
    shares: Vec<Element>,
    transcript: Digest,
}

/// The stored and sent form of a shared key.
#[derive(Serialize, Deserialize)]
struct Public {
    committee: Committee,
    key: ThresholdKey,
    shares: Vec<Element>,
    transcript: Digest,
}

/// s_i, a member's share of a key. Wiped on drop. Erasing every member's share, and the seed that
/// it was dealt with, erases the key.
pub struct KeyShare {
    key: Digest,
    member: Member,
    secret: SecretScalar,
}

impl Committee {
    /// A committee of `members`, of which `threshold` are needed. The purpose names a key epoch of
    /// a deployment and the members.
    ///
    /// # Errors
    /// [`CommitteeError`] unless 1 ≤ t and 3t − 2 ≤ n ≤ 64.
    pub fn new(purpose: Digest, members: u16, threshold: u16) -> Result<Self, CommitteeError> {
        let enough = u32::from(members) + 2 >= 3 * u32::from(threshold);
        if threshold == 0 || !enough || members > MAX_MEMBERS {
            return Err(CommitteeError);
        }
        Ok(Self { purpose, members, threshold })
    }

    /// n.
    #[must_use]
    pub fn members(&self) -> u16 {
        self.members
    }

    /// t.
    #[must_use]
    pub fn threshold(&self) -> u16 {
        self.threshold
    }

    /// A digest of purpose, n and t.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let (members, threshold) = (self.members.to_be_bytes(), self.threshold.to_be_bytes());
        let parts: [&[u8]; 3] = [self.purpose.as_bytes(), &members, &threshold];
        labelled_hash(labels::STATISTICS_KEY_COMMITTEE, &parts)
    }

    fn has(&self, member: Member) -> bool {
        member < self.members
    }
}

impl TryFrom<Fields> for Committee {
    type Error = CommitteeError;

    fn try_from(fields: Fields) -> Result<Self, CommitteeError> {
        Self::new(fields.purpose, fields.members, fields.threshold)
    }
}

impl From<Committee> for Fields {
    fn from(committee: Committee) -> Self {
        let Committee { purpose, members, threshold } = committee;
        Self { purpose, members, threshold }
    }
}

impl SharedKey {
    /// The committee that holds it.
    #[must_use]
    pub fn committee(&self) -> &Committee {
        &self.committee
    }

    /// P.
    #[must_use]
    pub fn key(&self) -> &ThresholdKey {
        &self.key
    }

    /// A digest of all messages that made the key. An equal transcript means an equal key and equal
    /// public shares.
    #[must_use]
    pub fn transcript(&self) -> &Digest {
        &self.transcript
    }

    fn share(&self, member: Member) -> Option<&Element> {
        self.shares.get(usize::from(member))
    }
}

impl KeyShare {
    /// The member that it belongs to.
    #[must_use]
    pub fn member(&self) -> Member {
        self.member
    }

    /// The share, for the party that stores it.
    #[must_use]
    pub fn expose(&self) -> Secret<32> {
        self.secret.expose()
    }

    /// Reads a stored share of a key.
    ///
    /// # Errors
    /// [`ShareError`] if it is not the member's.
    pub fn restore(
        key: &SharedKey,
        member: Member,
        share: &Secret<32>,
    ) -> Result<Self, ShareError> {
        let secret = SecretScalar::from_bytes(share).map_err(|_| ShareError)?;
        Self::of(key, member, secret)
    }

    fn of(key: &SharedKey, member: Member, secret: SecretScalar) -> Result<Self, ShareError> {
        let public = Element::base().times(&secret).map_err(|IdentityError| ShareError)?;
        if key.share(member) != Some(&public) {
            return Err(ShareError);
        }
        Ok(Self { key: key.transcript, member, secret })
    }
}

impl From<SharedKey> for Public {
    fn from(key: SharedKey) -> Self {
        let SharedKey { committee, key, shares, transcript } = key;
        Self { committee, key, shares, transcript }
    }
}

impl TryFrom<Public> for SharedKey {
    type Error = SharedKeyError;

    fn try_from(public: Public) -> Result<Self, SharedKeyError> {
        let Public { committee, key, shares, transcript } = public;
        if shares.len() != usize::from(committee.members) {
            return Err(SharedKeyError);
        }
        let (first, others) = shares.split_at(usize::from(committee.threshold));
        let places: Vec<SecretScalar> = (0..committee.threshold).map(place).collect();
        let at = |x: &SecretScalar| interpolate(&places, first, x);
        let rest = (committee.threshold..committee.members).map(place);
        let fit = rest.zip(others).all(|(x, share)| at(&x).as_ref() == Some(share));
        if at(&SecretScalar::from_small(0)) != Some(key.0) || !fit {
            return Err(SharedKeyError);
        }
        Ok(Self { committee, key, shares, transcript })
    }
}

/// The value at x of the polynomial through the points, in the exponent.
fn interpolate(places: &[SecretScalar], points: &[Element], x: &SecretScalar) -> Option<Element> {
    let weights: Vec<SecretScalar> = places.iter().map(|at| weight(at, places, x)).collect();
    let terms: Vec<(&SecretScalar, &Element)> = weights.iter().zip(points).collect();
    Element::combine(&terms, &[], &[]).ok()
}

/// Π (x_j − x) / (x_j − x_i) over all x_j other than x_i.
fn weight(at: &SecretScalar, places: &[SecretScalar], x: &SecretScalar) -> SecretScalar {
    let one = SecretScalar::from_small(1);
    places.iter().fold(one, |product, other| match other.minus(at).inverse() {
        Ok(inverse) => product.times(&other.minus(x)).times(&inverse),
        // x_i itself.
        Err(_) => product,
    })
}

/// A member's x on the polynomials: member + 1.
fn place(member: Member) -> SecretScalar {
    SecretScalar::from_small(u32::from(member) + 1)
}

/// Σ x^k·A_k at a member's x: the public form of its share.
fn evaluate(commitments: &[Total], member: Member) -> Result<Element, IdentityError> {
    let mut value = Total::zero();
    for commitment in commitments.iter().rev() {
        // Horner's rule, with x small and public.
        let previous = value;
        (0..member).for_each(|_| value.merge(&previous));
        value.merge(commitment);
    }
    value.element()
}
