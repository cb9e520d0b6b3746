//! Which date, time of day and zone belong together, and what is no part of a row's time.

use crate::doubts::asks;
use crate::look;
use alpheus_discover::{Hints, Understanding, understand};

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

fn measured(found: &Understanding) -> Vec<&str> {
    found.attributes.iter().map(|own| own.column.as_str()).collect()
}

fn refusal(text: &str) -> String {
    understand(text.as_bytes(), &Hints::default()).err().map_or_else(String::new, |e| e.to_string())
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

/// A stamp of the whole export says nothing of its rows.
#[test]
fn a_time_that_all_rows_share_is_not_taken_before_a_date_and_a_clock() {
    let text = rows("well,VisitDate,VisitTime,level,Stamp", 40, |n| {
        let (date, clock) = moment(n);
        format!("w{},{date},{clock},{n}.5,2024-03-05 06:07:08", n % 4)
    });
    let found = look(text);
    assert_eq!(time(&found), ["VisitDate", "VisitTime"]);
    assert!(notes(&found, "Stamp"), "{:?}", found.notes);
}

#[test]
fn a_date_a_clock_and_a_zone_share_the_words_of_their_names() {
    let header = "well,VisitBeginDate,VisitBeginTime/Time,VisitBeginTime/TimeZoneCode,VisitEndDate,VisitEndTime/Time,VisitEndTime/TimeZoneCode,level";
    let text = rows(header, 40, |n| {
        let (date, clock) = moment(n);
        format!("w{},{date},{clock},MST,{date},23:59:00,MST,{n}.5", n % 4)
    });
    let found = look(text);
    assert_eq!(
        time(&found),
        ["VisitBeginDate", "VisitBeginTime/Time", "VisitBeginTime/TimeZoneCode"]
    );
    assert_eq!(found.questions, [""; 0]);
    let header = "well,lab_zone,dive_zone,labdate,divedate,labtime,divetime,level";
    let text = rows(header, 40, |n| {
        let (date, clock) = moment(n);
        format!("w{},PST,MST,,{date},{clock},{clock},{n}.5", n % 4)
    });
    assert_eq!(time(&look(text)), ["divedate", "divetime", "dive_zone"]);
}

/// Rows without a time are refused, and said to be.
#[test]
fn a_change_to_the_record_is_not_taken_where_the_time_has_gaps() {
    let text = rows("well,visited,level,last_change", 40, |n| {
        let (date, clock) = moment(n);
        let own = if n % 4 == 1 { String::new() } else { format!("{date} {clock}") };
        format!("w{},{own},{n}.5,2024-03-0{} 06:07:08", n % 5, n % 7 + 1)
    });
    let found = look(text);
    assert_eq!((time(&found), found.tally.rows, found.tally.untimed), (vec!["visited"], 30, 10));
    assert!(notes(&found, "last_change"), "{:?}", found.notes);
    // A day that was changed is none before a date with a time of day.
    let text = rows("well,Event Dt,Event Time,level,Updated Dt", 40, |n| {
        let (date, clock) = moment(n);
        let own = if n % 4 == 1 { ",".to_owned() } else { format!("{date} 00:00:00,{clock}") };
        format!("w{},{own},{n}.5,2024-03-0{} 00:00:00", n % 5, n % 7 + 1)
    });
    assert_eq!(time(&look(text)), ["Event Dt", "Event Time"]);
}

/// Whatever a name says, two times of a row cannot both be that of the reading.
#[test]
fn a_time_that_contradicts_a_date_and_its_clock_is_asked_about() {
    let text = |later: u32| {
        rows("well,VisitDate,VisitTime,level,Stamp", 40, |n| {
            let (date, clock) = moment(n);
            let (day, hour) = (n % 28 + 1 + later / 24, n * 5 % 24 + later % 24);
            let stamp = format!("2019-06-{:02} {:02}", day + hour / 24, hour % 24);
            format!("w{},{date},{clock},{n}.5,{stamp}{}", n % 4, &clock[2..])
        })
    };
    let found = look(text(50).replace("2019-06-31", "2019-07-01"));
    assert_eq!(time(&found), ["Stamp"]);
    let says = "or `--time VisitDate --time VisitTime` if not";
    assert!(found.questions.iter().any(|own| own.contains(says)), "{:?}", found.questions);
    // The same times, or in another zone.
    for later in [0, 2] {
        assert_eq!(look(text(later)).questions, [""; 0]);
    }
}

/// A zone without a time of day would shift a day.
#[test]
fn a_zone_is_not_joined_to_a_date_alone() {
    let text = rows("well,day,zone,level", 40, |n| format!("w{},{},EST,{n}.5", n % 4, moment(n).0));
    let found = look(text);
    assert_eq!((time(&found), found.time.format()), (vec!["day"], "%Y-%m-%d".to_owned()));
}

#[test]
fn of_two_dates_with_clocks_of_their_own_it_is_asked_which() {
    let header = "site|Report Dt|Report Time|Event Dt|Event Time|Time Zone|level";
    let text = rows(header, 40, |n| {
        let clock = format!("{:02}:{:02}", n * 5 % 24, n * 7 % 60);
        format!(
            "s{}|2/{}/2019 00:00:00|12:05|2/{}/2019 00:00:00|{clock}|EST|{n}.5",
            n % 4,
            n % 20 + 2,
            n % 20 + 1
        )
    });
    let found = look(&text);
    assert_eq!(time(&found), ["Event Dt", "Event Time", "Time Zone"]);
    asks(&text, "or `--time 'Report Dt' --time 'Report Time'` if not");
    let said = |date: &str, clock: &str| {
        let time = vec![date.to_owned(), clock.to_owned()];
        understand(text.as_bytes(), &Hints { time, ..Hints::default() }).unwrap()
    };
    for found in [said("Event Dt", "Event Time"), said("Report Dt", "Report Time")] {
        assert!(!found.questions.iter().any(|own| own.contains("both")), "{:?}", found.questions);
    }
    // The end of something is no time of its start.
    let text = rows("site,Start Date,End Date,End Time,level", 40, |n| {
        let (date, clock) = moment(n);
        format!("s{},{date},{date},{clock},{n}.5", n % 4)
    });
    assert_eq!(time(&look(text)), ["Start Date"]);
    // From and until need no question.
    let text = rows("site,Start Date,Start Time,End Date,End Time,level", 40, |n| {
        let (date, clock) = moment(n);
        format!("s{},{date},{clock},{date},23:59:00,{n}.5", n % 4)
    });
    let found = look(text);
    assert_eq!(found.questions, [""; 0]);
    assert_eq!(time(&found), ["Start Date", "Start Time"]);
}

#[test]
fn columns_of_parts_of_a_time_are_not_measured_beside_it() {
    // Means of several rows, as programs that resample write them.
    let header = "measured_on,Year,Month,Day,Hour,Minute,wind";
    let text = rows(header, 200, |n| {
        let (day, hour) = (n / 48 + 1, n / 2 % 24);
        format!(
            "2018-05-{day:02} {hour:02}:{:02}:00-07:00,2018.0,5.{},{day}.25,{hour}.5,{}.0,{}.5",
            n % 2 * 30,
            n % 4 * 25,
            n % 2 * 30,
            n * 7 % 31
        )
    });
    assert_eq!(measured(&look(text)), ["wind"]);
    let text = rows(",Year,Month,Day,Hour,Minute,Min,wind", 200, |n| {
        let (day, hour, minute) = (n / 72 + 1, n / 3 % 24, n % 3 * 20);
        format!(
            "2018-05-{day:02} {hour:02}:{minute:02}:00-07:00,2018,5,{day},{hour},{minute},{}.5,{}.5",
            n % 9,
            n * 7 % 31
        )
    });
    assert_eq!(measured(&look(text)), ["Min", "wind"]);
    // Without an hour, minutes are how long something took.
    let text = rows("Year,Month,Day,Minutes", 300, |n| {
        format!("{},{},{},{}", 2018 + n / 144, n / 12 % 12 + 1, n % 12 + 1, n * 11 % 50)
    });
    assert_eq!(measured(&look(text)), ["Minutes"]);
}

#[test]
fn periods_of_a_day_are_its_time_and_no_owners() {
    let text = |periods: u32| {
        rows("Year,Month,Day,Period,plant", periods * 4, |n| {
            format!("2021,1,{},{},{}.5", n / periods + 1, n % periods + 1, n * 37 % 499)
        })
    };
    let found = look(text(24));
    assert_eq!(time(&found), ["Year", "Month", "Day", "Period"]);
    let says = "`--time Year --time Month --time Day --time Period --time-format '%Y %m %d %H'`";
    assert!(
        found.questions.len() == 1 && found.questions[0].contains(says),
        "{:?}",
        found.questions
    );
    let columns = ["Year", "Month", "Day", "Period"].map(str::to_owned).to_vec();
    let said =
        Hints { time: columns, time_format: Some("%Y %m %d %H".to_owned()), ..Hints::default() };
    let named = understand(text(24).as_bytes(), &said).unwrap();
    assert_eq!((named.questions.len(), named.tally.span), (0, found.tally.span));
    for (periods, minutes) in [(48, "30 minutes"), (288, "5 minutes")] {
        let says = refusal(&text(periods));
        let named =
            format!("`Period` seems to number the {periods} periods of each day, of {minutes}");
        assert!(says.contains(&named), "{says}");
        let said = Hints { leave_out: vec!["Period".to_owned()], ..Hints::default() };
        assert!(understand(text(periods).as_bytes(), &said).is_ok());
    }
    // One number for each day is no period of it.
    let text = rows("Date,Period,plant", 240, |n| {
        format!("2021-{:02}-{:02},{},{}.5", n / 24 + 1, n % 24 + 1, n % 24 + 1, n * 37 % 499)
    });
    assert_eq!(time(&look(text)), ["Date"]);
}

#[test]
fn of_two_clocks_that_run_together_the_finer_one_is_read() {
    let text = |ahead: u32| {
        rows("Date_PC,Date_BOX,gas", 400, |n| {
            let (own, box_) = (n / 10, n / 10 + ahead);
            format!(
                "2021-06-24 04:{:02}:{:02},2021-06-24 04:{:02}:{:02}.{}00,{}.5",
                own / 60,
                own % 60,
                box_ / 60,
                box_ % 60,
                n % 10,
                n * 7 % 31
            )
        })
    };
    let found = look(text(0));
    assert_eq!((time(&found), found.questions.len()), (vec!["Date_BOX"], 0));
    // It is finer, but not of the same time.
    let found = look(text(754));
    assert_eq!(time(&found), ["Date_BOX"]);
    asks(&text(754), "differ by 12 min 34 s");
}

#[test]
fn a_place_behind_an_offset_is_passed_over() {
    for (space, place) in [(" ", "Europe/London"), ("", "America/Argentina/Buenos_Aires")] {
        let text = rows("time,acc", 60, |n| {
            format!("2014-05-07 13:{:02}:50.439000+0100{space}[{place}],{}.5", n, n * 7 % 31)
        });
        let found = look(text);
        assert_eq!(found.time.format(), format!("%Y-%m-%d %H:%M:%S.%f%z{space}[{place}]"));
        assert_eq!((found.zone_text().as_str(), found.questions.len()), ("offset in the value", 0));
    }
}

#[test]
fn a_year_before_the_name_of_a_month() {
    let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    for mark in ["-", " "] {
        let text = rows("when,riders", 60, |n| {
            format!("{}{mark}{},{}", 1977 + n / 12, months[n as usize % 12], n * 37 % 499)
        });
        let found = look(text);
        assert_eq!((found.time.format(), found.questions.len()), (format!("%Y{mark}%b"), 0));
        assert_eq!(found.tally.span.map(|(first, _)| first), Some(220_924_800_000_000));
    }
    for quarter in ["{} Q1", "{}Q1", "{}-Q1", "Q1 {}"] {
        let text = rows("Quarter,savings", 40, |n| {
            let quarter = quarter.replace("{}", &(1970 + n / 4).to_string());
            format!("{},{}.5", quarter.replace("Q1", &format!("Q{}", n % 4 + 1)), n * 37 % 499)
        });
        let says = refusal(&text);
        assert!(says.contains("`Quarter` has quarters of years"), "{says}");
    }
}

#[test]
fn a_few_odd_dates_are_refused_and_not_the_file() {
    let text = rows("\"Date\",\"Action\",\"Amount\"", 13, |n| match n {
        4 => "\"05/17/2022 as of 05/15/2022\",\"Interest\",\"0.03\"".to_owned(),
        12 => "\"Rows Total\",\"\",\"99.5\"".to_owned(),
        _ => format!("\"05/{}/2022\",\"Buy\",\"{}.25\"", 28 - n, n * 7 % 31),
    });
    let found = look(text);
    let (odd, totals) = (found.tally.bad_time, found.form.totals.len());
    assert_eq!((time(&found), found.tally.rows, odd, totals), (vec!["Date"], 11, 1, 1));
    // A column in which many are others is no date.
    let text = rows("Date note,level", 20, |n| match n % 5 {
        0..3 => format!("2022-05-{:02},{n}.5", n + 1),
        _ => format!("about noon {n},{n}.5"),
    });
    assert!(refusal(&text).contains("no column holds calendar times"));
}

#[test]
fn a_year_that_is_missing_is_named() {
    let row = |n: u32| format!("{},{},{},{}", n / 240 + 1, n / 24 % 10 + 1, n % 24, n * 37 % 499);
    let text = rows("Month,Day,Hour,irradiance", 400, row) + "Totals,,,99999\n";
    let says = refusal(&text);
    assert!(says.contains("`Month` and `Day` have no year"), "{says}");
    // With it, the row of totals is refused, and no other.
    let text = rows("Year,Month,Day,Hour,irradiance", 400, |n| format!("2021,{}", row(n)));
    let found = look(text + "2021,Totals,,,99999\n");
    assert_eq!((found.tally.rows, found.tally.bad_time), (400, 1));
    assert_eq!(time(&found), ["Year", "Month", "Day", "Hour"]);
}

/// The names of owners may look like a year and a day.
#[test]
fn only_other_times_are_said_to_be_passed_over() {
    let text = rows("id,mealtime,logged,kcal", 60, |n| {
        let (date, clock) = moment(n);
        format!("2133-0{:02},{date} {clock},{date},{n}.5", n % 6 + 10)
    });
    let found = look(text);
    assert_eq!((time(&found), found.owner.as_deref()), (vec!["mealtime"], Some("id")));
    assert!(notes(&found, "logged") && !notes(&found, "id"), "{:?}", found.notes);
}
