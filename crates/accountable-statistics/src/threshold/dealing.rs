//! One member's part of a new key: pledge, dealing, answers; and what the others check.
//!
//! The shares travel sealed inside the dealing, which everybody hears: that a share has
//! not arrived is no ground for a complaint. Were it one, an adversary who drops one
//! message of each honest dealer would have each of them publish a share.

use super::{Committee, Member, evaluate, place};
use crate::error::{BadDealing, NotDealt};
use alpheus_crypto::group::{Element, SecretScalar, Total, Vanished};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::seal::{Sealed, SealingKey, SealingPublic, seal};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sigma::{Claim, Proof, Statement};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};

/// Bytes of a proof of knowledge of one scalar.
const PROOF: usize = 2 * Element::LENGTH;
/// Bytes of a sealed share.
const SEALED: usize = 32 + 32 + 16;

/// Deals: holds the polynomial f of degree t − 1 until the key is settled.
pub struct Dealer {
    committee: Committee,
    member: Member,
    coefficients: Vec<SecretScalar>,
    dealing: Dealing,
}

/// f_k·B for each coefficient, the proof that f_0 is known, and f(i + 1) sealed for each
/// member i. Public, but shown only when all pledges are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealing {
    commitments: Vec<Element>,
    proof: Proof,
    sealed: Vec<Sealed>,
}

/// What a dealer is bound to before dealings are shown. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pledge(pub Digest);

/// A dealing that is its dealer's pledged one and proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt {
    pub(super) committee: Digest,
    pub(super) dealer: Member,
    pub(super) commitments: Vec<Element>,
    pub(super) digest: Digest,
    sealed: Vec<Sealed>,
}

/// f(member + 1) of a dealer, which fits its dealing. Secret.
pub struct TakenShare {
    pub(super) dealer: Member,
    pub(super) dealing: Digest,
    pub(super) secret: SecretScalar,
}

/// "What this dealer has sealed for me does not open, or does not fit its dealing."
/// Public once signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Complaint {
    /// Who has dealt.
    pub dealer: Member,
    /// Who complains.
    pub accuser: Member,
}

/// A dealer's answer: the accuser's share, for all to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Answer {
    /// What is answered.
    pub complaint: Complaint,
    /// f(accuser + 1).
    pub share: [u8; 32],
}

impl Dealer {
    /// Draws a polynomial from a seed, which is used for one committee's one key, and
    /// seals the members' shares for their keys, in the members' order. The committee's
    /// purpose binds those keys.
    ///
    /// # Errors
    /// [`NotDealt`].
    pub fn new(
        committee: Committee,
        keys: &[SealingPublic],
        member: Member,
        seed: &Secret<32>,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, NotDealt> {
        if keys.len() != usize::from(committee.members) {
            return Err(NotDealt::Keys);
        }
        let (coefficients, commitments) = drawn(&committee, member, seed)?;
        let statement = knows(&committee, member, &commitments);
        let constant = coefficients.first().ok_or(NotDealt::Generator)?;
        let proof = statement.prove(&[constant], rng).map_err(|_| NotDealt::Generator)?;
        let sealed = (0..).zip(keys).map(|(to, key)| {
            let share = value(&coefficients, to).expose();
            let (digest, [member, to]) = (committee.digest(), [member, to].map(u16::to_be_bytes));
            let context: [&[u8]; 3] = [digest.as_bytes(), &member, &to];
            seal(key, labels::STATISTICS_KEY_SHARE, &context, &share, rng)
        });
        let sealed = sealed.collect::<Result<_, _>>().map_err(|_| NotDealt::Keys)?;
        Ok(Self {
            committee,
            member,
            coefficients,
            dealing: Dealing { commitments, proof, sealed },
        })
    }

    /// A dealer again after a crash, from the seed and the dealing that it is bound to.
    ///
    /// # Errors
    /// [`NotDealt::OtherDealing`] if the dealing is not of this seed.
    pub fn restore(
        committee: Committee,
        member: Member,
        seed: &Secret<32>,
        dealing: Dealing,
    ) -> Result<Self, NotDealt> {
        let (coefficients, commitments) = drawn(&committee, member, seed)?;
        if commitments != dealing.commitments {
            return Err(NotDealt::OtherDealing);
        }
        Ok(Self { committee, member, coefficients, dealing })
    }

    /// What to say first.
    #[must_use]
    pub fn pledge(&self) -> Pledge {
        self.dealing.pledge(&self.committee, self.member)
    }

    /// What to store with the seed, and to show once every pledge that will count is
    /// in: who sees it earlier can choose a polynomial by it.
    #[must_use]
    pub fn dealing(&self) -> &Dealing {
        &self.dealing
    }

    /// Answers a complaint.
    ///
    /// # Errors
    /// [`NotDealt::NotAboutMe`].
    ///
    /// # Privacy
    /// The accuser's share of this dealing becomes public: answer only what the accuser
    /// has signed. An honest member has no ground to complain of an honest dealer.
    pub fn answer(&self, complaint: Complaint) -> Result<Answer, NotDealt> {
        if complaint.dealer != self.member {
            return Err(NotDealt::NotAboutMe);
        }
        if !self.committee.has(complaint.accuser) {
            return Err(NotDealt::NoMember);
        }
        let share = *value(&self.coefficients, complaint.accuser).expose().expose();
        Ok(Answer { complaint, share })
    }
}

/// f(member + 1), by Horner's rule.
fn value(coefficients: &[SecretScalar], member: Member) -> SecretScalar {
    let (x, zero) = (place(member), SecretScalar::from_small(0));
    coefficients.iter().rev().fold(zero, |value, coefficient| value.times(&x).plus(coefficient))
}

/// Coefficients and their commitments.
fn drawn(
    committee: &Committee,
    member: Member,
    seed: &Secret<32>,
) -> Result<(Vec<SecretScalar>, Vec<Element>), NotDealt> {
    if !committee.has(member) {
        return Err(NotDealt::NoMember);
    }
    let (digest, member) = (committee.digest(), member.to_be_bytes());
    let coefficient = |k: u16| {
        let parts: [&[u8]; 4] = [seed.expose(), digest.as_bytes(), &member, &k.to_be_bytes()];
        SecretScalar::hashed(labels::STATISTICS_KEY_COEFFICIENT, &parts)
    };
    let coefficients: Vec<SecretScalar> = (0..committee.threshold).map(coefficient).collect();
    let commitments = coefficients.iter().map(|k| Element::base().times(k));
    let commitments = commitments.collect::<Result<_, _>>();
    Ok((coefficients, commitments.map_err(|Vanished| NotDealt::Generator)?))
}

/// "I know f_0." Bound to committee, dealer and all coefficients.
fn knows(committee: &Committee, dealer: Member, commitments: &[Element]) -> Statement {
    let encoded: Vec<u8> = commitments.iter().flat_map(|element| *element.as_bytes()).collect();
    let (committee, dealer) = (committee.digest(), dealer.to_be_bytes());
    let fields: [&[u8]; 3] = [committee.as_bytes(), &dealer, &encoded];
    let mut s = Statement::new(labels::STATISTICS_KEY_DEALING, &fields);
    let constant = s.secret();
    let base = s.element(&Element::base());
    let image = s.element(commitments.first().unwrap_or(&Element::base()));
    s.equation(image, &[(1, constant, base)]);
    s
}

impl Dealing {
    /// Bytes of a dealing in a committee.
    #[must_use]
    pub fn length(committee: &Committee) -> usize {
        Element::LENGTH * usize::from(committee.threshold)
            + PROOF
            + SEALED * usize::from(committee.members)
    }

    /// Decodes a dealing: commitments, proof, sealed shares.
    ///
    /// # Errors
    /// [`BadDealing::Malformed`].
    pub fn from_bytes(bytes: &[u8], committee: &Committee) -> Result<Self, BadDealing> {
        if bytes.len() != Self::length(committee) {
            return Err(BadDealing::Malformed);
        }
        let (commitments, rest) =
            bytes.split_at(Element::LENGTH * usize::from(committee.threshold));
        let (proof, sealed) = rest.split_at(PROOF);
        let (chunks, _) = commitments.as_chunks::<32>();
        let commitments = chunks.iter().map(Element::from_bytes).collect::<Result<Vec<_>, _>>();
        let commitments = commitments.map_err(|_| BadDealing::Malformed)?;
        let shape = knows(committee, 0, &commitments);
        let proof = Proof::from_bytes(proof, &shape).map_err(|_| BadDealing::Malformed)?;
        let sealed = sealed.chunks(SEALED).map(Sealed::from_bytes).collect::<Option<_>>();
        Ok(Self { commitments, proof, sealed: sealed.ok_or(BadDealing::Malformed)? })
    }

    /// The encoding.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let commitments = self.commitments.iter().flat_map(|element| *element.as_bytes());
        let sealed = self.sealed.iter().flat_map(Sealed::to_bytes);
        commitments.chain(self.proof.to_bytes()).chain(sealed).collect()
    }

    fn pledge(&self, committee: &Committee, dealer: Member) -> Pledge {
        let (committee, dealer) = (committee.digest(), dealer.to_be_bytes());
        let parts: [&[u8]; 3] = [committee.as_bytes(), &dealer, &self.to_bytes()];
        Pledge(labelled(labels::STATISTICS_KEY_PLEDGE, &parts))
    }

    /// Checks a dealing against its dealer's pledge.
    ///
    /// # Errors
    /// [`BadDealing`]: the dealer is left out.
    pub fn verify(
        self,
        committee: &Committee,
        dealer: Member,
        pledge: &Pledge,
    ) -> Result<Dealt, BadDealing> {
        if !committee.has(dealer) || self.pledge(committee, dealer) != *pledge {
            return Err(BadDealing::NotPledged);
        }
        let Self { commitments, proof, sealed } = self;
        let sizes = (commitments.len(), sealed.len());
        if sizes != (committee.threshold.into(), committee.members.into()) {
            return Err(BadDealing::Malformed);
        }
        if !Claim::new(knows(committee, dealer, &commitments), proof).holds() {
            return Err(BadDealing::Proof);
        }
        let Pledge(digest) = *pledge;
        Ok(Dealt { committee: committee.digest(), dealer, commitments, digest, sealed })
    }
}

impl Dealt {
    /// Who has dealt.
    #[must_use]
    pub fn dealer(&self) -> Member {
        self.dealer
    }

    /// Takes the share that this dealer has sealed for `member`.
    ///
    /// # Errors
    /// The [`Complaint`] to make if it does not open or does not fit the dealing.
    pub fn take(&self, member: Member, key: &SealingKey) -> Result<TakenShare, Complaint> {
        let share = self.open(member, key).filter(|share| self.fits(member, share));
        let complaint = Complaint { dealer: self.dealer, accuser: member };
        let secret = share.ok_or(complaint)?;
        Ok(TakenShare { dealer: self.dealer, dealing: self.digest, secret })
    }

    fn open(&self, member: Member, key: &SealingKey) -> Option<SecretScalar> {
        let [dealer, to] = [self.dealer, member].map(u16::to_be_bytes);
        let context: [&[u8]; 3] = [self.committee.as_bytes(), &dealer, &to];
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
