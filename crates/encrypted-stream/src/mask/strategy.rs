//! Who masks with whom in a round: one trait, four ways.

use crate::mask::clique::Clique;
use crate::mask::dream::Dream;
use crate::mask::epoch::Epoch;
use crate::mask::neighbours::Neighbours;
use crate::mask::pairs::PairKeys;
use alpheus_crypto::hash::labelled;
use alpheus_crypto::labels;
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::MaskStrategy;

/// The mask graph of a plan, as one controller p sees it.
///
/// Both ends of an edge must see it: an implementation decides each edge from
/// what the two share, and from nothing else. But of [`Neighbours`], whose edges one
/// end draws: the other hears of them with each membership.
pub trait Strategy: Send {
    /// Writes N(p) in the round of window number `window`, ascending, without p.
    fn neighbours(&mut self, pairs: &PairKeys, window: u64, into: &mut Vec<u32>);
}

/// The strategy that a plan names; none for a single controller.
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
/// same pair draws other graphs in another plan.
///
/// Here 16 bytes do: a service that makes two plans collide gets the same graph
/// in both and learns neither.
pub(crate) fn round_input(strategy: &str, plan: &PlanId, bits: u8, number: u64) -> u128 {
    let parts: [&[u8]; 4] = [strategy.as_bytes(), &plan.0, &[bits], &number.to_be_bytes()];
    let digest = labelled(labels::MASK_ROUND, &parts);
    let mut first = [0; 16];
    first.iter_mut().zip(digest.as_bytes()).for_each(|(to, from)| *to = *from);
    u128::from_be_bytes(first)
}
