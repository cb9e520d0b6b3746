//! The keys that one controller shares with the others in a roster.

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
    /// 32 bytes per pair; each use expands the AES key again. For a process that
    /// hosts thousands of controllers.
    Compact,
    /// Expanded mask keys, about 700 bytes per pair. For a process with one controller.
    Expanded,
}

/// The keys that one controller shares with each other controller of a roster. Masks
/// and the graph of who masks with whom have independent keys.
pub struct PairKeys {
    position: u32,
    roster: u32,
    /// The peers with keys; `None` if every other controller has them.
    sparse: Option<SparsePeers>,
    masks: MaskKeys,
    graphs: Zeroizing<Vec<[u8; 16]>>,
}

/// The peers of a controller under a sparse graph, ascending.
struct SparsePeers {
    picks: Vec<u32>,
    /// All peers with keys, including the picks.
    peers: Vec<u32>,
}

enum MaskKeys {
    Compact(Zeroizing<Vec<[u8; 16]>>),
    Expanded(Vec<Prf>),
}

/// Why keys for a roster cannot be agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PairKeyError {
    /// The public key at a position would make the shared secret public.
    #[error(
        "the agreement key of the controller at position {position} has small order; leave that controller out of the plan"
    )]
    LowOrder {
        /// The roster position.
        position: u32,
    },
    /// The roster has no such position.
    #[error("the roster has no position {position}")]
    NoSuchPosition {
        /// The requested position.
        position: u32,
    },
    /// The roster does not have this controller's key at its position.
    #[error("position {position} of the roster does not hold this controller's agreement key")]
    ForeignKey {
        /// The claimed position.
        position: u32,
    },
}

impl PairKeys {
    /// Agrees with every other controller of the roster, with one X25519 each.
    /// `position` is this controller's own.
    ///
    /// # Errors
    /// [`PairKeyError`], which names the faulty position.
    pub fn agree(
        key: &AgreementKey,
        roster: &[AgreementPublic],
        position: u32,
        storage: Storage,
    ) -> Result<PairKeys, PairKeyError> {
        if roster.get(position as usize) != Some(&key.public()) {
            return Err(PairKeyError::ForeignKey { position });
        }
        let others = (0..positions(roster)).filter(|other| *other != position);
        let secrets = agreements(key, roster, others)?;
        Ok(PairKeys::from_secrets(position, &secrets, storage))
    }

    /// Agrees only with the controller's picks: ascending positions without its own.
    /// For [`Neighbours`](crate::mask::neighbours::Neighbours). [`PairKeys::extend`]
    /// adds the controllers that picked it.
    ///
    /// # Errors
    /// As [`PairKeys::agree`].
    pub fn agree_with_picks(
        key: &AgreementKey,
        roster: &[AgreementPublic],
        position: u32,
        picks: &[u32],
        storage: Storage,
    ) -> Result<PairKeys, PairKeyError> {
        if roster.get(position as usize) != Some(&key.public()) {
            return Err(PairKeyError::ForeignKey { position });
        }
        let secrets = agreements(key, roster, picks.iter().copied())?;
        Ok(PairKeys {
            position,
            roster: positions(roster),
            sparse: Some(SparsePeers { picks: picks.to_vec(), peers: picks.to_vec() }),
            masks: MaskKeys::new(&secrets, storage),
            graphs: Zeroizing::default(),
        })
    }

    /// Agrees with those of `others` that have no keys yet. They are in the same
    /// roster.
    ///
    /// # Errors
    /// [`PairKeyError::LowOrder`] names a faulty position; no keys are added then.
    pub fn extend(
        &mut self,
        key: &AgreementKey,
        roster: &[AgreementPublic],
        others: &[u32],
    ) -> Result<(), PairKeyError> {
        let Some(sparse) = &mut self.sparse else { return Ok(()) };
        let is_new = |other: &u32| sparse.peers.binary_search(other).is_err();
        let new: Vec<u32> = others.iter().copied().filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        let fresh = agreements(key, roster, new.iter().copied())?;
        let mut order: Vec<(u32, usize)> =
            sparse.peers.iter().chain(&new).copied().zip(0_usize..).collect();
        order.sort_unstable();
        self.masks.merge(&fresh, &order.iter().map(|(_, from)| *from).collect::<Vec<_>>());
        sparse.peers = order.into_iter().map(|(position, _)| position).collect();
        Ok(())
    }

    /// The same peers with other keys for pads: `renew` makes each from the peer's position and the
    /// agreed key. `None` unless keys are stored [compact](Storage::Compact).
    ///
    /// # Errors
    /// The first error of `renew`.
    pub fn renewed<E>(
        &self,
        mut renew: impl FnMut(u32, &[u8; 16]) -> Result<Secret<16>, E>,
    ) -> Result<Option<PairKeys>, E> {
        let MaskKeys::Compact(agreed) = &self.masks else { return Ok(None) };
        let peers: Vec<u32> = match &self.sparse {
            Some(sparse) => sparse.peers.clone(),
            None => self.others().collect(),
        };
        let mut table = Zeroizing::new(Vec::with_capacity(agreed.len()));
        for (position, key) in peers.into_iter().zip(agreed.iter()) {
            table.push(*renew(position, key)?.expose());
        }
        let sparse = self
            .sparse
            .as_ref()
            .map(|sparse| SparsePeers { picks: sparse.picks.clone(), peers: sparse.peers.clone() });
        let (position, roster, masks) = (self.position, self.roster, MaskKeys::Compact(table));
        Ok(Some(PairKeys { position, roster, sparse, masks, graphs: Zeroizing::default() }))
    }

    /// The controller's picks, ascending; empty if it has keys with every other.
    pub fn picks(&self) -> impl Iterator<Item = u32> + '_ {
        self.sparse.iter().flat_map(|sparse| sparse.picks.iter().copied())
    }

    /// Whether the keys cover only picks and later additions, not the whole roster.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.sparse.is_some()
    }

    /// The number of other controllers with keys.
    #[must_use]
    pub fn peer_count(&self) -> usize {
        self.masks.len()
    }

    /// Whether there are keys with the controller at a position.
    #[must_use]
    pub fn has_key(&self, other: u32) -> bool {
        self.slot(other).is_some()
    }

    /// The key of the pads with another controller, if there is one and keys are stored
    /// [compact](Storage::Compact).
    pub(crate) fn key(&self, other: u32) -> Option<Prf> {
        let slot = self.slot(other)?;
        match &self.masks {
            MaskKeys::Compact(keys) => keys.get(slot).map(Prf::from_bytes),
            MaskKeys::Expanded(_) => None,
        }
    }

    /// The index of the keys with a controller.
    fn slot(&self, other: u32) -> Option<usize> {
        match &self.sparse {
            Some(sparse) => sparse.peers.binary_search(&other).ok(),
            None if other == self.position || other >= self.roster => None,
            None => Some(other as usize - usize::from(other > self.position)),
        }
    }

    /// Makes keys from earlier agreements with each *other* controller, in roster
    /// order without the own position. Agreements may be kept and reused in several
    /// plans, because pads and graphs are bound to the plan.
    #[must_use]
    pub fn from_secrets(position: u32, others: &[Secret<32>], storage: Storage) -> PairKeys {
        PairKeys {
            position,
            roster: u32::try_from(others.len()).map_or(u32::MAX, |others| others.saturating_add(1)),
            sparse: None,
            masks: MaskKeys::new(others, storage),
            graphs: keys(others, labels::MASK_GRAPH),
        }
    }

    /// This controller's own position.
    #[must_use]
    pub fn position(&self) -> u32 {
        self.position
    }

    /// Number of controllers in the roster, including this one.
    #[must_use]
    pub fn roster(&self) -> u32 {
        self.roster
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
    /// are positions that have a [key](PairKeys::has_key).
    pub(crate) fn add_pads(&self, others: &[u32], digest: &PadDigest, words: &mut [u64]) {
        let negative = |other: u32| other < self.position;
        match &self.sparse {
            None => {
                let slot = |other: u32| other as usize - usize::from(other > self.position);
                self.masks.add(
                    others.len(),
                    |i| (slot(others[i]), negative(others[i])),
                    digest,
                    words,
                );
            }
            Some(_) => {
                let slot = |other: &u32| Some((self.slot(*other)?, negative(*other)));
                let slots: Vec<(usize, bool)> = others.iter().filter_map(slot).collect();
                self.masks.add(slots.len(), |i| slots[i], digest, words);
            }
        }
    }
}

impl MaskKeys {
    fn new(others: &[Secret<32>], storage: Storage) -> MaskKeys {
        let compact = keys(others, labels::MASK_PAIR);
        match storage {
            Storage::Compact => MaskKeys::Compact(compact),
            Storage::Expanded => MaskKeys::Expanded(compact.iter().map(Prf::from_bytes).collect()),
        }
    }

    /// Adds `count` pads. `slot` returns a key's index and whether its pad is subtracted.
    fn add(
        &self,
        count: usize,
        slot: impl Fn(usize) -> (usize, bool),
        digest: &PadDigest,
        words: &mut [u64],
    ) {
        match self {
            MaskKeys::Expanded(keys) => {
                let pad = |i: usize| {
                    let (at, negative) = slot(i);
                    Pad { key: &keys[at], digest, negative }
                };
                Prf::add_pads(count, pad, words);
            }
            MaskKeys::Compact(keys) => {
                let mut next = 0..count;
                Prf::with_each_key((0..count).map(|i| &keys[slot(i).0]), |key| {
                    let negative = next.next().is_some_and(|i| slot(i).1);
                    Prf::add_pads(1, |_| Pad { key, digest, negative }, words);
                });
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            MaskKeys::Compact(keys) => keys.len(),
            MaskKeys::Expanded(keys) => keys.len(),
        }
    }

    /// Merges existing and fresh keys. `order` indexes the existing keys, followed by
    /// the fresh ones.
    fn merge(&mut self, fresh: &[Secret<32>], order: &[usize]) {
        let fresh = keys(fresh, labels::MASK_PAIR);
        match self {
            MaskKeys::Compact(known) => {
                let mut table = Zeroizing::new(Vec::with_capacity(order.len()));
                table.extend(order.iter().map(|from| match known.get(*from) {
                    Some(key) => *key,
                    None => fresh[from - known.len()],
                }));
                *known = table;
            }
            MaskKeys::Expanded(known) => {
                let all = std::mem::take(known).into_iter();
                let mut all: Vec<Option<Prf>> =
                    all.chain(fresh.iter().map(Prf::from_bytes)).map(Some).collect();
                known.extend(order.iter().filter_map(|from| all[*from].take()));
            }
        }
    }
}

/// One X25519 with each of these positions.
fn agreements(
    key: &AgreementKey,
    roster: &[AgreementPublic],
    others: impl Iterator<Item = u32>,
) -> Result<Vec<Secret<32>>, PairKeyError> {
    let one = |position: u32| {
        let public =
            roster.get(position as usize).ok_or(PairKeyError::NoSuchPosition { position })?;
        key.agree(public).map_err(|_| PairKeyError::LowOrder { position })
    };
    others.map(one).collect()
}

/// One key of a kind from each agreement. The table is allocated at its final size;
/// a growing one would leave copies behind.
fn keys(others: &[Secret<32>], label: &str) -> Zeroizing<Vec<[u8; 16]>> {
    let mut table = Zeroizing::new(Vec::with_capacity(others.len()));
    table.extend(others.iter().map(|secret| *derive::<16>(secret.expose(), label, &[]).expose()));
    table
}

fn positions(roster: &[AgreementPublic]) -> u32 {
    u32::try_from(roster.len()).unwrap_or(u32::MAX)
}

/// The key of a controller's self-masks in one plan.
pub struct OwnKey(pub(crate) Prf);

impl OwnKey {
    /// Derives the key from a secret that the controller keeps for life, so that an
    /// opening after a restart removes the same mask.
    #[must_use]
    pub fn new(secret: &Secret<32>, plan: &PlanId) -> OwnKey {
        Self::derived(secret.expose(), labels::MASK_OWN, plan)
    }

    pub(super) fn derived(secret: &[u8], label: &str, plan: &PlanId) -> OwnKey {
        OwnKey(Prf::new(&derive(secret, label, &[&plan.0])))
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
        // Graph keys are different from mask keys.
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
    fn keys_added_later_are_the_same() {
        let keys: Vec<AgreementKey> = (1..=6).map(key).collect();
        let roster: Vec<AgreementPublic> = keys.iter().map(AgreementKey::public).collect();
        for storage in [Storage::Compact, Storage::Expanded] {
            let all = PairKeys::agree(&keys[2], &roster, 2, storage).unwrap();
            let mut some =
                PairKeys::agree_with_picks(&keys[2], &roster, 2, &[1, 4], storage).unwrap();
            assert_eq!((some.roster(), some.peer_count(), some.has_key(0)), (6, 2, false));
            some.extend(&keys[2], &roster, &[0, 4, 5]).unwrap();
            some.extend(&keys[2], &roster, &[0]).unwrap();
            assert_eq!((some.peer_count(), some.has_key(3)), (4, false));
            assert_eq!(some.picks().collect::<Vec<_>>(), [1, 4]);
            for other in [0, 1, 4, 5] {
                assert_eq!(pad(&some, other), pad(&all, other), "{other}");
            }
            let beyond = some.extend(&keys[2], &roster, &[6]);
            assert_eq!(beyond, Err(PairKeyError::NoSuchPosition { position: 6 }));
        }
    }

    #[test]
    fn a_faulty_roster_is_rejected_with_the_position() {
        let roster = [key(1).public(), key(2).public(), AgreementPublic([0; 32])];
        let agree = |p| PairKeys::agree(&key(1), &roster, p, Storage::Compact).err();
        assert_eq!(agree(0), Some(PairKeyError::LowOrder { position: 2 }));
        assert_eq!(agree(1), Some(PairKeyError::ForeignKey { position: 1 }));
        assert_eq!(agree(9), Some(PairKeyError::ForeignKey { position: 9 }));
    }
}
