//! Zones and offsets in cells of their own.

use super::doubts::asks;
use super::wild::lines;
use super::{ExpectedFile, is, look};
use alpheus_discover::{Hints, understand};

/// A row for each number, with a local time at 10:00 and later.
fn rows(row: impl Fn(u32, &str) -> String) -> String {
    lines(120, |n| row(n, &format!("{:02}:{:02}:{:02}", 10 + n / 60, n % 60, n % 7)))
}

/// Of a time that begins with a bracket, the offset ends with one.
#[test]
fn the_zone_of_a_web_log_in_two_cells_is_used() {
    let row = |n: u32, time: &str| {
        format!(
            "10.0.0.{} - - [29/Jan/2024:{time} -0400] \"GET /p{} HTTP/1.0\" 200 {}",
            n % 9,
            n % 4,
            n * 3
        )
    };
    let expected = ExpectedFile {
        owner: Some("column 1"),
        time: &["column 4", "column 5"],
        format: "[%d/%b/%Y:%H:%M:%S %z]",
        zone: "offset in the value",
        attribute: ("column 8", 120, "21420"),
        rows: 120,
    };
    let found = is(rows(row), &expected);
    // 10:00:00-04:00.
    assert_eq!(found.tally.span.unwrap().0, 1_706_536_800_000_000);
    let row = |n: u32, time: &str| {
        format!("10.0.0.{},[29/Jan/2024:{time},{},{n}", n % 9, ["-0400", "+0100"][n as usize % 2])
    };
    let expected = ExpectedFile {
        owner: Some("ip"),
        time: &["time", "column 3"],
        format: "[%d/%b/%Y:%H:%M:%S %z",
        attribute: ("bytes", 120, "7140"),
        ..expected
    };
    is(format!("ip,time,,bytes\n{}", rows(row)), &expected);
}

#[test]
fn offsets_beside_local_times_are_used_or_asked_about() {
    let text = |time: &str, offsets: [&str; 2]| {
        let row = |n: u32, own: &str| {
            format!("2024-01-29 {own},u{},{},{n}", n % 4, offsets[n as usize / 60])
        };
        format!("{time},user,utc_offset,steps\n{}", rows(row))
    };
    let expected = ExpectedFile {
        owner: Some("user"),
        time: &["local_time", "utc_offset"],
        format: "%Y-%m-%d %H:%M:%S %z",
        zone: "offset in the value",
        attribute: ("steps", 120, "7140"),
        rows: 120,
    };
    is(text("local_time", ["+02:00", "+01:00"]), &expected);
    let open = text("start_time", ["UTC+0200", "UTC+0100"]);
    let found = look(&open);
    assert!(
        found.questions.iter().any(|q| q.contains("`utc_offset` holds offsets")),
        "{:?}",
        found.questions
    );
    let said = Hints {
        time: vec!["start_time".to_owned(), "utc_offset".to_owned()],
        time_format: Some("%Y-%m-%d %H:%M:%S %z".to_owned()),
        ..Hints::default()
    };
    let said = understand(open.as_bytes(), &said).unwrap();
    assert_eq!((said.questions.len(), said.tally.span), (0, found.tally.span));
    for offsets in [["-5", "-4"], ["-300", "-240"], ["10", "10"], ["3600", "7200"]] {
        let found = look(text("time", offsets));
        let asked = found.questions.iter().filter(|q| q.contains("`utc_offset` holds offsets"));
        assert_eq!(asked.count(), 1, "{:?}", found.questions);
        assert!(found.attributes.iter().all(|own| own.column == "steps"));
    }
    // Many seconds are no offsets.
    let row = |n: u32, own: &str| format!("2024-01-29 {own},{},{n}", n * 7);
    let found = look(format!("time,time_offset,v\n{}", rows(row)));
    assert!(
        found.questions.is_empty()
            && found.attributes.iter().any(|own| own.column == "time_offset")
    );
    // Nothing is open where the zone of times is known.
    let found = look(text("time_utc", ["-5", "-4"]));
    assert_eq!((found.questions.len(), found.attributes.len()), (0, 1));
}

#[test]
fn when_a_record_was_created_is_not_when_it_was_measured() {
    let row = |n: u32, own: &str| format!("2024-02-01 {own},2024-01-29 {own},{n}");
    let found = look(format!("create_time,start_time,heart_rate\n{}", rows(row)));
    assert_eq!(found.time.columns, [1]);
}

/// A logger names the zone of its place in winter, and the offset of its clock in summer.
#[test]
fn a_stated_offset_comes_before_the_name_of_a_zone() {
    let text = |zone: &str, offset: &str| {
        let row = |n: u32, own: &str| format!("\"{n}\",\"2024-07-15\",\"{own}\",\"{}\"", n * 3);
        let above = format!("\"Model:\",\"K2\"\n\"Time Zone:\",\"{zone}\"\n");
        let offset = match offset {
            "" => String::new(),
            own => format!("\"Time Zone Offset:\",\"{own}\",\"hours:minutes\"\n"),
        };
        format!("{above}{offset}\n\"Line\",\"Date\",\"Time\",\"Count\"\n{}", rows(row))
    };
    let of = |zone: &str, offset: &str| {
        let found = look(text(zone, offset));
        (found.zone_text(), found.questions.len())
    };
    let contradicts = "the offset +01:00 and the zone +00:00, which contradict each other";
    asks(&text("(UTC) Dublin, Lisbon", "+01:00"), contradicts);
    assert_eq!(of("(UTC) Dublin, Lisbon", "+01:00"), ("UTC+01:00".to_owned(), 1));
    assert_eq!(of("(UTC) Dublin, Lisbon", "+00:00"), ("UTC+00:00".to_owned(), 0));
    assert_eq!(of("(UTC) Dublin, Lisbon", ""), ("UTC+00:00".to_owned(), 0));
    assert_eq!(of("Lisbon and nearby", "+01:00"), ("UTC+01:00".to_owned(), 0));
    // The place has this offset in summer, and knows when its clocks change.
    assert_eq!(of("Europe/Lisbon", "+01:00"), ("Europe/Lisbon".to_owned(), 0));
    assert_eq!(of("Europe/Lisbon", "+05:00"), ("UTC+05:00".to_owned(), 1));
    let said = Hints { zone: alpheus_discover::clock::Region::parse("UTC"), ..Hints::default() };
    let found = understand(text("(UTC) Dublin, Lisbon", "+01:00").as_bytes(), &said).unwrap();
    assert_eq!(found.questions, [""; 0]);
}

/// A place knows when its clocks change.
#[test]
fn a_place_beside_its_own_offset_is_the_zone() {
    let text = |line: &str| {
        let row = |n: u32, own: &str| format!("2024-07-15 {own},u{},{n}", n % 4);
        format!("# {line}\ntime,user,steps\n{}", rows(row))
    };
    let of = |line: &str| {
        let found = look(text(line));
        (found.zone_text(), found.questions.len())
    };
    for line in [
        "Timezone: Europe/Berlin (UTC offset +01:00)",
        "Timezone: Europe/Berlin (UTC offset: +02:00)",
        "Time zone: Europe/Berlin, offset +1",
        "Time zone: CET/CEST, UTC offset +1",
        "Time zone: Europe/Berlin, UTC offset",
    ] {
        assert_eq!(of(line), ("Europe/Berlin".to_owned(), 0), "{line}");
    }
    for line in ["Europe/Berlin (UTC offset +05:00)", "Europe/Berlin, offset +5"] {
        assert_eq!(of(&format!("Timezone: {line}")), ("UTC+05:00".to_owned(), 1), "{line}");
    }
    assert_eq!(of("UTC offset: 0"), ("UTC+00:00".to_owned(), 0));
    let own = ("UTC+01:00".to_owned(), 0);
    assert_eq!([of("Time zone offset: +1"), of("Time zone: offset of +01:00")], [own.clone(), own]);
}

#[test]
fn the_zone_behind_the_time_of_the_first_row_is_that_of_all() {
    let text = |zone: &str, clock: &str| {
        let row = |n: u32, own: &str| format!("2024-07-15 {own},u{},{n}", n % 4);
        let rows = rows(row);
        format!("Start: 2024-07-15 {clock} {zone}\nModel: K2\n\ntime,user,steps\n{rows}")
    };
    let zone = |zone: &str, clock: &str| look(text(zone, clock)).zone_text();
    assert_eq!(zone("GMT", "10:00:00"), "UTC+00:00");
    assert_eq!(zone("GMT+02:00", "10:00:00"), "UTC+02:00");
    assert_eq!(zone("K2", "10:00:00"), "none stated");
    let below = text("GMT", "10:00:00").replace("steps\n", "steps\nbins of a mean:,0,0\n");
    assert_eq!(look(below).zone_text(), "UTC+00:00");
    // The time of something else.
    assert_eq!(zone("GMT+02:00", "11:58:07"), "none stated");
}
