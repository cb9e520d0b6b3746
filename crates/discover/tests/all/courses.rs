//! Numbers that are totals so far, and rows that are totals of others.

use crate::doubts::asks;
use crate::look;
use alpheus_discover::{Course, Hints, Understanding, understand, write};

/// Readings of three owners, each hour, for so many days.
fn hourly(column: &str, days: u32, value: impl Fn(u32, u32, u32) -> u32) -> String {
    let mut text = format!("sensor,time,{column}\n");
    for (day, hour, owner) in
        (0..days).flat_map(|d| (0..24).flat_map(move |h| (0..3).map(move |o| (d, h, o))))
    {
        let value = value(day, hour, owner);
        text += &format!("s{owner},2024-03-{:02} {hour:02}:00,{value}\n", day + 1);
    }
    text
}

fn course(found: &Understanding) -> Course {
    found.attributes[0].course
}

fn query(found: &Understanding) -> String {
    write::files(found, "f.csv", None).query
}

#[test]
fn totals_so_far_of_a_day_are_not_added_up() {
    let text = hourly("steps", 5, |day, hour, owner| hour * (300 + 10 * owner) + day);
    let found = look(&text);
    assert_eq!((course(&found), found.questions.len()), (Course::StartsAgain, 0));
    let notes = found.notes.join("\n");
    assert!(notes.contains("`steps` rises") && notes.contains("--measure steps"), "{notes}");
    assert!(query(&found).contains("COUNT(steps)\n"), "{}", query(&found));
    let said = Hints { measure: vec!["steps".to_owned()], ..Hints::default() };
    let found = understand(text.as_bytes(), &said).unwrap();
    assert_eq!(course(&found), Course::Any);
    assert!(query(&found).contains("SUM(steps)"), "{}", query(&found));
}

#[test]
fn rain_since_midnight_is_known_by_its_name_and_by_staying() {
    // It rains once a day, and little.
    let so_far = |_, hour, owner| if hour > 9 + owner { 4 } else { 0 };
    assert_eq!(course(&look(hourly("rain today", 6, so_far))), Course::StartsAgain);
    let of_hour = |_, hour, owner| if hour == 9 + owner { 4 } else { 0 };
    assert_eq!(course(&look(hourly("rain today", 6, of_hour))), Course::Any);
}

#[test]
fn usage_that_rises_in_the_morning_adds_up() {
    let usage = |day, hour, owner| 5 + (hour * 7 + day * 3 + owner) % 11;
    assert_eq!(course(&look(hourly("kwh", 5, usage))), Course::Any);
    let bell = |_, hour: u32, _| 100 - hour.abs_diff(13) * 7;
    assert_eq!(course(&look(hourly("kwh", 5, bell))), Course::Any);
}

#[test]
fn a_total_below_hundreds_of_names_is_asked_about() {
    let mut text = "country,month,cases\n".to_owned();
    for month in 1..=3 {
        for n in 0..400 {
            text += &format!("land {n},2024-0{month}-01,{}\n", n * 7 % 90 + month);
        }
        text += &format!("Total,2024-0{month}-01,{}\n", 17_000 + month);
    }
    asks(&text, "has `Total` beside other values");
}

#[test]
fn the_score_of_a_balance_is_no_balance() {
    let score = |day, hour, owner| 40 + (hour * 7 + day * 3 + owner) % 37;
    assert_eq!(course(&look(hourly("Sleep Balance Score", 3, score))), Course::Any);
    assert_eq!(course(&look(hourly("Balance after booking", 3, score))), Course::Stands);
}

/// Readings of one plant, each quarter of an hour from a first hour on.
fn quarters(column: &str, first: u32, count: u32, value: impl Fn(u32) -> u32) -> Course {
    let text = (0..count).fold(format!("time,{column}\n"), |text, n| {
        let (quarter, value) = (first * 4 + n, value(n));
        let (day, hour, minute) = (quarter / 96 + 1, quarter / 4 % 24, quarter % 4 * 15);
        text + &format!("2024-05-{day:02} {hour:02}:{minute:02},{value}\n")
    });
    course(&look(text))
}

#[test]
fn a_total_of_a_day_is_known_by_its_name_in_a_morning_or_a_night() {
    // It starts again once, at midnight, or not at all.
    let restart = |n: u32| if n < 16 { 900 + n * 7 } else { (n - 16) / 4 };
    assert_eq!(quarters("daily yield", 20, 32, restart), Course::StartsAgain);
    assert_eq!(quarters("GHI (Accumulated)", 20, 32, restart), Course::StartsAgain);
    assert_eq!(quarters("daily yield", 6, 18, |n| n * n), Course::Rises);
    // What has no such name, or goes down.
    assert_eq!(quarters("power", 20, 32, restart), Course::Any);
    assert_eq!(quarters("power", 6, 18, |n| n * n), Course::Any);
    assert_eq!(quarters("daily yield", 6, 18, |n: u32| 90 - n.abs_diff(9) * 7), Course::Any);
    // One number a day.
    let text = (0..18).fold("date,daily yield\n".to_owned(), |text, n| {
        text + &format!("2024-05-{:02},{}\n", n + 1, if n < 9 { 40 + n * 3 } else { n })
    });
    assert_eq!(course(&look(text)), Course::Any);
}

/// A dozen readings of each of many are too few to tell a meter from what grows: a person decides.
#[test]
fn what_never_falls_though_each_owner_has_few_is_noted() {
    let weeks = |value: fn(u32, u32) -> u32| {
        let row = |n: u32| {
            let (owner, week) = (n / 12, n % 12);
            format!(
                "s{owner},2024-0{}-{:02},{}\n",
                week / 4 + 1,
                week % 4 * 7 + 1,
                value(owner, week)
            )
        };
        let rows: String = (0..20 * 12).map(row).collect();
        let found = look(format!("site,date,feed\n{rows}"));
        assert_eq!(course(&found), Course::Any);
        assert!(query(&found).contains("SUM(feed)"));
        found.notes.join("\n")
    };
    let says =
        "`feed` never falls from one reading of an owner to the next, but most owners have few.";
    assert!(weeks(|owner, week| owner + 30 * week).contains(says));
    assert!(!weeks(|owner, week| 90 + owner + 30 * week - week / 7 * 40).contains(says));
}

#[test]
fn a_meter_that_was_replaced_is_not_said_to_never_fall() {
    let standing = |replaced: u32| {
        let value = move |day, hour, owner| {
            let kwh = day * 24 + hour + 1000 * owner;
            if day < replaced || owner > 0 { kwh + 5000 } else { kwh + 3500 }
        };
        let found = look(hourly("meter", 20, value));
        assert_eq!(course(&found), Course::Rises);
        found.notes.join("\n")
    };
    assert!(standing(20).contains("`meter` never falls"), "{}", standing(20));
    assert!(standing(9).contains("`meter` hardly ever falls"), "{}", standing(9));
}
