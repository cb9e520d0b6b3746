//! Every pair shares a mask in every round: the strawman of Zeph §3.4, and the
//! fallback where a sparse graph is unsafe.

use crate::mask::pairs::PairKeys;
use crate::mask::strategy::Strategy;

/// Masks with every other controller in every round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clique;

impl Strategy for Clique {
    fn neighbours(&mut self, pairs: &PairKeys, _window: u64, into: &mut Vec<u32>) {
        into.clear();
        into.extend(pairs.others());
    }
}
