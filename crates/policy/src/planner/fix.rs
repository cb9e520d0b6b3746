//! Changes a refused query into the nearest one that may be allowed.

use super::bins::Values;
use super::finding::Fix;
use crate::budget::Mechanism;
use crate::query::{
    BinRequest, Call, Create, Decimal, IntegrityChoice, Item, MembershipChoice, Word, default_alias,
};
use crate::schema::{Aggregation, CoarseBuckets, Edges, Generalisation, Schema};
use alpheus_time::Span;

/// The query with these changes, or `None` if no item is left.
pub(super) fn apply_fixes(
    create: &Create,
    fixes: &[Fix],
    schema: Option<&Schema>,
) -> Option<Create> {
    let mut query = create.clone();
    let mut items: Vec<Option<Item>> = query.items.drain(..).map(Some).collect();
    for fix in fixes {
        change_clauses(&mut query, fix, schema);
        change_items(&mut items, fix, schema)?;
    }
    for item in items.into_iter().flatten() {
        if query.items.iter().all(|other| other.alias != item.alias) {
            query.items.push(item);
        }
    }
    (!query.items.is_empty() && query != *create).then_some(query)
}

/// Applies a fix of the select items. `None` if it is impossible.
fn change_items(items: &mut [Option<Item>], fix: &Fix, schema: Option<&Schema>) -> Option<()> {
    match fix {
        Fix::Drop(position) => items.get_mut(*position).into_iter().for_each(|item| *item = None),
        Fix::Call(position, call) => {
            let item = items.get_mut(*position)?.as_mut();
            item.into_iter().for_each(|item| replace(item, item.name, call.clone()));
        }
        Fix::Without(attribute) => {
            let schema = schema?;
            for item in items {
                item.take_if(|item| names(item, *attribute, schema));
            }
        }
        Fix::Generalise(attribute, to) => {
            let schema = schema?;
            for item in items {
                let naming = item.take_if(|item| names(item, *attribute, schema));
                if let Some(naming) = naming {
                    *item = generalised(naming, to, schema);
                }
            }
        }
        _ => {}
    }
    Some(())
}

/// Applies a fix of any other clause.
fn change_clauses(query: &mut Create, fix: &Fix, schema: Option<&Schema>) {
    match fix {
        Fix::Drop(_) | Fix::Call(..) | Fix::Without(_) | Fix::Generalise(..) | Fix::Bounds(_) => {}
        Fix::Window(size) => widen(query, *size, schema),
        Fix::Population(min, max) => query.population = Some((*min, *max)),
        Fix::Consumer(name) => query.release_to = Some(Word::new(name)),
        Fix::Schema(name) => query.from = Word::new(name),
        Fix::Name(name) => query.name = Word::new(name),
        Fix::NoNoise => no_noise(query),
        Fix::Epsilon(epsilon) | Fix::Noise(epsilon, _) => query.settings.epsilon = Some(*epsilon),
        Fix::AnyEpsilon => query.settings.epsilon = None,
        Fix::Laplace => {
            (query.cumulating, query.settings.mechanism) = (None, Some(Mechanism::Laplace));
        }
        Fix::Tumbling => query.cumulating = None,
        Fix::Events(max) => query.settings.events = Some(*max),
        Fix::Accuracy(error, within) => {
            (query.settings.accuracy.error, query.settings.accuracy.within) = (*error, *within);
        }
        Fix::NoAlpha => query.settings.alpha = None,
        Fix::NoMasks => query.settings.masks = None,
        Fix::NoGroups => query.group_by.clear(),
        Fix::NoFilter => query.filter = None,
        Fix::PlainIntegrity => query.settings.integrity = None,
        Fix::VerifiedIntegrity => query.settings.integrity = Some(IntegrityChoice::Verified),
        Fix::FixedMembership => query.settings.membership = Some(MembershipChoice::Fixed),
    }
}

/// Sets the window. Cumulating windows get a whole number of steps, and what the query says of a
/// stream's events and values in a window grows with it, up to what the schema has room for.
fn widen(query: &mut Create, size: Span, schema: Option<&Schema>) {
    let before = u128::from(std::mem::replace(&mut query.window, size).0.max(1));
    let most = schema.map_or(u64::MAX, |schema| schema.capacity.events);
    let grown = |own: u64| u64::try_from(u128::from(own) * u128::from(size.0) / before);
    let grown = |own: u64| grown(own).unwrap_or(u64::MAX).min(most.max(own)).max(1);
    query.settings.events = query.settings.events.map(grown);
    query.settings.accuracy.values = query.settings.accuracy.values.map(grown);
    let whole = |all: Span| Span(all.0.div_ceil(size.0.max(1)).saturating_mul(size.0));
    query.cumulating = query.cumulating.map(whole);
}

fn no_noise(query: &mut Create) {
    query.cumulating = None;
    let settings = &mut query.settings;
    (settings.epsilon, settings.delta) = (None, None);
    (settings.mechanism, settings.events) = (None, None);
}

/// Replaces the call of an item, and its alias if that was the default.
fn replace(item: &mut Item, name: &'static str, call: Call) {
    if item.alias == default_alias(item.name, &item.call) {
        item.alias = default_alias(name, &call);
    }
    (item.name, item.call) = (name, call);
}

/// Whether the item uses the attribute.
pub(super) fn names(item: &Item, attribute: u16, schema: &Schema) -> bool {
    let is = |word: &Word| schema.position(&word.text) == Some(attribute);
    match &item.call {
        Call::Events => false,
        Call::Of(_, x)
        | Call::Histogram(x, _)
        | Call::Percentile(x, ..)
        | Call::TopK(x, _)
        | Call::Frequency(x, _) => is(x),
        Call::Pair(_, y, x) => is(y) || is(x),
        Call::By(_, x, by, _) => is(x) || is(by),
    }
}

/// The item in the buckets that a policy allows, or `None` if that is impossible.
fn generalised(mut item: Item, to: &Generalisation, schema: &Schema) -> Option<Item> {
    let attribute = schema.attributes.get(usize::from(to.attribute))?;
    let values = Values::of(&attribute.kind)?;
    let number = |scaled| Decimal::from_scaled(scaled, values.scale);
    let of_it = |word: &Word| schema.position(&word.text) == Some(to.attribute);
    match (&item.call, &to.to) {
        (Call::By(function, x, by, _), CoarseBuckets::Width(width)) if of_it(by) && !of_it(x) => {
            let call = Call::By(*function, x.clone(), by.clone(), Some(number(*width)));
            let name = item.name;
            replace(&mut item, name, call);
        }
        (Call::By(..) | Call::Pair(..), _) => return None,
        _ => {
            let request = match &to.to {
                CoarseBuckets::Edges(edges) => {
                    BinRequest::Edges(edges.iter().copied().map(number).collect())
                }
                CoarseBuckets::Width(width) => {
                    let (lo, bins) =
                        attribute.aggregations.iter().find_map(|offered| span(offered, *width))?;
                    BinRequest::Uniform { lo: number(lo), width: number(*width), bins }
                }
            };
            replace(&mut item, "HISTOGRAM", Call::Histogram(Word::new(&attribute.name), request));
        }
    }
    Some(item)
}

/// The first edge of a histogram and the number of bins of this width that cover it.
fn span(offered: &Aggregation, wide: i64) -> Option<(i64, u16)> {
    let Aggregation::Histogram(Edges::Uniform { lo, width, bins }) = offered else { return None };
    let cells = u16::try_from(wide.checked_div(*width)?).ok().filter(|cells| *cells > 0)?;
    Some((*lo, bins.div_ceil(cells)))
}
