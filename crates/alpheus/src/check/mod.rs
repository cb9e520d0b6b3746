//! `alpheus check`: whether files that people wrote are valid, and JSON Schemas for editors.
//!
//! - [`kinds`]: what a file is, and what is wrong with it,
//! - [`editor`]: the JSON Schemas that no other crate has.

mod editor;
mod kinds;

use alpheus_input::editor::source_schema;
use alpheus_input::files::read_schema;
use alpheus_input::source::Source;
use alpheus_input::tables::print_json;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::files::read_text;
use alpheus_node::globals::Globals;
use alpheus_node::settings::Format;
use alpheus_policy::editor::{EditedFile, json_schema};
use alpheus_policy::policy::{Policies, ResolvedPolicy, Section};
use alpheus_policy::query::Statement;
use alpheus_policy::schema::{OptionKind, Schema};
use alpheus_stream_runtime::embedded_deployment::Controllers;
use alpheus_stream_runtime::query_planner::{QueryContext, plan_query};
use alpheus_streams::assumed_owners::{AssumedOwners, consumer};
use alpheus_time::Timestamp;
use clap::ValueEnum;
use kinds::{MAPPING, POLICIES, QUERY, SCHEMA, SOURCE, UNKNOWN, kind, named, problem, schema_of};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus check examples/fitness/schema.yaml examples/fitness/policies.yaml \\
      examples/fitness/source.yaml
  alpheus check alpheus.toml
  alpheus check my-data
  alpheus check --json-schema schema > alpheus-schema.json

For a folder, every Alpheus file in it and in its subfolders is checked: schemas, policies, sources,
profiles, schemas of tables, statistics plans, OTLP mappings (.json), queries and alpheus.toml.
Policies, sources and queries are checked against the schema that they name, and profiles and
mappings against the one next to them, so name its file too. To find out whether policies allow a
query, use `alpheus query`.

An editor with the YAML language server uses the JSON Schema if the file has this line:
# yaml-language-server: $schema=alpheus-schema.json";

/// Arguments of `alpheus check`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Schemas, policies, sources, profiles, schemas of tables, statistics plans, OTLP mappings and
    /// settings, and queries (.sql); or folders with such files
    #[arg(value_name = "FILE|DIR", required_unless_present = "json_schema")]
    pub files: Vec<PathBuf>,
    /// Print the JSON Schema of a kind of file instead, for editors
    #[arg(long, value_enum, value_name = "KIND", conflicts_with = "files")]
    pub json_schema: Option<Kind>,
}

/// A kind of file that there is a JSON Schema of.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Kind {
    /// What can be offered
    Schema,
    /// What owners chose
    Policies,
    /// How the rows of a file become events
    Source,
    /// How generated data behaves
    Profile,
    /// alpheus.toml, of all roles
    Settings,
    /// What a verifiable table holds
    Table,
    /// What accountable statistics measure
    Plan,
    /// What OpenTelemetry's metrics become
    Mapping,
}

/// Levels of folders below a folder that is named.
const DEPTH: usize = 4;

/// What is said of a query without a schema.
const UNCHECKED: &str =
    "no schema is among the valid files, so names and windows were not checked; name its file too";

/// What was found in one file.
#[derive(Debug, Serialize)]
struct Finding {
    file: String,
    kind: &'static str,
    /// With the place, if something is wrong.
    problem: Option<String>,
    /// What is valid, but may not be meant.
    note: Option<String>,
}

/// Some files are not valid.
#[derive(Debug, thiserror::Error)]
#[error("{wrong} of {all} files are not valid")]
struct CheckError {
    wrong: usize,
    all: usize,
}

/// Runs the command.
///
/// # Errors
/// [`Category::Input`] if a file is not valid; the findings are printed first.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if let Some(kind) = args.json_schema {
        let found = match kind {
            Kind::Schema => json_schema(EditedFile::Schema),
            Kind::Policies => json_schema(EditedFile::Policies),
            Kind::Source => source_schema(),
            Kind::Profile => editor::profile(),
            Kind::Settings => editor::settings(),
            Kind::Table => editor::table_schema(),
            Kind::Plan => editor::plan(),
            Kind::Mapping => editor::mapping(),
        };
        return printed(print_json(&found, &mut out)).map(drop);
    }
    let findings = check(&found(&args.files)?, globals.parts)?;
    let _ = printed(print(&findings, globals.format.unwrap_or_default(), &mut out))?;
    let wrong = findings.iter().filter(|finding| finding.problem.is_some()).count();
    if wrong == 0 {
        return Ok(());
    }
    Err(Failure::new(Category::Input, CheckError { wrong, all: findings.len() }))
}

fn print(findings: &[Finding], format: Format, out: &mut impl Write) -> io::Result<()> {
    match format {
        Format::Json => return print_json(&findings, out),
        Format::Csv => {
            let what = "findings are not a table; use --format json or table";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        Format::Table => {}
    }
    for Finding { file, kind, problem, note } in findings {
        match problem {
            None => writeln!(out, "{file}: {kind}: valid")?,
            Some(problem) => writeln!(out, "{file}: {kind}: {problem}")?,
        }
        if let Some(note) = note {
            writeln!(out, "{file}: note: {note}")?;
        }
    }
    Ok(())
}

/// The files themselves, and those of ours in the folders among them.
fn found(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        ours(path, DEPTH, &mut files)?;
        if files.len() == before {
            let what = "the folder holds no schema, policies, source, profile, table schema, statistics plan, OTLP mapping, query or alpheus.toml";
            let failure = Failure::new(Category::Input, what).at(path.display().to_string());
            return Err(failure.with_help("name the files, or the folder that holds them"));
        }
    }
    Ok(files)
}

/// Adds the files of ours in a folder and so many levels below, in the order of their names.
/// Hidden ones and links are passed over.
fn ours(folder: &Path, levels: usize, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let entries = std::fs::read_dir(folder).blame_io(folder)?;
    let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type());
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        match kind {
            Ok(kind) if kind.is_dir() && levels > 0 => ours(&path, levels - 1, files)?,
            Ok(kind) if kind.is_file() && is_ours(&path) => files.push(path),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a file of a folder is one of ours. Others may be anything.
fn is_ours(path: &Path) -> bool {
    let text = || read_text(path).unwrap_or_default();
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("sql") => true,
        Some("toml") => path.ends_with("alpheus.toml"),
        // Avro schemas may be of others.
        Some("avsc") => text().contains("\"alpheus\""),
        // Files of others may have the same keys, but not the same names.
        Some("json") => path.ends_with("otlp.json"),
        Some("yaml" | "yml") => {
            !matches!(kind(path, &text()), UNKNOWN | MAPPING) || has_our_name(path)
        }
        _ => false,
    }
}

/// What cannot be parsed has no keys to tell.
fn has_our_name(path: &Path) -> bool {
    ["schema.yaml", "policies.yaml", "source.yaml", "profile.yaml"]
        .iter()
        .any(|name| path.ends_with(name))
}

/// A file's text and what it seems to be.
struct Input<'a> {
    path: &'a Path,
    text: String,
    kind: &'static str,
}

/// Schemas come first: other files are checked against them.
fn check(paths: &[PathBuf], parts: &[&str]) -> Result<Vec<Finding>, Failure> {
    let read = |path: &PathBuf| read_text(path).map(|text| (path.clone(), text));
    let texts = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let inputs: Vec<Input<'_>> = texts
        .iter()
        .map(|(path, text)| Input { path, kind: kind(path, text), text: text.clone() })
        .collect();
    let schemas: Vec<(&Path, Schema)> = inputs
        .iter()
        .filter(|input| input.kind == SCHEMA)
        .filter_map(|input| Some((input.path, read_schema(input.path).ok()?)))
        .collect();
    let finding = |input: &Input<'_>| Finding {
        file: input.path.display().to_string(),
        kind: input.kind,
        problem: problem(input, &schemas, parts).err(),
        note: match input.kind {
            POLICIES => exact_beside_noise(input, &schemas),
            SOURCE => naming_metadata(input, &schemas),
            QUERY if schemas.is_empty() => Some(UNCHECKED.to_owned()),
            _ => None,
        },
    };
    Ok(inputs.iter().map(finding).collect())
}

/// Attributes that policies release exactly although others only with noise: an attribute's own line
/// stays in force when the line for all is changed.
fn exact_beside_noise(input: &Input<'_>, schemas: &[(&Path, Schema)]) -> Option<String> {
    let schema = named(input, schemas).ok()?;
    let policies = Policies::from_yaml(&input.text, schema).ok()?;
    let default = policies.of_section(Section::Default);
    let (mut exact, mut noisy) = (Vec::new(), false);
    for (attribute, own) in schema.attributes.iter().zip(&default.attributes) {
        let kinds = || own.alternatives.iter().map(|option| option.kind);
        let is_noisy = |kind| kind == OptionKind::DpAggregate;
        noisy |= kinds().any(is_noisy);
        if kinds().any(|kind| kind != OptionKind::Private && !is_noisy(kind)) {
            exact.push(format!("`{}`", attribute.name));
        }
    }
    let (names, is) = (exact.join(", "), if exact.len() == 1 { "is" } else { "are" });
    (noisy && !exact.is_empty()).then(|| {
        format!("{names} {is} released without noise by default, other attributes only with noise: is that meant?")
    })
}

/// Metadata that names streams or owners, although all metadata is public.
fn naming_metadata(input: &Input<'_>, schemas: &[(&Path, Schema)]) -> Option<String> {
    let source = Source::parse(&input.text, named(input, schemas).ok()?).ok()?;
    let names: Vec<String> = source.naming_metadata().map(|name| format!("`{name}`")).collect();
    let (is, name) = if names.len() == 1 { ("is", "names") } else { ("are", "name") };
    let names = names.join(", ");
    (!names.is_empty()).then(|| {
        format!("{names} {is} public and {name} owners or their streams, so everyone who may ask learns who takes part: is that meant? A value that many owners share, such as a region, names nobody")
    })
}

/// Whether its schema supports a query, if that is among the files.
fn fits_schema(
    statement: &Statement,
    input: &Input<'_>,
    schemas: &[(&Path, Schema)],
) -> Result<(), String> {
    const OWNERS: u32 = 20;
    let (Statement::Create(create) | Statement::Explain { create, .. }) = statement else {
        return Ok(());
    };
    // Without any schema, that is a note.
    if schemas.is_empty() {
        return Ok(());
    }
    let (path, schema) = schema_of(input, schemas, Some(&create.from.text))?;
    let policies = Policies::for_all(ResolvedPolicy::first_offered(schema));
    let owners = AssumedOwners::invented(OWNERS, Controllers::Count(1), schema, &[]);
    // Whether policies allow the query is not asked here.
    let catalog = owners.and_then(|owners| owners.catalog(path, schema.clone(), &policies));
    let (Ok(catalog), Ok(mut rng)) = (catalog, entropy::rng()) else { return Ok(()) };
    let asking = QueryContext::from(Timestamp(0)).with_readers(&consumer);
    match plan_query(create, &catalog, asking, &mut rng) {
        Ok(_) => Ok(()),
        Err(refusal) => match refusal.mistakes() {
            Some(mistakes) => Err(mistakes.explained(&input.text)),
            None => Ok(()),
        },
    }
}
