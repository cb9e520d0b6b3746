//! Changing a refused query into the nearest that might be allowed.

use super::bins::Values;
use super::finding::Mend;
use crate::budget::Mechanism;
use crate::query::{BinRequest, Call, Create, Decimal, Item, Word, default_alias};
use crate::schema::{Aggregation, Coarse, Edges, Generalise, Schema};
use crate::time::Span;

/// The query with the changes made; none where nothing would be left to ask.
pub(super) fn mended(create: &Create, mends: &[Mend], schema: Option<&Schema>) -> Option<Create> {
    let mut query = create.clone();
    let mut items: Vec<Option<Item>> = query.items.drain(..).map(Some).collect();
    for mend in mends {
        match (mend, schema) {
            (Mend::Drop(position), _) => {
                items.get_mut(*position).into_iter().for_each(|item| *item = None)
            }
            (Mend::Call(position, call), _) => {
                let item = items.get_mut(*position)?.as_mut();
                item.into_iter().for_each(|item| replace(item, item.name, call.clone()));
            }
            (Mend::Without(attribute), Some(schema)) => {
                drop_if(&mut items, |item| names(item, *attribute, schema));
            }
            (Mend::Generalise(attribute, to), Some(schema)) => {
                for item in &mut items {
                    let naming = item.take_if(|item| names(item, *attribute, schema));
                    if let Some(naming) = naming {
                        *item = generalised(naming, to, schema);
                    }
                }
            }
            (Mend::Without(_) | Mend::Generalise(..), None) => return None,
            (Mend::Window(size), _) => widen(&mut query, *size),
            (Mend::Population(min, max), _) => query.population = Some((*min, *max)),
            (Mend::Consumer(name), _) => query.release_to = Some(Word::new(name)),
            (Mend::Schema(name), _) => query.from = Word::new(name),
            (Mend::Name(name), _) => query.name = Word::new(name),
            (Mend::NoNoise, _) => no_noise(&mut query),
            (Mend::Epsilon(epsilon) | Mend::Noise(epsilon, _), _) => {
                query.settings.epsilon = Some(*epsilon)
            }
            (Mend::Laplace, _) => {
                (query.cumulating, query.settings.mechanism) = (None, Some(Mechanism::Laplace));
            }
            (Mend::Tumbling, _) => query.cumulating = None,
            (Mend::Events(most), _) => query.settings.events = Some(*most),
            (Mend::NoGroups, _) => query.group_by.clear(),
            (Mend::NoFilter, _) => query.filter = None,
        }
    }
    for item in items.into_iter().flatten() {
        if query.items.iter().all(|other| other.alias != item.alias) {
            query.items.push(item);
        }
    }
    (!query.items.is_empty() && query != *create).then_some(query)
}

/// Another window, and with it a whole number of them where they cumulate.
fn widen(query: &mut Create, size: Span) {
    query.window = size;
    let whole = |all: Span| Span(all.0.div_ceil(size.0.max(1)).saturating_mul(size.0));
    query.cumulating = query.cumulating.map(whole);
}

fn no_noise(query: &mut Create) {
    query.cumulating = None;
    let settings = &mut query.settings;
    (settings.epsilon, settings.delta) = (None, None);
    (settings.mechanism, settings.events) = (None, None);
}

fn drop_if(items: &mut [Option<Item>], wrong: impl Fn(&Item) -> bool) {
    for item in items {
        item.take_if(|item| wrong(item));
    }
}

/// Gives an item another call; an alias that was the default follows it.
fn replace(item: &mut Item, name: &'static str, call: Call) {
    if item.alias == default_alias(item.name, &item.call) {
        item.alias = default_alias(name, &call);
    }
    (item.name, item.call) = (name, call);
}

/// Whether the item asks something of the attribute.
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

/// What the item asks, in the buckets that a policy shows; none where it
/// cannot be asked in buckets.
fn generalised(mut item: Item, to: &Generalise, schema: &Schema) -> Option<Item> {
    let attribute = schema.attributes.get(usize::from(to.attribute))?;
    let values = Values::of(&attribute.kind)?;
    let number = |scaled| Decimal::from_scaled(scaled, values.scale);
    let of_it = |word: &Word| schema.position(&word.text) == Some(to.attribute);
    match (&item.call, &to.to) {
        (Call::By(function, x, by, _), Coarse::Width(width)) if of_it(by) && !of_it(x) => {
            let call = Call::By(*function, x.clone(), by.clone(), Some(number(*width)));
            let name = item.name;
            replace(&mut item, name, call);
        }
        (Call::By(..) | Call::Pair(..), _) => return None,
        _ => {
            let request = match &to.to {
                Coarse::Edges(edges) => {
                    BinRequest::Edges(edges.iter().copied().map(number).collect())
                }
                Coarse::Width(width) => {
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

/// The first edge of a histogram and how many bins of this width cover it.
fn span(offered: &Aggregation, wide: i64) -> Option<(i64, u16)> {
    let Aggregation::Histogram(Edges::Uniform { lo, width, bins }) = offered else { return None };
    let cells = u16::try_from(wide.checked_div(*width)?).ok().filter(|cells| *cells > 0)?;
    Some((*lo, bins.div_ceil(cells)))
}
