//! Rows of recorded files and of standard input, read and refused one by one.
//!
//! A bad row is counted and reported with its line and column; it never stops the good rows
//! around it. No error contains a cell's content.
//!
//! - [`convert`]: JSON lines and Parquet as delimited text,
//! - [`files`]: opening and unpacking files, reading schemas,
//! - [`source`]: the source file: how columns become streams of events,
//! - [`cells`]: one cell as a value of the schema,
//! - [`rows`]: a whole recording, one sorted run of events per stream,
//! - [`refusals`]: the rows that were refused,
//! - [`calendar`]: calendar dates,
//! - [`tables`]: results as text, JSON or CSV.

pub mod calendar;
mod cell_form;
pub mod cells;
pub mod convert;
pub mod editor;
pub mod error_ids;
pub mod files;
mod lines;
mod metadata;
mod metadata_form;
mod recording;
pub mod refusals;
mod row_reader;
pub mod rows;
mod shape;
pub mod source;
mod streams;
pub mod tables;
mod time_form;
