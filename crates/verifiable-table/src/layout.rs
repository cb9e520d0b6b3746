//! What a schema's columns become: columns of ciphertexts, and products of them.

use crate::error::Refusal;
use crate::label::{Column, DataSet, Kind};
use crate::messages::Manifest;
use crate::parameters::Set;
use crate::planner;
use crate::ring::ITEM_LIMIT;
use serde::{Deserialize, Serialize};

/// A column as it is declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// The least value.
    pub min: i64,
    /// The greatest value.
    pub max: i64,
    /// Whether cells may be empty.
    pub optional: bool,
    /// Whether sums of squares can be asked.
    pub squares: bool,
}

/// A row: one cell for each declared column.
pub type Row = Vec<Option<i64>>;

/// What one stored column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Stored {
    /// x, or zero where the cell is empty.
    Value(u16),
    /// 1 where there is a cell, 0 where it is empty.
    Presence(u16),
    /// x where the other column has a cell too, else zero.
    Beside(u16, u16),
}

/// A statistic's part: a sum over rows. Columns are declared ones, by their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// Cells of x that are not empty.
    Count(u16),
    /// Σx.
    Sum(u16),
    /// Σx².
    Square(u16),
    /// Rows where both have cells.
    PairCount(u16, u16),
    /// Σx over rows where y has a cell too: x comes first.
    PairSum(u16, u16),
    /// Σx² over rows where y has a cell too.
    PairSquare(u16, u16),
    /// Σxy.
    PairProduct(u16, u16),
}

/// What is summed for a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// Rows themselves: the owner knows.
    Rows,
    /// Ciphertexts.
    Sum(Kind),
}

/// A layout is a function of declared columns and registered pairs alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    declared: Vec<Declared>,
    pairs: Vec<(u16, u16)>,
    stored: Vec<Stored>,
    products: Vec<(Column, Column)>,
}

/// Columns or pairs do not make a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLayout {
    /// No columns, or too many.
    #[error("a table has 1 to 64 columns, this has {0}")]
    Columns(usize),
    /// Bounds are the wrong way round or too wide.
    #[error("column {0}: bounds must be in order and within ±2^50: scale the column down")]
    Bounds(usize),
    /// A pair names a column that is not there, or twice the same.
    #[error("pair {0}: a pair names two different columns of the table")]
    Pair(usize),
    /// More ciphertexts or products for each block than a table may have.
    #[error(
        "columns and pairs take {0} ciphertexts and products, at most 256 are allowed: register fewer pairs"
    )]
    TooMany(usize),
}

impl Layout {
    /// Lays out a table. Each pair is of two different columns, in either order.
    ///
    /// # Errors
    /// [`BadLayout`].
    pub fn new(declared: Vec<Declared>, pairs: &[(u16, u16)]) -> Result<Self, BadLayout> {
        if !(1..=64).contains(&declared.len()) {
            return Err(BadLayout::Columns(declared.len()));
        }
        let fits = |c: &Declared| c.min <= c.max && c.min > -ITEM_LIMIT && c.max < ITEM_LIMIT;
        if let Some(at) = declared.iter().position(|column| !fits(column)) {
            return Err(BadLayout::Bounds(at));
        }
        let known = |(a, b): &(u16, u16)| a != b && usize::from(*a.max(b)) < declared.len();
        if let Some(at) = pairs.iter().position(|pair| !known(pair)) {
            return Err(BadLayout::Pair(at));
        }
        let mut pairs: Vec<_> = pairs.iter().map(|(a, b)| (*a.min(b), *a.max(b))).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut layout = Self { declared, pairs, stored: Vec::new(), products: Vec::new() };
        layout.store();
        let length = layout.stored.len().max(layout.products.len());
        if length > usize::from(crate::messages::COLUMN_LIMIT) {
            return Err(BadLayout::TooMany(length));
        }
        Ok(layout)
    }

    fn store(&mut self) {
        let columns = 0..u16::try_from(self.declared.len()).unwrap_or(0);
        self.stored.extend(columns.clone().map(Stored::Value));
        let optional: Vec<u16> = columns.clone().filter(|x| self.optional(*x)).collect();
        self.stored.extend(optional.into_iter().map(Stored::Presence));
        let both = self.pairs.iter().flat_map(|(x, y)| [(*x, *y), (*y, *x)]);
        let beside: Vec<_> = both.filter(|(_, y)| self.optional(*y)).collect();
        self.stored.extend(beside.into_iter().map(|(x, y)| Stored::Beside(x, y)));
        let squares =
            columns.filter(|x| self.declared[usize::from(*x)].squares).map(Moment::Square);
        let pairs = self.pairs.iter().flat_map(|(x, y)| {
            [
                Moment::PairCount(*x, *y),
                Moment::PairProduct(*x, *y),
                Moment::PairSquare(*x, *y),
                Moment::PairSquare(*y, *x),
            ]
        });
        let wanted: Vec<Moment> = squares.chain(pairs).collect();
        let products = wanted.into_iter().filter_map(|moment| match self.place(moment)? {
            Term::Sum(Kind::Product(a, b)) => Some((a, b)),
            _ => None,
        });
        self.products = products.collect();
        self.products.sort_unstable();
        self.products.dedup();
    }

    fn optional(&self, column: u16) -> bool {
        self.declared.get(usize::from(column)).is_some_and(|column| column.optional)
    }

    fn stored_at(&self, wanted: Stored) -> Option<Column> {
        let at = self.stored.iter().position(|stored| *stored == wanted)?;
        u16::try_from(at).ok().map(Column)
    }

    /// What x is where y has a cell too.
    fn beside(&self, x: u16, y: u16) -> Option<Column> {
        let stored = if self.optional(y) { Stored::Beside(x, y) } else { Stored::Value(x) };
        self.stored_at(stored)
    }

    /// What to sum for a moment; none if its tags do not exist.
    #[must_use]
    pub fn term(&self, moment: Moment) -> Option<Term> {
        let term = self.place(moment)?;
        let exists = match term {
            Term::Sum(Kind::Product(a, b)) => self.products.binary_search(&(a, b)).is_ok(),
            Term::Rows | Term::Sum(Kind::Column(_)) => true,
        };
        exists.then_some(term)
    }

    fn place(&self, moment: Moment) -> Option<Term> {
        let column = |column| Some(Term::Sum(Kind::Column(column)));
        let product = |a: Column, b: Column| Some(Term::Sum(Kind::Product(a.min(b), a.max(b))));
        let value = |x| self.stored_at(Stored::Value(x));
        let presence = |x| self.stored_at(Stored::Presence(x));
        match moment {
            Moment::Count(x) if !self.optional(x) => value(x).map(|_| Term::Rows),
            Moment::Count(x) => column(presence(x)?),
            Moment::Sum(x) => column(value(x)?),
            Moment::Square(x) => product(value(x)?, value(x)?),
            Moment::PairCount(x, y) => match (self.optional(x), self.optional(y)) {
                (true, true) => product(presence(x)?, presence(y)?),
                (true, false) => column(presence(x)?),
                (false, _) => self.place(Moment::Count(y)),
            },
            Moment::PairSum(x, y) => column(self.beside(x, y)?),
            Moment::PairSquare(x, y) => product(value(x)?, self.beside(x, y)?),
            Moment::PairProduct(x, y) => product(value(x)?, value(y)?),
        }
    }

    /// The columns as they were declared.
    #[must_use]
    pub fn declared(&self) -> &[Declared] {
        &self.declared
    }

    /// Whether a sum of one block of everything that is stored can be asked with a set.
    ///
    /// # Errors
    /// The planner's refusal of what never could.
    pub fn bears(&self, set: Set) -> Result<(), Refusal> {
        let (columns, products) = self.shape();
        let columns = (0..columns).map(|column| Kind::Column(Column(column)));
        let products = products.into_iter().map(|(a, b)| Kind::Product(a, b));
        columns.chain(products).try_for_each(|kind| planner::bears(set, kind, self.bound(kind)))
    }

    /// Bytes of a block of such a table.
    #[must_use]
    pub fn block_length(&self, set: Set) -> usize {
        let (columns, products) = self.shape();
        Manifest { data_set: DataSet([0; 16]), set, columns, products }.block_length()
    }

    /// How many columns of ciphertexts there are, and which products have tags.
    pub(crate) fn shape(&self) -> (u16, Vec<(Column, Column)>) {
        (u16::try_from(self.stored.len()).unwrap_or(u16::MAX), self.products.clone())
    }

    /// What one stored column holds for a row.
    pub(crate) fn item(&self, column: Column, row: &[Option<i64>]) -> i64 {
        let cell = |x: u16| row.get(usize::from(x)).copied().flatten();
        match self.stored.get(usize::from(column.0)) {
            Some(Stored::Value(x)) => cell(*x).unwrap_or(0),
            Some(Stored::Presence(x)) => cell(*x).is_some().into(),
            Some(Stored::Beside(x, y)) => cell(*y).and(cell(*x)).unwrap_or(0),
            None => 0,
        }
    }

    /// What one row adds to a sum.
    pub(crate) fn of_row(&self, kind: Kind, row: &[Option<i64>]) -> i128 {
        let item = |column| i128::from(self.item(column, row));
        match kind {
            Kind::Column(column) => item(column),
            Kind::Product(a, b) => item(a) * item(b),
        }
    }

    /// The greatest magnitude of what one row adds.
    pub(crate) fn bound(&self, kind: Kind) -> u128 {
        let bound = |column: Column| match self.stored.get(usize::from(column.0)) {
            Some(Stored::Value(x) | Stored::Beside(x, _)) => {
                let declared = self.declared.get(usize::from(*x));
                declared.map_or(0, |c| c.min.unsigned_abs().max(c.max.unsigned_abs()).into())
            }
            Some(Stored::Presence(_)) => 1,
            None => 0,
        };
        match kind {
            Kind::Column(column) => bound(column),
            Kind::Product(a, b) => bound(a) * bound(b),
        }
    }

    /// A row's cells again, from what its stored columns hold.
    pub(crate) fn row(&self, item: impl Fn(Column) -> i64) -> Row {
        let cell = |x: u16| {
            let value = item(self.stored_at(Stored::Value(x))?);
            match self.stored_at(Stored::Presence(x)) {
                Some(presence) if item(presence) == 0 => None,
                _ => Some(value),
            }
        };
        (0..u16::try_from(self.declared.len()).unwrap_or(0)).map(cell).collect()
    }
}
