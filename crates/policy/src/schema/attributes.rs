//! Reads stream attributes and their aggregations from a document.

use super::read::items;
use super::{Aggregation, Attribute, AttributeKind, Edges, fold_name};
use crate::document::{ContentError, DocumentError, Fields, Node};
use crate::layout::MAX_WORDS;

pub(crate) const KEYS: &[&str] =
    &["name", "type", "scale", "min", "max", "unit", "optional", "maxBytes", "aggregations"];
pub(crate) const TYPES: &[&str] = &["integer", "decimal", "boolean", "string", "optional"];
pub(crate) const WORDS: &[&str] =
    &["count", "sum", "mean", "avg", "var", "variance", "stddev", "any", "all"];
pub(crate) const MAPS: &[&str] = &["histogram", "regression", "by", "threshold", "sketch"];
pub(crate) const STATISTICS: &[&str] =
    &["count", "sum", "mean", "avg", "squares", "var", "variance"];

/// Longest text value if the schema does not set a limit.
const DEFAULT_MAX_BYTES: u16 = 256;

/// Reads the list of stream attributes.
pub(super) fn read(node: &Node) -> Result<Vec<Attribute>, DocumentError> {
    let items = items(node)?;
    // Aggregations may name later attributes, so all types are read first.
    let mut attributes = items.iter().map(header).collect::<Result<Vec<_>, DocumentError>>()?;
    for (position, item) in items.iter().enumerate() {
        let fields = Fields::of(item, KEYS)?;
        if let (Some(list), Some(own)) = (fields.get("aggregations"), attributes.get(position)) {
            let read = Reader { attributes: &attributes, own, position }.all(list)?;
            if let Some(own) = attributes.get_mut(position) {
                own.aggregations = read;
            }
        }
    }
    Ok(attributes)
}

/// The kinds of types that a schema may name.
#[derive(Clone, Copy, PartialEq)]
enum Type {
    Integer,
    Decimal,
    Boolean,
    Text,
    Optional,
}

/// An attribute without its aggregations.
fn header(item: &Node) -> Result<Attribute, DocumentError> {
    let fields = Fields::of(item, KEYS)?;
    let named = fields.required("type")?;
    let all = [Type::Integer, Type::Decimal, Type::Boolean, Type::Text, Type::Optional];
    let mut kind = None;
    let mut optional = fields.read_or("optional", false, Node::boolean)?;
    for word in named.one_or_list() {
        match word.word(TYPES, &all)? {
            Type::Optional => optional = true,
            other if kind.is_none() => kind = Some(other),
            _ => {
                return Err(
                    word.expected("one type, plus `optional` if an event may lack the attribute")
                );
            }
        }
    }
    let kind = match kind {
        Some(Type::Integer) => number(&fields, false)?,
        Some(Type::Decimal) => number(&fields, true)?,
        Some(Type::Boolean) => other(&fields, AttributeKind::Boolean, "type `boolean`; remove it")?,
        Some(Type::Text) => text(&fields)?,
        _ => return Err(named.expected("`integer`, `decimal`, `boolean` or `string`")),
    };
    Ok(Attribute {
        name: fields.required("name")?.name()?.to_owned(),
        kind,
        unit: fields.read_or("unit", "", Node::text)?.to_owned(),
        optional,
        aggregations: Vec::new(),
    })
}

fn number(fields: &Fields<'_>, decimal: bool) -> Result<AttributeKind, DocumentError> {
    fields.refuse("maxBytes", "a number; remove it")?;
    let (scale, min, max) = if decimal {
        let scale = fields.required("scale")?.integer(0u8, 18)?;
        let bound = |key| fields.required(key)?.decimal(scale);
        (scale, bound("min")?, bound("max")?)
    } else {
        fields.refuse("scale", "type `integer`; remove it or use type `decimal`")?;
        let bound =
            |key, default: i32| fields.read_or(key, default.into(), |node: &Node| node.decimal(0));
        (0, bound("min", i32::MIN)?, bound("max", i32::MAX)?)
    };
    if min > max {
        let node = fields.get("min").unwrap_or(fields.node());
        return Err(node.error(ContentError::MinAboveMax));
    }
    Ok(AttributeKind::Number { scale, min, max })
}

fn text(fields: &Fields<'_>) -> Result<AttributeKind, DocumentError> {
    let max_bytes = fields.read_or("maxBytes", DEFAULT_MAX_BYTES, |node| {
        node.integer(1i64, u16::MAX.into()).map(|n| u16::try_from(n).unwrap_or(u16::MAX))
    })?;
    no_bounds(fields, "type `string`; remove it")?;
    Ok(AttributeKind::Text { max_bytes })
}

fn other(
    fields: &Fields<'_>,
    kind: AttributeKind,
    with: &'static str,
) -> Result<AttributeKind, DocumentError> {
    fields.refuse("maxBytes", with)?;
    no_bounds(fields, with)?;
    Ok(kind)
}

fn no_bounds(fields: &Fields<'_>, with: &'static str) -> Result<(), DocumentError> {
    ["scale", "min", "max"].into_iter().try_for_each(|key| fields.refuse(key, with))
}

/// Reads the aggregations of one attribute.
struct Reader<'a> {
    attributes: &'a [Attribute],
    own: &'a Attribute,
    position: usize,
}

impl Reader<'_> {
    fn all(&self, list: &Node) -> Result<Vec<Aggregation>, DocumentError> {
        let mut all = Vec::new();
        for item in items(list)? {
            let (name, aggregation) = self.one(item)?;
            if all.contains(&aggregation) {
                return Err(item.error(ContentError::DuplicateName { name: name.to_owned() }));
            }
            all.push(aggregation);
        }
        Ok(all)
    }

    fn one(&self, item: &Node) -> Result<(&'static str, Aggregation), DocumentError> {
        let Ok(entries) = item.map() else { return self.word(item) };
        let [(key, value)] = entries else {
            return Err(item.expected("one aggregation per item, such as `- histogram: {…}`"));
        };
        let Some(name) = MAPS.iter().copied().find(|name| name == key) else {
            return Err(value.error(ContentError::UnknownKey { key: key.clone(), known: MAPS }));
        };
        let read = match name {
            "histogram" => self.histogram(value)?,
            "regression" => self.regression(value)?,
            "by" => self.by(value)?,
            "threshold" => {
                Aggregation::Threshold { at: value.decimal(self.own_scale(value, name)?)? }
            }
            _ => sketch(value)?,
        };
        Ok((name, read))
    }

    fn word(&self, item: &Node) -> Result<(&'static str, Aggregation), DocumentError> {
        use Aggregation::{All, Any, Count, Mean, Sum, Variance};
        let meanings = [Count, Sum, Mean, Mean, Variance, Variance, Variance, Any, All];
        let indices: Vec<usize> = (0..WORDS.len()).collect();
        let index = item.word(WORDS, &indices)?;
        let (Some(name), Some(read)) = (WORDS.get(index), meanings.get(index)) else {
            return Err(item.expected("an aggregation"));
        };
        match (read, &self.own.kind) {
            (Count, _) | (Any | All, AttributeKind::Boolean) => {}
            (Sum | Mean | Variance, AttributeKind::Number { .. }) => {}
            _ => return Err(self.wrong_type(item, name)),
        }
        Ok((name, read.clone()))
    }

    fn histogram(&self, node: &Node) -> Result<Aggregation, DocumentError> {
        let fields = Fields::of(node, &["lo", "width", "bins", "edges"])?;
        let scale = self.own_scale(node, "histogram")?;
        Ok(Aggregation::Histogram(edges(&fields, scale)?))
    }

    fn regression(&self, node: &Node) -> Result<Aggregation, DocumentError> {
        self.own_scale(node, "regression")?;
        let fields = Fields::of(node, &["x", "r2"])?;
        let (x, _) = self.other(fields.required("x")?)?;
        Ok(Aggregation::Regression { x, r_squared: fields.read_or("r2", false, Node::boolean)? })
    }

    fn by(&self, node: &Node) -> Result<Aggregation, DocumentError> {
        const KEYS: &[&str] = &["attribute", "lo", "width", "bins", "edges", "statistics"];
        let fields = Fields::of(node, KEYS)?;
        let (attribute, scale) = self.other(fields.required("attribute")?)?;
        let order = fields.read_or("statistics", 1, statistics)?;
        if order > 0 {
            self.own_scale(node, "by")?;
        }
        Ok(Aggregation::By { attribute, edges: edges(&fields, scale)?, order })
    }

    /// The position and scale of another attribute, which must be a number.
    fn other(&self, node: &Node) -> Result<(u16, u8), DocumentError> {
        let name = node.name()?;
        let unknown = || node.error(ContentError::UnknownAttribute { name: name.to_owned() });
        let position = self
            .attributes
            .iter()
            .position(|other| fold_name(&other.name) == fold_name(name))
            .ok_or_else(unknown)?;
        if position == self.position {
            return Err(node.expected("a different attribute"));
        }
        match self.attributes.get(position).map(|other| &other.kind) {
            Some(AttributeKind::Number { scale, .. }) => {
                Ok((u16::try_from(position).map_err(|_| unknown())?, *scale))
            }
            _ => Err(node.expected("a numeric attribute")),
        }
    }

    /// The scale of this attribute, which must be a number.
    fn own_scale(&self, node: &Node, aggregation: &'static str) -> Result<u8, DocumentError> {
        match self.own.kind {
            AttributeKind::Number { scale, .. } => Ok(scale),
            _ => Err(self.wrong_type(node, aggregation)),
        }
    }

    fn wrong_type(&self, node: &Node, aggregation: &'static str) -> DocumentError {
        let kind = match self.own.kind {
            AttributeKind::Number { .. } => "integer or decimal",
            AttributeKind::Boolean => "boolean",
            AttributeKind::Text { .. } => "string",
        };
        node.error(ContentError::WrongType { kind, aggregation })
    }
}

/// The highest moment that a list of statistics needs.
fn statistics(node: &Node) -> Result<u8, DocumentError> {
    let orders = [0, 1, 1, 1, 2, 2, 2];
    let read = node.one_or_list().iter().map(|item| item.word(STATISTICS, &orders));
    read.collect::<Result<Vec<u8>, _>>()?
        .into_iter()
        .max()
        .ok_or_else(|| node.error(ContentError::EmptyList))
}

fn sketch(node: &Node) -> Result<Aggregation, DocumentError> {
    let fields = Fields::of(node, &["depth", "width"])?;
    let depth = fields.required("depth")?.integer(1u8, 32)?;
    let max = i64::try_from(MAX_WORDS).unwrap_or(i64::MAX);
    let width = fields.required("width")?.integer(2i64, max)?;
    Ok(Aggregation::Sketch { depth, width: u16::try_from(width).unwrap_or(u16::MAX) })
}

/// Edges in units of `10^-scale`: `lo`, `width` and `bins`, or `edges`.
fn edges(fields: &Fields<'_>, scale: u8) -> Result<Edges, DocumentError> {
    if let Some(list) = fields.get("edges") {
        ["lo", "width", "bins"]
            .into_iter()
            .try_for_each(|key| fields.refuse(key, "`edges`; remove one of them"))?;
        return Ok(Edges::Explicit(ascending(list, scale)?));
    }
    let lo = fields.required("lo")?.decimal(scale)?;
    let wide = fields.required("width")?;
    let width = wide.decimal(scale)?;
    if width <= 0 {
        return Err(wide.error(ContentError::OutOfRange { range: "above 0".to_owned() }));
    }
    let counted = fields.required("bins")?;
    let max = i64::try_from(MAX_WORDS).unwrap_or(i64::MAX);
    let bins = counted.integer(1i64, max)?;
    match width.checked_mul(bins).and_then(|reach| lo.checked_add(reach)) {
        Some(_) => Ok(Edges::Uniform { lo, width, bins: u16::try_from(bins).unwrap_or(u16::MAX) }),
        None => Err(wide.error(crate::decimal::DecimalError::TooLarge { scale }.into())),
    }
}

/// Strictly ascending edges.
pub(super) fn ascending(list: &Node, scale: u8) -> Result<Vec<i64>, DocumentError> {
    let items = list.list()?;
    if items.len() > MAX_WORDS {
        return Err(list.error(ContentError::TooMany { max: MAX_WORDS }));
    }
    let mut edges: Vec<i64> = Vec::with_capacity(items.len());
    for item in items {
        let edge = item.decimal(scale)?;
        if edges.last().is_some_and(|last| *last >= edge) {
            return Err(item.error(ContentError::EdgesNotAscending));
        }
        edges.push(edge);
    }
    if edges.is_empty() { Err(list.error(ContentError::EmptyList)) } else { Ok(edges) }
}
