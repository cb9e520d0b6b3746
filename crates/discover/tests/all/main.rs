//! Files of all forms, each written for one trait, and what must be understood of them.

#![expect(clippy::panic, reason = "a test's way to fail")]

mod any_bytes;
mod certain;
mod codes;
mod courses;
mod crowded_owners;
mod doubts;
mod files;
mod first_rows;
mod generated_files;
mod groups;
mod headings;
mod intervals;
mod joined_times;
mod legends;
mod lost_times;
mod mistaken;
mod mixed_kinds;
mod moments;
mod office_files;
mod owner_guess;
mod owners;
mod people;
mod persons;
mod portals;
mod quantities;
mod remedies;
mod side_by_side;
mod silent;
mod sums;
mod totals_below;
mod unnamed_columns;
mod whose_in_doubt;
mod wild;
mod wild_times;
mod zones;

use alpheus_discover::{Hints, Understanding, understand};

/// What must be understood of a file.
struct ExpectedFile<'e> {
    owner: Option<&'e str>,
    time: &'e [&'e str],
    format: &'e str,
    zone: &'e str,
    /// Column, count and sum of one attribute.
    attribute: (&'e str, u64, &'e str),
    rows: u64,
}

fn look(bytes: impl AsRef<[u8]>) -> Understanding {
    understand(bytes.as_ref(), &Hints::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The file is understood so, and nothing about it is open.
fn is(bytes: impl AsRef<[u8]>, expected: &ExpectedFile<'_>) -> Understanding {
    let found = look(bytes);
    assert_eq!(found.questions, [""; 0], "nothing is open");
    agrees(&found, expected);
    found
}

fn agrees(found: &Understanding, expected: &ExpectedFile<'_>) {
    let time: Vec<&str> = found.time.columns.iter().map(|at| found.names[*at].as_str()).collect();
    assert_eq!(time, expected.time, "the time");
    assert_eq!(found.time.format(), expected.format, "the format");
    assert_eq!(found.owner.as_deref(), expected.owner, "the owner");
    assert_eq!(found.zone_text(), expected.zone, "the zone");
    assert_eq!(found.tally.rows, expected.rows, "rows");
    let (column, count, sum) = expected.attribute;
    let own = found.attributes.iter().find(|own| own.column == column);
    let own = own.unwrap_or_else(|| panic!("no attribute {column}"));
    assert_eq!((own.total.count, own.total.sum.text()), (count, sum.to_owned()), "{column}");
}

fn unit<'f>(found: &'f Understanding, column: &str) -> Option<&'f str> {
    found.attributes.iter().find(|own| own.column == column)?.unit.as_deref()
}
