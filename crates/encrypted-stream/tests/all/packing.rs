//! Digits and limbs of a word, over every case of small sizes: what is packed is read, and no digit
//! affects another one.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test's way to fail, and numbers it knows"
)]

use alpheus_encrypted_stream::decode::{cells, signed_digits};
use alpheus_policy::select::{ReleasePlan, SumLocation};

/// The least and the largest number of a digit.
fn ends(bits: u8) -> (i64, i64) {
    (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits))
}

/// How sums of digits add up in a word.
fn packed(digits: &[i64], bits: u8) -> u64 {
    let placed = digits.iter().enumerate();
    let shifted = placed.map(|(at, digit)| (*digit as u64) << (at * usize::from(bits)));
    shifted.fold(0, u64::wrapping_add)
}

/// Every word of 16 bits, at the bottom and at the top of a word: its digits are within their range, and
/// add up to it again.
#[test]
fn every_short_word_is_the_sum_of_its_digits() {
    for bits in 1..=64_u8 {
        let (least, most) = ends(bits);
        let used = 64 / u32::from(bits) * u32::from(bits);
        let mask = u64::MAX >> (64 - used);
        for short in 0..=u64::from(u16::MAX) {
            for word in [short, short << 48, short << (used - 16.min(used)), !short] {
                let digits: Vec<i64> = signed_digits(word, bits).collect();
                assert_eq!(digits.len() as u32, used / u32::from(bits));
                assert!(
                    digits.iter().all(|digit| (least..=most).contains(digit)),
                    "{word:x} {bits}"
                );
                assert_eq!(packed(&digits, bits) & mask, word & mask, "{word:x} {bits}");
            }
        }
    }
}

/// Every size of digit, every three of its places, and the extremes of the range in each: read as they
/// were packed, and all other digits stay zero.
#[test]
fn no_digit_at_its_ends_carries_into_another() {
    for bits in 2..=64_u8 {
        let per_word = 64 / usize::from(bits);
        let (least, most) = ends(bits);
        let mut sums = vec![0; per_word];
        let check = |sums: &[i64]| {
            let word = packed(sums, bits);
            assert!(signed_digits(word, bits).eq(sums.iter().copied()), "{sums:?} {bits}");
        };
        for first in 0..per_word {
            for second in first..per_word {
                for third in second..per_word {
                    for of in 0..125 {
                        let extremes = [least, -1, 0, 1, most];
                        for (place, step) in [(first, 1), (second, 5), (third, 25)] {
                            sums[place] = extremes[of / step % 5];
                        }
                        check(&sums);
                    }
                    [first, second, third].iter().for_each(|place| sums[*place] = 0);
                }
            }
        }
    }
}

/// Numbers at and beside each power of two, of both signs.
fn edges() -> Vec<i64> {
    let powers = (0..63).map(|power| 1_i64 << power);
    let beside =
        powers.flat_map(|power| [power - 1, power, power + 1, -power - 1, -power, 1 - power]);
    let mut all: Vec<i64> = beside.chain([i64::MIN, i64::MAX]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Two limbs of any sums, each of which may be as large as a word: their cell is exact.
#[test]
fn limbs_of_any_sums_are_exact() {
    let plan = ReleasePlan { cells: vec![SumLocation::Limbs { low: 0, high: 1 }], items: vec![] };
    for low in edges() {
        for high in edges() {
            let read = cells(&plan, &[low as u64, high as u64, 0]).unwrap();
            assert_eq!(read, [i128::from(low) + (i128::from(high) << 32)], "{low} {high}");
        }
    }
}
