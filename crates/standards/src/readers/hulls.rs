//! Limits of which one of several sets holds: together they allow what any of them allows.

use crate::contract::Limits;
use crate::cursor::Clause;
use std::cmp::Ordering;

/// The narrowest limits that hold for each of these sets. A side that one of them leaves open is open.
pub(super) fn of(all: Vec<Limits>) -> Limits {
    let lower =
        outermost(&all, |own| tightest(&own.min, &own.above, Ordering::Greater), Ordering::Less);
    let upper =
        outermost(&all, |own| tightest(&own.max, &own.below, Ordering::Less), Ordering::Greater);
    let mut found = Limits::default();
    match lower {
        Some(End { limit, is_excluded: true, .. }) => found.above.push(limit),
        Some(End { limit, .. }) => found.min.push(limit),
        None => {}
    }
    match upper {
        Some(End { limit, is_excluded: true, .. }) => found.below.push(limit),
        Some(End { limit, .. }) => found.max.push(limit),
        None => {}
    }
    found.length = longest(&all);
    found
}

/// One end of a range.
#[derive(Clone)]
struct End {
    value: f64,
    is_excluded: bool,
    limit: Clause<String>,
}

/// The tightest of limits on one side; none if there is none, or one is no number.
fn tightest(
    included: &[Clause<String>],
    excluded: &[Clause<String>],
    inward: Ordering,
) -> Option<End> {
    let end = |is_excluded| {
        move |limit: &Clause<String>| {
            let value = limit.value.trim().parse::<f64>().ok().filter(|own| own.is_finite())?;
            Some(End { value, is_excluded, limit: limit.clone() })
        }
    };
    let all = included.iter().filter_map(end(false)).chain(excluded.iter().filter_map(end(true)));
    all.reduce(|one, other| match other.value.total_cmp(&one.value) {
        order if order == inward => other,
        Ordering::Equal if other.is_excluded => other,
        _ => one,
    })
}

/// The end that goes furthest, if every set has one.
fn outermost(
    all: &[Limits],
    end: impl Fn(&Limits) -> Option<End>,
    outward: Ordering,
) -> Option<End> {
    let ends: Option<Vec<End>> = all.iter().map(end).collect();
    ends?.into_iter().reduce(|one, other| match other.value.total_cmp(&one.value) {
        order if order == outward => other,
        Ordering::Equal if one.is_excluded => other,
        _ => one,
    })
}

/// The greatest of lengths, if every set has one.
fn longest(all: &[Limits]) -> Option<Clause<String>> {
    let length = |own: &Limits| {
        let stated = own.length.clone()?;
        Some((stated.value.parse::<u64>().ok()?, stated))
    };
    let lengths: Option<Vec<_>> = all.iter().map(length).collect();
    lengths?.into_iter().max_by_key(|(length, _)| *length).map(|(_, stated)| stated)
}
