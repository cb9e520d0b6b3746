//! Snapshots: one row for each of several owners, all of about one time. A column that identifies
//! each row then names its owner.

use crate::events::names_event;
use crate::form::Form;
use crate::id_words::is_id;
use crate::owner_words::{is_vague, may_count_people, names_a_number, owner_score};
use crate::profile::{Column, Profile};
use crate::scan::{SAMPLE, ScannedRow, scan};
use crate::sentinels::counts_money;
use crate::times::{TimePlan, join};
use crate::windows::SECOND;
use crate::words::{worded, words};

/// Fewest rows of a snapshot, and of other rows that are in no order.
const MIN_ROWS: u64 = 5;
const MIN_MIXED: u64 = 10;
/// How far apart the times of most rows of a snapshot may be, in microseconds.
const NEAR: i64 = 3600 * SECOND;

/// Words of what measures at its place.
const SENSING: &[&str] = &[
    "buoy",
    "capteur",
    "compteur",
    "gauge",
    "inverter",
    "medidor",
    "messstelle",
    "meter",
    "mote",
    "node",
    "sensor",
    "station",
    "stations",
    "stn",
    "turbine",
    "zaehler",
    "zähler",
];

/// The column that identifies each row, and what to say or to ask.
pub(crate) struct Snapshot {
    pub column: usize,
    pub notes: Vec<String>,
    pub questions: Vec<String>,
}

/// Looks for a column that names another owner in each row, if the rows follow no order of time. A
/// series is in order, and what identifies its rows is nobody. `named` is the column whose name says
/// best whose a row is.
pub(crate) fn find(
    (text, form): (&str, &Form),
    profile: &Profile,
    time: &TimePlan,
    named: Option<usize>,
) -> Option<Snapshot> {
    const SURE: u32 = 60;
    if named.is_some_and(|at| owner_score(&profile.columns[at].name) >= SURE) {
        return None;
    }
    let fits = |at: &usize| {
        let column = &profile.columns[*at];
        !time.columns.contains(at) && names_each_row(profile, column)
    };
    let all = (0..profile.columns.len()).filter(fits);
    let at = all.max_by_key(|at| {
        let name = &profile.columns[*at].name;
        (!is_vague(name), owner_score(name), std::cmp::Reverse(*at))
    })?;
    let near = are_near((text, form), time)?;
    if !near && (named.is_some() || profile.rows < MIN_MIXED) {
        return None;
    }
    let (name, word) = (&profile.columns[at].name, worded(&profile.columns[at].name));
    let events = may_be_events(profile, time, name);
    if near && named.is_none() && !is_vague(name) && !events {
        let note = format!(
            "`{name}` differs in each row, and most rows are of about one time, so each row is taken as another owner's."
        );
        return Some(Snapshot { column: at, notes: vec![note], questions: Vec::new() });
    }
    let asked = format!(
        "`{name}` differs in each row, and the rows follow no order of time, so each may be about another owner. Use `--owner {word}` if it names the owner of a row, or `--owner none` if all rows belong to one owner."
    );
    Some(Snapshot { column: at, notes: Vec::new(), questions: vec![asked] })
}

/// Whether rows may be what one person did, such as purchases: if the name says so, or in rows of one day
/// or of money. Only the name of what stays where it is and measures says that they are not.
fn may_be_events(profile: &Profile, time: &TimePlan, name: &str) -> bool {
    let senses = words(name).iter().any(|word| {
        let known = |word: &str| SENSING.contains(&word);
        known(word) || word.strip_suffix("id").is_some_and(known)
    });
    let shared = time.days || profile.columns.iter().any(counts_money);
    names_event(name) || (shared && !senses)
}

/// Whether each row has another value of a column, and its name says that it names an owner.
fn names_each_row(profile: &Profile, column: &Column) -> bool {
    const MIN_SCORE: u32 = 60;
    let name = &column.name;
    let unique = column.filled == profile.rows && column.distinct() == profile.rows;
    let number = column.is_integer() && is_id(name) && names_a_number(name);
    unique
        && profile.rows >= MIN_ROWS
        && owner_score(name) >= MIN_SCORE
        && !may_count_people(name)
        && (number || column.numbers == 0)
        && !column.numbers_rows()
        && column.times() == 0
}

/// Whether most rows are of about one time; nothing if they are in order.
fn are_near((text, form): (&str, &Form), time: &TimePlan) -> Option<bool> {
    let (mut times, mut joined) = (Vec::new(), String::new());
    scan(text, form, |_, scanned| {
        if let ScannedRow::Row(row) = scanned
            && join(row, &time.columns, form, &mut joined)
        {
            times.extend(time.clock.micros(&joined));
        }
        (times.len() as u64) < SAMPLE
    });
    let steps = |is: fn(&i64, &i64) -> bool| times.windows(2).filter(|s| is(&s[0], &s[1])).count();
    let (later, earlier) = (steps(|one, next| next > one), steps(|one, next| next < one));
    let in_order = later + earlier > 0 && later.min(earlier) * 10 < times.len();
    if in_order || (times.len() as u64) < MIN_ROWS {
        return None;
    }
    times.sort_unstable();
    let most = times.len() * 3 / 4;
    Some(times.windows(most).any(|times| times[most - 1] - times[0] <= NEAR))
}
