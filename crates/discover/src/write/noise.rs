//! Results with noise, whose error is known: the query that asks for one, and its words.

use super::Draft;
use crate::tally::Values;
use crate::windows::{SECOND, WINDOWS, Window};
use crate::{Attribute, Understanding};

/// The ε of a window and of all windows that owners allow. So many windows can be released at
/// the full price.
pub(super) const EPSILON: u32 = 5;
pub(super) const TOTAL_EPSILON: u32 = 100;
/// The error that a query asks for, unless it is given.
const USUAL_ERROR: &str = "10 %";

/// The shortest window from this one on of which all that the readings fall into can be paid.
pub(super) fn window(shortest: Window, span: i64) -> Window {
    let payable = i64::from(TOTAL_EPSILON / EPSILON);
    let few = |own: &&Window| {
        own.is_multiple_of(shortest) && span / (own.seconds * SECOND) < payable.saturating_sub(1)
    };
    WINDOWS.iter().filter(|own| own.seconds >= shortest.seconds).find(few).copied().unwrap_or(
        // None is long enough: the budget then ends before the readings do.
        WINDOWS.iter().rfind(|own| own.is_multiple_of(shortest)).copied().unwrap_or(shortest),
    )
}

/// The windows of a query with noise, and how many events of one stream count in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseTerms {
    window: Window,
    events: u64,
    /// The share of events that streams with more have, in thousandths, if there are such streams.
    left_out: Option<u64>,
}

impl NoiseTerms {
    pub(super) fn window(self) -> Window {
        self.window
    }

    /// The length of the windows, as queries say it.
    #[must_use]
    pub fn length(self) -> &'static str {
        self.window.sql
    }

    /// What the limit on events leaves out of some windows, in words, if it leaves out anything.
    #[must_use]
    pub fn left_out(self) -> Option<String> {
        let (whole, tenth) = self.left_out.map(|share| (share / 10, share % 10))?;
        let plural = if self.events == 1 { "" } else { "s" };
        Some(format!(
            "owners with more than {} reading{plural} in a window are left out of it: they have {whole}.{tenth} % of all readings",
            self.events
        ))
    }
}

/// With which windows, and with which limits on events, an error may be possible: first those that need
/// no limit and the shortest windows. Fewer events of each owner need less noise, and in longer
/// windows more owners have data.
#[must_use]
pub fn noise_terms(found: &Understanding) -> Vec<NoiseTerms> {
    let draft = Draft::of(found, "", None);
    let span = found.tally.span.map_or(0, |(first, last)| last - first);
    let longer = |own: &Window| {
        let falls = own.seconds * SECOND <= span && own.is_multiple_of(draft.shortest);
        *own == draft.noisy || (own.seconds > draft.noisy.seconds && falls)
    };
    let terms = |window: Window| {
        let at = WINDOWS.iter().position(|own| *own == window).unwrap_or(0);
        let load = found.tally.loads.get(at).copied().unwrap_or_default();
        let all = NoiseTerms { window, events: load.most, left_out: None };
        let few = NoiseTerms { window, events: load.nearly, left_out: Some(load.beyond) };
        [Some(all), (load.nearly < load.most).then_some(few)].into_iter().flatten()
    };
    WINDOWS.into_iter().filter(longer).flat_map(terms).collect()
}

/// The position of the length of its windows.
pub(super) fn length(draft: &Draft<'_>) -> usize {
    WINDOWS.iter().position(|own| *own == draft.noisy).unwrap_or(0)
}

/// A query for the mean of one attribute, or for a count if there is no mean, with an error.
pub(super) fn query(draft: &Draft<'_>) -> String {
    let load = draft.found.tally.loads.get(length(draft)).copied().unwrap_or_default();
    let terms = draft.noise.and_then(|noise| noise.terms);
    let events = terms.map_or(load.most, |terms| terms.events);
    let values = load.usual.min(events);
    let error = draft.noise.map_or(USUAL_ERROR, |noise| noise.error);
    let least = draft.noise.map_or(draft.least, |noise| noise.least.max(draft.least));
    let mut settings = format!("error = {error}");
    let column = match measured(draft) {
        Some((own, typical)) => {
            settings.push_str(&format!(", typical = {typical}"));
            format!("AVG({})", own.name)
        }
        None => {
            format!("COUNT({})", draft.asked().next().map_or("", |own| own.name.as_str()))
        }
    };
    format!(
        "CREATE STREAM Noisy{name} AS\nSELECT {column}\nWINDOW TUMBLING (SIZE {window})\nFROM {name} BETWEEN {least} AND {population}\nWITH ({settings}, values = {values}, events = {events});\n",
        name = draft.name,
        window = draft.noisy.sql,
        population = draft.population,
    )
}

/// The first attribute with a mean of which an error can be a share, and that mean to two digits. One
/// that a person named comes first.
fn measured<'d>(draft: &'d Draft<'_>) -> Option<(&'d Attribute, String)> {
    let named = draft.asked().filter(|own| own.said);
    let all = named.chain(draft.asked());
    all.filter(|own| own.values != Values::Text && own.course.adds_up()).find_map(|own| {
        let sum: f64 = own.total.sum.text().parse().ok()?;
        let mean = sum / own.total.count.max(1) as f64;
        two_digits(mean).map(|typical| (own, typical))
    })
}

/// A number other than 0 with two digits, such as `0.61` or `-4300`.
fn two_digits(number: f64) -> Option<String> {
    if !number.is_finite() || number.abs() < 1e-9 || number.abs() > 1e15 {
        return None;
    }
    let (digits, exponent) = {
        let text = format!("{:.1e}", number.abs());
        let (digits, exponent) = text.split_once('e')?;
        (digits.replace('.', ""), exponent.parse::<i64>().ok()?)
    };
    let sign = if number < 0.0 { "-" } else { "" };
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    let text = match exponent {
        1.. => format!("{digits}{}", zeros(exponent - 1)),
        0 => format!("{}.{}", &digits[..1], &digits[1..]),
        _ => format!("0.{}{digits}", zeros(-exponent - 1)),
    };
    Some(format!("{sign}{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_have_two_digits() {
        for (number, text) in [
            (0.6044, "0.60"),
            (4957.9, "5000"),
            (12.34, "12"),
            (-3.21, "-3.2"),
            (0.001_234, "0.0012"),
            (99.6, "100"),
        ] {
            assert_eq!(two_digits(number).as_deref(), Some(text));
        }
        assert_eq!((two_digits(0.0), two_digits(f64::NAN)), (None, None));
    }

    #[test]
    fn as_many_windows_as_can_be_paid_are_asked_for() {
        let hour = WINDOWS[6];
        assert_eq!(window(hour, 10 * 3600 * SECOND).name, "1hr");
        assert_eq!(window(hour, 72 * 3600 * SECOND).name, "1d");
        assert_eq!(window(hour, 400 * 86_400 * SECOND).name, "28d");
        assert_eq!(window(hour, 2_000 * 86_400 * SECOND).name, "364d");
    }
}
