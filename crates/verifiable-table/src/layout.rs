//! Maps a schema's columns to ciphertext columns and their products.

use crate::error::PlanError;
use crate::label::{Column, DataSet, Kind};
use crate::messages::Manifest;
use crate::parameters::Set;
use crate::planner;
use crate::ring::ITEM_LIMIT;
use serde::{Deserialize, Serialize};

/// A column's declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDeclaration {
    /// The smallest value.
    pub min: i64,
    /// The largest value.
    pub max: i64,
    /// Whether cells may be empty.
    pub optional: bool,
    /// Whether to support sums of squares.
    pub squares: bool,
}

/// A row, with one cell for each declared column.
pub type Row = Vec<Option<i64>>;

/// The content of a stored column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum StoredColumn {
    /// x, or zero where the cell is empty.
    Value(u16),
    /// 1 where the cell has a value, 0 where it is empty.
    Presence(u16),
    /// x where the second column has a value too, else zero.
    ValueWith(u16, u16),
}

/// A sum over rows, the building block of statistics. Columns are declared ones, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// The number of cells of x that are not empty.
    Count(u16),
    /// Σx.
    Sum(u16),
    /// Σx².
    Square(u16),
    /// The number of rows where both have a value.
    PairCount(u16, u16),
    /// Σx over rows where y has a value too; x comes first.
    PairSum(u16, u16),
    /// Σx² over rows where y has a value too.
    PairSquare(u16, u16),
    /// Σxy.
    PairProduct(u16, u16),
}

/// The terms that a moment sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// Rows. The owner knows their number.
    Rows,
    /// Ciphertexts of this kind.
    Sum(Kind),
}

/// The layout of a table, a function of declared columns and registered pairs alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    declarations: Vec<ColumnDeclaration>,
    pairs: Vec<(u16, u16)>,
    stored: Vec<StoredColumn>,
    products: Vec<(Column, Column)>,
}

/// Columns or pairs that cannot form a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// No columns, or too many.
    #[error("a table has 1 to 64 columns, but this one has {0}")]
    Columns(usize),
    /// Bounds are reversed or too wide.
    #[error("column {0}: bounds must be in order and within ±2^50: swap them or reduce the scale")]
    Bounds(usize),
    /// A pair names a missing column, or one column twice.
    #[error("pair {0}: a pair must name two different columns of the table")]
    Pair(usize),
    /// The columns and pairs take too many ciphertexts or products.
    #[error(
        "columns and pairs need {0} ciphertexts or products, but at most 256 are allowed: register fewer pairs"
    )]
    TooMany(usize),
}

impl Layout {
    /// Lays out a table. Each pair names two different columns, in either order.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn new(
        declarations: Vec<ColumnDeclaration>,
        pairs: &[(u16, u16)],
    ) -> Result<Self, LayoutError> {
        if !(1..=64).contains(&declarations.len()) {
            return Err(LayoutError::Columns(declarations.len()));
        }
        let fits =
            |c: &ColumnDeclaration| c.min <= c.max && c.min > -ITEM_LIMIT && c.max < ITEM_LIMIT;
        if let Some(at) = declarations.iter().position(|column| !fits(column)) {
            return Err(LayoutError::Bounds(at));
        }
        let valid = |(a, b): &(u16, u16)| a != b && usize::from(*a.max(b)) < declarations.len();
        if let Some(at) = pairs.iter().position(|pair| !valid(pair)) {
            return Err(LayoutError::Pair(at));
        }
        let mut pairs: Vec<_> = pairs.iter().map(|(a, b)| (*a.min(b), *a.max(b))).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut layout = Self { declarations, pairs, stored: Vec::new(), products: Vec::new() };
        layout.store();
        let length = layout.stored.len().max(layout.products.len());
        if length > usize::from(crate::messages::MAX_COLUMNS) {
            return Err(LayoutError::TooMany(length));
        }
        Ok(layout)
    }

    fn store(&mut self) {
        let columns = 0..u16::try_from(self.declarations.len()).unwrap_or(0);
        self.stored.extend(columns.clone().map(StoredColumn::Value));
        let optional: Vec<u16> = columns.clone().filter(|x| self.optional(*x)).collect();
        self.stored.extend(optional.into_iter().map(StoredColumn::Presence));
        let both = self.pairs.iter().flat_map(|(x, y)| [(*x, *y), (*y, *x)]);
        let with: Vec<_> = both.filter(|(_, y)| self.optional(*y)).collect();
        self.stored.extend(with.into_iter().map(|(x, y)| StoredColumn::ValueWith(x, y)));
        let squares =
            columns.filter(|x| self.declarations[usize::from(*x)].squares).map(Moment::Square);
        let pairs = self.pairs.iter().flat_map(|(x, y)| {
            [
                Moment::PairCount(*x, *y),
                Moment::PairProduct(*x, *y),
                Moment::PairSquare(*x, *y),
                Moment::PairSquare(*y, *x),
            ]
        });
        let wanted: Vec<Moment> = squares.chain(pairs).collect();
        let products = wanted.into_iter().filter_map(|moment| match self.find_term(moment)? {
            Term::Sum(Kind::Product(a, b)) => Some((a, b)),
            _ => None,
        });
        self.products = products.collect();
        self.products.sort_unstable();
        self.products.dedup();
    }

    fn optional(&self, column: u16) -> bool {
        self.declarations.get(usize::from(column)).is_some_and(|column| column.optional)
    }

    fn stored_at(&self, wanted: StoredColumn) -> Option<Column> {
        let at = self.stored.iter().position(|stored| *stored == wanted)?;
        u16::try_from(at).ok().map(Column)
    }

    /// The column with x where y has a value too.
    fn value_with(&self, x: u16, y: u16) -> Option<Column> {
        let stored =
            if self.optional(y) { StoredColumn::ValueWith(x, y) } else { StoredColumn::Value(x) };
        self.stored_at(stored)
    }

    /// The terms that a moment sums. `None` if the table has no tags for them.
    #[must_use]
    pub fn term(&self, moment: Moment) -> Option<Term> {
        let term = self.find_term(moment)?;
        let exists = match term {
            Term::Sum(Kind::Product(a, b)) => self.products.binary_search(&(a, b)).is_ok(),
            Term::Rows | Term::Sum(Kind::Column(_)) => true,
        };
        exists.then_some(term)
    }

    fn find_term(&self, moment: Moment) -> Option<Term> {
        let column = |column| Some(Term::Sum(Kind::Column(column)));
        let product = |a: Column, b: Column| Some(Term::Sum(Kind::Product(a.min(b), a.max(b))));
        let value = |x| self.stored_at(StoredColumn::Value(x));
        let presence = |x| self.stored_at(StoredColumn::Presence(x));
        match moment {
            Moment::Count(x) if !self.optional(x) => value(x).map(|_| Term::Rows),
            Moment::Count(x) => column(presence(x)?),
            Moment::Sum(x) => column(value(x)?),
            Moment::Square(x) => product(value(x)?, value(x)?),
            Moment::PairCount(x, y) => match (self.optional(x), self.optional(y)) {
                (true, true) => product(presence(x)?, presence(y)?),
                (true, false) => column(presence(x)?),
                (false, _) => self.find_term(Moment::Count(y)),
            },
            Moment::PairSum(x, y) => column(self.value_with(x, y)?),
            Moment::PairSquare(x, y) => product(value(x)?, self.value_with(x, y)?),
            Moment::PairProduct(x, y) => product(value(x)?, value(y)?),
        }
    }

    /// The declared columns.
    #[must_use]
    pub fn declarations(&self) -> &[ColumnDeclaration] {
        &self.declarations
    }

    /// Checks that this set supports a sum over one block of everything that is stored.
    ///
    /// # Errors
    /// The planner's error for a sum that no range allows.
    pub fn check_set(&self, set: Set) -> Result<(), PlanError> {
        let (columns, products) = self.shape();
        let columns = (0..columns).map(|column| Kind::Column(Column(column)));
        let products = products.into_iter().map(|(a, b)| Kind::Product(a, b));
        columns
            .chain(products)
            .try_for_each(|kind| planner::check_single_block(set, kind, self.bound(kind)))
    }

    /// The length of a block in bytes.
    #[must_use]
    pub fn block_length(&self, set: Set) -> usize {
        let (columns, products) = self.shape();
        Manifest { data_set: DataSet([0; 16]), set, columns, products }.block_length()
    }

    /// The number of ciphertext columns, and the products that have tags.
    pub(crate) fn shape(&self) -> (u16, Vec<(Column, Column)>) {
        (u16::try_from(self.stored.len()).unwrap_or(u16::MAX), self.products.clone())
    }

    /// The item of a stored column for a row.
    pub(crate) fn item(&self, column: Column, row: &[Option<i64>]) -> i64 {
        let cell = |x: u16| row.get(usize::from(x)).copied().flatten();
        match self.stored.get(usize::from(column.0)) {
            Some(StoredColumn::Value(x)) => cell(*x).unwrap_or(0),
            Some(StoredColumn::Presence(x)) => cell(*x).is_some().into(),
            Some(StoredColumn::ValueWith(x, y)) => cell(*y).and(cell(*x)).unwrap_or(0),
            None => 0,
        }
    }

    /// A row's contribution to a sum.
    pub(crate) fn row_value(&self, kind: Kind, row: &[Option<i64>]) -> i128 {
        let item = |column| i128::from(self.item(column, row));
        match kind {
            Kind::Column(column) => item(column),
            Kind::Product(a, b) => item(a) * item(b),
        }
    }

    /// The largest magnitude of a row's contribution.
    pub(crate) fn bound(&self, kind: Kind) -> u128 {
        let bound = |column: Column| match self.stored.get(usize::from(column.0)) {
            Some(StoredColumn::Value(x) | StoredColumn::ValueWith(x, _)) => {
                let declared = self.declarations.get(usize::from(*x));
                declared.map_or(0, |c| c.min.unsigned_abs().max(c.max.unsigned_abs()).into())
            }
            Some(StoredColumn::Presence(_)) => 1,
            None => 0,
        };
        match kind {
            Kind::Column(column) => bound(column),
            Kind::Product(a, b) => bound(a) * bound(b),
        }
    }

    /// Reconstructs a row's cells from the items of its stored columns.
    pub(crate) fn row(&self, item: impl Fn(Column) -> i64) -> Row {
        let cell = |x: u16| {
            let value = item(self.stored_at(StoredColumn::Value(x))?);
            match self.stored_at(StoredColumn::Presence(x)) {
                Some(presence) if item(presence) == 0 => None,
                _ => Some(value),
            }
        };
        (0..u16::try_from(self.declarations.len()).unwrap_or(0)).map(cell).collect()
    }
}
