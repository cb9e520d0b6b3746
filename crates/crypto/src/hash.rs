//! Labelled SHA-256 digests, and the public link hash of window sums.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256, Sha512};
use std::fmt;

/// A SHA-256 digest of labelled parts. Public.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// SHA-256 over a label and parts. Each is preceded by its length as eight
/// big-endian bytes, so that different lists of parts have different inputs.
///
/// `policy::ids::labelled_hash` uses the same format.
#[must_use]
pub fn labelled_hash(label: &str, parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    for part in std::iter::once(label.as_bytes()).chain(parts.iter().copied()) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    Digest(hash.finalize().into())
}

/// SHA-512 over the same input as [`labelled_hash`]. 64 bytes are enough to reduce modulo a group
/// order.
#[must_use]
pub fn wide_hash(label: &str, parts: &[&[u8]]) -> [u8; 64] {
    let mut hash = Sha512::new();
    for part in std::iter::once(label.as_bytes()).chain(parts.iter().copied()) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// The public link hash `h(session, t)`. Its telescoping sum shows whether a tick
/// holds every event exactly once (see `encrypted-stream`, window sums).
///
/// It detects accidents, not attacks. The service computes it itself, from
/// timestamps that it sees anyway. The check word under the controller's keys
/// catches a service that lies about its sums. So a cheap mixer is enough here,
/// on a path that has some tens of nanoseconds per event:
///
/// - For one session it is a *bijection* of `t`. A single missing or duplicate
///   link therefore always shows.
/// - It is far from linear. The links of evenly spaced events differ, and a gap
///   cancels a duplicate elsewhere only with probability 2^-64.
///
/// `h(s, t) = mix(mix(s ⊕ c) ⊕ t)` with `mix` the 64-bit finaliser by Stafford
/// ("Mix13", as in SplitMix64) and `c` the golden-ratio constant.
#[must_use]
#[inline]
pub fn link(session: u64, t: u64) -> u64 {
    mix(mix(session ^ 0x9e37_79b9_7f4a_7c15) ^ t)
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn different_lists_of_parts_have_different_digests() {
        let digests: HashSet<Digest> = [
            labelled_hash("a", &[b"bc"]),
            labelled_hash("ab", &[b"c"]),
            labelled_hash("a", &[b"b", b"c"]),
            labelled_hash("a", &[b"bc", b""]),
            labelled_hash("a", &[]),
        ]
        .into();
        assert_eq!(digests.len(), 5);
    }

    #[test]
    fn links_of_evenly_spaced_events_differ() {
        for step in [1, 500_000, 1_000_000, 1 << 32] {
            let link_of = |i: u64| {
                link(7, 1_700_000_000_000_000 + (i + 1) * step)
                    .wrapping_sub(link(7, 1_700_000_000_000_000 + i * step))
            };
            let links: HashSet<u64> = (0..10_000).map(link_of).collect();
            assert_eq!(links.len(), 10_000);
        }
    }

    #[test]
    fn every_input_bit_flips_about_half_of_the_output() {
        for bit in 0..64 {
            let flips: u32 = (0..256)
                .map(|i| (link(i, 1_700 * i) ^ link(i, (1_700 * i) ^ (1 << bit))).count_ones())
                .sum();
            let session: u32 = (0..256)
                .map(|i| (link(i, 1_700 * i) ^ link(i ^ (1 << bit), 1_700 * i)).count_ones())
                .sum();
            for flipped in [flips, session] {
                assert!((256 * 28..256 * 36).contains(&flipped), "bit {bit}: {flipped}");
            }
        }
    }

    proptest! {
        #[test]
        fn link_is_injective_in_time(session: u64, a in 0u64..1 << 52, b in 0u64..1 << 52) {
            prop_assert_eq!(link(session, a) == link(session, b), a == b);
        }
    }
}
