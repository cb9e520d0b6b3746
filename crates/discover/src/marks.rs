//! Which marks numbers have in a file: decided from all cells of a sample.

use crate::cells::{Delimiter, Row};
use crate::decimal_mark::BOTH;
use crate::form::MISSING;
use crate::number::{Marks, is_grouped, minus_elsewhere};
use crate::units;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// What stands around numbers in some files.
const AROUND: [&str; 22] = [
    "$", "€", "£", "%", "°C", "°F", "°", "¥", "₹", "EUR", "USD", "GBP", "CHF", "SEK", "NOK", "DKK",
    "PLN", "CAD", "AUD", "kr", "zł", "Rs.",
];
/// The part of a column's cells, in percent, that has a unit behind its number before it is taken
/// as that of the column.
const SHARE: usize = 90;

/// The marks of numbers, and what is open.
pub(crate) struct Decision {
    /// The marks.
    pub marks: Marks,
    /// A question in full sentences, if the mark cannot be known.
    pub open: Option<String>,
    /// Units written in the cells, by column.
    pub units: BTreeMap<usize, String>,
}

/// What the cells of one column say.
#[derive(Clone, Default)]
struct Votes {
    /// Cells that are not empty.
    filled: u64,
    /// Those that are numbers with or without marks.
    numbers: u64,
    /// Cells whose `.` may stand between an hour and its minutes.
    clocks: u64,
    /// Cells whose `,` or `.` can only stand before decimals.
    decimal: [u64; 2],
    /// Cells whose `,` or `.` can only stand between thousands.
    thousands: [u64; 2],
    /// Cells with one `,` or `.` before exactly three digits.
    either: [u64; 2],
    /// Cells of one to three digits.
    short: u64,
    /// Cells of four digits and more, without any mark.
    long: u64,
    spaced: u64,
    ticked: u64,
}

const MARKS: [char; 2] = [',', '.'];

/// Decides from the cells of rows. `forced` is what a person says stands before decimals.
pub(crate) fn decide(
    rows: &[Row<'_>],
    width: usize,
    delimiter: Delimiter,
    forced: Option<char>,
) -> Decision {
    let CellUnits { units, mixed: several } = units_in_cells(rows, width);
    let mut around: Vec<String> =
        units.values().chain(several.values().flatten()).cloned().collect();
    around.sort_unstable();
    around.dedup();
    // Of two units, one may be the end of the other.
    around.sort_by_key(|unit| std::cmp::Reverse(unit.len()));
    let with_units: BTreeSet<usize> = units.keys().chain(several.keys()).copied().collect();
    let mut columns = votes(rows, &with_units, width, &mut around);
    if !points_before_decimals(delimiter) {
        columns.iter_mut().for_each(Votes::without_clocks);
    }
    let sum = |of: fn(&Votes) -> u64| columns.iter().map(of).sum::<u64>();
    let comma = sum(|votes| votes.decimal[0]);
    let point = sum(|votes| votes.decimal[1]);
    let grouped = [sum(|votes| votes.thousands[0]), sum(|votes| votes.thousands[1])];
    let either = [sum(|votes| votes.either[0]), sum(|votes| votes.either[1])];
    let mut open = None;
    let decimal = match (comma > 0, point > 0) {
        _ if forced.is_some() => forced.unwrap_or('.'),
        (true, false) => ',',
        (false, true) => '.',
        (true, true) => {
            open = Some(mixed());
            if comma > point { ',' } else { '.' }
        }
        (false, false) if grouped[0] > 0 => '.',
        (false, false) if grouped[1] > 0 => ',',
        (false, false) => undecided(&columns, either, delimiter, &mut open),
    };
    if forced.is_none() && comma > 0 && point == 0 && columns.iter().any(Votes::may_have_points) {
        open = Some(beside());
    }
    let thousands = between_thousands(&columns, decimal);
    Decision { marks: Marks { decimal, thousands, around }, open, units }
}

/// What stands between thousands, if this stands before decimals.
fn between_thousands(columns: &[Votes], decimal: char) -> Option<char> {
    let sum = |of: &dyn Fn(&Votes) -> u64| columns.iter().map(of).sum::<u64>();
    let other = usize::from(decimal == ',');
    if decimal == BOTH {
        None
    } else if sum(&|votes| votes.thousands[other] + votes.either[other]) > 0 {
        Some(MARKS[other])
    } else if sum(&|votes| votes.spaced) > 0 {
        Some(' ')
    } else {
        (sum(&|votes| votes.ticked) > 0).then_some('\'')
    }
}

/// What each column says; notes what stands around numbers.
fn votes(
    rows: &[Row<'_>],
    with_units: &BTreeSet<usize>,
    width: usize,
    around: &mut Vec<String>,
) -> Vec<Votes> {
    let mut columns = vec![Votes::default(); width];
    for row in rows {
        for (at, (votes, cell)) in columns.iter_mut().zip(row).enumerate() {
            let unit = with_units.get(&at).and_then(|_| unit_behind(cell));
            let inner = unit.and_then(|unit| cell.strip_suffix(unit)).map(str::trim);
            votes.count(bare(inner.unwrap_or(cell), around));
        }
    }
    // Dates, addresses and versions have such marks too.
    columns.retain(|votes| votes.numbers * 2 >= votes.filled);
    columns
}

/// Units behind the numbers of cells, by column.
struct CellUnits {
    /// Such as the `bpm` in `72 bpm`, if nearly all cells have the same.
    units: BTreeMap<usize, String>,
    /// Several, or one that many cells lack, if nearly all cells are numbers with or without one.
    mixed: BTreeMap<usize, BTreeSet<String>>,
}

fn units_in_cells(rows: &[Row<'_>], width: usize) -> CellUnits {
    let (mut units, mut mixed) = (BTreeMap::new(), BTreeMap::new());
    for at in 0..width {
        let cells = || rows.iter().filter_map(|row| row.get(at)).filter(|cell| !cell.is_empty());
        let Some(unit) = cells().find_map(|cell| unit_behind(cell)) else { continue };
        let most = |count: usize| count * 100 >= cells().count() * SHARE;
        let same = cells().filter(|cell| unit_behind(cell) == Some(unit)).count();
        let with = cells().filter(|cell| unit_behind(cell).is_some()).count();
        if most(same) && with < same + 2 {
            units.insert(at, unit.to_owned());
            continue;
        }
        let bare = |cell: &&Cow<'_, str>| {
            cell.starts_with(|c: char| c.is_ascii_digit() || c == '-')
                && cell.chars().all(|c| c.is_ascii_digit() || "+-.,' \u{a0}\u{202f}".contains(c))
        };
        // One cell of many may be a slip.
        if with * 50 >= cells().count() && with > 1 && most(with + cells().filter(bare).count()) {
            let all = cells().filter_map(|cell| unit_behind(cell)).map(str::to_owned);
            mixed.insert(at, all.collect());
        }
    }
    CellUnits { units, mixed }
}

/// The known unit behind a number: one letter alone only behind a space.
fn unit_behind(cell: &str) -> Option<&str> {
    let end = cell.rfind(|c: char| c.is_ascii_digit())? + 1;
    let (number, behind) = cell.split_at(end);
    let unit = behind.trim();
    let plain = number.chars().all(|c| c.is_ascii_digit() || "+-.,' \u{a0}\u{202f}".contains(c));
    let short = unit.chars().count() < 2 && unit.chars().all(char::is_alphanumeric);
    let apart = behind.starts_with([' ', '\u{a0}', '\u{202f}']);
    (plain && units::is_unit(unit) && (apart || !short)).then_some(unit)
}

/// Every mark stands before three digits, so each may be either. Points alone are asked about
/// once all rows are known: see [`crate::doubts`].
fn undecided(
    columns: &[Votes],
    either: [u64; 2],
    delimiter: Delimiter,
    open: &mut Option<String>,
) -> char {
    // Numbers with a mark beside short ones without: thousands, as in `950` and `1,020`.
    let grouped = |at: usize| {
        columns.iter().any(|votes| {
            votes.either[at] > 0 && votes.short * 4 > votes.either[at] && votes.long == 0
        })
    };
    if either[0] > 0 {
        *open = Some(unknown(','));
        return if grouped(0) { '.' } else { ',' };
    }
    if either[1] > 0 && grouped(1) && !points_before_decimals(delimiter) {
        *open = Some(unknown('.'));
        return ',';
    }
    '.'
}

/// Whether what stands between cells says that a point stands before decimals: who writes 1.020
/// for a thousand writes a comma before decimals, and no comma between cells; and columns between
/// spaces are printed by programs.
pub(crate) fn points_before_decimals(delimiter: Delimiter) -> bool {
    matches!(delimiter, Delimiter::Comma | Delimiter::Spaces)
}

/// The question which of both a mark is.
pub(crate) fn unknown(mark: char) -> String {
    format!(
        "Some numbers have a `{mark}` before exactly three digits, as in 1{mark}234. It may separate decimals or thousands, and the file does not show which. Say which with `--decimal`."
    )
}

fn mixed() -> String {
    "Some numbers have a decimal point and others a decimal comma, so some of them may be read wrongly. Say which it is with `--decimal`, or `--decimal both` if each stands before decimals.".to_owned()
}

fn beside() -> String {
    "Some columns have a decimal comma, and in another each number has a `.` before exactly three digits, as in 9.137: thousands, or decimals that another program wrote. They are read as thousands. Use `--decimal ,` if that is right, or `--decimal both` if they are decimals.".to_owned()
}

/// The text within what stands around a number; notes what that was.
fn bare<'c>(cell: &'c str, around: &mut Vec<String>) -> &'c str {
    let number = |text: &str| {
        text.chars().any(|c| c.is_ascii_digit())
            && text.chars().all(|c| c.is_ascii_digit() || "+-.,' \u{a0}\u{202f}".contains(c))
    };
    let cell = minus_elsewhere(cell).unwrap_or(cell);
    let unsigned = cell.strip_prefix('-').unwrap_or(cell);
    for mark in AROUND {
        let inner =
            unsigned.strip_prefix(mark).or_else(|| unsigned.strip_suffix(mark)).map(str::trim);
        if let Some(inner) = inner.filter(|inner| number(inner)) {
            if !around.iter().any(|known| known == mark) {
                around.push(mark.to_owned());
            }
            return inner;
        }
    }
    cell
}

impl Votes {
    fn count(&mut self, cell: &str) {
        self.filled += u64::from(!cell.is_empty() && !MISSING.contains(&cell));
        let text = cell.trim_start_matches(['+', '-', '\u{2212}']);
        let text = without_exponent(text);
        if text.is_empty()
            || !text.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == ',')
        {
            return;
        }
        let mut groups = text.split(['.', ',', ' ', '\'', '\u{2019}', '\u{a0}', '\u{202f}']);
        if !groups.all(|group| group.bytes().all(|b| b.is_ascii_digit())) {
            return;
        }
        self.numbers += 1;
        let marks: Vec<char> = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        match marks.as_slice() {
            [] if text.len() <= 3 => self.short += 1,
            [] => self.long += 1,
            [mark] => self.one(text, *mark),
            several => self.several(text, several),
        }
    }

    fn one(&mut self, text: &str, mark: char) {
        let Some((whole, behind)) = text.split_once(mark) else { return };
        let grouped =
            behind.len() == 3 && (1..=3).contains(&whole.len()) && !whole.starts_with('0');
        match (MARKS.iter().position(|known| *known == mark), grouped) {
            (Some(at), true) => self.either[at] += 1,
            (Some(at), false) => {
                self.decimal[at] += 1;
                let below = |text: &str, most: u8| text.parse::<u8>().is_ok_and(|n| n < most);
                let clock = whole.len() <= 2 && behind.len() == 2;
                self.clocks +=
                    u64::from(mark == '.' && clock && below(whole, 24) && below(behind, 60));
            }
            (None, true) if matches!(mark, '\'' | '\u{2019}') => self.ticked += 1,
            (None, true) => self.spaced += 1,
            (None, false) => {}
        }
    }

    /// `1,234,567` and `1.234,5`; not a date such as `10.05.2006`.
    fn several(&mut self, text: &str, marks: &[char]) {
        let (Some(first), Some(last)) = (marks.first(), marks.last()) else { return };
        let whole =
            if first == last { text } else { text.rsplit_once(*last).map_or(text, |(w, _)| w) };
        let parts: Vec<&str> = text.split('.').collect();
        let address = parts.len() == 4 && parts.iter().all(|part| part.parse::<u8>().is_ok());
        if address || !is_grouped(whole, *first) {
            self.numbers -= 1;
            return;
        }
        match MARKS.iter().position(|known| known == first) {
            Some(at) => self.thousands[at] += 1,
            None if matches!(*first, '\'' | '\u{2019}') => self.ticked += 1,
            None => self.spaced += 1,
        }
        if first != last
            && let Some(at) = MARKS.iter().position(|known| known == last)
        {
            self.decimal[at] += 1;
        }
    }

    /// Whether each number has a point before three digits, so that nothing in the column shows which
    /// it is: of thousands, some are below 1.000 and have none, and none has four digits without a point.
    fn may_have_points(&self) -> bool {
        let shows = self.decimal[0] + self.thousands[1];
        let below = self.short * 4 > self.either[1] && self.long == 0;
        self.either[1] > 1 && shows == 0 && !below
    }

    /// Takes back what `8.30` says if it may be a time of day in the whole column.
    fn without_clocks(&mut self) {
        if self.clocks == self.numbers {
            self.decimal[1] -= self.clocks;
        }
    }
}

/// A number without the exponent behind it.
fn without_exponent(text: &str) -> &str {
    let Some((number, exponent)) = text.split_once(['e', 'E']) else { return text };
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_one = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_one { number } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cells: &[&str]) -> (char, Option<char>, bool) {
        let rows: Vec<Row<'_>> = cells.iter().map(|cell| vec![(*cell).into()]).collect();
        let found = decide(&rows, 1, Delimiter::Semicolon, None);
        (found.marks.decimal, found.marks.thousands, found.open.is_some())
    }

    #[test]
    fn marks_follow_from_the_cells() {
        assert_eq!(of(&["1.5", "2"]), ('.', None, false));
        assert_eq!(of(&["28,801", "34,02"]), (',', None, false));
        assert_eq!(of(&["1.234,5", "7"]), (',', Some('.'), false));
        assert_eq!(of(&["1,234.5", "7"]), ('.', Some(','), false));
        assert_eq!(of(&["1,234,567", "7"]), ('.', Some(','), false));
        assert_eq!(of(&["1 234,5", "12"]), (',', Some(' '), false));
        assert_eq!(of(&["1'234.5", "12"]), ('.', Some('\''), false));
        assert_eq!(of(&["10.189", "10.190"]), ('.', None, false));
        assert_eq!(of(&["2009.09.10", "10.05.2006"]), ('.', None, false));
        assert_eq!(of(&["1\u{202f}234,5 €", "12 €"]), (',', Some(' '), false));
        assert_eq!(of(&["1.234,50-", "7,00"]), (',', Some('.'), false));
        assert_eq!(of(&["12,34,567", "7"]), ('.', Some(','), false));
        assert_eq!(of(&["1,5E+03", "7,25E-1"]), (',', None, false));
    }

    #[test]
    fn what_is_no_number_does_not_decide() {
        let of = |cells: &[[&str; 2]]| {
            let rows: Vec<Row<'_>> = cells.iter().map(|row| row.map(Into::into).into()).collect();
            let found = decide(&rows, 2, Delimiter::Semicolon, None);
            (found.marks.decimal, found.marks.thousands, found.open.is_some())
        };
        // Addresses, and times of day with a point beside thousands.
        assert_eq!(of(&[["10.100.200.100", "5"], ["10.100.200.101", "6"]]), ('.', None, false));
        let clocks = [["8.30", "1.020"], ["9.15", "950"], ["23.59", "870"]];
        assert_eq!(of(&clocks), (',', Some('.'), true));
    }

    /// The comma of one column says nothing of another one's points, unless that has numbers without.
    #[test]
    fn a_decimal_comma_elsewhere_decides_no_column_in_silence() {
        let of = |cells: &[[&str; 2]]| {
            let rows: Vec<Row<'_>> = cells.iter().map(|row| row.map(Into::into).into()).collect();
            decide(&rows, 2, Delimiter::Semicolon, None).open.is_some()
        };
        assert!(of(&[["9.137", "9,26"], ["12.004", "7,10"], ["8.250", "1,00"]]));
        assert!(!of(&[["9.137", "9,26"], ["950", "7,10"], ["8.250", "1,00"]]));
        assert!(of(&[["9.137", "9,26"], ["1000", "7,10"], ["8.250", "1,00"]]));
        assert!(!of(&[["9.137,50", "9,26"], ["12.004,10", "7,10"]]));
    }

    #[test]
    fn a_unit_behind_each_number_is_found() {
        let of = |cells: &[&str]| {
            let rows: Vec<Row<'_>> = cells.iter().map(|cell| vec![(*cell).into()]).collect();
            decide(&rows, 1, Delimiter::Semicolon, None).units.get(&0).cloned()
        };
        assert_eq!(of(&["72 bpm", "80 bpm", ""]).as_deref(), Some("bpm"));
        assert_eq!(of(&["5km", "6,5km"]).as_deref(), Some("km"));
        assert_eq!(of(&["5 m", "6 m"]).as_deref(), Some("m"));
        for other in [&["12A", "13A"][..], &["5 km", "300 m"], &["1:05 PM"], &["x5", "x6"]] {
            assert_eq!(of(other), None, "{other:?}");
        }
    }

    #[test]
    fn what_a_person_says_decides_the_other_mark_too() {
        let rows: Vec<Row<'_>> = ["28,801", "34,020"].iter().map(|c| vec![(*c).into()]).collect();
        let found = decide(&rows, 1, Delimiter::Semicolon, Some('.'));
        assert_eq!((found.marks.thousands, found.open), (Some(','), None));
    }

    #[test]
    fn what_may_be_either_is_asked() {
        assert_eq!(of(&["28,801", "34,020"]), (',', None, true));
        assert_eq!(of(&["1,020", "950", "870"]), ('.', Some(','), true));
        assert_eq!(of(&["1.020", "950", "870"]), (',', Some('.'), true));
        assert!(of(&["1.5", "1,5"]).2);
    }
}
