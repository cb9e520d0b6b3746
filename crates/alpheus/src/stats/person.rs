//! A client with its ledger: registers, uploads. For `alpheus stats client` and for
//! replays, where many of them live in one process.

use crate::entropy;
use crate::stats::clock::Clock;
use crate::stats::ways::{AGAIN, StatsError, Ways};
use alpheus_accountable_statistics::client::{Attempt, Client, Records, Registering};
use alpheus_accountable_statistics::configuration::{Pinned, SmootherId};
use alpheus_accountable_statistics::definition::Agreed;
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::messages::{Deposit, Entry, Grant, Receipt};
use alpheus_accountable_statistics::refused::NotContributed;
use alpheus_accountable_statistics::tuple::{Contribution, Prover};
use alpheus_anonymous_credential::holder::Which;
use alpheus_crypto::ledger::{Ledger, LedgerError};
use alpheus_crypto::signed::Signed;
use axum::http::header;
use data_encoding::BASE64;
use rand_chacha::ChaCha20Rng;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// A client and what it keeps.
pub struct Person<L> {
    client: Client,
    ledger: L,
}

/// A client that many uploads share.
pub type Shared<L> = Arc<Mutex<Person<L>>>;

/// What became of an upload.
pub enum Upload {
    /// A quorum has it.
    Done,
    /// No slot is free now: to be asked again at a later turn.
    Waits(Box<Attempt>),
    /// Too few smoothers took it.
    Lost,
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

/// Gets an account's credentials, into a ledger that `records` shows.
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
    let mut rng = rng()?;
    let name = account.name.as_bytes();
    let asking = Registering::begin(pinned, name, clock.now(), Which::Running, &mut rng)?;
    let asking = asking.commit(&mut ledger)?;
    let shown = Zeroizing::new(format!("{}:{}", account.name, account.secret));
    let shown = Zeroizing::new(format!("Basic {}", BASE64.encode(shown.as_bytes())));
    let headers = [(header::AUTHORIZATION, shown.as_str())];
    let requests = asking.requests();
    let answers: Vec<Vec<u8>> =
        ways.registrar.post_as("/v1/credentials", &headers, &requests).await?;
    asking.finish(&answers)?.commit(&mut ledger)?;
    let damaged = || StatsError::NotContributed(NotContributed::Damaged);
    let period = asking.period().ok_or_else(damaged)?;
    let client = Client::restore(pinned, period, records(&ledger)).map_err(|_| damaged())?;
    Ok(Person { client: client.ok_or_else(damaged)?, ledger })
}

/// Runs what takes long beside the network's threads.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StatsError> + Send + 'static,
) -> Result<T, StatsError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StatsError::Machine(error.to_string()))?
}

/// How many more contributions a client has.
///
/// # Errors
/// [`StatsError`].
pub fn left<L>(person: &Shared<L>, agreed: &Agreed) -> Result<u32, StatsError> {
    let mut person = person.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(person.client.left(agreed)?)
}

/// Begins an upload.
///
/// # Errors
/// [`StatsError`].
pub async fn begin<L: Ledger + Send + 'static>(
    person: Shared<L>,
    agreed: Agreed,
    contribution: Contribution,
    clock: Clock,
) -> Result<Attempt, StatsError> {
    beside(move || {
        let mut rng = rng()?;
        let mut person = person.lock().unwrap_or_else(PoisonError::into_inner);
        let Person { client, ledger } = &mut *person;
        let begun = client.begin(clock.now(), &agreed, contribution, &mut rng)?;
        Ok(begun.commit(ledger)?)
    })
    .await
}

/// Goes on with an upload: asks for a slot, proves, deposits.
///
/// # Errors
/// [`StatsError`].
pub async fn go_on<L: Ledger + Send + 'static>(
    person: Shared<L>,
    ways: &Ways,
    prover: Arc<Prover>,
    mut attempt: Attempt,
    (pinned, clock): (&Pinned, &Clock),
) -> Result<Upload, StatsError> {
    if attempt.deposits().is_empty() {
        let Some((keeper, grant)) = slot(&mut attempt, ways).await? else {
            return Ok(Upload::Waits(Box::new(attempt)));
        };
        let (person, now) = (Arc::clone(&person), clock.now());
        attempt = beside(move || {
            let mut rng = rng()?;
            let mut person = person.lock().unwrap_or_else(PoisonError::into_inner);
            let Person { client, ledger } = &mut *person;
            let step = attempt.granted(client, &prover, (keeper, &grant), now, &mut rng)?;
            step.commit(ledger)?;
            Ok(attempt)
        })
        .await?;
    }
    deposit(&person, &mut attempt, ways, pinned).await?;
    let Some(certificate) = attempt.certificate(pinned) else { return Ok(Upload::Lost) };
    certify(&certificate, ways).await;
    let mut person = person.lock().unwrap_or_else(PoisonError::into_inner);
    attempt.forget().commit(&mut person.ledger)?;
    Ok(Upload::Done)
}

/// Asks keepers for a slot, one after the other.
async fn slot(
    attempt: &mut Attempt,
    ways: &Ways,
) -> Result<Option<(SmootherId, Signed<Grant>)>, StatsError> {
    loop {
        let (keeper, request) = match attempt.request() {
            Ok(asked) => asked,
            Err(NotContributed::Full) => return Ok(None),
            Err(why) => return Err(why.into()),
        };
        let Some(way) = ways.smoother(keeper) else {
            attempt.refused();
            continue;
        };
        match way.post("/v1/slots", &request).await {
            Ok(grant) => return Ok(Some((keeper, grant))),
            Err(error) if error.rule() == Some("busy") => tokio::time::sleep(AGAIN).await,
            Err(error) => {
                tracing::debug!(%error, "a keeper gives no slot");
                attempt.refused();
            }
        }
    }
}

/// Gives all smoothers what shows that a quorum has it; one that is down fetches it.
async fn certify(certificate: &Endorsed<Entry>, ways: &Ways) {
    let mut sent = tokio::task::JoinSet::new();
    for way in &ways.smoothers {
        let (way, certificate) = (way.clone(), certificate.clone());
        sent.spawn(async move { way.post::<()>("/v1/certificates", &certificate).await });
    }
    while let Some(answer) = sent.join_next().await {
        if let Ok(Err(error)) = answer {
            tracing::debug!(%error, "a smoother takes no certificate");
        }
    }
}

/// Deposits with all smoothers at once.
async fn deposit<L: Ledger>(
    person: &Shared<L>,
    attempt: &mut Attempt,
    ways: &Ways,
    pinned: &Pinned,
) -> Result<(), StatsError> {
    let mut sent = tokio::task::JoinSet::new();
    for (to, deposit) in attempt.deposits() {
        let Some(way) = ways.smoother(to).cloned() else { continue };
        sent.spawn(async move { deposit_with(&way, &deposit).await });
    }
    while let Some(answer) = sent.join_next().await {
        match answer {
            Ok(Some(receipt)) => {
                let step = attempt.receipt(pinned, &receipt)?;
                let mut person = person.lock().unwrap_or_else(PoisonError::into_inner);
                step.commit(&mut person.ledger)?;
            }
            Ok(None) => {}
            Err(error) => return Err(StatsError::Machine(error.to_string())),
        }
    }
    Ok(())
}

async fn deposit_with(way: &crate::stats::ways::Way, deposit: &Deposit) -> Option<Receipt> {
    loop {
        match way.post("/v1/deposits", deposit).await {
            Ok(receipt) => return Some(receipt),
            Err(error) if error.rule() == Some("busy") => tokio::time::sleep(AGAIN).await,
            Err(error) => {
                tracing::debug!(%error, "a smoother takes no deposit");
                return None;
            }
        }
    }
}
