//! Narrower bounds of an attribute, with which noise would be small enough. Bounds belong to the
//! schema, so a query cannot choose them, but its refusal can name them.

use crate::catalog::{Catalog, CatalogSchema};
use crate::decimal::format_scaled;
use crate::schema::{AttributeKind, Schema};

/// A catalogue whose schema has narrower bounds.
pub(super) struct Narrower {
    pub(super) catalog: Catalog,
    /// The bounds in words.
    pub(super) words: String,
}

/// The catalogue with the attribute's range divided by `by` or more: its maximum is lower, but not
/// below `typical` (in units of its scale).
pub(super) fn narrower(
    catalog: &Catalog,
    known: &CatalogSchema,
    attribute: u16,
    by: f64,
    typical: Option<f64>,
) -> Option<Narrower> {
    let mut schema = known.schema.clone();
    let own = schema.attributes.get_mut(usize::from(attribute))?;
    let AttributeKind::Number { scale, min, max } = &mut own.kind else { return None };
    let range = two_digits_down((*max as f64 - *min as f64) / by)?;
    let lower = min.checked_add(range).filter(|lower| *lower < *max)?;
    if typical.is_some_and(|typical| lower as f64 <= typical.abs()) {
        return None;
    }
    *max = lower;
    let (least, most) = (format_scaled(*min, *scale), format_scaled(lower, *scale));
    let words = format!("`{}` between {least} and {most}", own.name);
    Some(Narrower { catalog: with_schema(catalog, known, schema)?, words })
}

/// The streams of one schema under another, with the same policies.
fn with_schema(catalog: &Catalog, known: &CatalogSchema, schema: Schema) -> Option<Catalog> {
    let mut changed = Catalog::default();
    let id = changed.add_schema(schema).ok()?;
    for stream in catalog.streams().filter(|stream| stream.schema == known.id) {
        let mut stream = stream.clone();
        stream.schema = id;
        changed.put_stream(stream);
    }
    Some(changed)
}

/// Rounded down to two digits. `None` below 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number from 1 on, and casts saturate"
)]
fn two_digits_down(size: f64) -> Option<i64> {
    let whole = size.floor() as u64;
    let step = 10u64.pow(whole.checked_ilog10()?.saturating_sub(1));
    i64::try_from(whole / step * step).ok()
}

#[cfg(test)]
mod tests {
    use super::two_digits_down;

    #[test]
    fn ranges_are_rounded_down() {
        let rounded = [0.9, 1.2, 12.9, 1999.0].map(two_digits_down);
        assert_eq!(rounded, [None, Some(1), Some(12), Some(1900)]);
    }
}
