//! How many readings one owner has in a window.

use std::collections::BTreeMap;

/// The readings of an owner in a window, of all owners and windows that have any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// On average.
    pub(crate) usual: u64,
    /// The smallest limit that keeps nineteen in twenty readings, if owners who have more are left out.
    pub(crate) nearly: u64,
    /// The share of readings that this limit leaves out, in thousandths, rounded up.
    pub(crate) beyond: u64,
    /// At most.
    pub(crate) most: u64,
}

impl Default for Load {
    fn default() -> Self {
        Load { usual: 1, nearly: 1, beyond: 0, most: 1 }
    }
}

impl Load {
    /// Of so many windows of an owner with so many readings, by their number.
    pub(crate) fn of(counts: &BTreeMap<u64, u64>) -> Load {
        let windows: u64 = counts.values().sum();
        let readings: u64 = counts.iter().map(|(count, windows)| count * windows).sum();
        let mut beyond = readings;
        let nearly = counts.iter().find(|(count, own)| {
            beyond -= **count * **own;
            beyond * 20 <= readings
        });
        Load {
            usual: (readings / windows.max(1)).max(1),
            nearly: nearly.map_or(1, |(count, _)| *count),
            beyond: (1000 * beyond).div_ceil(readings.max(1)),
            most: counts.keys().next_back().copied().unwrap_or(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nineteen_in_twenty_readings_are_kept() {
        assert_eq!(Load::of(&BTreeMap::new()), Load::default());
        let load = Load::of(&[(1, 15), (2, 34), (4, 1)].into());
        assert_eq!(load, Load { usual: 1, nearly: 2, beyond: 46, most: 4 });
        // One owner has most readings.
        let load = Load::of(&[(1, 15), (2, 4), (35, 1)].into());
        assert_eq!(load, Load { usual: 2, nearly: 35, beyond: 0, most: 35 });
    }
}
