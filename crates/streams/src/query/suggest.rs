//! `alpheus suggest`: the smallest change with which a refused query is answered.

use super::sample_owners::{SampleOwners, consumer};
use super::{Query, catalog_of};
use crate::replay::ControllerCount;
use crate::runtime::planning::{QueryContext, failure, options};
use alpheus_input::files::read_schema;
use alpheus_input::tables::print_json;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::files::read_text;
use alpheus_node::globals::Globals;
use alpheus_node::settings::Format;
use alpheus_policy::planner::suggest::{Advice, Owners, Suggestion, suggest};
use alpheus_policy::policy::{Policies, ResolvedPolicy};
use alpheus_policy::query::{Create, Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_time::Timestamp;
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  alpheus suggest --schema schema.yaml --policies policies.yaml --query stats.sql
  alpheus suggest --schema schema.yaml --policies policies.yaml --query stats.sql --format json
  alpheus suggest --schema schema.yaml --policies policies.yaml --owners 300 --query stats.sql

A change consists of choices that owners add, clauses of the query, and its settings. No
smaller change would be enough, and no choice allows more than it has to. The exit code is 0
if the query is answered as it is or with the change, and 3 if no change was found.";

/// Arguments of `alpheus suggest`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The schema (YAML or .avsc)
    #[arg(long, value_name = "FILE")]
    pub schema: PathBuf,
    /// The owners' choices; by default the first option that the schema offers
    #[arg(long, value_name = "FILE")]
    pub policies: Option<PathBuf>,
    /// A CREATE STREAM statement: a file, or the text itself
    #[arg(long, value_name = "FILE|SQL")]
    pub query: String,
    /// Number of sample owners, each with one stream
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100_000))]
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
/// [`Category::Input`] if a file or the query cannot be parsed, [`Category::Refused`] if no
/// change was found.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let schema = read_schema(&args.schema)?;
    let policies = match &args.policies {
        Some(path) => Policies::from_yaml(&read_text(path)?, &schema).blame_input(path)?,
        None => Policies::for_all(ResolvedPolicy::first_offered(&schema)),
    };
    let query = Query::of(&args.query)?;
    let create = create(&query)?;
    let sample = SampleOwners::new(args.owners, args.controllers.0, &schema, &args.metadata)?;
    let catalog = catalog_of(&sample, &args.schema, schema.clone(), &policies)?;
    let sections = sample.sections(&policies);
    let owners = Owners { catalog: &catalog, policies: &policies, sections: &sections };
    // A plan that runs gets a fresh nonce. None of these ever runs.
    let asking = QueryContext::from(Timestamp(0)).with_readers(&consumer);
    let advice = suggest(&create, owners, &options(asking, &[0; 32]));
    let reply = match advice {
        Advice::Nothing(_) => Reply::Nothing,
        Advice::Change { refusal, change, without_grants } => Reply::Change {
            because: refusal.violations.iter().map(ToString::to_string).collect(),
            change: Box::new(Files::of(*change, &schema)),
            without_grants: without_grants.map(|other| Box::new(Files::of(*other, &schema))),
        },
        Advice::Impossible { refusal, edits } => {
            let failure = failure(&refusal, &query.text, &query.place, args.policies.is_some());
            return Err(match failure.category() {
                Category::Refused => failure.with_help(format!(
                    "no change of up to {edits} choices, clauses and settings makes it answerable for {} owners",
                    args.owners
                )),
                _ => failure,
            });
        }
    };
    let mut out = io::stdout().lock();
    printed(print(&reply, globals.format.unwrap_or_default(), &mut out)).map(drop)
}

fn create(query: &Query) -> Result<Create, Failure> {
    let statement = parse(&query.text)
        .map_err(|error| query.failure(Category::Input, error.render(&query.text)))?;
    match statement {
        Statement::Create(create) | Statement::Explain { create, .. } => Ok(create),
        Statement::Show(_) | Statement::Describe(_) | Statement::Drop(_) => {
            let message = "this statement asks nothing of owners".to_owned();
            Err(query.failure(Category::Usage, message).with_help("give a CREATE STREAM statement"))
        }
    }
}

/// What the command says.
#[derive(Serialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
enum Reply {
    /// The query is answered as it is.
    Nothing,
    Change {
        because: Vec<String>,
        change: Box<Files>,
        without_grants: Option<Box<Files>>,
    },
}

/// A change in words, and the changed files.
#[derive(Serialize)]
struct Files {
    #[serde(flatten)]
    change: Suggestion,
    sentences: Vec<String>,
    /// The changed policies file, if it changes.
    policies: Option<String>,
}

impl Files {
    fn of(change: Suggestion, schema: &Schema) -> Files {
        let grants = change.changes.iter().any(|change| change.is_grant());
        Files {
            sentences: change.changes.iter().map(ToString::to_string).collect(),
            policies: grants.then(|| change.policies.to_yaml(schema)),
            change,
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for (number, sentence) in (1..).zip(&self.sentences) {
            writeln!(out, "  {number}. {sentence}")?;
        }
        writeln!(out, "It is then answered for {} streams.", self.change.streams)?;
        self.change.accuracy.iter().try_for_each(|what| writeln!(out, "{what}"))?;
        if let Some(policies) = &self.policies {
            write!(out, "\n# policies.yaml\n{policies}")?;
        }
        if self.change.query_changed {
            writeln!(out, "\n-- query.sql\n{};", self.change.query)?;
        }
        Ok(())
    }
}

fn print(reply: &Reply, format: Format, out: &mut impl Write) -> io::Result<()> {
    match (format, reply) {
        (Format::Json, reply) => print_json(reply, out),
        (Format::Csv, _) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a suggestion has no rows for CSV; use --format json or table",
        )),
        (Format::Table, Reply::Nothing) => {
            writeln!(out, "Nothing needs to change: the query is answered as it is.")
        }
        (Format::Table, Reply::Change { because, change, without_grants }) => {
            writeln!(out, "The query is refused:")?;
            because.iter().try_for_each(|why| writeln!(out, "  {why}"))?;
            let many = match change.sentences.len() {
                1 => "one change".to_owned(),
                many => format!("{many} changes, and with no fewer"),
            };
            writeln!(out, "It is answered with {many}:")?;
            change.write(out)?;
            let Some(other) = without_grants else { return Ok(()) };
            writeln!(out, "\nWithout asking owners for more:")?;
            other.write(out)
        }
    }
}
