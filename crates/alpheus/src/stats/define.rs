//! `alpheus stats define`: has smoothers sign what will be measured. They tell everybody.

use crate::commands::Globals;
use crate::failure::{Blame, Category, Failure};
use crate::pass::link::LinkError;
use crate::pass::serve::block_on;
use crate::stats::card::{self, Opened};
use crate::stats::clock::Clock;
use crate::stats::counts::plan::{Count, Planned};
use crate::stats::keys;
use crate::stats::names::hex;
use crate::stats::plan::Plan;
use crate::stats::ways::{AGAIN, StatsError, Way, Ways, gathered};
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::{Agreed, BadDefinition, Definition};
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::messages::Card;
use alpheus_accountable_statistics::tally::{BadTally, Tally};
use alpheus_accountable_statistics::tuple::ThresholdKey;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const EXAMPLES: &str = "\
Examples:
  alpheus stats define speed.yaml --card roads/card.json --key roads/definer.key
  alpheus stats define speed.yaml --card roads/card.json --key roads/definer.key --count 24
  alpheus stats define gate.yaml --card roads/card.json --key roads/operator.key

Aggregates begin at the next multiple of their length. Each smoother signs one only if it
overlaps none that it has signed; a quorum of signatures makes it count. A plan with `release: count`
asks how many were somewhere: the operator signs it, and the aggregator alone need know of it.";

/// So long before it begins an aggregate is defined at least, in microseconds.
const AHEAD: u64 = 5_000_000;

/// Arguments of `alpheus stats define`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What is to be measured
    plan: PathBuf,
    /// The deployment's card
    #[arg(long, value_name = "FILE")]
    card: PathBuf,
    /// The definer's key, which smoothers define for; for a count, the operator's
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// For so long smoothers that do not answer, or have no key yet, are waited for; by default 300
    #[arg(long, value_name = "SECONDS")]
    patience_seconds: Option<u64>,
    /// How many aggregates, one after the other
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    count: u64,
    /// A replay's clock, instead of the machine's
    #[arg(long, value_name = "FILE")]
    clock: Option<PathBuf>,
}

/// Why nothing is defined.
#[derive(Debug, thiserror::Error)]
pub enum NotDefined {
    /// The plan makes no good definition.
    #[error(transparent)]
    Bad(#[from] BadDefinition),
    /// The smoothers do not answer, or not alike.
    #[error(transparent)]
    Ways(#[from] StatsError),
}

impl From<NotDefined> for Failure {
    fn from(error: NotDefined) -> Self {
        match error {
            NotDefined::Bad(bad) => Self::new(Category::Input, bad),
            NotDefined::Ways(error) => error.into(),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// If the plan cannot be used, or too few smoothers sign.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let seconds = args.patience_seconds.map(|seconds| seconds.to_string());
    let settings = globals.settings(vec![("stats.patience-seconds", seconds)])?;
    let patience = settings.stats.unwrap_or_default().patience();
    let card = card::open(&args.card)?;
    let ways = Ways { patience, ..Ways::new(&card)? };
    let key = keys::signing(&args.key)?;
    let clock = Clock::of(args.clock.as_deref())?;
    let plan = match Planned::open(&args.plan)? {
        Planned::Sums(plan) => *plan,
        Planned::Count(count) => {
            let starts = starts(count.every.0, args.count, clock.now());
            return block_on(ask(&card, &ways, (&count, &key), starts));
        }
    };
    let every = plan.every.0;
    block_on(async {
        // Before the first one begins there is time to sign it.
        let running = card.pinned.key_epoch(clock.now());
        key_of(&card, &ways, running.unwrap_or(KeyEpoch(0))).await?;
        for start in starts(every, args.count, clock.now()) {
            let agreed = define(&card, &ways, (&plan, &key), start).await?;
            println!("{} {}", hex(&agreed.name()), agreed.start.0 / 1000);
        }
        Ok(())
    })
}

/// When so many of a length begin, one after the other.
fn starts(every: u64, many: u64, now: Time) -> impl Iterator<Item = Time> {
    let first = (now.0 + AHEAD.min(every / 2)).checked_div(every).unwrap_or(0) + 1;
    (first..first + many).map(move |at| Time(at.saturating_mul(every)))
}

/// Not the operator's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a count is signed by the deployment's operator; give the key that `alpheus stats init` made for it"
)]
struct NotTheOperator;

/// Gives the aggregator counts that the operator has signed. No smoother need know of them.
async fn ask(
    card: &Opened,
    ways: &Ways,
    (plan, operator): (&Count, &SigningKey),
    starts: impl Iterator<Item = Time>,
) -> Result<(), Failure> {
    for start in starts {
        let signed = Signed::new(&plan.question(&card.pinned, start), operator);
        let tally = match Tally::open(&signed, &card.pinned) {
            Ok(tally) => tally,
            Err(BadTally::Signature(_)) => return Err(NotTheOperator).blame(Category::Input),
            Err(why) => return Err(why).blame(Category::Input),
        };
        let sent = ways.aggregator.post::<()>("/v1/counts", &signed).await;
        sent.map_err(StatsError::from)?;
        println!("{} {}", hex(&tally.name()), tally.start.0 / 1000);
    }
    Ok(())
}

/// Has one aggregate defined.
///
/// # Errors
/// [`NotDefined`].
pub async fn define(
    card: &Opened,
    ways: &Ways,
    (plan, definer): (&Plan, &SigningKey),
    start: Time,
) -> Result<Agreed, NotDefined> {
    let epoch = card.pinned.key_epoch(start).ok_or(BadDefinition::Time)?;
    let key = key_of(card, ways, epoch).await?;
    let definition = plan.definition(&card.pinned, start, key)?;
    let signed = propose(card, ways, &Signed::new(&definition, definer)).await?;
    let agreed = Agreed::open(&signed, &card.pinned)?;
    tell_smoothers(card, ways, &signed).await;
    Ok(agreed)
}

/// Smoothers tell each other, and whoever asks: who is down learns it then.
async fn tell_smoothers(card: &Opened, ways: &Ways, signed: &Endorsed<Definition>) {
    let mut told = JoinSet::new();
    for way in ways.smoothers.clone() {
        let signed = signed.clone();
        told.spawn(async move { way.post::<()>("/v1/definitions", &signed).await });
    }
    for answer in gathered(told, card.pinned.quorum(), Result::is_ok).await {
        if let Err(error) = answer {
            tracing::warn!(%error, "a smoother is not told of a definition");
        }
    }
}

/// The key of a key epoch, once a quorum of smoothers says that it is made.
async fn key_of(card: &Opened, ways: &Ways, epoch: KeyEpoch) -> Result<ThresholdKey, StatsError> {
    let (until, needed) = (Instant::now() + ways.patience, card.pinned.quorum());
    loop {
        let mut asked = JoinSet::new();
        for way in ways.smoothers.clone() {
            let pinned = card.pinned.clone();
            asked.spawn(async move {
                let keys: Vec<Endorsed<Card>> = way.get("/v1/key").await.unwrap_or_default();
                let opened = keys.iter().filter_map(|key| key.open(&pinned, needed).ok());
                let made = opened.into_iter().find(|made| made.key_epoch == epoch);
                made.map(|made| *made.key.key())
            });
        }
        let made = gathered(asked, 1, Option::is_some).await;
        if let Some(key) = made.into_iter().flatten().next() {
            return Ok(key);
        }
        if Instant::now() > until {
            return Err(StatsError::NoKey);
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Proposes it to a smoother, which may not have heard yet that the key is made.
async fn propose_to(
    way: &Way,
    definition: &Signed<Definition>,
    patience: Duration,
) -> Result<Signed<Definition>, LinkError> {
    let until = Instant::now() + patience;
    loop {
        match way.post("/v1/definitions/propose", definition).await {
            Err(error) if error.rule() == Some("key") && Instant::now() < until => {
                tokio::time::sleep(AGAIN).await;
            }
            other => return other,
        }
    }
}

/// Smoothers that are away are asked again, until a quorum has signed; one that refuses decides
/// nothing alone.
async fn propose(
    card: &Opened,
    ways: &Ways,
    definition: &Signed<Definition>,
) -> Result<Endorsed<Definition>, StatsError> {
    let (until, needed) = (Instant::now() + ways.patience, card.pinned.quorum());
    let mut endorsed = Endorsed::default();
    let mut open: BTreeMap<SmootherId, Way> =
        card.pinned.ids().zip(ways.smoothers.iter().cloned()).collect();
    let mut refusals = 0;
    loop {
        let mut asked = JoinSet::new();
        for (id, way) in open.clone() {
            let (definition, patience) = (definition.clone(), ways.patience);
            asked.spawn(async move { (id, propose_to(&way, &definition, patience).await) });
        }
        let mut refused = None;
        let missing = needed.saturating_sub(endorsed.signatures().count());
        for (id, answer) in gathered(asked, missing, |(_, answer)| answer.is_ok()).await {
            match answer {
                Ok(signed) => endorsed.add(id, signed),
                Err(error) if error.may_pass() => continue,
                Err(error) => {
                    refusals += 1;
                    refused = Some(error);
                }
            }
            open.remove(&id);
        }
        if endorsed.open(&card.pinned, needed).is_ok() {
            return Ok(endorsed);
        }
        let have = endorsed.signatures().count();
        match refused {
            Some(error) if card.smoothers.len().saturating_sub(refusals) < needed => {
                return Err(error.into());
            }
            _ if Instant::now() > until => return Err(StatsError::TooFew { have, needed }),
            _ => tokio::time::sleep(AGAIN).await,
        }
    }
}
