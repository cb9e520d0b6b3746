//! Fetches the other smoothers' messages. Every smoother pulls and none pushes, so a missed message
//! is fetched again.

use super::engine::Call;
use super::outbox::{OutboxPage, PAGE, PAGE_BYTES, PeerMessage};
use crate::names::hex;
use crate::parties::{MAX_BODY, PAGE_SLOTS, PartyClient};
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::{Entry, Ready, SealedUpload};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::engine::Handle;
use alpheus_node::network::error::RequestError;
use alpheus_node::retry::{Backoff, RetryPolicy};
use std::collections::BTreeSet;
use std::time::Duration;

/// The pause between requests.
const ROUND: Duration = Duration::from_millis(50);
/// The pause after a full page.
const SOON: Duration = Duration::from_millis(5);
/// The pauses after a peer did not answer. The longest is short: a release may wait for this peer.
const LATER: RetryPolicy = RetryPolicy::doubling(ROUND, Duration::from_millis(500));
/// The pause between looks at what is missing before a release.
const LOOK: Duration = Duration::from_millis(500);

/// The size of one smoother's signed entry or ready statement, at most.
const SIGNATURE: usize = 512;
/// The size of a page: an honest one is of so many bytes, or one message.
const MAX_PAGE: usize = PAGE_BYTES * 2;

/// Polls one peer for as long as the engine runs.
pub async fn run(by: SmootherId, party: PartyClient, engine: Handle<Call>) {
    let (mut boot, mut next) = (0, 0);
    let (party, mut failures) = (party.up_to(MAX_PAGE), Backoff::new(LATER));
    loop {
        match fetch_page(&party, boot, next).await {
            Ok(page) => {
                failures.reset();
                let full = page.messages.len() >= PAGE;
                if !page.messages.is_empty() {
                    engine.tell(Call::Messages(by, page.messages)).await;
                    // The next page waits for its turn: others' calls come first.
                    let _ = engine.ask(Call::Done).await;
                }
                (boot, next) = (page.boot, page.next);
                // Messages gather meanwhile, and the rate of a peer that always has more is limited.
                tokio::time::sleep(if full { SOON } else { ROUND }).await;
            }
            Err(error) => {
                tracing::debug!(%error, "cannot fetch messages of a smoother");
                tokio::time::sleep(failures.pause()).await;
            }
        }
    }
}

/// Fetches a page of a peer's messages. One with too many is refused.
async fn fetch_page(
    party: &PartyClient,
    boot: u64,
    next: usize,
) -> Result<OutboxPage, RequestError> {
    let page: OutboxPage = party.get(&format!("/v1/outbox/{boot}/{next}")).await?;
    if page.messages.len() > PAGE { Err(party.malformed()) } else { Ok(page) }
}

/// Fetches missing deposits from a peer before a release. Once per aggregate, it also fetches the
/// peer's certificates and ready statements: a smoother that restarts from an old copy of its state
/// finds its own signatures there.
pub async fn complete(party: PartyClient, smoothers: usize, engine: Handle<Call>) {
    let mut asked = BTreeSet::new();
    loop {
        tokio::time::sleep(LOOK).await;
        let needs = engine.ask(Call::Needs).await.unwrap_or_default();
        asked.retain(|name| needs.iter().any(|need| need.aggregate == *name));
        for need in needs {
            let name = hex(&need.aggregate);
            let first = !asked.contains(&need.aggregate);
            if need.uncertified || first {
                let about = (&need.aggregate, need.slots, smoothers);
                match fetch_certificates(&party, about, &engine).await {
                    Ok(()) => drop(asked.insert(need.aggregate)),
                    Err(error) => tracing::debug!(%error, "cannot fetch certificates"),
                }
            }
            // Until it has ended here: other smoothers may have agreed already.
            if (need.uncertified || need.released || first)
                && let Err(error) =
                    fetch_ready_statements(&party, &need.aggregate, smoothers, &engine).await
            {
                tracing::debug!(%error, "cannot fetch ready statements");
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

/// Fetches a peer's certificates of an aggregate with so many slots, some at a time. Each names a slot
/// beyond the last, so that a peer cannot keep this going, and has no more signatures than there are
/// smoothers.
async fn fetch_certificates(
    party: &PartyClient,
    (aggregate, slots, smoothers): (&Digest, u32, usize),
    engine: &Handle<Call>,
) -> Result<(), RequestError> {
    let bytes = PAGE_SLOTS.saturating_mul(smoothers).saturating_mul(SIGNATURE);
    let party = party.clone().up_to(bytes.min(MAX_BODY));
    let (name, mut from) = (hex(aggregate), 0);
    while from < slots {
        let path = format!("/v1/certificates/{name}/{from}");
        let part: Vec<Endorsed<Entry>> = party.get(&path).await?;
        let full = part.len() >= PAGE_SLOTS;
        for certificate in &part {
            let entry = certificate.dangerous_unverified();
            let entry = entry.filter(|entry| {
                entry.aggregate == *aggregate && (from..slots).contains(&entry.slot)
            });
            let few = certificate.signatures().count() <= smoothers;
            let entry = entry.filter(|_| few).ok_or_else(|| party.malformed())?;
            from = entry.slot.saturating_add(1);
        }
        engine.tell(Call::Certified(part)).await;
        if !full {
            break;
        }
    }
    Ok(())
}

/// Fetches the ready statements of an aggregate that a peer has received: one of each smoother.
async fn fetch_ready_statements(
    party: &PartyClient,
    aggregate: &Digest,
    smoothers: usize,
    engine: &Handle<Call>,
) -> Result<(), RequestError> {
    let party = party.clone().up_to(smoothers.saturating_mul(SIGNATURE).saturating_add(SIGNATURE));
    let heard: Vec<(SmootherId, Signed<Ready>)> =
        party.get(&format!("/v1/ready-statements/{}", hex(aggregate))).await?;
    let ours = |(_, ready): &(_, Signed<Ready>)| ready.dangerous_first() == Some(*aggregate);
    if heard.len() > smoothers || !heard.iter().all(ours) {
        return Err(party.malformed());
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_deployment::{TestDeployment, answering};
    use alpheus_accountable_statistics::configuration::KeyEpoch;
    use alpheus_accountable_statistics::keymaking::{Content, KeyMessage};
    use alpheus_crypto::onetime::OneTimePublic;

    /// A peer's page has no more messages and bytes than an honest one.
    #[tokio::test]
    async fn a_page_of_too_many_messages_or_bytes_is_refused() {
        let place = TestDeployment::new();
        let word = |size| {
            let content = Content::Dealing(vec![7; size]);
            let word = KeyMessage { epoch: KeyEpoch(1), attempt: 0, by: SmootherId(1), content };
            PeerMessage::Word(place.signed_by(1, &word))
        };
        for (message, many, accepted) in [
            (word(9), PAGE, true),
            (word(9), PAGE + 1, false),
            (word(PAGE_BYTES), 1, true),
            (word(PAGE_BYTES), 2, false),
        ] {
            let page = OutboxPage { boot: 1, next: many, messages: vec![message; many] };
            let page = postcard::to_allocvec(&page).unwrap();
            let (_serving, party) = answering(move |_| page.clone()).await;
            let fetched = fetch_page(&party.up_to(MAX_PAGE), 1, 0).await;
            assert_eq!(fetched.is_ok(), accepted, "{many}");
        }
    }

    /// Certificates that go back, of other aggregates or beyond the last slot are refused: they
    /// would keep the fetch going, or make others' work.
    #[tokio::test]
    async fn certificates_come_once_and_in_order() {
        let place = TestDeployment::new();
        let (name, other) = (Digest([1; 32]), Digest([2; 32]));
        let certificate = |(aggregate, slot)| {
            let entry = Entry {
                aggregate,
                key_epoch: KeyEpoch(0),
                slot,
                revision: 7,
                ephemeral: OneTimePublic::from_bytes([9; 32]),
                content: name,
                sealed: name,
            };
            let mut certificate = Endorsed::default();
            certificate.add(SmootherId(1), place.signed_by(1, &entry));
            certificate
        };
        for (listed, accepted) in [
            (vec![(name, 0), (name, 3), (name, 8)], true),
            (vec![(name, 3), (name, 3)], false),
            (vec![(name, 3), (name, 2)], false),
            (vec![(name, 9)], false),
            (vec![(other, 3)], false),
        ] {
            let part: Vec<Endorsed<Entry>> = listed.into_iter().map(certificate).collect();
            let part = postcard::to_allocvec(&part).unwrap();
            let (_serving, party) = answering(move |_| part.clone()).await;
            let (engine, mut calls) = alpheus_node::engine::channel();
            let done = fetch_certificates(&party, (&name, 9, 4), &engine).await;
            assert_eq!((done.is_ok(), calls.try_recv().is_ok()), (accepted, accepted));
        }
    }

    /// One ready statement of each smoother, of the aggregate that was asked for.
    #[tokio::test]
    async fn more_ready_statements_than_smoothers_are_refused() {
        let place = TestDeployment::new();
        let (name, other) = (Digest([1; 32]), Digest([2; 32]));
        for (aggregate, many, accepted) in [(name, 4, true), (name, 5, false), (other, 1, false)] {
            let ready = Ready { aggregate, key_epoch: KeyEpoch(0), ledger: name, tuples: name };
            let heard = vec![(SmootherId(1), place.signed_by(1, &ready)); many];
            let heard = postcard::to_allocvec(&heard).unwrap();
            let (_serving, party) = answering(move |_| heard.clone()).await;
            let (engine, _calls) = alpheus_node::engine::channel();
            let done = fetch_ready_statements(&party, &name, 4, &engine).await;
            assert_eq!(done.is_ok(), accepted);
        }
    }
}
