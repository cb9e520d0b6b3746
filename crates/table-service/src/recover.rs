//! `alpheus table recover`: rebuilds a lost folder from the key and the server alone.

use super::remote::{Reach, Remote, rejected};
use super::state::TableState;
use alpheus_crypto::secret::Secret;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::pki::read_seed;
use alpheus_node::settings::Settings;
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::owner::Owner;
use alpheus_verifiable_table::saved::{OpenedState, StateName};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus table recover --key table.key --identity pki/ada --state ada \\
      --server https://localhost:7601
  alpheus table recover --key table.key --at-least 3 --identity pki/ada --state ada \\
      --server https://localhost:7601

Every command that changes the table saves its state at the server, sealed under the key, and prints
the state's number. A server can neither read nor forge a state, but it can hide newer ones and show
an older one: that of an earlier day. --at-least detects this, if you noted a number. The server
keeps the blocks; `alpheus table verify` checks them.";

/// Arguments of `alpheus table recover`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The table's key: a copy of `table.key`
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Fail if the newest state at the server has a lower number
    #[arg(long, value_name = "NUMBER")]
    at_least: Option<u64>,
    /// The state to recover, if copies of the folder went separate ways
    #[arg(long, value_name = "NAME")]
    choose: Option<String>,
    #[command(flatten)]
    reach: Reach,
}

/// The server has no state of the table.
#[derive(Debug, thiserror::Error)]
#[error("the server shows no saved state of this key's table")]
pub(crate) struct NoStateError;

/// No state has the name.
#[derive(Debug, thiserror::Error)]
#[error("the server shows no saved state of the name `{chosen}`; it shows {shown}")]
pub(crate) struct NoSuchStateError {
    chosen: String,
    shown: String,
}

/// The server shows nothing as new as it should.
#[derive(Debug, thiserror::Error)]
#[error(
    "the newest state that the server shows is {name}, older than number {at_least}: it hides or has lost newer ones"
)]
pub(crate) struct OldStateError {
    name: StateName,
    at_least: u64,
}

/// Copies of the folder were changed apart from each other.
#[derive(Debug, thiserror::Error)]
#[error("copies of the folder went separate ways, and each has saved a state: {0}")]
pub(crate) struct ForkError(String);

/// Runs the command.
///
/// # Errors
/// If the key or the folder is invalid, the server does not answer, it has no state, or what it
/// shows as a state is wrong, too old or ambiguous.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = args.reach.settings(globals)?;
    let folder = Settings::needed(&settings.state, "state")?;
    let secret = read_seed(&args.key)?;
    let key = TableKey::new(secret.duplicate());
    let remote = Remote::new(&settings, key.data_set())?;
    let states = opened(&remote, &key, args.choose.as_deref())?;
    let state = newest(states, &key, args.at_least)?;
    let name = state.name();
    let state = rebuild(&folder, &secret, state, &remote)?;
    let (rows, blocks) = (state.owner.rows(), state.owner.blocks());
    eprintln!(
        "table `{}` recovered in {} from state {name}: {rows} rows, {blocks} blocks; `alpheus table verify` checks the blocks",
        state.schema.name,
        folder.display(),
    );
    Ok(())
}

/// Fetches and opens the states that the server shows, or the chosen one.
fn opened(
    remote: &Remote,
    key: &TableKey,
    chosen: Option<&str>,
) -> Result<Vec<OpenedState>, Failure> {
    let shown = remote.states()?;
    if shown.is_empty() {
        let help = "is this the key of a table that this owner has at this server?";
        return Err(Failure::new(Category::Check, NoStateError).with_help(help));
    }
    let fits = |name: &&StateName| chosen.is_none_or(|chosen| name.to_string() == chosen);
    let names: Vec<StateName> = shown.iter().filter(fits).copied().collect();
    if let (true, Some(chosen)) = (names.is_empty(), chosen) {
        let shown: Vec<String> = shown.iter().map(ToString::to_string).collect();
        let error = NoSuchStateError { chosen: chosen.to_owned(), shown: shown.join(", ") };
        return Err(Failure::new(Category::Usage, error));
    }
    let open = |name: StateName| {
        let bytes = remote.state(name)?;
        key.open_state(&name, &bytes)
            .map_err(|error| rejected(error).at(format!("saved state {name}")))
    };
    names.into_iter().map(open).collect()
}

/// The one state that no other replaces.
fn newest(
    states: Vec<OpenedState>,
    key: &TableKey,
    at_least: Option<u64>,
) -> Result<OpenedState, Failure> {
    let is_replaced = |state: &OpenedState| states.iter().any(|other| other.replaces(state));
    let last: Vec<bool> = states.iter().map(|state| !is_replaced(state)).collect();
    let mut last: Vec<OpenedState> =
        states.into_iter().zip(last).filter(|(_, last)| *last).map(|(state, _)| state).collect();
    if last.len() > 1 {
        let rows = |state: &OpenedState| -> Result<String, Failure> {
            let owner = Owner::open(key, state.records(), &mut entropy::rng()?);
            Ok(format!("{} of {} rows", state.name(), owner.blame(Category::Check)?.rows()))
        };
        let each: Result<Vec<String>, Failure> = last.iter().map(rows).collect();
        let help =
            "choose one with --choose NAME; rows that only another has must be appended again";
        let error = ForkError(each?.join(", "));
        return Err(Failure::new(Category::Refused, error).with_help(help));
    }
    let state = last.pop().ok_or(NoStateError).blame(Category::Check)?;
    match at_least.filter(|at_least| state.name().version < *at_least) {
        Some(at_least) => {
            let error = OldStateError { name: state.name(), at_least };
            Err(Failure::new(Category::Check, error))
        }
        None => Ok(state),
    }
}

/// Writes the folder, and compares what it knows with what the server reports to have.
fn rebuild(
    folder: &Path,
    secret: &Secret<32>,
    state: OpenedState,
    remote: &Remote,
) -> Result<TableState, Failure> {
    let state = TableState::recover(folder, secret, state)?;
    remote.create(state.owner.manifest())?;
    let (mut unknown, mut missing) = (0, 0);
    let (known, stored) = (state.known_blocks(), remote.segments()?);
    for segment in known.keys().chain(stored.keys()).collect::<BTreeSet<_>>() {
        let count = |blocks: &BTreeMap<_, u64>| blocks.get(segment).copied().unwrap_or(0);
        unknown += count(&stored).saturating_sub(count(&known));
        missing += count(&known).saturating_sub(count(&stored));
    }
    if unknown > 0 {
        eprintln!(
            "warning: the server has {unknown} blocks that this state does not know: rows were appended or rewritten after it; append their files again"
        );
    }
    if missing > 0 {
        eprintln!("warning: the server lacks {missing} blocks of this state");
    }
    Ok(state)
}
