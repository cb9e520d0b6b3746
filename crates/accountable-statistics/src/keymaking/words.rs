//! What smoothers say to each other while they make a key. Everything is signed by its
//! smoother, broadcast, and about one attempt of one key epoch; of each kind the first
//! counts.

use crate::configuration::{KeyEpoch, Pinned, SmootherId};
use crate::error::BadCommittee;
use crate::messages::encode;
use crate::threshold::{Committee, Member, SharedKey};
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::{Message, Signed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a smoother says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyWord {
    /// Of which key epoch.
    pub epoch: KeyEpoch,
    /// Of which attempt, from 0.
    pub attempt: u32,
    /// Who says it.
    pub by: SmootherId,
    /// What.
    pub what: What,
}

impl Message for KeyWord {
    const LABEL: &'static str = labels::STATISTICS_KEY_WORD;
}

/// A word with whose it is said to be.
pub type Said = (SmootherId, Signed<KeyWord>);

/// The kinds of words, in the order of an attempt. *Convener* is who puts lists together
/// at this attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// I take part in this attempt and in no earlier one any more; seal my shares for this key.
    /// And the last certificate that I have seen.
    Announcement(SealingPublic, Option<Box<Prepared>>),
    /// By the convener: announcements of n − f.
    Roster(Vec<Said>),
    /// The ceremony that I am in, and the digest of my dealing.
    Pledge(Digest, Digest),
    /// By the convener: pledges of n − f.
    Pledged(Vec<Said>),
    /// My dealing.
    Dealing(Vec<u8>),
    /// These dealers' shares for me do not open, or do not fit.
    Verdict(Vec<Member>),
    /// The share for somebody who complains.
    Answer(Member, [u8; 32]),
    /// By the convener: dealings, verdicts and answers.
    Outcome(Vec<Said>),
    /// This key is what the outcome settles, and I have my share of it; or it is the one that
    /// the roster renews.
    Vote(Signed<Vote>),
}

/// Kind and, of answers, to whom.
pub(super) type Kind = (u8, Member);

pub(super) const ANNOUNCEMENT: Kind = (0, 0);
pub(super) const ROSTER: Kind = (1, 0);
pub(super) const PLEDGE: Kind = (2, 0);
pub(super) const PLEDGED: Kind = (3, 0);
pub(super) const DEALING: Kind = (4, 0);
pub(super) const VERDICT: Kind = (5, 0);
pub(super) const ANSWER: u8 = 6;
pub(super) const OUTCOME: Kind = (7, 0);
pub(super) const VOTE: Kind = (8, 0);

impl What {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Announcement(..) => ANNOUNCEMENT,
            Self::Roster(_) => ROSTER,
            Self::Pledge(..) => PLEDGE,
            Self::Pledged(_) => PLEDGED,
            Self::Dealing(_) => DEALING,
            Self::Verdict(_) => VERDICT,
            Self::Answer(to, _) => (ANSWER, *to),
            Self::Outcome(_) => OUTCOME,
            Self::Vote(_) => VOTE,
        }
    }

    pub(super) fn is_the_conveners(&self) -> bool {
        matches!(self, Self::Roster(_) | Self::Pledged(_) | Self::Outcome(_))
    }
}

/// For a key at an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    /// The key epoch.
    pub epoch: KeyEpoch,
    /// The attempt.
    pub attempt: u32,
    /// [`shared_digest`].
    pub key: Digest,
}

impl Message for Vote {
    const LABEL: &'static str = labels::STATISTICS_KEY_VOTE;
}

/// What a key is voted for by.
#[must_use]
pub fn shared_digest(key: &SharedKey) -> Digest {
    labelled(labels::STATISTICS_KEY_SHARED, &[&encode(key)])
}

/// The certificate of a key: a quorum has voted for it at one attempt. At least t of those who
/// did at its first one keep to the protocol and have shares of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The key.
    pub key: SharedKey,
    /// At which attempt.
    pub attempt: u32,
    /// Each by whom it says.
    pub votes: Vec<(SmootherId, Signed<Vote>)>,
}

/// Who makes the key of a key epoch.
#[derive(Clone, Debug)]
pub struct Circle {
    epoch: KeyEpoch,
    committee: Committee,
    keys: Vec<VerifyingKey>,
}

impl Circle {
    /// A deployment's smoothers.
    ///
    /// # Errors
    /// [`BadCommittee`], which no pinned configuration has.
    pub fn of(pinned: &Pinned, epoch: KeyEpoch) -> Result<Self, BadCommittee> {
        let keys = pinned.smoothers.iter().map(|smoother| smoother.key).collect();
        Self::new(epoch, pinned.committee(epoch)?, keys)
    }

    /// Members by their signing keys.
    ///
    /// # Errors
    /// [`BadCommittee`] unless there is one key for each.
    pub fn new(
        epoch: KeyEpoch,
        committee: Committee,
        keys: Vec<VerifyingKey>,
    ) -> Result<Self, BadCommittee> {
        let alike = keys.len() == usize::from(committee.members());
        if alike { Ok(Self { epoch, committee, keys }) } else { Err(BadCommittee) }
    }

    /// The key epoch.
    #[must_use]
    pub fn epoch(&self) -> KeyEpoch {
        self.epoch
    }

    /// The committee.
    #[must_use]
    pub fn committee(&self) -> &Committee {
        &self.committee
    }

    pub(super) fn members(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn threshold(&self) -> usize {
        usize::from(self.committee.threshold())
    }

    /// q = ⌈(n + t)/2⌉.
    #[must_use]
    pub fn quorum(&self) -> usize {
        (self.members() + self.threshold()).div_ceil(2)
    }

    /// n − f: so many do whatever the others do.
    pub(super) fn honest(&self) -> usize {
        self.members() + 1 - self.threshold()
    }

    /// Who convenes an attempt: another one each time.
    #[must_use]
    pub fn convener(&self, attempt: u32) -> SmootherId {
        let sum = u128::from(self.epoch.0) + u128::from(attempt);
        let turn = sum.checked_rem(self.members() as u128).unwrap_or(0);
        SmootherId(u16::try_from(turn).unwrap_or(0))
    }

    /// A word, if it is its smoother's, and of this key epoch.
    #[must_use]
    pub fn open(&self, (by, signed): &Said) -> Option<KeyWord> {
        let word = signed.open(self.keys.get(usize::from(by.0))?).ok()?.into_inner();
        (word.by == *by && word.epoch == self.epoch).then_some(word)
    }

    /// The key that somebody votes for at an attempt, if it is a vote.
    pub(super) fn vote(
        &self,
        attempt: u32,
        (by, signed): (SmootherId, &Signed<Vote>),
    ) -> Option<Digest> {
        let vote = signed.open(self.keys.get(usize::from(by.0))?).ok()?;
        (vote.epoch == self.epoch && vote.attempt == attempt).then_some(vote.key)
    }

    /// Whether it is a certificate of a key of this committee.
    #[must_use]
    pub fn has_prepared(&self, prepared: &Prepared) -> bool {
        let (ours, key) =
            (*prepared.key.committee() == self.committee, shared_digest(&prepared.key));
        let votes: BTreeMap<_, _> = prepared.votes.iter().map(|(by, vote)| (*by, vote)).collect();
        let alike = votes.len() == prepared.votes.len() && votes.len() >= self.quorum();
        let holds = |(by, vote)| self.vote(prepared.attempt, (by, vote)) == Some(key);
        ours && alike && votes.into_iter().all(holds)
    }
}
