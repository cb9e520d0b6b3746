//! `alpheus query`: what a query would reveal, before anything runs.
//!
//! It plans over sample owners who choose as the policies file says, so that a
//! service can find out what it may ask before it has any owner.

pub mod begun_query;
pub mod lists;
mod noted_queries;
pub mod opener;
pub mod paths;
pub mod receipts;
mod released_rows;
mod remote_query;
pub mod verification;

use crate::assumed_owners::{AssumedOwners, consumer};
use crate::policy_refusal::{counts_owners, failure};
use crate::replay::ControllerCount;
use crate::statement::Query;
use alpheus_input::files::{read_policies, read_schema};
use alpheus_input::tables::{print_json, print_tables};
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::globals::Globals;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_node::settings::{Format, Settings, path_flag};
use alpheus_policy::catalog::Catalog;
use alpheus_policy::explain::{Explanation, explain};
use alpheus_policy::policy::{Policies, ResolvedPolicy};
use alpheus_policy::query::{Create, Statement, parse};
use alpheus_policy::show::{Table, describe, show};
use alpheus_stream_runtime::query_planner::{QueryContext, plan_query};
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use clap::ArgGroup;
use rand_core::SeedableRng;
pub use remote_query::{StatementResult, cells_below};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The identity of a command that acts as a consumer: in the folder that its flag or the settings name.
///
/// # Errors
/// If neither names one, and as [`open_identity`].
pub fn open_consumer(flag: Option<&PathBuf>, globals: &Globals) -> Result<IdentityFolder, Failure> {
    let settings = globals.settings(vec![("identity", path_flag(flag))])?;
    open_identity(&Settings::needed(&settings.identity, "identity")?, Role::Consumer)
}

const EXAMPLES: &str = "\
Examples:
  alpheus query --schema schema.yaml --policies policies.yaml --query stats.sql
  alpheus query --schema schema.yaml --query 'DESCRIBE FitnessTracker'
  alpheus query --schema schema.yaml --policies policies.yaml --owners 300 --query \\
      'SELECT AVG(heart_rate) WINDOW TUMBLING (SIZE 10 SECONDS)
       FROM FitnessTracker BETWEEN 10 AND 1000'
  alpheus query --server https://localhost:7400 --identity pki/analyst --query stats.sql
  alpheus query --server https://localhost:7400 --identity pki/analyst --results Stats \\
      --follow --format csv
  alpheus query --server https://localhost:7400 --identity pki/analyst --results Stats \\
      --verified
  alpheus query --schema schema.yaml --metadata region=California,Texas --query 'SHOW STREAMS'

If policies forbid a query, the exit code is 3. The error lists every rule that the query
breaks and the nearest query that would be allowed.";

/// Assumed share of controllers that fail in a window, for the probability of loss.
const FAILURE_RATE: f64 = 0.01;

/// Arguments of `alpheus query`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("read").args(["results", "released"]))]
pub struct Args {
    /// The schema (YAML or .avsc), for planning without a service
    #[arg(long, value_name = "FILE", required_unless_present = "server")]
    pub schema: Option<PathBuf>,
    /// The owners' choices; by default the first option that the schema offers
    #[arg(long, value_name = "FILE")]
    pub policies: Option<PathBuf>,
    /// A SELECT, CREATE STREAM, EXPLAIN, SHOW or DESCRIBE statement: a file, or the text itself
    #[arg(long, value_name = "FILE|SQL", required_unless_present_any = ["results", "released"])]
    pub query: Option<String>,
    /// Send the statement to this service. SELECT and CREATE STREAM start the query; EXPLAIN only
    /// explains it
    #[arg(long, value_name = "URL", conflicts_with = "schema")]
    pub server: Option<String>,
    /// The consumer's identity folder
    #[arg(long, value_name = "FOLDER", requires = "server")]
    pub identity: Option<PathBuf>,
    /// Print the result rows of this running query
    #[arg(long, value_name = "NAME", requires = "server")]
    pub results: Option<String>,
    /// For programs: print the rows of all running queries of this folder's consumer, one JSON object per
    /// line, with the meaning of their columns and the cost of a window
    #[arg(long, requires = "server", conflicts_with_all = ["query", "results"])]
    pub released: bool,
    /// Refuse all rows that the service does not report as verified or bounded. Without this flag, such rows
    /// are refused only for queries that this folder's consumer asked to be verified or bounded. Rows that
    /// the service does report so are always checked: a row that differs from what the controllers have
    /// signed, or whose proofs do not hold, is not shown
    #[arg(long, requires = "read")]
    pub verified: bool,
    /// Keep printing rows as they arrive
    #[arg(long, requires = "read")]
    pub follow: bool,
    /// Number of sample owners, each with one stream
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub owners: u32,
    /// Number of privacy controllers, or `per-owner`
    #[arg(long, value_name = "per-owner|N", default_value = "1")]
    pub controllers: ControllerCount,
    /// Values of a metadata attribute, spread over the owners; by default those that the schema declares
    #[arg(long, value_name = "NAME=VALUE,…")]
    pub metadata: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// [`Category::Input`] if a file or the query cannot be parsed,
/// [`Category::Refused`] if a policy forbids the query.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (path, query) = match (&args.server, &args.schema, &args.query) {
        (Some(server), _, _) if args.released => return released_rows::run(args, server, globals),
        (Some(server), _, _) => return remote_query::run(args, server, globals),
        (None, Some(schema), Some(query)) => (schema, query),
        _ => return Err("give --schema and --query, or --server").blame(Category::Usage),
    };
    let schema = read_schema(path)?;
    let policies = match &args.policies {
        Some(path) => read_policies(path, &schema)?,
        None => Policies::for_all(ResolvedPolicy::first_offered(&schema)),
    };
    let query = Query::of(query)?;
    let statement = parse(&query.text).map_err(|error| {
        query.failure(Category::Input, error.render(&query.text)).with_id(ErrorId::QuerySyntax)
    })?;
    let owners = AssumedOwners::invented(args.owners, args.controllers.0, &schema, &args.metadata)?;
    let catalog = owners.catalog(path, schema, &policies)?;
    let assumed = format!(
        "planned for {}; --owners and --controllers plan for others",
        owners.invented_in_words()
    );
    let answer = answer(&statement, &catalog, &query, (args.policies.as_deref(), &assumed))?;
    let (mut out, format) = (io::stdout().lock(), globals.format.unwrap_or_default());
    let said = print(&answer, format, &mut out).and_then(|()| match (&answer, format) {
        (Answer::Explanation(_), Format::Table) => writeln!(out, "\n{assumed}"),
        _ => Ok(()),
    });
    printed(said).map(drop)
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
    of: (Option<&Path>, &str),
) -> Result<Answer, Failure> {
    match statement {
        Statement::Create(create) => explained(create, false, catalog, query, of),
        Statement::Explain { privacy, create } => explained(create, *privacy, catalog, query, of),
        Statement::Show(what) => Ok(Answer::Tables(vec![show(catalog, *what)])),
        Statement::Describe(name) => match describe(catalog, &name.text) {
            Ok(tables) => Ok(Answer::Tables(tables)),
            Err(unknown) => Err(query
                .failure(Category::Input, unknown.to_string())
                .with_id(ErrorId::QueryUnknownName)),
        },
        Statement::Drop(_) => {
            let message = "there is no running query to drop".to_owned();
            let help = "without --server, `alpheus query` only plans and explains";
            Err(query.failure(Category::Usage, message).with_help(help))
        }
    }
}

fn explained(
    create: &Create,
    privacy_only: bool,
    catalog: &Catalog,
    query: &Query,
    (policies, assumed): (Option<&Path>, &str),
) -> Result<Answer, Failure> {
    // A plan that runs gets a fresh nonce. This one never runs.
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let asking = QueryContext::from(Timestamp(0)).with_readers(&consumer);
    let known = catalog.schema(&create.from.text);
    let schema = known.map(|known| &known.schema);
    let planned = plan_query(create, catalog, asking, &mut rng).map_err(|refusal| {
        let failure = failure(&refusal, (&query.text, &query.place), policies, schema);
        match counts_owners(&refusal) {
            true => failure.with_more_help(assumed),
            false => failure,
        }
    })?;
    let known = known.ok_or_else(|| {
        let what = format!("there is no schema `{}`", create.from);
        query.failure(Category::Input, what).with_id(ErrorId::QueryUnknownName)
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
