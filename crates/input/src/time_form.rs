//! How a source file says that times are written, in the words of an error.

use std::fmt;

/// How times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeForm {
    /// Nothing is said of it.
    Unstated,
    /// With a text before the number.
    Prefix,
    /// As numbers of a unit.
    Unit,
    /// As numbers of steps.
    Steps,
    /// As texts of a format.
    Format,
}

impl fmt::Display for TimeForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimeForm::Unstated => {
                "neither a number of seconds since 1970 nor a text such as 2024-07-01T10:00:00Z; say how it is written with `time.unit` or `time.format`"
            }
            TimeForm::Prefix => "not a text that begins with `time.prefix`",
            TimeForm::Unit => "not a number, which `time.unit` requires",
            TimeForm::Steps => "not a whole number, which `time.steps` requires",
            TimeForm::Format => "not in the format `time.format`",
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::source::{Time, TimeReader};

    #[test]
    fn a_time_that_cannot_be_read_is_compared_with_what_is_said_of_times() {
        for (time, text, expected) in [
            ("{ column: t }", "noon", "neither a number of seconds since 1970 nor a text such as"),
            ("{ column: t, zone: UTC }", "noon", "say how it is written with `time.unit` or"),
            ("{ column: t, unit: ms }", "noon", "not a number, which `time.unit` requires"),
            (
                "{ column: t, format: '%H:%M', date: 2024-03-01 }",
                "noon",
                "not in the format `time.format`",
            ),
            ("{ column: t, prefix: w }", "44", "not a text that begins with `time.prefix`"),
            (
                "{ column: t, steps: { first: 1, origin: 2, length: 3 } }",
                "1.5",
                "not a whole number, which `time.steps` requires",
            ),
        ] {
            let read: Time = serde_saphyr::from_str(time).unwrap();
            let error = TimeReader::new(&read).unwrap().read(text).unwrap_err().to_string();
            assert!(
                error.starts_with("the time is ") && error.contains(expected),
                "{time}: {error}"
            );
        }
    }

    #[test]
    fn days_are_counted_from_a_date_beside_their_unit() {
        let time = |text: &str| TimeReader::new(&serde_saphyr::from_str(text).unwrap());
        let days = time("{ column: t, unit: days, date: 2020-01-02 }").unwrap();
        // 2019-12-19, and noon of 2020-01-02.
        for (text, seconds) in [("-14", 1_576_713_600), ("0.5", 1_577_966_400)] {
            assert_eq!(days.read(text).unwrap().0, seconds * 1_000_000, "{text}");
        }
        for wrong in ["unit: s, date: 2020-01-02", "unit: days, date: 2020-02-30"] {
            assert!(time(&format!("{{ column: t, {wrong} }}")).is_err(), "{wrong}");
        }
    }
}
