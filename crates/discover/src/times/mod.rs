//! Which columns say when a reading was taken, and how: in one column or several, as text or
//! as numbers.

mod gaps;
mod offsets;
mod order;
mod pairing;
mod parts;
mod periods;
mod plurals;
mod refusal;
mod time_of_day;
mod time_pairs;
mod zone;

pub(crate) use order::join;

use crate::clock::{Clock, Format, Region, Unit, words};
use crate::error::DiscoverError;
use crate::form::Form;
use crate::hints::Hints;
use crate::profile::{Column, Profile};
use crate::scan::{ScannedRow, scan};
use crate::table::Table;
use crate::windows::{DAY, SECOND};
use crate::words::{CLOCK_NAMES, HOUR, ZONES, has, is};
use alpheus_time::calendar::day_text;

/// The zone of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Zone {
    /// Each value has its own.
    InValue,
    /// This one, and what says so.
    Fixed(Region, &'static str),
    /// Nothing says it.
    Unstated,
}

/// How times are read.
#[derive(Clone, Debug)]
pub struct TimePlan {
    /// The columns, in the order of the format.
    pub columns: Vec<usize>,
    /// How their texts, with a space between them, are read.
    pub clock: Clock,
    /// The zone.
    pub zone: Zone,
    /// The date of all rows, if they have only times of day.
    pub(crate) date: Option<String>,
    /// Whether times are dates alone.
    pub(crate) days: bool,
    /// What the times look like, if a person says that they have another format.
    pub looks_like: Option<String>,
    /// What is noticed.
    pub notes: Vec<String>,
    /// What cannot be known and matters.
    pub questions: Vec<String>,
}

impl TimePlan {
    /// The format for people: strftime's, several with ` or ` between them, or a unit's name.
    #[must_use]
    pub fn format(&self) -> String {
        self.clock.texts().join(" or ")
    }
}

/// The columns of a time, each with the formats that may read it.
pub(crate) struct Candidate {
    pub columns: Vec<usize>,
    pub formats: Vec<Vec<String>>,
    pub unit: Option<Unit>,
    /// The date of all rows, if they have only times of day.
    pub date: Option<String>,
    /// Other columns that hold whole times too.
    pub others: Vec<(usize, Vec<String>)>,
    /// Those of them that are as likely.
    pub peers: Vec<usize>,
    /// A date and a time of day that are as likely, with their formats.
    pub pair: Option<([usize; 2], [Vec<String>; 2])>,
    pub notes: Vec<String>,
    pub questions: Vec<String>,
}

impl Candidate {
    fn text(columns: Vec<usize>, formats: Vec<Vec<String>>) -> Candidate {
        let (others, peers, pair) = (Vec::new(), Vec::new(), None);
        let (notes, questions) = (Vec::new(), Vec::new());
        Candidate {
            columns,
            formats,
            unit: None,
            date: None,
            others,
            peers,
            pair,
            notes,
            questions,
        }
    }

    /// Takes the format that a person states.
    fn read_with(&mut self, format: &str) {
        self.unit = Unit::parse(format).filter(|_| self.columns.len() == 1);
        self.formats = if self.unit.is_some() { Vec::new() } else { vec![vec![format.to_owned()]] };
    }

    fn count(column: usize, unit: Unit) -> Candidate {
        Candidate { unit: Some(unit), ..Candidate::text(vec![column], Vec::new()) }
    }
}

/// Finds the columns of the time and decides how they are read.
///
/// # Errors
/// A [`DiscoverError`] if no column holds a time.
pub(crate) fn find(
    text: &str,
    table: &Table,
    profile: &Profile,
    hints: &Hints,
) -> Result<TimePlan, DiscoverError> {
    let (found, looks_like) = candidate(text, table, profile, hints)?;
    let names: Vec<&str> = found.columns.iter().map(|at| table.names[*at].as_str()).collect();
    let Candidate { columns, formats, unit, date, mut notes, mut questions, .. } = found;
    let days = only_days(&columns, &formats, unit, profile);
    let (mut zone, open_zone) = zone_of(text, (&columns, &names), (table, profile), hints);
    if days && zone != Zone::Unstated {
        notes.push(DAYS.to_owned());
        zone = Zone::Fixed(Region::default(), OF_UTC);
    }
    let region = match &zone {
        Zone::Fixed(region, _) => region.clone(),
        _ => Region::default(),
    };
    if let Some(unit) = unit {
        let utc = Zone::Fixed(Region::default(), "it counts from 1970 in UTC");
        let zone = if unit == Unit::SpreadsheetDays { zone } else { utc };
        // Beside a unit, a date is day 0.
        let since = date.as_deref().and_then(|date| Clock::days_since(date).ok());
        let clock = since.unwrap_or(Clock::Count(unit, region));
        notes.extend(counted_days(unit, &clock, columns.first().map(|at| &profile.columns[*at])));
        return Ok(TimePlan { columns, clock, zone, date, days, looks_like, notes, questions });
    }
    let says = columns.iter().filter_map(|at| table.units.get(*at).map(String::as_str));
    let says = names.iter().copied().chain(says).collect::<Vec<_>>().join(" ");
    let view = order::View { text, form: &table.form, columns: &columns, says };
    let formats = match &date {
        Some(date) => time_of_day::formats(&formats, date),
        None => order::decide(&view, formats, hints, &mut notes, &mut questions),
    };
    if formats.is_empty() {
        return Err(DiscoverError::UnreadableTime { name: names.join(" + ") });
    }
    notes.extend(formats.iter().any(Format::has_rest).then(|| INTERVALS.to_owned()));
    let in_value = formats.iter().all(Format::has_offset);
    questions.extend(open_zone.filter(|_| !in_value && !days));
    questions.extend(differing(&formats, &zone, hints));
    if hints.time.is_empty() && !formats.iter().any(Format::has_hour) {
        questions.extend(unused_clock(profile, &columns));
    }
    notes.extend((in_value && hints.zone.is_some()).then(|| OWN_ZONE.to_owned()));
    let zone = if in_value { Zone::InValue } else { zone };
    let clock = Clock::Formats(formats, region);
    Ok(TimePlan { columns, clock, zone, date, days, looks_like, notes, questions })
}

/// The columns of the time with all that is read together with them, and what it looks like.
fn candidate(
    text: &str,
    table: &Table,
    profile: &Profile,
    hints: &Hints,
) -> Result<(Candidate, Option<String>), DiscoverError> {
    let mut found = columns(profile, table, hints)?;
    time_of_day::add(&mut found, profile, table, hints);
    periods::add((text, &table.form), profile, hints, &mut found)?;
    time_pairs::finer((text, &table.form), profile, &mut found);
    time_pairs::ask((text, &table.form), profile, &mut found);
    time_pairs::ask_pair((text, &table.form), profile, &mut found);
    order::put_intervals_last(&mut found);
    found.questions.extend(plurals::ask(profile, hints, &found));
    let looks_like = looks_like(&found);
    if let Some(format) = &hints.time_format {
        found.read_with(format);
    }
    add_noon_column(&mut found, profile);
    add_zone_column(&mut found, profile);
    offsets::add((text, &table.form), profile, hints, &mut found);
    order::put_intervals_last(&mut found);
    found.questions.extend(order::hour_of_which_day(profile, hints, &found));
    Ok((found, looks_like))
}

/// The zone of times, with what to ask about it.
fn zone_of(
    text: &str,
    (columns, names): (&[usize], &[&str]),
    (table, profile): (&Table, &Profile),
    hints: &Hints,
) -> (Zone, Option<String>) {
    if let Some(region) = &hints.zone {
        return (Zone::Fixed(region.clone(), "you said so"), None);
    }
    let units = columns.iter().filter_map(|at| table.units.get(*at).map(String::as_str));
    let says: Vec<&str> = names.iter().copied().chain(units).collect();
    let first = first_time(text, &table.form, columns);
    match zone::find((&says, &first), &table.above) {
        (Zone::Unstated, asked) => zone::in_column(profile).unwrap_or((Zone::Unstated, asked)),
        found => found,
    }
}

/// Says which time of an interval counts.
const INTERVALS: &str =
    "Each time is an interval. Its start is the time of the row, and its end is passed over.";

/// The text of the first time with digits.
fn first_time(text: &str, form: &Form, columns: &[usize]) -> String {
    let mut first = String::new();
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        let joined = join(row, columns, form, &mut first);
        !(joined && first.contains(|c: char| c.is_ascii_digit()))
    });
    first
}

/// Says that a zone is not needed.
const OWN_ZONE: &str = "Each time states its own zone, so `--zone` changes nothing.";

/// Says of which day a number of days is in results.
fn counted_days(unit: Unit, clock: &Clock, column: Option<&Column>) -> Option<String> {
    let column = column.filter(|_| unit == Unit::Days)?;
    let (name, (first, _)) = (&column.name, column.whole_range()?);
    let number = (first.places == 0).then_some(first.digits)?;
    let day = day_text(clock.micros(&number.to_string())?.div_euclid(DAY * SECOND));
    Some(format!(
        "Each number of `{name}` is a day: {number} is {day} in results, and a window of 7 DAYS has seven of the numbers. `--date` with `--time-format days` says which date is 0."
    ))
}

/// Why dates have the zone UTC.
const OF_UTC: &str = "dates are days in UTC: nothing shifts them";
/// Says that a zone shifts no dates.
const DAYS: &str = "The times are dates without a time of day. Windows of days are days in UTC, so each date is read as a day in UTC, whatever its zone: a zone would move it to another day.";

/// Whether times are days: dates, or whole numbers of a spreadsheet's days.
fn only_days(
    columns: &[usize],
    formats: &[Vec<String>],
    unit: Option<Unit>,
    profile: &Profile,
) -> bool {
    const CLOCK: [&str; 5] = ["%H", "%I", "%M", "%S", "%p"];
    let timed = |format: &String| {
        CLOCK.iter().any(|part| format.contains(part)) || format.to_lowercase().contains("%z")
    };
    match unit {
        Some(unit) => {
            unit == Unit::SpreadsheetDays
                && columns.iter().all(|at| profile.columns[*at].is_integer())
        }
        None => !formats.iter().flatten().any(timed),
    }
}

/// Asks about times of which only some say their zone, or AM and PM.
fn differing(formats: &[Format], zone: &Zone, hints: &Hints) -> Vec<String> {
    let some = |is: &dyn Fn(&Format) -> bool| formats.iter().any(is) && !formats.iter().all(is);
    let mut questions = Vec::new();
    if some(&Format::has_offset) && *zone == Zone::Unstated {
        questions.push("Some times state their zone and others do not; the others are read as UTC. Use `--zone` if they are in another.".to_owned());
    }
    if some(&|format| format.text().contains("%p")) && hints.time_format.is_none() {
        questions.push("Some times have AM or PM and others do not; the others are read as on a 24-hour clock. Use `--time-format` if all have one format, or correct the file.".to_owned());
    }
    questions
}

/// Asks about a column that may say the time of day, if the dates do not.
fn unused_clock(profile: &Profile, used: &[usize]) -> Option<String> {
    let clock = |(at, column): &(usize, &Column)| {
        let texts = column.times() * 2 > column.filled || column.texts.len() > 1;
        let named = [CLOCK_NAMES, HOUR, &["hours"]].iter().any(|list| is(&column.name, list));
        !used.contains(at) && named && texts
    };
    let (_, column) = profile.columns.iter().enumerate().find(clock)?;
    let name = &column.name;
    Some(format!(
        "The dates have no time of day. `{name}` seems to have it, but cannot be read together with them. Name both columns with `--time` and use `--time-format`, or use `--time` with the date alone."
    ))
}

/// The formats that the columns seem to have.
fn looks_like(found: &Candidate) -> Option<String> {
    if let Some(unit) = found.unit {
        return Some(unit.says().to_owned());
    }
    let first = found.formats.iter().filter_map(|formats| formats.first().cloned());
    let joined = first.collect::<Vec<_>>().join(" ");
    (!joined.is_empty()).then_some(joined)
}

/// Takes a column of AM and PM as a part of the time.
fn add_noon_column(found: &mut Candidate, profile: &Profile) {
    let is_noon = |column: &Column| {
        let word =
            |text: &String| matches!(text.to_lowercase().replace('.', "").as_str(), "am" | "pm");
        let all = column.texts.values().sum::<u64>() == profile.rows && !column.texts.is_empty();
        all && column.texts.keys().all(word)
    };
    let twelve = found.formats.iter().flatten().any(|format| format.contains("%p"));
    let hours = found.formats.iter().flatten().any(|format| format.contains("%H"));
    if hours
        && !twelve
        && let Some(at) = profile.columns.iter().position(is_noon)
    {
        for format in found.formats.iter_mut().flatten() {
            *format = format.replace("%H", "%I");
        }
        found.columns.push(at);
        found.formats.push(vec!["%p".to_owned()]);
    }
}

/// Takes a column of zones, such as `tz_cd` with EST and EDT, as the last part of the time.
fn add_zone_column(found: &mut Candidate, profile: &Profile) {
    let is_zone = |column: &Column| {
        let known = |text: &String| words::zone(text).is_some();
        let all = column.texts.values().sum::<u64>() == profile.rows;
        all && !column.many_texts && has(&column.name, ZONES) && column.texts.keys().all(known)
    };
    let has_own =
        found.formats.iter().flatten().any(|format| format.contains("%z") || format.contains("%Z"));
    // A date alone is a day, which no zone shifts.
    let timed = found.formats.iter().flatten().any(|own| own.contains("%H") || own.contains("%I"));
    let zones: Vec<usize> =
        (0..profile.columns.len()).filter(|at| is_zone(&profile.columns[*at])).collect();
    if found.unit.is_none()
        && !has_own
        && timed
        && let Some(at) = pairing::zone(profile, &found.columns, &zones)
    {
        found.columns.push(at);
        found.formats.push(vec!["%Z".to_owned()]);
    }
}

fn columns(profile: &Profile, table: &Table, hints: &Hints) -> Result<Candidate, DiscoverError> {
    if !hints.time.is_empty() {
        return parts::named(profile, hints);
    }
    let moments = parts::moments(profile);
    // A plan, a birth or a change to the record only where nothing else has the time of each row.
    let (beside, moments) =
        moments.into_iter().partition::<Vec<_>, _>(|own| own.is_beside(profile));
    let has_gaps = |at: &usize| profile.columns[*at].has_gaps(profile.rows);
    let whole = |found: &Candidate| !found.columns.iter().any(has_gaps);
    let found = by_kind(profile, table, &moments).map(|own| gaps::weigh(profile, &moments, own));
    let found = found.filter(|found| beside.is_empty() || whole(found));
    if let Some(mut found) = found {
        parts::note_beside(profile, &beside, &mut found);
        return Ok(found);
    }
    let (changes, others) = beside.into_iter().partition::<Vec<_>, _>(|own| own.is_change(profile));
    let rest = [moments, others].concat();
    if let Some(mut found) = by_kind(profile, table, &rest) {
        parts::note_beside(profile, &changes, &mut found);
        return Ok(found);
    }
    if let Some(found) = by_kind(profile, table, &[rest, changes].concat()) {
        return Ok(found);
    }
    if let Some(name) = parts::mixed_epochs(profile) {
        return Err(DiscoverError::MixedEpochs { name });
    }
    if let Some(found) = parts::year_alone(profile) {
        return Ok(found);
    }
    if let Some(found) = time_of_day::clock(profile, table, hints) {
        return Ok(found);
    }
    // Some rows of a date's column may say more than the date.
    if let Some(found) = by_kind(profile, table, &parts::with_texts(profile)) {
        return Ok(found);
    }
    let said = hints.time_format.as_deref().and_then(Unit::parse);
    if said == Some(Unit::Days)
        && let Some(at) = refusal::counted(profile)
    {
        return Ok(Candidate::count(at, Unit::Days));
    }
    Err(DiscoverError::NoTime { elapsed: refusal::why(profile) })
}

/// The columns of the time: whole times first, then dates and times of day, parts, and numbers.
fn by_kind(profile: &Profile, table: &Table, moments: &[parts::Moments]) -> Option<Candidate> {
    parts::whole(profile, moments)
        .or_else(|| pairing::joined(profile, moments))
        .or_else(|| parts::calendar(profile, moments))
        .or_else(|| parts::counted(profile, table.has_header))
}
