//! What one controller shares with every other in a roster.

use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::prf::{Pad, PadDigest, Prf};
use alpheus_crypto::secret::Secret;
use alpheus_policy::ids::PlanId;
use zeroize::Zeroizing;

/// How keys are kept between windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// 32 bytes a pair; each use expands its AES key anew. For a process that
    /// hosts thousands of controllers.
    Compact,
    /// Expanded mask keys, some 700 bytes a pair; for one controller's own
    /// process.
    Expanded,
}

/// The keys of one controller with each other controller of a roster, for masks
/// and, independently, for the graph that says who masks with whom.
pub struct PairKeys {
    position: u32,
    masks: MaskKeys,
    graphs: Zeroizing<Vec<[u8; 16]>>,
}

enum MaskKeys {
    Compact(Zeroizing<Vec<[u8; 16]>>),
    Expanded(Vec<Prf>),
}

/// Keys for a roster cannot be agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoPairKeys {
    /// The public key at a position would make the shared secret public.
    #[error(
        "the agreement key of the controller at position {position} has small order: leave that controller out of the plan"
    )]
    LowOrder {
        /// Its roster position.
        position: u32,
    },
    /// The roster does not hold this controller's key where it should.
    #[error("position {position} of the roster does not hold this controller's agreement key")]
    NotOurs {
        /// The position that was claimed.
        position: u32,
    },
}

impl PairKeys {
    /// Agrees with every other controller of the roster, one X25519 each.
    /// `position` is this controller's own.
    ///
    /// # Errors
    /// [`NoPairKeys`] names the position that is at fault.
    pub fn agree(
        key: &AgreementKey,
        roster: &[AgreementPublic],
        position: u32,
        storage: Storage,
    ) -> Result<PairKeys, NoPairKeys> {
        if roster.get(position as usize) != Some(&key.public()) {
            return Err(NoPairKeys::NotOurs { position });
        }
        let others = (0_u32..).zip(roster).filter(|(other, _)| *other != position);
        let secrets: Result<Vec<Secret<32>>, NoPairKeys> = others
            .map(|(other, public)| {
                key.agree(public).map_err(|_| NoPairKeys::LowOrder { position: other })
            })
            .collect();
        Ok(PairKeys::from_secrets(position, &secrets?, storage))
    }

    /// From what was agreed on earlier with each *other* controller, in roster
    /// order without the own position. Agreements may be kept and serve several
    /// plans: pads and graphs are bound to the plan.
    #[must_use]
    pub fn from_secrets(position: u32, others: &[Secret<32>], storage: Storage) -> PairKeys {
        let keys = |label| -> Zeroizing<Vec<[u8; 16]>> {
            // One allocation of the final size: a growing table would leave copies behind.
            let mut table = Zeroizing::new(Vec::with_capacity(others.len()));
            table.extend(
                others.iter().map(|secret| *derive::<16>(secret.expose(), label, &[]).expose()),
            );
            table
        };
        let (compact, graphs) = (keys(labels::MASK_PAIR), keys(labels::MASK_GRAPH));
        let masks = match storage {
            Storage::Compact => MaskKeys::Compact(compact),
            Storage::Expanded => MaskKeys::Expanded(compact.iter().map(Prf::from_bytes).collect()),
        };
        PairKeys { position, masks, graphs }
    }

    /// This controller's own position.
    #[must_use]
    pub fn position(&self) -> u32 {
        self.position
    }

    /// Controllers in the roster, this one included.
    #[must_use]
    pub fn roster(&self) -> u32 {
        u32::try_from(self.graphs.len()).map_or(u32::MAX, |others| others.saturating_add(1))
    }

    /// The positions of the others, ascending.
    pub fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let position = self.position;
        (0..self.roster()).filter(move |other| *other != position)
    }

    /// Calls `each` with the graph key of every other controller, in the order
    /// of [`PairKeys::others`].
    pub(crate) fn with_each_graph_key(&self, each: impl FnMut(&Prf)) {
        Prf::with_each_key(self.graphs.iter(), each);
    }

    /// Adds to `words` the pads shared with `others`: plus towards later
    /// positions, minus towards earlier ones, so that both ends cancel. `others`
    /// are positions of others in the roster, as a
    /// [`Strategy`](crate::mask::Strategy) finds them.
    pub(crate) fn add_pads(&self, others: &[u32], digest: &PadDigest, words: &mut [u64]) {
        let slot = |other: u32| other as usize - usize::from(other > self.position);
        let negative = |other: u32| other < self.position;
        match &self.masks {
            MaskKeys::Expanded(keys) => {
                let pad = |i: usize| Pad {
                    key: &keys[slot(others[i])],
                    digest,
                    negative: negative(others[i]),
                };
                Prf::add_pads(others.len(), pad, words);
            }
            MaskKeys::Compact(keys) => {
                let mut next = others.iter();
                Prf::with_each_key(others.iter().map(|other| &keys[slot(*other)]), |key| {
                    let negative = next.next().is_some_and(|other| negative(*other));
                    Prf::add_pads(1, |_| Pad { key, digest, negative }, words);
                });
            }
        }
    }
}

/// The key of a controller's masks of its own in one plan.
pub struct OwnKey(pub(crate) Prf);

impl OwnKey {
    /// From a secret that the controller keeps for life, so that the opening
    /// after a restart takes off the same mask.
    #[must_use]
    pub fn new(secret: &Secret<32>, plan: &PlanId) -> OwnKey {
        OwnKey(Prf::new(&derive(secret.expose(), labels::MASK_OWN, &[&plan.0])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> AgreementKey {
        AgreementKey::from_seed(&Secret::from_bytes([seed; 32]))
    }

    /// The pad shared with `other`, as the earlier of the two adds it.
    fn pad(keys: &PairKeys, other: u32) -> u64 {
        let mut words = [0];
        let digest = PadDigest::from_bytes(&[7; 30]);
        keys.add_pads(&[other], &digest, &mut words);
        if other < keys.position() { words[0].wrapping_neg() } else { words[0] }
    }

    #[test]
    fn both_ends_of_each_pair_hold_the_same_keys_in_either_storage() {
        let keys: Vec<AgreementKey> = (1..=4).map(key).collect();
        let roster: Vec<AgreementPublic> = keys.iter().map(AgreementKey::public).collect();
        let of = |p: u32, storage| PairKeys::agree(&keys[p as usize], &roster, p, storage).unwrap();
        let expanded: Vec<PairKeys> = (0..4).map(|p| of(p, Storage::Expanded)).collect();
        let compact: Vec<PairKeys> = (0..4).map(|p| of(p, Storage::Compact)).collect();
        let mut seen = Vec::new();
        for p in 0..4_u32 {
            let own = [&expanded, &compact].map(|keys| &keys[p as usize]);
            assert!(own.iter().all(|keys| keys.roster() == 4 && keys.others().count() == 3));
            for q in (0..4).filter(|q| *q > p) {
                let there = pad(own[0], q);
                assert_ne!(there, 0);
                assert_eq!([pad(own[1], q), pad(&compact[q as usize], p)], [there; 2]);
                seen.push(there);
            }
        }
        // Graph keys are others again.
        let digest = PadDigest::from_bytes(&[7; 30]);
        expanded[0].with_each_graph_key(|prf| {
            let mut words = [0];
            prf.add_pad(&digest, &mut words);
            seen.push(words[0]);
        });
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 6 + 3);
    }

    #[test]
    fn a_roster_at_fault_is_refused_by_position() {
        let roster = [key(1).public(), key(2).public(), AgreementPublic([0; 32])];
        let agree = |p| PairKeys::agree(&key(1), &roster, p, Storage::Compact).err();
        assert_eq!(agree(0), Some(NoPairKeys::LowOrder { position: 2 }));
        assert_eq!(agree(1), Some(NoPairKeys::NotOurs { position: 1 }));
        assert_eq!(agree(9), Some(NoPairKeys::NotOurs { position: 9 }));
    }
}
