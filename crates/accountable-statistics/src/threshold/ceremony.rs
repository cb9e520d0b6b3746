//! One attempt at a key: the members that take part, and the keys that their shares are sealed
//! for.
//!
//! Those keys live only as long as the attempt. If shares were sealed for longer-lived keys,
//! anyone who ever got t of those could open the dealings of every day, long after the days'
//! shares were erased.

use super::{Committee, Member};
use crate::error::DealerError;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::seal::{SealingKey, SealingPublic};
use alpheus_crypto::secret::Secret;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A member takes part in this attempt, and shares for it are sealed for this key. Public once
/// signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// The committee's digest.
    pub committee: Digest,
    /// The attempt. Each one takes a new seed.
    pub attempt: u32,
    /// The member that announces.
    pub member: Member,
    /// A key for this attempt alone.
    pub key: SealingPublic,
}

/// An attempt. Every message in it names its digest, so that no message of another day or attempt
/// is valid in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ceremony {
    committee: Committee,
    attempt: u32,
    /// None for a member that announced nothing, two keys, or an invalid one.
    keys: Vec<Option<SealingPublic>>,
    digest: Digest,
}

impl Announcement {
    /// The announcement of a member that has drawn a seed for this attempt. The seed is the only
    /// secret of the member's part. Destroy it, and every [`Dealer`](super::dealing::Dealer) from
    /// it, in the commit that makes the [`KeyShare`](super::KeyShare) durable, or when the attempt
    /// is given up.
    ///
    /// # Errors
    /// [`DealerError::NoMember`].
    pub fn new(
        committee: &Committee,
        attempt: u32,
        member: Member,
        seed: &Secret<32>,
    ) -> Result<Self, DealerError> {
        if !committee.has(member) {
            return Err(DealerError::NoMember);
        }
        let committee = committee.digest();
        let key = sealing_key(&committee, attempt, member, seed).public();
        Ok(Self { committee, attempt, member, key })
    }
}

/// The secret half of the announced key.
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
    /// An attempt, from its members' announcements, each signed by the member that it names. All
    /// members must use the same announcements: another list is another ceremony.
    ///
    /// Announcements of other attempts do not count. A member that announces two keys, or an
    /// unusable one, takes part without getting a share.
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

    /// The committee whose key is made.
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

    /// The keys that the members' shares are sealed for.
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
    labelled_hash(labels::STATISTICS_KEY_CEREMONY, &parts)
}
