//! `alpheus init`: what a file does not decide is asked, and what is promised is kept.

use crate::common::terminal::Terminal;
use crate::init::{ask, init, reads_the_same, written};

/// Two hundred people, of whom one in five have data on a day: each on two days, one after the other.
fn in_turn() -> String {
    let rows = (0..10).flat_map(|day| (0..200).map(move |person| (day, person)));
    let rows = rows.filter(|(day, person)| person % 5 == day / 2);
    rows.fold("person;time;steps\n".to_owned(), |text, (day, person)| {
        let steps = 4000 + (person * 7 + day * 13) % 300;
        text + &format!("p{person};2024-01-{:02} {:02}:00;{steps}\n", day + 1, person % 24)
    })
}

#[test]
fn an_error_is_promised_for_the_crowd_that_windows_have() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (written(&folder, "turns.csv", &in_turn()), folder.path().join("o"));
    // Two hundred would be enough, and forty are not.
    let (code, said) = init(&file, &output, &["--yes", "--error", "2 %"]);
    assert!(code == 3 && !output.exists(), "{code} {said}");
    assert!(said.contains("at least 40 owners have data in half of the windows"), "{said}");
    let nearest = said.split("--error '").nth(1).unwrap().split('\'').next().unwrap();
    let (code, said) = init(&file, &output, &["--yes", "--error", nearest]);
    assert!(code == 0 && said.contains("10 windows opened, 0 did not"), "{nearest}: {said}");
    assert!(said.contains("of 200, at least 40 have data in half of the windows"), "{said}");
    let query = std::fs::read_to_string(output.join("query.sql")).unwrap();
    let least = query.split("BETWEEN ").nth(1).unwrap().split(' ').next().unwrap();
    assert!((11..=40).contains(&least.parse::<u32>().unwrap()), "{query}");
}

#[test]
fn what_a_file_does_not_decide_is_asked_and_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |value: fn(u32) -> String| -> String {
        (0..48)
            .map(|n| format!("2024-01-{:02} {:02}:00;{}\n", 15 + n / 24, n % 24, value(n)))
            .collect()
    };
    let three = rows(|n| format!("{}.{}", n % 9 + 1, 100 + n));
    let file = written(&folder, "three.csv", &format!("time;kwh\n{three}"));
    let (code, said) = init(&file, &folder.path().join("three"), &["--yes"]);
    assert!(code == 6 && said.contains("--decimal"), "{code} {said}");
    let (code, said) = init(&file, &folder.path().join("point"), &["--yes", "--decimal", "."]);
    assert!(code == 0 && said.contains("sum 236.928"), "{code} {said}");
    // Yes and no, of which some are written as 1 and 0.
    let bits = rows(|n| ["yes", "no", "1", "0"][n as usize % 4].to_owned());
    let file = written(&folder, "bits.csv", &format!("time;on\n{bits}"));
    let output = folder.path().join("bits");
    let (code, said) = init(&file, &output, &["--yes"]);
    assert!(code == 0 && said.contains("48 readings, sum 24"), "{code} {said}");
    reads_the_same(&file, &output);
    let counted =
        "SELECT COUNT(on_value), SUM(on_value) WINDOW TUMBLING (SIZE 28 DAYS) FROM BitsReadings";
    let (code, said) = ask(&output, &file, counted);
    assert!(code == 0 && said.contains(",48,24,"), "{code} {said}");
}

#[test]
fn monthly_standings_are_not_added_up() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..30 * 12)
        .map(|n| {
            format!("h{};2023-{:02}-01;{}\n", n / 12, n % 12 + 1, n / 12 * 1000 + n % 12 * 130)
        })
        .collect();
    let file = written(&folder, "meters.csv", &format!("household;month;kwh\n{rows}"));
    let output = folder.path().join("o");
    let (code, said) = init(&file, &output, &["--yes"]);
    assert!(code == 0 && said.contains("`kwh` never falls"), "{code} {said}");
    let query = std::fs::read_to_string(output.join("query.sql")).unwrap();
    assert!(query.contains("SELECT COUNT(kwh)\n"), "{query}");
}

#[test]
fn an_answer_that_names_no_column_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "user,day,v\na,03/04/2024,1\nb,03/04/2024,2\na,05/04/2024,3\nb,05/04/2024,4\n";
    let (file, output) = (written(&folder, "d.csv", rows), folder.path().join("d"));
    let program = env!("CARGO_BIN_EXE_alpheus");
    let line = format!("{program} init {} --output {}", file.display(), output.display());
    let Some(mut terminal) = Terminal::start(&line) else { return };
    terminal.types("", "Your answer", "--owner uesr\r");
    terminal.types("has no column \"uesr\"", "Your answer", "--day-first\r");
    terminal.types("", "an error that you accept", "\r");
    let (status, said) = terminal.ends();
    assert!(status.success() && said.contains("First answer"), "{said}");
}
