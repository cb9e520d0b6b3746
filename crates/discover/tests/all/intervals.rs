//! Times that are written as an interval in one cell.

use super::wild::lines;
use super::{ExpectedFile, is};
use alpheus_discover::write::files;

/// A quarter of an hour, so many after midnight of 2 May 2024.
fn at(n: u32) -> String {
    format!("2024-05-{:02} {:02}:{:02}:00", 2 + n / 96, n / 4 % 24, n % 4 * 15)
}

/// The text of an interval that begins so many quarters of an hour after midnight.
type Cell = Box<dyn Fn(u32) -> String>;

#[test]
fn an_interval_in_one_cell_begins_at_the_time() {
    let iso = |n: u32| at(n).replace(' ', "T") + ".0";
    let clock = |n: u32| at(n)[11..16].to_owned();
    let cases: [(&str, Cell); 4] = [
        ("%Y-%m-%d %H:%M:%S to %*", Box::new(|n| format!("{} to {}", at(n), at(n + 1)))),
        ("%Y-%m-%dT%H:%M:%S.%f/%*", Box::new(move |n| format!("{}/{}", iso(n), iso(n + 1)))),
        ("%Y-%m-%d %H:%M:%S - %*", Box::new(|n| format!("{} - {}", at(n), at(n + 1)))),
        ("%Y-%m-%d %H:%M:%S - %*", Box::new(move |n| format!("{} - {}", at(n), clock(n + 1)))),
    ];
    for (format, cell) in cases {
        let text = format!("period,kWh\n{}", lines(200, |n| format!("{},0.{n:03}", cell(n))));
        let expected = ExpectedFile {
            owner: None,
            time: &["period"],
            format,
            zone: "none stated",
            attribute: ("kWh", 200, "19.900"),
            rows: 200,
        };
        let found = is(&text, &expected);
        assert_eq!(found.tally.span, Some((1_714_608_000_000_000, 1_714_787_100_000_000)));
        let says = |note: &String| note.contains("start is the time");
        assert!(found.notes.iter().any(says), "{:?}", found.notes);
        let source = files(&found, "f.csv", None).source;
        assert!(source.contains(&format!("format: [\"{format}\"]")), "{source}");
    }
}
