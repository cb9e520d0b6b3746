//! What a file is, and what is wrong with it.

use super::Input;
use crate::generate::profile::Profile;
use alpheus_input::source::Source;
use alpheus_node::settings::layers::Layers;
use alpheus_node::settings::{Settings, SettingsError};
use alpheus_policy::document::{Node, Position, Value};
use alpheus_policy::policy::Policies;
use alpheus_policy::query::parse;
use alpheus_policy::schema::Schema;
use alpheus_streams::settings::{LogSettings, WindowSettings};
use std::path::Path;

pub(super) const SCHEMA: &str = "schema";
pub(super) const POLICIES: &str = "policies";
pub(super) const SOURCE: &str = "source";
pub(super) const PROFILE: &str = "profile";
pub(super) const TABLE: &str = "table schema";
pub(super) const PLAN: &str = "statistics plan";
pub(super) const MAPPING: &str = "OTLP mapping";
pub(super) const SETTINGS: &str = "settings";
pub(super) const QUERY: &str = "query";
pub(super) const UNKNOWN: &str = "unknown";

const NEITHER: &str = "neither a schema, policies, a source, a profile, a table schema, a statistics plan, an OTLP mapping, settings nor a query";

/// What a file is, by its ending, else by its keys.
pub(super) fn kind(path: &Path, text: &str) -> &'static str {
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
    } else if has(&["name"]) && has(&["columns", "time"]) {
        // A source has a time, too; it names its schema and has no name of its own.
        TABLE
    } else if has(&["time", "wide", "stream"]) {
        SOURCE
    } else if has(&["place"]) && has(&["every", "release", "quota"]) {
        PLAN
    } else if has(&["minutes", "intervalMs"]) {
        PROFILE
    } else if has(&["metrics"]) {
        MAPPING
    } else {
        UNKNOWN
    }
}

/// What is wrong with a file, and where.
pub(super) fn problem(
    input: &Input<'_>,
    schemas: &[(&Path, Schema)],
    parts: &[&str],
) -> Result<(), String> {
    let text = &input.text;
    match input.kind {
        SCHEMA if input.path.extension().is_some_and(|ending| ending == "avsc") => {
            said(Schema::from_avsc(text))
        }
        SCHEMA => said(Schema::from_yaml(text)),
        QUERY => {
            let statement = parse(text).map_err(|error| error.to_string())?;
            super::fits_schema(&statement, input, schemas)
        }
        SETTINGS => {
            // The place names the file again, so its last part is enough.
            let name = input.path.file_name().unwrap_or_default().to_string_lossy();
            said(settings(Layers::default().text(&name, text), parts))
        }
        POLICIES => said(Policies::from_yaml(text, named(input, schemas)?)),
        SOURCE => placed(text, said(Source::parse(text, named(input, schemas)?))),
        PROFILE => placed(text, said(Profile::parse(text, named(input, schemas)?))),
        #[cfg(feature = "table")]
        TABLE => {
            use alpheus_table_service::schema::TableSchema;
            placed(text, said(TableSchema::parse(text).and_then(|read| read.layout())))
        }
        #[cfg(feature = "stats")]
        PLAN => placed(text, said(alpheus_stats_service::plan::count::AnyPlan::parse(text))),
        #[cfg(feature = "otlp")]
        MAPPING => {
            use alpheus_otlp::mapping::{CompiledMapping, Mapping};
            let mapping: Mapping = serde_json::from_str(text).map_err(|error| error.to_string())?;
            placed(text, said(CompiledMapping::of(&mapping, named(input, schemas)?)))
        }
        UNKNOWN => {
            said(Node::from_yaml(text))?;
            Err(NEITHER.to_owned())
        }
        other => Err(format!("this build has no commands for a {other}")),
    }
}

fn said<T, E: ToString>(read: Result<T, E>) -> Result<(), String> {
    read.map(drop).map_err(|error| error.to_string())
}

/// A problem with the place of what it names, if it does not say one itself.
fn placed(text: &str, read: Result<(), String>) -> Result<(), String> {
    let Err(problem) = read else { return Ok(()) };
    let is_placed = problem.contains("line ");
    let root = Node::from_yaml(text).ok().filter(|_| !is_placed);
    // Names stand between quotes of one kind or another.
    let names = problem.split(['`', '"']).skip(1).step_by(2);
    let at = root.and_then(|root| names.into_iter().find_map(|name| place_of(&root, name)));
    Err(match at {
        Some(at) => format!("{at}: {problem}"),
        None => problem,
    })
}

/// Where a key or value of this name stands. A path of keys has dots.
fn place_of(node: &Node, name: &str) -> Option<Position> {
    let (first, rest) = name.split_once('.').map_or((name, None), |(key, rest)| (key, Some(rest)));
    match &node.value {
        Value::Scalar { text, .. } => (text == name).then(|| node.at.clone()),
        Value::List(items) => items.iter().find_map(|item| place_of(item, name)),
        Value::Map(entries) => entries.iter().find_map(|(key, own)| match rest {
            _ if key == name => Some(own.at.clone()),
            Some(rest) if key == first => place_of(own, rest),
            _ => place_of(own, name),
        }),
        Value::Null => None,
    }
}

/// Reads what every process shares, and the settings of each part.
fn settings(layers: Layers, parts: &[&str]) -> Result<(), SettingsError> {
    let settings = Settings::load(layers, parts)?;
    alpheus_streams::settings::check(&settings)?;
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
    #[cfg(feature = "worker")]
    settings.part::<alpheus_worker::worker::WorkerSettings>()?;
    Ok(())
}

/// The schema that a file names: one in the same folder, else any of the name.
pub(super) fn named<'a>(
    input: &Input<'_>,
    schemas: &'a [(&Path, Schema)],
) -> Result<&'a Schema, String> {
    let node = Node::from_yaml(&input.text).map_err(|error| error.to_string())?;
    let Value::Map(entries) = node.value else { return Err("expected a map".to_owned()) };
    let named = entries.iter().find(|(key, _)| key == "schema").map(|(_, node)| &node.value);
    let name = match named {
        Some(Value::Scalar { text, .. }) => Some(text.as_str()),
        _ => None,
    };
    schema_of(input, schemas, name).map(|(_, schema)| schema)
}

/// The schema of this name, or of any, with its file: one in the same folder, else another.
pub(super) fn schema_of<'a, 'p>(
    input: &Input<'_>,
    schemas: &'a [(&'p Path, Schema)],
    name: Option<&str>,
) -> Result<&'a (&'p Path, Schema), String> {
    let fits = |(_, schema): &&(&Path, Schema)| name.is_none_or(|name| schema.name == name);
    let beside = |(path, _): &&(&Path, Schema)| path.parent() == input.path.parent();
    let all = || schemas.iter().filter(fits);
    all().find(beside).or_else(|| all().next()).ok_or_else(|| match name {
        Some(name) => {
            format!("its schema `{name}` is not among the valid files; name its file too")
        }
        None => "no schema is among the valid files; name its file too".to_owned(),
    })
}
