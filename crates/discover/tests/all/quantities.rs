//! What is a number, what it measures and in which unit, and what only looks like one.

use super::wild::lines;
use super::{look, unit};
use alpheus_discover::Understanding;

/// A file of several people with columns of these cells.
fn file(names: &str, cells: impl Fn(u32) -> String) -> Understanding {
    let row =
        |n: u32| format!("2024-03-{:02},p{},{},{}", n / 10 + 1, n % 10, n * 7 % 40 + 1, cells(n));
    look(format!("date,person,level_cm,{names}\n{}", lines(270, row)))
}

fn sum(found: &Understanding, column: &str) -> Option<String> {
    let own = found.attributes.iter().find(|own| own.column == column)?;
    Some(own.total.sum.text())
}

fn asks(found: &Understanding, part: &str) -> bool {
    found.questions.iter().any(|asked| asked.contains(part))
}

fn notes(found: &Understanding, part: &str) -> bool {
    found.notes.iter().any(|note| note.contains(part))
}

#[test]
fn counts_with_zeros_before_them_are_added_up() {
    for name in ["count", "minutes", "Anzahl", "pulse_bpm", "error_rate", "group_size"] {
        let found = file(name, |n| format!("{:04}", n % 45));
        assert_eq!(
            (sum(&found, name).as_deref(), found.questions.len()),
            (Some("5940"), 0),
            "{name}"
        );
    }
    let found = file("reader", |n| format!("{:04}", n % 45));
    assert!(asks(&found, "`reader` look like codes"), "{:?}", found.questions);
}

#[test]
fn numbers_of_telephones_and_of_places_are_not_added_up() {
    for name in ["postal_code", "Ship Postal", "PLZ", "Tel", "product_code", "firmware_ver"] {
        let found = file(name, |n| (20_000 + n * 7 % 90).to_string());
        assert_eq!(
            (sum(&found, name), found.questions.len()),
            (None, 0),
            "{name}: {:?}",
            found.questions
        );
    }
    // A name that says nothing: ten digits are rather a number of something.
    let found = file("called", |n| (2_125_550_100 + u64::from(n) * 7 % 90).to_string());
    assert!(sum(&found, "called").is_none() && asks(&found, "`called` look like codes"));
    let found = file("other", |n| (2_125_550_100 + u64::from(n) * 7919).to_string());
    assert!(sum(&found, "other").is_none() && asks(&found, "`other` look like codes"));
    let found = file("revenue", |n| (2_125_550_100 + u64::from(n) * 7 % 90).to_string());
    assert!(sum(&found, "revenue").is_some());
}

#[test]
fn units_stand_before_numbers_and_are_whole_names() {
    for (name, cell, expected) in [
        ("paid", "€12.50", "€"),
        ("paid", "\"$1,234.00\"", "$"),
        ("kWh", "3", "kWh"),
        ("°C", "21.5", "°C"),
        ("% in 4 hours", "60", "%"),
    ] {
        let found = file(name, |_| cell.to_owned());
        assert_eq!((unit(&found, name), found.questions.len()), (Some(expected), 0), "{name}");
    }
    let found = file("paid", |n| if n < 9 { "€2".to_owned() } else { "3".to_owned() });
    assert_eq!(unit(&found, "paid"), None);
    // The cell beside the number says it, and not the name.
    let found = file("WH,Unit", |n| format!("{},KWH", n % 50));
    assert_eq!(unit(&found, "WH"), Some("KWH"));
}

#[test]
fn lengths_of_time_are_said_to_be_left_out() {
    for cell in ["00:12:{}", "1:{}", "PT{}M", "7h {}m", "\"1 day, 3:{}:00\""] {
        let found = file("run", |n| cell.replace("{}", &(10 + n % 40).to_string()));
        assert!(notes(&found, "`run` seems to hold lengths of time"), "{cell}: {:?}", found.notes);
        assert!(sum(&found, "run").is_none());
    }
}

#[test]
fn weather_records_have_a_letter_for_nothing_and_one_for_a_trace() {
    let found = file("tmpf", |n| if n % 3 == 0 { format!("{}.0", n % 40) } else { "M".to_owned() });
    assert_eq!((sum(&found, "tmpf").as_deref(), found.questions.len()), (Some("1695.0"), 0));
    assert!(notes(&found, "`tmpf` has 180 cells"), "{:?}", found.notes);
    for amount in ["0", "0.01"] {
        let found = file("p01i", |n| ["M", "T", amount][n as usize % 3].to_owned());
        assert!(asks(&found, "`T` may stand for a trace"), "{:?}", found.questions);
    }
}

#[test]
fn what_a_web_server_answers_is_a_code() {
    let row = |n: u32| {
        format!(
            "2024-03-01T10:{:02}:{:02}Z,GET,{},{}",
            n / 60,
            n % 60,
            [200, 404][n as usize % 2],
            n * 7 % 90
        )
    };
    let found = look(lines(240, row));
    assert!(sum(&found, "column 3").is_none() && sum(&found, "column 4").is_some());
}

#[test]
fn two_words_with_a_stroke_between_them_are_no_unit() {
    for name in ["P/L", "Soll/Haben", "In/Out", "%change", "bar"] {
        let found = file(name, |n| (n % 50).to_string());
        assert_eq!(unit(&found, name), None, "{name}");
    }
    for name in ["km/h", "%", "kWh"] {
        let found = file(name, |n| (n % 50).to_string());
        assert_eq!(unit(&found, name), Some(name), "{name}");
    }
}

#[test]
fn what_is_no_unit_for_sure_is_none() {
    let text = |name: &str| {
        (0..60).fold(format!("time,{name}\n"), |text, n| {
            text + &format!("2024-05-01 10:{n:02}:00,{}.5\n", n * 37 % 71)
        })
    };
    for name in ["stage_va", "gust_ms", "class_pa", "Gb(i)", "pts(h)", "wave_amp"] {
        let found = look(text(name));
        assert_eq!((unit(&found, name), found.questions.len()), (None, 0), "{name}");
    }
    for (name, own) in
        [("latency_ms", "ms"), ("pressure_pa", "pa"), ("wind_m/s", "m/s"), ("Sonne (h)", "h")]
    {
        assert_eq!(unit(&look(text(name)), name), Some(own), "{name}");
    }
}
