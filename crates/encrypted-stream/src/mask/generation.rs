//! Keys that last for a day at most: what masks and noise of verified plans rest on besides the keys
//! that a controller has for life (`docs/protocol.md`, *Keys of a generation*).
//!
//! Once a generation is wiped on both sides of a pair, nobody can compute that pair's pads again,
//! not even from all other keys. So what was kept of a window stays closed.

use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_policy::ids::PlanId;
use zeroize::Zeroizing;

use crate::mask::pairs::{OwnKey, PairKeys};

/// Where a controller's generations come from. It only goes forward: who has it learns no earlier
/// generation. Not `Clone`, not `Debug`, wiped on drop. Keep it in memory, and write it nowhere.
pub struct KeySource(Secret<32>);

impl KeySource {
    /// A source that begins with these bytes, drawn for this start and this controller. Draw them where
    /// nobody can draw them again: a generator that lives on gives its earlier output to who reads
    /// its state.
    #[must_use]
    pub fn new(start: Secret<32>) -> Self {
        Self(start)
    }

    /// The next generation. What it came from is wiped.
    pub fn advance(&mut self) -> Generation {
        let secret = derive(self.0.expose(), labels::GENERATION, &[]);
        self.0 = derive(self.0.expose(), labels::GENERATION_NEXT, &[]);
        Generation(secret)
    }
}

/// The secret x of a generation. Not `Clone`, not `Debug`, wiped on drop.
pub struct Generation(Secret<32>);

impl Generation {
    /// The controller's agreement key for a plan.
    #[must_use]
    pub fn agreement(&self, plan: &PlanId) -> AgreementKey {
        let seed = derive(self.0.expose(), labels::GENERATION_AGREEMENT, &[&plan.0]);
        AgreementKey::from_seed(&seed)
    }

    /// The key of its self-masks in a plan, from its secret for life and this one.
    #[must_use]
    pub fn own_key(&self, life: &Secret<32>, plan: &PlanId) -> OwnKey {
        OwnKey::derived(&joined(life.expose(), &self.0), labels::MASK_OWN_OF_GENERATION, plan)
    }

    /// The secret of its noise in a plan, from its secret for life and this one.
    #[must_use]
    pub fn noise(&self, life: &Secret<32>, plan: &PlanId) -> Secret<32> {
        derive(&joined(life.expose(), &self.0), labels::NOISE_OF_GENERATION, &[&plan.0])
    }
}

/// The key of a pair's pads, from their key for life and what their keys of two generations agree
/// on.
#[must_use]
pub fn pair_key(life: &[u8; 16], agreed: &Secret<32>) -> Secret<16> {
    derive(&joined(life, agreed), labels::MASK_PAIR_OF_GENERATION, &[])
}

/// Both, one behind the other.
fn joined(life: &[u8], short: &Secret<32>) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(life.len() + 32));
    bytes.extend_from_slice(life);
    bytes.extend_from_slice(short.expose());
    bytes
}

/// The keys that take the place of those for life in the pads of one round.
pub struct RoundKeys {
    pub(super) pairs: PairKeys,
    pub(super) own: OwnKey,
}

impl RoundKeys {
    /// Keys with the same peers as those for life.
    #[must_use]
    pub fn new(pairs: PairKeys, own: OwnKey) -> Self {
        Self { pairs, own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_differ_and_depend_on_the_start_alone() {
        let plan = PlanId([1; 32]);
        let public = |start: u8, number: usize| {
            let mut source = KeySource::new(Secret::from_bytes([start; 32]));
            let all: Vec<Generation> = (0..=number).map(|_| source.advance()).collect();
            all[number].agreement(&plan).public()
        };
        assert_eq!(public(1, 2), public(1, 2));
        let mut seen = vec![public(1, 0), public(1, 1), public(1, 2), public(2, 0), public(2, 1)];
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 5);
    }
}
