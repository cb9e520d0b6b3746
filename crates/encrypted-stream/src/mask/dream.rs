//! Ács and Castelluccia's sparse graphs, drawn anew each round: N − 1 PRF calls
//! a round.

use crate::mask::pairs::PairKeys;
use crate::mask::strategy::{Strategy, round_input};
use alpheus_policy::ids::PlanId;

/// Each pair with probability `2^-bits`, independently in each round.
///
/// `bits` is that of [`Epoch`](crate::mask::epoch::Epoch), so that δ bounds the
/// chance of a bad round among the same number of rounds for both.
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
            // An edge stands where the first b bits are zero.
            let edge = key.block(input).leading_zeros() >= absent;
            into.extend(others.next().filter(|_| edge));
        });
    }
}
