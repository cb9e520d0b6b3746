//! Files that are not as they should be: `alpheus replay` says where, what and
//! how to fix it, exits by whose fault it is, and never shows a cell. Good rows
//! around bad ones count, to the last digit.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::alpheus;
use crate::common::recording::{self, Recording};
use std::io::Write;
use std::path::PathBuf;

/// What no message may show: keys and cells of the inputs below.
const PERSONAL: [&str; 5] = ["alice", "bob", "carol", "hunter2", "987654"];

const OWNED: &str = "\
schema: Meters
time: { column: time }
stream: meter
owner: owner
attributes: { reading: reading }
";

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Recording::made(1, 3).write(folder.path());
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.path(name), content).unwrap();
        self
    }

    /// With one thing in a file put another way.
    fn but(self, name: &str, from: &str, to: &str) -> Self {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        self.with(name, text.replacen(from, to, 1))
    }

    /// Exit code and all that was said; any number of rows may be refused.
    fn replay(&self, input: &str) -> (i32, String) {
        self.replay_with(input, &["--max-refused", "100%"])
    }

    fn replay_with(&self, input: &str, more: &[&str]) -> (i32, String) {
        let mut command = alpheus(["replay"]);
        command.args(more);
        let files = [("schema", "yaml"), ("source", "yaml"), ("policies", "yaml")];
        for (name, ending) in files {
            command.arg(format!("--{name}")).arg(self.path(&format!("{name}.{ending}")));
        }
        command.arg("--query").arg(self.path("sum.sql")).arg("--input").arg(self.path(input));
        let ran = command.arg("--output").arg(self.path("out.json")).output().unwrap();
        let said = [ran.stdout, ran.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        for secret in PERSONAL {
            assert!(!said.contains(secret), "{secret} is shown:\n{said}");
        }
        (ran.status.code().unwrap(), said)
    }

    /// The replay ends with this code and says all of this.
    fn fails(&self, input: &str, code: i32, says: &[&str]) {
        let (ended, said) = self.replay(input);
        assert_eq!(ended, code, "{said}");
        for part in says {
            assert!(said.contains(part), "no {part:?} in:\n{said}");
        }
        assert!(!self.path("out.json").exists(), "no results of files that were refused");
    }

    fn results(&self) -> Vec<recording::Result> {
        recording::read(&self.path("out.json"))
    }
}

#[test]
fn good_rows_around_bad_ones_count_exactly() {
    let rows: &[&[u8]] = &[
        b"time,meter,owner,reading\n",
        b"1700000000,alice,alice,5\n",
        b"1700000001,bob,bob,\n",
        b"1700000001,bob,bob,hunter2\n",
        b"\n",
        b"1700000002,bob,bob,987654\n",
        b"1700000002,,carol,7\n",
        b"1700000002,carol,,7\n",
        b"hunter2,bob,bob,7\n",
        b"99999999999,bob,bob,7\n",
        b"1700000002,bob\n",
        b"1700000002,bob,bob,7,hunter2\n",
        b"1700000002,\"bob,bob,7\n",
        b"1700000003,\"bob\",bob,-40\n",
        b"1700000004,bob,b\xffob,7\n",
        b"1700000004,\"bob\"hunter2,bob,7\r\n",
        b"1700000009,alice,alice,1000\r\n",
        b"1700000010,alice,alice,-1",
    ];
    let files = Files::new().with("source.yaml", OWNED).with("data.csv", rows.concat());
    let (ended, said) = files.replay("data.csv");
    assert_eq!(ended, 0, "{said}");
    let results: Vec<_> =
        files.results().into_iter().map(|r| (r.start, r.sum, r.count, r.population)).collect();
    let wanted = [(1_700_000_000, Some(965), Some(3), 2), (1_700_000_010, Some(-1), Some(1), 1)];
    assert_eq!(results, wanted, "{said}");
    let refused = [
        ("16 rows read, 4 events of 2 streams", ""),
        ("refused 1 row: a mandatory attribute is empty", "line 3, column reading"),
        ("refused 1 row: not a decimal number", "line 4, column reading"),
        (
            "refused 1 row: the value lies outside the schema's bounds",
            "line 6, column reading, which takes -1000 to 1000",
        ),
        ("refused 1 row: the stream key is empty", "line 7, column meter"),
        ("refused 1 row: the owner is empty", "line 8, column owner"),
        ("refused 1 row: the time is neither a number of seconds", "line 9, column time"),
        ("refused 1 row: the time lies before 1970 or after 2112", "line 10, column time"),
        ("refused 2 rows: the row has a different number of cells", "line 11\n    line 12"),
        ("refused 2 rows: a quoted cell does not end on its line", "line 13\n    line 16"),
        ("refused 1 row: the row is not UTF-8", "line 15"),
        ("2 windows opened, 0 did not", ""),
    ];
    for (what, place) in refused {
        let at = said.find(what);
        assert!(at.is_some_and(|at| said[at..].contains(place)), "no {what} {place} in:\n{said}");
    }
}

#[test]
fn a_wide_file_shows_the_number_of_a_column_that_is_someones_key() {
    let source = "\
schema: Meters
time: { column: time }
wide: { attribute: reading, columns: streams }
";
    let csv = "time,alice,bob,carol\n1700000000,1,hunter2,\n1700000001,2,3,987654\n";
    let files = Files::new().with("source.yaml", source).with("data.csv", csv);
    let (ended, said) = files.replay("data.csv");
    assert_eq!(ended, 0, "{said}");
    assert_eq!(files.results()[0].sum, Some(6));
    assert!(said.contains("refused 1 row: not a decimal number\n    line 2, column 3"), "{said}");
    assert!(said.contains("outside the schema's bounds for this attribute\n    line 3, column 4"));
}

#[test]
fn an_input_that_cannot_be_read_says_where_and_what_to_do() {
    let files = Files::new();
    files.fails("nowhere.csv", 5, &["nowhere.csv: No such file"]);
    let files = files.with("bare.csv", "1700000000,alice,5\n1700000001,bob,6\n");
    files.fails(
        "bare.csv",
        4,
        &["bare.csv: the source file maps the column \"time\"", "add a header to the input"],
    );
    let twice = "time,meter,reading,reading\n1700000000,alice,5,6\n";
    let files = files.with("twice.csv", twice);
    files.fails("twice.csv", 4, &["several columns named \"reading\"", "a unique name"]);
    let files = files.with("header.csv", "time,meter,reading\n");
    files.fails("header.csv", 4, &["header.csv: the recording has no row after the header"]);
    let files = files.with("useless.csv", "time,meter,reading\n1700000000,alice,hunter2\n");
    let said = ["refused 1 row: not a decimal number", "no row can be used", "fix the rows"];
    files.fails("useless.csv", 4, &said);
    files.fails(".", 4, &["not a regular file", "write it to a file first"]);
    let files = files.with("empty.csv", "");
    files.fails("empty.csv", 4, &["column \"time\", which is not among the 0 columns"]);
    let files = files.with("plain.csv.gz", "time,meter,reading\n1700000000,alice,5\n");
    files.fails(
        "plain.csv.gz",
        4,
        &["plain.csv.gz: the input cannot be read after line 0", "provide the complete file"],
    );
}

#[test]
fn metadata_are_what_the_schema_says_and_the_same_in_every_row() {
    let metadata = "metadataAttributes:\n  - { name: plan, type: enum, symbols: [free, paid] }\n";
    let source = format!("{OWNED}metadata: {{ plan: {{ column: plan }} }}\n");
    let rows = "time,meter,owner,reading,plan\n1700000000,m,m,1,free\n1700000001,m,m,2,paid\n\
         1700000002,n,n,4,hunter2\n1700000003,o,o,8,\n1700000004,p,p,16,paid\n";
    let files = || {
        Files::new().but(
            "schema.yaml",
            "streamAttributes:",
            &format!("{metadata}streamAttributes:"),
        )
    };
    files().with("source.yaml", OWNED).with("data.csv", rows).fails(
        "data.csv",
        4,
        &["source file does not map mandatory metadata \"plan\"", "metadata: { plan:"],
    );
    let files = files().with("source.yaml", source).with("data.csv", rows);
    let (ended, said) = files.replay("data.csv");
    assert_eq!(ended, 0, "{said}");
    assert_eq!(files.results()[0].sum, Some(17));
    for line in [
        "refused 1 row: the stream's metadata differ from those of its first row; if an owner has several, let `stream` name a column with a text for each of them, and `owner` the column of the owner\n    line 3, column plan",
        "refused 1 row: the metadata value is none of those that the schema declares\n    line 4, column plan",
        "refused 1 row: the metadata cell is empty; mark it `optional: true` in the schema if that is normal\n    line 5",
    ] {
        assert!(said.contains(line), "no {line} in:\n{said}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_reported_before_the_work() {
    let files = Files::new();
    for place in ["nowhere/out.json", "sum.sql/out.json"] {
        let mut command = alpheus(["replay"]);
        for name in ["schema.yaml", "source.yaml", "policies.yaml"] {
            let flag = name.split('.').next().unwrap();
            command.arg(format!("--{flag}")).arg(files.path(name));
        }
        command
            .arg("--query")
            .arg(files.path("sum.sql"))
            .arg("--input")
            .arg(files.path("gone.csv"));
        let ran = command.arg("--output").arg(files.path(place)).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        // The input would fail too, but comes later.
        assert_eq!(ran.status.code(), Some(5), "{said}");
        assert!(said.contains(place) && !said.contains("gone.csv"), "{said}");
    }
}

#[test]
fn an_owners_name_in_the_policies_file_is_not_repeated() {
    let owners = "owners: { alice: { reading: { option: opne } } }\n";
    let policies = format!("{}{owners}", recording::POLICIES);
    let files = Files::new().with("policies.yaml", policies);
    files.fails("data.csv", 4, &["policies.yaml: line 4", "owners.…", "no policy option `opne`"]);
}

#[test]
fn an_archive_that_was_cut_off_is_not_taken_for_the_whole() {
    let mut csv = String::from("time,meter,reading\n");
    let mut draw = recording::Draw(1);
    for second in 0..20_000 {
        csv += &format!("{},alice{},{}\n", 1_700_000_000 + second, draw.below(9), draw.below(1000));
    }
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(csv.as_bytes()).unwrap();
    let mut packed = packer.finish().unwrap();
    packed.truncate(packed.len() / 2);
    let files = Files::new().with("cut.csv.gz", packed);
    files.fails(
        "cut.csv.gz",
        4,
        &["cut.csv.gz: the input cannot be read after line ", "provide the complete file"],
    );
    let (_, said) = files.replay("cut.csv.gz");
    let line = said.split("after line ").nth(1).unwrap().split(':').next().unwrap();
    let line: u32 = line.parse().unwrap();
    assert!((5_000..15_000).contains(&line), "half of the file was there: {said}");
    let ran = alpheus(["init"]).arg(files.path("cut.csv.gz")).arg("--yes").output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    let whole = said.contains("provide the complete file");
    assert!(ran.status.code() == Some(4) && whole, "{said}");
}

/// The file, what is put for what, the exit code, and what must be said.
type Case = (&'static str, &'static str, &'static str, i32, &'static [&'static str]);

const CASES: [Case; 15] = [
    (
        "schema.yaml",
        "type: integer",
        "type: intger",
        4,
        &["schema.yaml: line 6, column", "`intger` is not one of integer, decimal"],
    ),
    (
        "schema.yaml",
        "max: 1000",
        "max: -5000",
        4,
        &["line 6, column", "`min` is greater than `max`; swap them"],
    ),
    ("schema.yaml", "window: 10s", "window: 10x", 4, &["line 8, column", "write 10s, 5min, 1hr"]),
    ("schema.yaml", "capacity:", "capacty:", 4, &["schema.yaml: line 4, column", "`capacty`"]),
    ("schema.yaml", "name: Meters", "name: [", 4, &["schema.yaml: line", "cannot be parsed"]),
    (
        "source.yaml",
        "time:",
        "tyme:",
        4,
        &[
            "source.yaml: ",
            "line 2 column 1",
            "unknown field `tyme`, expected one of schema, file, time",
        ],
    ),
    (
        "source.yaml",
        "schema: Meters",
        "schema: Motors",
        4,
        &["source.yaml: ", "set `schema: Meters`"],
    ),
    (
        "source.yaml",
        "attributes: { reading",
        "attributes: { raeding",
        4,
        &["source.yaml: ", "\"raeding\"", "it defines: reading"],
    ),
    (
        "source.yaml",
        "reading: reading",
        "reading: raeding",
        4,
        &["data.csv: ", "column \"raeding\", which is not among the 3 columns"],
    ),
    (
        "policies.yaml",
        "option: open",
        "option: opne",
        4,
        &["policies.yaml: line 3, column", "no policy option `opne`"],
    ),
    ("policies.yaml", "clients: 1", "clients: 7", 4, &["policies.yaml: line 3, column", "clients"]),
    (
        "policies.yaml",
        "reading:",
        "raeding:",
        4,
        &["policies.yaml: line 3, column", "no stream attribute `raeding`"],
    ),
    ("sum.sql", "FROM Meters", "FRM Meters", 4, &["sum.sql: ", "2 | WINDOW", "^"]),
    (
        "sum.sql",
        "SUM(reading)",
        "SUM(raeding)",
        4,
        &[
            "sum.sql: ",
            "1 | CREATE",
            "did you mean `reading`?",
            "The nearest query that would be allowed:",
        ],
    ),
    ("sum.sql", "CREATE STREAM Readings AS SELECT", "SHOW", 4, &["sum.sql: "]),
];

#[test]
fn schemas_policies_sources_and_queries_are_refused_with_place_and_remedy() {
    for (file, from, to, code, says) in CASES {
        Files::new().but(file, from, to).fails("data.csv", code, says);
    }
    let tab = Files::new().with("schema.yaml", "name: Meters\n\tversion: 1\n");
    tab.fails("data.csv", 4, &["schema.yaml: line 1, column 7: cannot be parsed"]);
}

#[test]
fn a_row_years_away_costs_no_border_for_each_tick_between() {
    let rows = "time,meter,owner,reading\n5,m,m,1\n1700000000,m,m,5\n1700000003,n,n,3\n1700000011,m,m,7\n3400000000,m,m,9\n";
    let files = Files::new().with("source.yaml", OWNED).with("data.csv", rows);
    let (ended, said) = files.replay("data.csv");
    assert_eq!(ended, 0, "{said}");
    let found: Vec<_> =
        files.results().into_iter().map(|r| (r.start, r.sum, r.population, r.excluded)).collect();
    let wanted = [
        (0, Some(1), 1, 0),
        (1_700_000_000, Some(8), 2, 0),
        (1_700_000_010, Some(7), 1, 0),
        (3_400_000_000, Some(9), 1, 0),
    ];
    assert_eq!(found, wanted, "{said}");
    assert!(said.contains("9 frames"), "{said}");
}
