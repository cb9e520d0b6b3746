//! The functions of the query language.

use crate::select::{ByOutput, HistogramOutput, MomentOutput, RegressionOutput};

/// A function of the query language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `COUNT`.
    Count,
    /// `SUM`.
    Sum,
    /// `AVG`, `VAR`, `STDDEV`.
    Moments(MomentOutput),
    /// `HISTOGRAM`.
    Histogram,
    /// `PERCENTILE`.
    Percentile,
    /// `TOPK`.
    TopK,
    /// `MEDIAN`, `MIN`, `MAX`, `MODE`, `RANGE`.
    FromHistogram(HistogramOutput),
    /// `REGR_SLOPE` and similar functions.
    Regression(RegressionOutput),
    /// `SUM_BY` and similar functions.
    By(ByOutput),
    /// `SUM_ABOVE`, `COUNT_BELOW` and similar functions.
    Side {
        /// Whether values at or above the threshold count, else those below.
        above: bool,
        /// Whether to return their sum, else their number.
        sum: bool,
    },
    /// `ANY`.
    Any,
    /// `ALL`.
    All,
    /// `APPROX_DISTINCT`.
    Distinct,
    /// `FREQUENCY`.
    Frequency,
}

const MEDIAN: HistogramOutput = HistogramOutput::Quantile { numerator: 1, denominator: 2 };

/// Names, functions and their syntax. Messages use the first name of a function.
const FUNCTIONS: &[(&str, Function, &str)] = &[
    ("SUM", Function::Sum, "SUM(attribute)"),
    ("COUNT", Function::Count, "COUNT(attribute) or COUNT(*)"),
    ("AVG", Function::Moments(MomentOutput::Mean), "AVG(attribute)"),
    ("MEAN", Function::Moments(MomentOutput::Mean), "MEAN(attribute)"),
    ("VAR", Function::Moments(MomentOutput::Variance), "VAR(attribute)"),
    ("VARIANCE", Function::Moments(MomentOutput::Variance), "VARIANCE(attribute)"),
    ("VAR_POP", Function::Moments(MomentOutput::Variance), "VAR_POP(attribute)"),
    ("STDDEV", Function::Moments(MomentOutput::Deviation), "STDDEV(attribute)"),
    ("STDDEV_POP", Function::Moments(MomentOutput::Deviation), "STDDEV_POP(attribute)"),
    (
        "HISTOGRAM",
        Function::Histogram,
        "HISTOGRAM(attribute), HISTOGRAM(attribute, lo, width, bins) or HISTOGRAM(attribute, EDGES(0, 10, …))",
    ),
    ("MEDIAN", Function::FromHistogram(MEDIAN), "MEDIAN(attribute)"),
    ("PERCENTILE", Function::Percentile, "PERCENTILE(attribute, 0.95)"),
    ("MIN", Function::FromHistogram(HistogramOutput::Min), "MIN(attribute)"),
    ("MAX", Function::FromHistogram(HistogramOutput::Max), "MAX(attribute)"),
    ("MODE", Function::FromHistogram(HistogramOutput::Mode), "MODE(attribute)"),
    ("RANGE", Function::FromHistogram(HistogramOutput::Range), "RANGE(attribute)"),
    ("TOPK", Function::TopK, "TOPK(attribute, 3)"),
    ("REGR_SLOPE", Function::Regression(RegressionOutput::Slope), "REGR_SLOPE(y, x)"),
    ("REGR_INTERCEPT", Function::Regression(RegressionOutput::Intercept), "REGR_INTERCEPT(y, x)"),
    ("REGR_R2", Function::Regression(RegressionOutput::RSquared), "REGR_R2(y, x)"),
    ("COVAR_POP", Function::Regression(RegressionOutput::Covariance), "COVAR_POP(y, x)"),
    (
        "SUM_BY",
        Function::By(ByOutput::Sum),
        "SUM_BY(attribute, bucket attribute) or SUM_BY(attribute, bucket attribute, width)",
    ),
    (
        "COUNT_BY",
        Function::By(ByOutput::Count),
        "COUNT_BY(attribute, bucket attribute) or COUNT_BY(attribute, bucket attribute, width)",
    ),
    (
        "AVG_BY",
        Function::By(ByOutput::Mean),
        "AVG_BY(attribute, bucket attribute) or AVG_BY(attribute, bucket attribute, width)",
    ),
    (
        "VAR_BY",
        Function::By(ByOutput::Variance),
        "VAR_BY(attribute, bucket attribute) or VAR_BY(attribute, bucket attribute, width)",
    ),
    ("SUM_ABOVE", Function::Side { above: true, sum: true }, "SUM_ABOVE(attribute)"),
    ("SUM_BELOW", Function::Side { above: false, sum: true }, "SUM_BELOW(attribute)"),
    ("COUNT_ABOVE", Function::Side { above: true, sum: false }, "COUNT_ABOVE(attribute)"),
    ("COUNT_BELOW", Function::Side { above: false, sum: false }, "COUNT_BELOW(attribute)"),
    ("ANY", Function::Any, "ANY(attribute)"),
    ("ALL", Function::All, "ALL(attribute)"),
    ("APPROX_DISTINCT", Function::Distinct, "APPROX_DISTINCT(attribute)"),
    ("FREQUENCY", Function::Frequency, "FREQUENCY(attribute, 'item')"),
];

impl Function {
    /// The function with this name, ignoring case.
    #[must_use]
    pub fn named(name: &str) -> Option<(&'static str, Function)> {
        let (known, function, _) =
            FUNCTIONS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name))?;
        Some((known, *function))
    }

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FUNCTIONS.iter().map(|(name, ..)| *name)
    }

    /// The name that messages use.
    #[must_use]
    pub fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(_, function, _)| *function == self).map_or("", |(name, ..)| name)
    }

    /// The syntax of a call with this name.
    #[must_use]
    pub(super) fn form(name: &str) -> &'static str {
        FUNCTIONS.iter().find(|(known, ..)| *known == name).map_or("", |(.., form)| form)
    }
}
