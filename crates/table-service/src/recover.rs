//! `alpheus table recover`: rebuilds a lost folder from the key and the server alone.

use super::remote::{Reach, Remote, rejected};
use super::state::TableState;
use alpheus_crypto::secret::Secret;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::note;
use alpheus_node::pki::read_seed;
use alpheus_node::settings::Settings;
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::owner::Owner;
use alpheus_verifiable_table::saved_state::{OpenedState, StateId, StateName};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  alpheus table recover --key table.key --identity pki/ada --state ada \\
      --server https://localhost:7601
  alpheus table recover --key table.key --at-least 3 --identity pki/ada --state ada \\
      --server https://localhost:7601

Every command that changes the table saves its state at the server, sealed under the key, and prints
the state's name. Write down the newest: `--choose 7-3fa9c2d1` accepts that state and no other. A
server can neither read nor forge a state, but it can hide newer ones and show an older one.
--at-least, with the number before the dash, detects this the first time. After a recovery from an
older state, the numbers continue from that state, so the server can then show one that was saved
before the recovery. The server keeps the blocks; `alpheus table verify` checks them.";

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
    /// The state to recover, by its whole name: as you noted it, or one of several copies of the folder
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

/// The server shows more states than there can be.
#[derive(Debug, thiserror::Error)]
#[error(
    "the server shows {0} saved states; an honest server has one for each copy of the folder that was changed separately"
)]
pub(crate) struct ManyStatesError(usize);

/// The most states that are fetched to find the newest.
const MAX_STATES: usize = 256;

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
#[error("copies of the folder diverged, and each has saved a state: {0}")]
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
    let open = |name: StateName| {
        let bytes = remote.state(name)?;
        key.open_state(&name, &bytes)
            .map_err(|error| rejected(error).at(format!("saved state {name}")))
    };
    let state = newest(&shown(&remote, args.choose.as_deref())?, &key, open)?;
    let name = state.name();
    if let Some(at_least) = args.at_least.filter(|at_least| name.version < *at_least) {
        return Err(Failure::new(Category::Check, OldStateError { name, at_least }));
    }
    let state = rebuild(&folder, &secret, state, &remote)?;
    let (rows, blocks) = (state.owner.rows(), state.owner.blocks());
    note!(
        "table `{}` recovered in {} from state {name}: {rows} rows, {blocks} blocks; `alpheus table verify` checks the blocks",
        state.schema.name,
        folder.display(),
    );
    Ok(())
}

/// The names of the states that the server shows, or the chosen one.
fn shown(remote: &Remote, chosen: Option<&str>) -> Result<BTreeSet<StateName>, Failure> {
    let shown: BTreeSet<StateName> = remote.states()?.into_iter().collect();
    if shown.is_empty() {
        let help = "is this the key of a table that this owner has at this server?";
        return Err(Failure::new(Category::Check, NoStateError).with_help(help));
    }
    let fits = |name: &&StateName| chosen.is_none_or(|chosen| name.to_string() == chosen);
    let names: BTreeSet<StateName> = shown.iter().filter(fits).copied().collect();
    if let (true, Some(chosen)) = (names.is_empty(), chosen) {
        let shown: Vec<String> = shown.iter().take(MAX_STATES).map(ToString::to_string).collect();
        let error = NoSuchStateError { chosen: chosen.to_owned(), shown: shown.join(", ") };
        return Err(Failure::new(Category::Usage, error));
    }
    if names.len() > MAX_STATES {
        let help = "if you have noted the name of the newest, give it with --choose NAME";
        return Err(Failure::new(Category::Check, ManyStatesError(names.len())).with_help(help));
    }
    Ok(names)
}

/// The one state that no other replaces. States are long, so that one at a time is in memory.
fn newest(
    names: &BTreeSet<StateName>,
    key: &TableKey,
    open: impl Fn(StateName) -> Result<OpenedState, Failure>,
) -> Result<OpenedState, Failure> {
    if let (1, Some(name)) = (names.len(), names.first()) {
        return open(*name);
    }
    let link = |name: &StateName| open(*name).map(|state| (*name, state.id(), state.previous()));
    let links: Vec<_> = names.iter().map(link).collect::<Result<_, _>>()?;
    let replaced: BTreeSet<StateId> = links.iter().map(|(.., previous)| *previous).collect();
    let last = links.iter().filter(|(_, id, _)| !replaced.contains(id)).map(|(name, ..)| *name);
    match last.collect::<Vec<_>>().as_slice() {
        [] => Err(NoStateError).blame(Category::Check),
        [name] => open(*name),
        several => Err(fork(several, key, open)),
    }
}

/// What the states of separate copies hold, for their owner to choose.
fn fork(
    names: &[StateName],
    key: &TableKey,
    open: impl Fn(StateName) -> Result<OpenedState, Failure>,
) -> Failure {
    let rows = |name: &StateName| -> Result<String, Failure> {
        let state = open(*name)?;
        let owner = Owner::open(key, state.records(), &mut entropy::rng()?);
        Ok(format!("{name} of {} rows", owner.blame(Category::Check)?.rows()))
    };
    let each: Result<Vec<String>, Failure> = names.iter().map(rows).collect();
    let help = "choose one with --choose NAME; rows that only another has must be appended again";
    match each {
        Ok(each) => Failure::new(Category::Refused, ForkError(each.join(", "))).with_help(help),
        Err(failure) => failure,
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
        note!(
            "warning: the server has {unknown} blocks that this state does not know: rows were appended or rewritten after it; append their files again"
        );
    }
    if missing > 0 {
        note!("warning: the server lacks {missing} blocks of this state");
    }
    Ok(state)
}
