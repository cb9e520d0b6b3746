//! When a replay fails although it could continue: too many rows are refused, or no window opens.

use super::Args;
use super::inputs::Inputs;
use super::output;
use super::windows::WindowReport;
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Category, Failure};
use alpheus_node::note;
use alpheus_policy::decimal::{format_scaled, parse_exact};
use alpheus_stream_runtime::counters::Counters;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Decimal places of a percentage.
const PLACES: u8 = 6;
/// All rows.
const ALL: u64 = 100_000_000;

/// The part of rows that may be refused, in millionths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxRefused(u64);

impl MaxRefused {
    fn allows(self, refused: u64, rows: u64) -> bool {
        u128::from(refused) * u128::from(ALL) <= u128::from(self.0) * u128::from(rows)
    }
}

impl Default for MaxRefused {
    fn default() -> Self {
        MaxRefused(ALL / 1000)
    }
}

impl FromStr for MaxRefused {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let number = text.trim().trim_end_matches('%').trim_end();
        let parts = parse_exact(number, PLACES).ok().and_then(|parts| u64::try_from(parts).ok());
        let wrong = "expected a percentage from 0% to 100%, such as 0.1%";
        parts.filter(|parts| *parts <= ALL).map(MaxRefused).ok_or(wrong)
    }
}

impl fmt::Display for MaxRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format_scaled(i128::from(self.0), PLACES);
        let short = text.trim_end_matches('0').trim_end_matches('.');
        write!(f, "{} %", if short.is_empty() { "0" } else { short })
    }
}

/// More rows were refused than may be.
#[derive(Debug, Error)]
#[error(
    "{refused} of {rows} rows were refused, for the reasons above; --max-refused allows {most}"
)]
struct TooManyRefusedError {
    refused: u64,
    rows: u64,
    most: MaxRefused,
}

/// No window has a result.
#[derive(Debug, Error)]
#[error("no window opened, for the reasons above, so there is no result")]
struct NoWindowError;

/// Fails if no row can be used, or more are refused than may be.
///
/// # Errors
/// A [`Failure`] with the reasons.
pub(super) fn check_rows(inputs: &Inputs, args: &Args) -> Result<(), Failure> {
    let recording = &inputs.recording;
    let (refused, rows) = (recording.refused.total(), recording.rows);
    let is_empty = recording.streams.is_empty();
    if !is_empty && args.max_refused.allows(refused, rows) {
        return Ok(());
    }
    // If standard error is closed, nobody can be notified.
    let _ = output::report_refused(&mut note::lines(), &recording.refused);
    let place = args.input.display().to_string();
    if !is_empty {
        let error = TooManyRefusedError { refused, rows, most: args.max_refused };
        let help = "fix the rows, or the source file and schema that describe them; a higher --max-refused leaves the refused rows out";
        return Err(Failure::new(Category::Input, error).at(place).with_help(help));
    }
    let (what, help) = match rows {
        0 => ("the recording has no row after the header", "give a recording with data"),
        _ => (
            "no row can be used: each was refused, for the reasons above",
            "fix the rows, or the source file and schema that describe them",
        ),
    };
    let failure = Failure::new(Category::Input, what).at(place).with_help(help);
    Err(failure.with_id(ErrorId::RecordingEmpty))
}

/// Fails if no window opened.
///
/// # Errors
/// A [`Failure`] with a way out.
pub(super) fn check_windows(counters: &Counters, shown: &WindowReport) -> Result<(), Failure> {
    if counters.opened > 0 {
        return Ok(());
    }
    Err(no_window(shown.remedy()))
}

/// No window opened. The remedy is what to ask for instead, if that is known.
#[must_use]
pub fn no_window(remedy: Option<String>) -> Failure {
    let help = remedy.unwrap_or_else(|| {
        "ask for longer windows, in which more owners have data, or bring data of more owners; the lines above say what each window lacked".to_owned()
    });
    Failure::new(Category::Check, NoWindowError).with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_rows_may_be_refused() {
        let most: MaxRefused = "0.1%".parse().unwrap();
        assert_eq!((most, most.to_string()), (MaxRefused::default(), "0.1 %".to_owned()));
        assert!(most.allows(1, 1000) && !most.allows(1, 999) && most.allows(0, 0));
        assert!("100".parse::<MaxRefused>().unwrap().allows(5, 5));
        assert!("0 %".parse::<MaxRefused>().is_ok_and(|none| !none.allows(1, 1_000_000)));
        for wrong in ["101%", "-1%", "few"] {
            assert!(wrong.parse::<MaxRefused>().is_err(), "{wrong}");
        }
    }
}
