//! Which column is the time, what else repeats it, and times that are none.

use crate::doubts::asks;
use crate::wild::lines;
use crate::{ExpectedFile, is, look};
use alpheus_discover::{Hints, OutlierTreatment, understand};

fn rows(header: &str, count: u32, row: impl Fn(u32) -> String) -> String {
    (0..count).fold(format!("{header}\n"), |text, n| text + &row(n) + "\n")
}

#[test]
fn the_range_of_an_export_is_not_the_time() {
    let text = rows("_start,_stop,_time,_value,host", 200, |n| {
        let time = format!("2023-05-01T{:02}:{:02}:00Z", n / 60, n % 60);
        format!("2023-05-01T00:00:00Z,2023-05-01T04:00:00Z,{time},{},h{}", n % 17, n % 2)
    });
    let found = look(&text);
    assert_eq!(found.names[found.time.columns[0]], "_time");
    assert_eq!(found.questions, [""; 0]);
}

/// Nights that a ring was not worn have a date and no time of going to bed.
#[test]
fn a_time_that_all_rows_have_comes_before_one_with_gaps() {
    let text = |header: &str, each: u32| {
        rows(header, 40, |n| {
            let night = format!("2024-05-{:02}T22:{:02}:00+02:00", n % 30 + 1, n * 7 % 60);
            let night = if n % each == 2 { String::new() } else { night };
            format!("2024-{:02}-{:02},{night},{}", n / 30 + 5, n % 30 + 1, n * 7 % 31)
        })
    };
    let found = look(text("date,bedtime start,score", 4));
    assert_eq!(found.names[found.time.columns[0]], "date");
    assert_eq!((found.tally.rows, found.questions.len()), (40, 0));
    assert!(found.notes.iter().any(|note| note.contains("`bedtime start` holds times too")));
    // A date of something else, and a time that a single row lacks.
    let lost = "`bedtime start` is empty in 10 of 40 rows, which are left out";
    asks(&text("checkout date,bedtime start,score", 4), lost);
    let one = text("date,bedtime start,score", 60);
    asks(&one, "Use `--time 'bedtime start'` if that is right, or `--time date` if not");
    let said = Hints { time: vec!["bedtime start".to_owned()], ..Hints::default() };
    let found = understand(one.as_bytes(), &said).unwrap();
    assert_eq!((found.tally.rows, found.questions.len()), (39, 0));
    // A plan is no time of a row.
    let found = look(text("planned date,bedtime start,score", 60));
    assert_eq!((found.tally.rows, found.questions.len()), (39, 0));
}

#[test]
fn weeks_of_a_year_are_no_months() {
    let weeks = |header: &str, most: u32, mark: &str| {
        let text = rows(header, most * 3, |n| {
            format!("c{},2021{mark}{:02},{}", n / most, n % most + 1, n * 7 % 31)
        });
        let found = look(&text);
        assert_eq!(found.questions, [""; 0], "{header}");
        found.time.format()
    };
    assert_eq!(weeks("country,year_week,cases", 12, "-"), "%G-%V");
    assert_eq!(weeks("country,Kalenderwoche,cases", 12, ""), "%G%V");
    assert_eq!(weeks("country,period,cases", 39, "-"), "%G-%V");
    assert_eq!(weeks("country,month,cases", 12, "-"), "%Y-%m");
    assert_eq!(weeks("country,period,cases", 12, "-"), "%Y-%m");
}

#[test]
fn parts_of_the_rows_time_are_not_measured() {
    let text = rows("when,yr,mnth,hr,wday,cnt", 800, |n| {
        let (year, day, hour) = (2011 + n / 400, n % 400 / 24 + 1, n % 24);
        // 2011-05-01 is a Sunday, and 2012-05-01 a Tuesday.
        let weekday = (day - 1 + 2 * (n / 400)) % 7;
        let time = format!("{year}-05-{day:02} {hour:02}:00");
        format!("{time},{},5,{hour},{weekday},{}", n / 400, n * 7 % 31)
    });
    let found = look(&text);
    let measured: Vec<&str> = found.attributes.iter().map(|own| own.column.as_str()).collect();
    assert!(!measured.iter().any(|own| ["yr", "hr", "wday"].contains(own)), "{measured:?}");
    assert!(measured.contains(&"cnt"), "{measured:?}");
    let fates = found.fates();
    let fate = |name: &str| fates.iter().find(|(own, _)| own == name).unwrap().1.clone();
    assert_eq!(fate("hr"), "left out: it is the hour of the row's time");
    let said = Hints { measure: vec!["hr".to_owned()], ..Hints::default() };
    let found = understand(text.as_bytes(), &said).unwrap();
    assert!(found.attributes.iter().any(|own| own.column == "hr"));
}

#[test]
fn lengths_of_time_beside_a_date_are_asked_about() {
    let text = rows("Athlete,Date,Time,Grade", 90, |n| {
        format!(
            "a{},2023-0{}-{:02},00:{}:{:02},{}.5",
            n % 9,
            n / 27 + 1,
            n % 27 + 1,
            18 + n % 22,
            n % 60,
            n % 40
        )
    });
    asks(&text, "`--time Date` if they are");
    let said = Hints { time: vec!["Date".to_owned()], ..Hints::default() };
    assert_eq!(understand(text.as_bytes(), &said).unwrap().questions, [""; 0]);
    assert_eq!(look(text.replace(",00:1", ",14:1").replace(",00:", ",07:")).questions, [""; 0]);
}

#[test]
fn days_far_from_all_others_are_asked_about() {
    let text = rows("sensor,time,level", 300, |n| {
        let time = match n {
            7 | 70 => "1970-01-01 00:00".to_owned(),
            _ => format!("2023-03-{:02} {:02}:00", n / 24 + 1, n % 24),
        };
        format!("s{},{time},{}.5", n % 3, n * 7 % 31)
    });
    asks(&text, "2 rows lie far from all others in time: on 1970-01-01");
    for outliers in [None, Some(OutlierTreatment::Keep), Some(OutlierTreatment::LeaveOut)] {
        let said = Hints { outliers, ..Hints::default() };
        assert_eq!(understand(text.as_bytes(), &said).unwrap().questions.len(), 1);
        let said = Hints { keep_far_days: true, ..said };
        assert_eq!(understand(text.as_bytes(), &said).unwrap().questions, [""; 0]);
    }
}

/// Days go on at their usual step with the day first, and jump by a month with the month first.
#[test]
fn one_midnight_shows_whether_the_day_is_first() {
    let row = |n: u32| {
        format!("{:02}/01/2016 {:02}:{:02},{}", 9 + n / 144, n / 6 % 24, n % 6 * 10, n % 70)
    };
    let expected = ExpectedFile {
        owner: None,
        time: &["when"],
        format: "%d/%m/%Y %H:%M",
        zone: "none stated",
        attribute: ("speed", 100, "3150"),
        rows: 100,
    };
    let table = |from: u32| format!("when,speed\n{}", lines(100, |n| row(n + from)));
    let found = is(table(80), &expected);
    assert!(found.notes.iter().any(|note| note.contains("the day is assumed to come first")));
    // One day alone shows nothing, nor does a gap of hours at midnight.
    asks(&table(0), "--day-first");
    let gap = format!("when,speed\n{}", lines(100, |n| row(n + if n < 50 { 60 } else { 140 })));
    asks(&gap, "--day-first");
    // The newest row may be first.
    let newest = lines(100, |n| row(179 - n));
    let found = look(format!("when,speed\n{newest}"));
    assert_eq!(found.questions, [""; 0]);
}

#[test]
fn minutes_beside_hours_are_a_part_of_the_time() {
    let measured = |header: &str| {
        let text = rows(header, 60, |n| {
            let (hour, minute) = (n / 12, n % 12 * 5);
            format!("2024-05-01 {hour:02}:{minute:02}:00+02:00,{hour},{minute},{}.5", n * 37 % 71)
        });
        look(text).attributes.iter().any(|own| own.column.eq_ignore_ascii_case("minute"))
    };
    assert!(!measured("time,Hour,Minute,ghi"));
    // Of a match, or a length.
    assert!(measured("time,goals,minute,ghi"));
}

/// The days of a study, counted from its start, with a run-in below zero.
#[test]
fn days_are_counted_from_a_date_that_a_person_names() {
    let text = rows("person,study_day,kg", 60, |n| {
        format!("p{},{},{}.5", n % 12, i64::from(n / 12) * 7 - 14, n + 60)
    });
    let said = Hints {
        time: vec!["study_day".to_owned()],
        time_format: Some("days".to_owned()),
        ..Hints::default()
    };
    let lost = understand(text.as_bytes(), &said).unwrap();
    assert!(lost.questions.iter().any(|open| open.contains("`--date 2000-01-01`")), "{lost:?}");
    let said = Hints { date: Some("2020-01-02".to_owned()), ..said };
    let found = understand(text.as_bytes(), &said).unwrap();
    assert_eq!(found.time.format(), "days since 2020-01-02");
    assert_eq!(found.questions, [""; 0]);
    assert_eq!(found.tally.rows, 60);
    let day = |text: &str| format!("{text} in results");
    assert!(found.notes.iter().any(|note| note.contains(&day("-14 is 2019-12-19"))));
}

/// The format alone says that the only numbers which may be days are days.
#[test]
fn days_need_no_name_of_their_column() {
    let text = rows("person,day,kg", 60, |n| format!("p{},{},{}.5", n % 12, n / 12, n + 60));
    let said = Hints { time_format: Some("days".to_owned()), ..Hints::default() };
    let found = understand(text.as_bytes(), &said).unwrap();
    assert_eq!((found.time.format(), found.tally.rows), ("epoch days".to_owned(), 60));
    let said = Hints { date: Some("2020-01-02".to_owned()), ..said };
    let found = understand(text.as_bytes(), &said).unwrap();
    assert_eq!(found.time.format(), "days since 2020-01-02");
    let seconds = Hints { time_format: Some("s".to_owned()), ..Hints::default() };
    assert!(understand(text.as_bytes(), &seconds).is_err());
    // Of weeks and days, either may be meant.
    let two = rows("person,week,day,kg", 60, |n| format!("p{},{},{},70.5", n % 12, n / 24, n / 12));
    let said = Hints { date: None, ..said };
    assert!(understand(two.as_bytes(), &said).is_err());
}

#[test]
fn a_date_is_day_0_of_days_alone() {
    let said = |format: &str, column: &str| Hints {
        time: vec![column.to_owned()],
        time_format: Some(format.to_owned()),
        date: Some("2020-01-02".to_owned()),
        ..Hints::default()
    };
    let seconds = rows("person,ts,kg", 60, |n| {
        format!("p{},{},{}.5", n % 12, 1_700_000_000 + n / 12 * 86_400, n + 60)
    });
    let found = understand(seconds.as_bytes(), &said("s", "ts")).unwrap();
    assert_eq!(found.time.format(), "epoch seconds");
    assert!(found.notes.iter().any(|note| note.contains("`--date` changes nothing")));
    // Days in any order do not pass midnight.
    let days = rows("person,day,kg", 60, |n| {
        format!("p{},{},{}.5", n % 12, [9, 2, 7, 0, 5][n as usize / 12], n + 60)
    });
    let found = understand(days.as_bytes(), &said("days", "day")).unwrap();
    assert_eq!(found.questions, [""; 0]);
}
