//! Messages between smoothers that make a key. Each is signed by its smoother, broadcast, and
//! about one attempt of one key epoch. The first of each kind counts.

use crate::configuration::{KeyEpoch, PinnedConfiguration, SmootherId};
use crate::error::CommitteeError;
use crate::messages::encode;
use crate::threshold::{Committee, Member, SharedKey};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::{Message, Signed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A message about making a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyMessage {
    /// The key epoch.
    pub epoch: KeyEpoch,
    /// The attempt, from 0.
    pub attempt: u32,
    /// The sender.
    pub by: SmootherId,
    /// The content.
    pub content: Content,
}

impl Message for KeyMessage {
    const LABEL: &'static str = labels::STATISTICS_KEY_WORD;
}

/// A message with the smoother that it is attributed to.
pub type AttributedMessage = (SmootherId, Signed<KeyMessage>);

/// The kinds of messages, in the order of an attempt. The *convener* of an attempt sends the
/// lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// The sender takes part in this attempt and in no earlier one any more. Shares for it are
    /// sealed for this key. Also the last certificate that it has seen.
    Announcement(SealingPublic, Option<Box<KeyCertificate>>),
    /// By the convener: announcements of at least n − f.
    Roster(Vec<AttributedMessage>),
    /// The ceremony that the sender is in, and the digest of its dealing.
    Pledge(Digest, Digest),
    /// By the convener: pledges of at least n − f.
    Pledged(Vec<AttributedMessage>),
    /// The sender's dealing.
    Dealing(Vec<u8>),
    /// Dealers whose shares for the sender do not open or do not fit.
    Verdict(Vec<Member>),
    /// The share of a member that complains.
    Answer(Member, [u8; 32]),
    /// By the convener: dealings, verdicts and answers.
    Outcome(Vec<AttributedMessage>),
    /// A vote for the key that the outcome settles and the sender has a share of, or that the
    /// roster renews.
    Vote(Signed<Vote>),
}

/// Kind and, for answers, the addressee.
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

impl Content {
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

    /// Whether it names members only, each once and in order, as every honest message does. So each
    /// member has few messages of an attempt, and what they cost is bounded.
    pub(super) fn is_well_formed(&self, committee: &Committee) -> bool {
        match self {
            Self::Verdict(dealers) => {
                let ordered = dealers.is_sorted_by(|one, next| one < next);
                ordered && dealers.last().is_none_or(|last| *last < committee.members())
            }
            Self::Answer(to, _) => *to < committee.members(),
            _ => true,
        }
    }

    pub(super) fn is_from_convener(&self) -> bool {
        matches!(self, Self::Roster(_) | Self::Pledged(_) | Self::Outcome(_))
    }
}

/// A vote for a key at an attempt.
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

/// The digest by which votes name a key.
#[must_use]
pub fn shared_digest(key: &SharedKey) -> Digest {
    labelled_hash(labels::STATISTICS_KEY_DIGEST, &[&encode(key)])
}

/// The certificate of a key: a quorum has voted for it at one attempt. At least t of the voters at
/// its first attempt are honest and have shares of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyCertificate {
    /// The key.
    pub key: SharedKey,
    /// At which attempt.
    pub attempt: u32,
    /// The votes, each attributed to a smoother.
    pub votes: Vec<(SmootherId, Signed<Vote>)>,
}

/// The size in bytes that no honest message exceeds, signed or not, with so many members. The longest
/// are the convener's lists: of n announcements with n votes and shares each, or of n dealings with n
/// shares and n answers each.
#[must_use]
pub fn longest_message(members: usize) -> usize {
    let each = members.saturating_mul(512).saturating_add(1024);
    members.saturating_mul(each).saturating_add(1024)
}

/// The members that make the key of a key epoch.
#[derive(Clone, Debug)]
pub struct Participants {
    epoch: KeyEpoch,
    committee: Committee,
    keys: Vec<VerifyingKey>,
}

impl Participants {
    /// A deployment's smoothers.
    ///
    /// # Errors
    /// [`CommitteeError`], which no pinned configuration causes.
    pub fn of(pinned: &PinnedConfiguration, epoch: KeyEpoch) -> Result<Self, CommitteeError> {
        let keys = pinned.smoothers.iter().map(|smoother| smoother.key).collect();
        Self::new(epoch, pinned.committee(epoch)?, keys)
    }

    /// Members by their signing keys.
    ///
    /// # Errors
    /// [`CommitteeError`] unless there is one key for each.
    pub fn new(
        epoch: KeyEpoch,
        committee: Committee,
        keys: Vec<VerifyingKey>,
    ) -> Result<Self, CommitteeError> {
        let alike = keys.len() == usize::from(committee.members());
        if alike { Ok(Self { epoch, committee, keys }) } else { Err(CommitteeError) }
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

    /// n − f: at least this many members are honest.
    pub(super) fn honest(&self) -> usize {
        self.members() + 1 - self.threshold()
    }

    /// The convener of an attempt: another member each time.
    #[must_use]
    pub fn convener(&self, attempt: u32) -> SmootherId {
        let sum = u128::from(self.epoch.0) + u128::from(attempt);
        let turn = sum.checked_rem(self.members() as u128).unwrap_or(0);
        SmootherId(u16::try_from(turn).unwrap_or(0))
    }

    /// The message, if its smoother signed it and it is of this key epoch.
    #[must_use]
    pub fn open(&self, (by, signed): &AttributedMessage) -> Option<KeyMessage> {
        let message = signed.open(self.keys.get(usize::from(by.0))?).ok()?.into_inner();
        (message.by == *by && message.epoch == self.epoch).then_some(message)
    }

    /// The key that a member votes for at an attempt, if the vote is valid.
    pub(super) fn vote(
        &self,
        attempt: u32,
        (by, signed): (SmootherId, &Signed<Vote>),
    ) -> Option<Digest> {
        let vote = signed.open(self.keys.get(usize::from(by.0))?).ok()?;
        (vote.epoch == self.epoch && vote.attempt == attempt).then_some(vote.key)
    }

    /// Whether it is a valid certificate of a key of this committee.
    #[must_use]
    pub fn is_valid_certificate(&self, certificate: &KeyCertificate) -> bool {
        let (ours, key) =
            (*certificate.key.committee() == self.committee, shared_digest(&certificate.key));
        let votes: BTreeMap<_, _> =
            certificate.votes.iter().map(|(by, vote)| (*by, vote)).collect();
        let alike = votes.len() == certificate.votes.len() && votes.len() >= self.quorum();
        let holds = |(by, vote)| self.vote(certificate.attempt, (by, vote)) == Some(key);
        ours && alike && votes.into_iter().all(holds)
    }
}
