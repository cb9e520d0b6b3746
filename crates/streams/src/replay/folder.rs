//! The files of a folder that `alpheus init` writes, or somebody by hand.

use alpheus_node::failure::{Blame, Failure};
use std::path::{Path, PathBuf};

/// Where the files of a folder are.
pub struct Folder {
    /// `schema.yaml`.
    pub schema: PathBuf,
    /// `source.yaml`.
    pub source: PathBuf,
    /// `policies.yaml`.
    pub policies: PathBuf,
    /// `query.sql`.
    pub query: PathBuf,
    /// The folder.
    pub path: PathBuf,
}

impl Folder {
    /// The folder at a path.
    ///
    /// # Errors
    /// There is none.
    pub fn at(path: &Path) -> Result<Folder, Failure> {
        let path = std::fs::canonicalize(path).blame_io(path)?;
        let file = |name: &str| path.join(name);
        Ok(Folder {
            schema: file("schema.yaml"),
            source: file("source.yaml"),
            policies: file("policies.yaml"),
            query: file("query.sql"),
            path,
        })
    }

    /// Its only recording.
    ///
    /// # Errors
    /// It has none, or several.
    pub fn recording(&self) -> Result<PathBuf, Failure> {
        let mut found = self.recordings()?;
        match (found.pop(), found.is_empty()) {
            (Some(path), true) => Ok(path),
            (None, _) => Err("the folder holds no recording (.csv or .csv.gz)"),
            (Some(_), false) => Err("the folder holds several recordings"),
        }
        .blame_input(&self.path)
        .map_err(|failure| failure.with_help("name the recording with --input"))
    }

    /// Its recordings.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn recordings(&self) -> Result<Vec<PathBuf>, Failure> {
        let entries = std::fs::read_dir(&self.path).blame_io(&self.path)?.filter_map(Result::ok);
        let is_recording = |path: &PathBuf| {
            let name = path.to_string_lossy();
            // `alpheus init` writes its first answer there.
            let is_answer = path.ends_with("answer.csv");
            path.is_file() && !is_answer && (name.ends_with(".csv") || name.ends_with(".csv.gz"))
        };
        Ok(entries.map(|entry| entry.path()).filter(is_recording).collect())
    }
}
