//! The query language: the paper's ksql form (Zeph §4.3, figure 4).
//!
//! ```
//! use alpheus_policy::query::{Statement, parse};
//!
//! let statement = parse(
//!     "CREATE STREAM HeartRateCalifornia (heartrate) AS
//!      SELECT AVG(heartrate)
//!      WINDOW TUMBLING (SIZE 1 HOUR)
//!      FROM MedicalSensor BETWEEN 1 AND 1000
//!      WHERE region = California AND age >= 60",
//! )?;
//! let Statement::Create(create) = statement else { unreachable!() };
//! assert_eq!(create.population, Some((1, 1000)));
//! # Ok::<(), alpheus_policy::query::QueryError>(())
//! ```
//!
//! Words are split, and conditions read, by the `sqlparser` library; the
//! clauses that no SQL dialect has are read here over the library's tokens.
//! Reading looks nothing up: see [`crate::planner`].

mod ast;
mod condition;
mod decimal;
mod display;
mod error;
mod function;
mod items;
mod lexer;
mod parser;
mod settings;

pub use ast::{
    BinRequest, Call, ClausePlaces, Comparison, Condition, Create, Item, MaskChoice, Place,
    Settings, Show, Statement, Word,
};
pub use decimal::Decimal;
pub(crate) use display::Words;
pub use error::{At, Problem, QueryError};
pub(crate) use error::{DidYouMean, nearest, point_at};
pub use function::Function;
pub(crate) use items::default_alias;
pub use parser::parse;

#[cfg(test)]
mod tests;
