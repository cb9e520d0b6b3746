//! What to say of columns that are not measured, with the options that decide otherwise.

use crate::words::worded;

/// Of numbers that seem to name devices or owners.
pub(crate) fn names_things_by_numbers(name: &str, values: u64) -> String {
    let word = worded(name);
    format!(
        "`{name}` holds {values} different whole numbers and seems to name something, such as a device, rather than to measure. Its numbers are not added up. Use `--measure {word}` if they are measurements, `--owner {word}` if they name the owner of a reading, or `--leave-out {word}` if neither."
    )
}

/// Of numbers that name something, perhaps owners.
pub(crate) fn look_like_codes(name: &str, may_own: bool) -> String {
    let word = worded(name);
    let (owner, other) = match may_own {
        true => (format!(", `--owner {word}` if they name the owner of a row"), "neither"),
        false => (String::new(), "not"),
    };
    format!(
        "The numbers of `{name}` look like codes, so they are not added up. Use `--measure {word}` if they are measurements{owner}, or `--leave-out {word}` if {other}."
    )
}

/// Of numbers that describe owners.
pub(crate) fn one_for_each(name: &str) -> String {
    let word = worded(name);
    format!(
        "`{name}` has one number for each owner, so it describes the owners and is not added up. Use `--measure {word}` if it is a measurement, or `--leave-out {word}` if not."
    )
}

/// Of whole numbers as large as times.
pub(crate) fn may_be_times(name: &str) -> String {
    let word = worded(name);
    format!(
        "The numbers of `{name}` may be times since 1970, so they are left out. Use `--measure {word}` if they are measurements, or `--leave-out {word}` if not."
    )
}

/// Of numbers such as 1735.
pub(crate) fn may_be_clock_times(name: &str) -> String {
    let word = worded(name);
    format!(
        "The numbers of `{name}` may be times of day, such as 1735 for 17:35, so they are left out. Use `--measure {word}` if they are measurements."
    )
}

/// Of latitudes and the like.
pub(crate) fn is_of_position(name: &str) -> String {
    let word = worded(name);
    format!(
        "`{name}` is a part of a position, which has no sum and no mean of a crowd, so it is not measured. Use `--measure {word}` to measure it."
    )
}

/// Of a column that was asked for.
pub(crate) fn not_numbers(name: &str) -> String {
    let word = worded(name);
    format!(
        "`{name}` has no numbers, so it cannot be measured. Write it as numbers (a duration such as 12:30 as seconds or minutes), or leave `--measure {word}` out."
    )
}
