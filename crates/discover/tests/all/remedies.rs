//! Questions and refusals say what to do.

use crate::doubts::asks;
use crate::look;
use alpheus_discover::{Hints, OutlierTreatment, understand};

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

/// A table of twelve users with a column of this name.
fn column(name: &str, cell: impl Fn(u32) -> String) -> String {
    (0..600u32).fold(format!("user,time,{name},kg\n"), |text, n| {
        text + &format!("u{},{},{},{}.5\n", n % 12, hour(n / 12), cell(n), 60 + n * 7 % 31)
    })
}

/// A question of a file that these hints settle, as it says.
fn settles(text: &str, about: &str, option: &str, said: &Hints) {
    let found = look(text);
    let asked = found.questions.iter().find(|own| own.contains(about));
    let asked = asked.unwrap_or_else(|| panic!("{:?}", found.questions));
    assert!(asked.contains(option), "{asked}");
    let settled = understand(text.as_bytes(), said).map(|own| own.questions);
    assert_eq!(settled.ok(), Some(Vec::new()), "{option}");
}

#[test]
fn a_question_about_a_column_names_the_option_that_settles_it() {
    let left = Hints { leave_out: vec!["note".to_owned()], ..Hints::default() };
    let option = "`--leave-out note`";
    let sized = column("note", |n| format!("[{}]", n * 37 % 499));
    settles(&sized, "texts that look like numbers", option, &left);
    let dated = column("note", |n| match n {
        77 => "01.02.2024".to_owned(),
        n => (n * 37 % 499).to_string(),
    });
    settles(&dated, "like a time among numbers", option, &left);
    let great = column("note", |n| format!("{}000000000000000000", n * 37 % 499));
    settles(&great, "beyond what encrypted streams can express", option, &left);
    let unread = column("note", |n| {
        if n == 77 { "perhaps" } else { ["yes", "no"][n as usize % 2] }.to_owned()
    });
    settles(&unread, "cannot be read and would be refused", option, &left);
    let words = column("note", |n| match n % 8 {
        0 => "low".to_owned(),
        _ => (n * 37 % 499).to_string(),
    });
    settles(&words, "treated as missing values", option, &left);
    let missing = Hints { outliers: Some(OutlierTreatment::LeaveOut), ..Hints::default() };
    settles(&words, "treated as missing values", "`--outliers leave-out`", &missing);
}

#[test]
fn a_text_that_is_counted_since_there_are_no_numbers_is_confirmed_with_an_option() {
    let text = (0..600u32).fold("user,time,event,size\n".to_owned(), |text, n| {
        let event = ["login", "logout", "read"][n as usize * 7 % 3];
        text + &format!("u{},{},{event},[{}]\n", n % 12, hour(n / 12), n * 37 % 49)
    });
    let said = Hints {
        measure: vec!["event".to_owned()],
        leave_out: vec!["size".to_owned()],
        ..Hints::default()
    };
    settles(&text, "so `event` is counted", "`--measure event`", &said);
    let said = Hints { measure: vec!["event".to_owned()], ..Hints::default() };
    let found = understand(text.as_bytes(), &said).unwrap();
    assert!(
        found.questions.iter().all(|own| own.contains("`--leave-out size`")),
        "{:?}",
        found.questions
    );
    // Beside numbers, texts are not counted.
    let beside = text.replace(['[', ']'], "");
    let found = understand(beside.as_bytes(), &said).unwrap();
    assert!(
        found.questions.iter().any(|own| own.contains("`event` has no numbers")),
        "{:?}",
        found.questions
    );
}

#[test]
fn an_order_that_no_date_has_is_refused_with_the_one_that_they_have() {
    let text = (0..60u32).fold("user,day,kg\n".to_owned(), |text, n| {
        text + &format!("u{},{:02}/03/2024,{}.5\n", n % 12, n / 12 + 12, n * 7 % 31)
    });
    let of = |day_first: bool| {
        let said = Hints { day_first: Some(day_first), ..Hints::default() };
        understand(text.as_bytes(), &said).unwrap().questions
    };
    assert_eq!(of(true), [""; 0]);
    let asked = of(false);
    assert!(asked.iter().any(|own| own.contains("Use `--day-first` instead")), "{asked:?}");
}
