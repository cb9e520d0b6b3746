//! The demo's deployment as it runs: one tick after another goes through
//! devices, service and controllers, and each answer is compared with the plaintext.

use super::stage::Stage;
use super::truth::Truth;
use super::world::{Question, World};
use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_encrypted_stream::error::ExclusionError;
use alpheus_input::refusals::Refusals;
use alpheus_node::entropy;
use alpheus_node::errors::ErrorId;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::service::shutdown::{self, Shutdown};
use alpheus_policy::catalog::RunningQuery;
use alpheus_policy::plan::Plan;
use alpheus_policy::planner::PlannedQuery;
use alpheus_stream_runtime::embedded_deployment::{Controllers, EmbeddedDeployment, Pace};
use alpheus_stream_runtime::error::RuntimeError;
use alpheus_stream_runtime::query_planner::{QueryContext, plan_query};
use alpheus_stream_runtime::results::Row;
use alpheus_streams::replay::feed::Feed;
use alpheus_streams::replay::inputs::members;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::Batch;
use chacha20::ChaCha20Rng;
use std::collections::BTreeSet;
use std::path::Path;
use thiserror::Error;

/// Short enough to watch the service drop a dead controller, which has no presence. All others share this
/// process, and a busy machine holds them up together.
pub(super) const TIMING: Timing = Timing {
    presence: Span::seconds(2),
    tokens: Span::seconds(10),
    openings: Span::seconds(10),
    proofs: Span::seconds(60),
    sums: Span::seconds(10),
    retry: Span(100_000),
};

/// Why the demo fails.
#[derive(Debug, Error)]
pub(super) enum DemoError {
    /// The recording is too short.
    #[error(
        "the recording is too short: the demo needs 100 seconds with 20 people at the same time"
    )]
    TooShort,
    /// Some steps had another outcome.
    #[error("these expectations were not met: {}", .0.join("; "))]
    Unmet(Vec<String>),
}

/// A running demo.
pub(super) struct Play<'a> {
    /// Where it is presented.
    pub stage: Stage,
    /// Who takes part.
    pub world: &'a World,
    /// All roles.
    pub embedded: EmbeddedDeployment,
    /// Randomness of devices and planner.
    pub rng: ChaCha20Rng,
    /// Members whose events the next window must hold.
    pub taking_part: BTreeSet<usize>,
    /// Windows whose answers equal the plaintext's.
    pub matched: usize,
    /// Expectations that were not met.
    pub unmet: Vec<String>,
    stop: Shutdown,
    feed: Feed<'a>,
    refused: Refusals,
}

impl<'a> Play<'a> {
    /// Gives every owner a device and a controller, and the service its log.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub(super) fn begin(world: &'a World, folder: &Path, stage: Stage) -> Result<Self, Failure> {
        let stop = shutdown::on_signal().blame(Category::Io)?;
        let mut rng = entropy::rng()?;
        let embedded = EmbeddedDeployment::open(
            folder,
            &world.schema,
            &members(&world.recording),
            &world.policies,
            Controllers::PerOwner,
            Pace::Live { timing: TIMING, idle: Span::seconds(30) },
            &mut rng,
        )
        .map_err(broken)?;
        Ok(Play {
            stage,
            world,
            embedded,
            rng,
            taking_part: BTreeSet::new(),
            matched: 0,
            unmet: Vec::new(),
            stop,
            feed: Feed::new(&world.recording, world.schema.tick, &[world.schema.tick], None),
            refused: Refusals::default(),
        })
    }

    /// When the next tick begins; all before it has happened.
    ///
    /// # Errors
    /// If the recording is over.
    pub(super) fn now(&self) -> Result<Timestamp, Failure> {
        self.feed.next_tick().ok_or_else(too_short)
    }

    /// Lets one tick pass: devices send, and windows that close are opened.
    ///
    /// # Errors
    /// If the recording is over, or a store fails.
    pub(super) fn tick(&mut self) -> Result<Vec<Row>, Failure> {
        self.now()?;
        if self.stop.is_stopping() {
            return Err(Failure::new(Category::Interrupted, "interrupted; nothing is kept"));
        }
        let mut batch = Batch::new();
        self.feed
            .step(
                &mut self.embedded.devices,
                &self.embedded.encoder,
                &mut self.rng,
                &mut batch,
                &mut self.refused,
            )
            .blame(Category::Check)?;
        self.embedded.store.commit(batch).map_err(|error| broken(error.into()))?;
        let clock = self.feed.next_tick().unwrap_or_else(|| self.feed.end());
        self.embedded.settle(clock).map_err(broken)
    }

    /// Lets one window pass, shows it and holds it to the plaintext.
    ///
    /// # Errors
    /// If the recording is over, or a store fails.
    pub(super) fn window(&mut self) -> Result<(), Failure> {
        let (from, rows) = (self.now()?.0 / 1000, self.tick()?);
        self.expect(rows.len() == 1, "one result for each window");
        for row in rows {
            self.stage.window(&row)?;
            self.compare(from, &row);
        }
        Ok(())
    }

    /// Plans a query whose windows begin at this time or later.
    ///
    /// # Errors
    /// If it is refused.
    pub(super) fn plan(
        &mut self,
        question: &Question,
        from: Timestamp,
    ) -> Result<PlannedQuery, Failure> {
        let (catalog, context) = (&self.embedded.manager.catalog, QueryContext::from(from));
        plan_query(&question.create, catalog, context, &mut self.rng)
            .map_err(|refusal| Failure::new(Category::Refused, refusal.render(&question.text)))
    }

    /// Starts a planned query.
    ///
    /// # Errors
    /// If its name is taken, or a store fails.
    pub(super) fn start(&mut self, planned: PlannedQuery) -> Result<Vec<Plan>, Failure> {
        let PlannedQuery { name, sql, plans, .. } = planned;
        let running = RunningQuery { name, sql, plans: plans.clone() };
        self.embedded.manager.catalog.start(running).blame(Category::Check)?;
        let now = self.now()?;
        self.embedded.start(now, &plans).map_err(broken)?;
        Ok(plans)
    }

    /// Lets one tick pass, and holds the first query's window to the plaintext. Returns the rows of
    /// other queries.
    ///
    /// # Errors
    /// If the recording is over, or a store fails.
    pub(super) fn rows_of_others(&mut self) -> Result<Vec<Row>, Failure> {
        let (from, rows) = (self.now()?.0 / 1000, self.tick()?);
        let name = &self.world.allowed.create.name.text;
        let (own, others): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(|row| row.query == *name);
        self.expect(own.len() == 1, "one result for each window");
        own.iter().for_each(|row| self.compare(from, row));
        Ok(others)
    }

    fn compare(&mut self, from: u64, row: &Row) {
        self.expect(row.window_start == from, "the result of the window that has just passed");
        let truth = self.truth(&self.taking_part, (row.window_start, row.window_end));
        let different = truth.differences(row);
        self.matched += usize::from(different.is_empty());
        for column in different {
            self.unmet.push(format!("window {from}: {column} is not the plaintext's"));
        }
    }

    /// The plaintext result of a window of these members.
    pub(super) fn truth(&self, members: &BTreeSet<usize>, window: (u64, u64)) -> Truth {
        Truth::of(&self.world.recording, members, self.world.attribute(), window)
    }

    /// A member who takes part and has data in the next `windows`.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn somebody(&self, windows: u64) -> Result<usize, Failure> {
        let (now, tick) = (self.now()?.0 / 1000, self.world.schema.tick.0 / 1000);
        let present = |member: &usize| {
            let alone = BTreeSet::from([*member]);
            (0..windows).all(|next| {
                let from = now + next * tick;
                self.truth(&alone, (from, from + tick)).population() == 1
            })
        };
        self.taking_part.iter().copied().find(present).ok_or_else(too_short)
    }

    /// How many streams were left out of windows so far, for a reason.
    pub(super) fn left_out(&self, reason: ExclusionError) -> u64 {
        self.embedded.manager.service.counters.exclusions.get(&reason).copied().unwrap_or(0)
    }

    /// Records an expectation that was not met.
    pub(super) fn expect(&mut self, happened: bool, what: &str) {
        if !happened {
            self.unmet.push(format!("expected {what}"));
        }
    }
}

/// A failure of the runtime.
pub(super) fn broken(error: RuntimeError) -> Failure {
    Failure::new(Category::Io, error)
}

fn too_short() -> Failure {
    Failure::new(Category::Input, DemoError::TooShort).with_id(ErrorId::PopulationShort)
}
