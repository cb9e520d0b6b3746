//! Files that offices write: numbers of accounts and of rows, few owners, months as texts.

use super::look;
use super::wild::lines;
use alpheus_discover::{Hints, Understanding, understand};

/// The readings of seventeen accounts, one of each a month.
fn accounts(name: &str) -> String {
    let row = |n: u32| {
        let account = 20_003 + n / 12 * 3;
        format!(
            "{account};{:02}.{:02}.2016;{},{}",
            14,
            n % 12 + 1,
            (n * n * 7 + n * 3) % 499 + 90,
            n % 10
        )
    };
    format!("{name};Datum;Arbeit kWh\n{}", lines(204, row))
}

fn measures(found: &Understanding, column: &str) -> bool {
    found.attributes.iter().any(|own| own.column == column)
}

#[test]
fn numbers_of_accounts_are_owners() {
    for name in [
        "Acct #",
        "Acct No",
        "acct",
        "Acct. Num",
        "Account #",
        "Vertragskonto",
        "Vertragskonto-Nr.",
        "Konto-Nr",
        "Kto.-Nr.",
        "Kontonr",
        "Vertrags-Nr.",
        "Vertragsnummer",
        "Contract No",
        "Kd.-Nr.",
        "KdNr",
        "client no",
        "Cust #",
        "Debitor",
        "Policy Number",
        "Membership #",
    ] {
        let found = look(accounts(name));
        assert_eq!(found.owner.as_deref(), Some(name), "{:?}", found.questions);
        assert_eq!((found.tally.owners, found.questions), (17, vec![]), "{name}");
    }
}

#[test]
fn what_a_name_numbers_is_not_measured_in_silence() {
    for name in ["Pole #", "Lot №", "Akte Nr.", "Vorgang num", "Filing no", "Ref #"] {
        let found = look(accounts(name));
        let asked = found.questions.iter().any(|asked| asked.contains(&format!("`{name}`")));
        assert!(!measures(&found, name) || asked, "{name}: {:?}", found.questions);
        assert!(found.owner.as_deref() == Some(name) || asked, "{name}: {:?}", found.questions);
    }
    // A number of people or of things.
    let row = |n: u32| format!("{:02}.01.2024,w{},{}", n / 3 % 28 + 1, n % 3, n * 7 % 90 + 40);
    for name in ["# of visitors", "#items"] {
        let found = look(format!("Datum,Werk,{name}\n{}", lines(84, row)));
        assert!(measures(&found, name), "{name}: {:?}", found.fates());
    }
}

/// A customer may have several metering points.
#[test]
fn each_of_two_columns_that_may_name_owners_is_offered() {
    let row = |n: u32| {
        let point = n % 68;
        let customer = 4000 + point.min(65) * 7;
        format!(
            "{customer};DE0001{:05};{:02}.01.2024;{},5",
            point,
            n / 68 + 1,
            (n * n * 7 + n * 3) % 499
        )
    };
    for (name, other) in [("Kd.-Nr.", "ZP-Bez."), ("GP-Nr.", "Zählpunkt"), ("Kundennr", "Zähler")]
    {
        let found = look(format!("{name};{other};Datum;kWh\n{}", lines(680, row)));
        let named = found.owner.as_deref() == Some(name);
        let remedy = format!("`--owner {name}`");
        let offered = named || found.questions.iter().any(|asked| asked.contains(&remedy));
        assert!(offered, "{name}: {:?} {:?}", found.owner, found.questions);
    }
}

#[test]
fn few_owners_are_noted() {
    let of = |owners: u32| {
        let row = |n: u32| {
            format!(
                "R-{},2024-01-{:02},{}.5",
                n % owners + 1,
                n / owners + 1,
                (n * n * 7 + n * 3) % 499
            )
        };
        let text = format!("Rate Cls,date,kwh\n{}", lines(owners * 20, row));
        let hints = Hints { owner: Some("Rate Cls".to_owned()), ..Hints::default() };
        understand(text.as_bytes(), &hints).unwrap()
    };
    let says = |found: &Understanding, text: &str| {
        let shown = found.notes.iter().take(8);
        shown.clone().any(|note| note.contains(text))
    };
    let two = of(2);
    assert!(says(&two, "Only 2 owners"), "{:?}", two.notes);
    assert!(says(&two, "`clients: 2`") && says(&two, "the other's"), "{:?}", two.notes);
    assert!(says(&of(9), "Only 9 owners"));
    assert!(!says(&of(10), "Only "));
}

#[test]
fn shuffled_numbers_of_rows_are_left_out() {
    for name in ["rownames", "row", "obs", "X", "Unnamed: 0", "index", ""] {
        for place in [0, 2] {
            let row = |n: u32| {
                let own = (n * 97 + 13) % 300 + 1;
                let (id, day) = (n % 15, n / 15 + 1);
                match place {
                    0 => format!("{own},p{id},2024-03-{day:02},{}.5", (n * n * 7 + n * 3) % 499),
                    _ => format!("p{id},2024-03-{day:02},{own},{}.5", (n * n * 7 + n * 3) % 499),
                }
            };
            let header = match place {
                0 => format!("{name},id,date,value"),
                _ => format!("id,date,{name},value"),
            };
            let found = look(format!("{header}\n{}", lines(300, row)));
            let measured: Vec<&str> =
                found.attributes.iter().map(|own| own.column.as_str()).collect();
            assert_eq!(measured, ["value"], "{name} at {place}");
            assert_eq!(found.questions, [""; 0], "{name} at {place}");
        }
    }
    // A part of a file keeps the numbers of the whole.
    let row = |n: u32| {
        let own = (n * 997 + 13) % 30_011;
        format!("{own},p{},2024-03-{:02},{}.5", n % 15, n / 15 + 1, (n * n * 7 + n * 3) % 499)
    };
    assert!(!measures(&look(format!("rownames,id,date,value\n{}", lines(300, row))), "rownames"));
}

#[test]
fn months_with_years_of_two_digits_are_refused_with_their_format() {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mrz", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"];
    for mark in [" ", "-", ". ", "/"] {
        let row = |n: u32| {
            let month = MONTHS[n as usize % 12];
            format!("{};{month}{mark}16;{}", 20_003 + n / 12, (n * n * 7 + n * 3) % 499)
        };
        let text = format!("Vertragskonto;Abrechnungsmonat;Verbr. kWh\n{}", lines(204, row));
        let error = understand(text.as_bytes(), &Hints::default()).unwrap_err().to_string();
        let says = "`--time Abrechnungsmonat --time-format '";
        let (_, format) = error.split_once(says).unwrap_or_else(|| panic!("{error}"));
        let (format, _) = format.split_once("'`").unwrap();
        let hints = Hints {
            time: vec!["Abrechnungsmonat".to_owned()],
            time_format: Some(format.to_owned()),
            ..Hints::default()
        };
        let found = understand(text.as_bytes(), &hints).unwrap();
        assert_eq!((found.tally.rows, found.tally.refused()), (204, 0), "{mark}");
    }
}

/// Each row of a trial is a person's.
#[test]
fn a_person_in_each_row_is_offered_as_owner() {
    for name in ["patient", "subject", "Participant", "customer", "person_id", "Pat.-Nr."] {
        for shuffled in [1, 97] {
            let row = |n: u32| {
                let (own, day) = (n * shuffled % 300 + 1, n * 7 % 28 + 1);
                let arm = ["drug", "placebo"][n as usize % 2];
                format!("{own},2024-03-{day:02},{arm},{},{}.5", 40 + n * 13 % 37, n * 37 % 199)
            };
            let text = format!("{name},enrolled,arm,age,crp\n{}", lines(300, row));
            let found = look(&text);
            let offered = |asked: &String| {
                asked.contains(&format!("`--owner {name}`")) && asked.contains("--owner none")
            };
            let named = found.owner.as_deref() == Some(name);
            assert!(
                named || found.questions.iter().any(offered),
                "{name}: {:?} {:?}",
                found.questions,
                found.fates()
            );
        }
    }
}
