//! Seeded runs with faults of every kind. Messages are dropped, duplicated, delayed and
//! reordered. Every party may crash at any commit. Ledgers are restored from old copies,
//! one or all at once, again and again. And the service lies: it retires the plan, and
//! announces another over the same data. In every case:
//!
//! - no controller ever sends two tokens, or two openings, for one window;
//! - no stream is in tokens of two plans for overlapping windows;
//! - no window has two results;
//! - a window opens to exactly the sum of the streams that it states, or fails with a
//!   reason.
//!
//! A failing run prints its seed, which replays it.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_encrypted_stream::controller::{Controller, HostRecords};
use alpheus_encrypted_stream::coordinator::{
    AdderMessage, Coordinator, Outcome, Output, Timing, WindowReport,
};
use alpheus_encrypted_stream::inbox::Inbox;
use alpheus_encrypted_stream::ledger::{Fence, LedgerError, Record, Scope, StampedRecord, Step};
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage};
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::Fraction;
use alpheus_time::{Span, Timestamp, Window};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use crate::protocol::adder::{self, Adder};
use crate::protocol::disk::{COPIES, Disk, Fate};
use crate::protocol::identities::{other_keys, owner};
use crate::protocol::liar::{self, Presences, rival};
use crate::protocol::totals;
use crate::protocol::world::{EPOCH, Setup, World, after, policy, start, window};

pub const WINDOWS: u64 = 4;

/// How often each fault occurs, out of a thousand.
#[derive(Clone, Copy)]
pub struct Weather {
    drop: u64,
    double: u64,
    crash: u64,
    old_copy: u64,
    lie: u64,
}

/// Lies to a controller that may have lost records.
const RAID: usize = 16;

pub const CALM: Weather = Weather { drop: 0, double: 0, crash: 0, old_copy: 0, lie: 0 };
pub const STORM: Weather = Weather { drop: 60, double: 60, crash: 30, old_copy: 0, lie: 0 };
pub const GUSTS: Weather = Weather { crash: 1, ..STORM };
pub const TREASON: Weather = Weather { drop: 30, double: 60, crash: 20, old_copy: 12, lie: 300 };

/// How a seed draws a world.
pub type Draw = fn(&mut ChaCha20Rng, u64) -> Setup;

/// A world drawn by the seed.
pub fn setup(rng: &mut ChaCha20Rng, seed: u64) -> Setup {
    let controllers = [1, 2, 3, 5, 6][rng.next_u64() as usize % 5];
    let alpha = if controllers > 2 && rng.next_u64().is_multiple_of(2) {
        Fraction::THIRD
    } else {
        Fraction::ZERO
    };
    Setup {
        streams_each: 1 + (rng.next_u64() % 2) as u32,
        alpha,
        windows: WINDOWS,
        seed: seed as u8,
        ..Setup::new(controllers)
    }
}

/// What each controller has sent, by plan and window.
pub type Answers = BTreeMap<(u32, PlanId, Timestamp), BTreeSet<Vec<u8>>>;

pub struct Simulation {
    pub world: World,
    pub rng: ChaCha20Rng,
    weather: Weather,
    now: Timestamp,
    controllers: Vec<Controller>,
    disks: Vec<(Disk, Option<Fence>)>,
    coordinator: Coordinator,
    service_disk: Disk,
    inbox: Inbox,
    pub reports: Vec<WindowReport>,
    /// Another plan over the same streams, and its windows.
    pub rival: World,
    pub rival_reports: Vec<WindowReport>,
    to_controllers: Vec<(u32, ServiceMessage)>,
    to_service: Vec<(u32, ControllerMessage)>,
    /// Everything the service ever sent or received, for its lies.
    pub said: Vec<ServiceMessage>,
    pub presences: Presences,
    /// Whom controllers picked, if they pick.
    pub picks: BTreeMap<u32, Vec<u32>>,
    pub outcomes: BTreeMap<Timestamp, Vec<Outcome>>,
    /// The adder, if sums are delegated.
    pub adder: Option<Adder>,
    tokens: Answers,
    openings: Answers,
    shares: totals::Shares,
    /// By stream: the plans and windows that tokens covered it for.
    released: BTreeMap<u32, BTreeSet<(PlanId, Timestamp, Timestamp)>>,
}

impl Simulation {
    fn new(seed: u64, weather: Weather, setup: Draw, adder: Option<Adder>) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let setup = setup(&mut rng, seed);
        let controllers = setup.controllers;
        let mut world = World::new(setup.clone());
        let reports = (0..WINDOWS).map(|number| world.report(number)).collect();
        let (rival, rival_reports) = rival(setup, seed);
        let mut disks: Vec<(Disk, Option<Fence>)> =
            (0..controllers).map(|_| (Disk::default(), None)).collect();
        let controllers = (0_u32..).zip(&mut disks).map(|(p, (disk, fence))| {
            let controller = world.controller(p, &mut disk.memory);
            *fence = Some(controller.fence());
            controller
        });
        let controllers = controllers.collect();
        let coordinator =
            adder::with_adder(crate::protocol::net::coordinator(&world), adder.as_ref());
        let inbox = Inbox::new(world.deployment.clone());
        let mut simulation = Self {
            world,
            rng,
            weather: CALM,
            now: Timestamp(EPOCH),
            controllers,
            disks,
            coordinator,
            service_disk: Disk::default(),
            inbox,
            reports,
            rival,
            rival_reports,
            to_controllers: vec![],
            to_service: vec![],
            said: vec![],
            presences: Presences::new(),
            picks: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            adder,
            tokens: BTreeMap::new(),
            openings: BTreeMap::new(),
            shares: totals::Shares::default(),
            released: BTreeMap::new(),
        };
        // All controllers receive the plan; then the faults begin.
        let step = simulation.coordinator.announce();
        simulation.service_says(step);
        simulation.deliver_all();
        simulation.weather = weather;
        simulation
    }

    pub fn chance(&mut self, in_a_thousand: u64) -> bool {
        self.rng.next_u64() % 1000 < in_a_thousand
    }

    pub fn pick(&mut self, below: usize) -> usize {
        (self.rng.next_u64() % below.max(1) as u64) as usize
    }

    /// Makes `moves` events happen, in an order that only the seed decides.
    fn run(&mut self, moves: usize) {
        for _ in 0..moves {
            if self.chance(self.weather.lie) {
                let to = self.pick(self.controllers.len()) as u32;
                self.lie(to);
            }
            if self.chance(self.weather.old_copy) {
                self.swap_disks();
            }
            match self.pick(10 + usize::from(self.adder.is_some())) {
                10 => self.sums_come(),
                0 => self.pass_time(Span(300_000 / (1 + self.controllers.len() as u64 / 12))),
                1 => self.close_windows(),
                2..=5 => self.deliver_to_controller(),
                _ => self.deliver_to_service(),
            }
        }
    }

    fn deliver_all(&mut self) {
        while !self.to_controllers.is_empty() || !self.to_service.is_empty() {
            self.deliver_to_controller();
            self.deliver_to_service();
        }
        self.sums_come();
    }

    /// Delivers everything and passes time until all windows have ended.
    fn settle(&mut self) {
        for _ in 0..40 {
            self.close_windows();
            self.deliver_all();
            // The service waits a day for openings.
            let waits = self.coordinator.under_way() > 0;
            self.pass_time(Span::seconds(if waits { 7200 } else { 3 }));
            self.deliver_all();
        }
    }

    fn pass_time(&mut self, span: Span) {
        self.now = self.now.plus(span);
        if self.coordinator.deadline().is_some_and(|deadline| deadline <= self.now) {
            let step = self.coordinator.poll(self.now, &self.world);
            self.service_says(step);
        }
    }

    fn close_windows(&mut self) {
        for report in self.reports.clone() {
            let over = report.window.end.plus(self.world.plan.grace) <= self.now;
            if over && !self.coordinator.knows(report.window) {
                let step = self.coordinator.handle_window_report(&report, self.now);
                self.service_says(step);
            }
        }
    }

    /// The fate of the next commit.
    fn fate(&mut self) -> Fate {
        match self.chance(self.weather.crash) {
            false => Fate::Durable,
            true if self.chance(500) => Fate::Lost,
            true => Fate::Kept,
        }
    }

    fn service_says(&mut self, step: Step<Vec<Output>>) {
        self.service_disk.fate = self.fate();
        // Results, and messages to the adder, go into the same batch as the records.
        let outcomes: Vec<Outcome> = Outcome::in_step(&step).cloned().collect();
        let given: Vec<AdderMessage> = AdderMessage::in_step(&step).cloned().collect();
        let said = step.commit(&mut self.service_disk);
        if self.service_disk.fate != Fate::Lost {
            for outcome in outcomes {
                self.outcomes.entry(outcome.window.start).or_default().push(outcome);
            }
            self.adder.iter_mut().for_each(|adder| adder.take(&given));
        }
        match said {
            Ok(messages) => messages.into_iter().for_each(|output| self.send(output)),
            Err(LedgerError) => self.restart_service(),
        }
    }

    fn send(&mut self, output: Output) {
        match output {
            Output::Send { to, message } => {
                if let ServiceMessage::OpeningSet(set) = &message {
                    let set = set.open(&self.world.service.verifying_key()).unwrap();
                    self.shares.asked.insert(set.window.start, set.set.clone());
                }
                self.said.push(message.clone());
                self.to_controllers.push((to, message));
            }
            Output::Broadcast(message) => {
                self.said.push(message.clone());
                let all = 0..self.world.setup.controllers;
                self.to_controllers.extend(all.map(|to| (to, message.clone())));
            }
            Output::Answered { .. } | Output::Outcome(_) | Output::ToAdder(_) => {}
        }
    }

    fn restart_service(&mut self) {
        self.service_disk.fate = Fate::Durable;
        let values = self.service_disk.memory.values(Scope::Service(self.world.id()));
        let (announced, key) = (self.world.announced.clone(), self.world.service.clone());
        let (coordinator, step) =
            Coordinator::restore(announced, key, Timing::default(), values, self.now).unwrap();
        self.coordinator = adder::with_adder(coordinator, self.adder.as_ref());
        self.service_says(step);
    }

    /// The adder reports sums of complete windows; it may repeat them.
    fn sums_come(&mut self) {
        let Some(adder) = &self.adder else { return };
        for (start, ciphertexts, tokens) in adder.sums(&self.world) {
            let step = self.coordinator.handle_sums(start, &ciphertexts, &tokens);
            self.service_says(step);
        }
    }

    /// Takes a random message, unless it is lost; leaves it in place if it is duplicated.
    fn take<T: Clone>(&mut self, queue: impl Fn(&mut Self) -> &mut Vec<T>) -> Option<T> {
        let length = queue(self).len();
        if length == 0 {
            return None;
        }
        let at = self.pick(length);
        if self.chance(self.weather.double) {
            return queue(self).get(at).cloned();
        }
        let taken = queue(self).swap_remove(at);
        if self.chance(self.weather.drop) { None } else { Some(taken) }
    }

    fn deliver_to_controller(&mut self) {
        let Some((to, message)) = self.take(|s| &mut s.to_controllers) else { return };
        self.hears(to, &message);
    }

    fn hears(&mut self, to: u32, message: &ServiceMessage) {
        let Ok(heard) = self.inbox.open(message) else { return };
        let place = to as usize;
        let step = self.controllers[place].handle(&heard, self.now);
        let (fate, copy) = (self.fate(), self.pick(3 * COPIES));
        let (disk, _) = &mut self.disks[place];
        disk.fate = fate;
        disk.keep_copy(copy);
        let committed = step.commit(disk);
        self.shares.note(&self.world, to, &self.disks[place].0.memory);
        match committed {
            Ok(answers) => {
                self.disks[place].1 = Some(self.controllers[place].fence());
                self.controllers[place].note_fenced();
                for answer in answers {
                    self.leaves(to, &answer);
                    self.to_service.push((to, answer));
                }
            }
            Err(LedgerError) => self.restore_controller(to, false),
        }
    }

    fn deliver_to_service(&mut self) {
        let Some((from, message)) = self.take(|s| &mut s.to_service) else { return };
        // A message that does not fit is dropped; nothing else is affected.
        let Ok(message) = self.coordinator.verify(&message, from) else { return };
        if let Ok(step) = self.coordinator.handle(&message, self.now, &self.world) {
            self.service_says(step);
        }
    }

    /// The service may keep forever what a controller has sent.
    fn leaves(&mut self, from: u32, answer: &ControllerMessage) {
        let key = self.world.announced.verifying()[from as usize];
        let bytes = postcard::to_allocvec(answer).unwrap();
        let (seen, plan, window) = match answer {
            ControllerMessage::Token(token) => {
                let token = token.open(&key).unwrap();
                self.covers(from, token.plan, token.window);
                (&mut self.tokens, token.plan, token.window)
            }
            ControllerMessage::Opening(opening) => {
                let opening = opening.open(&key).unwrap();
                (&mut self.openings, opening.plan, opening.window)
            }
            ControllerMessage::Presence(signed) => {
                let presence = signed.open(&key).unwrap();
                let window = (presence.plan, presence.window.start);
                let presences = self.presences.entry(window).or_default();
                presences.insert(from, (signed.digest(), presence));
                return;
            }
            ControllerMessage::Picks(signed) => {
                self.picks.insert(from, signed.open(&key).unwrap().picks.clone());
                return;
            }
            _ => return,
        };
        if self.world.plan.horizon().is_some() && matches!(answer, ControllerMessage::Opening(_)) {
            totals::in_order(seen, (from, plan, window.start));
        }
        let answers = seen.entry((from, plan, window.start)).or_default();
        answers.insert(bytes);
        assert_eq!(answers.len(), 1, "controller {from} answered twice for one window");
    }

    /// No stream of a token that is sent was sent for another plan.
    fn covers(&mut self, from: u32, plan: PlanId, window: Window) {
        let scope = Scope::Controller(self.world.identity(from).id());
        let records = self.disks[from as usize].0.memory.values(scope);
        let spent = records.iter().find_map(|v| match StampedRecord::read(v).unwrap().record {
            Record::Spent(spent) if spent.plan == plan && spent.window == window => Some(spent),
            _ => None,
        });
        for stream in spent.unwrap().accepted {
            let released = self.released.entry(stream).or_default();
            let again = released.iter().any(|(other, start, end)| {
                *other != plan && window.overlaps(Window { start: *start, end: *end })
            });
            assert!(!again, "stream {stream} was released to two plans");
            released.insert((plan, window.start, window.end));
        }
    }

    /// A controller is restored from an old copy, or all of them are. A controller that may
    /// have lost records is asked for all that it may have lost.
    fn swap_disks(&mut self) {
        let (one, all) = (self.pick(self.controllers.len()) as u32, self.chance(300));
        let swapped: Vec<u32> =
            (0..self.world.setup.controllers).filter(|at| all || *at == one).collect();
        for at in &swapped {
            self.restore_controller(*at, true);
        }
        if self.chance(400) {
            for at in &swapped {
                liar::other_plan(self).iter().for_each(|message| self.hears(*at, message));
            }
        }
        for _ in 0..RAID {
            swapped.iter().for_each(|at| self.lie(*at));
        }
    }

    fn restore_controller(&mut self, at: u32, old: bool) {
        let (with_fence, confirmed) = (self.chance(700), self.chance(800));
        let copy = self.pick(COPIES);
        let world = &self.world;
        let (disk, fence) = &mut self.disks[at as usize];
        disk.fate = Fate::Durable;
        if old {
            disk.bring_back(copy);
        }
        let host = HostRecords::read(disk.memory.values(Scope::Host), &world.deployment).unwrap();
        let (identity, deployment) = (world.identity(at), world.deployment.clone());
        let values = disk.memory.values(Scope::Controller(identity.id()));
        let held = world.held(at);
        let streams: Vec<_> = held.iter().map(|held| held.stream).collect();
        let known = start(fence.filter(|_| with_fence));
        let restored =
            Controller::restore(identity, deployment, held, &host, values, self.now, known);
        let (mut controller, mut step) = restored.unwrap();
        for stream in streams.into_iter().filter(|_| confirmed) {
            let signed = world.annotate(stream, 1, policy(&world.setup));
            let owner = owner(stream);
            // An owner who was not asked to confirm has nothing new to submit.
            if let Ok(confirmed) = controller.annotate(&signed, &owner, self.now) {
                step.merge(confirmed);
            }
        }
        step.commit(disk).unwrap();
        *fence = Some(controller.fence());
        controller.note_fenced();
        controller.draw_keys_from(other_keys());
        self.controllers[at as usize] = controller;
    }

    /// Sends a message to a controller that an honest service would not.
    fn lie(&mut self, to: u32) {
        if let Some(message) = liar::invent(self, to) {
            self.said.push(message.clone());
            self.hears(to, &message);
        }
    }

    fn check(&self, seed: u64) {
        if self.world.plan.horizon().is_some() {
            return totals::check(&self.world, &self.outcomes, &self.shares, seed);
        }
        for number in 0..WINDOWS {
            let outcomes = self.outcomes.get(&window(number).start);
            let outcomes = outcomes.unwrap_or_else(|| panic!("seed {seed}: no outcome {number}"));
            assert_eq!(outcomes.len(), 1, "seed {seed}: two outcomes of window {number}");
            let Ok(opened) = &outcomes[0].result else { continue };
            let (streams, width) = (self.world.plan.streams.len(), self.world.setup.width());
            let unit = if width == 1 { 1 } else { 1 + number % 3 };
            let digit = |stream: &usize| opened.outputs[0] >> (width * stream) & ((1 << width) - 1);
            let inside: Vec<usize> = (0..streams).filter(|s| digit(s) == unit).collect();
            assert_eq!(opened.outputs, self.world.truth(inside.clone(), number), "seed {seed}");
            assert_eq!(opened.population as usize, inside.len(), "seed {seed}");
        }
    }

    pub fn opened(&self) -> usize {
        self.outcomes.values().flatten().filter(|outcome| outcome.result.is_ok()).count()
    }
}

/// Runs a seed in a world that it draws. Returns how many of its windows opened.
pub fn simulate_in(world: Draw, seed: u64, weather: Weather, moves: usize) -> usize {
    simulate_with(world, seed, weather, moves, None).opened()
}

/// The same, possibly with an adder.
pub fn simulate_with(
    world: Draw,
    seed: u64,
    weather: Weather,
    moves: usize,
    adder: Option<Adder>,
) -> Simulation {
    let mut simulation = Simulation::new(seed, weather, world, adder);
    simulation.now = after(0);
    simulation.run(moves);
    (simulation.weather, simulation.now) = (CALM, simulation.now.max(after(WINDOWS)));
    simulation.settle();
    simulation.check(seed);
    simulation
}
