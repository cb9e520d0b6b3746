//! The consumer: from the released rows of a window to its results.
//!
//! [`cells`] reads the exact sums that stand in the rows, [`decode`] computes
//! the output columns of a plan from them. Sums stay exact integers; whatever
//! divides is computed as an exact rational in natural units (the scale is part
//! of the rational) and rounded once, to the nearest `f64`, ties to even.
//!
//! What each output means, to the last unit, stands in `docs/protocol.md`.
//!
//! # Privacy
//!
//! A consumer learns the released rows and nothing else. Where cells share a
//! word as digits, the whole word is a row, so all its digits are learnt.

mod histogram;
mod moments;
mod output;
mod places;
mod rational;
mod sketch;

pub use output::{Decimal, Output};
pub use places::{cells, signed_digits};
pub use rational::Rational;

use alpheus_policy::select::{ByOutput, CellRef, HistogramOutput, ReleasePlan, Statistic};
use histogram::Histogram;
use moments::{Moments, Pair};

/// Why rows give no result. A window that ends so is an error row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The check word did not open to zero: a key or a mask did not cancel, so
    /// every row is noise.
    #[error("the check word is not zero: the window's keys or masks did not cancel")]
    CheckWordNotZero,
    /// Not one word for each row of the release.
    #[error("the plan reads row {row}, the window has {found}")]
    MissingRow {
        /// The row.
        row: u16,
        /// Rows there are.
        found: usize,
    },
    /// The plan puts a digit where no word has one.
    #[error("cell {cell} of the plan lies outside its word")]
    BadDigit {
        /// Position among the plan's cells.
        cell: usize,
    },
    /// A column refers to a cell or an edge that the plan lacks.
    #[error("column {item} of the plan refers to what the plan does not have")]
    BadReference {
        /// Position among the plan's columns.
        item: usize,
    },
    /// Sums that no data can have, such as a negative count: a producer
    /// encrypted what no encoder makes.
    #[error("the sums of column {item} are not those of any data")]
    Impossible {
        /// Position among the plan's columns.
        item: usize,
    },
}

/// The output columns of a window, in the order of the plan's items.
///
/// `rows` are the opened rows of the release, the check word last. For a window
/// in which nobody had data, every column is null whatever the rows are; the
/// caller knows the population and need not call this.
///
/// # Errors
///
/// If the check word is not zero, or the plan does not fit its own rows.
pub fn decode(plan: &ReleasePlan, rows: &[u64]) -> Result<Vec<Output>, DecodeError> {
    columns(plan, rows, false)
}

/// The same of rows with noise in them. Numbers come out as they are, also below
/// zero, so that their mean over many windows is right; no number and no bucket is
/// taken for nothing because it is zero. What is read off them that no data could
/// give (a mean over less than one value, a negative variance's root) is null;
/// quantiles and the like take bins below zero for empty.
///
/// # Privacy
///
/// Computed from the released rows alone, so it tells no more than they do.
///
/// # Errors
///
/// If the check word, which has no noise, is not zero, or the plan does not fit its
/// own rows.
pub fn decode_noisy(plan: &ReleasePlan, rows: &[u64]) -> Result<Vec<Output>, DecodeError> {
    columns(plan, rows, true)
}

fn columns(plan: &ReleasePlan, rows: &[u64], noisy: bool) -> Result<Vec<Output>, DecodeError> {
    let cells = cells(plan, rows)?;
    let column = |(item, select): (usize, &alpheus_policy::select::SelectItem)| {
        let column = Column { cells: &cells, noisy };
        match column.output(&select.statistic) {
            Err(Fault::Impossible) if noisy => Ok(Output::Null),
            Err(Fault::Reference) => Err(DecodeError::BadReference { item }),
            Err(Fault::Impossible) => Err(DecodeError::Impossible { item }),
            Ok(output) => Ok(output),
        }
    };
    plan.items.iter().enumerate().map(column).collect()
}

/// What is wrong with one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Reference,
    Impossible,
}

/// Computes one column from the exact sums.
struct Column<'a> {
    cells: &'a [i128],
    noisy: bool,
}

impl Column<'_> {
    fn output(&self, statistic: &Statistic) -> Result<Output, Fault> {
        match statistic {
            Statistic::Sum { sum, count, scale } => self.sum(*sum, *count, *scale),
            Statistic::SideSum { sum, count, scale } => self.sum(*sum, Some(*count), *scale),
            Statistic::Count { count, of } => {
                let nothing = self.is_nothing(self.count(of.unwrap_or(*count))?);
                let count = self.count(*count)?;
                Ok(if nothing { Output::Null } else { Output::Integer(count) })
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
            // An empty cell is not told from a full one then.
            Statistic::Distinct { .. } if self.noisy => Ok(Output::Null),
            Statistic::Distinct { cells } => Ok(sketch::distinct(&self.counts(cells)?)),
            Statistic::Frequency { cells } => sketch::frequency(&self.counts(cells)?),
        }
    }

    fn sum(&self, sum: CellRef, count: Option<CellRef>, scale: u8) -> Result<Output, Fault> {
        let count = count.map(|count| self.count(count)).transpose()?;
        let nothing = count.is_some_and(|count| self.is_nothing(count));
        let sum = self.cell(sum)?;
        Ok(if nothing { Output::Null } else { Output::decimal(sum, scale) })
    }

    fn regression(&self, statistic: &Statistic) -> Result<Output, Fault> {
        let Statistic::Regression { output, count, x, y, xx, xy, yy, x_scale, y_scale } = statistic
        else {
            return Err(Fault::Reference);
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
    ) -> Result<Output, Fault> {
        let mut counts = self.bins(&bins.cells)?;
        if self.noisy {
            if output == HistogramOutput::Counts {
                return Ok(Output::Integers(counts));
            }
            counts.iter_mut().for_each(|count| *count = (*count).max(0));
        }
        Histogram { bins, counts }.output(output)
    }

    /// Statistics per bucket: an object from lower edge to value, in the order
    /// of the edges, without empty buckets.
    fn by(&self, statistic: &Statistic) -> Result<Output, Fault> {
        let Statistic::By { output, counts: bins, sums, squares, scale } = statistic else {
            return Err(Fault::Reference);
        };
        let counts = self.bins(&bins.cells)?;
        let sums = self.optional_bins(sums.as_ref(), counts.len())?;
        let squares = self.optional_bins(squares.as_ref(), counts.len())?;
        let mut buckets = Vec::new();
        let nothing = |(_, count): &(usize, i128)| self.is_nothing(*count);
        for (i, count) in counts.into_iter().enumerate().filter(|bucket| !nothing(bucket)) {
            if count < 0 && !self.noisy {
                return Err(Fault::Impossible);
            }
            let value = |of: &Option<Vec<i128>>| of.as_ref().and_then(|of| of.get(i)).copied();
            let (sum, squares) = (value(&sums), value(&squares));
            let edge = *bins.edges.get(i).ok_or(Fault::Reference)?;
            let moments = |sum| Moments { count, sum, squares, scale: *scale };
            let value = match output {
                ByOutput::Count => Output::Integer(count),
                ByOutput::Sum => Output::decimal(sum.ok_or(Fault::Reference)?, *scale),
                ByOutput::Mean | ByOutput::Variance if count <= 0 => Output::Null,
                ByOutput::Mean => moments(sum.ok_or(Fault::Reference)?).mean(),
                ByOutput::Variance => match moments(sum.ok_or(Fault::Reference)?).variance() {
                    Err(Fault::Impossible) if self.noisy => Output::Null,
                    variance => variance?,
                },
            };
            buckets.push((Decimal { scaled: edge.into(), scale: bins.scale }, value));
        }
        Ok(if buckets.is_empty() { Output::Null } else { Output::Buckets(buckets) })
    }

    fn cell(&self, cell: CellRef) -> Result<i128, Fault> {
        self.cells.get(usize::from(cell)).copied().ok_or(Fault::Reference)
    }

    /// A cell that cannot be negative, but for noise.
    fn count(&self, cell: CellRef) -> Result<i128, Fault> {
        let may = |count: &i128| *count >= 0 || self.noisy;
        Some(self.cell(cell)?).filter(may).ok_or(Fault::Impossible)
    }

    /// A count to divide by: of less than one value nothing can be said.
    fn divisor(&self, cell: CellRef) -> Result<i128, Fault> {
        let may = |count: &i128| *count > 0 || !self.noisy;
        Some(self.count(cell)?).filter(may).ok_or(Fault::Impossible)
    }

    /// Whether a count says that there was nothing: with noise none does.
    fn is_nothing(&self, count: i128) -> bool {
        count == 0 && !self.noisy
    }

    fn counts(&self, cells: &[CellRef]) -> Result<Vec<i128>, Fault> {
        cells.iter().map(|cell| self.count(*cell)).collect()
    }

    /// The sum of each bin's cells.
    fn bins(&self, bins: &[Vec<CellRef>]) -> Result<Vec<i128>, Fault> {
        let sum = |cells: &Vec<CellRef>| cells.iter().map(|cell| self.cell(*cell)).sum();
        bins.iter().map(sum).collect()
    }

    fn optional_bins(
        &self,
        bins: Option<&Vec<Vec<CellRef>>>,
        count: usize,
    ) -> Result<Option<Vec<i128>>, Fault> {
        match bins {
            Some(bins) if bins.len() != count => Err(Fault::Reference),
            bins => bins.map(|bins| self.bins(bins)).transpose(),
        }
    }
}
