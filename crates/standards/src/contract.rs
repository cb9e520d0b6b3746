//! What all standards have in common: tables of columns, what is said about them, and rules.

use crate::access::ReaderList;
use crate::cursor::Clause;
use crate::sensitivity::Label;

/// A contract, as far as it can bear on a schema or a policy.
#[derive(Debug, Default)]
pub struct Contract {
    /// The standard and its version, for people.
    pub standard: String,
    /// Its name, from which a schema without a table takes its own.
    pub name: String,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Lists of those who may read; only those in all of them may.
    pub readers: Vec<ReaderList>,
    /// Who is responsible, for what is internal: a team, a tenant or a domain.
    pub house: Option<Clause<String>>,
    /// Statements about all tables.
    pub labels: Vec<Label>,
    /// Columns that the contract measures the age of events by, as `table.column` or `column`.
    pub clocks: Vec<Clause<String>>,
    /// Columns that the contract calls the event's time.
    pub event_times: Vec<Clause<String>>,
    /// Rules that belong to no table.
    pub rules: Vec<Rule>,
}

/// A table, a model, a record: what becomes a schema.
#[derive(Debug, Default)]
pub struct Table {
    /// Where it stands.
    pub at: String,
    /// Its name, and where that stands, if it is not a key.
    pub name: Clause<String>,
    /// Its columns, those of nested objects included.
    pub columns: Vec<Column>,
    /// Statements about all its columns.
    pub labels: Vec<Label>,
    /// Lists of those who may read it; only those in all of them may.
    pub readers: Vec<ReaderList>,
    /// Its own tags, for rules that name them.
    pub tags: Vec<Clause<String>>,
    /// Rules about its rows.
    pub rules: Vec<Rule>,
    /// Columns that identify a row, where the table lists them.
    pub keys: Vec<Clause<String>>,
}

/// A property of a table.
#[derive(Debug, Default)]
pub struct Column {
    /// Where it stands.
    pub at: String,
    /// Other places that describe it, such as a version's.
    pub also: Vec<String>,
    /// Its name; a part of an object has the object's name before it, with a point.
    pub name: Clause<String>,
    /// Its types, the most telling first.
    pub types: Vec<Clause<String>>,
    /// Limits of its values.
    pub limits: Limits,
    /// Whether each row has a value.
    pub required: Option<Clause<bool>>,
    /// Whether it identifies a row.
    pub key: Option<Clause<bool>>,
    /// Other full names that patterns of a registry may select it by.
    pub paths: Vec<String>,
    /// Its unit.
    pub unit: Option<Clause<String>>,
    /// The statements about who may learn it.
    pub labels: Vec<Label>,
    /// Tags, for rules that name them.
    pub tags: Vec<Clause<String>>,
    /// Rules about its values.
    pub rules: Vec<Rule>,
    /// What its reader followed to other parts, such as `$ref`.
    pub links: Vec<Clause<String>>,
    /// Why its parts are not read, if it has any that are not.
    pub unread: Option<&'static str>,
    /// Whether it is computed from many rows.
    pub is_measure: bool,
    /// Whether it is part of an object that a row may lack.
    pub in_optional: bool,
    /// Whether it is in a list, so that an event may have many values.
    pub many: bool,
}

/// Limits of a column's values, as written. All of them hold.
#[derive(Debug, Default)]
pub struct Limits {
    /// The smallest value.
    pub min: Vec<Clause<String>>,
    /// A value below all values.
    pub above: Vec<Clause<String>>,
    /// The largest value.
    pub max: Vec<Clause<String>>,
    /// A value above all values.
    pub below: Vec<Clause<String>>,
    /// Digits in all.
    pub precision: Option<Clause<String>>,
    /// Digits behind the point.
    pub scale: Option<Clause<String>>,
    /// Longest text, in characters.
    pub length: Option<Clause<String>>,
    /// The width of a number, such as `i32`.
    pub width: Option<Clause<String>>,
}

impl Limits {
    /// These limits and others.
    #[must_use]
    pub fn and(mut self, other: Limits) -> Limits {
        self.min.extend(other.min);
        self.above.extend(other.above);
        self.max.extend(other.max);
        self.below.extend(other.below);
        self.precision = self.precision.or(other.precision);
        self.scale = self.scale.or(other.scale);
        self.length = self.length.or(other.length);
        self.width = self.width.or(other.width);
        self
    }

    /// Limits of values.
    pub(crate) fn stated(&self) -> impl Iterator<Item = &Clause<String>> {
        self.min.iter().chain(&self.above).chain(&self.max).chain(&self.below)
    }
}

/// A rule about values or rows.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Where it stands.
    pub at: String,
    /// The part that says which rule it is, if that is not the rule itself.
    pub kind: Option<String>,
    /// The table that it is about, if it belongs to the whole contract and says so.
    pub about: Option<String>,
    /// What it demands.
    pub demand: Demand,
}

/// What a rule demands, as far as statistics can answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// A number of rows.
    Rows,
    /// Values that are there: of a column, or of the rule's own one.
    Present(Option<String>),
    /// A mean of a column.
    Mean(String),
    /// A sum of a column.
    Sum(String),
    /// No value is missing: each event must have one.
    Mandatory,
    /// Values between limits, which are in the column's [`Limits`].
    Range,
    /// That fields are kept back, which their labels say.
    Labelled,
    /// Nothing that a sum can answer, for this reason.
    Other(&'static str),
}

impl Default for Clause<String> {
    fn default() -> Self {
        Clause { value: String::new(), at: "?".to_owned() }
    }
}
