//! What lines above a table say of numbers that stand for a missing one, and what they do not say.

use crate::doubts::asks;
use crate::look;
use alpheus_discover::{Hints, OutlierTreatment, understand};

/// Readings of six homes: whole numbers from a least one on, and some other number now and then.
fn readings(above: &str, (name, mark): (&str, &str), (least, span): (u32, u32)) -> String {
    (0..600).fold(format!("{above}time,home,{name}\n"), |text, n| {
        let time = format!("2024-03-{:02} {:02}:{}0", n / 864 + 14, n / 36 % 24, n / 6 % 6);
        let value = (least + n * 7 % span).to_string();
        let value = if n % 47 == 19 { mark } else { &value };
        text + &format!("{time},H{},{value}\n", n % 6)
    })
}

/// How often the number is left out, and how many questions there are.
fn left_out(text: &str, mark: &str) -> (u64, usize) {
    let found = look(text);
    (found.attributes[0].sentinels.get(mark).copied().unwrap_or(0), found.questions.len())
}

#[test]
fn numbers_that_say_something_else_of_what_is_missing_are_kept() {
    for above in [
        "# Completeness of the record: 99 %, missing: 1 %\n",
        "# Completeness: 99, missing: 1\n",
        "# Kit 99: 3 sensors missing\n",
        "# Kit 99: missing\n",
        "# 99 sensors are missing\n",
        "# 99 readings missing\n",
        "# Missing: 99 %\n",
        "# Missing: 99 sensors\n",
        "# Nothing is missing\n# Records of 99 schools\n",
        "# Missing values are blank, 99 is the best score\n",
        "# Of 120 homes 99 are missing\n",
        "# Homes 1-99: missing\n",
        "# Missing data, 99 homes\n",
    ] {
        let text = readings(above, ("score", "99"), (20, 79));
        assert_eq!(left_out(&text, "99"), (0, 0), "{above}");
    }
    for above in [
        "# Negative numbers are exports, missing values are blank\n",
        "# Missing values are not negative\n",
        "# Nothing is missing, negative numbers are exports\n",
        "# None is missing, -1 is an export\n",
        "# Change from -1 to 5, none is missing\n",
    ] {
        let text = readings(above, ("kwh", "-1"), (0, 6));
        assert_eq!(left_out(&text, "-1"), (0, 0), "{above}");
    }
}

#[test]
fn a_number_that_is_said_to_be_a_missing_one_is_left_out_where_it_is_far_from_the_others() {
    for above in [
        "# Missing: 99\n",
        "# Missing values are coded as 99\n",
        "# missing_value = 99\n",
        "# 99 = missing\n",
        "# NODATA_value 99\n",
        "# missing value;99\n",
        "# Kit 3; 99 means that the value is missing.\n",
        "# 88 and 99 stand for missing data\n",
        "# No data: 99 (all columns)\n",
        "# Fehlende Werte sind mit 99 gekennzeichnet\n",
    ] {
        let far = readings(above, ("score", "99"), (1, 40));
        assert_eq!(left_out(&far, "99"), (13, 0), "{above}");
        let near = readings(above, ("score", "99"), (20, 79));
        assert_eq!(left_out(&near, "99"), (0, 1), "{above}");
        asks(&near, "has the number 99 in 13 cells");
        let inside = readings(above, ("score", "99"), (20, 130));
        asks(&inside, "has the number 99 in");
    }
    for above in [
        "# Negative numbers mean missing\n",
        "# missing (-1)\n",
        "# Missing values: -9, -1\n",
        "# Missing value code -1\n",
        "# -1 for missing\n",
        "# missing,-1\n",
    ] {
        let text = readings(above, ("kwh", "-1"), (0, 6));
        assert_eq!(left_out(&text, "-1"), (13, 0), "{above}");
    }
    let said = Hints { outliers: Some(OutlierTreatment::LeaveOut), ..Hints::default() };
    let near = readings("# Missing: 99\n", ("score", "99"), (20, 79));
    let found = understand(near.as_bytes(), &said).unwrap();
    assert_eq!(found.attributes[0].sentinels.get("99"), Some(&13));
}

#[test]
fn a_temperature_of_nines_is_asked_about() {
    let text = |name: &str| {
        (0..600).fold(format!("time,home,{name}\n"), |text, n| {
            let time = format!("2024-03-{:02} {:02}:{}0", n / 864 + 14, n / 36 % 24, n / 6 % 6);
            let value = format!("{}.{}", n * 7 % 4, n % 9);
            text + &format!("{time},H{},{}\n", n % 6, if n == 77 { "-9.9" } else { &value })
        })
    };
    for name in ["temp_c", "Temperature", "outside (°C)", "t_out [degF]"] {
        asks(&text(name), "has the number -9.9 in 1 cell");
        assert_eq!(left_out(&text(name), "-9.9"), (0, 1), "{name}");
    }
    let depth = look(text("level"));
    assert_eq!((depth.attributes[0].total.count, depth.questions.len()), (599, 0));
    let note = "`level` has -9.9 in 1 cell, which is treated as a missing value and left out. Use `--outliers keep`";
    assert!(depth.notes.iter().any(|own| own.starts_with(note)), "{:?}", depth.notes);
    let said = Hints { outliers: Some(OutlierTreatment::Keep), ..Hints::default() };
    let kept = understand(text("level").as_bytes(), &said).unwrap();
    assert_eq!((kept.attributes[0].total.count, kept.questions.len()), (600, 0));
}

#[test]
fn corrections_below_zero_are_no_signs_of_all_amounts() {
    let rows = [
        ("DEBIT", "50.10"),
        ("DEBIT", "-20.00"),
        ("CREDIT", "1000.00"),
        ("DEBIT", "30.25"),
        ("DEBIT", "12.30"),
        ("CREDIT", "900.00"),
        ("DEBIT", "-5.00"),
        ("DEBIT", "77.10"),
    ];
    let text = |of: fn(&str, &str) -> String| {
        (1..).zip(rows).fold("date,kind,amount\n".to_owned(), |text, (day, (kind, amount))| {
            text + &format!("2024-03-{day:02},{kind},{}\n", of(kind, amount))
        })
    };
    // As many are below zero as there are credits.
    asks(&text(|_, amount| amount.to_owned()), "which `kind` names");
    let signed = |kind: &str, amount: &str| {
        format!("{}{}", if kind == "DEBIT" { "-" } else { "" }, amount.trim_start_matches('-'))
    };
    let found = look(text(signed));
    assert!(!found.questions.iter().any(|q| q.contains("`kind`")), "{:?}", found.questions);
}
