//! Where rows come from: `alpheus query --released`, which checks them, or files that were saved.

use crate::alpheus::Alpheus;
use crate::failure::ProgramError;
use crate::released_tables::{Query, ReleasedTables};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::sleep;

/// How long to wait before `alpheus` is started again.
const PAUSE: Duration = Duration::from_secs(5);

/// A line of `alpheus query --released`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The schemas of encrypted streams.
    Schemas(Vec<String>),
    /// A query of the consumer.
    Query(Box<Query>),
    /// A row.
    Row(Box<Row>),
    /// All rows so far were printed.
    Read(bool),
}

#[derive(Deserialize)]
struct Row {
    query: String,
    checked: bool,
    row: Map<String, Value>,
}

/// Reads rows until the program ends. Says on `ready` once all rows so far are here.
pub(crate) async fn follow(
    alpheus: Alpheus,
    released: Arc<ReleasedTables>,
    ready: watch::Sender<bool>,
) -> ProgramError {
    loop {
        let failed = match once(&alpheus, &released, &ready).await {
            Ok(said) | Err(ProgramError::Feed(said)) => said,
            Err(failure) => return failure,
        };
        // What never began has a cause that somebody must fix.
        if !*ready.borrow() {
            return ProgramError::Feed(failed);
        }
        eprintln!(
            "warning: `alpheus` ended and is started again; the rows so far stay readable\n{failed}"
        );
        sleep(PAUSE).await;
    }
}

async fn once(
    alpheus: &Alpheus,
    released: &ReleasedTables,
    ready: &watch::Sender<bool>,
) -> Result<String, ProgramError> {
    let mut command = alpheus.command(&["--released", "--follow"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let program = || alpheus.program.display().to_string();
    let mut child = command.spawn().map_err(|error| ProgramError::Program(program(), error))?;
    let said = tokio::spawn(errors_of(&mut child));
    if let Some(out) = child.stdout.take() {
        let mut lines = BufReader::new(out).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            take(&line, released, ready)?;
        }
    }
    let _ = child.wait().await;
    Ok(said.await.unwrap_or_default())
}

fn errors_of(child: &mut Child) -> impl Future<Output = String> + use<> {
    let stderr = child.stderr.take();
    async move {
        let mut said = String::new();
        if let Some(mut stderr) = stderr {
            // What is not text says nothing.
            let _ = stderr.read_to_string(&mut said).await;
        }
        said.trim().to_owned()
    }
}

fn take(
    line: &str,
    released: &ReleasedTables,
    ready: &watch::Sender<bool>,
) -> Result<(), ProgramError> {
    let unknown = || {
        ProgramError::Feed(
            "it is of another version: it printed a line that is not known here".to_owned(),
        )
    };
    match serde_json::from_str(line).map_err(|_| unknown())? {
        Line::Schemas(names) => released.set_schemas(names),
        Line::Query(query) => released.declare(*query),
        Line::Row(own) => released.add(&own.query, own.row, own.checked),
        Line::Read(all) => drop(ready.send_replace(all)),
    }
    Ok(())
}

/// Reads the rows of a file: lines of JSON, or one list. The table has the file's name. Nobody has checked them here.
pub(crate) fn read_file(path: &Path, released: &ReleasedTables) -> Result<(), ProgramError> {
    let at = || path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| ProgramError::File(at(), error))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if text.trim_start().starts_with('[') {
        let rows: Vec<Map<String, Value>> =
            serde_json::from_str(&text).map_err(|error| ProgramError::Row(at(), error.line()))?;
        rows.into_iter().for_each(|row| released.add(&name, row, false));
        return Ok(());
    }
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let row = serde_json::from_str(line).map_err(|_| ProgramError::Row(at(), number + 1))?;
        released.add(&name, row, false);
    }
    Ok(())
}

/// The same of several files.
pub(crate) fn read_files(paths: &[PathBuf], released: &ReleasedTables) -> Result<(), ProgramError> {
    paths.iter().try_for_each(|path| read_file(path, released))
}
