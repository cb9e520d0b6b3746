//! What one controller shares with every other in a roster.

use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use alpheus_policy::ids::PlanId;
use zeroize::Zeroizing;

/// How keys are kept between windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// 32 bytes a pair; each use expands its AES key anew. For a process that
    /// hosts thousands of controllers.
    Compact,
    /// Expanded mask keys, some 200 bytes a pair; for one controller's own
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

    /// The graph keys of the others, in the order of [`PairKeys::others`].
    pub(crate) fn graph_keys(&self) -> impl Iterator<Item = Prf> + '_ {
        self.graphs.iter().map(Prf::from_bytes)
    }

    /// Calls `pad` with the mask key shared with `other`; nothing happens for
    /// the own position or one beyond the roster.
    #[inline]
    pub(crate) fn with_mask_key(&self, other: u32, pad: impl FnOnce(&Prf)) {
        if other == self.position {
            return;
        }
        let slot = other as usize - usize::from(other > self.position);
        match &self.masks {
            MaskKeys::Expanded(keys) => keys.get(slot).map(pad),
            MaskKeys::Compact(keys) => keys.get(slot).map(|key| pad(&Prf::from_bytes(key))),
        };
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

    fn block(keys: &PairKeys, other: u32) -> Option<u128> {
        let mut found = None;
        keys.with_mask_key(other, |prf| found = Some(prf.block(7)));
        found
    }

    #[test]
    fn both_ends_of_each_pair_hold_the_same_keys_in_either_storage() {
        let keys: Vec<AgreementKey> = (1..=4).map(key).collect();
        let roster: Vec<AgreementPublic> = keys.iter().map(AgreementKey::public).collect();
        let of = |p: u32, storage| PairKeys::agree(&keys[p as usize], &roster, p, storage).unwrap();
        let expanded: Vec<PairKeys> = (0..4).map(|p| of(p, Storage::Expanded)).collect();
        let compact: Vec<PairKeys> = (0..4).map(|p| of(p, Storage::Compact)).collect();
        let mut seen = Vec::new();
        for p in 0..4 {
            assert_eq!((expanded[p as usize].roster(), block(&expanded[p as usize], p)), (4, None));
            assert_eq!(block(&compact[p as usize], 4), None);
            for q in (0..4).filter(|q| *q > p) {
                let there = block(&expanded[p as usize], q);
                assert!(there.is_some());
                assert_eq!(there, block(&compact[q as usize], p));
                seen.push(there);
            }
        }
        // Graph keys are others again.
        seen.extend(expanded[0].graph_keys().map(|prf| Some(prf.block(7))));
        seen.sort();
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
