//! One member's part of a new key: pledge, dealing, answers; and what the others check.
//!
//! Shares travel sealed inside the dealing, which everybody receives, so a share that has not
//! arrived is no ground for a complaint. Otherwise an adversary that drops one message of each
//! honest dealer could make each of them publish a share.

use super::ceremony::{Ceremony, sealing_key};
use super::{Member, evaluate, place};
use crate::error::{DealerError, DealingError};
use alpheus_crypto::group::{Element, IdentityError, SecretScalar, Total};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::seal::{SealedSecret, SealingKey, seal};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sigma::{Claim, Proof, Statement};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a proof of knowledge of one scalar.
const PROOF: usize = 2 * Element::LENGTH;
/// Bytes of a sealed share.
const SEALED: usize = 32 + 32 + 16;

/// One member's secrets of one ceremony: the polynomial f of degree t − 1, and the key that opens
/// the shares sealed for it. Drop it, and destroy the seed, in the commit that makes the share of
/// the key durable.
pub struct Dealer {
    ceremony: Ceremony,
    member: Member,
    coefficients: Vec<SecretScalar>,
    opens: SealingKey,
    dealing: Dealing,
}

/// f_k·B for each coefficient, the proof that f_0 is known, and f(i + 1) sealed for each member i.
/// Public, but revealed only when all pledges are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealing {
    commitments: Vec<Element>,
    proof: Proof,
    sealed: Vec<SealedSecret>,
}

/// What a dealer is bound to before dealings are revealed. Public once signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pledge {
    /// The ceremony.
    pub ceremony: Digest,
    /// The dealer.
    pub dealer: Member,
    /// Digest of the dealing.
    pub dealing: Digest,
}

/// A dealing that was pledged by its dealer and is proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedDealing {
    pub(super) pledge: Pledge,
    pub(super) commitments: Vec<Element>,
    sealed: Vec<SealedSecret>,
}

/// f(member + 1) of a dealer, which fits its dealing. Secret.
pub struct ReceivedShare {
    pub(super) pledge: Pledge,
    pub(super) secret: SecretScalar,
}

/// The share that this dealer sealed for the accuser does not open or does not fit its dealing.
/// Public once signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Complaint {
    /// The ceremony.
    pub ceremony: Digest,
    /// The dealer.
    pub dealer: Member,
    /// The member that complains.
    pub accuser: Member,
}

/// A dealer's answer: the accuser's share, for all to see. Public once signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Answer {
    /// The complaint.
    pub complaint: Complaint,
    /// f(accuser + 1).
    pub share: [u8; 32],
}

impl Dealer {
    /// Draws a polynomial from the seed behind the member's announcement, and seals the members'
    /// shares.
    ///
    /// # Errors
    /// [`DealerError`].
    pub fn new(
        ceremony: &Ceremony,
        member: Member,
        seed: &Secret<32>,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, DealerError> {
        let (coefficients, commitments) = drawn(ceremony, member, seed)?;
        let statement = knows(ceremony.digest(), member, &commitments);
        let constant = coefficients.first().ok_or(DealerError::Generator)?;
        let proof = statement.prove(&[constant], rng).map_err(|_| DealerError::Generator)?;
        let sealed = (0..).zip(ceremony.keys()).map(|(to, key)| {
            let Some(key) = key else { return Some(nothing()) };
            let share = value(&coefficients, to).expose();
            let [member, to] = [member, to].map(u16::to_be_bytes);
            let context: [&[u8]; 3] = [ceremony.digest().as_bytes(), &member, &to];
            seal(key, labels::STATISTICS_KEY_SHARE, &context, &share, rng).ok()
        });
        let sealed = sealed.collect::<Option<_>>().ok_or(DealerError::Generator)?;
        let dealing = Dealing { commitments, proof, sealed };
        Self::of(ceremony, member, seed, coefficients, dealing)
    }

    /// Restores a dealer after a crash, from the seed and the dealing that it is bound to.
    ///
    /// # Errors
    /// [`DealerError`].
    pub fn restore(
        ceremony: &Ceremony,
        member: Member,
        seed: &Secret<32>,
        dealing: Dealing,
    ) -> Result<Self, DealerError> {
        let (coefficients, commitments) = drawn(ceremony, member, seed)?;
        if commitments != dealing.commitments {
            return Err(DealerError::OtherDealing);
        }
        Self::of(ceremony, member, seed, coefficients, dealing)
    }

    fn of(
        ceremony: &Ceremony,
        member: Member,
        seed: &Secret<32>,
        coefficients: Vec<SecretScalar>,
        dealing: Dealing,
    ) -> Result<Self, DealerError> {
        let opens = sealing_key(&ceremony.committee().digest(), ceremony.attempt(), member, seed);
        if ceremony.key(member) != Some(&opens.public()) {
            return Err(DealerError::NotAnnounced);
        }
        Ok(Self { ceremony: ceremony.clone(), member, coefficients, opens, dealing })
    }

    /// The pledge, to be sent first.
    #[must_use]
    pub fn pledge(&self) -> Pledge {
        self.dealing.pledge(&self.ceremony, self.member)
    }

    /// The dealing, to be stored with the seed before the pledge is sent.
    #[must_use]
    pub fn dealing(&self) -> &Dealing {
        &self.dealing
    }

    /// The dealing, to be sent to all once every pledge that will count is in. A member that sees
    /// it earlier can choose its polynomial by it.
    ///
    /// # Errors
    /// [`DealerError::Pledges`] if one's own is missing, or so many that no key would be made.
    pub fn reveal(&self, pledges: &[Pledge]) -> Result<&Dealing, DealerError> {
        let ours = pledges.iter().filter(|pledge| pledge.ceremony == *self.ceremony.digest());
        let dealers: BTreeSet<Member> = ours.map(|pledge| pledge.dealer).collect();
        let committee = self.ceremony.committee();
        let needed = usize::from(committee.members) + 1 - usize::from(committee.threshold);
        if !pledges.contains(&self.pledge()) || dealers.len() < needed {
            return Err(DealerError::Pledges);
        }
        Ok(&self.dealing)
    }

    /// Opens the share that a dealer has sealed for this member.
    ///
    /// # Errors
    /// The [`Complaint`] to send, if the share does not open or does not fit the dealing.
    pub fn open_share(&self, dealt: &VerifiedDealing) -> Result<ReceivedShare, Complaint> {
        let (ceremony, dealer) = (*self.ceremony.digest(), dealt.pledge.dealer);
        let share = dealt.open(self.member, &self.opens);
        let share = share.filter(|share| dealt.fits(self.member, share));
        let complaint = Complaint { ceremony, dealer, accuser: self.member };
        Ok(ReceivedShare { pledge: dealt.pledge, secret: share.ok_or(complaint)? })
    }

    /// Answers the complaints about this dealer, out of all that were signed. A member that
    /// complains of t dealers is at fault and gets no answer; nor does one that has announced no
    /// key.
    ///
    /// # Privacy
    /// The accusers' shares of this dealing become public. An honest member has no ground to
    /// complain of an honest dealer.
    #[must_use]
    pub fn answers(&self, complaints: &[Complaint]) -> Vec<Answer> {
        let grounded = grounded(&self.ceremony, complaints).into_iter();
        let ours = grounded.filter(|complaint| complaint.dealer == self.member);
        let answer = |complaint: Complaint| {
            let share = *value(&self.coefficients, complaint.accuser).expose().expose();
            Answer { complaint, share }
        };
        ours.map(answer).collect()
    }
}

/// Complaints that count: of this ceremony, by members that have announced a key and complain of
/// fewer than t dealers. At most t − 1 are at fault.
pub(super) fn grounded(ceremony: &Ceremony, complaints: &[Complaint]) -> BTreeSet<Complaint> {
    let counts = |complaint: &&Complaint| {
        complaint.ceremony == *ceremony.digest() && ceremony.key(complaint.accuser).is_some()
    };
    let all: BTreeSet<Complaint> = complaints.iter().filter(counts).copied().collect();
    let mut of: BTreeMap<Member, usize> = BTreeMap::new();
    all.iter().for_each(|complaint| *of.entry(complaint.accuser).or_default() += 1);
    let threshold = usize::from(ceremony.committee().threshold);
    let few =
        |complaint: &Complaint| of.get(&complaint.accuser).is_none_or(|many| *many < threshold);
    all.into_iter().filter(few).collect()
}

/// Fills the place of a share that there is no key for.
fn nothing() -> SealedSecret {
    SealedSecret::dummy(SEALED)
}

/// f(member + 1), by Horner's rule.
fn value(coefficients: &[SecretScalar], member: Member) -> SecretScalar {
    let (x, zero) = (place(member), SecretScalar::from_small(0));
    coefficients.iter().rev().fold(zero, |value, coefficient| value.times(&x).plus(coefficient))
}

/// Coefficients and their commitments.
fn drawn(
    ceremony: &Ceremony,
    member: Member,
    seed: &Secret<32>,
) -> Result<(Vec<SecretScalar>, Vec<Element>), DealerError> {
    let committee = ceremony.committee();
    if !committee.has(member) {
        return Err(DealerError::NoMember);
    }
    let (digest, member) = (ceremony.digest(), member.to_be_bytes());
    let coefficient = |k: u16| {
        let parts: [&[u8]; 4] = [seed.expose(), digest.as_bytes(), &member, &k.to_be_bytes()];
        SecretScalar::from_hash(labels::STATISTICS_KEY_COEFFICIENT, &parts)
    };
    let coefficients: Vec<SecretScalar> = (0..committee.threshold).map(coefficient).collect();
    let commitments = coefficients.iter().map(|k| Element::base().times(k));
    let commitments = commitments.collect::<Result<_, _>>();
    Ok((coefficients, commitments.map_err(|IdentityError| DealerError::Generator)?))
}

/// The dealer knows f_0. Bound to ceremony, dealer and all coefficients.
fn knows(ceremony: &Digest, dealer: Member, commitments: &[Element]) -> Statement {
    let encoded: Vec<u8> = commitments.iter().flat_map(|element| *element.as_bytes()).collect();
    let dealer = dealer.to_be_bytes();
    let fields: [&[u8]; 3] = [ceremony.as_bytes(), &dealer, &encoded];
    let mut s = Statement::new(labels::STATISTICS_KEY_DEALING, &fields);
    let constant = s.secret();
    let base = s.element(&Element::base());
    let image = s.element(commitments.first().unwrap_or(&Element::base()));
    s.equation(image, &[(1, constant, base)]);
    s
}

impl Dealing {
    /// Bytes of a dealing in a ceremony.
    #[must_use]
    pub fn length(ceremony: &Ceremony) -> usize {
        let committee = ceremony.committee();
        let commitments = Element::LENGTH * usize::from(committee.threshold);
        commitments + PROOF + SEALED * usize::from(committee.members)
    }

    /// Decodes a dealing: commitments, proof, sealed shares.
    ///
    /// # Errors
    /// [`DealingError::Malformed`].
    pub fn from_bytes(bytes: &[u8], ceremony: &Ceremony) -> Result<Self, DealingError> {
        if bytes.len() != Self::length(ceremony) {
            return Err(DealingError::Malformed);
        }
        let commitments = Element::LENGTH * usize::from(ceremony.committee().threshold);
        let (commitments, rest) = bytes.split_at(commitments);
        let (proof, sealed) = rest.split_at(PROOF);
        let (chunks, _) = commitments.as_chunks::<32>();
        let commitments = chunks.iter().map(Element::from_bytes).collect::<Result<Vec<_>, _>>();
        let commitments = commitments.map_err(|_| DealingError::Malformed)?;
        let shape = knows(ceremony.digest(), 0, &commitments);
        let proof = Proof::from_bytes(proof, &shape).map_err(|_| DealingError::Malformed)?;
        let sealed = sealed.chunks(SEALED).map(SealedSecret::from_bytes).collect::<Option<_>>();
        Ok(Self { commitments, proof, sealed: sealed.ok_or(DealingError::Malformed)? })
    }

    /// The encoding.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let commitments = self.commitments.iter().flat_map(|element| *element.as_bytes());
        let sealed = self.sealed.iter().flat_map(SealedSecret::to_bytes);
        commitments.chain(self.proof.to_bytes()).chain(sealed).collect()
    }

    fn pledge(&self, ceremony: &Ceremony, dealer: Member) -> Pledge {
        let (encoded, ceremony) = (self.to_bytes(), *ceremony.digest());
        let parts: [&[u8]; 3] = [ceremony.as_bytes(), &dealer.to_be_bytes(), &encoded];
        Pledge { ceremony, dealer, dealing: labelled_hash(labels::STATISTICS_KEY_PLEDGE, &parts) }
    }

    /// Checks a dealing against its dealer's pledge.
    ///
    /// # Errors
    /// [`DealingError`]: the dealer is left out.
    pub fn verify(
        self,
        ceremony: &Ceremony,
        pledge: &Pledge,
    ) -> Result<VerifiedDealing, DealingError> {
        let (committee, dealer) = (ceremony.committee(), pledge.dealer);
        if !committee.has(dealer) || self.pledge(ceremony, dealer) != *pledge {
            return Err(DealingError::NotPledged);
        }
        let Self { commitments, proof, sealed } = self;
        let sizes = (commitments.len(), sealed.len());
        if sizes != (committee.threshold.into(), committee.members.into()) {
            return Err(DealingError::Malformed);
        }
        if !Claim::new(knows(ceremony.digest(), dealer, &commitments), proof).holds() {
            return Err(DealingError::Proof);
        }
        Ok(VerifiedDealing { pledge: *pledge, commitments, sealed })
    }
}

impl VerifiedDealing {
    /// The dealer.
    #[must_use]
    pub fn dealer(&self) -> Member {
        self.pledge.dealer
    }

    fn open(&self, member: Member, key: &SealingKey) -> Option<SecretScalar> {
        let Pledge { ceremony, dealer, .. } = self.pledge;
        let [dealer, to] = [dealer, member].map(u16::to_be_bytes);
        let context: [&[u8]; 3] = [ceremony.as_bytes(), &dealer, &to];
        let sealed = self.sealed.get(usize::from(member))?;
        let share = key.open(labels::STATISTICS_KEY_SHARE, &context, sealed).ok()?;
        SecretScalar::from_bytes(&share).ok()
    }

    pub(super) fn fits(&self, member: Member, share: &SecretScalar) -> bool {
        let totals: Vec<Total> = self.commitments.iter().map(total).collect();
        let expected = evaluate(&totals, member);
        expected.is_ok() && Element::base().times(share) == expected
    }
}

pub(super) fn total(element: &Element) -> Total {
    let mut total = Total::zero();
    total.add(element);
    total
}
