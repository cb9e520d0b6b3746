//! Test vectors, made by Python scripts that share no code with ours.
//!
//! Each `vectors/<protocol>/generate.py` writes its files into the directory
//! that it is given, the same bytes every time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to do with what the generators write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Replace the tracked files.
    Write,
    /// Compare with the tracked files.
    Check,
}

/// Runs every generator.
pub(crate) fn run(root: &Path, mode: Mode) -> Result<String, String> {
    let mut made = 0;
    let mut complaints = Vec::new();
    for directory in protocols(&root.join("vectors"))? {
        let target = match mode {
            Mode::Write => directory.clone(),
            Mode::Check => scratch(root, &directory)?,
        };
        generate(root, &directory, &target)?;
        let fresh = contents(&target)?;
        made += fresh.len();
        if mode == Mode::Check {
            complaints.extend(differences(&directory, &contents(&directory)?, &fresh));
        }
    }
    if complaints.is_empty() {
        return Ok(format!("vectors: {made} files"));
    }
    Err(format!("{}\nvectors: the generators now write other content", complaints.join("\n")))
}

/// The directories that hold a generator.
fn protocols(vectors: &Path) -> Result<Vec<PathBuf>, String> {
    let Ok(entries) = std::fs::read_dir(vectors) else { return Ok(Vec::new()) };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.join("generate.py").is_file())
        .collect();
    found.sort();
    Ok(found)
}

/// An empty directory beside the build's other outputs.
fn scratch(root: &Path, directory: &Path) -> Result<PathBuf, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let path = target.join("vectors").join(directory.file_name().unwrap_or_default());
    if path.exists() {
        std::fs::remove_dir_all(&path).map_err(|e| at(&path, &e))?;
    }
    std::fs::create_dir_all(&path).map_err(|e| at(&path, &e))?;
    Ok(path)
}

fn generate(root: &Path, directory: &Path, target: &Path) -> Result<(), String> {
    let script = directory.join("generate.py");
    let ours = root.join(".venv/bin/python");
    let python = if ours.is_file() { ours } else { PathBuf::from("python3") };
    let status = Command::new(python).arg("-B").arg(&script).arg(target).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("vectors: {}: {status}", script.display())),
        Err(error) => Err(at(&script, &error)),
    }
}

/// Every JSON file below `directory`, by its path from there.
fn contents(directory: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(place) = waiting.pop() {
        for entry in std::fs::read_dir(&place).map_err(|e| at(&place, &e))? {
            let path = entry.map_err(|e| at(&place, &e))?.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|e| e == "json") {
                let bytes = std::fs::read(&path).map_err(|e| at(&path, &e))?;
                found.insert(path.strip_prefix(directory).unwrap_or(&path).to_owned(), bytes);
            }
        }
    }
    Ok(found)
}

fn differences(
    directory: &Path,
    tracked: &BTreeMap<PathBuf, Vec<u8>>,
    fresh: &BTreeMap<PathBuf, Vec<u8>>,
) -> Vec<String> {
    let names: std::collections::BTreeSet<&PathBuf> = tracked.keys().chain(fresh.keys()).collect();
    let differ = names.into_iter().filter(|name| tracked.get(*name) != fresh.get(*name));
    differ.map(|name| directory.join(name).display().to_string()).collect()
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("vectors: {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_changed_what_is_missing_and_what_nobody_makes() {
        let map = |list: &[(&str, &[u8])]| {
            list.iter().map(|(name, bytes)| (PathBuf::from(name), bytes.to_vec())).collect()
        };
        let tracked = map(&[("same", b"1"), ("changed", b"1"), ("orphan", b"1")]);
        let fresh = map(&[("same", b"1"), ("changed", b"2"), ("missing", b"1")]);
        let expected = ["v/changed", "v/missing", "v/orphan"];
        assert_eq!(differences(Path::new("v"), &tracked, &fresh), expected);
    }
}
