//! Sets of controllers as bitmaps over a plan's roster.

use serde::{Deserialize, Serialize};

/// A set of roster positions of a plan with a known number of controllers.
///
/// Its serialised form is canonical: each set has one byte string, so the hash
/// identifies the set. Reading rejects any other form.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "EncodedSet", into = "EncodedSet")]
pub struct RosterSet {
    roster: u32,
    blocks: Vec<u64>,
}

/// Why bytes are not the canonical form of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RosterSetError {
    /// The bitmap's length does not fit the roster's size.
    #[error("a set over {roster} controllers has a bitmap of {expected} bytes, not {found}")]
    Length {
        /// Controllers in the roster, as stated in the message.
        roster: u32,
        /// Expected bytes.
        expected: usize,
        /// Actual bytes.
        found: usize,
    },
    /// A bit beyond the roster is set.
    #[error("a set includes a controller beyond its roster of {roster}")]
    BeyondRoster {
        /// Controllers in the roster.
        roster: u32,
    },
}

/// The wire form: bit `p mod 8` of byte `p / 8` stands for controller `p`.
#[derive(Serialize, Deserialize)]
struct EncodedSet {
    roster: u32,
    bytes: Vec<u8>,
}

impl RosterSet {
    /// The empty set over a roster of `roster` controllers.
    #[must_use]
    pub fn empty(roster: u32) -> RosterSet {
        RosterSet { roster, blocks: vec![0; (roster as usize).div_ceil(64)] }
    }

    /// Every controller of the roster.
    #[must_use]
    pub fn full(roster: u32) -> RosterSet {
        let mut set = RosterSet::empty(roster);
        (0..roster).for_each(|position| {
            set.insert(position);
        });
        set
    }

    /// The set of these positions, without those beyond the roster.
    #[must_use]
    pub fn of(roster: u32, positions: impl IntoIterator<Item = u32>) -> RosterSet {
        let mut set = RosterSet::empty(roster);
        positions.into_iter().for_each(|position| {
            set.insert(position);
        });
        set
    }

    /// The number of controllers in the roster, in the set or not.
    #[must_use]
    pub fn roster(&self) -> u32 {
        self.roster
    }

    /// Adds a position. Returns false if the roster has no such position.
    pub fn insert(&mut self, position: u32) -> bool {
        if position >= self.roster {
            return false;
        }
        if let Some(block) = self.blocks.get_mut(position as usize / 64) {
            *block |= 1 << (position % 64);
        }
        true
    }

    /// Removes a position.
    pub fn remove(&mut self, position: u32) {
        if let Some(block) = self.blocks.get_mut(position as usize / 64) {
            *block &= !(1 << (position % 64));
        }
    }

    /// Whether the position is in the set.
    #[must_use]
    pub fn contains(&self, position: u32) -> bool {
        self.blocks
            .get(position as usize / 64)
            .is_some_and(|block| block >> (position % 64) & 1 == 1)
    }

    /// The number of controllers in the set.
    #[must_use]
    pub fn count(&self) -> usize {
        self.blocks.iter().map(|block| block.count_ones() as usize).sum()
    }

    /// The positions, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.roster).step_by(64).zip(&self.blocks).flat_map(|(base, block)| {
            let mut left = *block;
            std::iter::from_fn(move || {
                let lowest = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(base + lowest)
            })
        })
    }

    /// The number of members before a position.
    #[must_use]
    pub fn before(&self, position: u32) -> usize {
        let (whole, part) = (position as usize / 64, position % 64);
        let ones = |block: &u64| block.count_ones() as usize;
        let last = self.blocks.get(whole).map_or(0, |block| ones(&(block & ((1 << part) - 1))));
        self.blocks.iter().take(whole).map(ones).sum::<usize>() + last
    }

    /// Whether every member is also in `other`, over a roster of the same size.
    #[must_use]
    pub fn is_subset_of(&self, other: &RosterSet) -> bool {
        self.roster == other.roster
            && self.blocks.iter().zip(&other.blocks).all(|(mine, theirs)| mine & !theirs == 0)
    }
}

impl From<RosterSet> for EncodedSet {
    fn from(set: RosterSet) -> EncodedSet {
        let mut bytes: Vec<u8> = set.blocks.iter().flat_map(|block| block.to_le_bytes()).collect();
        bytes.truncate((set.roster as usize).div_ceil(8));
        EncodedSet { roster: set.roster, bytes }
    }
}

impl TryFrom<EncodedSet> for RosterSet {
    type Error = RosterSetError;

    fn try_from(encoded: EncodedSet) -> Result<RosterSet, RosterSetError> {
        let (roster, expected) = (encoded.roster, (encoded.roster as usize).div_ceil(8));
        // Compared before any allocation, so a hostile size costs nothing.
        if encoded.bytes.len() != expected {
            return Err(RosterSetError::Length { roster, expected, found: encoded.bytes.len() });
        }
        let mut set = RosterSet::empty(roster);
        for (block, bytes) in set.blocks.iter_mut().zip(encoded.bytes.chunks(8)) {
            let mut word = [0; 8];
            word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            *block = u64::from_le_bytes(word);
        }
        let stray =
            set.blocks.last().is_some_and(|last| roster % 64 != 0 && last >> (roster % 64) != 0);
        if stray { Err(RosterSetError::BeyondRoster { roster }) } else { Ok(set) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_round_trips_in_its_one_form() {
        for roster in [0, 1, 7, 8, 63, 64, 65, 200] {
            let set = RosterSet::of(roster, (0..roster).filter(|p| p % 3 == 1));
            let bytes = postcard::to_allocvec(&set).unwrap();
            assert_eq!(postcard::from_bytes::<RosterSet>(&bytes).unwrap(), set);
            let members: Vec<u32> = (0..roster).filter(|p| p % 3 == 1).collect();
            assert_eq!((set.count(), set.iter().collect()), (members.len(), members));
            for (rank, position) in set.iter().enumerate() {
                assert_eq!((set.before(position), set.before(position + 1)), (rank, rank + 1));
            }
            assert!(set.is_subset_of(&RosterSet::full(roster)));
        }
    }

    #[test]
    fn other_forms_are_rejected() {
        let stray = EncodedSet { roster: 9, bytes: vec![0, 0b10] };
        assert_eq!(RosterSet::try_from(stray), Err(RosterSetError::BeyondRoster { roster: 9 }));
        let long = EncodedSet { roster: 8, bytes: vec![0, 0] };
        assert_eq!(
            RosterSet::try_from(long),
            Err(RosterSetError::Length { roster: 8, expected: 1, found: 2 })
        );
        let huge = EncodedSet { roster: u32::MAX, bytes: vec![] };
        assert!(matches!(RosterSet::try_from(huge), Err(RosterSetError::Length { .. })));
        assert!(postcard::from_bytes::<RosterSet>(&[9, 2, 0, 2]).is_err());
    }

    #[test]
    fn positions_beyond_the_roster_are_never_members() {
        let mut set = RosterSet::empty(3);
        assert!(!set.insert(3));
        assert!(!set.contains(3) && !set.contains(u32::MAX));
        assert_eq!(set.count(), 0);
        assert!(!RosterSet::empty(2).is_subset_of(&RosterSet::full(3)));
    }
}
