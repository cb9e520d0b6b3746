//! Files about which something cannot be known, or that are no tables.

use super::look;
use alpheus_discover::write::files;
use alpheus_discover::{DiscoverError, Hints, understand};

fn asks(text: &str, about: &str) {
    let found = look(text);
    assert!(
        found.questions.iter().any(|question| question.contains(about)),
        "{:?}",
        found.questions
    );
}

fn refused(text: &str) -> DiscoverError {
    match understand(text.as_bytes(), &Hints::default()) {
        Err(error) => error,
        Ok(found) => panic!("understood as {:?}", found.names),
    }
}

#[test]
fn day_and_month_that_may_be_either_are_asked() {
    let text = "user,day,v\na,03/04/2024,1\nb,03/04/2024,2\na,05/04/2024,3\nb,05/04/2024,4\n";
    asks(text, "--day-first");
    let hints = Hints { day_first: Some(true), ..Hints::default() };
    let found = understand(text.as_bytes(), &hints).unwrap();
    assert_eq!((found.time.format(), found.questions.len()), ("%d/%m/%Y".to_owned(), 0));
}

#[test]
fn dates_that_a_spreadsheet_exchanged_are_asked_about() {
    let mut text = "id,date,v\n".to_owned();
    for user in ["a", "b"] {
        for day in 9..=20 {
            // The twelfth of April became the fourth of December.
            let date =
                if day <= 12 { format!("04-{day:02}-2016") } else { format!("{day:02}-04-2016") };
            text.push_str(&format!("{user},{date},1\n"));
        }
    }
    asks(&text, "contradict");
}

#[test]
fn dates_that_need_both_orders_are_asked_about() {
    let text = "id,date,v\na,13/01/2024,1\nb,01/14/2024,2\na,15/01/2024,3\nb,01/16/2024,4\n";
    asks(text, "contradict");
}

#[test]
fn several_series_without_an_owner_are_asked_about() {
    let text = "day,q,v\n2024-01-15,1,5\n2024-01-15,2,6\n2024-01-15,1,7\n2024-01-16,2,8\n2024-01-16,1,9\n2024-01-16,2,1\n";
    let mut long = text.to_owned();
    for _ in 0..10 {
        long.push_str(text.split_once('\n').unwrap().1);
    }
    asks(&long, "--owner");
}

#[test]
fn an_owner_that_no_name_says_follows_from_the_times() {
    let mut text = "grp,when,v\n".to_owned();
    for hour in 0..10 {
        for group in ["x", "y"] {
            text.push_str(&format!("{group},2024-01-15 {hour:02}:00,1\n"));
        }
    }
    let found = look(&text);
    assert_eq!((found.owner.as_deref(), found.questions.len()), (Some("grp"), 0));
}

#[test]
fn thousands_that_may_be_decimals_are_asked_about() {
    asks(
        "time;v\n2024-01-15 00:00;28,801\n2024-01-15 01:00;34,020\n2024-01-15 02:00;31,997\n",
        "--decimal",
    );
    asks(
        "time;v\n2024-01-15 00:00;1.5\n2024-01-15 01:00;1,5\n2024-01-15 02:00;2,5\n2024-01-15 03:00;1,7\n2024-01-15 04:00;2,1\n2024-01-15 05:00;2,9\n2024-01-15 06:00;2,2\n",
        "--decimal",
    );
}

#[test]
fn bad_rows_and_times_out_of_range_are_asked_about() {
    asks("a,year,v\nx,1952,1\ny,1952,2\nx,1957,3\ny,1957,4\n", "before 1970");
    asks(
        "user,time,v\na,2024-01-01 00:00,1\nb,2024-01-01 01:00,2\na,2024-01-01 02:00,3,4,5\nb,2024-01-01 03:00,2\na,2024-01-01 04:00,2\n",
        "another number of cells",
    );
}

#[test]
fn what_is_no_table_is_refused_with_the_reason() {
    assert_eq!(refused(" \n\n"), DiscoverError::Empty);
    assert!(matches!(refused("PK\u{3}\u{4}xx"), DiscoverError::Binary { .. }));
    assert!(matches!(refused("{\"a\": 1}\n"), DiscoverError::Other { kind: "JSON", .. }));
    assert!(matches!(refused("<?xml version=\"1.0\"?>\n<a/>\n"), DiscoverError::Other { .. }));
    assert_eq!(refused("one\ntwo\nthree\n"), DiscoverError::NoTable);
    assert!(matches!(refused("a,b\n1,2\n3,4\n5,6\n"), DiscoverError::NoTime { .. }));
    let nothing = "time,note\n2024-01-01 00:00,aa\n2024-01-01 01:00,bb\n2024-01-01 02:00,cc\n";
    assert_eq!(refused(nothing), DiscoverError::NothingToMeasure);
    let elapsed = refused("subject,test_time,v\n1,5.5,2\n1,6.5,3\n2,1.5,4\n2,2.5,5\n").to_string();
    assert!(elapsed.contains("`test_time` may count from a start"), "{elapsed}");
    let records = "100,NEM12,2023\n200,N1,kWh,5\n300,20230301,1,2,3,4,5,6\n300,20230302,1,2,3,4,5,6\n300,20230303,1,2,3,4,5,6\n200,N2,kWh,5\n300,20230301,1,2,3,4,5,6\n300,20230302,1,2,3,4,5,6\n900\n";
    assert!(matches!(refused(records), DiscoverError::Records { .. }));
}

#[test]
fn names_that_are_not_there_are_refused() {
    let hints = Hints { owner: Some("nobody".to_owned()), ..Hints::default() };
    let error = understand(b"user,time,v\na,2024-01-01 00:00,1\nb,2024-01-01 00:00,1\n", &hints)
        .unwrap_err();
    assert!(error.to_string().contains("user, time, v"), "{error}");
}

#[test]
fn few_owners_are_warned_plainly() {
    let one = look("time,v\n2024-01-01 00:00,1\n2024-01-01 01:00,2\n2024-01-01 02:00,3\n");
    assert!(files(&one, "a.csv").policies.contains("no crowd to hide in"));
    let two = look(
        "user,time,v\na,2024-01-01 00:00,1\nb,2024-01-01 00:00,2\na,2024-01-01 01:00,1\nb,2024-01-01 01:00,2\n",
    );
    let written = files(&two, "a.csv");
    assert!(written.policies.contains("clients: 2") && written.query.contains("BETWEEN 2 AND"));
}
