//! What was understood of a file, and how.

use crate::attribute::Attribute;
use crate::bounds::Outliers;
use crate::columns::{SortedColumns, lost};
use crate::decimal_mark;
use crate::doubts;
use crate::encoding::Encoding;
use crate::error::{self, DiscoverError};
use crate::facts::Fact;
use crate::form::Form;
use crate::hints::{Hints, OutlierTreatment};
use crate::levels;
use crate::one_owner;
use crate::owner::{self, OwnerPlan};
use crate::possible_facts;
use crate::profile::{Profile, profile};
use crate::sparse_attributes::{self, Crowd};
use crate::table::{self, Table};
use crate::tally::{Tally, tally};
use crate::times::{self, TimePlan};
use crate::totals_below::{self, TotalsBelow};
use crate::watch::Watch;
use crate::wide_file::WideFile;
use std::borrow::Cow;

/// A file is passed over for its columns, and again for its rows.
const PASSES: u64 = 2;

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
    pub left_out: Vec<(String, String)>,
    /// Whether columns are alike and seem to be of one owner each.
    pub(crate) alike: bool,
    /// The file itself, if each of its columns is one owner's. All else is of its long form.
    pub wide: Option<WideFile>,
    /// What the rows hold.
    pub tally: Tally,
    /// What a person has said of the file.
    pub(crate) hints: Hints,
    /// What is taken for granted, in sentences.
    pub notes: Vec<String>,
    /// What cannot be known and matters, in sentences.
    pub questions: Vec<String>,
}

/// What the bytes of a file are, before it is known what their owners may release of it.
///
/// # Errors
/// A [`DiscoverError`] if they hold no table of readings.
pub(crate) fn of(
    bytes: &[u8],
    hints: &Hints,
    watch: &mut dyn Watch,
) -> Result<Understanding, DiscoverError> {
    // What looks like a total and has a time after all is a row as others are.
    let found = of_text(bytes, hints, watch, true)?;
    found.map_or_else(|| of_text(bytes, hints, watch, false)?.ok_or(DiscoverError::NoRows), Ok)
}

/// The same; none if lines that look like totals were cut and have a time.
fn of_text(
    bytes: &[u8],
    hints: &Hints,
    watch: &mut dyn Watch,
    cut: bool,
) -> Result<Option<Understanding>, DiscoverError> {
    let (whole, mut table) = table_of(bytes, hints)?;
    let totals = cut.then(|| totals_below::cut(&whole, &table));
    let (text, totals) = totals.unwrap_or((&whole, TotalsBelow::default()));
    watch.expects(PASSES * text.len() as u64);
    let profile = profile(text, &table.form, &table.names, watch);
    if profile.rows == 0 {
        return Err(DiscoverError::NoRows);
    }
    check_decimal(text, &table, &profile)?;
    let time = times::find(text, &table, &profile, hints)?;
    if totals.have_times(&time, &table.form) {
        return Ok(None);
    }
    table.form.totals = totals.lines;
    let owner = owner::find(text, &table, &profile, &time, hints)?;
    let mut questions = doubts::questions(&table, &profile, (&time, owner.column.as_ref()), hints);
    questions.extend(table.form.encoding.doubt(bytes));
    let mut sorted = SortedColumns::of((text, &table, &profile), &time, &owner, hints);
    if sorted.attributes.is_empty() {
        return Err(nothing_to_measure(&sorted));
    }
    let rows = (text, &table.form);
    let facts = possible_facts::worth_a_look(&profile, &sorted, owner.column);
    let mut tally = tallied(rows, (&time, owner.column), (&mut sorted, &facts), hints, watch);
    if tally.rows == 0 {
        return Err(unread_times(&table, &time, &tally, hints));
    }
    let name = owner.column.and_then(|at| table.names.get(at)).map(String::as_str);
    questions.extend(doubts::of_rows((&time, &profile), &tally, name, hints));
    let asked = [&questions, &owner.questions, &sorted.questions].map(|own| !own.is_empty());
    if asked == [false; 3] && !sorted.answered {
        questions.extend(doubts::at_once(&tally, name, hints));
    }
    leave_parts_of_times(&mut sorted, &mut tally, hints);
    questions.extend(doubts::rounds(&sorted.attributes, &tally, owner.column, hints));
    let known = (&sorted.attributes[..], &sorted.wanted[..]);
    questions.extend(levels::asked(rows, owner.column, known, hints));
    let crowds = sparse_attributes::find(rows, (&time, owner.column), &sorted.wanted, &tally);
    describe(&mut sorted.attributes, crowds, &tally, hints);
    let owner = OwnerPlan { questions: [questions, owner.questions].concat(), ..owner };
    Ok(Some(finish((table, &profile), (time, owner), (sorted, tally), hints)))
}

/// The text, and the table that it holds.
fn table_of<'b>(bytes: &'b [u8], hints: &Hints) -> Result<(Cow<'b, str>, Table), DiscoverError> {
    let (encoding, text) = decoded(bytes)?;
    let mut table = table::find(&text, hints.decimal)?;
    table.form.encoding = encoding;
    hints.check(&table.names)?;
    Ok((text, table))
}

/// Counts all rows, and again once numbers far from all others are left out.
fn tallied(
    rows: (&str, &Form),
    (time, owner): (&TimePlan, Option<usize>),
    (sorted, facts): (&mut SortedColumns, &[Fact]),
    hints: &Hints,
    watch: &mut dyn Watch,
) -> Tally {
    let found = tally(rows, (time, owner), (&sorted.wanted, facts), watch);
    let leaves_out = hints.outliers == Some(OutlierTreatment::LeaveOut) && found.rows > 0;
    if !leaves_out || !leave_outliers(sorted, &found) {
        return found;
    }
    watch.expects(rows.0.len() as u64);
    tally(rows, (time, owner), (&sorted.wanted, facts), watch)
}

fn decoded(bytes: &[u8]) -> Result<(Encoding, Cow<'_, str>), DiscoverError> {
    error::check_bytes(bytes)?;
    let encoding = Encoding::of(bytes);
    let text = encoding.decode(bytes);
    error::check_text(&text)?;
    Ok((encoding, text))
}

impl Understanding {
    /// Takes a column with one value as the owner.
    fn belongs_to(&mut self, name: String) {
        self.categories.retain(|(own, _)| *own != name);
        self.left_out.retain(|(own, _)| *own != name);
        let about = format!(" of `{name}` look");
        self.notes.retain(|note| note != owner::NO_OWNER && !note.contains(&about));
        let says = "has the same value in all rows, which is taken as their one owner.";
        self.notes.insert(0, format!("`{name}` {says}"));
        self.owner = Some(name);
    }
}

/// No column holds what can be measured; the first open point may say why.
fn nothing_to_measure(sorted: &SortedColumns) -> DiscoverError {
    let open = sorted.questions.iter().chain(&sorted.notes).next();
    let found = open.map_or_else(String::new, |says| format!(": {}", says.trim_end_matches('.')));
    DiscoverError::NothingToMeasure { found }
}

/// Says of each attribute whom its sums are over, what its values add up to, and how they lie and move.
fn describe(attributes: &mut [Attribute], crowds: Vec<Crowd>, tally: &Tally, hints: &Hints) {
    let kept = hints.outliers == Some(OutlierTreatment::Keep);
    let span = tally.span.map_or(0, |(first, last)| last - first);
    for ((attribute, total), crowd) in attributes.iter_mut().zip(&tally.totals).zip(crowds) {
        attribute.crowd = crowd;
        attribute.total = total.clone();
        attribute.said = hints.measure.contains(&attribute.column);
        attribute.leaves_out = hints.outliers == Some(OutlierTreatment::LeaveOut);
        if !attribute.said {
            attribute.course = total.steps.course(&attribute.column, tally.owners, span);
        }
        attribute.outliers = if kept { Outliers::default() } else { total.spread.outliers() };
    }
}

/// Refuses a decimal mark under which numbers no longer read.
fn check_decimal(text: &str, table: &Table, forced: &Profile) -> Result<(), DiscoverError> {
    let Some(free) = &table.free_marks else { return Ok(()) };
    let free = profile(text, &table.form.with_marks(free.clone()), &table.names, &mut ());
    let columns = lost(forced, &free);
    if columns.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = columns.iter().take(8).map(|name| format!("`{name}`")).collect();
    Err(DiscoverError::DecimalLoses {
        mark: decimal_mark::text(table.form.decimal),
        columns: names.join(", "),
    })
}

/// Why no row has a time that can be read.
fn unread_times(table: &Table, time: &TimePlan, tally: &Tally, hints: &Hints) -> DiscoverError {
    if tally.bad_time == 0 {
        return DiscoverError::NoRows;
    }
    let names = time.columns.iter().map(|at| format!("`{}`", table.names[*at]));
    let columns = names.collect::<Vec<_>>().join(" and ");
    let looks = match &time.looks_like {
        Some(formats) if hints.time_format.is_some() => format!("; they look like `{formats}`"),
        _ => String::new(),
    };
    DiscoverError::FormatReadsNothing { format: time.format(), columns, looks }
}

/// Leaves out columns that repeat a part of the row's time, unless there is nothing else.
fn leave_parts_of_times(sorted: &mut SortedColumns, tally: &mut Tally, hints: &Hints) {
    let parts: Vec<Option<&str>> = sorted
        .attributes
        .iter()
        .zip(&tally.totals)
        .map(|(own, total)| total.repeated.part().filter(|_| !hints.measure.contains(&own.column)))
        .collect();
    if parts.iter().all(Option::is_some) {
        return;
    }
    for (at, part) in parts.into_iter().enumerate().rev() {
        let Some(part) = part else { continue };
        let column = sorted.attributes.remove(at).column;
        sorted.wanted.remove(at);
        tally.totals.remove(at);
        sorted.left_out.push((column, format!("it is the {part} of the row's time")));
    }
}

/// Takes numbers far from all others for missing ones; whether there are any.
fn leave_outliers(sorted: &mut SortedColumns, tally: &Tally) -> bool {
    let mut some = false;
    let attributes = sorted.attributes.iter_mut().zip(&mut sorted.wanted);
    for ((attribute, wanted), total) in attributes.zip(&tally.totals) {
        let outliers = total.spread.outliers();
        for (text, count) in outliers.texts {
            some = true;
            wanted.missing.insert(text.clone());
            attribute.sentinels.insert(text, count);
        }
    }
    some
}

fn finish(
    (table, profile): (Table, &Profile),
    (time, owner): (TimePlan, OwnerPlan),
    (sorted, tally): (SortedColumns, Tally),
    hints: &Hints,
) -> Understanding {
    let Table { mut form, names, has_header, notes: noticed, .. } = table;
    let SortedColumns { attributes, categories, left_out, notes, questions, alike, .. } = sorted;
    form.untimed = tally.untimed > 0;
    let mut found = Understanding {
        form,
        names,
        owner: None,
        time,
        attributes,
        categories,
        left_out,
        alike,
        wide: None,
        tally,
        hints: hints.clone(),
        notes: [noticed, notes, owner.notes].concat(),
        questions: [owner.questions, questions].concat(),
    };
    found.owner = owner.column.and_then(|at| found.names.get(at).cloned());
    if !has_header {
        found.notes.push(
            "No line names the columns; they are called `column 1`, `column 2` and so on."
                .to_owned(),
        );
    }
    found.say();
    let one = one_owner::find(&found.attributes, profile, &found.time, hints);
    if let Some(name) = one.filter(|_| found.owner.is_none() && !found.alike && !found.asks_whose())
    {
        found.belongs_to(name);
    }
    found
}
