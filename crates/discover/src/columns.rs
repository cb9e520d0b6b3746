//! What becomes of each column: measured, a category, part of the time, the owner's, or left out.

use crate::attribute::Attribute;
use crate::codes::MAX_SURE_CODES;
use crate::column_words::{
    is_of_position, look_like_codes, may_be_clock_times, may_be_times, names_things_by_numbers,
    not_numbers, one_for_each,
};
use crate::doubts::DEGREES;
use crate::hints::{Hints, OutlierTreatment};
use crate::id_words::{is_id, may_be_count};
use crate::near_numbers::{is_joined, is_marked, is_sized};
use crate::number::Decimal;
use crate::owner::OwnerPlan;
use crate::owner_words::{NUMBERS, owner_score};
use crate::plural::{counted, verb};
use crate::profile::{Column, Profile};
use crate::row_numbers::is_row_number;
use crate::sentinels::{Open, counts_money};
use crate::sparse_attributes::Crowd;
use crate::steps::Course;
use crate::table::Table;
use crate::tally::{CountedColumn, Total, Values};
use crate::times::TimePlan;
use crate::wide_columns::Look;
use crate::words::{CODES, LENGTHS, TIMES, has, schema_name, worded, words};
use crate::{codes, kinds, lengths, sentinels, time_parts, units, wide_columns};
use std::collections::{BTreeMap, BTreeSet};

/// Why a degree of latitude or longitude is not measured.
const POSITION: &str = "it is a position";

/// Columns that are asked about if they may count: more of them belong to what is measured beside them.
const MAX_ASKED: usize = 4;

/// Columns, sorted by what they are.
#[derive(Default)]
pub(crate) struct SortedColumns {
    pub wanted: Vec<CountedColumn>,
    pub attributes: Vec<Attribute>,
    pub categories: Vec<(String, u64)>,
    pub left_out: Vec<(String, String)>,
    pub notes: Vec<String>,
    pub questions: Vec<String>,
    /// Whether columns are alike and seem to be of one owner each.
    pub alike: bool,
    /// Whether a person said what to do with what tells rows of one owner and time apart.
    pub answered: bool,
}

impl SortedColumns {
    /// Sorts all columns but those of time and owner.
    pub(crate) fn of(
        (text, table, profile): (&str, &Table, &Profile),
        time: &TimePlan,
        owner: &OwnerPlan,
        hints: &Hints,
    ) -> SortedColumns {
        let mut sorted = SortedColumns::default();
        let (mut codes, mut said) = (Vec::new(), Vec::new());
        let parts = time_parts::of(profile);
        for (at, column) in profile.columns.iter().enumerate() {
            if time.columns.contains(&at) || owner.column == Some(at) {
                continue;
            }
            if hints.leave_out.contains(&column.name) {
                sorted.left_out.push((column.name.clone(), "you said so".to_owned()));
            } else if hints.measure.contains(&column.name) && column.numbers > 0 {
                sorted.attribute(at, column, Values::Number);
            } else if let Some(says) = parts.get(&at) {
                sorted.left_out.push((column.name.clone(), (*says).to_owned()));
            } else if !is_row_number(at, column) && codes::are(table, column)
                || owner.parts.contains(&at)
                || (owner.constant.contains(&at) && !is_amount((table, at), column))
            {
                codes.push(at);
            } else {
                said.extend(hints.measure.contains(&column.name).then_some(&column.name));
                sorted.column(profile, at);
            }
        }
        sorted.codes(&codes, (table, profile), owner, hints);
        sorted.units(table, profile);
        sorted.judge((table, profile), hints);
        if sorted.attributes.is_empty() {
            sorted.positions(profile);
        }
        if sorted.attributes.is_empty() {
            sorted.count_texts(profile, hints);
        }
        sorted.without_numbers(&said);
        let known = (&sorted.attributes[..], &sorted.categories[..]);
        let apart = (owner.column, &owner.kinds[..], &owner.parts[..]);
        let kinds = kinds::questions(known, (text, &table.form, profile), apart, hints);
        sorted.questions.extend(kinds.questions);
        sorted.answered = kinds.answered;
        sorted.side_by_side(profile, owner, hints);
        sorted.units(table, profile);
        sorted.name();
        sorted
    }

    /// Looks at columns side by side, which may be one owner's each.
    fn side_by_side(&mut self, profile: &Profile, owner: &OwnerPlan, hints: &Hints) {
        let columns = (&self.attributes[..], &self.wanted[..]);
        match wide_columns::look(columns, profile, owner.column, hints) {
            Some(Look::Alike) => self.alike = true,
            Some(Look::AlikeButTotals(sums, question)) => {
                self.alike = true;
                self.leave_sums(&sums);
                self.questions.push(question);
            }
            Some(Look::Open(question)) => self.questions.push(question),
            None => {}
        }
    }

    fn column(&mut self, profile: &Profile, at: usize) {
        let column = &profile.columns[at];
        let left = |why: &str| (column.name.clone(), why.to_owned());
        if column.filled == 0 {
            self.left_out.push(left("it is empty"));
        } else if is_row_number(at, column) {
            self.left_out.push(left("it numbers the rows"));
        } else if column.may_be_times() && !has(&column.name, TIMES) {
            // Beside a time, one without a name is another.
            let named = !column.name.starts_with("column ");
            self.questions.extend(named.then(|| may_be_times(&column.name)));
            self.left_out.push(left("it may hold times"));
        } else if column.holds_times() {
            self.left_out.push(left("it may hold times"));
        } else if column.holds_clock_times() {
            self.notes.push(may_be_clock_times(&column.name));
            self.left_out.push(left("it may hold times of day"));
        } else if let Some(says) = time_parts::alone(column) {
            self.left_out.push(left(says));
        } else if column.holds_offsets() {
            self.left_out.push(left("it holds offsets from UTC"));
        } else if column.is_number() && is_position(column) {
            self.notes.push(is_of_position(&column.name));
            self.left_out.push(left(POSITION));
        } else if column.is_truth() && column.distinct() > 1 {
            self.attribute(at, column, Values::Boolean);
        } else if column.is_number() {
            self.attribute(at, column, Values::Number);
        } else if let Some(says) = lengths::left_out(column) {
            self.notes.push(says);
            self.left_out.push(left(lengths::WHY));
        } else if column.times() * 2 > column.filled {
            self.left_out.push(left("it holds times"));
        } else {
            // What has one value measures nothing, and what identifies may have digits.
            let names = is_id(&column.name) || owner_score(&column.name) > 0;
            let says = not_measured(column).filter(|_| column.distinct() > 1 && !names);
            let likely = column.numbers * 2 >= column.filled
                || like_numbers(column) * 2 > column.texts.len();
            if likely { &mut self.questions } else { &mut self.notes }.extend(says);
            if column.distinct() * 2 <= column.filled && column.distinct() <= 10_000 {
                self.categories.push((column.name.clone(), column.distinct()));
            } else {
                self.left_out.push(left("it holds texts that hardly repeat"));
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
            self.questions.push(format!(
                "{} of `{}` {} like {} among numbers and would be refused. A spreadsheet may have turned numbers into dates. Correct them in the file, or use `--leave-out {}` to leave the column out.",
                counted(times, "cell"),
                column.name,
                verb(times, "looks", "look"),
                verb(times, "a time", "times"),
                worded(&column.name)
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
            marks: BTreeSet::new(),
            texts,
            numeric_texts: column.numeric_texts(),
            outliers: crate::bounds::Outliers::default(),
            course: Course::default(),
            crowd: Crowd::default(),
            said: false,
            leaves_out: false,
        });
    }

    /// Numbers that name something are no measurements. If the file has nothing else, they are
    /// measured anyway.
    fn codes(
        &mut self,
        codes: &[usize],
        (table, profile): (&Table, &Profile),
        owner: &OwnerPlan,
        hints: &Hints,
    ) {
        let alone = self.attributes.is_empty();
        let counts = |at: &&usize| may_be_count(&profile.columns[**at].name);
        let many_counts = codes.iter().filter(counts).count() > MAX_ASKED;
        for at in codes {
            let column = &profile.columns[*at];
            let name = &column.name;
            if column.distinct() == column.filled {
                let open = column.is_long() && !is_id(name);
                self.questions.extend(open.then(|| look_like_codes(name, false)));
                self.left_out.push((name.clone(), "it differs in each row".to_owned()));
                continue;
            }
            if alone && !owner.parts.contains(at) && !is_id(name) {
                self.attribute(*at, column, Values::Number);
                self.notes.push(format!("The numbers of `{name}` look like codes. The file has nothing else to measure, so they are counted and added up, but only their count is meaningful."));
                continue;
            }
            self.categories.push((name.clone(), column.distinct()));
            let names_things =
                owner_score(name) > 0 || owner.parts.contains(at) || codes::is_nameless(column);
            let open = owner.column.is_none() && hints.owner.is_none();
            if names_things && column.distinct() > 1 && (open || owner.parts.contains(at)) {
                self.questions.push(names_things_by_numbers(name, column.distinct()));
            } else {
                // Codes are few, and a score such as one of quality is not. One number for each
                // owner may be a salary or a population.
                let many = column.distinct() > MAX_SURE_CODES && column.written.plus == 0;
                let constant = owner.constant.contains(at);
                let describes = constant && codes::describe_owners(column);
                let classes = codes::is_class(name);
                let may_measure = if constant { !has(name, NUMBERS) } else { many && !classes };
                let unsure = !constant && !many_counts && may_be_count(name);
                let stated = units::are_codes(&table.above, name);
                let open = !stated && !describes && (unsure || (may_measure && !is_id(name)));
                let may_own = unsure && hints.owner.is_none();
                let says = match describes {
                    true => one_for_each(name),
                    false => look_like_codes(name, may_own),
                };
                if open { &mut self.questions } else { &mut self.notes }.push(says);
            }
        }
    }

    /// Leaves numbers out that stand for missing ones.
    fn judge(&mut self, (table, profile): (&Table, &Profile), hints: &Hints) {
        let columns: Vec<&Column> =
            self.wanted.iter().map(|wanted| &profile.columns[wanted.column]).collect();
        let units: Vec<Option<&str>> =
            self.attributes.iter().map(|own| own.unit.as_deref()).collect();
        let verdicts = sentinels::judge(&columns, &units, &table.above);
        for ((attribute, wanted), verdict) in
            self.attributes.iter_mut().zip(&mut self.wanted).zip(verdicts)
        {
            if wanted.values != Values::Number {
                continue;
            }
            let mut left_out = verdict.left_out;
            for open in verdict.open {
                match hints.outliers {
                    Some(OutlierTreatment::Keep) => drop(left_out.remove(&open.text)),
                    Some(OutlierTreatment::LeaveOut) => {
                        drop(left_out.insert(open.text, open.cells))
                    }
                    None if open.asked => {
                        self.questions.push(may_be_missing(&attribute.column, &open));
                    }
                    None => attribute.marks.extend(open.cells.into_keys()),
                }
            }
            attribute.sentinels = left_out.into_values().flatten().collect();
            wanted.missing.extend(attribute.sentinels.keys().cloned());
            for odd in verdict.odd {
                self.notes.push(format!(
                    "`{}` has the number {odd}, which is far from all others or the only one below zero; it is treated as a number. Name it under `missing` in source.yaml if it stands for a missing value.",
                    attribute.column
                ));
            }
        }
    }

    /// In a file with nothing else to measure, positions are, if a person wants that.
    fn positions(&mut self, profile: &Profile) {
        let left = |own: &Column| {
            self.left_out.iter().any(|(name, why)| *name == own.name && why == POSITION)
        };
        let all: Vec<(usize, &Column)> =
            profile.columns.iter().enumerate().filter(|(_, own)| left(own)).collect();
        let Some((_, first)) = all.first() else { return };
        let (name, word) = (&first.name, worded(&first.name));
        self.questions.push(format!("The file has nothing to measure but positions, such as `{name}`, and neither their sum nor the mean of a crowd's says anything. Use `--measure {word}` if that is wanted, or add a column to measure."));
        self.left_out.retain(|(_, why)| why != POSITION);
        for (at, column) in all {
            self.attribute(at, column, Values::Number);
        }
    }

    /// In a file with nothing to measure, texts can at least be counted.
    fn count_texts(&mut self, profile: &Profile, hints: &Hints) {
        let said = self.categories.iter().find(|(name, _)| hints.measure.contains(name));
        let Some((name, _)) = said.or(self.categories.first()).cloned() else { return };
        let at = profile.columns.iter().position(|column| column.name == name).unwrap_or(0);
        self.categories.retain(|(category, _)| *category != name);
        self.attribute(at, &profile.columns[at], Values::Text);
        let says = format!("No column holds numbers to measure, so `{name}` is counted.");
        let open = |column: &&Column| !hints.leave_out.contains(&column.name);
        let may_be = |column: &Column| {
            not_measured(column).is_some() || (column.times() > 0 && has(&column.name, LENGTHS))
        };
        let likely = profile.columns.iter().filter(open).any(may_be);
        if likely && !hints.measure.contains(&name) {
            let remedy = format!("Use `--measure {}` if that is right.", worded(&name));
            self.questions.push(format!("{says} {remedy}"));
        } else {
            self.notes.push(says);
        }
    }

    /// Asks about columns without numbers that a person wants to measure. Of texts, one can be counted.
    fn without_numbers(&mut self, said: &[&String]) {
        let lost = |name: &&&String| !self.attributes.iter().any(|own| own.column == ***name);
        let asked: Vec<String> = said.iter().filter(lost).map(|name| not_numbers(name)).collect();
        self.questions.extend(asked);
    }

    /// States the units. This is done again once columns have come or gone, since lines above the table
    /// may give a unit to the only one.
    fn units(&mut self, table: &Table, profile: &Profile) {
        let beside = columns_of_units(table, profile);
        let is_code = |own: &Attribute| has(&own.column, CODES);
        let is_only = self.attributes.iter().filter(|own| !is_code(own)).count() == 1;
        for (attribute, wanted) in self.attributes.iter_mut().zip(&self.wanted) {
            let below = table.units.get(wanted.column).and_then(|cell| units::of_cell(cell));
            let within = table.cell_units.get(&wanted.column).cloned();
            let beside = beside.get(&wanted.column).cloned();
            let only = is_only && !is_code(attribute);
            attribute.unit = units::of_name(&attribute.column)
                .or(below)
                .or(within)
                .or_else(|| profile.columns[wanted.column].written.unit())
                .or(beside)
                .or_else(|| units::of_lines(&table.above, &attribute.column, only))
                .or_else(|| units::whole_name(&attribute.column));
        }
    }

    /// Leaves out columns that may be the sums of those beside them.
    fn leave_sums(&mut self, sums: &[String]) {
        let kept = |own: &Attribute| !sums.contains(&own.column);
        let mut keep = self.attributes.iter().map(kept).collect::<Vec<_>>().into_iter();
        self.wanted.retain(|_| keep.next().unwrap_or(true));
        self.attributes.retain(kept);
        let why = "it may be the sum of the columns beside it";
        self.left_out.extend(sums.iter().map(|name| (name.clone(), why.to_owned())));
    }

    fn name(&mut self) {
        let mut taken = Vec::new();
        for attribute in &mut self.attributes {
            attribute.name = schema_name(short(&attribute.column), &mut taken);
        }
    }
}

/// Words of columns of positions in meters or feet.
const COORDINATES: &[&str] = &[
    "coordinate",
    "coordinates",
    "coord",
    "koordinate",
    "easting",
    "northing",
    "hochwert",
    "rechtswert",
];

/// Whether a column has degrees of latitude or longitude, or other coordinates.
fn is_position(column: &Column) -> bool {
    let within = |(least, most): (Decimal, Decimal)| {
        let of = |digits| Decimal { digits, places: 0 };
        least >= of(-180) && most <= of(360)
    };
    // `lat_ms` is a delay.
    let mut words = words(&column.name);
    words.pop_if(|word| matches!(word.as_str(), "deg" | "degree" | "degrees" | "wgs84"));
    // `Longitude (x)`.
    words.pop_if(|word| matches!(word.as_str(), "x" | "y"));
    if words.iter().any(|word| COORDINATES.contains(&word.as_str())) {
        return true;
    }
    let is_last = words.last().is_some_and(|word| DEGREES.contains(&word.as_str()));
    is_last && column.whole_range().is_some_and(within)
}

/// Whether numbers are amounts by what stands around them, by their name or by their unit.
fn is_amount((table, at): (&Table, usize), column: &Column) -> bool {
    let below = table.units.get(at).and_then(|cell| units::of_cell(cell));
    let unit = units::of_name(&column.name).or(below);
    counts_money(column) || unit.is_some() || table.cell_units.contains_key(&at)
}

/// What to say of a column of texts that may hold measurements.
fn not_measured(column: &Column) -> Option<String> {
    let (name, word) = (&column.name, worded(&column.name));
    if column.numbers * 10 >= column.filled && column.filled > 0 {
        let (numbers, texts) = (column.numbers, column.filled - column.numbers);
        return Some(format!(
            "`{name}` holds {numbers} numbers and {texts} other texts; it is not measured. Clear the texts if they stand for missing values, use `--measure {word}` to leave them out, or `--leave-out {word}` if it holds no measurements."
        ));
    }
    let is_like = |text: &&String| {
        let digits = text.trim_start_matches(['-', '+', '<', '>', '~', ' ']);
        digits.starts_with(|first: char| first.is_ascii_digit()) && !is_joined(digits)
    };
    let like = column.texts.keys().filter(is_like).count().max(like_numbers(column));
    (like * 2 > column.texts.len()).then(|| {
        format!(
            "`{name}` holds texts that look like numbers, perhaps with units or signs around them; it is not measured. Write them as numbers alone if they are measurements, or use `--leave-out {word}` if not."
        )
    })
}

/// The question whether a number stands for a missing one.
fn may_be_missing(column: &str, open: &Open) -> String {
    let guess = if open.left_out { "left out" } else { "taken as a number" };
    let count: u64 = open.cells.values().sum();
    let text = open.cells.keys().next().unwrap_or(&open.text);
    format!(
        "`{column}` has the number {text} in {}. It may stand for a missing value; it is {guess}. Use `--outliers leave-out` if it stands for a missing one, or `--outliers keep` if it is a number.",
        counted(count, "cell")
    )
}

/// How many different texts of a column are numbers in a form that is not read: `1.2K`, `'12`,
/// `12.5 E`, or with other digits than 0 to 9.
fn like_numbers(column: &Column) -> usize {
    let varied = column.distinct() > MAX_SURE_CODES;
    column.texts.keys().filter(|text| is_sized(text) || (varied && is_marked(text))).count()
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

/// Units in a column of their own, right behind the numbers.
fn columns_of_units(table: &Table, profile: &Profile) -> BTreeMap<usize, String> {
    let mut found = BTreeMap::new();
    for at in 1..profile.columns.len() {
        let column = &profile.columns[at];
        let name = table.names[at].to_lowercase();
        let named =
            name.starts_with("unit") || name.starts_with("einheit") || name.ends_with("unit");
        let number = |at: &usize| profile.columns.get(*at).is_some_and(Column::is_number);
        let near = Some(at - 1).filter(number).or(Some(at + 1).filter(number));
        if let Some(near) = near
            && named
            && column.distinct() == 1
            && column.texts.len() == 1
        {
            found.extend(column.texts.keys().next().map(|unit| (near, unit.trim().to_owned())));
        }
    }
    found
}

/// Whether what a person says stands before decimals makes numbers unreadable.
pub(crate) fn lost(forced: &Profile, free: &Profile) -> Vec<String> {
    let pairs = forced.columns.iter().zip(&free.columns);
    let lost = pairs.filter(|(own, free)| free.is_number() && own.numbers < free.numbers);
    lost.map(|(_, free)| free.name.clone()).collect()
}
