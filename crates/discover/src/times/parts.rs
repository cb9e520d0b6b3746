//! Candidates for the columns of the time.

use super::{Candidate, pairing, plurals};
use crate::clock::Unit;
use crate::clock::words;
use crate::error::DiscoverError;
use crate::hints::Hints;
use crate::number::Decimal;
use crate::owner_words::owner_score;
use crate::profile::{Column, Profile};
use crate::words::worded;
use crate::words::words as words_of;
use crate::words::{
    BIRTHS, CHANGES, DAY, ENDS, HHMM, HOUR, MINUTE, MONTH, ORDINAL, PLANS, RECORDS, SECOND, TIMES,
    WEEK, YEAR, has, is,
};

/// A column of texts that are times.
#[derive(Clone)]
pub(super) struct Moments {
    pub(super) column: usize,
    /// Whether each has a date.
    pub(super) date: bool,
    /// Whether some have a time of day.
    pub(super) clock: bool,
    /// Whether all times of day are midnight.
    midnight: bool,
    /// Whether nearly none is beyond a day, as a length of time such as 45:30 is.
    pub(super) within_day: bool,
    pub(super) formats: Vec<String>,
}

impl Moments {
    /// Whether a name says that the times are of a plan, a birth or a change to the record.
    pub(super) fn is_beside(&self, profile: &Profile) -> bool {
        let name = &profile.columns[self.column].name;
        [PLANS, BIRTHS, RECORDS].iter().any(|list| has(name, list))
    }

    /// Whether a name says that the times are of a change to the record.
    pub(super) fn is_change(&self, profile: &Profile) -> bool {
        has(&profile.columns[self.column].name, RECORDS)
    }
}

/// The columns whose values are nearly all times by their shape.
pub(super) fn moments(profile: &Profile) -> Vec<Moments> {
    columns_of(profile, |column| column.times() * 10 >= column.filled * 9)
}

/// The same, and columns of a time's name that have a few other texts, such as `Total` or a date
/// with a remark.
pub(super) fn with_texts(profile: &Profile) -> Vec<Moments> {
    let likely = |column: &Column| column.times() * 4 >= column.filled * 3 && is_time(&column.name);
    columns_of(profile, likely)
}

fn columns_of(profile: &Profile, likely: impl Fn(&Column) -> bool) -> Vec<Moments> {
    let half = |column: &Column| column.times() * 2 >= profile.rows;
    let columns = profile.columns.iter().enumerate();
    let likely = columns.filter(|(_, column)| half(column) && likely(column));
    likely.filter_map(|(at, column)| of_column(at, column)).collect()
}

fn of_column(at: usize, column: &Column) -> Option<Moments> {
    let has_date = |text: &str| ["%Y", "%y", "%G"].iter().any(|year| text.contains(year));
    let has_clock = |text: &str| text.contains("%H") || text.contains("%I");
    let (mut date, mut dated, mut clock, mut midnight) = (true, false, false, true);
    let (mut formats, mut failures) = (Vec::new(), 0);
    let mut shapes: Vec<_> = column.shapes.values().collect();
    shapes.sort_by_key(|shape| std::cmp::Reverse(shape.count));
    for shape in shapes {
        let (best, least) = shape.formats.iter().min_by_key(|(_, failed)| *failed)?;
        failures += least;
        date &= has_date(best.text());
        clock |= has_clock(best.text());
        dated |= has_date(best.text());
        midnight &= shape.midnight;
        // Formats that differ in the order of day and month alone are weighed later.
        let good = shape.formats.iter().filter(|(_, failed)| {
            failed == least || (*failed < shape.count && least * 100 > shape.count)
        });
        formats.extend(good.map(|(format, _)| format.text().to_owned()));
    }
    weeks_or_months(column, &mut formats);
    // A column where some have a date and others none is no time.
    (date == dated && !formats.is_empty()).then_some(Moments {
        column: at,
        date,
        clock,
        midnight,
        within_day: failures * 20 <= column.filled,
        formats,
    })
}

/// Of `2024-05` the name of the column says whether it is a week or a month.
fn weeks_or_months(column: &Column, formats: &mut Vec<String>) {
    let weeks = has(&column.name, WEEK);
    let both = formats.iter().any(|own| own.contains("%m"));
    if both && formats.iter().any(|own| own.contains("%V")) {
        formats.retain(|own| own.contains("%V") == weeks);
    }
}

/// One column with date and time of day; or a date alone, if no column has the time of day.
pub(super) fn whole(profile: &Profile, moments: &[Moments]) -> Option<Candidate> {
    let full: Vec<&Moments> = moments.iter().filter(|m| m.date && m.clock).collect();
    let clocked = pairing::has_clocks(profile, moments);
    let full: Vec<&Moments> = full.into_iter().filter(|m| !(m.midnight && clocked)).collect();
    let best = full.iter().copied().min_by_key(|found| rank(profile, found))?;
    if profile.columns[best.column].distinct() < 2
        && profile.rows > 1
        && pairing::varies(profile, moments)
    {
        return None;
    }
    let mut found = Candidate::text(vec![best.column], vec![best.formats.clone()]);
    for other in full.iter().filter(|other| other.column != best.column) {
        let (own, name) = (&profile.columns[best.column].name, &profile.columns[other.column].name);
        found.notes.push(taken_from(name, own));
        found.questions.extend(either(profile, best, other));
        found.others.push((other.column, other.formats.clone()));
        found.peers.extend((rank(profile, best) == rank(profile, other)).then_some(other.column));
    }
    found.pair = pairing::beside(profile, moments, best);
    note_dates(profile, moments, &mut found);
    Some(found)
}

/// Says that dates of something else are not taken.
fn note_dates(profile: &Profile, moments: &[Moments], found: &mut Candidate) {
    let Some(own) = found.columns.first().map(|at| &profile.columns[*at].name) else { return };
    let of = |m: &Moments| &profile.columns[m.column].name;
    let other = |m: &&Moments| {
        let about = pairing::about(of(m));
        let names = owner_score(of(m)) > 0;
        m.date && !m.clock && !names && !about.is_empty() && about != pairing::about(own)
    };
    found.notes.extend(moments.iter().filter(other).map(|m| taken_from(of(m), own)));
}

/// Says which of several columns has the time.
pub(super) fn taken_from(other: &str, own: &str) -> String {
    format!("`{other}` holds times too; the time of a row is taken from `{own}`.")
}

/// Says of columns beside the time that they hold times too. If the time is the end of something,
/// one of them may be that of the row.
pub(super) fn note_beside(profile: &Profile, beside: &[Moments], found: &mut Candidate) {
    let name = |at: usize| &profile.columns[at].name;
    let Some(own) = found.columns.first().map(|at| name(*at)) else { return };
    for one in beside.iter().filter(|one| one.date) {
        let other = name(one.column);
        found.notes.push(taken_from(other, own));
        if one.clock && has(own, ENDS) && !has(other, BIRTHS) {
            found.questions.push(which(&[own], &[other]));
        }
    }
}

/// Asks which of two columns has the time, if no word of their names says it.
fn either(profile: &Profile, best: &Moments, other: &Moments) -> Option<String> {
    let tied = rank(profile, best) == rank(profile, other);
    let [own, name] = [best, other].map(|one| &profile.columns[one.column].name);
    let unknown =
        |name: &str| !(is_time(name) || [CHANGES, ENDS, PLANS].iter().any(|list| has(name, list)));
    (tied && unknown(own) && unknown(name)).then(|| which(&[own], &[name]))
}

/// Asks which of two times is that of the reading. Each is in one column, or in several together.
pub(super) fn which(own: &[&str], other: &[&str]) -> String {
    let names = |all: &[&str]| all.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
    let (first, second) = (names(own).join(" with "), names(other).join(" with "));
    format!(
        "{first} and {second} both hold times, and no name says which is that of the reading. {first} is read. Use `{}` if that is right, or `{}` if not.",
        options(own),
        options(other)
    )
}

/// How a person names the columns of the time.
pub(super) fn options(names: &[&str]) -> String {
    names.iter().map(|name| format!("--time {}", worded(name))).collect::<Vec<_>>().join(" ")
}

/// Whether a name says that the column has the time of a reading. `at` says it alone: with another
/// word it is the time of what that word says.
pub(super) fn is_time(name: &str) -> bool {
    has(name, TIMES) || name.trim().eq_ignore_ascii_case("at")
}

/// How little a column's name says that it is the time of a reading, and not of a change to its
/// record or of its end.
pub(super) fn rank(profile: &Profile, moments: &Moments) -> u8 {
    let column = &profile.columns[moments.column];
    let name = &column.name;
    let gaps = column.has_gaps(profile.rows);
    let utc = has(name, &["utc", "gmt"]);
    4 * u8::from(gaps)
        + match (is_time(name), has(name, CHANGES)) {
            // The range of an export is the same in all rows.
            _ if column.distinct() < 2 => 9,
            _ if has(name, BIRTHS) => 8,
            // It says its zone.
            _ if has(name, PLANS) => 3,
            _ if has(name, ENDS) => 4,
            (true, false) if utc => 0,
            (true, false) => 1,
            (false, false) => 2,
            (_, true) => 3,
        }
}

/// A column of integers such as 20240131, each a date, or with hours and minutes behind it.
pub(super) fn compact_date(profile: &Profile) -> Option<(usize, Vec<String>)> {
    for (at, column) in profile.columns.iter().enumerate() {
        if !is_whole(profile, column) {
            continue;
        }
        let Some((short, long)) = column.digits.filter(|(short, long)| short == long) else {
            continue;
        };
        let (lo, hi) = column.whole_range()?;
        let named =
            has(&column.name, TIMES) || is(&column.name, &["yyyymm", "month", "yyyymmddhh"]);
        let weeks = has(&column.name, WEEK) && lo.digits % 100 > 0 && hi.digits % 100 <= 53;
        let years = |rest: u32| {
            let unit = 10i128.pow(rest);
            (1850..=2100).contains(&(lo.digits / unit))
                && (1850..=2100).contains(&(hi.digits / unit))
        };
        let format = match short.max(long) {
            8 if years(4) && months(column, 4) => "%Y%m%d",
            12 if years(8) && months(column, 8) => "%Y%m%d%H%M",
            14 if years(10) && months(column, 10) => "%Y%m%d%H%M%S",
            10 if named && years(6) && months(column, 6) => "%Y%m%d%H",
            7 if named && years(3) => "%Y%j",
            6 if weeks && years(2) => "%G%V",
            6 if named && years(2) && months(column, 2) => "%Y%m",
            _ => continue,
        };
        return Some((at, vec![format.to_owned()]));
    }
    None
}

/// Whether the two digits behind the year are a month in the least and the greatest number.
fn months(column: &Column, rest: u32) -> bool {
    let month = |value: Decimal| (1..=12).contains(&(value.digits / 10i128.pow(rest - 2) % 100));
    column.whole_range().is_some_and(|(lo, hi)| month(lo) && month(hi))
}

/// Whether nearly every row has an integer. A row of totals at the end may have another text.
fn is_whole(profile: &Profile, column: &Column) -> bool {
    let integers = column.numbers * 100 >= column.filled * 99 && !column.fractional;
    integers && column.numbers > 0 && column.numbers * 10 >= profile.rows * 9
}

/// An hour, or `hhmm`, as a number.
pub(super) fn number_clock(profile: &Profile, date: usize) -> Option<(usize, &'static str)> {
    if let Some(hour) = part(profile, HOUR, 0, 24, &[date]) {
        return Some((hour, "%H"));
    }
    let named = |(at, column): &(usize, &Column)| {
        *at != date && is_whole(profile, column) && is(&column.name, HHMM)
    };
    let (at, column) = profile.columns.iter().enumerate().find(named)?;
    // Readings that all lie in the first minutes of a day are rarer than hours in a column of another
    // name.
    let is_hour = column.whole_range().is_some_and(|(_, most)| most.digits <= 24);
    if is_hour && !has(&column.name, &["hhmm"]) {
        return Some((at, "%H"));
    }
    match (column.hhmm, column.hhmmss) {
        (true, _) => Some((at, "%H%M")),
        (false, true) => Some((at, "%H%M%S")),
        (false, false) => None,
    }
}

/// An integer column of one of these names, within these bounds.
pub(super) fn part(
    profile: &Profile,
    names: &[&str],
    lo: i128,
    hi: i128,
    used: &[usize],
) -> Option<usize> {
    let fits = |(at, column): &(usize, &Column)| {
        let within = column
            .whole_range()
            .is_some_and(|(least, most)| least.digits >= lo && most.digits <= hi);
        !used.contains(at) && is_whole(profile, column) && within && is(&column.name, names)
    };
    profile.columns.iter().enumerate().find(fits).map(|(at, _)| at)
}

/// A column of months by name.
fn named_month(profile: &Profile, used: &[usize]) -> Option<usize> {
    let fits = |(at, column): &(usize, &Column)| {
        let known = column.texts.keys().all(|text| words::month(text).is_some());
        let texts: u64 = column.texts.values().sum();
        !used.contains(at) && is(&column.name, MONTH) && known && texts == profile.rows
    };
    profile.columns.iter().enumerate().find(fits).map(|(at, _)| at)
}

/// Year, month and day in columns of their own, or year and day of the year, or year and week;
/// with hour, minute and second if they are there.
pub(super) fn calendar(profile: &Profile, moments: &[Moments]) -> Option<Candidate> {
    let short = |year: usize| profile.columns[year].digits.is_some_and(|(_, most)| most <= 2);
    let year = part(profile, YEAR, 1850, 2100, &[]).or_else(|| part(profile, YEAR, 0, 99, &[]))?;
    let mut columns = vec![year];
    let mut formats = vec![if short(year) { "%y" } else { "%Y" }];
    let month = part(profile, MONTH, 1, 12, &columns).map(|at| (at, "%m"));
    let month = month.or_else(|| named_month(profile, &columns).map(|at| (at, "%b")));
    let mut notes = Vec::new();
    if let Some((month, format)) = month {
        columns.push(month);
        formats.push(format);
        if let Some(day) = part(profile, DAY, 1, 31, &columns) {
            columns.push(day);
            formats.push("%d");
        }
    } else if let Some(day) = part(profile, ORDINAL, 1, 366, &columns) {
        columns.push(day);
        formats.push("%j");
    } else {
        let week = part(profile, WEEK, 1, 53, &columns).filter(|_| !short(year))?;
        columns.push(week);
        formats = vec!["%G", "%V"];
        notes.push("Weeks are read as ISO weeks, which begin on Mondays.".to_owned());
    }
    let clock = [(HOUR, 24, "%H"), (MINUTE, 59, "%M"), (SECOND, 60, "%S")];
    for (names, most, format) in clock {
        let Some(at) = part(profile, names, 0, most, &columns) else { break };
        columns.push(at);
        formats.push(format);
    }
    let mut formats: Vec<Vec<String>> =
        formats.into_iter().map(|format| vec![format.to_owned()]).collect();
    if !formats.iter().flatten().any(|format| format == "%H") {
        let text = pairing::clocks(profile, moments, year).into_iter().next();
        let text = text.map(|clock| (clock.column, clock.formats.clone()));
        let number =
            || number_clock(profile, year).map(|(at, format)| (at, vec![format.to_owned()]));
        let clock = text.or_else(number).filter(|(at, _)| !columns.contains(at));
        if let Some((clock, format)) = clock {
            columns.push(clock);
            formats.push(format);
        }
    }
    let mut found = Candidate::text(columns, formats);
    found.notes = notes;
    Some(found)
}

/// A column of a time's name whose numbers lie where seconds since 1970 do, and where smaller
/// parts of them do.
pub(super) fn mixed_epochs(profile: &Profile) -> Option<String> {
    let mixed = |column: &&Column| {
        let far = Decimal { digits: 100_000_000_000, places: 0 };
        let wide = column.whole_range().is_some_and(|(_, hi)| hi > far);
        column.counts_seconds() && wide && has(&column.name, TIMES)
    };
    profile.columns.iter().find(mixed).map(|column| column.name.clone())
}

/// A number that counts from 1970, or a spreadsheet's days.
pub(super) fn counted(profile: &Profile, has_header: bool) -> Option<Candidate> {
    let units = [
        (Unit::Seconds, 0),
        (Unit::Milliseconds, 3),
        (Unit::Microseconds, 6),
        (Unit::Nanoseconds, 9),
    ];
    let mut found: Vec<(usize, Unit)> = Vec::new();
    for (at, column) in profile.columns.iter().enumerate() {
        let Some((lo, hi)) = column.whole_range() else { continue };
        if column.numbers != column.filled
            || column.numbers * 10 < profile.rows * 9
            || !is_timelike(column, has_header)
        {
            continue;
        }
        // From 1985 to 2100.
        let within = |power: u32, least: i128, most: i128| {
            let scale = |value: i128| Decimal { digits: value * 10i128.pow(power), places: 0 };
            lo >= scale(least) && hi <= scale(most)
        };
        let unit = units.iter().find(|(_, power)| within(*power, 473_385_600, 4_102_444_800));
        let days = within(0, 20_000, 73_000) && has(&column.name, TIMES);
        match unit {
            Some((unit, _)) => found.push((at, *unit)),
            None if days => found.push((at, Unit::SpreadsheetDays)),
            None => {}
        }
    }
    let named = found.iter().find(|(at, _)| has(&profile.columns[*at].name, TIMES));
    let (column, unit) = *named.or(found.first())?;
    let mut chosen = Candidate::count(column, unit);
    if unit == Unit::SpreadsheetDays && !profile.columns[column].fractional {
        let name = &profile.columns[column].name;
        let word = worded(name);
        chosen.questions.push(format!("The whole numbers of `{name}` are read as spreadsheet days, where 45292 is 2024-01-01. Confirm it with `--time {word} --time-format spreadsheet-days`, or name the column of the time with `--time`."));
    }
    for (other, unit) in found.iter().filter(|(other, _)| *other != column) {
        let (own, name) = (&profile.columns[column].name, &profile.columns[*other].name);
        chosen.notes.push(format!(
            "`{name}` may be a time too ({}); the time of a row is taken from `{own}`.",
            unit.says()
        ));
    }
    Some(chosen)
}

/// Whether a column's name, or its order in a file without names, lets it be a time.
fn is_timelike(column: &Column, has_header: bool) -> bool {
    /// `t_ms` and the like.
    const LAST: &[&str] = &["at", "ms", "us", "ns", "millis", "epoch"];
    has(&column.name, TIMES)
        || is(&column.name, &["t"])
        || words_of(&column.name).last().is_some_and(|word| LAST.contains(&word.as_str()))
        || (!has_header && column.ascends && column.distinct() > 1)
}

/// Years alone.
pub(super) fn year_alone(profile: &Profile) -> Option<Candidate> {
    let year = part(profile, YEAR, 1850, 2100, &[])?;
    (profile.columns[year].digits == Some((4, 4)))
        .then(|| Candidate::text(vec![year], vec![vec!["%Y".to_owned()]]))
}

/// The columns that were named, in their order.
///
/// # Errors
/// If there is no such column, or it holds no times.
pub(super) fn named(profile: &Profile, hints: &Hints) -> Result<Candidate, DiscoverError> {
    let (mut columns, mut formats) = (Vec::new(), Vec::new());
    for name in &hints.time {
        let at = hints.position(name, profile.columns.iter().map(|column| column.name.as_str()))?;
        columns.push(at);
        if hints.time_format.is_none() {
            formats.push(of_named(profile, at)?);
        }
    }
    if let ([at], Some([format])) = (columns.as_slice(), formats.first().map(Vec::as_slice))
        && let Some(unit) = [
            Unit::Seconds,
            Unit::Milliseconds,
            Unit::Microseconds,
            Unit::Nanoseconds,
            Unit::SpreadsheetDays,
        ]
        .into_iter()
        .find(|unit| unit.name() == format)
    {
        return Ok(Candidate::count(*at, unit));
    }
    Ok(Candidate::text(columns, formats))
}

/// The formats of a column, whatever its name; a unit's name if it counts.
pub(super) fn of_named(profile: &Profile, at: usize) -> Result<Vec<String>, DiscoverError> {
    let column = &profile.columns[at];
    let mut renamed = column.clone();
    "time".clone_into(&mut renamed.name);
    let alone = Profile { columns: vec![renamed], rows: column.filled };
    if let Some(moments) = moments(&alone).into_iter().next() {
        return Ok(moments.formats);
    }
    if let Some((_, formats)) = compact_date(&alone) {
        return Ok(formats);
    }
    if let Some(unit) = counted(&alone, true).and_then(|found| found.unit) {
        return Ok(vec![unit.name().to_owned()]);
    }
    let parts = [
        (YEAR, "%Y"),
        (MONTH, "%m"),
        (DAY, "%d"),
        (HOUR, "%H"),
        (MINUTE, "%M"),
        (SECOND, "%S"),
        (ORDINAL, "%j"),
        (HHMM, "%H%M"),
    ];
    let known = parts.iter().find(|(names, _)| is(&column.name, names));
    known
        .map(|(_, format)| *format)
        .or_else(|| plurals::format(&column.name))
        .map(|format| vec![format.to_owned()])
        .ok_or_else(|| DiscoverError::UnreadableTime { name: column.name.clone() })
}
