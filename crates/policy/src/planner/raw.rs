//! One event at a time: the columns that whoever may read a stream itself reads off it.

use super::resolve::resolve;
use crate::layout::Layout;
use crate::plan::Release;
use crate::query::{Call, Function, Item, Place, Word};
use crate::schema::Schema;
use crate::select::{HistogramOutput, ReleasePlan};

/// A column for each attribute whose value, or bin, an event's words tell: the value
/// itself where sums are encoded, else the lower edge of its bin. What is encoded
/// otherwise (truth values, sketches) tells no single value.
#[must_use]
pub fn event_columns(schema: &Schema, layout: &Layout) -> (Release, ReleasePlan) {
    let mut items: Vec<Item> = Vec::new();
    for attribute in &schema.attributes {
        let name = &attribute.name;
        let value = item(name, "SUM", Function::Sum);
        let bin = item(name, "MODE", Function::FromHistogram(HistogramOutput::Mode));
        let told = |item: &Item| resolve(std::slice::from_ref(item), schema, layout).1.is_empty();
        items.extend([value, bin].into_iter().find(told));
    }
    let (resolved, _) = resolve(&items, schema, layout);
    (resolved.release, resolved.select)
}

fn item(attribute: &str, name: &'static str, function: Function) -> Item {
    let call = Call::Of(function, Word::new(attribute));
    Item { alias: attribute.to_owned(), name, call, at: Place::default() }
}
