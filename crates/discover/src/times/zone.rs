//! The zone of times: from the names of their columns, or the lines above the table.

use super::Zone;
use crate::clock::{Region, words};
use crate::profile::{Column, Profile};
use crate::words::{LOCAL, ZONES, has, worded};

/// Looks for a zone; with what to ask about it. `first` is the time of the first row.
pub(super) fn find((names, first): (&[&str], &str), above: &[String]) -> (Zone, Option<String>) {
    if let Some(region) = names.iter().find_map(|name| region(name)) {
        return (Zone::Fixed(region, "the column's name says so"), None);
    }
    let legend = names.iter().find_map(|name| {
        let line = above.iter().find(|line| {
            line.split_once(['=', ':', ';']).is_some_and(|(left, _)| left.trim() == *name)
        })?;
        region(line)
    });
    if let Some(region) = legend {
        return (Zone::Fixed(region, ABOVE), None);
    }
    if let Some(found) = stated(above) {
        return found;
    }
    if let Some(region) = above.iter().find_map(|line| beside(line, first)) {
        return (Zone::Fixed(region, ABOVE), None);
    }
    let said: Vec<ZoneNote> = above.iter().filter_map(|line| of_times(line)).collect();
    let sure = said.iter().find(|said| matches!(said, ZoneNote::Zone(_)));
    match sure.or(said.first()) {
        Some(ZoneNote::Zone(region)) => (Zone::Fixed(region.clone(), ABOVE), None),
        Some(ZoneNote::Perhaps(region)) => {
            (Zone::Fixed(region.clone(), ABOVE), Some(perhaps(&region.text())))
        }
        Some(ZoneNote::Local) => (Zone::Unstated, Some(IS_LOCAL.to_owned())),
        None => (Zone::Unstated, None),
    }
}

/// What says an offset.
const OFFSET: &[&str] = &["offset", "versatz", "verschiebung", "abweichung", "décalage"];

/// The zone that lines above the table state. One may name the zone, and another the offset: that
/// decides, unless it is one of the place that is named.
fn stated(above: &[String]) -> Option<(Zone, Option<String>)> {
    const ZONE: &[&str] =
        &["timezone", "time zone", "time_zone", "zeitzone", "utc offset", "utcoffset", "fuseau"];
    let says = |line: &str, list: &[&str]| {
        let lower = line.to_lowercase();
        list.iter().any(|word| lower.contains(word))
    };
    let zones = || above.iter().filter(|line| says(line, ZONE));
    let offset = zones().filter(|line| says(line, OFFSET)).find_map(|line| behind_offset(line));
    // A line may have both.
    let named =
        zones().find_map(|line| if says(line, OFFSET) { place(line) } else { region(line) });
    let (offset, named) = match (offset.map(Region::Fixed), named) {
        (Some(offset), Some(named)) => (offset, named),
        (offset, named) => return Some((Zone::Fixed(offset.or(named)?, ABOVE), None)),
    };
    if may_have(&named, &offset) {
        return Some((Zone::Fixed(named, ABOVE), None));
    }
    let (own, other) = (offset.text(), named.text());
    let asked = format!(
        "Lines above the table state the offset {own} and the zone {other}, which contradict each other. Times are read with the offset. Use `--zone {own}` if that is right, `--zone {other}` if not, or name a place whose clocks change, such as `--zone Europe/London`."
    );
    Some((Zone::Fixed(offset, ABOVE), Some(asked)))
}

/// The offset behind such a word, as in `Europe/Berlin, offset +1`, or elsewhere in the line. A place
/// such as `Etc/GMT-1` is none.
fn behind_offset(line: &str) -> Option<i32> {
    let lower = line.to_lowercase();
    let end = |word: &&str| lower.find(*word).map(|at| at + word.len());
    let rest = OFFSET.iter().find_map(end).and_then(|at| lower.get(at..)).unwrap_or_default();
    let sign = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '=' | '(' | ')' | '"');
    let mut words = rest.split(sign).map(|word| word.trim_matches(':'));
    let mut first = words.clone().filter(|word| !word.is_empty());
    let is_zero = first.next().is_some_and(|word| word.trim_matches(['0', ':']).is_empty());
    let signed = |word: &str| word.starts_with(['+', '-', '\u{2212}']) && word.len() > 1;
    if let Some(seconds) = words.find(|word| signed(word)).and_then(words::offset) {
        return Some(seconds);
    }
    let other = line.split_whitespace().filter(|word| !word.contains('/'));
    let other = other.collect::<Vec<_>>().join(" ");
    // In `UTC offset` is none, and in `UTC offset: 0` is.
    let open = |seconds: &i32| {
        *seconds != 0 || is_zero || in_name(&other.replace("UTC offset", "")).is_some()
    };
    in_name(&other).filter(open)
}

/// Whether the clocks of a zone have this offset in winter or in summer.
fn may_have(zone: &Region, offset: &Region) -> bool {
    // 2024-01-15 and 2024-07-15.
    const DAYS: [i64; 2] = [1_705_276_800_000_000, 1_721_001_600_000_000];
    DAYS.iter().any(|day| zone.micros(*day) == offset.micros(*day))
}

/// The zone behind the time of the first row, as in `Start: 2024-03-01 10:00:00 GMT`.
fn beside(line: &str, first: &str) -> Option<Region> {
    const MIN: usize = 12;
    let is_time = first.len() >= MIN && first.contains(':');
    let (_, behind) = line.split_once(first).filter(|_| is_time)?;
    region(behind.trim())
}

/// What says a zone.
const ABOVE: &str = "a line above the table says so";
/// Asks about the zone of local times.
const IS_LOCAL: &str = "A line above the table says that times are local, but not where. They are read as UTC. Name the place with `--zone`, such as `--zone Europe/Berlin`, or use `--zone UTC` if they are in UTC.";

fn perhaps(zone: &str) -> String {
    format!(
        "A line above the table has the zone {zone} beside a time, which may not be that of the rows. Their times are read in this zone. Use `--zone {zone}` if that is right, or name another."
    )
}

/// What a line above the table says of times.
#[derive(Clone, Debug, PartialEq)]
enum ZoneNote {
    /// They are in this zone.
    Zone(Region),
    /// Some time is.
    Perhaps(Region),
    /// They are local.
    Local,
}

/// What says that a line is about times.
const TIMES: &[&str] = &[
    "time",
    "times",
    "timestamp",
    "timestamps",
    "zeit",
    "zeiten",
    "uhrzeit",
    "uhrzeiten",
    "zeitangabe",
    "zeitangaben",
    "zeitstempel",
    "heure",
    "heures",
    "horaire",
    "hora",
    "horas",
    "ora",
    "orario",
    "tijd",
    "tijden",
    "clock",
];
/// Words between these and the zone.
const BETWEEN: &[&str] = &[
    "in",
    "is",
    "are",
    "as",
    "all",
    "given",
    "shown",
    "the",
    "ist",
    "sind",
    "als",
    "alle",
    "angegeben",
    "jeweils",
    "nach",
    "en",
    "est",
    "sont",
    "son",
    "sono",
    "zijn",
];

/// What a line says of times: `Zeit: MEZ`, `All times in UTC+1`, `Times are local`.
fn of_times(line: &str) -> Option<ZoneNote> {
    let joined = joined(line);
    let sign = |c: char| {
        c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '[' | ']' | '=' | '#' | '"')
    };
    let word = |word: &str| word.trim_end_matches([':', '.', '-']).to_owned();
    let all: Vec<String> = joined.split(sign).map(word).filter(|word| !word.is_empty()).collect();
    let is = |word: &String, list: &[&str]| list.contains(&word.to_lowercase().as_str());
    let behind = |at: usize| all[at + 1..].iter().find(|word| !is(word, BETWEEN));
    let before = |at: usize| at.checked_sub(1).map(|at| &all[at]);
    let times = || (0..all.len()).filter(|at| is(&all[*at], TIMES));
    let near = || times().flat_map(|at| behind(at).into_iter().chain(before(at)));
    if let Some(region) = near().find_map(|word| region(word)) {
        return Some(if all.iter().any(|word| is_moment(word)) {
            ZoneNote::Perhaps(region)
        } else {
            ZoneNote::Zone(region)
        });
    }
    let local = near().any(|word| is(word, LOCAL));
    let local = local || all.iter().any(|word| is(word, &["ortszeit", "lokalzeit"]));
    local.then(|| region(line).map_or(ZoneNote::Local, ZoneNote::Zone))
}

/// Whether a word is a date or a time of day, such as that of an export.
fn is_moment(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    word.starts_with(|c: char| c.is_ascii_digit()) && (digits >= 4 || word.contains(':'))
}

/// The zone in a column beside the times that has a place in each row, and what to ask if these
/// differ.
pub(super) fn in_column(profile: &Profile) -> Option<(Zone, Option<String>)> {
    let place = |text: &String| text.contains('/') && Region::parse(text).is_some();
    let fits = |column: &&Column| {
        let all = column.texts.values().sum::<u64>() == profile.rows && !column.many_texts;
        all && has(&column.name, ZONES) && column.texts.keys().all(place)
    };
    let column = profile.columns.iter().find(fits)?;
    if let [only] = column.texts.keys().collect::<Vec<_>>().as_slice() {
        let region = Region::parse(only)?;
        return Some((Zone::Fixed(region, "a column says so"), None));
    }
    let (name, word) = (&column.name, worded(&column.name));
    let asked = format!(
        "`{name}` has {} different zones, but source.yaml has one for all rows. Write times in UTC, such as 2024-05-01T12:30:00Z, or with their offsets. Use `--zone UTC --leave-out {word}` if they are in UTC already.",
        column.distinct()
    );
    Some((Zone::Unstated, Some(asked)))
}

/// A zone in a text: a place such as `Europe/Berlin`, or an offset.
fn region(text: &str) -> Option<Region> {
    place(text).or_else(|| in_name(text).map(Region::Fixed))
}

/// A place in a text: such as `Europe/Berlin`, or that of `CET/CEST`.
fn place(text: &str) -> Option<Region> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+'));
    let places = text.split(word).filter(|word| word.contains('/') && word.len() > 5);
    let place = places.filter_map(Region::parse).next();
    place.or_else(|| both(text))
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
        let find = |names: &[&str], above: &[String]| find((names, ""), above).0;
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

    #[test]
    fn lines_above_say_the_zone_of_times() {
        let zone = |text: &str| Some(ZoneNote::Zone(Region::parse(text).unwrap()));
        for (line, expected) in [
            ("# Netz: Wetter Nord, Zeit: MEZ", zone("+01:00")),
            ("Alle Zeiten in MEZ", zone("+01:00")),
            ("Zeit: UTC+1", zone("+01:00")),
            ("Zeit: UTC + 1", zone("+01:00")),
            ("All times are given in UTC.", zone("UTC")),
            ("times (CET/CEST)", zone("Europe/Berlin")),
            ("MEZ-Zeit", None),
            ("Time: Europe/Vienna", zone("Europe/Vienna")),
            ("UTC time", zone("UTC")),
            ("Times are local", Some(ZoneNote::Local)),
            ("local time", Some(ZoneNote::Local)),
            ("Alle Angaben in Ortszeit", Some(ZoneNote::Local)),
            ("Local time (UTC-5)", zone("-05:00")),
            ("Report time UTC: 2024-03-01 10:00", Some(ZoneNote::Perhaps(Region::Fixed(0)))),
            ("Time: 10:30", None),
            ("These time series are inhomogeneous because of station relocations", None),
            ("Station EST 4", None),
        ] {
            assert_eq!(of_times(line), expected, "{line}");
        }
    }
}
