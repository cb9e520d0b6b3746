//! Messages that wait for hosts of controllers, until the hosts have received them.
//!
//! Nothing here is durable: the coordinator repeats requests without an answer, and a
//! controller that missed a plan, or its end, learns of it at its next message. So the oldest
//! messages of a host that fetches none are dropped, by number and by bytes.

use crate::wire::{MailCursor, Post};
use alpheus_encrypted_stream::messages::ServiceMessage;
use alpheus_node::service::metrics::Metrics;
use alpheus_stream_runtime::controller_host::ToController;
use prometheus_client::metrics::counter::Counter;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How much may wait; the oldest messages are dropped first.
const LIMITS: Limits = Limits { messages: 1 << 16, bytes: 128 << 20, all: 1 << 30 };
/// Maximum bytes of messages in one answer, unless a single one is larger.
const AT_ONCE: usize = 8 << 20;

/// How much may wait.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Messages for one host.
    messages: usize,
    /// Their bytes, unless a single one is larger.
    bytes: usize,
    /// Bytes for all hosts together.
    all: usize,
}

/// All hosts' outboxes.
#[derive(Clone)]
pub struct Outboxes {
    /// The service's run; numbers of another run do not count.
    life: [u8; 16],
    limits: Limits,
    hosts: Arc<Mutex<HashMap<String, Arc<Outbox>>>>,
    /// Bytes that wait for all hosts.
    bytes: Arc<AtomicUsize>,
    dropped: Counter,
}

#[derive(Default)]
struct Outbox {
    waiting: Mutex<HostOutbox>,
    news: Notify,
    /// When the host last fetched messages.
    last_fetch: Mutex<Option<Instant>>,
}

impl Outbox {
    fn waiting(&self) -> MutexGuard<'_, HostOutbox> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn was_heard(&self, within: Duration) -> bool {
        let last_fetch = self.last_fetch.lock().unwrap_or_else(PoisonError::into_inner);
        last_fetch.is_some_and(|at| at.elapsed() <= within)
    }
}

#[derive(Default)]
struct HostOutbox {
    /// Each with its bytes.
    messages: VecDeque<(ToController, usize)>,
    bytes: usize,
    /// The number of the first message, counted from 0.
    first: u64,
    /// How many of the first messages the host may have received.
    shown: usize,
    /// Messages that were dropped since the host last fetched any.
    dropped: u64,
}

impl Outboxes {
    /// Empty outboxes. `life` is random, drawn at each start.
    #[must_use]
    pub fn new(life: [u8; 16]) -> Outboxes {
        let (hosts, bytes, dropped) = Default::default();
        Outboxes { life, limits: LIMITS, hosts, bytes, dropped }
    }

    /// Counts messages that were dropped as `alpheus_stream_host_messages_dropped`.
    pub fn register(&self, metrics: &Metrics) {
        let help = "Messages dropped because too many messages or bytes waited for a host that fetches none";
        metrics.with(|registry| {
            registry.register("stream_host_messages_dropped", help, self.dropped.clone());
        });
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
        self.change(&outbox, |waiting| {
            messages.into_iter().for_each(|message| waiting.add(message));
            self.keep(host, waiting, (self.limits.messages, self.limits.bytes));
        });
        self.keep_all(self.limits.all);
        outbox.news.notify_one();
    }

    /// Changes what waits for a host.
    fn change(&self, outbox: &Outbox, change: impl FnOnce(&mut HostOutbox)) {
        let mut waiting = outbox.waiting();
        let before = waiting.bytes;
        change(&mut waiting);
        // Never less than nothing: what a host's outbox loses was added to it before.
        self.bytes.fetch_add(waiting.bytes, Ordering::Relaxed);
        self.bytes.fetch_sub(before, Ordering::Relaxed);
    }

    /// Drops the oldest messages of a host until no more than this many wait, and bytes.
    fn keep(&self, host: &str, waiting: &mut HostOutbox, (messages, bytes): (usize, usize)) {
        let excess = waiting.excess(messages, bytes);
        if excess == 0 {
            return;
        }
        if waiting.dropped == 0 {
            tracing::warn!(
                host,
                messages = waiting.messages.len(),
                bytes = waiting.bytes,
                "too many messages or bytes wait for this host, which fetches nothing: the oldest are dropped"
            );
        }
        waiting.forget(excess);
        waiting.dropped += excess as u64;
        self.dropped.inc_by(excess as u64);
    }

    /// Drops messages of the hosts for which most waits, until all together have no more bytes.
    fn keep_all(&self, most: usize) {
        if self.bytes.load(Ordering::Relaxed) <= most {
            return;
        }
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let sizes = hosts.iter().map(|(name, outbox)| (outbox.waiting().bytes, name, outbox));
        let mut sizes: Vec<_> = sizes.collect();
        sizes.sort_unstable_by_key(|(bytes, name, _)| (Reverse(*bytes), *name));
        for (bytes, name, outbox) in sizes {
            let over = self.bytes.load(Ordering::Relaxed).saturating_sub(most);
            if over == 0 {
                return;
            }
            let left = bytes.saturating_sub(over);
            self.change(outbox, |waiting| self.keep(name, waiting, (usize::MAX, left)));
        }
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
        let waiting = outbox.waiting();
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
        self.change(&outbox, |waiting| {
            waiting.say_dropped(host);
            if received.life == self.life {
                let received = received.number.saturating_sub(waiting.first);
                waiting.forget(usize::try_from(received).unwrap_or(usize::MAX));
            }
        });
        loop {
            let news = outbox.news.notified();
            let (number, messages) = outbox.waiting().some();
            let post = Post { cursor: MailCursor { life: self.life, number }, messages };
            if !post.messages.is_empty() || tokio::time::timeout_at(deadline, news).await.is_err() {
                return post;
            }
        }
    }
}

impl HostOutbox {
    /// Adds a message. A host that sleeps needs no more than the last call of a plan.
    fn add(&mut self, message: ToController) {
        let is_call = |of: &ToController| matches!(of.2, ServiceMessage::EpochCall(_));
        let bytes = postcard::experimental::serialized_size(&message).unwrap_or(AT_ONCE);
        if is_call(&message) {
            let mut unseen = self.messages.iter_mut().skip(self.shown);
            let same = |(known, _): &&mut (ToController, usize)| {
                (known.0, known.1) == (message.0, message.1) && is_call(known)
            };
            if let Some(earlier) = unseen.find(same) {
                self.bytes = self.bytes - earlier.1 + bytes;
                *earlier = (message, bytes);
                return;
            }
        }
        self.bytes += bytes;
        self.messages.push_back((message, bytes));
    }

    /// How many of the oldest messages are too many, by number or by bytes. The last one stays,
    /// however large.
    fn excess(&self, messages: usize, bytes: usize) -> usize {
        let by_number = self.messages.len().saturating_sub(messages);
        let mut left = self.bytes;
        let too_large = |(_, size): &&(ToController, usize)| {
            let is_over = left > bytes;
            left -= size;
            is_over
        };
        let by_bytes = self.messages.iter().take_while(too_large).count();
        by_number.max(by_bytes.min(self.messages.len().saturating_sub(1)))
    }

    fn forget(&mut self, messages: usize) {
        let messages = messages.min(self.messages.len());
        self.shown = self.shown.saturating_sub(messages);
        self.bytes -= self.messages.drain(..messages).map(|(_, bytes)| bytes).sum::<usize>();
        self.first += messages as u64;
    }

    /// A host is back for which too much waited.
    fn say_dropped(&mut self, host: &str) {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            tracing::warn!(
                host,
                dropped,
                "this host is back, but has missed messages that were dropped"
            );
        }
    }

    /// The oldest messages, as many as fit an answer, and the number after them.
    fn some(&mut self) -> (u64, Vec<ToController>) {
        let mut bytes = 0;
        let fits = |(_, size): &&(ToController, usize)| {
            let before = bytes;
            bytes += size;
            before == 0 || bytes <= AT_ONCE
        };
        let fitting = self.messages.iter().take_while(fits);
        let messages: Vec<ToController> = fitting.map(|(message, _)| message.clone()).collect();
        self.shown = self.shown.max(messages.len());
        (self.first + messages.len() as u64, messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_crypto::sign::SigningKey;
    use alpheus_crypto::signed_message::Signed;
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

    /// A host that is away for long, in a deployment with large messages.
    #[tokio::test]
    async fn what_waits_for_a_silent_host_is_bounded_by_bytes_too() {
        let metrics = Metrics::new();
        let size = postcard::to_allocvec(&message(1)).unwrap().len();
        let limits = Limits { messages: 100, bytes: 3 * size, all: 4 * size };
        let outboxes = Outboxes { limits, ..Outboxes::new([7; 16]) };
        outboxes.register(&metrics);
        let nothing = MailCursor::default();
        outboxes.leave("first", vec![message(1)]);
        let before = outboxes.fetch("first", nothing, Duration::ZERO).await;
        outboxes.leave("first", (2..=9).map(message).collect());
        let dropped = |number: u64| {
            let line = format!("alpheus_stream_host_messages_dropped_total {number}\n");
            assert!(metrics.text().contains(&line), "{}", metrics.text());
        };
        dropped(6);
        // What was dropped counts as received: the host's own number is behind.
        let rest = outboxes.fetch("first", before.cursor, Duration::ZERO).await;
        assert_eq!(rest.messages, [message(7), message(8), message(9)]);
        assert_eq!(rest.cursor.number, 9);
        // All hosts together have a limit too: the one for which most waits pays.
        outboxes.leave("second", vec![message(1), message(2)]);
        dropped(7);
        assert_eq!(outboxes.state_of("first").1, 2);
        assert_eq!(outboxes.state_of("second").1, 2);
        // A single message that is larger than that goes through.
        let small = Limits { bytes: size / 2, ..limits };
        let outboxes = Outboxes { limits: small, ..Outboxes::new([7; 16]) };
        outboxes.leave("first", vec![message(1), message(2)]);
        assert_eq!(outboxes.fetch("first", nothing, Duration::ZERO).await.messages, [message(2)]);
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
