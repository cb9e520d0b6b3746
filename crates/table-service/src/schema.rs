//! A table's schema: the columns of its files, their bounds, and the pairs that queries may
//! combine.

use super::wire::MAX_OBJECT;
use alpheus_discover::form::Form;
use alpheus_input::source::{SourceError, Time, TimeReader, parser_message};
use alpheus_policy::decimal::parse_exact;
use alpheus_verifiable_table::error::PlanError;
use alpheus_verifiable_table::label::Order;
use alpheus_verifiable_table::layout::{ColumnDeclaration, Layout, LayoutError};
use alpheus_verifiable_table::parameters::Set;
use serde::Deserialize;
use serde::de::Error as _;

/// Names that answers use themselves, so that groups and aliases cannot have them.
pub const RESERVED: [&str; 4] = ["query", "window_start", "day", "verified"];

/// A schema as in its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TableSchema {
    /// The table's name.
    pub name: String,
    /// The parameter set.
    #[serde(default = "usual_set", deserialize_with = "set")]
    pub parameters: Set,
    /// K: one more than the degree of weights that are verified in constant time.
    #[serde(default = "usual_order")]
    pub order: Order,
    /// How the files are written; by default UTF-8, commas and a header on the first line.
    pub file: Option<Form>,
    /// The time of a row.
    pub time: Time,
    /// Columns to group and filter rows by. They stay with the owner.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Numeric columns.
    pub columns: Vec<ColumnFile>,
    /// Pairs of columns for covariances and regressions.
    #[serde(default)]
    pub pairs: Vec<(String, String)>,
    /// Set if a line holds many readings of the only column.
    pub wide: Option<WideFile>,
}

/// A numeric column.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ColumnFile {
    /// Its name, here and in the file.
    pub name: String,
    /// Decimal places.
    #[serde(default)]
    pub scale: u8,
    /// The least value, in natural units.
    #[serde(deserialize_with = "number")]
    pub min: String,
    /// The greatest value.
    #[serde(deserialize_with = "number")]
    pub max: String,
    /// Whether cells may be empty.
    #[serde(default)]
    pub optional: bool,
    /// Whether queries may ask for variances.
    #[serde(default)]
    pub squares: bool,
}

/// Columns of a file that hold one column at successive times.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WideFile {
    /// The first one's header.
    pub from: String,
    /// The last one's header.
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
    // C80 exists to compare with the paper's figures.
    let set = Set::from_name(&name).filter(|set| *set != Set::C80);
    let known = "the parameter set must be one of L128, S128, X128, W128 (C80, with 89 bits, is not for data)";
    set.ok_or_else(|| D::Error::custom(known))
}

/// A number as its text, to avoid floats.
fn number<'de, D: serde::Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    String::deserialize(input)
}

/// Why a schema is rejected.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// Not YAML of this format.
    #[error("{0}")]
    Syntax(String),
    /// The time cannot be read as it is described.
    #[error(transparent)]
    Time(#[from] SourceError),
    /// A bound is not a number, or has too many decimal places.
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
    /// A repeated name.
    #[error("the name `{0}` is used twice; names of columns and groups must differ, ignoring case")]
    Twice(String),
    /// A group with a reserved name.
    #[error("a group cannot be called `{0}`: answers use this name; rename the column in the file")]
    Reserved(String),
    /// A pair names an unknown column.
    #[error("a pair names `{0}`, which is not one of the columns")]
    Unknown(String),
    /// Wide files have one column.
    #[error("the schema of a wide file has one column and no pairs; this one has {0} columns")]
    Wide(usize),
    /// All readings of a line would have the same time.
    #[error(
        "the step of a wide file is the number of seconds from one column to the next: at least 1"
    )]
    Step,
    /// A sum of even one block would be refused.
    #[error(transparent)]
    Never(#[from] PlanError),
    /// A block would be too large.
    #[error(
        "a block of this table would have {bytes} bytes, and the limit is {limit}; use fewer columns and pairs, or a smaller parameter set"
    )]
    Large {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The columns have no layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// Rows of an older schema do not fit a newer one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WidenError {
    /// Groups are in the index, by position.
    #[error("the groups must be those of the table, in their order")]
    Groups,
    /// A column is missing or in another place.
    #[error(
        "column `{0}` of the table must stay in its place; new columns come after the old ones"
    )]
    Column(String),
    /// Items would have another unit.
    #[error("column `{0}`: the scale must stay as it is")]
    Scale(String),
    /// Rows may be out of bounds.
    #[error("column `{0}`: the bounds must include those of the table")]
    Bounds(String),
    /// Cells may be empty.
    #[error("column `{0}` is optional in the table and must stay so")]
    Required(String),
    /// Rows have no cell for it.
    #[error(
        "column `{0}` is new and must be `optional: true`: the rows of the table have no value for it"
    )]
    Added(String),
}

impl TableSchema {
    /// Reads a schema.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let schema: Self = serde_saphyr::from_str(text)
            .map_err(|error| SchemaError::Syntax(parser_message(&error)))?;
        TimeReader::new(&schema.time)?;
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

    /// The index of a column. Its name matches in any case.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<u16> {
        let at = self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))?;
        u16::try_from(at).ok()
    }

    /// The index of a group. Its name matches in any case.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|group| group.eq_ignore_ascii_case(name))
    }

    /// Decimal places of a column.
    #[must_use]
    pub fn scale(&self, column: u16) -> u8 {
        self.columns.get(usize::from(column)).map_or(0, |column| column.scale)
    }

    /// A column's name in lower case, as in results.
    #[must_use]
    pub fn name_of(&self, column: u16) -> String {
        let column = self.columns.get(usize::from(column));
        column.map_or_else(String::new, |column| column.name.to_lowercase())
    }

    /// Checks that every row of a table with the schema `old` is one of this schema, with empty cells
    /// in columns that are new.
    ///
    /// # Errors
    /// [`WidenError`].
    pub fn check_widens(&self, old: &Self) -> Result<(), WidenError> {
        let names = |groups: &[String]| groups.iter().map(|g| g.to_lowercase()).collect::<Vec<_>>();
        if names(&self.groups) != names(&old.groups) {
            return Err(WidenError::Groups);
        }
        for (at, column) in old.columns.iter().enumerate() {
            let name = || column.name.clone();
            let new = self.columns.get(at).ok_or_else(|| WidenError::Column(name()))?;
            if !new.name.eq_ignore_ascii_case(&column.name) {
                return Err(WidenError::Column(name()));
            }
            if new.scale != column.scale {
                return Err(WidenError::Scale(name()));
            }
            let bound = |text: &str| parse_exact(text, column.scale).ok();
            let holds =
                bound(&new.min) <= bound(&column.min) && bound(&new.max) >= bound(&column.max);
            if !holds {
                return Err(WidenError::Bounds(name()));
            }
            if column.optional && !new.optional {
                return Err(WidenError::Required(name()));
            }
        }
        let added = self.columns.get(old.columns.len()..).unwrap_or_default();
        match added.iter().find(|column| !column.optional) {
            Some(column) => Err(WidenError::Added(column.name.clone())),
            None => Ok(()),
        }
    }

    /// The layout in which the columns are stored.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn layout(&self) -> Result<Layout, SchemaError> {
        let declared = self.columns.iter().map(declare).collect::<Result<Vec<_>, _>>()?;
        let index =
            |name: &String| self.column(name).ok_or_else(|| SchemaError::Unknown(name.clone()));
        let pairs: Result<Vec<_>, SchemaError> =
            self.pairs.iter().map(|(a, b)| Ok((index(a)?, index(b)?))).collect();
        let layout = Layout::new(declared, &pairs?)?;
        layout.check_set(self.parameters)?;
        let bytes = layout.block_length(self.parameters);
        if bytes > MAX_OBJECT {
            return Err(SchemaError::Large { bytes, limit: MAX_OBJECT });
        }
        Ok(layout)
    }
}

fn declare(column: &ColumnFile) -> Result<ColumnDeclaration, SchemaError> {
    let ColumnFile { name, scale, optional, squares, .. } = column;
    if *scale > 9 {
        return Err(SchemaError::Scale(name.clone()));
    }
    let bound = |bound, text: &str| {
        let wrong = || SchemaError::Bound { column: name.clone(), bound, scale: *scale };
        parse_exact(text, *scale).map_err(|_| wrong())
    };
    let (min, max) = (bound("min", &column.min)?, bound("max", &column.max)?);
    Ok(ColumnDeclaration { min, max, optional: *optional, squares: *squares })
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
        assert_eq!((layout.declarations()[0].max, layout.declarations()[1].min), (10_000_500, -5));
    }

    /// Pairs, squares, bounds and columns can be added; what rows rest on cannot be taken away.
    #[test]
    fn a_schema_is_widened_and_never_narrowed() {
        let old = TableSchema::parse(GOOD).unwrap();
        let widened = |from: &str, to: &str| {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD, "{from}");
            TableSchema::parse(&text).unwrap().check_widens(&old)
        };
        let added = "pairs:";
        for (from, to) in [
            ("max: 5", "max: 50, squares: true"),
            ("min: 0", "min: -1, optional: true"),
            ("pairs: [[Cars, trucks]]", ""),
            (added, "  - { name: bikes, min: 0, max: 1, optional: true }\npairs:"),
            ("Cars", "CARS"),
        ] {
            assert_eq!(widened(from, to), Ok(()), "{to}");
        }
        let column = |name: &str| name.to_owned();
        for (from, to, expected) in [
            ("[street]", "[city]", WidenError::Groups),
            ("[street]", "[street, city]", WidenError::Groups),
            ("Cars", "autos", WidenError::Column(column("Cars"))),
            ("scale: 3", "scale: 4", WidenError::Scale(column("Cars"))),
            ("min: 0", "min: 1", WidenError::Bounds(column("Cars"))),
            ("max: 5", "max: 4", WidenError::Bounds(column("trucks"))),
            (", optional: true", "", WidenError::Required(column("trucks"))),
            (
                added,
                "  - { name: bikes, min: 0, max: 1 }\npairs:",
                WidenError::Added(column("bikes")),
            ),
        ] {
            assert_eq!(widened(from, to), Err(expected), "{to}");
        }
        let mut fewer = old.clone();
        fewer.columns.pop();
        assert_eq!(fewer.check_widens(&old), Err(WidenError::Column(column("trucks"))));
    }

    /// Reported when the table is created, not when its first block is full.
    #[test]
    fn schemas_with_too_large_blocks_are_refused() {
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
    fn each_mistake_has_its_own_error() {
        for (from, to, expected) in [
            ("10000.5", "10000.5555", "`max` is not a number with at most 3"),
            ("[[Cars, trucks]]", "[[Cars, bikes]]", "names `bikes`"),
            ("[street]", "[CARS]", "used twice"),
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
            assert!(error.to_string().contains(expected), "{to}: {error}");
        }
    }
}
