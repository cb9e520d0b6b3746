//! Numbers that name something: they are not added up, and not asked about without need.

use crate::look;
use alpheus_discover::Understanding;

/// Readings of four sensors with one more column.
fn with(name: &str, count: u32, value: impl Fn(u32) -> String) -> Understanding {
    let mut text = format!("sensor,time,level,{name}\n");
    for n in 0..count {
        let time = format!("2024-03-{:02} {:02}:00", n / 96 + 1, n / 4 % 24);
        text += &format!("s{},{time},{}.5,{}\n", n % 4, n * 7 % 31, value(n));
    }
    look(text)
}

fn is_measured(found: &Understanding, name: &str) -> bool {
    found.attributes.iter().any(|own| own.column == name)
}

#[test]
fn zeros_in_front_and_a_plus_make_a_code() {
    let code = |n: u32| ["0486", "0820", "1310", "0110"][n as usize % 4].to_owned();
    let found = with("offence", 400, code);
    assert!(!is_measured(&found, "offence") && found.questions.is_empty(), "{found:?}");
    let beat = |n: u32| format!("{:04}", n * 37 % 90 * 20);
    let found = with("beat", 400, beat);
    assert!(!is_measured(&found, "beat"));
    assert!(found.questions[0].contains("--measure beat"), "{:?}", found.questions);
    // Numbers of several lengths may be padded, and zero is a number.
    assert!(is_measured(&with("beat", 400, |n| format!("{:03}", n * 37 % 1800)), "beat"));
    assert!(is_measured(&with("beat", 400, |n| (n * 37 % 90).to_string()), "beat"));
    let phone = |n: u32| format!("+4179{:07}", n * 37 % 25);
    let found = with("other side", 400, phone);
    assert!(!is_measured(&found, "other side") && found.questions.is_empty(), "{found:?}");
    let signed = |n: u32| format!("+{}", n * 37 % 25);
    assert!(is_measured(&with("gain", 400, signed), "gain"));
}

#[test]
fn names_of_numbers_that_identify_are_known() {
    for name in ["Kontonummer", "BLZ", "Account Number", "mrn", "sourceVersion", "Case No"] {
        let found = with(name, 400, |n| (50_010_517 + n * 37 % 60).to_string());
        assert!(!is_measured(&found, name) && found.questions.is_empty(), "{name}");
    }
    for name in ["account balance", "cases", "conversion"] {
        let found = with(name, 400, |n| (517 + n * 37 % 61).to_string());
        assert!(is_measured(&found, name), "{name}");
    }
}

#[test]
fn years_and_other_parts_of_times_are_not_added_up() {
    for (name, least, most) in [
        ("Year", 2015, 2015),
        ("birth year", 1950, 2004),
        ("month", 1, 12),
        ("week", 1, 52),
        ("hour", 0, 23),
        ("Geburtsjahr", 1950, 2004),
    ] {
        let found = with(name, 400, |n| (least + n * 37 % (most - least + 1)).to_string());
        assert!(!is_measured(&found, name) && found.questions.is_empty(), "{name}");
    }
    for (name, least) in [("kwh per year", 900), ("month", 100), ("hours worked", 0)] {
        let found = with(name, 400, |n| (least + n * 37 % 40).to_string());
        assert!(is_measured(&found, name), "{name}");
    }
}

#[test]
fn what_has_one_value_or_names_something_is_not_asked_about() {
    for (name, value) in [
        ("agency", (|_| "08B".to_owned()) as fn(u32) -> String),
        ("IPAddress", |n| format!("10.0.{}.7", n % 90)),
        ("SUBJ", |n| format!("01-70{}-1015", n % 9)),
        ("InvoiceNo", |n| format!("{}C", 536_365 + n / 3)),
    ] {
        assert_eq!(with(name, 400, value).questions, [""; 0], "{name}");
    }
    assert_eq!(with("weight", 400, |n| format!("{}k", n % 90)).questions.len(), 1);
}

/// An export of rows that were numbered before some were cut, joined or taken out.
#[test]
fn what_numbers_the_rows_is_not_measured() {
    let file = |name: &str, number: &dyn Fn(u32) -> u32| {
        let mut text = format!("{name},time,level\n");
        for n in 0..400 {
            let time = format!("2024-03-{:02} {:02}:00", n / 24 + 1, n % 24);
            text += &format!("{},{time},{}.5\n", number(n), n * 7 % 31);
        }
        look(text)
    };
    let twice: &dyn Fn(u32) -> u32 = &|n| if n < 390 { n + 12 } else { n + 10 };
    for (name, number) in [("Index", twice), ("Unnamed: 0", &|_| 0)] {
        let found = file(name, number);
        assert!(!is_measured(&found, name) && found.questions.is_empty(), "{found:?}");
        let (_, why) = &found.left_out[0];
        assert_eq!(why, "it numbers the rows", "{name}");
    }
}

/// The lines above a table say what numbers mean.
#[test]
fn codes_that_lines_above_explain_are_not_measured() {
    let mut text = "T = Temperature (in 0.1 degrees)\nWW = Present weather code (00-99)\nVV = Visibility (0=fog, 1=haze, 2=clear)\n\ntime,T,WW,VV\n".to_owned();
    for n in 0..400_i32 {
        let time = format!("2024-03-{:02} {:02}:00", n / 24 + 1, n % 24);
        text += &format!("{time},{},{},{}\n", n * 7 % 310 - 40, n * 37 % 90, n * 11 % 80);
    }
    let found = look(text);
    let measured: Vec<&str> = found.attributes.iter().map(|own| own.column.as_str()).collect();
    assert_eq!(measured, ["T"]);
    assert!(found.questions.is_empty(), "{:?}", found.questions);
}

/// Not every word that ends with `code` says it.
#[test]
fn a_word_above_that_ends_like_a_code_makes_no_codes() {
    let mut text = "level: Barcode\nT: Temperature\n\ntime,T,level\n".to_owned();
    for n in 0..400_i32 {
        let time = format!("2024-03-{:02} {:02}:00", n / 24 + 1, n % 24);
        text += &format!("{time},{}.5,{}\n", n * 7 % 31, n * 37 % 90);
    }
    assert!(is_measured(&look(text), "level"));
}

#[test]
fn what_surely_names_something_is_noted_and_not_asked_about() {
    let sites: [u32; 12] = [40, 577, 1200, 690, 2009, 3883, 450, 863, 1322, 485, 788, 2937];
    let file = |name: &str, value: &dyn Fn(u32) -> u32| {
        let mut text = format!("site,time,level,{name}\n");
        for n in 0..600u32 {
            let (day, hour) = (n / 288 + 1, n / 12 % 24);
            let (level, value) = (n * 7 % 31, value(n));
            text += &format!("s{},2024-03-{day:02} {hour:02}:00,{level}.5,{value}\n", n % 12);
        }
        look(text)
    };
    let found = file("capacity", &|n| sites[n as usize % 12]);
    assert!(!is_measured(&found, "capacity") && found.questions.is_empty(), "{found:?}");
    assert!(found.notes.iter().any(|own| own.contains("one number for each owner")));
    for name in ["fips", "JournalNumber", "supply_category", "goods class"] {
        let found = file(name, &|n| 2001 + n * 37 % 25);
        assert!(!is_measured(&found, name), "{name}");
        assert_eq!(found.questions, [""; 0], "{name}");
        assert!(found.notes.iter().any(|own| own.contains(&format!("`{name}` look like codes"))));
    }
}
