//! Which dealings make up a key: the same for everybody who received the same.

use super::ceremony::Ceremony;
use super::dealing::{Answer, Complaint, Pledge, ReceivedShare, VerifiedDealing, grounded, total};
use super::{KeyShare, Member, SharedKey, evaluate};
use crate::error::{SettlementError, ShareError};
use crate::tuple::ThresholdKey;
use alpheus_crypto::group::{Element, IdentityError, SecretScalar, Total};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use std::collections::BTreeMap;

/// A settled key: its public side and its dealers. Use it once enough members have signed the same
/// transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    key: SharedKey,
    ceremony: Digest,
    /// Of the qualified dealers.
    pledges: BTreeMap<Member, Pledge>,
    /// Shares of qualified dealers that were answered in public.
    answered: BTreeMap<Complaint, [u8; 32]>,
    left_out: Vec<Member>,
}

impl Settlement {
    /// Settles a key from what all have received: verified dealings, and complaints and answers
    /// that were signed by the members that they name. Those of other ceremonies do not count.
    ///
    /// A dealer is left out if it has not dealt, if t members or more complain of it, or if it
    /// leaves a complaint without an answer that fits. An answered complaint changes nothing:
    /// members that have not received it settle the same key.
    ///
    /// # Errors
    /// [`SettlementError`]: more than t − 1 members are at fault. Begin a new attempt.
    pub fn new(
        ceremony: &Ceremony,
        dealt: &[VerifiedDealing],
        complaints: &[Complaint],
        answers: &[Answer],
    ) -> Result<Self, SettlementError> {
        let dealt = by_dealer(ceremony, dealt)?;
        let committee = ceremony.committee();
        let complaints = grounded(ceremony, complaints);
        // Whether an answer fits costs much to check: only those to complaints that count are.
        let asked = answers.iter().filter(|answer| complaints.contains(&answer.complaint));
        let answers = fitting(&dealt, asked);
        let of = |dealer: Member| complaints.iter().filter(move |c| c.dealer == dealer);
        let qualifies = |dealer: &Member| {
            of(*dealer).count() < usize::from(committee.threshold)
                && of(*dealer).all(|complaint| answers.contains_key(complaint))
        };
        let qualified: BTreeMap<Member, &VerifiedDealing> =
            dealt.into_iter().filter(|(dealer, _)| qualifies(dealer)).collect();
        let absent = |member: &Member| !qualified.contains_key(member);
        let left_out: Vec<Member> = (0..committee.members).filter(absent).collect();
        if left_out.len() >= usize::from(committee.threshold) {
            return Err(SettlementError::TooManyLeftOut(left_out));
        }
        let answered =
            answers.into_iter().filter(|(complaint, _)| qualified.contains_key(&complaint.dealer));
        let answered: BTreeMap<Complaint, [u8; 32]> = answered.collect();
        let key =
            shared(ceremony, &qualified).map_err(|IdentityError| SettlementError::Vanished)?;
        let pledges = qualified.iter().map(|(dealer, dealt)| (*dealer, dealt.pledge)).collect();
        Ok(Self { key, ceremony: *ceremony.digest(), pledges, answered, left_out })
    }

    /// The public side of the key.
    #[must_use]
    pub fn key(&self) -> &SharedKey {
        &self.key
    }

    /// Members whose dealings do not count. They still hold shares.
    #[must_use]
    pub fn left_out(&self) -> &[Member] {
        &self.left_out
    }

    /// A member's share of the key: the sum of the shares from qualified dealers, including those
    /// answered in public.
    ///
    /// # Errors
    /// [`ShareError`] if one is missing: the member has not complained in time.
    pub fn share(&self, member: Member, taken: Vec<ReceivedShare>) -> Result<KeyShare, ShareError> {
        let mut sum = SecretScalar::from_small(0);
        for (dealer, pledge) in &self.pledges {
            let taken = taken.iter().find(|taken| taken.pledge == *pledge);
            let complaint = Complaint { ceremony: self.ceremony, dealer: *dealer, accuser: member };
            sum = match (taken, self.answered.get(&complaint)) {
                (Some(taken), _) => sum.plus(&taken.secret),
                (None, Some(answered)) => sum.plus(&read(answered).ok_or(ShareError)?),
                (None, None) => return Err(ShareError),
            };
        }
        KeyShare::of(&self.key, member, sum)
    }
}

fn by_dealer<'a>(
    ceremony: &Ceremony,
    dealt: &'a [VerifiedDealing],
) -> Result<BTreeMap<Member, &'a VerifiedDealing>, SettlementError> {
    let mut found = BTreeMap::new();
    for one in dealt {
        if one.pledge.ceremony != *ceremony.digest() {
            return Err(SettlementError::OtherCeremony);
        }
        if found.insert(one.dealer(), one).is_some() {
            return Err(SettlementError::Twice(one.dealer()));
        }
    }
    Ok(found)
}

/// Answers that fit their dealer's dealing.
fn fitting<'a>(
    dealt: &BTreeMap<Member, &VerifiedDealing>,
    answers: impl Iterator<Item = &'a Answer>,
) -> BTreeMap<Complaint, [u8; 32]> {
    let fits = |answer: &&Answer| {
        let dealt = dealt.get(&answer.complaint.dealer);
        let share = read(&answer.share);
        dealt.zip(share).is_some_and(|(dealt, share)| dealt.fits(answer.complaint.accuser, &share))
    };
    answers.filter(fits).map(|answer| (answer.complaint, answer.share)).collect()
}

fn read(share: &[u8; 32]) -> Option<SecretScalar> {
    SecretScalar::from_bytes(&Secret::from_bytes(*share)).ok()
}

/// P and s_i·B, from the sums of the qualified dealers' coefficients.
fn shared(
    ceremony: &Ceremony,
    qualified: &BTreeMap<Member, &VerifiedDealing>,
) -> Result<SharedKey, IdentityError> {
    let committee = ceremony.committee();
    let mut sums = vec![Total::zero(); usize::from(committee.threshold)];
    for dealt in qualified.values() {
        let commitments = dealt.commitments.iter().map(total);
        sums.iter_mut().zip(commitments).for_each(|(sum, commitment)| sum.merge(&commitment));
    }
    let key = sums.first().ok_or(IdentityError).and_then(Total::element)?;
    let shares = (0..committee.members).map(|member| evaluate(&sums, member));
    Ok(SharedKey {
        committee: *committee,
        key: ThresholdKey(key),
        shares: shares.collect::<Result<Vec<Element>, IdentityError>>()?,
        transcript: transcript(ceremony, qualified),
    })
}

/// The ceremony and the pledges of qualified dealers: P and all shares follow from them.
fn transcript(ceremony: &Ceremony, qualified: &BTreeMap<Member, &VerifiedDealing>) -> Digest {
    let mut pledges = Vec::new();
    for (dealer, dealt) in qualified {
        pledges.extend_from_slice(&dealer.to_be_bytes());
        pledges.extend_from_slice(dealt.pledge.dealing.as_bytes());
    }
    let parts: [&[u8]; 2] = [ceremony.digest().as_bytes(), &pledges];
    labelled_hash(labels::STATISTICS_KEY_TRANSCRIPT, &parts)
}
