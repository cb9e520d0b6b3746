//! A time that some rows lack, beside one that more of them have.

use super::parts::{self, Moments};
use super::{Candidate, pairing};
use crate::profile::Profile;
use crate::words::{BIRTHS, CHANGES, ENDS, PLANS, has, worded};

/// Takes a time that all rows have rather than one that many lack, if its name says that it is a
/// time. Asks where the choice leaves out rows that have another time.
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

/// Whether a name says that its column has times, and nothing else of them.
fn is_plain(name: &str) -> bool {
    parts::is_time(name) && ![BIRTHS, CHANGES, ENDS, PLANS].iter().any(|list| has(name, list))
}
