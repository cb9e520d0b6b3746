//! The rows of a release, each asked for once.

use crate::layout::{Field, FieldStatistic, Layout, Packing};
use crate::plan::Release;
use crate::select::{CellRef, Place};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Collects the rows that items need.
pub(super) struct Rows<'a> {
    layout: &'a Layout,
    rows: Vec<Vec<u16>>,
    known_rows: BTreeMap<Vec<u16>, u16>,
    cells: Vec<Place>,
    known_cells: BTreeMap<Place, CellRef>,
    attributes: BTreeSet<u16>,
}

/// The schema does not encode it, or there are more sums than numbers for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotEncoded;

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

    /// The release, its cells and the attributes that it derives from. The
    /// check word's row comes last.
    pub(super) fn finish(mut self) -> (Release, Vec<Place>, Vec<u16>) {
        self.rows.push(vec![self.layout.check_word()]);
        (Release { rows: self.rows }, self.cells, self.attributes.into_iter().collect())
    }

    /// Locks an attribute that an item names, also where the sum that answers
    /// it (the count of events) derives from none.
    pub(super) fn name(&mut self, attribute: u16) {
        self.attributes.insert(attribute);
    }

    /// The one sum of a field of a single cell.
    pub(super) fn single(&mut self, statistic: FieldStatistic) -> Result<CellRef, NotEncoded> {
        match self.union(statistic, 0..1)?.as_slice() {
            [cell] => Ok(*cell),
            _ => Err(NotEncoded),
        }
    }

    /// The sum over a run of a field's cells, as the sum of what is returned:
    /// one cell, but where a word holds several digits one for each digit.
    pub(super) fn union(
        &mut self,
        statistic: FieldStatistic,
        range: Range<u16>,
    ) -> Result<Vec<CellRef>, NotEncoded> {
        let field = self.layout.field(statistic).ok_or(NotEncoded)?;
        if range.end > field.cells {
            return Err(NotEncoded);
        }
        self.attributes.extend(statistic.attributes());
        match field.packing {
            _ if range.is_empty() => Ok(Vec::new()),
            Packing::Whole => {
                let row = self.row(words(field, range, 0)?)?;
                Ok(vec![self.cell(Place::Whole { row })?])
            }
            Packing::Limbs => {
                let low = self.row(words(field, range.clone(), 0)?)?;
                let high = self.row(words(field, range, 1)?)?;
                Ok(vec![self.cell(Place::Limbs { low, high })?])
            }
            Packing::Digits { bits, .. } => range
                .map(|position| {
                    let place = field.place(position).ok_or(NotEncoded)?;
                    let row = self.row(vec![place.word])?;
                    self.cell(Place::Digit { row, bits, digit: place.digit })
                })
                .collect(),
        }
    }

    fn row(&mut self, words: Vec<u16>) -> Result<u16, NotEncoded> {
        if let Some(row) = self.known_rows.get(&words) {
            return Ok(*row);
        }
        let row = u16::try_from(self.rows.len()).map_err(|_| NotEncoded)?;
        self.known_rows.insert(words.clone(), row);
        self.rows.push(words);
        Ok(row)
    }

    fn cell(&mut self, place: Place) -> Result<CellRef, NotEncoded> {
        if let Some(cell) = self.known_cells.get(&place) {
            return Ok(*cell);
        }
        let cell = u16::try_from(self.cells.len()).map_err(|_| NotEncoded)?;
        self.known_cells.insert(place, cell);
        self.cells.push(place);
        Ok(cell)
    }
}

/// The words of a run of cells, each `offset` behind its first.
fn words(field: &Field, range: Range<u16>, offset: u16) -> Result<Vec<u16>, NotEncoded> {
    range
        .map(|position| field.place(position).map(|place| place.word + offset).ok_or(NotEncoded))
        .collect()
}
