//! Files in the style of portals of open data: several times, numbers of events, positions.

use super::look;
use super::wild::lines;
use alpheus_discover::Understanding;

fn asks(found: &Understanding, part: &str) -> bool {
    found.questions.iter().any(|asked| asked.contains(part))
}

fn fate(found: &Understanding, column: &str) -> String {
    let fate = found.fates().into_iter().find(|(name, _)| name == column);
    fate.map(|(_, fate)| fate).unwrap_or_default()
}

#[test]
fn a_row_is_of_when_it_began() {
    for (begin, end) in
        [("Created Date", "Closed Date"), ("created_at", "due_date"), ("Plug-in", "ended")]
    {
        let row = |n: u32| {
            format!(
                "2024-03-{:02} {:02}:10,2024-03-{:02} {:02}:50,{}",
                n / 24 + 1,
                n % 24,
                n / 24 + 1,
                n % 24,
                n % 7
            )
        };
        let found = look(format!("{begin},{end},value\n{}", lines(240, row)));
        assert_eq!(found.time.columns, [0], "{begin}");
    }
}

#[test]
fn numbers_of_events_own_rows_only_if_somebody_says_so() {
    for (name, open) in
        [("activityID", true), ("order_id", true), ("user_id", false), ("site_id", false)]
    {
        let row =
            |n: u32| format!("2024-03-{:02} {:02}:10,{},{}", n / 24 + 1, n % 24, n / 40, n % 7);
        let found = look(format!("time,{name},value\n{}", lines(240, row)));
        assert_eq!((found.owner.as_deref(), asks(&found, "does or buys")), (Some(name), open));
    }
}

#[test]
fn the_only_person_of_a_file_owns_its_rows() {
    let row = |n: u32| format!("2024-03-{:02},3031234567,{}", n + 1, n % 7);
    let found = look(format!("date,userId,steps\n{}", lines(28, row)));
    assert_eq!((found.owner.as_deref(), found.questions.len()), (Some("userId"), 0));
}

#[test]
fn positions_have_no_sum() {
    let row = |n: u32| {
        format!("2024-03-{:02},-82.4{n},{},{},{}", n + 1, 1_100_000 + n * 977, 34 + n, n % 7)
    };
    let found = look(format!("date,Long_,X Coordinate,Easting,value\n{}", lines(28, row)));
    let measured: Vec<&str> = found.attributes.iter().map(|own| own.column.as_str()).collect();
    assert_eq!(measured, ["value"]);
}

#[test]
fn a_column_of_nothing_but_nines_is_missing() {
    let row = |n: u32| format!("2024-03-{:02},999,999.0,5,{}", n + 1, n * 5 % 9);
    let found = look(format!("date,wave,swell,depth,value\n{}", lines(28, row)));
    let counts: Vec<u64> = found.attributes.iter().map(|own| own.total.count).collect();
    assert_eq!(counts, [0, 0, 28, 28]);
}

#[test]
fn a_few_meters_side_by_side_may_have_owners() {
    for (name, open) in [("Meter_", true), ("person ", true), ("channel ", false)] {
        let names: Vec<String> = (1..5).map(|at| format!("{name}{at}")).collect();
        let row = |n: u32| format!("2024-03-{:02},{},{},{},{}", n + 1, n % 7, n % 5, n % 9, n % 8);
        let found = look(format!("date,{}\n{}", names.join(","), lines(28, row)));
        assert_eq!(asks(&found, "other columns have the same name"), open, "{name}");
    }
}

/// Their sum says nothing, and how many rows there are does.
#[test]
fn post_codes_are_not_added_up_even_alone() {
    let row = |n: u32| {
        format!("2024-03-{:02},{},{}", n + 1, ["noise", "rats"][n as usize % 2], 10_001 + n * 7 % 9)
    };
    let found = look(format!("date,complaint,zip\n{}", lines(28, row)));
    assert!(found.attributes.iter().all(|own| own.column == "complaint"));
    assert!(fate(&found, "zip").contains('9'), "{}", fate(&found, "zip"));
}
