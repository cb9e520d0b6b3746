//! How the numbers of a column are written.

use crate::number::{Decimal, Marks};
use std::collections::BTreeMap;

/// How the numbers of a column are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberForms {
    /// Those with a point before exactly three digits, which may be thousands.
    pub threes: u64,
    /// Those with a point that can only stand before decimals, and of these, those that may be
    /// times of day such as `8.30`.
    pub points: u64,
    pub clocks: u64,
    /// Integers of four digits and more.
    pub long: u64,
    /// Integers of three digits and more that begin with 0.
    pub padded: u64,
    /// Integers of seven digits and more that begin with a plus.
    pub plus: u64,
    /// Those below zero.
    pub negative: u64,
    /// Those with an exponent.
    pub exponents: u64,
    /// What stands around them, such as `$`, with the count.
    pub around: BTreeMap<String, u64>,
    /// Those other than zero with nothing around them.
    pub bare: u64,
}

impl NumberForms {
    /// The only sign around numbers, if nearly all have it.
    pub(crate) fn unit(&self) -> Option<String> {
        let (sign, count) = self.around.iter().next().filter(|_| self.around.len() == 1)?;
        (*count > self.bare * 9).then(|| sign.clone())
    }

    /// Counts a number with a point.
    pub(crate) fn point(&mut self, plain: &str) {
        let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(plain);
        let (whole, behind) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = behind.bytes().all(|byte| byte.is_ascii_digit());
        if (1..=3).contains(&whole.len()) && !whole.starts_with('0') && behind.len() == 3 && digits
        {
            self.threes += 1;
            return;
        }
        self.points += 1;
        let below = |text: &str, most: u8| text.parse::<u8>().is_ok_and(|n| n < most);
        let clock = behind.len() == 2 && below(whole, 24) && below(behind, 60);
        self.clocks += u64::from(clock);
    }

    /// Counts what stands around a number.
    pub(crate) fn surrounded(&mut self, cell: &str, value: Decimal, marks: &Marks) {
        let of_number = |c: char| {
            c.is_ascii_digit() || c.is_whitespace() || "+-\u{2212}.,'\u{2019}()".contains(c)
        };
        let around = cell.trim_matches(of_number);
        if !marks.around.iter().any(|known| known == around) {
            self.bare += u64::from(value != Decimal::ZERO);
        } else if let Some(count) = self.around.get_mut(around) {
            *count += 1;
        } else {
            self.around.insert(around.to_owned(), 1);
        }
    }
}
