//! Columns of the parts of a date and a time of day, such as a year's and a minute's. Plurals are no
//! parts: `hours` are a length.

use crate::number::Decimal;
use crate::profile::{Column, Profile};
use crate::words::{ORDINAL, WEEK, has, is};
use std::collections::BTreeMap;

const YEARS: &[&str] = &["year", "yyyy", "jahr", "año", "annee", "année", "jaar", "anno"];
const SHORT_YEARS: &[&str] = &["yr", "yy"];
const BIRTH_YEARS: &[&str] = &["yob", "birthyear", "geburtsjahr", "jahrgang"];
const MONTHS: &[&str] = &["month", "mnth", "monat", "mois", "mes", "maand", "mese"];
const DAYS: &[&str] = &["day", "dayofmonth", "jour", "día", "giorno"];
/// They have other meanings too, but not beside a month.
const LIKELY_DAYS: &[&str] = &["tag", "dia", "dag"];
const HOURS: &[&str] = &["hour", "hourofday", "stunde", "heure", "hora", "uur"];
const MINUTES: &[&str] = &["minute", "minuto", "minuut"];
const SECONDS: &[&str] = &["second", "sekunde", "segundo", "seconde"];

const OF_YEARS: &str = "it holds years";
const OF_MONTHS: &str = "it holds months of the year";
const OF_HOURS: &str = "it holds hours of the day";

/// The columns of parts of a time, with what to say of each: if they make up a date, or minutes
/// and seconds beside hours. Only where all parts of the date and the hour are means of several rows
/// are numbers with decimals parts too.
pub(crate) fn of(profile: &Profile) -> BTreeMap<usize, &'static str> {
    let all = |fits: &dyn Fn(&Column) -> bool| {
        let column = |lists: &[&[&str]], least: i128, most: i128| {
            let named = |own: &Column| lists.iter().any(|list| is(&own.name, list));
            let fits = |own: &Column| named(own) && within(own, least, most) && fits(own);
            profile.columns.iter().position(fits)
        };
        [
            column(&[YEARS], 1850, 2100),
            column(&[MONTHS], 1, 12),
            column(&[DAYS, LIKELY_DAYS], 1, 31),
            column(&[HOURS], 0, 24),
            column(&[MINUTES], 0, 59),
            column(&[SECONDS], 0, 60),
        ]
    };
    let is_averaged = all(&|own| own.fractional)[..4].iter().all(Option::is_some);
    let [year, month, day, hour, minute, second] = all(&|own| is_averaged || own.is_integer());
    let dated = month.is_some() && (year.is_some() || (day.is_some() && hour.is_some()));
    let minute = minute.filter(|_| hour.is_some());
    let second = second.filter(|_| minute.is_some());
    let of_date = [
        (year, OF_YEARS),
        (month, OF_MONTHS),
        (day, "it holds days of the month"),
        (hour, OF_HOURS),
    ];
    // Minutes may be a length, but not beside hours of the day.
    let of_hour =
        [(minute, "it holds minutes of the hour"), (second, "it holds seconds of the minute")];
    let of_date = of_date.into_iter().filter(|_| dated);
    of_date.chain(of_hour).filter_map(|(at, says)| Some((at?, says))).collect()
}

/// What part of a time a column's whole numbers are by its name and their range, whatever is beside
/// it.
pub(crate) fn alone(column: &Column) -> Option<&'static str> {
    let named = |lists: &[&[&str]], least, most| {
        lists.iter().any(|list| is(&column.name, list)) && within(column, least, most)
    };
    let words = has(&column.name, YEARS) || has(&column.name, BIRTH_YEARS);
    let year = named(&[SHORT_YEARS], 0, 99) || (words && within(column, 1850, 2100));
    let part = [
        (year, OF_YEARS),
        (named(&[MONTHS], 1, 12), OF_MONTHS),
        (named(&[WEEK], 1, 53), "it holds weeks of the year"),
        (named(&[DAYS, ORDINAL], 1, 366), "it holds days of a month or a year"),
        (named(&[HOURS], 0, 24), OF_HOURS),
    ];
    part.into_iter().find(|(is, _)| *is && column.is_integer()).map(|(_, says)| says)
}

/// Whether its whole numbers are years without their century, by its name and their range.
pub(crate) fn is_short_year(column: &Column) -> bool {
    let named = has(&column.name, YEARS) || has(&column.name, SHORT_YEARS);
    named && column.is_integer() && within(column, 32, 99)
}

/// Whether all cells with a value are numbers between these.
fn within(column: &Column, least: i128, most: i128) -> bool {
    let own = |digits| Decimal { digits, places: 0 };
    column.numbers == column.filled
        && column.whole_range().is_some_and(|(lo, hi)| lo >= own(least) && hi <= own(most))
}
