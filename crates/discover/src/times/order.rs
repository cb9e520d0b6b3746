//! Whether the day or the month stands first: decided by the dates themselves, then by the
//! order of the rows; else asked.

use super::Candidate;
use super::parts::options;
use crate::clock::{Format, Moment};
use crate::form::Form;
use crate::hints::Hints;
use crate::profile::Profile;
use crate::scan::{ScannedRow, scan};
use std::collections::BTreeMap;

/// Rows that are read to weigh one order against another.
const SAMPLE: u64 = 300_000;
/// Most formats that are kept.
const MAX_FORMATS: usize = 24;
const DAY: i64 = 86_400_000_000;
/// Most different steps that are kept.
const MAX_STEPS: usize = 2000;
/// Steps within days that show the usual one.
const MIN_STEPS: u64 = 20;

/// The times of a file.
pub(super) struct View<'a> {
    pub text: &'a str,
    pub form: &'a Form,
    pub columns: &'a [usize],
    /// What names and units of the columns say, such as `dd/mm/yyyy`.
    pub says: String,
}

/// Which of the date's fields is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Year,
    Day,
    Month,
}

const ORDERS: [Order; 3] = [Order::Year, Order::Day, Order::Month];

/// How well an order fits the rows.
#[derive(Default)]
struct Weight {
    read: u64,
    unread: u64,
    /// Rows whose day is before that of the row above.
    back: u64,
    /// Days from each row to the next, and the same if day and month are exchanged where they
    /// can be.
    days: u64,
    days_exchanged: u64,
    /// Rows whose day and month can be exchanged.
    exchangeable: u64,
    /// Steps of less than a day, of just a day, of more than twenty, and of most of a year.
    small_steps: u64,
    day_steps: u64,
    large_steps: u64,
    year_steps: u64,
    /// Steps within a day and to another day, with how often each occurs.
    within: BTreeMap<i64, u64>,
    turns: BTreeMap<i64, u64>,
}

/// The order of a format whose date is digits alone and may be read in another order.
fn order(format: &str) -> Option<Order> {
    if format.find("%Y") < format.find("%d") && format.contains("%Y") {
        return None;
    }
    let (day, month) = (format.find("%d")?, format.find("%m")?);
    let year = format.find("%Y").or_else(|| format.find("%y"))?;
    Some(if year < day && year < month {
        Order::Year
    } else if day < month {
        Order::Day
    } else {
        Order::Month
    })
}

/// The formats to read with. Of several orders the one that fits; if none is certain, a
/// question is asked.
pub(super) fn decide(
    view: &View<'_>,
    formats: Vec<Vec<String>>,
    hints: &Hints,
    notes: &mut Vec<String>,
    questions: &mut Vec<String>,
) -> Vec<Format> {
    let all = products(&formats);
    let mut orders: Vec<Order> =
        ORDERS.into_iter().filter(|o| all.iter().any(|f| order(f.text()) == Some(*o))).collect();
    if let Some(formats) = said(&all, &orders, hints, questions) {
        return formats;
    }
    let weigh = |o: Order| weigh(view, &of_order(&all, o));
    if let Some(stated) = stated(&view.says).filter(|stated| orders.contains(stated))
        && weigh(stated).unread == 0
    {
        return of_order(&all, stated);
    }
    let Some(first) = orders.first().copied() else { return all };
    if orders.len() == 1 {
        let weight = weigh(first);
        contradicts(&weight, hints, questions);
        return of_order(&all, first);
    }
    let mut weights: Vec<(Order, Weight)> = orders.drain(..).map(|o| (o, weigh(o))).collect();
    weights.sort_by_key(|(_, weight)| weight.unread);
    let (best, weight) = &weights[0];
    let (_, second) = &weights[1];
    if weight.unread * 100 > weight.read + weight.unread {
        questions.push(both(weight.unread));
        return of_order(&all, *best);
    }
    if second.unread > weight.unread {
        contradicts(weight, hints, questions);
        return of_order(&all, *best);
    }
    let tied: Vec<&(Order, Weight)> =
        weights.iter().filter(|(_, w)| w.unread == weight.unread).collect();
    let of = |wanted: Order| tied.iter().find(|(order, _)| *order == wanted).map(|(_, w)| w);
    // Of `05/03/19` the year may stand first: then day and month are no other order.
    let both = of(Order::Day).filter(|_| of(Order::Month).is_some());
    // `3.4.2018` has the day first wherever dates are written so, and 9.9. is the same day in both.
    let dotted = all.iter().any(|f| f.text().contains("%d.%m."));
    if both.unwrap_or(weight).exchangeable == 0 || dotted {
        let day = of(Order::Day).map(|_| Order::Day);
        return of_order(&all, day.unwrap_or(*best));
    }
    by_rows(&tied, &all, notes, questions)
}

/// The formats of the order that a person states.
fn said(
    all: &[Format],
    orders: &[Order],
    hints: &Hints,
    questions: &mut Vec<String>,
) -> Option<Vec<Format>> {
    let day_first = hints.day_first?;
    let wanted = if day_first { Order::Day } else { Order::Month };
    if orders.contains(&wanted) {
        return Some(of_order(all, wanted));
    }
    let [only] = orders else { return None };
    let said = if day_first { "day" } else { "month" };
    let (is, remedy) = match only {
        Order::Year => ("year", format!("Leave `--{said}-first` out.")),
        Order::Day => ("day", "Use `--day-first` instead.".to_owned()),
        Order::Month => ("month", "Use `--month-first` instead.".to_owned()),
    };
    questions.push(format!(
        "You said that the {said} comes first, but the dates can only have the {is} first. {remedy}"
    ));
    Some(of_order(all, *only))
}

/// The order that a name or a unit such as `dd/mm/yyyy` states.
fn stated(says: &str) -> Option<Order> {
    let says = says.to_lowercase();
    let has = |first: &str, second: &str| {
        ['/', '.', '-'].iter().any(|mark| says.contains(&format!("{first}{mark}{second}")))
    };
    match (has("dd", "mm") || has("tt", "mm") || has("jj", "mm"), has("mm", "dd")) {
        (true, false) => Some(Order::Day),
        (false, true) if !has("yyyy", "mm") => Some(Order::Month),
        _ => None,
    }
}

/// Dates that each order can read: the order of rows decides, if it does so clearly.
fn by_rows(
    tied: &[&(Order, Weight)],
    all: &[Format],
    notes: &mut Vec<String>,
    questions: &mut Vec<String>,
) -> Vec<Format> {
    let fits = |(order, weight): &&&(Order, Weight)| {
        let others = tied.iter().filter(|(_, other)| !std::ptr::eq(other, weight));
        others.clone().all(|(_, other)| {
            let sorted = weight.back * 50 <= weight.read && other.back > 5 + 5 * weight.back;
            let close = weight.large_steps == 0 && other.large_steps > 1 && weight.small_steps > 20;
            // Rows of day after day in the order of ISO dates, or of the same day of many years.
            let iso = *order == Order::Year && weight.back == 0 && weight.large_steps == 0;
            let daily = iso && weight.day_steps > 5 && other.year_steps > 5;
            let steady = weight.goes_on() && other.large_steps > 0;
            sorted || daily || steady || (close && weight.back <= other.back)
        })
    };
    if let Some((order, _)) = tied.iter().find(fits).copied() {
        let says = match order {
            Order::Year => "the year",
            Order::Day => "the day",
            Order::Month => "the month",
        };
        notes.push(format!("No date has a day above 12; {says} is assumed to come first, since the rows are then in order."));
        return of_order(all, *order);
    }
    let year = all.iter().find(|format| order(format.text()) == Some(Order::Year));
    let year = year.map_or_else(String::new, |format| {
        format!(", or `--time-format '{}'` if the year does", format.text())
    });
    questions.push(format!(
        "No date has a day above 12, and the order of the rows does not show whether the day or the month comes first. Use `--day-first` or `--month-first`{year}."
    ));
    let usual = tied.iter().find(|(order, _)| *order == Order::Day).or(tied.first());
    usual.map_or_else(Vec::new, |(order, _)| of_order(all, *order))
}

fn both(unread: u64) -> String {
    format!(
        "The dates contradict each other: some can only have the day first, others only the month, and either way {unread} rows cannot be read. A spreadsheet may have rewritten some of them. Use the original file, or correct the dates."
    )
}

/// Asks if a part of the dates seems to have day and month exchanged: as written, rows jump to
/// and fro in time, and with that part exchanged they do not.
fn contradicts(weight: &Weight, hints: &Hints, questions: &mut Vec<String>) {
    let mixed = weight.exchangeable > 0 && weight.exchangeable < weight.read;
    let worse = weight.days > 30 + 4 * weight.days_exchanged;
    if mixed && worse && hints.day_first.is_none() {
        questions.push(format!(
            "The dates contradict each other: as written, the rows jump back and forth over {} days in all, but only over {} if day and month are swapped in the {} dates where both are at most 12. A spreadsheet may have swapped them. Use the original file, or confirm the order with `--day-first` or `--month-first`.",
            weight.days, weight.days_exchanged, weight.exchangeable
        ));
    }
}

fn of_order(all: &[Format], wanted: Order) -> Vec<Format> {
    let fits = |format: &&Format| order(format.text()).is_none_or(|order| order == wanted);
    all.iter().filter(fits).cloned().collect()
}

/// One format for each way to take one of each column's, with a space between columns.
fn products(formats: &[Vec<String>]) -> Vec<Format> {
    let texts = joined_formats(formats);
    let mut found: Vec<Format> = texts.iter().filter_map(|text| Format::new(text).ok()).collect();
    found.dedup();
    found
}

/// Their texts.
pub(super) fn joined_formats(formats: &[Vec<String>]) -> Vec<String> {
    let mut texts = vec![String::new()];
    for column in formats {
        let with = |text: &String| {
            let text = text.clone();
            column.iter().map(
                move |more| if text.is_empty() { more.clone() } else { format!("{text} {more}") },
            )
        };
        texts = texts.iter().flat_map(with).collect();
        texts.truncate(MAX_FORMATS);
    }
    texts
}

fn is_interval(formats: &[String]) -> bool {
    formats.iter().any(|own| own.ends_with("%*"))
}

/// Puts columns of intervals behind others, since nothing can be read behind the end of one.
pub(super) fn put_intervals_last(found: &mut Candidate) {
    if found.columns.len() == found.formats.len() {
        let own = std::mem::take(&mut found.columns).into_iter().zip(found.formats.drain(..));
        let mut own: Vec<(usize, Vec<String>)> = own.collect();
        own.sort_by_key(|(_, formats)| is_interval(formats));
        (found.columns, found.formats) = own.into_iter().unzip();
    }
    if let Some((columns, formats)) = &mut found.pair
        && is_interval(&formats[0])
    {
        columns.reverse();
        formats.reverse();
    }
}

/// Asks about a time of day beside an interval of days: it may be of its first day, or of another.
pub(super) fn hour_of_which_day(
    profile: &Profile,
    hints: &Hints,
    found: &Candidate,
) -> Option<String> {
    let clock =
        |formats: &[String]| formats.iter().any(|own| own.contains("%H") || own.contains("%I"));
    let of = |wanted: &dyn Fn(&[String]) -> bool| {
        let at = found.formats.iter().position(|own| wanted(own))?;
        found.columns.get(at).map(|at| profile.columns[*at].name.as_str())
    };
    let days = of(&|own| is_interval(own) && !clock(own))?;
    let clock = of(&|own| !is_interval(own) && clock(own)).filter(|_| hints.time.is_empty())?;
    Some(format!(
        "Each `{days}` is an interval of days, and `{clock}` is read as a time of its first day. Use `{}` if that is right, or `{}` for the days alone.",
        options(&[days, clock]),
        options(&[days])
    ))
}

fn weigh(view: &View<'_>, formats: &[Format]) -> Weight {
    let (mut weight, mut rows, mut joined) = (Weight::default(), 0, String::new());
    let mut before = None::<(i64, i64, i64)>;
    scan(view.text, view.form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        rows += 1;
        if !join(row, view.columns, view.form, &mut joined) {
            return rows < SAMPLE;
        }
        let Some(moment) = formats.iter().find_map(|format| format.read(&joined)) else {
            weight.unread += 1;
            return rows < SAMPLE;
        };
        weight.count(moment, &mut before);
        rows < SAMPLE
    });
    weight
}

/// Joins the cells of a time; false if all are missing.
pub(crate) fn join(
    row: &[std::borrow::Cow<'_, str>],
    columns: &[usize],
    form: &Form,
    joined: &mut String,
) -> bool {
    joined.clear();
    let mut some = false;
    for at in columns {
        let cell = row.get(*at).map_or("", AsRef::as_ref);
        some |= !form.is_missing(cell);
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(cell);
    }
    some
}

impl Weight {
    fn count(&mut self, moment: Moment, before: &mut Option<(i64, i64, i64)>) {
        let (Some(time), Some(day)) = (moment.micros(0), moment.day_number()) else {
            self.unread += 1;
            return;
        };
        self.read += 1;
        let other = moment.exchanged().and_then(|moment| moment.day_number());
        self.exchangeable += u64::from(other.is_some());
        let exchanged = other.unwrap_or(day);
        if let Some((last, last_day, last_exchanged)) = before.replace((time, day, exchanged)) {
            self.back += u64::from(day < last_day);
            let kind = if day == last_day { &mut self.within } else { &mut self.turns };
            if time != last && (kind.len() < MAX_STEPS || kind.contains_key(&(time - last))) {
                *kind.entry(time - last).or_default() += 1;
            }
            self.days += (day - last_day).unsigned_abs();
            self.days_exchanged += (exchanged - last_exchanged).unsigned_abs();
            let step = (time - last).abs();
            self.small_steps += u64::from(step > 0 && step < DAY);
            self.day_steps += u64::from(step == DAY);
            self.large_steps += u64::from(step > 20 * DAY);
            self.year_steps += u64::from(step > 300 * DAY);
        }
    }

    /// Whether rows go on from each day to another at the step that is usual within days.
    fn goes_on(&self) -> bool {
        let all: u64 = self.within.values().sum();
        let Some((usual, count)) = self.within.iter().max_by_key(|(_, count)| **count) else {
            return false;
        };
        let near = |step: &i64| {
            let (step, usual) = (step * usual.signum(), usual.abs());
            step * 2 >= usual && step * 2 <= usual * 3
        };
        let few = self.turns.len() < MAX_STEPS && !self.turns.is_empty();
        few && all > MIN_STEPS && count * 2 > all && self.turns.keys().all(near)
    }
}
