//! Which column says whose a reading is, if any does.

use crate::error::DiscoverError;
use crate::form::Form;
use crate::hash::{Hashes, Set};
use crate::hints::Hints;
use crate::kinds::names_quantities;
use crate::profile::{Column, Profile};
use crate::scan::{Scanned, scan};
use crate::table::Table;
use crate::times::{TimePlan, join};
use crate::words::{FLAGS, KINDS, TIMES, has, is, names_a_number, owner_score, worded};

/// Rows that are read to see which column tells series apart.
const SAMPLE: u64 = 200_000;
/// Columns that are tried.
const MAX_TRIED: usize = 8;
/// Most different numbers of a column that names parts of an owner.
const MAX_PARTS: u64 = 100;

/// The owner's column.
pub(crate) struct OwnerPlan {
    /// Its position; none if the file is one series.
    pub column: Option<usize>,
    /// Columns of numbers that tell apart rows of one owner at one time.
    pub parts: Vec<usize>,
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
    let plan = |column: Option<usize>, notes, questions| {
        let parts = parts(text, table, profile, time, column);
        Ok(OwnerPlan { column, parts, notes, questions })
    };
    match hints.owner.as_deref() {
        Some("none") => return plan(None, Vec::new(), Vec::new()),
        Some(name) => {
            let at = hints.position(name, table.names.iter().map(String::as_str))?;
            return plan(Some(at), Vec::new(), Vec::new());
        }
        None => {}
    }
    let candidates = candidates(profile, table, time);
    if let Some(best) = by_name(profile, &candidates) {
        let notes = rivals(profile, &candidates, best);
        return plan(Some(best), notes, Vec::new());
    }
    let (column, notes, mut questions) = by_rows((text, table), profile, time, &candidates);
    questions.extend(in_few_rows(profile, time));
    plan(column, notes, questions)
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
        // What classifies tells series apart too, and is nobody's.
        let may_own = |at: &usize| {
            let column = &profile.columns[*at];
            let classifies = has(&column.name, FLAGS) || is(&column.name, KINDS);
            !column.is_number() && !classifies && !names_quantities(column)
        };
        let Some(at) = series.best().filter(may_own) else {
            return (None, Vec::new(), vec![series.question(&tried, name)]);
        };
        let note = format!(
            "No column's name says whose a reading is. {} is taken for the owner, since with it no two rows have the same time.",
            name(at)
        );
        return (Some(at), vec![note], Vec::new());
    }
    if series.repeats * 2 > series.rows {
        let asked = format!(
            "{} of {} rows have the time of an earlier row, and no column says whose each is. Say `--owner COLUMN`, or `--owner none` if all rows are one owner's.",
            series.repeats, series.rows
        );
        return (None, Vec::new(), vec![asked]);
    }
    let texts = candidates.iter().copied().find(|at| !profile.columns[*at].is_number());
    if !table.has_header
        && let Some(first) = texts
    {
        let note = format!(
            "The file has no names of columns. {} is taken for the owner, since it is the first column of texts that repeat.",
            name(first)
        );
        return (Some(first), vec![note], Vec::new());
    }
    let note =
        "No column says whose a reading is; the whole file is taken as one owner's.".to_owned();
    (None, vec![note], Vec::new())
}

/// Asks about a column that says whose a reading is, but not in all rows: it may stand in the
/// first row of several.
fn in_few_rows(profile: &Profile, time: &TimePlan) -> Option<String> {
    let some = |(at, column): &(usize, &Column)| {
        let few = column.filled * 100 < profile.rows * 97 && column.distinct() > 1;
        few && owner_score(&column.name) >= 60 && !time.columns.contains(at)
    };
    let (_, column) = profile.columns.iter().enumerate().find(some)?;
    let (name, filled, rows) = (&column.name, column.filled, profile.rows);
    let word = worded(name);
    Some(format!(
        "`{name}` seems to say whose a row is, but only in {filled} of {rows} rows. If it stands for the rows below it too, write it in each; or say `--owner {word}` to refuse the others, or `--owner none` if all rows are one owner's."
    ))
}

/// The column of few whole numbers that tells apart rows of one owner at one time.
fn parts(
    text: &str,
    table: &Table,
    profile: &Profile,
    time: &TimePlan,
    owner: Option<usize>,
) -> Vec<usize> {
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
    let tried: Vec<usize> =
        profile.columns.iter().enumerate().filter(few).map(|(at, _)| at).take(MAX_TRIED).collect();
    if tried.is_empty() {
        return tried;
    }
    let series = Series::read(text, &table.form, time, owner, &tried);
    let clear = series.rows > 8 && series.repeats * 5 > series.rows;
    let apart = series.within.iter().filter(|(_, repeats)| clear && *repeats == 0);
    apart.map(|(at, _)| *at).take(1).collect()
}

/// Columns that repeat their values and are no part of the time.
fn candidates(profile: &Profile, table: &Table, time: &TimePlan) -> Vec<usize> {
    let fits = |(at, column): &(usize, &Column)| {
        let nearly_full = column.filled * 100 >= profile.rows * 97;
        let number = column.is_number();
        let name = &table.names[*at];
        // A person may have one row, and a place hardly so.
        let repeats = match owner_score(name) {
            100 => column.distinct() > 1,
            80.. => column.distinct() * 10 <= column.filled * 9,
            _ => column.distinct() * 2 <= column.filled,
        } || (column.filled < 20 && column.distinct() < column.filled);
        let named = owner_score(name) > 0 && names_a_number(name);
        let whole = !column.fractional && !column.counts_up;
        !time.columns.contains(at)
            && !is(name, TIMES)
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

/// The column whose name says it best. A column with one value needs a name that leaves no
/// doubt, since a device that wrote the file is no owner.
fn by_name(profile: &Profile, candidates: &[usize]) -> Option<usize> {
    let score = |at: usize| {
        let column = &profile.columns[at];
        let shaped = if looks_like_address(column) { 80 } else { 0 };
        let score = owner_score(&column.name).max(shaped);
        if column.distinct() < 2 && score < 80 { 0 } else { score }
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

/// Other columns that may be meant.
fn rivals(profile: &Profile, candidates: &[usize], best: usize) -> Vec<String> {
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
        return Vec::new();
    }
    let own = &profile.columns[best].name;
    vec![format!(
        "`{own}` is taken for the owner; {} could be meant too. Say so with `--owner`.",
        names.join(", ")
    )]
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

/// How often times repeat, in the file and within each value of a column.
struct Series {
    rows: u64,
    repeats: u64,
    within: Vec<(usize, u64)>,
}

impl Series {
    fn read(
        text: &str,
        form: &Form,
        time: &TimePlan,
        owner: Option<usize>,
        columns: &[usize],
    ) -> Series {
        let mut series =
            Series { rows: 0, repeats: 0, within: columns.iter().map(|at| (*at, 0)).collect() };
        let hashes = Hashes::default();
        let mut known: Set<(u64, i64)> = Set::default();
        let mut own: Vec<Set<(u64, i64)>> = vec![Set::default(); columns.len()];
        let mut joined = String::new();
        scan(text, form, |_, scanned| {
            let Scanned::Row(row) = scanned else { return true };
            if !join(row, &time.columns, form, &mut joined) {
                return true;
            }
            let Some(at) = time.clock.micros(&joined) else { return true };
            let cell = |column: usize| row.get(column).map_or("", AsRef::as_ref);
            let whose = owner.map_or("", cell);
            series.rows += 1;
            series.repeats += u64::from(!known.insert((hashes.of(whose), at)));
            for ((column, repeats), own) in series.within.iter_mut().zip(&mut own) {
                *repeats += u64::from(!own.insert((hashes.of((whose, cell(*column))), at)));
            }
            series.rows < SAMPLE
        });
        series
    }

    fn question(&self, tried: &[usize], name: impl Fn(usize) -> String) -> String {
        let names: Vec<String> = tried.iter().map(|at| name(*at)).collect();
        format!(
            "{} of {} rows have the time of another row, so the file seems to hold several series, but no column says clearly whose a row is. It may be one of {}. Name it with `--owner COLUMN`, or say `--owner none` if all rows are one owner's.",
            self.repeats,
            self.rows,
            names.join(", ")
        )
    }

    /// The first column within whose values times repeat hardly ever.
    fn best(&self) -> Option<usize> {
        let found = self.within.iter().find(|(_, repeats)| repeats * 20 <= self.repeats);
        found.map(|(at, _)| *at)
    }
}
