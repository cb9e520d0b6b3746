//! One format: read from its text, and applied to cells.

use super::moment::{Field, Moment};
use super::words;
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Fields of digits without anything between them.
    Digits(Vec<Field>),
    Fraction,
    Noon,
    MonthName,
    Weekday,
    Offset,
    Zone,
    Spaces,
    Literal(char),
    /// What follows, whatever it is.
    Rest,
}

/// Why a format cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// A letter after `%` that is not known.
    #[error(
        "`%{0}` is not known; use Y y m d H I M S f p j b B a A z Z G V u, as in strftime, or `%*` at the end for what is passed over"
    )]
    Unknown(char),
    /// What is passed over, with something behind it.
    #[error("`%*` passes over all that follows; put nothing behind it")]
    BehindRest,
    /// No day.
    #[error("the format has no date: it needs `%Y`, `%y` or `%G`")]
    NoDate,
    /// A date that stands for all times.
    #[error("{0:?} is not a date such as 2024-03-01")]
    BadDate(String),
    /// A date that stands for all times beside one of each.
    #[error(
        "`{0}` reads a date from each time, but `date` sets one for all; remove `date`, or leave only the time of day in the format, such as `%H:%M`"
    )]
    TwoDates(String),
}

/// A format, ready to read with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    text: String,
    parts: Vec<Part>,
    /// The date of texts that have none.
    date: Moment,
}

impl Format {
    /// Reads a format that may lack the date, for one of several columns.
    ///
    /// # Errors
    /// [`FormatError::Unknown`] if a letter is not known, and [`FormatError::BehindRest`] if
    /// something is behind `%*`.
    pub fn part(text: &str) -> Result<Format, FormatError> {
        let (mut parts, mut chars) = (Vec::new(), text.chars());
        while let Some(c) = chars.next() {
            let part = match c {
                '%' => directive(chars.next().unwrap_or('%'))?,
                c if c.is_whitespace() => Part::Spaces,
                c => Part::Literal(c),
            };
            match (parts.last_mut(), part) {
                (Some(Part::Rest), _) => return Err(FormatError::BehindRest),
                (Some(Part::Digits(run)), Part::Digits(more)) => run.extend(more),
                (Some(Part::Spaces), Part::Spaces) => {}
                (_, part) => parts.push(part),
            }
        }
        Ok(Format { text: text.to_owned(), parts, date: Moment::default() })
    }

    /// Reads a format of times of day, which are all of a date such as 2024-03-01.
    ///
    /// # Errors
    /// A [`FormatError`] if the format or the date cannot be read.
    pub fn on_date(text: &str, date: &str) -> Result<Format, FormatError> {
        let day = self::date(date)?;
        let format = Format::part(text)?;
        if format.has_date() {
            return Err(FormatError::TwoDates(text.to_owned()));
        }
        Ok(Format { date: day, ..format })
    }

    /// Reads a format.
    ///
    /// # Errors
    /// A [`FormatError`] if it cannot give a date.
    pub fn new(text: &str) -> Result<Format, FormatError> {
        let format = Format::part(text)?;
        let years = [Field::Year, Field::ShortYear, Field::WeekYear];
        let has_year = years.iter().any(|year| format.has(&[*year]));
        if has_year { Ok(format) } else { Err(FormatError::NoDate) }
    }

    fn has(&self, fields: &[Field]) -> bool {
        let mut runs = self.parts.iter().filter_map(|part| match part {
            Part::Digits(run) => Some(run),
            _ => None,
        });
        runs.any(|run| fields.iter().all(|field| run.contains(field)))
    }

    /// Whether it reads a part of a date; the name of a weekday is passed over.
    fn has_date(&self) -> bool {
        let clock = [Field::Hour, Field::Hour12, Field::Minute, Field::Second];
        self.parts.iter().any(|part| match part {
            Part::Digits(run) => run.iter().any(|field| !clock.contains(field)),
            part => *part == Part::MonthName,
        })
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether its values have an offset or a zone.
    #[must_use]
    pub fn has_offset(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Offset | Part::Zone))
    }

    /// Whether its values say the hour.
    #[must_use]
    pub fn has_hour(&self) -> bool {
        self.has(&[Field::Hour]) || self.has(&[Field::Hour12])
    }

    /// Whether it passes over the end of its values.
    #[must_use]
    pub fn has_rest(&self) -> bool {
        self.parts.last() == Some(&Part::Rest)
    }

    /// Reads a text; none if it is not in this format.
    #[must_use]
    pub fn read(&self, text: &str) -> Option<Moment> {
        let (mut rest, mut moment) = (text.trim(), self.date);
        for part in &self.parts {
            rest = part.read(rest, &mut moment)?;
        }
        (rest.is_empty() && moment.is_possible()).then_some(moment)
    }

    /// The microseconds since 1970 of a text, in a zone so many seconds east of Greenwich
    /// unless the text has its own.
    #[must_use]
    pub fn micros(&self, text: &str, zone: i32) -> Option<i64> {
        self.read(text)?.micros(zone)
    }
}

/// Reads a date such as 2024-03-01.
///
/// # Errors
/// [`FormatError::BadDate`] if it is none.
pub(super) fn date(text: &str) -> Result<Moment, FormatError> {
    let day = Format::new("%Y-%m-%d")?.read(text).filter(|day| day.day_number().is_some());
    day.ok_or_else(|| FormatError::BadDate(text.to_owned()))
}

fn directive(letter: char) -> Result<Part, FormatError> {
    let field = match letter {
        'Y' => Field::Year,
        'y' => Field::ShortYear,
        'm' => Field::Month,
        'd' => Field::Day,
        'H' => Field::Hour,
        'I' => Field::Hour12,
        'M' => Field::Minute,
        'S' => Field::Second,
        'j' => Field::Ordinal,
        'G' => Field::WeekYear,
        'V' => Field::Week,
        'u' => Field::WeekDay,
        'f' => return Ok(Part::Fraction),
        'p' => return Ok(Part::Noon),
        'b' | 'B' => return Ok(Part::MonthName),
        'a' | 'A' => return Ok(Part::Weekday),
        'z' => return Ok(Part::Offset),
        'Z' => return Ok(Part::Zone),
        '%' => return Ok(Part::Literal('%')),
        '*' => return Ok(Part::Rest),
        other => return Err(FormatError::Unknown(other)),
    };
    Ok(Part::Digits(vec![field]))
}

impl Part {
    /// Reads this part from the start of `text`; gives what follows.
    fn read<'t>(&self, text: &'t str, moment: &mut Moment) -> Option<&'t str> {
        match self {
            Part::Digits(run) => digits(run, text, moment),
            Part::Literal(c) => text.strip_prefix(*c),
            Part::Rest => (!text.is_empty()).then_some(""),
            Part::Spaces => {
                let rest = text.trim_start();
                (rest.len() < text.len() || text.is_empty()).then_some(rest)
            }
            Part::Fraction => {
                let (number, rest) = leading(text, |b| b.is_ascii_digit());
                moment.micros = micros_of(number)?;
                Some(rest)
            }
            Part::Noon => {
                let (word, rest) = leading(text, |b| b.is_ascii_alphabetic() || b == b'.');
                moment.noon = Some(words::after_noon(word)?);
                Some(rest)
            }
            Part::MonthName => {
                let (word, rest) = leading(text, |b| b.is_ascii_alphabetic() || b >= 0x80);
                moment.month = Some(words::month(word)?);
                Some(rest.strip_prefix('.').unwrap_or(rest))
            }
            Part::Weekday => {
                let (word, rest) = leading(text, |b| b.is_ascii_alphabetic() || b == b'.');
                (!word.is_empty()).then_some(rest)
            }
            Part::Offset => {
                let (word, rest) =
                    leading(text, |b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b':'));
                moment.offset = Some(words::offset(word)?);
                Some(rest)
            }
            Part::Zone => {
                let (word, rest) = leading(text, |b| b.is_ascii_alphabetic());
                moment.offset = Some(words::zone(word)?);
                Some(rest)
            }
        }
    }
}

/// The microseconds of the digits behind a second's point; further digits are cut off.
fn micros_of(digits: &str) -> Option<i64> {
    let mut micros = 0;
    if digits.is_empty() {
        return None;
    }
    for place in 0..6 {
        let digit = digits.as_bytes().get(place).map_or(0, |byte| i64::from(byte - b'0'));
        micros = micros * 10 + digit;
    }
    Some(micros)
}

/// Splits after the bytes at the start that are wanted.
fn leading(text: &str, wanted: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !wanted(byte)).unwrap_or(text.len());
    text.split_at(end)
}

/// Reads a run of fields. A lone field may be short; in a run that begins with the hour,
/// zeros may lack at its start; others have all their digits.
fn digits<'t>(run: &[Field], text: &'t str, moment: &mut Moment) -> Option<&'t str> {
    let (number, rest) = leading(text, |b| b.is_ascii_digit());
    let width: usize = run.iter().map(|field| field.width()).sum();
    if number.is_empty() || number.len() > width {
        return None;
    }
    let short = number.len() < width;
    let may_be_short = match run {
        [Field::Year | Field::WeekYear] => false,
        [_] => true,
        [first, ..] => *first == Field::Hour,
        [] => false,
    };
    if short && !may_be_short {
        return None;
    }
    // Zeros that lack at the start belong to the first field.
    let (mut lacks, mut bytes) = (width - number.len(), number.bytes());
    for field in run {
        let own = field.width().saturating_sub(lacks);
        lacks = lacks.saturating_sub(field.width());
        let value = bytes.by_ref().take(own).fold(0, |n: u16, b| n * 10 + u16::from(b - b'0'));
        moment.set(*field, value)?;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_time::calendar;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000;

    fn seconds(format: &str, text: &str, zone: i32) -> Option<i64> {
        Format::new(format).unwrap().micros(text, zone).map(|micros| micros / SECOND)
    }

    #[test]
    fn times_of_each_format_are_read() {
        let expected = 1_520_345_730;
        for (format, text) in [
            ("%Y-%m-%dT%H:%M:%S", "2018-03-06T14:15:30"),
            ("%Y-%m-%d %H:%M:%S.%f", "2018-03-06 14:15:30.25"),
            ("%Y-%m-%dT%H:%M:%S%z", "2018-03-06T15:15:30+01:00"),
            ("%Y-%m-%dT%H:%M:%S%z", "2018-03-06T14:15:30Z"),
            ("%d.%m.%Y %H:%M:%S", "6.3.2018  14:15:30"),
            ("%m/%d/%y %I:%M:%S %p", "03/06/18 02:15:30 PM"),
            ("%d/%b/%Y:%H:%M:%S %z", "06/Mar/2018:14:15:30 +0000"),
            ("%a %b %d %Y %H:%M:%S %Z", "Tue Mar 06 2018 15:15:30 CET"),
            ("%Y%m%d%H%M%S", "20180306141530"),
            ("%Y %j %H%M%S", "2018 65 141530"),
            ("%G-W%V-%u %H:%M:%S", "2018-W10-2 14:15:30"),
            ("%Y-%m-%d %H:%M:%S to %*", "2018-03-06 14:15:30 to 2018-03-06 14:30:30"),
        ] {
            assert_eq!(seconds(format, text, 0), Some(expected), "{format}");
        }
        assert_eq!(seconds("%Y-%m-%d %H", "2018-03-06 14", -14_400), Some(1_520_359_200));
        assert_eq!(seconds("%Y %j %H%M", "2018 65 5", 0), Some(1_520_294_700));
        assert_eq!(seconds("%Y%m%d %H", "20180306 24", 0), Some(1_520_380_800));
        assert_eq!(seconds("%Y", "1970", 0), Some(0));
        assert_eq!(seconds("%G-W%V", "2018-W10", 0), Some(1_520_208_000));
        assert_eq!(seconds("%G %V", "2018 53", 0), None);
        assert_eq!(seconds("%Y-%m-%d %I:%M %p", "2018-03-06 12:00 AM", 0), Some(1_520_294_400));
    }

    #[test]
    fn what_is_no_time_is_not_read() {
        for (format, text) in [
            ("%Y-%m-%d", "2018-02-30"),
            ("%Y-%m-%d", "18-02-03"),
            ("%Y-%m-%d", "2018-02-03 "),
            ("%Y-%m-%d", "2018-13-03"),
            ("%Y-%m-%d %H:%M", "2018-02-03 24:01"),
            ("%Y-%m-%d %I:%M %p", "2018-02-03 13:00 PM"),
            ("%Y%m%d", "2018023"),
            ("%Y-%m-%d to %*", "2018-02-03"),
            ("%Y-%m-%d to %*", "2018-02-03 to"),
        ] {
            let read = Format::new(format).unwrap().micros(text, 0);
            assert_eq!(read.is_some(), text.ends_with(' '), "{format} {text}");
        }
        assert_eq!(Format::new("%H:%M"), Err(FormatError::NoDate));
        assert_eq!(Format::new("%Q"), Err(FormatError::Unknown('Q')));
        assert_eq!(Format::new("%Y-%m-%d%*%H"), Err(FormatError::BehindRest));
    }

    proptest! {
        #[test]
        fn any_format_and_text_do(format: String, text: String) {
            if let Ok(format) = Format::part(&format) {
                let _ = format.micros(&text, 3600);
            }
        }

        #[test]
        fn a_date_is_read_as_the_calendar_has_it(day in -30_000i32..60_000, second in 0u32..86_400) {
            let date = calendar::date_of(day.into()).unwrap();
            let (year, month, day_of_month) = date.to_calendar_date();
            let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
            let expected = i64::from(day) * 86_400 + i64::from(second);
            let text = format!("{day_of_month}/{}/{year} {h}:{m:02}:{s:02}", u8::from(month));
            prop_assert_eq!(seconds("%d/%m/%Y %H:%M:%S", &text, 0), Some(expected));
            let text = format!("{year} {} {h:02}{m:02}{s:02}", date.ordinal());
            prop_assert_eq!(seconds("%Y %j %H%M%S", &text, 0), Some(expected));
        }
    }
}
