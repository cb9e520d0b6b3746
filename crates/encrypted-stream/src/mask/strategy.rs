//! Who masks with whom in a round: one trait with four implementations.

use crate::mask::clique::Clique;
use crate::mask::dream::Dream;
use crate::mask::epoch::Epoch;
use crate::mask::neighbours::Neighbours;
use crate::mask::pairs::PairKeys;
use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::labels;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::MaskStrategy;

/// The mask graph of a plan, as one controller p sees it.
///
/// Both ends of an edge must see it, so an implementation decides each edge only
/// from data that both share. [`Neighbours`] is the exception: one end draws the
/// edge, and the other learns of it with each membership.
pub trait Strategy: Send {
    /// Writes N(p) in the round of window number `window`, in ascending order without p.
    fn neighbours(&mut self, pairs: &PairKeys, window: u64, into: &mut Vec<u32>);
}

/// The strategy that a plan names; `None` for a single controller.
#[must_use]
pub fn of_plan(plan: PlanId, masks: MaskStrategy) -> Option<Box<dyn Strategy>> {
    match masks {
        MaskStrategy::Single => None,
        MaskStrategy::Clique => Some(Box::new(Clique)),
        MaskStrategy::Dream { bits } => Some(Box::new(Dream::new(plan, bits))),
        MaskStrategy::Epoch { bits } => Some(Box::new(Epoch::new(plan, bits))),
        MaskStrategy::Neighbours { .. } => Some(Box::new(Neighbours)),
    }
}

/// The public PRF input for a round or epoch: 16 bytes of a hash, so that the
/// same pair draws different graphs in different plans.
///
/// 16 bytes suffice here. A service that makes two plans collide gets the same
/// graph in both, but learns neither.
pub(crate) fn round_input(strategy: &str, plan: &PlanId, bits: u8, number: u64) -> u128 {
    let parts: [&[u8]; 4] = [strategy.as_bytes(), &plan.0, &[bits], &number.to_be_bytes()];
    let digest = labelled_hash(labels::MASK_ROUND, &parts);
    let mut first = [0; 16];
    first.iter_mut().zip(digest.as_bytes()).for_each(|(to, from)| *to = *from);
    u128::from_be_bytes(first)
}
