//! Columns that could be meant as the owner's beside the one that is taken.

use crate::events::names_event;
use crate::form::Form;
use crate::hash::{Hashes, Map};
use crate::hints::Hints;
use crate::id_words::is_id;
use crate::owner_guess;
use crate::owner_words::{is_vague, may_count_people, owner_score};
use crate::pairs;
use crate::persons;
use crate::profile::{Column, Profile};
use crate::scan::{SAMPLE, ScannedRow, scan};
use crate::table::Table;
use crate::times::TimePlan;
use crate::visits;
use crate::words::{IDS, has, worded, words};

/// Those who deal with several others, such as a doctor with patients.
const ROLES: &[&str] = &[
    "advisor",
    "agent",
    "arzt",
    "ärztin",
    "assessor",
    "berater",
    "betreuer",
    "caregiver",
    "carer",
    "cashier",
    "clerk",
    "clinician",
    "coach",
    "dealer",
    "dispatcher",
    "doctor",
    "docteur",
    "dozent",
    "driver",
    "employee",
    "fahrer",
    "infirmière",
    "instructor",
    "interviewer",
    "kassierer",
    "lehrer",
    "manager",
    "mechanic",
    "médecin",
    "mitarbeiter",
    "nurse",
    "pfleger",
    "physician",
    "professor",
    "referee",
    "reviewer",
    "seller",
    "staff",
    "supervisor",
    "teacher",
    "technician",
    "techniker",
    "therapeut",
    "therapist",
    "trainer",
    "tutor",
    "vendeur",
    "verkäufer",
    "waiter",
];

/// Words of owners who are no single persons.
const GROUPS: &[&str] = &[
    "household",
    "householdid",
    "haushalt",
    "menage",
    "ménage",
    "foyer",
    "hogar",
    "huishouden",
    "account",
    "acct",
    "konto",
    "kundenkonto",
    "vertragskonto",
    "contract",
    "policy",
    "lclid",
];

/// Asks about an area beside what numbers cases or the like: each row is somebody else's.
fn cases(profile: &Profile, best: usize) -> Option<String> {
    let (own, rows) = (&profile.columns[best].name, profile.rows);
    if owner_score(own) > 50 {
        return None;
    }
    let case = profile.columns.iter().find(|column| {
        let unique = column.distinct() == rows && column.filled == rows && rows > 20;
        unique && !column.counts_up && is_id(&column.name)
    })?;
    let (name, word) = (&case.name, worded(own));
    Some(format!(
        "Each row has a different `{name}`, so a row may be about somebody other than `{own}`. Name the owner with `--owner COLUMN`; use `--owner {word}` if that is the owner, or `--owner none` if all rows belong to one owner."
    ))
}

/// Asks about people who each have one row, beside what says less well whose a row is.
fn people(profile: &Profile, time: &TimePlan, hints: &Hints, best: usize) -> Option<String> {
    if owner_score(&profile.columns[best].name) == 100 {
        return None;
    }
    Some(persons::in_each_row(profile, time, hints)?.1)
}

/// Other columns that may be meant: what to say, and what to ask.
pub(crate) fn of(
    (text, table): (&str, &Table),
    profile: &Profile,
    time: &TimePlan,
    (candidates, best): (&[usize], usize),
    hints: &Hints,
) -> (Vec<String>, Vec<String>) {
    let rows = (text, &table.form);
    let open = visits::asked(&profile.columns[best])
        .or_else(|| pairs::ends(rows, profile, best, &time.columns))
        .or_else(|| pairs::numbered_within(rows, profile, best))
        .or_else(|| people(profile, time, hints, best))
        .or_else(|| cases(profile, best))
        .or_else(|| of_events(profile, best))
        .or_else(|| other_person(rows, profile, best, &time.columns))
        .or_else(|| owner_guess::within_area((text, table), profile, time, (hints, best)));
    if let Some(question) = open {
        return (Vec::new(), vec![question]);
    }
    let likely = |at: &&usize| {
        let column = &profile.columns[**at];
        **at != best && owner_score(&column.name) >= 60 && column.distinct() > 1
    };
    let names: Vec<String> = candidates
        .iter()
        .filter(likely)
        .map(|at| format!("`{}`", profile.columns[*at].name))
        .collect();
    if names.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let own = &profile.columns[best].name;
    let says = format!(
        "`{own}` is taken as the owner; {} could be meant too. Name the owner with `--owner COLUMN`; use `--owner {}` if that is right, or `--owner none` if all rows belong to one owner.",
        names.join(", "),
        worded(own)
    );
    if is_vague(own) { (Vec::new(), vec![says]) } else { (vec![says], Vec::new()) }
}

/// Asks about numbers of what somebody does or buys: one person may have several.
fn of_events(profile: &Profile, best: usize) -> Option<String> {
    let (name, word) = (&profile.columns[best].name, worded(&profile.columns[best].name));
    names_event(name).then(|| {
        format!(
            "`{name}` numbers what somebody does or buys, and no column says who does, so results may show individuals. Name the owner with `--owner COLUMN`; use `--owner {word}` if that is the owner, or `--owner none` if all rows belong to one owner."
        )
    })
}

/// Asks about two columns that name different people, such as a patient and a doctor: either may be
/// the one whose data a row is.
fn other_person(
    rows: (&str, &Form),
    profile: &Profile,
    best: usize,
    used: &[usize],
) -> Option<String> {
    let own = &profile.columns[best];
    if !is_person(own) {
        return None;
    }
    let fits = |at: &usize| {
        let other = &profile.columns[*at];
        *at != best && !used.contains(at) && is_person(other) && !is_same_word(own, other)
    };
    let other = (0..profile.columns.len()).filter(fits).find(|at| {
        let nested = nested(rows, best, *at);
        nested == PairKind::Neither
            || (nested == PairKind::One
                && [own, &profile.columns[*at]].iter().any(|own| has_role(own)))
    })?;
    let (name, other) = (&own.name, &profile.columns[other].name);
    let (word, other_word) = (worded(name), worded(other));
    Some(format!(
        "`{name}` and `{other}` both seem to name people, and a row has one owner. Use `--owner {word}` if it is about the first, `--owner {other_word}` if it is about the second, or `--owner none` if all rows belong to one owner."
    ))
}

/// Whether the values of a column name several people.
fn is_person(column: &Column) -> bool {
    let name = &column.name;
    let counts = column.is_number() && (column.decimals || may_count_people(name));
    // `client_ip` is an address.
    let last = words(name).pop().unwrap_or_default();
    let ends = IDS.contains(&last.as_str()) || owner_score(&last) == 100;
    let names = (owner_score(name) == 100 && ends) || has_role(column);
    let values = column.distinct() > 1 && column.times() == 0 && !column.is_truth();
    names && values && !counts && !has(name, GROUPS)
}

/// Whether a name is that of a role, alone or with a word such as `id` behind it.
fn has_role(column: &Column) -> bool {
    let words = words(&column.name);
    let is = |word: &String, list: &[&str]| list.contains(&word.as_str());
    let Some((last, before)) = words.split_last() else { return false };
    // The program of a visitor is nobody.
    let is_role = |at: &[String]| match at {
        [.., user, agent] if agent == "agent" => !is(user, &["user"]),
        [.., last] => is(last, ROLES),
        [] => false,
    };
    is_role(&words) || (is(last, IDS) && is_role(before))
}

/// Whether names share a word that says whom they name, as `customer_id` and `customer_name` do.
fn is_same_word(one: &Column, other: &Column) -> bool {
    let others = words(&other.name);
    words(&one.name).iter().any(|word| !IDS.contains(&word.as_str()) && others.contains(word))
}

/// How the values of two columns belong together.
#[derive(PartialEq)]
enum PairKind {
    /// Each value of either stands beside one of the other: two names of the same.
    Both,
    /// Each value of one of them does.
    One,
    /// Neither.
    Neither,
}

fn nested((text, form): (&str, &Form), one: usize, other: usize) -> PairKind {
    let (hashes, mut rows) = (Hashes::default(), 0);
    let mut maps: [Map<u64, u64>; 2] = Default::default();
    let mut nested = [true; 2];
    scan(text, form, |_, scanned| {
        let ScannedRow::Row(row) = scanned else { return true };
        let cell = |at: usize| row.get(at).map_or("", AsRef::as_ref);
        let (a, b) = (cell(one), cell(other));
        if !form.is_missing(a) && !form.is_missing(b) {
            let (a, b) = (hashes.of(a), hashes.of(b));
            nested[0] &= *maps[0].entry(a).or_insert(b) == b;
            nested[1] &= *maps[1].entry(b).or_insert(a) == a;
        }
        rows += 1;
        rows < SAMPLE && nested != [false; 2]
    });
    match nested {
        [true, true] => PairKind::Both,
        [false, false] => PairKind::Neither,
        _ => PairKind::One,
    }
}
