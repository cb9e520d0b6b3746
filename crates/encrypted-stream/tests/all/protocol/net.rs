//! A network that delivers everything at once, in order, for honest runs.

use std::collections::VecDeque;
use std::sync::Arc;

use alpheus_encrypted_stream::bounded_terms::checker_of;
use alpheus_encrypted_stream::controller::{Controller, HostRecords};
use alpheus_encrypted_stream::coordinator::{Coordinator, Outcome, Output, Timing, WindowReport};
use alpheus_encrypted_stream::error::{MessageError, PlanRefusalError};
use alpheus_encrypted_stream::inbox::Inbox;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::ledger::{Scope, Step};
use alpheus_encrypted_stream::messages::{ControllerMessage, ServiceMessage};
use alpheus_policy::plan::Plan;
use alpheus_time::Timestamp;

use crate::protocol::adder::{self, Adder};
use crate::protocol::identities::other_keys;
use crate::protocol::world::{EPOCH, Memory, Setup, World, after, announce, start};

/// A world with all controllers awake.
pub struct Net {
    pub world: World,
    pub coordinator: Coordinator,
    pub controllers: Vec<Controller>,
    pub inbox: Inbox,
    pub store: Memory,
    pub outcomes: Vec<Outcome>,
    /// Everything the service and the controllers have sent.
    pub sent: Vec<(u32, ServiceMessage)>,
    pub heard: Vec<(u32, ControllerMessage)>,
    /// Controllers that do not answer.
    pub asleep: Vec<u32>,
    /// Controllers that fall asleep once they have sent a presence, or a token.
    pub sleep_after_presence: Vec<u32>,
    pub sleep_after_token: Vec<u32>,
    /// Messages that are lost on their way to controllers.
    pub lost: fn(u32, &ServiceMessage) -> bool,
    /// The adder, if sums are delegated.
    pub adder: Option<Adder>,
    /// What leaves a controller in the place of its answer.
    pub lies: Lies,
    /// What the service asks a controller on the quiet before a message, and what goes in its place.
    pub forges: Forges,
    /// What controllers said to the former. The service's own state knows nothing of it.
    pub aside: Vec<(u32, ControllerMessage)>,
    /// Messages of members of a bounded plan that the service took.
    pub taken: Vec<(u32, ControllerMessage)>,
    /// Why the service dropped messages; nothing else is affected.
    pub dropped: Vec<MessageError>,
    /// The window that was closed last.
    report: Option<WindowReport>,
}

/// What leaves the controller at a position in the place of its answer.
pub type Lies = Box<dyn Fn(u32, ControllerMessage) -> Vec<ControllerMessage>>;

/// What a service that lies sends to the controller at a position in the place of a message: the last
/// of these, after it has asked the others on the quiet.
pub type Forges = Box<dyn Fn(u32, ServiceMessage) -> Vec<ServiceMessage>>;

/// The service's side of a world's plan, before any answer.
pub fn coordinator(world: &World) -> Coordinator {
    let (announced, key) = (world.announced.clone(), world.service.clone());
    with_checker_of(world, Coordinator::new(announced, key, Timing::default()))
}

/// Who checks proofs, if the plan is bounded.
pub fn with_checker_of(world: &World, coordinator: Coordinator) -> Coordinator {
    let checker = checker_of(&world.plan, &world.schema);
    match checker {
        Some(checker) => coordinator.with_checker(Arc::new(checker)),
        None => coordinator,
    }
}

impl Net {
    /// All controllers have accepted the plan.
    pub fn new(setup: Setup) -> Self {
        Self::silent(setup, |_, _| true)
    }

    /// Streams send events only in windows for which `with_data` is true.
    pub fn silent(setup: Setup, with_data: impl Fn(usize, u64) -> bool) -> Self {
        let mut net = Self::unannounced(World::with_data(setup, with_data));
        let step = net.coordinator.announce();
        net.run(Timestamp(EPOCH), step);
        net
    }

    /// Producers hold the master secrets that `secret` returns.
    pub fn with_master(setup: Setup, secret: impl Fn(usize, MasterSecret) -> MasterSecret) -> Self {
        let mut net = Self::unannounced(World::with(setup, |_, _| true, secret));
        let step = net.coordinator.announce();
        net.run(Timestamp(EPOCH), step);
        net
    }

    pub fn unannounced(world: World) -> Self {
        let mut store = Memory::default();
        let controllers =
            (0..world.setup.controllers).map(|p| world.controller(p, &mut store)).collect();
        let inbox = Inbox::new(world.deployment.clone());
        let coordinator = coordinator(&world);
        Self {
            world,
            coordinator,
            controllers,
            inbox,
            store,
            outcomes: vec![],
            sent: vec![],
            heard: vec![],
            asleep: vec![],
            sleep_after_presence: vec![],
            sleep_after_token: vec![],
            lost: |_, _| false,
            adder: None,
            lies: Box::new(|_, answer| vec![answer]),
            forges: Box::new(|_, message| vec![message]),
            aside: vec![],
            taken: vec![],
            dropped: vec![],
            report: None,
        }
    }

    /// Delegates the sums to an adder.
    pub fn delegating(setup: Setup) -> Self {
        let net = Self::new(setup);
        let adder = Some(Adder::default());
        Self { coordinator: adder::with_adder(net.coordinator, adder.as_ref()), adder, ..net }
    }

    /// Has another thread check proofs, which tests play.
    pub fn with_checks_apart(self) -> Self {
        Self { coordinator: self.coordinator.with_checks_apart(), ..self }
    }

    /// The same plan with another nonce, from another time on.
    pub fn plan_again(&self, nonce: u8, from: Timestamp) -> Plan {
        Plan { nonce: [nonce; 16], from, ..self.world.plan.clone() }
    }

    /// Whether any controller refuses a plan because an attribute is locked.
    pub fn refused(&mut self, plan: &Plan) -> bool {
        let world = &self.world;
        let announced = announce(plan, &world.seats, &world.service, &world.deployment);
        let now = Timestamp(EPOCH);
        let answers = self.controllers.iter_mut().map(|c| c.handle_announcement(&announced, now));
        let answers: Vec<_> = answers.collect();
        answers.into_iter().any(|answer| match answer {
            Ok(step) => step.commit(&mut self.store).is_err(),
            Err(refused) => matches!(refused, PlanRefusalError::Locked { .. }),
        })
    }

    /// Runs another plan from here on.
    pub fn take_over(&mut self, plan: Plan) {
        self.world.take_over(plan);
        self.coordinator = coordinator(&self.world);
    }

    /// Closes a window and delivers until nothing is left to deliver.
    pub fn close(&mut self, number: u64) {
        self.report = Some(self.world.report(number));
        self.close_again(after(number));
    }

    /// Reports the last window again, to a service that may have lost it.
    pub fn close_again(&mut self, now: Timestamp) {
        let Some(report) = self.report.clone() else { return };
        let step = self.coordinator.handle_window_report(&report, now);
        self.run(now, step);
    }

    /// All controllers crash and are restored from the store.
    pub fn restore_controllers(&mut self, now: Timestamp, with_fence: bool) {
        (0..self.world.setup.controllers)
            .for_each(|at| self.restore_controller(at, now, with_fence));
    }

    /// One controller crashes and is restored from the store.
    pub fn restore_controller(&mut self, position: u32, now: Timestamp, with_fence: bool) {
        let world = &self.world;
        let host = HostRecords::read(self.store.values(Scope::Host), &world.deployment).unwrap();
        let old = &self.controllers[position as usize];
        let (id, fence) = (old.id(), old.fence());
        let (mut controller, step) = Controller::restore(
            world.identity(position),
            world.deployment.clone(),
            world.held(position),
            &host,
            self.store.values(Scope::Controller(id)),
            now,
            start(with_fence.then_some(fence)),
        )
        .unwrap();
        step.commit(&mut self.store).unwrap();
        controller.note_fenced();
        controller.draw_keys_from(other_keys());
        self.controllers[position as usize] = controller;
    }

    /// The service crashes and is restored from its store.
    pub fn restart_service(&mut self, now: Timestamp) {
        let values = self.store.values(Scope::Service(self.world.id()));
        let (announced, key) = (self.world.announced.clone(), self.world.service.clone());
        let (coordinator, step) =
            Coordinator::restore(announced, key, Timing::default(), values, now).unwrap();
        let coordinator = with_checker_of(&self.world, coordinator);
        self.coordinator = adder::with_adder(coordinator, self.adder.as_ref());
        self.run(now, step);
    }

    /// Lets all deadlines of the phase pass.
    pub fn timeout(&mut self, now: Timestamp) {
        let step = self.coordinator.poll(now, &self.world);
        self.run(now, step);
    }

    /// What a controller may have said at another time reaches the service again, from anyone.
    pub fn replay(&mut self, now: Timestamp, (from, said): &(u32, ControllerMessage)) {
        let message = self.coordinator.verify(said, *from).unwrap();
        if let Ok(step) = self.coordinator.handle(&message, now, &self.world) {
            if self.world.plan.integrity.is_bounded() {
                self.taken.push((*from, said.clone()));
            }
            self.run(now, step);
        }
    }

    /// A request of the service, which it may not be asked by its own rules, reaches a controller.
    pub fn ask(&mut self, now: Timestamp, to: u32, request: &ServiceMessage) {
        let heard = self.inbox.open(request).unwrap();
        let step = self.controllers[to as usize].handle(&heard, now);
        let said = step.commit(&mut self.store).unwrap();
        self.controllers[to as usize].note_fenced();
        self.heard.extend(said.into_iter().map(|answer| (to, answer)));
    }

    pub fn run(&mut self, now: Timestamp, step: Step<Vec<Output>>) {
        let mut queue: VecDeque<(u32, ServiceMessage)> = VecDeque::new();
        let is_bounded = self.world.plan.integrity.is_bounded();
        self.service(step, &mut queue);
        while let Some((to, message)) = queue.pop_front() {
            self.sent.push((to, message.clone()));
            if self.asleep.contains(&to) || (self.lost)(to, &message) {
                continue;
            }
            let Some(message) = self.forge(now, to, message) else { continue };
            let heard = self.inbox.open(&message).unwrap();
            let step = self.controllers[to as usize].handle(&heard, now);
            let said = step.commit(&mut self.store).unwrap();
            self.controllers[to as usize].note_fenced();
            for answer in said {
                let tired = match answer {
                    ControllerMessage::Presence(_) => &self.sleep_after_presence,
                    ControllerMessage::Token(_) => &self.sleep_after_token,
                    _ => &vec![],
                };
                self.asleep.extend(tired.contains(&to).then_some(to));
                self.heard.push((to, answer.clone()));
                for answer in (self.lies)(to, answer) {
                    let message = self.coordinator.verify(&answer, to).unwrap();
                    match self.coordinator.handle(&message, now, &self.world) {
                        // An earlier answer has ended the window.
                        Err(MessageError::UnknownWindow) => {}
                        Err(error) if is_bounded => self.dropped.push(error),
                        step => {
                            if is_bounded {
                                self.taken.push((to, answer));
                            }
                            self.service(step.unwrap(), &mut queue);
                        }
                    }
                }
            }
        }
    }

    /// What reaches a controller in the place of a message, after what it is asked on the quiet.
    fn forge(
        &mut self,
        now: Timestamp,
        to: u32,
        message: ServiceMessage,
    ) -> Option<ServiceMessage> {
        let mut forged = (self.forges)(to, message);
        let last = forged.pop();
        for message in forged {
            let first = self.heard.len();
            self.ask(now, to, &message);
            self.aside.extend(self.heard.drain(first..));
        }
        last
    }

    fn service(&mut self, step: Step<Vec<Output>>, queue: &mut VecDeque<(u32, ServiceMessage)>) {
        for output in step.commit(&mut self.store).unwrap() {
            match output {
                Output::Send { to, message } => queue.push_back((to, message)),
                Output::Broadcast(message) => {
                    queue.extend((0..self.world.setup.controllers).map(|to| (to, message.clone())));
                }
                Output::Answered { .. } => {}
                Output::Outcome(outcome) => self.outcomes.push(*outcome),
                Output::ToAdder(given) => {
                    self.adder
                        .iter_mut()
                        .for_each(|adder| adder.take(std::slice::from_ref(&given)));
                }
            }
        }
    }
}
