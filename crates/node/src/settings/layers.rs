//! Configuration in layers: a TOML file, overridden by the environment, overridden by the
//! command line. Each error names its origin.
//!
//! Each layer is checked by itself against the same type, so the type makes
//! every field optional and refuses unknown keys:
//!
//! ```
//! # use alpheus_node::settings::layers::Layers;
//! #[derive(serde::Deserialize)]
//! #[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
//! #[derive(Default)]
//! struct Settings {
//!     listen: Option<std::net::SocketAddr>,
//!     drain_seconds: Option<u64>,
//! }
//! let settings: Settings = Layers::default()
//!     .text("alpheus.toml", "listen = '127.0.0.1:1'\ndrain-seconds = 5")
//!     .environment([("ALPHEUS_DRAIN_SECONDS".into(), "9".into())])
//!     .flag("listen", "127.0.0.1:2")
//!     .load(&[])?;
//! assert_eq!(settings.listen, Some("127.0.0.1:2".parse()?));
//! assert_eq!(settings.drain_seconds, Some(9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The variable of key `tls.client-ca` is `ALPHEUS_TLS__CLIENT_CA`. A
//! configuration names files that hold secrets, never a secret; even so no
//! error repeats a value.

use super::key_filter;
use crate::note;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use toml::{Table, Value};

/// The prefix of every variable's name.
const PREFIX: &str = "ALPHEUS_";

/// The variable of the flag that names the file; the command line reads it itself.
const CONFIG: &str = "ALPHEUS_CONFIG";

/// The origin of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In a file, at a line (from 1).
    File(PathBuf, usize),
    /// In a variable of the environment.
    Variable(String),
    /// On the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: cannot read the configuration")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A setting that does not exist; otherwise a misspelling would go unnoticed.
    #[error("{origin}: unknown setting; {expected}")]
    Unknown {
        /// Where.
        origin: Origin,
        /// The known names.
        expected: String,
    },
    /// A value of another type or outside its range.
    #[error("{origin}: {key} has an invalid value; {expected}")]
    Value {
        /// Where.
        origin: Origin,
        /// The setting.
        key: String,
        /// The expected value.
        expected: String,
    },
    /// The file is not valid TOML.
    #[error("{origin}: not TOML; {expected}")]
    Syntax {
        /// Where.
        origin: Origin,
        /// What the grammar expects there.
        expected: String,
    },
}

impl ConfigError {
    /// Whether the error is in the file, rather than in a variable or a flag.
    #[must_use]
    pub fn is_in_file(&self) -> bool {
        match self {
            Self::Read { .. } => true,
            Self::Unknown { origin, .. }
            | Self::Value { origin, .. }
            | Self::Syntax { origin, .. } => matches!(origin, Origin::File(..)),
        }
    }
}

/// The layers, lowest first.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    file: Option<(PathBuf, String)>,
    variables: Vec<(String, String)>,
    flags: Vec<(String, String)>,
}

impl Layers {
    /// Reads this file, which must exist.
    ///
    /// # Errors
    /// [`ConfigError::Read`].
    pub fn file(mut self, path: Option<&Path>) -> Result<Self, ConfigError> {
        if let Some(path) = path {
            let text = std::fs::read_to_string(path)
                .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
            self.file = Some((path.to_owned(), text));
        }
        Ok(self)
    }

    /// Takes this text as the file of that name.
    #[must_use]
    pub fn text(mut self, name: &str, text: &str) -> Self {
        self.file = Some((name.into(), text.into()));
        self
    }

    /// Takes the variables that start with `ALPHEUS_`; pass `std::env::vars()`.
    #[must_use]
    pub fn environment(mut self, all: impl IntoIterator<Item = (String, String)>) -> Self {
        let ours = |(name, _): &(String, String)| name.starts_with(PREFIX) && name != CONFIG;
        self.variables.extend(all.into_iter().filter(ours));
        self
    }

    /// Takes a setting from the command line, by its key (`tls.client-ca`).
    #[must_use]
    pub fn flag(mut self, key: &str, value: impl Into<String>) -> Self {
        self.flags.push((key.into(), value.into()));
        self
    }

    /// Checks each layer against `T` and lays it over the ones below. Keys in `parts` are
    /// left for [`Layers::value`]. A variable that `T` does not have is ignored with a
    /// warning, since other programs may set variables of that prefix too.
    ///
    /// # Errors
    /// The first invalid setting, with its origin.
    pub fn load<T: DeserializeOwned>(&self, parts: &[&str]) -> Result<T, ConfigError> {
        let mut merged = Table::new();
        if let Some((path, text)) = &self.file {
            let mut table = read_file(path, text, |deserializer| {
                key_filter::everything_but::<T, _>(parts, deserializer).map(drop)
            })?;
            parts.iter().for_each(|part| drop(table.remove(*part)));
            merged = table;
        }
        let mine = |keys: &[String]| keys.first().is_none_or(|key| !parts.contains(&&**key));
        self.overlay_all::<T>(&mut merged, mine, 0)?;
        finish(Value::Table(merged))
    }

    /// The value of one top-level key, from all layers.
    ///
    /// # Errors
    /// The first invalid setting in it, with its origin.
    pub fn value<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ConfigError> {
        let mut merged = Table::new();
        if let Some((path, text)) = &self.file {
            let mut table = read_file(path, text, |deserializer| {
                key_filter::one::<T, _>(key, deserializer).map(drop)
            })?;
            merged.extend(table.remove_entry(key));
        }
        let mine = |keys: &[String]| keys.first().is_some_and(|first| first == key);
        self.overlay_all::<T>(&mut merged, mine, 1)?;
        merged.remove(key).map(finish).transpose()
    }

    /// Lays variables and flags over `merged`. `T` is what is found below `depth` keys.
    fn overlay_all<T: DeserializeOwned>(
        &self,
        merged: &mut Table,
        mine: impl Fn(&[String]) -> bool,
        depth: usize,
    ) -> Result<(), ConfigError> {
        for (name, value) in &self.variables {
            let key = name.trim_start_matches(PREFIX).to_lowercase();
            let keys: Vec<_> = key.split("__").map(|part| part.replace('_', "-")).collect();
            if mine(&keys) {
                match checked::<T>(&keys, depth, value, Origin::Variable(name.clone())) {
                    Ok(table) => overlay(merged, table),
                    Err(unknown @ ConfigError::Unknown { .. }) => warn_once(name, &unknown),
                    Err(error) => return Err(error),
                }
            }
        }
        for (key, value) in &self.flags {
            let keys: Vec<_> = key.split('.').map(str::to_owned).collect();
            if mine(&keys) {
                let flag = Origin::Flag(key.replace('.', "-"));
                overlay(merged, checked::<T>(&keys, depth, value, flag)?);
            }
        }
        Ok(())
    }
}

/// Warns once per process that a variable is ignored.
fn warn_once(name: &str, why: &ConfigError) {
    static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned()) {
        // Logs may not have started yet.
        note!("warning: {why}; it is ignored");
    }
}

/// Each layer was valid by itself, so only their combination can be invalid.
fn finish<T: DeserializeOwned>(merged: Value) -> Result<T, ConfigError> {
    let origin = Origin::Flag("config".into());
    T::deserialize(merged).map_err(|error| refused(error.message(), origin, "a setting"))
}

/// The file's table, once `check` has passed it.
fn read_file(
    path: &Path,
    text: &str,
    check: impl FnOnce(toml::Deserializer<'_>) -> Result<(), toml::de::Error>,
) -> Result<Table, ConfigError> {
    let line_at = |at: usize| text.get(..at).unwrap_or_default().matches('\n').count();
    let line = |error: &toml::de::Error| {
        let named = || top_level_line(text, unknown_field(error.message())?);
        // An unknown table of the top level is reported at the start of the file.
        let at = error.span().map_or(0, |span| line_at(span.start));
        if at == 0 { named().unwrap_or_default() } else { at }
    };
    let origin = |line: usize| Origin::File(path.to_owned(), line + 1);
    let syntax = |error: toml::de::Error| ConfigError::Syntax {
        origin: origin(line(&error)),
        expected: without_value(error.message()),
    };
    let table: Table = toml::from_str(text).map_err(syntax)?;
    let checked = toml::Deserializer::parse(text).map_err(syntax).map(check)?;
    checked.map_err(|error| {
        refused(error.message(), origin(line(&error)), key_of(text, line(&error)))
    })?;
    Ok(table)
}

/// The name in serde's message about a field that a type does not have.
fn unknown_field(message: &str) -> Option<&str> {
    message.strip_prefix("unknown field `")?.split('`').next()
}

/// The line where a key or table of the file's top level begins.
fn top_level_line(text: &str, key: &str) -> Option<usize> {
    text.lines().position(|line| {
        let bare = line.trim_start().trim_start_matches('[').trim_start();
        let after = bare.strip_prefix(key).map(str::trim_start);
        after.is_some_and(|rest| rest.starts_with(['=', '.', ']']))
    })
}

/// A table of one setting, if the type below `depth` keys takes it: read as TOML (a number,
/// a list) or, if that does not fit, as plain text.
fn checked<T: DeserializeOwned>(
    keys: &[String],
    depth: usize,
    text: &str,
    origin: Origin,
) -> Result<Table, ConfigError> {
    let plain = Value::String(text.to_owned());
    let typed = text.parse::<Value>().ok().filter(|value| !value.is_str());
    let below = keys.get(depth..).unwrap_or_default();
    let fits = |value: &Value| T::deserialize(nested(below, value.clone()));
    if let Some(typed) = typed.filter(|typed| fits(typed).is_ok()) {
        return Ok(table(keys, typed));
    }
    match fits(&plain) {
        Ok(_) => Ok(table(keys, plain)),
        Err(error) => Err(refused(error.message(), origin, &keys.join("."))),
    }
}

fn nested(keys: &[String], value: Value) -> Value {
    let wrap = |inner: Value, key: &String| Value::Table(Table::from_iter([(key.clone(), inner)]));
    keys.iter().rev().fold(value, wrap)
}

fn table(keys: &[String], value: Value) -> Table {
    match nested(keys, value) {
        Value::Table(table) => table,
        _ => Table::new(),
    }
}

fn overlay(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => overlay(below, above),
            (_, value) => drop(below.insert(key, value)),
        }
    }
}

/// The key that a line of the file sets.
fn key_of(text: &str, line: usize) -> &str {
    let said = text.lines().nth(line).and_then(|line| line.split_once('='));
    said.map_or("a setting", |(key, _)| key.trim())
}

fn refused(message: &str, origin: Origin, key: &str) -> ConfigError {
    let expected = in_words(without_value(message));
    if message.starts_with("unknown field") {
        ConfigError::Unknown { origin, expected }
    } else {
        ConfigError::Value { origin, key: key.to_owned(), expected }
    }
}

/// Rewords serde's messages, which name Rust types.
fn in_words(expected: String) -> String {
    match expected.strip_prefix("expected ") {
        Some("u64" | "u32" | "usize" | "u16") => "expected a whole number".to_owned(),
        Some("a string" | "path string") => "expected a text in quotes".to_owned(),
        Some("a boolean") => "expected true or false".to_owned(),
        _ => expected,
    }
}

/// The part of serde's message with the expected value; the part before it may repeat the
/// actual value.
fn without_value(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    match line.rfind("expected ") {
        Some(at) => line.get(at..).unwrap_or_default().to_owned(),
        None if line.contains(['`', '"', '\'']) => "see the documentation".to_owned(),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::net::SocketAddr;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
    struct Settings {
        listen: Option<SocketAddr>,
        drain_seconds: Option<u64>,
        name: Option<String>,
        hosts: Option<Vec<String>>,
        tls: Option<Tls>,
    }

    #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
    #[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
    struct Tls {
        key: Option<PathBuf>,
        client_ca: Option<PathBuf>,
    }

    const FILE: &str = "name = 'file'\nlisten = '127.0.0.1:1'\n\n[tls]\nkey = 'a.pem'\n";

    fn var(name: &str, value: &str) -> [(String, String); 1] {
        [(name.into(), value.into())]
    }

    #[test]
    fn flags_override_variables_which_override_the_file() {
        let layers = || {
            Layers::default()
                .text("a.toml", FILE)
                .environment(var("ALPHEUS_NAME", "variable"))
                .environment(var("ALPHEUS_TLS__CLIENT_CA", "ca.pem"))
                .environment(var("ALPHEUS_SEED", "7"))
                .environment(var("HOME", "/root"))
        };
        let settings: Settings = layers().load(&[]).unwrap();
        assert_eq!(settings.name.as_deref(), Some("variable"));
        assert_eq!(settings.listen, Some("127.0.0.1:1".parse().unwrap()));
        let tls = Tls { key: Some("a.pem".into()), client_ca: Some("ca.pem".into()) };
        assert_eq!(settings.tls, Some(tls));
        let settings: Settings = layers().flag("name", "flag").load(&[]).unwrap();
        assert_eq!(settings.name.as_deref(), Some("flag"));
        assert_eq!(Layers::default().load::<Settings>(&[]).unwrap(), Settings::default());
    }

    #[test]
    fn variables_are_parsed_as_the_setting_requires() {
        for (text, want) in [("7", "7"), ("true", "true"), ("1.5", "1.5"), ("'q'", "'q'"), ("", "")]
        {
            let layers = Layers::default().environment(var("ALPHEUS_NAME", text));
            assert_eq!(layers.load::<Settings>(&[]).unwrap().name.as_deref(), Some(want), "{text}");
        }
        let layers = Layers::default().environment(var("ALPHEUS_HOSTS", "['a', 'b']"));
        assert_eq!(layers.load::<Settings>(&[]).unwrap().hosts, Some(vec!["a".into(), "b".into()]));
    }

    fn error(layers: Layers) -> String {
        let error = layers.load::<Settings>(&[]).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "a value is repeated: {error}");
        error
    }

    #[test]
    fn errors_name_their_origin_and_never_the_value() {
        let file = |text| error(Layers::default().text("a.toml", text));
        let unknown = file("name = 'x'\n\n[tls]\nkee = 'hunter2'\n");
        assert!(unknown.starts_with("a.toml:4: unknown setting; expected"), "{unknown}");
        assert!(unknown.contains("client-ca"), "{unknown}");
        let wrong = file("name = 'x'\ndrain-seconds = 'hunter2'\n");
        assert_eq!(wrong, "a.toml:2: drain-seconds has an invalid value; expected a whole number");
        let address = file("listen = 'hunter2'\n");
        let said = "a.toml:1: listen has an invalid value; invalid socket address";
        assert!(address.starts_with(said), "{address}");
        let syntax = file("name = 'x'\nname = = 'hunter2'\n");
        assert!(syntax.starts_with("a.toml:2: not TOML"), "{syntax}");

        let variable = |name, value| error(Layers::default().environment(var(name, value)));
        let wrong = variable("ALPHEUS_DRAIN_SECONDS", "hunter2");
        let said = "variable ALPHEUS_DRAIN_SECONDS: drain-seconds has an invalid value; expected a whole number";
        assert_eq!(wrong, said);
        let flag = error(Layers::default().flag("tls.kee", "hunter2"));
        assert!(flag.starts_with("--tls-kee: unknown setting"), "{flag}");

        let missing = Layers::default().file(Some(Path::new("/nowhere/a.toml"))).unwrap_err();
        assert!(missing.to_string().starts_with("/nowhere/a.toml: cannot read"));
    }

    #[test]
    fn an_unknown_variable_is_ignored() {
        let layers = Layers::default()
            .environment(var("ALPHEUS_DRAIN_SECOND", "7"))
            .environment(var("ALPHEUS_TLS__KEE", "key.pem"))
            .environment(var("ALPHEUS_NAME", "variable"));
        let settings: Settings = layers.load(&[]).unwrap();
        assert_eq!(settings, Settings { name: Some("variable".into()), ..Settings::default() });
    }

    #[test]
    fn a_part_reads_its_own_table() {
        let text = "name = 'x'\nlevel = 3\n\n[part]\nkey = 'a.pem'\n\n[other]\nfree = 'hunter2'\n";
        let layers = Layers::default().text("a.toml", text);
        let layers = layers.environment(var("ALPHEUS_PART__CLIENT_CA", "ca.pem"));
        let parts = ["level", "part", "other"];
        assert_eq!(layers.load::<Settings>(&parts).unwrap().name.as_deref(), Some("x"));
        let part = Tls { key: Some("a.pem".into()), client_ca: Some("ca.pem".into()) };
        assert_eq!(layers.value::<Tls>("part").unwrap(), Some(part.clone()));
        let flagged = layers.clone().flag("part.key", "b.pem");
        let part = Tls { key: Some("b.pem".into()), ..part };
        assert_eq!(flagged.value::<Tls>("part").unwrap(), Some(part));
        assert_eq!(layers.value::<u32>("level").unwrap(), Some(3));
        assert_eq!(layers.value::<Tls>("none").unwrap(), None);

        let unknown = layers.load::<Settings>(&["level", "part"]).unwrap_err().to_string();
        assert!(unknown.starts_with("a.toml:7: unknown setting; expected"), "{unknown}");
        let wrong = layers.value::<Tls>("other").unwrap_err().to_string();
        assert!(wrong.starts_with("a.toml:8: unknown setting; expected"), "{wrong}");
    }
}
