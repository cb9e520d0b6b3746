//! One member's part of a new key: pledge, dealing, shares; and what the others check.

use super::{Committee, Member, evaluate, place};
use crate::error::{BadDealing, NotDealt};
use alpheus_crypto::group::{Element, SecretScalar, Total, Vanished};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sigma::{Claim, Proof, Statement};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};

/// Deals: holds the polynomial f of degree t − 1 until the key is settled.
pub struct Dealer {
    committee: Committee,
    member: Member,
    coefficients: Vec<SecretScalar>,
    dealing: Dealing,
}

/// f_k·B for each coefficient, and the proof that f_0 is known. Public, but shown only
/// when all pledges are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealing {
    commitments: Vec<Element>,
    proof: Proof,
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
}

/// f(member + 1) of a dealer, which fits its dealing. Secret.
pub struct TakenShare {
    pub(super) dealer: Member,
    pub(super) dealing: Digest,
    pub(super) secret: SecretScalar,
}

/// "I have no share of this dealer that fits its dealing." Public once signed.
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
    /// Draws a polynomial from a seed, which is used for one committee's one key.
    ///
    /// # Errors
    /// [`NotDealt`].
    pub fn new(
        committee: Committee,
        member: Member,
        seed: &Secret<32>,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, NotDealt> {
        let (coefficients, commitments) = drawn(&committee, member, seed)?;
        let statement = knows(&committee, member, &commitments);
        let constant = coefficients.first().ok_or(NotDealt::Generator)?;
        let proof = statement.prove(&[constant], rng).map_err(|_| NotDealt::Generator)?;
        Ok(Self { committee, member, coefficients, dealing: Dealing { commitments, proof } })
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

    /// f(member + 1), for that member alone: to be sealed.
    ///
    /// # Errors
    /// [`NotDealt::NoMember`].
    pub fn share_for(&self, member: Member) -> Result<SecretScalar, NotDealt> {
        if !self.committee.has(member) {
            return Err(NotDealt::NoMember);
        }
        let x = place(member);
        let mut coefficients = self.coefficients.iter().rev();
        let highest = coefficients.next().ok_or(NotDealt::Generator)?.duplicate();
        Ok(coefficients.fold(highest, |value, coefficient| value.times(&x).plus(coefficient)))
    }

    /// Answers a complaint.
    ///
    /// # Errors
    /// [`NotDealt::NotAboutMe`].
    ///
    /// # Privacy
    /// The accuser's share of this dealing becomes public. Whoever leads t members to
    /// complain gets the dealer left out instead: see to it that a complaint is signed.
    pub fn answer(&self, complaint: Complaint) -> Result<Answer, NotDealt> {
        if complaint.dealer != self.member {
            return Err(NotDealt::NotAboutMe);
        }
        let share = *self.share_for(complaint.accuser)?.expose().expose();
        Ok(Answer { complaint, share })
    }
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
        Element::LENGTH * (usize::from(committee.threshold) + 2)
    }

    /// Decodes a dealing: commitments, proof.
    ///
    /// # Errors
    /// [`BadDealing::Malformed`].
    pub fn from_bytes(bytes: &[u8], committee: &Committee) -> Result<Self, BadDealing> {
        let at = Element::LENGTH * usize::from(committee.threshold);
        let (commitments, proof) = bytes.split_at_checked(at).ok_or(BadDealing::Malformed)?;
        let (chunks, _) = commitments.as_chunks::<32>();
        let commitments = chunks.iter().map(Element::from_bytes).collect::<Result<Vec<_>, _>>();
        let commitments = commitments.map_err(|_| BadDealing::Malformed)?;
        let shape = knows(committee, 0, &commitments);
        let proof = Proof::from_bytes(proof, &shape).map_err(|_| BadDealing::Malformed)?;
        Ok(Self { commitments, proof })
    }

    /// The encoding.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let commitments = self.commitments.iter().flat_map(|element| *element.as_bytes());
        commitments.chain(self.proof.to_bytes()).collect()
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
        if self.commitments.len() != usize::from(committee.threshold) {
            return Err(BadDealing::Malformed);
        }
        let Self { commitments, proof } = self;
        if !Claim::new(knows(committee, dealer, &commitments), proof).holds() {
            return Err(BadDealing::Proof);
        }
        let Pledge(digest) = *pledge;
        Ok(Dealt { committee: committee.digest(), dealer, commitments, digest })
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
    /// The [`Complaint`] to make if it does not fit the dealing.
    pub fn take(&self, member: Member, share: SecretScalar) -> Result<TakenShare, Complaint> {
        if !self.fits(member, &share) {
            return Err(self.complaint(member));
        }
        Ok(TakenShare { dealer: self.dealer, dealing: self.digest, secret: share })
    }

    /// What `member` says if no share came, or none that could be opened.
    #[must_use]
    pub fn complaint(&self, accuser: Member) -> Complaint {
        Complaint { dealer: self.dealer, accuser }
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
