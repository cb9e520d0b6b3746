//! Offsets from UTC in a column of their own, beside local times.

use super::Candidate;
use crate::clock::words as zones;
use crate::form::Form;
use crate::hints::Hints;
use crate::profile::{Column, Profile};
use crate::scan::{SAMPLE, ScannedRow, scan};
use crate::words::{self, LOCAL, ZONES, is_offset, worded};
use std::collections::BTreeSet;

/// Different offsets of a file, at most.
const MAX: usize = 40;

/// Takes a column of offsets as the last part of the time, or asks about it: where no name says that
/// times are local, they may be in UTC already.
pub(super) fn add(rows: (&str, &Form), profile: &Profile, hints: &Hints, found: &mut Candidate) {
    let formats = || found.formats.iter().flatten();
    let has = |parts: [&str; 2]| formats().any(|own| parts.iter().any(|part| own.contains(part)));
    let local = has(["%H", "%I"]) && !has(["%z", "%Z"]) && hints.zone.is_none();
    let Some(last) = found.columns.iter().max().copied() else { return };
    if !local || found.unit.is_some() || !hints.time.is_empty() {
        return;
    }
    let names = || found.columns.iter().map(|at| profile.columns[*at].name.as_str());
    if names().any(|name| words::has(name, &["utc", "gmt"])) {
        return;
    }
    let is_local = names().any(|name| words::has(name, LOCAL));
    let open = |at: &usize| !found.columns.contains(at) && is_open(&profile.columns[*at], hints);
    let beside = Some(last + 1).filter(|at| *at < profile.columns.len() && open(at));
    let named =
        (0..profile.columns.len()).filter(open).filter(|at| says_zone(&profile.columns[*at]));
    let read = |at: usize| Some((at, format(&written(rows, at)?)?));
    let full = |at: &usize| profile.columns[*at].filled == profile.rows;
    if let Some((at, format)) = beside.into_iter().chain(named).filter(full).find_map(read) {
        let own = &profile.columns[at].name;
        let times: Vec<&str> = names().collect();
        found.columns.push(at);
        found.formats.push(vec![format]);
        if is_offset(own) && !is_local {
            found.questions.push(question(&times, &found.formats, own));
        }
        return;
    }
    let numbers = profile.columns.iter().find(|own| is_open(own, hints) && own.holds_offsets());
    found.questions.extend(numbers.map(not_used));
}

/// Whether nothing was said of a column that has few values.
fn is_open(column: &Column, hints: &Hints) -> bool {
    let said = hints.leave_out.contains(&column.name) || hints.measure.contains(&column.name);
    !said && column.distinct() <= MAX as u64
}

fn says_zone(column: &Column) -> bool {
    is_offset(&column.name) || words::has(&column.name, ZONES)
}

/// The different cells of a column.
fn written((text, form): (&str, &Form), at: usize) -> Option<BTreeSet<String>> {
    let (mut cells, mut rows) = (BTreeSet::new(), 0);
    scan(text, form, |_, scanned| {
        if let ScannedRow::Row(row) = scanned
            && let Some(cell) = row.get(at)
            && !cells.contains(cell.as_ref())
        {
            cells.insert(cell.to_string());
        }
        rows += 1;
        rows < SAMPLE && cells.len() <= MAX
    });
    (cells.len() <= MAX).then_some(cells)
}

/// The format of cells that are all offsets with their sign and all digits, such as `+02:00`,
/// `-0400]` or `UTC+0100`.
fn format(cells: &BTreeSet<String>) -> Option<String> {
    let bare = |cell: &str| cell.trim_end_matches([']', ')']).to_owned();
    let ends: BTreeSet<&str> = cells.iter().map(|cell| &cell[bare(cell).len()..]).collect();
    let whole = |cell: &String| {
        let cell = bare(cell);
        let digits = cell.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let count = digits.bytes().filter(u8::is_ascii_digit).count();
        cell == "Z"
            || (count == 4 && digits.starts_with(['+', '-']) && zones::offset(&cell).is_some())
    };
    let end = ends.first().filter(|_| ends.len() == 1)?;
    (cells.iter().all(whole) && cells.iter().any(|cell| bare(cell) != "Z"))
        .then(|| format!("%z{end}"))
}

fn question(times: &[&str], formats: &[Vec<String>], offsets: &str) -> String {
    let columns = times.iter().chain([&offsets]).map(|name| format!("--time {}", worded(name)));
    let columns = columns.collect::<Vec<_>>().join(" ");
    let format: Vec<&str> =
        formats.iter().flat_map(|own| own.first()).map(String::as_str).collect();
    format!(
        "`{offsets}` holds offsets from UTC. The times of `{}` are read as local ones with these offsets. Say `{columns} --time-format {}` if that is right, `--zone UTC` if they are in UTC already, or `--leave-out {}` if the offsets are of something else.",
        times.join("` and `"),
        worded(&format.join(" ")),
        worded(offsets)
    )
}

fn not_used(column: &Column) -> String {
    let name = &column.name;
    format!(
        "`{name}` holds offsets from UTC as numbers, which are not used: times are read as UTC. Use `--zone UTC` if they are in UTC. If they are local, write each with its offset, such as 2024-05-01T12:30:00-05:00, or name the zone with `--zone`."
    )
}
