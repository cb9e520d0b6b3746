//! Lines above a table that are as wide as it, and names that stand in a line of another form.

use super::wild::lines;
use super::{ExpectedFile, is, look, unit};

#[test]
fn lines_of_a_word_and_a_value_above_are_no_names() {
    let above = "station,name,Ilmenau\nstation,elevation,512\ndevice,serial,A-7781\n";
    let table = lines(90, |n| format!("2024-01-{:02},{},{}", n % 28 + 1, n % 30, n % 40 + 50));
    let expected = ExpectedFile {
        owner: None,
        time: &["time"],
        format: "%Y-%m-%d",
        zone: "none stated",
        attribute: ("temp", 90, "1305"),
        rows: 90,
    };
    for more in ["", "\n", "meta,unit,kWh\n"] {
        let found = look(format!("{above}{more}time,temp,hum\n{table}"));
        super::agrees(&found, &expected);
        assert!(!found.questions.iter().any(|q| q.starts_with("Line")), "{:?}", found.questions);
    }
    // Without names, none of the lines is one.
    let found = look(format!("{above}{table}"));
    assert!(found.questions.iter().any(|q| q.starts_with("Line 3 ")), "{:?}", found.questions);
    // Units below names are none, whatever they are of.
    let found = look(format!("date,temp,kwh\ntime,°C,kWh\n{table}"));
    assert_eq!(
        (found.names.as_slice(), unit(&found, "temp")),
        (&["date", "temp", "kwh"].map(str::to_owned)[..], Some("°C"))
    );
}

#[test]
fn the_fields_of_a_web_server_are_names() {
    let above = "#Software: Server 10.0\n#Date: 2024-01-29 10:00:00\n#Fields: date time s-ip c-ip sc-status time-taken\n";
    let expected = ExpectedFile {
        owner: Some("c-ip"),
        time: &["date", "time"],
        format: "%Y-%m-%d %H:%M:%S",
        zone: "none stated",
        attribute: ("time-taken", 120, "2340"),
        rows: 120,
    };
    for mark in [' ', '\t'] {
        let row = |n: u32| {
            let cells = format!(
                "2024-01-29 10:{:02}:{:02} 10.0.0.1 192.0.2.{} 200 {}",
                n / 60,
                n % 60,
                n % 9,
                n % 40
            );
            cells.replace(' ', &mark.to_string())
        };
        is(format!("{above}{}", lines(120, row)), &expected);
    }
}

/// Types below the names, or what another program calls them. Of two rows that both name a time, it asks.
#[test]
fn types_below_names_are_none() {
    let table = lines(90, |n| format!("2024-01-{:02},p{},{}", n % 28 + 1, n % 9, n % 40 + 50));
    let names = ["time", "person", "steps"].map(str::to_owned);
    let json = r#""{""ImportId"":""startDate""}","{""ImportId"":""q1""}","{""ImportId"":""q2""}""#;
    for types in ["datetime,string,integer", "TIMESTAMP,VARCHAR(20),INT", json] {
        let found = look(format!("time,person,steps\n{types}\n{table}"));
        assert_eq!(found.names, names, "{types}");
        assert_eq!(found.owner.as_deref(), Some("person"), "{types}");
    }
    let found = look(format!("time,person,steps\nDay of time,Who,Count of steps\n{table}"));
    assert!(found.questions.iter().any(|q| q.starts_with("Line 2 ")), "{:?}", found.questions);
}

/// A header of a mark and names, with a line of the mark alone or a rule below.
#[test]
fn a_rule_below_the_names_hides_none() {
    let table = lines(90, |n| {
        format!(
            "  {},2024{:02}{:02},{},{}",
            310 + n % 3,
            n / 3 / 28 + 1,
            n / 3 % 28 + 1,
            n * 7 % 90,
            n % 9
        )
    });
    let legend =
        "# Some institute\n#\n# T1 = Mean temperature (in 0.1 degrees Celsius);\n# W2 = Wind;\n#\n";
    for rule in ["#\n", "# ---------\n", "#\n#\n", "----------\n"] {
        let found = look(format!("{legend}# SITE,YYYYMMDD,   T1,   W2\n{rule}{table}"));
        assert_eq!(found.names, ["SITE", "YYYYMMDD", "T1", "W2"].map(str::to_owned), "{rule}");
        assert_eq!(found.owner.as_deref(), Some("SITE"), "{rule}");
        assert_eq!((found.time.format(), found.tally.rows), ("%Y%m%d".to_owned(), 90), "{rule}");
        assert_eq!(unit(&found, "T1"), Some("0.1 degrees Celsius"), "{rule}");
    }
}

/// A meter's portal writes what its only column is in two lines above the table.
#[test]
fn a_unit_below_its_word_is_that_of_the_only_column() {
    let above = "Compteur;Debut;Grandeur;Unite;Pas\n12345678901234;01/02/2024;Energie;W;\n";
    let table =
        lines(48, |n| format!("2024-02-{:02}T{:02}:00:00+01:00;{}", 1 + n / 24, n % 24, 300 + n));
    let found = look(format!("{above}Horodate;Valeur\n{table}"));
    assert_eq!((unit(&found, "Valeur"), found.tally.rows), (Some("W"), 48));
    let two = lines(48, |n| {
        format!("2024-02-{:02}T{:02}:00:00+01:00;{};{}", 1 + n / 24, n % 24, 300 + n, n)
    });
    let found = look(format!("{above}Horodate;Valeur;Rang\n{two}"));
    assert_eq!(unit(&found, "Valeur"), None);
}

/// Where a name is missing, the first one stands above the times if it is that of a time.
#[test]
fn names_from_the_time_on_are_not_shifted() {
    let table =
        lines(60, |n| format!("08/{}/10 {:02}:00:00\t{}.5\tok\tx{n}", 18 + n / 24, n % 24, n % 31));
    let found = look(format!("Date Time\tTemp\tState\n{table}"));
    assert_eq!(found.names, ["Date Time", "Temp", "State", "column 4"].map(str::to_owned));
    assert!(found.questions.iter().any(|q| q.starts_with("Line 1 seems to name 3 columns")));
    assert_eq!(found.attributes[0].column, "Temp");
    // Names of rows stand first, and have none.
    let found = look(format!("Temp\tState\n{}", table.replace("\tok", "")));
    assert_eq!(found.names, ["column 1", "Temp", "State"].map(str::to_owned));
}

#[test]
fn names_that_stand_twice_are_no_units() {
    let names = "time,ET_f,FP_alpha\n";
    let rows: String = (0..30)
        .map(|n| format!("2024-03-01 {:02}:{:02},{n}.5,{}\n", n / 2, n % 2 * 30, n * 7 % 9))
        .collect();
    let found = look(format!("{names}{names}{rows}"));
    let all: Vec<_> =
        found.attributes.iter().map(|own| (own.unit.clone(), own.total.count)).collect();
    assert_eq!(all, [(None, 30), (None, 30)]);
}

/// Some ids look like a year and a day of it, and those above them do not.
#[test]
fn a_row_with_a_time_is_no_line_of_names() {
    let row = |n: u32| {
        let id = if n < 20 { "1636-70-1010" } else { "2133-004" };
        format!("{id},2016-03-{:02} 15:{:02}:17,{}", n / 30 + 2, n % 60, 80 + n % 60)
    };
    let found = look(format!("id,time,gl\n{}", lines(200, row)));
    assert_eq!(
        (found.names.as_slice(), found.tally.rows),
        (&["id", "time", "gl"].map(str::to_owned)[..], 200)
    );
    assert_eq!((found.owner.as_deref(), found.questions.as_slice()), (Some("id"), &[][..]));
}
