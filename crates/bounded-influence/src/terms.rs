//! The terms of a bounded plan: its cells, their bounds for one owner in one window, how cells
//! depend on each other, and the range of a controller's noise.

use crate::form::Form;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_range_proof as range;
use alpheus_range_proof::Shape;

/// Most cells of a plan.
pub const MAX_CELLS: usize = 3;

/// Sums stay below this, so that a row's scalar is one integer. (A scalar would have room for 2^251.)
const CAPACITY: i128 = i128::MAX;

/// Factors and products of bounds stay below this, so that no form overflows.
const MAX_PRODUCT: i128 = 1 << 124;

/// One number of a row, and what one owner may add to it in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Least.
    pub lowest: i128,
    /// Most.
    pub highest: i128,
    /// A controller's noise lies in −noise ..= noise.
    pub noise: u64,
}

/// A sum, and perhaps a sum of squares, over events that another cell counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
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

/// Why there are no bounded windows with these cells. A planner refuses the query with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// No cell.
    #[error("a bounded query needs a cell; select COUNT, SUM or a statistic of both")]
    NoCells,
    /// More cells than can be proven together.
    #[error("the query has {0} cells, but a bounded one has at most {MAX_CELLS}; select fewer")]
    TooManyCells(usize),
    /// The lower bound exceeds the upper one.
    #[error("the bounds of cell {0} are empty; its lowest value must not be above its highest")]
    EmptyBounds(usize),
    /// A relation names a cell that does not exist, one twice, or a count that may be negative or cannot
    /// be 0, or is no count in another relation.
    #[error(
        "relation {0} needs different cells, and a count whose minimum is 0 and that is not a sum of another relation"
    )]
    Relation(usize),
    /// The values of one owner do not fit 64 bits.
    #[error(
        "one owner's values in one window exceed 64 bits; narrow the attribute's bounds, its rate or the window"
    )]
    TooWide,
    /// The row does not fit.
    #[error(
        "{owners} owners with the bounds of cell {cell} exceed what a row holds; narrow its bounds"
    )]
    Capacity {
        /// The cell.
        cell: usize,
        /// Listed owners.
        owners: u32,
    },
}

/// Terms under which every bound can be proven and every row fits.
#[derive(Clone, Debug)]
pub struct Terms {
    cells: Vec<Cell>,
    relations: Vec<Relation>,
    owner_forms: Vec<Form>,
    noise_forms: Vec<Form>,
    owner_shape: Shape,
    noise_shape: Shape,
    digest: Digest,
}

impl Terms {
    /// Checks the terms of a plan with so many listed owners and controllers.
    ///
    /// # Errors
    /// [`TermsError`], for the planner's refusal.
    pub fn new(
        cells: &[Cell],
        relations: &[Relation],
        owners: u32,
        controllers: u32,
    ) -> Result<Self, TermsError> {
        check_cells(cells, owners, controllers)?;
        let mut forms = Forms { cells, list: Vec::new(), most: 1 };
        forms.of_owner(relations)?;
        let (owner_forms, owner_shape) = forms.padded()?;
        let mut forms = Forms { cells, list: Vec::new(), most: 1 };
        forms.of_noise();
        let (noise_forms, noise_shape) = forms.padded()?;
        let mut terms = Self {
            cells: cells.to_vec(),
            relations: relations.to_vec(),
            owner_forms,
            noise_forms,
            owner_shape,
            noise_shape,
            digest: Digest([0; 32]),
        };
        terms.digest = terms.hash();
        Ok(terms)
    }

    /// The cells.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Names the terms: everything that a proof depends on.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether controllers add noise.
    #[must_use]
    pub fn has_noise(&self) -> bool {
        self.cells.iter().any(|cell| cell.noise > 0)
    }

    /// Bytes of one owner's commitments and proof.
    #[must_use]
    pub fn owner_length(&self) -> usize {
        Element::LENGTH * self.cells.len() + self.owner_shape.proof_length()
    }

    /// Whether sums of squares are as large as the sums of some events demand: n·Σx² ≥ (Σx)². No form says
    /// so, as it is of degree two. The values fit the forms, so count and squares are of 64 bits and not below
    /// 0: only the square of a sum can exceed 128 bits, and then no squares are as large.
    pub(crate) fn has_spread(&self, values: &[i128]) -> bool {
        let at = |cell: usize| values.get(cell).map(|value| value.unsigned_abs());
        let fits = |relation: &Relation| {
            let Some(squares) = relation.squares else { return true };
            let of_cells = at(relation.count).zip(at(squares)).zip(at(relation.sum));
            of_cells.is_some_and(|((n, squares), sum)| {
                n.checked_mul(squares).zip(sum.checked_mul(sum)).is_some_and(|(a, b)| a >= b)
            })
        };
        self.relations.iter().all(fits)
    }

    pub(crate) fn owner_forms(&self) -> &[Form] {
        &self.owner_forms
    }

    pub(crate) fn noise_forms(&self) -> &[Form] {
        &self.noise_forms
    }

    pub(crate) fn owner_range(&self) -> range::Terms {
        range_terms(self.owner_shape)
    }

    pub(crate) fn noise_range(&self) -> range::Terms {
        range_terms(self.noise_shape)
    }

    fn hash(&self) -> Digest {
        let number = |n: usize| (n as u64).to_be_bytes();
        let shape = |shape: &Shape| [number(shape.bits()), number(shape.values())].concat();
        let forms = |forms: &[Form]| forms.iter().flat_map(Form::to_bytes).collect::<Vec<u8>>();
        let parts = [
            number(self.cells.len()).to_vec(),
            shape(&self.owner_shape),
            forms(&self.owner_forms),
            shape(&self.noise_shape),
            forms(&self.noise_forms),
        ];
        labelled_hash(labels::BOUNDED_TERMS, &parts.each_ref().map(Vec::as_slice))
    }
}

fn range_terms(shape: Shape) -> range::Terms {
    range::Terms {
        shape,
        value_base: Element::base(),
        blinding_base: Element::second_base(),
        label: labels::BOUNDED_RANGE,
    }
}

fn check_cells(cells: &[Cell], owners: u32, controllers: u32) -> Result<(), TermsError> {
    match cells.len() {
        0 => return Err(TermsError::NoCells),
        1..=MAX_CELLS => {}
        more => return Err(TermsError::TooManyCells(more)),
    }
    for (at, cell) in cells.iter().enumerate() {
        if cell.lowest > cell.highest {
            return Err(TermsError::EmptyBounds(at));
        }
        let widest = cell.lowest.unsigned_abs().max(cell.highest.unsigned_abs());
        let noise = u128::from(cell.noise).checked_mul(controllers.into());
        let values = widest.checked_mul(owners.into());
        let sum = values.zip(noise).and_then(|(values, noise)| values.checked_add(noise));
        if sum.is_none_or(|sum| sum >= CAPACITY.unsigned_abs()) {
            return Err(TermsError::Capacity { cell: at, owners });
        }
    }
    Ok(())
}

/// Forms that must be 0 or more, and the most that one of them can be.
struct Forms<'a> {
    cells: &'a [Cell],
    list: Vec<Form>,
    most: u128,
}

impl Forms<'_> {
    fn push(&mut self, parts: &[(usize, i128)], constant: i128, most: u128) {
        self.list.push(Form::new(self.cells.len(), parts, constant));
        self.most = self.most.max(most);
    }

    /// Both sides of each cell that relations leave open, and the relations.
    fn of_owner(&mut self, relations: &[Relation]) -> Result<(), TermsError> {
        let limits: Vec<Limits> = relations
            .iter()
            .enumerate()
            .map(|(at, relation)| Limits::new(self.cells, at, relation))
            .collect::<Result<_, _>>()?;
        // A count that another relation implies would leave both without bounds of their own.
        let implied = |cell: usize| {
            relations.iter().any(|other| other.sum == cell || other.squares == Some(cell))
        };
        let circular = relations.iter().position(|relation| implied(relation.count));
        circular.map_or(Ok(()), |at| Err(TermsError::Relation(at)))?;
        for (at, cell) in self.cells.iter().enumerate() {
            let width = cell.highest.checked_sub(cell.lowest).ok_or(TermsError::TooWide)?;
            if !limits.iter().any(|limits| limits.is_above(at, cell.lowest)) {
                let below = cell.lowest.checked_neg().ok_or(TermsError::TooWide)?;
                self.push(&[(at, 1)], below, width.unsigned_abs());
            }
            if !limits.iter().any(|limits| limits.is_below(at, cell.highest)) {
                self.push(&[(at, -1)], cell.highest, width.unsigned_abs());
            }
        }
        limits.iter().try_for_each(|limits| self.of_relation(limits))
    }

    fn of_relation(&mut self, limits: &Limits) -> Result<(), TermsError> {
        let Limits { relation, most, .. } = limits;
        let (lowest, highest) = (i128::from(relation.lowest), i128::from(relation.highest));
        let width = (highest - lowest).unsigned_abs();
        let times = |factor: u128| most.unsigned_abs().checked_mul(factor);
        let of_sum = times(width).ok_or(TermsError::TooWide)?;
        self.push(&[(relation.sum, 1), (relation.count, -lowest)], 0, of_sum);
        self.push(&[(relation.count, highest), (relation.sum, -1)], 0, of_sum);
        if let Some(squares) = relation.squares {
            // (x − lowest)·(highest − x) is at most a quarter of the width's square.
            let square = width.checked_mul(width).ok_or(TermsError::TooWide)?.div_ceil(4);
            let parts = [
                (relation.sum, lowest + highest),
                (relation.count, -(lowest * highest)),
                (squares, -1),
            ];
            self.push(&parts, 0, times(square).ok_or(TermsError::TooWide)?);
        }
        Ok(())
    }

    /// η + noise and noise − η.
    fn of_noise(&mut self) {
        for (at, cell) in self.cells.iter().enumerate() {
            let noise = i128::from(cell.noise);
            self.push(&[(at, 1)], noise, 2 * noise.unsigned_abs());
            self.push(&[(at, -1)], noise, 2 * noise.unsigned_abs());
        }
    }

    /// The forms, the last repeated until their number is a power of two.
    fn padded(mut self) -> Result<(Vec<Form>, Shape), TermsError> {
        let bits = [8_usize, 16, 32, 64].into_iter().find(|bits| self.most >> bits == 0);
        let values = self.list.len().next_power_of_two();
        let last = self.list.last().cloned();
        last.iter().for_each(|last| self.list.resize(values, last.clone()));
        let shape = bits.and_then(|bits| Shape::new(bits, values)).ok_or(TermsError::TooWide)?;
        Ok((self.list, shape))
    }
}

/// What a relation implies of its cells.
struct Limits {
    relation: Relation,
    /// Most events.
    most: i128,
    /// The least and the greatest sum.
    sum: (i128, i128),
    /// The greatest sum of squares.
    squares: i128,
}

impl Limits {
    fn new(cells: &[Cell], at: usize, relation: &Relation) -> Result<Self, TermsError> {
        let Relation { count, sum, squares, .. } = *relation;
        let others: Vec<usize> = [Some(sum), squares].into_iter().flatten().collect();
        let known = others.iter().all(|at| *at < cells.len() && *at != count);
        let ordered = squares != Some(sum) && relation.lowest <= relation.highest;
        let counted = cells.get(count).filter(|cell| cell.lowest == 0 && known && ordered);
        let most = counted.ok_or(TermsError::Relation(at))?.highest;
        let (lowest, highest) = (i128::from(relation.lowest), i128::from(relation.highest));
        let product = |a: i128, b: i128| {
            let product = a.checked_mul(b).filter(|p| p.abs() <= MAX_PRODUCT);
            product.ok_or(TermsError::TooWide)
        };
        let (low, high) = (product(most, lowest)?, product(most, highest)?);
        let squares = product(low, lowest)?.max(product(high, highest)?);
        product(low, highest)?;
        Ok(Self { relation: *relation, most, sum: (low.min(0), high.max(0)), squares })
    }

    fn is_above(&self, cell: usize, bound: i128) -> bool {
        cell == self.relation.sum && self.sum.0 >= bound
    }

    fn is_below(&self, cell: usize, bound: i128) -> bool {
        let of_squares = self.relation.squares == Some(cell) && self.squares <= bound;
        of_squares || (cell == self.relation.sum && self.sum.1 <= bound)
    }
}
