//! A simulation of a query by epochs from a seed, with the real service and the real controllers:
//! of many controllers few are awake, and some of these drop out. Each window opens once over the
//! listed, or says why not.
//!
//! The long forms are for `make drills`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::common::in_memory;
use crate::common::recording::{Draw, POLICIES, SCHEMA};
use alpheus_encrypted_stream::messages::ServiceMessage;
use alpheus_encrypted_stream::producer::Start;
use alpheus_encrypted_stream::receipt::WindowReceipt;
use alpheus_input::rows::Cell;
use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_policy::policy::Policies;
use alpheus_policy::query::{Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::embedded_deployment::{
    Controllers, EmbeddedDeployment, Member, Pace, Stores,
};
use alpheus_stream_runtime::query_planner::{QueryContext, plan_query};
use alpheus_stream_runtime::receipts::{ReceiptParts, page};
use alpheus_stream_runtime::results::{OK, Row, columns};
use alpheus_stream_runtime::service::ServiceOutput;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::Batch;
use alpheus_transport::simulation::Machine;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::{BTreeMap, BTreeSet};

const QUERY: &str = "CREATE STREAM Readings AS SELECT SUM(reading), COUNT(reading) \
    WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters WITH (membership = 'epochs')";
const VERIFIED: &str = "CREATE STREAM Readings AS SELECT SUM(reading), COUNT(reading) \
    WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters \
    WITH (membership = 'epochs', integrity = 'verified')";
const START: u64 = 1_700_000_000_000_000;
const WINDOW: u64 = 10_000_000;

/// When a controller that is listed stops answering in a window.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dropout {
    BeforePresence,
    BeforeToken,
}

struct World {
    embedded: EmbeddedDeployment,
    rng: ChaCha20Rng,
    draw: Draw,
    now: Timestamp,
    /// Processor time of all controllers so far, in milliseconds.
    spent: u64,
    _fence: tempfile::TempDir,
}

/// Who is there in a window.
struct Window {
    awake: BTreeSet<usize>,
    drops: BTreeMap<usize, Dropout>,
}

/// What a member reads in a window.
fn reading(member: usize, window: u64) -> i64 {
    i64::try_from((member as u64 * 37 + window * 11) % 1001).unwrap()
}

impl World {
    /// So many owners, each with a controller, and a query.
    fn new(query: &str, owners: usize, seed: u64) -> World {
        let (owner, fence) = (|number: usize| format!("m{number}"), in_memory::folder());
        let members: Vec<Member> = (0..owners)
            .map(|number| Member {
                key: owner(number),
                owner: owner(number),
                metadata: BTreeMap::new(),
            })
            .collect();
        // As the defaults are: a third of the controllers may collude, and at least eight.
        let schema = SCHEMA.replace("clients: [1]", "clients: [10]");
        let schema = schema.replace("alpha: 0, dropout: 0", "alpha: 1/3, dropout: 1/5");
        let schema = schema.replace("population: 100", "population: 20000");
        let schema = Schema::from_yaml(&schema).unwrap();
        let policies = POLICIES.replace("clients: 1", "clients: 10");
        let policies = Policies::from_yaml(&policies, &schema).unwrap();
        let stores = Stores {
            service: Machine::new().open().unwrap(),
            private: Machine::new().open().unwrap(),
            fence: fence.path().join("fence"),
        };
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let each = Controllers::PerOwner;
        let mut embedded = EmbeddedDeployment::on(
            stores,
            &schema,
            &members,
            &policies,
            each,
            Pace::Recorded,
            &mut rng,
        )
        .unwrap();
        let Statement::Create(create) = parse(query).unwrap() else { panic!("no query") };
        let asking = QueryContext::from(Timestamp(START));
        let planned = plan_query(&create, &embedded.manager.catalog, asking, &mut rng).unwrap();
        embedded.start(Timestamp(START), &planned.to_run()).unwrap();
        let now = Timestamp(0);
        World { embedded, rng, draw: Draw(seed), now, spent: 0, _fence: fence }
    }

    /// Some of a hundred, drawn: those who are awake, of whom up to a tenth drop out.
    fn draw(&mut self, percent: u64) -> Window {
        let all = self.embedded.devices.len();
        let wanted = usize::try_from(all as u64 * percent / 100).unwrap();
        let mut awake = BTreeSet::new();
        while awake.len() < wanted {
            awake.insert(usize::try_from(self.draw.below(all as u64)).unwrap());
        }
        let mut drops = BTreeMap::new();
        for member in &awake {
            if drops.len() < wanted / 10 && self.draw.below(8) == 0 {
                let when = if self.draw.below(2) == 0 {
                    Dropout::BeforePresence
                } else {
                    Dropout::BeforeToken
                };
                drops.insert(*member, when);
            }
        }
        Window { awake, drops }
    }

    /// Every device reads once in a window.
    fn feed(&mut self, window: u64) {
        let from = Timestamp(START + window * WINDOW);
        let (embedded, mut batch) = (&mut self.embedded, Batch::new());
        for (member, device) in embedded.devices.iter_mut().enumerate() {
            if !device.is_online() {
                device.open(Start::First, from, &mut self.rng, &mut batch).unwrap();
            }
            let cells = [Cell::Number(reading(member, window))];
            let time = from.plus(Span(1));
            device.event(time, &cells, &embedded.encoder, &mut self.rng, &mut batch).unwrap();
            device.advance(from.plus(Span(WINDOW)), &mut self.rng, &mut batch).unwrap();
        }
        embedded.store.commit(batch).unwrap();
    }

    /// A window, from its readings to its row.
    fn run(&mut self, window: u64, there: &Window) -> Row {
        self.feed(window);
        let clock = Timestamp(START + (window + 1) * WINDOW);
        self.embedded.manager.service.ingest(clock).unwrap();
        let mut rows = Vec::new();
        loop {
            let service = &mut self.embedded.manager.service;
            let round = service.close_windows(self.now, Timestamp(0)).unwrap();
            self.exchange(clock, round, there, &mut rows);
            let Some(deadline) = self.embedded.manager.service.deadline() else { break };
            self.now = self.now.max(deadline);
            let round = self.embedded.manager.service.timeout(self.now).unwrap();
            self.exchange(clock, round, there, &mut rows);
        }
        assert_eq!(rows.len(), 1, "a window has one row: {rows:?}");
        rows.remove(0)
    }

    fn exchange(
        &mut self,
        clock: Timestamp,
        mut round: ServiceOutput,
        there: &Window,
        rows: &mut Vec<Row>,
    ) {
        let places = self.embedded.controller_of.iter().copied().zip(0..);
        let places: BTreeMap<ControllerId, usize> = places.collect();
        loop {
            rows.append(&mut round.rows);
            round.messages.retain(|(to, _, message)| {
                let member = places[to];
                let dropped = match message {
                    ServiceMessage::EpochCall(_) | ServiceMessage::List(_) => false,
                    ServiceMessage::Summons(_) => {
                        there.drops.get(&member) == Some(&Dropout::BeforePresence)
                    }
                    _ => there.drops.contains_key(&member),
                };
                there.awake.contains(&member) && !dropped
            });
            if round.messages.is_empty() {
                return;
            }
            let before = processor_time();
            let answers = self.embedded.host.handle(clock, round.messages).unwrap();
            self.spent += processor_time() - before;
            round = self.embedded.manager.service.receive(self.now, clock, answers).unwrap();
        }
    }
}

impl World {
    /// That a row's controllers have signed it, as its receipt shows.
    fn holds(&self, row: &Row, plan: PlanId, members: usize) {
        let embedded = &self.embedded;
        let (found, _) = page(embedded.store.as_ref(), &embedded.topics, "Readings", 0).unwrap();
        let mut parts = ReceiptParts::default();
        let mut all = found.into_iter().filter_map(|part| parts.take(part));
        let (_, window, receipt) = all.find(|(of, ..)| *of == plan).unwrap();
        let receipt = receipt.unwrap();
        let announced = receipt.listed_plan(embedded.deployment()).unwrap().unwrap();
        let WindowReceipt::Verified(receipt) = receipt else { panic!("{receipt:?}") };
        let verified = receipt.verify(&announced, window).unwrap();
        assert_eq!(announced.id(), plan);
        assert_eq!((verified.signers() as usize, verified.population()), (members, row.population));
        let expected = columns(announced.plan(), verified.words()).unwrap();
        let published: Vec<_> = row.outputs.iter().map(|(_, value)| value.clone()).collect();
        assert_eq!(published, expected);
    }
}

/// Milliseconds of processor time of this process, to the kernel's ten.
fn processor_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks =
        fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap());
    10 * ticks.sum::<u64>()
}

/// Of so many controllers, at each presence one window. Opened windows are the truth over those
/// who were listed and stayed; others say why they did not open.
fn simulate(controllers: usize, presences: &[u64], seed: u64) {
    simulate_query(QUERY, controllers, presences, seed);
}

fn simulate_query(query: &str, controllers: usize, presences: &[u64], seed: u64) {
    let mut world = World::new(query, controllers, seed);
    for (window, percent) in (0..).zip(presences) {
        let there = world.draw(*percent);
        let before = world.spent;
        let row = world.run(window, &there);
        print_line(controllers, *percent, &there, &row, world.spent - before);
        let stayed: Vec<usize> =
            there.awake.iter().filter(|at| !there.drops.contains_key(at)).copied().collect();
        let about = format!("{percent} % of {controllers}, {} dropped", there.drops.len());
        // t of the listed, and what a window needs of them.
        let listed = there.awake.len();
        let tolerated = (listed - 1).min((listed / 3).max(8));
        if listed - tolerated < 10 {
            assert_eq!(row.status, "population below the minimum 10", "{about}");
            assert_eq!((row.population, row.silent, row.excluded), (0, 0, 0), "{about}");
            continue;
        }
        assert_eq!(row.status, OK, "{about}: {row:?}");
        let truth: i64 = stayed.iter().map(|member| reading(*member, window)).sum();
        assert_eq!(row.outputs[0].1, truth.to_string(), "{about}");
        assert_eq!(row.outputs[1].1, stayed.len(), "{about}");
        assert_eq!(row.population as usize, stayed.len(), "{about}");
        assert_eq!(row.excluded as usize, controllers - stayed.len(), "{about}");
        if let Some(plan) = row.verified {
            world.holds(&row, plan, stayed.len());
        }
    }
    let rows = world.embedded.manager.service.results().unwrap();
    assert_eq!(rows.len(), presences.len(), "each window has one row");
}

/// One line for the pictures (`bench/pictures_epochs.py`).
fn print_line(controllers: usize, percent: u64, there: &Window, row: &Row, spent: u64) {
    let line = serde_json::json!({
        "controllers": controllers, "percent": percent, "awake": there.awake.len(),
        "dropped": there.drops.len(), "population": row.population, "opened": row.status == OK,
        "milliseconds": spent,
    });
    println!("{line}");
}

#[test]
fn windows_open_at_every_presence_of_hundreds() {
    simulate(200, &[1, 3, 10, 50, 100, 10, 50], 1);
}

/// Those who are there sign the row. The terms have no list when a window is closed, so the parts of sums
/// go on to the list's plan.
#[test]
fn verified_windows_hold_at_every_presence() {
    simulate_query(VERIFIED, 48, &[50, 100, 30, 100], 4);
}

/// Agreements of all pairs of a list are most of it.
#[test]
#[ignore = "drill: two minutes of one core"]
fn windows_open_at_every_presence_of_a_thousand() {
    simulate(1000, &[1, 2, 3, 5, 10, 30, 50, 100, 1, 2, 3, 5, 10], 2);
}

#[test]
#[ignore = "drill: some minutes of one core"]
fn windows_open_at_every_presence_of_ten_thousand() {
    simulate(10_000, &[1, 3, 10, 1, 3], 3);
}
