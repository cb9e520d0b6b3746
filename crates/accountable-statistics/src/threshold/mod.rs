//! A key that t of n hold: generated without a dealer ([`ceremony`], [`dealing`],
//! [`settling`]), used by partial decryptions with proofs ([`decrypting`]).
//!
//! Every member announces a key for this attempt alone and then deals a polynomial of degree t − 1: first bound to it by a hash, so
//! that none is chosen after the others' are seen, then shown with a proof that its
//! constant is known (Feldman 1987; Pedersen 1991). Who deals wrongly is complained
//! of and answers in public or is left out. t − 1 members learn nothing of the key;
//! with n ≥ 3t − 2 and at most t − 1 of them lying, silent or gone, whoever has heard the
//! same settles the same key, and sums are opened. That all hear the same is what
//! [`crate::keymaking`] sees to.

pub mod ceremony;
pub mod dealing;
pub mod decrypting;
pub mod settling;

use crate::error::{BadCommittee, BadShare, BadSharedKey};
use crate::tuple::ThresholdKey;
use alpheus_crypto::group::{Element, SecretScalar, Total, Vanished};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use serde::{Deserialize, Serialize};

/// A member of a committee, from 0.
pub type Member = u16;

/// The most members that a committee may have.
pub const MOST_MEMBERS: u16 = 64;

/// Who holds a key and how many are needed to use it. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct Committee {
    purpose: Digest,
    members: u16,
    threshold: u16,
}

/// A committee as it is stored and sent.
#[derive(Serialize, Deserialize)]
struct Fields {
    purpose: Digest,
    members: u16,
    threshold: u16,
}

/// What everybody may know of a generated key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Public", into = "Public")]
pub struct SharedKey {
    committee: Committee,
    key: ThresholdKey,
    /// s_i·B, of each member.
    shares: Vec<Element>,
    transcript: Digest,
}

/// A shared key as it is stored and sent.
#[derive(Serialize, Deserialize)]
struct Public {
    committee: Committee,
    key: ThresholdKey,
    shares: Vec<Element>,
    transcript: Digest,
}

/// s_i, a member's share of a key. Wiped on drop: erasing every member's share, and the
/// seed that it was dealt with, erases the key.
pub struct KeyShare {
    key: Digest,
    member: Member,
    secret: SecretScalar,
}

impl Committee {
    /// `members` of whom `threshold` are needed, for one purpose: a key epoch of a
    /// deployment, and who the members are.
    ///
    /// # Errors
    /// [`BadCommittee`] unless 1 ≤ t and 3t − 2 ≤ n ≤ 64.
    pub fn new(purpose: Digest, members: u16, threshold: u16) -> Result<Self, BadCommittee> {
        let enough = u32::from(members) + 2 >= 3 * u32::from(threshold);
        if threshold == 0 || !enough || members > MOST_MEMBERS {
            return Err(BadCommittee);
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
        labelled(labels::STATISTICS_KEY_COMMITTEE, &parts)
    }

    fn has(&self, member: Member) -> bool {
        member < self.members
    }
}

impl TryFrom<Fields> for Committee {
    type Error = BadCommittee;

    fn try_from(fields: Fields) -> Result<Self, BadCommittee> {
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
    /// Who holds it.
    #[must_use]
    pub fn committee(&self) -> &Committee {
        &self.committee
    }

    /// P.
    #[must_use]
    pub fn key(&self) -> &ThresholdKey {
        &self.key
    }

    /// A digest of all that was said when the key was generated: whoever has the same
    /// has the same key and the same public shares.
    #[must_use]
    pub fn transcript(&self) -> &Digest {
        &self.transcript
    }

    fn share(&self, member: Member) -> Option<&Element> {
        self.shares.get(usize::from(member))
    }
}

impl KeyShare {
    /// Whose it is.
    #[must_use]
    pub fn member(&self) -> Member {
        self.member
    }

    /// The share, for whoever stores it.
    #[must_use]
    pub fn expose(&self) -> Secret<32> {
        self.secret.expose()
    }

    /// Reads a stored share of a key.
    ///
    /// # Errors
    /// [`BadShare`] if it is not the member's.
    pub fn restore(key: &SharedKey, member: Member, share: &Secret<32>) -> Result<Self, BadShare> {
        let secret = SecretScalar::from_bytes(share).map_err(|_| BadShare)?;
        Self::of(key, member, secret)
    }

    fn of(key: &SharedKey, member: Member, secret: SecretScalar) -> Result<Self, BadShare> {
        let public = Element::base().times(&secret).map_err(|Vanished| BadShare)?;
        if key.share(member) != Some(&public) {
            return Err(BadShare);
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
    type Error = BadSharedKey;

    fn try_from(public: Public) -> Result<Self, BadSharedKey> {
        let Public { committee, key, shares, transcript } = public;
        if shares.len() != usize::from(committee.members) {
            return Err(BadSharedKey);
        }
        let (first, others) = shares.split_at(usize::from(committee.threshold));
        let places: Vec<SecretScalar> = (0..committee.threshold).map(place).collect();
        let at = |x: &SecretScalar| interpolate(&places, first, x);
        let rest = (committee.threshold..committee.members).map(place);
        let fit = rest.zip(others).all(|(x, share)| at(&x).as_ref() == Some(share));
        if at(&SecretScalar::from_small(0)) != Some(key.0) || !fit {
            return Err(BadSharedKey);
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

/// Π (x_j − x) / (x_j − x_i) over the places x_j other than x_i.
fn weight(at: &SecretScalar, places: &[SecretScalar], x: &SecretScalar) -> SecretScalar {
    let one = SecretScalar::from_small(1);
    places.iter().fold(one, |product, other| match other.minus(at).inverted() {
        Ok(inverse) => product.times(&other.minus(x)).times(&inverse),
        // x_i itself.
        Err(_) => product,
    })
}

/// Where a member's share lies on the polynomials: member + 1.
fn place(member: Member) -> SecretScalar {
    SecretScalar::from_small(u32::from(member) + 1)
}

/// Σ x^k·A_k at a member's x: the public form of its share.
fn evaluate(commitments: &[Total], member: Member) -> Result<Element, Vanished> {
    let mut value = Total::zero();
    for commitment in commitments.iter().rev() {
        // Horner's rule, with x small and public.
        let previous = value;
        (0..member).for_each(|_| value.merge(&previous));
        value.merge(commitment);
    }
    value.element()
}
