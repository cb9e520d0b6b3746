//! Statistics computed from a histogram.
//!
//! Bin `i` holds the scaled integers from its lower edge up to, but excluding, the
//! next edge. The first bin also holds values below its edge, down to the
//! attribute's declared minimum. The last bin holds values up to the declared
//! maximum. Therefore:
//!
//! - A bin is *named* by its lower edge. Quantiles, mode and top-k return names.
//! - `min` is the least value that the lowest non-empty bin can hold, `max` the
//!   greatest value that the highest one can hold, and `range` their difference.
//!   No value lies outside. With bins of one unit all three are exact.

use super::{ColumnError, Decimal, Output};
use alpheus_policy::select::{Bins, HistogramOutput};

/// The number of values in each bin.
pub(super) struct Histogram<'a> {
    pub(super) bins: &'a Bins,
    pub(super) counts: Vec<i128>,
}

impl Histogram<'_> {
    pub(super) fn output(self, output: HistogramOutput) -> Result<Output, ColumnError> {
        if self.counts.len() != self.bins.edges.len() {
            return Err(ColumnError::Reference);
        }
        if self.counts.iter().any(|count| *count < 0) {
            return Err(ColumnError::Impossible);
        }
        let (Some(lowest), Some(highest)) = (
            self.counts.iter().position(|count| *count > 0),
            self.counts.iter().rposition(|count| *count > 0),
        ) else {
            return Ok(Output::Null);
        };
        Ok(match output {
            HistogramOutput::Counts => Output::Integers(self.counts),
            HistogramOutput::Quantile { numerator, denominator } => {
                self.name(self.quantile(numerator, denominator))
            }
            HistogramOutput::Min => self.decimal(self.least(lowest)),
            HistogramOutput::Max => self.decimal(self.greatest(highest)),
            HistogramOutput::Range => self.decimal(self.greatest(highest) - self.least(lowest)),
            HistogramOutput::Mode => self.name(self.fullest().first().copied().unwrap_or(lowest)),
            HistogramOutput::Top { k } => self.top(k),
        })
    }

    /// The bin of the ⌈q·n⌉-th smallest value, at least the first. The median of
    /// an even number of values is the lower of the middle two.
    fn quantile(&self, numerator: u32, denominator: u32) -> usize {
        let total: i128 = self.counts.iter().sum();
        let (numerator, denominator) = (i128::from(numerator), i128::from(denominator.max(1)));
        let rank = ((total * numerator + denominator - 1) / denominator).clamp(1, total.max(1));
        let mut total = 0;
        let reaches = |count: &i128| {
            total += count;
            total >= rank
        };
        self.counts.iter().position(reaches).unwrap_or(0)
    }

    /// Non-empty bins, fullest first. Ties go to the lower bin.
    fn fullest(&self) -> Vec<usize> {
        let mut bins: Vec<usize> = (0..self.counts.len()).filter(|i| self.count(*i) > 0).collect();
        bins.sort_by_key(|i| std::cmp::Reverse(self.count(*i)));
        bins
    }

    fn top(&self, k: u16) -> Output {
        let fullest = self.fullest().into_iter().take(k.into());
        Output::Top(fullest.map(|i| (self.edge(i), self.count(i))).collect())
    }

    fn count(&self, bin: usize) -> i128 {
        self.counts.get(bin).copied().unwrap_or(0)
    }

    fn lower(&self, bin: usize) -> i128 {
        self.bins.edges.get(bin).copied().unwrap_or(i64::MAX).into()
    }

    /// The least scaled value that the bin can hold.
    fn least(&self, bin: usize) -> i128 {
        let min = i128::from(self.bins.min);
        if bin == 0 { min } else { self.lower(bin).max(min) }
    }

    /// The greatest scaled value that the bin can hold.
    fn greatest(&self, bin: usize) -> i128 {
        let max = i128::from(self.bins.max);
        if bin + 1 < self.counts.len() { (self.lower(bin + 1) - 1).min(max) } else { max }
    }

    fn edge(&self, bin: usize) -> Decimal {
        Decimal { scaled: self.lower(bin), scale: self.bins.scale }
    }

    fn name(&self, bin: usize) -> Output {
        Output::Decimal(self.edge(bin))
    }

    fn decimal(&self, scaled: i128) -> Output {
        Output::decimal(scaled, self.bins.scale)
    }
}
