//! A smoother's messages to its peers. Peers fetch them in order, so a peer that missed some can
//! catch up. The outbox is rebuilt at each start.

use crate::parties::{DefinitionsPage, PAGE_DEFINITIONS};
use alpheus_accountable_statistics::definition::Definition;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::keymaking::KeyMessage;
use alpheus_accountable_statistics::messages::{Card, Opening, Outcome, Ready, Receipt};
use alpheus_accountable_statistics::smoother::Output;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// A message between smoothers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum PeerMessage {
    /// A step in the creation of a key.
    Word(Signed<KeyMessage>),
    /// A signed card of a key that a quorum has voted for.
    Card(Signed<Card>),
    /// The certificate of a key.
    Key(Box<Endorsed<Card>>),
    /// A definition that a quorum has signed.
    Definition(Box<Endorsed<Definition>>),
    /// A receipt for a deposit.
    Receipt(Box<Receipt>),
    /// Ready to decrypt a set.
    Ready(Signed<Ready>),
    /// A partial decryption.
    Opening(Signed<Opening>),
}

impl PeerMessage {
    /// For a message that is sent once, however often its cause occurs: what distinguishes it from others.
    fn said_once(&self) -> Option<Digest> {
        match self {
            Self::Receipt(receipt) => Some(receipt.entry.digest()),
            Self::Ready(ready) => Some(ready.digest()),
            Self::Opening(opening) => Some(opening.digest()),
            Self::Word(_) | Self::Card(_) | Self::Key(_) | Self::Definition(_) => None,
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        postcard::to_allocvec(self).map_or(0, |bytes| bytes.len())
    }

    /// The aggregate that the sender claims it belongs to, for routing.
    #[must_use]
    pub fn unverified_aggregate(&self) -> Option<Digest> {
        match self {
            Self::Receipt(receipt) => receipt.unverified_aggregate(),
            Self::Ready(ready) => ready.dangerous_first(),
            Self::Opening(opening) => Some(opening.dangerous_unverified()?.ready.aggregate),
            Self::Word(_) | Self::Card(_) | Self::Key(_) | Self::Definition(_) => None,
        }
    }
}

/// A page of the outbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutboxPage {
    /// Identifies the start of the process; each start counts from zero.
    pub boot: u64,
    /// The index to fetch next.
    pub next: usize,
    /// The messages.
    pub messages: Vec<PeerMessage>,
}

/// The outbox. Clones share one content.
#[derive(Clone)]
pub struct Outbox {
    state: Arc<RwLock<State>>,
    /// The next index, for peers that wait.
    news: watch::Sender<usize>,
}

struct State {
    boot: u64,
    said: BTreeMap<usize, PeerMessage>,
    /// Digests of those among them that are sent once.
    once: BTreeSet<Digest>,
    next: usize,
    /// The next index at past times, for pruning.
    marks: VecDeque<(Timestamp, usize)>,
    keys: Vec<Endorsed<Card>>,
    /// With the time at which this process has learnt them, which does not go back.
    definitions: BTreeMap<Digest, (Timestamp, Endorsed<Definition>)>,
    learnt: Timestamp,
    outcomes: BTreeMap<Digest, Signed<Outcome>>,
}

/// The number of keys listed; they include those of the current and the next key epoch.
const KEYS: usize = 8;
/// Messages per page.
pub const PAGE: usize = 512;
/// Bytes of messages per page, or those of one message if it is longer.
pub const PAGE_BYTES: usize = 2 << 20;
/// How long a peer waits for the next message: a process that stops waits for it.
const NEWS: Duration = Duration::from_secs(1);

impl State {
    /// Adds a message, but only once what somebody else can ask for again: a client sends its deposit
    /// again, and an aggregator its closing.
    fn add(&mut self, said: PeerMessage) {
        if said.said_once().is_some_and(|digest| !self.once.insert(digest)) {
            return;
        }
        self.said.insert(self.next, said);
        self.next = self.next.saturating_add(1);
    }
}

impl Outbox {
    /// An empty outbox for this start. Definitions are never older than the start: clients that
    /// have not heard of the last ones before it hear of all again.
    #[must_use]
    pub fn new(boot: u64, start: Timestamp) -> Self {
        let state = State {
            boot,
            said: BTreeMap::new(),
            once: BTreeSet::new(),
            next: 0,
            marks: VecDeque::new(),
            keys: Vec::new(),
            definitions: BTreeMap::new(),
            learnt: start,
            outcomes: BTreeMap::new(),
        };
        Self { state: Arc::new(RwLock::new(state)), news: watch::Sender::new(0) }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message.
    pub fn say(&self, said: PeerMessage) {
        let mut state = self.write();
        state.add(said);
        self.news.send_replace(state.next);
    }

    /// Waits for a while until there is a message from an index on: a peer that has everything need
    /// not ask many times a second.
    pub async fn wait(&self, boot: u64, from: usize) {
        let same = self.read().boot == boot;
        if same {
            let mut news = self.news.subscribe();
            // Without news the page is empty.
            let _ = timeout(NEWS, news.wait_for(|next| *next > from)).await;
        }
    }

    /// Adds a key's certificate.
    pub fn made(&self, key: Endorsed<Card>) {
        let mut state = self.write();
        state.keys.push(key.clone());
        if state.keys.len() > KEYS {
            state.keys.remove(0);
        }
        state.add(PeerMessage::Key(Box::new(key)));
        self.news.send_replace(state.next);
    }

    /// Adds a definition that this process has learnt now, once.
    pub fn define(&self, name: Digest, signed: &Endorsed<Definition>, now: Timestamp) {
        let mut state = self.write();
        if !state.definitions.contains_key(&name) {
            let learnt = state.learnt.max(now);
            state.learnt = learnt;
            state.definitions.insert(name, (learnt, signed.clone()));
            state.add(PeerMessage::Definition(Box::new(signed.clone())));
            self.news.send_replace(state.next);
        }
    }

    /// Publishes the role's output. Outcomes are for the aggregator.
    pub fn put_out(&self, name_of: impl Fn(&Signed<Outcome>) -> Option<Digest>, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Ready(ready) => self.say(PeerMessage::Ready(ready)),
                Output::Opening(opening) => self.say(PeerMessage::Opening(opening)),
                Output::Outcome(outcome) => {
                    if let Some(name) = name_of(&outcome) {
                        self.write().outcomes.insert(name, outcome);
                    }
                }
            }
        }
    }

    /// A page of messages from an index on.
    #[must_use]
    pub fn page(&self, boot: u64, from: usize) -> OutboxPage {
        let state = self.read();
        let from = if boot == state.boot { from.min(state.next) } else { 0 };
        let mut bytes = 0_usize;
        let fits = |(at, said): (&usize, &PeerMessage)| {
            let first = bytes == 0;
            bytes = bytes.saturating_add(said.size());
            (first || bytes <= PAGE_BYTES).then(|| (*at, said.clone()))
        };
        let page: Vec<(usize, PeerMessage)> =
            state.said.range(from..).take(PAGE).map_while(fits).collect();
        let next = page.last().map_or(from, |(at, _)| at.saturating_add(1));
        OutboxPage {
            boot: state.boot,
            next,
            messages: page.into_iter().map(|(_, said)| said).collect(),
        }
    }

    /// Deletes messages older than `kept` microseconds; nothing depends on them any more.
    pub fn prune(&self, now: Timestamp, kept: u64) {
        let mut state = self.write();
        let next = state.next;
        let due = state.marks.back().is_none_or(|(at, _)| now.0.saturating_sub(at.0) >= kept / 64);
        if due {
            state.marks.push_back((now, next));
        }
        while state.marks.front().is_some_and(|(at, _)| now.0.saturating_sub(at.0) >= kept) {
            if let Some((_, first)) = state.marks.pop_front() {
                let later = state.said.split_off(&first);
                for said in std::mem::replace(&mut state.said, later).into_values() {
                    said.said_once().map(|digest| state.once.remove(&digest));
                }
            }
        }
    }

    /// Deletes aggregates that are over.
    pub fn forget(&self, names: &[Digest]) {
        let mut state = self.write();
        for name in names {
            state.definitions.remove(name);
            state.outcomes.remove(name);
        }
    }

    /// The definitions in use.
    #[must_use]
    pub fn definitions(&self) -> Vec<Endorsed<Definition>> {
        self.read().definitions.values().map(|(_, signed)| signed.clone()).collect()
    }

    /// The definitions in use that were learnt at a time or later, those whose names come after one:
    /// a page of them.
    #[must_use]
    pub fn definitions_since(&self, since: Timestamp, after: Option<&Digest>) -> DefinitionsPage {
        let state = self.read();
        let later =
            (after.map_or(Bound::Unbounded, |name| Bound::Excluded(*name)), Bound::Unbounded);
        let new = state.definitions.range(later).filter(|(_, (learnt, _))| *learnt >= since);
        let page = new.take(PAGE_DEFINITIONS);
        DefinitionsPage {
            definitions: page.map(|(name, (_, signed))| (*name, signed.clone())).collect(),
        }
    }

    /// The certified keys.
    #[must_use]
    pub fn keys(&self) -> Vec<Endorsed<Card>> {
        self.read().keys.clone()
    }

    /// This smoother's outcomes of aggregates.
    #[must_use]
    pub fn outcomes(&self) -> Vec<Signed<Outcome>> {
        self.read().outcomes.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
    use alpheus_accountable_statistics::keymaking::Content;
    use alpheus_accountable_statistics::messages::Entry;
    use alpheus_crypto::onetime::OneTimePublic;
    use alpheus_crypto::secret::Secret;
    use alpheus_crypto::sign::SigningKey;
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Wake, Waker};
    use std::time::Instant;

    /// Whether a task was woken.
    #[derive(Default)]
    struct WakeFlag(AtomicBool);

    impl Wake for WakeFlag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    fn word(attempt: u32) -> PeerMessage {
        let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
        let content = Content::Verdict(vec![]);
        let word = KeyMessage { epoch: KeyEpoch(1), attempt, by: SmootherId(0), content };
        PeerMessage::Word(Signed::new(&word, &key))
    }

    #[test]
    fn old_messages_are_pruned_and_newer_ones_stay_available() {
        let outbox = Outbox::new(7, Timestamp(0));
        (0..600).for_each(|attempt| outbox.say(word(attempt)));
        let first = outbox.page(7, 0);
        assert_eq!((first.messages.len(), first.next), (512, 512));
        outbox.prune(Timestamp(0), 6400);
        (0..10).for_each(|attempt| outbox.say(word(attempt)));
        outbox.prune(Timestamp(6399), 6400);
        assert_eq!(outbox.page(7, 512).messages.len(), 98);
        outbox.prune(Timestamp(6400), 6400);
        // A peer that had reached the middle continues with the first message left.
        let rest = outbox.page(7, 512);
        assert_eq!((rest.messages.len(), rest.next), (10, 610));
        assert_eq!(outbox.page(6, 512).messages.len(), 10, "another start begins at zero");
        assert!(outbox.page(7, 610).messages.is_empty() && outbox.page(7, 610).next == 610);
    }

    /// Long messages make short pages, which a peer accepts, and a receipt is listed once.
    #[test]
    fn pages_are_short_and_receipts_are_listed_once() {
        let outbox = Outbox::new(7, Timestamp(0));
        let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
        let content = Content::Dealing(vec![7; 900_000]);
        let long = KeyMessage { epoch: KeyEpoch(1), attempt: 0, by: SmootherId(0), content };
        let long = PeerMessage::Word(Signed::new(&long, &key));
        (0..5).for_each(|_| outbox.say(long.clone()));
        let page = outbox.page(7, 0);
        assert_eq!((page.messages.len(), page.next), (2, 2));
        assert_eq!(outbox.page(7, 4).messages.len(), 1);
        let digest = Digest([1; 32]);
        let entry = Entry {
            aggregate: digest,
            key_epoch: KeyEpoch(1),
            slot: 3,
            revision: 7,
            ephemeral: OneTimePublic::from_bytes([9; 32]),
            content: digest,
            sealed: digest,
        };
        let receipt = Receipt { by: SmootherId(0), entry: Signed::new(&entry, &key) };
        let receipt = PeerMessage::Receipt(Box::new(receipt));
        outbox.prune(Timestamp(0), 6400);
        (0..100).for_each(|_| outbox.say(receipt.clone()));
        assert_eq!(outbox.page(7, 5).messages.len(), 1);
        outbox.prune(Timestamp(1000), 6400);
        outbox.prune(Timestamp(7400), 6400);
        assert!(outbox.page(7, 5).messages.is_empty());
        outbox.say(receipt);
        assert_eq!(outbox.page(7, 5).messages.len(), 1, "it can be listed again later");
    }

    /// An aggregator can send its closing as often as it likes.
    #[test]
    fn what_an_aggregator_causes_is_listed_once() {
        let outbox = Outbox::new(7, Timestamp(0));
        let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
        let (aggregate, digest) = (Digest([1; 32]), Digest([2; 32]));
        let ready = Signed::new(
            &Ready { aggregate, key_epoch: KeyEpoch(1), ledger: digest, tuples: digest },
            &key,
        );
        (0..100).for_each(|_| outbox.say(PeerMessage::Ready(ready.clone())));
        assert_eq!(outbox.page(7, 0).messages.len(), 1);
    }

    #[tokio::test]
    async fn a_peer_waits_for_the_next_message_only() {
        let outbox = Outbox::new(7, Timestamp(0));
        outbox.say(word(1));
        let woken = Arc::new(WakeFlag::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        // What is there already, and what an earlier start of the process had.
        assert!(pin!(outbox.wait(7, 0)).poll(&mut context).is_ready());
        assert!(pin!(outbox.wait(6, 1)).poll(&mut context).is_ready());
        // No timer fires meanwhile: the runtime needs this thread, which is busy.
        let mut next = pin!(outbox.wait(7, 1));
        assert!(next.as_mut().poll(&mut context).is_pending());
        assert!(!woken.0.load(Ordering::SeqCst));
        outbox.say(word(2));
        assert!(woken.0.load(Ordering::SeqCst) && next.poll(&mut context).is_ready());
        let began = Instant::now();
        outbox.wait(7, 2).await;
        assert!(began.elapsed() >= NEWS, "there is none");
    }

    /// Clients ask by a time of their own, which they share with others. A definition that was learnt
    /// before a start counts as learnt at the start.
    #[test]
    fn definitions_come_by_the_time_they_were_learnt_in_pages_by_name() {
        let outbox = Outbox::new(7, Timestamp(1_000));
        let name = |number: u8| Digest([number; 32]);
        let names = |since: u64, after: Option<&Digest>| -> Vec<Digest> {
            let page = outbox.definitions_since(Timestamp(since), after).definitions;
            page.into_iter().map(|(name, _)| name).collect()
        };
        outbox.define(name(3), &Endorsed::default(), Timestamp(0));
        outbox.define(name(2), &Endorsed::default(), Timestamp(2_000));
        outbox.define(name(1), &Endorsed::default(), Timestamp(1_500));
        assert_eq!(names(0, None), [name(1), name(2), name(3)]);
        assert_eq!(names(1_001, None), [name(1), name(2)], "a clock that goes back hides nothing");
        assert_eq!(names(2_001, None), []);
        assert_eq!(names(0, Some(&name(1))), [name(2), name(3)]);
        let many = (0..PAGE_DEFINITIONS + 9).map(|number| {
            let mut name = [255; 32];
            name[..8].copy_from_slice(&(number as u64).to_be_bytes());
            Digest(name)
        });
        many.for_each(|name| outbox.define(name, &Endorsed::default(), Timestamp(9_000)));
        let first = names(9_000, None);
        assert_eq!(first.len(), PAGE_DEFINITIONS);
        assert_eq!(names(9_000, first.last()).len(), 9);
    }
}
