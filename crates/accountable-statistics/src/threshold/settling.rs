//! Which dealings make up a key: the same for everybody who heard the same.

use super::dealing::{Answer, Complaint, Dealt, TakenShare, total};
use super::{Committee, KeyShare, Member, SharedKey, evaluate};
use crate::error::{BadShare, NotSettled};
use crate::tuple::ThresholdKey;
use alpheus_crypto::group::{Element, SecretScalar, Total, Vanished};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use std::collections::{BTreeMap, BTreeSet};

/// A settled key: what is public of it, and who dealt it. It is to be used once
/// enough members have signed the same transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    key: SharedKey,
    /// Qualified dealers and the digests of their dealings.
    dealings: BTreeMap<Member, Digest>,
    /// Shares that were answered in public, of qualified dealers.
    answered: BTreeMap<Complaint, [u8; 32]>,
    left_out: Vec<Member>,
}

impl Settled {
    /// Settles a key from what all have heard: dealings that were verified, complaints
    /// and answers that were signed, each from whom it says.
    ///
    /// A dealer is left out who has not dealt, of whom t members or more complain, or
    /// who leaves a complaint without an answer that fits.
    ///
    /// # Errors
    /// [`NotSettled`]: more than t − 1 members are at fault. Begin anew without them.
    pub fn new(
        committee: &Committee,
        dealt: &[Dealt],
        complaints: &[Complaint],
        answers: &[Answer],
    ) -> Result<Self, NotSettled> {
        let dealt = by_dealer(committee, dealt)?;
        let complaints: BTreeSet<Complaint> =
            complaints.iter().copied().filter(|c| committee.has(c.accuser)).collect();
        let answers = fitting(&dealt, answers);
        let of = |dealer: Member| complaints.iter().filter(move |c| c.dealer == dealer);
        let qualifies = |dealer: &Member| {
            of(*dealer).count() < usize::from(committee.threshold)
                && of(*dealer).all(|complaint| answers.contains_key(complaint))
        };
        let qualified: BTreeMap<Member, &Dealt> =
            dealt.into_iter().filter(|(dealer, _)| qualifies(dealer)).collect();
        let absent = |member: &Member| !qualified.contains_key(member);
        let left_out: Vec<Member> = (0..committee.members).filter(absent).collect();
        if left_out.len() >= usize::from(committee.threshold) {
            return Err(NotSettled::TooManyLeftOut(left_out));
        }
        let answered = answers.into_iter().filter(|(complaint, _)| {
            qualified.contains_key(&complaint.dealer) && complaints.contains(complaint)
        });
        let answered: BTreeMap<Complaint, [u8; 32]> = answered.collect();
        let key =
            shared(committee, &qualified, &answered).map_err(|Vanished| NotSettled::Vanished)?;
        let dealings = qualified.iter().map(|(dealer, dealt)| (*dealer, dealt.digest)).collect();
        Ok(Self { key, dealings, answered, left_out })
    }

    /// What is public of the key.
    #[must_use]
    pub fn key(&self) -> &SharedKey {
        &self.key
    }

    /// Members whose dealings do not count. They hold shares all the same.
    #[must_use]
    pub fn left_out(&self) -> &[Member] {
        &self.left_out
    }

    /// A member's share of the key: the sum of the shares that qualified dealers gave
    /// it, those answered in public included.
    ///
    /// # Errors
    /// [`BadShare`] if one is missing: the member has not complained in time.
    pub fn share(&self, member: Member, taken: Vec<TakenShare>) -> Result<KeyShare, BadShare> {
        let mut sum = SecretScalar::from_small(0);
        for (dealer, dealing) in &self.dealings {
            let taken = taken.iter().find(|t| t.dealer == *dealer && t.dealing == *dealing);
            let answered = self.answered.get(&Complaint { dealer: *dealer, accuser: member });
            sum = match (taken, answered) {
                (Some(taken), _) => sum.plus(&taken.secret),
                (None, Some(answered)) => sum.plus(&read(answered).ok_or(BadShare)?),
                (None, None) => return Err(BadShare),
            };
        }
        KeyShare::of(&self.key, member, sum)
    }
}

fn by_dealer<'a>(
    committee: &Committee,
    dealt: &'a [Dealt],
) -> Result<BTreeMap<Member, &'a Dealt>, NotSettled> {
    let mut found = BTreeMap::new();
    for one in dealt {
        if one.committee != committee.digest() {
            return Err(NotSettled::OtherCommittee);
        }
        if found.insert(one.dealer, one).is_some() {
            return Err(NotSettled::Twice(one.dealer));
        }
    }
    Ok(found)
}

/// Answers that fit what their dealer has dealt.
fn fitting(dealt: &BTreeMap<Member, &Dealt>, answers: &[Answer]) -> BTreeMap<Complaint, [u8; 32]> {
    let fits = |answer: &&Answer| {
        let dealt = dealt.get(&answer.complaint.dealer);
        let share = read(&answer.share);
        dealt.zip(share).is_some_and(|(dealt, share)| dealt.fits(answer.complaint.accuser, &share))
    };
    answers.iter().filter(fits).map(|answer| (answer.complaint, answer.share)).collect()
}

fn read(share: &[u8; 32]) -> Option<SecretScalar> {
    SecretScalar::from_bytes(&Secret::from_bytes(*share)).ok()
}

/// P and s_i·B, from the sums of the qualified dealers' coefficients.
fn shared(
    committee: &Committee,
    qualified: &BTreeMap<Member, &Dealt>,
    answered: &BTreeMap<Complaint, [u8; 32]>,
) -> Result<SharedKey, Vanished> {
    let mut sums = vec![Total::zero(); usize::from(committee.threshold)];
    for dealt in qualified.values() {
        let commitments = dealt.commitments.iter().map(total);
        sums.iter_mut().zip(commitments).for_each(|(sum, commitment)| sum.merge(&commitment));
    }
    let key = sums.first().ok_or(Vanished).and_then(Total::element)?;
    let shares = (0..committee.members).map(|member| evaluate(&sums, member));
    Ok(SharedKey {
        committee: *committee,
        key: ThresholdKey(key),
        shares: shares.collect::<Result<Vec<Element>, Vanished>>()?,
        transcript: transcript(committee, qualified, answered),
    })
}

fn transcript(
    committee: &Committee,
    qualified: &BTreeMap<Member, &Dealt>,
    answered: &BTreeMap<Complaint, [u8; 32]>,
) -> Digest {
    let (mut dealings, mut answers) = (Vec::new(), Vec::new());
    for (dealer, dealt) in qualified {
        dealings.extend_from_slice(&dealer.to_be_bytes());
        dealings.extend_from_slice(dealt.digest.as_bytes());
    }
    for (Complaint { dealer, accuser }, share) in answered {
        answers.extend_from_slice(&dealer.to_be_bytes());
        answers.extend_from_slice(&accuser.to_be_bytes());
        answers.extend_from_slice(share);
    }
    let committee = committee.digest();
    let parts: [&[u8]; 3] = [committee.as_bytes(), &dealings, &answers];
    labelled(labels::STATISTICS_KEY_TRANSCRIPT, &parts)
}
