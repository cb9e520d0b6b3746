//! Numbers as people write them: decimal comma, thousands marks, signs around them. Exact.

use crate::decimal_mark::BOTH;
use num_bigint::BigInt;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Longest text that is taken for a number, in bytes.
const MAX_BYTES: usize = 48;
/// Most digits of a number.
const MAX_DIGITS: u32 = 30;
/// Most decimal places of a number.
const MAX_PLACES: u8 = 40;

/// How numbers are written in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Marks {
    /// What stands before the decimals: `.` or `,`, or both.
    #[serde(with = "crate::decimal_mark")]
    pub decimal: char,
    /// What stands between thousands, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thousands: Option<char>,
    /// What stands before or after a number and does not belong to it, such as `$` or `%`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub around: Vec<String>,
}

impl Default for Marks {
    fn default() -> Self {
        Marks { decimal: '.', thousands: None, around: Vec::new() }
    }
}

impl Marks {
    /// The number with a decimal point and without marks, such as `-1234.5`; none if the text
    /// is not a number in this form.
    #[must_use]
    pub fn plain<'a>(&self, text: &'a str) -> Option<Cow<'a, str>> {
        let text = self.bare(text);
        if text.is_empty() || text.len() > MAX_BYTES {
            return None;
        }
        if self.decimal != ',' && is_plain(text) {
            return Some(Cow::Borrowed(text));
        }
        if !self.may_be(text) {
            return None;
        }
        let text = match minus_elsewhere(text) {
            Some(number) => format!("-{}", self.bare(number)),
            None => match text.strip_prefix(['-', '\u{2212}']) {
                // The sign may stand before a currency, as in -$5.
                Some(rest) if !self.around.is_empty() => format!("-{}", self.bare(rest)),
                _ => text.to_owned(),
            },
        };
        let text: String = text.chars().map(usual).collect();
        let joined = match self.thousands {
            Some(mark) => self.without(&text, usual(mark))?,
            None => text,
        };
        let plain = match self.decimal {
            '.' => joined,
            BOTH => joined.replacen(',', ".", 1),
            mark => pointed(&joined, mark)?,
        };
        is_plain(&plain).then_some(Cow::Owned(plain))
    }

    /// Whether a text has digits, and no sign that no number has, as times and words do.
    fn may_be(&self, text: &str) -> bool {
        let (mut digits, mut others) = (false, false);
        for byte in text.bytes() {
            digits |= byte.is_ascii_digit();
            others |= byte.is_ascii()
                && !byte.is_ascii_digit()
                && !b"+-.,'() eE".contains(&byte)
                && self.thousands != Some(char::from(byte));
        }
        digits && (!others || !self.around.is_empty())
    }

    /// The text without what stands around its number.
    fn bare<'a>(&self, text: &'a str) -> &'a str {
        let mut text = text.trim();
        for around in &self.around {
            // `m` is a unit behind a space, and in `m5` a part of a name.
            if let [letter] = around.as_bytes()
                && letter.is_ascii_alphabetic()
            {
                let inner = text.strip_suffix(around.as_str());
                text =
                    inner.filter(|own| own.ends_with(char::is_whitespace)).unwrap_or(text).trim();
                continue;
            }
            text = text.strip_prefix(around.as_str()).unwrap_or(text);
            text = text.strip_suffix(around.as_str()).unwrap_or(text).trim();
        }
        text
    }

    /// Takes the marks between thousands away: only where the groups have their digits.
    fn without(&self, text: &str, mark: char) -> Option<String> {
        if !text.contains(mark) {
            return Some(text.to_owned());
        }
        let (whole, rest) = match text.find(self.decimal) {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let good = is_grouped(whole.trim_start_matches(['+', '-']), mark);
        (good && !rest.contains(mark)).then(|| format!("{}{rest}", whole.replace(mark, "")))
    }
}

/// Whether digits are grouped by a mark: in threes, as in `1,234,567`, or as in India, where all
/// groups before the last have two, as in `12,34,567`.
#[must_use]
pub fn is_grouped(digits: &str, mark: char) -> bool {
    let groups: Vec<&str> = digits.split(mark).collect();
    let [first, middle @ .., last] = groups.as_slice() else { return false };
    let digits = groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_digit()));
    let all = |width: usize| middle.iter().all(|group| group.len() == width);
    let threes = (1..=3).contains(&first.len()) && all(3);
    let pairs = (1..=2).contains(&first.len()) && !middle.is_empty() && all(2);
    digits && last.len() == 3 && (threes || pairs)
}

/// The number in a text whose minus stands behind it, as in `35-`, or that has brackets in
/// place of a minus, as accounts do.
#[must_use]
pub fn minus_elsewhere(text: &str) -> Option<&str> {
    let bracketed = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let number = bracketed.or_else(|| text.strip_suffix(['-', '\u{2212}']))?.trim();
    let ends = number.ends_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
    let starts = !number.starts_with(['-', '+', '\u{2212}']);
    (starts && (ends || bracketed.is_some())).then_some(number)
}

/// The usual sign for one that looks like it: a minus, a space, an apostrophe.
fn usual(c: char) -> char {
    match c {
        '\u{2212}' => '-',
        '\u{a0}' | '\u{202f}' | '\u{2009}' => ' ',
        '\u{2019}' | '\u{b4}' => '\'',
        c => c,
    }
}

/// With a point in place of a mark. A text that has a point already is not in this form.
fn pointed(text: &str, mark: char) -> Option<String> {
    (!text.contains('.')).then(|| text.replacen(mark, ".", 1))
}

/// Whether a text is `[+-]digits[.digits][e[+-]digits]`, with a digit before the exponent.
fn is_plain(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (number, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let (mut digits, mut points) = (0, 0);
    for byte in number.bytes() {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'.' if points == 0 => points = 1,
            _ => return false,
        }
    }
    let whole = |text: &str| {
        let text = text.strip_prefix(['+', '-']).unwrap_or(text);
        (1..=3).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
    };
    digits > 0 && exponent.is_none_or(whole)
}

/// An exact decimal: `digits / 10^places`.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    /// The digits with their sign.
    pub digits: i128,
    /// Decimal places.
    pub places: u8,
}

impl Decimal {
    /// Reads a number without marks; none if it has too many digits or places.
    #[must_use]
    pub fn read(plain: &str) -> Option<Decimal> {
        if let Some(short) = short(plain) {
            return Some(short);
        }
        let (number, exponent) = match plain.find(['e', 'E']) {
            Some(at) => (&plain[..at], plain[at + 1..].parse::<i32>().ok()?),
            None => (plain, 0),
        };
        let (mut digits, mut places, mut seen, mut behind) = (0i128, 0i32, 0u32, false);
        for byte in number.bytes() {
            match byte {
                b'0'..=b'9' => {
                    seen += u32::from(seen > 0 || byte != b'0');
                    digits = digits.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                    places += i32::from(behind);
                }
                b'.' => behind = true,
                _ => {}
            }
        }
        if seen > MAX_DIGITS {
            return None;
        }
        let places = places - exponent;
        if places < 0 {
            let lift = u32::try_from(-places).ok().filter(|lift| seen + lift <= MAX_DIGITS)?;
            digits = digits.checked_mul(10i128.checked_pow(lift)?)?;
        }
        let places = u8::try_from(places.max(0)).ok().filter(|places| *places <= MAX_PLACES)?;
        Some(Decimal { digits: if number.starts_with('-') { -digits } else { digits }, places })
    }

    /// The number zero.
    pub const ZERO: Decimal = Decimal { digits: 0, places: 0 };

    /// `self − other`.
    #[must_use]
    pub fn minus(self, other: Decimal) -> Decimal {
        let places = self.places.max(other.places);
        let difference = self.lifted(places).saturating_sub(other.lifted(places));
        Decimal { digits: difference, places }
    }

    /// `self · factor`.
    #[must_use]
    pub fn times(self, factor: i128) -> Decimal {
        Decimal { digits: self.digits.saturating_mul(factor), places: self.places }
    }

    fn lifted(self, places: u8) -> i128 {
        let power = usize::from(places.saturating_sub(self.places));
        self.digits.saturating_mul(POWERS.get(power).copied().unwrap_or(i128::MAX))
    }
}

/// The powers of ten.
const POWERS: [i128; 39] = {
    let (mut powers, mut at) = ([1; 39], 1);
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// A number without exponent whose digits fit in 64 bits, as nearly all do.
fn short(plain: &str) -> Option<Decimal> {
    const MAX: usize = 18;
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(plain);
    if unsigned.len() > MAX {
        return None;
    }
    let (mut digits, mut places, mut behind) = (0i64, 0u8, false);
    for byte in unsigned.bytes() {
        match byte {
            b'0'..=b'9' => {
                digits = digits * 10 + i64::from(byte - b'0');
                places += u8::from(behind);
            }
            b'.' if !behind => behind = true,
            _ => return None,
        }
    }
    let digits = i128::from(if plain.starts_with('-') { -digits } else { digits });
    Some(Decimal { digits, places })
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.places == other.places {
            return self.digits.cmp(&other.digits);
        }
        let places = self.places.max(other.places);
        self.lifted(places).cmp(&other.lifted(places))
    }
}

/// An exact sum of decimals.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    /// The sum of the digits of numbers with so many places.
    by_places: Vec<(i128, BigInt)>,
}

impl Sum {
    /// Adds a number.
    pub fn add(&mut self, number: Decimal) {
        let places = usize::from(number.places);
        if self.by_places.len() <= places {
            self.by_places.resize(places + 1, (0, BigInt::ZERO));
        }
        let (small, large) = &mut self.by_places[places];
        match small.checked_add(number.digits) {
            Some(sum) => *small = sum,
            None => {
                *large += *small;
                *small = number.digits;
            }
        }
    }

    /// The sum in full, with the most places that any number had.
    #[must_use]
    pub fn text(&self) -> String {
        let places = self.by_places.len().saturating_sub(1);
        let mut total = BigInt::ZERO;
        for (small, large) in &self.by_places {
            total = total * 10 + small + large;
        }
        scaled_text(&total.to_string(), places)
    }
}

/// An integer's text with the point moved `places` to the left.
#[must_use]
pub fn scaled_text(integer: &str, places: usize) -> String {
    let (sign, digits) = match integer.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", integer),
    };
    if places == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (whole, behind) = digits.split_at(digits.len() - places);
    format!("{sign}{whole}.{behind}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(marks: &Marks, text: &str) -> Option<String> {
        marks.plain(text).map(Cow::into_owned)
    }

    #[test]
    fn numbers_of_each_form_are_read_and_others_are_not() {
        let english = Marks { thousands: Some(','), around: vec!["$".into()], ..Marks::default() };
        let german = Marks { decimal: ',', thousands: Some('.'), around: Vec::new() };
        for (text, expected) in [
            ("1,234.50", Some("1234.50")),
            ("-1,234", Some("-1234")),
            ("$ 12.5", Some("12.5")),
            ("1,23", None),
            ("12,34,56", None),
            ("-$1,234.5", Some("-1234.5")),
            ("($45.00)", Some("-45.00")),
            ("1.5,000", None),
        ] {
            assert_eq!(plain(&english, text).as_deref(), expected, "{text}");
        }
        let spaced = Marks { decimal: ',', thousands: Some(' '), around: vec!["€".into()] };
        let swiss = Marks { thousands: Some('\''), around: vec!["CHF".into()], ..Marks::default() };
        assert_eq!(plain(&spaced, "1\u{202f}234\u{a0}567,5 €").as_deref(), Some("1234567.5"));
        assert_eq!(plain(&spaced, "(1 234,5 €)").as_deref(), Some("-1234.5"));
        assert_eq!(plain(&swiss, "CHF 1\u{2019}234.50-").as_deref(), Some("-1234.50"));
        for (text, expected) in [
            ("1.234,5", Some("1234.5")),
            ("28,801", Some("28.801")),
            ("7", Some("7")),
            ("1.5", None),
            ("1,5,6", None),
        ] {
            assert_eq!(plain(&german, text).as_deref(), expected, "{text}");
        }
        let usual = Marks::default();
        for (text, expected) in [
            ("3.38e-05", Some("3.38e-05")),
            (".005", Some(".005")),
            ("\u{2212}4", Some("-4")),
            ("35-", Some("-35")),
            ("(12.50)", Some("-12.50")),
            ("2024-", Some("-2024")),
            ("-35-", None),
            ("(-3)", None),
            ("--", None),
            ("5-6-", None),
            ("1e", None),
            ("-", None),
            ("0x1F", None),
            ("1 2", None),
            ("NaN", None),
        ] {
            assert_eq!(plain(&usual, text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn units_of_one_letter_stand_behind_and_both_marks_before_decimals() {
        let meters = Marks { around: vec!["m".into()], ..Marks::default() };
        for (text, expected) in [("413 m", Some("413")), ("m5", None), ("5m", None)] {
            assert_eq!(plain(&meters, text).as_deref(), expected, "{text}");
        }
        let both = Marks { decimal: BOTH, ..Marks::default() };
        for (text, expected) in [
            ("9.137", Some("9.137")),
            ("-9,26", Some("-9.26")),
            ("7", Some("7")),
            ("1.234,5", None),
        ] {
            assert_eq!(plain(&both, text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn digits_are_grouped_in_threes_or_as_in_india() {
        let english = Marks { thousands: Some(','), ..Marks::default() };
        for (text, expected) in [
            ("12,34,567.5", Some("1234567.5")),
            ("1,23,45,678", Some("12345678")),
            ("123,45,678", None),
            ("1,23,456,789", None),
        ] {
            assert_eq!(plain(&english, text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn sums_are_exact_to_the_last_digit() {
        let mut sum = Sum::default();
        for text in ["0.1", "0.25", "-3", "1e2", "3.38e-05"] {
            sum.add(Decimal::read(text).unwrap());
        }
        assert_eq!(sum.text(), "97.3500338");
        assert_eq!(Sum::default().text(), "0");
        for (text, long) in [("-012.50", "-0012.500e0"), ("+7", "7e0"), (".5", "5e-1")] {
            assert_eq!(Decimal::read(text), Decimal::read(long), "{text}");
        }
        assert!(Decimal::read("1e300").is_none() && Decimal::read("1e-300").is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            for decimal in ['.', ','] {
                let marks = Marks { decimal, thousands: Some('.'), around: vec!["x".into()] };
                if let Some(plain) = marks.plain(&text) {
                    let _ = Decimal::read(&plain);
                }
            }
        }

        #[test]
        fn a_sum_equals_that_of_integers(numbers in proptest::collection::vec(-1_000_000_000i64..1_000_000_000, 0..50)) {
            let mut sum = Sum::default();
            for number in &numbers {
                sum.add(Decimal::read(&format!("{}.{:03}", number / 1000, (number % 1000).abs())).unwrap());
            }
            let total: i64 = numbers.iter().map(|n| (n / 1000) * 1000 + if *n / 1000 < 0 { -(n % 1000).abs() } else { (n % 1000).abs() }).sum();
            if !numbers.is_empty() {
                prop_assert_eq!(sum.text(), scaled_text(&total.to_string(), 3));
            }
        }
    }
}
