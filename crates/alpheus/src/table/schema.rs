//! A table's schema: which columns of a file are what, within which bounds, and
//! which pairs can be asked.

use super::wire::LARGEST_BLOCK;
use crate::replay::source::{Time, said};
use alpheus_policy::decimal::parse_exact;
use alpheus_verifiable_table::error::Refusal;
use alpheus_verifiable_table::label::Order;
use alpheus_verifiable_table::layout::{BadLayout, Declared, Layout};
use alpheus_verifiable_table::parameters::Set;
use serde::Deserialize;
use serde::de::Error as _;

/// What answers call their own, so that nothing else can have the name.
pub const RESERVED: [&str; 7] =
    ["query", "window_start", "day", "verified", "server_ms", "owner_ms", "bytes"];

/// A schema as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TableSchema {
    /// What the table is called.
    pub name: String,
    /// The parameter set.
    #[serde(default = "usual_set", deserialize_with = "set")]
    pub parameters: Set,
    /// K: one more than the degree of weights that are checked in constant time.
    #[serde(default = "usual_order")]
    pub order: Order,
    /// When a row happened.
    pub time: Time,
    /// Columns that rows can be grouped and filtered by. They stay with the owner.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Columns of numbers.
    pub columns: Vec<ColumnFile>,
    /// Pairs of columns for covariances and regressions.
    #[serde(default)]
    pub pairs: Vec<(String, String)>,
    /// Present where one line holds many readings of the one column.
    pub wide: Option<WideFile>,
}

/// A column of numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ColumnFile {
    /// What it is called, here and in the file.
    pub name: String,
    /// Decimal places that are kept.
    #[serde(default)]
    pub scale: u8,
    /// The least value, in natural units.
    #[serde(deserialize_with = "number")]
    pub min: String,
    /// The greatest.
    #[serde(deserialize_with = "number")]
    pub max: String,
    /// Whether cells may be empty.
    #[serde(default)]
    pub optional: bool,
    /// Whether variances can be asked.
    #[serde(default)]
    pub squares: bool,
}

/// Columns of a file that are moments of one column.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WideFile {
    /// Header of the first.
    pub from: String,
    /// Header of the last.
    pub to: String,
    /// Seconds from one to the next.
    pub step: u64,
}

fn usual_set() -> Set {
    Set::X128
}

fn usual_order() -> Order {
    Order::ONE
}

fn set<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Set, D::Error> {
    let name = String::deserialize(input)?;
    // C80 is there to compare with the paper's figures.
    let set = Set::named(&name).filter(|set| *set != Set::C80);
    let known =
        "the parameter set is one of L128, S128, X128, W128 (C80, with 89 bits, is not for data)";
    set.ok_or_else(|| D::Error::custom(known))
}

/// A number as it is spelled, so that no float comes between.
fn number<'de, D: serde::Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    String::deserialize(input)
}

/// Why a schema makes no table.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// Not YAML of the right shape.
    #[error("{0}")]
    Syntax(String),
    /// A bound is no number, or too fine.
    #[error("column `{column}`: `{bound}` is not a number with at most {scale} decimal places")]
    Bound {
        /// The column.
        column: String,
        /// `min` or `max`.
        bound: &'static str,
        /// Its scale.
        scale: u8,
    },
    /// Scales are 0 to 9.
    #[error("column `{0}`: a scale is 0 to 9 decimal places")]
    Scale(String),
    /// Two of a name.
    #[error("the name `{0}` stands twice; names of columns and groups differ, in lower case too")]
    Twice(String),
    /// A group of a name that answers have for something else.
    #[error(
        "a group cannot be called `{0}`: answers call something else so; name it otherwise in the file"
    )]
    Reserved(String),
    /// A pair names what is no column.
    #[error("a pair names `{0}`, which is not among the columns")]
    Unknown(String),
    /// Wide files have one column.
    #[error("a wide file has one column and no pairs; it has {0} columns")]
    Wide(usize),
    /// All readings of a line would be of one time.
    #[error(
        "the step of a wide file is the seconds from one of its columns to the next: at least 1"
    )]
    Step,
    /// A sum of one block could not be asked.
    #[error(transparent)]
    Never(#[from] Refusal),
    /// A block could not be sent.
    #[error(
        "a block of this table would have {bytes} bytes, of at most {most}: take fewer columns and pairs, or a smaller parameter set"
    )]
    Large {
        /// What it would have.
        bytes: usize,
        /// What it may have.
        most: usize,
    },
    /// The columns make no layout.
    #[error(transparent)]
    Layout(#[from] BadLayout),
}

impl TableSchema {
    /// Reads a schema.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let schema: Self =
            serde_saphyr::from_str(text).map_err(|error| SchemaError::Syntax(said(&error)))?;
        let names = schema.columns.iter().map(|column| &column.name).chain(&schema.groups);
        let mut known = std::collections::BTreeSet::new();
        for name in names {
            if !known.insert(name.to_lowercase()) {
                return Err(SchemaError::Twice(name.clone()));
            }
        }
        let reserved = |group: &&String| RESERVED.contains(&group.to_lowercase().as_str());
        if let Some(group) = schema.groups.iter().find(reserved) {
            return Err(SchemaError::Reserved(group.clone()));
        }
        if schema.wide.is_some() && schema.columns.len() != 1 {
            return Err(SchemaError::Wide(schema.columns.len()));
        }
        if schema.wide.as_ref().is_some_and(|wide| wide.step == 0) {
            return Err(SchemaError::Step);
        }
        Ok(schema)
    }

    /// The place of a column, by its name in any case.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<u16> {
        let at = self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))?;
        u16::try_from(at).ok()
    }

    /// The place of a group, by its name in any case.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|group| group.eq_ignore_ascii_case(name))
    }

    /// Decimal places of a column.
    #[must_use]
    pub fn scale(&self, column: u16) -> u8 {
        self.columns.get(usize::from(column)).map_or(0, |column| column.scale)
    }

    /// A column's name, in lower case, as results spell it.
    #[must_use]
    pub fn name_of(&self, column: u16) -> String {
        let column = self.columns.get(usize::from(column));
        column.map_or_else(String::new, |column| column.name.to_lowercase())
    }

    /// How the columns are stored.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn layout(&self) -> Result<Layout, SchemaError> {
        let declared = self.columns.iter().map(declare).collect::<Result<Vec<_>, _>>()?;
        let place =
            |name: &String| self.column(name).ok_or_else(|| SchemaError::Unknown(name.clone()));
        let pairs: Result<Vec<_>, SchemaError> =
            self.pairs.iter().map(|(a, b)| Ok((place(a)?, place(b)?))).collect();
        let layout = Layout::new(declared, &pairs?)?;
        layout.bears(self.parameters)?;
        let bytes = layout.block_length(self.parameters);
        if bytes > LARGEST_BLOCK {
            return Err(SchemaError::Large { bytes, most: LARGEST_BLOCK });
        }
        Ok(layout)
    }
}

fn declare(column: &ColumnFile) -> Result<Declared, SchemaError> {
    let ColumnFile { name, scale, optional, squares, .. } = column;
    if *scale > 9 {
        return Err(SchemaError::Scale(name.clone()));
    }
    let bound = |bound, text: &str| {
        let wrong = || SchemaError::Bound { column: name.clone(), bound, scale: *scale };
        parse_exact(text, *scale).map_err(|_| wrong())
    };
    let (min, max) = (bound("min", &column.min)?, bound("max", &column.max)?);
    Ok(Declared { min, max, optional: *optional, squares: *squares })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
name: Counts
time: { column: timestamp }
groups: [street]
columns:
  - { name: Cars, scale: 3, min: 0, max: 10000.5, squares: true }
  - { name: trucks, min: -5, max: 5, optional: true }
pairs: [[Cars, trucks]]
";

    #[test]
    fn a_schema_is_read() {
        let schema = TableSchema::parse(GOOD).unwrap();
        assert_eq!((schema.parameters, schema.order), (Set::X128, Order::ONE));
        assert_eq!((schema.column("cars"), schema.column("bikes")), (Some(0), None));
        let layout = schema.layout().unwrap();
        assert_eq!((layout.declared()[0].max, layout.declared()[1].min), (10_000_500, -5));
    }

    /// Said when the table is made, not when its first block is full.
    #[test]
    fn blocks_that_could_not_be_sent_are_refused() {
        let schema = |columns: usize| {
            let mut text = "name: T\nparameters: W128\ntime: { column: t }\ncolumns:\n".to_owned();
            (0..columns).for_each(|c| {
                text += &format!("  - {{ name: c{c}, min: 0, max: 1, optional: true }}\n")
            });
            TableSchema::parse(&text).unwrap().layout()
        };
        assert!(schema(40).is_ok());
        let refused = schema(50).unwrap_err();
        assert!(matches!(refused, SchemaError::Large { .. }), "{refused}");
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, said) in [
            ("10000.5", "10000.5555", "`max` is not a number with at most 3"),
            ("[[Cars, trucks]]", "[[Cars, bikes]]", "names `bikes`"),
            ("[street]", "[CARS]", "stands twice"),
            ("scale: 3", "scale: 12", "a scale is 0 to 9"),
            ("name: Counts", "name: Counts\nparameters: X129", "one of L128, S128"),
            ("name: Counts", "name: Counts\nparameters: C80", "is not for data"),
            ("name: Counts", "name: Counts\norder: 9", "must be 1 to 8"),
            ("squares: true", "square: true", "unknown field"),
            ("max: 5", "max: -6", "bounds must be in order"),
            ("[street]", "[Verified]", "a group cannot be called `Verified`"),
            ("max: 10000.5", "max: 100000000000.5", "declare narrower bounds"),
            ("name: Counts", "name: Counts\nparameters: L128", "with a larger set"),
        ] {
            let read = TableSchema::parse(&GOOD.replace(from, to));
            let error = read.and_then(|schema| schema.layout().map(drop)).unwrap_err();
            assert!(error.to_string().contains(said), "{to}: {error}");
        }
    }
}
