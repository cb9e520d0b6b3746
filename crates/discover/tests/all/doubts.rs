//! Files about which something cannot be known, or that are no tables.

use super::look;
use alpheus_discover::clock::Region;
use alpheus_discover::write::files;
use alpheus_discover::{DiscoverError, Hints, OutlierTreatment, understand};

pub(super) fn asks(text: &str, about: &str) {
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
        for group in ["x1", "y2"] {
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
    assert!(matches!(refused(nothing), DiscoverError::NothingToMeasure { .. }));
    let elapsed = refused("subject,test_time,v\n1,5.5,2\n1,6.5,3\n2,1.5,4\n2,2.5,5\n").to_string();
    assert!(elapsed.contains("`test_time` may count from a start"), "{elapsed}");
    for (name, values, option) in [
        ("day", [0, 7], "`--time day --time-format days`"),
        ("wave", [1, 2], "`--time wave --time-format days`"),
        ("yr", [80, 81], "`--time yr --time-format %y`"),
    ] {
        let [first, second] = values;
        let rows = format!("id,{name},kg\n1,{first},80.5\n1,{second},80.1\n2,{first},70.5\n");
        let said = refused(&rows).to_string();
        assert!(said.contains(option), "{said}");
    }
    let records = "100,NEM12,2023\n200,N1,kWh,5\n300,20230301,1,2,3,4,5,6\n300,20230302,1,2,3,4,5,6\n300,20230303,1,2,3,4,5,6\n200,N2,kWh,5\n300,20230301,1,2,3,4,5,6\n300,20230302,1,2,3,4,5,6\n900\n";
    assert!(matches!(refused(records), DiscoverError::Records { .. }));
}

#[test]
fn dates_in_a_form_that_is_not_known_are_not_added_up() {
    let rows = |name: &str| {
        let row = |n: u32| format!("u{},2003-12-{:02},1203{:02},{n}.5\n", n % 3, n + 1, n + 1);
        (0..20).fold(format!("user,time,{name},v\n"), |text, n| text + &row(n))
    };
    asks(&rows("visit date"), "`--time 'visit date'` and say with `--time-format`");
    assert_eq!(crate::look(rows("distance")).questions, [""; 0]);
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
    assert!(files(&one, "a.csv", None).policies.contains("no crowd to hide in"));
    let two = look(
        "user,time,v\na,2024-01-01 00:00,1\nb,2024-01-01 00:00,2\na,2024-01-01 01:00,1\nb,2024-01-01 01:00,2\n",
    );
    let written = files(&two, "a.csv", None);
    assert!(written.policies.contains("clients: 2") && written.query.contains("BETWEEN 2 AND"));
    let open = unwrapped(&written.policies);
    assert!(open.contains("A line without `window` means windows of at least 364d: the"), "{open}");
}

/// The comments of a file, without the ends of their lines.
fn unwrapped(text: &str) -> String {
    text.lines().map(|line| line.trim_start_matches('#').trim()).collect::<Vec<_>>().join(" ")
}

/// A line of the policies may leave something open.
#[test]
fn policies_say_what_a_shorter_line_means() {
    let row = |n: u32| format!("u{},2024-01-01 {:02}:00,{}\n", n % 12, n / 12, n % 7);
    let found = look(format!("user,time,v\n{}", (0..60).map(row).collect::<String>()));
    let policies = unwrapped(&files(&found, "a.csv", None).policies);
    let says = "A line without `window` means windows of at least 364d, and without `clients` at least 100 owners: the largest value that schema.yaml offers applies.";
    assert!(policies.contains(says), "{policies}");
}

fn with(text: &str, hints: &Hints) -> Result<alpheus_discover::Understanding, DiscoverError> {
    understand(text.as_bytes(), hints)
}

/// Twenty-four hours of `value`.
fn hours(header: &str, value: impl Fn(u32) -> String) -> String {
    let rows = (0..24).map(|hour| format!("2024-01-15 {hour:02}:00;{}\n", value(hour)));
    format!("{header}\n{}", rows.collect::<String>())
}

#[test]
fn a_decimal_mark_under_which_numbers_no_longer_read_is_refused() {
    let text = hours("time;v;w", |hour| format!("{hour}.25;{hour}"));
    let forced = Hints { decimal: Some(','), ..Hints::default() };
    let error = with(&text, &forced).unwrap_err();
    assert!(
        matches!(&error, DiscoverError::DecimalLoses { columns, .. } if columns == "`v`"),
        "{error}"
    );
    // Where the mark may be either, what a person says decides.
    let text = hours("time;v", |hour| format!("{},5{hour:02}", hour + 1));
    for (mark, sum) in [('.', "312276"), (',', "312.276")] {
        let hints = Hints { decimal: Some(mark), ..Hints::default() };
        let found = with(&text, &hints).unwrap();
        assert_eq!(found.attributes[0].total.sum.text(), sum);
        assert_eq!(found.questions, [""; 0]);
    }
}

#[test]
fn a_format_that_reads_nothing_is_refused_with_what_the_times_look_like() {
    let text = hours("time;v", |hour| hour.to_string());
    for wrong in ["%Y", "%d/%m/%Y", "%Y-%m-%d", "epoch seconds"] {
        let hints = Hints { time_format: Some(wrong.to_owned()), ..Hints::default() };
        let error = with(&text, &hints).unwrap_err().to_string();
        assert!(error.contains(wrong) && error.contains("%Y-%m-%d %H:%M"), "{error}");
    }
    let hints =
        Hints { time: vec!["v".to_owned()], time_format: Some("s".to_owned()), ..Hints::default() };
    assert_eq!(with(&text, &hints).map(|found| found.time.format()).ok().as_deref(), None);
}

#[test]
fn an_order_of_the_date_that_does_not_fit_is_asked_about() {
    let rows: String = (1..25).map(|day| format!("a;{day}/03/2024;{day}\n")).collect();
    let hints = Hints { day_first: Some(false), ..Hints::default() };
    let found = with(&format!("user;day;v\n{rows}"), &hints).unwrap();
    assert!(
        found.questions.iter().any(|q| q.contains("can only have the day first")),
        "{:?}",
        found.questions
    );
}

#[test]
fn a_header_alone_and_two_units_of_time_are_refused_explicitly() {
    assert_eq!(refused("time,steps,pulse\n"), DiscoverError::NoRows);
    assert_eq!(refused("Zeit;Wert\n\n"), DiscoverError::NoRows);
    let rows: String = (0..20u64)
        .map(|n| {
            format!("{},{n}\n", if n < 10 { 1_700_000_000 + n } else { 1_700_000_000_000 + n })
        })
        .collect();
    let error = refused(&format!("timestamp,v\n{rows}"));
    assert!(matches!(error, DiscoverError::MixedEpochs { .. }), "{error}");
}

#[test]
fn iso_dates_and_others_in_one_column_are_read_together() {
    let rows: String = (0..24)
        .map(|n| {
            if n < 12 {
                format!("2024-01-{:02};{n}\n", n + 1)
            } else {
                format!("01/{}/2024;{n}\n", n + 1)
            }
        })
        .collect();
    let found = look(format!("date;v\n{rows}"));
    assert_eq!((found.tally.rows, found.tally.refused(), found.questions.len()), (24, 0, 0));
    assert_eq!(found.tally.span, Some((1_704_067_200_000_000, 1_706_054_400_000_000)));
    let rows: String = (0..24)
        .map(|n| {
            if n < 12 {
                format!("2024-01-{:02};{n}\n", n + 1)
            } else {
                format!("01/0{}/2025;{n}\n", n % 9 + 1)
            }
        })
        .collect();
    asks(&format!("date;v\n{rows}"), "--day-first");
}

#[test]
fn half_day_clocks_need_proof_of_the_order_too() {
    let row = |n: u32| format!("6/{}/2024 {}:05 PM,{n}\n", 3 + n / 10, 1 + n % 10);
    let text = |count| (0..count).fold("time,v\n".to_owned(), |text, n| text + &row(n));
    // One day, or two: 6 March and 6 April are as likely.
    asks(&text(10), "--day-first");
    asks(&text(20), "--day-first");
    // Ten days in a row, or ten months apart.
    let found = look(text(90));
    assert_eq!((found.time.format(), found.questions.len()), ("%m/%d/%Y %I:%M %p".to_owned(), 0));
    // The evidence stands at the end of a long file.
    let (mut text, mut n) = (text(0), 0);
    while n < 320_000 {
        text.push_str("6/3/2024 1:05 PM,1\n");
        n += 1;
    }
    text.push_str("6/13/2024 1:05 PM,1\n");
    assert_eq!(look(text).time.format(), "%m/%d/%Y %I:%M %p");
}

#[test]
fn a_column_of_mostly_numbers_that_is_not_measured_is_asked_about() {
    let note = |hour: u32| if hour < 12 { hour.to_string() } else { format!("see {hour}, page") };
    let text = hours("time;v;kind", |hour| format!("{};x", note(hour)));
    asks(&text, "12 numbers and 12 other texts");
    asks(&text, "is counted");
    // Texts among numbers that may be numbers themselves.
    asks(
        &hours("time;v", |hour| if hour == 7 { "<5".to_owned() } else { hour.to_string() }),
        "1 has digits",
    );
    let hints = Hints { leave_out: vec!["v".to_owned()], ..Hints::default() };
    let found = with(&text, &hints).unwrap();
    assert_eq!((found.questions.len(), found.attributes[0].column.as_str()), (0, "kind"));
}

#[test]
fn numbers_that_name_a_device_or_a_kind_are_not_added_up() {
    let text =
        hours("time;gateway_device;mode;v", |hour| format!("{};{};{hour}", hour % 3 + 1, hour % 2));
    let found = with(&text, &Hints { owner: Some("mode".to_owned()), ..Hints::default() }).unwrap();
    assert!(found.attributes.iter().all(|own| own.column == "v"), "{:?}", found.fates());
    // Two channels of each house at each time, by a name that says nothing.
    let mut text = "house;time;c;w\n".to_owned();
    for n in 0..48 {
        text.push_str(&format!("h{};2024-01-15 {:02}:00;{};{n}\n", n / 2 % 2, n / 4, n % 2 + 1));
    }
    asks(&text, "`c` holds 2 different whole numbers");
    for (hints, measured) in [
        (Hints { measure: vec!["c".to_owned()], ..Hints::default() }, true),
        (Hints { leave_out: vec!["c".to_owned()], ..Hints::default() }, false),
    ] {
        let found = with(&text, &hints).unwrap();
        assert_eq!(found.questions, [""; 0]);
        assert_eq!(found.attributes.iter().any(|own| own.column == "c"), measured);
    }
}

#[test]
fn values_far_from_all_others_do_not_stretch_bounds() {
    let text =
        hours(
            "time;t",
            |hour| if hour == 5 { "4000000".to_owned() } else { (20 + hour % 7).to_string() },
        );
    let found = look(&text);
    assert_eq!(found.attributes[0].bounds().texts(), ("0".to_owned(), "100".to_owned()));
    assert_eq!((found.attributes[0].total.count, found.attributes[0].outliers.count), (24, 1));
    asks(&text, "1 value far from all others");
    let hints = |outliers| Hints { outliers: Some(outliers), ..Hints::default() };
    let kept = with(&text, &hints(OutlierTreatment::Keep)).unwrap();
    assert_eq!(
        (kept.questions.len(), kept.attributes[0].bounds().texts().1.as_str()),
        (0, "10000000")
    );
    let left = with(&text, &hints(OutlierTreatment::LeaveOut)).unwrap();
    assert_eq!((left.questions.len(), left.attributes[0].total.count), (0, 23));
    assert_eq!(left.attributes[0].sentinels.get("4000000"), Some(&1));
}

#[test]
fn a_place_as_zone_knows_when_clocks_change() {
    let rows: String =
        (0..24 * 4).map(|n| format!("2024-10-{:02} {:02}:30;{n}\n", 25 + n / 24, n % 24)).collect();
    let hints = Hints { zone: Region::parse("Europe/Berlin"), ..Hints::default() };
    let found = with(&format!("time;v\n{rows}"), &hints).unwrap();
    assert_eq!(found.zone_text(), "Europe/Berlin");
    assert_eq!((found.tally.repeated, found.tally.skipped), (1, 0));
    assert!(found.notes.iter().any(|note| note.contains("repeats")), "{:?}", found.notes);
    assert_eq!(found.tally.span, Some((1_729_809_000_000_000, 1_730_154_600_000_000)));
    assert!(files(&found, "a.csv", None).source.contains("zone: \"Europe/Berlin\""));
    let spring = rows.replace("2024-10-", "2024-03-").replace("2024-03-28", "2024-03-31");
    let found = with(&format!("time;v\n{spring}"), &hints).unwrap();
    assert_eq!(found.tally.skipped, 1);
}

#[test]
fn every_column_has_a_fate() {
    let text = hours("time;v;kind;flag;empty;note", |hour| {
        format!("{hour};{};{};;n{hour}", ["a", "b"][hour as usize % 2], hour % 2)
    });
    let found = look(text);
    let fates: Vec<String> =
        found.fates().into_iter().map(|(name, fate)| format!("{name}: {fate}")).collect();
    assert_eq!(
        fates,
        [
            "time: the time",
            "v: measured as v",
            "kind: not used: a category with 2 different values",
            "flag: not used: a category with 2 different values",
            "empty: left out: it is empty",
            "note: left out: it holds texts that hardly repeat",
        ]
    );
    let readme = files(&found, "a.csv", None).readme;
    assert!(readme.contains("| kind | not used: a category"), "{readme}");
}

#[test]
fn hours_side_by_side_are_asked_about() {
    let names: Vec<String> = (0..24).map(|hour| format!("h{hour:02}")).collect();
    let rows: String = (1..29)
        .map(|day| {
            format!(
                "2024-01-{day:02};{}\n",
                (0..24).map(|h| h.to_string()).collect::<Vec<_>>().join(";")
            )
        })
        .collect();
    let text = format!("date;{}\n{rows}", names.join(";"));
    asks(&text, "`h00` to `h23`");
    let found =
        with(&text, &Hints { measure: vec!["h00".to_owned()], ..Hints::default() }).unwrap();
    assert_eq!(found.questions, [""; 0]);
}

#[test]
fn an_owner_is_not_taken_from_what_classifies() {
    let rows: String = (0..60)
        .map(|n| {
            format!(
                "{n:08x};2024-01-15 {:02}:{:02}:00;{};{};{n}\n",
                n / 10,
                n % 10,
                ["member", "casual"][n % 2],
                400 + n % 20
            )
        })
        .collect();
    let text = format!("ride;started_at;member_casual;dock_id;length\n{rows}");
    let found = look(&text);
    assert_eq!(found.owner.as_deref(), Some("dock_id"));
    let found = with(&text, &Hints { owner: Some("none".to_owned()), ..Hints::default() }).unwrap();
    assert!(
        found.fates().iter().any(|(name, fate)| name == "dock_id" && fate.contains("category")),
        "an id is not added up"
    );
}

#[test]
fn clocks_of_other_things_are_not_the_time() {
    let rows: String = (1..25)
        .map(|day| format!("2024-01-{day:02};{};11:{day} PM;6:{day} AM;00:{day}:00\n", 50 + day))
        .collect();
    let found = look(format!("Date;Score;Bedtime;Wake Time;Sleep Duration\n{rows}"));
    assert_eq!((found.time.columns.len(), found.time.format()), (1, "%Y-%m-%d".to_owned()));
    let dated: String = (1..10).map(|day| format!("0{day}/03/2024 10:00;{day}\n")).collect();
    for (name, format) in
        [("Time(dd/mm/yyyy)", "%d/%m/%Y %H:%M"), ("Time (MM/DD/YYYY)", "%m/%d/%Y %H:%M")]
    {
        let found = look(format!("{name};v\n{dated}"));
        assert_eq!((found.time.format().as_str(), found.questions.len()), (format, 0));
    }
}

#[test]
fn what_classifies_is_no_owner_though_it_tells_series_apart() {
    let rows: String = (0..48)
        .map(|n| format!("2024-01-15 {:02}:00;{};{n}\n", n / 2, ["import", "export"][n % 2]))
        .collect();
    asks(&format!("time;type;kwh\n{rows}"), "`type`");
}

#[test]
fn windows_are_so_long_that_enough_owners_have_data() {
    let rows = |owners: usize| -> String {
        (0..48)
            .map(|n| format!("p{};2024-01-{:02} {:02}:30;{n}\n", n % owners, 15 + n / 24, n % 24))
            .collect()
    };
    let query =
        |owners| files(&look(format!("person;time;v\n{}", rows(owners))), "a.csv", None).query;
    assert!(query(1).contains("SIZE 1 HOUR"), "{}", query(1));
    // In each hour there is one of three.
    assert!(query(3).contains("SIZE 1 DAY"), "{}", query(3));
}
