//! The zone of times: from the names of their columns, or the lines above the table.

use super::Zone;
use crate::clock::{Region, words};

/// Looks for a zone.
pub(super) fn find(names: &[&str], above: &[String]) -> Zone {
    if let Some(region) = names.iter().find_map(|name| region(name)) {
        return Zone::Fixed(region, "the column's name says so");
    }
    let legend = names.iter().find_map(|name| {
        let line = above.iter().find(|line| {
            line.split_once(['=', ':', ';']).is_some_and(|(left, _)| left.trim() == *name)
        })?;
        region(line)
    });
    let zone = |line: &&String| {
        let lower = line.to_lowercase();
        ["timezone", "time zone", "time_zone", "zeitzone", "utc offset", "utcoffset"]
            .iter()
            .any(|word| lower.contains(word))
    };
    match legend.or_else(|| above.iter().filter(zone).find_map(|line| region(line))) {
        Some(region) => Zone::Fixed(region, "a line above the table says so"),
        None => Zone::Unstated,
    }
}

/// A zone in a text: a place such as `Europe/Berlin`, or an offset.
fn region(text: &str) -> Option<Region> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+'));
    let places = text.split(word).filter(|word| word.contains('/') && word.len() > 5);
    let place = places.filter_map(Region::parse).next();
    place.or_else(|| in_name(text).map(Region::Fixed))
}

/// A zone in a text: `GMT-04:00`, `UTC+1`, `(UTC)`, `time_utc`, `MST`, `+01:00`.
fn in_name(name: &str) -> Option<i32> {
    let mut zone = None;
    for word in
        name.split(|c: char| !(c.is_alphanumeric() || matches!(c, '+' | '-' | ':' | '\u{2212}')))
    {
        let word = word.trim_matches([':', '-']);
        let start = word.get(..3).unwrap_or_default();
        let is_offset = (start == "UTC" || start == "GMT") && word.len() > 3;
        if is_offset || (word.starts_with(['+', '-']) && word.contains(':')) {
            return words::offset(word);
        }
        let upper = word.chars().all(|c| c.is_ascii_uppercase()) && word.len() > 1;
        let known = matches!(word, "utc" | "gmt" | "Utc") || upper;
        if known && zone.is_none() {
            zone = words::zone(word);
        }
    }
    zone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_found_in_names_and_above() {
        for (name, seconds) in [
            ("Date Time, GMT-04:00", Some(-14_400)),
            ("MST", Some(-25_200)),
            ("time_utc", Some(0)),
            ("Zeit [CET]", Some(3600)),
            ("timestamp (UTC+2)", Some(7200)),
            ("ActivityHour", None),
            ("met", None),
        ] {
            assert_eq!(in_name(name), seconds, "{name}");
        }
        let above = ["HH  = time (HH uur/hour, UT. 12 UT=13 MET".to_owned()];
        assert!(matches!(find(&["YYYYMMDD", "HH"], &above), Zone::Fixed(Region::Fixed(0), _)));
        assert!(matches!(
            find(&["t"], &["Time zone: UTC+01:00".to_owned()]),
            Zone::Fixed(Region::Fixed(3600), _)
        ));
        let place = find(&["t"], &["Zeitzone;Europe/Berlin".to_owned()]);
        assert!(matches!(&place, Zone::Fixed(region, _) if region.text() == "Europe/Berlin"));
        assert_eq!(find(&["t"], &["Station EST 4".to_owned()]), Zone::Unstated);
    }
}
