//! Columns of lengths of time, which are no numbers.

use crate::profile::Column;
use crate::words::worded;

/// Why they are not measured.
pub(crate) const WHY: &str = "it holds lengths of time or times of day";

/// What to say of a column of lengths of time, or of times of day that are no row's.
pub(crate) fn left_out(column: &Column) -> Option<String> {
    let dated = |text: &str| ["%Y", "%y", "%G"].iter().any(|year| text.contains(year));
    let has_date =
        column.shapes.values().flat_map(|own| &own.formats).any(|(own, _)| dated(own.text()));
    let clock = column.times() * 2 > column.filled && !has_date;
    let lengths = column.texts.keys().filter(|text| is_length(text)).count();
    let texts = !column.texts.is_empty() && lengths * 10 >= column.texts.len() * 9;
    (clock || (texts && column.times() == 0)).then(|| {
        let (name, word) = (&column.name, worded(&column.name));
        format!(
            "`{name}` seems to hold lengths of time, such as 00:12:30 for twelve and a half minutes, or times of day, so it is not measured. If lengths are wanted, write them as numbers of seconds or minutes; use `--leave-out {word}` if not."
        )
    })
}

/// Whether a text is a length of time: `PT15M`, `7h 32m`, `1 day, 3:20:00`, `12 min 5 s`.
pub(crate) fn is_length(text: &str) -> bool {
    const UNITS: &[&str] = &[
        "d", "day", "days", "tag", "tage", "h", "hr", "hrs", "hour", "hours", "std", "stunden",
        "m", "min", "mins", "minute", "minutes", "minuten", "s", "sec", "secs", "second",
        "seconds", "sekunden", "ms",
    ];
    let text = text.trim().to_lowercase();
    let iso = text.strip_prefix('p').map(|rest| rest.replacen('t', "", 1));
    let (mut rest, mut parts, mut clock) = (iso.as_deref().unwrap_or(&text), 0, 0);
    while !rest.is_empty() {
        let end = |of: fn(char) -> bool| rest.find(|c| !of(c)).unwrap_or(rest.len());
        let digits = end(|c| c.is_ascii_digit() || matches!(c, '.' | ':'));
        let (number, behind) = rest.split_at(digits);
        let behind = behind.trim_start();
        let unit = behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len());
        let (unit, next) = behind.split_at(unit);
        let known = UNITS.contains(&unit);
        // `3:20:00` behind days.
        let is_clock = unit.is_empty() && parts > 0 && number.contains(':');
        if !number.starts_with(|c: char| c.is_ascii_digit()) || !(known || is_clock) {
            return false;
        }
        (parts, clock) = (parts + usize::from(known), clock + usize::from(is_clock));
        rest = next.trim_start_matches([' ', ',', '.']);
    }
    parts > 1 || (parts > 0 && (iso.is_some() || clock > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_known() {
        for text in [
            "PT15M",
            "PT1H30M5.5S",
            "P1DT2H",
            "7h 32m",
            "12 min 5 s",
            "1 day, 3:20:00",
            "2 days 00:10:00",
        ] {
            assert!(is_length(text), "{text}");
        }
        // One number with a unit is measured, and a code is none.
        for text in ["", "P1", "15m", "7 h", "PT", "P", "A12", "3:20", "5 apples 2 m", "1d-2"] {
            assert!(!is_length(text), "{text}");
        }
    }
}
