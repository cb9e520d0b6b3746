//! Whether this client's samples are coarser than the plan says. Then a published mean can reveal how
//! many samples there were.

use alpheus_accountable_statistics::definition::ReleaseRule;

/// Differences that are looked at. By chance, all of them are multiples of some number above 1 less
/// than once in two hundred times.
const ENOUGH: u32 = 8;

/// What the samples so far have in common.
pub struct Resolution {
    /// As the plan has it; none if no mean is published.
    declared: Option<u64>,
    last: Option<i64>,
    /// The greatest common divisor of all differences so far.
    common: u64,
    differences: u32,
}

impl Resolution {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(rule: ReleaseRule) -> Self {
        let declared = match rule {
            ReleaseRule::Mean { resolution, .. } => Some(u64::from(resolution)),
            ReleaseRule::Full => None,
        };
        Self { declared, last: None, common: 0, differences: 0 }
    }

    /// Takes a sample, in steps. Returns the resolution of all so far, once, if it is coarser than
    /// declared.
    pub fn note(&mut self, value: i64) -> Option<u64> {
        let declared = self.declared?;
        let last = self.last.replace(value)?;
        if last == value {
            return None;
        }
        self.common = divisor(self.common, last.abs_diff(value));
        self.differences += 1;
        if self.differences < ENOUGH {
            return None;
        }
        self.declared = None;
        (self.common > declared).then_some(self.common)
    }
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    a.checked_rem(b).map_or(a, |rest| divisor(b, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(resolution: u32, values: impl IntoIterator<Item = i64>) -> Vec<u64> {
        let mut seen = Resolution::new(ReleaseRule::Mean { grain: 5, resolution });
        values.into_iter().filter_map(|value| seen.note(value)).collect()
    }

    #[test]
    fn samples_coarser_than_declared_are_noticed_once() {
        let whole = || [61, 58, 58, 64, 47, 60, 41, 39, 57, 55, 54].map(|value| value * 10 + 3);
        assert_eq!(noted(1, whole()), [10]);
        assert_eq!(noted(1, whole().into_iter().chain(whole())), [10]);
        assert!(noted(10, whole()).is_empty(), "as declared");
        assert!(noted(1, whole()[..8].to_vec()).is_empty(), "too few to know");
        assert!(noted(1, [61, 58, 64, 47, 60, 41, 39, 57, 55, 54]).is_empty(), "steps of one");
        assert!(noted(1, std::iter::repeat_n(7, 100)).is_empty(), "always the same");
        let mut full = Resolution::new(ReleaseRule::Full);
        assert!(whole().iter().all(|value| full.note(*value).is_none()));
    }
}
