//! A column that names the one owner of a file.

use crate::attribute::Attribute;
use crate::hints::Hints;
use crate::id_words::{is_id, is_serial};
use crate::owner_words::owner_score;
use crate::profile::{Column, Profile};
use crate::times::TimePlan;
use crate::words::words;

/// The name of a column with one value, if it is that of what identifies a person or a device: `id`,
/// `Device ID`, `Serial number`.
pub(crate) fn find(
    attributes: &[Attribute],
    profile: &Profile,
    time: &TimePlan,
    hints: &Hints,
) -> Option<String> {
    if hints.owner.is_some() || hints.wide.is_some() {
        return None;
    }
    let measured = |own: &Column| attributes.iter().any(|other| other.column == own.name);
    let names = |(at, own): &(usize, &Column)| {
        let one = own.distinct() == 1 && own.filled == profile.rows;
        let used = time.columns.contains(at) || measured(own);
        let identifies = is_serial(&own.name) || (owner_score(&own.name) >= 60 && is_id(&own.name));
        one && identifies && !used && !hints.leave_out.contains(&own.name)
    };
    let found = profile.columns.iter().enumerate().filter(names);
    // An `id` alone may be anything's.
    let (_, column) = found.min_by_key(|(_, own)| words(&own.name).len() == 1)?;
    Some(column.name.clone())
}
