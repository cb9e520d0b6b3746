//! `alpheus stats client`: contributes one account's samples to aggregates, fills slots with dummies
//! after each, and checks that its contributions count.
//!
//! - [`input`]: samples from a file or from standard input,
//! - [`contributor`]: the client's main loop,
//! - [`participation`]: an aggregate that the client takes part in,
//! - [`inclusion_check`]: the check that contributions are in the agreed set,
//! - [`resolution`]: whether its samples are coarser than the plan says,
//! - [`definitions`]: the definitions that the client has received.

pub mod contributor;
pub mod definitions;
pub mod inclusion_check;
pub mod input;
pub mod participation;
pub mod resolution;

use crate::card::{self, VerifiedCard};
use crate::client_ledger::ClientLedger;
use crate::contributor_state::{self, Account, ContributorState};
use crate::counts::tally_client;
use crate::parties::Parties;
use crate::plan::count::AnyPlan;
use crate::settings::StatsSettings;
use alpheus_node::clock::Clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::read_key_file;
use alpheus_node::globals::Globals;
use alpheus_node::listeners::block_on;
use alpheus_node::note;
use alpheus_node::settings::{Flags, Settings, path_flag};
use contributor::{Contributor, Summary};
use inclusion_check::InclusionError;
use input::Input;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zeroize::Zeroizing;

const EXAMPLES: &str = "\
Examples:
  alpheus stats client speed.yaml --card roads/card.json --account ada \\
      --secret-file ada.secret --state run/ada --input ada.txt
  speedometer | alpheus stats client speed.yaml --card roads/card.json --account ada \\
      --secret-file ada.secret --state run/ada

Each line of the input is a number, one sample. The lines of a file are contributed in order and
once each, at random times, while an aggregate accepts them. A line of standard input is a sample of
the moment it is read, and is dropped if no aggregate accepts it then. The client ends once its
input has ended and a quorum of smoothers has signed that all its contributions count. If they do
not count, or nobody proves that they do, it fails, says whom to inform, and keeps the receipts.
With a plan of `release: count`, it takes part once in the current count or the next one, and ends
once the aggregator has acknowledged that.

speed.yaml is what this client has agreed to: it contributes nothing to a definition that differs.
A killed client continues where it was. Do not share or copy its state: an old copy could present a
credential twice.";

/// Arguments of `alpheus stats client`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The definer's plan
    plan: PathBuf,
    /// The deployment's card
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// The account at the registrar
    #[arg(long, value_name = "NAME")]
    account: String,
    /// The file with the account's secret
    #[arg(long, value_name = "FILE")]
    secret_file: PathBuf,
    /// The folder for its state: credentials, pending uploads and receipts
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The fence: the file that reveals an older copy of the state. Keep it out of backups. By default it is
    /// next to the state folder, with the same name and the ending `.fence`; another disk is better
    #[arg(long, value_name = "FILE")]
    fence: Option<PathBuf>,
    /// How long to wait for a registrar that does not answer; by default 300
    #[arg(long, value_name = "SECONDS")]
    timeout_seconds: Option<u64>,
    /// A file of samples, instead of standard input
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Contribute no dummies; if the others leave slots empty, the aggregate has no result
    #[arg(long)]
    no_dummies: bool,
}

/// Contributions are not known to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} contributions are not known to count, and their receipts stay in the state: {1}")]
pub(crate) struct NotCountedError(u64, InclusionError);

/// Runs the command until all its contributions are known to count.
///
/// # Errors
/// A setting is missing or wrong, the registrar refuses, the state cannot be written, or
/// a contribution was left out.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(flags(args))?;
    let stats = settings.part::<StatsSettings>()?;
    let plan = AnyPlan::open(&args.plan)?;
    let card = card::open(&Settings::needed(&stats.card, "stats.card")?)?;
    let (clock, patience) = (Clock::Process, stats.patience());
    let secret = read_key_file(&args.secret_file)?;
    let secret = std::str::from_utf8(&secret).blame_input(&args.secret_file)?;
    let secret = Zeroizing::new(secret.to_owned());
    let store = globals.open_store(&settings)?;
    let ledger = ClientLedger::open(store, &stats.fence(&settings.state)?)?;
    let account = Account { name: &args.account, secret: &secret };
    let plan = match plan {
        AnyPlan::Sums(plan) => *plan,
        AnyPlan::Count(plan) => {
            return block_on(async {
                let entering = enter(&card, &account, (&clock, patience), ledger);
                let state = Arc::new(Mutex::new(entering.await?));
                tally_client::run(&card, &clock, &plan, &state).await
            });
        }
    };
    let input = Input::open(args.input.as_deref(), &ledger, &plan, &clock)?;
    let summary = block_on(async {
        let entering = enter(&card, &account, (&clock, patience), ledger);
        let state = Arc::new(Mutex::new(entering.await?));
        let volunteers = !args.no_dummies;
        Contributor::new(card, clock, plan, state, volunteers)?.run(input).await
    })?;
    print(&summary);
    check(&summary)
}

/// Checks that all contributions are known to count.
fn check(summary: &Summary) -> Result<(), Failure> {
    let first = summary.complaints.first_key_value();
    first.map_or(Ok(()), |(why, many)| Err(NotCountedError(*many, *why))).blame(Category::Check)
}

/// Obtains the account's credentials.
async fn enter(
    card: &VerifiedCard,
    account: &Account<'_>,
    (clock, patience): (&Clock, Duration),
    ledger: ClientLedger,
) -> Result<ContributorState<ClientLedger>, Failure> {
    let parties = Parties { patience, ..Parties::new(card)? };
    let state = contributor_state::register(
        &card.pinned,
        &parties,
        account,
        clock,
        ledger,
        ClientLedger::records,
    )
    .await?;
    note!("taking part as {}", account.name);
    Ok(state)
}

fn print(summary: &Summary) {
    let Summary { samples, dummies, dropped, unplaced, .. } = summary;
    for (why, many) in &summary.complaints {
        note!("{many} contributions: {why}");
    }
    note!(
        "{samples} samples and {dummies} dummies contributed, {unplaced} samples found no slot, {dropped} lines dropped"
    );
}

fn flags(args: &Args) -> Flags {
    vec![
        ("state", path_flag(args.state.as_ref())),
        ("stats.card", path_flag(args.card.as_ref())),
        ("stats.fence", path_flag(args.fence.as_ref())),
        ("stats.timeout-seconds", args.timeout_seconds.map(|seconds| seconds.to_string())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitCode;

    /// The exit code shows that a contribution is not known to count; the message says which and whom
    /// to inform.
    #[test]
    fn a_client_that_is_left_out_fails() {
        let all = Summary { samples: 3, dummies: 2, unplaced: 1, ..Summary::default() };
        assert!(check(&all).is_ok());
        let complaints = [
            (InclusionError::LeftOut, "receipts of a quorum"),
            (InclusionError::OtherSet, "a different set"),
            (InclusionError::NotShown, "does not publish"),
            (InclusionError::Disputed, "has signed a result"),
            (InclusionError::NoVerdict, "too few smoothers"),
        ];
        for (why, said) in complaints {
            let complaints = [(why, 2)].into();
            let failure = check(&Summary { complaints, ..all.clone() }).unwrap_err();
            assert_eq!(failure.exit_code(), ExitCode::from(1));
            let text = failure.to_string();
            assert!(text.contains("2 contributions") && text.contains(said), "{text}");
        }
    }
}
