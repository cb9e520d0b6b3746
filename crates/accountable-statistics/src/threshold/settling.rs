//! Which dealings make up a key: the same for everybody who heard the same.

use super::ceremony::Ceremony;
use super::dealing::{Answer, Complaint, Dealt, Pledge, TakenShare, grounded, total};
use super::{KeyShare, Member, SharedKey, evaluate};
use crate::error::{BadShare, NotSettled};
use crate::tuple::ThresholdKey;
use alpheus_crypto::group::{Element, SecretScalar, Total, Vanished};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use std::collections::BTreeMap;

/// A settled key: what is public of it, and who dealt it. It is to be used once
/// enough members have signed the same transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    key: SharedKey,
    ceremony: Digest,
    /// Of the qualified dealers.
    pledges: BTreeMap<Member, Pledge>,
    /// Shares that were answered in public, of qualified dealers.
    answered: BTreeMap<Complaint, [u8; 32]>,
    left_out: Vec<Member>,
}

impl Settled {
    /// Settles a key from what all have heard: dealings that were verified, complaints
    /// and answers that were signed, each by whom it says. Those of other ceremonies do
    /// not count.
    ///
    /// A dealer is left out who has not dealt, of whom t members or more complain, or
    /// who leaves a complaint without an answer that fits. A complaint that is answered
    /// changes nothing: whoever has not heard of it settles the same key.
    ///
    /// # Errors
    /// [`NotSettled`]: more than t − 1 members are at fault. Begin a new attempt.
    pub fn new(
        ceremony: &Ceremony,
        dealt: &[Dealt],
        complaints: &[Complaint],
        answers: &[Answer],
    ) -> Result<Self, NotSettled> {
        let dealt = by_dealer(ceremony, dealt)?;
        let committee = ceremony.committee();
        let complaints = grounded(ceremony, complaints);
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
        let key = shared(ceremony, &qualified).map_err(|Vanished| NotSettled::Vanished)?;
        let pledges = qualified.iter().map(|(dealer, dealt)| (*dealer, dealt.pledge)).collect();
        Ok(Self { key, ceremony: *ceremony.digest(), pledges, answered, left_out })
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
        for (dealer, pledge) in &self.pledges {
            let taken = taken.iter().find(|taken| taken.pledge == *pledge);
            let complaint = Complaint { ceremony: self.ceremony, dealer: *dealer, accuser: member };
            sum = match (taken, self.answered.get(&complaint)) {
                (Some(taken), _) => sum.plus(&taken.secret),
                (None, Some(answered)) => sum.plus(&read(answered).ok_or(BadShare)?),
                (None, None) => return Err(BadShare),
            };
        }
        KeyShare::of(&self.key, member, sum)
    }
}

fn by_dealer<'a>(
    ceremony: &Ceremony,
    dealt: &'a [Dealt],
) -> Result<BTreeMap<Member, &'a Dealt>, NotSettled> {
    let mut found = BTreeMap::new();
    for one in dealt {
        if one.pledge.ceremony != *ceremony.digest() {
            return Err(NotSettled::OtherCeremony);
        }
        if found.insert(one.dealer(), one).is_some() {
            return Err(NotSettled::Twice(one.dealer()));
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
    ceremony: &Ceremony,
    qualified: &BTreeMap<Member, &Dealt>,
) -> Result<SharedKey, Vanished> {
    let committee = ceremony.committee();
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
        transcript: transcript(ceremony, qualified),
    })
}

/// The ceremony and the pledges of whoever qualifies: P and all shares follow from them.
fn transcript(ceremony: &Ceremony, qualified: &BTreeMap<Member, &Dealt>) -> Digest {
    let mut pledges = Vec::new();
    for (dealer, dealt) in qualified {
        pledges.extend_from_slice(&dealer.to_be_bytes());
        pledges.extend_from_slice(dealt.pledge.dealing.as_bytes());
    }
    let parts: [&[u8]; 2] = [ceremony.digest().as_bytes(), &pledges];
    labelled(labels::STATISTICS_KEY_TRANSCRIPT, &parts)
}
