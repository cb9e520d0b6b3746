//! Rows: what is recovered, what is lost, and how often.

use alpheus_anonymous_board::row::{Format, Row};
use chacha20::{ChaCha20Rng, rand_core::Rng, rand_core::SeedableRng};
use proptest::prelude::*;

const PLAIN: Format = Format { max_message: 144, recovery: false };

fn sum<'a>(rows: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut sum: Vec<u8> = Vec::new();
    for row in rows {
        sum.resize(row.len(), 0);
        sum.iter_mut().zip(row).for_each(|(a, b)| *a ^= b);
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn one_or_two_messages_are_recovered(first in prop::collection::vec(any::<u8>(), 0..=160), second in prop::collection::vec(any::<u8>(), 0..=160), equal: bool, seed: [u8; 32]) {
        let rng = &mut ChaCha20Rng::from_seed(seed);
        let second = if equal { first.clone() } else { second };
        let format = Format::RECOVERED;
        let rows = [&first, &second].map(|m| format.encode(m, rng).unwrap());
        prop_assert_eq!(format.decode(&rows[0]), Row::One(first.clone()));
        let Row::Two(mut found) = format.decode(&sum(rows.iter().map(|r| r.as_slice()))) else {
            return Err(TestCaseError::fail("two were not recovered"));
        };
        let mut wanted = [first, second];
        found.sort();
        wanted.sort();
        prop_assert_eq!(found, wanted);
    }

    /// Without the check, about half of all triples would decode as two messages.
    #[test]
    fn three_messages_are_reported_lost(seed: [u8; 32]) {
        let rng = &mut ChaCha20Rng::from_seed(seed);
        let rows: Vec<_> = (0_u8..3).map(|i| Format::RECOVERED.encode(&[i; 9], rng).unwrap()).collect();
        prop_assert_eq!(Format::RECOVERED.decode(&sum(rows.iter().map(|r| r.as_slice()))), Row::Lost);
        let rows: Vec<_> = (0_u8..2).map(|_| PLAIN.encode(b"same", rng).unwrap()).collect();
        prop_assert_eq!(PLAIN.decode(&sum(rows.iter().map(|r| r.as_slice()))), Row::Lost);
    }

    #[test]
    fn decoding_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Format::RECOVERED.decode(&bytes);
        let _ = PLAIN.decode(&bytes);
    }
}

#[test]
fn a_long_message_is_rejected_with_both_lengths() {
    let rng = &mut ChaCha20Rng::from_seed([0; 32]);
    assert_eq!(
        Format::RECOVERED.encode(&[0; 161], rng).unwrap_err().to_string(),
        "the message has 161 bytes, but rows of this board hold 160; shorten it"
    );
    assert!(Format { max_message: 161, recovery: true }.shape(10).is_err());
    assert!(Format { max_message: 4097, recovery: false }.shape(10).is_err());
}

/// The fraction of `writers` messages that a table of `rows` rows delivers.
fn delivered(format: Format, writers: u32, rows: u32, seed: u8) -> f64 {
    let rng = &mut ChaCha20Rng::from_seed([seed; 32]);
    let width = format.shape(rows).unwrap().width();
    let mut table = vec![0; width * rows as usize];
    for writer in 0..writers {
        let row = format.encode(&writer.to_be_bytes(), rng).unwrap();
        let at = ((u64::from(rng.next_u32()) * u64::from(rows)) >> 32) as usize * width;
        table[at..at + width].iter_mut().zip(row.iter()).for_each(|(a, b)| *a ^= b);
    }
    let back = table.chunks(width).map(|row| match format.decode(row) {
        Row::One(_) => 1,
        Row::Two(_) => 2,
        Row::Empty | Row::Lost => 0,
    });
    f64::from(back.sum::<u32>()) / f64::from(writers)
}

/// e^(−w/r), and with recovery e^(−w/r)·(1 + w/r), at three loads (paper §III-B).
/// [`Format::rows_for`] returns the middle one, for 95 %.
#[test]
fn the_delivery_rate_matches_the_formula() {
    let writers = 2_000_u32;
    for format in [Format::RECOVERED, PLAIN] {
        let usual = format.rows_for(writers);
        for rows in [usual / 2, usual, usual * 2] {
            let load = f64::from(writers) / f64::from(rows);
            let expected = (-load).exp() * if format.recovery { 1.0 + load } else { 1.0 };
            let found = delivered(format, writers, rows, 3);
            // Four standard deviations, for losses that occur in twos and threes.
            let bound = 4.0 * (3.0 * expected * (1.0 - expected) / f64::from(writers)).sqrt();
            assert!((found - expected).abs() < bound, "{rows} rows: {found} for {expected}");
            if rows == usual {
                assert!((expected - 0.95).abs() < 0.0005, "{expected}");
            }
        }
    }
}
