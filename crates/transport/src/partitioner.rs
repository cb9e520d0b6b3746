//! Assigns keys to partitions as Kafka's producers do, so that records of a key written here
//! and by any Kafka client are in the same partition.

/// The partition of `key` among `partitions` (at least 1): Kafka's default,
/// murmur2 with the sign bit cleared.
#[must_use]
pub fn partition_for_key(key: &[u8], partitions: u32) -> u32 {
    (murmur2(key) & 0x7fff_ffff) % partitions.max(1)
}

/// Murmur2, 32 bits, with Kafka's seed.
fn murmur2(key: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    // Kafka hashes the length as a Java int.
    let length = u32::try_from(key.len()).unwrap_or(u32::MAX);
    let mut hash = 0x9747_b28c ^ length;
    let (words, rest) = key.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k = (k ^ (k >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0, |tail, &byte| (tail << 8) | u32::from(byte));
        hash = (hash ^ tail).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Kafka's own `UtilsTest.testMurmur2`.
    #[test]
    fn partitions_agree_with_kafka() {
        let cases: [(&str, i32); 6] = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ];
        for (key, want) in cases {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), want, "{key}");
        }
        assert_eq!(
            partition_for_key(b"21", 4),
            ((-973_932_308i32).cast_unsigned() & 0x7fff_ffff) % 4
        );
        assert_eq!(partition_for_key(b"any", 0), 0);
    }
}
