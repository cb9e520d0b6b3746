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
    roster: u32,
    /// Whom it has keys with, ascending; none if with every other.
    some: Option<Acquaintances>,
    masks: MaskKeys,
    graphs: Zeroizing<Vec<[u8; 16]>>,
}

/// Of a controller that does not know every other.
struct Acquaintances {
    picks: Vec<u32>,
    known: Vec<u32>,
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
    /// The roster is shorter.
    #[error("the roster has no position {position}")]
    NoSuch {
        /// The position that was asked for.
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
        let others = (0..positions(roster)).filter(|other| *other != position);
        let secrets = agreements(key, roster, others)?;
        Ok(PairKeys::from_secrets(position, &secrets, storage))
    }

    /// Agrees with its picks alone, positions ascending without its own: for
    /// [`Neighbours`](crate::mask::neighbours::Neighbours). Those that picked it
    /// come with [`PairKeys::meet`].
    ///
    /// # Errors
    /// As [`PairKeys::agree`].
    pub fn agree_with(
        key: &AgreementKey,
        roster: &[AgreementPublic],
        position: u32,
        picks: &[u32],
        storage: Storage,
    ) -> Result<PairKeys, NoPairKeys> {
        if roster.get(position as usize) != Some(&key.public()) {
            return Err(NoPairKeys::NotOurs { position });
        }
        let secrets = agreements(key, roster, picks.iter().copied())?;
        Ok(PairKeys {
            position,
            roster: positions(roster),
            some: Some(Acquaintances { picks: picks.to_vec(), known: picks.to_vec() }),
            masks: MaskKeys::new(&secrets, storage),
            graphs: Zeroizing::default(),
        })
    }

    /// Agrees with those of `others` that it has no keys with yet. They are of the
    /// same roster.
    ///
    /// # Errors
    /// [`NoPairKeys::LowOrder`] names a position at fault; nobody is met then.
    pub fn meet(
        &mut self,
        key: &AgreementKey,
        roster: &[AgreementPublic],
        others: &[u32],
    ) -> Result<(), NoPairKeys> {
        let Some(some) = &mut self.some else { return Ok(()) };
        let strange = |other: &u32| some.known.binary_search(other).is_err();
        let met: Vec<u32> = others.iter().copied().filter(strange).collect();
        if met.is_empty() {
            return Ok(());
        }
        let fresh = agreements(key, roster, met.iter().copied())?;
        let mut order: Vec<(u32, usize)> =
            some.known.iter().chain(&met).copied().zip(0_usize..).collect();
        order.sort_unstable();
        self.masks.merge(&fresh, &order.iter().map(|(_, from)| *from).collect::<Vec<_>>());
        some.known = order.into_iter().map(|(position, _)| position).collect();
        Ok(())
    }

    /// Whom it picked, ascending; nobody if it has keys with every other.
    pub fn picks(&self) -> impl Iterator<Item = u32> + '_ {
        self.some.iter().flat_map(|some| some.picks.iter().copied())
    }

    /// Whether it has keys with its picks alone, and with those that it met.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.some.is_some()
    }

    /// How many others it has keys with.
    #[must_use]
    pub fn agreed(&self) -> usize {
        self.masks.len()
    }

    /// Whether it has keys with the controller at a position.
    #[must_use]
    pub fn knows(&self, other: u32) -> bool {
        self.slot(other).is_some()
    }

    /// Where the keys with a controller stand.
    fn slot(&self, other: u32) -> Option<usize> {
        match &self.some {
            Some(some) => some.known.binary_search(&other).ok(),
            None if other == self.position || other >= self.roster => None,
            None => Some(other as usize - usize::from(other > self.position)),
        }
    }

    /// From what was agreed on earlier with each *other* controller, in roster
    /// order without the own position. Agreements may be kept and serve several
    /// plans: pads and graphs are bound to the plan.
    #[must_use]
    pub fn from_secrets(position: u32, others: &[Secret<32>], storage: Storage) -> PairKeys {
        PairKeys {
            position,
            roster: u32::try_from(others.len()).map_or(u32::MAX, |others| others.saturating_add(1)),
            some: None,
            masks: MaskKeys::new(others, storage),
            graphs: keys(others, labels::MASK_GRAPH),
        }
    }

    /// This controller's own position.
    #[must_use]
    pub fn position(&self) -> u32 {
        self.position
    }

    /// Controllers in the roster, this one included.
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
    /// are positions that it [knows](PairKeys::knows); any other adds nothing.
    pub(crate) fn add_pads(&self, others: &[u32], digest: &PadDigest, words: &mut [u64]) {
        let negative = |other: u32| other < self.position;
        let slots: Vec<(usize, bool)> = others
            .iter()
            .filter_map(|other| Some((self.slot(*other)?, negative(*other))))
            .collect();
        match &self.masks {
            MaskKeys::Expanded(keys) => {
                let pad = |i: usize| Pad { key: &keys[slots[i].0], digest, negative: slots[i].1 };
                Prf::add_pads(slots.len(), pad, words);
            }
            MaskKeys::Compact(keys) => {
                let mut next = slots.iter();
                Prf::with_each_key(slots.iter().map(|(slot, _)| &keys[*slot]), |key| {
                    let negative = next.next().is_some_and(|(_, negative)| *negative);
                    Prf::add_pads(1, |_| Pad { key, digest, negative }, words);
                });
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

    fn len(&self) -> usize {
        match self {
            MaskKeys::Compact(keys) => keys.len(),
            MaskKeys::Expanded(keys) => keys.len(),
        }
    }

    /// The keys known and then the fresh ones, in the order that is given.
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
) -> Result<Vec<Secret<32>>, NoPairKeys> {
    let one = |position: u32| {
        let public = roster.get(position as usize).ok_or(NoPairKeys::NoSuch { position })?;
        key.agree(public).map_err(|_| NoPairKeys::LowOrder { position })
    };
    others.map(one).collect()
}

/// One key of a kind from each agreement, in one allocation of the final size: a
/// growing table would leave copies behind.
fn keys(others: &[Secret<32>], label: &str) -> Zeroizing<Vec<[u8; 16]>> {
    let mut table = Zeroizing::new(Vec::with_capacity(others.len()));
    table.extend(others.iter().map(|secret| *derive::<16>(secret.expose(), label, &[]).expose()));
    table
}

fn positions(roster: &[AgreementPublic]) -> u32 {
    u32::try_from(roster.len()).unwrap_or(u32::MAX)
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
    fn whoever_is_met_later_shares_the_same_keys() {
        let keys: Vec<AgreementKey> = (1..=6).map(key).collect();
        let roster: Vec<AgreementPublic> = keys.iter().map(AgreementKey::public).collect();
        for storage in [Storage::Compact, Storage::Expanded] {
            let all = PairKeys::agree(&keys[2], &roster, 2, storage).unwrap();
            let mut some = PairKeys::agree_with(&keys[2], &roster, 2, &[1, 4], storage).unwrap();
            assert_eq!((some.roster(), some.agreed(), some.knows(0)), (6, 2, false));
            some.meet(&keys[2], &roster, &[0, 4, 5]).unwrap();
            some.meet(&keys[2], &roster, &[0]).unwrap();
            assert_eq!((some.agreed(), some.knows(3)), (4, false));
            assert_eq!(some.picks().collect::<Vec<_>>(), [1, 4]);
            for other in [0, 1, 4, 5] {
                assert_eq!(pad(&some, other), pad(&all, other), "{other}");
            }
            let beyond = some.meet(&keys[2], &roster, &[6]);
            assert_eq!(beyond, Err(NoPairKeys::NoSuch { position: 6 }));
        }
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
