//! How many readings one owner has in a window.

use std::collections::BTreeMap;

/// The readings of an owner in a window, of all owners and windows that have any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// On average.
    pub(crate) usual: u64,
    /// What nineteen in twenty have at most.
    pub(crate) nearly: u64,
    /// At most.
    pub(crate) most: u64,
}

impl Default for Load {
    fn default() -> Self {
        Load { usual: 1, nearly: 1, most: 1 }
    }
}

impl Load {
    /// Of so many windows of an owner with so many readings, by their number.
    pub(crate) fn of(counts: &BTreeMap<u64, u64>) -> Load {
        let windows: u64 = counts.values().sum();
        let readings: u64 = counts.iter().map(|(count, windows)| count * windows).sum();
        let mut some = 0;
        let nearly = counts.iter().find(|(_, own)| {
            some += **own;
            some * 20 >= windows * 19
        });
        Load {
            usual: (readings / windows.max(1)).max(1),
            nearly: nearly.map_or(1, |(count, _)| *count),
            most: counts.keys().next_back().copied().unwrap_or(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nineteen_in_twenty_have_few_readings() {
        assert_eq!(Load::of(&BTreeMap::new()), Load::default());
        let load = Load::of(&[(1, 15), (2, 4), (35, 1)].into());
        assert_eq!(load, Load { usual: 2, nearly: 2, most: 35 });
    }
}
