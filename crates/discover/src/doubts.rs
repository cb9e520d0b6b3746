//! What a file does not say of its numbers, once all of its rows are known.

use crate::attribute::Attribute;
use crate::cells::Delimiter;
use crate::clock::Clock;
use crate::hints::Hints;
use crate::marks::{points_before_decimals, unknown};
use crate::number::Decimal;
use crate::owner_words::owner_score;
use crate::plural::{counted, verb};
use crate::profile::{Column, Profile};
use crate::table::Table;
use crate::tally::Tally;
use crate::times::TimePlan;
use crate::units;
use crate::windows::{DAY, SECOND};
use crate::words::{CHANGES, CLOCKS, ENDS, TIMES, has, worded};
use alpheus_time::calendar::day_text;
use std::collections::BTreeMap;

/// The questions of a file.
pub(crate) fn questions(
    table: &Table,
    profile: &Profile,
    (time, owner): (&TimePlan, Option<&usize>),
    hints: &Hints,
) -> Vec<String> {
    let mut found: Vec<String> = table.open_marks.clone().into_iter().collect();
    if found.is_empty() && hints.decimal.is_none() {
        found.extend(points(table, profile, time));
    }
    found.extend(table.open_header.clone());
    found.extend(lines_above(table));
    found.extend(time.columns.iter().find_map(|at| seasons(&profile.columns[*at], hints)));
    let names = time.columns.iter().chain(owner);
    found.extend(names.filter_map(|at| exponents(&profile.columns[*at])));
    let open = |column: &&Column| {
        !hints.measure.contains(&column.name) && !hints.leave_out.contains(&column.name)
    };
    found.extend(profile.columns.iter().filter(open).filter_map(mixed_units));
    let others = profile.columns.iter().enumerate().filter(|(at, _)| !time.columns.contains(at));
    found.extend(others.map(|(_, own)| own).filter(open).filter_map(numbers_as_dates));
    found
}

/// Words of columns whose numbers are never thousands.
pub(crate) const DEGREES: &[&str] = &["lat", "lon", "long", "lng", "latitude", "longitude"];

/// Asks if each point in the file stands before exactly three digits, so that it may stand
/// between thousands.
fn points(table: &Table, profile: &Profile, time: &TimePlan) -> Option<String> {
    let form = &table.form;
    // So do points before parts of a second, and dates and clocks that only countries with
    // decimal points have.
    const POINTS: [&str; 3] = ["%S.%f", "%p", "%m/%d/"];
    let format = time.format();
    if POINTS.iter().any(|part| format.contains(part)) {
        return None;
    }
    if form.decimal != '.' || form.thousands.is_some() || points_before_decimals(form.delimiter) {
        return None;
    }
    let numbers = || profile.columns.iter().filter(|column| column.is_number());
    // Of thousands, none is written without its mark.
    let decides = |column: &Column| {
        let written = &column.written;
        let degrees = has(&column.name, DEGREES);
        let others = written.long > 0 || written.points > 0 || degrees;
        written.points > written.clocks || (written.threes > 0 && others)
    };
    (!numbers().any(decides) && numbers().any(|column| column.written.threes > 0))
        .then(|| unknown('.'))
}

/// The questions that the times and the owners of all rows raise.
pub(crate) fn of_rows(
    (time, profile): (&TimePlan, &Profile),
    tally: &Tally,
    owner: Option<&str>,
    hints: &Hints,
) -> Vec<String> {
    let all = [
        half_day(time, tally, hints).or_else(|| headings(tally)),
        century(time, tally, hints),
        lengths((time, profile), tally, hints),
        nights(time, tally),
        far_days(tally, hints),
        spellings(tally, owner, hints),
    ];
    all.into_iter().flatten().collect()
}

/// Asks if all hours are those of a clock of twelve hours, which says neither AM nor PM.
fn half_day(time: &TimePlan, tally: &Tally, hints: &Hints) -> Option<String> {
    /// It shows 1 to 12.
    const TWELVE: u32 = 0b1_1111_1111_1110;
    let Clock::Formats(formats, _) = &time.clock else { return None };
    let says = formats.iter().any(|format| format.text().contains("%p"));
    let open = tally.hours == TWELVE && !says && hints.time_format.is_none();
    open.then(|| "The hours are all between 1 and 12, so the times may be on a 12-hour clock without AM and PM. Add AM and PM, or confirm the format with `--time-format`.".to_owned())
}

/// Asks if years of two digits are read as of a time when nobody has recorded anything yet.
fn century(time: &TimePlan, tally: &Tally, hints: &Hints) -> Option<String> {
    /// Days from 1970 to 2040.
    const FAR: i64 = 25_567;
    let Clock::Formats(formats, _) = &time.clock else { return None };
    let short = formats.iter().any(|format| format.text().contains("%y"));
    let day = tally.span.map(|(_, last)| last / (DAY * SECOND)).filter(|day| *day >= FAR)?;
    (short && hints.time_format.is_none()).then(|| {
        format!(
            "Years of two digits are read as 1969 to 2068, so the last time is {}. Write the years with four digits if they are of another century, or confirm them with `--time-format`.",
            day_text(day)
        )
    })
}

/// Asks if what is joined to dates may be a length of time: all of it lies in the early hours, or
/// none in the late ones and no word of its name says that it is a time of day.
fn lengths((time, profile): (&TimePlan, &Profile), tally: &Tally, hints: &Hints) -> Option<String> {
    /// Hours from 0 to 5.
    const EARLY: u32 = 0b11_1111;
    /// Hours from 18 to 23: what one does lasts less long.
    const LATE: u32 = 0b11_1111 << 18;
    const MIN_DAYS: i64 = 5;
    let [date, clock] = time.columns.as_slice() else { return None };
    let (date, clock) = (&profile.columns[*date], &profile.columns[*clock]);
    let is_clock = !clock.shapes.is_empty() && !clock.shapes.values().all(|shape| shape.midnight);
    let span = tally.span.map_or(0, |(first, last)| (last - first) / (DAY * SECOND));
    let early = tally.hours != 0 && tally.hours & !EARLY == 0;
    let named = [TIMES, CLOCKS, CHANGES, ENDS].into_iter().any(|list| has(&clock.name, list));
    let unnamed = !named && tally.hours & LATE == 0;
    let (own, day) = (worded(&clock.name), worded(&date.name));
    let before = if early { "6:00" } else { "18:00" };
    let open = (early || unnamed) && is_clock && span >= MIN_DAYS;
    (open && hints.time.is_empty()).then(|| {
        format!(
            "All times in `{}` are before {before}, so they may be durations, such as those of runs, rather than times of day. Use `--time {day}` if they are durations, or `--time {day} --time {own}` if not.",
            clock.name
        )
    })
}

/// Asks if times of day pass midnight, so that one date does not fit all rows.
fn nights(time: &TimePlan, tally: &Tally) -> Option<String> {
    let date = time.date.as_ref().filter(|_| !matches!(time.clock, Clock::DaysSince(_)))?;
    let times = tally.nights.passed();
    (times > 0).then(|| {
        let jumps = counted(times, "time");
        format!(
            "The times of day of one owner jump by more than 12 hours from row to row, {jumps}, so they seem to pass midnight, but all are read as of {date}. Add a column with the date of each row; if all are of that day, sort the rows of each owner by time."
        )
    })
}

/// Asks about rows of one owner at one time, as many at nearly each time or most of them, if nothing
/// else is asked and nothing was stated about what distinguishes them; else about a file of one time.
pub(crate) fn at_once(tally: &Tally, owner: Option<&str>, hints: &Hints) -> Option<String> {
    if hints.owner.is_some() {
        return None;
    }
    let others = tally.same_time > tally.duplicates;
    let each =
        tally.rows_at_once.map(|rows| format!("Each owner has {rows} rows at nearly every time."));
    let most = is_crowded(tally, owner).then(|| {
        let (same, rows) = (tally.same_time, tally.rows);
        format!("{same} of {rows} rows have the same time as another row of the same owner.")
    });
    let says = each.or(most).filter(|_| others);
    let owner_word = worded(owner.unwrap_or("none"));
    says.map(|says| {
        format!(
            "{says} They may belong to several owners or be of several kinds, or no column may give the time of day in a form that can be read. Name the column that tells owners apart with `--owner COLUMN`, or the time with `--time`; use `--owner {owner_word}` if all rows may be added up."
        )
    }).or_else(|| one_time(tally, owner?))
}

/// Whether more than half of the rows have the time of another of their owner: a person may buy
/// several things on a day, and an area then seems to hold several owners.
fn is_crowded(tally: &Tally, owner: Option<&str>) -> bool {
    let least = match owner.map_or(0, owner_score) {
        100 => 19,
        80.. => 16,
        _ => 10,
    };
    tally.same_time * 20 > tally.rows * least
}

/// Asks about a file of one time: nothing then shows that a column which repeats names owners.
fn one_time(tally: &Tally, owner: &str) -> Option<String> {
    let (first, last) = tally.span?;
    let sure = tally.same_time == 0 && owner_score(owner) >= 80;
    let word = worded(owner);
    (first == last && tally.rows > 2 && !sure).then(|| {
        format!(
            "All rows have the same time, so nothing shows whether `{owner}` names their owner. Use `--owner {word}` if it does, `--owner none` if all rows belong to one owner, or name another column with `--time` if that is the time."
        )
    })
}

/// Asks about numbers that go round from row to row, where nothing says whose a row is.
pub(crate) fn rounds(
    attributes: &[Attribute],
    tally: &Tally,
    owner: Option<usize>,
    hints: &Hints,
) -> Option<String> {
    if owner.is_some() || hints.owner.is_some() || attributes.len() < 2 {
        return None;
    }
    let open = |own: &Attribute| !hints.measure.contains(&own.column);
    let mut all = attributes.iter().zip(&tally.totals).filter(|(own, _)| open(own));
    let (own, (first, last)) = all.find_map(|(own, total)| Some((own, total.rounds.ends()?)))?;
    let (name, word) = (&own.column, worded(&own.column));
    Some(format!(
        "The numbers of `{name}` go from {first} to {last} again and again, so they seem to name something rather than to measure. Use `--owner {word}` if they name the owner of a row, `--leave-out {word}` if not, or `--measure {word}` if they are measurements."
    ))
}

/// Asks about owners whose names differ only in capital letters, spaces and zeros, if they are many.
fn spellings(tally: &Tally, owner: Option<&str>, hints: &Hints) -> Option<String> {
    let alike = tally.owners - tally.spellings;
    let (owner, owners, others) = (owner?, tally.owners, tally.spellings);
    (alike * 10 >= owners && hints.owner.is_none()).then(|| {
        format!(
            "`{owner}` has {owners} names, but only {others} if capital letters, spaces and leading zeros do not matter. If there are {others} owners, write each name in one way, since a crowd would count them twice; else use `--owner {}`.",
            worded(owner)
        )
    })
}

/// Asks about years such as 2001/02, which are read as months.
fn seasons(column: &Column, hints: &Hints) -> Option<String> {
    let all = column.seasons > 0 && column.seasons == column.filled && column.distinct() > 1;
    (all && hints.time_format.is_none()).then(|| {
        let (name, word) = (&column.name, worded(&column.name));
        format!(
            "All values of `{name}` are like 2001/02, a year followed by the next one, so they may be seasons or business years rather than months. Add a column with the day on which each begins. If they are months, use `--time {word} --time-format %Y-%m`, with the separator that the file has."
        )
    })
}

/// Asks about lines above the header that are rows of another table.
fn lines_above(table: &Table) -> Option<String> {
    const MIN: usize = 10;
    let delimiter = table.form.delimiter;
    if delimiter == Delimiter::Spaces {
        return None;
    }
    let width = |line: &String| line.bytes().filter(|byte| delimiter.is(*byte)).count() + 1;
    let number = |line: &&String| line.bytes().any(|byte| byte.is_ascii_digit());
    let mut widths: BTreeMap<usize, usize> = BTreeMap::new();
    for line in table.above.iter().filter(number).filter(|line| width(line) > 2) {
        *widths.entry(width(line)).or_default() += 1;
    }
    let lines = widths.into_values().max().filter(|lines| *lines >= MIN)?;
    Some(format!(
        "{lines} lines above the header look like rows of another table; they are not read. Put each table in its own file, or remove these lines."
    ))
}

/// Asks about days far from all others: a clock may not have been set.
fn far_days(tally: &Tally, hints: &Hints) -> Option<String> {
    let found = tally.days.clone().far().filter(|_| !hints.keep_far_days)?;
    let text = |(first, last): (i64, i64)| match first == last {
        true => format!("on {}", day_text(first)),
        false => format!("from {} to {}", day_text(first), day_text(last)),
    };
    let (rows, lie) = (counted(found.rows, "row"), verb(found.rows, "lies", "lie"));
    Some(format!(
        "{rows} {lie} far from all others in time: {}, all others {}. Perhaps a clock was not set, or a year was mistyped. Correct or remove these rows, or use `--keep-far-days` if their times are right.",
        text(found.far),
        text(found.others)
    ))
}

/// Asks about times and names that a spreadsheet has shortened, as in `1.70528E+12`.
fn exponents(column: &Column) -> Option<String> {
    let (name, count) = (&column.name, column.written.exponents);
    (count > 0).then(|| {
        format!(
            "{count} numbers of `{name}` have an exponent, so their last digits may be lost, and different numbers may look the same. Use the original file."
        )
    })
}

/// Asks about names among the readings, below which others may stand than above.
fn headings(tally: &Tally) -> Option<String> {
    let line = tally.heading?;
    Some(format!(
        "Line {line} seems to have column names that differ from those at the start, so another table may begin there. Put each table in its own file."
    ))
}

/// Asks about numbers that are dates by their column's name, such as 120703 for 7 December 2003: no
/// sum of them means anything.
fn numbers_as_dates(column: &Column) -> Option<String> {
    const DATES: &[&str] = &["date", "datum", "fecha", "dato"];
    /// Less is a day of a month or of a year.
    const MIN_DATE: Decimal = Decimal { digits: 1000, places: 0 };
    let (least, most) = column.whole_range().filter(|(least, _)| *least >= MIN_DATE)?;
    let (least, most) = (least.digits, most.digits);
    let open = column.is_number() && !column.fractional && !column.may_be_times();
    (open && has(&column.name, DATES)).then(|| {
        let (name, word) = (&column.name, worded(&column.name));
        format!(
            "`{name}` is a date by its name, but its numbers, from {least} to {most}, are in no format that is read without help. If it is the time, use `--time {word}` and say with `--time-format` how it is written, such as %m%d%y for 120703; else use `--leave-out {word}`, or `--measure {word}` if its numbers are measurements."
        )
    })
}

/// Asks if the numbers of a column have different units.
fn mixed_units(column: &Column) -> Option<String> {
    let written = &column.written;
    let with: u64 = written.around.values().sum();
    let of_unit = |around: &String| units::is_written_out(around) && written.bare * 10 > with;
    let shares = written.bare > 0 && written.around.keys().any(|own| own == "%" || of_unit(own));
    if !column.is_number() || (written.around.len() < 2 && !shares) {
        return None;
    }
    let each = written.around.iter().map(|(around, count)| format!("{count} with `{around}`"));
    let bare = (written.bare > 0).then(|| format!("{} without", written.bare));
    let each: Vec<String> = each.chain(bare).collect();
    let (name, word) = (&column.name, worded(&column.name));
    Some(format!(
        "The numbers of `{name}` have different units: {}. A sum would mix these. Convert them, or use `--measure {word}` if they may be added up.",
        each.join(", ")
    ))
}
