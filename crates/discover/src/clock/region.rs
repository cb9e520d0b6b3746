//! Zones: an offset from Greenwich, or a place of the tz database with its changes of the clocks.
//! The database is part of the program, so no file is opened.

use super::words;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};

const SECOND: i64 = 1_000_000;

/// The zone of times that do not say theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Region {
    /// So many seconds east of Greenwich.
    Fixed(i32),
    /// A place, such as Europe/Berlin.
    Place(TimeZone),
}

/// How often a local time occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// Once, as all do but those at a change of the clocks.
    Once,
    /// Never: the clocks skip it. It is taken as much later as they jump.
    Skipped,
    /// Twice: the clocks are set back over it. The first is taken.
    Repeated,
}

impl Default for Region {
    fn default() -> Self {
        Region::Fixed(0)
    }
}

impl Region {
    /// Reads an offset such as `UTC` or `+02:00`, or a name such as `Europe/Berlin`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Region> {
        let text = text.trim();
        if let Some(seconds) = words::offset(text) {
            return Some(Region::Fixed(seconds));
        }
        let place = TimeZoneDatabase::bundled().get(text).ok()?;
        place.iana_name().is_some().then_some(Region::Place(place))
    }

    /// Its text in source files: `+02:00` or `Europe/Berlin`.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Region::Fixed(seconds) => words::offset_text(*seconds),
            Region::Place(place) => place.iana_name().unwrap_or("UTC").to_owned(),
        }
    }

    /// A time in milliseconds since 1970 as this zone's clocks show it; none beyond the year 9999.
    #[must_use]
    pub fn local_text(&self, unix_ms: u64) -> Option<String> {
        let stamp = jiff::Timestamp::from_millisecond(i64::try_from(unix_ms).ok()?).ok()?;
        let zone = match self {
            Region::Fixed(seconds) => Offset::from_seconds(*seconds).ok()?.to_time_zone(),
            Region::Place(place) => place.clone(),
        };
        Some(stamp.to_zoned_datetime(zone).strftime("%Y-%m-%d %H:%M:%S").to_string())
    }

    /// The microseconds since 1970 of a local time, which is given as if it were UTC.
    #[must_use]
    pub fn micros(&self, local: i64) -> (i64, Local) {
        let at = |seconds: i32| local.saturating_sub(i64::from(seconds) * SECOND);
        let place = match self {
            Region::Fixed(seconds) => return (at(*seconds), Local::Once),
            Region::Place(place) => place,
        };
        let Ok(stamp) = jiff::Timestamp::from_microsecond(local) else {
            return (local, Local::Once);
        };
        let clock = Offset::UTC.to_datetime(stamp);
        match place.to_ambiguous_timestamp(clock).offset() {
            AmbiguousOffset::Unambiguous { offset } => (at(offset.seconds()), Local::Once),
            AmbiguousOffset::Gap { before, .. } => (at(before.seconds()), Local::Skipped),
            AmbiguousOffset::Fold { before, .. } => (at(before.seconds()), Local::Repeated),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_know_when_clocks_change() {
        let berlin = Region::parse("Europe/Berlin").unwrap();
        assert_eq!(berlin.text(), "Europe/Berlin");
        let hour = 3600 * SECOND;
        // 2024-03-31: 02:00 to 03:00 does not exist. 2024-10-27: 02:00 to 03:00 comes twice.
        let (spring, autumn) = (1_711_843_200 * SECOND, 1_729_987_200 * SECOND);
        for (local, utc, kind) in [
            (spring + hour, spring, Local::Once),
            (spring + 2 * hour + hour / 2, spring + hour + hour / 2, Local::Skipped),
            (spring + 3 * hour, spring + hour, Local::Once),
            (autumn + 2 * hour, autumn, Local::Repeated),
            (autumn + 3 * hour, autumn + 2 * hour, Local::Once),
            (0, -hour, Local::Once),
        ] {
            assert_eq!(berlin.micros(local), (utc, kind), "{local}");
        }
        assert_eq!(Region::parse("+02:00"), Some(Region::Fixed(7200)));
        for (zone, text) in [
            (berlin, "2023-11-14 23:13:20"),
            (Region::Fixed(-12_600), "2023-11-14 18:43:20"),
            (Region::default(), "2023-11-14 22:13:20"),
        ] {
            assert_eq!(zone.local_text(1_700_000_000_000).as_deref(), Some(text));
            assert_eq!(zone.local_text(u64::MAX), None);
        }
        assert_eq!(
            Region::parse("europe/berlin").map(|r| r.text()).as_deref(),
            Some("Europe/Berlin")
        );
        assert_eq!(Region::parse("Europe/Atlantis").or(Region::parse("")), None);
    }
}
