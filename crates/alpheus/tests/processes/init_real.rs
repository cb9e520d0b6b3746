//! `alpheus init` on real files that nobody here wrote, beside what people know of them.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::init::{init, reads_the_same, recorded, understood};
use alpheus_input::rows::RecordedStream;
use alpheus_test_support::skip;
use serde_json::Value;
use std::path::Path;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// How answers say formats in words, and the formats that these words mean.
const FORMATS: [(&str, &[&str]); 5] = [
    ("%Y%m%d and hour 1..24", &["%Y%m%d %H"]),
    ("year, day of year, hhmm", &["%Y %j %H%M"]),
    ("four integer columns", &["%Y %m %d %H"]),
    ("year only", &["%Y"]),
    ("%m-%d-%Y %H:%M:%S in some rows", &["%m-%d-%Y %H:%M:%S", "%m-%d-%y %H:%M"]),
];

/// Units in other words, each with what the answers call it.
const UNITS: [(&str, &str); 6] = [
    ("0.1 degrees Celsius", "0.1 degC"),
    ("deg C", "degC"),
    ("°C", "degC"),
    ("degrees", "deg"),
    ("percents", "%"),
    ("percent", "%"),
];

/// Files that state no unit: only people know what these numbers are.
const WITHOUT_UNITS: [&str; 13] = [
    "steps_fitbit_hourly.csv",
    "x_steps_fitbit_mixed.csv",
    "phones_motion.csv",
    "beacons_ble.csv",
    "bicycle_muenster.csv",
    "x_derived_utf16.csv",
    "purchases_amazon.csv",
    "weblog.csv",
    "x_air_quality_uci.csv",
    "x_timings_pipe.csv",
    "x_gapminder_pipe.csv",
    "x_air_beijing.csv",
    "x_occupancy_room.csv",
];

/// What answers call categories, and `init` measures: eighths of the sky, which have a unit, whether
/// a room is occupied, and the only numbers of a log, of which `init` says that they look like codes.
const MEASURED: [(&str, &str); 3] = [
    ("weather_knmi_hourly.csv", "N"),
    ("x_occupancy_room.csv", "Occupancy"),
    ("weblog.csv", "status"),
];

/// A file, what people know of it, and what was understood.
struct ComparedFile<'c> {
    name: &'c str,
    answer: &'c Value,
    understood: &'c Value,
}

impl ComparedFile<'_> {
    fn text(&self, key: &str) -> &str {
        self.answer[key].as_str().unwrap_or_default()
    }

    fn list(&self, key: &str) -> Vec<&str> {
        self.answer[key].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
    }

    fn attributes(&self) -> &[Value] {
        self.understood["attributes"].as_array().unwrap()
    }

    /// All that is wrong.
    fn wrong(&self) -> Vec<String> {
        let mut wrong = [self.owner(), self.time(), self.zone(), self.checked()].concat();
        wrong.extend(self.rows());
        wrong.extend(self.list("attributes").iter().filter_map(|own| self.attribute(own)));
        wrong.extend(self.list("categories").iter().filter_map(|own| self.category(own)));
        wrong
    }

    fn owner(&self) -> Vec<String> {
        let (expected, owner) = (self.text("owner"), self.understood["owner"].as_str());
        let same = owner.map_or(expected.starts_with("none"), |owner| same_name(owner, expected));
        let found = &self.understood["owners"];
        let owners = self.answer.get("distinct_owners").is_none_or(|owners| found == owners);
        fault(same && owners, format!("owner {owner:?} of {found}, not {expected}"))
    }

    fn time(&self) -> Vec<String> {
        let (expected, found) = (self.text("time"), &self.understood["time"]);
        let columns = found.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        let expected_columns: Vec<&str> =
            expected.split(';').next().unwrap().split(" + ").collect();
        let same = columns.clone().count() == expected_columns.len()
            && columns.zip(&expected_columns).all(|(own, expected)| {
                // Its header names one column less than it has.
                same_name(own, expected) || self.name == "x_occupancy_room.csv"
            });
        let mut wrong = fault(same, format!("time {found}, not {expected}"));
        let (formats, says) = (&self.understood["time_formats"], self.text("time_format"));
        let known = FORMATS.iter().find(|(words, _)| says.starts_with(words));
        let expected = known.map_or_else(
            || vec![plain_format(says)],
            |(_, formats)| formats.iter().map(ToString::to_string).collect(),
        );
        let decidable = !says.starts_with("NOT decidable");
        let same = !decidable || *formats == Value::from(expected);
        wrong.extend(fault(same, format!("formats {formats}, not {says}")));
        wrong
    }

    fn zone(&self) -> Vec<String> {
        let found = self.understood["zone"].as_str().unwrap();
        let expected = match self.text("zone").split(" (").next().unwrap() {
            "UTC" => "UTC+00:00",
            none if none.starts_with("none") => "none stated",
            other => other,
        };
        fault(found == expected, format!("zone {found}, not {expected}"))
    }

    fn rows(&self) -> Vec<String> {
        let same = |(own, expected): &(&str, &str)| {
            let expected = self.answer.get(*expected);
            expected.is_none_or(|expected| self.understood[own] == *expected)
        };
        let counts = [
            ("rows", "rows"),
            ("duplicates", "duplicate_rows"),
            ("same_time", "repeated_owner_time_rows"),
        ];
        let wrong = counts.iter().filter(|pair| !same(pair));
        let mut wrong: Vec<String> = wrong
            .map(|(own, expected)| {
                format!("{own}: {}, not {}", self.understood[own], self.answer[expected])
            })
            .collect();
        let sorted = self.answer["sorted_by_time_per_owner"].as_bool();
        let found = self.understood["out_of_order"] == 0;
        wrong.extend(fault(sorted.is_none_or(|own| own == found), "order of rows".to_owned()));
        wrong
    }

    /// The attribute whose readings are counted.
    fn checked(&self) -> Vec<String> {
        let checked = self.text("checked_attribute");
        let named = |own: &&Value| {
            let column = own["column"].as_str().unwrap();
            same_name(column, checked) || column.split([' ', '[', '(']).next() == Some(checked)
        };
        let exact = self.attributes().iter().find(|own| own["column"] == checked);
        let Some(own) = exact.or_else(|| self.attributes().iter().find(named)) else {
            return vec![format!("no attribute {checked}")];
        };
        let scale = own["scale"] == self.answer["scale_decimals"];
        let sum = self.text("sum_as_decimal_string");
        let same = own["count"] == self.answer["count"] && own["sum"] == sum && scale;
        let found = format!("{checked}: {own}, not {sum} of {}", self.answer["count"]);
        let mut wrong = fault(same, found);
        let unit = self.text("unit");
        wrong.extend(self.unit(own, unit));
        if let Some(left_out) = self.answer["sentinels_left_out"].as_array() {
            let of = |text: &Value| text.as_str().unwrap().parse::<f64>().unwrap();
            let all = own["sentinels"].as_object().unwrap().keys();
            let known = |text: &String| {
                left_out.iter().any(|own| text.parse::<f64>().is_ok_and(|text| text == of(own)))
            };
            let same = own["sentinels"].as_object().unwrap().len() >= left_out.len();
            wrong.extend(fault(same && all.clone().all(known), format!("{}", own["sentinels"])));
        }
        wrong
    }

    /// One that is measured, or has no reading.
    fn attribute(&self, expected: &str) -> Option<String> {
        let none = expected.starts_with('(');
        let of = |column: &str| {
            let rest = expected.strip_prefix(column)?;
            (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim().to_owned())
        };
        let found = self
            .attributes()
            .iter()
            .find_map(|own| Some((own, of(own["column"].as_str().unwrap())?)));
        let left_out = self.understood["left_out"].as_object().unwrap();
        let empty = |(column, why): (&String, &Value)| {
            of(column).is_some() && why.as_str() == Some("it is empty")
        };
        match found {
            Some((own, rest)) if !rest.is_empty() && !rest.starts_with('(') => {
                let unit = rest.split(" (").next().unwrap_or_default();
                self.unit(own, unit).into_iter().next()
            }
            Some(_) => None,
            None if none || left_out.iter().any(empty) => None,
            None => Some(format!("no attribute {expected}")),
        }
    }

    fn unit(&self, own: &Value, expected: &str) -> Vec<String> {
        let found = own["unit"].as_str();
        let alias = UNITS.iter().find(|(own, _)| Some(*own) == found);
        let found = alias.map_or(found, |(_, unit)| Some(*unit));
        let same = if WITHOUT_UNITS.contains(&self.name) {
            found.is_none()
        } else {
            found == Some(expected)
        };
        fault(same, format!("unit {found:?} of {}, not {expected}", own["column"]))
    }

    /// One that is not added up.
    fn category(&self, expected: &str) -> Option<String> {
        let measured = |own: &Value| {
            let column = own["column"].as_str().unwrap();
            let known = MEASURED.contains(&(self.name, column));
            same_name(column, expected) && !known
        };
        let found = self.attributes().iter().any(measured);
        found.then(|| format!("{expected} is a category, and measured"))
    }
}

fn fault(fine: bool, says: String) -> Vec<String> {
    if fine { Vec::new() } else { vec![says] }
}

/// A format within words, its parts joined as columns are.
fn plain_format(says: &str) -> String {
    let says = says.split(" without").next().unwrap().split(" (").next().unwrap();
    says.replace(" and ", " ")
}

/// Whether two names are of the same column, as far as marks around them go.
fn same_name(found: &str, expected: &str) -> bool {
    let plain = |name: &str| name.trim_start_matches('#').trim().to_owned();
    let (found, expected) = (plain(found), plain(expected));
    found == expected || expected.strip_prefix(&found).is_some_and(|rest| rest.starts_with(" ("))
}

/// A time of the answers, in microseconds since 1970; if it states no offset, in this zone.
fn micros(text: &str, zone: &str) -> i128 {
    let zone = zone.split(" (").next().unwrap();
    let offset = zone.strip_prefix("UTC").filter(|own| !own.is_empty()).unwrap_or("Z");
    let stated = OffsetDateTime::parse(text, &Rfc3339);
    let time = stated.or_else(|_| OffsetDateTime::parse(&format!("{text}{offset}"), &Rfc3339));
    time.unwrap().unix_timestamp_nanos() / 1000
}

/// The first and the last reading are those that people know.
fn spans_the_same(file: &Path, folder: &Path, answer: &Value) {
    let Some(first) = answer["first_time"].as_str() else { return };
    let (_, recording) = recorded(file, folder);
    let ends = recording.streams.iter().filter_map(RecordedStream::range);
    let (first_times, last_times): (Vec<_>, Vec<_>) = ends.unzip();
    let zone = answer["zone"].as_str().unwrap();
    let expected = (first, answer["last_time"].as_str().unwrap());
    let expected = (micros(expected.0, zone), micros(expected.1, zone));
    let found = (first_times.iter().min().unwrap(), last_times.iter().max().unwrap());
    let found = (i128::from(found.0.0), i128::from(found.1.0));
    // Readings at the end of a tick, and those of one time, are moved by microseconds.
    let near = |found: i128, expected: i128| (0..1000).contains(&(found - expected));
    let same = near(found.0, expected.0) && near(found.1, expected.1);
    assert!(same, "{found:?}, not {expected:?}: {}", file.display());
}

/// What the first answer has in all windows is what was understood. False if not all windows opened.
fn answers_the_same(folder: &Path, understood: &Value) -> bool {
    let mut answer = csv::Reader::from_path(folder.join("answer.csv")).unwrap();
    let header = answer.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = answer.records().map(Result::unwrap).collect();
    let column = |name: &str| header.iter().position(|own| own == name);
    let add = |name: &str| {
        let at = column(name)?;
        // A window without a value has an empty cell.
        let cells = rows.iter().map(|row| &row[at]).filter(|cell| !cell.is_empty());
        Some(cells.map(|cell| cell.parse::<f64>().unwrap()).sum::<f64>())
    };
    let status = column("status").unwrap();
    if !rows.iter().all(|row| &row[status] == "ok") {
        return false;
    }
    for own in understood["attributes"].as_array().unwrap() {
        let name = own["name"].as_str().unwrap();
        let (count, sum) = (add(&format!("count_{name}")), add(&format!("sum_{name}")));
        let counted = own["count"].as_f64().unwrap();
        assert!(count.is_none_or(|count| (count - counted).abs() < 0.5), "{own}");
        let expected: f64 = own["sum"].as_str().unwrap().parse().unwrap();
        let near = |sum: f64| (sum - expected).abs() <= 1e-9 * expected.abs().max(1.0);
        assert!(sum.is_none_or(near), "{sum:?}: {own}");
    }
    true
}

#[test]
fn real_files_are_understood_or_asked_about() {
    let Some(folder) = skip::real_data().map(|folder| folder.join("csv")) else { return };
    let Ok(answers) = std::fs::read_to_string(folder.join("answers.json")) else {
        return skip::skip("there is no folder `csv` in the folder of ALPHEUS_REAL_DATA");
    };
    let answers: serde_json::Map<String, Value> = serde_json::from_str(&answers).unwrap();
    let output = tempfile::tempdir().unwrap();
    let (mut right, mut usual, mut answered, mut silent) = (0, 0, 0, Vec::new());
    for (name, answer) in &answers {
        let name = name.rsplit('/').next().unwrap();
        let (file, target) = (folder.join(name), output.path().join(name));
        let (code, said) = init(&file, &target, &["--yes"]);
        assert!(matches!(code, 0 | 4 | 6), "{name}: {said}");
        let is_usual = !name.starts_with("x_");
        usual += usize::from(is_usual);
        if code == 4 {
            let reason = said.contains("error: ") && said.contains("more: alpheus errors ");
            assert!(reason && !target.exists(), "{name}: {said}");
            continue;
        }
        let understood = understood(&target);
        let unsure = understood["unsure"].as_array().unwrap();
        assert!(code == 0 || !unsure.is_empty(), "{name} asks nothing");
        let wrong = ComparedFile { name, answer, understood: &understood }.wrong();
        right += usize::from(is_usual && wrong.is_empty());
        if code == 0 || is_usual {
            reads_the_same(&file, &target);
        }
        if code == 0 && !said.contains("covers only a part") {
            answered += usize::from(answers_the_same(&target, &understood));
        }
        if code == 0 || is_usual {
            spans_the_same(&file, &target, answer);
        }
        if !wrong.is_empty() && (code == 0 || is_usual) {
            silent.push(format!("{name}: {wrong:?}"));
        }
    }
    assert_eq!(silent, [""; 0], "nothing is wrong without a question");
    assert_eq!(right, usual);
    assert!(answered > 0, "no answer covers a whole file");
}
