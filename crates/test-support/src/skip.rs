//! Tests that cannot run on this machine: each reports why, and is counted.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The variable that names the file to which skipped tests are appended.
const REPORT: &str = "TEST_SKIPS";

/// Reports that the running test, or a part of it, is skipped, and why.
///
/// # Panics
///
/// If `CI` is `true`: what a test needs can be installed there.
#[expect(clippy::panic, reason = "a skipped test fails there")]
pub fn skip(why: &str) {
    let line = report(why);
    if std::env::var("CI").is_ok_and(|ci| ci == "true") {
        panic!("{line}; with CI=true only tests over recorded data may be skipped");
    }
}

/// Writes the line `skipped: TEST: WHY` to standard error and to the file that `TEST_SKIPS` names.
fn report(why: &str) -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let thread = std::thread::current();
    let line = format!("skipped: {package} {}: {why}", thread.name().unwrap_or("a test"));
    eprintln!("{line}");
    if let Some(path) = std::env::var_os(REPORT) {
        append(Path::new(&path), &line);
    }
    line
}

/// A line that cannot be written is still on standard error.
fn append(path: &Path, line: &str) {
    let file = OpenOptions::new().create(true).append(true).open(path);
    // One write, so that tests of several processes do not mix their lines.
    let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
}

/// Whether this program is on `PATH`; otherwise the test is skipped.
#[must_use]
pub fn has_program(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).any(|folder| folder.join(name).is_file());
    if !found {
        skip(&format!("there is no {name} on this machine"));
    }
    found
}

/// The folder of recorded data; otherwise the test is skipped, in CI too: nobody can install it.
#[must_use]
pub fn real_data() -> Option<PathBuf> {
    let folder = std::env::var_os("ALPHEUS_REAL_DATA").map(PathBuf::from);
    if folder.is_none() {
        report("ALPHEUS_REAL_DATA does not name the folder of recorded data");
    }
    folder
}

/// The class path in the file that `variable` names, or in `default`; otherwise the test is skipped.
///
/// `make broker` writes the files that tests look for by default.
#[must_use]
pub fn class_path(variable: &str, default: &str) -> Option<String> {
    let file = std::env::var_os(variable).map_or(default.into(), PathBuf::from);
    let class_path = std::fs::read_to_string(&file).ok();
    if class_path.is_none() {
        skip(&format!("there is no {} (`make broker` writes it)", file.display()));
    }
    class_path
}
