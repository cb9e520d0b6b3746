//! An aggregator that lies, or says nothing, over real sockets: a client whose receipts show that
//! it should count believes none of it.

use super::*;
use crate::pass::link::Base;
use crate::service::http::Server;
use crate::service::shutdown::Trigger;
use crate::stats::client::book::Book;
use crate::stats::client::contributor::Summary;
use crate::stats::client::input::Input;
use crate::stats::clock::{Clock, Hand};
use crate::stats::person::tests::{granted, person_in};
use crate::stats::person::{Person, Shared};
use crate::stats::testing::Place;
use alpheus_accountable_statistics::closing::Trees;
use alpheus_accountable_statistics::definition::Definition;
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::messages::{Outcome, Published, Ready, Reason, Receipt};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_transport::simulated::Machine;
use axum::Router;
use axum::http::{StatusCode, Uri};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SLOTS: u32 = 9;
const RESULT: Result<Published, Reason> = Ok(Published::Full { count: 8, sum: 61, squares: None });

/// What a server answers to which path, and what it was asked.
#[derive(Clone, Default)]
struct Script {
    answers: BTreeMap<String, Vec<u8>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Script {
    fn says(&mut self, path: &str, value: &impl Serialize) {
        self.answers.insert(path.to_owned(), postcard::to_allocvec(value).unwrap());
    }

    fn asked(&self, about: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|path| path.contains(about)).cloned().collect()
    }

    /// Serves until the trigger is dropped.
    async fn serve(&self) -> (Trigger, Base) {
        let script = self.clone();
        let routes = Router::new().fallback(move |uri: Uri| {
            let path = uri.path().to_owned();
            let answer = script.answers.get(&path).cloned().ok_or(StatusCode::NOT_FOUND);
            script.asked.lock().unwrap().push(path);
            std::future::ready(answer)
        });
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), None).await.unwrap();
        let at = Base::parse(&format!("http://{}", server.address().unwrap())).unwrap();
        let trigger = Trigger::new();
        let shutdown = trigger.shutdown();
        tokio::spawn(server.serve(routes, shutdown, Duration::from_millis(100)));
        (trigger, at)
    }
}

/// A client that has given to two slots, and knows no more than its receipts.
struct World {
    place: Place,
    agreed: Agreed,
    person: Person<Book>,
    entries: BTreeMap<u32, Entry>,
    ours: BTreeSet<u32>,
    smoothers: Vec<Script>,
    aggregator: Script,
}

fn key(number: u32) -> VerifyingKey {
    let seed = [u8::try_from(number).unwrap() + 1; 32];
    SigningKey::from_seed(&Secret::from_bytes(seed)).verifying_key()
}

impl World {
    fn new() -> Self {
        let place = Place::new();
        let agreed = place.agreed(0);
        let entry = |slot: u32| Entry {
            aggregate: agreed.name(),
            key_epoch: agreed.key_epoch,
            slot,
            revision: slot.into(),
            ephemeral: key(slot),
            content: Digest([1; 32]),
            sealed: Digest([2; 32]),
        };
        let entries: BTreeMap<u32, Entry> = (0..SLOTS).map(|slot| (slot, entry(slot))).collect();
        let store = Machine::new().open().unwrap();
        let book = Book::open(store, &place.folder.path().join("fence")).unwrap();
        let (person, _) = person_in(&place, book, Book::records);
        let (smoothers, aggregator) = (vec![Script::default(); 4], Script::default());
        let smoothers = smoothers.iter().map(|_| Script::default()).collect();
        let ours = BTreeSet::new();
        let mut world = Self { place, agreed, person, entries, ours, smoothers, aggregator };
        let definition = world.endorsed::<Definition>(&world.agreed, 4);
        world.smoothers.iter_mut().for_each(|by| by.says("/v1/definitions", &vec![&definition]));
        world
    }

    fn endorsed<T: alpheus_crypto::signed::Message>(&self, of: &T, many: u16) -> Endorsed<T> {
        let mut endorsed = Endorsed::default();
        let add = |id: u16| endorsed.add(SmootherId(id), self.place.signed_by(id.into(), of));
        (0..many).for_each(add);
        endorsed
    }

    /// The client has given this slot's entry, and has receipts of a quorum.
    fn give(mut self, slot: u32) -> Self {
        let entry = self.entries[&slot];
        let certificate = self.endorsed(&entry, 3);
        self.person.ledger().commit(&Book::keep(&entry, &certificate)).unwrap();
        self.ours.insert(slot);
        self
    }

    fn trees(&self, counts: impl Fn(u32) -> bool) -> Trees {
        Trees::new(SLOTS, &self.entries, counts)
    }

    /// A smoother says that it ended so, over this set if there is one.
    fn ends(&mut self, by: usize, result: Result<Published, Reason>, set: Option<&Trees>) {
        let (aggregate, key_epoch) = (self.agreed.name(), self.agreed.key_epoch);
        let ready = set.map(|set| {
            let (ledger, tuples) = (set.ledger(), set.tuples());
            let ready = Ready { aggregate, key_epoch, ledger, tuples };
            self.place.signed_by(by, &ready)
        });
        let outcome = self.place.signed_by(by, &Outcome { aggregate, result });
        let path = format!("/v1/ends/{}", hex(&aggregate));
        self.smoothers[by].says(&path, &Some(End { outcome, ready }));
    }

    /// All smoothers have opened this set.
    fn opened(mut self, counts: impl Fn(u32) -> bool) -> Self {
        let set = self.trees(counts);
        (0..4).for_each(|by| self.ends(by, RESULT, Some(&set)));
        self
    }

    /// The aggregator shows this one.
    fn shown(mut self, counts: impl Fn(u32) -> bool) -> Self {
        let leaves = self.trees(counts).leaves().clone();
        self.aggregator.says(&format!("/v1/leaves/{}", hex(&self.agreed.name())), &leaves);
        self
    }

    /// Runs the client from a time on, until it ends; what comes of it, and how many of its
    /// receipts are left.
    async fn run_from(mut self, now: Time) -> (Summary, usize, Script) {
        let mut serving = Vec::new();
        for (script, at) in self.smoothers.iter().zip(&mut self.place.card.smoothers) {
            let (trigger, base) = script.serve().await;
            at.0 = base;
            serving.push(trigger);
        }
        let (trigger, base) = self.aggregator.serve().await;
        self.place.card.aggregator = base;
        serving.push(trigger);
        let (file, path) =
            (self.place.folder.path().join("clock"), self.place.folder.path().join("speeds"));
        let _hand = Hand::create(&file, now).unwrap();
        let clock = Clock::of(Some(&file)).unwrap();
        std::fs::write(&path, "").unwrap();
        let plan = self.place.plan.clone();
        let input = Input::open(Some(&path), self.person.ledger(), &plan, &clock).unwrap();
        let person: Shared<Book> = Arc::new(Mutex::new(self.person));
        let card = self.place.card.clone();
        let contributor = Contributor::new(card, clock, plan, Arc::clone(&person), true).unwrap();
        let ran = tokio::time::timeout(Duration::from_secs(60), contributor.run(input)).await;
        let summary = ran.expect("it ends").unwrap();
        let (name, pinned) = (self.agreed.name(), &self.place.card.pinned);
        let left = person::lock(&person).ledger().kept(&name, pinned).len();
        (summary, left, self.aggregator)
    }

    /// The same once nobody answers for the aggregate any more: what is not known then is not.
    async fn run(self) -> (Summary, usize, Script) {
        let now = over(&self.agreed);
        self.run_from(now).await
    }
}

fn complaints(of: &[(Complaint, u64)]) -> BTreeMap<Complaint, u64> {
    of.iter().copied().collect()
}

#[tokio::test]
async fn what_the_smoothers_have_opened_counts() {
    let world = World::new().give(3).give(5).opened(|_| true).shown(|_| true);
    let (summary, left, _) = world.run().await;
    assert_eq!((summary.complaints, left), (complaints(&[]), 0));
}

/// All of it is asked for at once, and nothing that names a slot.
#[tokio::test]
async fn nobody_hears_which_slots_a_client_looks_for() {
    let world = World::new().give(3).give(5).give(6).opened(|_| true).shown(|_| true);
    let (release, name) = (world.agreed.release(), hex(&world.agreed.name()));
    let (_, left, aggregator) = world.run_from(release).await;
    assert_eq!((left, aggregator.asked("")), (0, vec![format!("/v1/leaves/{name}")]));
}

/// The smoothers tolerate that some are left out; the client whose it is does not.
#[tokio::test]
async fn a_client_that_is_left_out_says_so_and_keeps_its_receipts() {
    let world = World::new().give(3).give(5).opened(|slot| slot != 5).shown(|slot| slot != 5);
    let (summary, left, _) = world.run().await;
    assert_eq!((summary.complaints, left), (complaints(&[(Complaint::LeftOut, 1)]), 1));
}

/// It is left out of what was opened; the aggregator shows it, and it alone, another set.
#[tokio::test]
async fn another_set_for_one_client_is_seen() {
    let world = World::new().give(3).give(5).opened(|slot| slot != 5).shown(|_| true);
    let (summary, left, _) = world.run().await;
    assert_eq!((summary.complaints, left), (complaints(&[(Complaint::OtherSet, 2)]), 2));
}

#[tokio::test]
async fn an_aggregator_that_shows_nothing_is_complained_of() {
    let (summary, left, _) = World::new().give(3).opened(|_| true).run().await;
    assert_eq!((summary.complaints, left), (complaints(&[(Complaint::NotShown, 1)]), 1));
}

/// Two smoothers of four, and an aggregator that shows what they say.
#[tokio::test]
async fn two_smoothers_and_the_aggregator_are_not_believed() {
    let mut world = World::new().give(3).shown(|slot| slot != 3);
    let set = world.trees(|slot| slot != 3);
    (0..2).for_each(|by| world.ends(by, RESULT, Some(&set)));
    let (summary, left, _) = world.run().await;
    assert_eq!((summary.complaints, left), (complaints(&[(Complaint::NoVerdict, 1)]), 1));
}

#[tokio::test]
async fn one_smoother_that_lies_changes_nothing() {
    let mut world = World::new().give(3).opened(|_| true).shown(|_| true);
    world.ends(0, Err(Reason::Late), None);
    let (summary, left, _) = world.run().await;
    assert_eq!((summary.complaints, left), (complaints(&[]), 0));
}

/// There is nothing to complain of: a quorum says that nothing was opened.
#[tokio::test]
async fn an_aggregate_without_a_result_keeps_no_receipts() {
    let mut world = World::new().give(3);
    (0..3).for_each(|by| world.ends(by, Err(Reason::NotFilled), None));
    let (summary, left, _) = world.run().await;
    assert_eq!((summary.complaints, left), (complaints(&[]), 0));
}

/// A client that was killed with receipts of a quorum, and comes back when all is over: what it
/// gave is looked for, not taken for lost.
#[tokio::test]
async fn a_client_that_was_killed_with_its_receipts_looks_for_what_it_gave() {
    for counts in [true, false] {
        let mut world = World::new();
        let clock = Clock::of(None).unwrap();
        let mut attempt = granted(&world.place, &mut world.person, &clock);
        let entry = *attempt.entry().unwrap();
        for id in 0..3_u16 {
            let by = SmootherId(id);
            let receipt = Receipt { by, entry: world.place.signed_by(id.into(), &entry) };
            let step = attempt.receipt(&world.place.card.pinned, &receipt).unwrap();
            step.commit(world.person.ledger()).unwrap();
        }
        drop(attempt);
        world.entries.insert(entry.slot, entry);
        let there = |slot: u32| counts || slot != entry.slot;
        let (summary, left, _) = world.opened(there).shown(there).run().await;
        let missing = if counts { vec![] } else { vec![(Complaint::LeftOut, 1)] };
        assert_eq!((summary.samples, summary.unplaced), (1, 0));
        assert_eq!((summary.complaints, left), (complaints(&missing), missing.len()));
    }
}
