//! Files that are easily read as something else, without any sign of it: what decides, and what is
//! asked.

use super::doubts::asks;
use super::wild::lines;
use super::{ExpectedFile, is, look};
use alpheus_discover::{Hints, OutlierTreatment, understand};

const NONE: &str = "none stated";

/// A time each hour, from the middle of January on.
fn hour(n: u32) -> String {
    format!("2024-01-{:02} {:02}:00", 15 + n / 24, n % 24)
}

/// Readings of one column, each hour.
fn hourly(header: &str, count: u32, value: impl Fn(u32) -> String) -> String {
    format!("{header}\n{}", lines(count, |n| format!("{};{}", hour(n), value(n))))
}

#[test]
fn points_before_three_digits_in_all_cells_are_asked_about() {
    let three = |n: u32| format!("{}.{}", n % 9 + 1, 100 + n * 7);
    let text = hourly("time;kwh", 60, three);
    asks(&text, "1.234");
    asks(&text.replace(';', "\t"), "1.234");
    // Behind all rows that are looked at first.
    let minute = |n: u32| format!("2024-01-{:02} {:02}:{:02}", 1 + n / 1440, n / 60 % 24, n % 60);
    let value =
        |n: u32| if n < 2300 { (n % 900).to_string() } else { format!("1.{}", 100 + n % 900) };
    let late = lines(2400, |n| format!("{};{}", minute(n), value(n)));
    asks(&format!("time;v\n{late}"), "1.234");
}

#[test]
fn what_else_has_a_point_decides() {
    let three = |n: u32| format!("{}.{}", n % 9 + 1, 100 + n * 7);
    let sum = |text: &str| {
        let found = look(text);
        assert_eq!(found.questions, [""; 0], "{text}");
        found.attributes[0].total.sum.text()
    };
    let text = hourly("time;kwh", 9, three);
    assert_eq!(sum(&text.replace(';', ",")), "46.152");
    assert_eq!(sum(&text.replace(":00;", ":00:00.000;")), "46.152");
    assert_eq!(sum(&hourly("time;kwh;temp", 9, |n| format!("{};{n}.5", three(n)))), "46.152");
    assert_eq!(sum(&hourly("time;kwh;lat", 9, |n| format!("{};{}", three(n), three(n)))), "46.152");
    // Of thousands, none is without its mark.
    assert_eq!(sum(&format!("{text}2024-01-16 00:00;2000\n")), "2046.152");
    let said = Hints { decimal: Some(','), ..Hints::default() };
    let found = understand(text.as_bytes(), &said).unwrap();
    assert_eq!(found.attributes[0].total.sum.text(), "46152");
}

#[test]
fn a_decimal_comma_that_splits_cells_is_asked_about() {
    asks(&hourly("time,kwh", 30, |n| format!("{n},5")).replace(';', ","), "Line 1 seems to name 2");
    let two = hourly("time,kwh,temp", 30, |n| format!("{n},5,{},25", 20 + n % 3));
    asks(&two.replace(';', ","), "Line 1 seems to name 3");
    asks(&hourly("time,kwh", 30, |n| n.to_string()), "Line 1 seems to name 1");
}

#[test]
fn units_that_differ_within_a_column_are_asked_about() {
    asks(&hourly("time;amount", 30, |n| format!("{}{n}.50", ["$", "€"][n as usize % 2])), "`€`");
    let shares = |n: u32| if n.is_multiple_of(3) { format!("0.{n:02}") } else { format!("{n}%") };
    asks(&hourly("time;share", 30, shares), "with `%`");
    asks(&hourly("time;volume;v", 30, |n| format!("{n}.5K;1")), "`volume` holds texts");
    asks(&hourly("time;v;w", 30, |n| format!("'{n}.5;1")), "`v` holds texts");
    asks(&hourly("time;v;w", 30, |n| format!("{n}.5 E;1")), "`v` holds texts");
}

#[test]
fn rows_of_several_kinds_or_with_their_sums_are_asked_about() {
    let kinds = ["temperature", "humidity", "co2"];
    let row = |n: u32| format!("{};{};{}", hour(n / 3), kinds[n as usize % 3], n % 50);
    let text = format!("time;field;value\n{}", lines(90, row));
    asks(&text, "3 kinds of readings");
    assert_eq!(look(&text).owner, None, "a quantity is nobody");
    let row =
        |n: u32| format!("{};d{};{n};{}", hour(n / 4), n % 2, ["C", "ppm"][n as usize / 2 % 2]);
    asks(&format!("time;device;value;unit\n{}", lines(96, row)), "2 kinds of readings");
    let regions = ["North", "South", "Total"];
    let row = |n: u32| format!("{};{};{n}", hour(n / 3), regions[n as usize % 3]);
    asks(&format!("time;region;sales\n{}", lines(90, row)), "`Total`");
}

#[test]
fn who_stands_in_the_first_row_of_several_is_asked_about() {
    let owner = |n: u32| if n.is_multiple_of(30) { format!("m{n}") } else { String::new() };
    let row = |n: u32| format!("{};{};{n}", owner(n), hour(n % 30));
    asks(&format!("meter;time;v\n{}", lines(120, row)), "only in 4 of 120 rows");
    let time = |n: u32| if n % 4 < 2 { hour(n) } else { String::new() };
    let row = |n: u32| format!("{};{};{n}", time(n), ["a", "b"][n as usize % 2]);
    asks(&format!("time;meter;v\n{}", lines(96, row)), "Only 48 of 96 rows have a time");
}

#[test]
fn somebody_with_one_row_is_an_owner_too() {
    let row = |n: u32| format!("u{};{};{n}", n * 7919 % 10_007, hour(n));
    let expected = ExpectedFile {
        owner: Some("user_id"),
        time: &["time"],
        format: "%Y-%m-%d %H:%M",
        zone: NONE,
        attribute: ("steps", 60, "1770"),
        rows: 60,
    };
    is(format!("user_id;time;steps\n{}", lines(60, row)), &expected);
}

/// `Z100234` was read as a time of day in UTC, and 2024-117 as a day of a year.
#[test]
fn serial_numbers_are_no_times() {
    for (name, serial) in [("Zählernummer", "Z1002"), ("meter", "2024-1"), ("Kundennr", "T")] {
        let rows = |n: u32| format!("{serial}{};{};{n},5\n", 30 + n % 4, hour(n / 4));
        let text = format!("{name};time;reading\n") + &(0..96).map(rows).collect::<String>();
        let found = understand(text.as_bytes(), &Hints::default()).unwrap();
        assert_eq!(found.owner.as_deref(), Some(name), "{:?}", found.questions);
    }
}

#[test]
fn names_that_begin_with_a_mark_are_no_comments() {
    let row =
        |n: u32| format!("{};{};{n}", ["#general", "#random", "help"][n as usize % 3], hour(n / 3));
    let expected = ExpectedFile {
        owner: Some("channel"),
        time: &["time"],
        format: "%Y-%m-%d %H:%M",
        zone: NONE,
        attribute: ("messages", 90, "4005"),
        rows: 90,
    };
    is(format!("channel;time;messages\n{}", lines(90, row)), &expected);
}

#[test]
fn clocks_and_zones_that_lack_or_differ_are_asked_about() {
    let twelve = |n: u32| format!("2024-01-{:02} {:02}:00;{n}\n", 15 + n / 24, (n + 11) % 12 + 1);
    let text: String = (0..72).map(twelve).collect();
    asks(&format!("time;v\n{text}"), "12-hour clock");
    let some = |n: u32| format!("{}{};{n}", hour(n % 12 + 1), ["", " PM"][n as usize % 2]);
    asks(&format!("time;v\n{}", lines(24, some)), "AM or PM");
    let row = |n: u32| format!("{}:00{};{n}", hour(n).replace(' ', "T"), ["", "Z"][n as usize % 2]);
    asks(&format!("time;v\n{}", lines(48, row)), "state their zone and others do not");
    let row = |n: u32| format!("{};{}:05 a. m.;{n}", &hour(n)[..10], n % 12 + 1);
    asks(&format!("fecha;hora;v\n{}", lines(48, row)), "`hora` seems to");
}

#[test]
fn offsets_with_spaces_and_zones_of_summer_and_winter_are_read() {
    let first = |text: String| look(text).tally.span.map(|(first, _)| first / 1_000_000);
    // 2024-01-15 00:00 in UTC.
    let midnight = 1_705_276_800;
    for head in ["Logger\nUTC offset: -05:00\n\ntime;v", "time (UTC -5);v"] {
        assert_eq!(first(hourly(head, 48, |n| n.to_string())), Some(midnight + 5 * 3600), "{head}");
    }
    let summer = hourly("time (CET/CEST);v", 48, |n| n.to_string()).replace("2024-01", "2024-07");
    assert_eq!(first(summer), Some(1_721_001_600 - 2 * 3600));
}

#[test]
fn other_encodings_are_asked_about() {
    let text = format!("Zeit;Ger\u{e4}t\n{}", lines(30, |n| format!("{};{n}", hour(n))));
    let bytes = |letter: u8| -> Vec<u8> {
        text.chars().map(|c| u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(letter)).collect()
    };
    let questions = |bytes: &[u8]| understand(bytes, &Hints::default()).unwrap().questions;
    assert_eq!(questions(&bytes(0xe4)), [""; 0], "Latin-1");
    assert_eq!(questions(&bytes(0x8a)).len(), 1, "of a Macintosh");
    assert_eq!(questions(&bytes(0x84)).len(), 1, "of DOS");
}

#[test]
fn great_numbers_and_scores_are_not_lost() {
    asks(
        &hourly("time;gdp;v", 30, |n| format!("{};1", 1_200_000_000_000_u64 + u64::from(n * 7919))),
        "--measure gdp",
    );
    asks(
        &hourly("time;v", 30, |n| format!("91{n:02}000000000000000")),
        "beyond what encrypted streams",
    );
    asks(
        &hourly("time;air quality;v", 200, |n| format!("{};{n}.5", 20 + n % 30)),
        "--measure 'air quality'",
    );
    let names: Vec<String> = (0..48).map(|n| format!("{:02}:{:02}", n / 2, n % 2 * 30)).collect();
    let row = |n: u32| format!("2024-01-{:02};{}", n + 1, vec!["0.25"; 48].join(";"));
    asks(&format!("date;{}\n{}", names.join(";"), lines(28, row)), "`00:00` to `23:30`");
}

#[test]
fn numbers_of_other_places_are_read() {
    let expected = |attribute| ExpectedFile {
        owner: None,
        time: &["time"],
        format: "%Y-%m-%d %H:%M",
        zone: NONE,
        attribute,
        rows: 20,
    };
    let lakhs = hourly("time;v", 20, |n| format!("{},23,456.5", n + 1));
    is(lakhs, &expected(("v", 20, "21469130.0")));
    let powers = hourly("time;v", 20, |n| format!("{},5E+03", n));
    is(powers, &expected(("v", 20, "200000")));
    let mixed = ["yes", "no", "1", "0", "ja"];
    is(hourly("time;on", 20, |n| mixed[n as usize % 5].to_owned()), &expected(("on", 20, "12")));
}

#[test]
fn a_number_that_may_stand_for_a_missing_one_is_asked_about() {
    let text = hourly("time;humidity", 200, |n| {
        if n % 50 == 7 { "-99".to_owned() } else { (n * 7 % 101).to_string() }
    });
    asks(&text, "the number -99 in 4 cells");
    let count = |outliers| {
        let hints = Hints { outliers: Some(outliers), ..Hints::default() };
        let found = understand(text.as_bytes(), &hints).unwrap();
        assert_eq!(found.questions, [""; 0]);
        found.attributes[0].total.count
    };
    assert_eq!((count(OutlierTreatment::Keep), count(OutlierTreatment::LeaveOut)), (200, 196));
    let price =
        |n: u32| if n % 90 == 7 { "99.99".to_owned() } else { format!("{}.49", 5 + n % 20) };
    asks(&hourly("time;price", 200, price), "the number 99.99");
}

#[test]
fn a_header_is_found_above_rows_that_lack_a_column_for_long() {
    let late = |n: u32| if n < 700 { String::new() } else { n.to_string() };
    let row = |n: u32| format!("p{};{};{};{}", n % 3, 1_700_000_000 + n, n % 90, late(n));
    let expected = ExpectedFile {
        owner: Some("user"),
        time: &["timestamp"],
        format: "epoch seconds",
        zone: "UTC+00:00",
        attribute: ("power", 800, "879600"),
        rows: 1500,
    };
    is(format!("user;timestamp;v;power\n{}", lines(1500, row)), &expected);
}

#[test]
fn another_table_below_the_first_is_asked_about() {
    let row = |n: u32| format!("{};{n}", hour(n % 400));
    let two = |names: &str| format!("time;temp\n{}{names}\n{}", lines(1500, row), lines(1500, row));
    asks(&two("time;humidity"), "Line 1502");
    // The header again. That the rows are there again is a note, and whose they are is asked about.
    let questions = look(two("time;temp")).questions;
    assert!(questions.len() == 1 && questions[0].contains("--owner"), "{questions:?}");
}

#[test]
fn times_that_a_spreadsheet_shortened_are_asked_about() {
    let row = |n: u32| format!("1.70528E+12;{n}");
    asks(&format!("timestamp;v\n{}", lines(30, row)), "have an exponent");
}
