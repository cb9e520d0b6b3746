//! Two columns of times that differ by what zones differ by: one of them is local, or has a false
//! zone.

use super::Candidate;
use crate::clock::Format;
use crate::form::Form;
use crate::hash::Map;
use crate::profile::Profile;
use crate::scan::{ScannedRow, scan};
use crate::words::{ENDS, LOCAL, has, worded};
use std::borrow::Cow;

/// Rows that are read, and those that prove it.
const SAMPLE: u64 = 300_000;
const MIN_ROWS: u64 = 5;
/// Zones differ by multiples of it, and by no more than the farthest, in seconds.
const QUARTER: i64 = 900;
const FARTHEST: i64 = 14 * HOUR;
const HOUR: i64 = 3600;
/// Different offsets at most.
const MAX_SHIFTS: usize = 48;

/// Takes a column that is as likely and runs together with the time, if it has smaller parts of a
/// minute or a second; asks about it if its clock is another, or if fewer rows have it.
pub(super) fn finer(rows: (&str, &Form), profile: &Profile, found: &mut Candidate) {
    let [column] = found.columns.as_slice() else { return };
    if !found.questions.is_empty() {
        return;
    }
    let own = (*column, formats(found.formats.first().map_or(&[], Vec::as_slice)));
    let step = smallest(&own.1);
    let name = |at: usize| profile.columns[at].name.as_str();
    for (at, texts) in found.others.iter().filter(|(at, _)| found.peers.contains(at)) {
        let other = (*at, formats(texts));
        let is_finer = smallest(&other.1) < step
            && profile.columns[*at].distinct() > profile.columns[own.0].distinct();
        let Some((least, most)) = apart(rows, &own, &other).filter(|_| is_finer) else { continue };
        if most - least > 2 * step {
            continue;
        }
        let times = |at: usize| profile.columns[at].times();
        if times(*at) < times(own.0) {
            let rows = (times(own.0), times(own.0) - times(*at));
            found.questions.push(finer_with_gaps((name(own.0), name(*at)), rows));
            return;
        }
        let seconds = i64::midpoint(least, most).div_euclid(1_000_000);
        let is_other = seconds.abs() * 1_000_000 > 2 * step;
        let question = is_other.then(|| runs_apart((name(*at), name(own.0)), seconds));
        let (at, texts) = (*at, texts.clone());
        let others = found.others.iter().map(|(at, _)| *at).chain([own.0]);
        let others = others.filter(|other| *other != at);
        found.notes = others.map(|own| super::parts::taken_from(name(own), name(at))).collect();
        found.questions.extend(question);
        (found.columns, found.formats, found.others) = (vec![at], vec![texts], Vec::new());
        return;
    }
}

/// The smallest part of a time that formats read, in microseconds.
fn smallest(formats: &[Format]) -> i64 {
    let has = |part: &str| formats.iter().any(|own| own.text().contains(part));
    match (has("%f"), has("%S"), has("%M")) {
        (true, ..) => 1,
        (_, true, _) => 1_000_000,
        (.., true) => 60_000_000,
        _ => HOUR * 1_000_000,
    }
}

/// By how many microseconds the times of one column are later than those of another, at least and
/// at most.
fn apart(
    (text, form): (&str, &Form),
    own: &(usize, Vec<Format>),
    other: &(usize, Vec<Format>),
) -> Option<(i64, i64)> {
    let (mut rows, mut both, mut range) = (0, 0, None::<(i64, i64)>);
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        rows += 1;
        if let (Some(from), Some(to)) = (micros(row, own), micros(row, other)) {
            both += 1;
            let apart = to - from;
            range = Some(range.map_or((apart, apart), |(lo, hi)| (lo.min(apart), hi.max(apart))));
        }
        rows < SAMPLE
    });
    range.filter(|_| both >= MIN_ROWS && both * 10 >= rows * 9)
}

/// The time of a row in a column, without a zone that it does not state.
fn micros(row: &[Cow<'_, str>], (at, formats): &(usize, Vec<Format>)) -> Option<i64> {
    let cell = row.get(*at).map_or("", AsRef::as_ref);
    formats.iter().find_map(|format| format.read(cell)?.micros(0))
}

/// Asks about a finer time that would leave rows out.
fn finer_with_gaps((coarse, fine): (&str, &str), (rows, lack): (u64, u64)) -> String {
    format!(
        "The times of `{coarse}` and `{fine}` run together. `{coarse}` is read, since {rows} rows have it; `{fine}` is finer, but has no time in {lack} of them. Use `--time {}` if that is right, or `--time {}` if not; rows without it are then left out.",
        worded(coarse),
        worded(fine)
    )
}

fn runs_apart((taken, left): (&str, &str), seconds: i64) -> String {
    let (own, other) = (worded(taken), worded(left));
    format!(
        "The times of `{taken}` and `{left}` run together, but differ by {}, so one clock is wrong or in another zone. `{taken}` is read, since it is finer. Use `--time {own}` if that is right, or `--time {other}` if not.",
        length(seconds)
    )
}

/// Asks which of two columns has the time, if they differ by the offset of a zone and no name says
/// which is in UTC. Takes the one whose name does not say that it is local, or the only one that
/// states its zone.
pub(super) fn ask((text, form): (&str, &Form), profile: &Profile, found: &mut Candidate) {
    let [column] = found.columns.as_slice() else { return };
    let own = (*column, formats(found.formats.first().map_or(&[], Vec::as_slice)));
    let name = |at: usize| profile.columns[at].name.as_str();
    for (at, texts) in std::mem::take(&mut found.others) {
        let other = (at, formats(&texts));
        let says = |list: &[&str]| (has(name(own.0), list), has(name(at), list));
        let (utc, local, ends) = (says(&["utc", "gmt"]), says(LOCAL), says(ENDS));
        // From and until.
        if utc.0 != utc.1 || ends.0 != ends.1 {
            continue;
        }
        let Some(shifts) = shifts((text, form), &own, &other, local.0 != local.1) else { continue };
        let zoned = |formats: &[Format]| formats.iter().all(Format::has_offset);
        let (zoned, other_zoned) = (zoned(&own.1), zoned(&other.1));
        let better = if local.0 == local.1 { !zoned && other_zoned } else { local.0 };
        if better {
            (found.columns, found.formats) = (vec![at], vec![texts]);
            found.notes = vec![super::parts::taken_from(name(own.0), name(at))];
        }
        let sure = match better {
            true => other_zoned && !zoned,
            false => zoned && !other_zoned,
        };
        if !sure {
            let (taken, left) = if better { (at, own.0) } else { (own.0, at) };
            let both = zoned && other_zoned;
            found.questions.push(question((name(taken), name(left)), &shifts, both));
        }
        return;
    }
}

fn formats(texts: &[String]) -> Vec<Format> {
    texts.iter().filter_map(|text| Format::new(text).ok()).collect()
}

/// Asks about a date and a time of day in columns of their own that are another time than the one
/// that is taken. Those in another zone are the same.
pub(super) fn ask_pair((text, form): (&str, &Form), profile: &Profile, found: &mut Candidate) {
    let ([column], Some((pair, texts))) = (found.columns.as_slice(), found.pair.take()) else {
        return;
    };
    let own = formats(found.formats.first().map_or(&[], Vec::as_slice));
    let other = formats(&super::order::joined_formats(&texts));
    let (mut rows, mut both, mut same, mut joined) = (0u64, 0u64, 0u64, String::new());
    // In each order of day and month.
    let all = |formats: &[Format], cell: &str| -> Vec<i64> {
        formats.iter().filter_map(|format| format.read(cell)?.micros(0)).collect()
    };
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        rows += 1;
        super::join(row, &pair, form, &mut joined);
        let times = all(&own, row.get(*column).map_or("", AsRef::as_ref));
        let others = all(&other, &joined);
        if !times.is_empty() && !others.is_empty() {
            both += 1;
            let alike = |time: &i64| others.iter().any(|other| is_same(time - other));
            same += u64::from(times.iter().any(alike));
        }
        rows < SAMPLE
    });
    if both >= MIN_ROWS && same * 10 < both * 9 && found.questions.is_empty() {
        let name = |at: usize| profile.columns[at].name.as_str();
        found.questions.push(super::parts::which(&[name(*column)], &pair.map(name)));
    }
}

/// Whether times differ by what zones differ by, or not at all, but for a minute.
fn is_same(micros: i64) -> bool {
    const CLOSE: i64 = 60;
    let seconds = micros / 1_000_000;
    let beside = (seconds.abs() + CLOSE) % QUARTER;
    seconds.abs() <= FARTHEST + CLOSE && beside <= 2 * CLOSE
}

/// By how many seconds the times of one column are later than those of another, if zones differ so:
/// by the same in all rows, or by two numbers where clocks change; by several if names say that one
/// of them is local.
fn shifts(
    (text, form): (&str, &Form),
    own: &(usize, Vec<Format>),
    other: &(usize, Vec<Format>),
    local: bool,
) -> Option<Vec<i64>> {
    let (mut counts, mut rows, mut both): (Map<i64, u64>, u64, u64) = (Map::default(), 0, 0);
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        rows += 1;
        if let (Some(from), Some(to)) = (micros(row, own), micros(row, other)) {
            both += 1;
            *counts.entry((to - from) / 1_000_000).or_default() += 1;
        }
        rows < SAMPLE && counts.len() <= MAX_SHIFTS
    });
    let mut counts: Vec<(i64, u64)> = counts.into_iter().collect();
    counts.sort_unstable_by_key(|(_, count)| std::cmp::Reverse(*count));
    let (mut usual, mut known) = (Vec::new(), 0);
    for (shift, count) in &counts {
        if known * 50 < both * 49 {
            usual.push(*shift);
            known += count;
        }
    }
    usual.sort_unstable();
    let of_zone = |shift: &i64| shift % QUARTER == 0 && shift.abs() <= FARTHEST;
    let of_clocks = match usual.as_slice() {
        [0] | [] => false,
        [_] => true,
        [one, two] => local || (two - one == HOUR && one * two > 0),
        _ => local,
    };
    let enough = both >= MIN_ROWS && both * 10 >= rows * 9 && counts.len() <= MAX_SHIFTS;
    (enough && of_clocks && usual.iter().all(of_zone)).then_some(usual)
}

fn question((taken, left): (&str, &str), shifts: &[i64], stated: bool) -> String {
    let how = match shifts {
        [one] => format!("by {} in all rows", length(*one)),
        [one, two] => format!("by {} or {}", length(*one), length(*two)),
        several => format!("by {} different offsets", several.len()),
    };
    let zone = match stated {
        true => "though both state a zone, so one of these is false",
        false => "and no name says which",
    };
    let (own, other) = (worded(taken), worded(left));
    format!(
        "The times of `{taken}` and `{left}` differ {how}, as times in different zones do, {zone}. `{taken}` is read. Use `--time {own}` if that is right, or `--time {other}` if not; if it is local and states no zone, name the zone with `--zone` too."
    )
}

/// A length of time in words.
fn length(seconds: i64) -> String {
    let (hours, minutes, rest) =
        (seconds.abs() / HOUR, seconds.abs() % HOUR / 60, seconds.abs() % 60);
    match (hours, minutes, rest) {
        (1, 0, 0) => "1 hour".to_owned(),
        (hours, 0, 0) => format!("{hours} hours"),
        (0, minutes, 0) => format!("{minutes} min"),
        (hours, minutes, 0) => format!("{hours} h {minutes} min"),
        (0, 0, rest) => format!("{rest} s"),
        (0, minutes, rest) => format!("{minutes} min {rest} s"),
        (hours, minutes, rest) => format!("{hours} h {minutes} min {rest} s"),
    }
}
