//! Checks that sums with noise fit in their rows.

use super::expected_error::NoiseShares;
use super::noise::RowNoise;
use super::sensitivity::SensitivityError;
use crate::layout::{Layout, Packing, max_in_event};
use crate::release::Release;
use crate::schema::Schema;

/// Sums are read as signed words.
const MAX_SUM: u128 = 1 << 63;

/// Checks that no row overflows: the largest sum of a full population, plus the tail of the
/// noise of all members' shares, must be below 2^63. Layouts leave room for the noise of one
/// stream of one person at the smallest ε of an option. Noise for several groups of rows or
/// streams is wider. For running totals, the sum is over all windows, in units of 2^−f.
///
/// # Errors
/// [`SensitivityError::TooWide`] with the row that may overflow.
pub fn check_noise_fits(
    release: &Release,
    noise: &[RowNoise],
    schema: &Schema,
    layout: &Layout,
    shared: NoiseShares,
) -> Result<(), SensitivityError> {
    let NoiseShares { honest, members, windows, .. } = shared;
    let events = u128::from(schema.capacity.population) * u128::from(schema.capacity.events);
    let running = noise.iter().any(|own| matches!(own, RowNoise::Running(_)));
    for ((row, words), own) in (0u16..).zip(&release.rows).zip(noise) {
        let tail = match own {
            RowNoise::Running(own) => own.tail(windows, members),
            // A row without noise is still added up.
            RowNoise::None if running => 1,
            own => own.tail(honest, members),
        };
        let field = words.first().and_then(|word| layout.field_at(*word));
        let (Some(field), true) = (field, tail > 0) else { continue };
        let event = match field.packing {
            // Halves of at most 2^32 each, positive or negative.
            Packing::Limbs => 1 << 32,
            _ => max_in_event(schema, field.statistic).unwrap_or(MAX_SUM),
        };
        // A row may add several cells. An event is in one of them, or in one of each row of a
        // sketch.
        let added = events.saturating_mul(if running { windows.into() } else { 1 });
        let cells = added.saturating_mul(words.len() as u128);
        let event = event.saturating_mul(1 << own.fraction_bits());
        if event.saturating_mul(cells).saturating_add(tail) >= MAX_SUM {
            return Err(SensitivityError::TooWide { row });
        }
    }
    Ok(())
}
