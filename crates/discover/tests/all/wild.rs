//! Files as trackers, meters, banks, loggers and portals write them, made up for one quirk each.

use super::{ExpectedFile, agrees, is, look, unit};
use std::fmt::Write as _;

const NONE: &str = "none stated";

/// Lines, one for each number.
pub(super) fn lines(count: u32, line: impl Fn(u32) -> String) -> String {
    (0..count).fold(String::new(), |mut text, at| {
        let _ = writeln!(text, "{}", line(at));
        text
    })
}

#[test]
fn activities_whose_length_is_no_time_of_day() {
    let row = |n: u32| {
        format!(
            "Running,2024-05-{:02},false,\"Run, {n}\",{}.{n:02},\"1,{n:03}\",00:{n:02}:12,--",
            n + 1,
            n + 3
        )
    };
    let text = format!(
        "Activity Type,Date,Favorite,Title,Distance,Calories,Moving Time,Avg HR\n{}",
        lines(20, row)
    );
    let expected = ExpectedFile {
        owner: None,
        time: &["Date"],
        format: "%Y-%m-%d",
        zone: NONE,
        attribute: ("Calories", 20, "20190"),
        rows: 20,
    };
    let found = is(text, &expected);
    assert!(
        found.fates().iter().any(|(name, fate)| name == "Moving Time" && fate.contains("times"))
    );
}

#[test]
fn a_health_export_with_three_times_and_offsets() {
    let row = |n: u32| {
        format!(
            "HeartRate,Watch,count/min,2024-01-02 0{0}:00:09 +0100,2024-01-02 0{0}:00:00 +0100,2024-01-02 0{0}:00:05 +0100,{1}",
            n % 10,
            60 + n
        )
    };
    let text =
        format!("type,sourceName,unit,creationDate,startDate,endDate,value\n{}", lines(10, row));
    let expected = ExpectedFile {
        owner: None,
        time: &["startDate"],
        format: "%Y-%m-%d %H:%M:%S %z",
        zone: "offset in the value",
        attribute: ("value", 10, "645"),
        rows: 10,
    };
    is(text, &expected);
}

#[test]
fn kinds_of_readings_in_one_column_are_asked_about() {
    let row = |n: u32| {
        format!(
            "{},{},2024-01-02T{:02}:00:00Z,{},ug/m3",
            7 + n % 2,
            ["pm25", "o3"][(n / 2 % 2) as usize],
            n / 4,
            n * 3
        )
    };
    let found = look(format!("location_id,parameter,datetime,value,unit\n{}", lines(48, row)));
    assert_eq!(found.owner.as_deref(), Some("location_id"));
    assert!(found.questions.iter().any(|q| q.contains("`parameter`")), "{:?}", found.questions);
}

#[test]
fn a_smart_meter_with_seven_digits_of_a_second_and_null() {
    let row = |n: u32| {
        let value = if n == 7 { "Null".to_owned() } else { format!(" 0.{:03} ", n) };
        format!(
            "MAC00000{},2012-10-12 {:02}:{}0:00.0000000,{value}",
            n % 3,
            n / 6 % 24,
            n / 3 % 2 * 3
        )
    };
    let text = format!("LCLid,tstp,energy(kWh/hh)\n{}", lines(72, row));
    let expected = ExpectedFile {
        owner: Some("LCLid"),
        time: &["tstp"],
        format: "%Y-%m-%d %H:%M:%S.%f",
        zone: NONE,
        attribute: ("energy(kWh/hh)", 71, "2.549"),
        rows: 72,
    };
    let found = is(text, &expected);
    assert_eq!(unit(&found, "energy(kWh/hh)"), Some("kWh/hh"));
}

#[test]
fn states_of_a_home_with_words_among_them() {
    let row = |n: u32| {
        let state =
            if n % 25 == 24 { "unavailable".to_owned() } else { format!("{}.5", 18 + n % 5) };
        format!("sensor.room_{},{state},2024-01-01T{:02}:{:02}:05.123Z", n % 2, n / 10, n % 10)
    };
    let text = format!("entity_id,state,last_changed\n{}", lines(100, row));
    let expected = ExpectedFile {
        owner: Some("entity_id"),
        time: &["last_changed"],
        format: "%Y-%m-%dT%H:%M:%S.%f%z",
        zone: "offset in the value",
        attribute: ("state", 96, "1960.0"),
        rows: 100,
    };
    is(text, &expected);
}

#[test]
fn a_bank_with_lines_above_and_a_balance_below() {
    let row = |n: u32| {
        format!(
            "{:02}.01.2024;{:02}.01.2024;\"Laden \"\"{n}\"\"; Stadt\";-1.{n:03},50;EUR",
            n + 1,
            n + 2
        )
    };
    let text = format!(
        "Umsatzanzeige;Datei erstellt am: 31.01.2024 12:00\nIBAN;DE00 0000\n\nBuchung;Valuta;Verwendungszweck;Betrag;W\u{e4}hrung\n{}",
        lines(28, row)
    );
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let expected = ExpectedFile {
        owner: None,
        time: &["Buchung"],
        format: "%d.%m.%Y",
        zone: NONE,
        attribute: ("Betrag", 28, "-28392.00"),
        rows: 28,
    };
    is(latin, &expected);
}

#[test]
fn an_account_with_brackets_and_dollars() {
    let row = |n: u32| match n % 3 {
        0 => format!("01/{:02}/2024,Card,($45.{n:02}),\"$1,2{n:02}.00\"", n + 1),
        1 => format!("01/{:02}/2024,Pay,$1{n:02}.00,\"$1,2{n:02}.00\"", n + 1),
        _ => format!("01/{:02}/2024,Fee,-$5.00,\"$1,2{n:02}.00\"", n + 1),
    };
    let text = format!("Date,Description,Amount,Balance\n{}", lines(30, row));
    let expected = ExpectedFile {
        owner: None,
        time: &["Date"],
        format: "%m/%d/%Y",
        zone: NONE,
        attribute: ("Amount", 30, "643.65"),
        rows: 30,
    };
    is(text, &expected);
}

#[test]
fn a_minus_behind_the_number_and_francs() {
    let row = |n: u32| {
        format!(
            "{:02}.03.2024;CHF {}'{n:03}.25{}",
            n + 1,
            n + 1,
            if n.is_multiple_of(2) { "-" } else { "" }
        )
    };
    let text = format!("Datum;Saldo\n{}", lines(20, row));
    let expected = ExpectedFile {
        owner: None,
        time: &["Datum"],
        format: "%d.%m.%Y",
        zone: NONE,
        attribute: ("Saldo", 20, "10010.00"),
        rows: 20,
    };
    is(text, &expected);
}

#[test]
fn an_air_sensor_with_utc_behind_each_time() {
    let row = |n: u32| format!("2024-01-01 00:{n:02}:12 UTC,{},{}.25,{}", 1000 + n, n, 40 + n % 3);
    let text = format!("created_at,entry_id,PM2.5_ATM_ug/m3,Humidity_%\n{}", lines(30, row));
    let expected = ExpectedFile {
        owner: None,
        time: &["created_at"],
        format: "%Y-%m-%d %H:%M:%S %Z",
        zone: "offset in the value",
        attribute: ("PM2.5_ATM_ug/m3", 30, "442.50"),
        rows: 30,
    };
    let found = is(text, &expected);
    assert!(found.left_out.iter().any(|(name, _)| name == "entry_id"), "it numbers the rows");
    assert_eq!(unit(&found, "Humidity_%"), Some("%"));
}

#[test]
fn a_track_below_six_lines_of_another_form() {
    let row = |n: u32| {
        format!(
            "39.{n:06},116.385564,0,{},40097.58{:08},2009-10-11,14:{:02}:{:02}",
            400 + n * 7 % 13,
            n * 1000,
            n / 60,
            n % 60
        )
    };
    let text = format!(
        "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n{}",
        lines(200, row)
    );
    let expected = ExpectedFile {
        owner: None,
        time: &["column 6", "column 7"],
        format: "%Y-%m-%d %H:%M:%S",
        zone: NONE,
        attribute: ("column 4", 200, "81188"),
        rows: 200,
    };
    is(text, &expected);
}

#[test]
fn a_wide_file_of_clients_with_an_empty_first_name() {
    let row = |n: u32| {
        format!("\"2011-01-01 {:02}:{:02}:00\";0;{},{:02};1", n / 4, n % 4 * 15, n, n % 100)
    };
    let text = format!("\"\";\"MT_001\";\"MT_002\";\"MT_003\"\n{}", lines(90, row));
    let expected = ExpectedFile {
        owner: None,
        time: &["column 1"],
        format: "%Y-%m-%d %H:%M:%S",
        zone: NONE,
        attribute: ("MT_002", 90, "4045.05"),
        rows: 90,
    };
    is(text, &expected);
}

#[test]
fn big_ends_first_and_a_line_that_names_the_separator() {
    let row = |n: u32| format!("01.01.2024 {n:02}:00;{},5;", n);
    let text = format!("sep=;\r\nZeit;Wert [kWh];\r\n{}", lines(20, row));
    let bytes: Vec<u8> =
        [0xfe, 0xff].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    let expected = ExpectedFile {
        owner: None,
        time: &["Zeit"],
        format: "%d.%m.%Y %H:%M",
        zone: NONE,
        attribute: ("Wert [kWh]", 20, "200.0"),
        rows: 20,
    };
    is(bytes, &expected);
}

#[test]
fn totals_below_the_table_are_no_readings() {
    let text = format!(
        "Meter,Date,kWh\n{}Total,,190\n,,\nExported 2024,,\n",
        lines(20, |n| format!("m{},2024-01-{:02},{n}", n % 2, n / 2 + 1))
    );
    let found = look(text);
    let expected = ExpectedFile {
        owner: Some("Meter"),
        time: &["Date"],
        format: "%Y-%m-%d",
        zone: NONE,
        attribute: ("kWh", 20, "190"),
        rows: 20,
    };
    agrees(&found, &expected);
    let text =
        format!("Date,kWh\n{}Total,190\n", lines(20, |n| format!("2024-01-{:02},{n}", n + 1)));
    let found = look(text);
    assert_eq!(found.attributes[0].total.sum.text(), "190");
    assert_eq!((found.tally.rows, &found.questions[..]), (20, &[][..]));
}

#[test]
fn units_percent_and_spaces_in_the_cells() {
    let row = |n: u32| {
        format!("2024-01-01 {n:02}:00;{} bpm;{},5 %;1\u{202f}{n:03},25 €;{} km", 60 + n, n, 3 * n)
    };
    let text = format!("Zeit;Puls;Anteil;Umsatz;Strecke\n{}", lines(20, row));
    let expected = ExpectedFile {
        owner: None,
        time: &["Zeit"],
        format: "%Y-%m-%d %H:%M",
        zone: NONE,
        attribute: ("Umsatz", 20, "20195.00"),
        rows: 20,
    };
    let found = is(text, &expected);
    assert_eq!(found.attributes[0].total.sum.text(), "1390");
    assert_eq!((unit(&found, "Puls"), unit(&found, "Strecke")), (Some("bpm"), Some("km")));
}

#[test]
fn names_that_stand_twice_comments_and_rows_that_end_early() {
    let text = format!(
        "time,temp,temp,note,\n{}# restarted\n2024-01-02 00:00,5\n{}",
        lines(20, |n| format!("2024-01-01 {n:02}:00,{n},{},ok,", n * 2)),
        lines(3, |n| format!("2024-01-02 0{}:00,{n}", n + 1))
    );
    let expected = ExpectedFile {
        owner: None,
        time: &["time"],
        format: "%Y-%m-%d %H:%M",
        zone: NONE,
        attribute: ("temp", 24, "198"),
        rows: 24,
    };
    let found = is(text, &expected);
    assert_eq!(found.attributes[1].column, "temp (2)");
    assert_eq!(found.attributes[1].total.sum.text(), "380");
}
