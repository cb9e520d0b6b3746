//! A replay inside the test's process, over stores of the test's choice, that
//! stops at the first error as a crash would stop it.

use super::recording::{POLICIES, QUERY, Recording, Result as Row, SCHEMA, SOURCE, from_json};
use alpheus_input::refusals::Refusals;
use alpheus_input::rows::{self, read};
use alpheus_input::source::Source;
use alpheus_policy::policy::Policies;
use alpheus_policy::query::{Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::embedded_deployment::{
    Controllers, EmbeddedDeployment, Pace, RunOptions, Stores,
};
use alpheus_stream_runtime::error::RuntimeError;
use alpheus_stream_runtime::query_planner::{QueryContext, plan_query};
use alpheus_stream_runtime::storage::{reach, reached};
use alpheus_streams::replay::feed::Feed;
use alpheus_streams::replay::inputs::members;
use alpheus_time::Timestamp;
use alpheus_transport::Batch;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;

/// What every life of the deployment is given again.
pub(crate) struct Scene {
    pub(crate) schema: Schema,
    pub(crate) policies: Policies,
    pub(crate) recording: rows::Recording,
    pub(crate) controllers: Controllers,
    pub(crate) query: String,
    /// Windows start from there on.
    pub(crate) from: Timestamp,
    pub(crate) how: RunOptions,
}

impl Scene {
    /// With a frame for each event.
    pub(crate) fn new(recording: &Recording, controllers: Controllers) -> Self {
        Scene::of(&format!("frames: events\n{SCHEMA}"), recording, controllers)
    }

    /// With one frame a tick.
    pub(crate) fn with_ticks(recording: &Recording, controllers: Controllers) -> Self {
        Scene::of(&format!("anchor: 40s\n{SCHEMA}"), recording, controllers)
    }

    fn of(schema: &str, recording: &Recording, controllers: Controllers) -> Self {
        let schema = Schema::from_yaml(schema).unwrap();
        let source = Source::parse(SOURCE, &schema).unwrap();
        let policies = Policies::from_yaml(POLICIES, &schema).unwrap();
        let recording = read(recording.csv().as_bytes(), &source, &schema, schema.tick).unwrap();
        let (query, from, how) = (QUERY.to_owned(), Timestamp(0), Pace::Recorded.into());
        Self { schema, policies, recording, controllers, query, from, how }
    }

    /// Starts a life from what the stores hold. No two lives draw the same.
    pub(crate) fn wake(&self, stores: Stores, life: u64) -> Result<Life<'_>, RuntimeError> {
        let mut rng = ChaCha20Rng::seed_from_u64(life);
        let embedded = EmbeddedDeployment::on(
            stores,
            &self.schema,
            &members(&self.recording),
            &self.policies,
            self.controllers,
            self.how,
            &mut rng,
        )?;
        let mut life = Life { embedded, rng, scene: self };
        if life.embedded.running().is_empty() {
            life.plan()?;
        }
        Ok(life)
    }
}

/// The deployment, from a start to a crash.
pub(crate) struct Life<'a> {
    pub(crate) embedded: EmbeddedDeployment,
    rng: ChaCha20Rng,
    scene: &'a Scene,
}

impl Life<'_> {
    fn plan(&mut self) -> Result<(), RuntimeError> {
        let Statement::Create(create) = parse(&self.scene.query).unwrap() else {
            panic!("no query")
        };
        let planned = plan_query(
            &create,
            &self.embedded.manager.catalog,
            QueryContext::from(self.scene.from)
                .with_readers(&|name| self.embedded.reader_named(name)),
            &mut self.rng,
        )
        .unwrap();
        self.embedded.start(self.scene.from, &planned.plans)
    }

    /// Feeds chunks of so many ticks from where the last life stopped, while
    /// `go_on` says so. True at the recording's end.
    pub(crate) fn feed(
        &mut self,
        chunk: impl FnMut() -> Option<u64>,
    ) -> Result<bool, RuntimeError> {
        self.feed_beside(chunk, |_, _| Ok(()))
    }

    /// The same, and after each chunk `beside` does something at its end's time.
    pub(crate) fn feed_beside(
        &mut self,
        mut chunk: impl FnMut() -> Option<u64>,
        mut beside: impl FnMut(&mut EmbeddedDeployment, Timestamp) -> Result<(), RuntimeError>,
    ) -> Result<bool, RuntimeError> {
        let embedded = &mut self.embedded;
        let resume = reached(embedded.store.as_ref(), &embedded.topics)?;
        let mut feed = Feed::new(
            &self.scene.recording,
            self.scene.schema.tick,
            &[self.scene.schema.tick],
            resume,
        );
        let mut refused = Refusals::default();
        if let Some(clock) = resume {
            embedded.pump(clock)?;
            beside(embedded, clock)?;
        }
        while feed.next_tick().is_some() {
            let Some(ticks) = chunk() else { return Ok(false) };
            let mut batch = Batch::new();
            for _ in 0..ticks {
                let (devices, encoder) = (&mut embedded.devices, &embedded.encoder);
                feed.step(devices, encoder, &mut self.rng, &mut batch, &mut refused).unwrap();
            }
            let clock = feed.next_tick().unwrap_or(feed.end());
            reach(&mut batch, &embedded.topics, clock)?;
            embedded.store.commit(batch)?;
            embedded.pump(clock)?;
            beside(embedded, clock)?;
        }
        embedded.manager.service.seal(feed.end());
        embedded.pump(feed.end())?;
        Ok(true)
    }

    /// All results so far, by window.
    pub(crate) fn results(&self) -> Vec<Row> {
        let mut rows = self.embedded.manager.service.results().unwrap();
        alpheus_stream_runtime::results::sort(&mut rows);
        rows.iter().map(|row| from_json(&row.to_json().into())).collect()
    }
}
