//! How many different values there are: exactly while they are few, and nearly if they are many.

use crate::hash::Set;

/// Hashes that are kept, at most. With half as many, a count is known to about one part in 180.
const MAX_KEPT: usize = 1 << 16;

/// Counts different values by their hashes. Once there are many, only one hash in two is kept, then
/// one in four, and so on, as its bits choose.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distinct {
    kept: Set<u64>,
    level: u32,
    last: Option<u64>,
}

impl Distinct {
    /// Adds a value by its hash.
    pub(crate) fn add(&mut self, hash: u64) {
        if self.last.replace(hash) == Some(hash) || !is_chosen(hash, self.level) {
            return;
        }
        self.kept.insert(hash);
        while self.kept.len() > MAX_KEPT {
            self.level += 1;
            let level = self.level;
            self.kept.retain(|hash| is_chosen(*hash, level));
        }
    }

    /// The number of different values among so many.
    pub(crate) fn count(&self, of: u64) -> u64 {
        let found = (self.kept.len() as u64) << self.level;
        // All but a few are all, as far as is known.
        if self.level > 0 && found * 100 >= of * 98 { of } else { found.min(of) }
    }
}

/// Whether a hash is one of those kept: its upper bits, mixed, end in so many zeros.
fn is_chosen(hash: u64, level: u32) -> bool {
    level == 0 || (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24).trailing_zeros() >= level
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashes;

    #[test]
    fn few_are_counted_and_many_are_estimated() {
        let hashes = Hashes::default();
        let of = |rows: u64, different: u64| {
            let mut distinct = Distinct::default();
            (0..rows).for_each(|n| distinct.add(hashes.of((n % different).to_string())));
            distinct.count(rows)
        };
        assert_eq!((of(1000, 7), of(60_000, 60_000), of(1, 1)), (7, 60_000, 1));
        assert_eq!(of(400_000, 400_000), 400_000);
        let many = of(400_000, 200_000);
        assert!((194_000..206_000).contains(&many), "{many}");
    }
}
