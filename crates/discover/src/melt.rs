//! A file of which each column is one owner's, as a long one: a row for each reading.

use crate::DiscoverError;
use crate::cells::Delimiter;
use crate::form::MissingTexts;
use crate::hints::Hints;
use crate::scan::{ScannedRow, scan};
use crate::tally::Values;
use crate::totals_below;
use crate::understanding::{self, Understanding};
use crate::watch::Watch;
use crate::wide_file::WideFile;

/// What the readings are of, unless a person says it.
const VALUE: &str = "value";
/// The column of the owners.
const STREAM: &str = "column";

/// Understands a file again, of which each column of numbers is one owner's.
///
/// # Errors
/// A [`DiscoverError`] if these hold no readings.
pub(crate) fn of(
    bytes: &[u8],
    first: Understanding,
    hints: &Hints,
    watch: &mut dyn Watch,
) -> Result<Understanding, DiscoverError> {
    let numbers = first.attributes.iter().filter(|own| own.values != Values::Text);
    let place = |name: &String| first.names.iter().position(|own| own == name);
    let streams: Vec<usize> = numbers.filter_map(|own| place(&own.column)).collect();
    let (Some(least), Some(most)) = (streams.first(), streams.last()) else {
        return Err(DiscoverError::NothingToMeasure { found: String::new() });
    };
    let ends = (first.names[*least].clone(), first.names[*most].clone());
    let value = hints.wide.as_deref().unwrap_or(VALUE);
    let value = with_unit(value, &first);
    let long = melted(&first.form.encoding.decode(bytes), &first, &streams, &value);
    let asked = Hints {
        owner: Some(STREAM.to_owned()),
        wide: None,
        time: first.time.columns.iter().map(|at| first.names[*at].clone()).collect(),
        decimal: Some(first.form.decimal),
        measure: Vec::new(),
        leave_out: Vec::new(),
        ..hints.clone()
    };
    let mut found = understanding::of(long.as_bytes(), &asked, watch)?;
    found.hints = hints.clone();
    found.notes.splice(0..0, totals_below::notes(&first.form.totals));
    if hints.wide.is_none() {
        found.notes.insert(0, taken_as_owners(streams.len(), &ends));
    }
    // What is asked of single columns is asked of all of them together.
    let of_stream =
        |text: &String| streams.iter().any(|at| text.contains(&format!("`{}`", first.names[*at])));
    for question in first.questions.iter().filter(|text| !of_stream(text)) {
        if !found.questions.contains(question) {
            found.questions.push(question.clone());
        }
    }
    found.wide = Some(WideFile {
        others: others(&first, &streams),
        fates: fates(&first, &streams),
        form: first.form,
        ends,
        long,
    });
    Ok(found)
}

/// Says that columns are taken as one owner each.
fn taken_as_owners(columns: usize, (first, last): &(String, String)) -> String {
    format!(
        "The {columns} columns `{first}` to `{last}` are alike and have names like those of people or places. Each is taken as one owner, and source.yaml has them as `wide:`. Use `--wide NAME` to name what they measure, or `--owner none` if they are measurements of one owner. Results would then show that owner's single readings."
    )
}

/// The name of what the readings are of, with the unit that all columns have.
fn with_unit(value: &str, first: &Understanding) -> String {
    let mut units = first.attributes.iter().map(|own| own.unit.as_deref());
    let unit = units.next().flatten();
    match unit.filter(|unit| units.all(|own| own == Some(unit)) && !value.contains('[')) {
        Some(unit) => format!("{value} [{unit}]"),
        None => value.to_owned(),
    }
}

/// What became of each column.
fn fates(first: &Understanding, streams: &[usize]) -> Vec<(String, String)> {
    let fate = |(at, (name, fate)): (usize, (String, String))| {
        let own = if streams.contains(&at) { "one owner's".to_owned() } else { fate };
        (name, own)
    };
    first.fates().into_iter().enumerate().map(fate).collect()
}

/// The columns that are neither a time nor an owner's.
fn others(first: &Understanding, streams: &[usize]) -> Vec<String> {
    let is_other = |at: &usize| !streams.contains(at) && !first.time.columns.contains(at);
    let others = (0..first.names.len()).filter(is_other);
    others.map(|at| first.names[at].clone()).collect()
}

/// A row for each reading.
fn melted(text: &str, first: &Understanding, streams: &[usize], value: &str) -> String {
    let mark = match first.form.delimiter {
        Delimiter::Semicolon => ';',
        _ => ',',
    };
    let quoted = |cell: &str| format!("\"{}\"", cell.replace('"', "\"\""));
    let names = first.time.columns.iter().map(|at| quoted(&first.names[*at]));
    let names: Vec<String> = names.chain([quoted(STREAM), quoted(value)]).collect();
    let mut long = names.join(&mark.to_string());
    long.push('\n');
    let missing = MissingTexts::of(&first.form.missing);
    let names: Vec<String> = first.names.iter().map(|name| quoted(name)).collect();
    scan(text, &first.form, |_, scanned| {
        if let ScannedRow::Row(row) = scanned {
            let cell = |at: usize| row.get(at).map_or("", AsRef::as_ref);
            let mut times = String::new();
            for at in &first.time.columns {
                times.push_str(&quoted(cell(*at)));
                times.push(mark);
            }
            for at in streams {
                let own = cell(*at);
                if !own.is_empty() && !missing.contains(own) {
                    long.push_str(&times);
                    long.push_str(&names[*at]);
                    long.push(mark);
                    long.push_str(&quoted(own));
                    long.push('\n');
                }
            }
        }
        true
    });
    long
}
