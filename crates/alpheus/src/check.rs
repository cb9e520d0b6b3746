//! `alpheus check`: whether files that people wrote are valid, and JSON Schemas for editors.

use crate::generate::profile::Profile;
use alpheus_input::editor::source_schema;
use alpheus_input::files::read_schema;
use alpheus_input::source::Source;
use alpheus_input::tables::print_json;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure, printed};
use alpheus_node::files::read_text;
use alpheus_node::globals::Globals;
use alpheus_node::settings::layers::Layers;
use alpheus_node::settings::{Format, Settings, SettingsError};
use alpheus_policy::document::{Node, Value};
use alpheus_policy::editor::{EditedFile, json_schema};
use alpheus_policy::policy::{Policies, ResolvedPolicy, Section};
use alpheus_policy::query::{Statement, parse};
use alpheus_policy::schema::{OptionKind, Schema};
use alpheus_stream_runtime::embedded::Controllers;
use alpheus_stream_runtime::planning::{QueryContext, plan_query};
use alpheus_streams::assumed_owners::{AssumedOwners, consumer};
use alpheus_streams::settings::{LogSettings, WindowSettings};
use alpheus_time::Timestamp;
use clap::ValueEnum;
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
profiles, queries and alpheus.toml. Policies, sources and queries are checked against the schema
that they name, and profiles against the one beside them, so name its file too. To find out whether
policies allow a query, use `alpheus query`.

An editor with the YAML language server uses the JSON Schema if the file has this line:
# yaml-language-server: $schema=alpheus-schema.json";

/// Arguments of `alpheus check`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Schemas, policies, sources, profiles and settings, and queries (.sql); or folders with such
    /// files
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
}

/// Levels of folders below a folder that is named.
const DEPTH: usize = 4;

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
            let what = "findings are no table; use --format json or table";
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
            let what =
                "the folder holds no schema, policies, source, profile, query or alpheus.toml";
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
        Some("yaml" | "yml") => kind(path, &text()) != UNKNOWN || has_our_name(path),
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
        note: (input.kind == POLICIES).then(|| exact_beside_noise(input, &schemas)).flatten(),
    };
    Ok(inputs.iter().map(finding).collect())
}

const SCHEMA: &str = "schema";
const POLICIES: &str = "policies";
const SOURCE: &str = "source";
const PROFILE: &str = "profile";
const SETTINGS: &str = "settings";
const QUERY: &str = "query";
const UNKNOWN: &str = "unknown";

/// What a file is, by its ending, else by its keys.
fn kind(path: &Path, text: &str) -> &'static str {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("sql") => return QUERY,
        Some("toml") => return SETTINGS,
        Some("avsc") => return SCHEMA,
        _ => {}
    }
    let root = Node::from_yaml(text).map(|node| node.value);
    let Ok(Value::Map(entries)) = root else { return UNKNOWN };
    let has = |keys: &[&str]| entries.iter().any(|(key, _)| keys.contains(&key.as_str()));
    if has(&["streamAttributes", "streamPolicyOptions", "metadataAttributes"]) {
        SCHEMA
    } else if has(&["default", "mix", "owners", "validFrom"]) {
        POLICIES
    } else if has(&["time", "wide", "stream"]) {
        SOURCE
    } else if has(&["minutes", "intervalMs"]) {
        PROFILE
    } else {
        UNKNOWN
    }
}

fn problem(input: &Input<'_>, schemas: &[(&Path, Schema)], parts: &[&str]) -> Result<(), String> {
    let text = &input.text;
    match input.kind {
        SCHEMA if input.path.extension().is_some_and(|ending| ending == "avsc") => {
            Schema::from_avsc(text).map(drop).map_err(|error| error.to_string())
        }
        SCHEMA => Schema::from_yaml(text).map(drop).map_err(|error| error.to_string()),
        QUERY => {
            let statement = parse(text).map_err(|error| error.to_string())?;
            names_in(&statement, input, schemas)
        }
        SETTINGS => {
            // The place names the file again, so its last part is enough.
            let name = input.path.file_name().unwrap_or_default().to_string_lossy();
            let layers = Layers::default().text(&name, text);
            settings(layers, parts).map_err(|error| error.to_string())
        }
        POLICIES => {
            let schema = named(input, schemas)?;
            Policies::from_yaml(text, schema).map(drop).map_err(|error| error.to_string())
        }
        SOURCE => {
            let schema = named(input, schemas)?;
            Source::parse(text, schema).map(drop).map_err(|error| error.to_string())
        }
        PROFILE => {
            let schema = named(input, schemas)?;
            Profile::parse(text, schema).map(drop).map_err(|error| error.to_string())
        }
        _ => {
            let node = Node::from_yaml(text).map(drop).map_err(|error| error.to_string());
            node.and(Err(
                "neither a schema, policies, a source, a profile, settings nor a query".to_owned()
            ))
        }
    }
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

/// Whether what a query names is in its schema, if that is among the files.
fn names_in(
    statement: &Statement,
    input: &Input<'_>,
    schemas: &[(&Path, Schema)],
) -> Result<(), String> {
    const OWNERS: u32 = 20;
    let (Statement::Create(create) | Statement::Explain { create, .. }) = statement else {
        return Ok(());
    };
    let fits = |(_, schema): &&(&Path, Schema)| schema.name == create.from.text;
    let beside = |(path, _): &&(&Path, Schema)| path.parent() == input.path.parent();
    let all = || schemas.iter().filter(fits);
    let Some((path, schema)) = all().find(beside).or_else(|| all().next()) else { return Ok(()) };
    let policies = Policies::for_all(ResolvedPolicy::first_offered(schema));
    let owners = AssumedOwners::invented(OWNERS, Controllers::Count(1), schema, &[]);
    // Whether policies allow the query is not asked here.
    let catalog = owners.and_then(|owners| owners.catalog(path, schema.clone(), &policies));
    let (Ok(catalog), Ok(mut rng)) = (catalog, entropy::rng()) else { return Ok(()) };
    let asking = QueryContext::from(Timestamp(0)).with_readers(&consumer);
    match plan_query(create, &catalog, asking, &mut rng) {
        Err(refusal) if refusal.is_mistaken() => Err(refusal.explained(&input.text)),
        _ => Ok(()),
    }
}

/// Reads what every process shares, and the settings of each part.
fn settings(layers: Layers, parts: &[&str]) -> Result<(), SettingsError> {
    let settings = Settings::load(layers, parts)?;
    settings.part::<WindowSettings>()?;
    settings.part::<LogSettings>()?;
    #[cfg(feature = "board")]
    settings.part::<alpheus_board_service::settings::BoardSettings>()?;
    #[cfg(feature = "pass")]
    settings.part::<alpheus_pass_service::settings::PassSettings>()?;
    #[cfg(feature = "stats")]
    settings.part::<alpheus_stats_service::settings::StatsSettings>()?;
    #[cfg(feature = "table")]
    settings.part::<alpheus_table_service::settings::TableSettings>()?;
    Ok(())
}

/// The schema that a file names: one in the same folder, else any of the name.
fn named<'a>(input: &Input<'_>, schemas: &'a [(&Path, Schema)]) -> Result<&'a Schema, String> {
    let node = Node::from_yaml(&input.text).map_err(|error| error.to_string())?;
    let Value::Map(entries) = node.value else { return Err("expected a map".to_owned()) };
    let named = entries.iter().find(|(key, _)| key == "schema").map(|(_, node)| &node.value);
    let name = match named {
        Some(Value::Scalar { text, .. }) => Some(text.as_str()),
        _ => None,
    };
    let fits = |schema: &Schema| name.is_none_or(|name| schema.name == name);
    let beside = |path: &Path| path.parent() == input.path.parent();
    let near = schemas.iter().find(|(path, schema)| beside(path) && fits(schema));
    let found = near.or_else(|| schemas.iter().find(|(_, schema)| fits(schema)));
    found.map(|(_, schema)| schema).ok_or_else(|| match name {
        Some(name) => {
            format!("its schema `{name}` is not among the valid files; name its file too")
        }
        None => "no schema is among the valid files; name its file too".to_owned(),
    })
}
