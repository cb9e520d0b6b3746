//! Which column says whose a reading is, if any does.

use crate::error::DiscoverError;
use crate::hints::Hints;
use crate::kinds::{self, MAX_KINDS};
use crate::owner_guess;
use crate::owner_words::{may_count_people, names_a_number, owner_score};
use crate::pairs;
use crate::persons::{self, is_flag, offers};
use crate::plural::verb;
use crate::profile::{Column, Profile};
use crate::rivals;
use crate::separators::{self, Separator};
use crate::series::{Series, offered};
use crate::snapshot;
use crate::table::Table;
use crate::times::TimePlan;
use crate::visits;
use crate::words::{FLAGS, KINDS, TIMES, has, is, worded};
use std::collections::BTreeSet;

/// Columns that are tried.
const MAX_TRIED: usize = 8;
/// Repeated times that tell of kinds, where they are few.
const MIN_RARE: u64 = 20;
/// Most different numbers of a column that names parts of an owner.
const MAX_PARTS: u64 = 100;

/// What to say if no owner is found.
pub(crate) const NO_OWNER: &str =
    "No column says which owner a reading belongs to; the whole file is taken as one owner's.";

/// The owner's column.
pub(crate) struct OwnerPlan {
    /// Its position; none if the file is one series.
    pub column: Option<usize>,
    /// Columns of numbers that tell apart rows of one owner at one time.
    pub parts: Vec<usize>,
    /// Columns of texts that do so.
    pub kinds: Vec<usize>,
    /// Columns of numbers with one for each owner, and another for each.
    pub constant: Vec<usize>,
    /// What is noticed.
    pub notes: Vec<String>,
    /// What cannot be known and matters.
    pub questions: Vec<String>,
}

/// Finds the owner's column.
///
/// # Errors
/// If the hints name a column that is not there.
pub(crate) fn find(
    text: &str,
    table: &Table,
    profile: &Profile,
    time: &TimePlan,
    hints: &Hints,
) -> Result<OwnerPlan, DiscoverError> {
    let plan = |column: Option<usize>, notes, mut questions: Vec<String>| {
        let (parts, mut kinds) = parts(text, table, profile, time, column);
        if !questions.is_empty() {
            kinds.clear();
        } else if hints.owner.is_none() {
            questions.extend(owner_guess::counted((text, &table.form), profile, time, hints));
        }
        let constant = crate::constant::find((text, &table.form), profile, column);
        Ok(OwnerPlan { column, parts, kinds, constant, notes, questions })
    };
    match hints.owner.as_deref() {
        Some("none") => return plan(None, Vec::new(), Vec::new()),
        Some(name) => {
            let at = hints.position(name, table.names.iter().map(String::as_str))?;
            if profile.columns[at].is_number() && profile.columns[at].decimals {
                return Err(DiscoverError::OwnerMeasures { name: name.to_owned() });
            }
            return plan(Some(at), Vec::new(), Vec::new());
        }
        None => {}
    }
    let candidates = candidates(profile, table, time);
    let named = by_name(profile, &candidates);
    if let Some((at, asked)) = in_some_rows(profile, time, named) {
        return plan(at.or(named), Vec::new(), vec![asked]);
    }
    if let Some(found) = snapshot::find((text, &table.form), profile, time, named) {
        return plan(Some(found.column), found.notes, found.questions);
    }
    if let Some(best) = named {
        let (notes, questions) =
            rivals::of((text, table), profile, time, (&candidates, best), hints);
        return plan(Some(best), notes, questions);
    }
    let (column, notes, questions) = unnamed((text, table), profile, time, (&candidates, hints));
    plan(column, notes, questions)
}

/// The column of the owner if no name says it, what is noticed, and what is open.
fn unnamed(
    (text, table): (&str, &Table),
    profile: &Profile,
    time: &TimePlan,
    (candidates, hints): (&[usize], &Hints),
) -> (Option<usize>, Vec<String>, Vec<String>) {
    if let Some((at, asked)) = persons::in_each_row(profile, time, hints) {
        return (Some(at), Vec::new(), vec![asked]);
    }
    let (mut column, mut notes, mut questions) = by_rows((text, table), profile, time, candidates);
    if let Some(best) = column.filter(|_| questions.is_empty()) {
        let ends = || pairs::ends((text, &table.form), profile, best, &time.columns);
        questions.extend(visits::asked(&profile.columns[best]).or_else(ends));
    }
    if questions.is_empty() {
        questions.extend(persons::with_ports(profile));
    }
    if column.is_none() && questions.is_empty() {
        questions.extend(persons::in_rows(profile, time));
    }
    if column.is_none()
        && questions.is_empty()
        && let Some((at, asked)) = owner_guess::asked((text, table), profile, time, (hints, None))
    {
        (column, notes) = (Some(at), Vec::new());
        questions.push(asked);
    }
    (column, notes, questions)
}

/// The column that follows from the rows, what is noticed, and what is open.
fn by_rows(
    (text, table): (&str, &Table),
    profile: &Profile,
    time: &TimePlan,
    candidates: &[usize],
) -> (Option<usize>, Vec<String>, Vec<String>) {
    let tried = worth_trying(profile, candidates, time);
    let series = Series::read(text, &table.form, time, None, &tried);
    let name = |at: usize| format!("`{}`", profile.columns[at].name);
    if series.repeats * 20 > series.rows && !tried.is_empty() {
        let Series { rows, repeats, within, .. } = &series;
        match separators::find((*rows, *repeats, within), profile) {
            Separator::Owner(at, note) => return (Some(at), vec![note], Vec::new()),
            Separator::Asked(at) => {
                return (Some(at), Vec::new(), vec![series.question(&[at], name)]);
            }
            Separator::Category => {}
            Separator::Unclear => {
                let apart = set_apart((text, table), profile, time, &tried);
                let mut offered = offers(profile, time);
                offered.retain(|at| Some(*at) != apart);
                offered.splice(0..0, apart);
                return (apart, Vec::new(), vec![series.question(&offered, name)]);
            }
        }
    }
    if series.repeats * 2 > series.rows {
        let asked = format!(
            "{} of {} rows {} the time of an earlier row, and no column says which owner each belongs to.{} Use `--owner COLUMN`, or `--owner none` if all rows belong to one owner.",
            series.repeats,
            series.rows,
            verb(series.repeats, "has", "have"),
            offered(&offers(profile, time), name)
        );
        return (None, Vec::new(), vec![asked]);
    }
    by_texts((table, profile), &series, candidates)
}

/// The same where times hardly repeat.
fn by_texts(
    (table, profile): (&Table, &Profile),
    series: &Series,
    candidates: &[usize],
) -> (Option<usize>, Vec<String>, Vec<String>) {
    if let Some((at, asked)) = series.in_blocks(profile) {
        return (Some(at), Vec::new(), vec![asked]);
    }
    let texts = candidates.iter().copied().find(|at| !profile.columns[*at].is_number());
    let things = texts.filter(|at| table.has_header && names_things(&profile.columns[*at]));
    if let Some(at) = things {
        let asked = ask_of_names(&profile.columns[at]);
        return (Some(at), Vec::new(), vec![asked]);
    }
    if !table.has_header
        && let Some(first) = texts
    {
        let note = format!(
            "The file has no column names. `{}` is taken as the owner, since it is the first column with texts that repeat.",
            profile.columns[first].name
        );
        return (Some(first), vec![note], Vec::new());
    }
    (None, vec![NO_OWNER.to_owned()], Vec::new())
}

/// Asks about a column that says better whose a reading is than the one that does so in all rows, but
/// not in each: it may stand in the first row of several. It is the owner if most rows have it.
fn in_some_rows(
    profile: &Profile,
    time: &TimePlan,
    named: Option<usize>,
) -> Option<(Option<usize>, String)> {
    let score = |at: usize| owner_score(&profile.columns[at].name);
    let known = named.map_or(59, score);
    let some = |at: &usize| {
        let column = &profile.columns[*at];
        let gaps = column.has_gaps(profile.rows) && column.distinct() > 1;
        gaps && score(*at) > known
            && !time.columns.contains(at)
            && may_name(column)
            && !is_flag(column)
    };
    let all = (0..profile.columns.len()).filter(some);
    let at = all.max_by_key(|at| (score(*at), profile.columns[*at].filled))?;
    let column = &profile.columns[at];
    let (name, filled, rows) = (&column.name, column.filled, profile.rows);
    let most = filled * 2 >= rows;
    // A few visitors of a site have names, and all have addresses.
    let by_address = |named: usize| has(&profile.columns[named].name, &["ip", "host", "hostname"]);
    if !most && named.is_some_and(by_address) {
        return None;
    }
    let word = worded(name);
    let asked = format!(
        "`{name}` seems to name the owner of a row, but only in {filled} of {rows} rows. If a name also applies to the rows below it, write it in each of them; or use `--owner {word}` to refuse the others, or `--owner none` if all rows belong to one owner."
    );
    Some((Some(at).filter(|_| most), asked))
}

/// Whether a column holds names: texts, or whole numbers that count nobody.
fn may_name(column: &Column) -> bool {
    !column.is_number() || (!column.decimals && !may_count_people(&column.name))
}

/// Asks about a column of names.
fn ask_of_names(column: &Column) -> String {
    let (name, word, names) = (&column.name, worded(&column.name), column.distinct());
    format!(
        "`{name}` has {names} names that repeat, such as those of devices or people. Use `--owner {word}` if it names the owner of a row, or `--owner none` if all rows belong to one owner."
    )
}

/// Whether the texts of a column are one word with different numbers, such as P1 to P12.
fn names_things(column: &Column) -> bool {
    let stem = |text: &String| text.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let stems: BTreeSet<String> = column.texts.keys().map(stem).collect();
    let numbered = |text: &String| text.ends_with(|c: char| c.is_ascii_digit());
    let word = |stem: &String| stem.starts_with(char::is_alphabetic);
    !column.many_texts
        && column.distinct() > 2
        && column.numbers == 0
        && stems.len() == 1
        && stems.iter().all(word)
        && column.texts.keys().all(numbered)
        && !has(&column.name, FLAGS)
        && !is(&column.name, KINDS)
}

/// The column of few whole numbers that tells apart rows of one owner at one time, and the column
/// of few texts that does.
fn parts(
    text: &str,
    table: &Table,
    profile: &Profile,
    time: &TimePlan,
    owner: Option<usize>,
) -> (Vec<usize>, Vec<usize>) {
    let few = |(at, column): &(usize, &Column)| {
        let repeats = column.distinct() * 20 <= column.filled || column.distinct() <= 4;
        let from_zero = column.whole_range().is_some_and(|(lo, _)| lo.digits >= 0);
        let used = time.columns.contains(at) || owner == Some(*at);
        column.is_integer()
            && !used
            && from_zero
            && column.filled == profile.rows
            && repeats
            && (2..=MAX_PARTS).contains(&column.distinct())
    };
    let few_texts = |(at, column): &(usize, &Column)| {
        let used = time.columns.contains(at) || owner == Some(*at);
        let text = column.numbers == 0 && !column.many_texts && column.times() == 0;
        text && !used
            && column.filled == profile.rows
            && (2..=MAX_KINDS).contains(&column.distinct())
    };
    let all = || profile.columns.iter().enumerate();
    let numbers: Vec<usize> = all().filter(few).map(|(at, _)| at).take(MAX_TRIED).collect();
    let texts: Vec<usize> = all().filter(few_texts).map(|(at, _)| at).take(MAX_TRIED).collect();
    let tried = [numbers.as_slice(), texts.as_slice()].concat();
    if tried.is_empty() {
        return (tried, texts);
    }
    let series = Series::read(text, &table.form, time, owner, &tried);
    let (of_numbers, of_texts) = series.within.split_at(numbers.len());
    let clear = series.rows > 8 && series.repeats * 5 > series.rows;
    let some = series.rows > 8 && series.repeats * 20 > series.rows;
    // Sums of a day stand beside its hours once a day.
    let rare = series.repeats >= MIN_RARE && series.repeats * 50 > series.rows;
    let apart = of_numbers.iter().filter(|(_, repeats)| clear && *repeats == 0);
    let names_kinds =
        |repeats: u64| if some { repeats * 20 <= series.repeats } else { rare && repeats == 0 };
    let kinds = of_texts.iter().filter(|(_, repeats)| names_kinds(*repeats));
    let first = |(at, _): &(usize, u64)| *at;
    let recur = |at: &usize| kinds::recur((text, &table.form), time, owner, *at, some);
    (apart.map(first).take(1).collect(), kinds.map(first).filter(recur).take(1).collect())
}

/// Columns that repeat their values and are no part of the time.
fn candidates(profile: &Profile, table: &Table, time: &TimePlan) -> Vec<usize> {
    let fits = |(at, column): &(usize, &Column)| {
        let nearly_full = !column.has_gaps(profile.rows);
        let number = column.is_number();
        let name = &table.names[*at];
        // A person may have one row, and a place hardly so.
        let repeats = match owner_score(name) {
            100 => true,
            80.. => column.distinct() * 10 <= column.filled * 9,
            _ => column.distinct() * 2 <= column.filled,
        } || (column.filled < 20 && column.distinct() < column.filled);
        let named = owner_score(name) > 0 && names_a_number(name);
        let whole = may_name(column) && !column.counts_up;
        !time.columns.contains(at)
            && !is(name, TIMES)
            && !is_flag(column)
            && nearly_full
            && repeats
            && (!number || (named && whole))
            // Serial numbers such as 2024-117 look like times.
            && (column.times() * 2 < column.filled.max(1) || owner_score(name) >= 60)
    };
    profile.columns.iter().enumerate().filter(fits).map(|(at, _)| at).collect()
}

/// Columns with a few values that repeat, so that they may tell series apart.
fn worth_trying(profile: &Profile, candidates: &[usize], time: &TimePlan) -> Vec<usize> {
    let texts = candidates.iter().copied().filter(|at| !profile.columns[*at].is_number());
    let whole = |at: &usize| {
        let column = &profile.columns[*at];
        let few = column.distinct() * 20 <= column.filled && column.distinct() <= 1000;
        column.is_integer() && few && !time.columns.contains(at) && column.filled == profile.rows
    };
    let numbers = (0..profile.columns.len()).filter(whole);
    let several = texts.chain(numbers).filter(|at| profile.columns[*at].distinct() > 1);
    several.take(MAX_TRIED).collect()
}

/// The only column of whole numbers with fewer rows each of which no two rows of a number have one
/// time. Of measurements, that is so by chance if few times repeat.
fn set_apart(
    (text, table): (&str, &Table),
    profile: &Profile,
    time: &TimePlan,
    tried: &[usize],
) -> Option<usize> {
    let whole = |at: &usize| {
        let column = &profile.columns[*at];
        let repeats = column.distinct() * 4 <= column.filled && !column.counts_up;
        let free = !tried.contains(at) && persons::may_say_whose((*at, column), profile, time);
        column.is_integer() && repeats && free && column.filled == profile.rows
    };
    let others: Vec<usize> = (0..profile.columns.len()).filter(whole).take(MAX_TRIED).collect();
    if others.is_empty() {
        return None;
    }
    let Series { repeats, within, .. } = Series::read(text, &table.form, time, None, &others);
    let clear = |at: usize| repeats >= 3 * profile.columns[at].distinct();
    let mut apart = within.into_iter().filter(|(at, own)| *own == 0 && clear(*at));
    let (only, _) = apart.next()?;
    apart.next().is_none().then_some(only)
}

/// The column whose name says it best. A column with one value needs a name that leaves no
/// doubt, since a device that wrote the file is no owner.
fn by_name(profile: &Profile, candidates: &[usize]) -> Option<usize> {
    let score = |at: usize| {
        let column = &profile.columns[at];
        let shaped = if looks_like_address(column) { 80 } else { 0 };
        let score = owner_score(&column.name).max(shaped);
        match (column.distinct() < 2, score) {
            (false, score) => score,
            // Of two with the same name, the one that has several values.
            (true, 80..) => score - 1,
            (true, _) => 0,
        }
    };
    let mut best: Option<(usize, u32)> = None;
    for at in candidates {
        let score = score(*at);
        if score > 0 && best.is_none_or(|(_, known)| score > known) {
            best = Some((*at, score));
        }
    }
    best.map(|(at, _)| at)
}

/// Whether the values of a column are network addresses.
fn looks_like_address(column: &Column) -> bool {
    let address = |text: &String| {
        let parts: Vec<&str> = text.split('.').collect();
        let four = parts.len() == 4 && parts.iter().all(|part| part.parse::<u8>().is_ok());
        let hex: Vec<&str> = text.split([':', '-']).collect();
        let six = hex.len() == 6
            && hex.iter().all(|part| part.len() == 2 && u8::from_str_radix(part, 16).is_ok());
        four || six || text.contains('@')
    };
    !column.texts.is_empty() && column.texts.keys().all(address)
}
