//! Numbers of the periods of a day, such as 1 to 48 for its half hours.

use super::Candidate;
use super::parts::options;
use crate::error::DiscoverError;
use crate::form::Form;
use crate::hash::Map;
use crate::hints::Hints;
use crate::profile::{Column, Profile};
use crate::scan::{ScannedRow, scan};
use crate::words::{has, worded};
use std::collections::BTreeSet;

/// Rows that are read.
const SAMPLE: u64 = 100_000;
/// How many equal periods days are divided into.
const COUNTS: [i128; 6] = [24, 48, 96, 144, 288, 1440];
const MINUTES: i128 = 1440;
const HOURS: i128 = 24;

const NAMES: &[&str] =
    &["period", "periods", "periode", "periodo", "interval", "slot", "timeslot", "ending"];

/// Those that may name places too, such as those of parked cars.
const PLACES: &[&str] = &["slot", "interval"];

/// Takes periods of an hour as the hour of dates, and asks about them.
///
/// # Errors
/// If days have other periods, which no format reads: dates alone would have many rows at one time.
pub(super) fn add(
    rows: (&str, &Form),
    profile: &Profile,
    hints: &Hints,
    found: &mut Candidate,
) -> Result<(), DiscoverError> {
    let reads = |part: &str| found.formats.iter().flatten().any(|own| own.contains(part));
    let days = reads("%d") || reads("%j");
    if !hints.time.is_empty() || !days || reads("%H") || reads("%I") {
        return Ok(());
    }
    let said = |name: &String| {
        let decided = hints.leave_out.contains(name) || hints.measure.contains(name);
        decided || hints.owner.as_ref() == Some(name)
    };
    let mut columns = profile.columns.iter().enumerate();
    let period = columns.find_map(|(at, column)| {
        let open = !found.columns.contains(&at) && !said(&column.name);
        Some((at, count(column).filter(|_| open)?))
    });
    let Some((at, count)) = period else { return Ok(()) };
    if !fill_days(rows, &found.columns, (at, count)) {
        return Ok(());
    }
    let column = &profile.columns[at];
    let name = &column.name;
    let hour_more = column.whole_range().is_some_and(|(_, most)| most.digits > HOURS);
    if has(name, PLACES) && count != HOURS || hour_more && count == HOURS {
        found.questions.push(unread(column, count));
        return Ok(());
    }
    if count != HOURS {
        let (name, periods, minutes) = (name.clone(), count, MINUTES / count);
        return Err(DiscoverError::Periods { word: worded(&name), name, periods, minutes });
    }
    found.columns.push(at);
    found.formats.push(vec!["%H".to_owned()]);
    found.questions.push(question(profile, found, name));
    Ok(())
}

/// Into how many periods days are divided, if a column's name and its numbers say so. The longest day
/// of a year may have those of an hour more.
fn count(column: &Column) -> Option<i128> {
    let (least, most) = column.whole_range()?;
    let whole = column.is_integer() && least.digits == 1 && has(&column.name, NAMES);
    let fits = |count: &i128| [*count, count + count / HOURS].contains(&most.digits);
    COUNTS.into_iter().filter(|_| whole).find(fits)
}

/// Whether nearly each day has all of its periods, but for those of an hour.
fn fill_days((text, form): (&str, &Form), dates: &[usize], (at, count): (usize, i128)) -> bool {
    let (mut rows, mut date) = (0, String::new());
    let mut days: Map<String, BTreeSet<i128>> = Map::default();
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        rows += 1;
        if super::join(row, dates, form, &mut date)
            && let Some(period) = row.get(at).and_then(|cell| cell.trim().parse().ok())
        {
            days.entry(date.clone()).or_default().insert(period);
        }
        rows < SAMPLE
    });
    let all = |own: &&BTreeSet<i128>| own.len() as i128 >= count - count / HOURS;
    let full = days.values().filter(all).count();
    // The first day and the last may be cut.
    full > 0 && (full * 10 >= days.len() * 9 || (full > 1 && full + 2 >= days.len()))
}

/// Asks about numbers that no format reads, and that may name the owner of a row.
fn unread(column: &Column, count: i128) -> String {
    let (name, word) = (&column.name, worded(&column.name));
    let last = column.whole_range().map_or(count, |(_, most)| most.digits);
    let most = if last > count { format!(", and to {last} on some") } else { String::new() };
    format!(
        "`{name}` goes from 1 to {count} on each day{most}, so it may number the parts of a day, or name places such as those of cars. Use `--owner {word}` if it names the owner of a row, `--measure {word}` if it is a measurement, or `--leave-out {word}` if it is neither. No format reads it as a time: if it is one, add a column with the time at which each part begins, such as 2024-05-01 12:30:00."
    )
}

fn question(profile: &Profile, found: &Candidate, name: &str) -> String {
    let columns = found.columns.iter().map(|at| profile.columns[*at].name.as_str());
    let columns = options(&columns.collect::<Vec<_>>());
    let formats = found.formats.iter().flat_map(|own| own.first()).map(String::as_str);
    let word = worded(name);
    let format = worded(&formats.collect::<Vec<_>>().join(" "));
    format!(
        "`{name}` goes from 1 to 24 on each day, so it seems to number the hours. It is read as the time of day: 1 is 1:00, and 24 is midnight. Use `{columns} --time-format {format}` if that is right, `--owner {word}` if it names the owner of a row, or `--leave-out {word}` if it is neither. If 1 begins at 0:00, write 0 to 23."
    )
}
