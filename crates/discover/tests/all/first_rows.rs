//! Rows right below the header that are not as wide as others: they are rows, not lines to pass over.

use super::wild::lines;
use super::{ExpectedFile, is, look};

const HEADER: &str = "time;temp;hum;wind\n";

fn rows() -> String {
    lines(200, |n| {
        format!("2024-05-{:02} {:02}:00;{}.5;{};{}", n / 24 + 1, n % 24, n % 30, n, n % 7)
    })
}

/// How many rows are read, and how many are refused for their width and for their quotes.
fn counts(text: &str) -> (u64, u64, u64) {
    let found = look(text);
    assert_eq!(found.form.below, 0, "{text:.60}");
    assert_eq!(found.names[0], "time", "{text:.60}");
    (found.tally.rows, found.tally.bad_width, found.tally.broken)
}

#[test]
fn a_first_row_with_fewer_or_more_cells_is_counted() {
    let first = |row: &str| counts(&format!("{HEADER}{row}\n{}", rows()));
    assert_eq!(first("2024-04-30 23:00;1.5;7;3"), (201, 0, 0));
    assert_eq!(first("2024-04-30 23:00;1.5;7"), (200, 1, 0));
    assert_eq!(first("2024-04-30 23:00;1.5"), (200, 1, 0));
    assert_eq!(first("2024-04-30 23:00;1.5;7;3;9"), (200, 1, 0));
    // The first cell is lost, and the time stands where numbers do.
    assert_eq!(first("2024-04-30 23:00;2024-04-30 23:00;1.5"), (200, 1, 0));
    // An empty cell at the end is none.
    assert_eq!(first("2024-04-30 23:00;1.5;7;3;"), (201, 0, 0));
    assert_eq!(first("2024-04-30 23:00;\"1.5;7;3"), (200, 0, 1));
    // As wide as others, but with faults in place of its numbers.
    assert_eq!(first("2024-04-30 23:00;fault;fault;fault"), (201, 0, 0));
}

#[test]
fn several_first_rows_that_end_early_are_read_as_others_are() {
    let short = lines(3, |n| format!("2024-04-30 {:02}:00;1.5;7", n + 20));
    for text in [format!("{HEADER}{short}{}", rows()), format!("{HEADER}{}{short}", rows())] {
        assert_eq!(counts(&text), (200, 3, 0));
    }
    let many = lines(9, |n| format!("2024-04-30 {:02}:00;1.5;7", n + 10));
    for text in [format!("{HEADER}{many}{}", rows()), format!("{HEADER}{}{many}", rows())] {
        assert_eq!(counts(&text), (209, 0, 0));
    }
}

/// Dates of digits alone are known for times only by their place.
#[test]
fn a_short_first_row_below_dates_of_digits_is_counted() {
    let row =
        |n: u32| format!("2024{:02}{:02};{}.5;{};{}", n / 28 + 1, n % 28 + 1, n % 30, n, n % 7);
    let rows = lines(200, row);
    assert_eq!(counts(&format!("{HEADER}20231231;1.5;7\n{rows}")), (200, 1, 0));
    assert_eq!(counts(&format!("{HEADER}20231231;1.5;7;3;8\n{rows}")), (200, 1, 0));
}

/// Without names, too, a short first row is none of the lines above.
#[test]
fn a_short_first_row_of_a_file_without_names_is_counted() {
    let found = look(format!("2024-04-30 23:00;1.5;7\n{}", rows()));
    assert_eq!((found.form.skip, found.tally.rows, found.tally.bad_width), (0, 200, 1));
}

/// Units that end early and kinds are no rows.
#[test]
fn lines_of_units_that_end_early_stay_none() {
    for below in ["UTC;°C;%\n", ";Avg;Smp\n", "yyyy-mm-dd hh:mm;°C;%;m/s;\n;Avg;Smp\n"] {
        let found = look(format!("{HEADER}{below}{}", rows()));
        assert_eq!(found.form.below, below.lines().count(), "{below}");
        assert_eq!((found.tally.rows, found.tally.bad_width), (200, 0), "{below}");
    }
}

/// Prose below the table does not make rows that end early of itself.
#[test]
fn a_legend_below_the_table_hides_no_times() {
    let table = lines(40, |n| {
        format!("2016{:02}{:02}:{:02}10,{}.5,{}", 1, 1 + n / 24, n % 24, n, n * 7 % 31)
    });
    let legend = "\nG: Irradiance (W/m2)\nT: Temperature, in the air (degree Celsius)\n\nSome institute, 2001-2021\n";
    let text = format!("Latitude:\t45.0\nElevation (m):\t250\n\ntime,G,T\n{table}");
    let expected = ExpectedFile {
        owner: None,
        time: &["time"],
        format: "%Y%m%d:%H%M",
        zone: "none stated",
        attribute: ("G", 40, "800.0"),
        rows: 40,
    };
    is(&text, &expected);
    let found = look(format!("{text}{legend}"));
    super::agrees(&found, &expected);
    assert_eq!((found.form.ragged, found.tally.bad_width), (false, 3));
    assert!(
        found.questions.iter().any(|q| q.contains("first in line 46")),
        "{:?}",
        found.questions
    );
}

/// Where times are digits alone, a line of dates below the names is none of the rows.
#[test]
fn a_line_of_dates_below_the_names_is_no_row() {
    let row =
        |n: u32| format!("2024{:02}{:02};{}.5;{}", n / 28 + 1, n % 28 + 1, n % 30, n * 7 % 50);
    let found = look(format!("day;north;south\n;2019-04-01;2021-10-12\n{}", lines(200, row)));
    assert_eq!((found.form.below, found.tally.rows, found.tally.refused()), (1, 200, 0));
}
