//! Columns of single events, for a consumer that may read a stream itself.

use super::resolve::resolve;
use crate::layout::Layout;
use crate::plan::Release;
use crate::query::{Call, Function, Item, SourceLocation, Word};
use crate::schema::Schema;
use crate::select::{HistogramOutput, ReleasePlan};

/// A column for each attribute whose value or bin can be read from an event's words: the
/// value itself if sums are encoded, else the lower edge of its bin. Other encodings (truth
/// values, sketches) have no single value.
#[must_use]
pub fn event_columns(schema: &Schema, layout: &Layout) -> (Release, ReleasePlan) {
    let mut items: Vec<Item> = Vec::new();
    for attribute in &schema.attributes {
        let name = &attribute.name;
        let value = item(name, "SUM", Function::Sum);
        let bin = item(name, "MODE", Function::FromHistogram(HistogramOutput::Mode));
        let readable =
            |item: &Item| resolve(std::slice::from_ref(item), schema, layout).1.is_empty();
        items.extend([value, bin].into_iter().find(readable));
    }
    let (resolved, _) = resolve(&items, schema, layout);
    (resolved.release, resolved.select)
}

fn item(attribute: &str, name: &'static str, function: Function) -> Item {
    let call = Call::Of(function, Word::new(attribute));
    Item { alias: attribute.to_owned(), name, call, at: SourceLocation::default() }
}
