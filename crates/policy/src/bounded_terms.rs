//! Bounded plans: what one owner may add to each number of a window, and which plans can have proofs
//! of it. `bounded-influence` has the proofs.
//!
//! Everything follows from the plan, its schema and its streams, so controllers compute it again.

use crate::budget::{bounds, square};
use crate::layout::{Field, FieldStatistic, Layout, Packing};
use crate::plan::{Integrity, Plan};
use crate::schema::Schema;
use crate::select::{SelectItem, Statistic, SumLocation};
use serde::{Deserialize, Serialize};

/// Most numbers of a window that are proven together.
pub const MAX_CELLS: usize = 3;

/// Most owners at one controller of a bounded plan. Their proofs take 20 ms for each, one after the other,
/// and some 800 bytes.
pub const MAX_OWNERS: u32 = 256;

/// Most bits of a number that a range proof is about.
const MAX_BITS: u32 = 64;

/// Sums of one word stay below 2^this, and those of two halves of 32 bits below 2^[`HALVES_BITS`].
const WORD_BITS: u32 = 63;
const HALVES_BITS: u32 = 95;

/// Most bits of a count times two bounds of its events.
const MAX_PRODUCT_BITS: u32 = 124;

/// One number of a window, and what one owner may add to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundedCell {
    /// The statistic that it sums.
    pub statistic: FieldStatistic,
    /// Least.
    pub lowest: i128,
    /// Most.
    pub highest: i128,
    /// A controller's noise lies in −noise ..= noise.
    pub noise: u64,
}

/// A sum, and perhaps a sum of squares, over the events that another cell counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundedRelation {
    /// The cell that counts events.
    pub count: usize,
    /// The cell with their sum.
    pub sum: usize,
    /// The cell with the sum of their squares.
    pub squares: Option<usize>,
    /// Least value of an event.
    pub lowest: i64,
    /// Greatest value of an event.
    pub highest: i64,
}

/// What the members of a bounded plan prove of each owner's window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundedTerms {
    /// The cells, in the order of [`ReleasePlan::cells`](crate::select::ReleasePlan::cells).
    pub cells: Vec<BoundedCell>,
    /// How they depend on each other.
    pub relations: Vec<BoundedRelation>,
    /// Bits of each number that is proven to be in range, a power of two.
    pub bits: u32,
    /// How many there are for an owner, a power of two.
    pub values: u32,
}

/// Why there are no proofs of a plan's windows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum NotBoundableError {
    /// More numbers than are proven together.
    #[error("it needs {found} numbers per window, and proofs cover at most {MAX_CELLS}")]
    Cells {
        /// How many the query needs.
        found: usize,
    },
    /// Not a plain count, sum or statistic of both.
    #[error(
        "`{column}` is not a count, sum, average or variance, and proofs cover only these (no histogram, `ANY`, `ALL`, threshold, sketch or pair)"
    )]
    Column {
        /// The column.
        column: String,
    },
    /// A limit on events that is none, or beyond the schema.
    #[error(
        "a limit of {requested} events per stream and window is out of range; use 1 to {most}, which schema and noise allow"
    )]
    Events {
        /// The limit in the plan.
        requested: u64,
        /// The largest.
        most: u64,
    },
    /// One owner's window, or a controller's noise, exceeds the range of proofs.
    #[error(
        "one owner's `{column}` in a window takes {bits} bits, and proofs cover {MAX_BITS}; set fewer `events`{}, use shorter windows, or narrow the attribute's bounds", fitting(*most)
    )]
    TooWide {
        /// The column with the widest number.
        column: String,
        /// Bits of the widest number.
        bits: u32,
        /// The largest limit on events that fits, 0 if there is none.
        most: u64,
    },
    /// The sum over all owners, each at its bounds, does not fit the words of a row.
    #[error(
        "{owners} owners, each with the bounds of the owner with the most streams, exceed what the words of a row hold; set fewer `events`, narrow the attribute's bounds, or ask for fewer streams of one owner"
    )]
    Capacity {
        /// Owners in the plan.
        owners: u32,
    },
    /// The release and what is read of it differ.
    #[error("its rows are not one word, or two halves, for each number that it reads")]
    Rows,
    /// All streams are at one controller.
    #[error(
        "all streams of a plan are at one controller, and its share would be the row itself; bounded windows need two controllers or more"
    )]
    Alone,
    /// Rows are sealed to a consumer.
    #[error(
        "its rows are sealed to one consumer (`RELEASE TO`), and nobody else could find out which controller made a row fail"
    )]
    Sealed,
    /// Controllers pick whom they mask with.
    #[error(
        "controllers pick whom they mask with (`masks = 'neighbours'`), which proofs do not cover"
    )]
    Picks,
    /// More owners at a controller than it makes proofs for.
    #[error(
        "a controller has {found} owners in the plan, and makes proofs for at most {MAX_OWNERS} in a window"
    )]
    Owners {
        /// The most at one controller.
        found: u32,
    },
}

fn fitting(most: u64) -> String {
    if most == 0 { String::new() } else { format!(" (at most {most})") }
}

impl BoundedTerms {
    /// Bytes of one owner's commitments and proof: 32 for each cell, 6 parts of 32 and two more for
    /// each halving of the proof.
    #[must_use]
    pub fn owner_bytes(&self) -> u32 {
        let cells = u32::try_from(self.cells.len()).unwrap_or(u32::MAX);
        32 * (cells + 6 + 2 * (self.bits * self.values).ilog2())
    }

    /// Bits that an owner's proof is about. Times grow with them.
    #[must_use]
    pub fn proof_bits(&self) -> u32 {
        self.bits * self.values
    }
}

impl Plan {
    /// What members prove of each owner's window; nothing in a plan that asks for no proofs. Before
    /// streams are known, it is that of one owner with one stream.
    ///
    /// # Errors
    /// [`NotBoundableError`].
    pub fn bounded_terms(
        &self,
        schema: &Schema,
        layout: &Layout,
    ) -> Result<Option<BoundedTerms>, NotBoundableError> {
        let Integrity::Bounded { events } = self.integrity else { return Ok(None) };
        let own = self.privacy.as_ref().map(|privacy| privacy.events);
        let most = own.unwrap_or(schema.capacity.events).min(schema.capacity.events);
        if events == 0 || events > most || own.is_some_and(|own| own != events) {
            return Err(NotBoundableError::Events { requested: events, most });
        }
        let covered = |cell: u16| self.is_plain(cell, layout);
        let beyond = |item: &&SelectItem| {
            !cells_of(&item.statistic).is_some_and(|own| own.into_iter().all(covered))
        };
        if let Some(item) = self.select.items.iter().find(beyond) {
            return Err(NotBoundableError::Column { column: item.alias.clone() });
        }
        let found = self.select.cells.len();
        if found == 0 || found > MAX_CELLS {
            return Err(NotBoundableError::Cells { found });
        }
        let terms = self.terms_for(events, schema, layout)?;
        self.check_widths(&terms, schema, layout)?;
        self.check_sums(&terms)?;
        Ok(Some(terms))
    }

    /// Why members cannot serve this plan though its numbers can be proven: nothing unless it is
    /// bounded. Before members are known, only what does not depend on them.
    #[must_use]
    pub fn not_servable(&self) -> Option<NotBoundableError> {
        if !self.integrity.is_bounded() {
            return None;
        }
        let found = self.owners_per_controller().into_iter().max().unwrap_or(0);
        let wrong = [
            (self.sealed_to.is_some(), NotBoundableError::Sealed),
            (self.roster.len() == 1, NotBoundableError::Alone),
            (self.masks.needed_picks().is_some(), NotBoundableError::Picks),
            (found > MAX_OWNERS, NotBoundableError::Owners { found }),
        ];
        wrong.into_iter().find_map(|(is_so, why)| is_so.then_some(why))
    }

    fn terms_for(
        &self,
        events: u64,
        schema: &Schema,
        layout: &Layout,
    ) -> Result<BoundedTerms, NotBoundableError> {
        let streams = self.max_streams_per_owner().max(1);
        let events = i128::from(events).saturating_mul(streams.into());
        let cell = |location: &SumLocation| {
            let (field, rows) = self.field_of(location, layout)?;
            let (lowest, highest) = bounds_of(field.statistic, events, schema)?;
            let noise = self.noise_range(&rows)?;
            Some(BoundedCell { statistic: field.statistic, lowest, highest, noise })
        };
        let cells: Option<Vec<BoundedCell>> = self.select.cells.iter().map(cell).collect();
        let cells = cells.ok_or(NotBoundableError::Rows)?;
        let relations = relations(&cells, schema);
        let (bits, values) = proof_size(&cells, &relations);
        Ok(BoundedTerms { cells, relations, bits, values })
    }

    /// The field of a cell, and the rows that it is read from.
    fn field_of<'a>(
        &self,
        location: &SumLocation,
        layout: &'a Layout,
    ) -> Option<(&'a Field, Vec<u16>)> {
        let word = |row: u16| match self.release.rows.get(usize::from(row))?.as_slice() {
            [word] => Some(*word),
            _ => None,
        };
        let single = |word| layout.field_at(word).filter(|field| field.cells == 1);
        match *location {
            SumLocation::Whole { row } => {
                let field = single(word(row)?)?;
                (field.packing == Packing::Whole).then_some((field, vec![row]))
            }
            SumLocation::Limbs { low, high } => {
                let field = single(word(low)?)?;
                let halves = word(low)? == field.first && word(high)? == field.first + 1;
                (field.packing == Packing::Limbs && halves).then_some((field, vec![low, high]))
            }
            SumLocation::Digit { row, digit, .. } => {
                let field = single(word(row)?)?;
                let packed = matches!(field.packing, Packing::Digits { .. }) && digit == 0;
                packed.then_some((field, vec![row]))
            }
        }
    }

    /// Whether a cell is a count, sum or sum of squares of all events, as those above a threshold are not. A place that is
    /// none of the layout is refused as such.
    fn is_plain(&self, cell: u16, layout: &Layout) -> bool {
        let row = self.select.cells.get(usize::from(cell)).map(|location| match *location {
            SumLocation::Whole { row } | SumLocation::Digit { row, .. } => row,
            SumLocation::Limbs { low, .. } => low,
        });
        let words = row.and_then(|row| self.release.rows.get(usize::from(row)));
        let field = words.and_then(|words| layout.field_at(*words.first()?));
        field.is_none_or(|field| {
            let statistic = field.statistic;
            let is_sum =
                matches!(statistic, FieldStatistic::Sum(_) | FieldStatistic::SumOfSquares(_));
            is_sum || matches!(statistic, FieldStatistic::EventCount | FieldStatistic::Count(_))
        })
    }

    /// The range of one controller's noise in a cell: that of the row, or of its low half and 2^32
    /// times that of its high one. A row's is twice the tail, which a share exceeds with probability
    /// below 2^−120, so cutting it costs less δ than samplers omit anyway ([`Plan::slack_bits`]).
    fn noise_range(&self, rows: &[u16]) -> Option<u64> {
        let Some(privacy) = &self.privacy else { return Some(0) };
        let tail = |row: &u16| privacy.noise.get(usize::from(*row)).map_or(0, |row| row.tail(1, 1));
        let [low, high] = match rows {
            [row] => [tail(row), 0],
            [low, high] => [tail(low), tail(high)],
            _ => return None,
        };
        let range = high.saturating_mul(1 << 32).saturating_add(low).saturating_mul(2);
        Some(u64::try_from(range).unwrap_or(u64::MAX))
    }

    fn check_widths(
        &self,
        terms: &BoundedTerms,
        schema: &Schema,
        layout: &Layout,
    ) -> Result<(), NotBoundableError> {
        let noise = terms.cells.iter().map(|cell| width(2 * u128::from(cell.noise))).max();
        if terms.bits.max(noise.unwrap_or(0)) <= MAX_BITS {
            return Ok(());
        }
        let fits = |events: u64| {
            let terms = self.terms_for(events, schema, layout);
            terms.is_ok_and(|terms| terms.bits <= MAX_BITS)
        };
        let (mut most, mut beyond) = (0, schema.capacity.events);
        // Noise does not depend on this limit alone, and may be too wide for any.
        while noise <= Some(MAX_BITS) && most + 1 < beyond {
            let middle = u64::midpoint(most, beyond);
            *(if fits(middle) { &mut most } else { &mut beyond }) = middle;
        }
        let (column, bits) = (self.widest_column(terms), terms.bits.max(noise.unwrap_or(0)));
        Err(NotBoundableError::TooWide { column, bits, most })
    }

    /// The first column that reads the cell with the widest bounds.
    fn widest_column(&self, terms: &BoundedTerms) -> String {
        let width = |(_, cell): &(u16, &BoundedCell)| cell.highest.abs_diff(cell.lowest);
        let widest = (0_u16..).zip(&terms.cells).max_by_key(width).map(|(cell, _)| cell);
        let reads = |item: &&SelectItem| {
            let own = cells_of(&item.statistic).unwrap_or_default();
            widest.is_some_and(|widest| own.contains(&widest))
        };
        let column = self.select.items.iter().find(reads);
        column.map_or_else(String::new, |item| item.alias.clone())
    }

    fn check_sums(&self, terms: &BoundedTerms) -> Result<(), NotBoundableError> {
        let owners = self.owners_per_controller().iter().sum::<u32>().max(1);
        let controllers = self.roster.len().max(1) as u128;
        let fits = |(cell, location): (&BoundedCell, &SumLocation)| {
            let bits = match *location {
                SumLocation::Whole { .. } => WORD_BITS,
                SumLocation::Digit { bits, .. } => u32::from(bits).saturating_sub(1),
                SumLocation::Limbs { .. } => HALVES_BITS,
            };
            let most = cell.lowest.unsigned_abs().max(cell.highest.unsigned_abs());
            let noise = u128::from(cell.noise).checked_mul(controllers)?;
            let sum = most.checked_mul(owners.into())?.checked_add(noise)?;
            (width(sum) <= bits).then_some(())
        };
        let all = terms.cells.iter().zip(&self.select.cells).all(|cell| fits(cell).is_some());
        if all { Ok(()) } else { Err(NotBoundableError::Capacity { owners }) }
    }
}

/// The cells that a column is computed from, if it is a count, a sum or a statistic of both.
fn cells_of(statistic: &Statistic) -> Option<Vec<u16>> {
    match *statistic {
        Statistic::Sum { sum, .. } => Some(vec![sum]),
        Statistic::Count { count, .. } => Some(vec![count]),
        Statistic::Moments { count, sum, squares, .. } => {
            Some([Some(count), Some(sum), squares].into_iter().flatten().collect())
        }
        _ => None,
    }
}

/// What one owner's events may add up to. With no event it is 0.
fn bounds_of(statistic: FieldStatistic, events: i128, schema: &Schema) -> Option<(i128, i128)> {
    let (lowest, highest) = match statistic {
        FieldStatistic::EventCount | FieldStatistic::Count(_) => (0, 1),
        FieldStatistic::Sum(a) => bounds(schema, a),
        FieldStatistic::SumOfSquares(a) => square(bounds(schema, a))?,
        _ => return None,
    };
    let sum = |bound: i128| bound.saturating_mul(events);
    Some((sum(lowest).min(0), sum(highest).max(0)))
}

/// For each attribute whose sum is a cell: with the count of its values, if that is one as well.
fn relations(cells: &[BoundedCell], schema: &Schema) -> Vec<BoundedRelation> {
    let position =
        |statistic: FieldStatistic| cells.iter().position(|cell| cell.statistic == statistic);
    let relation = |(sum, cell): (usize, &BoundedCell)| {
        let FieldStatistic::Sum(a) = cell.statistic else { return None };
        let count = position(schema.count_of(a))?;
        let (lowest, highest) = bounds(schema, a);
        let (lowest, highest) = (i64::try_from(lowest).ok()?, i64::try_from(highest).ok()?);
        let squares = position(FieldStatistic::SumOfSquares(a));
        Some(BoundedRelation { count, sum, squares, lowest, highest })
    };
    cells.iter().enumerate().filter_map(relation).collect()
}

/// Bits and number of the values that are proven to be in range, as in the protocol note of
/// `bounded-influence`: both sides of each cell unless relations imply them, two sides of each
/// relation, and one more with squares.
fn proof_size(cells: &[BoundedCell], relations: &[BoundedRelation]) -> (u32, u32) {
    let (mut values, mut most) = (0_u32, 0_u128);
    for (at, cell) in cells.iter().enumerate() {
        let of_squares = relations.iter().any(|relation| relation.squares == Some(at));
        // A sum's bounds are those of its relation; squares have a lower one of their own.
        let sides = if relations.iter().any(|relation| relation.sum == at) {
            0
        } else {
            2 - u32::from(of_squares)
        };
        values += sides;
        if sides > 0 {
            most = most.max(cell.highest.abs_diff(cell.lowest));
        }
    }
    for relation in relations {
        let count = cells.get(relation.count).map_or(0, |cell| cell.highest.unsigned_abs());
        let range = u128::from(relation.highest.abs_diff(relation.lowest));
        values += 2;
        most = most.max(count.saturating_mul(range));
        // Products of bounds are computed as they are, however narrow the range.
        let far = u128::from(relation.lowest.unsigned_abs().max(relation.highest.unsigned_abs()));
        if width(far.saturating_mul(far).saturating_mul(count)) > MAX_PRODUCT_BITS {
            most = u128::MAX;
        }
        if relation.squares.is_some() {
            values += 1;
            let square = range.saturating_mul(range).div_ceil(4);
            most = most.max(count.saturating_mul(square));
        }
    }
    (width(most).max(8).next_power_of_two(), values.next_power_of_two())
}

/// How many bits a number has.
fn width(number: u128) -> u32 {
    u128::BITS - number.leading_zeros()
}
