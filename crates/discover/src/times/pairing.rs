//! Dates, times of day and zones in columns of their own: which belong together.

use super::Candidate;
use super::parts::{Moments, compact_date, moments, number_clock, part, rank, taken_from, which};
use crate::owner_words::owner_score;
use crate::profile::Profile;
use crate::words::{CHANGES, CLOCKS, LENGTHS, MINUTE, TIMES, has, words};

/// Words that say that a column has dates, times of day or zones, and nothing of what.
const FORMS: &[&str] = &[
    "date",
    "datetime",
    "dt",
    "day",
    "time",
    "timeofday",
    "tm",
    "clock",
    "hour",
    "hh",
    "mm",
    "ss",
    "hhmm",
    "hhmmss",
    "yyyymmdd",
    "datum",
    "tag",
    "zeit",
    "uhrzeit",
    "fecha",
    "hora",
    "heure",
    "jour",
    "data",
    "ora",
    "tijd",
    "dag",
    "uur",
    "dato",
    "tid",
    "zone",
    "timezone",
    "tz",
    "cd",
    "code",
    "of",
    "the",
    "at",
    "on",
];

/// Ends of words such as `startdate`.
const ENDINGS: &[&str] = &["datetime", "timezone", "date", "time", "datum", "zeit"];

/// Words of what a row is about, rather than of a report of it.
const EVENTS: &[&str] =
    &["event", "sample", "sampling", "measurement", "observation", "reading", "incident"];

/// What a name says besides the form of its column: `VisitStartDate` and `visit_start_time` are
/// both about `start visit`.
pub(super) fn about(name: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in words(name).into_iter().filter(|word| !FORMS.contains(&word.as_str())) {
        let stem = ENDINGS.iter().find_map(|end| word.strip_suffix(end));
        found.push(stem.filter(|stem| stem.len() > 2).unwrap_or(&word).to_owned());
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn about_column(profile: &Profile, at: usize) -> Vec<String> {
    about(&profile.columns[at].name)
}

/// Times of day, but for what a name says to be a length of time.
fn all_clocks<'m>(profile: &Profile, moments: &'m [Moments]) -> Vec<&'m Moments> {
    let is_clock =
        |m: &&Moments| !m.date && m.within_day && !has(&profile.columns[m.column].name, LENGTHS);
    moments.iter().filter(is_clock).collect()
}

/// Of several times of day, those whose names say nothing besides; a lone one beside the date may
/// have any name.
pub(super) fn clocks<'m>(
    profile: &Profile,
    moments: &'m [Moments],
    date: usize,
) -> Vec<&'m Moments> {
    let all = all_clocks(profile, moments);
    let is_known = |word: &String| {
        let known = |list: &[&str]| list.contains(&word.as_str());
        known(TIMES) || known(CHANGES) || known(CLOCKS) || word.bytes().all(|b| b.is_ascii_digit())
    };
    let plain = |m: &&Moments| words(&profile.columns[m.column].name).iter().all(is_known);
    let plain: Vec<&Moments> = all.iter().copied().filter(plain).collect();
    match all.as_slice() {
        [only] if plain.is_empty() && only.column.abs_diff(date) == 1 => vec![*only],
        _ => plain,
    }
}

/// The times of day whose column is about the same as that of a date.
fn paired<'m>(profile: &Profile, moments: &'m [Moments], date: usize) -> Option<&'m Moments> {
    let own = about_column(profile, date);
    let mut all = all_clocks(profile, moments);
    all.retain(|m| m.column != date && about_column(profile, m.column) == own);
    all.into_iter().min_by_key(|m| (rank(profile, m), m.column.abs_diff(date)))
}

/// The times of day of a date: of a column that is about the same, else of one that is not about
/// the same as another date.
pub(super) fn own_clock<'m>(
    profile: &Profile,
    moments: &'m [Moments],
    date: usize,
) -> Option<&'m Moments> {
    let of_other = |m: &Moments| {
        let own = about_column(profile, m.column);
        let mut dates = moments.iter().filter(|other| other.date && other.column != date);
        !own.is_empty() && dates.any(|other| about_column(profile, other.column) == own)
    };
    paired(profile, moments, date).or_else(|| {
        let mut all = clocks(profile, moments, date);
        all.retain(|m| !of_other(m));
        all.into_iter().min_by_key(|m| (rank(profile, m), m.column.abs_diff(date)))
    })
}

/// Whether some date has times of day in a column of their own.
pub(super) fn has_clocks(profile: &Profile, moments: &[Moments]) -> bool {
    let mut dates = moments.iter().filter(|m| m.date);
    dates.any(|m| own_clock(profile, moments, m.column).is_some())
        || !clocks(profile, moments, usize::MAX).is_empty()
}

/// Whether some date has times of day, and neither is the same in all rows.
pub(super) fn varies(profile: &Profile, moments: &[Moments]) -> bool {
    let several = |m: &Moments| profile.columns[m.column].distinct() > 1;
    let dates = moments.iter().filter(|m| m.date && several(m));
    dates.filter_map(|m| own_clock(profile, moments, m.column)).any(several)
}

/// A date with times of day of its own that is as likely as a column of whole times.
pub(super) fn beside(
    profile: &Profile,
    moments: &[Moments],
    whole: &Moments,
) -> Option<([usize; 2], [Vec<String>; 2])> {
    let likely = |m: &&Moments| {
        m.date && m.column != whole.column && rank(profile, m) <= rank(profile, whole)
    };
    let mut dates = moments.iter().filter(likely);
    dates.find_map(|date| {
        let clock = paired(profile, moments, date.column)?;
        let formats = [date.formats.clone(), clock.formats.clone()];
        Some(([date.column, clock.column], formats))
    })
}

/// The column of times of day of a file without dates.
pub(super) fn lone_clock(profile: &Profile) -> Option<usize> {
    let moments = moments(profile);
    let found = clocks(profile, &moments, usize::MAX);
    found.iter().min_by_key(|own| rank(profile, own)).map(|own| own.column)
}

/// A date in one column and the time of day in another; else a date alone.
pub(super) fn joined(profile: &Profile, moments: &[Moments]) -> Option<Candidate> {
    let dates: Vec<&Moments> = moments.iter().filter(|m| m.date).collect();
    let order = |m: &&Moments| {
        let alone = paired(profile, moments, m.column).is_none();
        (rank(profile, m), alone, !has(&profile.columns[m.column].name, EVENTS))
    };
    let text = dates.iter().copied().min_by_key(order);
    let (date, formats) = match text {
        Some(date) => (date.column, date.formats.clone()),
        None => compact_date(profile)?,
    };
    let mut found = with_clock(profile, moments, (date, formats));
    note_others(profile, moments, &mut found);
    Some(found)
}

/// A date with the time of day of another column, if there is one.
fn with_clock(
    profile: &Profile,
    moments: &[Moments],
    (date, formats): (usize, Vec<String>),
) -> Candidate {
    let (mut columns, mut all) = (vec![date], vec![formats]);
    if let Some(clock) = own_clock(profile, moments, date) {
        columns.push(clock.column);
        all.push(clock.formats.clone());
    } else if let Some((clock, format)) = number_clock(profile, date) {
        columns.push(clock);
        all.push(vec![format.to_owned()]);
        if format == "%H"
            && let Some(minute) = part(profile, MINUTE, 0, 59, &columns)
        {
            columns.push(minute);
            all.push(vec!["%M".to_owned()]);
        }
    }
    Candidate::text(columns, all)
}

/// Says of other dates that they are not taken, and asks if one of them is as likely and has times
/// of day of its own.
fn note_others(profile: &Profile, moments: &[Moments], found: &mut Candidate) {
    let name = |at: usize| profile.columns[at].name.as_str();
    let Some(date) = found.columns.first().copied() else { return };
    let Some(own) = moments.iter().find(|m| m.column == date) else { return };
    let clock = paired(profile, moments, date);
    let other = |m: &&Moments| m.date && m.column != date && owner_score(name(m.column)) == 0;
    for other in moments.iter().filter(other) {
        found.notes.push(taken_from(name(other.column), name(date)));
        let likely = rank(profile, other) == rank(profile, own);
        if let (Some(clock), Some(beside)) = (clock, paired(profile, moments, other.column))
            && likely
            && beside.column != clock.column
        {
            let (own, other) = ([date, clock.column], [other.column, beside.column]);
            found.questions.push(which(&own.map(name), &other.map(name)));
        }
    }
}

/// Of several columns of zones, the one that is about the same as those of the time; else the
/// first.
pub(super) fn zone(profile: &Profile, time: &[usize], zones: &[usize]) -> Option<usize> {
    let same = |zone: &&usize| {
        let own = about_column(profile, **zone);
        time.iter().any(|at| about_column(profile, *at) == own)
    };
    zones.iter().find(same).or(zones.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_date_and_of_its_clock_are_about_the_same() {
        for (date, clock) in [
            ("ActivityStartDate", "ActivityStartTime/Time"),
            ("Event Dt", "event_time"),
            ("startdate", "Start Time"),
            ("Date", "Time"),
            ("Datum der Abfahrt", "Abfahrt der Zeit"),
        ] {
            assert_eq!(about(date), about(clock), "{date}");
        }
        for (date, clock) in [("Event Date", "Report Time"), ("Date 1", "Time 2"), ("update", "Up")]
        {
            assert_ne!(about(date), about(clock), "{date}");
        }
    }
}
