//! What a sum would hide: marks for missing numbers, balances, amounts without signs, rows twice,
//! rows of another table, seasons.

use crate::doubts::asks;
use crate::look;
use alpheus_discover::{Course, Hints, OutlierTreatment, understand};

fn rows(header: &str, count: u32, row: impl Fn(u32) -> String) -> String {
    (0..count).fold(format!("{header}\n"), |text, n| text + &row(n) + "\n")
}

fn time(n: u32) -> String {
    format!("2024-03-{:02} {:02}:{}0", n / 144 + 1, n / 6 % 24, n % 6)
}

#[test]
fn a_number_that_repeats_far_from_all_others_is_asked_about() {
    let level = |mark: &'static str, each: u32, least: u32, span: u32| {
        rows("sensor,time,level", 600, |n| {
            let value = least + n * 7 % span;
            let value = if n % each == 1 { mark.to_owned() } else { value.to_string() };
            format!("s{},{},{value}", n % 3, time(n / 3))
        })
    };
    // All bits set may be an instrument at its end.
    for (mark, each, least, span) in [
        ("-777", 40, 300, 200),
        ("1000", 20, 0, 360),
        ("0", 20, 980, 60),
        ("255", 4, 0, 150),
        ("4095", 20, 0, 900),
        ("511", 2, 0, 360),
        ("99.5", 20, 20, 40),
        ("99120", 20, 0, 900),
        ("990.0", 20, 0, 360),
        ("990", 20, 0, 600),
    ] {
        let text = level(mark, each, least, span);
        asks(&text, &format!("has the number {mark} in"));
        let said = Hints { outliers: Some(OutlierTreatment::LeaveOut), ..Hints::default() };
        let found = understand(text.as_bytes(), &said).unwrap();
        assert_eq!((found.questions.len(), found.attributes[0].sentinels.len()), (0, 1), "{mark}");
    }
    assert_eq!(look(level("0", 2, 1200, 60)).questions, [""; 0], "off for half of the time");
}

#[test]
fn a_usual_mark_far_from_all_others_is_left_out_and_may_be_kept() {
    let named = |name: &str| {
        rows(&format!("sensor,time,{name}"), 600, |n| {
            let value = if n % 20 == 1 { 990 } else { n * 7 % 361 };
            format!("s{},{},{value}", n % 3, time(n / 3))
        })
    };
    let text = named("direction");
    let found = look(&text);
    assert_eq!((found.questions.len(), found.attributes[0].total.count), (0, 570));
    assert_eq!(found.attributes[0].sentinels.get("990"), Some(&30));
    let note = "`direction` has 990 in 30 cells, which is treated as a missing value and left out. Use `--outliers keep`";
    assert!(found.notes.iter().any(|own| own.starts_with(note)), "{:?}", found.notes);
    let said = Hints { outliers: Some(OutlierTreatment::Keep), ..Hints::default() };
    let kept = understand(text.as_bytes(), &said).unwrap();
    assert_eq!((kept.questions.len(), kept.attributes[0].total.count), (0, 600));
    assert_eq!(kept.attributes[0].bounds().texts().1, "2000");
    asks(&named("price"), "has the number 990 in 30 cells");
}

#[test]
fn what_is_left_out_is_left_out_however_its_cells_are_written() {
    let said = Hints { outliers: Some(OutlierTreatment::LeaveOut), ..Hints::default() };
    // A decimal comma.
    for mark in ["-777,0", "990,0", "-999,0", "-99,9"] {
        let text = rows("sensor;time;level", 600, |n| {
            let value = if n % 20 == 1 { mark.to_owned() } else { format!("{},5", n * 7 % 90) };
            format!("s{};{};{value}", n % 3, time(n / 3))
        });
        let found = understand(text.as_bytes(), &said).unwrap();
        let own = &found.attributes[0];
        assert_eq!((own.total.count, own.sentinels.get(mark)), (570, Some(&30)), "{mark}");
        assert_eq!(found.questions, [""; 0]);
    }
    // Two forms of one number, and signs and marks around it.
    for marks in [["5110", "5110.0"], ["5,110", "5110"], ["$5110", "$5,110.00"]] {
        let text = rows("sensor;time;level", 600, |n| {
            let own = n * 7 % 90;
            let value = match n % 20 {
                1 => marks[n as usize / 20 % 2].to_owned(),
                2 => format!("{}1,2{own:02}", if marks[0].starts_with('$') { "$" } else { "" }),
                _ if marks[0].starts_with('$') => format!("${own}.5"),
                _ => format!("{own}.5"),
            };
            format!("s{};{};{value}", n % 3, time(n / 3))
        });
        asks(&text, "in 30 cells");
        let found = understand(text.as_bytes(), &said).unwrap();
        assert_eq!(found.attributes[0].total.count, 570, "{:?}", found.attributes[0].sentinels);
        assert_eq!(found.attributes[0].sentinels.len(), 2);
    }
}

#[test]
fn balances_and_amounts_without_signs_do_not_add_up() {
    let text = rows("Datum;Betrag;Saldo", 60, |n| {
        format!("{:02}.{:02}.2024;{}.5;{}.5", n % 28 + 1, n / 28 + 1, n * n * 7 % 90, n * 37 % 900)
    });
    let found = look(text);
    let courses: Vec<Course> = found.attributes.iter().map(|own| own.course).collect();
    assert_eq!(courses, [Course::Any, Course::Stands]);
    let signs = rows("Konto;Datum;Betrag;S/H", 80, |n| {
        let sign = ["S", "H"][n as usize * 3 % 5 % 2];
        format!("k{};{:02}.{:02}.2024;{}.5;{sign}", n % 8, n % 28 + 1, n / 28 + 1, n * 7 % 90)
    });
    asks(&signs, "added and which are subtracted");
    // The amounts of debits have their signs, or some of them do.
    let signed = |of: fn(u32) -> bool| {
        rows("Date,Type,Amount", 80, |n| {
            let (kind, cents) = (["DEBIT", "CREDIT"][n as usize * 3 % 5 % 2], n * 7 % 90 + 1);
            let sign = if kind == "DEBIT" && of(n) { "-" } else { "" };
            format!("2024-{:02}-{:02},{kind},{sign}${cents}.25", n / 28 + 1, n % 28 + 1)
        })
    };
    assert_eq!(look(signed(|_| true)).questions, [""; 0]);
    asks(&signed(|n| n % 7 > 0), "which `Type` names");
}

#[test]
fn a_row_for_all_is_asked_about_and_a_file_joined_twice_is_noted() {
    let all = rows("region,time,kwh", 300, |n| {
        let region =
            if n % 5 == 4 { "All regions".to_owned() } else { format!("Region {}", n % 5) };
        format!("{region},{},{}", time(n / 5), n * 7 % 90)
    });
    asks(&all, "has `All regions` beside other values");
    let names = rows("shop,time,kwh", 300, |n| {
        let shop = ["All Saints", "All About Tea", "Corner", "Mill"][n as usize % 4];
        format!("{shop},{},{}", time(n / 4), n * 7 % 90)
    });
    assert_eq!(look(names).questions, [""; 0]);
    let part = rows("user,time,kwh", 300, |n| format!("u{},{},{}", n % 4, time(n / 4), n * 7 % 90));
    let twice = part.clone() + part.split_once('\n').unwrap().1;
    let found = look(twice);
    let note = "300 rows equal an earlier row in every cell, in the same order, so a part";
    assert!(found.unsure().iter().any(|said| said.starts_with(note)), "{:?}", found.unsure());
    assert_eq!(found.questions, [""; 0]);
}

#[test]
fn rows_that_stand_for_parts_of_a_day_are_asked_about() {
    let minutes = rows("home,date,position,watt", 1200, |n| {
        let (home, day, slot) = (n / 600, n % 600 / 120, n % 120);
        format!("h{home},2024-03-{:02},{},{}", day + 1, slot * 12, n * 7 % 900)
    });
    asks(&minutes, "Each owner has 120 rows at nearly every time");
    for said in [
        Hints { measure: vec!["watt".to_owned()], ..Hints::default() },
        Hints { leave_out: vec!["position".to_owned()], ..Hints::default() },
    ] {
        // It tells nothing apart for sure, so this does not answer the question.
        assert_eq!(understand(minutes.as_bytes(), &said).unwrap().questions.len(), 1);
    }
    let said = Hints { owner: Some("home".to_owned()), ..Hints::default() };
    assert_eq!(understand(minutes.as_bytes(), &said).unwrap().questions, [""; 0]);
    // Purchases: now one in a day, now three.
    let purchases = rows("user,date,price", 400, |n| {
        format!("u{},2024-03-{:02},{}.25", n * n % 13, n * 7 % 28 + 1, n * 11 % 90)
    });
    assert_eq!(look(purchases).questions, [""; 0]);
}

#[test]
fn another_table_above_and_seasons_are_asked_about() {
    let above = rows("Sleep\nuser,date,minutes", 60, |n| {
        format!("u{},2024-03-{:02},{}", n % 5, n / 5 + 1, 300 + n * 7 % 90)
    });
    let below = rows("\nActivity\nuser,date,steps,distance", 400, |n| {
        format!("u{},2024-03-{:02},{},{}.5", n % 16, n / 16 + 1, n * 7 % 900, n % 9)
    });
    asks(&(above + &below), "lines above the header look like rows of another table");
    let seasons = rows("club,season,goals", 44, |n| {
        format!("c{},20{:02}/{:02},{}", n % 4, n / 4 + 1, n / 4 + 2, n * 7 % 90)
    });
    asks(&seasons, "seasons or business years");
}

#[test]
fn of_several_times_the_full_one_with_a_zone_is_taken() {
    let text = rows("time_local,time_utc,user,kwh", 300, |n| {
        format!("{},{},u{},{}", time(n + 12), time(n), n % 5, n * 7 % 90)
    });
    let found = look(text);
    assert_eq!(
        (found.names[found.time.columns[0]].as_str(), found.zone_text().as_str()),
        ("time_utc", "UTC+00:00")
    );
    let text = rows("closed_at,created_at,user,kwh", 300, |n| {
        let closed = if n % 5 == 0 { String::new() } else { time(n + 50) };
        format!("{closed},{},u{},{}", time(n), n % 5, n * 7 % 90)
    });
    let found = look(text);
    assert_eq!(found.names[found.time.columns[0]], "created_at");
}

/// One thing is not several.
#[test]
fn one_row_and_one_cell_have_words_of_their_own() {
    let rows: String = (0..48)
        .map(|n| format!("p{},2024-03-{:02} 08:00,{}.5\n", n % 2, n / 2 + 1, n * 7 % 31))
        .collect();
    let found = look(format!("person,time,level\n{rows}p0,2024-03-24 08:00,few\np1,soon,3.5\n"));
    let said = found.unsure().join("\n");
    for part in [
        "1 row cannot be used: 1 has no readable time,",
        "1 row has the time of an earlier row of its owner; it is kept",
        "`level` has 1 cell that is not a number; it is treated as a missing value",
    ] {
        assert!(said.contains(part), "{part} is not in:\n{said}");
    }
    assert!(!said.contains(" 1 rows") && !said.contains("1 cells"), "{said}");
}

/// Amounts of an account: the salary is the same each month, and far from all purchases.
#[test]
fn an_amount_that_repeats_far_from_others_is_no_mark() {
    let text = rows("time,Betrag (€)", 200, |n| {
        let paid = format!("-{}.{:02}", 2 + n * 37 % 140, n * 7 % 100);
        format!("{},{}", time(n), if n % 30 == 0 { "2450.00".to_owned() } else { paid })
    });
    assert_eq!(look(&text).questions, [""; 0]);
    asks(&text.replace("2450.00", "99999.00"), "99999");
}

/// 40 readings from a least number on, and one number among them.
fn lone(above: &str, mark: &str, least: u32, span: u32) -> String {
    let text = rows("time,level", 40, |n| {
        let value = format!("{}.{}", least + n * 7 % span, n % 7 + 1);
        let value = if mark.contains('.') { value } else { (least + n * 7 % span).to_string() };
        format!("{},{}", time(n * 72), if n == 19 { mark } else { &value })
    });
    above.to_owned() + &text
}

#[test]
fn a_lone_negative_of_nines_is_not_added_up_in_silence() {
    for mark in ["-9.99", "-99.9", "-999"] {
        let found = look(lone("", mark, 0, 4));
        assert_eq!(found.questions, [""; 0], "{mark}");
        assert_eq!(found.attributes[0].sentinels.get(mark), Some(&1), "{mark}");
        assert_eq!(found.attributes[0].total.count, 39, "{mark}");
    }
    // It lies as near as others do, or is a count below zero where none is near zero.
    for (mark, least, span) in [("-9.99", 0, 40), ("-99", 0, 900), ("-1", 13, 17)] {
        asks(&lone("", mark, least, span), &format!("`level` has the number {mark} in 1 cell"));
    }
    assert_eq!(look(lone("", "-1", 2, 25)).questions, [""; 0], "a cold day");
}

#[test]
fn lines_above_say_which_numbers_stand_for_a_missing_one() {
    let says = |above: &str, mark: &str, least: u32| {
        let found = look(lone(above, mark, least, 30));
        assert_eq!(found.questions, [""; 0], "{above}");
        let own = found.attributes[0].sentinels.get(mark).copied();
        if own.is_some() {
            let note = format!("`level` has {mark} in 1 cell, which is treated as a missing value");
            assert!(found.notes.iter().any(|own| own.starts_with(&note)), "{:?}", found.notes);
        }
        own
    };
    let all = "# Days that are missing are\n# indicated by negative numbers.\n";
    assert_eq!([says(all, "-1", 0), says(all, "-9.99", 0)], [Some(1); 2]);
    assert_eq!(says("# -1: not measured\n", "-1", 0), Some(1));
    assert_eq!(says("# Negative numbers are flows upstream. None is missing\n", "-1", 0), None);
    assert_eq!(says("# -9 = missing\n", "-1", 0), None);
}
