//! What a replay says at its end, and `suggest` beforehand: which groups have no result, what more
//! owners would change, and what the margins of noise do not cover.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::alpheus;
use crate::common::recording::BASE;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const SCHEMA: &str = "\
name: Meters
tick: 10s
capacity: { population: 100, events: 100 }
metadataAttributes:
  - { name: region, type: string }
streamAttributes:
  - name: reading
    type: integer
    min: 0
    max: 100
    aggregations: [sum, count, mean, histogram: { lo: 0, width: 5, bins: 20 }]
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [3], window: [10s] }
  - { name: noisy, option: dp-aggregate, clients: [3], window: [10s], budget: { perWindow: 5, total: 100, unit: person-per-window } }
";
const SOURCE: &str = "\
schema: Meters
time: { column: time }
stream: meter
metadata: { region: { column: region } }
attributes: { reading: reading }
";

/// The files of a replay. Each row is a window, a meter, its region and a reading.
fn folder(option: &str, rows: impl IntoIterator<Item = (u64, u64, String, u64)>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut data = "time,meter,region,reading\n".to_owned();
    for (window, meter, region, reading) in rows {
        data.push_str(&format!("{},m{meter},{region},{reading}\n", BASE + 10 * window));
    }
    let policies = format!("schema: Meters\ndefault: {{ '*': {option} }}\n");
    for (name, text) in [
        ("schema.yaml", SCHEMA),
        ("source.yaml", SOURCE),
        ("policies.yaml", &policies),
        ("query.sql", ""),
        ("data.csv", &data),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// One reading in each of three windows of so many owners of each region.
fn regions(owners: &[(String, u64)]) -> TempDir {
    let of_region = |(at, (name, owners)): (usize, &(String, u64))| {
        let meters = (0..*owners).map(move |own| 100 * at as u64 + own);
        let name = name.clone();
        meters.flat_map(move |own| {
            let name = name.clone();
            (0..3).map(move |window| (window, own, name.clone(), own % 100))
        })
    };
    let rows: Vec<_> = owners.iter().enumerate().flat_map(of_region).collect();
    folder("crowd", rows)
}

fn said(command: &mut Command) -> (i32, String) {
    let ran = command.output().unwrap();
    (ran.status.code().unwrap(), String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap())
}

fn replayed(folder: &Path, query: &str) -> (i32, String) {
    let mut command = alpheus(["replay", "--schema", "schema.yaml", "--source", "source.yaml"]);
    command.args(["--policies", "policies.yaml", "--input", "data.csv", "--output", "out.csv"]);
    said(command.args(["--max-refused", "100%", "--query", query]).current_dir(folder))
}

fn suggested(folder: &Path, query: &str) -> (i32, String) {
    fs::write(folder.join("query.sql"), query).unwrap();
    said(alpheus(["suggest", "."]).current_dir(folder))
}

fn query(what: &str, rest: &str) -> String {
    format!("SELECT {what} WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters {rest}")
}

fn has(said: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(said.contains(part), "no {part:?} in:\n{said}"));
}

#[test]
fn groups_without_a_result_are_named_with_their_owners() {
    let few = [("north", 5), ("south", 2), ("east", 1)].map(|(name, own)| (name.to_owned(), own));
    let folder = regions(&few);
    let query = query("SUM(reading)", "GROUP BY region");
    let (code, text) = replayed(folder.path(), &query);
    assert_eq!(code, 0, "{text}");
    has(
        &text,
        &[
            "2 of 3 groups, with 3 of 8 owners, have no result",
            "    `region=east`: 1 owner, policies ask for 3\n",
        ],
    );
    has(&text, &["    `region=south`: 2 owners, policies ask for 3\n"]);
    assert!(!text.contains("`region=north`") && !text.contains("more group"), "{text}");
    let (code, text) = suggested(folder.path(), &query);
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains("Nothing needs to change"), "{text}");
    has(&text, &["2 of 3 groups, with 3 of 8 owners, have no result", "`region=south`"]);
    let (_, text) = replayed(folder.path(), &query.replace("GROUP", "BETWEEN 4 AND 9 GROUP"));
    has(&text, &["    `region=south`: 2 owners, policies ask for 3, the query for 4\n"]);
    let (_, text) = replayed(folder.path(), &query.replace("GROUP", "BETWEEN 3 AND 9 GROUP"));
    has(&text, &["    `region=south`: 2 owners, policies ask for 3\n"]);
    // Conditions leave groups out on purpose.
    let (_, text) =
        replayed(folder.path(), &query.replace("GROUP", "WHERE region <> 'east' GROUP"));
    has(&text, &["1 of 2 groups, with 2 of 7 owners, have no result"]);
    // Without groups, all take part.
    let (_, text) = replayed(folder.path(), &query.replace("GROUP BY region", ""));
    assert!(!text.contains("groups"), "{text}");
}

/// A deployment of processes says it before it starts them.
#[test]
fn a_deployment_names_groups_without_a_result() {
    let folder = regions(&[("north".to_owned(), 3), ("south".to_owned(), 1)]);
    fs::write(folder.path().join("query.sql"), query("SUM(reading)", "GROUP BY region")).unwrap();
    let (code, text) = said(alpheus(["up", ".", "--once"]).current_dir(folder.path()));
    assert_eq!(code, 0, "{text}");
    has(&text, &["1 of 2 groups, with 1 of 4 owners, have no result", "`region=south`: 1 owner"]);
    has(&text, &["3 windows opened, 0 did not"]);
}

#[test]
fn of_many_groups_without_a_result_the_first_are_named() {
    let many = (10..22).map(|at| (format!("r{at}"), 1)).chain([("large".to_owned(), 4)]);
    let folder = regions(&many.collect::<Vec<_>>());
    let (code, text) = replayed(folder.path(), &query("SUM(reading)", "GROUP BY region"));
    assert_eq!(code, 0, "{text}");
    has(
        &text,
        &[
            "12 of 13 groups, with 12 of 16 owners, have no result",
            "`region=r10`",
            "`region=r19`",
            "    … and 2 more\n",
        ],
    );
    assert!(!text.contains("`region=r20`"), "{text}");
}

#[test]
fn a_closed_window_says_of_which_group_it_is() {
    // In the second window, only one owner of the south has data.
    let rows = (0..3).flat_map(|window| {
        let north = (0..4).map(move |own| (window, own, "north".to_owned(), 5));
        let south = if window == 1 { 1 } else { 4 };
        north.chain((0..south).map(move |own| (window, 10 + own, "south".to_owned(), 5)))
    });
    let folder = folder("crowd", rows);
    let (code, text) = replayed(folder.path(), &query("SUM(reading)", "GROUP BY region"));
    assert_eq!(code, 0, "{text}");
    has(
        &text,
        &["1 of 6 windows have no result", ", `region=south`: population below the minimum"],
    );
}

#[test]
fn windows_that_a_recording_covers_in_part_are_named() {
    let folder = folder("crowd", []);
    let query = query("SUM(reading)", "");
    let replayed = |seconds: [u64; 2]| {
        let times = seconds[0]..seconds[1];
        let row = |(at, meter): (u64, u64)| format!("{},m{meter},north,7\n", BASE + at);
        let rows = times.flat_map(|at| (0..4).map(move |meter| (at, meter))).map(row);
        let data = "time,meter,region,reading\n".to_owned() + &rows.collect::<String>();
        fs::write(folder.path().join("data.csv"), data).unwrap();
        let (code, text) = replayed(folder.path(), &query);
        assert_eq!(code, 0, "{text}");
        text
    };
    has(&replayed([5, 24]), &["so the first and the last window cover a part of that length only"]);
    has(&replayed([5, 30]), &["so the first window covers a part"]);
    has(&replayed([0, 24]), &["so the last window covers a part"]);
    has(&replayed([4, 7]), &["so the window covers a part"]);
    let whole = replayed([0, 30]);
    assert!(!whole.contains("a part of that length"), "{whole}");
}

#[test]
fn a_maximum_that_leaves_owners_out_is_named_where_windows_stay_closed() {
    // Each owner has data in every other window. Of any four owners, three share half of the windows at most.
    let rows = (0..4).flat_map(|window| {
        let owners = (0..8).filter(move |own| own % 2 == window % 2);
        owners.map(move |own| (window, own, "north".to_owned(), 5))
    });
    let folder = folder("crowd", rows);
    let small = query("SUM(reading)", "BETWEEN 3 AND 4");
    let raise = "raise the second number of BETWEEN";
    let opens = "with `BETWEEN 3 AND 8`, 3 owners or more have data in 4 of 4 windows";
    let (_, text) = replayed(folder.path(), &small);
    has(&text, &[raise, "4 of 8 owners", opens]);
    let (_, text) = suggested(folder.path(), &small);
    has(&text, &[raise, opens]);
    let large = query("SUM(reading)", "BETWEEN 3 AND 8");
    for text in [replayed(folder.path(), &large).1, suggested(folder.path(), &large).1] {
        assert!(!text.contains(raise), "{text}");
    }
}

#[test]
fn values_from_bins_say_how_far_they_may_be_off() {
    let folder = regions(&[("north".to_owned(), 5)]);
    let query = query("MEDIAN(reading), MIN(reading), MAX(reading), SUM(reading)", "");
    let lines = [
        "median_reading: the lower edge of a bin 5 wide; the exact one is up to 5 above\n",
        "min_reading: the least that a bin 5 wide can hold; the exact one is up to 5 above\n",
        "max_reading: the most that a bin 5 wide can hold; the exact one is up to 5 below\n",
    ];
    let (code, text) = replayed(folder.path(), &query);
    assert_eq!(code, 0, "{text}");
    has(&text, &lines);
    assert!(!text.contains("sum_reading:"), "{text}");
    let (code, text) = suggested(folder.path(), &query);
    assert_eq!(code, 0, "{text}");
    has(&text, &lines);
    let mut explain = alpheus(["query", "--query", &query, "--schema", "schema.yaml"]);
    explain.args(["--policies", "policies.yaml"]).current_dir(folder.path());
    let (code, text) = said(&mut explain);
    assert_eq!(code, 0, "{text}");
    has(&text, &lines);
}

#[test]
fn results_that_are_mostly_noise_and_refused_rows_are_said_beside_the_margin() {
    let owners = 0..5;
    let good = owners.flat_map(|own| (0..20).map(move |at| (at, own, "north".to_owned(), 1 + own)));
    // Beyond the schema's bounds.
    let folder = folder("noisy", good.chain([(1, 2, "north".to_owned(), 101)]));
    let (code, text) = replayed(folder.path(), &query("AVG(reading)", ""));
    assert_eq!(code, 0, "{text}");
    has(&text, &[" of 20 windows are mostly noise: the margin of up to ±"]);
    has(&text, &["is larger than the value; ask with `WITH (error = …)` or over more owners"]);
    has(&text, &["the margins of noise do not cover the 1 row that was refused"]);
    // Exact results have no margins.
    fs::write(folder.path().join("policies.yaml"), "schema: Meters\ndefault: { '*': crowd }\n")
        .unwrap();
    let (code, text) = replayed(folder.path(), &query("AVG(reading)", ""));
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("refused 1 row") && !text.contains("noise"), "{text}");
}

/// Narrower bounds would refuse readings, which is said with the bounds.
#[test]
fn bounds_for_an_error_say_which_share_of_the_file_is_beyond() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "home,time,kWh\n".to_owned();
    for hour in 0..48 {
        for home in 0..40 {
            let often = (hour * 40 + home) % 50 != 0;
            let used = if often { 1 + (hour + home) % 3 } else { 20 + (hour + home) % 20 };
            let (day, hour) = (13 + hour / 24, hour % 24);
            text.push_str(&format!("m{home},2024-02-{day} {hour:02}:00,{used}.5\n"));
        }
    }
    fs::write(folder.path().join("homes.csv"), text).unwrap();
    let mut init = alpheus(["init", "homes.csv", "--yes", "--error", "10 %"]);
    let (code, text) = said(init.current_dir(folder.path()));
    assert_eq!(code, 3, "{text}");
    has(&text, &["possible with `kwh` between 0.0 and 5.0"]);
    // 39 of 1920.
    has(&text, &["2.0 % of the readings of `kwh` in the file are above 5.0, and would be refused"]);
}
