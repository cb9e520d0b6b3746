//! Zeph's optimisation (§3.4, "Online Phase Optimization"): N − 1 PRF calls draw
//! the graphs of a whole epoch.
//!
//! The 128 output bits of a pair are cut into ⌊128/b⌋ segments of b bits. The value
//! of a segment selects the one of 2^b rounds in which the pair shares a mask. So
//! every pair has exactly one round in each segment, and an epoch has
//! `⌊128/b⌋·2^b` rounds of expected degree `(N−1)/2^b`.

use crate::mask::pairs::PairKeys;
use crate::mask::params;
use crate::mask::strategy::{Strategy, round_input};
use alpheus_policy::ids::PlanId;
use zeroize::{Zeroize, Zeroizing};

/// Draws graphs one epoch at a time. It keeps the lists of the current epoch: two bytes
/// for each other controller and segment, or four from 65,537 controllers on.
pub struct Epoch {
    plan: PlanId,
    bits: u8,
    lists: Option<Lists>,
}

/// The neighbour lists of one epoch, concatenated.
struct Lists {
    epoch: u64,
    /// The end of each round's list. A list starts where the previous one ends.
    ends: Vec<u32>,
    members: Members,
}

/// Slots: indices into the roster without this controller's own position.
enum Members {
    Narrow(Zeroizing<Vec<u16>>),
    Wide(Zeroizing<Vec<u32>>),
}

impl Epoch {
    /// Makes the strategy for a plan. `bits` is b, from 1 to [`params::MAX_BITS`].
    #[must_use]
    pub fn new(plan: PlanId, bits: u8) -> Epoch {
        Epoch { plan, bits: bits.clamp(1, params::MAX_BITS), lists: None }
    }

    /// Draws the graphs of an epoch: window numbers from `epoch·W` to
    /// `(epoch+1)·W − 1`. This happens automatically when a window needs them;
    /// an early call takes the work off the window's critical path.
    pub fn prepare(&mut self, pairs: &PairKeys, epoch: u64) {
        if self.lists.as_ref().is_none_or(|lists| lists.epoch != epoch) {
            let input = round_input("epoch", &self.plan, self.bits, epoch);
            self.lists = Some(Lists::draw(pairs, input, self.bits, epoch));
        }
    }
}

impl Strategy for Epoch {
    fn neighbours(&mut self, pairs: &PairKeys, window: u64, into: &mut Vec<u32>) {
        let rounds = params::rounds(self.bits);
        self.prepare(pairs, window / rounds);
        into.clear();
        if let (Some(lists), Ok(round)) = (&self.lists, usize::try_from(window % rounds)) {
            lists.copy(round, pairs.position(), into);
        }
    }
}

impl Lists {
    fn draw(pairs: &PairKeys, input: u128, bits: u8, epoch: u64) -> Lists {
        let mut drawn = Zeroizing::new(Vec::with_capacity(pairs.roster() as usize));
        pairs.with_each_graph_key(|key| drawn.push(key.block(input)));
        let mut ends = Vec::with_capacity(usize::from(params::segments(bits)) << bits);
        let members = match u16::try_from(drawn.len()) {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "slots are below the length, which fits"
            )]
            Ok(_) => Members::Narrow(sort(&drawn, bits, &mut ends, |slot| slot as u16)),
            Err(_) => Members::Wide(sort(&drawn, bits, &mut ends, |slot| slot)),
        };
        Lists { epoch, ends, members }
    }

    /// Appends the positions in a round's list.
    fn copy(&self, round: usize, own: u32, into: &mut Vec<u32>) {
        let end = self.ends.get(round).map_or(0, |end| *end as usize);
        let start = round
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .map_or(0, |start| *start as usize);
        let position = |slot: u32| slot + u32::from(slot >= own);
        match &self.members {
            Members::Narrow(slots) => {
                into.extend(
                    slots
                        .get(start..end)
                        .unwrap_or(&[])
                        .iter()
                        .map(|slot| position(u32::from(*slot))),
                );
            }
            Members::Wide(slots) => {
                into.extend(slots.get(start..end).unwrap_or(&[]).iter().copied().map(position));
            }
        }
    }
}

/// Sorts all slots by their value in each segment, with a counting sort. Segment 0 is
/// the first b bits of the output. Appends the end of each round's list to `ends`.
fn sort<T: Copy + Default + Zeroize>(
    drawn: &[u128],
    bits: u8,
    ends: &mut Vec<u32>,
    narrow: impl Fn(u32) -> T,
) -> Zeroizing<Vec<T>> {
    let segments = params::segments(bits);
    let mut members = Zeroizing::new(vec![T::default(); drawn.len() * usize::from(segments)]);
    let (mask, mut base) = ((1_usize << bits) - 1, 0_u32);
    let mut next = Zeroizing::new(vec![0_u32; mask + 1]);
    for segment in 0..segments {
        let shift = 128 - u32::from(bits) * (u32::from(segment) + 1);
        let round_of = |output: &u128| (output >> shift) as usize & mask;
        next.fill(0);
        drawn.iter().for_each(|output| next[round_of(output)] += 1);
        for entry in next.iter_mut() {
            let length = std::mem::replace(entry, base);
            base += length;
            ends.push(base);
        }
        for (slot, output) in (0_u32..).zip(drawn) {
            let at = &mut next[round_of(output)];
            members[*at as usize] = narrow(slot);
            *at += 1;
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::pairs::Storage;
    use alpheus_crypto::secret::Secret;

    fn pairs(position: u32, controllers: u32) -> PairKeys {
        let others = (0..controllers).filter(|q| *q != position);
        let secret = |q: u32| {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&q.min(position).to_le_bytes());
            bytes[4..8].copy_from_slice(&q.max(position).to_le_bytes());
            Secret::from_bytes(bytes)
        };
        PairKeys::from_secrets(position, &others.map(secret).collect::<Vec<_>>(), Storage::Compact)
    }

    fn lists(
        position: u32,
        controllers: u32,
        bits: u8,
        windows: std::ops::Range<u64>,
    ) -> Vec<Vec<u32>> {
        let (pairs, mut epoch) = (pairs(position, controllers), Epoch::new(PlanId([3; 32]), bits));
        let list = |window| {
            let mut into = vec![99; 5];
            epoch.neighbours(&pairs, window, &mut into);
            into
        };
        windows.map(list).collect()
    }

    /// In each segment every other controller is in exactly one round.
    #[test]
    fn a_segment_deals_each_pair_into_one_round() {
        for (controllers, bits) in [(50, 1), (207, 2), (40, 3), (300, 7), (5, 20)] {
            let segment = 1 << bits;
            let last = params::rounds(bits);
            for start in [0, last - segment, last] {
                let mut all = lists(3, controllers, bits, start..start + segment).concat();
                all.sort_unstable();
                assert!(
                    all.into_iter().eq((0..controllers).filter(|q| *q != 3)),
                    "N = {controllers}, b = {bits}"
                );
            }
        }
    }

    #[test]
    fn both_ends_see_the_same_edge_and_lists_ascend() {
        let all: Vec<Vec<Vec<u32>>> = (0..12).map(|p| lists(p, 12, 2, 250..270)).collect();
        for (p, rounds) in (0..).zip(&all) {
            for (round, list) in rounds.iter().enumerate() {
                assert!(list.is_sorted());
                assert!(list.iter().all(|q| all[*q as usize][round].contains(&p)));
            }
        }
    }

    #[test]
    fn epochs_and_plans_draw_different_graphs_and_an_earlier_epoch_repeats() {
        let rounds = params::rounds(2);
        let (first, second) = (lists(0, 60, 2, 0..rounds), lists(0, 60, 2, rounds..2 * rounds));
        assert_ne!(first, second);
        let (pairs, mut epoch) = (pairs(0, 60), Epoch::new(PlanId([3; 32]), 2));
        let mut list = Vec::new();
        for window in [rounds, 5, rounds + 9, 5] {
            epoch.neighbours(&pairs, window, &mut list);
        }
        assert_eq!(list, first[5]);
        Epoch::new(PlanId([4; 32]), 2).neighbours(&pairs, 5, &mut list);
        assert_ne!(list, first[5]);
    }

    /// 65,537 controllers still have 16-bit slots, one more does not.
    #[test]
    fn wide_lists_agree_with_narrow_ones() {
        let drawn: Vec<u128> = (0..300_u128)
            .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
            .collect();
        let (mut ends, mut again) = (Vec::new(), Vec::new());
        let narrow = sort(&drawn, 5, &mut ends, |slot| slot.to_le_bytes()[0].into());
        let wide: Zeroizing<Vec<u32>> = sort(&drawn, 5, &mut again, |slot| slot & 0xff);
        let widened: Vec<u32> = narrow.iter().map(|slot: &u16| u32::from(*slot)).collect();
        assert_eq!((widened, ends), (wide.to_vec(), again));
    }
}
