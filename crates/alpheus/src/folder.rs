//! The files of a folder that `alpheus init` writes, or somebody by hand.

use alpheus_node::failure::{Blame, Failure};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Where the files of a folder are.
pub(crate) struct Folder {
    /// `schema.yaml`.
    pub(crate) schema: PathBuf,
    /// `source.yaml`.
    pub(crate) source: PathBuf,
    /// `policies.yaml`.
    pub(crate) policies: PathBuf,
    /// `query.sql`.
    pub(crate) query: PathBuf,
    /// The folder.
    pub(crate) path: PathBuf,
}

impl Folder {
    /// The folder at a path.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn at(path: &Path) -> Result<Folder, Failure> {
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
    pub(crate) fn recording(&self) -> Result<PathBuf, Failure> {
        let mut found = self.recordings()?;
        match (found.pop(), found.is_empty()) {
            (Some(path), true) => Ok(path),
            (None, _) => Err(NoRecordingError::None),
            (Some(_), false) => Err(NoRecordingError::Several),
        }
        .blame_input(&self.path)
        .map_err(|failure| failure.with_help("name the recording with --input"))
    }

    /// Its recordings.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn recordings(&self) -> Result<Vec<PathBuf>, Failure> {
        let entries = std::fs::read_dir(&self.path).blame_io(&self.path)?.filter_map(Result::ok);
        let is_recording = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            let plain = name.strip_suffix(".gz").unwrap_or(&name);
            let ending = plain.rsplit_once('.').map_or("", |(_, ending)| ending);
            ENDINGS.contains(&ending) && path.is_file() && !is_ours(path)
        };
        Ok(entries.map(|entry| entry.path()).filter(is_recording).collect())
    }
}

/// Endings of recordings; each may have `.gz` behind it.
const ENDINGS: [&str; 6] = ["csv", "tsv", "json", "jsonl", "ndjson", "parquet"];

/// Why a folder has no one recording.
#[derive(Debug, Error)]
enum NoRecordingError {
    #[error(
        "the folder holds no recording (.csv, .tsv, .json, .jsonl, .ndjson or .parquet, also in .gz)"
    )]
    None,
    #[error("the folder holds several recordings")]
    Several,
}

/// Whether a file is what `alpheus init` understood, or a query's results.
fn is_ours(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    let is_result = String::from_utf8_lossy(&start).contains("window_start");
    path.ends_with("understood.json") || (read.is_ok() && is_result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_recording_beside_what_init_writes() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        let found = || Folder::at(folder.path()).unwrap().recording();
        for (name, text) in [
            ("schema.yaml", "name: A\n"),
            ("understood.json", "{\n}\n"),
            ("answer.csv", "window_start,window_end\n"),
            ("rows.json", "[{\"query\": \"A\", \"window_start\": 1}]\n"),
            ("notes.txt", "none\n"),
        ] {
            write(name, text).unwrap();
        }
        assert!(found().unwrap_err().to_string().contains("no recording"));
        for name in ["a.csv", "a.tsv.gz", "a.jsonl", "a.ndjson", "a.json", "A.PARQUET"] {
            write(name, "{\"a\": 1}\n").unwrap();
            assert!(found().unwrap().ends_with(name), "{name}");
            write("other.csv", "a,b\n").unwrap();
            assert!(found().unwrap_err().to_string().contains("several"));
            std::fs::remove_file(folder.path().join(name)).unwrap();
            std::fs::remove_file(folder.path().join("other.csv")).unwrap();
        }
    }
}
