//! From the bytes of a file to what is understood of it.

use crate::error::DiscoverError;
use crate::hints::Hints;
use crate::melt;
use crate::understanding::{self, Understanding};
use crate::watch::Watch;
use crate::write;

/// Understands the bytes of a file.
///
/// # Errors
/// A [`DiscoverError`] if they hold no table of readings.
pub fn understand(bytes: &[u8], hints: &Hints) -> Result<Understanding, DiscoverError> {
    understand_watched(bytes, hints, &mut ())
}

/// The same while somebody watches.
///
/// # Errors
/// As [`understand`].
pub fn understand_watched(
    bytes: &[u8],
    hints: &Hints,
    watch: &mut dyn Watch,
) -> Result<Understanding, DiscoverError> {
    let alone = Hints { owner: Some("none".to_owned()), ..hints.clone() };
    let first = if hints.wide.is_some() { &alone } else { hints };
    let mut found = understanding::of(bytes, first, watch)?;
    if found.alike || hints.wide.is_some() {
        found = melt::of(bytes, found, hints, watch)?;
    }
    let (notes, question) = write::withheld(&found);
    found.notes.splice(0..0, notes);
    found.questions.extend(question);
    found.say_groups();
    found.say_few_owners();
    Ok(found)
}
