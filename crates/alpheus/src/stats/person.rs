//! A client with its ledger: registers, uploads. For `alpheus stats client` and for
//! replays, where many of them live in one process.

use crate::entropy;
use crate::pass::link::LinkError;
use crate::stats::clock::Clock;
use crate::stats::ways::{AGAIN, StatsError, Way, Ways, gathered, patiently};
use alpheus_accountable_statistics::client::{Attempt, Client, Records, Registering};
use alpheus_accountable_statistics::configuration::{Pinned, SmootherId};
use alpheus_accountable_statistics::definition::Agreed;
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::messages::{Deposit, Deposited, Entry, Grant};
use alpheus_accountable_statistics::refused::NotContributed;
use alpheus_accountable_statistics::tally::Tally;
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_anonymous_credential::error::HolderRefused;
use alpheus_anonymous_credential::holder::Which;
use alpheus_anonymous_credential::schedule::{Period, Time};
use alpheus_crypto::ledger::{Change, Ledger, LedgerError, Step};
use alpheus_crypto::signed::Signed;
use axum::http::header;
use data_encoding::BASE64;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use zeroize::Zeroizing;

#[cfg(test)]
pub(crate) mod tests;

/// How long who says that it is busy is asked again, before it counts as away.
const BUSY: Duration = Duration::from_secs(5);

/// A client and what it keeps.
pub struct Person<L> {
    client: Client,
    ledger: L,
}

/// A client that many uploads share.
pub type Shared<L> = Arc<Mutex<Person<L>>>;

/// What became of an upload.
pub enum Upload {
    /// A quorum has it, which is what the certificate shows.
    Done(Box<Endorsed<Entry>>),
    /// No slot is free now: to be asked again at a later turn.
    Waits(Box<Attempt>),
    /// Somebody who could have helped does not answer: to be sent again.
    Away(Box<Attempt>),
    /// The slot is another's: to be given again by another key.
    Lost(Box<Attempt>),
}

/// Who an account is to the registrar.
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

/// Gets an account's credentials of the running period, into a ledger that `records` shows;
/// nothing is asked for if it has them. What was asked for before a crash is asked for again.
///
/// # Errors
/// [`StatsError`].
pub async fn register<L: Ledger>(
    pinned: &Pinned,
    ways: &Ways,
    account: &Account<'_>,
    clock: &Clock,
    mut ledger: L,
    records: impl Fn(&L) -> Records,
) -> Result<Person<L>, StatsError> {
    let damaged = || StatsError::NotContributed(NotContributed::Damaged);
    let period = running(pinned, clock)?;
    let known = records(&ledger);
    if let Some(client) = Client::restore(pinned, period, known.clone()).map_err(|_| damaged())? {
        return Ok(Person { client, ledger });
    }
    let asking = match Registering::restore(pinned, period, &known).map_err(|_| damaged())? {
        Some(asking) => asking,
        None => {
            let (mut rng, name) = (rng()?, account.name.as_bytes());
            let asking = Registering::begin(pinned, name, clock.now(), Which::Running, &mut rng)?;
            asking.commit(&mut ledger)?
        }
    };
    let answers = ask_registrar(ways, account, &asking).await?;
    asking.finish(&answers)?.commit(&mut ledger)?;
    let client = Client::restore(pinned, period, records(&ledger)).map_err(|_| damaged())?;
    Ok(Person { client: client.ok_or_else(damaged)?, ledger })
}

/// The period of credentials that runs.
///
/// # Errors
/// [`StatsError`].
pub fn running(pinned: &Pinned, clock: &Clock) -> Result<Period, StatsError> {
    let schedule = &pinned.uploads().schedule;
    let epoch = schedule.epoch_at(clock.now()).ok_or(HolderRefused::Epoch)?;
    Ok(schedule.period_of(epoch))
}

/// The registrar's answers; one that is away is asked again for a while.
async fn ask_registrar(
    ways: &Ways,
    account: &Account<'_>,
    asking: &Registering,
) -> Result<Vec<Vec<u8>>, StatsError> {
    let shown = Zeroizing::new(format!("{}:{}", account.name, account.secret));
    let shown = Zeroizing::new(format!("Basic {}", BASE64.encode(shown.as_bytes())));
    let headers = [(header::AUTHORIZATION, shown.as_str())];
    let requests = asking.requests();
    let ask =
        || async { Ok(ways.registrar.post_as("/v1/credentials", &headers, &requests).await?) };
    patiently(ways.patience, ask).await
}

/// Runs what takes long beside the network's threads.
async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StatsError> + Send + 'static,
) -> Result<T, StatsError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StatsError::Machine(error.to_string()))?
}

/// The client and its ledger, for whoever has it.
pub fn lock<L>(person: &Shared<L>) -> MutexGuard<'_, Person<L>> {
    person.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<L> Person<L> {
    /// Its ledger.
    pub fn ledger(&mut self) -> &mut L {
        &mut self.ledger
    }
}

/// How many more contributions a client has.
///
/// # Errors
/// [`StatsError`].
pub fn left<L>(person: &Shared<L>, agreed: &Agreed) -> Result<u32, StatsError> {
    Ok(lock(person).client.left(agreed)?)
}

/// Shows the upload credential about a pure count, to be sent at a time that is drawn. What waits
/// for that is durable in the same commit.
///
/// # Errors
/// [`StatsError`].
pub fn count<L: Ledger>(
    person: &Shared<L>,
    tally: &Tally,
    waits: impl FnOnce(Vec<u8>, Time) -> Change,
) -> Result<(), StatsError> {
    let mut rng = rng()?;
    let from = tally.draw(&mut rng);
    let mut person = lock(person);
    let Person { client, ledger } = &mut *person;
    let step = client.count(tally, &mut rng)?;
    Ok(step.then(|showing| Step::new(vec![waits(showing, from)], ())).commit(ledger)?)
}

/// Begins an upload. `beside` is durable in the same commit.
///
/// # Errors
/// [`StatsError`].
pub async fn begin<L: Ledger + Send + 'static>(
    person: Shared<L>,
    agreed: Agreed,
    contribution: Contribution,
    clock: Clock,
    beside: Vec<Change>,
) -> Result<Attempt, StatsError> {
    elsewhere(move || {
        let mut rng = rng()?;
        let mut person = lock(&person);
        let Person { client, ledger } = &mut *person;
        let begun = client.begin(clock.now(), &agreed, contribution, &mut rng)?;
        Ok(begun.then(|attempt| Step::new(beside, attempt)).commit(ledger)?)
    })
    .await
}

/// Gives the same by another key, once its slot is lost.
///
/// # Errors
/// [`StatsError`].
pub async fn again<L: Ledger + Send + 'static>(
    person: Shared<L>,
    attempt: Attempt,
    clock: Clock,
) -> Result<Attempt, StatsError> {
    elsewhere(move || {
        let mut rng = rng()?;
        let mut person = lock(&person);
        let Person { client, ledger } = &mut *person;
        Ok(attempt.again(client, clock.now(), &mut rng)?.commit(ledger)?)
    })
    .await
}

/// Goes on with an upload: asks for a slot, proves, deposits. What it is done with is forgotten
/// in the commit that keeps what `kept` makes of the certificate.
///
/// # Errors
/// [`StatsError`].
pub async fn go_on<L: Ledger + Send + 'static>(
    person: Shared<L>,
    ways: &Ways,
    prover: Arc<Prover>,
    mut attempt: Attempt,
    (pinned, clock): (&Pinned, &Clock),
    kept: impl FnOnce(&Entry, &Endorsed<Entry>) -> Vec<Change>,
) -> Result<Upload, StatsError> {
    if attempt.entry().is_none() {
        let (keeper, grant) = match slot(&mut attempt, ways).await? {
            Slot::Granted(keeper, grant) => (keeper, grant),
            Slot::Full => return Ok(Upload::Waits(Box::new(attempt))),
            Slot::Away => return Ok(Upload::Away(Box::new(attempt))),
        };
        let (person, now) = (Arc::clone(&person), clock.now());
        let granted = elsewhere(move || {
            let mut rng = rng()?;
            let mut person = lock(&person);
            let Person { client, ledger } = &mut *person;
            match attempt.granted(client, &prover, (keeper, &grant), now, &mut rng) {
                Ok(step) => step.commit(ledger)?,
                // The turn is over, or the keeper is faulty: another is asked.
                Err(NotContributed::Grant) => return Ok((attempt, false)),
                Err(why) => return Err(why.into()),
            }
            Ok((attempt, true))
        });
        let made;
        (attempt, made) = granted.await?;
        if !made {
            attempt.refused();
            return Ok(Upload::Away(Box::new(attempt)));
        }
    }
    deposit(&person, &mut attempt, ways, pinned).await?;
    let Some(certificate) = attempt.certificate(pinned) else {
        let lost = attempt.is_lost(pinned);
        let attempt = Box::new(attempt);
        return Ok(if lost { Upload::Lost(attempt) } else { Upload::Away(attempt) });
    };
    certify(&certificate, ways, pinned).await;
    let beside = attempt.entry().map(|entry| kept(entry, &certificate)).unwrap_or_default();
    let forgotten = attempt.forget().then(|()| Step::new(beside, ()));
    forgotten.commit(&mut lock(&person).ledger)?;
    Ok(Upload::Done(Box::new(certificate)))
}

/// What keepers say.
enum Slot {
    Granted(SmootherId, Signed<Grant>),
    /// All have answered, and none has a free slot.
    Full,
    /// None that answers has a free slot.
    Away,
}

/// Asks keepers for a slot, one after the other.
async fn slot(attempt: &mut Attempt, ways: &Ways) -> Result<Slot, StatsError> {
    let mut away = false;
    loop {
        let (keeper, request) = match attempt.request() {
            Ok(asked) => asked,
            Err(NotContributed::Full) => return Ok(if away { Slot::Away } else { Slot::Full }),
            Err(why) => return Err(why.into()),
        };
        let Some(way) = ways.smoother(keeper) else {
            attempt.refused();
            continue;
        };
        match send(way, "/v1/slots", &request, BUSY).await {
            Ok(grant) => return Ok(Slot::Granted(keeper, grant)),
            Err(error) => {
                tracing::debug!(%error, "a keeper gives no slot");
                // One that has just come back may not have heard of the aggregate yet.
                away |= error.may_pass() || is_busy(&error) || error.rule() == Some("unknown");
                attempt.refused();
            }
        }
    }
}

/// Gives all smoothers what shows that a quorum has it; one that is down fetches it.
async fn certify(certificate: &Endorsed<Entry>, ways: &Ways, pinned: &Pinned) {
    let mut sent = JoinSet::new();
    for way in &ways.smoothers {
        let (way, certificate) = (way.clone(), certificate.clone());
        sent.spawn(async move { way.post::<()>("/v1/certificates", &certificate).await });
    }
    for answer in gathered(sent, pinned.quorum(), Result::is_ok).await {
        if let Err(error) = answer {
            tracing::debug!(%error, "a smoother takes no certificate");
        }
    }
}

/// Deposits with all smoothers at once. Receipts are durable together: before they are, the
/// same deposit gets the same ones. Once a quorum has given them, the others are not waited for:
/// they fetch what they lack.
async fn deposit<L: Ledger>(
    person: &Shared<L>,
    attempt: &mut Attempt,
    ways: &Ways,
    pinned: &Pinned,
) -> Result<(), StatsError> {
    let mut sent = JoinSet::new();
    for (to, deposit) in attempt.deposits() {
        let Some(way) = ways.smoother(to).cloned() else { continue };
        sent.spawn(async move { (to, deposit_with(&way, &deposit).await) });
    }
    let missing = pinned.quorum().saturating_sub(attempt.receipts().len());
    let taken =
        |(_, answer): &(SmootherId, Option<Deposited>)| matches!(answer, Some(Deposited::Kept(_)));
    let mut steps = Vec::new();
    for (by, answer) in gathered(sent, missing, taken).await {
        match answer {
            Some(Deposited::Kept(receipt)) => match attempt.receipt(pinned, &receipt) {
                Ok(step) => steps.push(step),
                // As good as none: the others' receipts are enough.
                Err(_) => tracing::warn!(by = by.0, "a smoother gives a receipt of something else"),
            },
            // A refusal that shows nothing counts for nothing: it may be a lie.
            Some(Deposited::Taken(other)) => {
                if let Err(why) = attempt.refused_deposit(pinned, by, &other) {
                    tracing::warn!(by = by.0, %why, "a smoother refuses a deposit");
                }
            }
            None => {}
        }
    }
    Step::join(steps).commit(&mut lock(person).ledger)?;
    Ok(())
}

/// What a smoother says to a deposit; none if it does not answer, or not now.
async fn deposit_with(way: &Way, deposit: &Deposit) -> Option<Deposited> {
    let answer = send(way, "/v1/deposits", deposit, BUSY).await;
    answer.inspect_err(|error| tracing::debug!(%error, "a smoother takes no deposit")).ok()
}

/// Sends; to who is busy for a while again, since a smoother may say so for ever.
async fn send<T: DeserializeOwned>(
    way: &Way,
    path: &str,
    value: &impl Serialize,
    patience: Duration,
) -> Result<T, LinkError> {
    let until = Instant::now() + patience;
    loop {
        match way.post(path, value).await {
            Err(error) if is_busy(&error) && Instant::now() < until => {
                tokio::time::sleep(AGAIN).await;
            }
            answer => return answer,
        }
    }
}

fn is_busy(error: &LinkError) -> bool {
    error.rule() == Some("busy")
}
