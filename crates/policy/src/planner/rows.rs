//! Collects the rows of a release, each once.

use crate::layout::{Field, FieldStatistic, Layout, Packing};
use crate::plan::Release;
use crate::select::{CellRef, SumLocation};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The rows that items need.
pub(super) struct Rows<'a> {
    layout: &'a Layout,
    rows: Vec<Vec<u16>>,
    known_rows: BTreeMap<Vec<u16>, u16>,
    cells: Vec<SumLocation>,
    known_cells: BTreeMap<SumLocation, CellRef>,
    attributes: BTreeSet<u16>,
}

/// The schema does not encode the statistic, or there are too many sums to number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotEncodedError;

impl<'a> Rows<'a> {
    pub(super) fn new(layout: &'a Layout) -> Rows<'a> {
        Rows {
            layout,
            rows: Vec::new(),
            known_rows: BTreeMap::new(),
            cells: Vec::new(),
            known_cells: BTreeMap::new(),
            attributes: BTreeSet::new(),
        }
    }

    /// The release, its cells, and the attributes that it derives from. The check word's row
    /// is last.
    pub(super) fn finish(mut self) -> (Release, Vec<SumLocation>, Vec<u16>) {
        self.rows.push(vec![self.layout.check_word()]);
        (Release { rows: self.rows }, self.cells, self.attributes.into_iter().collect())
    }

    /// Adds an attribute that an item names, even if its sum (the count of events) derives
    /// from none.
    pub(super) fn name(&mut self, attribute: u16) {
        self.attributes.insert(attribute);
    }

    /// The sum of a field with a single cell.
    pub(super) fn single(&mut self, statistic: FieldStatistic) -> Result<CellRef, NotEncodedError> {
        match self.union(statistic, 0..1)?.as_slice() {
            [cell] => Ok(*cell),
            _ => Err(NotEncodedError),
        }
    }

    /// The sum over consecutive cells of a field. It is the sum of the returned references:
    /// one, or one for each digit if digits are packed.
    pub(super) fn union(
        &mut self,
        statistic: FieldStatistic,
        range: Range<u16>,
    ) -> Result<Vec<CellRef>, NotEncodedError> {
        let field = self.layout.field(statistic).ok_or(NotEncodedError)?;
        if range.end > field.cells {
            return Err(NotEncodedError);
        }
        self.attributes.extend(statistic.attributes());
        match field.packing {
            _ if range.is_empty() => Ok(Vec::new()),
            Packing::Whole => {
                let row = self.row(words(field, range, 0)?)?;
                Ok(vec![self.cell(SumLocation::Whole { row })?])
            }
            Packing::Limbs => {
                let low = self.row(words(field, range.clone(), 0)?)?;
                let high = self.row(words(field, range, 1)?)?;
                Ok(vec![self.cell(SumLocation::Limbs { low, high })?])
            }
            Packing::Digits { bits, .. } => range
                .map(|position| {
                    let place = field.place(position).ok_or(NotEncodedError)?;
                    let row = self.row(vec![place.word])?;
                    self.cell(SumLocation::Digit { row, bits, digit: place.digit })
                })
                .collect(),
        }
    }

    fn row(&mut self, words: Vec<u16>) -> Result<u16, NotEncodedError> {
        if let Some(row) = self.known_rows.get(&words) {
            return Ok(*row);
        }
        let row = u16::try_from(self.rows.len()).map_err(|_| NotEncodedError)?;
        self.known_rows.insert(words.clone(), row);
        self.rows.push(words);
        Ok(row)
    }

    fn cell(&mut self, place: SumLocation) -> Result<CellRef, NotEncodedError> {
        if let Some(cell) = self.known_cells.get(&place) {
            return Ok(*cell);
        }
        let cell = u16::try_from(self.cells.len()).map_err(|_| NotEncodedError)?;
        self.known_cells.insert(place, cell);
        self.cells.push(place);
        Ok(cell)
    }
}

/// The words of consecutive cells, at `offset` from the first word of each.
fn words(field: &Field, range: Range<u16>, offset: u16) -> Result<Vec<u16>, NotEncodedError> {
    range
        .map(|position| {
            field.place(position).map(|place| place.word + offset).ok_or(NotEncodedError)
        })
        .collect()
}
