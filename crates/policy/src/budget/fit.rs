//! Whether rows hold their sums with the noise in them.

use super::error::Shared;
use super::noise::RowNoise;
use super::sensitivity::Unprotectable;
use crate::layout::{Layout, Packing, greatest_in_event};
use crate::plan::Release;
use crate::schema::Schema;

/// Sums are read as signed words.
const MOST: u128 = 1 << 63;

/// Checks that no row wraps: the greatest sum of a full population and the tail
/// of the noise of all members' shares stay below 2^63. Layouts
/// leave room for the noise of one person's one stream at the least ε of an
/// option; noise for several groups of rows or streams is wider. Of running totals
/// that is the sum over all windows, in units of 2^−f.
///
/// # Errors
/// [`Unprotectable::TooWide`] with the row.
pub fn holds_noise(
    release: &Release,
    noise: &[RowNoise],
    schema: &Schema,
    layout: &Layout,
    shared: Shared,
) -> Result<(), Unprotectable> {
    let Shared { honest, members, windows, .. } = shared;
    let events = u128::from(schema.capacity.population) * u128::from(schema.capacity.events);
    let running = noise.iter().any(|own| matches!(own, RowNoise::Running(_)));
    for ((row, words), own) in (0u16..).zip(&release.rows).zip(noise) {
        let tail = match own {
            RowNoise::Running(own) => own.tail(windows, members),
            // Without noise of its own a row is still added up.
            RowNoise::None if running => 1,
            own => own.tail(honest, members),
        };
        let field = words.first().and_then(|word| layout.field_at(*word));
        let (Some(field), true) = (field, tail > 0) else { continue };
        let event = match field.packing {
            // Halves of at most 2^32 each, and as many negative.
            Packing::Limbs => 1 << 32,
            _ => greatest_in_event(schema, field.statistic).unwrap_or(MOST),
        };
        // A row may add several cells; one event is in one of them, or in each
        // of a sketch's rows.
        let added = events.saturating_mul(if running { windows.into() } else { 1 });
        let cells = added.saturating_mul(words.len() as u128);
        let event = event.saturating_mul(1 << own.fraction_bits());
        if event.saturating_mul(cells).saturating_add(tail) >= MOST {
            return Err(Unprotectable::TooWide { row });
        }
    }
    Ok(())
}
