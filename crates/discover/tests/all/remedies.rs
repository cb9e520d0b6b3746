//! Questions and refusals say what to do.

use crate::doubts::asks;
use crate::look;
use alpheus_discover::{Hints, understand};

fn hour(n: u32) -> String {
    format!("2024-05-{:02}T{:02}:00:00Z", n / 24 + 1, n % 24)
}

fn refusal(text: &str) -> String {
    understand(text.as_bytes(), &Hints::default()).err().map_or_else(String::new, |e| e.to_string())
}

#[test]
fn numbers_since_1970_are_times_whatever_their_name() {
    let text = |name: &str| {
        (0..300u64).fold(format!("user,{name},talk\n"), |text, n| {
            text + &format!("a{},{},{}\n", n % 12, 1_717_200_000_000 + n * 97_123, n * 37 % 499)
        })
    };
    for name in ["t_ms", "start_ms", "time"] {
        let found = look(text(name));
        assert_eq!(
            (found.time.format().as_str(), found.questions.len()),
            ("epoch milliseconds", 0)
        );
    }
    assert!(refusal(&text("klokke")).contains("use `--time klokke`"));
    let said = Hints { time: vec!["klokke".to_owned()], ..Hints::default() };
    assert!(understand(text("klokke").as_bytes(), &said).unwrap().questions.is_empty());
}

#[test]
fn lengths_beyond_a_day_are_no_times_of_day() {
    let text = (0..156u32).fold("Employee,Week,Arbeid,Pay\n".to_owned(), |text, n| {
        let (week, own) = (n / 13 + 2, n % 13);
        text + &format!("E{own},2024-W{week:02},{}:15,{}.5\n", 20 + n * 7 % 25, 500 + n * 37 % 499)
    });
    let found = look(text);
    assert_eq!((found.time.format().as_str(), found.tally.rows), ("%G-W%V", 156));
}

#[test]
fn what_tells_rows_of_one_time_apart_may_be_the_owner() {
    let text = (0..480u32).fold("subject,time,name_of,mark\n".to_owned(), |text, n| {
        let (subject, own) = (["maths", "german"][(n / 240) as usize], n % 12);
        text + &format!("{subject},{},P{own},{}\n", hour(n % 240 / 12), n * 7 % 50)
    });
    asks(&text, "Use `--owner name_of` if it names the owner of a row");
}

#[test]
fn of_numbers_that_may_be_owners_those_with_few_are_offered_first() {
    let text = (0..720u32).fold("tall,time,calls\n".to_owned(), |text, n| {
        text + &format!("{},{},{}\n", n % 12 + 1, hour(n / 12), n * n * 37 % 499)
    });
    asks(&text, "It may be one of `tall`");
}

#[test]
fn why_nothing_is_measured_is_said() {
    let text = (0..400u32).fold("device;time;kg\n".to_owned(), |text, n| {
        let mark = if n % 3 == 0 { ',' } else { '.' };
        text + &format!("k{};{};{}{mark}{:02}\n", n % 10, hour(n / 10), n * 7 % 90, n * 37 % 99)
    });
    assert!(refusal(&text).contains("`kg` holds"), "{}", refusal(&text));
}

#[test]
fn a_header_that_comes_again_is_called_so() {
    let text = (0..2400u32).fold("device;time;kg\n".to_owned(), |text, n| {
        let again = if n == 1200 { "device;time;kg\n" } else { "" };
        text + again + &format!("k{};{};{}.5\n", n % 10, hour(n / 10), n * 7 % 90)
    });
    let notes = look(text).notes;
    let says = "1 row cannot be used: 1 has the names of the header again, first in line 1202.";
    assert!(notes.iter().any(|note| note == says), "{notes:?}");
}
