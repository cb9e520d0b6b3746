//! Columns of numbers that name something and measure nothing.

use crate::id_words::{is_id, is_measured};
use crate::number::Decimal;
use crate::owner_words::{may_count_people, names_a_number, owner_score};
use crate::profile::Column;
use crate::table::Table;
use crate::units;
use crate::words::{CODES, has, words};

/// Most different numbers of a column that is taken for codes.
const MAX_CODES: u64 = 50;

/// The same where nothing is asked.
pub(crate) const MAX_SURE_CODES: u64 = 12;

/// Whether whole numbers are few and a column's name says that they name something, or lines above
/// the table do.
pub(crate) fn are(table: &Table, column: &Column) -> bool {
    let name = &column.name;
    let few = column.distinct() <= MAX_CODES && column.distinct() * 3 <= column.filled;
    let last = words(name).pop().unwrap_or_default();
    let names = owner_score(name) > 0 && names_a_number(name)
        || owner_score(&last) > 0 && column.distinct() <= 12;
    let names = names && !may_count_people(name);
    let from_zero = column.whole_range().is_some_and(|(lo, _)| lo.digits >= 0);
    // `error_rate` is a rate.
    let code = has(name, CODES) && (CODES.contains(&last.as_str()) || !is_measured(&last));
    let named = column.is_integer() && few && (code || names && from_zero);
    let stated = column.is_integer() && units::are_codes(&table.above, name);
    let named = named || stated || is_nameless(column);
    named || column.is_written_as_code() || (column.is_number() && is_id(name))
}

/// Whether a name says that numbers are those of classes, however many there are.
pub(crate) fn is_class(name: &str) -> bool {
    const CLASSES: &[&str] = &[
        "type",
        "kind",
        "category",
        "class",
        "subclass",
        "subcategory",
        "typ",
        "art",
        "klasse",
        "kategorie",
        "catégorie",
        "categoría",
        "clase",
    ];
    words(name).last().is_some_and(|word| CLASSES.contains(&word.as_str()))
}

/// Whether a column without a name has a few whole numbers that repeat very often: subjects,
/// channels or states are written so, and what a web server answers.
pub(crate) fn is_nameless(column: &Column) -> bool {
    const OFTEN: u64 = 20;
    let few = column.distinct() <= MAX_SURE_CODES;
    let often = column.distinct() * OFTEN <= column.filled;
    let own = |digits| Decimal { digits, places: 0 };
    let answers = column.whole_range().is_some_and(|(lo, hi)| lo >= own(100) && hi <= own(599));
    let several = column.distinct() > 2 || (column.distinct() > 1 && answers);
    column.name.starts_with("column ") && column.is_integer() && few && often && several
}

/// Whether numbers of one for each owner are written too differently for names.
pub(crate) fn describe_owners(column: &Column) -> bool {
    column.digits.is_some_and(|(short, long)| short < long) && !is_id(&column.name)
}
