//! Totals below the readings of a table: these lines are no readings, and nothing is asked about them.

use crate::cells::{Row, split};
use crate::clock::{Format, shape};
use crate::form::Form;
use crate::table::Table;
use crate::times::{TimePlan, join};
use crate::totals::{TOTALS, is_total};
use crate::words::{TIMES, has, words};
use std::borrow::Cow;

/// Lines of totals that are looked for.
const MAX: usize = 3;

/// Lines that look like totals, below all others.
#[derive(Clone, Debug, Default)]
pub(crate) struct TotalsBelow {
    /// The numbers of the lines.
    pub lines: Vec<u64>,
    /// The cells of those that are as wide as the header.
    rows: Vec<Vec<String>>,
}

/// The text without such lines.
pub(crate) fn cut<'t>(text: &'t str, table: &Table) -> (&'t str, TotalsBelow) {
    let (mut rest, mut found) = (text, TotalsBelow::default());
    while found.lines.len() < MAX && !table.form.multiline {
        let Some((before, mut row)) = last_row(rest, &table.form) else { break };
        let Some((_, mut above)) = last_row(before, &table.form) else { break };
        let width = table.names.len();
        let fits = table.form.fit(&mut row, width);
        if !table.form.fit(&mut above, width) || !is_total_row((&row, fits), &above, table) {
            break;
        }
        let line = before.lines().count() as u64 + 1;
        found.lines.insert(0, line);
        if fits {
            found.rows.push(row.iter().map(ToString::to_string).collect());
        }
        rest = before;
    }
    (rest, found)
}

impl TotalsBelow {
    /// Whether the time of some can be read.
    pub(crate) fn have_times(&self, time: &TimePlan, form: &Form) -> bool {
        let mut joined = String::new();
        self.rows.iter().any(|row| {
            let row: Row<'_> = row.iter().map(|cell| Cow::Borrowed(cell.as_str())).collect();
            join(&row, &time.columns, form, &mut joined) && time.clock.micros(&joined).is_some()
        })
    }
}

/// What to say of such lines.
pub(crate) fn notes(lines: &[u64]) -> impl Iterator<Item = String> {
    let says = |line: &u64| format!("Line {line} looks like a total, so it is left out.");
    lines.iter().map(says)
}

/// The last row with a value, and the text above it.
fn last_row<'t>(text: &'t str, form: &Form) -> Option<(&'t str, Row<'t>)> {
    let mut rest = text;
    loop {
        let line = rest.trim_end_matches(['\r', '\n']);
        let start = line.rfind('\n')? + 1;
        let mut row = Row::new();
        if form.comment.is_some_and(|mark| line[start..].starts_with(mark)) {
            rest = &text[..start];
            continue;
        }
        split(&line[start..], form.delimiter, &mut row).ok()?;
        rest = &text[..start];
        if row.iter().any(|cell| !cell.is_empty()) {
            return Some((rest, row));
        }
    }
}

/// Whether a row is the sum of those above: a cell says so, or it has numbers alone where the row above
/// begins with a name or a time. A sum with a time is a reading as others are.
fn is_total_row((row, fits): (&Row<'_>, bool), above: &Row<'_>, table: &Table) -> bool {
    let filled = |row: &Row<'_>| row.iter().filter(|cell| !cell.is_empty()).count();
    let is_time = |(at, (cell, above)): (usize, (&Cow<'_, str>, &Cow<'_, str>))| {
        let named = table.names.get(at).is_some_and(|name| has(name, TIMES));
        (named && is_number(cell)) || (reads_as_time(cell) && reads_as_time(above))
    };
    // In a row of another width, cells do not stand below those that they belong to.
    let has_time = match fits {
        true => row.iter().zip(above).enumerate().any(is_time),
        false => row.iter().any(|cell| reads_as_time(cell)),
    };
    if has_time {
        return false;
    }
    let fewer = filled(row) < filled(above);
    // Where no cell is empty, it stands in place of a time or of a number.
    let says = row.iter().zip(above).any(|(cell, above)| {
        names_total(cell) && (fewer || above.contains(|c: char| c.is_ascii_digit()))
    });
    let bare = fits
        && row[0].is_empty()
        && !above[0].is_empty()
        && filled(row) * 2 <= filled(above)
        && row.iter().all(|cell| cell.is_empty() || is_number(cell));
    says || bare
}

/// Whether a cell is a number, perhaps with marks that no number above it has.
fn is_number(cell: &str) -> bool {
    let part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '\'' | '-' | '+' | ' ');
    cell.contains(|c: char| c.is_ascii_digit())
        && cell.chars().all(|c| part(c) || !(c.is_ascii() || c.is_alphabetic()))
}

fn reads_as_time(cell: &str) -> bool {
    let reads = |text: &String| Format::part(text).is_ok_and(|own| own.read(cell).is_some());
    shape::shape(cell).is_some() && shape::formats(cell).iter().any(reads)
}

/// Whether a cell says so: `Summe:`, `Gesamtsumme`, `Grand Total`, `Total kWh`.
fn names_total(cell: &str) -> bool {
    const COMPOUNDS: &[&str] = &["gesamtsumme", "endsumme", "somme"];
    let text = cell.trim_end_matches([':', '=', ' ']);
    let all = words(text);
    let known = |word: &String| {
        let own = word.as_str();
        COMPOUNDS.contains(&own) || (TOTALS.contains(&own) && own != "all")
    };
    is_total(text) || (all.len() <= 3 && all.first().into_iter().chain(all.last()).any(known))
}
