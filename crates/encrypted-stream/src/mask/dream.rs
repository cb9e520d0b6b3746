//! Ács and Castelluccia's sparse graphs, drawn again in each round with N − 1 PRF
//! calls.

use crate::mask::pairs::PairKeys;
use crate::mask::strategy::{Strategy, round_input};
use alpheus_policy::ids::PlanId;

/// Each pair is an edge with probability `2^-bits`, independently in each round.
///
/// `bits` is as for [`Epoch`](crate::mask::epoch::Epoch), so δ bounds the chance of
/// a bad round over the same number of rounds for both.
#[derive(Clone, Debug)]
pub struct Dream {
    plan: PlanId,
    bits: u8,
}

impl Dream {
    /// For a plan; `bits` is b.
    #[must_use]
    pub fn new(plan: PlanId, bits: u8) -> Dream {
        Dream { plan, bits: bits.clamp(1, 64) }
    }
}

impl Strategy for Dream {
    fn neighbours(&mut self, pairs: &PairKeys, window: u64, into: &mut Vec<u32>) {
        let input = round_input("dream", &self.plan, self.bits, window);
        let absent = u32::from(self.bits);
        into.clear();
        let mut others = pairs.others();
        pairs.with_each_graph_key(|key| {
            // The pair is an edge if the first b bits are zero.
            let edge = key.block(input).leading_zeros() >= absent;
            into.extend(others.next().filter(|_| edge));
        });
    }
}
