//! Zones and offsets in cells of their own.

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
