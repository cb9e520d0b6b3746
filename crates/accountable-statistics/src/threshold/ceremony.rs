//! One attempt at a key: which members take part, and the keys that their shares are
//! sealed for.
//!
//! Those keys live as long as the attempt. Were shares sealed for keys of longer life,
//! who ever got t of those could open the dealings of every day, long after the days'
//! shares were erased.

use super::{Committee, Member};
use crate::error::NotDealt;
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::seal::{SealingKey, SealingPublic};
use alpheus_crypto::secret::Secret;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// "I take part in this attempt; seal my shares for this key." Public once signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// The committee's digest.
    pub committee: Digest,
    /// Which attempt: a new one takes a new seed.
    pub attempt: u32,
    /// Who says so.
    pub member: Member,
    /// For this attempt alone.
    pub key: SealingPublic,
}

/// An attempt: everything that is said in it is about its digest, so that nothing of
/// another day or attempt serves in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ceremony {
    committee: Committee,
    attempt: u32,
    /// None of a member who has announced nothing, two things, or a key that is none.
    keys: Vec<Option<SealingPublic>>,
    digest: Digest,
}

impl Announcement {
    /// What a member announces whose seed for this attempt is drawn. The seed is all
    /// that is secret of a member's part: destroy it, and every
    /// [`Dealer`](super::dealing::Dealer) of it, in the commit that makes the
    /// [`KeyShare`](super::KeyShare) durable, or when the attempt is given up.
    ///
    /// # Errors
    /// [`NotDealt::NoMember`].
    pub fn new(
        committee: &Committee,
        attempt: u32,
        member: Member,
        seed: &Secret<32>,
    ) -> Result<Self, NotDealt> {
        if !committee.has(member) {
            return Err(NotDealt::NoMember);
        }
        let committee = committee.digest();
        let key = sealing_key(&committee, attempt, member, seed).public();
        Ok(Self { committee, attempt, member, key })
    }
}

/// The secret half of what is announced.
pub(super) fn sealing_key(
    committee: &Digest,
    attempt: u32,
    member: Member,
    seed: &Secret<32>,
) -> SealingKey {
    let (attempt, member) = (attempt.to_be_bytes(), member.to_be_bytes());
    let parts: [&[u8]; 3] = [committee.as_bytes(), &attempt, &member];
    SealingKey::from_seed(&derive(seed.expose(), labels::STATISTICS_KEY_SEALING, &parts))
}

impl Ceremony {
    /// An attempt, from what its members have announced, each signed by whom it says.
    /// All must take the same announcements: another list is another ceremony.
    ///
    /// Announcements of other attempts do not count; a member who announces two keys,
    /// or one that nobody could seal for, takes part without getting a share.
    #[must_use]
    pub fn new(committee: Committee, attempt: u32, announced: &[Announcement]) -> Self {
        let this = committee.digest();
        let mut keys: BTreeMap<Member, BTreeSet<[u8; 32]>> = BTreeMap::new();
        let ours = announced.iter().filter(|a| a.committee == this && a.attempt == attempt);
        for announcement in ours {
            keys.entry(announcement.member).or_default().insert(announcement.key.0);
        }
        let key = |member: Member| match keys.get(&member)?.iter().collect::<Vec<_>>().as_slice() {
            [one] => Some(SealingPublic(**one)).filter(SealingPublic::is_good),
            _ => None,
        };
        let keys: Vec<Option<SealingPublic>> = (0..committee.members()).map(key).collect();
        let digest = digest(&this, attempt, &keys);
        Self { committee, attempt, keys, digest }
    }

    /// Whose key it is to be.
    #[must_use]
    pub fn committee(&self) -> &Committee {
        &self.committee
    }

    /// A digest of committee, attempt and keys.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    pub(super) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// What shares of each member are sealed for.
    pub(super) fn keys(&self) -> &[Option<SealingPublic>] {
        &self.keys
    }

    pub(super) fn key(&self, member: Member) -> Option<&SealingPublic> {
        self.keys.get(usize::from(member))?.as_ref()
    }
}

/// A missing key counts as zeros, for which nobody can seal.
fn digest(committee: &Digest, attempt: u32, keys: &[Option<SealingPublic>]) -> Digest {
    let keys: Vec<u8> = keys.iter().flat_map(|key| key.map_or([0; 32], |key| key.0)).collect();
    let parts: [&[u8]; 3] = [committee.as_bytes(), &attempt.to_be_bytes(), &keys];
    labelled(labels::STATISTICS_KEY_CEREMONY, &parts)
}
