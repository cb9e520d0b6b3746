//! Columns side by side that are moments of one row, by their names.

use crate::clock::words::month;
use crate::words::words;

/// Counts of columns that are moments of one row: the hours of a day, the minutes of an hour, and
/// parts of them.
const MOMENTS: [usize; 7] = [24, 48, 60, 96, 144, 288, 1440];

/// Fewest names in order that are times.
const MIN: usize = 3;

/// The first and the last of as many columns of one name and running numbers as a day or an hour
/// has parts.
pub(crate) fn parts_of_day<'a>(names: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let clocks = || names.iter().copied().filter(|own| clock(own).is_some());
    if clocks().count() >= MOMENTS[0] {
        return clocks().next().zip(clocks().next_back());
    }
    let numbered: Vec<Option<(&str, u32)>> = names.iter().map(|own| numbered(own)).collect();
    let follows = |at: &usize| match (&numbered[*at - 1], &numbered[*at]) {
        (Some((stem, number)), Some((same, next))) => stem == same && number + 1 == *next,
        _ => false,
    };
    let mut start = 0;
    for at in 1..=names.len() {
        if at < names.len() && follows(&at) {
            continue;
        }
        if MOMENTS.contains(&(at - start)) {
            return Some((names[start], names[at - 1]));
        }
        start = at;
    }
    None
}

/// The first and the last of some columns that are named for months, weekdays, hours, quarters,
/// years or dates in their order.
pub(crate) fn run<'a>(names: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let known: Vec<Vec<Moment>> = names.iter().map(|name| moments(name)).collect();
    let length = |at: usize| known[at].iter().map(|first| first.run(&known[at..])).max();
    let found = (0..names.len()).filter_map(|at| Some((at, length(at)?)));
    let (at, length) =
        found.filter(|(_, length)| *length >= MIN).max_by_key(|(_, length)| *length)?;
    names.get(at).copied().zip(names.get(at + length - 1).copied())
}

/// What a name may be a moment of.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    /// Its numbers begin again after so many.
    Round(i64),
    /// Each is one more than the one before, and so many at least.
    Parts(&'static str, usize),
    /// Numbers alone, which begin at 0 or 1.
    Bare,
    /// Each is greater than the one before.
    Rising(&'static str),
}

/// A moment, and which one on its scale.
#[derive(Clone, Copy)]
struct Moment(Scale, i64);

impl Moment {
    /// How many names follow one another from this, itself included.
    fn run(&self, names: &[Vec<Moment>]) -> usize {
        let Moment(scale, mut last) = *self;
        let least = match scale {
            Scale::Parts(_, least) => least,
            Scale::Bare | Scale::Round(_) | Scale::Rising(_) => MIN,
        };
        // What is counted begins at 0 or 1.
        if last > 1 && (scale == Scale::Bare || matches!(scale, Scale::Parts("quarter", _))) {
            return 1;
        }
        let mut length = 1;
        for name in names.iter().skip(1) {
            let next = |own: &&Moment| {
                own.0 == scale
                    && match scale {
                        Scale::Round(all) => own.1 == last % all + 1,
                        Scale::Rising(_) => own.1 > last,
                        Scale::Parts(..) | Scale::Bare => own.1 == last + 1,
                    }
            };
            let Some(own) = name.iter().find(next) else { break };
            (last, length) = (own.1, length + 1);
        }
        if length < least { 1 } else { length }
    }
}

/// All that a name may be.
fn moments(name: &str) -> Vec<Moment> {
    let mut found = Vec::new();
    found.extend(clock(name).map(|minutes| Moment(Scale::Rising("clock"), minutes)));
    found.extend(date(name, false).map(|days| Moment(Scale::Rising("date"), days)));
    found.extend(date(name, true).map(|days| Moment(Scale::Rising("day first"), days)));
    found.extend(weekday(name).map(|day| Moment(Scale::Round(7), day)));
    match &words(name)[..] {
        [only] => found.extend(month(only).map(|own| Moment(Scale::Round(12), own.into()))),
        [one, other] => {
            found.extend(month_of_year(one, other).or_else(|| month_of_year(other, one)))
        }
        _ => {}
    }
    match numbered(name) {
        Some(("", number @ 1800..=2100)) => {
            found.push(Moment(Scale::Rising("year"), number.into()));
        }
        Some(("", number @ 0..=1440)) => found.push(Moment(Scale::Bare, number.into())),
        Some((stem, number @ 0..=366)) => {
            found.extend(part(stem).map(|own| Moment(own, number.into())));
        }
        _ => {}
    }
    found
}

/// A month beside a year, as in `Jan 2020`.
fn month_of_year(name: &str, year: &str) -> Option<Moment> {
    let (own, year) = (i64::from(month(name)?), year.parse::<u16>().ok()?);
    Some(Moment(Scale::Rising("month"), i64::from(year) * 12 + own))
}

/// What stands before the number of a part of a time. Short words stand for other things too, such as `h1` for
/// a humidity and `hr_1` for a heart rate, so more of them have to follow.
fn part(stem: &str) -> Option<Scale> {
    const PARTS: &[(&str, &[&str])] = &[
        ("hour", &["h", "hr", "hour", "hours", "std", "stunde", "heure", "hora", "uur", "ora"]),
        ("quarter", &["q", "qtr", "quarter", "quartal", "trimestre", "trim"]),
        ("day", &["day", "tag", "jour", "dia", "día", "giorno", "dag"]),
        ("week", &["week", "wk", "kw", "woche", "semaine", "semana"]),
        ("month", &["month", "monat", "mois", "mes", "maand", "mese"]),
        ("year", &["year", "yr", "jahr", "année", "annee", "año", "fy"]),
    ];
    let stem = stem.trim_end_matches([' ', '_', '-', '.']).to_lowercase();
    let (own, _) = PARTS.iter().find(|(_, stems)| stems.contains(&stem.as_str()))?;
    let least = match (*own, stem.len()) {
        ("quarter", _) => 4,
        ("hour", ..4) => 8,
        (_, ..4) => 5,
        _ => MIN,
    };
    Some(Scale::Parts(own, least))
}

/// The day of the week, from 1, that a word names.
fn weekday(name: &str) -> Option<i64> {
    const DAYS: [&[&str]; 7] = [
        &["mon", "monday", "mo", "montag", "lun", "lundi", "lunes"],
        &["tue", "tues", "tuesday", "di", "dienstag", "mar", "mardi", "martes"],
        &["wed", "wednesday", "mi", "mittwoch", "mer", "mercredi", "mié", "miércoles"],
        &["thu", "thur", "thurs", "thursday", "do", "donnerstag", "jeu", "jeudi", "jueves"],
        &["fri", "friday", "fr", "freitag", "ven", "vendredi", "vie", "viernes"],
        &["sat", "saturday", "sa", "samstag", "sam", "samedi", "sáb", "sábado"],
        &["sun", "sunday", "so", "sonntag", "dim", "dimanche", "dom", "domingo"],
    ];
    let name = name.trim().to_lowercase();
    let at = DAYS.iter().position(|names| names.contains(&name.as_str()))?;
    i64::try_from(at + 1).ok()
}

/// The minutes of a time of day that a name ends with, such as `00:30`.
fn clock(name: &str) -> Option<i64> {
    let last = name.rsplit([' ', '_']).next().unwrap_or(name);
    let parts: Vec<&str> = last.split(':').collect();
    let digits = |part: &&str| {
        part.parse::<i64>().ok().filter(|number| part.len() <= 2 && (0..60).contains(number))
    };
    let numbers: Option<Vec<i64>> = parts.iter().map(digits).collect();
    let numbers = numbers.filter(|own| matches!(own[..], [..24, _] | [..24, _, _]))?;
    Some(numbers.iter().fold(0, |all, own| all * 60 + own))
}

/// A number that grows with the date that a name is, as in `1/22/20`, `2020-01-22` and `2020-01`.
fn date(name: &str, day_first: bool) -> Option<i64> {
    let numbers: Option<Vec<i64>> =
        name.split(['-', '/', '.']).map(|part| part.parse::<u16>().ok().map(i64::from)).collect();
    let is_year = |number: i64| (1900..=2100).contains(&number);
    match numbers?[..] {
        [year, month] if is_year(year) && (1..=12).contains(&month) => {
            Some(year * 372 + month * 31)
        }
        [year, month, day] if is_year(year) && month <= 12 && day <= 31 => {
            Some(year * 372 + month * 31 + day)
        }
        [one, other, year] if is_year(year) || (name.contains('/') && year < 100) => {
            let (month, day) = if day_first { (other, one) } else { (one, other) };
            (month <= 12 && day <= 31).then_some(year * 372 + month * 31 + day)
        }
        _ => None,
    }
}

/// The number at a name's end, and what stands before it.
fn numbered(name: &str) -> Option<(&str, u32)> {
    let (stem, number) = number_at_end(name);
    Some((stem, number.parse().ok()?))
}

/// What stands before the digits at a name's end, and those.
pub(crate) fn number_at_end(name: &str) -> (&str, &str) {
    name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_order_of_times_are_found() {
        for names in [
            "JAN,FEB,MAR,Annual",
            "Oct,Nov,Dec,Jan,Feb",
            "Montag,Dienstag,Mittwoch",
            "00:00,01:00,02:00",
            "Q1,Q2,Q3,Q4",
            "1,2,3,4,5,6,7",
            "H01,H02,H03,H04,H05,H06,H07,H08",
            "hour 1,hour 2,hour 3",
            "Jan 2020,Feb 2020,Mar 2020",
            "1960,1970,1980",
            "1/22/20,1/23/20,2/1/20",
            "22/01/2020,23/01/2020,01/02/2020",
            "30.11.2020,01.12.2020,02.12.2020",
            "2020-01,2020-02,2020-03",
        ] {
            let names: Vec<&str> = names.split(',').collect();
            assert_eq!(run(&names).map(|(first, _)| first), Some(names[0]), "{names:?}");
        }
        for names in [
            "Jan,Mara,Otto",
            "3,4,5,6,7,8,9",
            "s1,s2,s3",
            "h1,h2,h3",
            "q1,q2,q3",
            "may,wind,sun",
            "2133-004,2133-015,2133-018",
            "1:2:3:4:5:6:7:8:9:10:11:12,1:2,1:3",
        ] {
            let names: Vec<&str> = names.split(',').collect();
            assert_eq!(run(&names), None, "{names:?}");
        }
    }
}
