//! Counts and exact sums over all rows, once it is known how to read them.

use crate::bounds::Spread;
use crate::calendar::{Days, Midnights, RepeatedTimeParts};
use crate::cells::Row;
use crate::clock::{Local, Region, TimeReader};
use crate::facts::{self, Fact};
use crate::form::{Form, MissingTexts, distinct};
use crate::hash::{Hashes, Map};
use crate::load::Load;
use crate::nights::Nights;
use crate::number::{Decimal, Marks, Sum};
use crate::owner_rows::Owner;
use crate::profile::truth;
use crate::rounds::Rounds;
use crate::scan::{ScannedRow, scan_watched};
use crate::steps::Steps;
use crate::times::{TimePlan, Zone, join};
use crate::watch::Watch;
use crate::windows::{DAY, SECOND, WINDOWS, Window, shortest};
use std::collections::{BTreeMap, BTreeSet};

/// Times that can be expressed: from 1970 to 2112, in microseconds.
const LIMIT: i64 = alpheus_time::Timestamp::LIMIT.0.cast_signed();

/// What an attribute's cells hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Numbers.
    Number,
    /// Yes and no.
    Boolean,
    /// Texts, which can be counted.
    Text,
}

/// An attribute whose cells are counted.
pub(crate) struct CountedColumn {
    pub column: usize,
    pub values: Values,
    /// Texts that stand for a missing value, in this column.
    pub missing: BTreeSet<String>,
}

/// The count and the sum of one attribute.
#[derive(Clone, Debug, Default)]
pub struct Total {
    /// Cells with a value.
    pub count: u64,
    /// Their exact sum; of yes and no, the number of yes.
    pub sum: Sum,
    /// The least and the greatest.
    pub range: Option<(Decimal, Decimal)>,
    /// The most decimal places.
    pub places: u8,
    /// The longest text, in bytes.
    pub longest: usize,
    /// Cells of this column that could not be read.
    pub unread: u64,
    /// How its numbers are spread.
    pub spread: Spread,
    /// How its numbers change from one reading of an owner to the next.
    pub(crate) steps: Steps,
    /// Whether they are a part of the row's time.
    pub(crate) repeated: RepeatedTimeParts,
    /// Whether they go round from row to row.
    pub(crate) rounds: Rounds,
}

/// What all rows hold.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Rows with a time.
    pub rows: u64,
    /// Rows without a time, though other cells have values.
    pub untimed: u64,
    /// Rows whose time cannot be read.
    pub bad_time: u64,
    /// Those of them that are the header again.
    pub(crate) headers: u64,
    /// Rows whose number of cells differs from the header's.
    pub bad_width: u64,
    /// Rows whose quotes do not fit.
    pub broken: u64,
    /// Rows without an owner.
    pub no_owner: u64,
    /// Rows whose owner is a text that means no value elsewhere, such as `NA`.
    pub(crate) unnamed: u64,
    /// Rows of empty cells.
    pub blank: u64,
    /// Rows before 1970 or after 2112, which cannot be expressed.
    pub out_of_range: u64,
    /// Rows that lie before an earlier row of their owner.
    pub out_of_order: u64,
    /// Rows with the time of an earlier row of their owner.
    pub same_time: u64,
    /// Rows at local times that a change of the clocks skips, and that it repeats.
    pub skipped: u64,
    /// See above; the first of the two is taken.
    pub repeated: u64,
    /// Rows that equal an earlier one in every cell.
    pub duplicates: u64,
    /// Those of them that stand below another.
    pub(crate) repeated_below: u64,
    /// So many rows nearly each owner has at each time, if several.
    pub(crate) rows_at_once: Option<u64>,
    /// The hours of the day that occur, one bit each, at the zone of the file; none where each
    /// time has its own.
    pub(crate) hours: u32,
    /// Whether midnights are written as hour 24.
    pub(crate) midnights: Midnights,
    /// The days of all rows.
    pub(crate) days: Days,
    /// How times of day go on, if one date stands for all rows.
    pub(crate) nights: Nights,
    /// Owners.
    pub owners: u64,
    /// The same, if names that differ in capital letters, spaces and zeros are one.
    pub(crate) spellings: u64,
    /// Rows of the owner with the most.
    pub most_rows: u64,
    /// Owners with several rows.
    pub(crate) several: u64,
    /// What may describe owners.
    pub(crate) facts: Vec<Fact>,
    /// For each length of windows that a query may have: how many windows have data of so many
    /// owners.
    pub(crate) crowds: Vec<BTreeMap<u64, u64>>,
    /// For each of these: the readings of one owner in a window.
    pub(crate) loads: Vec<Load>,
    /// What windows may be multiples of, if an owner has two readings.
    pub(crate) shortest: Option<Window>,
    /// The usual time from one reading of an owner to the next, in microseconds.
    pub(crate) interval: Option<i64>,
    /// The days on which each owner has rows, with how many.
    pub(crate) attendance: Vec<Vec<(i64, u64)>>,
    /// The first and the last time, in microseconds since 1970.
    pub span: Option<(i64, i64)>,
    /// Each attribute, in order.
    pub totals: Vec<Total>,
    /// The first line whose cells seem to be names of columns, and other names than the file's.
    pub(crate) heading: Option<u64>,
    /// The first lines that were refused.
    pub refused_lines: Vec<u64>,
}

impl Tally {
    /// Of the windows of a length that have data, the part in percent with at least so many
    /// owners.
    pub(crate) fn share_of_crowds(&self, length: usize, least: u64) -> u64 {
        let Some(crowds) = self.crowds.get(length) else { return 0 };
        let full: u64 = crowds.range(least..).map(|(_, windows)| windows).sum();
        full * 100 / crowds.values().sum::<u64>().max(1)
    }

    /// So many owners have data in at least half of the windows of a length that have any.
    pub(crate) fn usual_crowd(&self, length: usize) -> u64 {
        let Some(crowds) = self.crowds.get(length) else { return 0 };
        let (all, mut some) = (crowds.values().sum::<u64>(), 0);
        let usual = crowds.iter().rev().find(|(_, windows)| {
            some += **windows;
            some * 2 >= all
        });
        usual.map_or(0, |(owners, _)| *owners)
    }

    /// Whether the rows that repeat stand below one another, so that a part of the file may be in
    /// it twice.
    pub(crate) fn repeats_a_part(&self) -> bool {
        const MIN: u64 = 20;
        self.duplicates >= MIN && self.repeated_below * 10 >= self.duplicates * 9
    }

    fn count_repeated(&mut self, repeats: bool, below: bool) {
        self.duplicates += u64::from(repeats);
        self.repeated_below += u64::from(below);
    }

    /// Rows that were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.untimed + self.bad_time + self.bad_width + self.broken + self.no_owner
    }
}

struct Counter<'w> {
    tally: Tally,
    form: &'w Form,
    missing: MissingTexts,
    /// Those of each wanted column.
    own_missing: Vec<MissingTexts>,
    marks: Marks,
    time: &'w TimePlan,
    times: TimeReader<'w>,
    owner: Option<usize>,
    wanted: &'w [CountedColumn],
    owners: Map<String, Owner>,
    hashes: Hashes,
    joined: String,
    names: Vec<String>,
    /// Whether the row above equals an earlier one.
    repeated_above: bool,
}

/// Reads all rows.
pub(crate) fn tally(
    (text, form): (&str, &Form),
    (time, owner): (&TimePlan, Option<usize>),
    (wanted, facts): (&[CountedColumn], &[Fact]),
    watch: &mut dyn Watch,
) -> Tally {
    let totals = vec![Total::default(); wanted.len()];
    let mut counter = Counter {
        tally: Tally { totals, facts: facts.to_vec(), ..Tally::default() },
        form,
        missing: MissingTexts::of(&form.missing),
        own_missing: wanted.iter().map(|own| MissingTexts::of(&own.missing)).collect(),
        marks: form.marks(),
        time,
        times: TimeReader::of(&time.clock),
        owner,
        wanted,
        owners: Map::default(),
        hashes: Hashes::default(),
        joined: String::new(),
        names: form.open(text).names,
        repeated_above: false,
    };
    scan_watched(text, form, watch, |line, scanned| {
        let refused = counter.tally.refused();
        match scanned {
            ScannedRow::Row(row) => counter.row(line, row),
            ScannedRow::Blank => counter.tally.blank += 1,
            ScannedRow::Width => counter.tally.bad_width += 1,
            ScannedRow::Broken => counter.tally.broken += 1,
        }
        if counter.tally.refused() > refused && counter.tally.refused_lines.len() < 5 {
            counter.tally.refused_lines.push(line);
        }
        true
    });
    let Counter { mut tally, owners, .. } = counter;
    tally.count_owners(&owners);
    tally
}

impl Tally {
    /// Counts what owners have, once all rows are known.
    fn count_owners(&mut self, owners: &Map<String, Owner>) {
        let span = self.span.map_or(0, |(first, last)| last - first);
        let crowded = WINDOWS.iter().enumerate().map(|(at, window)| {
            match window.fits(span) || at + 1 == WINDOWS.len() {
                true => crowds(owners, window.seconds),
                false => (BTreeMap::new(), Load::default()),
            }
        });
        (self.crowds, self.loads) = crowded.unzip();
        let mut gaps = gaps(owners);
        gaps.sort_unstable();
        self.interval = gaps.get(gaps.len() / 2).copied();
        self.shortest = shortest(gaps);
        self.attendance = owners.values().map(Owner::days).collect();
        self.rows_at_once = rows_at_once(owners);
        self.owners = owners.len() as u64;
        self.spellings = crate::spellings::count(owners.keys());
        self.most_rows = owners.values().map(|owner| owner.rows).max().unwrap_or(0);
        self.several = owners.values().filter(|owner| owner.rows > 1).count() as u64;
    }
}

/// How many rows nearly each owner has at each time, if several.
fn rows_at_once(owners: &Map<String, Owner>) -> Option<u64> {
    let mut counts: Map<u64, u64> = Map::default();
    for owner in owners.values() {
        let mut beside = owner.beside.clone();
        beside.retain(|time| owner.run.binary_search_by_key(time, |(known, _)| *known).is_ok());
        beside.sort_unstable();
        let several = beside.chunk_by(|a, b| a == b);
        let mut alone = owner.run.len() as u64;
        for times in several {
            alone -= 1;
            *counts.entry(times.len() as u64 + 1).or_default() += 1;
        }
        *counts.entry(1).or_default() += alone;
    }
    let all: u64 = counts.values().sum();
    let (rows, times) = counts.into_iter().max_by_key(|(_, times)| *times)?;
    (rows > 1 && times * 10 >= all * 8 && all > 4).then_some(rows)
}

/// Times between readings that are looked at: of each owner, and of all.
const OWN_GAPS: usize = 1000;
const ALL_GAPS: usize = 100_000;

/// The times between the first readings of each owner, in microseconds.
fn gaps(owners: &Map<String, Owner>) -> Vec<i64> {
    let mut all = Vec::new();
    for owner in owners.values() {
        let mut times: Vec<i64> = owner.run.iter().map(|(time, _)| *time).take(OWN_GAPS).collect();
        let last = if owner.run.len() > OWN_GAPS { times.last().copied() } else { None };
        times.extend(owner.late.iter().filter(|time| last.is_none_or(|last| **time < last)));
        times.sort_unstable();
        all.extend(times.windows(2).take(OWN_GAPS).map(|pair| pair[1] - pair[0]));
        if all.len() >= ALL_GAPS {
            break;
        }
    }
    all
}

/// How many windows of this length have data of so many owners, and how many readings an owner
/// who has some has in a window.
fn crowds(owners: &Map<String, Owner>, seconds: i64) -> (BTreeMap<u64, u64>, Load) {
    let mut windows: Map<i64, u64> = Map::default();
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for owner in owners.values() {
        let mut known: Map<i64, u64> = Map::default();
        let (mut last, mut count) = (None, 0u64);
        let times = owner.run.iter().map(|(time, _)| time).chain(&owner.beside);
        for window in times.map(|time| time.div_euclid(seconds * 1_000_000)) {
            if last != Some(window) {
                last.into_iter().for_each(|last| *known.entry(last).or_default() += count);
                (last, count) = (Some(window), 0);
            }
            count += 1;
        }
        last.into_iter().for_each(|last| *known.entry(last).or_default() += count);
        for (window, count) in known {
            *counts.entry(count).or_default() += 1;
            *windows.entry(window).or_default() += 1;
        }
    }
    let mut crowds = BTreeMap::new();
    for owners in windows.into_values() {
        *crowds.entry(owners).or_default() += 1;
    }
    (crowds, Load::of(&counts))
}

impl Counter<'_> {
    fn row(&mut self, line: u64, row: &Row<'_>) {
        if !join(row, &self.time.columns, self.form, &mut self.joined) {
            self.tally.untimed += 1;
            return;
        }
        let Some((micros, local)) = self.times.read(&self.joined) else {
            return self.untimely(line, row);
        };
        let owner = self.owner.map_or("", |at| row.get(at).map_or("", AsRef::as_ref));
        if self.owner.is_some() && owner.is_empty() {
            self.tally.no_owner += 1;
            return;
        }
        self.tally.rows += 1;
        self.tally.unnamed += u64::from(self.owner.is_some() && self.missing.contains(owner));
        let local_seconds = self.local_seconds(micros);
        self.tally.hours |= local_seconds.map_or(0, |own| 1 << own.div_euclid(3600).rem_euclid(24));
        self.tally.midnights.add(micros, self.time, &self.joined);
        self.tally.days.add(micros.div_euclid(DAY * SECOND));
        self.tally.out_of_range += u64::from(!(0..LIMIT).contains(&micros));
        let known = match self.owners.get_mut(owner) {
            Some(known) => known,
            None => self.owners.entry(owner.to_owned()).or_default(),
        };
        if self.time.date.is_some() {
            self.tally.nights.add(known.latest, micros);
        }
        facts::compare(&mut self.tally.facts, &mut known.facts, row, &self.hashes);
        let (before, same, repeats) = known.add(micros, self.hashes.of(row));
        self.tally.out_of_order += u64::from(before);
        self.tally.same_time += u64::from(same);
        let below = std::mem::replace(&mut self.repeated_above, repeats) && repeats;
        self.tally.count_repeated(repeats, below);
        self.tally.skipped += u64::from(local == Local::Skipped);
        self.tally.repeated += u64::from(local == Local::Repeated);
        self.tally.span = with(self.tally.span, micros);
        known.before.resize(self.wanted.len(), None);
        let columns = self.wanted.iter().zip(&self.own_missing);
        let columns = columns.zip(self.tally.totals.iter_mut().zip(&mut known.before));
        for ((wanted, own_missing), (total, before)) in columns {
            let cell = row.get(wanted.column).map_or("", AsRef::as_ref);
            let empty =
                cell.is_empty() || self.missing.contains(cell) || own_missing.contains(cell);
            if !empty && let Some(value) = total.count(cell, wanted.values, &self.marks) {
                total.steps.add(before, micros, value);
                total.repeated.add(value, local_seconds);
                total.rounds.add(value);
            }
        }
    }
}

impl Counter<'_> {
    /// Counts a row whose time cannot be read.
    fn untimely(&mut self, line: u64, row: &Row<'_>) {
        self.tally.bad_time += 1;
        let again = distinct(row.iter().map(AsRef::as_ref)) == *self.names;
        self.tally.headers += u64::from(again);
        if self.tally.heading.is_none() && !again && self.is_heading(row) {
            self.tally.heading = Some(line);
        }
    }

    /// Whether all cells of numbers are texts in a row.
    fn is_heading(&self, row: &Row<'_>) -> bool {
        let numbers = || self.wanted.iter().filter(|own| own.values == Values::Number);
        let text = |own: &CountedColumn| {
            let cell = row.get(own.column).map_or("", AsRef::as_ref);
            !cell.is_empty() && !self.missing.contains(cell) && self.marks.plain(cell).is_none()
        };
        numbers().next().is_some() && numbers().all(text)
    }

    /// The seconds since 1970 of a time, as the file has it; none where each time has its own zone.
    fn local_seconds(&self, micros: i64) -> Option<i64> {
        let seconds = match &self.time.zone {
            Zone::Fixed(Region::Fixed(seconds), _) => i64::from(*seconds),
            Zone::Unstated => 0,
            Zone::Fixed(Region::Place(_), _) | Zone::InValue => return None,
        };
        Some(micros.div_euclid(SECOND) + seconds)
    }
}

/// A range with one more value.
fn with<T: Ord + Copy>(range: Option<(T, T)>, value: T) -> Option<(T, T)> {
    Some(range.map_or((value, value), |(lo, hi)| (lo.min(value), hi.max(value))))
}

impl Total {
    /// Counts a cell; its number, if it is one.
    fn count(&mut self, cell: &str, values: Values, marks: &Marks) -> Option<Decimal> {
        match values {
            Values::Text => {
                self.count += 1;
                self.longest = self.longest.max(cell.len());
            }
            Values::Boolean => match truth(cell) {
                Some(yes) => {
                    self.count += 1;
                    self.sum.add(Decimal { digits: i128::from(yes), places: 0 });
                }
                None => self.unread += 1,
            },
            Values::Number => {
                let Some(value) = marks.plain(cell).and_then(|plain| Decimal::read(&plain)) else {
                    self.unread += 1;
                    return None;
                };
                self.count += 1;
                self.sum.add(value);
                self.spread.add(value, cell);
                self.places = self.places.max(value.places);
                self.range = with(self.range, value);
                return Some(value);
            }
        }
        None
    }
}
