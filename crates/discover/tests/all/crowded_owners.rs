//! Owners that hold several others: rows of one owner at one time, and files of one time.

use crate::doubts::asks;
use crate::look;
use alpheus_discover::{Hints, understand};

fn rows(header: &str, count: u32, row: impl Fn(u32) -> String) -> String {
    (0..count).fold(format!("{header}\n"), |text, n| text + &row(n) + "\n")
}

fn owner(name: &str) -> Hints {
    Hints { owner: Some(name.to_owned()), ..Hints::default() }
}

#[test]
fn most_rows_at_a_time_of_another_are_asked_about() {
    // Persons of a land, in numbers that vary from year to year.
    let persons = rows("state,year,income", 300, |n| {
        let land = ["Berlin", "Bayern", "Hessen", "Saar"][(n * n % 7 % 4) as usize];
        format!("{land},{},{}.5", 1990 + n * n * n % 11, 900 + n * 37 % 800)
    });
    asks(&persons, "rows have the same time as another row of the same owner");
    assert_eq!(understand(persons.as_bytes(), &owner("state")).unwrap().questions, [""; 0]);
    // A customer buys several things on a day.
    let bought = rows("customer_id,day,paid", 300, |n| {
        format!("C{:03},2024-03-{:02},{}.25", n * n * n % 17 + 100, n / 60 + 1, 3 + n * 7 % 50)
    });
    assert_eq!(look(&bought).questions, [""; 0]);
}

#[test]
fn a_file_of_one_time_is_asked_about() {
    let courses = rows("year,subject,hours", 60, |n| {
        format!("2018,{},{}.5", ["Art", "Law", "Music"][(n % 3) as usize], 1 + n % 7)
    });
    asks(&courses, "--owner subject");
    assert_eq!(understand(courses.as_bytes(), &owner("subject")).unwrap().questions, [""; 0]);
}

#[test]
fn yes_and_no_as_1_and_0_names_no_owner() {
    let coffee = rows("country,member,year,bags", 60, |n| {
        format!("Land{},{},{},{}.5", n % 15, n % 2, 2018 + n / 15, 30 + n * 37 % 800)
    });
    assert_ne!(look(&coffee).owner.as_deref(), Some("member"));
    let gaps = rows("country,member,year,bags", 60, |n| {
        let land = if n % 4 == 0 { String::new() } else { format!("Land{}", n % 15) };
        format!("{land},{},{},{}.5", n % 2, 2018 + n / 15, 30 + n * 37 % 800)
    });
    asks(&gaps, "It may be `country`");
}

#[test]
fn a_part_of_the_time_is_nobodys() {
    let births = rows("date,births,wday,year,month", 300, |n| {
        let day = ["Sat", "Mon", "Wed", "Fri", "Sun", "Tue", "Thu"][n as usize % 7];
        let (year, month) = (1994 + n / 60, n / 5 % 12 + 1);
        format!(
            "{year}-{month:02}-{:02},{},{day},{year},{month}",
            n % 5 * 6 + 1,
            8000 + n * 37 % 997
        )
    });
    let found = look(&births);
    assert_eq!((found.owner.as_deref(), &found.questions[..]), (None, &[][..]));
}
