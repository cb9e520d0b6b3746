//! Columns of the parts of a date and a time of day, such as a year's and a minute's.

use crate::number::Decimal;
use crate::profile::{Column, Profile};
use crate::words::is;
use std::collections::BTreeMap;

const YEARS: &[&str] = &["year", "yyyy", "jahr", "año", "annee", "année", "jaar", "anno"];
const MONTHS: &[&str] = &["month", "mnth", "monat", "mois", "mes", "maand", "mese"];
const DAYS: &[&str] = &["day", "dayofmonth", "tag", "dia", "día", "jour", "dag", "giorno"];
const HOURS: &[&str] = &["hour", "hours", "hourofday", "stunde", "heure", "hora", "uur"];
const MINUTES: &[&str] = &["minute", "minutes", "minuto", "minuut"];
const SECONDS: &[&str] = &["second", "seconds", "sekunde", "segundo", "seconde"];

/// The columns of parts of a time, with what to say of each: if they make up a date, or minutes
/// and seconds beside hours. Means of
/// several rows are parts too, so numbers may have decimals.
pub(crate) fn of(profile: &Profile) -> BTreeMap<usize, &'static str> {
    let column = |names: &[&str], least: i128, most: i128| {
        let fits = |own: &Column| is(&own.name, names) && within(own, least, most);
        profile.columns.iter().position(fits)
    };
    let year = column(YEARS, 1850, 2100);
    let (month, day) = (column(MONTHS, 1, 12), column(DAYS, 1, 31));
    let hour = column(HOURS, 0, 24);
    let dated = month.is_some() && (year.is_some() || (day.is_some() && hour.is_some()));
    let minute = column(MINUTES, 0, 59).filter(|_| hour.is_some());
    let second = column(SECONDS, 0, 60).filter(|_| minute.is_some());
    let of_date = [
        (year, "it holds years"),
        (month, "it holds months of the year"),
        (day, "it holds days of the month"),
        (hour, "it holds hours of the day"),
    ];
    // Minutes may be a length, but not beside hours of the day.
    let of_hour =
        [(minute, "it holds minutes of the hour"), (second, "it holds seconds of the minute")];
    let of_date = of_date.into_iter().filter(|_| dated);
    of_date.chain(of_hour).filter_map(|(at, says)| Some((at?, says))).collect()
}

/// Whether all cells with a value are numbers between these.
fn within(column: &Column, least: i128, most: i128) -> bool {
    let own = |digits| Decimal { digits, places: 0 };
    column.numbers == column.filled
        && column.whole_range().is_some_and(|(lo, hi)| lo >= own(least) && hi <= own(most))
}
