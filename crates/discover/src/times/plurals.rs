//! Columns such as `hours` beside a date: how long something took, or a part of the time.

use super::{Candidate, parts};
use crate::hints::Hints;
use crate::profile::Profile;
use crate::words::{is, worded};

/// They are lengths unless a person says otherwise: with the part of a time that they may be, and the
/// most of it.
const PLURALS: [(&str, &str, i128); 3] =
    [("hours", "%H", 24), ("minutes", "%M", 59), ("seconds", "%S", 60)];

/// How a column with such a name is read, if a person says that it is a part of the time.
pub(super) fn format(name: &str) -> Option<&'static str> {
    PLURALS.iter().find(|(own, ..)| is(name, &[own])).map(|(_, format, _)| *format)
}

/// Asks about whole numbers that may be the part of the time that the others lack.
pub(super) fn ask(profile: &Profile, hints: &Hints, found: &Candidate) -> Option<String> {
    if !hints.time.is_empty() || hints.time_format.is_some() || found.date.is_some() {
        return None;
    }
    let name = |at: &usize| profile.columns[*at].name.as_str();
    let lacks = PLURALS.get(lacking(&found.formats)?..)?;
    let mut all = found.columns.clone();
    let next = lacks.iter().map_while(|(own, _, most)| {
        let at = parts::part(profile, &[own], 0, *most, &all)?;
        all.push(at);
        Some(at)
    });
    let added: Vec<usize> = next.collect();
    let said = |at: &usize| {
        let name = &profile.columns[*at].name;
        hints.measure.contains(name) || hints.leave_out.contains(name)
    };
    if added.is_empty() || added.iter().any(said) {
        return None;
    }
    let names: Vec<String> = added.iter().map(|at| format!("`{}`", name(at))).collect();
    let measure: Vec<String> =
        added.iter().map(|at| format!("--measure {}", worded(name(at)))).collect();
    let all: Vec<&str> = all.iter().map(name).collect();
    Some(format!(
        "{} may be how long something took, or the time of day. As a length, it is no part of the time. Use `{}` if that is right, or `{}` if not.",
        names.join(" with "),
        measure.join(" "),
        parts::options(&all)
    ))
}

/// The largest of these parts that a time of whole days, or with parts in columns of their own, lacks.
fn lacking(formats: &[Vec<String>]) -> Option<usize> {
    let has = |part: &str| formats.iter().flatten().any(|own| own.contains(part));
    let own = |part: &str| formats.iter().any(|own| own.as_slice() == [part]);
    if !has("%H") && !has("%I") {
        return ["%d", "%j", "%u"].into_iter().any(has).then_some(0);
    }
    match (has("%M"), has("%S")) {
        (false, false) if own("%H") => Some(1),
        (true, false) if own("%M") => Some(2),
        _ => None,
    }
}
