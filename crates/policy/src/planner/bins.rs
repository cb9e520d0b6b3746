//! Requested bins as unions of a schema's cells.
//!
//! The grid belongs to the schema and is the same for all plans. If a bin could begin or end
//! off the grid, the difference of two plans could isolate a part of a bucket.

use crate::query::{BinRequest, Decimal};
use crate::schema::{AttributeKind, Edges};
use std::ops::Range;

/// Requested bins over a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alignment {
    /// Lower edge of each bin, scaled.
    pub(super) edges: Vec<i64>,
    /// The grid's cells of each bin.
    pub(super) cells: Vec<Range<u16>>,
}

/// The bins are not on the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AlignmentError {
    /// An edge, scaled, that is not an edge of the grid.
    Edge(i64),
    /// An edge with more decimal places than the attribute.
    TooFine(Decimal),
    /// Edges beyond 64 bits.
    TooLarge,
}

/// Bounds and decimal places of an attribute's values; truth values are 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) scale: u8,
    pub(super) min: i64,
    pub(super) max: i64,
}

impl Values {
    /// `None` for text, which has no bins.
    pub(super) fn of(kind: &AttributeKind) -> Option<Values> {
        match kind {
            AttributeKind::Number { scale, min, max } => {
                Some(Values { scale: *scale, min: *min, max: *max })
            }
            AttributeKind::Boolean => Some(Values { scale: 0, min: 0, max: 1 }),
            AttributeKind::Text { .. } => None,
        }
    }
}

/// The schema's own bins.
pub(super) fn native(grid: &Edges) -> Alignment {
    let cells = 0..grid.bins();
    Alignment {
        edges: cells.clone().filter_map(|cell| grid.lower(cell)).collect(),
        cells: cells.map(|cell| cell..cell + 1).collect(),
    }
}

/// Each requested bin as a union of the grid's cells. Both end bins are open, so the first
/// edge need not be on the grid.
pub(super) fn align(
    request: &BinRequest,
    grid: &Edges,
    values: Values,
) -> Result<Alignment, AlignmentError> {
    let edges = match request {
        BinRequest::Native => return Ok(native(grid)),
        BinRequest::Uniform { lo, width, bins } => uniform(*lo, *width, *bins, values.scale)?,
        BinRequest::Edges(edges) => {
            edges.iter().map(|edge| scaled(*edge, values.scale)).collect::<Result<_, _>>()?
        }
    };
    let inner = edges
        .iter()
        .skip(1)
        .map(|edge| start(*edge, grid, values))
        .collect::<Result<Vec<_>, _>>()?;
    let starts = std::iter::once(0).chain(inner.iter().copied());
    let ends = inner.iter().copied().chain(std::iter::once(grid.bins()));
    let cells = starts.zip(ends).map(|(start, end)| start..end).collect();
    Ok(Alignment { edges, cells })
}

fn uniform(lo: Decimal, width: Decimal, bins: u16, scale: u8) -> Result<Vec<i64>, AlignmentError> {
    let (lo, width) = (scaled(lo, scale)?, scaled(width, scale)?);
    let edge = |bin: u16| lo.checked_add(width.checked_mul(i64::from(bin))?);
    (0..bins).map(|bin| edge(bin).ok_or(AlignmentError::TooLarge)).collect()
}

fn scaled(number: Decimal, scale: u8) -> Result<i64, AlignmentError> {
    number.scaled(scale).ok_or(AlignmentError::TooFine(number))
}

/// The first of the grid's cells at or above an inner edge.
fn start(edge: i64, grid: &Edges, values: Values) -> Result<u16, AlignmentError> {
    if edge > values.max {
        return Ok(grid.bins()); // no value is that large
    }
    if edge <= values.min {
        return Ok(0); // no value is below
    }
    match grid.cell_at(edge) {
        // The grid's first cell also contains values below its edge.
        None | Some(0) => Err(AlignmentError::Edge(edge)),
        Some(cell) => Ok(cell),
    }
}

/// Bins on the grid near the requested ones: every edge moves to the nearest edge of the
/// grid, and widths to a multiple of the grid's.
pub(super) fn nearest(request: &BinRequest, grid: &Edges, values: Values) -> BinRequest {
    let candidate = match (request, grid) {
        (BinRequest::Native, _) => None,
        (
            BinRequest::Uniform { lo, width, bins },
            Edges::Uniform { lo: grid_lo, width: step, .. },
        ) => nearest_uniform((*lo, *width, *bins), (*grid_lo, *step), values),
        (BinRequest::Uniform { lo, width, bins }, Edges::Explicit(_)) => {
            uniform(*lo, *width, *bins, values.scale)
                .ok()
                .and_then(|edges| nearest_edges(&edges, grid, values))
        }
        (BinRequest::Edges(edges), _) => {
            let edges: Vec<i64> =
                edges.iter().filter_map(|edge| edge.scaled_towards_zero(values.scale)).collect();
            nearest_edges(&edges, grid, values)
        }
    };
    candidate.filter(|bins| align(bins, grid, values).is_ok()).unwrap_or(BinRequest::Native)
}

fn nearest_uniform(
    (lo, width, bins): (Decimal, Decimal, u16),
    (grid_lo, step): (i64, i64),
    values: Values,
) -> Option<BinRequest> {
    let width = i128::from(width.scaled_towards_zero(values.scale)?);
    let lo = i128::from(lo.scaled_towards_zero(values.scale)?);
    let (grid_lo, step) = (i128::from(grid_lo), i128::from(step.max(1)));
    let steps = ((width + step / 2) / step).max(1);
    let lo = grid_lo + (lo - grid_lo + step / 2).div_euclid(step) * step;
    let number = |value: i128| Some(Decimal::from_scaled(i64::try_from(value).ok()?, values.scale));
    Some(BinRequest::Uniform { lo: number(lo)?, width: number(steps * step)?, bins })
}

fn nearest_edges(edges: &[i64], grid: &Edges, values: Values) -> Option<BinRequest> {
    let first = *edges.first()?;
    let inner = edges.iter().skip(1).filter_map(|edge| nearest_edge(*edge, grid));
    let mut on_grid: Vec<i64> = std::iter::once(first).chain(inner).collect();
    on_grid.sort_unstable();
    on_grid.dedup();
    Some(BinRequest::Edges(
        on_grid.into_iter().map(|edge| Decimal::from_scaled(edge, values.scale)).collect(),
    ))
}

fn nearest_edge(edge: i64, grid: &Edges) -> Option<i64> {
    let cell = grid.bin(edge);
    [Some(cell), cell.checked_add(1)]
        .into_iter()
        .flatten()
        .filter(|cell| *cell > 0)
        .filter_map(|cell| grid.lower(cell))
        .min_by_key(|near| near.abs_diff(edge))
}

/// Buckets of `width` from the grid's first edge, or the grid's own.
pub(super) fn buckets(
    width: Option<Decimal>,
    grid: &Edges,
    values: Values,
) -> Result<Alignment, AlignmentError> {
    let Some(width) = width else { return Ok(native(grid)) };
    let width = scaled(width, values.scale)?;
    let step = match grid {
        Edges::Uniform { width: step, .. } if *step > 0 && width % step == 0 => width / step,
        Edges::Uniform { .. } | Edges::Explicit(_) => return Err(AlignmentError::Edge(width)),
    };
    let step = usize::try_from(step).map_err(|_| AlignmentError::TooLarge)?;
    let end = grid.bins();
    let starts: Vec<u16> = (0..end).step_by(step).collect();
    let ends = starts.iter().skip(1).copied().chain(std::iter::once(end));
    Ok(Alignment {
        edges: starts.iter().filter_map(|start| grid.lower(*start)).collect(),
        cells: starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect(),
    })
}

/// The multiple of the grid's width nearest to `width`, if the grid has a width.
pub(super) fn nearest_width(width: Decimal, grid: &Edges, values: Values) -> Option<Decimal> {
    let Edges::Uniform { width: step, .. } = grid else { return None };
    let width = width.scaled_towards_zero(values.scale)?;
    let steps = (width.checked_add(step / 2)?.checked_div(*step)?).max(1);
    Some(Decimal::from_scaled(steps.checked_mul(*step)?, values.scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GRID: Edges = Edges::Uniform { lo: -10, width: 5, bins: 8 }; // -10, -5, 0 … 25
    const VALUES: Values = Values { scale: 1, min: -100, max: 100 };

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    fn request(lo: &str, width: &str, bins: u16) -> BinRequest {
        BinRequest::Uniform { lo: number(lo), width: number(width), bins }
    }

    #[test]
    fn bins_are_unions_of_cells_and_open_at_both_ends() {
        let aligned = align(&request("-0.7", "1", 3), &GRID, VALUES);
        assert_eq!(aligned, Err(AlignmentError::Edge(3)));
        let aligned = align(&request("-1", "1", 3), &GRID, VALUES).unwrap();
        assert_eq!(aligned.edges, [-10, 0, 10]);
        assert_eq!(aligned.cells, [0..2, 2..4, 4..8]);
        // Below the grid there is no edge that separates values.
        assert_eq!(align(&request("-2", "1", 3), &GRID, VALUES), Err(AlignmentError::Edge(-10)));
        // Beyond the attribute's bounds there are no values to separate.
        let edges = BinRequest::Edges(["-20", "-10", "0", "10", "10.1"].map(number).to_vec());
        assert_eq!(align(&edges, &GRID, VALUES).map(|a| a.cells), Err(AlignmentError::Edge(100)));
        let edges = BinRequest::Edges(["-20", "-10", "0", "10.1"].map(number).to_vec());
        assert_eq!(align(&edges, &GRID, VALUES).unwrap().cells, [0..0, 0..2, 2..8, 8..8]);
        assert_eq!(
            align(&request("0", "0.05", 3), &GRID, VALUES),
            Err(AlignmentError::TooFine(number("0.05")))
        );
    }

    #[test]
    fn the_nearest_bins_are_on_the_grid() {
        assert_eq!(nearest(&request("0.1", "0.7", 3), &GRID, VALUES), request("0", "0.5", 3));
        assert_eq!(nearest(&request("0", "0.8", 3), &GRID, VALUES), request("0", "1", 3));
        assert_eq!(nearest(&request("0", "3", 3), &GRID, VALUES), BinRequest::Native);
    }

    #[test]
    fn buckets_start_where_the_grid_starts() {
        let aligned = buckets(Some(number("1.5")), &GRID, VALUES).unwrap();
        assert_eq!(aligned.edges, [-10, 5, 20]);
        assert_eq!(aligned.cells, [0..3, 3..6, 6..8]);
        assert!(buckets(Some(number("0.7")), &GRID, VALUES).is_err());
        assert_eq!(nearest_width(number("0.7"), &GRID, VALUES), Some(number("0.5")));
    }

    proptest! {
        /// Every value is in the bin between whose edges it lies, where the end bins are open.
        #[test]
        fn a_value_falls_into_the_bin_of_its_cell(
            edges in proptest::collection::btree_set(-120i64..120, 1..6), value in -100i64..=100
        ) {
            let edges: Vec<i64> = edges.into_iter().collect();
            let request = BinRequest::Edges(edges.iter().map(|e| Decimal::from_scaled(*e, 1)).collect());
            let request = nearest(&request, &GRID, VALUES);
            let aligned = align(&request, &GRID, VALUES).unwrap();
            let bin = aligned.edges.partition_point(|edge| *edge <= value).saturating_sub(1);
            let cell = GRID.bin(value);
            prop_assert!(aligned.cells[bin].contains(&cell), "{aligned:?} {value}");
            let covered: Vec<u16> = aligned.cells.iter().cloned().flatten().collect();
            prop_assert_eq!(covered, (0..8).collect::<Vec<_>>());
        }
    }
}
