//! From released rows to exact sums.

use super::DecodeError;
use alpheus_policy::select::{ReleasePlan, SumLocation};

/// The exact sums of a plan's cells.
///
/// # Errors
///
/// If the last row, the check word, is not zero; all rows are then meaningless.
/// Or if the plan does not fit its own rows.
pub fn cells(plan: &ReleasePlan, rows: &[u64]) -> Result<Vec<i128>, DecodeError> {
    if rows.last() != Some(&0) {
        return Err(DecodeError::CheckWordNotZero);
    }
    plan.cells.iter().enumerate().map(|(cell, place)| read(*place, cell, rows)).collect()
}

/// Rows from which [`cells`] reads these sums, with a check word of zero; `None` if there are none.
#[must_use]
pub fn rows_of(plan: &ReleasePlan, outputs: usize, sums: &[i128]) -> Option<Vec<u64>> {
    let mut rows = vec![0; outputs];
    let mut set = |row: u16, word: u64| rows.get_mut(usize::from(row)).map(|at| *at = word);
    for (place, sum) in plan.cells.iter().zip(sums) {
        let word = i64::try_from(*sum).ok().map(i64::cast_unsigned);
        match *place {
            SumLocation::Whole { row } | SumLocation::Digit { row, .. } => set(row, word?)?,
            SumLocation::Limbs { low, high } => {
                let upper = i64::try_from(*sum >> 32).ok()?;
                set(low, u64::try_from(*sum & 0xffff_ffff).ok()?)?;
                set(high, upper.cast_unsigned())?;
            }
        }
    }
    (cells(plan, &rows).as_deref() == Ok(sums)).then_some(rows)
}

fn read(place: SumLocation, cell: usize, rows: &[u64]) -> Result<i128, DecodeError> {
    let row = |row: u16| {
        let missing = DecodeError::MissingRow { row, found: rows.len() };
        rows.get(usize::from(row)).copied().ok_or(missing)
    };
    match place {
        SumLocation::Whole { row: at } => Ok(i128::from(row(at)?.cast_signed())),
        SumLocation::Digit { row: at, bits, digit } => signed_digits(row(at)?, bits)
            .nth(usize::from(digit))
            .map(i128::from)
            .ok_or(DecodeError::BadDigit { cell }),
        SumLocation::Limbs { low, high } => {
            // The layout keeps the sum of low halves below 2^63. Reading it as signed
            // is also correct where noise makes it negative.
            let [low, high] = [low, high].map(|half| row(half).map(u64::cast_signed));
            Ok(i128::from(low?) + (i128::from(high?) << 32))
        }
    }
}

/// The signed digits of a word, lowest first. Only digits that fit whole are returned.
///
/// A word is `Σ d_i · 2^(bits·i)` modulo 2^64 with every `d_i` in
/// `−2^(bits−1)..2^(bits−1)`. The lowest digit is the word's low bits, sign-extended.
/// The remainder divided by `2^bits` is a word of the higher digits. So no digit
/// ever carries into its neighbour, whatever its sign.
pub fn signed_digits(word: u64, bits: u8) -> impl Iterator<Item = i64> {
    let digits = if (1..=64).contains(&bits) { 64 / u32::from(bits) } else { 0 };
    let mut rest = word.cast_signed();
    (0..digits).map(move |_| {
        let unused = 64 - u32::from(bits);
        let digit = (rest << unused) >> unused;
        rest = rest.wrapping_sub(digit).checked_shr(bits.into()).unwrap_or(0);
        digit
    })
}
