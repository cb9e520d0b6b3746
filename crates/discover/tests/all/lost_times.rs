//! Rows, measurements and times of day that must not be lost without a word.

use crate::doubts::asks;
use crate::look;
use alpheus_discover::{Hints, Understanding, understand};

fn rows(header: &str, count: u32, row: impl Fn(u32) -> String) -> String {
    (0..count).fold(format!("{header}\n"), |text, n| text + &row(n) + "\n")
}

fn time(found: &Understanding) -> Vec<&str> {
    found.time.columns.iter().map(|at| found.names[*at].as_str()).collect()
}

fn measured(found: &Understanding) -> Vec<&str> {
    found.attributes.iter().map(|own| own.column.as_str()).collect()
}

fn with_time(text: &str, columns: &[&str]) -> Understanding {
    let time = columns.iter().map(|&name| name.to_owned()).collect();
    let hints = Hints { time, ..Hints::default() };
    understand(text.as_bytes(), &hints).unwrap_or_else(|error| panic!("{error}"))
}

/// Seven owners, a row each minute.
fn minute(n: u32) -> String {
    format!("2024-03-14 {:02}:{:02}", n / 7 / 60, n / 7 % 60)
}

#[test]
fn hours_and_minutes_of_work_are_measured() {
    let text = rows("Date,Year,Month,Employee,Hours", 400, |n| {
        format!("2024-03-{:02},2024,3,E{},{}.5", n / 20 + 1, n % 20, n * 7 % 9)
    });
    assert_eq!(measured(&look(text)), ["Hours"]);
    let text = rows("time,driver,hours,minutes,km", 400, |n| {
        format!("{}:00,E{},{},{},{}.5", minute(n), n % 7, n % 9, n * 7 % 60, n * 11 % 499)
    });
    assert_eq!(measured(&look(text)), ["hours", "minutes", "km"]);
    // One mean is no part of a time, if the other parts are none.
    let text = rows("Date,Year,Month,Employee,Hour", 400, |n| {
        format!("2024-03-{:02},2024,3,E{},{}.5", n / 20 + 1, n % 20, n * 7 % 9)
    });
    assert_eq!(measured(&look(text)), ["Hour"]);
}

#[test]
fn whole_hours_beside_a_date_are_asked_about() {
    let text = rows("date,employee,hours,minutes,km", 400, |n| {
        let (hours, minutes) = (n * 7 % 9, n * 7 % 60);
        format!("2024-03-{:02},E{},{hours},{minutes},{n}.5", n / 20 + 1, n % 20)
    });
    let found = look(&text);
    assert_eq!((time(&found), measured(&found)), (vec!["date"], vec!["hours", "minutes", "km"]));
    asks(&text, "or `--time date --time hours --time minutes`");
    let said = with_time(&text, &["date", "hours", "minutes"]);
    assert_eq!(said.time.format(), "%Y-%m-%d %H %M");
    let measure = vec!["hours".to_owned(), "minutes".to_owned()];
    let said = Hints { measure, ..Hints::default() };
    let found = understand(text.as_bytes(), &said).unwrap();
    assert!(!found.questions.iter().any(|own| own.contains("hours")), "{:?}", found.questions);
    // Minutes beside the hour of the day.
    let text = rows("date,hour,minutes,level", 400, |n| {
        format!("2024-03-{:02},{},{},{n}.5", n / 96 + 1, n / 4 % 24, n % 4 * 15)
    });
    asks(&text, "or `--time date --time hour --time minutes`");
}

#[test]
fn a_date_in_place_of_a_time_with_gaps_is_asked_about() {
    let text = rows("timestamp,date,meter,kwh", 700, |n| {
        let own = if n % 20 == 3 { String::new() } else { minute(n) + ":00" };
        format!("{own},2024-03-14,M{},{n}.5", n % 7)
    });
    asks(&text, "`timestamp` is empty in 35 rows");
    asks(&text, "`--time date`");
    assert_eq!(with_time(&text, &["timestamp"]).tally.untimed, 35);
}

#[test]
fn a_finer_time_that_fewer_rows_have_is_asked_about() {
    for names in ["Time 1,Time 2", "sent_time,recv_time", "time,timestamp"] {
        let text = |gap: u32| {
            rows(&format!("{names},meter,kwh"), 700, |n| {
                let own = minute(n);
                let fine = format!("{own}:{:02}", n * 7 % 50);
                let fine = if gap > 0 && n % gap == 3 { String::new() } else { fine };
                format!("{own},{fine},M{},{n}.5", n % 7)
            })
        };
        let (coarse, fine) = names.split_once(',').unwrap();
        let found = look(text(50));
        assert_eq!((time(&found), found.tally.rows), (vec![coarse], 700));
        asks(&text(50), &format!("`{fine}` is finer, but has no time in 14 of them"));
        assert_eq!(time(&look(text(0))), [fine]);
    }
}

#[test]
fn an_interval_is_read_together_with_other_columns() {
    let text = rows("time,zone,meter,kwh", 700, |n| {
        format!("{} to 2024-03-14 23:59,CET,M{},{n}.5", minute(n), n % 7)
    });
    let found = look(&text);
    assert_eq!((time(&found), found.tally.rows), (vec!["zone", "time"], 700));
    assert_eq!(found.time.format(), "%Z %Y-%m-%d %H:%M to %*");
    assert_eq!(found.tally.span.map(|(first, _)| first), Some(1_710_370_800_000_000));
    assert_eq!(time(&with_time(&text, &["time"])), ["zone", "time"]);
    let text = rows("week,hour,home,kwh", 700, |n| {
        format!("2024-03-14/2024-03-15,{},M{},{n}.5", n / 30, n % 7)
    });
    let found = look(&text);
    assert_eq!((time(&found), found.tally.rows), (vec!["hour", "week"], 700));
    asks(&text, "`--time week --time hour`");
    assert_eq!(with_time(&text, &["week", "hour"]).questions, [""; 0]);
    assert_eq!(with_time(&text, &["week"]).tally.rows, 700);
}
