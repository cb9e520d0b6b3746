//! Input files of commands: schemas, and recordings that may be compressed.

use crate::convert::{TextReader, to_text};
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_text;
use alpheus_policy::policy::Policies;
use alpheus_policy::schema::Schema;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Reads a schema, as Avro if the file ends in `.avsc`.
///
/// # Errors
/// A [`Failure`] that names the line and a fix.
pub fn read_schema(path: &Path) -> Result<Schema, Failure> {
    let text = read_text(path)?;
    let avro = path.extension().is_some_and(|ending| ending == "avsc");
    if avro { Schema::from_avsc(&text) } else { Schema::from_yaml(&text) }
        .blame_input(path)
        .map_err(|failure| failure.with_id(ErrorId::SchemaInvalid))
}

/// Reads the policies of owners.
///
/// # Errors
/// A [`Failure`] that names file and line.
pub fn read_policies(path: &Path, schema: &Schema) -> Result<Policies, Failure> {
    Policies::from_yaml(&read_text(path)?, schema)
        .blame_input(path)
        .map_err(|failure| failure.with_id(ErrorId::PoliciesInvalid))
}

/// The rows of a file as delimited text: decompressed if its name ends in `.gz`, and converted if
/// it is JSON lines or Parquet ([`crate::convert`]). A file that cannot be converted is an error of the
/// first read.
#[must_use]
pub fn unpacked(path: &Path, file: File) -> Box<dyn Read + Send> {
    Box::new(TextReader::New(decompressed(path, file)))
}

/// The bytes of a file, decompressed if its name ends in `.gz`.
#[must_use]
pub fn decompressed(path: &Path, file: File) -> Box<dyn Read + Send> {
    if path.extension().is_some_and(|ending| ending == "gz") {
        Box::new(MultiGzDecoder::new(BufReader::new(file)))
    } else {
        Box::new(file)
    }
}

/// The bytes of a file of rows as delimited text, as [`unpacked`] gives them.
///
/// # Errors
/// A [`Failure`] if the file cannot be read or converted.
pub fn read_rows(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let file = File::open(path).blame_io(path)?;
    decompressed(path, file).read_to_end(&mut bytes).map_err(|error| unreadable(path, error))?;
    to_text(bytes).blame_input(path)
}

/// A file that ends early, or is not what its name says, is wrong input, as a broken line is.
fn unreadable(path: &Path, error: io::Error) -> Failure {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    let help = match error.kind() {
        InvalidInput => "the file is not compressed with gzip; rename it, or compress it",
        InvalidData | UnexpectedEof => {
            "the compressed file is cut off or damaged; provide the complete file"
        }
        _ => return Failure::new(Category::Io, error).at(path.display().to_string()),
    };
    let failure = Failure::new(Category::Input, error).at(path.display().to_string());
    failure.with_id(ErrorId::RecordingInvalid).with_help(help)
}
