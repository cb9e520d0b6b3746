//! What was understood of a file, and how.

use crate::encoding::Encoding;
use crate::error::{self, DiscoverError};
use crate::form::Form;
use crate::owner::{self, OwnerPlan};
use crate::profile::{Column, Profile, profile};
use crate::sentinels;
use crate::table::{self, Table};
use crate::tally::{CountedColumn, Tally, Total, Values, tally};
use crate::times::{self, TimePlan};
use crate::words::{has, schema_name};
use crate::{Hints, units};
use std::collections::BTreeMap;

/// One attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The column's name in the file.
    pub column: String,
    /// The name in schema and queries.
    pub name: String,
    /// What its cells hold.
    pub values: Values,
    /// The unit, if the file says it.
    pub unit: Option<String>,
    /// Its count and sum.
    pub total: Total,
    /// Numbers that stand for a missing one, with their count.
    pub sentinels: BTreeMap<String, u64>,
    /// Texts among its numbers, which are taken as missing, with their count.
    pub texts: BTreeMap<String, u64>,
}

/// All that was understood.
#[derive(Clone, Debug)]
pub struct Understanding {
    /// How the file is written.
    pub form: Form,
    /// The names of its columns.
    pub names: Vec<String>,
    /// How times are read.
    pub time: TimePlan,
    /// The owner's column.
    pub owner: Option<String>,
    /// What can be measured.
    pub attributes: Vec<Attribute>,
    /// Columns of texts that repeat, with the number of their values.
    pub categories: Vec<(String, u64)>,
    /// Columns that hold nothing to measure, and why.
    pub left_out: Vec<(String, &'static str)>,
    /// What the rows hold.
    pub tally: Tally,
    /// What is taken for granted, in sentences.
    pub notes: Vec<String>,
    /// What cannot be known and matters, in sentences.
    pub questions: Vec<String>,
}

/// Understands the bytes of a file.
///
/// # Errors
/// A [`DiscoverError`] if they hold no table of readings.
pub fn understand(bytes: &[u8], hints: &Hints) -> Result<Understanding, DiscoverError> {
    error::check_bytes(bytes)?;
    let encoding = Encoding::of(bytes);
    let text = encoding.decode(bytes);
    error::check_text(&text)?;
    let mut table = table::find(&text)?;
    table.form.encoding = encoding;
    if let Some(decimal) = hints.decimal {
        table.form.decimal = decimal;
        table.open_marks = None;
        if table.form.thousands == Some(decimal) {
            table.form.thousands = None;
        }
    }
    let profile = profile(&text, &table.form, &table.names);
    if profile.rows == 0 {
        return Err(DiscoverError::NoRows);
    }
    let time = times::find(&text, &table, &profile, hints)?;
    let owner = owner::find(&text, &table, &profile, &time, hints)?;
    let sorted = Sorted::of(&table, &profile, &time, &owner);
    if sorted.attributes.is_empty() {
        return Err(DiscoverError::NothingToMeasure);
    }
    let tally = tally(&text, &table.form, &time, owner.column, &sorted.wanted);
    if tally.rows == 0 {
        return Err(DiscoverError::NoRows);
    }
    Ok(finish(table, time, owner, sorted, tally))
}

/// Columns, sorted by what they are.
struct Sorted {
    wanted: Vec<CountedColumn>,
    attributes: Vec<Attribute>,
    categories: Vec<(String, u64)>,
    left_out: Vec<(String, &'static str)>,
    notes: Vec<String>,
}

impl Sorted {
    fn of(table: &Table, profile: &Profile, time: &TimePlan, owner: &OwnerPlan) -> Sorted {
        let mut sorted = Sorted {
            wanted: Vec::new(),
            attributes: Vec::new(),
            categories: Vec::new(),
            left_out: Vec::new(),
            notes: Vec::new(),
        };
        for (at, column) in profile.columns.iter().enumerate() {
            let used = time.columns.contains(&at) || owner.column == Some(at);
            if !used {
                sorted.column(at, column);
            }
        }
        sorted.judge(profile);
        if sorted.attributes.is_empty() {
            sorted.count_texts(profile);
        }
        let units = columns_of_units(table, profile);
        const CODES: &[&str] = &["code", "type", "flag", "quality", "status", "qc"];
        let is_only = sorted.attributes.iter().filter(|a| !has(&a.column, CODES)).count() == 1;
        for (attribute, wanted) in sorted.attributes.iter_mut().zip(&sorted.wanted) {
            let below = table.units.get(wanted.column).and_then(|cell| units::of_cell(cell));
            let beside = units.get(&wanted.column).cloned();
            attribute.unit = units::of_name(&attribute.column).or(below).or(beside).or_else(|| {
                units::of_lines(
                    &table.above,
                    &attribute.column,
                    is_only && !has(&attribute.column, CODES),
                )
            });
        }
        sorted.name();
        sorted
    }

    fn column(&mut self, at: usize, column: &Column) {
        let left = |why| (column.name.clone(), why);
        if column.filled == 0 {
            self.left_out.push(left("it is empty"));
        } else if column.numbers_rows() && (at == 0 || numbers_by_name(&column.name)) {
            self.left_out.push(left("it numbers the rows"));
        } else if column.may_be_times() {
            self.left_out.push(left("it may hold times"));
        } else if column.is_number() {
            self.attribute(at, column, Values::Number);
        } else if column.booleans * 10 >= column.filled * 9 && column.distinct() > 1 {
            self.attribute(at, column, Values::Boolean);
        } else if column.times() * 2 > column.filled {
            self.left_out.push(left("it holds times"));
        } else {
            self.notes.extend(not_measured(column));
            if column.distinct() * 2 <= column.filled && column.distinct() <= 10_000 {
                self.categories.push((column.name.clone(), column.distinct()));
            } else {
                self.left_out.push(left("it holds texts"));
            }
        }
    }

    fn attribute(&mut self, at: usize, column: &Column, values: Values) {
        let texts: BTreeMap<String, u64> = match values {
            Values::Number => {
                column.texts.iter().map(|(text, count)| (text.clone(), *count)).collect()
            }
            _ => BTreeMap::new(),
        };
        let times = column.times();
        if times > 0 && values == Values::Number {
            self.notes.push(format!(
                "{times} cells of `{}` look like times among numbers; they are left out.",
                column.name
            ));
        }
        self.wanted.push(CountedColumn {
            column: at,
            values,
            missing: texts.keys().cloned().collect(),
        });
        self.attributes.push(Attribute {
            column: column.name.clone(),
            name: String::new(),
            values,
            unit: None,
            total: Total::default(),
            sentinels: BTreeMap::new(),
            texts,
        });
    }

    /// Leaves numbers out that stand for missing ones.
    fn judge(&mut self, profile: &Profile) {
        let columns: Vec<&Column> =
            self.wanted.iter().map(|wanted| &profile.columns[wanted.column]).collect();
        let verdicts = sentinels::judge(&columns);
        for ((attribute, wanted), verdict) in
            self.attributes.iter_mut().zip(&mut self.wanted).zip(verdicts)
        {
            if wanted.values != Values::Number {
                continue;
            }
            wanted.missing.extend(verdict.left_out.keys().cloned());
            attribute.sentinels = verdict.left_out;
            for odd in verdict.odd {
                self.notes.push(format!(
                    "`{}` has the number {odd}, far from all others or below zero alone; it is taken as a number. Name it under `missing` in source.yaml if it stands for a missing value.",
                    attribute.column
                ));
            }
        }
    }

    /// In a file with nothing to measure, texts can at least be counted.
    fn count_texts(&mut self, profile: &Profile) {
        let Some((name, _)) = self.categories.first().cloned() else { return };
        let at = profile.columns.iter().position(|column| column.name == name).unwrap_or(0);
        self.attribute(at, &profile.columns[at], Values::Text);
        self.notes.push(format!("No column holds numbers to measure, so `{name}` is counted."));
    }

    fn name(&mut self) {
        let mut taken = Vec::new();
        for attribute in &mut self.attributes {
            attribute.name = schema_name(short(&attribute.column), &mut taken);
        }
    }
}

/// What to say of a column of texts that may hold measurements.
fn not_measured(column: &Column) -> Option<String> {
    let name = &column.name;
    if column.numbers * 10 >= column.filled {
        let (numbers, texts) = (column.numbers, column.filled - column.numbers);
        return Some(format!(
            "`{name}` holds {numbers} numbers and {texts} other texts; it is not measured. If the texts stand for missing values, clear these cells and start again."
        ));
    }
    let is_like = |text: &&String| {
        let digits = text.trim_start_matches(['-', '+', '<', '>', '~', ' ']);
        digits.starts_with(|first: char| first.is_ascii_digit())
    };
    let like = column.texts.keys().filter(is_like).count();
    (like * 2 > column.texts.len()).then(|| {
        format!(
            "`{name}` holds texts that begin with numbers, perhaps with units behind them; it is not measured."
        )
    })
}

/// Whether a name says that its column numbers the rows.
fn numbers_by_name(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "index",
        "idx",
        "no",
        "nr",
        "row",
        "rownumber",
        "record",
        "recno",
        "seq",
        "sequence",
        "lfd",
        "unnamed",
    ];
    name.starts_with("column ") || has(name, NAMES)
}

/// A column's name without its unit and without what stands in brackets behind it.
fn short(column: &str) -> &str {
    if units::of_name(column).is_none() {
        return column;
    }
    let before = column.split(['[', '(']).next().unwrap_or(column).trim();
    let before = before.rsplit_once(", ").map_or(before, |(left, _)| left);
    if before.chars().any(char::is_alphanumeric) { before } else { column }
}

/// Units that stand in a column of their own, right behind the numbers.
fn columns_of_units(table: &Table, profile: &Profile) -> BTreeMap<usize, String> {
    let mut found = BTreeMap::new();
    for at in 1..profile.columns.len() {
        let column = &profile.columns[at];
        let name = table.names[at].to_lowercase();
        let named =
            name.starts_with("unit") || name.starts_with("einheit") || name.ends_with("unit");
        if named && column.distinct() == 1 && column.texts.len() == 1 {
            found.extend(column.texts.keys().next().map(|unit| (at - 1, unit.trim().to_owned())));
        }
    }
    found
}

fn finish(
    table: Table,
    time: TimePlan,
    owner: OwnerPlan,
    sorted: Sorted,
    tally: Tally,
) -> Understanding {
    let Table { mut form, names, open_marks, has_header, notes: noticed, .. } = table;
    let Sorted { mut attributes, categories, left_out, notes, .. } = sorted;
    for (attribute, total) in attributes.iter_mut().zip(&tally.totals) {
        attribute.total = total.clone();
    }
    form.untimed = tally.untimed > 0;
    let mut found = Understanding {
        form,
        names,
        owner: None,
        time,
        attributes,
        categories,
        left_out,
        tally,
        notes: [noticed, notes, owner.notes].concat(),
        questions: [open_marks.into_iter().collect(), owner.questions].concat(),
    };
    found.owner = owner.column.and_then(|at| found.names.get(at).cloned());
    if !has_header {
        found.notes.push(
            "No line names the columns; they are called `column 1`, `column 2` and so on."
                .to_owned(),
        );
    }
    found.say();
    found
}
