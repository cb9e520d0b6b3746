//! `alpheus otlp import`: a schema, policies and a mapping from captured metrics.

use crate::capture::{Survey, requests};
use crate::draft::{Draft, draft};
use alpheus_input::tables::print_json;
use alpheus_node::failure::{Blame, Failure, printed};
use alpheus_node::files::{Readers, make_private_folder, write_new};
use alpheus_node::globals::Globals;
use alpheus_standards::inventory::Entry;
use serde::Serialize;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus otlp import captured.json --output checkout --name Checkout";

/// Arguments of `alpheus otlp import`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Captured OTLP requests: JSON, one per file or one per line, or Protobuf
    #[arg(value_name = "FILE", required = true)]
    captures: Vec<PathBuf>,
    /// The folder to write to; it must not exist, or be empty
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
    /// The schema's name
    #[arg(long, value_name = "NAME", default_value = "Metrics")]
    name: String,
}

/// What became of each part: `import.json`.
#[derive(Serialize)]
struct Report<'a> {
    standard: &'static str,
    carried: &'a [Entry],
    not_carried: &'a [Entry],
}

/// Runs the command.
///
/// # Errors
/// A capture cannot be read, has no metric that adds up, or a file cannot be written.
pub fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    let mut seen = Survey::default();
    for path in &args.captures {
        let bytes = std::fs::read(path).blame_io(path)?;
        let all = requests(&bytes).blame_input(path)?;
        all.iter().for_each(|request| seen.look(request));
    }
    let first = args.captures.first().cloned().unwrap_or_default();
    let draft = draft(&seen, &args.name).blame_input(&first)?;
    write(&draft, &args.output)?;
    let (carried, left) = (draft.carried.len(), draft.not_carried.len());
    let folder = args.output.display();
    let metrics = draft.mapping.metrics.len();
    let said = format!(
        "{metrics} metrics in {folder}/schema.yaml; {carried} parts carried, {left} not\n{folder}/import.json says what became of each part, and why.\n"
    );
    let mut out = std::io::stdout().lock();
    let _ = printed(out.write_all(said.as_bytes()).and_then(|()| out.flush()))?;
    Ok(())
}

fn write(draft: &Draft, folder: &Path) -> Result<(), Failure> {
    let is_empty = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if !is_empty {
        make_private_folder(folder)?;
    }
    let new = |name: &str, bytes: &[u8]| write_new(&folder.join(name), bytes, Readers::Everybody);
    let json = |value: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
        let mut bytes = Vec::new();
        value(&mut bytes).blame_io(folder).map(|()| bytes)
    };
    new("schema.yaml", draft.schema.as_bytes())?;
    new("policies.yaml", draft.policies.as_bytes())?;
    let mapping = json(&|bytes| print_json(&draft.mapping, bytes))?;
    new("otlp.json", &mapping)?;
    let (carried, not_carried) = (draft.carried.as_slice(), draft.not_carried.as_slice());
    let report = Report { standard: "OTLP metrics", carried, not_carried };
    new("import.json", &json(&|bytes| print_json(&report, bytes))?)
}
