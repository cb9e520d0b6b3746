//! From the released rows of a window to its results.
//!
//! [`cells()`] reads the exact sums from the rows, and [`decode()`] computes a plan's
//! output columns from them. Sums stay exact integers. Quotients are exact
//! rationals in natural units (including the scale) and are rounded once, to the
//! nearest `f64`, ties to even.
//!
//! `docs/protocol.md` defines each output exactly.
//!
//! # Privacy
//!
//! A consumer learns the released rows and nothing else. Where cells share a
//! word as digits, the whole word is released, so the consumer learns all its digits.

mod cells;
mod histogram;
mod moments;
mod output;
mod rational;
mod sketch;

pub use cells::{cells, rows_of, signed_digits};
pub use output::{Decimal, Output};
pub use rational::Rational;

use alpheus_policy::select::{ByOutput, CellRef, HistogramOutput, ReleasePlan, Statistic};
use histogram::Histogram;
use moments::{Moments, Pair};

/// Why rows have no result. The window's row then reports this error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The check word did not open to zero. A key or a mask did not cancel, so
    /// every row is meaningless.
    #[error("the check word is not zero: the window's keys or masks did not cancel")]
    CheckWordNotZero,
    /// The plan refers to a row that the window lacks.
    #[error("the plan reads row {row}, but the window has only {found} rows")]
    MissingRow {
        /// The row.
        row: u16,
        /// Rows in the window.
        found: usize,
    },
    /// The plan places a digit outside its word.
    #[error("cell {cell} of the plan lies outside its word")]
    BadDigit {
        /// Position among the plan's cells.
        cell: usize,
    },
    /// A column refers to a cell or an edge that the plan lacks.
    #[error("column {item} of the plan refers to a cell or edge that the plan lacks")]
    BadReference {
        /// Position among the plan's columns.
        item: usize,
    },
    /// No data has these sums, for instance a negative count. A producer must
    /// have encrypted a vector that no encoder makes.
    #[error("no valid data has the sums of column {item}; a producer sent an invalid vector")]
    Impossible {
        /// Position among the plan's columns.
        item: usize,
    },
}

/// The output columns of a window, in the order of the plan's items.
///
/// `rows` are the opened rows of the release, with the check word last. In a window
/// without any data every column is null, so a caller that knows the population
/// need not call this.
///
/// # Errors
///
/// If the check word is not zero, or the plan does not fit its own rows.
pub fn decode(plan: &ReleasePlan, rows: &[u64]) -> Result<Vec<Output>, DecodeError> {
    columns(plan, rows, Rows::Exact)
}

/// As [`decode()`], for rows that controllers have signed, or have proven to be in bounds. They do not prove that
/// squares are those of some events. So a column that no data could have is null, and the others stand.
///
/// # Errors
///
/// If the check word is not zero, or the plan does not fit its own rows.
pub fn decode_signed(plan: &ReleasePlan, rows: &[u64]) -> Result<Vec<Output>, DecodeError> {
    columns(plan, rows, Rows::Signed)
}

/// As [`decode()`], for rows with noise. Numbers are returned as they are, even below
/// zero, so their mean over many windows is correct. A zero count makes no number
/// null and omits no bucket. Results that no data could have are null: a mean over
/// less than one value, or the root of a negative variance. Quantiles and other
/// order statistics treat bins below zero as empty.
///
/// # Privacy
///
/// Computed from the released rows alone, so it reveals no more than they do.
///
/// # Errors
///
/// If the check word, which has no noise, is not zero, or if the plan does not fit
/// its own rows.
pub fn decode_noisy(plan: &ReleasePlan, rows: &[u64]) -> Result<Vec<Output>, DecodeError> {
    columns(plan, rows, Rows::Noisy)
}

/// What rows are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    Exact,
    Signed,
    Noisy,
}

fn columns(plan: &ReleasePlan, rows: &[u64], of: Rows) -> Result<Vec<Output>, DecodeError> {
    let (cells, noisy) = (cells(plan, rows)?, of == Rows::Noisy);
    let column = |(item, select): (usize, &alpheus_policy::select::SelectItem)| {
        let column = Column { cells: &cells, noisy };
        match column.output(&select.statistic) {
            Err(ColumnError::Impossible) if of != Rows::Exact => Ok(Output::Null),
            Err(ColumnError::Reference) => Err(DecodeError::BadReference { item }),
            Err(ColumnError::Impossible) => Err(DecodeError::Impossible { item }),
            Ok(output) => Ok(output),
        }
    };
    plan.items.iter().enumerate().map(column).collect()
}

/// Why one column has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnError {
    Reference,
    Impossible,
}

/// Computes one column from the exact sums.
struct Column<'a> {
    cells: &'a [i128],
    noisy: bool,
}

impl Column<'_> {
    fn output(&self, statistic: &Statistic) -> Result<Output, ColumnError> {
        match statistic {
            Statistic::Sum { sum, count, scale } => self.sum(*sum, *count, *scale),
            Statistic::SideSum { sum, count, scale } => self.sum(*sum, Some(*count), *scale),
            Statistic::Count { count, of } => {
                let empty = self.is_empty(self.count(of.unwrap_or(*count))?);
                let count = self.count(*count)?;
                Ok(if empty { Output::Null } else { Output::Integer(count) })
            }
            Statistic::Moments { output, count, sum, squares, scale } => {
                let count = self.divisor(*count)?;
                let squares = squares.map(|cell| self.cell(cell)).transpose()?;
                Moments { count, sum: self.cell(*sum)?, squares, scale: *scale }.output(*output)
            }
            Statistic::Regression { .. } => self.regression(statistic),
            Statistic::Histogram { output, bins } => self.histogram(*output, bins),
            Statistic::By { .. } => self.by(statistic),
            Statistic::Any { cell } => Ok(Output::Boolean(self.cell(*cell)? != 0)),
            Statistic::All { cell } => Ok(Output::Boolean(self.cell(*cell)? == 0)),
            // Noise makes empty and full cells indistinguishable.
            Statistic::Distinct { .. } if self.noisy => Ok(Output::Null),
            Statistic::Distinct { cells } => Ok(sketch::distinct(&self.counts(cells)?)),
            Statistic::Frequency { cells } => sketch::frequency(&self.counts(cells)?),
        }
    }

    fn sum(&self, sum: CellRef, count: Option<CellRef>, scale: u8) -> Result<Output, ColumnError> {
        let count = count.map(|count| self.count(count)).transpose()?;
        let empty = count.is_some_and(|count| self.is_empty(count));
        let sum = self.cell(sum)?;
        Ok(if empty { Output::Null } else { Output::decimal(sum, scale) })
    }

    fn regression(&self, statistic: &Statistic) -> Result<Output, ColumnError> {
        let Statistic::Regression { output, count, x, y, xx, xy, yy, x_scale, y_scale } = statistic
        else {
            return Err(ColumnError::Reference);
        };
        let optional = |cell: &Option<CellRef>| cell.map(|cell| self.cell(cell)).transpose();
        let pair = Pair {
            count: self.divisor(*count)?,
            x: self.cell(*x)?,
            y: self.cell(*y)?,
            xx: optional(xx)?,
            xy: self.cell(*xy)?,
            yy: optional(yy)?,
            x_scale: *x_scale,
            y_scale: *y_scale,
        };
        pair.output(*output)
    }

    fn histogram(
        &self,
        output: HistogramOutput,
        bins: &alpheus_policy::select::Bins,
    ) -> Result<Output, ColumnError> {
        let mut counts = self.bins(&bins.cells)?;
        if self.noisy {
            if output == HistogramOutput::Counts {
                return Ok(Output::Integers(counts));
            }
            counts.iter_mut().for_each(|count| *count = (*count).max(0));
        }
        Histogram { bins, counts }.output(output)
    }

    /// Statistics per bucket: an object from lower edge to value, in edge order,
    /// without empty buckets.
    fn by(&self, statistic: &Statistic) -> Result<Output, ColumnError> {
        let Statistic::By { output, counts: bins, sums, squares, scale } = statistic else {
            return Err(ColumnError::Reference);
        };
        let counts = self.bins(&bins.cells)?;
        let sums = self.optional_bins(sums.as_ref(), counts.len())?;
        let squares = self.optional_bins(squares.as_ref(), counts.len())?;
        let mut buckets = Vec::new();
        let empty = |(_, count): &(usize, i128)| self.is_empty(*count);
        for (i, count) in counts.into_iter().enumerate().filter(|bucket| !empty(bucket)) {
            if count < 0 && !self.noisy {
                return Err(ColumnError::Impossible);
            }
            let value = |of: &Option<Vec<i128>>| of.as_ref().and_then(|of| of.get(i)).copied();
            let (sum, squares) = (value(&sums), value(&squares));
            let edge = *bins.edges.get(i).ok_or(ColumnError::Reference)?;
            let moments = |sum| Moments { count, sum, squares, scale: *scale };
            let value = match output {
                ByOutput::Count => Output::Integer(count),
                ByOutput::Sum => Output::decimal(sum.ok_or(ColumnError::Reference)?, *scale),
                ByOutput::Mean | ByOutput::Variance if count <= 0 => Output::Null,
                ByOutput::Mean => moments(sum.ok_or(ColumnError::Reference)?).mean(),
                ByOutput::Variance => {
                    match moments(sum.ok_or(ColumnError::Reference)?).variance() {
                        Err(ColumnError::Impossible) if self.noisy => Output::Null,
                        variance => variance?,
                    }
                }
            };
            buckets.push((Decimal { scaled: edge.into(), scale: bins.scale }, value));
        }
        Ok(if buckets.is_empty() { Output::Null } else { Output::Buckets(buckets) })
    }

    fn cell(&self, cell: CellRef) -> Result<i128, ColumnError> {
        self.cells.get(usize::from(cell)).copied().ok_or(ColumnError::Reference)
    }

    /// A cell that cannot be negative without noise.
    fn count(&self, cell: CellRef) -> Result<i128, ColumnError> {
        let possible = |count: &i128| *count >= 0 || self.noisy;
        Some(self.cell(cell)?).filter(possible).ok_or(ColumnError::Impossible)
    }

    /// A count to divide by. With noise it must be at least one.
    fn divisor(&self, cell: CellRef) -> Result<i128, ColumnError> {
        let possible = |count: &i128| *count > 0 || !self.noisy;
        Some(self.count(cell)?).filter(possible).ok_or(ColumnError::Impossible)
    }

    /// Whether a count shows that there was no data. With noise, none does.
    fn is_empty(&self, count: i128) -> bool {
        count == 0 && !self.noisy
    }

    fn counts(&self, cells: &[CellRef]) -> Result<Vec<i128>, ColumnError> {
        cells.iter().map(|cell| self.count(*cell)).collect()
    }

    /// The sum of each bin's cells.
    fn bins(&self, bins: &[Vec<CellRef>]) -> Result<Vec<i128>, ColumnError> {
        let sum = |cells: &Vec<CellRef>| cells.iter().map(|cell| self.cell(*cell)).sum();
        bins.iter().map(sum).collect()
    }

    fn optional_bins(
        &self,
        bins: Option<&Vec<Vec<CellRef>>>,
        count: usize,
    ) -> Result<Option<Vec<i128>>, ColumnError> {
        match bins {
            Some(bins) if bins.len() != count => Err(ColumnError::Reference),
            bins => bins.map(|bins| self.bins(bins)).transpose(),
        }
    }
}
