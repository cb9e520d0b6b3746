//! `alpheus stats client`: gives one account's samples to aggregates, fills slots with dummies
//! after each, and sees that what it gave was counted.
//!
//! - [`book`]: its ledger,
//! - [`input`]: samples from a file or from standard input,
//! - [`contributor`]: what it does when,
//! - [`known`]: an aggregate that it takes part in,
//! - [`looking`]: what it believes of an aggregate's end,
//! - [`heard`]: definitions that it has heard of.

pub mod book;
pub mod contributor;
pub mod heard;
pub mod input;
pub mod known;
pub mod looking;

use crate::commands::Globals;
use crate::controller::keystore::read_key_file;
use crate::failure::{Blame, Category, Failure};
use crate::pass::serve::block_on;
use crate::service::{Flags, Settings, path_flag};
use crate::stats::card::{self, Opened};
use crate::stats::clock::Clock;
use crate::stats::counts::giver;
use crate::stats::counts::plan::Planned;
use crate::stats::person::{self, Account, Person};
use crate::stats::ways::Ways;
use book::Book;
use contributor::{Contributor, Summary};
use input::Input;
use looking::Complaint;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zeroize::Zeroizing;

const EXAMPLES: &str = "\
Examples:
  alpheus stats client speed.yaml --card roads/card.json --account ada --secret-file ada.secret --state run/ada --input ada.txt
  speedometer | alpheus stats client speed.yaml --card roads/card.json --account ada --secret-file ada.secret --state run/ada

A sample is a number in a line. Of a file, lines are given one after the other, each once, to the
aggregates that take them; of standard input a line is a sample of the moment in which it is read,
and dropped if nothing takes it then; lines of a file go out at drawn moments. It ends once its input
has ended and all that it gave is counted, as a quorum of smoothers has signed; if that is not so, or
nobody shows it, it fails, says whom to tell, and keeps the receipts. Of a plan with `release: count`
it counts once in the count that runs, or the next one, and ends once that is acknowledged.

speed.yaml is what this client has agreed to: a definition that says anything else gets nothing.
Killed, it goes on where it was. Give nobody else its state, and keep no copies: what an old copy
has forgotten would be shown twice.";

/// Arguments of `alpheus stats client`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What is measured, as whoever defines it wrote it
    plan: PathBuf,
    /// The deployment's card
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// The account at the registrar
    #[arg(long, value_name = "NAME")]
    account: String,
    /// The file with what the account shows to the registrar
    #[arg(long, value_name = "FILE")]
    secret_file: PathBuf,
    /// Where it keeps credentials, uploads under way and receipts
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The file that shows an older copy of the state: best on another disk; by default in the
    /// state folder
    #[arg(long, value_name = "FILE")]
    fence: Option<PathBuf>,
    /// For so long a registrar that does not answer is waited for; by default 300
    #[arg(long, value_name = "SECONDS")]
    patience_seconds: Option<u64>,
    /// A file of samples, instead of standard input
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Fill no slots with dummies: then others must, or the aggregate has no result
    #[arg(long)]
    no_dummies: bool,
    /// A replay's clock, instead of the machine's
    #[arg(long, value_name = "FILE")]
    clock: Option<PathBuf>,
}

/// What was given is not known to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} contributions are not known to count, and what shows them stays in the state: {1}")]
struct NotCounted(u64, Complaint);

/// Runs the command until all that it gave is counted.
///
/// # Errors
/// A setting is missing or wrong, the registrar refuses, the state cannot be written, or
/// something was left out.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let settings = globals.settings(flags(args))?;
    let stats = settings.stats.clone().unwrap_or_default();
    let plan = Planned::open(&args.plan)?;
    let card = card::open(&Settings::needed(&stats.card, "stats.card")?)?;
    let (clock, patience) = (Clock::of(stats.clock.as_deref())?, stats.patience());
    let secret = read_key_file(&args.secret_file)?;
    let secret = std::str::from_utf8(&secret).blame_input(&args.secret_file)?;
    let secret = Zeroizing::new(secret.to_owned());
    let store = settings.open_store(&globals.health, &globals.metrics)?;
    let book = Book::open(store, &stats.fence(&settings.state)?)?;
    let account = Account { name: &args.account, secret: &secret };
    let plan = match plan {
        Planned::Sums(plan) => *plan,
        Planned::Count(plan) => {
            return block_on(async {
                let entering = enter(&card, &account, (&clock, patience), book);
                let person = Arc::new(Mutex::new(entering.await?));
                giver::run(&card, &clock, &plan, &person).await
            });
        }
    };
    let input = Input::open(args.input.as_deref(), &book, &plan, &clock)?;
    let summary = block_on(async {
        let entering = enter(&card, &account, (&clock, patience), book);
        let person = Arc::new(Mutex::new(entering.await?));
        let volunteers = !args.no_dummies;
        Contributor::new(card, clock, plan, person, volunteers)?.run(input).await
    })?;
    told(&summary);
    believed(&summary)
}

/// Whether all that was given is known to count.
fn believed(summary: &Summary) -> Result<(), Failure> {
    let first = summary.complaints.first_key_value();
    first.map_or(Ok(()), |(why, many)| Err(NotCounted(*many, *why))).blame(Category::Check)
}

/// Gets the account's credentials.
async fn enter(
    card: &Opened,
    account: &Account<'_>,
    (clock, patience): (&Clock, Duration),
    book: Book,
) -> Result<Person<Book>, Failure> {
    let ways = Ways { patience, ..Ways::new(card)? };
    let person = person::register(&card.pinned, &ways, account, clock, book, Book::records).await?;
    eprintln!("taking part as {}", account.name);
    Ok(person)
}

fn told(summary: &Summary) {
    let Summary { samples, dummies, dropped, unplaced, .. } = summary;
    for (why, many) in &summary.complaints {
        eprintln!("{many} contributions: {why}");
    }
    eprintln!(
        "{samples} samples and {dummies} dummies given, {unplaced} samples found no slot, {dropped} lines dropped"
    );
}

fn flags(args: &Args) -> Flags {
    vec![
        ("state", path_flag(args.state.as_ref())),
        ("stats.card", path_flag(args.card.as_ref())),
        ("stats.fence", path_flag(args.fence.as_ref())),
        ("stats.patience-seconds", args.patience_seconds.map(|seconds| seconds.to_string())),
        ("stats.clock", path_flag(args.clock.as_ref())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitCode;

    /// Whoever runs it sees by the exit code that something is not known to count, and reads
    /// which and whom to tell.
    #[test]
    fn a_client_that_is_left_out_fails() {
        let all = Summary { samples: 3, dummies: 2, unplaced: 1, ..Summary::default() };
        assert!(believed(&all).is_ok());
        let complaints = [
            (Complaint::LeftOut, "receipts of a quorum"),
            (Complaint::OtherSet, "another set"),
            (Complaint::NotShown, "does not show"),
            (Complaint::NoVerdict, "too few smoothers"),
        ];
        for (why, said) in complaints {
            let complaints = [(why, 2)].into();
            let failure = believed(&Summary { complaints, ..all.clone() }).unwrap_err();
            assert_eq!(failure.exit_code(), ExitCode::from(1));
            let told = failure.to_string();
            assert!(told.contains("2 contributions") && told.contains(said), "{told}");
        }
    }
}
