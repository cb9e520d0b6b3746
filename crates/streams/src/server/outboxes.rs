//! Messages that wait for hosts of controllers, until the hosts have received them.
//!
//! Nothing here is durable: the coordinator repeats requests without an answer, and a
//! controller that missed a plan, or its end, learns of it at its next message.

use crate::wire::{MailCursor, Post};
use alpheus_encrypted_stream::messages::ServiceMessage;
use alpheus_stream_runtime::controller_host::ToController;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Maximum number of messages that wait for one host; the oldest are dropped first.
const MAX_WAITING: usize = 1 << 16;
/// Maximum bytes of messages in one answer, unless a single one is larger.
const AT_ONCE: usize = 8 << 20;

/// All hosts' outboxes.
#[derive(Clone)]
pub struct Outboxes {
    /// The service's run; numbers of another run do not count.
    life: [u8; 16],
    hosts: Arc<Mutex<HashMap<String, Arc<Outbox>>>>,
}

#[derive(Default)]
struct Outbox {
    waiting: Mutex<Waiting>,
    news: Notify,
    /// When the host last fetched messages.
    last_fetch: Mutex<Option<Instant>>,
}

impl Outbox {
    fn was_heard(&self, within: Duration) -> bool {
        let last_fetch = self.last_fetch.lock().unwrap_or_else(PoisonError::into_inner);
        last_fetch.is_some_and(|at| at.elapsed() <= within)
    }
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<ToController>,
    /// The number of the first message, counted from 0.
    first: u64,
    /// How many of the first messages the host may have received.
    shown: usize,
}

impl Outboxes {
    /// Empty outboxes. `life` is random, drawn at each start.
    #[must_use]
    pub fn new(life: [u8; 16]) -> Outboxes {
        Outboxes { life, hosts: Arc::default() }
    }

    /// The service's run.
    #[must_use]
    pub fn life(&self) -> [u8; 16] {
        self.life
    }

    fn of(&self, host: &str) -> Arc<Outbox> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(hosts.entry(host.to_owned()).or_default())
    }

    /// Adds messages for a host.
    pub fn leave(&self, host: &str, messages: Vec<ToController>) {
        let outbox = self.of(host);
        let mut waiting = outbox.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        messages.into_iter().for_each(|message| waiting.add(message));
        let excess = waiting.messages.len().saturating_sub(MAX_WAITING);
        waiting.forget(excess);
        drop(waiting);
        outbox.news.notify_one();
    }

    /// The number of hosts, and of those that fetched messages within this time.
    #[must_use]
    pub fn hosts(&self, within: Duration) -> (usize, usize) {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        (hosts.len(), hosts.values().filter(|outbox| outbox.was_heard(within)).count())
    }

    /// How long ago a host fetched messages, if it did, and how many wait for it.
    #[must_use]
    pub fn state_of(&self, host: &str) -> (Option<Duration>, usize) {
        let outbox = {
            let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            hosts.get(host).cloned()
        };
        let Some(outbox) = outbox else { return (None, 0) };
        let heard = *outbox.last_fetch.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = outbox.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        (heard.map(|at| at.elapsed()), waiting.messages.len())
    }

    /// Whether a host has fetched messages in this run of the service.
    #[must_use]
    pub fn has_fetched(&self, host: &str) -> bool {
        self.was_heard(host, Duration::MAX)
    }

    /// Whether a host has fetched messages within this time.
    #[must_use]
    pub fn was_heard(&self, host: &str, within: Duration) -> bool {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.get(host).is_some_and(|outbox| outbox.was_heard(within))
    }

    /// The messages for a host after those that it has received; waits if there are none.
    /// They stay in the outbox until the host confirms them.
    pub async fn fetch(&self, host: &str, received: MailCursor, wait: Duration) -> Post {
        let outbox = self.of(host);
        *outbox.last_fetch.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let deadline = Instant::now() + wait;
        if received.life == self.life {
            let mut waiting = outbox.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let received = received.number.saturating_sub(waiting.first);
            waiting.forget(usize::try_from(received).unwrap_or(usize::MAX));
        }
        loop {
            let news = outbox.news.notified();
            let (number, messages) =
                outbox.waiting.lock().unwrap_or_else(PoisonError::into_inner).some();
            let post = Post { cursor: MailCursor { life: self.life, number }, messages };
            if !post.messages.is_empty() || tokio::time::timeout_at(deadline, news).await.is_err() {
                return post;
            }
        }
    }
}

impl Waiting {
    /// Adds a message. A host that sleeps needs no more than the last call of a plan.
    fn add(&mut self, message: ToController) {
        let is_call = |of: &ToController| matches!(of.2, ServiceMessage::EpochCall(_));
        if is_call(&message) {
            let mut unseen = self.messages.iter_mut().skip(self.shown);
            let same = |known: &&mut ToController| {
                (known.0, known.1) == (message.0, message.1) && is_call(known)
            };
            if let Some(earlier) = unseen.find(same) {
                *earlier = message;
                return;
            }
        }
        self.messages.push_back(message);
    }

    fn forget(&mut self, messages: usize) {
        let messages = messages.min(self.messages.len());
        self.shown = self.shown.saturating_sub(messages);
        self.messages.drain(..messages);
        self.first += messages as u64;
    }

    /// The oldest messages, as many as fit an answer, and the number after them.
    fn some(&mut self) -> (u64, Vec<ToController>) {
        let mut bytes = 0;
        let fits = |message: &&ToController| {
            let before = bytes;
            bytes += postcard::experimental::serialized_size(message).unwrap_or(AT_ONCE);
            before == 0 || bytes <= AT_ONCE
        };
        let messages: Vec<ToController> = self.messages.iter().take_while(fits).cloned().collect();
        self.shown = self.shown.max(messages.len());
        (self.first + messages.len() as u64, messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_crypto::sign::SigningKey;
    use alpheus_crypto::signed::Signed;
    use alpheus_encrypted_stream::messages::{Retirement, ServiceMessage};
    use alpheus_policy::ids::{ControllerId, PlanId};

    fn message(number: u8) -> ToController {
        let key = SigningKey::from_seed(&alpheus_crypto::secret::Secret::from_bytes([1; 32]));
        let plan = PlanId([number; 32]);
        let retirement = Signed::new(&Retirement { plan }, &key);
        (ControllerId([0; 32]), plan, ServiceMessage::Retirement(retirement))
    }

    #[tokio::test]
    async fn a_message_waits_until_the_host_has_it() {
        let outboxes = Outboxes::new([7; 16]);
        outboxes.leave("first", vec![message(1), message(2)]);
        let nothing = MailCursor::default();
        let post = outboxes.fetch("first", nothing, Duration::ZERO).await;
        assert_eq!(post.messages, [message(1), message(2)]);
        // The answer was lost: the same messages come again, and newer ones.
        outboxes.leave("first", vec![message(3)]);
        let again = outboxes.fetch("first", nothing, Duration::ZERO).await;
        assert_eq!(again.messages, [message(1), message(2), message(3)]);
        assert_eq!(outboxes.hosts(Duration::from_secs(60)), (1, 1));
        outboxes.leave("second", vec![message(1)]);
        assert_eq!(outboxes.hosts(Duration::from_secs(60)), (2, 1), "it never fetched");
        assert_eq!(outboxes.state_of("second"), (None, 1));
        assert!(matches!(outboxes.state_of("first"), (Some(_), 3)));
        assert_eq!(outboxes.state_of("third"), (None, 0));
        let rest = outboxes.fetch("first", post.cursor, Duration::ZERO).await;
        assert_eq!(rest.messages, [message(3)]);
        assert!(outboxes.fetch("first", rest.cursor, Duration::ZERO).await.messages.is_empty());
    }

    #[tokio::test]
    async fn numbers_of_another_run_do_not_count() {
        let outboxes = Outboxes::new([7; 16]);
        outboxes.leave("first", vec![message(1)]);
        let before = MailCursor { life: [6; 16], number: 100 };
        assert_eq!(outboxes.fetch("first", before, Duration::ZERO).await.messages, [message(1)]);
        // Nor does a number that was never assigned.
        let ahead = MailCursor { life: [7; 16], number: 100 };
        assert!(outboxes.fetch("first", ahead, Duration::ZERO).await.messages.is_empty());
        outboxes.leave("first", vec![message(2)]);
        let post = outboxes.fetch("first", MailCursor::default(), Duration::ZERO).await;
        assert_eq!(post.messages, [message(2)]);
    }
    fn call(window: u8) -> ToController {
        // Nobody here opens it.
        let (_, _, signed) = message(window);
        let ServiceMessage::Retirement(signed) = signed else { panic!("{signed:?}") };
        let bytes = postcard::to_allocvec(&signed).unwrap();
        let call = ServiceMessage::EpochCall(postcard::from_bytes(&bytes).unwrap());
        (ControllerId([0; 32]), PlanId([255; 32]), call)
    }

    /// One that has been received is not replaced, since the host will confirm it.
    #[tokio::test]
    async fn a_host_that_sleeps_has_one_call_to_read() {
        let outboxes = Outboxes::new([7; 16]);
        for window in 1..100 {
            outboxes.leave("first", vec![call(window)]);
        }
        outboxes.leave("first", vec![message(1)]);
        let nothing = MailCursor::default();
        let post = outboxes.fetch("first", nothing, Duration::ZERO).await;
        assert_eq!(post.messages, [call(99), message(1)]);
        outboxes.leave("first", vec![call(100), call(101)]);
        let rest = outboxes.fetch("first", post.cursor, Duration::ZERO).await;
        assert_eq!(rest.messages, [call(101)]);
    }
}
