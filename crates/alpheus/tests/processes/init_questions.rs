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
    // Two hundred would be enough. Forty have data on a day, and 160 in a week.
    let (code, said) = init(&file, &output, &["--yes", "--error", "2 %"]);
    assert!(code == 3 && !output.exists(), "{code} {said}");
    let lines: Vec<&str> = said.lines().skip_while(|line| !line.contains("error: ")).collect();
    let [what, column, asked, best, allowed, ..] = lines[..] else { panic!("{said}") };
    assert!(what.ends_with("results with an error of 2 % are not possible:"), "{said}");
    assert_eq!(column, "`avg_steps` cannot be as exact as the query asks.");
    assert!(asked.starts_with("  asked: ±") && asked.contains("(2 %)"), "{said}");
    assert!(best.starts_with("  best: ") && allowed.starts_with("  policies allow: "), "{said}");
    let crowd = "  at least 40 owners have data in half of the windows of 1 DAY";
    assert!(lines.contains(&crowd) && !said.contains("possible with `error"), "{said}");
    let nearest = said.split("--error '").nth(1).unwrap().split('\'').next().unwrap();
    let (code, said) = init(&file, &output, &["--yes", "--error", nearest]);
    assert!(code == 0 && said.contains("in windows of 7 DAYS with at least"), "{nearest}: {said}");
    assert!(said.contains("one person pays up to ε = ") && said.contains(" a year"), "{said}");
    assert!(said.contains("; the first budget is used up after "), "{said}");
    assert!(
        said.contains("of 200 owners, at least 160 have data in half of the windows"),
        "{said}"
    );
    let query = std::fs::read_to_string(output.join("query.sql")).unwrap();
    let least = query.split("BETWEEN ").nth(1).unwrap().split(' ').next().unwrap();
    assert!((41..=160).contains(&least.parse::<u32>().unwrap()), "{query}");
}

/// Sixty people with one reading each, six days apart: fewer than ten have data in four weeks.
#[test]
fn an_error_is_had_in_longer_windows_where_shorter_ones_have_too_few() {
    let folder = tempfile::tempdir().unwrap();
    let day = |n: u32| format!("2024-{:02}-{:02}", n * 6 / 28 % 12 + 1, n * 6 % 28 + 1);
    let rows = (0..56).fold("patient,visit,pulse\n".to_owned(), |text, n| {
        text + &format!("p{n},{},{}\n", day(n), 50 + n % 10)
    });
    let (file, output) = (written(&folder, "visits.csv", &rows), folder.path().join("o"));
    let (code, said) = init(&file, &output, &["--yes", "--error", "40 %"]);
    assert!(code == 0 && said.contains("in windows of 84 DAYS with at least"), "{code} {said}");
    assert!(said.contains("the margins do not count what that changes"), "{said}");
    let query = std::fs::read_to_string(output.join("query.sql")).unwrap();
    assert!(query.contains("SIZE 84 DAYS"), "{query}");
}

/// Patients who are seen in different months have data in one window only if it is a year long.
#[test]
fn owners_who_are_measured_apart_get_windows_in_which_some_are_together() {
    let folder = tempfile::tempdir().unwrap();
    let visits = |months: &[&str]| {
        let mut rows = "patient,time,pulse\n".to_owned();
        for (n, month) in months.iter().enumerate() {
            for day in 1..28 {
                rows += &format!("p{n},{month}-{day:02} 08:00,{}\n", 60 + n + day);
            }
        }
        rows
    };
    let year = ["2023-11", "2023-12", "2024-01", "2024-02", "2024-03", "2024-04"];
    let more = ["2024-05", "2024-06", "2024-07", "2024-08", "2024-09"];
    let file = written(&folder, "year.csv", &visits(&[&year[..], &more[..]].concat()));
    let output = folder.path().join("year");
    let (code, said) = init(&file, &output, &["--yes"]);
    assert!(code == 0 && said.contains("in windows of 364 DAYS"), "{code} {said}");
    // In different years, no window helps.
    let years: Vec<String> = (2001..2024).step_by(2).map(|year| format!("{year}-03")).collect();
    let years: Vec<&str> = years.iter().map(String::as_str).collect();
    let file = written(&folder, "years.csv", &visits(&years));
    let (code, said) = init(&file, &folder.path().join("years"), &["--yes"]);
    let lonely = "no window of up to 364 days has data of 10 owners, and none of more than 1";
    assert!(code == 1 && said.contains(lonely), "{code} {said}");
}

/// Two people are too few for any error: about how many it would take is said.
#[test]
fn an_error_that_no_window_can_have_says_how_many_owners_it_would_take() {
    let folder = tempfile::tempdir().unwrap();
    let rows = (0..56).fold("person,day,steps\n".to_owned(), |text, n| {
        let steps = if n % 9 == 0 { 90 } else { 10 };
        text + &format!("p{},2024-03-{:02},{steps}\n", n % 2, n / 2 + 1)
    });
    let (file, output) = (written(&folder, "two.csv", &rows), folder.path().join("o"));
    let (code, said) = init(&file, &output, &["--yes", "--error", "10 %"]);
    assert!(code == 3 && !output.exists(), "{code} {said}");
    assert!(said.contains("no error below 100 % is possible with 2 owners in a window"), "{said}");
    assert!(said.contains("; 10 % takes about ") && !said.contains("set epsilon"), "{said}");
    assert!(!said.contains("tries that one"), "{said}");
    // Another column may do better.
    let two = rows.replace("steps\n", "steps,calls\n").replace("0\n", "0,3\n");
    let file = written(&folder, "columns.csv", &two);
    let (code, said) = init(&file, &output, &["--yes", "--error", "10 %"]);
    let next = "Only `steps` was tried; `--measure` with the name of another column tries that one";
    assert!(code == 3 && said.contains(next), "{code} {said}");
    // What is open comes first.
    let open = rows
        .replace("person,day,steps\n", "patient,doctor,day,steps\n")
        .replace(",2024", ",d1,2024");
    let open = open.replacen("d1", "d2", 20);
    let file = written(&folder, "open.csv", &open);
    let (code, said) = init(&file, &output, &["--yes", "--error", "10 %"]);
    assert!(code == 6 && said.contains("so no file was written"), "{code} {said}");
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
    terminal.types("", "error that you accept", "\r");
    let (status, said) = terminal.ends();
    assert!(status.success() && said.contains("First answer"), "{said}");
}

/// Twelve patients' readings of two weeks, of which one has a value that is rare.
fn lab() -> String {
    let rows = (0..14).flat_map(|day| (0..12).map(move |patient| (day, patient)));
    rows.fold("date,patient,pulse,hiv_load\n".to_owned(), |text, (day, patient)| {
        let load = if patient == 7 { (400 + day).to_string() } else { "NA".to_owned() };
        let pulse = 60 + (patient * 7 + day * 5) % 30;
        text + &format!("2024-03-{:02}T08:00:00Z,p{patient:02},{pulse},{load}\n", day + 1)
    })
}

#[test]
fn what_one_owner_of_a_crowd_has_is_not_released() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (written(&folder, "lab.csv", &lab()), folder.path().join("lab"));
    let (code, said) = init(&file, &output, &["--yes"]);
    assert_eq!(code, 0, "{said}");
    let answer = std::fs::read_to_string(output.join("answer.csv")).unwrap();
    assert!(answer.contains("avg_pulse") && !answer.contains("hiv_load"), "{answer}");
    // Owners release nothing of it, to anyone.
    let sql =
        "SELECT SUM(hiv_load) WINDOW TUMBLING (SIZE 1 DAY) FROM LabReadings BETWEEN 10 AND 12";
    assert_eq!(ask(&output, &file, sql).0, 3);
    let all = folder.path().join("all");
    let (code, said) = init(&file, &all, &["--yes", "--measure", "hiv_load"]);
    assert!(code == 0 && said.contains("events may lack hiv_load"), "{said}");
}

#[test]
fn rows_and_columns_that_may_be_persons_are_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["Anna", "Boris", "Carla", "Dmitri", "Elena", "Farid", "Greta", "Hugo"];
    let once =
        names.iter().enumerate().fold("admitted,name,age\n".to_owned(), |text, (n, name)| {
            text + &format!("2024-05-{:02} 08:00:00,{name} Berg,{}\n", n + 1, 30 + n * 7 % 50)
        });
    let file = written(&folder, "once.csv", &once);
    let output = folder.path().join("once");
    let (code, said) = init(&file, &output, &["--yes"]);
    assert!(code == 6 && said.contains("--owner name"), "{code} {said}");
    assert!(!output.join("answer.csv").exists());
    let (code, said) = init(&file, &output, &["--yes", "--owner", "none", "--force"]);
    assert!(code == 0 && output.join("answer.csv").exists(), "{code} {said}");
    let wide = (1..11).fold(format!("date,{}\n", names.join(",").to_lowercase()), |text, day| {
        let cells = (0..8).map(|at| format!(",{}.5", 200 + (at * 37 + day * 11) % 150));
        text + &format!("2024-05-{day:02}{}\n", cells.collect::<String>())
    });
    let file = written(&folder, "wide.csv", &wide);
    let output = folder.path().join("wide");
    let (code, said) = init(&file, &output, &["--yes", "--wide", "minutes"]);
    assert!(code == 0 && said.contains("each of 8 columns is one's, `anna` to `hugo`"), "{said}");
    assert!(said.contains("80 events of 8 streams") && said.contains("avg_minutes"), "{said}");
    assert!(!said.contains("avg_anna"), "{said}");
    let answer = std::fs::read_to_string(output.join("answer.csv")).unwrap();
    // All eight, or nothing.
    assert!(answer.lines().skip(1).all(|row| row.contains(",8,0,0,ok")), "{answer}");
}

#[test]
fn enter_is_no_answer_to_whose_a_row_is() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "admitted,name,age\n2024-05-01,Anna Berg,50\n2024-05-02,Boris Klein,89\n";
    let (file, output) = (written(&folder, "d.csv", rows), folder.path().join("d"));
    let program = env!("CARGO_BIN_EXE_alpheus");
    let line = format!("{program} init {} --output {}", file.display(), output.display());
    let Some(mut terminal) = Terminal::start(&line) else { return };
    terminal.types("may name people", "Your answer", "\r");
    terminal.types("so no guess is accepted", "Your answer", "none\r");
    let (status, said) = terminal.ends();
    assert!(status.success() && said.contains("First answer"), "{said}");
}
