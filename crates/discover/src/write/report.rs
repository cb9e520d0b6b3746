//! `understood.json`, and the page that explains the files.

use super::{Draft, policies, quoted};
use crate::owner_groups::Groups;
use crate::plural::counted;
use crate::tally::Values;
use crate::words::schema_name;
use crate::{Sureness, Understanding};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What was understood, for programs.
#[derive(Clone, Debug, Serialize)]
pub struct FileReport {
    /// The owner's column; none if the file is one stream, or each column is an owner's.
    pub owner: Option<String>,
    /// Whether each column is an owner's. Rows are then readings.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wide: bool,
    /// The columns of the time.
    pub time: Vec<String>,
    /// Their format, as in strftime, with a space between columns and ` or ` between several
    /// formats; or `epoch seconds` and its like, or `spreadsheet days`.
    pub time_format: String,
    /// Each format by itself.
    pub time_formats: Vec<String>,
    /// The zone: an offset such as `UTC+01:00`, `offset in the value`, or `none stated`.
    pub zone: String,
    /// What can be measured.
    pub attributes: Vec<UnderstoodAttribute>,
    /// Columns of texts that repeat.
    pub categories: Vec<String>,
    /// Columns that are not used, and why.
    pub left_out: BTreeMap<String, String>,
    /// Rows with a reading.
    pub rows: u64,
    /// Rows that cannot be used.
    pub refused: u64,
    /// Rows of empty cells, which are passed over.
    pub blank: u64,
    /// Rows that equal an earlier one.
    pub duplicates: u64,
    /// Rows that lie before an earlier one of their owner.
    pub out_of_order: u64,
    /// Rows with the time of an earlier one of their owner.
    pub same_time: u64,
    /// Rows at local times that a change of the clocks skips.
    pub skipped_times: u64,
    /// Rows at local times that a change of the clocks repeats.
    pub repeated_times: u64,
    /// Owners.
    pub owners: u64,
    /// The encoding.
    pub encoding: &'static str,
    /// What stands between cells.
    pub delimiter: &'static str,
    /// How sure it is whose a reading is, which columns are the time, and which zone they have.
    pub sure: SureOf,
    /// Whether something cannot be known that matters.
    pub undecided: bool,
    /// All that is not certain.
    pub unsure: Vec<String>,
}

/// How sure a file's findings are; each attribute has its own.
#[derive(Clone, Debug, Serialize)]
pub struct SureOf {
    /// Whose a reading is.
    pub owner: Sureness,
    /// Which columns are the time, and their format.
    pub time: Sureness,
    /// The zone.
    pub zone: Sureness,
}

/// One attribute, for programs.
#[derive(Clone, Debug, Serialize)]
pub struct UnderstoodAttribute {
    /// The column in the file.
    pub column: String,
    /// The name in schema and queries.
    pub name: String,
    /// `integer`, `decimal`, `boolean` or `string`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The unit, if the file says it.
    pub unit: Option<String>,
    /// Decimal places of the cells' texts.
    pub scale: u8,
    /// Cells with a value.
    pub count: u64,
    /// Their exact sum.
    pub sum: String,
    /// Numbers that stand for a missing one, with the number of their cells.
    pub sentinels: BTreeMap<String, u64>,
    /// Values outside the bounds that the schema gets.
    pub outside_bounds: u64,
    /// How sure it is what is measured, and whether it is.
    pub sure: Sureness,
}

impl FileReport {
    /// The report of an understanding.
    #[must_use]
    pub fn of(found: &Understanding) -> FileReport {
        let tally = &found.tally;
        let formats = found.time.clock.texts();
        let names = found.time.columns.iter().filter_map(|at| found.names.get(*at).cloned());
        let left = found.left_out.iter().map(|(name, why)| (name.clone(), why.clone()));
        FileReport {
            owner: found.owner.clone().filter(|_| found.wide.is_none()),
            wide: found.wide.is_some(),
            time: names.collect(),
            time_format: found.time.format(),
            time_formats: formats,
            zone: found.zone_text(),
            attributes: found
                .attributes
                .iter()
                .map(|own| UnderstoodAttribute::of(own, found))
                .collect(),
            categories: found.categories.iter().map(|(name, _)| name.clone()).collect(),
            left_out: left.collect(),
            rows: tally.rows,
            refused: tally.refused(),
            blank: tally.blank,
            duplicates: tally.duplicates,
            out_of_order: tally.out_of_order,
            same_time: tally.same_time,
            skipped_times: tally.skipped,
            repeated_times: tally.repeated,
            owners: tally.owners,
            encoding: found.form.encoding.name(),
            delimiter: found.form.delimiter.name(),
            sure: SureOf {
                owner: found.sure_of_owner(),
                time: found.sure_of_time(),
                zone: found.sure_of_zone(),
            },
            undecided: found.is_undecided(),
            unsure: found.unsure(),
        }
    }
}

impl UnderstoodAttribute {
    fn of(own: &crate::Attribute, found: &Understanding) -> UnderstoodAttribute {
        let kind = match own.values {
            Values::Number if own.total.places == 0 => "integer",
            Values::Number => "decimal",
            Values::Boolean => "boolean",
            Values::Text => "string",
        };
        UnderstoodAttribute {
            column: own.column.clone(),
            name: own.name.clone(),
            kind,
            unit: own.unit.clone(),
            scale: own.total.places,
            count: own.total.count,
            sum: own.total.sum.text(),
            sentinels: own.sentinels.clone(),
            outside_bounds: own.outliers.count,
            sure: found.sure_of_attribute(&own.column),
        }
    }
}

/// How to get the answers that the query does not ask for.
fn other_answers(draft: &Draft<'_>) -> &'static str {
    match draft.noise {
        None => {
            "For results with noise (differential privacy) and a stated error, run `alpheus init FILE --error '10 %' --output DIR`: it says whether that error is possible, and if not, which one is. Or choose `noisy` in `policies.yaml`, and use the second query in `query.sql` in place of the first."
        }
        Some(_) => {
            "Each row has a column `noise` with the margin that holds for 95 of 100 results, and `mostly_noise` names the columns whose margin exceeds the result. Narrower bounds in `schema.yaml`, more owners or a larger error need less noise; `alpheus suggest . --input FILE` says which error is possible. For exact totals, choose `crowd` in `policies.yaml` and use the second query in `query.sql` in place of the first."
        }
    }
}

/// The page for people.
pub(super) fn readme(draft: &Draft<'_>) -> String {
    let found = draft.found;
    let mut text = format!(
        "# {}\n\nWritten by `alpheus init` from a file of {}. `understood.json` has everything that was understood.\n\n## Who learns what\n\n{}\n\n## Run the query\n\nIn this folder, with the path of the recording as FILE:\n\n```sh\nalpheus replay --schema schema.yaml --source source.yaml --policies policies.yaml --query query.sql --input FILE --output -\n```\n\nWindows may be any multiple of {}. They begin at multiples of their length since 1970-01-01, in UTC. That day was a Thursday, so weekly windows begin on Thursdays. Programs get their times in milliseconds since 1970. {}\n\n## Attributes\n\n| name | column | unit | readings | sum |\n| --- | --- | --- | --- | --- |\n",
        draft.name,
        counted(found.tally.rows, "row"),
        policies::says(draft),
        draft.shortest.name,
        other_answers(draft),
    );
    for own in &found.attributes {
        let column = own.column.replace('|', "\\|");
        let unit = own.unit.clone().unwrap_or_default().replace('|', "\\|");
        let _ = writeln!(
            text,
            "| {} | {column} | {unit} | {} | {} |",
            own.name,
            own.total.count,
            own.total.sum.text()
        );
    }
    text.push_str(
        "\n## What became of each column\n\n| column | what became of it | how sure |\n| --- | --- | --- |\n",
    );
    for (column, fate) in found.fates() {
        let sure = found.sure_of(&column).word();
        let _ = writeln!(
            text,
            "| {} | {} | {sure} |",
            column.replace('|', "\\|"),
            fate.replace('|', "\\|")
        );
    }
    let _ = writeln!(
        text,
        "\nThe zone of the times: {} ({}). *Certain*: the file states it, or you did. *Likely*: names and values suggest it, and nothing speaks against it. *Guess*: the file could be read otherwise just as well.",
        found.zone_text(),
        found.sure_of_zone().word()
    );
    text.push_str(&groups(draft));
    text.push_str("\n## What is not certain\n\n");
    for sentence in found.unsure() {
        let _ = writeln!(text, "- {sentence}");
    }
    text.push_str("\nBounds in `schema.yaml` are a guess: twice what the file has, rounded up, without values far from all others. Change them there.\n");
    text
}

/// How to ask by what describes owners, if something does.
fn groups(draft: &Draft<'_>) -> String {
    let Groups { offered, changing } = draft.found.groups();
    if offered.is_empty() && changing.is_empty() {
        return String::new();
    }
    let mut text = "\n## Ask by group\n".to_owned();
    text.push_str(&offer(&offered, draft));
    if !changing.is_empty() {
        let rows = |(name, rows): &(&str, u64)| format!("`{name}` in {}", counted(*rows, "row"));
        let rows: Vec<String> = changing.iter().map(rows).collect();
        let _ = writeln!(
            text,
            "\nA category that changes within an owner cannot group owners. These rows differ from the first of their owner, and would be refused: {}.",
            rows.join(", ")
        );
    }
    text
}

/// The lines for what is the same in all rows of each owner.
fn offer(offered: &[(&str, Option<&str>)], draft: &Draft<'_>) -> String {
    let mut taken: Vec<String> =
        draft.found.attributes.iter().map(|own| own.name.clone()).collect();
    let (mut facts, mut columns) = (String::new(), String::new());
    let mut first = None;
    for (column, attribute) in offered {
        // All names of a schema differ.
        let name = attribute.map_or_else(|| (*column).to_owned(), |own| format!("{own}_of_owner"));
        let name = schema_name(&name, &mut taken);
        let _ = writeln!(facts, "  - {{ name: {name}, type: string, optional: true }}");
        let _ = writeln!(columns, "  {name}: {{ column: {} }}", quoted(column));
        first.get_or_insert(name);
    }
    let Some(first) = first else { return String::new() };
    format!(
        "\nWhat is the same in all rows of each owner can select or group owners. A later row that differs from the first of its owner is refused, also if the cell is empty. Everyone who may ask learns it, since such facts are not encrypted. Keep the lines that you want of these. Add to `schema.yaml`:\n\n```yaml\nmetadataAttributes:\n{facts}```\n\nand to `source.yaml`:\n\n```yaml\nmetadata:\n{columns}```\n\nIn a query, `WHERE {first} = '…'`, `GROUP BY {first}` or both stand after `BETWEEN … AND …`. A group is released only if it has as many owners as policies ask for.\n"
    )
}
