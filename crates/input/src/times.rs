//! Times of rows, as the source file describes them.

use super::refusals::RowError;
use super::source::{SourceError, Steps, Time};
use alpheus_discover::clock::{Clock, Format, words};
use alpheus_time::Timestamp;

/// Reads times.
#[derive(Clone, Debug)]
pub struct TimeReader {
    prefix: String,
    steps: Option<Steps>,
    clock: Clock,
}

impl TimeReader {
    /// Checks how times are described.
    ///
    /// # Errors
    /// A [`SourceError`] that names the setting.
    pub fn new(time: &Time) -> Result<TimeReader, SourceError> {
        if time.column.is_some() != time.columns.is_empty() {
            return Err(SourceError::TimeColumns);
        }
        let zone = match &time.zone {
            None => 0,
            Some(text) => {
                words::offset(text).ok_or_else(|| SourceError::Zone { zone: text.clone() })?
            }
        };
        let formats: Vec<Format> =
            time.format.iter().map(|text| Format::new(text)).collect::<Result<_, _>>()?;
        let counted = time.unit.is_some() || time.steps.is_some();
        let clock = match (formats.is_empty(), counted) {
            (true, _) if time.columns.len() > 1 => return Err(SourceError::NoFormat),
            (true, _) => Clock::Count(time.unit.unwrap_or_default()),
            (false, true) => return Err(SourceError::FormatAndUnit),
            (false, false) => Clock::Formats(formats, zone),
        };
        Ok(TimeReader { prefix: time.prefix.clone(), steps: time.steps, clock })
    }

    /// Reads a text as a time.
    ///
    /// # Errors
    /// The text is not a time of this form, or is out of range.
    pub fn read(&self, text: &str) -> Result<Timestamp, RowError> {
        let text = text.strip_prefix(self.prefix.as_str()).ok_or(RowError::BadTime)?;
        let micros = match self.steps {
            None => self.clock.micros(text).ok_or(RowError::BadTime)?,
            Some(steps) => {
                let number: i128 = text.parse::<u64>().map_err(|_| RowError::BadTime)?.into();
                let seconds = (number - i128::from(steps.first)) * i128::from(steps.length);
                let micros = (seconds + i128::from(steps.origin)).checked_mul(1_000_000);
                micros.and_then(|t| i64::try_from(t).ok()).ok_or(RowError::TimeOutOfRange)?
            }
        };
        let micros = u64::try_from(micros).map_err(|_| RowError::TimeOutOfRange)?;
        if micros < Timestamp::LIMIT.0 {
            Ok(Timestamp(micros))
        } else {
            Err(RowError::TimeOutOfRange)
        }
    }
}
