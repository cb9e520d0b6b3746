//! Residues on the wire: 51 bits each, lowest first, limb after limb.

use crate::ring::Ring;

/// Bits of a residue on the wire.
const BITS: usize = 51;
/// Bytes of eight residues.
const EIGHT: usize = BITS;

/// Bytes of one polynomial.
pub(crate) fn length(ring: &Ring) -> usize {
    ring.words() / 8 * EIGHT
}

/// Appends a polynomial.
pub(crate) fn pack(words: &[u64], out: &mut Vec<u8>) {
    out.reserve(words.len() / 8 * EIGHT);
    for eight in words.as_chunks::<8>().0 {
        let mut bits = [0; EIGHT.div_ceil(8)];
        for (k, word) in eight.iter().enumerate() {
            let (at, shift) = (k * BITS / 64, k * BITS % 64);
            bits[at] |= word << shift;
            if shift > 64 - BITS {
                bits[at + 1] |= word >> (64 - shift);
            }
        }
        out.extend_from_slice(&bits.map(u64::to_le_bytes).as_flattened()[..EIGHT]);
    }
}

/// Reads a polynomial. `None` if the length is wrong or a residue is not canonical.
pub(crate) fn unpack(ring: &Ring, bytes: &[u8]) -> Option<Vec<u64>> {
    let mut words = Vec::with_capacity(ring.words());
    unpack_to(ring, bytes, &mut words).then_some(words)
}

/// The same into an existing vector. Returns false instead of `None`.
pub(crate) fn unpack_to(ring: &Ring, bytes: &[u8], words: &mut Vec<u64>) -> bool {
    words.clear();
    if bytes.len() != length(ring) {
        return false;
    }
    for bytes in bytes.as_chunks::<EIGHT>().0 {
        words.extend_from_slice(&std::array::from_fn::<_, 8, _>(|k| {
            // The eight bytes that hold the word. The last word ends with its bytes.
            let from = (k * BITS / 8).min(EIGHT - 8);
            let mut window = [0; 8];
            window.copy_from_slice(&bytes[from..from + 8]);
            u64::from_le_bytes(window) >> (k * BITS - 8 * from) & ((1 << BITS) - 1)
        }));
    }
    let mut limbs = words.chunks_exact(ring.degree()).zip(&ring.q);
    // No early exit within a limb, so that the loop vectorises.
    limbs.all(|(limb, ntt)| limb.iter().fold(true, |all, word| all & (*word < ntt.prime.p)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Set;

    #[test]
    fn packed_words_round_trip_and_non_canonical_ones_are_rejected() {
        let ring = Set::L128.ring();
        let p = ring.spec.q[1];
        let words: Vec<u64> =
            (0..ring.words() as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % p).collect();
        let mut bytes = Vec::new();
        pack(&words, &mut bytes);
        assert_eq!(bytes.len(), 4096 * 2 * 51 / 8);
        assert_eq!(unpack(ring, &bytes), Some(words.clone()));
        assert_eq!(unpack(ring, &bytes[1..]), None);
        for (at, wrong) in [(0, ring.spec.q[0]), (4095, (1 << 51) - 1), (4096, p), (8191, p + 1)] {
            let (mut words, mut bytes) = (words.clone(), Vec::new());
            words[at] = wrong;
            pack(&words, &mut bytes);
            assert_eq!(unpack(ring, &bytes), None, "word {at}");
        }
    }

    /// Each bit of each of eight words with each bit of the next one, and the largest residue in each: both come
    /// back, and no other word has any of it.
    #[test]
    fn no_bit_of_a_word_reaches_another() {
        let ring = Set::L128.ring();
        let degree = ring.degree();
        let most = |word: usize| ring.q[word / degree].prime.p - 1;
        let words = ring.words();
        let check = |set: &[(usize, u64)]| {
            let mut words = vec![0; words];
            set.iter().for_each(|(word, value)| words[*word] |= value);
            let mut bytes = Vec::new();
            pack(&words, &mut bytes);
            assert_eq!(unpack(ring, &bytes).as_ref(), Some(&words), "{set:?}");
        };
        let all: Vec<(usize, u64)> = (0..8)
            .flat_map(|word| (0..BITS - 1).map(move |bit| (word, 1 << bit)))
            .chain((0..8).map(|word| (word, most(word))))
            .collect();
        for (at, one) in all.iter().enumerate() {
            all[at..]
                .iter()
                .filter(|other| other.0 == one.0 + 1)
                .for_each(|other| check(&[*one, *other]));
        }
        for at in (0..8).map(|word| words - 8 + word) {
            check(&[(at, most(at))]);
        }
    }
}
