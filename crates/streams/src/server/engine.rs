//! Policy manager and transformer on their own thread. Requests hand it work and wait
//! for the answer. Between requests it sums new events, closes windows and checks
//! deadlines.

use super::lost_state::LostState;
use super::outages::Outages;
use super::outages::UNHEARD;
use super::outboxes::Outboxes;
use super::registry::{IntroductionError, Registry};
use super::retention::Retention;
use super::service_clock::{ClockEvent, ServiceClock};
use super::signs::Signs;
use super::silent_hosts::SilentHosts;
use crate::wire::{Introduction, Notice};
use alpheus_encrypted_stream::certificate::Deployment;
use alpheus_node::network::revocations::Revocations;
use alpheus_node::service::health::{Health, Note, Part, State};
use alpheus_node::service::heartbeat::Heart;
use alpheus_node::{clock, engine};
use alpheus_stream_runtime::controller_host::{FromController, ToController};
use alpheus_stream_runtime::error::RuntimeError;
use alpheus_stream_runtime::manager::Manager;
use alpheus_stream_runtime::service::{ServiceError, ServiceOutput};
use alpheus_time::{Span, Timestamp};
use chacha20::ChaCha20Rng;
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::sync::watch;

/// Maximum number of waiting calls; further requests block.
pub const MAX_JOBS: usize = 1024;

/// The state of the thread.
pub struct Engine {
    /// Streams, controllers and running queries.
    pub manager: Manager,
    /// Registered controllers and streams.
    pub registry: Registry,
    /// The authority and the service's keys.
    pub deployment: Deployment,
    /// For nonces of plans.
    pub rng: ChaCha20Rng,
    /// The service's clock.
    pub clock: ServiceClock,
    /// What `/healthz` says of it.
    pub clock_note: Note,
    /// What `/healthz` says of controllers that are asked last, and of how many.
    pub asked_last: (Note, usize),
    /// Times at which the service was away, and how long it waits for others then.
    pub outages: Outages,
    /// Hosts that an outage does not wait for.
    pub silent: SilentHosts,
    /// Certificates that the authority has revoked, and which list of them was applied.
    pub revocations: (Revocations, u64),
    /// Signs that the state is older than what others have seen.
    pub lost: LostState,
    /// Signs of faults lately.
    pub signs: Signs,
    /// Deletes old events from the log.
    pub retention: Retention,
    /// Messages that wait for controllers.
    pub outboxes: Outboxes,
    /// Counts result rows since the start, for requests that wait for one.
    pub rows: watch::Sender<u64>,
}

/// What the engine is asked to do.
pub type Call = Box<dyn FnOnce(&mut Engine) + Send>;

/// The engine on its thread.
pub struct EngineThread {
    engine: Engine,
    part: Part,
    health: Health,
    /// Begins to beat once the log was read, and beats with each turn.
    heart: Option<Heart>,
}

impl EngineThread {
    /// Before its start.
    #[must_use]
    pub fn new(engine: Engine, health: &Health) -> EngineThread {
        let part = health.part("engine");
        part.set(State::Ready);
        EngineThread { engine, part, health: health.clone(), heart: None }
    }

    /// Shows an error in the report on health.
    fn show<T>(&self, worked: Result<T, RuntimeError>) -> Result<T, RuntimeError> {
        worked.inspect_err(|_| self.part.set(State::Failed))
    }
}

impl engine::Engine for EngineThread {
    type Call = Call;
    type Error = RuntimeError;

    const MAX_REST: Option<Duration> = Some(Duration::from_millis(100));

    fn begin(&mut self) -> Result<(), RuntimeError> {
        let started = self.engine.start();
        self.show(started)?;
        self.heart = Some(Heart::watched(&self.health, "engine"));
        Ok(())
    }

    fn work(&mut self, calls: Vec<Call>) -> Result<ControlFlow<()>, RuntimeError> {
        self.heart.iter().for_each(Heart::beat);
        let now = self.engine.now();
        self.engine.outages.wake(now, &mut self.engine.manager.service);
        calls.into_iter().for_each(|call| call(&mut self.engine));
        let turned = self.engine.turn();
        self.show(turned)?;
        Ok(ControlFlow::Continue(()))
    }

    fn finish(&mut self) -> Result<(), RuntimeError> {
        let written = self.engine.manager.service.checkpoint();
        self.show(written.map_err(RuntimeError::from))
    }
}

impl Engine {
    /// The time.
    pub fn now(&mut self) -> Timestamp {
        let (now, event) = self.clock.read(clock::now(), clock::steady());
        if let Some(event) = event {
            self.note_clock(event);
        }
        now
    }

    fn note_clock(&mut self, event: ClockEvent) {
        self.manager.service.counters.clock_jumps = self.clock.jumps();
        match event {
            ClockEvent::Jumped(by) => {
                let seconds = by / 1_000_000;
                tracing::error!(
                    seconds,
                    "the machine's clock has jumped; the service continues with its own time until devices agree with the machine's: set the clock"
                );
                let text = format!("the machine's clock has jumped by {seconds} s; set the clock");
                self.clock_note.set(text);
            }
            ClockEvent::Followed => {
                tracing::warn!("the machine's clock has jumped, and devices agree with it");
                self.clock_note.clear();
            }
            ClockEvent::Returned => {
                tracing::warn!("the machine's clock shows the service's time again");
                self.clock_note.clear();
            }
        }
    }

    /// Sums new frames. While nobody knows the time, they wait in the log: one that moves event
    /// time too far moves it for good.
    ///
    /// # Errors
    /// [`ServiceError`] if the log cannot be read.
    pub fn ingest(&mut self) -> Result<(), ServiceError> {
        let now = self.now();
        if self.clock.is_trusted() {
            self.manager.service.ingest(now)?;
        }
        Ok(())
    }

    /// Applies the list of revoked certificates, if it has changed.
    fn apply_revocations(&mut self) -> Result<(), RuntimeError> {
        let (revocations, applied) = &mut self.revocations;
        if revocations.version() == *applied {
            return Ok(());
        }
        *applied = revocations.version();
        let revoked = revocations.revoked().all();
        self.registry.revoke(&mut self.manager, BTreeSet::clone(&revoked))?;
        let now = self.now();
        let all = self.manager.drop_queries_for(now, &revoked)?;
        all.into_iter().for_each(|outgoing| self.deliver(outgoing));
        Ok(())
    }

    /// Reads the log of the last run, before anything new, and waits for those who were there.
    fn start(&mut self) -> Result<(), RuntimeError> {
        self.apply_revocations()?;
        let before = self.now();
        self.ingest()?;
        let (now, service) = (self.now(), &mut self.manager.service);
        // Nobody could answer while the log was read.
        service.discount(Span(now.0.saturating_sub(before.0)));
        let rosters = service.rosters();
        let hosts = rosters.iter().filter_map(|controller| self.registry.host_of(controller));
        let hosts = hosts.filter(|host| !self.silent.contains(host)).map(str::to_owned).collect();
        self.outages.started(now, service, hosts);
        Ok(())
    }

    /// Sums events, closes windows, checks deadlines.
    fn turn(&mut self) -> Result<(), RuntimeError> {
        self.apply_revocations()?;
        self.ingest()?;
        let (now, service) = (self.now(), &mut self.manager.service);
        self.outages.look(now, service, &self.outboxes);
        let idle = self.outages.idle_limit(now);
        let mut all = Vec::new();
        // Frames may wait in the log for as long as the time is in doubt.
        while self.clock.is_trusted() && service.has_due(idle) {
            all.push(service.close_windows(now, idle)?);
        }
        if service.deadline().is_some_and(|deadline| deadline <= now) {
            all.push(service.timeout(now)?);
        }
        service.checkpoint_if_worth()?;
        self.retention.turn(now)?;
        if self.retention.has_deleted() {
            self.manager.forget_ended()?;
        }
        self.manager.service.counters.results = self.retention.kept_results();
        self.silent.turn(now, &self.manager.service, &self.registry, &self.outboxes)?;
        self.lost.note_windows(self.manager.service.counters.of_lost_state);
        self.manager.service.counters.hosts = self.outboxes.hosts(UNHEARD);
        self.signs.note(clock::steady(), &self.manager.service.counters);
        self.note_asked_last();
        all.into_iter().for_each(|outgoing| self.deliver(outgoing));
        Ok(())
    }

    /// Says how many controllers are asked last, since windows were lost for their openings.
    fn note_asked_last(&mut self) {
        let (note, known) = &mut self.asked_last;
        let many = self.manager.service.counters.asked_last.len();
        if many == *known {
            return;
        }
        *known = many;
        if many == 0 {
            note.clear();
        } else {
            note.set(format!(
                "windows were lost since {many} controllers stopped answering part-way; the log names them, and they are asked last for a while"
            ));
        }
    }

    /// Takes messages of controllers.
    ///
    /// # Errors
    /// [`RuntimeError`] if the store fails.
    pub fn receive(
        &mut self,
        host: &str,
        messages: Vec<FromController>,
    ) -> Result<(), RuntimeError> {
        // A host speaks only for its own controllers; signatures are checked as well.
        let own = |from: &FromController| self.registry.host_of(&from.0) == Some(host);
        let own: Vec<_> = messages.into_iter().filter(own).collect();
        let now = self.now();
        let outgoing = self.manager.service.receive(now, now, own)?;
        self.deliver(outgoing);
        Ok(())
    }

    /// Puts messages into the outboxes of their controllers' hosts.
    pub fn deliver(&mut self, outgoing: ServiceOutput) {
        let mut sorted: HashMap<&str, Vec<ToController>> = HashMap::new();
        for message in outgoing.messages {
            if let Some(host) = self.registry.host_of(&message.0) {
                sorted.entry(host).or_default().push(message);
            }
        }
        for (host, messages) in sorted {
            self.outboxes.leave(host, messages);
        }
        if !outgoing.rows.is_empty() {
            let new = outgoing.rows.len() as u64;
            self.rows.send_modify(|rows| *rows += new);
        }
    }

    /// Processes a notice; see [`Registry::register`] and [`Registry::withdraw`].
    ///
    /// # Errors
    /// [`IntroductionError`].
    pub fn note(&mut self, host: &str, notice: Notice) -> Result<(), IntroductionError> {
        let now = self.now();
        let Engine { manager, registry, deployment, .. } = self;
        match notice {
            Notice::Registered(registration) => {
                registry.register(manager, deployment, host, *registration)
            }
            Notice::Withdrawn(stream) => registry.withdraw(manager, now, host, &stream),
        }
    }

    /// Registers controllers; see [`Registry::introduce`].
    ///
    /// # Errors
    /// [`IntroductionError`].
    pub fn introduce(
        &mut self,
        host: &str,
        introduction: &Introduction,
    ) -> Result<(), IntroductionError> {
        let Engine { manager, registry, deployment, .. } = self;
        registry.introduce(manager, deployment, host, &introduction.certificates)
    }
}
