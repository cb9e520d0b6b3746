//! What a query asks, resolved against a schema: which rows its plan releases
//! and how a consumer reads them.
//!
//! The rows of a [`Release`](crate::plan::Release) are all that leaves the
//! streams. A [`ReleasePlan`] says which exact sums stand in those rows
//! ([`Place`]) and which of these each output column is computed from
//! ([`Statistic`]). It is part of the plan, so that a result can be decoded,
//! and a controller can see what is asked, from the plan alone.
//!
//! Items that need the same sum share its row; nothing that no item needs is
//! released (but see [`Place::Digit`]).

use serde::{Deserialize, Serialize};

/// Position of an exact sum among [`ReleasePlan::cells`].
pub type CellRef = u16;

/// How the rows of a release become output columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleasePlan {
    /// Exact sums, each read from one or two rows.
    pub cells: Vec<Place>,
    /// Output columns in the order of the query.
    pub items: Vec<SelectItem>,
}

/// Where an exact sum stands among the rows of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Place {
    /// The row itself, two's complement.
    Whole {
        /// The row.
        row: u16,
    },
    /// One of the signed digits of a row. The whole word is released, so a
    /// consumer also sees its other digits: the layout packs together only
    /// cells that no offered policy treats apart.
    Digit {
        /// The row.
        row: u16,
        /// Width of each digit, sign included.
        bits: u8,
        /// Which digit; 0 is the lowest.
        digit: u8,
    },
    /// `low + high × 2^32`, where the row `low` is a sum of unsigned 32-bit
    /// halves and the row `high` of signed ones.
    Limbs {
        /// Row of the low halves.
        low: u16,
        /// Row of the high halves.
        high: u16,
    },
}

/// One output column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectItem {
    /// Its name in the results.
    pub alias: String,
    /// What stands in it.
    pub statistic: Statistic,
}

/// How an output is computed from exact sums. Sums are of scaled integers: a
/// sum of `x` is in units of `10^-scale`, of `x²` in `10^-(2·scale)`.
///
/// Every statistic is null where nobody had data; those with a count also
/// where that count is zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Statistic {
    /// `SUM`.
    Sum {
        /// Σx.
        sum: CellRef,
        /// Number of values, if an event may lack one: tells an empty sum from
        /// a sum of zero.
        count: Option<CellRef>,
        /// Decimal places of x.
        scale: u8,
    },
    /// `COUNT`.
    Count {
        /// Number of values.
        count: CellRef,
        /// Null where this is 0; the count itself if absent.
        of: Option<CellRef>,
    },
    /// `AVG`, `VAR`, `STDDEV`.
    Moments {
        /// Which.
        output: MomentOutput,
        /// Number of values.
        count: CellRef,
        /// Σx.
        sum: CellRef,
        /// Σx²; absent for the mean.
        squares: Option<CellRef>,
        /// Decimal places of x.
        scale: u8,
    },
    /// `HISTOGRAM` and what is read off one.
    Histogram {
        /// What.
        output: HistogramOutput,
        /// The bins.
        bins: Bins,
    },
    /// `REGR_SLOPE`, `REGR_INTERCEPT`, `REGR_R2`, `COVAR_POP`.
    Regression {
        /// Which.
        output: RegressionOutput,
        /// Number of events that have both.
        count: CellRef,
        /// Σx.
        x: CellRef,
        /// Σy.
        y: CellRef,
        /// Σx²; absent for the covariance.
        xx: Option<CellRef>,
        /// Σxy.
        xy: CellRef,
        /// Σy²; only for R².
        yy: Option<CellRef>,
        /// Decimal places of x.
        x_scale: u8,
        /// Decimal places of y.
        y_scale: u8,
    },
    /// `SUM_BY`, `COUNT_BY`, `AVG_BY`, `VAR_BY`.
    By {
        /// Which.
        output: ByOutput,
        /// Bucket by bucket: number of values. Empty buckets are left out.
        counts: Bins,
        /// Σx of each bucket; absent for the count.
        sums: Option<Vec<Vec<CellRef>>>,
        /// Σx² of each bucket; only for the variance.
        squares: Option<Vec<Vec<CellRef>>>,
        /// Decimal places of x (those of the buckets stand in `counts`).
        scale: u8,
    },
    /// `SUM_ABOVE`, `SUM_BELOW`: values on one side of the threshold.
    SideSum {
        /// Σx of that side.
        sum: CellRef,
        /// Number of values of that side.
        count: CellRef,
        /// Decimal places of x.
        scale: u8,
    },
    /// `ANY`: true unless the cell is zero.
    Any {
        /// Sum of a random word for each true value.
        cell: CellRef,
    },
    /// `ALL`: true if the cell is zero.
    All {
        /// Sum of a random word for each false value.
        cell: CellRef,
    },
    /// `APPROX_DISTINCT`, by linear counting over one row of a sketch.
    Distinct {
        /// The cells of the row.
        cells: Vec<CellRef>,
    },
    /// `FREQUENCY`: the least of an item's cells, one of each row of a sketch.
    Frequency {
        /// The item's cells.
        cells: Vec<CellRef>,
    },
}

/// Bins as a query asked for them. The end bins are open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bins {
    /// Lower edge of each, ascending, in units of `10^-scale`. The first bin
    /// also takes what is below its edge.
    pub edges: Vec<i64>,
    /// The number in each bin: the sum of these cells (none: always 0).
    pub cells: Vec<Vec<CellRef>>,
    /// Least value that the attribute takes, scaled.
    pub min: i64,
    /// Greatest value that the attribute takes, scaled.
    pub max: i64,
    /// Decimal places of edges and bounds.
    pub scale: u8,
}

/// Statistics of count, sum and sum of squares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MomentOutput {
    /// Σx / n.
    Mean,
    /// Population variance (n·Σx² − (Σx)²) / n².
    Variance,
    /// Its square root.
    Deviation,
}

/// What is read off a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HistogramOutput {
    /// The number in each bin.
    Counts,
    /// The `numerator / denominator` quantile, to a bin.
    Quantile {
        /// Above the line.
        numerator: u32,
        /// Below the line; never 0.
        denominator: u32,
    },
    /// The least value that the lowest bin that is not empty can hold.
    Min,
    /// The greatest value that the highest bin that is not empty can hold: one
    /// unit of the scale below the next edge, or the attribute's maximum.
    Max,
    /// Max − min.
    Range,
    /// The fullest bin.
    Mode,
    /// The fullest bins, fullest first.
    Top {
        /// How many.
        k: u16,
    },
}

/// Statistics of a pair of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RegressionOutput {
    /// (n·Σxy − ΣxΣy) / (n·Σx² − (Σx)²).
    Slope,
    /// (Σy − slope·Σx) / n.
    Intercept,
    /// Square of the correlation.
    RSquared,
    /// (n·Σxy − ΣxΣy) / n².
    Covariance,
}

/// Statistics per bucket of another attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ByOutput {
    /// Number of values.
    Count,
    /// Σx.
    Sum,
    /// Mean.
    Mean,
    /// Population variance.
    Variance,
}
