//! Columns side by side that may each be another owner's, or another time's; and owners that hold
//! several.

use crate::doubts::asks;
use crate::look;
use alpheus_discover::{Hints, understand};

fn rows(header: &str, count: u32, row: impl Fn(u32) -> String) -> String {
    (0..count).fold(format!("{header}\n"), |text, n| text + &row(n) + "\n")
}

/// A row for each hour, with numbers of one size.
fn hours(names: &str, count: u32) -> String {
    let columns = names.split(',').fold(0, |count, _| count + 1);
    rows(&format!("time,{names}"), count, |n| {
        let first = format!("2024-03-{:02} {:02}:00:00", n / 24 + 1, n % 24);
        (0..columns).fold(first, |text, k| text + &format!(",{}.5", 20 + (k * 37 + n * 11) % 70))
    })
}

/// A row for each year or day.
fn dates(header: &str, first: impl Fn(u32) -> String) -> String {
    let columns = header.split(',').skip(1).fold(0, |count, _| count + 1);
    rows(header, 20, |n| {
        (0..columns).fold(first(n), |text, k| text + &format!(",{}.5", 5 + (k * 7 + n * 3) % 20))
    })
}

#[test]
fn columns_that_say_no_quantity_are_asked_about() {
    for names in [
        "R80711,R80721,R80736,R80790",
        "2133-004,2133-015,2133-017,2133-018",
        "10043,10067,1007",
        "ALABAMA,NEW_HAMPSHIRE,OHIO",
        "AAPL,AMZN,IBM,MSFT",
        "EWR,JFK,LGA",
        "anna,bob,carl",
        "10.0.0.1,10.0.0.2,10.0.0.7",
        "a4c138f0,a4c13902,a4c1390f",
        "P001,P002,P003",
        "Berlin,Hamburg,Köln",
    ] {
        for count in [5, 60] {
            let text = hours(names, count);
            asks(&text, "their names do not say what they measure");
            asks(&text, "`--wide NAME`");
            let first = names.split(',').next().unwrap().to_owned();
            let said = Hints { measure: vec![first], ..Hints::default() };
            assert_eq!(understand(text.as_bytes(), &said).unwrap().questions, [""; 0], "{names}");
            let said = Hints { wide: Some("value".to_owned()), ..Hints::default() };
            let found = understand(text.as_bytes(), &said).unwrap();
            assert_eq!(found.tally.owners, names.split(',').count() as u64, "{names}");
        }
    }
    // Another column beside them changes nothing.
    let beside = format!("{},next_day_return", "AAPL,AMZN,GOOG,IBM,MSFT,ORCL,TSLA,NVDA,INTC,AMDX");
    asks(&hours(&beside, 60), "`--leave-out next_day_return`");
    // Nor do numbers of different sizes.
    let sizes = rows("time,anna,bob,carl", 8, |n| {
        format!("2024-01-01 {:02}:00,1{n}.1,20.1{n},21{n}.7", n + 10)
    });
    asks(&sizes, "`anna` and 2 other columns");
}

#[test]
fn sensors_of_one_device_are_not_asked_about() {
    for names in [
        "temp_1,temp_2,temp_3",
        "s1,s2,s3",
        "pm10,pm25,no2",
        "x,y,z",
        "acc_x,acc_y,acc_z",
        "accX,accY,accZ",
        "Global_active_power,Global_reactive_power,Voltage,Global_intensity",
        "Sub_metering_1,Sub_metering_2,Sub_metering_3",
        "open,high,low,close",
        "cpu_user,cpu_system,cpu_idle",
        "Lufttemperatur,Luftfeuchte,Luftdruck,Windrichtung",
        "USGS:04410010:00060,USGS:04410010:00065,USGS:04410010:00010",
        "temp_20417733,temp_20417734,temp_20417735",
        "east,west",
    ] {
        let questions = look(hours(names, 60)).questions;
        assert!(
            !questions.concat().contains("do not say what they measure"),
            "{names}: {questions:?}"
        );
    }
}

#[test]
fn times_in_the_names_of_columns_are_no_owners() {
    let year = |n: u32| (1970 + n).to_string();
    let day = |n: u32| format!("2024-01-{:02}", n + 1);
    let months = "JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC";
    let days = (1..=31).map(|day| day.to_string()).collect::<Vec<_>>().join(",");
    for text in [
        dates(&format!("YEAR,{months}"), year),
        dates(&format!("Year,{months},Annual"), year),
        dates("Year,Q1,Q2,Q3,Q4", year),
        dates("date,00:00,01:00,02:00,03:00", day),
        dates("date,Mon,Tue,Wed,Thu,Fri,Sat,Sun", day),
        dates("date,H01,H02,H03,H04,H05,H06,H07,H08", day),
        dates("date,1,2,3", day),
        dates(&format!("date,{days}"), day),
        dates("date,1960,1970,1980,1990", day),
    ] {
        asks(&text, "seem to be times");
        assert!(look(&text).wide.is_none(), "{text}");
    }
    let text = dates(&format!("YEAR,{months}"), year);
    for said in [
        Hints { measure: vec!["JAN".to_owned()], ..Hints::default() },
        Hints { wide: Some("value".to_owned()), ..Hints::default() },
    ] {
        let questions = understand(text.as_bytes(), &said).unwrap().questions;
        assert!(!questions.concat().contains("seem to be times"), "{questions:?}");
    }
}
