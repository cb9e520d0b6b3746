//! A client with its ledger, which registers and uploads. `alpheus stats client` has one; a replay
//! has many in one process.

use crate::parties::{Parties, PartyClient, RETRY_PAUSE, StatsError, gather, retry_unreachable};
use alpheus_accountable_statistics::client::{Attempt, Client, Records, Registration};
use alpheus_accountable_statistics::configuration::{PinnedConfiguration, SmootherId};
use alpheus_accountable_statistics::definition::AgreedDefinition;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::{Deposit, DepositResponse, Entry, Grant};
use alpheus_accountable_statistics::role_error::ContributionError;
use alpheus_accountable_statistics::tally::Tally;
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_anonymous_credential::error::HolderError;
use alpheus_anonymous_credential::holder::Timing;
use alpheus_anonymous_credential::schedule::Period;
use alpheus_crypto::ledger::{Change, Ledger, LedgerError, Step};
use alpheus_crypto::signed_message::Signed;
use alpheus_node::clock::Clock;
use alpheus_node::entropy;
use alpheus_node::network::error::RequestError;
use alpheus_node::retry::{RetryPolicy, retry};
use alpheus_time::Timestamp;
use axum::http::header;
use chacha20::ChaCha20Rng;
use data_encoding::BASE64;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use zeroize::Zeroizing;

#[cfg(test)]
pub(crate) mod tests;

/// Where a keeper takes deposits that it forwards.
const FORWARDED: &str = "/v1/deposits/forwarded";
/// How long a busy party is retried before it counts as unreachable.
const BUSY: Duration = Duration::from_secs(5);

/// A client and its ledger.
pub struct ContributorState<L> {
    client: Client,
    ledger: L,
}

/// A client shared by several uploads.
pub type SharedState<L> = Arc<Mutex<ContributorState<L>>>;

/// The state of an upload.
pub enum Upload {
    /// A quorum has it, as the certificate proves.
    Done(Box<Endorsed<Entry>>),
    /// No slot is free; retry at a later turn.
    Waits(Box<Attempt>),
    /// A party that is needed does not answer; retry.
    Away(Box<Attempt>),
    /// Another upload has the slot; retry with another key.
    Lost(Box<Attempt>),
}

/// An account at the registrar.
pub struct Account<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its secret.
    pub secret: &'a str,
}

fn rng() -> Result<ChaCha20Rng, StatsError> {
    entropy::rng().map_err(|failure| StatsError::Machine(failure.to_string()))
}

impl From<LedgerError> for StatsError {
    fn from(error: LedgerError) -> Self {
        StatsError::Machine(error.to_string())
    }
}

/// Obtains an account's credentials of the current period, and stores them in a ledger whose
/// content `records` returns. Does nothing if the ledger has them. A request from before a crash is
/// sent again.
///
/// # Errors
/// [`StatsError`].
pub async fn register<L: Ledger>(
    pinned: &PinnedConfiguration,
    parties: &Parties,
    account: &Account<'_>,
    clock: &Clock,
    mut ledger: L,
    records: impl Fn(&L) -> Records,
) -> Result<ContributorState<L>, StatsError> {
    let damaged = || StatsError::NotContributed(ContributionError::Damaged);
    let period = running(pinned, clock)?;
    let known = records(&ledger);
    if let Some(client) = Client::restore(pinned, period, known.clone()).map_err(|_| damaged())? {
        return Ok(ContributorState { client, ledger });
    }
    let asking = match Registration::restore(pinned, period, &known).map_err(|_| damaged())? {
        Some(asking) => asking,
        None => {
            let (mut rng, name) = (rng()?, account.name.as_bytes());
            let asking = Registration::begin(pinned, name, Timing::Running, clock.now(), &mut rng)?;
            asking.commit(&mut ledger)?
        }
    };
    let answers = ask_registrar(parties, account, &asking).await?;
    asking.handle(&answers)?.commit(&mut ledger)?;
    let client = Client::restore(pinned, period, records(&ledger)).map_err(|_| damaged())?;
    Ok(ContributorState { client: client.ok_or_else(damaged)?, ledger })
}

/// The current period of credentials.
///
/// # Errors
/// [`StatsError`].
pub fn running(pinned: &PinnedConfiguration, clock: &Clock) -> Result<Period, StatsError> {
    let schedule = &pinned.uploads().schedule;
    let epoch = schedule.epoch_at(clock.now()).ok_or(HolderError::Epoch)?;
    Ok(schedule.period_of(epoch))
}

/// Fetches the registrar's answers; retries for a while.
async fn ask_registrar(
    parties: &Parties,
    account: &Account<'_>,
    asking: &Registration,
) -> Result<Vec<Vec<u8>>, StatsError> {
    let shown = Zeroizing::new(format!("{}:{}", account.name, account.secret));
    let shown = Zeroizing::new(format!("Basic {}", BASE64.encode(shown.as_bytes())));
    let headers = [(header::AUTHORIZATION, shown.as_str())];
    let requests = asking.requests();
    let ask =
        || async { Ok(parties.registrar.post_as("/v1/credentials", &headers, &requests).await?) };
    retry_unreachable(parties.patience, ask).await
}

/// Runs long computations outside the network's threads.
async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StatsError> + Send + 'static,
) -> Result<T, StatsError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StatsError::Machine(error.to_string()))?
}

/// Locks a shared client.
pub fn lock<L>(state: &SharedState<L>) -> MutexGuard<'_, ContributorState<L>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<L> ContributorState<L> {
    /// Its ledger.
    pub fn ledger(&mut self) -> &mut L {
        &mut self.ledger
    }
}

/// The number of contributions that a client has left.
///
/// # Errors
/// [`StatsError`].
pub fn left<L>(state: &SharedState<L>, agreed: &AgreedDefinition) -> Result<u32, StatsError> {
    Ok(lock(state).client.left(agreed)?)
}

/// Presents the upload credential for a count, to be sent at a random time. The change that `waits`
/// returns is durable in the same commit.
///
/// # Errors
/// [`StatsError`].
pub fn count<L: Ledger>(
    state: &SharedState<L>,
    tally: &Tally,
    waits: impl FnOnce(Vec<u8>, Timestamp) -> Change,
) -> Result<(), StatsError> {
    let mut rng = rng()?;
    let from = tally.draw(&mut rng);
    let mut state = lock(state);
    let ContributorState { client, ledger } = &mut *state;
    let step = client.count(tally, &mut rng)?;
    Ok(step.then(|showing| Step::new(vec![waits(showing, from)], ())).commit(ledger)?)
}

/// Begins an upload: proves and seals it. The changes in `beside` are durable in the same commit.
///
/// # Errors
/// [`StatsError`].
pub async fn begin<L: Ledger + Send + 'static>(
    state: SharedState<L>,
    (agreed, prover): (AgreedDefinition, Arc<Prover>),
    contribution: Contribution,
    clock: Clock,
    beside: Vec<Change>,
) -> Result<Attempt, StatsError> {
    elsewhere(move || {
        let mut rng = rng()?;
        let mut state = lock(&state);
        let ContributorState { client, ledger } = &mut *state;
        let begun = client.begin((&agreed, &prover), contribution, clock.now(), &mut rng)?;
        Ok(begun.then(|attempt| Step::new(beside, attempt)).commit(ledger)?)
    })
    .await
}

/// Retries an upload with another key, once its slot is lost.
///
/// # Errors
/// [`StatsError`].
pub async fn again<L: Ledger + Send + 'static>(
    state: SharedState<L>,
    attempt: Attempt,
    prover: Arc<Prover>,
    clock: Clock,
) -> Result<Attempt, StatsError> {
    elsewhere(move || {
        let mut rng = rng()?;
        let mut state = lock(&state);
        let ContributorState { client, ledger } = &mut *state;
        Ok(attempt.retry(client, &prover, clock.now(), &mut rng)?.commit(ledger)?)
    })
    .await
}

/// Advances an upload: requests a slot and deposits. A finished upload is deleted in the commit
/// that stores the changes `kept` returns for the certificate.
///
/// # Errors
/// [`StatsError`].
pub async fn go_on<L: Ledger + Send + 'static>(
    state: SharedState<L>,
    parties: &Parties,
    mut attempt: Attempt,
    (pinned, clock): (&PinnedConfiguration, &Clock),
    kept: impl FnOnce(&Entry, &Endorsed<Entry>) -> Vec<Change>,
) -> Result<Upload, StatsError> {
    if attempt.entry().is_none() {
        let (keeper, grant) = match slot(&mut attempt, parties).await? {
            SlotAnswer::Granted(keeper, grant) => (keeper, grant),
            SlotAnswer::Full => return Ok(Upload::Waits(Box::new(attempt))),
            SlotAnswer::Away => return Ok(Upload::Away(Box::new(attempt))),
        };
        match attempt.handle_grant((keeper, &grant), pinned, clock.now(), &mut rng()?) {
            Ok(step) => step.commit(&mut lock(&state).ledger)?,
            // The turn is over, or the keeper is faulty; another is asked.
            Err(ContributionError::Grant) => {
                attempt.handle_refusal();
                return Ok(Upload::Away(Box::new(attempt)));
            }
            Err(why) => return Err(why.into()),
        }
    }
    let mut receipts = deposit(&mut attempt, parties, pinned).await;
    let Some(certificate) = attempt.certificate(pinned) else {
        receipts.commit(&mut lock(&state).ledger)?;
        let (lost, attempt) = (attempt.is_lost(pinned), Box::new(attempt));
        return Ok(if lost { Upload::Lost(attempt) } else { Upload::Away(attempt) });
    };
    if !attempt.is_certified_everywhere(pinned) {
        receipts.commit(&mut lock(&state).ledger)?;
        receipts = Step::default();
        certify(&certificate, parties, pinned).await;
    }
    let beside = attempt.entry().map(|entry| kept(entry, &certificate)).unwrap_or_default();
    let done = receipts.then(|()| attempt.forget()).then(|()| Step::new(beside, ()));
    done.commit(&mut lock(&state).ledger)?;
    Ok(Upload::Done(Box::new(certificate)))
}

/// The keepers' answer to a slot request.
enum SlotAnswer {
    Granted(SmootherId, Signed<Grant>),
    /// All keepers have answered, and none has a free slot.
    Full,
    /// No keeper that answered has a free slot.
    Away,
}

/// Requests a slot from one keeper after the other.
async fn slot(attempt: &mut Attempt, parties: &Parties) -> Result<SlotAnswer, StatsError> {
    let mut away = false;
    loop {
        let (keeper, request) = match attempt.request() {
            Ok(asked) => asked,
            Err(ContributionError::Full) => {
                return Ok(if away { SlotAnswer::Away } else { SlotAnswer::Full });
            }
            Err(why) => return Err(why.into()),
        };
        let Some(party) = parties.smoother(keeper) else {
            attempt.handle_refusal();
            continue;
        };
        match send(party, "/v1/slots", &request, BUSY).await {
            Ok(grant) => return Ok(SlotAnswer::Granted(keeper, grant)),
            Err(error) => {
                tracing::debug!(%error, "a keeper grants no slot");
                // A keeper that has just restarted may not know the aggregate yet.
                away |= error.may_pass() || is_busy(&error) || error.rule() == Some("unknown");
                attempt.handle_refusal();
            }
        }
    }
}

/// Sends the certificate to all smoothers; one that is down fetches it later.
async fn certify(certificate: &Endorsed<Entry>, parties: &Parties, pinned: &PinnedConfiguration) {
    let mut sent = JoinSet::new();
    for party in &parties.smoothers {
        let (party, certificate) = (party.clone(), certificate.clone());
        sent.spawn(async move { party.post::<()>("/v1/certificates", &certificate).await });
    }
    for answer in gather(sent, pinned.quorum(), Result::is_ok).await {
        if let Err(error) = answer {
            tracing::debug!(%error, "a smoother accepts no certificate");
        }
    }
}

/// Deposits with the keeper, which forwards; and with all others in parallel if that brings too few
/// receipts. The receipts are not durable yet: the same deposit gets the same receipts. It waits for
/// a quorum only; the other smoothers fetch what they lack.
async fn deposit(
    attempt: &mut Attempt,
    parties: &Parties,
    pinned: &PinnedConfiguration,
) -> Step<()> {
    let mut steps = Vec::new();
    if let Some((keeper, deposit)) = attempt.forwarded()
        && let Some(party) = parties.smoother(keeper)
    {
        let sent = send::<Vec<(SmootherId, DepositResponse)>>(party, FORWARDED, &deposit, BUSY);
        match sent.await {
            Ok(answers) => {
                let of_smoothers = answers.into_iter().take(pinned.smoothers.len());
                steps.extend(
                    of_smoothers.flat_map(|(by, answer)| take(attempt, by, answer, pinned)),
                );
            }
            Err(error) => tracing::debug!(%error, "a keeper forwards no deposit"),
        }
    }
    let missing = pinned.quorum().saturating_sub(attempt.receipts().len());
    if missing > 0 {
        for (by, answer) in deposit_with_each(attempt, parties, missing).await {
            steps.extend(take(attempt, by, answer, pinned));
        }
    }
    Step::join(steps).map(drop)
}

/// Deposits with all smoothers whose receipts are missing, until so many have given theirs.
async fn deposit_with_each(
    attempt: &Attempt,
    parties: &Parties,
    missing: usize,
) -> Vec<(SmootherId, DepositResponse)> {
    let mut sent = JoinSet::new();
    for (to, deposit) in attempt.deposits() {
        let Some(party) = parties.smoother(to).cloned() else { continue };
        sent.spawn(async move { Some((to, deposit_with(&party, &deposit).await?)) });
    }
    let taken = |answer: &Option<(SmootherId, DepositResponse)>| {
        matches!(answer, Some((_, DepositResponse::Stored(_))))
    };
    gather(sent, missing, taken).await.into_iter().flatten().collect()
}

/// Handles a smoother's answer to a deposit.
fn take(
    attempt: &mut Attempt,
    by: SmootherId,
    answer: DepositResponse,
    pinned: &PinnedConfiguration,
) -> Option<Step<bool>> {
    match answer {
        // Treated as no receipt if it is for something else: the others' receipts are enough.
        DepositResponse::Stored(receipt) => attempt
            .handle_receipt(&receipt, pinned)
            .inspect_err(|_| tracing::warn!(by = by.0, "a receipt is for something else"))
            .ok(),
        // A refusal without proof is ignored: it may be a lie.
        DepositResponse::Conflict(other) => {
            if let Err(why) = attempt.handle_conflict(&other, by, pinned) {
                tracing::warn!(by = by.0, %why, "a smoother refused a deposit");
            }
            None
        }
    }
}

/// A smoother's answer to a deposit; none if it does not answer.
async fn deposit_with(party: &PartyClient, deposit: &Deposit) -> Option<DepositResponse> {
    let answer = send(party, "/v1/deposits", deposit, BUSY).await;
    answer.inspect_err(|error| tracing::debug!(%error, "a smoother accepts no deposit")).ok()
}

/// Sends a request; retries a busy party for a while only, since a smoother may claim it forever.
async fn send<T: DeserializeOwned>(
    party: &PartyClient,
    path: &str,
    value: &impl Serialize,
    patience: Duration,
) -> Result<T, RequestError> {
    retry(RetryPolicy::every(RETRY_PAUSE).within(patience), is_busy, || party.post(path, value))
        .await
}

fn is_busy(error: &RequestError) -> bool {
    error.rule() == Some("busy")
}
