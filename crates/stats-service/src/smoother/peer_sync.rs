//! Fetches the other smoothers' messages. Every smoother pulls and none pushes, so a missed message
//! is fetched again.

use super::engine::Call;
use super::outbox::{OutboxPage, PAGE, PeerMessage};
use crate::names::hex;
use crate::parties::{PAGE_SLOTS, PartyClient};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::messages::{Entry, Ready, SealedUpload};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::Signed;
use alpheus_node::engine::Handle;
use alpheus_node::network::error::RequestError;
use std::collections::BTreeSet;
use std::time::Duration;

/// The pause between requests.
const ROUND: Duration = Duration::from_millis(50);
/// The pause after a full page.
const SOON: Duration = Duration::from_millis(5);
/// The pause after a peer did not answer.
const LATER: Duration = Duration::from_millis(500);

/// Polls one peer for as long as the engine runs.
pub async fn run(by: SmootherId, party: PartyClient, engine: Handle<Call>) {
    let (mut boot, mut next) = (0, 0);
    loop {
        let path = format!("/v1/outbox/{boot}/{next}");
        match party.get::<OutboxPage>(&path).await {
            Ok(page) => {
                let full = page.messages.len() >= PAGE;
                if !page.messages.is_empty() {
                    engine.tell(Call::Messages(by, page.messages)).await;
                }
                (boot, next) = (page.boot, page.next);
                // Messages gather meanwhile, and the rate of a peer that always has more is limited.
                tokio::time::sleep(if full { SOON } else { ROUND }).await;
            }
            Err(error) => {
                tracing::debug!(%error, "cannot fetch messages of a smoother");
                tokio::time::sleep(LATER).await;
            }
        }
    }
}

/// Fetches missing deposits from a peer before a release. Once per aggregate, it also fetches the
/// peer's certificates and ready statements: a smoother that restarts from an old copy of its state
/// finds its own signatures there.
pub async fn complete(party: PartyClient, engine: Handle<Call>) {
    let mut asked = BTreeSet::new();
    loop {
        tokio::time::sleep(LATER).await;
        let needs = engine.ask(Call::Needs).await.unwrap_or_default();
        asked.retain(|name| needs.iter().any(|need| need.aggregate == *name));
        for need in needs {
            let name = hex(&need.aggregate);
            if need.uncertified || !asked.contains(&need.aggregate) {
                match fetch_certificates(&party, &need.aggregate, &engine).await {
                    Ok(()) => drop(asked.insert(need.aggregate)),
                    Err(error) => tracing::debug!(%error, "cannot fetch certificates"),
                }
            }
            for slot in need.lacking {
                match party
                    .get::<Option<SealedUpload>>(&format!("/v1/sealed-uploads/{name}/{slot}"))
                    .await
                {
                    Ok(Some(sealed)) => {
                        engine
                            .tell(Call::StoreSealedUpload(need.aggregate, slot, Box::new(sealed)))
                            .await;
                    }
                    Ok(None) => {}
                    Err(error) => tracing::debug!(%error, "cannot fetch a deposit"),
                }
            }
        }
    }
}

/// Fetches a peer's certificates, some slots at a time, and the ready statements it has received.
async fn fetch_certificates(
    party: &PartyClient,
    aggregate: &Digest,
    engine: &Handle<Call>,
) -> Result<(), RequestError> {
    let (name, mut from) = (hex(aggregate), Some(0));
    while let Some(slot) = from {
        let path = format!("/v1/certificates/{name}/{slot}");
        let part: Vec<Endorsed<Entry>> = party.get(&path).await?;
        let last = part.last().and_then(Endorsed::dangerous_unverified);
        // A peer that goes back would keep this loop going forever.
        let last = last.filter(|last| part.len() >= PAGE_SLOTS && last.slot >= slot);
        from = last.and_then(|last| last.slot.checked_add(1));
        engine.tell(Call::Certified(part)).await;
    }
    let heard: Vec<(SmootherId, Signed<Ready>)> =
        party.get(&format!("/v1/ready-statements/{name}")).await?;
    for (by, ready) in heard {
        engine.tell(Call::Messages(by, vec![PeerMessage::Ready(ready)])).await;
    }
    Ok(())
}

/// Sends ticks to the engine.
pub async fn tick(engine: Handle<Call>) {
    loop {
        tokio::time::sleep(ROUND).await;
        engine.tell(Call::Tick).await;
    }
}
