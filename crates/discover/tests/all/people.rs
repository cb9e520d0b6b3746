//! Columns that count people, name them with gaps, or name different people beside one another.

use super::look;
use super::wild::lines;
use alpheus_discover::{Hints, Understanding, understand};

/// Whether a question names all of these.
fn asks(found: &Understanding, parts: &[&str]) -> bool {
    found.questions.iter().any(|asked| parts.iter().all(|part| asked.contains(part)))
}

fn sum(found: &Understanding, column: &str) -> Option<String> {
    let own = found.attributes.iter().find(|own| own.column == column)?;
    Some(own.total.sum.text())
}

#[test]
fn numbers_of_people_are_counts_and_own_no_rows() {
    for name in ["Kunden", "staff", "Mitarbeiter", "Teilnehmer", "customers", "Anzahl Nutzer"] {
        let row = |n: u32| {
            format!(
                "2024-{:02}-{:02},Werk {},{}",
                n / 84 + 1,
                n / 3 % 28 + 1,
                n % 3,
                n * 7 % 90 + 40
            )
        };
        let found = look(format!("Datum,Werk,{name}\n{}", lines(252, row)));
        assert_eq!(found.owner.as_deref(), Some("Werk"), "{name}");
        assert_eq!(sum(&found, name).as_deref(), Some("21132"), "{name}");
    }
}

#[test]
fn numbers_that_may_count_or_name_people_are_asked_about() {
    let row =
        |n: u32| format!("2024-{:02}-{:02},{},{}", n / 28 + 1, n % 28 + 1, n * 5 % 8 + 1, n % 11);
    let text = format!("date,staff,hours\n{}", lines(252, row));
    let found = look(&text);
    assert_eq!(found.owner, None);
    assert!(
        asks(&found, &["`staff`", "--measure staff", "--owner staff"]),
        "{:?}",
        found.questions
    );
    let hints = Hints { measure: vec!["staff".to_owned()], ..Hints::default() };
    let said = understand(text.as_bytes(), &hints).unwrap();
    assert!(!asks(&said, &["--owner staff"]), "{:?}", said.questions);
}

#[test]
fn a_person_with_gaps_owns_rows_rather_than_a_country() {
    for end in ["", ".0"] {
        let row = |n: u32| {
            let own = if n.is_multiple_of(4) {
                String::new()
            } else {
                format!("{}{end}", 12_346 + n % 30)
            };
            format!(
                "{},{own},{},2024-03-{:02} {:02}:30",
                n % 9,
                ["Chile", "Peru"][n as usize % 2],
                n / 24 % 28 + 1,
                n % 24
            )
        };
        let found = look(format!("Quantity,Customer ID,Country,time\n{}", lines(240, row)));
        assert_eq!(found.owner.as_deref(), Some("Customer ID"));
        assert_eq!((found.tally.rows, found.tally.no_owner), (180, 60));
        assert!(asks(&found, &["only in 180 of 240 rows"]), "{:?}", found.questions);
    }
}

#[test]
fn few_visitors_have_names_and_all_have_addresses() {
    for address in ["ip", "client_ip"] {
        let row = |n: u32| {
            let user = ["anna", "ben", "-", "-", "-"][n as usize % 5];
            format!(
                "10.0.0.{},{user},Web {},2024-01-29T10:{:02}:{:02}Z,{}",
                n % 9,
                n % 4,
                n / 60,
                n % 60,
                n * 7 % 90
            )
        };
        let found = look(format!("{address},user,agent,time,bytes\n{}", lines(240, row)));
        let expected = (Some(address), [""; 0].as_slice());
        assert_eq!(
            (
                found.owner.as_deref(),
                found.questions.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
            ),
            expected
        );
    }
}

#[test]
fn two_columns_that_name_different_people_are_asked_about() {
    for (one, other) in [
        ("patient", "doctor"),
        ("customer_id", "seller_id"),
        ("rider", "driver_no"),
        ("Schüler", "Lehrer"),
    ] {
        let row = |n: u32| {
            format!(
                "2024-03-{:02} {:02}:00,x{},y{},{}",
                n / 24 % 28 + 1,
                n % 24,
                n % 7,
                n / 3 % 4,
                n % 50
            )
        };
        let found = look(format!("time,{one},{other},value\n{}", lines(240, row)));
        let owner = format!("--owner {one}");
        assert!(
            asks(&found, &[&owner, other, "both seem to name people"]),
            "{:?}",
            found.questions
        );
    }
    // Each of these is one person by two names, or a person in a household.
    for (other, value) in [("user_name", 1), ("member", 1), ("household", 2)] {
        let row = |n: u32| {
            format!(
                "2024-03-{:02} {:02}:00,x{},y{},{}",
                n / 24 % 28 + 1,
                n % 24,
                n % 8,
                n % 8 / value,
                n % 50
            )
        };
        let found = look(format!("time,user_id,{other},value\n{}", lines(240, row)));
        assert_eq!(found.owner.as_deref(), Some("user_id"));
        assert!(!asks(&found, &["both seem to name people"]), "{:?}", found.questions);
    }
}

#[test]
fn addresses_with_ports_own_no_rows_in_silence() {
    let row = |n: u32| {
        format!(
            "https 2024-01-29T10:{:02}:{:02}Z 192.0.2.{}:{} {}",
            n / 60,
            n % 60,
            n % 9,
            1025 + n * 7,
            n % 50 * 10
        )
    };
    let found = look(lines(240, row));
    assert!(
        asks(&found, &["`column 3` has network addresses with ports"]),
        "{:?}",
        found.questions
    );
}

/// The person stands in the first row of each block, and the room in all.
#[test]
fn a_room_owns_no_rows_in_silence_where_a_person_is_named_in_some() {
    let row = |n: u32| {
        let patient = if n.is_multiple_of(8) { format!("p{}", n / 8 % 20) } else { String::new() };
        format!("2024-03-{:02} {:02}:00,{patient},r{},{}", n / 24 % 28 + 1, n % 24, n % 5, n % 50)
    };
    let found = look(format!("time,patient,room,value\n{}", lines(480, row)));
    assert!(asks(&found, &["`patient` seems to name the owner"]), "{:?}", found.questions);
}

#[test]
fn an_agent_beside_a_customer_is_asked_about() {
    let row = |n: u32| {
        format!("2024-03-{:02} {:02}:00,c{},a{},{}", n / 24 % 28 + 1, n % 24, n % 23, n % 7, n % 50)
    };
    let found = look(format!("time,customer_id,agent_id,handle_time\n{}", lines(480, row)));
    assert!(asks(&found, &["both seem to name people"]), "{:?}", found.questions);
}
