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
    place.or_else(|| both(text)).or_else(|| in_name(text).map(Region::Fixed))
}

/// The place of a winter and a summer time, as in `CET/CEST`: one whose clocks change between them.
fn both(text: &str) -> Option<Region> {
    const PLACES: [(&str, &str, &str); 12] = [
        ("CET", "CEST", "Europe/Berlin"),
        ("MEZ", "MESZ", "Europe/Berlin"),
        ("MET", "MEST", "Europe/Berlin"),
        ("GMT", "BST", "Europe/London"),
        ("WET", "WEST", "Europe/Lisbon"),
        ("EET", "EEST", "Europe/Helsinki"),
        ("EST", "EDT", "America/New_York"),
        ("CST", "CDT", "America/Chicago"),
        ("MST", "MDT", "America/Denver"),
        ("PST", "PDT", "America/Los_Angeles"),
        ("AEST", "AEDT", "Australia/Sydney"),
        ("NZST", "NZDT", "Pacific/Auckland"),
    ];
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let found =
        PLACES.iter().find(|(one, other, _)| words.contains(one) && words.contains(other))?;
    Region::parse(found.2)
}

/// A zone in a text: `GMT-04:00`, `UTC+1`, `(UTC)`, `time_utc`, `MST`, `+01:00`.
fn in_name(name: &str) -> Option<i32> {
    let (mut zone, name) = (None, &joined(name));
    for word in
        name.split(|c: char| !(c.is_alphanumeric() || matches!(c, '+' | '-' | ':' | '\u{2212}')))
    {
        let word = word.trim_start_matches(':').trim_end_matches([':', '-']);
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

/// A name without the spaces in `UTC - 5`, and in `UTC offset: -5`.
fn joined(name: &str) -> String {
    let (mut text, mut rest) = (String::new(), name);
    while let Some(at) = ["UTC", "GMT"].iter().filter_map(|zone| rest.find(zone)).min() {
        let (before, behind) = rest.split_at(at + 3);
        text.push_str(before);
        let offset =
            behind.trim_start_matches(|c: char| !(c.is_ascii_digit() || "+-\u{2212}".contains(c)));
        let between = behind[..behind.len() - offset.len()].trim().to_lowercase();
        let digits = offset.trim_start_matches(['+', '-', '\u{2212}']);
        let sign = &offset[..offset.len() - digits.len()];
        let number = digits.trim_start();
        let is_offset =
            sign.chars().count() == 1 && number.starts_with(|c: char| c.is_ascii_digit());
        if is_offset && (between.is_empty() || between.starts_with("offset")) {
            text.push_str(sign);
            rest = number;
        } else {
            rest = behind;
        }
    }
    text + rest
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
            ("time (UTC -5)", Some(-18_000)),
            ("time UTC - 5", Some(-18_000)),
            ("UTC offset: -05:00", Some(-18_000)),
            ("UTC offset;-5", Some(-18_000)),
            ("time, -03:30", Some(-12_600)),
            ("UTC, 2 m above ground", Some(0)),
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
        for (name, expected) in
            [("MTU (CET/CEST)", "Europe/Berlin"), ("time EST/EDT", "America/New_York")]
        {
            let found = find(&[name], &[]);
            assert!(
                matches!(&found, Zone::Fixed(region, _) if region.text() == expected),
                "{name}"
            );
        }
        assert_eq!(find(&["t"], &["Station EST 4".to_owned()]), Zone::Unstated);
    }
}
