//! Columns of single events and ticks, for a consumer that may read a stream itself.

use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Release;
use alpheus_policy::planner::columns;
use alpheus_policy::query::{Call, Function, Item, SourceLocation, Word};
use alpheus_policy::schema::{Attribute, Schema};
use alpheus_policy::select::{HistogramOutput, ReleasePlan};

/// A column for each attribute whose value or bin can be read from an event's words: the
/// value itself if sums are encoded, else the lower edge of its bin. Other encodings (truth
/// values, sketches) have no single value.
pub(super) fn event_columns(schema: &Schema, layout: &Layout) -> (Release, ReleasePlan) {
    let mut items: Vec<Item> = Vec::new();
    for attribute in &schema.attributes {
        let name = &attribute.name;
        let value = item(name.clone(), name, "SUM", Function::Sum);
        let mode = Function::FromHistogram(HistogramOutput::Mode);
        let bin = item(name.clone(), name, "MODE", mode);
        items.extend([value, bin].into_iter().find(|item| is_readable(item, schema, layout)));
    }
    columns(&items, schema, layout).unwrap_or_default()
}

/// Columns of single ticks: sum, count and histogram of each attribute, as far as its schema
/// encodes them.
pub(super) fn tick_columns(schema: &Schema, layout: &Layout) -> (Release, ReleasePlan) {
    let functions = [
        ("SUM", Function::Sum),
        ("COUNT", Function::Count),
        ("HISTOGRAM", Function::FromHistogram(HistogramOutput::Counts)),
    ];
    let of = |attribute: &Attribute| {
        let name = attribute.name.clone();
        functions.map(|(function, call)| {
            item(format!("{}_{name}", function.to_lowercase()), &name, function, call)
        })
    };
    let items = schema.attributes.iter().flat_map(of);
    let items: Vec<Item> = items.filter(|item| is_readable(item, schema, layout)).collect();
    columns(&items, schema, layout).unwrap_or_default()
}

fn is_readable(item: &Item, schema: &Schema, layout: &Layout) -> bool {
    columns(std::slice::from_ref(item), schema, layout).is_some()
}

fn item(alias: String, attribute: &str, name: &'static str, function: Function) -> Item {
    let call = Call::Of(function, Word::new(attribute));
    Item { alias, name, call, at: SourceLocation::default() }
}
