//! `alpheus query`: what a query would reveal, before anything runs.
//!
//! It plans over invented owners who choose as the policies say, so that a
//! service finds out what it may ask before it has a single owner.

mod invented;
mod remote;
pub(crate) mod sealed;

use crate::commands::{Format, Globals};
use crate::failure::{Blame, Category, Failure, printed};
use crate::replay::ControllerCount;
use crate::replay::inputs::{read_schema, read_text};
use crate::runtime::planning::{Asking, failure, plan_query};
use alpheus_policy::catalog::Catalog;
use alpheus_policy::explain::{Explanation, explain};
use alpheus_policy::policy::{Policies, ResolvedPolicy};
use alpheus_policy::query::{Create, Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_policy::show::{Table, describe, show};
use alpheus_policy::time::Timestamp;
use invented::Invented;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
pub(crate) use remote::Answered;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus query --schema schema.yaml --policies policies.yaml --query stats.sql
  alpheus query --schema schema.yaml --query 'DESCRIBE FitnessTracker'
  alpheus query --schema schema.yaml --owners 30 --controllers per-owner --query \\
      'EXPLAIN CREATE STREAM hr AS SELECT AVG(heart_rate)
       WINDOW TUMBLING (SIZE 10 SECONDS) FROM FitnessTracker BETWEEN 10 AND 1000'
  alpheus query --server https://localhost:7400 --identity pki/analyst --query stats.sql
  alpheus query --server https://localhost:7400 --identity pki/analyst --results Stats --follow --format csv
  alpheus query --schema schema.yaml --metadata region=California,Texas --query 'SHOW STREAMS'

A query that no policy allows ends with exit code 3, every rule that it breaks, and
the nearest query that would be allowed.";

/// Share of controllers that is taken to fail in a window, for the chance of loss.
const FAILURE_RATE: f64 = 0.01;

/// Arguments of `alpheus query`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The schema, as YAML or .avsc, to plan without a service
    #[arg(long, value_name = "FILE", required_unless_present = "server")]
    pub schema: Option<PathBuf>,
    /// What owners chose; by default the first option that the schema offers
    #[arg(long, value_name = "FILE")]
    pub policies: Option<PathBuf>,
    /// CREATE STREAM, EXPLAIN, SHOW or DESCRIBE: a file, or the text itself
    #[arg(long, value_name = "FILE|SQL", required_unless_present = "results")]
    pub query: Option<String>,
    /// Ask a running service, at this URL, instead of planning over invented owners
    #[arg(long, value_name = "URL", conflicts_with = "schema")]
    pub server: Option<String>,
    /// The folder that says who asks it
    #[arg(long, value_name = "FOLDER", requires = "server")]
    pub identity: Option<PathBuf>,
    /// Print the rows of this running query
    #[arg(long, value_name = "NAME", requires = "server")]
    pub results: Option<String>,
    /// Go on as rows come
    #[arg(long, requires = "results")]
    pub follow: bool,
    /// How many owners to invent, each with one stream
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub owners: u32,
    /// Privacy controllers: `per-owner`, or how many
    #[arg(long, value_name = "per-owner|N", default_value = "1")]
    pub controllers: ControllerCount,
    /// Values of a metadata attribute, spread over the owners; by default those it declares
    #[arg(long, value_name = "NAME=VALUE,…")]
    pub metadata: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// [`Category::Input`] where a file or the query cannot be understood,
/// [`Category::Refused`] where a policy forbids what is asked.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (path, query) = match (&args.server, &args.schema, &args.query) {
        (Some(server), _, _) => return remote::run(args, server, globals),
        (None, Some(schema), Some(query)) => (schema, query),
        _ => return Err("give --schema and --query, or --server").blame(Category::Usage),
    };
    let schema = read_schema(path)?;
    let policies = match &args.policies {
        Some(path) => Policies::from_yaml(&read_text(path)?, &schema).blame_input(path)?,
        None => Policies::for_all(ResolvedPolicy::first_offered(&schema)),
    };
    let query = Query::of(query)?;
    let statement = parse(&query.text)
        .map_err(|error| query.failure(Category::Input, error.render(&query.text)))?;
    let catalog = catalog(args, path, schema, &policies)?;
    let answer = answer(&statement, &catalog, &query, args.policies.is_some())?;
    let mut out = io::stdout().lock();
    printed(print(&answer, globals.format.unwrap_or_default(), &mut out)).map(drop)
}

fn catalog(
    args: &Args,
    path: &Path,
    schema: Schema,
    policies: &Policies,
) -> Result<Catalog, Failure> {
    let invented = Invented::new(args.owners, args.controllers.0, &schema, &args.metadata)?;
    let mut catalog = Catalog::default();
    let id = catalog.add_schema(schema).blame_input(path)?;
    for stream in invented.streams(id, policies) {
        catalog.put_stream(stream);
    }
    Ok(catalog)
}

/// The query's text and where it came from.
struct Query {
    place: String,
    text: String,
}

impl Query {
    /// Reads the file of this name, or takes the argument itself where it has
    /// more than one word and so is no file that is merely missing.
    ///
    /// # Errors
    /// If nothing stands there, or the file cannot be read.
    fn of(argument: &str) -> Result<Query, Failure> {
        if argument.trim().is_empty() {
            return Err(Failure::new(Category::Usage, "nothing is asked")
                .at("--query")
                .with_help("give a file, or a statement such as 'SHOW SCHEMAS', in quotes"));
        }
        let path = Path::new(argument);
        if path.is_file() || !argument.trim().contains(char::is_whitespace) {
            return Ok(Query { place: argument.to_owned(), text: read_text(path)? });
        }
        Ok(Query { place: "--query".to_owned(), text: argument.to_owned() })
    }

    fn failure(&self, category: Category, message: String) -> Failure {
        Failure::new(category, message).at(self.place.clone())
    }
}

/// What is printed.
enum Answer {
    Explanation(Box<Explanation>),
    Tables(Vec<Table>),
}

fn answer(
    statement: &Statement,
    catalog: &Catalog,
    query: &Query,
    policies: bool,
) -> Result<Answer, Failure> {
    match statement {
        Statement::Create(create) => explained(create, false, catalog, query, policies),
        Statement::Explain { privacy, create } => {
            explained(create, *privacy, catalog, query, policies)
        }
        Statement::Show(what) => Ok(Answer::Tables(vec![show(catalog, *what)])),
        Statement::Describe(name) => match describe(catalog, &name.to_string()) {
            Ok(tables) => Ok(Answer::Tables(tables)),
            Err(unknown) => Err(query.failure(Category::Input, unknown.to_string())),
        },
        Statement::Drop(_) => {
            let message = "no query is running here that could be dropped".to_owned();
            let help = "`alpheus query` plans and explains; it runs nothing";
            Err(query.failure(Category::Usage, message).with_help(help))
        }
    }
}

fn explained(
    create: &Create,
    privacy_only: bool,
    catalog: &Catalog,
    query: &Query,
    policies: bool,
) -> Result<Answer, Failure> {
    // A plan's nonce is fresh where it runs. This one never does.
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let asking = Asking::from(Timestamp(0)).with_readers(&invented::consumer);
    let planned = plan_query(create, catalog, asking, &mut rng)
        .map_err(|refusal| failure(&refusal, &query.text, &query.place, policies))?;
    let known = catalog.schema(&create.from.text).ok_or_else(|| {
        query.failure(Category::Input, format!("there is no schema `{}`", create.from))
    })?;
    Ok(Answer::Explanation(Box::new(explain(&planned, known, FAILURE_RATE, privacy_only))))
}

fn print(answer: &Answer, format: Format, out: &mut impl Write) -> io::Result<()> {
    match (format, answer) {
        (Format::Json, Answer::Explanation(explanation)) => print_json(explanation, out),
        (format, Answer::Tables(tables)) => print_tables(tables, format, out),
        (Format::Csv, Answer::Explanation(_)) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "an explanation has no rows for CSV; use --format json or table",
        )),
        (_, Answer::Explanation(explanation)) => write!(out, "{explanation}"),
    }
}

fn print_json(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Prints tables in any format.
///
/// # Errors
/// What the writer says.
pub(crate) fn print_tables(
    tables: &[Table],
    format: Format,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        Format::Json => print_json(&tables, out),
        Format::Table => tables.iter().try_for_each(|table| writeln!(out, "{table}")),
        Format::Csv => {
            for (index, table) in tables.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                let mut csv = csv::Writer::from_writer(&mut *out);
                csv.write_record(&table.columns)?;
                table.rows.iter().try_for_each(|row| csv.write_record(row))?;
                csv.flush()?;
            }
            Ok(())
        }
    }
}
