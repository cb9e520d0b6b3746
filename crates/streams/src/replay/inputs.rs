//! The input files of a replay, read and checked against each other.

use super::Args;
use crate::statement::{self, Query};
use alpheus_input::files::{read_policies, read_schema, unpacked};
use alpheus_input::rows::RecordedStream;
use alpheus_input::rows::{Recording, read};
use alpheus_input::source::Source;
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_text;
use alpheus_policy::document::parse_duration;
use alpheus_policy::policy::{Policies, ResolvedPolicy};
use alpheus_policy::query::{Create, Statement, parse};
use alpheus_policy::schema::{Frames, Schema};
use alpheus_stream_runtime::embedded_deployment::Member;
use alpheus_time::Span;
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The inputs of a replay.
pub struct Inputs {
    /// The schema, with the replay's tick.
    pub schema: Schema,
    /// The owners' choices.
    pub policies: Policies,
    /// The queries, each with its file and text.
    pub queries: Vec<QueryFile>,
    /// The recording.
    pub recording: Recording,
}

/// A query, and where it came from.
pub struct QueryFile {
    /// The file, or the flag with its text.
    pub place: String,
    /// Its text.
    pub text: String,
    /// The query.
    pub create: Create,
}

impl Inputs {
    /// Reads all files.
    ///
    /// # Errors
    /// A [`Failure`] that names the file, the line and a fix.
    pub fn read(args: &Args) -> Result<Inputs, Failure> {
        let files = [&args.schema, &args.source, &args.input].into_iter();
        let queries = args.query.iter().filter(|path| statement::is_file(path));
        files.chain(&args.policies).chain(queries).try_for_each(|path| is_file(path))?;
        let schema = read_schema(&args.schema)?;
        let queries = read_queries(&args.query)?;
        let tick = tick(args, &queries, schema.tick)?;
        let schema = with_tick(schema, tick);
        let policies = match &args.policies {
            Some(path) => read_policies(path, &schema)?,
            None => Policies::for_all(ResolvedPolicy::first_offered(&schema)),
        };
        let source = Source::parse(&read_text(&args.source)?, &schema).blame_input(&args.source)?;
        let file = File::open(&args.input).blame_io(&args.input)?;
        let recording = read(unpacked(&args.input, file), &source, &schema, schema.tick)
            .blame_input(&args.input)?;
        warn_about_unused_names(&policies, &recording);
        Ok(Inputs { schema, policies, queries, recording })
    }

    /// The owners of the recording's streams.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        members(&self.recording)
    }
}

/// A misspelled name would leave its owner with the default policy.
fn warn_about_unused_names(policies: &Policies, recording: &Recording) {
    let owners: HashSet<&str> = recording.streams.iter().map(|s| s.owner.as_str()).collect();
    let unused = policies.named().filter(|name| !owners.contains(name)).count();
    if unused > 0 {
        tracing::warn!(
            unused,
            "some owners named in the policies file have no stream in the input"
        );
    }
}

/// Inputs are read more than once, so they must not be pipes.
fn is_file(path: &Path) -> Result<(), Failure> {
    if std::fs::metadata(path).blame_io(path)?.is_file() {
        return Ok(());
    }
    let what = "not a regular file, and a replay reads its files more than once";
    Err(Failure::new(Category::Input, what)
        .at(path.display().to_string())
        .with_help("write it to a file first"))
}

/// The owners of a recording's streams.
#[must_use]
pub fn members(recording: &Recording) -> Vec<Member> {
    let member = |stream: &RecordedStream| Member {
        key: stream.key.clone(),
        owner: stream.owner.clone(),
        metadata: stream.metadata.clone(),
    };
    recording.streams.iter().map(member).collect()
}

/// Reads the queries, each a file or the text itself.
///
/// # Errors
/// A [`Failure`] that names the file and points at the word.
pub fn read_queries(arguments: &[PathBuf]) -> Result<Vec<QueryFile>, Failure> {
    arguments.iter().map(|argument| read_query(argument)).collect()
}

fn read_query(argument: &Path) -> Result<QueryFile, Failure> {
    let Query { place, text } = Query::of(&argument.to_string_lossy())?;
    let statement = parse(&text).map_err(|error| {
        Failure::new(Category::Input, error.render(&text))
            .at(place.clone())
            .with_id(ErrorId::QuerySyntax)
    })?;
    match statement {
        Statement::Create(create) => Ok(QueryFile { place, text, create }),
        _ => Err(Failure::new(Category::Input, "only CREATE STREAM or SELECT can be replayed")
            .at(place)
            .with_help("use `alpheus query` for EXPLAIN, SHOW and DESCRIBE")),
    }
}

/// The schema with another tick. Where that does not divide its anchor period, the next multiple
/// takes its place.
fn with_tick(schema: Schema, tick: Span) -> Schema {
    let frames = match schema.frames {
        Frames::Ticks { anchor } if tick.0 > 0 => {
            Frames::Ticks { anchor: Span(anchor.0.next_multiple_of(tick.0)) }
        }
        unchanged => unchanged,
    };
    Schema { tick, frames, ..schema }
}

/// The longest tick that a schema may have.
const DAY: u64 = 86_400_000_000;

/// The tick of the flag, or the longest that divides every window. Windows that are no multiples
/// of the schema's tick are refused, and what is then offered instead is a multiple of both.
fn tick(args: &Args, queries: &[QueryFile], usual: Span) -> Result<Span, Failure> {
    let divisor = queries.iter().fold(0, |divisor, query| gcd(divisor, query.create.window.0));
    let Some(text) = &args.tick else {
        let fits = divisor.is_multiple_of(usual.0.max(1));
        let tick = if fits { divisor } else { gcd(divisor, usual.0) };
        return Ok(Span(if tick > DAY { gcd(tick, DAY) } else { tick }));
    };
    let wrong = |what: String| Err(Failure::new(Category::Usage, what).at("--tick"));
    match parse_duration(text) {
        Some(tick) if tick.0 > 0 && divisor % tick.0 == 0 => Ok(tick),
        Some(_) => wrong(format!("does not divide every window; {} does", Span(divisor))),
        None => wrong("not a duration such as `10s` or `1hr`".to_owned()),
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
