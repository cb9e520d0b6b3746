//! Reads and writes residues in a packed answer, independently of the crate.

const BITS: usize = 51;

/// Word number `at`.
pub(crate) fn get(bytes: &[u8], at: usize) -> u64 {
    (0..BITS).fold(0, |word, bit| {
        let place = at * BITS + bit;
        word | u64::from(bytes[place / 8] >> (place % 8) & 1) << bit
    })
}

pub(crate) fn set(bytes: &mut [u8], at: usize, word: u64) {
    for bit in 0..BITS {
        let (place, value) = (at * BITS + bit, u8::from(word >> bit & 1 == 1));
        bytes[place / 8] = bytes[place / 8] & !(1 << (place % 8)) | value << (place % 8);
    }
}

/// The 64-bit words of a tag.
pub(crate) fn tag(bytes: &[u8], from: usize) -> Vec<u64> {
    bytes[from..].as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}
