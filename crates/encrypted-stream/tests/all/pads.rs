//! Pads never repeat: not within an event, nor across events, streams, schema
//! versions, sessions, days and purposes, nor after a restart from an old backup.
//! The public prototype fails each of these tests.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::frame::FrameView;
use alpheus_encrypted_stream::keys::{MasterSecret, StreamKeys};
use alpheus_encrypted_stream::producer::{EventVector, Producer, Start};
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use std::collections::HashSet;
use std::convert::Infallible;

const DAY: u64 = 86_400_000_000;
const WORDS: u16 = 21;

fn master(seed: u8) -> MasterSecret {
    MasterSecret::new(Secret::from_bytes([seed; 32]))
}

/// Varies every coordinate that a pad depends on; all words must differ. So few
/// 64-bit words do not collide by chance.
#[test]
fn all_key_words_differ() {
    let (mut seen, mut made) = (HashSet::new(), 0);
    let sessions = [0, 1, 1 << 51, 1 << 52, 1 << 63, u64::MAX];
    let times = [0, 1, 4095, 4096, DAY - 1, DAY, 2 * DAY - 1, (1 << 51) + 1, (1 << 52) - 1];
    for (seed, stream, schema) in [(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (1, 3, 0), (1, 0, 3)]
    {
        let mut keys =
            StreamKeys::new(&master(seed), StreamId([stream; 16]), SchemaId([schema; 32]));
        for session in sessions {
            for t in times {
                let mut pad = vec![0; usize::from(WORDS)];
                keys.key_vector(session, Timestamp(t), &mut pad).unwrap();
                made += pad.len();
                seen.extend(pad);
            }
        }
    }
    assert_eq!(seen.len(), made);
}

/// The largest vector of one time does not overlap the next time's, and a larger one
/// is rejected.
#[test]
fn the_largest_vectors_of_neighbouring_times_do_not_overlap() {
    let mut keys = StreamKeys::new(&master(1), StreamId([1; 16]), SchemaId([1; 32]));
    let mut seen = HashSet::new();
    for t in [99, 100, 101] {
        let mut pad = vec![0; 8192];
        keys.key_vector(5, Timestamp(t), &mut pad).unwrap();
        seen.extend(pad);
    }
    assert_eq!(seen.len(), 3 * 8192);
    assert!(keys.key_vector(5, Timestamp(1), &mut vec![0; 8193]).is_err());
    assert!(keys.key_word(5, Timestamp(1), 8192).is_err());
    assert!(keys.key_vector(5, Timestamp(1 << 52), &mut [0]).is_err());
}

/// Keys of one secret, stream and schema for different purposes are independent.
#[test]
fn purposes_have_different_keys() {
    let (master, parts) = ([1; 32], [[1u8; 16].as_slice(), &[2; 32], &0u64.to_be_bytes()]);
    let purposes = [labels::STREAM_DAY, labels::STREAM_BORDER, labels::BORDER, labels::MASK_PAIR];
    let keys: HashSet<[u8; 32]> =
        purposes.iter().map(|label| *derive::<32>(&master, label, &parts).expose()).collect();
    assert_eq!(keys.len(), purposes.len());
}

/// The frames of a fixed run of events.
fn run(rng: &mut ChaCha20Rng) -> Vec<Vec<u8>> {
    let producer =
        Producer::new(&master(1), StreamId([1; 16]), SchemaId([1; 32]), Span(1000), WORDS);
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
    let now = Timestamp(5_000_000);
    let mut session = producer.unwrap().open(Start::Again { now }, now, rng, sink).unwrap();
    let encode = |_: &mut EventVector<'_>| Ok::<(), Infallible>(());
    for offset in [1, 2, 3, 500, 1001, 2500] {
        session.event(Timestamp(now.0 + offset), encode, sink).unwrap();
    }
    session.close(Timestamp(now.0 + 5000), sink).unwrap();
    frames
}

fn ciphertext_words(frames: &[Vec<u8>]) -> Vec<u64> {
    let words = frames.iter().filter_map(|bytes| FrameView::parse(bytes).unwrap().words().copied());
    words.flat_map(|words| words.iter().collect::<Vec<_>>()).collect()
}

/// A producer whose disk and clock were restored from an old backup sends the same
/// events at the same times. No ciphertext word repeats, and no two differ by the
/// plaintexts' difference.
#[test]
fn a_restored_backup_reuses_no_pad() {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let words: Vec<u64> = (0..20).flat_map(|_| ciphertext_words(&run(&mut rng))).collect();
    let distinct: HashSet<u64> = words.iter().copied().collect();
    assert_eq!(distinct.len(), words.len());
}

/// The elements of one event have separate pads. Differences of ciphertext words do not
/// reveal which element of a one-hot vector is set.
#[test]
fn differences_within_an_event_are_not_those_of_the_plaintext() {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    for frame in run(&mut rng) {
        let words = ciphertext_words(&[frame]);
        let differences: HashSet<u64> =
            words.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        assert_eq!(differences.len(), words.len().saturating_sub(1));
        assert!(!differences.contains(&0) && !differences.contains(&1));
    }
}

/// The key of a day opens that day and no other.
#[test]
fn a_day_key_opens_its_day_alone() {
    let mut keys = StreamKeys::new(&master(1), StreamId([1; 16]), SchemaId([1; 32]));
    let day = keys.day_key(3);
    let (mut ours, mut theirs) = ([0; 4], [0; 4]);
    for t in [3 * DAY, 4 * DAY - 1] {
        day.key_vector(7, Timestamp(t), &mut ours).unwrap();
        keys.key_vector(7, Timestamp(t), &mut theirs).unwrap();
        assert_eq!(ours, theirs);
    }
    assert!(day.key_vector(7, Timestamp(3 * DAY - 1), &mut ours).is_err());
    assert!(day.key_vector(7, Timestamp(4 * DAY), &mut ours).is_err());
}
