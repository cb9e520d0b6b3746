//! Times that are numbers: seconds and parts of them since 1970, and the days of spreadsheets.

use crate::number::{Decimal, Marks};
use serde::{Deserialize, Serialize};

/// Days from a spreadsheet's day 0, 1899-12-30, to 1970-01-01.
const SPREADSHEET_EPOCH: i128 = 25_569;

/// The unit of a number that is a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Seconds since 1970.
    #[default]
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds since 1970.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Microseconds since 1970.
    #[serde(rename = "us")]
    Microseconds,
    /// Nanoseconds since 1970.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Days since 1970. Also rounds that are counted, such as years: each is then a day.
    #[serde(rename = "days")]
    Days,
    /// Days since 1899-12-30, as spreadsheets count them; rounded to a millisecond.
    #[serde(rename = "spreadsheet-days")]
    SpreadsheetDays,
}

impl Unit {
    /// Its name in source files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
            Unit::Nanoseconds => "ns",
            Unit::Days => "days",
            Unit::SpreadsheetDays => "spreadsheet-days",
        }
    }

    /// Its name for people, as in `epoch milliseconds`.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Unit::Seconds => "epoch seconds",
            Unit::Milliseconds => "epoch milliseconds",
            Unit::Microseconds => "epoch microseconds",
            Unit::Nanoseconds => "epoch nanoseconds",
            Unit::Days => "epoch days",
            Unit::SpreadsheetDays => "spreadsheet days",
        }
    }

    /// The unit of a name, as source files or people write it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Unit> {
        const ALL: [Unit; 6] = [
            Unit::Seconds,
            Unit::Milliseconds,
            Unit::Microseconds,
            Unit::Nanoseconds,
            Unit::Days,
            Unit::SpreadsheetDays,
        ];
        let text = text.trim();
        ALL.into_iter().find(|unit| text == unit.name() || text.eq_ignore_ascii_case(unit.says()))
    }

    /// The microseconds since 1970 of a number, rounded half away from zero.
    #[must_use]
    pub fn micros(self, text: &str) -> Option<i64> {
        let comma = || Marks { decimal: ',', ..Marks::default() }.plain(text);
        let plain = Marks::default().plain(text).or_else(comma)?;
        let number = Decimal::read(&plain)?;
        let micros = match self {
            Unit::Seconds => rounded(number.digits, 1_000_000, number.places)?,
            Unit::Milliseconds => rounded(number.digits, 1_000, number.places)?,
            Unit::Microseconds => rounded(number.digits, 1, number.places)?,
            Unit::Nanoseconds => rounded(number.digits, 1, number.places.checked_add(3)?)?,
            Unit::Days => rounded(number.digits, 86_400_000, number.places)?.checked_mul(1_000)?,
            Unit::SpreadsheetDays => {
                let days = number.minus(Decimal { digits: SPREADSHEET_EPOCH, places: 0 });
                rounded(days.digits, 86_400_000, days.places)?.checked_mul(1_000)?
            }
        };
        i64::try_from(micros).ok()
    }
}

/// `digits · factor / 10^places`, rounded half away from zero.
fn rounded(digits: i128, factor: i128, places: u8) -> Option<i128> {
    let divisor = 10i128.checked_pow(u32::from(places))?;
    let product = digits.checked_mul(factor)?;
    let half = if product < 0 { -(divisor / 2) } else { divisor / 2 };
    Some(product.checked_add(half)? / divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_is_read() {
        for (unit, text, micros) in [
            (Unit::Seconds, "1.5", 1_500_000),
            (Unit::Seconds, "-1.0000005", -1_000_001),
            (Unit::Milliseconds, "1424696633908", 1_424_696_633_908_000),
            (Unit::Microseconds, "1.4", 1),
            (Unit::Nanoseconds, "1424696631913248572", 1_424_696_631_913_249),
            (Unit::Days, "1984", 171_417_600_000_000),
            (Unit::Days, "0.5", 43_200_000_000),
            (Unit::SpreadsheetDays, "43101.0416666667", 1_514_768_400_000_000),
            (Unit::SpreadsheetDays, "43101,5", 1_514_808_000_000_000),
        ] {
            assert_eq!(unit.micros(text), Some(micros), "{text}");
        }
        assert_eq!(
            Unit::parse("epoch milliseconds")
                .and(Unit::Seconds.micros("noon"))
                .or(Unit::Seconds.micros("1e29")),
            None
        );
    }
}
