//! A time that some rows lack, beside one that more of them have.

use super::parts::{self, Moments};
use super::{Candidate, pairing};
use crate::profile::Profile;
use crate::words::{BIRTHS, CHANGES, ENDS, PLANS, TIMES, has, worded, words};

/// Takes a time that all rows have rather than one that many lack, if its name says that it is a
/// time. Asks where the choice leaves out rows that have another time, or a time of day.
pub(super) fn weigh(profile: &Profile, moments: &[Moments], mut found: Candidate) -> Candidate {
    let [at] = found.columns[..] else { return found };
    let own = &profile.columns[at];
    if found.unit.is_some() || own.filled >= profile.rows {
        return found;
    }
    let fuller = |one: &&Moments| one.date && profile.columns[one.column].filled > own.filled;
    let Some(most) =
        moments.iter().filter(fuller).max_by_key(|one| profile.columns[one.column].filled)
    else {
        return found;
    };
    let all = |one: &&Moments| profile.columns[one.column].filled >= profile.rows;
    let full: Vec<Moments> = moments.iter().filter(all).cloned().collect();
    if own.has_gaps(profile.rows)
        && full.iter().any(|one| one.date)
        && let Some(mut better) = pairing::joined(profile, &full)
        && better.columns.first().is_some_and(|at| is_plain(&profile.columns[*at].name))
    {
        let name = &profile.columns[better.columns[0]].name;
        better.notes.push(parts::taken_from(&own.name, name));
        let open = in_its_place(profile, moments, (&found, &better));
        better.questions.extend(open);
        return better;
    }
    let other = &profile.columns[most.column];
    let (name, fuller) = (&own.name, &other.name);
    found.questions.push(format!(
        "`{name}` is empty in {} of {} rows, which are left out, and `{fuller}` has a time in more of them. Use `--time {}` if that is right, or `--time {}` if not.",
        profile.rows - own.filled,
        profile.rows,
        worded(name),
        worded(fuller)
    ));
    found
}

/// Asks whether a time that all rows have may be read instead of one with gaps, unless that is when
/// something began in the night or the day that each row is of.
fn in_its_place(
    profile: &Profile,
    moments: &[Moments],
    (found, better): (&Candidate, &Candidate),
) -> Option<String> {
    let clock = |at: &usize| moments.iter().any(|one| one.column == *at && one.clock);
    let (own, full) =
        (&profile.columns[*found.columns.first()?], &profile.columns[*better.columns.first()?]);
    if better.columns.iter().any(clock) || !found.columns.iter().any(clock) {
        return Some(parts::which(&[&full.name], &[&own.name]));
    }
    let one_a_day = full.distinct() * 10 >= full.filled * 9;
    let lack = profile.rows - own.filled;
    (!one_a_day || !is_start_of(&own.name)).then(|| days_alone(&own.name, &full.name, lack))
}

/// Whether a name says that something began then, and what.
fn is_start_of(name: &str) -> bool {
    let what = |word: &String| !TIMES.contains(&word.as_str());
    has(name, &["start", "begin", "beginn"]) && words(name).iter().any(what)
}

/// Asks whether rows may lose their time of day, so that none is left out.
fn days_alone(own: &str, day: &str, lack: u64) -> String {
    format!(
        "`{own}` is empty in {lack} rows, so the time is read from `{day}`, which has no time of day. Use `--time {}` if that is right, or `--time {}` if not; rows without it are then left out.",
        worded(day),
        worded(own)
    )
}

/// Whether a name says that its column has times, and nothing else of them.
fn is_plain(name: &str) -> bool {
    parts::is_time(name) && ![BIRTHS, CHANGES, ENDS, PLANS].iter().any(|list| has(name, list))
}
