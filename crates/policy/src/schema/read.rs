//! Reads a schema from a document (Zeph §4.1, figure 3).

use super::{Capacity, MetadataAttribute, Schema, attributes, fold_name, frames, options};
use crate::document::{ContentError, DocumentError, Fields, Node};
use crate::layout::{Layout, LayoutError, MAX_WORDS};
use alpheus_time::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Keys of a schema.
pub(crate) const KEYS: &[&str] = &[
    "name",
    "version",
    "tick",
    "frames",
    "anchor",
    "capacity",
    "sizes",
    "sharedCount",
    "metadataAttributes",
    "streamAttributes",
    "streamPolicyOptions",
];

/// Maximum number of attributes, options or symbols.
const MAX_ITEMS: usize = 1000;

/// Names of minimum populations.
pub(super) type Sizes = BTreeMap<String, u32>;

/// Reads a schema in the form of the paper's figure 3 and checks it completely,
/// including its layout.
pub(super) fn schema(root: &Node) -> Result<Schema, DocumentError> {
    let fields = Fields::of(root, KEYS)?;
    let tick = fields.read_or("tick", Span::seconds(10), tick)?;
    let stream = fields.required("streamAttributes")?;
    let mut schema = Schema {
        name: fields.required("name")?.name()?.to_owned(),
        version: fields.read_or("version", 1, |node| node.integer(1, u32::MAX))?,
        tick,
        capacity: fields.read_or("capacity", DEFAULT_CAPACITY, capacity)?,
        shared_count: fields.read_or("sharedCount", true, Node::boolean)?,
        metadata: fields.read_or("metadataAttributes", Vec::new(), metadata)?,
        attributes: attributes::read(stream)?,
        options: Vec::new(),
        frames: frames::read(&fields, tick)?,
    };
    names_are_distinct(&fields, stream)?;
    let sizes = fields.read_or("sizes", default_sizes(), sizes)?;
    if let Some(node) = fields.get("streamPolicyOptions") {
        schema.options = options::read(node, &schema, &sizes)?;
    }
    fits_a_vector(&schema, stream)?;
    Ok(schema)
}

/// Bounds if a schema declares none: ten thousand streams with one event per second,
/// over an hour.
const DEFAULT_CAPACITY: Capacity = Capacity { population: 10_000, events: 3_600, micro_rate: 0 };

/// At most a day. Sessions end on the first boundary of each day. A session that held a
/// whole day between two others would open its sum to anyone with the keys of those two.
fn tick(node: &Node) -> Result<Span, DocumentError> {
    let tick = node.duration()?;
    if !(1_000..=Span::DAY.0).contains(&tick.0) {
        return Err(node.error(ContentError::OutOfRange { range: "between 1ms and 1d".into() }));
    }
    Ok(tick)
}

fn capacity(node: &Node) -> Result<Capacity, DocumentError> {
    let fields = Fields::of(node, &["population", "events", "eventsPerSecond", "window"])?;
    let population = fields.required("population")?.integer(1i64, u32::MAX.into())?.unsigned_abs();
    let (events, micro_rate) = match fields.get("eventsPerSecond") {
        None => {
            fields.refuse(
                "window",
                "`events`, which already counts one window; remove one of them",
            )?;
            (fields.required("events")?.integer(1i64, 1 << 40)?.unsigned_abs(), 0)
        }
        Some(rate) => {
            fields.refuse("events", "`eventsPerSecond`; remove one of them")?;
            let events = events_at(rate, fields.required("window")?.duration()?)?;
            (events, rate.decimal(6)?.unsigned_abs())
        }
    };
    Ok(Capacity { population, events, micro_rate })
}

/// ⌈rate × window⌉, with the rate to a millionth.
fn events_at(rate: &Node, window: Span) -> Result<u64, DocumentError> {
    let micro_rate = u128::try_from(rate.decimal(6)?).unwrap_or(0);
    let events = (micro_rate * u128::from(window.0)).div_ceil(1_000_000_000_000);
    match u64::try_from(events) {
        Ok(events @ 1..=0x100_0000_0000) => Ok(events),
        _ => {
            let range = "between 1 and 2^40 events per window".into();
            Err(rate.error(ContentError::OutOfRange { range }))
        }
    }
}

/// The named minimum populations if a schema defines none.
pub(super) fn default_sizes() -> Sizes {
    [("small", 10), ("medium", 100), ("large", 1000)].map(|(name, n)| (name.to_owned(), n)).into()
}

fn sizes(node: &Node) -> Result<Sizes, DocumentError> {
    let mut sizes = default_sizes();
    for (name, size) in node.map()? {
        sizes.insert(name.clone(), size.integer(1, u32::MAX)?);
    }
    Ok(sizes)
}

fn metadata(node: &Node) -> Result<Vec<MetadataAttribute>, DocumentError> {
    items(node)?.iter().map(metadata_attribute).collect()
}

fn metadata_attribute(node: &Node) -> Result<MetadataAttribute, DocumentError> {
    const TYPES: &[&str] = &["string", "enum", "optional"];
    let fields = Fields::of(node, &["name", "type", "symbols", "optional"])?;
    let name = fields.required("name")?.name()?.to_owned();
    let kind = fields.required("type")?;
    let (mut optional, mut listed) = (fields.read_or("optional", false, Node::boolean)?, None);
    for word in kind.one_or_list() {
        match word.word(TYPES, &[Some(false), Some(true), None])? {
            None => optional = true,
            Some(is_enum) if listed.is_none() => listed = Some(is_enum),
            Some(_) => {
                return Err(
                    word.expected("one type, plus `optional` if a stream may lack the attribute")
                );
            }
        }
    }
    let symbols = match listed {
        Some(true) => symbols(fields.required("symbols")?)?,
        Some(false) => {
            fields.refuse("symbols", "type `string`; remove it or use type `enum`")?;
            Vec::new()
        }
        None => return Err(kind.expected("`string` or `enum`")),
    };
    Ok(MetadataAttribute { name, symbols, optional })
}

fn symbols(node: &Node) -> Result<Vec<String>, DocumentError> {
    let mut symbols = Vec::new();
    for item in items(node)? {
        let symbol = item.text()?.to_owned();
        if symbols.contains(&symbol) {
            return Err(item.error(ContentError::DuplicateName { name: symbol }));
        }
        symbols.push(symbol);
    }
    Ok(symbols)
}

/// The items of a list that is not empty and not too long.
pub(super) fn items(node: &Node) -> Result<&[Node], DocumentError> {
    let items = node.list()?;
    match items.len() {
        0 => Err(node.error(ContentError::EmptyList)),
        1..=MAX_ITEMS => Ok(items),
        _ => Err(node.error(ContentError::TooMany { max: MAX_ITEMS })),
    }
}

/// Queries name metadata and stream attributes in the same way, so all names differ.
fn names_are_distinct(fields: &Fields<'_>, stream: &Node) -> Result<(), DocumentError> {
    let mut seen = BTreeSet::new();
    let metadata = fields.get("metadataAttributes").map_or(Ok(&[][..]), items)?;
    for item in metadata.iter().chain(items(stream)?) {
        let named = item.map()?.iter().find(|(key, _)| key == "name");
        if let Some((_, name)) = named {
            let text = name.name()?;
            if !seen.insert(fold_name(text)) {
                return Err(name.error(ContentError::DuplicateName { name: text.to_owned() }));
            }
        }
    }
    Ok(())
}

fn fits_a_vector(schema: &Schema, stream: &Node) -> Result<(), DocumentError> {
    match Layout::of(schema) {
        Ok(_) => Ok(()),
        Err(LayoutError::TooManyWords { words }) => {
            Err(stream.error(ContentError::TooManyWords { words, max: MAX_WORDS }))
        }
        Err(LayoutError::SumTooLarge { attribute }) => {
            let item = stream.list()?.get(usize::from(attribute)).unwrap_or(stream);
            Err(item.error(ContentError::SumTooLarge))
        }
    }
}
