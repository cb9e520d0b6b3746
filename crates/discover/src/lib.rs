//! What an unknown file of readings holds: its form, its times, its owners, its attributes.
//!
//! [`understand`] takes the bytes of a file and gives an [`Understanding`], or says why they are
//! no table of readings. [`write::files`] makes a schema, a source file, policies and a query of
//! it. What cannot be known is said, and what matters besides is a question
//! ([`Understanding::questions`]): nothing is guessed in silence. All numbers are exact decimals.
//!
//! - [`form`], [`encoding`], [`cells`], [`number`], [`clock`]: how a file is written; what reads
//!   recordings uses these too,
//! - [`times`]: which columns are the time,
//! - [`write`](mod@write): the files that an understanding becomes.

pub mod bounds;
pub mod cells;
pub mod clock;
pub mod encoding;
mod error;
pub mod form;
mod marks;
pub mod number;
mod profile;
mod scan;
mod sentinels;
mod table;
pub mod times;
mod units;
mod words;
pub mod write;

/// What a person says about a file, in place of what would be found.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// The column of the owner; `none` for a file of one.
    pub owner: Option<String>,
    /// The columns of the time.
    pub time: Vec<String>,
    /// Their format.
    pub time_format: Option<String>,
    /// The zone of times without one, in seconds east of Greenwich.
    pub zone: Option<i32>,
    /// What stands before the decimals.
    pub decimal: Option<char>,
    /// Whether the day stands before the month.
    pub day_first: Option<bool>,
}

impl Hints {
    /// The position of a column that was named.
    ///
    /// # Errors
    /// [`DiscoverError::NoColumn`] if there is none of the name.
    fn position<'n>(
        &self,
        name: &str,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Result<usize, DiscoverError> {
        names.clone().position(|other| other == name).ok_or_else(|| DiscoverError::NoColumn {
            name: name.to_owned(),
            columns: names.take(40).collect::<Vec<_>>().join(", "),
        })
    }
}

pub use error::DiscoverError;
mod owner;
mod say;
mod tally;
mod understanding;

pub use profile::boolean;
pub use tally::{Tally, Total, Values};
pub use understanding::{Attribute, Understanding, understand};
