//! Columns that name owners only together, or both ends of what a row describes.

use crate::form::Form;
use crate::hash::{Hashes, Set};
use crate::id_words::is_id;
use crate::owner_words::owner_score;
use crate::profile::{Column, Profile};
use crate::scan::{SAMPLE, ScannedRow, scan};
use crate::words::{has, worded, words};

/// Different values that prove that two columns name the same persons.
const MIN_SHARED: usize = 5;
/// Columns that are looked at.
const MAX_TRIED: usize = 8;

/// Asks about two columns of one thing, such as where a trip starts and ends: neither says whose
/// a row is.
pub(crate) fn ends(
    rows: (&str, &Form),
    profile: &Profile,
    best: usize,
    used: &[usize],
) -> Option<String> {
    let own = &profile.columns[best].name;
    let named = profile.columns.iter().find(|column| are_ends(own, &column.name));
    let name = match named {
        Some(column) => &column.name,
        None => &profile.columns[same_persons(rows, profile, best, used)?].name,
    };
    let word = worded(own);
    Some(format!(
        "`{own}` and `{name}` seem to be the two ends of what each row describes, such as a trip or a call, so perhaps neither names its owner. Name the owner with `--owner COLUMN`; use `--owner {word}` if that is the owner, or `--owner none` if all rows belong to one owner."
    ))
}

/// Whether two names differ in one word alone, which says the direction.
fn are_ends(one: &str, other: &str) -> bool {
    const ENDS: [(&str, &str); 20] = [
        ("pu", "do"),
        ("pulocation", "dolocation"),
        ("start", "end"),
        ("from", "to"),
        ("origin", "destination"),
        ("source", "destination"),
        ("src", "dst"),
        ("pickup", "dropoff"),
        ("departure", "arrival"),
        ("sender", "receiver"),
        ("sender", "recipient"),
        ("von", "nach"),
        ("caller", "callee"),
        ("calling", "called"),
        ("payer", "payee"),
        ("buyer", "seller"),
        ("lender", "borrower"),
        ("anrufer", "angerufener"),
        ("absender", "empfänger"),
        ("home", "away"),
    ];
    let (one, other) = (words(one), words(other));
    let mut differing = one.iter().zip(&other).filter(|(a, b)| a != b);
    let pair = differing.next();
    let are = |(a, b): (&String, &String)| {
        ENDS.iter().any(|(from, to)| (a == from && b == to) || (a == to && b == from))
    };
    one.len() == other.len() && differing.next().is_none() && pair.is_some_and(are)
}

/// A column with nearly the same values as the owner's, in other rows: caller and callee. A copy of
/// the owner's column has them in the same rows.
fn same_persons(
    (text, form): (&str, &Form),
    profile: &Profile,
    best: usize,
    used: &[usize],
) -> Option<usize> {
    let own = &profile.columns[best];
    let fits = |(at, column): &(usize, &Column)| {
        let (one, other) = (own.distinct(), column.distinct());
        *at != best
            && !used.contains(at)
            && may_name(column)
            && column.filled * 2 >= profile.rows
            && one.min(other) >= MIN_SHARED as u64
            && one.max(other) <= one.min(other) * 4
    };
    let tried: Vec<usize> =
        profile.columns.iter().enumerate().filter(fits).map(|(at, _)| at).take(MAX_TRIED).collect();
    if tried.is_empty() || !may_name(own) {
        return None;
    }
    let hashes = Hashes::default();
    let (mut owners, mut rows) = (Set::<u64>::default(), 0);
    let mut others = vec![(Set::<u64>::default(), 0u64); tried.len()];
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        let cell = |at: usize| row.get(at).map_or("", AsRef::as_ref);
        let whose = hashes.of(cell(best));
        owners.insert(whose);
        rows += 1;
        for ((set, same), at) in others.iter_mut().zip(&tried) {
            if !form.is_missing(cell(*at)) {
                let other = hashes.of(cell(*at));
                set.insert(other);
                *same += u64::from(other == whose);
            }
        }
        rows < SAMPLE
    });
    let overlap = |((set, same), _): &(&(Set<u64>, u64), &usize)| {
        let shared = set.intersection(&owners).count();
        shared >= MIN_SHARED && shared * 2 >= set.len().max(owners.len()) && *same * 2 < rows
    };
    others.iter().zip(&tried).find(overlap).map(|(_, at)| *at)
}

/// Whether values may name persons. Short numbers may be anything.
fn may_name(column: &Column) -> bool {
    if !column.is_number() {
        return column.times() == 0;
    }
    let long = column.digits.is_some_and(|(short, _)| short >= 5);
    column.is_integer() && (long || is_id(&column.name) || owner_score(&column.name) > 0)
}

/// What people and animals live or are counted in.
const GROUPS: &[&str] = &[
    "household",
    "hh",
    "hhid",
    "hhno",
    "haushalt",
    "haushaltsnr",
    "family",
    "familie",
    "home",
    "house",
    "dwelling",
    "wohnung",
    "menage",
    "ménage",
    "foyer",
    "hogar",
    "farm",
    "herd",
    "school",
    "schule",
    "village",
    "site",
    "centre",
    "center",
    "clinic",
    "hospital",
    "klinik",
    "zentrum",
];

/// Those who are numbered in them.
const MEMBERS: &[&str] = &[
    "person",
    "persons",
    "pers",
    "personno",
    "personnr",
    "personid",
    "pno",
    "perno",
    "pid",
    "member",
    "individual",
    "subject",
    "participant",
    "patient",
    "resident",
    "occupant",
    "child",
    "student",
    "pupil",
    "animal",
    "cow",
    "mitglied",
    "bewohner",
    "proband",
    "teilnehmer",
    "kind",
    "individu",
    "personne",
    "persona",
];

/// Asks about persons whose numbers begin again in each household, so that two columns name an owner
/// only together.
pub(crate) fn numbered_within(
    (text, form): (&str, &Form),
    profile: &Profile,
    best: usize,
) -> Option<String> {
    /// More persons than that hardly begin again.
    const MAX: u64 = 1000;
    let column = |at: usize| &profile.columns[at];
    let numbered = |at: usize| {
        let own = column(at);
        let from_one = own.whole_range().is_some_and(|(lo, _)| (0..=1).contains(&lo.digits));
        let members = has(&own.name, MEMBERS) && !has(&own.name, GROUPS);
        members && own.is_integer() && from_one && own.distinct() <= MAX && own.distinct() > 1
    };
    let groups = |at: usize| has(&column(at).name, GROUPS) && column(at).distinct() > 1;
    let all = || (0..profile.columns.len()).filter(|at| *at != best);
    let (group, member) = match (numbered(best), groups(best)) {
        (true, _) => (all().find(|at| groups(*at))?, best),
        (false, true) => (best, all().find(|at| numbered(*at))?),
        (false, false) => return None,
    };
    let hashes = Hashes::default();
    let (mut pairs, mut rows) = (Set::<u64>::default(), 0);
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        let cell = |at: usize| row.get(at).map_or("", AsRef::as_ref);
        pairs.insert(hashes.of((cell(group), cell(member))));
        rows += 1;
        rows < SAMPLE
    });
    let more = |at: usize| pairs.len() as u64 * 10 > column(at).distinct() * 11;
    let (group_name, name) = (&column(group).name, &column(member).name);
    let word = worded(group_name);
    (more(group) && more(member)).then(|| {
        format!(
            "`{name}` begins again in each `{group_name}`, so {} persons are named only by both together, and an owner is one column. Join them in one column of the file, such as 17-2, and name that with `--owner COLUMN`; or use `--owner {word}` if `{group_name}` is the owner, with all who belong to it.",
            pairs.len()
        )
    })
}
