//! Lower edges of bins: the grid of histograms and buckets.

use serde::{Deserialize, Serialize};

/// Lower edges of bins. The end bins are open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edges {
    /// `bins` bins of equal width from `lo`.
    Uniform {
        /// Lower edge of the first bin.
        lo: i64,
        /// Width of each bin.
        width: i64,
        /// The number of bins.
        bins: u16,
    },
    /// Strictly ascending lower edges.
    Explicit(Vec<i64>),
}

impl Edges {
    /// Number of bins.
    #[must_use]
    pub fn bins(&self) -> u16 {
        match self {
            Edges::Uniform { bins, .. } => *bins,
            Edges::Explicit(edges) => u16::try_from(edges.len()).unwrap_or(u16::MAX),
        }
    }

    /// The bin of `value`. Values beyond an end are in the end bin.
    #[must_use]
    pub fn bin(&self, value: i64) -> u16 {
        match self {
            Edges::Uniform { lo, width, bins } => {
                let bin = (i128::from(value) - i128::from(*lo)).div_euclid(i128::from(*width));
                u16::try_from(bin.clamp(0, i128::from(*bins) - 1)).unwrap_or(0)
            }
            Edges::Explicit(edges) => {
                let above = edges.partition_point(|edge| *edge <= value);
                u16::try_from(above.saturating_sub(1)).unwrap_or(u16::MAX)
            }
        }
    }

    /// The lower edge of a bin, if there is such a bin.
    #[must_use]
    pub fn lower(&self, bin: u16) -> Option<i64> {
        match self {
            Edges::Uniform { lo, width, bins } if bin < *bins => {
                lo.checked_add(width.checked_mul(i64::from(bin))?)
            }
            Edges::Uniform { .. } => None,
            Edges::Explicit(edges) => edges.get(usize::from(bin)).copied(),
        }
    }

    /// The bin whose lower edge is exactly `edge`.
    #[must_use]
    pub fn cell_at(&self, edge: i64) -> Option<u16> {
        let bin = self.bin(edge);
        (self.lower(bin) == Some(edge)).then_some(bin)
    }
}
