//! Times for people, in the zone of this machine. Programs get ISO 8601 or numbers.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time in Unix milliseconds as a date and a time of the day, in the zone of this machine.
#[must_use]
pub fn local_time(unix_ms: u64) -> String {
    in_zone(unix_ms, TimeZone::system())
}

/// A time in Unix milliseconds as ISO 8601 in UTC, which programs read everywhere.
#[must_use]
pub fn iso_time(unix_ms: u64) -> String {
    match timestamp(unix_ms) {
        Some(time) => {
            time.to_zoned_datetime(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
        }
        None => unix_ms.to_string(),
    }
}

fn timestamp(unix_ms: u64) -> Option<Timestamp> {
    i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok())
}

fn in_zone(unix_ms: u64, zone: TimeZone) -> String {
    match timestamp(unix_ms) {
        Some(time) => time.to_zoned_datetime(zone).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        // Beyond the year 9999.
        None => unix_ms.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::Offset;

    #[test]
    fn times_are_those_of_the_zone() {
        let zone = TimeZone::fixed(Offset::constant(2));
        assert_eq!(in_zone(1_700_000_000_000, TimeZone::UTC), "2023-11-14 22:13:20");
        assert_eq!(in_zone(1_700_000_000_000, zone), "2023-11-15 00:13:20");
        assert_eq!(iso_time(1_700_000_000_000), "2023-11-14T22:13:20Z");
        assert_eq!(in_zone(u64::MAX, TimeZone::UTC), u64::MAX.to_string());
    }
}
