//! A query resolved against a schema: which rows its plan releases and how a consumer
//! reads them.
//!
//! Only the rows of a [`Release`](crate::plan::Release) leave the streams. A
//! [`ReleasePlan`] states which exact sums are in those rows ([`SumLocation`]) and from
//! which of them each output column is computed ([`Statistic`]). It is part of the plan.
//! So the plan is enough to decode a result, and to see what the query requests.
//!
//! Items that need the same sum share its row. Nothing that no item needs is released
//! (but see [`SumLocation::Digit`]).

use serde::{Deserialize, Serialize};

/// Position of an exact sum in [`ReleasePlan::cells`].
pub type CellRef = u16;

/// How the rows of a release become output columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleasePlan {
    /// Exact sums, each read from one or two rows.
    pub cells: Vec<SumLocation>,
    /// Output columns in the order of the query.
    pub items: Vec<SelectItem>,
}

/// The location of an exact sum among the rows of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SumLocation {
    /// The row itself, two's complement.
    Whole {
        /// The row.
        row: u16,
    },
    /// One of the signed digits of a row. The whole word is released, so a consumer also
    /// sees its other digits. The layout packs cells together only if every offered
    /// policy treats them alike.
    Digit {
        /// The row.
        row: u16,
        /// Width of each digit, including the sign.
        bits: u8,
        /// Position of the digit, where 0 is the lowest.
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
    /// What it contains.
    pub statistic: Statistic,
}

/// How an output is computed from exact sums. Sums are of scaled integers: a
/// sum of `x` is in units of `10^-scale`, of `x²` in `10^-(2·scale)`.
///
/// Every statistic is null if nobody had data. Those with a count are also null if that
/// count is zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Statistic {
    /// `SUM`.
    Sum {
        /// Σx.
        sum: CellRef,
        /// Number of values, if an event may lack one. It distinguishes an empty sum
        /// from a sum of zero.
        count: Option<CellRef>,
        /// Decimal places of x.
        scale: u8,
    },
    /// `COUNT`.
    Count {
        /// Number of values.
        count: CellRef,
        /// The result is null if this is 0. If absent, the count itself is used.
        of: Option<CellRef>,
    },
    /// `AVG`, `VAR`, `STDDEV`.
    Moments {
        /// The statistic.
        output: MomentOutput,
        /// Number of values.
        count: CellRef,
        /// Σx.
        sum: CellRef,
        /// Σx², absent for the mean.
        squares: Option<CellRef>,
        /// Decimal places of x.
        scale: u8,
    },
    /// `HISTOGRAM`, and functions computed from one.
    Histogram {
        /// The statistic.
        output: HistogramOutput,
        /// The bins.
        bins: Bins,
    },
    /// `REGR_SLOPE`, `REGR_INTERCEPT`, `REGR_R2`, `COVAR_POP`.
    Regression {
        /// The statistic.
        output: RegressionOutput,
        /// Number of events that have both.
        count: CellRef,
        /// Σx.
        x: CellRef,
        /// Σy.
        y: CellRef,
        /// Σx², absent for the covariance.
        xx: Option<CellRef>,
        /// Σxy.
        xy: CellRef,
        /// Σy², only for R².
        yy: Option<CellRef>,
        /// Decimal places of x.
        x_scale: u8,
        /// Decimal places of y.
        y_scale: u8,
    },
    /// `SUM_BY`, `COUNT_BY`, `AVG_BY`, `VAR_BY`.
    By {
        /// The statistic.
        output: ByOutput,
        /// The number of values in each bucket. Empty buckets are omitted.
        counts: Bins,
        /// Σx of each bucket, absent for the count.
        sums: Option<Vec<Vec<CellRef>>>,
        /// Σx² of each bucket, only for the variance.
        squares: Option<Vec<Vec<CellRef>>>,
        /// Decimal places of x (those of the buckets are in `counts`).
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
    /// `FREQUENCY`: the minimum of an item's cells, one from each row of a sketch.
    Frequency {
        /// The item's cells.
        cells: Vec<CellRef>,
    },
}

/// The bins that a query requests. The end bins are open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bins {
    /// Lower edge of each, ascending, in units of `10^-scale`. The first bin also contains
    /// values below its edge.
    pub edges: Vec<i64>,
    /// The count of each bin is the sum of these cells (always 0 if there are none).
    pub cells: Vec<Vec<CellRef>>,
    /// Minimum value of the attribute, scaled.
    pub min: i64,
    /// Maximum value of the attribute, scaled.
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

/// Statistics of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HistogramOutput {
    /// The count of each bin.
    Counts,
    /// The `numerator / denominator` quantile, to the precision of a bin.
    Quantile {
        /// The numerator.
        numerator: u32,
        /// The denominator, never 0.
        denominator: u32,
    },
    /// The smallest value that the lowest non-empty bin can hold.
    Min,
    /// The largest value that the highest non-empty bin can hold: one unit of the scale
    /// below the next edge, or the attribute's maximum.
    Max,
    /// Max − min.
    Range,
    /// The fullest bin.
    Mode,
    /// The fullest bins, fullest first.
    Top {
        /// The number of bins.
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
