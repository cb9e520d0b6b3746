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
//! The `sqlparser` library splits the text into tokens and parses conditions. The clauses
//! that no SQL dialect has are parsed here from the library's tokens. Parsing does not look
//! up names; [`crate::planner`] does.

mod ast;
mod condition;
mod display;
mod error;
mod function;
mod items;
mod lexer;
mod parser;
mod settings;
mod windows;

pub use crate::decimal::Decimal;
pub use crate::selection::Comparison;
pub use ast::{
    Accuracy, BinRequest, Call, ClauseLocations, Condition, Create, IntegrityChoice, Item,
    MaskChoice, MembershipChoice, Settings, Show, SourceLocation, Statement, Word,
};
pub(crate) use display::{Percent, QuerySpan};
pub(crate) use error::{DidYouMean, HintOr, OneOf, nearest, point_at};
pub use error::{Location, QueryError, SyntaxError};
pub use function::Function;
pub(crate) use items::default_alias;
pub use parser::{is_plain_name, parse};

#[cfg(test)]
mod tests;
