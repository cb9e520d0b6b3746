//! Totals below the readings of a table.

use super::{look, wild::lines};
use alpheus_discover::write::files;
use alpheus_discover::{Hints, understand};

/// A table of readings of fifteen meters, with these lines below it.
fn with_end(end: &str) -> String {
    let row = |n: u32| {
        format!(
            "{};{:02}.01.2024;T{};{},362",
            10_000 + n / 28,
            n % 28 + 1,
            n % 2,
            (n * n * 7 + n * 3) % 499
        )
    };
    format!("Zählernummer;Datum;Tarif;kWh\n{}{end}\n", lines(420, row))
}

#[test]
fn a_total_below_the_table_is_left_out() {
    for end in [
        "Summe;;;166.235,362",
        "Summe:;;;166.235,362",
        "Gesamtsumme;;;166.235,362",
        "Total;;;166.235,362",
        "Total général;;;166.235,362",
        ";Grand Total;;166.235,362",
        ";Gesamt;;166.235,362",
        ";;Somme;166.235,362",
        "\"Totale\";;;166.235,362",
        ";;;166.235,362",
        "\nSumme;;;166.235,362\n\n",
        "Summe;166.235,362",
    ] {
        let found = look(with_end(end));
        assert_eq!(found.questions, [""; 0], "{end}");
        let note = "Line 422 looks like a total";
        let line = if end.starts_with('\n') { "Line 423 looks like a total" } else { note };
        assert!(found.notes.iter().any(|own| own.contains(line)), "{end}: {:?}", found.notes);
        assert_eq!((found.tally.rows, found.tally.owners), (420, 15), "{end}");
        let lines = if end.starts_with('\n') { "totals: [423]" } else { "totals: [422]" };
        assert!(files(&found, "a.csv", None).source.contains(lines), "{end}");
    }
}

/// Only the totals are so great that they have marks between thousands.
#[test]
fn a_total_that_is_written_unlike_its_parts_is_left_out() {
    let row =
        |n: u32| format!("003{:05};{:02}.01.2024;{},362;0,0{}", n / 28, n % 28 + 1, n % 9, n % 7);
    for end in ["Summe;;166.235,362;91.176,053", ";;166.235,362;91.176,053"] {
        let text = format!("Kd.-Nr.;Ablesung;Bezug;Einspeisung\n{}{end}\n", lines(2800, row));
        let found = look(text);
        assert_eq!((found.tally.rows, found.questions), (2800, vec![]), "{end}");
        let note = "Line 2802 looks like a total";
        assert!(found.notes.iter().any(|own| own.contains(note)), "{end}: {:?}", found.notes);
    }
}

#[test]
fn a_sum_with_a_time_is_no_total_below_the_table() {
    let found = look(with_end("Summe;28.01.2024;;166.235,362"));
    assert_eq!((found.tally.rows, found.tally.owners), (421, 16));
    let unnamed = with_end("Summe;28.01.2024;;166.235,362").replace("Datum", "Stand am");
    assert_eq!(look(unnamed).tally.rows, 421);
    // A time that only its numbers say.
    let row = |n: u32| format!("{};{};{}.5", n % 20, 1_700_000_000 + n * 60, n * n * 7 % 499);
    let text = format!("id;stamp;kwh\n{};1700090000;\n", lines(400, row));
    let hints = Hints { time: vec!["stamp".to_owned()], ..Hints::default() };
    let tally = understand(text.as_bytes(), &hints).unwrap().tally;
    assert_eq!((tally.rows + tally.no_owner, tally.untimed), (401, 0));
}

/// The value in place of a total's time or owner is in other rows too.
#[test]
fn values_of_a_total_are_no_missing_values_elsewhere() {
    let row = |n: u32| format!("p{},2024-03-{:02},{},{}", n % 20, n / 20 + 1, n % 3, n % 7);
    for end in ["Total,0,420,", "Total,1,420,9", ",0,420,"] {
        let text = format!("id,n,v,w\n{}{end}\n", lines(420, row));
        let found = look(&text);
        assert_eq!((found.tally.rows, &found.questions[..]), (420, &[][..]), "{end}");
        let counts: Vec<u64> = found.attributes.iter().map(|own| own.total.count).collect();
        assert_eq!(counts, [420, 420], "{end}");
        assert!(!found.form.missing.iter().any(|own| own == "0" || own == "1"), "{end}");
    }
}

#[test]
fn a_row_of_another_width_with_a_time_is_no_total() {
    let row = |n: u32| format!("2024-03-{:02},{},{},{}", n / 20 + 1, n % 20, n % 3, n % 7);
    let text = format!("date,id,v,w\n{}2024-03-29,Sum Wong,5,3,x\n", lines(420, row));
    let found = look(&text);
    assert_eq!((found.tally.bad_width, found.form.totals.len()), (1, 0));
}
