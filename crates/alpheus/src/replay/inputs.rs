//! The files that a replay is given, read and checked against each other.

use super::Args;
use super::rows::{Recording, read};
use super::source::Source;
use crate::failure::{Blame, Category, Failure};
use crate::runtime::embedded::Member;
use alpheus_policy::document::parse_duration;
use alpheus_policy::policy::{Policies, ResolvedPolicy};
use alpheus_policy::query::{Create, Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_policy::time::Span;
use flate2::read::MultiGzDecoder;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// What a replay runs on.
pub struct Inputs {
    /// The schema, with the replay's tick.
    pub schema: Schema,
    /// What owners chose.
    pub policies: Policies,
    /// The queries, each with its file and text.
    pub queries: Vec<QueryFile>,
    /// The recording.
    pub recording: Recording,
}

/// A query and where it stands.
pub struct QueryFile {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// The query.
    pub create: Create,
}

impl Inputs {
    /// Reads all files.
    ///
    /// # Errors
    /// A [`Failure`] that names file, place and remedy.
    pub fn read(args: &Args) -> Result<Inputs, Failure> {
        let files = [&args.schema, &args.source, &args.input].into_iter();
        files.chain(&args.policies).chain(&args.query).try_for_each(|path| is_file(path))?;
        let mut schema = read_schema(&args.schema)?;
        let queries =
            args.query.iter().map(|path| read_query(path)).collect::<Result<Vec<_>, _>>()?;
        schema.tick = tick(args, &queries)?;
        let policies = match &args.policies {
            Some(path) => Policies::from_yaml(&read_text(path)?, &schema).blame_input(path)?,
            None => Policies::for_all(ResolvedPolicy::first_offered(&schema)),
        };
        let source = Source::parse(&read_text(&args.source)?, &schema).blame_input(&args.source)?;
        let file = File::open(&args.input).blame_io(&args.input)?;
        let recording = read(unpacked(&args.input, file), &source, &schema, schema.tick)
            .blame_input(&args.input)?;
        warn_of_strangers(&policies, &recording);
        Ok(Inputs { schema, policies, queries, recording })
    }

    /// Whose streams the recording holds.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        members(&self.recording)
    }
}

/// A name with a typing error would leave its owner with the default.
fn warn_of_strangers(policies: &Policies, recording: &Recording) {
    let owners: HashSet<&str> = recording.streams.iter().map(|s| s.owner.as_str()).collect();
    let strangers = policies.named().filter(|name| !owners.contains(name)).count();
    if strangers > 0 {
        tracing::warn!(
            strangers,
            "owners with an entry of their own in the policies file have no stream in the input"
        );
    }
}

/// What is read more than once must not be a pipe.
fn is_file(path: &Path) -> Result<(), Failure> {
    if std::fs::metadata(path).blame_io(path)?.is_file() {
        return Ok(());
    }
    let what = "a folder, pipe or device, and a replay reads its files more than once";
    Err(Failure::new(Category::Input, what)
        .at(path.display().to_string())
        .with_help("write it to a file first"))
}

/// Whose streams a recording holds.
#[must_use]
pub fn members(recording: &Recording) -> Vec<Member> {
    let member = |stream: &super::rows::RecordedStream| Member {
        key: stream.key.clone(),
        owner: stream.owner.clone(),
        metadata: stream.metadata.clone(),
    };
    recording.streams.iter().map(member).collect()
}

/// Reads a schema, as Avro if the file ends in `.avsc`.
///
/// # Errors
/// A [`Failure`] that names the place and remedy.
pub fn read_schema(path: &Path) -> Result<Schema, Failure> {
    let text = read_text(path)?;
    let avro = path.extension().is_some_and(|ending| ending == "avsc");
    if avro { Schema::from_avsc(&text) } else { Schema::from_yaml(&text) }.blame_input(path)
}

/// Reads a text file.
///
/// # Errors
/// A [`Failure`] that names the file.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).blame_io(path)?;
    String::from_utf8(bytes).map_err(|_| {
        Failure::new(Category::Input, "not a text in UTF-8")
            .at(path.display().to_string())
            .with_help("save it as UTF-8; a compressed file must be unpacked first")
    })
}

fn read_query(path: &Path) -> Result<QueryFile, Failure> {
    let text = read_text(path)?;
    let statement = parse(&text).map_err(|error| {
        Failure::new(Category::Input, error.render(&text)).at(path.display().to_string())
    })?;
    match statement {
        Statement::Create(create) => Ok(QueryFile { path: path.into(), text, create }),
        _ => Err(Failure::new(Category::Input, "only CREATE STREAM can be replayed")
            .at(path.display().to_string())
            .with_help("EXPLAIN, SHOW and DESCRIBE are answered by `alpheus query`")),
    }
}

/// The tick asked for, or the longest that divides every window.
fn tick(args: &Args, queries: &[QueryFile]) -> Result<Span, Failure> {
    let divisor = queries.iter().fold(0, |divisor, query| gcd(divisor, query.create.window.0));
    let Some(text) = &args.tick else { return Ok(Span(divisor)) };
    let wrong = |what: String| Err(Failure::new(Category::Usage, what).at("--tick"));
    match parse_duration(text) {
        Some(tick) if tick.0 > 0 && divisor % tick.0 == 0 => Ok(tick),
        Some(_) => wrong(format!("does not divide every window; {} does", Span(divisor))),
        None => wrong("not a length of time such as `10s` or `1hr`".to_owned()),
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The bytes of a file, unpacked if its name ends in `.gz`.
pub(crate) fn unpacked(path: &Path, file: File) -> Box<dyn Read + Send> {
    if path.extension().is_some_and(|ending| ending == "gz") {
        Box::new(MultiGzDecoder::new(BufReader::new(file)))
    } else {
        Box::new(file)
    }
}
