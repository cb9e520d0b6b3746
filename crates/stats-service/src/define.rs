//! `alpheus stats define`: has the smoothers sign definitions of aggregates. The smoothers then
//! publish them.

use crate::card::{self, VerifiedCard};
use crate::keys;
use crate::names::hex;
use crate::parties::{Parties, PartyClient, RETRY_PAUSE, StatsError, gather};
use crate::plan::Plan;
use crate::plan::count::{AnyPlan, CountPlan};
use crate::settings::StatsSettings;
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::definition::{AgreedDefinition, Definition, DefinitionError};
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::Card;
use alpheus_accountable_statistics::tally::{Tally, TallyError};
use alpheus_accountable_statistics::tuple::ThresholdKey;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::clock::Clock;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::listeners::block_on;
use alpheus_node::network::error::RequestError;
use alpheus_node::retry::{RetryPolicy, retry};
use alpheus_time::Timestamp;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::JoinSet;

const EXAMPLES: &str = "\
Examples:
  alpheus stats define speed.yaml --card roads/card.json --key roads/definer.key
  alpheus stats define speed.yaml --card roads/card.json --key roads/definer.key --count 24
  alpheus stats define gate.yaml --card roads/card.json --key roads/operator.key

Aggregates begin at the next multiple of their length. A smoother signs one only if it overlaps no
other that it has signed; a quorum of signatures makes it valid. A plan with `release: count`
counts the accounts at a location: the operator signs it, and only the aggregator needs it.";

/// The minimum time between the definition and the start of an aggregate, in microseconds.
const AHEAD: u64 = 5_000_000;

/// Arguments of `alpheus stats define`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The plan of the measurement
    plan: PathBuf,
    /// The deployment's card
    #[arg(long, value_name = "FILE")]
    card: PathBuf,
    /// The definer's key; for a count, the operator's key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// How long to wait for smoothers that do not answer or have no key yet; by default 300
    #[arg(long, value_name = "SECONDS")]
    timeout_seconds: Option<u64>,
    /// The number of consecutive aggregates
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    count: u64,
}

/// An aggregate could not be defined.
#[derive(Debug, thiserror::Error)]
pub enum DefineError {
    /// The definition is invalid.
    #[error(transparent)]
    Bad(#[from] DefinitionError),
    /// Too few smoothers answer or agree.
    #[error(transparent)]
    Parties(#[from] StatsError),
}

impl From<DefineError> for Failure {
    fn from(error: DefineError) -> Self {
        match error {
            DefineError::Bad(bad) => Self::new(Category::Input, bad),
            DefineError::Parties(error) => error.into(),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// If the plan cannot be used, or too few smoothers sign.
pub fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let seconds = args.timeout_seconds.map(|seconds| seconds.to_string());
    let settings = globals.settings(vec![("stats.timeout-seconds", seconds)])?;
    let patience = settings.part::<StatsSettings>()?.patience();
    let card = card::open(&args.card)?;
    let parties = Parties { patience, ..Parties::new(&card)? };
    let key = keys::signing(&args.key)?;
    let clock = Clock::Process;
    let plan = match AnyPlan::open(&args.plan)? {
        AnyPlan::Sums(plan) => *plan,
        AnyPlan::Count(count) => {
            let starts = starts(count.every.0, args.count, clock.now());
            return block_on(ask(&card, &parties, (&count, &key), starts));
        }
    };
    let every = plan.every.0;
    block_on(async {
        // Wait for the key before the first start is chosen, so that there is time to sign.
        let running = card.pinned.key_epoch(clock.now());
        key_of(&card, &parties, running.unwrap_or(KeyEpoch(0))).await?;
        for start in starts(every, args.count, clock.now()) {
            let agreed = define(&card, &parties, (&plan, &key), start).await?;
            println!("{} {}", hex(&agreed.name()), agreed.start.0 / 1000);
        }
        Ok(())
    })
}

/// The starts of consecutive aggregates of a length.
fn starts(every: u64, many: u64, now: Timestamp) -> impl Iterator<Item = Timestamp> {
    let first = (now.0 + AHEAD.min(every / 2)).checked_div(every).unwrap_or(0) + 1;
    (first..first + many).map(move |at| Timestamp(at.saturating_mul(every)))
}

/// The key is not the operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a count must be signed by the deployment's operator; give the operator key that `alpheus stats init` created"
)]
pub(crate) struct OperatorKeyError;

/// Sends counts signed by the operator to the aggregator. Smoothers are not involved.
async fn ask(
    card: &VerifiedCard,
    parties: &Parties,
    (plan, operator): (&CountPlan, &SigningKey),
    starts: impl Iterator<Item = Timestamp>,
) -> Result<(), Failure> {
    for start in starts {
        let signed = Signed::new(&plan.question(&card.pinned, start), operator);
        let tally = match Tally::open(&signed, &card.pinned) {
            Ok(tally) => tally,
            Err(TallyError::Signature(_)) => return Err(OperatorKeyError).blame(Category::Input),
            Err(why) => return Err(why).blame(Category::Input),
        };
        let sent = parties.aggregator.post::<()>("/v1/counts", &signed).await;
        sent.map_err(StatsError::from)?;
        println!("{} {}", hex(&tally.name()), tally.start.0 / 1000);
    }
    Ok(())
}

/// Defines one aggregate.
///
/// # Errors
/// [`DefineError`].
pub async fn define(
    card: &VerifiedCard,
    parties: &Parties,
    (plan, definer): (&Plan, &SigningKey),
    start: Timestamp,
) -> Result<AgreedDefinition, DefineError> {
    let epoch = card.pinned.key_epoch(start).ok_or(DefinitionError::Time)?;
    let key = key_of(card, parties, epoch).await?;
    let definition = plan.definition(&card.pinned, start, key)?;
    let signed = propose(card, parties, &Signed::new(&definition, definer)).await?;
    let agreed = AgreedDefinition::open(&signed, &card.pinned)?;
    publish(card, parties, &signed).await;
    Ok(agreed)
}

/// Sends a definition to all smoothers. They also send it to each other, so one that is down
/// receives it later.
async fn publish(card: &VerifiedCard, parties: &Parties, signed: &Endorsed<Definition>) {
    let mut sent = JoinSet::new();
    for party in parties.smoothers.clone() {
        let signed = signed.clone();
        sent.spawn(async move { party.post::<()>("/v1/definitions", &signed).await });
    }
    for answer in gather(sent, card.pinned.quorum(), Result::is_ok).await {
        if let Err(error) = answer {
            tracing::warn!(%error, "cannot send a definition to a smoother");
        }
    }
}

/// The key of a key epoch, once a quorum of smoothers has certified it.
async fn key_of(
    card: &VerifiedCard,
    parties: &Parties,
    epoch: KeyEpoch,
) -> Result<ThresholdKey, StatsError> {
    let needed = card.pinned.quorum();
    let ask = || async {
        let mut asked = JoinSet::new();
        for party in parties.smoothers.clone() {
            let pinned = card.pinned.clone();
            asked.spawn(async move {
                let keys: Vec<Endorsed<Card>> = party.get("/v1/key").await.unwrap_or_default();
                let opened = keys.iter().filter_map(|key| key.open(&pinned, needed).ok());
                let made = opened.into_iter().find(|made| made.key_epoch == epoch);
                made.map(|made| *made.key.key())
            });
        }
        let made = gather(asked, 1, Option::is_some).await;
        made.into_iter().flatten().next().ok_or(StatsError::NoKey)
    };
    let policy = RetryPolicy::every(RETRY_PAUSE).within(parties.patience);
    retry(policy, |_: &StatsError| true, ask).await
}

/// Proposes a definition to a smoother; retries while the smoother does not know the key yet.
async fn propose_to(
    party: &PartyClient,
    definition: &Signed<Definition>,
    patience: Duration,
) -> Result<Signed<Definition>, RequestError> {
    let early = |error: &RequestError| error.rule() == Some("key");
    let propose = || party.post("/v1/definitions/propose", definition);
    retry(RetryPolicy::every(RETRY_PAUSE).within(patience), early, propose).await
}

/// Proposes a definition until a quorum has signed, and retries unreachable smoothers. A single
/// refusal decides nothing.
async fn propose(
    card: &VerifiedCard,
    parties: &Parties,
    definition: &Signed<Definition>,
) -> Result<Endorsed<Definition>, StatsError> {
    let needed = card.pinned.quorum();
    let mut attempts = parties.attempts();
    let mut endorsed = Endorsed::default();
    let mut open: BTreeMap<SmootherId, PartyClient> =
        card.pinned.ids().zip(parties.smoothers.iter().cloned()).collect();
    let mut refusals = 0;
    loop {
        let mut asked = JoinSet::new();
        for (id, party) in open.clone() {
            let (definition, patience) = (definition.clone(), parties.patience);
            asked.spawn(async move { (id, propose_to(&party, &definition, patience).await) });
        }
        let mut refused = None;
        let missing = needed.saturating_sub(endorsed.signatures().count());
        for (id, answer) in gather(asked, missing, |(_, answer)| answer.is_ok()).await {
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
            _ if attempts.again().await => {}
            _ => return Err(StatsError::TooFew { have, needed }),
        }
    }
}
