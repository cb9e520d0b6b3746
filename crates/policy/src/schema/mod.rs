//! The resolved schema: what events contain and which policies owners may choose.

use crate::document::Node;
use crate::ids::SchemaId;
use crate::layout::FieldStatistic;
use alpheus_time::Span;
use serde::{Deserialize, Serialize};

pub(crate) mod attributes;
mod avro;
mod edges;
mod frames;
pub mod layout;
mod option;
pub(crate) mod options;
pub(crate) mod read;
mod registry;

pub use crate::document::DocumentError as SchemaError;
pub use edges::Edges;
pub use frames::Frames;
pub use option::{Budget, CoarseBuckets, Generalisation, OptionKind, PolicyOption, PrivacyUnit};

/// A schema whose names, numbers and bounds have been checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Name of the record, as in `FROM`.
    pub name: String,
    /// Version, for people; keys are bound to [`Schema::id`].
    pub version: u32,
    /// Length of a tick. Windows are multiples of it.
    pub tick: Span,
    /// Declared upper bounds on the traffic, which determine the size of digits.
    pub capacity: Capacity,
    /// Whether all mandatory attributes share one event count.
    pub shared_count: bool,
    /// Public, static attributes of a stream.
    pub metadata: Vec<MetadataAttribute>,
    /// Private attributes of an event.
    pub attributes: Vec<Attribute>,
    /// Policies to choose from.
    pub options: Vec<PolicyOption>,
    /// What a device sends of its events: by default one frame a tick. Left out of the
    /// [id](Schema::id) where each event has a frame of its own.
    #[serde(default = "Frames::unwritten", skip_serializing_if = "Frames::is_events")]
    pub frames: Frames,
}

impl Schema {
    /// Reads a schema in the form of the paper's figure 3 and checks it completely.
    ///
    /// # Errors
    /// If the schema is invalid. The error has line and column, the cause, and the fix.
    pub fn from_yaml(text: &str) -> Result<Schema, SchemaError> {
        read::schema(&Node::from_yaml(text)?)
    }

    /// Reads an Avro record schema with Alpheus properties. The schema and its id are the
    /// same as from equivalent YAML.
    ///
    /// # Errors
    /// If the schema is invalid. The error has the JSON path, the cause, and the fix.
    pub fn from_avsc(text: &str) -> Result<Schema, SchemaError> {
        read::schema(&avro::document(text)?)
    }

    /// The hash that keys, plans and annotations are bound to.
    #[must_use]
    pub fn id(&self) -> SchemaId {
        // A schema holds only integers and strings, so serialisation cannot fail.
        let bytes = postcard::to_allocvec(self).unwrap_or_default();
        SchemaId(crate::ids::labelled_hash("alpheus/schema/v2", &[&bytes]))
    }

    /// Position of the attribute called `name`. As in queries, case is ignored and `-`
    /// equals `_`.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<u16> {
        let wanted = fold_name(name);
        let position = self.attributes.iter().position(|other| fold_name(&other.name) == wanted)?;
        u16::try_from(position).ok()
    }

    /// The name of the attribute at a position; empty if there is none.
    #[must_use]
    pub fn name_of(&self, position: u16) -> &str {
        self.attributes.get(usize::from(position)).map_or("", |found| &found.name)
    }

    /// Its decimal places; none if its values are not numbers.
    #[must_use]
    pub fn scale_of(&self, position: u16) -> u8 {
        match self.attributes.get(usize::from(position)).map(|found| &found.kind) {
            Some(AttributeKind::Number { scale, .. }) => *scale,
            _ => 0,
        }
    }

    /// Whether an event may lack the attribute.
    #[must_use]
    pub fn is_optional(&self, attribute: u16) -> bool {
        self.attributes.get(usize::from(attribute)).is_some_and(|found| found.optional)
    }

    /// The statistic that counts an attribute's values: the shared event count for mandatory
    /// attributes, its own count for others.
    #[must_use]
    pub fn count_of(&self, attribute: u16) -> FieldStatistic {
        if self.shared_count && !self.is_optional(attribute) {
            FieldStatistic::EventCount
        } else {
            FieldStatistic::Count(attribute)
        }
    }
}

/// Upper bounds that packing relies on and the transformer enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    /// Maximum number of streams in a window.
    pub population: u64,
    /// Maximum number of events of one stream in a window.
    pub events: u64,
    /// Events of a stream in a million seconds at most, if the schema states a rate, else 0. It
    /// only says what a query asks for that states no number. So it is not part of the
    /// [id](Schema::id).
    #[serde(skip)]
    pub micro_rate: u64,
}

impl Capacity {
    /// Maximum number of events of one stream in a window of this size: by the schema's rate, if
    /// it states one.
    #[must_use]
    pub fn events_in(&self, window: Span) -> u64 {
        let at_rate = (u128::from(self.micro_rate) * u128::from(window.0)).div_ceil(PER_MICRO);
        match u64::try_from(at_rate) {
            Ok(events @ 1..) => events.min(self.events),
            _ => self.events,
        }
    }
}

/// Microseconds in a million seconds.
const PER_MICRO: u128 = 1_000_000_000_000;

/// A public attribute of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataAttribute {
    /// Its name.
    pub name: String,
    /// Allowed values. If empty, any text is allowed.
    pub symbols: Vec<String>,
    /// Whether a stream may lack it.
    pub optional: bool,
}

/// A private attribute of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// The values that it takes.
    pub kind: AttributeKind,
    /// Its unit, for people.
    pub unit: String,
    /// Whether an event may lack it.
    pub optional: bool,
    /// Statistics that its encoding supports.
    pub aggregations: Vec<Aggregation>,
}

/// The values of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttributeKind {
    /// A fixed-point number: the integer `value × 10^scale` in `min..=max`.
    Number {
        /// Decimal places.
        scale: u8,
        /// Minimum scaled value.
        min: i64,
        /// Maximum scaled value.
        max: i64,
    },
    /// True or false.
    Boolean,
    /// Text of limited length. Only sketches support it.
    Text {
        /// Maximum length in bytes.
        max_bytes: u16,
    },
}

impl AttributeKind {
    /// Whether its values are 0 and 1, for which rows may also say no and yes. The mean is then the
    /// share of yes.
    #[must_use]
    pub fn is_zero_or_one(&self) -> bool {
        matches!(self, AttributeKind::Number { scale: 0, min: 0, max: 1 })
    }
}

/// An encoding that an attribute offers. Attribute numbers are positions in
/// [`Schema::attributes`]; edges are scaled values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Aggregation {
    /// `[1]`.
    Count,
    /// `[x]`.
    Sum,
    /// `[x, 1]`.
    Mean,
    /// `[x, x², 1]`.
    Variance,
    /// One-hot over edges.
    Histogram(Edges),
    /// `[x, y, x², xy, 1]` with this attribute as y, and `y²` for R².
    Regression {
        /// The explaining attribute.
        x: u16,
        /// Whether `y²` is encoded.
        r_squared: bool,
    },
    /// Moments of this attribute for each bucket of another.
    By {
        /// The attribute with the buckets.
        attribute: u16,
        /// Its buckets.
        edges: Edges,
        /// 0: count only; 1: sum and count; 2: also squares.
        order: u8,
    },
    /// `[x if x ≥ at, x if x < at]` and a count of each.
    Threshold {
        /// The smallest value that counts as above.
        at: i64,
    },
    /// Whether any value was true: a random word if it was, else zero.
    Any,
    /// Whether all values were true.
    All,
    /// A count-min sketch.
    Sketch {
        /// Rows.
        depth: u8,
        /// Cells in a row.
        width: u16,
    },
}

/// A name in the form used for comparison. Queries, result columns and Avro do not all
/// distinguish case, or `-` and `_`.
pub(crate) fn fold_name(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}
