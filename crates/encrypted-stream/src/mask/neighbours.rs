//! A sparse graph that lasts as long as a roster (after Bell and others, CCS 2020).
//! Each controller picks m others with its own secret. It masks with them and with
//! the controllers that picked it. So a plan costs it about 2m key agreements,
//! however many controllers there are.
//!
//! Nobody else influences an honest controller's picks, and only these hide its
//! token. A controller that picks it may be a colluder, and the service may lie about
//! who picked it. So a controller counts only its own picks.

use crate::mask::pairs::PairKeys;
use crate::mask::strategy::Strategy;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::prf::Prf;
use alpheus_crypto::secret::Secret;
use alpheus_policy::ids::ControllerId;

/// Masks with the picks that the pair keys were made for, in every round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Neighbours;

impl Strategy for Neighbours {
    fn neighbours(&mut self, pairs: &PairKeys, _window: u64, into: &mut Vec<u32>) {
        into.clear();
        into.extend(pairs.picks());
    }
}

/// The digest that a controller's picks depend on besides its secret: the roster, and
/// the number of picks.
#[must_use]
pub fn roster_digest(roster: &[ControllerId], picks: u32) -> Digest {
    let ids: Vec<u8> = roster.iter().flat_map(|id| id.0).collect();
    labelled_hash(labels::MASK_ROSTER, &[&picks.to_be_bytes(), &ids])
}

/// The `picks` positions, ascending, that the controller with this secret picks among
/// the others in a roster of `controllers`. They are uniform to within 2^-40 and the
/// same on every call. There are at most as many as other controllers.
///
/// # Privacy
/// The service learns the picks, but nothing about the secret from them.
#[must_use]
pub fn pick(
    secret: &Secret<32>,
    roster: &Digest,
    position: u32,
    controllers: u32,
    picks: u32,
) -> Vec<u32> {
    let others = controllers.saturating_sub(1);
    let key = Prf::new(&derive(secret.expose(), labels::MASK_PICKS, &[roster.as_bytes()]));
    let (mut picked, wanted) = (std::collections::BTreeSet::new(), picks.min(others) as usize);
    let mut block = 0;
    while picked.len() < wanted {
        // Scales the high half to the number of others.
        let high = key.block(block) >> 64;
        let slot = u32::try_from((high * u128::from(others)) >> 64).unwrap_or(u32::MAX);
        picked.insert(slot + u32::from(slot >= position));
        block += 1;
    }
    picked.into_iter().collect()
}

/// Whether these are valid picks of the controller at a position.
#[must_use]
pub fn are_picks(picks: &[u32], count: u32, position: u32, controllers: u32) -> bool {
    picks.len() == count as usize
        && picks.windows(2).all(|pair| matches!(pair, [a, b] if a < b))
        && picks.last().is_none_or(|last| *last < controllers)
        && picks.binary_search(&position).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(secret: u8, roster: u8, position: u32) -> Vec<u32> {
        pick(&Secret::from_bytes([secret; 32]), &Digest([roster; 32]), position, 200, 20)
    }

    #[test]
    fn picks_are_other_positions_and_depend_only_on_secret_and_roster() {
        for position in [0, 7, 199] {
            let own = picks(1, 2, position);
            assert!(are_picks(&own, 20, position, 200));
            assert_eq!(own, picks(1, 2, position));
            assert_ne!(own, picks(2, 2, position));
            assert_ne!(own, picks(1, 3, position));
        }
        let all = pick(&Secret::from_bytes([1; 32]), &Digest([2; 32]), 3, 9, 99);
        assert_eq!(all, [0, 1, 2, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn every_other_controller_is_picked_equally_often() {
        let mut counts = [0_u32; 200];
        for secret in 0..=255 {
            picks(secret, 2, 50).iter().for_each(|pick| counts[*pick as usize] += 1);
        }
        assert_eq!(counts[50], 0);
        // 25.7 each, with a deviation of 4.8: five deviations to either side.
        let usual = |at: usize| at == 50 || (2..=50).contains(&counts[at]);
        assert!((0..200).all(usual), "{counts:?}");
    }

    #[test]
    fn invalid_picks_are_detected() {
        assert!(are_picks(&[0, 2, 4], 3, 1, 5));
        for (picks, position) in
            [(&[0, 2][..], 1), (&[0, 0, 2], 1), (&[2, 0, 3], 1), (&[0, 1, 2], 1), (&[0, 2, 5], 1)]
        {
            assert!(!are_picks(picks, 3, position, 5), "{picks:?}");
        }
    }

    #[test]
    fn roster_digests_depend_on_members_and_number_of_picks() {
        let id = |byte| ControllerId([byte; 32]);
        let digests = [
            roster_digest(&[id(1), id(2)], 3),
            roster_digest(&[id(1), id(3)], 3),
            roster_digest(&[id(1), id(2)], 4),
        ];
        assert!(digests[0] != digests[1] && digests[0] != digests[2]);
    }
}
