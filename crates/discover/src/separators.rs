//! Which column tells rows of one time apart, and whether its values own them.

use crate::id_words::is_id;
use crate::kind_names::names_kinds;
use crate::kinds::{MAX_KINDS, names_quantities};
use crate::owner_guess::THINGS;
use crate::owner_words::VERSIONS;
use crate::profile::{Column, Profile};
use crate::words::{FLAGS, KINDS, has, is, qualifies};

/// Names of what is traded, whose values are words or short for some.
const TRADED: &[&str] = &["symbol", "ticker", "tickersymbol", "stocksymbol", "wkn", "isin"];

/// What the column is that tells rows of one time apart.
pub(crate) enum Separator {
    /// The owner's, and why.
    Owner(usize, String),
    /// Perhaps the owner's: that is asked.
    Asked(usize),
    /// It says what a row is about, so all rows may be one owner's.
    Category,
    /// There is none that may be an owner's.
    Unclear,
}

/// Finds it: from the number of rows, that of rows with the time of an earlier one, and that of such rows
/// within the values of each column.
pub(crate) fn find(
    (rows, repeats, within): (u64, u64, &[(usize, u64)]),
    profile: &Profile,
) -> Separator {
    let times = rows - repeats;
    // What classifies tells series apart too, and is nobody's.
    let apart = |own: u64| own * 20 <= repeats;
    let may_own = |(at, own): &&(usize, u64)| {
        let column = &profile.columns[*at];
        let nobody = classifies(column) || has(&column.name, VERSIONS);
        apart(*own) && !column.is_number() && !nobody
    };
    let open = || within.iter().filter(may_own);
    // A booking or the weather of some hours, and not a meal of each day.
    let owns = |(at, _): &&(usize, u64)| {
        let column = &profile.columns[*at];
        !is_topic(column) || is_regular((rows, times), column)
    };
    let Some((at, own)) = open().find(owns).copied() else {
        return if open().next().is_some() { Separator::Category } else { Separator::Unclear };
    };
    let column = &profile.columns[at];
    // Papers of one account are no series: they are traded now and then.
    let traded = is(&column.name, TRADED) && own == 0 && is_regular((rows, times), column);
    let states = are_states(column) && !traded;
    // Which of two that tell rows apart alike names the owner, nothing shows.
    let as_well = |(at, own): &(usize, u64)| apart(*own) && classifies(&profile.columns[*at]);
    let alike = within.iter().any(as_well);
    if is_topic(column) || states || alike || column.distinct() * 2 > column.filled {
        return Separator::Asked(at);
    }
    Separator::Owner(at, note(&column.name, own))
}

fn note(name: &str, repeats: u64) -> String {
    let rows = if repeats == 0 { "no two rows have" } else { "hardly any two rows have" };
    format!(
        "No column is named like an owner. `{name}` is taken as the owner, since with it {rows} the same time."
    )
}

/// Whether a column says of which kind a row is.
fn classifies(column: &Column) -> bool {
    let name = &column.name;
    let kinds = is(name, KINDS) || names_kinds(name) || names_quantities(column);
    has(name, FLAGS) || qualifies(name) || kinds
}

/// Whether a column's name says that it tells what a row is about.
fn is_topic(column: &Column) -> bool {
    has(&column.name, THINGS) && !is_id(&column.name)
}

/// Whether most values of a column have a row at most times.
fn is_regular((rows, times): (u64, u64), column: &Column) -> bool {
    rows * 2 > times * column.distinct()
}

/// Whether a column has so few values, all of letters alone, that they may be kinds or states of
/// something, such as meals.
fn are_states(column: &Column) -> bool {
    let plain = |text: &String| text.chars().all(|c| c.is_alphabetic() || c == ' ');
    column.distinct() <= MAX_KINDS && column.texts.keys().all(plain)
}
