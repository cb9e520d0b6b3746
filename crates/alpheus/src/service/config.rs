//! Configuration in layers: a TOML file, over it the environment, over it the
//! command line. Whatever is wrong is told with where it was said.
//!
//! Each layer is checked by itself against the same type, so the type makes
//! every field optional and refuses unknown keys:
//!
//! ```
//! # use alpheus::service::config::Layers;
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
//!     .load()?;
//! assert_eq!(settings.listen, Some("127.0.0.1:2".parse()?));
//! assert_eq!(settings.drain_seconds, Some(9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The variable of key `tls.client-ca` is `ALPHEUS_TLS__CLIENT_CA`. A
//! configuration names files that hold secrets, never a secret; even so no
//! error repeats a value.

use serde::de::DeserializeOwned;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// What every variable's name starts with.
const PREFIX: &str = "ALPHEUS_";

/// Variables that mean something elsewhere: options of every command, which
/// the command line reads itself, and what our tests are told.
const ELSEWHERE: [&str; 4] =
    ["ALPHEUS_CONFIG", "ALPHEUS_KILLS", "ALPHEUS_REAL_DATA", "ALPHEUS_SEED"];

/// Where a setting was said.
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
    /// A setting that does not exist: a typing error would otherwise go unnoticed.
    #[error("{origin}: unknown setting; {expected}")]
    Unknown {
        /// Where.
        origin: Origin,
        /// The names there are.
        expected: String,
    },
    /// A value of another type or outside its range.
    #[error("{origin}: {key} has a wrong value; {expected}")]
    Value {
        /// Where.
        origin: Origin,
        /// The setting.
        key: String,
        /// What would do.
        expected: String,
    },
    /// The file is no TOML.
    #[error("{origin}: not TOML; {expected}")]
    Syntax {
        /// Where.
        origin: Origin,
        /// What the grammar wants there.
        expected: String,
    },
}

impl ConfigError {
    /// Whether the file says it, rather than a variable or a flag.
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
#[derive(Debug, Default)]
pub struct Layers {
    file: Option<(PathBuf, Source)>,
    variables: Vec<(String, String)>,
    flags: Vec<(String, String)>,
}

#[derive(Debug)]
enum Source {
    Path,
    Text(String),
}

impl Layers {
    /// Reads this file; it must be there.
    #[must_use]
    pub fn file(mut self, path: Option<&Path>) -> Self {
        self.file = path.map(|path| (path.to_owned(), Source::Path));
        self
    }

    /// Takes this text as the file of that name.
    #[must_use]
    pub fn text(mut self, name: &str, text: &str) -> Self {
        self.file = Some((name.into(), Source::Text(text.into())));
        self
    }

    /// Takes the variables that start with `ALPHEUS_`; pass `std::env::vars()`.
    #[must_use]
    pub fn environment(mut self, all: impl IntoIterator<Item = (String, String)>) -> Self {
        let ours = |(name, _): &(String, String)| {
            name.starts_with(PREFIX) && !ELSEWHERE.contains(&name.as_str())
        };
        self.variables.extend(all.into_iter().filter(ours));
        self
    }

    /// Takes a setting from the command line, by its key (`tls.client-ca`).
    #[must_use]
    pub fn flag(mut self, key: &str, value: impl Into<String>) -> Self {
        self.flags.push((key.into(), value.into()));
        self
    }

    /// Checks each layer and lays it over the ones below.
    ///
    /// # Errors
    /// The first setting that is wrong, with where it was said.
    pub fn load<T: DeserializeOwned>(self) -> Result<T, ConfigError> {
        let mut merged = Table::new();
        if let Some((path, source)) = self.file {
            merged = read_file::<T>(&path, source)?;
        }
        for (name, value) in self.variables {
            let key = name.trim_start_matches(PREFIX).to_lowercase();
            let keys: Vec<_> = key.split("__").map(|part| part.replace('_', "-")).collect();
            overlay(&mut merged, checked::<T>(&keys, &value, Origin::Variable(name))?);
        }
        for (key, value) in self.flags {
            let keys: Vec<_> = key.split('.').map(str::to_owned).collect();
            let flag = Origin::Flag(key.replace('.', "-"));
            overlay(&mut merged, checked::<T>(&keys, &value, flag)?);
        }
        // Each layer was good by itself, so what is left to fail is what they make together.
        let origin = Origin::Flag("config".into());
        let wrong = |error: toml::de::Error| refused(error.message(), origin, "a setting");
        T::deserialize(Value::Table(merged)).map_err(wrong)
    }
}

fn read_file<T: DeserializeOwned>(path: &Path, source: Source) -> Result<Table, ConfigError> {
    let text = match source {
        Source::Text(text) => text,
        Source::Path => std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?,
    };
    let line = |error: &toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        Origin::File(path.to_owned(), before.matches('\n').count() + 1)
    };
    let table: Table = toml::from_str(&text).map_err(|error| ConfigError::Syntax {
        origin: line(&error),
        expected: without_value(error.message()),
    })?;
    toml::from_str::<T>(&text).map_err(|error| {
        let before = error.span().map_or("", |span| text.get(..span.start).unwrap_or_default());
        refused(error.message(), line(&error), key_of(&text, before.matches('\n').count()))
    })?;
    Ok(table)
}

/// A table of one setting, if the type takes it: read as TOML (a number, a
/// list) or, if that will not do, as plain text.
fn checked<T: DeserializeOwned>(
    keys: &[String],
    text: &str,
    origin: Origin,
) -> Result<Table, ConfigError> {
    let plain = nested(keys, Value::String(text.to_owned()));
    let typed = text.parse::<Value>().ok().filter(|value| !value.is_str());
    let typed = typed.map(|value| nested(keys, value));
    let fits = |table: &Table| T::deserialize(Value::Table(table.clone()));
    if let Some(typed) = typed.filter(|typed| fits(typed).is_ok()) {
        return Ok(typed);
    }
    match fits(&plain) {
        Ok(_) => Ok(plain),
        Err(error) => Err(refused(error.message(), origin, &keys.join("."))),
    }
}

fn nested(keys: &[String], value: Value) -> Table {
    let wrap = |inner: Value, key: &String| Value::Table(Table::from_iter([(key.clone(), inner)]));
    match keys.iter().rev().fold(value, wrap) {
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

/// serde speaks of types.
fn in_words(expected: String) -> String {
    match expected.strip_prefix("expected ") {
        Some("u64" | "u32" | "usize" | "u16") => "expected a whole number".to_owned(),
        Some("a string" | "path string") => "expected a text in quotes".to_owned(),
        Some("a boolean") => "expected true or false".to_owned(),
        _ => expected,
    }
}

/// The part of serde's message that says what would do; the part before it may
/// repeat the value.
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

    #[derive(Debug, Default, PartialEq, Deserialize)]
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
    fn flags_win_over_variables_and_those_over_the_file() {
        let layers = || {
            Layers::default()
                .text("a.toml", FILE)
                .environment(var("ALPHEUS_NAME", "variable"))
                .environment(var("ALPHEUS_TLS__CLIENT_CA", "ca.pem"))
                .environment(var("ALPHEUS_SEED", "7"))
                .environment(var("HOME", "/root"))
        };
        let settings: Settings = layers().load().unwrap();
        assert_eq!(settings.name.as_deref(), Some("variable"));
        assert_eq!(settings.listen, Some("127.0.0.1:1".parse().unwrap()));
        let tls = Tls { key: Some("a.pem".into()), client_ca: Some("ca.pem".into()) };
        assert_eq!(settings.tls, Some(tls));
        let settings: Settings = layers().flag("name", "flag").load().unwrap();
        assert_eq!(settings.name.as_deref(), Some("flag"));
        assert_eq!(Layers::default().load::<Settings>().unwrap(), Settings::default());
    }

    #[test]
    fn variables_have_the_type_that_the_setting_wants() {
        for (text, want) in [("7", "7"), ("true", "true"), ("1.5", "1.5"), ("'q'", "'q'"), ("", "")]
        {
            let layers = Layers::default().environment(var("ALPHEUS_NAME", text));
            assert_eq!(layers.load::<Settings>().unwrap().name.as_deref(), Some(want), "{text}");
        }
        let layers = Layers::default().environment(var("ALPHEUS_HOSTS", "['a', 'b']"));
        assert_eq!(layers.load::<Settings>().unwrap().hosts, Some(vec!["a".into(), "b".into()]));
    }

    fn error(layers: Layers) -> String {
        let error = layers.load::<Settings>().unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "a value is repeated: {error}");
        error
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place_and_without_its_value() {
        let file = |text| error(Layers::default().text("a.toml", text));
        let unknown = file("name = 'x'\n\n[tls]\nkee = 'hunter2'\n");
        assert!(unknown.starts_with("a.toml:4: unknown setting; expected"), "{unknown}");
        assert!(unknown.contains("client-ca"), "{unknown}");
        let wrong = file("name = 'x'\ndrain-seconds = 'hunter2'\n");
        assert_eq!(wrong, "a.toml:2: drain-seconds has a wrong value; expected a whole number");
        let address = file("listen = 'hunter2'\n");
        let said = "a.toml:1: listen has a wrong value; invalid socket address";
        assert!(address.starts_with(said), "{address}");
        let syntax = file("name = 'x'\nname = = 'hunter2'\n");
        assert!(syntax.starts_with("a.toml:2: not TOML"), "{syntax}");

        let variable = |name, value| error(Layers::default().environment(var(name, value)));
        let wrong = variable("ALPHEUS_DRAIN_SECONDS", "hunter2");
        let said = "variable ALPHEUS_DRAIN_SECONDS: drain-seconds has a wrong value; expected a whole number";
        assert_eq!(wrong, said);
        let unknown = variable("ALPHEUS_DRAIN_SECOND", "hunter2");
        assert!(unknown.starts_with("variable ALPHEUS_DRAIN_SECOND: unknown setting"), "{unknown}");
        let flag = error(Layers::default().flag("tls.kee", "hunter2"));
        assert!(flag.starts_with("--tls-kee: unknown setting"), "{flag}");

        let missing = Layers::default().file(Some(Path::new("/nowhere/a.toml")));
        assert!(error(missing).starts_with("/nowhere/a.toml: cannot read"));
    }
}
