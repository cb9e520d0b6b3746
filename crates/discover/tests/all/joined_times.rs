//! Which date, time of day and zone belong together, and what is no part of a row's time.

use crate::look;
use alpheus_discover::Understanding;

fn rows(header: &str, count: u32, row: impl Fn(u32) -> String) -> String {
    (0..count).fold(format!("{header}\n"), |text, n| text + &row(n) + "\n")
}

fn time(found: &Understanding) -> Vec<&str> {
    found.time.columns.iter().map(|at| found.names[*at].as_str()).collect()
}

fn notes(found: &Understanding, column: &str) -> bool {
    let says = format!("`{column}` holds times too");
    found.notes.iter().any(|note| note.starts_with(&says))
}

/// A date, and a time of day.
fn moment(n: u32) -> (String, String) {
    (format!("2019-06-{:02}", n % 28 + 1), format!("{:02}:{:02}:00", n * 5 % 24, n * 7 % 60))
}

#[test]
fn when_a_record_changed_is_not_when_it_was_measured() {
    for changed in ["LastChangeDate", "last_changed", "Revised"] {
        let header =
            format!("well,Visit_StartDate,Visit_StartTime,Visit_StartTimeZone,level,{changed}");
        let text = rows(&header, 40, |n| {
            let (date, clock) = moment(n);
            format!("w{},{date},{clock},EDT,{n}.5,Tue Mar 05 06:07:0{} UTC 2024", n % 4, n % 7)
        });
        let found = look(text);
        assert_eq!(time(&found), ["Visit_StartDate", "Visit_StartTime", "Visit_StartTimeZone"]);
        assert!(notes(&found, changed), "{:?}", found.notes);
    }
}
