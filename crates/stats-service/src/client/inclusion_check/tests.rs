//! An aggregator that lies or stays silent, over real sockets: a client with receipts is not
//! deceived.

use super::*;
use crate::client::contributor::Summary;
use crate::client::input::Input;
use crate::client_ledger::ClientLedger;
use crate::contributor_state::tests::{contributor_in, granted};
use crate::contributor_state::{ContributorState, SharedState};
use crate::parties::DefinitionsPage;
use crate::test_deployment::TestDeployment;
use alpheus_accountable_statistics::closing::Trees;
use alpheus_accountable_statistics::definition::Definition;
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_accountable_statistics::messages::{
    NoResultError, Outcome, PublishedResult, Ready, Receipt,
};
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_node::clock::{Clock, ClockWriter};
use alpheus_node::network::base::Base;
use alpheus_node::service::http::Server;
use alpheus_node::service::shutdown::Trigger;
use alpheus_time::Timestamp;
use alpheus_transport::simulation::Machine;
use axum::Router;
use axum::http::{StatusCode, Uri};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SLOTS: u32 = 9;
const RESULT: Result<PublishedResult, NoResultError> =
    Ok(PublishedResult::Full { count: 8, sum: 61, squares: None, uploads: 9 });

/// A server's answers by path, and the requests it received.
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
            // The same definitions, since whatever time.
            let about =
                if path.starts_with("/v1/definitions/") { "/v1/definitions/" } else { &path };
            let answer = script.answers.get(about).cloned().ok_or(StatusCode::NOT_FOUND);
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

/// A client with contributions in slots, which knows only its receipts.
struct World {
    place: TestDeployment,
    agreed: AgreedDefinition,
    state: ContributorState<ClientLedger>,
    entries: BTreeMap<u32, Entry>,
    ours: BTreeSet<u32>,
    smoothers: Vec<Script>,
    aggregator: Script,
}

/// Who was asked for what.
struct Scripts {
    aggregator: Script,
    smoothers: Vec<Script>,
}

impl Scripts {
    fn of_smoothers(&self, about: &str) -> Vec<String> {
        self.smoothers.iter().flat_map(|script| script.asked(about)).collect()
    }
}

/// A client, and what it needs to run.
struct TestClient {
    contributor: Contributor,
    input: Input,
    state: SharedState<ClientLedger>,
    name: Digest,
    asked: Scripts,
    _kept: (Vec<Trigger>, ClockWriter, TestDeployment),
}

impl World {
    fn new() -> Self {
        let place = TestDeployment::new();
        let agreed = place.agreed(0);
        let entry = |slot: u32| Entry {
            aggregate: agreed.name(),
            key_epoch: agreed.key_epoch,
            slot,
            revision: slot.into(),
            ephemeral: OneTimePublic::from_bytes([slot.to_be_bytes()[3]; 32]),
            content: Digest([1; 32]),
            sealed: Digest([2; 32]),
        };
        let entries: BTreeMap<u32, Entry> = (0..SLOTS).map(|slot| (slot, entry(slot))).collect();
        let store = Machine::new().open().unwrap();
        let ledger = ClientLedger::open(store, &place.folder.path().join("fence")).unwrap();
        let (state, _) = contributor_in(&place, ledger, ClientLedger::records);
        let (smoothers, aggregator) = (vec![Script::default(); 4], Script::default());
        let smoothers = smoothers.iter().map(|_| Script::default()).collect();
        let ours = BTreeSet::new();
        let mut world = Self { place, agreed, state, entries, ours, smoothers, aggregator };
        let definition = world.endorsed::<Definition>(&world.agreed, 4);
        let page = DefinitionsPage { definitions: vec![(world.agreed.name(), definition)] };
        for by in &mut world.smoothers {
            by.says("/v1/definitions/", &page);
        }
        world
    }

    fn endorsed<T: alpheus_crypto::signed_message::Message>(
        &self,
        of: &T,
        many: u16,
    ) -> Endorsed<T> {
        let mut endorsed = Endorsed::default();
        let add = |id: u16| endorsed.add(SmootherId(id), self.place.signed_by(id.into(), of));
        (0..many).for_each(add);
        endorsed
    }

    /// The client has contributed this slot's entry, and has a quorum's receipts.
    fn give(mut self, slot: u32) -> Self {
        let entry = self.entries[&slot];
        let certificate = self.endorsed(&entry, 3);
        self.state.ledger().commit(&ClientLedger::keep(&entry, &certificate)).unwrap();
        self.ours.insert(slot);
        self
    }

    fn trees(&self, counts: impl Fn(u32) -> bool) -> Trees {
        Trees::new(SLOTS, &self.entries, counts)
    }

    /// A smoother signs this outcome, over this set if there is one.
    fn ends(
        &mut self,
        by: usize,
        result: Result<PublishedResult, NoResultError>,
        set: Option<&Trees>,
    ) {
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

    /// All smoothers open this set.
    fn opened(mut self, counts: impl Fn(u32) -> bool) -> Self {
        let set = self.trees(counts);
        (0..4).for_each(|by| self.ends(by, RESULT, Some(&set)));
        self
    }

    /// The aggregator publishes this set, which smoothers relay.
    fn shown(mut self, counts: impl Fn(u32) -> bool) -> Self {
        let leaves = self.trees(counts).leaves().clone();
        (0..4).for_each(|by| self.relays(by, &leaves));
        self
    }

    fn relays(&mut self, by: usize, leaves: &Leaves) {
        self.smoothers[by].says(&format!("/v1/leaves/{}", hex(&self.agreed.name())), leaves);
    }

    /// Starts everybody, and a client at a time.
    async fn start(mut self, now: Timestamp) -> TestClient {
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
        let hand = ClockWriter::create(&file, now).unwrap();
        let clock = Clock::replayed(&file).unwrap();
        std::fs::write(&path, "").unwrap();
        let plan = self.place.plan.clone();
        let input = Input::open(Some(&path), self.state.ledger(), &plan, &clock).unwrap();
        let state: SharedState<ClientLedger> = Arc::new(Mutex::new(self.state));
        let card = self.place.card.clone();
        let contributor = Contributor::new(card, clock, plan, Arc::clone(&state), true).unwrap();
        let asked = Scripts { aggregator: self.aggregator, smoothers: self.smoothers };
        let (name, _kept) = (self.agreed.name(), (serving, hand, self.place));
        TestClient { contributor, input, state, name, asked, _kept }
    }

    /// Runs the client from a time until it ends. Returns its summary, and the number of receipts
    /// left.
    async fn run_from(self, now: Timestamp) -> (Summary, usize, Scripts) {
        let TestClient { contributor, input, state, name, asked, _kept } = self.start(now).await;
        let ran = tokio::time::timeout(Duration::from_secs(60), contributor.run(input)).await;
        let summary = ran.expect("it ends").unwrap();
        let left = contributor_state::lock(&state).ledger().kept(&name).len();
        (summary, left, asked)
    }

    /// Runs it after the time at which parties stop answering, so open checks fail.
    async fn run(self) -> (Summary, usize, Scripts) {
        let now = over(&self.agreed);
        self.run_from(now).await
    }
}

/// The processor time of this thread so far.
fn spent() -> Duration {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(said.split(' ').next().unwrap().parse().unwrap())
}

/// A client that waits for the end does nothing with what it keeps: a thousand contributions with
/// a quorum's receipts cost it no more than none.
#[tokio::test]
async fn waiting_costs_nothing_for_what_is_kept() {
    let mut world = World::new();
    let certificate = world.endorsed(&world.entries[&3], 3);
    for slot in 0..1000 {
        let entry = Entry { slot, ..world.entries[&3] };
        world.state.ledger().commit(&ClientLedger::keep(&entry, &certificate)).unwrap();
    }
    let before_the_end = Timestamp(world.agreed.release().0 - 1);
    let TestClient { contributor, input, state, _kept, .. } = world.start(before_the_end).await;
    let before = spent();
    let waited = tokio::time::timeout(Duration::from_secs(1), contributor.run(input)).await;
    assert!(waited.is_err(), "it waits for the end");
    let (waiting, name) = (spent() - before, _kept.2.agreed(0).name());
    let before = spent();
    for _ in 0..1000 {
        assert!(certificate.open(&_kept.2.card.pinned, 3).is_ok());
    }
    let once = spent() - before;
    // It has gone through its loop ten times or so, and has not checked a fiftieth of it in each.
    assert!(waiting < once / 5, "{waiting:?} {once:?}");
    assert_eq!(contributor_state::lock(&state).ledger().kept(&name).len(), 1000);
}

fn complaints(of: &[(InclusionError, u64)]) -> BTreeMap<InclusionError, u64> {
    of.iter().copied().collect()
}

#[tokio::test]
async fn contributions_in_the_opened_set_count() {
    let world = World::new().give(3).give(5).opened(|_| true).shown(|_| true);
    let (summary, left, _) = world.run().await;
    assert_eq!((summary.complaints, left), (complaints(&[]), 0));
}

/// The client fetches the whole set at once, and names no slot.
#[tokio::test]
async fn a_check_does_not_reveal_the_clients_slots() {
    let world = World::new().give(3).give(5).give(6).opened(|_| true).shown(|_| true);
    let (release, name) = (world.agreed.release(), hex(&world.agreed.name()));
    let (_, left, asked) = world.run_from(release).await;
    assert_eq!((left, asked.of_smoothers("leaves")), (0, vec![format!("/v1/leaves/{name}")]));
    // The aggregator does not learn who has contributed.
    assert!(asked.aggregator.asked("").is_empty());
}

/// The smoothers tolerate missing contributions; the client that made one does not.
#[tokio::test]
async fn a_client_that_is_left_out_complains_and_keeps_its_receipts() {
    let world = World::new().give(3).give(5).opened(|slot| slot != 5).shown(|slot| slot != 5);
    let (summary, left, _) = world.run().await;
    assert_eq!((summary.complaints, left), (complaints(&[(InclusionError::LeftOut, 1)]), 1));
}

/// It is left out of the opened set, and the aggregator gives this client another set.
#[tokio::test]
async fn another_set_for_one_client_is_detected() {
    let world = World::new().give(3).give(5).opened(|slot| slot != 5).shown(|_| true);
    let (summary, left, _) = world.run().await;
    assert_eq!((summary.complaints, left), (complaints(&[(InclusionError::OtherSet, 2)]), 2));
}

/// One smoother that relays another set does not make a client accuse the aggregator.
#[tokio::test]
async fn a_smoother_that_relays_another_set_changes_nothing() {
    for by in 0..4 {
        let mut world = World::new().give(3).opened(|_| true).shown(|_| true);
        let other = world.trees(|slot| slot != 3).leaves().clone();
        world.relays(by, &other);
        let (summary, left, _) = world.run().await;
        assert_eq!((summary.complaints, left), (complaints(&[]), 0));
    }
}

#[tokio::test]
async fn a_silent_aggregator_causes_a_complaint() {
    let (summary, left, _) = World::new().give(3).opened(|_| true).run().await;
    assert_eq!((summary.complaints, left), (complaints(&[(InclusionError::NotShown, 1)]), 1));
}

/// Two of four smoothers, and an aggregator that colludes with them.
#[tokio::test]
async fn two_smoothers_and_the_aggregator_are_not_believed() {
    let mut world = World::new().give(3).shown(|slot| slot != 3);
    let set = world.trees(|slot| slot != 3);
    (0..2).for_each(|by| world.ends(by, RESULT, Some(&set)));
    let (summary, left, _) = world.run().await;
    assert_eq!((summary.complaints, left), (complaints(&[(InclusionError::NoVerdict, 1)]), 1));
}

#[tokio::test]
async fn one_smoother_that_lies_changes_nothing() {
    let mut world = World::new().give(3).opened(|_| true).shown(|_| true);
    world.ends(0, Err(NoResultError::Late), None);
    let (summary, left, _) = world.run().await;
    assert_eq!((summary.complaints, left), (complaints(&[]), 0));
}

/// There is no reason to complain: a quorum says that nothing was opened.
#[tokio::test]
async fn an_aggregate_without_a_result_keeps_no_receipts() {
    let mut world = World::new().give(3);
    (0..3).for_each(|by| world.ends(by, Err(NoResultError::NotFilled), None));
    let (summary, left, _) = world.run().await;
    assert_eq!((summary.complaints, left), (complaints(&[]), 0));
}

/// A smoother that colludes with the aggregator tells clients that there is no result, and signs it for
/// readers. The honest one that has opened it shows it to the client, which keeps its receipts.
#[tokio::test]
async fn a_signed_result_beside_a_quorum_without_one_keeps_the_receipts() {
    let mut world = World::new().give(3).opened(|_| true);
    (1..4).for_each(|by| world.ends(by, Err(NoResultError::Late), None));
    let (summary, left, _) = world.run().await;
    assert_eq!((summary.complaints, left), (complaints(&[(InclusionError::Disputed, 1)]), 1));
}

/// A client is killed with a quorum's receipts and restarts after the end. It checks its
/// contribution, and does not count it as lost.
#[tokio::test]
async fn a_client_killed_with_its_receipts_checks_its_contributions() {
    for counts in [true, false] {
        let mut world = World::new();
        let clock = Clock::Process;
        let mut attempt = granted(&world.place, &mut world.state, &clock);
        let entry = *attempt.entry().unwrap();
        for id in 0..3_u16 {
            let by = SmootherId(id);
            let receipt = Receipt { by, entry: world.place.signed_by(id.into(), &entry) };
            let step = attempt.handle_receipt(&receipt, &world.place.card.pinned).unwrap();
            step.commit(world.state.ledger()).unwrap();
        }
        drop(attempt);
        world.entries.insert(entry.slot, entry);
        let there = |slot: u32| counts || slot != entry.slot;
        let (summary, left, _) = world.opened(there).shown(there).run().await;
        let missing = if counts { vec![] } else { vec![(InclusionError::LeftOut, 1)] };
        assert_eq!((summary.samples, summary.unplaced), (1, 0));
        assert_eq!((summary.complaints, left), (complaints(&missing), missing.len()));
    }
}
