//! `alpheus suggest`: the smallest change with which a refused query is answered.

mod left_out;
mod windows;

use crate::folder::Folder;
use alpheus_input::files::{read_schema, unpacked};
use alpheus_input::rows::{Recording, read};
use alpheus_input::source::Source;
use alpheus_input::tables::print_json;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::files::read_text;
use alpheus_node::globals::Globals;
use alpheus_node::settings::Format;
use alpheus_policy::planner::suggest::{Advice, Change, Owners, Suggestion, suggest};
use alpheus_policy::planner::{BudgetLife, PlannedQuery, PlanningError};
use alpheus_policy::policy::{Policies, ResolvedPolicy};
use alpheus_policy::query::{Create, Statement, parse};
use alpheus_policy::schema::{OptionKind, Schema};
use alpheus_stream_runtime::bin_widths;
use alpheus_stream_runtime::query_planner::{QueryContext, failure, options};
use alpheus_streams::assumed_owners::{AssumedOwners, consumer};
use alpheus_streams::replay::ControllerCount;
use alpheus_streams::statement::Query;
use alpheus_time::Timestamp;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use windows::Windows;

const EXAMPLES: &str = "\
Examples:
  alpheus suggest my-data --input readings.csv
  alpheus suggest --schema schema.yaml --policies policies.yaml --query stats.sql
  alpheus suggest --schema schema.yaml --policies policies.yaml --query stats.sql --format json
  alpheus suggest --schema schema.yaml --policies policies.yaml --owners 300 --query stats.sql

DIR contains schema.yaml, policies.yaml, query.sql, source.yaml and the recording; flags name other
files. With a recording, the plan is for its owners. Without one, it is for as many invented owners
as --owners says. The output ends with what was assumed.

A change consists of additional choices of owners, clauses of the query, and its settings. No
smaller change is enough, and no choice allows more than necessary. For `error` and `WITHIN`, the
changes that come first keep the error: up to three of limits on events, bounds of the schema,
windows, populations and ε. They come first even where a single larger error would be enough. The
output says what results with noise cost a person per day and per year. The exit code is 0 if the
query is allowed as it is or with the change, 3 if no change was found, and 1 if it is allowed, but
no window of the recording has data of enough owners.";

/// Arguments of `alpheus suggest`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A folder with the files
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The schema (YAML or .avsc)
    #[arg(long, value_name = "FILE", required_unless_present = "dir")]
    pub schema: Option<PathBuf>,
    /// The owners' choices; by default the first option that the schema offers
    #[arg(long, value_name = "FILE")]
    pub policies: Option<PathBuf>,
    /// A SELECT or CREATE STREAM statement: a file, or the text itself
    #[arg(long, value_name = "FILE|SQL", required_unless_present = "dir")]
    pub query: Option<String>,
    /// The recording whose owners the plan is for; by default the only CSV, JSON or Parquet file in DIR
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// How the columns of the recording become events
    #[arg(long, value_name = "FILE")]
    pub source: Option<PathBuf>,
    /// Number of sample owners, each with one stream; by default those of the recording, or 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub owners: Option<u32>,
    /// Number of privacy controllers, or `per-owner`
    #[arg(long, value_name = "per-owner|N", default_value = "1")]
    pub controllers: ControllerCount,
    /// Values of a metadata attribute, spread over sample owners; by default those that the schema declares
    #[arg(long, value_name = "NAME=VALUE,…")]
    pub metadata: Vec<String>,
}

/// What is said before a change of what the query asks for.
const NEAREST: &str = "No limit on events, bounds, window, population or ε that was tried achieves that error. The nearest one that was found follows.";

/// Sample owners, unless their number is given.
const USUAL_OWNERS: u32 = 100;

/// Runs the command.
///
/// # Errors
/// [`Category::Input`] if a file or the query cannot be parsed, [`Category::Refused`] if no
/// change was found, [`Category::Check`] if none of the recording's windows would open; what was
/// found is printed first.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let folder = args.dir.as_deref().map(Folder::at).transpose()?;
    let named = |own: &Option<PathBuf>, of: fn(&Folder) -> &PathBuf| {
        own.clone().or_else(|| folder.as_ref().map(|folder| of(folder).clone()))
    };
    let needed = "give DIR, or --schema and --query";
    let path = named(&args.schema, |folder| &folder.schema).ok_or(needed).blame(Category::Usage)?;
    let schema = read_schema(&path)?;
    let policies = match named(&args.policies, |folder| &folder.policies) {
        Some(path) => Policies::from_yaml(&read_text(&path)?, &schema).blame_input(&path)?,
        None => Policies::for_all(ResolvedPolicy::first_offered(&schema)),
    };
    let query = folder.as_ref().map(|folder| folder.query.display().to_string());
    let query = args.query.clone().or(query).ok_or(needed).blame(Category::Usage)?;
    let query = Query::of(&query)?;
    let create = create(&query)?;
    let source = named(&args.source, |folder| &folder.source);
    let (sample, assumed, recording) = owners(args, folder.as_ref(), source.as_deref(), &schema)?;
    let catalog = sample.catalog(&path, schema.clone(), &policies)?;
    let sections = sample.sections(&policies);
    let owners = Owners { catalog: &catalog, policies: &policies, sections: &sections };
    // A plan that runs gets a fresh nonce. None of these ever runs.
    let asking = QueryContext::from(Timestamp(0)).with_readers(&consumer);
    let has_policies = args.policies.is_some() || folder.is_some();
    let advice = suggest(&create, owners, &options(asking, &[0; 32]));
    let reply = match advice {
        Advice::Nothing(planned) => {
            let windows = recording.map(|own| Windows::of(&planned, (&create, &catalog), &own));
            Reply::nothing(*planned, windows)
        }
        Advice::Change { refusal, change, without_grants } => {
            let files = |change: Suggestion| -> Result<Box<Files>, Failure> {
                let catalog = sample.catalog(&path, schema.clone(), &change.policies)?;
                let after = |own| Windows::after(&change, (&catalog, &schema), own);
                let windows = recording.as_ref().and_then(after);
                Ok(Box::new(Files::of(change, (&create, &schema), windows)))
            };
            Reply::change(&refusal, files(*change)?, without_grants.map(|own| files(*own)))?
        }
        Advice::Impossible { refusal, edits } => {
            let failure = failure(&refusal, &query.text, &query.place, has_policies);
            return Err(impossible(failure, edits, &assumed));
        }
    };
    let reply = AssumedReply { reply, assumed };
    let mut out = io::stdout().lock();
    let _ = printed(print(&reply, globals.format.unwrap_or_default(), &mut out))?;
    reply.reply.check()
}

/// Says how many changes were tried, unless the query itself is wrong.
fn impossible(failure: Failure, edits: usize, assumed: &str) -> Failure {
    if failure.category() != Category::Refused {
        return failure;
    }
    failure.with_help(format!(
        "no change of up to {edits} choices, clauses and settings makes the query allowed; assumed: {assumed}"
    ))
}

/// The owners to plan for, in words who they are, and what they recorded.
fn owners(
    args: &Args,
    folder: Option<&Folder>,
    source: Option<&Path>,
    schema: &Schema,
) -> Result<(AssumedOwners, String, Option<Recording>), Failure> {
    let recordings = folder.map_or(Ok(Vec::new()), Folder::recordings)?;
    let input = args.input.as_ref().or(match &recordings[..] {
        [only] if args.owners.is_none() => Some(only),
        _ => None,
    });
    if let (Some(input), None) = (input, args.owners) {
        let needed = "--source says how the columns of the recording become events";
        let source = source.ok_or(needed).blame(Category::Usage)?;
        let known = Source::parse(&read_text(source)?, schema).blame_input(source)?;
        let file = File::open(input).blame_io(input)?;
        let recording = read(unpacked(input, file), &known, schema, schema.tick);
        let recording = recording.blame_input(input)?;
        let streams = recording.streams.iter().filter(|stream| !stream.is_empty());
        let sample = AssumedOwners::recorded(streams, args.controllers.0);
        let (owners, input) = (sample.owners(), input.display());
        let assumed = format!("the {owners} owners of {input}, {}", sample.controllers_in_words());
        return Ok((sample, assumed, Some(recording)));
    }
    let many = args.owners.unwrap_or(USUAL_OWNERS);
    let sample = AssumedOwners::invented(many, args.controllers.0, schema, &args.metadata)?;
    let hint = match args.owners {
        Some(_) => "",
        None => "; --input takes those of a recording, --owners another number",
    };
    let assumed = sample.invented_in_words() + hint;
    Ok((sample, assumed, None))
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
    Nothing {
        /// With a recording: how many of its windows have data of enough owners.
        #[serde(skip_serializing_if = "Option::is_none")]
        windows: Option<Box<Windows>>,
        /// That windows need more owners than the query asks for, in words.
        #[serde(skip_serializing_if = "Option::is_none")]
        raised: Option<String>,
        /// If it says how exact results have to be: the error of each column, in words; and how wide
        /// the bins are that a column is read from.
        accuracy: Vec<String>,
        /// What results with noise cost one owner, in words.
        cost: Option<String>,
        /// The same in numbers.
        budget: Option<BudgetLife>,
    },
    Change {
        because: Vec<String>,
        change: Box<Files>,
        without_grants: Option<Box<Files>>,
    },
}

impl Reply {
    /// Fails if the query is allowed, but has no result.
    fn check(&self) -> Result<(), Failure> {
        match self {
            Reply::Nothing { windows: Some(windows), .. } => windows.check(),
            _ => Ok(()),
        }
    }

    fn change(
        refusal: &PlanningError,
        change: Box<Files>,
        without_grants: Option<Result<Box<Files>, Failure>>,
    ) -> Result<Reply, Failure> {
        Ok(Reply::Change {
            because: refusal.sentences().into_iter().map(|(_, what)| what).collect(),
            change,
            without_grants: without_grants.transpose()?,
        })
    }

    fn nothing(planned: PlannedQuery, windows: Option<Windows>) -> Reply {
        let (cost, budget, raised) = (planned.cost(), planned.budget(), planned.raised());
        let windows = windows.map(Box::new);
        let mut accuracy = planned.accuracy;
        accuracy.extend(planned.plans.first().into_iter().flat_map(bin_widths::in_words));
        Reply::Nothing { windows, raised, cost, budget, accuracy }
    }
}

/// The reply, and for whom it holds.
#[derive(Serialize)]
struct AssumedReply {
    #[serde(flatten)]
    reply: Reply,
    /// Which owners and controllers were planned for.
    assumed: String,
}

/// A change in words, and the changed files.
#[derive(Serialize)]
struct Files {
    #[serde(flatten)]
    change: Suggestion,
    sentences: Vec<String>,
    /// The changed policies file, if it changes.
    policies: Option<String>,
    /// If the query loses its noise: how to have some instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    instead: Option<String>,
    /// With a recording: how many of its windows then have data of enough owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    windows: Option<Windows>,
}

impl Files {
    fn of(
        change: Suggestion,
        (asked, schema): (&Create, &Schema),
        windows: Option<Windows>,
    ) -> Files {
        let grants = change.changes.iter().any(|change| change.is_grant());
        Files {
            sentences: change.changes.iter().map(ToString::to_string).collect(),
            policies: grants.then(|| change.policies.to_yaml(schema)),
            instead: noise_instead(asked, &change.query, schema),
            windows,
            change,
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for (number, sentence) in (1..).zip(&self.sentences) {
            writeln!(out, "  {number}. {sentence}")?;
        }
        writeln!(out, "It is then answered for {} streams.", self.change.streams)?;
        self.windows.iter().try_for_each(|windows| windows.write_after(out))?;
        write_noise(&self.change.accuracy, self.change.cost.as_ref(), out)?;
        self.instead.iter().try_for_each(|what| writeln!(out, "{what}"))?;
        if let Some(policies) = &self.policies {
            write!(out, "\n# policies.yaml\n{policies}")?;
        }
        if self.change.query_changed {
            writeln!(out, "\n-- query.sql\n{};", self.change.query)?;
        }
        Ok(())
    }
}

/// Which option gives results with noise, if a query asked for noise and is suggested without.
fn noise_instead(asked: &Create, suggested: &str, schema: &Schema) -> Option<String> {
    let noisy = |create: &Create| {
        let own = &create.settings;
        own.epsilon.is_some() || own.events.is_some() || own.accuracy.is_asked()
    };
    let is_lost = match parse(suggested) {
        Ok(Statement::Create(after)) => noisy(asked) && !noisy(&after),
        _ => false,
    };
    let attributes = (0u16..).zip(&schema.attributes).map(|(at, _)| at);
    let mut options = attributes.flat_map(|at| schema.choices(at));
    let option = options.find(|own| is_lost && own.kind == OptionKind::DpAggregate)?;
    Some(format!(
        "For results with noise, let owners choose `{}` in policies.yaml instead; the query then keeps its error.",
        option.name
    ))
}

/// How exact results with noise are, and what they cost an owner.
fn write_noise(accuracy: &[String], cost: Option<&String>, out: &mut impl Write) -> io::Result<()> {
    accuracy.iter().chain(cost).try_for_each(|what| writeln!(out, "{what}"))
}

fn print(answer: &AssumedReply, format: Format, out: &mut impl Write) -> io::Result<()> {
    match format {
        Format::Json => return print_json(answer, out),
        Format::Csv => {
            let what = "a suggestion has no rows for CSV; use --format json or table";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        Format::Table => {}
    }
    match &answer.reply {
        Reply::Nothing { windows, raised, accuracy, cost, .. } => {
            match windows {
                Some(windows) => windows.write(out)?,
                None => writeln!(out, "Nothing needs to change: the query is answered as it is.")?,
            }
            raised.iter().try_for_each(|raised| writeln!(out, "{raised}"))?;
            write_noise(accuracy, cost.as_ref(), out)?;
        }
        Reply::Change { because, change, without_grants } => {
            writeln!(out, "The query is refused:")?;
            because.iter().try_for_each(|why| writeln!(out, "  {}", why.replace('\n', "\n  ")))?;
            let many = match change.sentences.len() {
                1 => "one change".to_owned(),
                many if change.change.changes.iter().any(Change::keeps_error) => {
                    format!("{many} changes, the fewest that keep its error")
                }
                many => format!("{many} changes, and with no fewer"),
            };
            if change.change.changes.iter().any(Change::loosens_error) {
                writeln!(out, "{NEAREST}")?;
            }
            writeln!(out, "It is answered with {many}:")?;
            change.write(out)?;
            if let Some(other) = without_grants {
                writeln!(out, "\nWithout asking owners for more:")?;
                other.write(out)?;
            }
        }
    }
    writeln!(out, "\nAssumed: {}.", answer.assumed)
}
