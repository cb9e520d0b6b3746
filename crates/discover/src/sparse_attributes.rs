//! Attributes that many rows lack: over how many owners their sums are.
//!
//! A window opens if enough owners have data of any kind. Of an attribute that rows may lack, fewer
//! of them may have a value.

use crate::form::{Form, MissingTexts};
use crate::hash::{Hashes, Map};
use crate::scan::{ScannedRow, scan};
use crate::tally::{CountedColumn, Tally};
use crate::times::{TimePlan, join};
use crate::windows::{SECOND, WINDOWS};
use std::collections::BTreeMap;

/// How many owners the sums of an attribute are over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Crowd {
    /// Whether rows may lack it.
    pub(crate) sparse: bool,
    /// For each length of windows that was looked at, by its position: of the windows that open,
    /// those in which some owners have a value, but too few; and the fewest that have one.
    short: BTreeMap<usize, (u64, u64)>,
    /// The longest of these.
    looked: bool,
}

impl Crowd {
    /// The position of the shortest length from which on each window that opens has a value of
    /// enough owners, or of nobody; none if there is none. It is not below what was looked at.
    pub(crate) fn safe_from(&self) -> Option<usize> {
        let mut safe = None;
        for (at, (windows, _)) in self.short.iter().rev() {
            if *windows > 0 {
                break;
            }
            safe = Some(*at);
        }
        safe
    }

    /// Whether windows of this length, by its position, all have a value of enough owners.
    pub(crate) fn is_enough(&self, length: usize) -> bool {
        !self.sparse || !self.looked || self.safe_from().is_some_and(|safe| safe <= length)
    }

    /// In how many windows of this length too few have a value, and the fewest.
    pub(crate) fn short_of(&self, length: usize) -> (u64, u64) {
        self.short.get(&length).copied().unwrap_or_default()
    }
}

/// The owners with data in a window: those with any, and of each sparse attribute.
struct Window {
    any: u64,
    own: Vec<u64>,
}

/// The windows in which an owner had data last, for each length.
#[derive(Clone)]
struct LastWindows {
    any: Vec<Vec<i64>>,
    own: Vec<Vec<Vec<i64>>>,
}

/// Counts the owners who have each attribute, in windows of all lengths of which there are few.
pub(crate) fn find(
    (text, form): (&str, &Form),
    (time, owner): (&TimePlan, Option<usize>),
    wanted: &[CountedColumn],
    tally: &Tally,
) -> Vec<Crowd> {
    let is_sparse = |at: &usize| tally.totals.get(*at).is_some_and(|own| own.count < tally.rows);
    let sparse: Vec<usize> = (0..wanted.len()).filter(is_sparse).collect();
    let crowd = |at: usize| Crowd { sparse: sparse.contains(&at), ..Crowd::default() };
    let mut crowds: Vec<Crowd> = (0..wanted.len()).map(crowd).collect();
    let Some(owner) = owner.filter(|_| tally.owners > 1 && !sparse.is_empty()) else {
        return crowds;
    };
    let span = tally.span.map_or(0, |(first, last)| last - first);
    let few = |at: &usize| WINDOWS[*at].fits(span) || at + 1 == WINDOWS.len();
    let lengths: Vec<usize> = (0..WINDOWS.len()).filter(few).collect();
    let windows = windows((text, form), (time, owner), (wanted, &sparse), &lengths);
    let least = tally.owners.min(10);
    for (place, at) in sparse.iter().enumerate() {
        crowds[*at].looked = true;
        for (length, windows) in lengths.iter().zip(&windows) {
            let opens = windows.values().filter(|window| window.any >= least);
            let short =
                opens.map(|window| window.own[place]).filter(|own| (1..least).contains(own));
            let (count, fewest) =
                short.fold((0, least), |(count, fewest), own| (count + 1, fewest.min(own)));
            crowds[*at].short.insert(*length, (count, fewest));
        }
    }
    crowds
}

/// The windows of each length, by their number.
fn windows(
    (text, form): (&str, &Form),
    (time, owner): (&TimePlan, usize),
    (wanted, sparse): (&[CountedColumn], &[usize]),
    lengths: &[usize],
) -> Vec<Map<i64, Window>> {
    let mut windows: Vec<Map<i64, Window>> = lengths.iter().map(|_| Map::default()).collect();
    let none = LastWindows {
        any: vec![Vec::new(); lengths.len()],
        own: vec![vec![Vec::new(); sparse.len()]; lengths.len()],
    };
    let mut owners: Map<u64, LastWindows> = Map::default();
    let (hashes, missing) = (Hashes::default(), MissingTexts::of(&form.missing));
    let columns: Vec<(usize, MissingTexts)> = sparse
        .iter()
        .map(|at| (wanted[*at].column, MissingTexts::of(&wanted[*at].missing)))
        .collect();
    let mut joined = String::new();
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        let cell = |at: usize| row.get(at).map_or("", AsRef::as_ref);
        if cell(owner).is_empty() || !join(row, &time.columns, form, &mut joined) {
            return true;
        }
        let Some(micros) = time.clock.micros(&joined) else { return true };
        let seen = owners.entry(hashes.of(cell(owner))).or_insert_with(|| none.clone());
        let has = |(at, own): &(usize, MissingTexts)| {
            let cell = cell(*at);
            !cell.is_empty() && !missing.contains(cell) && !own.contains(cell)
        };
        let has: Vec<bool> = columns.iter().map(has).collect();
        for (place, length) in lengths.iter().enumerate() {
            let number = micros.div_euclid(WINDOWS[*length].seconds * SECOND);
            let window = windows[place]
                .entry(number)
                .or_insert_with(|| Window { any: 0, own: vec![0; sparse.len()] });
            window.any += u64::from(is_new(&mut seen.any[place], number));
            let own = window.own.iter_mut().zip(&mut seen.own[place]).zip(&has);
            for ((count, seen), has) in own.filter(|(_, has)| **has) {
                *count += u64::from(*has && is_new(seen, number));
            }
        }
        true
    });
    windows
}

/// Adds a window to those of an owner, which come nearly in order; whether it is new.
fn is_new(seen: &mut Vec<i64>, number: i64) -> bool {
    if seen.last() == Some(&number) {
        return false;
    }
    match seen.binary_search(&number) {
        Ok(_) => false,
        Err(at) => {
            seen.insert(at, number);
            true
        }
    }
}
