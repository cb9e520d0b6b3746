//! Interprets the scalars of a document: names, numbers, durations, fractions.

use super::{ContentError, DocumentError, Node, Value};
use crate::decimal::parse_exact;
use crate::fraction::{Fraction, gcd};
use alpheus_time::Span;
use std::fmt::Display;

/// Longest name of anything.
const MAX_NAME_BYTES: usize = 64;

/// Longest other text (units, services).
const MAX_TEXT_BYTES: usize = 256;

/// Units of time in microseconds.
const UNITS: &[(&str, u64)] = &[
    ("us", 1),
    ("µs", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("sec", 1_000_000),
    ("second", 1_000_000),
    ("seconds", 1_000_000),
    ("m", 60_000_000),
    ("min", 60_000_000),
    ("minute", 60_000_000),
    ("minutes", 60_000_000),
    ("h", 3_600_000_000),
    ("hr", 3_600_000_000),
    ("hour", 3_600_000_000),
    ("hours", 3_600_000_000),
    ("d", 86_400_000_000),
    ("day", 86_400_000_000),
    ("days", 86_400_000_000),
    ("w", 604_800_000_000),
    ("week", 604_800_000_000),
    ("weeks", 604_800_000_000),
];

impl Node {
    /// The entries of a map.
    pub(crate) fn map(&self) -> Result<&[(String, Node)], DocumentError> {
        match &self.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.expected("a map of keys and values")),
        }
    }

    /// The items of a list.
    pub(crate) fn list(&self) -> Result<&[Node], DocumentError> {
        match &self.value {
            Value::List(items) => Ok(items),
            _ => Err(self.expected("a list")),
        }
    }

    /// The items of a list, or the single item given instead of one.
    pub(crate) fn one_or_list(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// The text of a scalar.
    pub(crate) fn text(&self) -> Result<&str, DocumentError> {
        match &self.value {
            Value::Scalar { text, .. } if text.len() <= MAX_TEXT_BYTES => Ok(text),
            _ => Err(self.expected("a text of at most 256 bytes")),
        }
    }

    /// `true` or `false` without quotes.
    pub(crate) fn boolean(&self) -> Result<bool, DocumentError> {
        match &self.value {
            Value::Scalar { text, plain: true } if text == "true" => Ok(true),
            Value::Scalar { text, plain: true } if text == "false" => Ok(false),
            _ => Err(self.expected("true or false")),
        }
    }

    /// A name that queries can use.
    pub(crate) fn name(&self) -> Result<&str, DocumentError> {
        let text = self.text()?;
        let first = text.chars().next();
        let good = text.len() <= MAX_NAME_BYTES
            && first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if good { Ok(text) } else { Err(self.error(ContentError::BadName)) }
    }

    /// An integer in `least..=most`.
    pub(crate) fn integer<T>(&self, min: T, max: T) -> Result<T, DocumentError>
    where
        T: TryFrom<i64> + PartialOrd + Display,
    {
        let text = self.text()?;
        let number = parse_exact(text, 0).map_err(|error| self.error(error.into()))?;
        match T::try_from(number) {
            Ok(number) if number >= min && number <= max => Ok(number),
            _ => {
                let range = format!("between {min} and {max}");
                Err(self.error(ContentError::OutOfRange { range }))
            }
        }
    }

    /// A decimal as an integer in units of `10^-scale`, without rounding.
    pub(crate) fn decimal(&self, scale: u8) -> Result<i64, DocumentError> {
        parse_exact(self.text()?, scale).map_err(|error| self.error(error.into()))
    }

    /// One of a fixed list of words, as its meaning.
    pub(crate) fn word<T: Copy>(
        &self,
        allowed: &'static [&'static str],
        meanings: &[T],
    ) -> Result<T, DocumentError> {
        let text = self.text()?;
        let position = allowed.iter().position(|word| *word == text);
        position
            .and_then(|position| meanings.get(position))
            .copied()
            .ok_or_else(|| self.error(ContentError::UnknownWord { word: text.to_owned(), allowed }))
    }

    /// A duration of at least a microsecond.
    pub(crate) fn duration(&self) -> Result<Span, DocumentError> {
        parse_duration(self.text()?).ok_or_else(|| self.error(ContentError::BadDuration))
    }

    /// A fraction between 0 and 1, `1/3` or `0.2`, in lowest terms.
    pub(crate) fn fraction(&self) -> Result<Fraction, DocumentError> {
        parse_fraction(self.text()?).ok_or_else(|| self.error(ContentError::BadFraction))
    }

    /// An error that says what is expected here.
    pub(crate) fn expected(&self, expected: &'static str) -> DocumentError {
        self.error(ContentError::Expected { expected })
    }
}

/// Reads a duration such as `10s`, `5 min`, `1hr` or `PT1H`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Span> {
    let micros = match text.strip_prefix('P') {
        Some(iso) => parse_iso(iso)?,
        None => {
            let end = text.find(|c: char| !c.is_ascii_digit())?;
            let (number, unit) = text.split_at(end);
            let unit = unit.trim_start();
            let (_, micros) = UNITS.iter().find(|(name, _)| *name == unit)?;
            number.parse::<u64>().ok()?.checked_mul(*micros)?
        }
    };
    // No window is longer than the range of times.
    (micros > 0 && micros < alpheus_time::Timestamp::LIMIT.0).then_some(Span(micros))
}

/// The rest of an ISO 8601 duration after `P`, in days or shorter.
fn parse_iso(text: &str) -> Option<u64> {
    let (date, time) = text.split_once('T').unwrap_or((text, ""));
    let days = [('W', 604_800_000_000), ('D', 86_400_000_000)];
    let hours = [('H', 3_600_000_000), ('M', 60_000_000), ('S', 1_000_000)];
    iso_part(date, &days)?.checked_add(iso_part(time, &hours)?)
}

fn iso_part(mut text: &str, units: &[(char, u64)]) -> Option<u64> {
    let mut total = 0u64;
    for (letter, micros) in units {
        if let Some((number, rest)) = text.split_once(*letter) {
            total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(*micros)?)?;
            text = rest;
        }
    }
    text.is_empty().then_some(total)
}

fn parse_fraction(text: &str) -> Option<Fraction> {
    let (numerator, denominator) = match text.split_once('/') {
        Some((above, below)) => (above.trim().parse().ok()?, below.trim().parse().ok()?),
        None => (u32::try_from(parse_exact(text, 9).ok()?).ok()?, 1_000_000_000),
    };
    if denominator == 0 || numerator > denominator {
        return None;
    }
    let divisor = gcd(numerator, denominator);
    Some(Fraction { numerator: numerator / divisor, denominator: denominator / divisor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_every_spelling() {
        for (text, micros) in [
            ("10s", 10_000_000),
            ("5 min", 300_000_000),
            ("1hr", 3_600_000_000),
            ("1d", 86_400_000_000),
            ("250ms", 250_000),
            ("PT1H", 3_600_000_000),
            ("PT90M", 5_400_000_000),
            ("P1DT12H", 129_600_000_000),
        ] {
            assert_eq!(parse_duration(text), Some(Span(micros)), "{text}");
        }
        for text in [
            "",
            "10",
            "s",
            "0s",
            "-1s",
            "1.5h",
            "1 fortnight",
            "PT",
            "P",
            "PT1X",
            "9999999999999999999d",
            "200000d",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn fractions_are_exact_and_in_lowest_terms() {
        for (text, numerator, denominator) in
            [("1/3", 1, 3), ("2/6", 1, 3), ("0.2", 1, 5), ("0", 0, 1), ("1", 1, 1), ("0/7", 0, 1)]
        {
            assert_eq!(parse_fraction(text), Some(Fraction { numerator, denominator }), "{text}");
        }
        for text in ["", "1/0", "0/0", "4/3", "1.1", "-0.1", "a/b", "1e-12"] {
            assert_eq!(parse_fraction(text), None, "{text}");
        }
    }
}
