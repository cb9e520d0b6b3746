//! Parses `WINDOW …` and lengths of time.

use super::ast::{ClauseLocations, SourceLocation};
use super::display::QuerySpan;
use super::error::{QueryError, SyntaxError};
use super::parser::Reader;
use crate::decimal::Decimal;
use crate::fraction::gcd;
use alpheus_time::Span;
use sqlparser::tokenizer::Token;

/// Maximum number of steps of cumulating windows.
pub(super) const MAX_STEPS: u64 = 1 << 17;
/// Steps that are tried where one does not divide the size.
const MAX_TRIES: usize = 1 << 17;
/// Lengths of time are shorter.
const LIMIT: u64 = 520 * 604_800_000_000;
/// Units of time, in microseconds.
const UNITS: &[(&str, &str, u64)] = &[
    ("MILLISECOND", "MILLISECONDS", 1_000),
    ("SECOND", "SECONDS", 1_000_000),
    ("MINUTE", "MINUTES", 60_000_000),
    ("HOUR", "HOURS", 3_600_000_000),
    ("DAY", "DAYS", 86_400_000_000),
    ("WEEK", "WEEKS", 604_800_000_000),
];
/// Units of the calendar, and the numbers of days that are nearest to one.
const CALENDAR: &[(&str, &str, &[u64])] = &[
    ("MONTH", "MONTHS", &[28, 30]),
    ("QUARTER", "QUARTERS", &[91]),
    ("YEAR", "YEARS", &[364, 365]),
];
/// The most days that are below the limit.
const MAX_DAYS: u64 = (LIMIT - 1) / 86_400_000_000;

/// `WINDOW …`.
pub(super) struct Windows {
    pub(super) window: Span,
    pub(super) cumulating: Option<Span>,
    pub(super) grace: Option<Span>,
}

pub(super) fn windows(
    reader: &mut Reader,
    places: &mut ClauseLocations,
) -> Result<Windows, QueryError> {
    reader.written("WINDOW TUMBLING (SIZE 1 HOUR)");
    if ["HOPPING", "SESSION", "SLIDING"].into_iter().any(|word| reader.sees(word)) {
        return Err(overlapping(reader));
    }
    let cumulating = reader.word("CUMULATING");
    if cumulating {
        reader.written("WINDOW CUMULATING (STEP 1 HOUR, SIZE 30 DAYS)");
    } else if !reader.word("TUMBLING") {
        return Err(reader.expected("TUMBLING, or CUMULATING for running totals"));
    }
    reader.need_sign(&Token::LParen, "`(`")?;
    reader.need(if cumulating { "STEP" } else { "SIZE" })?;
    places.window = SourceLocation(reader.here());
    let window = span(reader, false)?;
    let cumulating = if cumulating { Some(whole_size(reader, window)?) } else { None };
    let head = match cumulating {
        Some(size) => format!("CUMULATING (STEP {}, SIZE {}", QuerySpan(window), QuerySpan(size)),
        None => format!("TUMBLING (SIZE {}", QuerySpan(window)),
    };
    reader.written(format!("WINDOW {head})"));
    let mut grace = None;
    if reader.takes(&Token::Comma) {
        if reader.word("ADVANCE") {
            let problem = SyntaxError::Overlapping { nearest: beside(window, hop(reader)) };
            return Err(QueryError::new(places.window.0, problem));
        }
        reader.written(format!("WINDOW {head}, GRACE PERIOD 5 SECONDS)"));
        reader.need("GRACE")?;
        reader.need("PERIOD")?;
        grace = Some(span(reader, true)?);
    }
    reader.need_sign(&Token::RParen, "`)`, or `, GRACE PERIOD 5 SECONDS)`")?;
    Ok(Windows { window, cumulating, grace })
}

/// Windows that overlap, of which as much is read as there is.
fn overlapping(reader: &mut Reader) -> QueryError {
    let at = reader.here();
    reader.parser.next_token();
    let is_sized = reader.takes(&Token::LParen) && reader.word("SIZE");
    let size = if is_sized { span(reader, false).ok() } else { None };
    let hops = size.is_some() && reader.takes(&Token::Comma) && reader.word("ADVANCE");
    let hop = if hops { hop(reader) } else { None };
    let nearest = beside(size.unwrap_or(Span::seconds(3600)), hop);
    QueryError::new(at, SyntaxError::Overlapping { nearest })
}

/// `BY …` after `ADVANCE`.
fn hop(reader: &mut Reader) -> Option<Span> {
    reader.word("BY");
    span(reader, false).ok()
}

/// Windows that do not overlap, in place of those of this size. Running totals have a step that
/// divides their size.
fn beside(size: Span, hop: Option<Span>) -> Vec<String> {
    let mut nearest = vec![format!("WINDOW TUMBLING (SIZE {})", QuerySpan(size))];
    if let Some(Span(hop)) = hop.filter(|hop| *hop < size) {
        let unit = gcd(size.0, hop);
        let (steps, most) = (size.0 / unit, hop / unit);
        let divides = |step: &u64| steps.is_multiple_of(*step) && steps / step <= MAX_STEPS;
        // A step is at least as long as makes the most of them.
        let least = steps.div_ceil(MAX_STEPS).max(1);
        if let Some(step) = (least..=most).rev().take(MAX_TRIES).find(divides) {
            let (step, size) = (QuerySpan(Span(step * unit)), QuerySpan(size));
            nearest.push(format!("WINDOW CUMULATING (STEP {step}, SIZE {size})"));
        }
    }
    nearest
}

/// `, SIZE …`: the extent of running totals, in whole steps.
fn whole_size(reader: &mut Reader, step: Span) -> Result<Span, QueryError> {
    reader.written(format!(
        "WINDOW CUMULATING (STEP {}, SIZE {})",
        QuerySpan(step),
        QuerySpan(Span(step.0.saturating_mul(24)))
    ));
    reader.need_sign(&Token::Comma, "`, SIZE 365 DAYS`, the extent of the totals")?;
    reader.need("SIZE")?;
    let at = reader.here();
    let size = span(reader, false)?;
    match size.0.is_multiple_of(step.0) && size.0 / step.0 <= MAX_STEPS {
        true => Ok(size),
        false => {
            let nearest = whole_sizes(step, size);
            Err(QueryError::new(at, SyntaxError::NotWhole { nearest }))
        }
    }
}

/// The sizes next to one that is no whole number of steps, or of too many; then also a step that
/// makes the size whole.
fn whole_sizes(step: Span, size: Span) -> Vec<String> {
    let said = |what, length| format!("{what} {}", QuerySpan(length));
    if size.0 / step.0 < MAX_STEPS {
        return size.multiples_around(step).map(|length| said("SIZE", length)).collect();
    }
    let whole = |many: &u64| size.0.is_multiple_of(*many) && (size.0 / many).is_multiple_of(1_000);
    let longer = (1..=MAX_STEPS).rev().find(whole).map(|many| said("STEP", Span(size.0 / many)));
    std::iter::once(said("SIZE", Span(step.0 * MAX_STEPS))).chain(longer).collect()
}

/// A length of time.
fn span(reader: &mut Reader, zero: bool) -> Result<Span, QueryError> {
    let at = reader.here();
    let Token::Number(digits, false) = reader.peek() else {
        return Err(reader.expected("a whole number such as 1"));
    };
    let number = Decimal::parse(digits);
    reader.parser.next_token();
    let unit = UNITS.iter().find(|(one, many, _)| reader.sees(one) || reader.sees(many));
    let whole = number.and_then(|number| u64::try_from(number.scaled(0)?).ok());
    let Some((.., unit)) = unit else { return Err(no_unit(reader, whole.unwrap_or(1))) };
    reader.parser.next_token();
    let length = whole.map(|whole| whole.saturating_mul(*unit));
    match length.filter(|length| (*length > 0 || zero) && *length < LIMIT) {
        Some(length) => Ok(Span(length)),
        None => {
            let problem = SyntaxError::NoLength { nearest: possible(number, *unit) };
            Err(QueryError::new(at, problem))
        }
    }
}

/// There is no such unit. So many of the calendar's are about as long as some days.
fn no_unit(reader: &Reader, number: u64) -> QueryError {
    let mut calendar = CALENDAR.iter();
    match calendar.find(|(one, many, _)| reader.sees(one) || reader.sees(many)) {
        None => {
            reader.expected("a unit of time: MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS or WEEKS")
        }
        Some((_, units, days)) => {
            let most = days.iter().map(|own| MAX_DAYS / own).min().unwrap_or(1);
            let of = |own: &u64| format!("{} DAYS", own * number.clamp(1, most));
            let nearest = days.iter().map(of).collect();
            reader.error(SyntaxError::OfCalendar { units, nearest })
        }
    }
}

/// The nearest length to so many units that is a whole number of some unit, above 0 and below the
/// limit.
fn possible(number: Option<Decimal>, unit: u64) -> Span {
    let most = (LIMIT - 1) / unit * unit;
    let thousandths = number.and_then(|number| u64::try_from(number.scaled_towards_zero(3)?).ok());
    // Whole milliseconds.
    let length = thousandths.map(|many| many.saturating_mul(unit / 1_000) / 1_000 * 1_000);
    Span(length.filter(|length| *length > 0).unwrap_or(unit).min(most))
}

#[cfg(test)]
mod tests {
    use crate::query::parse;

    fn refused(window: &str) -> String {
        let text = format!("SELECT SUM(x) WINDOW {window} FROM X");
        parse(&text).unwrap_err().to_string()
    }

    /// A refusal ends with this, and each proposal in it can be pasted.
    fn proposes(window: &str, says: &str) {
        let said = refused(window);
        assert!(said.ends_with(says), "{window}: {said}");
        for words in said.split('`').skip(1).step_by(2) {
            let window = match words.split_once(' ') {
                Some(("WINDOW", window)) => window.to_owned(),
                Some(("SIZE", _)) => {
                    let step = window.split(&['(', ','][..]).nth(1).unwrap();
                    format!("CUMULATING ({step}, {words})")
                }
                Some(("STEP", _)) => {
                    let size = window.split(", ").nth(1).unwrap();
                    format!("CUMULATING ({words}, {size}")
                }
                _ => format!("TUMBLING (SIZE {words})"),
            };
            let text = format!("SELECT SUM(x) WINDOW {window} FROM X");
            assert!(parse(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn lengths_that_do_not_suit_are_refused_with_the_nearest() {
        for (window, says) in [
            ("CUMULATING (STEP 1 HOUR, SIZE 90 MINUTES)", "write `SIZE 1 HOUR` or `SIZE 2 HOURS`"),
            ("CUMULATING (STEP 1 HOUR, SIZE 5 MINUTES)", "write `SIZE 1 HOUR`"),
            (
                "CUMULATING (STEP 1 SECOND, SIZE 30 DAYS)",
                "at most 131072 steps; write `SIZE 131072 SECONDS` or `STEP 20 SECONDS`",
            ),
            ("TUMBLING (SIZE 1.5 HOURS)", "write `90 MINUTES`"),
            ("TUMBLING (SIZE 0 HOURS)", "write `1 HOUR`"),
            ("TUMBLING (SIZE 0.0001 SECONDS)", "write `1 SECOND`"),
            ("TUMBLING (SIZE 99999999999999999999 HOURS)", "write `1 HOUR`"),
            ("TUMBLING (SIZE 600 WEEKS)", "write `3633 DAYS`"),
            ("HOPPING (SIZE 10 MINUTES)", "write `WINDOW TUMBLING (SIZE 10 MINUTES)`"),
            ("SLIDING", "write `WINDOW TUMBLING (SIZE 1 HOUR)`"),
            (
                "HOPPING (SIZE 1 HOUR, ADVANCE BY 10 MINUTES)",
                "(SIZE 1 HOUR)` or `WINDOW CUMULATING (STEP 10 MINUTES, SIZE 1 HOUR)`",
            ),
            (
                "TUMBLING (SIZE 1 HOUR, ADVANCE BY 7 MINUTES)",
                "(SIZE 1 HOUR)` or `WINDOW CUMULATING (STEP 6 MINUTES, SIZE 1 HOUR)`",
            ),
        ] {
            proposes(window, says);
        }
    }

    #[test]
    fn units_that_differ_in_length_are_refused_with_the_nearest_days() {
        for (window, says) in [
            (
                "TUMBLING (SIZE 1 MONTH)",
                "MONTHS differ in length, so they cannot be used here; the units are MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS and WEEKS; write `28 DAYS` or `30 DAYS`",
            ),
            ("TUMBLING (SIZE 3 months)", "write `84 DAYS` or `90 DAYS`"),
            ("TUMBLING (SIZE 1 QUARTER)", "write `91 DAYS`"),
            ("TUMBLING (SIZE 1 YEAR)", "DAYS and WEEKS; write `364 DAYS` or `365 DAYS`"),
            ("TUMBLING (SIZE 10 YEARS)", "write `3276 DAYS` or `3285 DAYS`"),
            ("TUMBLING (SIZE 0.5 MONTHS)", "write `28 DAYS` or `30 DAYS`"),
            ("TUMBLING (SIZE 1 HOUR, GRACE PERIOD 1 MONTH)", "write `28 DAYS` or `30 DAYS`"),
        ] {
            proposes(window, says);
        }
    }
}
