//! Membership epochs: each window has a list of its own, and honest and lying services.

mod absent;
mod attacks;
mod dealt_lists;
mod families;
mod honest;
mod lists;
mod missed_ends;
mod moves;
mod refusals;
mod restarts;
mod verified_plans;

use std::collections::VecDeque;
use std::sync::Arc;

use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::Certificate;
use alpheus_encrypted_stream::controller::{Controller, HeldStream, HostRecords};
use alpheus_encrypted_stream::coordinator::{
    Coordinator, DaySets, Outcome, Output, Timing, WindowReport,
};
use alpheus_encrypted_stream::epoch::{Caller, EpochOutput};
use alpheus_encrypted_stream::error::{
    ExclusionError, PlanRefusalError, ReleaseError, WindowRefusalError,
};
use alpheus_encrypted_stream::inbox::Inbox;
use alpheus_encrypted_stream::ledger::{Fence, Scope, Step};
use alpheus_encrypted_stream::messages::{
    Attendance, ControllerMessage, EpochCall, List, ListEntry, Listing, ServiceMessage,
};
use alpheus_policy::ids::{ControllerId, OwnerId, StreamId};
use alpheus_policy::plan::{MaskStrategy, Plan};
use alpheus_time::{Span, Timestamp};

use crate::protocol::world::{
    EPOCH, Memory, Setup, World, after, announce, master, policy, start, transformer, window,
};

/// How long an epoch waits for attendances.
const PRESENCES: Span = Span::seconds(10);

/// A deployment whose query has no roster.
struct Epochs {
    world: World,
    /// The world's plan with everybody, from which streams are taken.
    all: Plan,
    terms: Plan,
    caller: Caller,
    controllers: Vec<Controller>,
    inbox: Inbox,
    store: Memory,
    /// The last epoch's plan, and who of the controllers is in it.
    listed: Option<Arc<AnnouncedPlan>>,
    /// What the service knows of the sets of days, if the coordinators of its epochs share it.
    sets: Option<DaySets>,
}

impl Epochs {
    /// All controllers hold their streams, and none has been called.
    fn new(setup: Setup) -> Self {
        let world = World::new(setup);
        let mut store = Memory::default();
        let count = world.setup.controllers;
        let controllers = (0..count).map(|p| world.controller(p, &mut store)).collect();
        Self::of(world, controllers, store)
    }

    fn of(world: World, controllers: Vec<Controller>, store: Memory) -> Self {
        let all = world.plan.clone();
        let (roster, streams, masks) = (vec![], vec![], MaskStrategy::Single);
        let terms = Plan { roster, streams, masks, ..all.clone() };
        let inbox = Inbox::new(world.deployment.clone());
        let caller = new_caller(&world, &terms);
        Self { world, all, terms, caller, controllers, inbox, store, listed: None, sets: None }
    }

    fn certificates(&self) -> Vec<Signed<Certificate>> {
        self.world.seats.iter().map(|(_, signed)| signed.clone()).collect()
    }

    /// The catalog of the service.
    fn guards(all: &Plan, stream: &StreamId) -> Option<(OwnerId, ControllerId)> {
        let planned = all.streams.iter().find(|planned| planned.stream == *stream)?;
        Some((planned.owner, all.roster[planned.controller as usize]))
    }

    fn index(&self, id: &ControllerId) -> usize {
        self.all.roster.iter().position(|known| known == id).unwrap()
    }

    /// Sends a message to a controller, and returns its answer once that is durable.
    fn say(&mut self, to: usize, now: Timestamp, message: &ServiceMessage) -> ControllerMessage {
        let heard = self.inbox.open(message).unwrap();
        let step = self.controllers[to].handle(&heard, now);
        let said = step.commit(&mut self.store).unwrap().pop().unwrap();
        self.controllers[to].note_fenced();
        said
    }

    /// The epoch of a window, with those that are awake.
    fn gather(
        &mut self,
        number: u64,
        awake: &dyn Fn(usize) -> bool,
    ) -> Result<Arc<AnnouncedPlan>, ReleaseError> {
        let now = after(number);
        let certificates = self.certificates();
        let step = self.caller.call(window(number), &certificates, now);
        let mut outputs = VecDeque::from(step.commit(&mut self.store).unwrap());
        loop {
            match outputs.pop_front() {
                Some(EpochOutput::Call { to, message }) => {
                    for id in to {
                        let at = self.index(&id);
                        if awake(at) {
                            let answer = self.say(at, now, &message);
                            outputs.extend(self.answered(id, &answer, now));
                        }
                    }
                }
                Some(EpochOutput::Listed(announced)) => {
                    self.listed = Some(Arc::clone(&announced));
                    return Ok(announced);
                }
                Some(EpochOutput::NotListed { reason, .. }) => return Err(reason),
                None => {
                    let late = self.caller.deadline().unwrap();
                    let step = self.caller.poll(late);
                    outputs.extend(step.commit(&mut self.store).unwrap());
                }
            }
        }
    }

    fn answered(
        &mut self,
        from: ControllerId,
        answer: &ControllerMessage,
        now: Timestamp,
    ) -> Vec<EpochOutput> {
        let step = match answer {
            ControllerMessage::Attendance(signed) => {
                let all = &self.all;
                let attended = self.caller.verify(from, signed, |stream| Self::guards(all, stream));
                self.caller.attend(attended.unwrap(), now)
            }
            ControllerMessage::WindowRefusal(signed) => {
                let reason = self.caller.verify_refusal(from, signed).unwrap();
                self.caller.decline(from, reason, now)
            }
            other => panic!("{other:?}"),
        };
        step.commit(&mut self.store).unwrap()
    }

    /// The transformer sums the streams of an epoch's plan.
    fn adopt(&mut self, announced: &Arc<AnnouncedPlan>) {
        let world = &mut self.world;
        world.announced = Arc::clone(announced);
        world.plan = announced.plan().clone();
        world.transformer = transformer(&world.schema, &world.layout);
        world.transformer.register(&world.plan).unwrap();
        let planned = world.plan.streams.clone();
        let own = |id: &StreamId| planned.iter().any(|planned| planned.stream == *id);
        for (stream, frame) in world.frames.clone().iter().filter(|(stream, _)| own(stream)) {
            world.take(*stream, frame);
        }
    }

    /// Runs the window of an epoch's plan, with members that are still awake.
    fn run(
        &mut self,
        number: u64,
        announced: &Arc<AnnouncedPlan>,
        awake: &dyn Fn(usize) -> bool,
    ) -> Outcome {
        self.adopt(announced);
        let (key, mut now) = (self.world.service.clone(), after(number));
        let mut coordinator = Coordinator::new(Arc::clone(announced), key, Timing::default());
        if let Some(sets) = &self.sets {
            coordinator.share_sets(sets);
        }
        let step = coordinator.announce();
        let mut outcome = None;
        self.deliver(&mut coordinator, now, step, awake, &mut outcome);
        let closed = self.world.transformer.close(&announced.id(), window(number), 0).unwrap();
        let report = WindowReport {
            window: closed.window,
            complete: closed.complete().cloned().collect(),
            excluded: closed.excluded().map(|(p, _)| (p, ExclusionError::Incomplete)).collect(),
            unreported: 0,
        };
        let step = coordinator.handle_window_report(&report, now);
        self.deliver(&mut coordinator, now, step, awake, &mut outcome);
        while outcome.is_none() {
            now = coordinator.deadline().unwrap().max(now);
            let step = coordinator.poll(now, &self.world);
            self.deliver(&mut coordinator, now, step, awake, &mut outcome);
        }
        let step = coordinator.retire();
        self.deliver(&mut coordinator, now, step, awake, &mut outcome);
        outcome.unwrap()
    }

    fn deliver(
        &mut self,
        coordinator: &mut Coordinator,
        now: Timestamp,
        step: Step<Vec<Output>>,
        awake: &dyn Fn(usize) -> bool,
        outcome: &mut Option<Outcome>,
    ) {
        let mut steps = VecDeque::from([step]);
        while let Some(step) = steps.pop_front() {
            for output in step.commit(&mut self.store).unwrap() {
                let (to, message) = match output {
                    Output::Send { to, message } => (vec![to], message),
                    Output::Broadcast(message) => {
                        let all = coordinator.plan().roster.len() as u32;
                        ((0..all).collect(), message)
                    }
                    Output::Outcome(ended) => {
                        *outcome = Some(*ended);
                        continue;
                    }
                    Output::Answered { .. } | Output::ToAdder(_) => continue,
                };
                for position in to {
                    let at = self.index(&coordinator.plan().roster[position as usize]);
                    if !awake(at) {
                        continue;
                    }
                    let heard = self.inbox.open(&message).unwrap();
                    let step = self.controllers[at].handle(&heard, now);
                    let said = step.commit(&mut self.store).unwrap();
                    self.controllers[at].note_fenced();
                    for answer in said {
                        let answer = coordinator.verify(&answer, position).unwrap();
                        steps.push_back(coordinator.handle(&answer, now, &self.world).unwrap());
                    }
                }
            }
        }
    }

    /// An epoch and its window, with controllers that stay awake.
    fn window(
        &mut self,
        number: u64,
        awake: &dyn Fn(usize) -> bool,
    ) -> Result<Outcome, ReleaseError> {
        let announced = self.gather(number, awake)?;
        Ok(self.run(number, &announced, awake))
    }

    /// The sum of a window over the streams of these controllers.
    fn truth(&self, controllers: impl IntoIterator<Item = usize>, number: u64) -> Vec<u64> {
        let each = self.world.setup.streams_each as usize;
        let streams = controllers.into_iter().flat_map(|at| at * each..(at + 1) * each);
        self.world.truth(streams.collect::<Vec<_>>(), number)
    }

    /// A controller crashes and is restored from a store, which all use from then on.
    fn restore(&mut self, at: usize, store: &Memory, now: Timestamp, fence: Option<Fence>) {
        let world = &self.world;
        let host = HostRecords::read(store.values(Scope::Host), &world.deployment).unwrap();
        let identity = world.identity(at as u32);
        let held = self.held(at);
        let values = store.values(Scope::Controller(identity.id()));
        let deployment = world.deployment.clone();
        let start = start(fence);
        let restored = Controller::restore(identity, deployment, held, &host, values, now, start);
        let (mut controller, step) = restored.unwrap();
        self.store = store.clone();
        step.commit(&mut self.store).unwrap();
        controller.note_fenced();
        self.controllers[at] = controller;
    }

    fn held(&self, at: usize) -> Vec<HeldStream> {
        let own = self.all.streams.iter().filter(|planned| planned.controller as usize == at);
        let held = own.map(|planned| HeldStream {
            stream: planned.stream,
            owner: planned.owner,
            schema: Arc::clone(&self.world.schema),
            layout: Arc::clone(&self.world.layout),
            master: Some(master(planned.stream)),
        });
        held.collect()
    }

    /// The service's call for a window, as a liar would sign it.
    fn call(&self, number: u64) -> Signed<EpochCall> {
        self.call_without(number, vec![])
    }

    /// The same without some streams.
    fn call_without(&self, number: u64, without: Vec<StreamId>) -> Signed<EpochCall> {
        let (terms, window) = (self.terms.clone(), window(number));
        let call = EpochCall { terms, window, windows: 1, answer_by: after(number), without };
        Signed::new(&call, &self.world.service)
    }

    /// What a controller attends with.
    fn attendance(&mut self, at: usize, number: u64) -> Result<Attendance, WindowRefusalError> {
        self.attendance_without(at, number, vec![])
    }

    /// The same without some streams.
    fn attendance_without(
        &mut self,
        at: usize,
        number: u64,
        without: Vec<StreamId>,
    ) -> Result<Attendance, WindowRefusalError> {
        let call = ServiceMessage::EpochCall(self.call_without(number, without));
        let key = self.key(at);
        match self.say(at, after(number), &call) {
            ControllerMessage::Attendance(signed) => Ok(signed.open(&key).unwrap().into_inner()),
            ControllerMessage::WindowRefusal(said) => Err(said.open(&key).unwrap().reason),
            other => panic!("{other:?}"),
        }
    }

    fn key(&self, at: usize) -> alpheus_crypto::sign::VerifyingKey {
        let certificate = self.world.deployment.controller(&self.world.seats[at].1).unwrap();
        certificate.party.verifying
    }

    /// The entries of these controllers, who all attend.
    fn entries(&mut self, number: u64, members: impl Iterator<Item = usize>) -> Vec<ListEntry> {
        let mut entries: Vec<ListEntry> =
            members.map(|at| self.attendance(at, number).unwrap().entry).collect();
        entries.sort_by_key(|entry| entry.controller);
        entries
    }

    /// A list as a liar signs it.
    fn list(&self, number: u64, entries: Vec<ListEntry>) -> Listing {
        self.list_with(number, entries, MaskStrategy::Clique)
    }

    fn list_with(&self, number: u64, entries: Vec<ListEntry>, masks: MaskStrategy) -> Listing {
        let certificates =
            entries.iter().map(|entry| self.world.seats[self.index(&entry.controller)].1.clone());
        let certificates = certificates.collect();
        let (terms, window) = (self.terms.id(), window(number));
        let list = List { terms, window, windows: 1, masks, entries };
        let list = Signed::new(&list, &self.world.service);
        Listing { call: self.call(number), list, certificates, consumer: None }
    }

    /// A controller's answer to a list: whether it accepts it.
    fn accept(
        &mut self,
        at: usize,
        number: u64,
        listing: &Listing,
    ) -> Result<(), PlanRefusalError> {
        let key = self.key(at);
        match self.say(at, after(number), &ServiceMessage::List(Arc::new(listing.clone()))) {
            ControllerMessage::Acceptance(_) => Ok(()),
            ControllerMessage::PlanRefusal(said) => Err(said.open(&key).unwrap().reason.clone()),
            other => panic!("{other:?}"),
        }
    }
}

fn new_caller(world: &World, terms: &Plan) -> Caller {
    let (key, deployment) = (world.service.clone(), world.deployment.clone());
    Caller::new(terms.clone(), None, key, deployment, PRESENCES, None).unwrap()
}

/// Everybody.
const ALL: &dyn Fn(usize) -> bool = &|_| true;
