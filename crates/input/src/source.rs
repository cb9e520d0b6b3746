//! The source file: how the columns of a recorded file become streams of events.

use super::metadata_form;
pub use super::metadata_form::Metadata;
use super::refusals::RowError;
use super::time_form::TimeForm;
pub use alpheus_discover::clock::Unit;
use alpheus_discover::clock::{Clock, Format, FormatError, Region};
use alpheus_discover::form::Form;
use alpheus_policy::document::{ContentError, DocumentError, Node};
use alpheus_policy::schema::{MetadataAttribute, Schema};
use alpheus_time::Timestamp;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// A source file as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Source {
    /// Name of the schema that it feeds.
    pub schema: String,
    /// How the file is written; by default UTF-8, commas and a header on the first line.
    pub file: Option<Form>,
    /// The time of a row.
    pub time: Time,
    /// Column that identifies the stream; absent if each wide column is a stream.
    pub stream: Option<String>,
    /// The key of the only stream, if the whole file is one.
    pub single: Option<String>,
    /// Column that names the owner; by default each stream is its own owner.
    pub owner: Option<String>,
    /// Attribute of the schema → column of the file.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
    /// Attribute of the schema → texts that stand for a missing value in its column.
    #[serde(default)]
    pub missing: BTreeMap<String, Vec<String>>,
    /// Metadata attribute → where its value comes from.
    #[serde(default, deserialize_with = "metadata_form::all_metadata")]
    pub metadata: BTreeMap<String, Metadata>,
    /// Present where one row holds many readings.
    pub wide: Option<Wide>,
    /// Shifts every stream to a common start.
    pub align: Option<Align>,
    /// The common start, in seconds since the Unix epoch.
    pub base: Option<u64>,
}

/// How a row's time is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Time {
    /// The column.
    pub column: Option<String>,
    /// In place of one column: several, whose texts are joined with spaces.
    #[serde(default)]
    pub columns: Vec<String>,
    /// The date of all rows, such as 2024-03-01, if the format reads only times of day; of day 0, if
    /// the unit is days.
    pub date: Option<String>,
    /// The format of the joined text, as in strftime; of several, the first that fits.
    #[serde(default, deserialize_with = "one_or_more")]
    pub format: Vec<String>,
    /// The zone of times without one, such as `UTC`, `+01:00` or `Europe/Berlin`; by default UTC.
    pub zone: Option<String>,
    /// Unit of its numbers; by default seconds.
    pub unit: Option<Unit>,
    /// Text before the number, as the `w` of `w44`.
    #[serde(default)]
    pub prefix: String,
    /// Numbers that count steps rather than units of time.
    pub steps: Option<Steps>,
}

/// Time that is counted in steps: `origin + (number − first) · length`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Steps {
    /// The number at `origin`.
    pub first: u64,
    /// Seconds since the Unix epoch.
    pub origin: u64,
    /// Seconds from one number to the next.
    pub length: u64,
}

impl Time {
    /// The columns, in the order of the format.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.column.iter().chain(&self.columns).map(String::as_str)
    }

    /// The first column.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names().next().unwrap_or_default()
    }
}

/// A text or a list of texts.
fn one_or_more<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    struct OneOrMore;
    impl<'de> Visitor<'de> for OneOrMore {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text or a list of texts")
        }

        fn visit_str<E>(self, text: &str) -> Result<Vec<String>, E> {
            Ok(vec![text.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<String>, A::Error> {
            let mut found = Vec::new();
            while let Some(item) = items.next_element()? {
                found.push(item);
            }
            Ok(found)
        }
    }
    input.deserialize_any(OneOrMore)
}

/// A file where one row holds many readings of one attribute.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Wide {
    /// The attribute that every reading is of.
    pub attribute: String,
    /// What each column is.
    pub columns: Columns,
    /// Columns that are no streams, such as one that numbers the rows.
    #[serde(default)]
    pub leave_out: Vec<String>,
}

/// What each column of a wide file is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum Columns {
    /// Each column but the time is a stream, named by its header.
    Streams,
    /// Each column is a moment, `step` seconds after the one before it.
    Moments {
        /// Header of the first.
        from: String,
        /// Header of the last.
        to: String,
        /// Seconds.
        step: u64,
    },
}

/// How streams that began at different times are shifted.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Align {
    /// `t' = t − ⌊t0/tick⌋·tick + base`, t0 the stream's smallest time.
    CommonStart,
}

/// Why a source file cannot be used.
#[derive(Debug, Error)]
pub enum SourceError {
    /// Not YAML of the right shape.
    #[error("{0}")]
    Syntax(String),
    /// It feeds another schema.
    #[error(
        "source file feeds schema {found:?}, but the schema file defines {expected:?}; set `schema: {expected}`"
    )]
    WrongSchema {
        /// What the source file says.
        found: String,
        /// What the schema is called.
        expected: String,
    },
    /// A name that the schema does not have.
    #[error(
        "source file maps {kind} {name:?}, which schema {schema:?} does not define; it defines: {known}"
    )]
    UnknownName {
        /// "attribute" or "metadata attribute".
        kind: &'static str,
        /// The name.
        name: String,
        /// The schema.
        schema: String,
        /// The names it has.
        known: String,
    },
    /// A mandatory attribute has no column.
    #[error(
        "source file maps no column to mandatory attribute {name:?}; add `attributes: {{ {name}: <column> }}`, or mark it `optional: true` in the schema"
    )]
    Unmapped {
        /// The attribute.
        name: String,
    },
    /// Mandatory metadata are not mapped.
    #[error(
        "source file does not map mandatory metadata {name:?}; add `metadata: {{ {name}: {{ column: <column> }} }}` (or `constant:`, or `streamKey`), or mark it `optional: true` in the schema"
    )]
    UnmappedMetadata {
        /// The metadata attribute.
        name: String,
    },
    /// A time has one column or several.
    #[error("`time` needs either `column` or `columns`")]
    TimeColumns,
    /// Several columns of a time need a format, and so do times of day.
    #[error(
        "`time.columns` and `time.date` need `format`: `%Y-%m-%d %H:%M` reads the texts of two columns with a space between them, and `%H:%M` times of day; `date` can also stand beside `unit: days`, as day 0"
    )]
    NoFormat,
    /// A time is a text or a number.
    #[error("`time.format` is for texts, `time.unit` and `time.steps` for numbers; remove one")]
    FormatAndUnit,
    /// A format that cannot be used.
    #[error("`time.format`: {0}")]
    Format(#[from] FormatError),
    /// A zone that is not known.
    #[error(
        "`time.zone` {zone:?} is not known; give an offset such as `+01:00`, `UTC`, or a place such as `Europe/Berlin`"
    )]
    Zone {
        /// The zone.
        zone: String,
    },
    /// A stream from a column, or one stream.
    #[error(
        "`single` makes the whole file one stream; remove `stream`, `owner` and `wide.columns: streams`"
    )]
    SingleAndStream,
    /// `align` and `base` must be set together.
    #[error(
        "`align: common-start` needs `base: <seconds since the Unix epoch>`, and `base` needs `align`"
    )]
    AlignNeedsBase,
    /// Long files need to know the stream of a row.
    #[error(
        "source file names no `stream:` column; name one, or say `single: NAME` if the whole file is one stream"
    )]
    NoStream,
    /// A wide file maps its one attribute under `wide`.
    #[error("a wide file maps its attribute under `wide.attribute`; remove `attributes`")]
    WideWithAttributes,
}

/// The parser's message, with line, column and an excerpt.
#[must_use]
pub fn parser_message(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

impl Source {
    /// Reads a source file and checks it against the schema that it feeds.
    ///
    /// # Errors
    /// A [`SourceError`] that says how to fix it.
    pub fn parse(text: &str, schema: &Schema) -> Result<Source, SourceError> {
        // What is no YAML at all is refused in the words that other files get.
        let says = |error: &serde_saphyr::Error| match Node::from_yaml(text) {
            Err(known @ DocumentError { problem: ContentError::Syntax(_), .. }) => {
                known.to_string()
            }
            _ => parser_message(error),
        };
        let source: Source =
            serde_saphyr::from_str(text).map_err(|error| SourceError::Syntax(says(&error)))?;
        source.check(schema)?;
        Ok(source)
    }

    /// Metadata attributes whose values name streams or owners. Metadata is public.
    pub fn naming_metadata(&self) -> impl Iterator<Item = &str> {
        let names = |own: &Metadata| match own {
            Metadata::Column(column) => {
                [&self.stream, &self.owner].into_iter().flatten().any(|name| name == column)
            }
            Metadata::Constant(_) => false,
            Metadata::StreamKey => true,
        };
        self.metadata.iter().filter(move |(_, own)| names(own)).map(|(name, _)| name.as_str())
    }

    fn check(&self, schema: &Schema) -> Result<(), SourceError> {
        if self.schema != schema.name {
            return Err(SourceError::WrongSchema {
                found: self.schema.clone(),
                expected: schema.name.clone(),
            });
        }
        if self.align.is_some() != self.base.is_some() {
            return Err(SourceError::AlignNeedsBase);
        }
        TimeReader::new(&self.time)?;
        let streams = matches!(&self.wide, Some(Wide { columns: Columns::Streams, .. }));
        if self.single.is_some() && (self.stream.is_some() || self.owner.is_some() || streams) {
            return Err(SourceError::SingleAndStream);
        }
        match &self.wide {
            Some(_) if !self.attributes.is_empty() => return Err(SourceError::WideWithAttributes),
            Some(Wide { columns: Columns::Streams, .. }) => {}
            _ if self.stream.is_none() && self.single.is_none() => {
                return Err(SourceError::NoStream);
            }
            _ => {}
        }
        self.check_names(schema)
    }

    fn check_names(&self, schema: &Schema) -> Result<(), SourceError> {
        let attributes: Vec<&str> = schema.attributes.iter().map(|a| a.name.as_str()).collect();
        let metadata: Vec<&str> = schema.metadata.iter().map(|m| m.name.as_str()).collect();
        let known = |kind, name: &String, names: &[&str]| {
            if names.contains(&name.as_str()) {
                return Ok(());
            }
            Err(SourceError::UnknownName {
                kind,
                name: name.clone(),
                schema: schema.name.clone(),
                known: names.join(", "),
            })
        };
        let mapped = |name: &str| match &self.wide {
            Some(wide) => wide.attribute == name,
            None => self.attributes.contains_key(name),
        };
        let named = self.attributes.keys().chain(self.missing.keys());
        named.into_iter().try_for_each(|name| known("attribute", name, &attributes))?;
        self.wide.iter().try_for_each(|wide| known("attribute", &wide.attribute, &attributes))?;
        self.metadata.keys().try_for_each(|name| known("metadata attribute", name, &metadata))?;
        if let Some(attribute) = schema.attributes.iter().find(|a| !a.optional && !mapped(&a.name))
        {
            return Err(SourceError::Unmapped { name: attribute.name.clone() });
        }
        let unmapped = |m: &&MetadataAttribute| !m.optional && !self.metadata.contains_key(&m.name);
        match schema.metadata.iter().find(unmapped) {
            Some(metadata) => Err(SourceError::UnmappedMetadata { name: metadata.name.clone() }),
            None => Ok(()),
        }
    }
}

/// Reads times.
#[derive(Clone, Debug)]
pub struct TimeReader {
    form: TimeForm,
    prefix: String,
    steps: Option<Steps>,
    /// The first that reads a text counts. There are two if neither a unit nor a format is said.
    clocks: Vec<Clock>,
}

/// ISO 8601, as programs write it.
const ISO: [&str; 13] = [
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%dT%H:%M:%S.%f%z",
    "%Y-%m-%dT%H:%M%z",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M:%S%z",
    "%Y-%m-%d %H:%M:%S.%f%z",
    "%Y-%m-%d %H:%M%z",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
];

impl TimeReader {
    /// Checks how times are described.
    ///
    /// # Errors
    /// A [`SourceError`] that names the setting.
    pub fn new(time: &Time) -> Result<TimeReader, SourceError> {
        if time.column.is_some() != time.columns.is_empty() {
            return Err(SourceError::TimeColumns);
        }
        let zone = match &time.zone {
            None => Region::default(),
            Some(text) => {
                Region::parse(text).ok_or_else(|| SourceError::Zone { zone: text.clone() })?
            }
        };
        let format = |text: &String| match &time.date {
            Some(date) => Format::on_date(text, date),
            None => Format::new(text),
        };
        let formats: Vec<Format> = time.format.iter().map(format).collect::<Result<_, _>>()?;
        let counted = time.unit.is_some() || time.steps.is_some();
        let count = |zone| Clock::Count(time.unit.unwrap_or_default(), zone);
        let days = time.unit == Some(Unit::Days) && time.steps.is_none() && time.columns.len() < 2;
        let (form, clocks) = match (formats.is_empty(), counted) {
            (true, true) if let Some(date) = time.date.as_ref().filter(|_| days) => {
                (TimeForm::Unit, vec![Clock::days_since(date)?])
            }
            (true, _) if time.columns.len() > 1 || time.date.is_some() => {
                return Err(SourceError::NoFormat);
            }
            (true, true) if time.steps.is_some() => (TimeForm::Steps, vec![count(zone)]),
            (true, true) => (TimeForm::Unit, vec![count(zone)]),
            (true, false) => {
                let iso = ISO.iter().map(|text| Format::new(text)).collect::<Result<_, _>>()?;
                (TimeForm::Unstated, vec![count(zone.clone()), Clock::Formats(iso, zone)])
            }
            (false, true) => return Err(SourceError::FormatAndUnit),
            (false, false) => (TimeForm::Format, vec![Clock::Formats(formats, zone)]),
        };
        Ok(TimeReader { form, prefix: time.prefix.clone(), steps: time.steps, clocks })
    }

    /// Reads a text as a time.
    ///
    /// # Errors
    /// The text is not a time of this form, or is out of range.
    pub fn read(&self, text: &str) -> Result<Timestamp, RowError> {
        let own = text.strip_prefix(self.prefix.as_str());
        let text = own.ok_or(RowError::BadTime(TimeForm::Prefix))?;
        let bad = RowError::BadTime(self.form);
        let micros = match self.steps {
            None => {
                let micros = self.clocks.iter().find_map(|clock| clock.micros(text));
                micros.ok_or(bad)?
            }
            Some(steps) => {
                let number: i128 = text.parse::<u64>().map_err(|_| bad)?.into();
                let seconds = (number - i128::from(steps.first)) * i128::from(steps.length);
                let micros = (seconds + i128::from(steps.origin)).checked_mul(1_000_000);
                micros.and_then(|t| i64::try_from(t).ok()).ok_or(RowError::TimeOutOfRange)?
            }
        };
        let micros = u64::try_from(micros).map_err(|_| RowError::TimeOutOfRange)?;
        if micros < Timestamp::LIMIT.0 {
            Ok(Timestamp(micros))
        } else {
            Err(RowError::TimeOutOfRange)
        }
    }
}
