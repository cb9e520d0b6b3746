//! From a document to a schema (Zeph §4.1, figure 3).

use super::{Capacity, MetadataAttribute, Schema, attributes, folded, options};
use crate::document::{DocumentError, Fields, Node, Problem};
use crate::layout::{Layout, LayoutError, MOST_WORDS};
use crate::time::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Keys of a schema.
pub(super) const KEYS: &[&str] = &[
    "name",
    "version",
    "tick",
    "capacity",
    "sizes",
    "sharedCount",
    "metadataAttributes",
    "streamAttributes",
    "streamPolicyOptions",
];

/// Most attributes, options or symbols.
const MOST_ITEMS: usize = 1000;

/// Names of minimum populations.
pub(super) type Sizes = BTreeMap<String, u32>;

/// Reads a schema from a document in the form of the paper's figure 3, and
/// checks everything about it, its layout included.
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
    };
    names_are_distinct(&fields, stream)?;
    let sizes = fields.read_or("sizes", default_sizes(), sizes)?;
    if let Some(node) = fields.get("streamPolicyOptions") {
        schema.options = options::read(node, &schema, &sizes)?;
    }
    fits_a_vector(&schema, stream)?;
    Ok(schema)
}

/// Bounds where a schema declares none: ten thousand streams of an event a
/// second over an hour.
const DEFAULT_CAPACITY: Capacity = Capacity { population: 10_000, events: 3_600 };

/// At most a day: sessions end on the first border of each, and one that held a whole day
/// between two others would open its sum to whoever has the keys of these.
fn tick(node: &Node) -> Result<Span, DocumentError> {
    let tick = node.duration()?;
    if !(1_000..=Span::DAY.0).contains(&tick.0) {
        return Err(node.error(Problem::OutOfRange { least: "1ms".into(), most: "1d".into() }));
    }
    Ok(tick)
}

fn capacity(node: &Node) -> Result<Capacity, DocumentError> {
    let fields = Fields::of(node, &["population", "events", "eventsPerSecond", "window"])?;
    let population = fields.required("population")?.integer(1i64, u32::MAX.into())?.unsigned_abs();
    let events = match fields.get("eventsPerSecond") {
        None => {
            fields.refuse("window", "`events`, which is already of one window")?;
            fields.required("events")?.integer(1i64, 1 << 40)?.unsigned_abs()
        }
        Some(rate) => {
            fields.refuse("events", "`eventsPerSecond`")?;
            events_at(rate, fields.required("window")?.duration()?)?
        }
    };
    Ok(Capacity { population, events })
}

/// ⌈rate × window⌉, the rate read to a millionth.
fn events_at(rate: &Node, window: Span) -> Result<u64, DocumentError> {
    let micro_rate = u128::try_from(rate.decimal(6)?).unwrap_or(0);
    let events = (micro_rate * u128::from(window.0)).div_ceil(1_000_000_000_000);
    match u64::try_from(events) {
        Ok(events @ 1..=0x100_0000_0000) => Ok(events),
        _ => Err(rate.error(Problem::OutOfRange {
            least: "1 event".into(),
            most: "2^40 events a window".into(),
        })),
    }
}

/// The named minimum populations of a schema that defines none.
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
                return Err(word.expected("one type, and `optional` if a stream may lack it"));
            }
        }
    }
    let symbols = match listed {
        Some(true) => symbols(fields.required("symbols")?)?,
        Some(false) => {
            fields.refuse("symbols", "type `string`; make it `enum`")?;
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
            return Err(item.error(Problem::DuplicateName { name: symbol }));
        }
        symbols.push(symbol);
    }
    Ok(symbols)
}

/// A list of at least one and not too many items.
pub(super) fn items(node: &Node) -> Result<&[Node], DocumentError> {
    let items = node.list()?;
    match items.len() {
        0 => Err(node.error(Problem::EmptyList)),
        1..=MOST_ITEMS => Ok(items),
        _ => Err(node.error(Problem::TooMany { most: MOST_ITEMS })),
    }
}

/// Queries name metadata and stream attributes alike, so no name stands twice.
fn names_are_distinct(fields: &Fields<'_>, stream: &Node) -> Result<(), DocumentError> {
    let mut seen = BTreeSet::new();
    let metadata = fields.get("metadataAttributes").map_or(Ok(&[][..]), items)?;
    for item in metadata.iter().chain(items(stream)?) {
        let named = item.map()?.iter().find(|(key, _)| key == "name");
        if let Some((_, name)) = named {
            let text = name.name()?;
            if !seen.insert(folded(text)) {
                return Err(name.error(Problem::DuplicateName { name: text.to_owned() }));
            }
        }
    }
    Ok(())
}

fn fits_a_vector(schema: &Schema, stream: &Node) -> Result<(), DocumentError> {
    match Layout::of(schema) {
        Ok(_) => Ok(()),
        Err(LayoutError::TooManyWords { words }) => {
            Err(stream.error(Problem::TooManyWords { words, most: MOST_WORDS }))
        }
        Err(LayoutError::SumTooLarge { attribute }) => {
            let item = stream.list()?.get(usize::from(attribute)).unwrap_or(stream);
            Err(item.error(Problem::SumTooLarge))
        }
    }
}
