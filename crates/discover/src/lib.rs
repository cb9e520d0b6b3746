//! What an unknown file of readings holds: its form, its times, its owners, its attributes.
//!
//! [`understand()`] takes the bytes of a file and gives an [`Understanding`], or says why they are
//! no table of readings. [`write::files`] makes a schema, a source file, policies and a query of
//! it. It states what it cannot know, and asks about it if it matters
//! ([`Understanding::questions`]): nothing is guessed in silence. All numbers are exact decimals.
//!
//! - [`form`], [`encoding`], [`cells`], [`number`], [`decimal_mark`], [`clock`]: how a file is written; what reads
//!   recordings uses these too,
//! - [`times`]: which columns are the time,
//! - [`write`](mod@write): the files that an understanding becomes.

mod attribute;
pub mod bounds;
mod calendar;
pub mod cells;
pub mod clock;
mod codes;
mod column_words;
mod columns;
mod constant;
pub mod decimal_mark;
mod distinct_count;
mod doubts;
pub mod encoding;
mod error;
mod events;
mod extremes;
mod facts;
mod fates;
pub mod form;
mod hash;
mod headings;
mod hints;
mod id_words;
mod kind_names;
mod kinds;
mod legend;
mod lengths;
mod levels;
mod load;
mod marks;
mod melt;
mod near_numbers;
mod nights;
pub mod number;
mod number_forms;
mod owner_groups;
mod owner_guess;
mod part;
mod persons;
pub mod plural;
mod possible_facts;
mod profile;
mod quantities;
mod rivals;
mod rounds;
mod row_numbers;
mod scan;
mod sentinels;
mod separators;
mod series;
mod shapes;
mod slow;
mod snapshot;
mod sparse_attributes;
mod spellings;
mod steps;
mod sureness;
mod table;
mod time_across;
mod time_parts;
pub mod times;
mod totals;
mod totals_below;
mod units;
mod unnamed_kinds;
mod visits;
mod vocabulary;
mod watch;
mod wide_columns;
mod wide_file;
mod windows;
mod words;
pub mod write;

pub use error::DiscoverError;
pub use hints::{Hints, OutlierTreatment};
mod one_owner;
mod owner;
mod owner_rows;
mod owner_words;
mod pairs;
mod say;
mod tally;
mod understand;
mod understanding;

pub use attribute::Attribute;
pub use part::{Cut, Part};
pub use profile::truth;
pub use steps::Course;
pub use sureness::Sureness;
pub use tally::{Tally, Total, Values};
pub use understand::{understand, understand_watched};
pub use understanding::Understanding;
pub use watch::Watch;
pub use wide_file::WideFile;
