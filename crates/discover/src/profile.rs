//! What the cells of each column are: one pass over the whole file.

use crate::clock::{Format, shape};
use crate::distinct_count::Distinct;
use crate::extremes::{Cells, Extremes, count_cell};
use crate::form::{Form, MissingTexts};
use crate::hash::{Hashes, Map};
use crate::id_words::{is_id, is_measured};
use crate::number::{Decimal, Marks};
use crate::number_forms::NumberForms;
use crate::owner_words::owner_score;
use crate::scan::{ScannedRow, scan_watched};
use crate::shapes::ShapeCount;
use crate::totals::seems_total;
use crate::watch::Watch;
use crate::words::TIMES;
use std::collections::BTreeMap;

/// Different texts that a column of numbers may have among them.
const MAX_TEXTS: usize = 30;
/// Different texts that are kept.
const KEPT_TEXTS: usize = 300;
/// Shapes of times of one column.
const MAX_SHAPES: usize = 40;

/// Texts of weather records: nothing was measured, and a trace, too little to measure.
const MARKS: [&str; 3] = [NOTHING, TRACE, "Trace"];
/// See above.
pub(crate) const NOTHING: &str = "M";
/// See above.
pub(crate) const TRACE: &str = "T";

/// One column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Column {
    /// Its name.
    pub name: String,
    /// Cells with a value.
    pub filled: u64,
    /// Cells that are numbers.
    pub numbers: u64,
    /// Cells that are yes, no, true or false.
    pub booleans: u64,
    /// Whether some number has a point, and whether one has another digit than 0 behind it.
    pub fractional: bool,
    /// See above.
    pub decimals: bool,
    /// Digits of the shortest and the longest integer.
    pub digits: Option<(usize, usize)>,
    /// The least and the greatest number that cannot stand for a missing one.
    pub range: Option<(Decimal, Decimal)>,
    /// Numbers that may stand for a missing one, by their text without marks, with their cells.
    pub suspects: BTreeMap<String, (Decimal, Cells)>,
    /// Texts that are no numbers, with their count, as far as they are few.
    pub texts: Map<String, u64>,
    /// Whether there are more different texts than are kept.
    pub many_texts: bool,
    /// Shapes of times.
    pub shapes: BTreeMap<String, ShapeCount>,
    /// Whether each number is one more than that before it.
    pub counts_up: bool,
    /// Whether numbers never fall.
    pub ascends: bool,
    /// Whether a number's last two digits are always below 60, so that it may be `hhmm`.
    pub hhmm: bool,
    /// The same for `hhmmss`.
    pub hhmmss: bool,
    /// Its different values.
    pub values: Distinct,
    /// The last text of a time's shape, with its shape.
    pub last_time: Option<(String, String)>,
    /// The number before.
    pub before: Option<Decimal>,
    /// Cells such as 2001/02, whose second number is the year after the first.
    pub seasons: u64,
    /// How numbers are written.
    pub written: NumberForms,
    /// The least and the greatest number, and how often they occur.
    pub extremes: Extremes,
}

/// All columns.
pub(crate) struct Profile {
    /// In order.
    pub columns: Vec<Column>,
    /// Rows that are as wide as the header and not blank.
    pub rows: u64,
}

impl Column {
    /// The number of different values; nearly, if they are many.
    pub(crate) fn distinct(&self) -> u64 {
        self.values.count(self.filled)
    }

    /// Whether more than a few of so many rows lack a value.
    pub(crate) fn has_gaps(&self, rows: u64) -> bool {
        self.filled * 100 < rows * 97
    }

    /// Cells that are times by their shape.
    pub(crate) fn times(&self) -> u64 {
        self.shapes.values().map(|shape| shape.count).sum()
    }

    /// Whether most cells with a value are numbers, and different texts among them few.
    pub(crate) fn is_number(&self) -> bool {
        let marks = |mark: &&str| self.texts.get(*mark).copied().unwrap_or(0);
        let measured = self.filled - MARKS.iter().map(marks).sum::<u64>();
        self.numbers > 0 && self.numbers * 10 >= measured * 6 && self.texts.len() <= MAX_TEXTS
    }

    /// Cells of texts with a digit.
    pub(crate) fn numeric_texts(&self) -> u64 {
        let digit = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
        self.texts.iter().filter(|(text, _)| digit(text)).map(|(_, count)| count).sum()
    }

    /// Whether a name says that numbers with decimals are years, such as 1974.2083.
    pub(crate) fn holds_years(&self) -> bool {
        let year = |digits| Decimal { digits, places: 0 };
        let within = |(lo, hi)| lo >= year(1700) && hi <= year(2200);
        self.fractional
            && self.numbers == self.filled
            && crate::words::has(&self.name, &["date", "year", "jahr"])
            && self.whole_range().is_some_and(within)
    }

    /// Whether numbers may be times: since 1970, or years with decimals.
    pub(crate) fn holds_times(&self) -> bool {
        let counts = self.counts_seconds() && crate::words::has(&self.name, TIMES);
        self.may_be_times() || self.holds_years() || counts
    }

    /// Whether a name and all numbers fit times of day such as 1735. Round numbers fit, too, but of
    /// those up to 2400 there are few.
    pub(crate) fn holds_clock_times(&self) -> bool {
        const ROUND: u64 = 60;
        self.hhmm
            && self.is_integer()
            && self.distinct() > ROUND
            && crate::words::has(&self.name, crate::words::TIMES)
    }

    /// Whether all numbers lie where seconds since 1970, or parts of them, do.
    pub(crate) fn counts_seconds(&self) -> bool {
        let least = Decimal { digits: 473_385_600, places: 0 };
        self.numbers == self.filled && self.whole_range().is_some_and(|(lo, _)| lo >= least)
    }

    /// Whether nearly all cells are yes and no, as words or as 1 and 0.
    pub(crate) fn is_truth(&self) -> bool {
        let (zero, one) = (Decimal::ZERO, Decimal { digits: 1, places: 0 });
        let bits = self.whole_range().is_none_or(|(lo, hi)| lo >= zero && hi <= one);
        let all = self.booleans + self.numbers;
        let has = |text| self.texts.contains_key(text);
        let trace = self.numbers > 0 && has(TRACE) && !has("F");
        self.booleans > 0 && bits && !self.fractional && !trace && all * 10 >= self.filled * 9
    }

    /// Whether all cells with a value are 0 and 1.
    pub(crate) fn is_bit(&self) -> bool {
        let one = Decimal { digits: 1, places: 0 };
        let (Some((least, most)), true) = (self.whole_range(), self.is_integer()) else {
            return false;
        };
        least >= Decimal::ZERO && most <= one && self.distinct() > 1
    }

    /// Whether all cells with a value are numbers without decimals.
    pub(crate) fn is_integer(&self) -> bool {
        self.numbers > 0 && self.numbers == self.filled && !self.fractional
    }

    /// Whether its numbers are written as codes and numbers of telephones are: with zeros in front
    /// of them, a plus, or many digits.
    pub(crate) fn is_written_as_code(&self) -> bool {
        let one_width = self.digits.is_some_and(|(short, long)| short == long);
        let padded = self.written.padded > 0 && one_width;
        let plus = self.written.plus == self.numbers;
        self.is_integer() && (plus || ((padded || self.is_long()) && !is_measured(&self.name)))
    }

    /// Whether all numbers have nine digits to fifteen, as those of telephones, and none is a time.
    pub(crate) fn is_long(&self) -> bool {
        const FEW: usize = 9;
        const MANY: usize = 15;
        // Amounts have few digits and many.
        const APART: usize = 2;
        let from_zero = self.whole_range().is_some_and(|(lo, _)| lo.digits >= 0);
        let several = self.distinct() > 1 && from_zero;
        let long = self
            .digits
            .is_some_and(|(short, most)| short >= FEW && most <= MANY && most - short <= APART);
        long && several && !self.may_be_times() && !crate::words::has(&self.name, TIMES)
    }

    /// Whether a name says that numbers are offsets from UTC, in hours, minutes or seconds.
    pub(crate) fn holds_offsets(&self) -> bool {
        const MAX: u64 = 40;
        let most = Decimal { digits: 14 * 3600, places: 0 };
        let within = |(lo, hi): (Decimal, Decimal)| lo >= most.times(-1) && hi <= most;
        self.distinct() <= MAX
            && self.is_number()
            && crate::words::is_offset(&self.name)
            && self.whole_range().is_some_and(within)
    }

    /// Whether the column numbers the rows.
    pub(crate) fn numbers_rows(&self) -> bool {
        let several = self.is_integer() && self.numbers >= 3;
        several && (self.counts_up || self.has_all_numbers())
    }

    /// Whether it has each number from 0 or 1 to that of its cells once, in any order.
    pub(crate) fn has_all_numbers(&self) -> bool {
        let all = self.whole_range().is_some_and(|(lo, hi)| {
            let values = hi.minus(lo).digits + 1;
            self.numbers > 20 && (0..=1).contains(&lo.digits) && values == i128::from(self.numbers)
        });
        self.is_integer() && all && self.distinct() == self.numbers
    }

    /// Whether long integers lie where times since 1970 in milliseconds or finer do.
    pub(crate) fn may_be_times(&self) -> bool {
        let within = |power: u32| {
            let scale = |value: i128| Decimal { digits: value * 10i128.pow(power), places: 0 };
            self.whole_range()
                .is_some_and(|(lo, hi)| lo > scale(631_152_000) && hi < scale(2_524_608_000))
        };
        self.is_integer() && [3, 6, 9].into_iter().any(within)
    }

    /// The least and the greatest number, suspects included.
    pub(crate) fn whole_range(&self) -> Option<(Decimal, Decimal)> {
        let suspects = self.suspects.values().map(|(value, _)| *value);
        let all = suspects.chain(self.range.into_iter().flat_map(|(lo, hi)| [lo, hi]));
        all.fold(None, |range: Option<(Decimal, Decimal)>, value| match range {
            None => Some((value, value)),
            Some((lo, hi)) => Some((lo.min(value), hi.max(value))),
        })
    }

    fn count(&mut self, cell: &str, marks: &Marks, hashes: &Hashes) {
        self.filled += 1;
        self.values.add(hashes.of(cell));
        if let Some(count) = self.texts.get_mut(cell) {
            *count += 1;
            self.booleans += u64::from(boolean(cell).is_some());
            return;
        }
        if let Some(plain) = marks.plain(cell)
            && let Some(value) = Decimal::read(&plain)
        {
            if !marks.around.is_empty() {
                self.written.surrounded(cell, value, marks);
            }
            return self.number((&plain, cell), value);
        }
        let may_be_time = !self.many_texts || !self.shapes.is_empty();
        if may_be_time
            && let Some(shape) = self.shape(cell)
            && self.time(cell, shape)
        {
            return;
        }
        self.booleans += u64::from(boolean(cell).is_some());
        let many = self.texts.len() >= KEPT_TEXTS;
        self.many_texts |= many;
        // What says that a row is a sum of others often stands at the end.
        if !many || seems_total(cell) {
            self.texts.insert(cell.to_owned(), 1);
        }
    }

    fn number(&mut self, (plain, cell): (&str, &str), value: Decimal) {
        if self.numbers == 0 {
            (self.counts_up, self.ascends) = (true, true);
            (self.hhmm, self.hhmmss) = (true, true);
        }
        self.numbers += 1;
        if let Some(before) = self.before {
            let one = Decimal { digits: 1, places: 0 };
            self.counts_up = self.counts_up && value.minus(before) == one;
            self.ascends = self.ascends && value >= before;
        }
        self.before = Some(value);
        self.written.negative += u64::from(value < Decimal::ZERO);
        self.written.exponents += u64::from(plain.contains(['e', 'E']));
        if value.places > 0 || plain.contains('.') {
            self.fractional = true;
            self.decimals |= value.digits % 10i128.saturating_pow(value.places.into()) != 0;
            self.written.point(plain);
        } else {
            let length = plain.trim_start_matches(['+', '-']).len();
            self.written.long += u64::from(length > 3);
            self.written.padded += u64::from(length > 2 && plain.starts_with('0'));
            self.written.plus += u64::from(length > 6 && plain.starts_with('+'));
            self.digits = Some(
                self.digits.map_or((length, length), |(lo, hi)| (lo.min(length), hi.max(length))),
            );
            if self.hhmm || self.hhmmss {
                // What is too great is no time of day.
                let whole = u32::try_from(value.digits).unwrap_or(u32::MAX);
                let parts = whole % 100 < 60 && whole / 100 % 100 < 60;
                self.hhmmss &= parts && whole <= 240_000;
                self.hhmm &= whole % 100 < 60 && whole <= 2400;
            }
        }
        if is_suspect(plain) {
            let entry = self.suspects.entry(plain.to_owned());
            count_cell(&mut entry.or_insert_with(|| (value, Cells::new())).1, cell);
            return;
        }
        self.extremes.add(value, (plain, cell));
        self.range =
            Some(self.range.map_or((value, value), |(lo, hi)| (lo.min(value), hi.max(value))));
    }

    /// The shape of a text, if a time may have it. Most texts of a column are alike.
    fn shape(&mut self, cell: &str) -> Option<String> {
        if let Some((text, shape)) = &self.last_time
            && alike(text, cell)
        {
            return Some(shape.clone());
        }
        let shape = shape::shape(cell)?;
        self.last_time = Some((cell.to_owned(), shape.clone()));
        Some(shape)
    }

    /// Counts a text of a time's shape; false if no format can read it.
    fn time(&mut self, cell: &str, shape: String) -> bool {
        if !self.shapes.contains_key(&shape) {
            if self.shapes.len() >= MAX_SHAPES {
                return false;
            }
            let formats = shape::formats(cell).into_iter();
            let formats: Vec<_> =
                formats.filter_map(|text| Format::part(&text).ok()).map(|f| (f, 0)).collect();
            if formats.is_empty() {
                return false;
            }
            self.shapes.insert(shape.clone(), ShapeCount::of(formats));
        }
        let Some(found) = self.shapes.get_mut(&shape) else { return false };
        found.count += 1;
        self.seasons += u64::from(is_season(cell));
        found.read(cell);
        true
    }
}

/// Whether a text is a year and the one after it.
fn is_season(cell: &str) -> bool {
    let parts =
        cell.split_once(['/', '-']).filter(|(year, next)| (year.len(), next.len()) == (4, 2));
    let numbers =
        parts.and_then(|(year, next)| Some((year.parse::<u32>().ok()?, next.parse().ok()?)));
    numbers.is_some_and(|(year, next): (u32, u32)| (year + 1) % 100 == next)
}

/// Whether two texts have digits at the same places, and are equal elsewhere.
fn alike(one: &str, other: &str) -> bool {
    let same = |(a, b): (u8, u8)| a == b || (a.is_ascii_digit() && b.is_ascii_digit());
    one.len() == other.len() && one.bytes().zip(other.bytes()).all(same)
}

/// What a word says that means yes or no.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["true", "yes", "y", "t", "ja", "oui", "si", "sí", "on"]) {
        return Some(true);
    }
    is(&["false", "no", "n", "f", "nein", "non", "off"]).then_some(false)
}

/// What a cell says that means yes or no, where 1 stands for yes and 0 for no too.
#[must_use]
pub fn truth(cell: &str) -> Option<bool> {
    match cell {
        "1" => Some(true),
        "0" => Some(false),
        word => boolean(word),
    }
}

/// Whether a number has the form of those that stand for a missing one: all nines, a digit
/// before nines, round negative hundreds, the ends of an integer's range.
fn is_suspect(plain: &str) -> bool {
    // All of them begin so.
    if !plain.starts_with(['-', '+', '9', '8', '6', '3', '2']) {
        return false;
    }
    let (whole, behind) = plain.split_once('.').unwrap_or((plain, ""));
    let digits = whole.trim_start_matches(['-', '+']);
    let all = |text: &str, digit: u8| text.bytes().all(|b| b == digit);
    let zeros_or_nines = all(behind, b'0') || all(behind, b'9');
    if !zeros_or_nines {
        return false;
    }
    let nines = digits.len() >= 2 && all(digits, b'9');
    let nearly = digits.len() >= 4 && digits.get(1..).is_some_and(|rest| all(rest, b'9'));
    let eights = digits.len() >= 3 && all(digits, b'8');
    let negative = whole.starts_with('-');
    let both = format!("{digits}{behind}");
    let both = both.trim_start_matches('0');
    // -9.99 and -0.99.
    let decimal_nines = negative && !behind.is_empty() && both.len() >= 2 && all(both, b'9');
    let hundreds =
        negative && digits.len() >= 3 && digits.get(1..).is_some_and(|rest| all(rest, b'0'));
    const ENDS: [&str; 6] = ["32767", "32768", "65535", "2147483647", "2147483648", "-1"];
    nines
        || decimal_nines
        || eights
        || (nearly && negative)
        || hundreds
        || ENDS.contains(&digits)
        || whole == "-1"
}

/// Looks at every cell.
pub(crate) fn profile(text: &str, form: &Form, names: &[String], watch: &mut dyn Watch) -> Profile {
    let columns = names.iter().map(|name| Column { name: name.clone(), ..Column::default() });
    let mut profile = Profile { columns: columns.collect(), rows: 0 };
    let (marks, hashes) = (form.marks(), Hashes::default());
    let missing = MissingTexts::of(&form.missing);
    scan_watched(text, form, watch, |_, scanned| {
        if let ScannedRow::Row(row) = scanned {
            profile.rows += 1;
            for (column, cell) in profile.columns.iter_mut().zip(row) {
                if !cell.is_empty() && !missing.contains(cell) {
                    column.count(cell, &marks, &hashes);
                }
            }
        }
        true
    });
    for column in &mut profile.columns {
        // Programs write whole numbers as 100.0 where one is missing.
        column.fractional &=
            column.decimals || !(is_id(&column.name) || owner_score(&column.name) > 0);
    }
    profile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_stand_for_a_missing_one_look_so() {
        for text in
            ["-999", "-7999.0", "-200", "99.99", "9999", "-888", "32767", "-1", "-999.9", "-9.99"]
        {
            assert!(is_suspect(text), "{text}");
        }
        for text in ["12", "-20", "9.9", "1999", "100", "-250", "999.5", "0"] {
            assert!(!is_suspect(text), "{text}");
        }
    }
}
