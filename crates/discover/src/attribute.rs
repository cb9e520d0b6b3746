//! One attribute of an understanding.

use crate::bounds::Outliers;
use crate::sparse_attributes::Crowd;
use crate::steps::Course;
use crate::tally::{Total, Values};
use std::collections::{BTreeMap, BTreeSet};

/// One attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The column's name in the file.
    pub column: String,
    /// The name in schema and queries.
    pub name: String,
    /// What its cells hold.
    pub values: Values,
    /// The unit, if the file says it.
    pub unit: Option<String>,
    /// Its count and sum.
    pub total: Total,
    /// Numbers that stand for a missing one, with their count.
    pub sentinels: BTreeMap<String, u64>,
    /// Those of them that a person may say to be numbers, though nothing is asked.
    pub(crate) marks: BTreeSet<String>,
    /// Texts among its numbers, which are taken as missing, with their count.
    pub texts: BTreeMap<String, u64>,
    /// Cells of those texts that have a digit, such as `<5`, and so may be numbers after all.
    pub numeric_texts: u64,
    /// Numbers that lie far from all others.
    pub outliers: Outliers,
    /// How its numbers progress, which says whether they may be added up.
    pub course: Course,
    /// How many owners its sums are over.
    pub(crate) crowd: Crowd,
    /// Whether a person said that it is measured.
    pub(crate) said: bool,
    /// Whether a person said that what is odd in it stands for a missing value.
    pub(crate) leaves_out: bool,
}
