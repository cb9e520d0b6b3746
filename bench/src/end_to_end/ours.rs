//! Ours: an embedded deployment, each phase measured.

use super::Cost;
use super::application::{Application, Release, START, WINDOW};
use super::clock::{measured, measured_here};
use crate::BenchError;
use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_encrypted_stream::producer::Start;
use alpheus_policy::plan::Plan;
use alpheus_policy::select::{ReleasePlan, SelectItem, Statistic, SumLocation};
use alpheus_stream_runtime::embedded_deployment::{Controllers, EmbeddedDeployment, Member, Pace};
use alpheus_stream_runtime::query_planner;
use alpheus_stream_runtime::results::{OK, Row};
use alpheus_time::{Span, Timestamp};
use alpheus_transport::Batch;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Instant, SystemTime};

/// Who holds the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    /// One controller for all owners.
    One,
    /// A controller for each owner.
    PerOwner,
}

/// Runs windows through a fresh deployment.
pub(super) fn run(
    folder: &Path,
    application: &Application,
    producers: u32,
    release: Release,
    party: Party,
    windows: usize,
) -> Result<Vec<Cost>, BenchError> {
    let mut started = OpenDeployment::new(folder, application, producers, release, party)?;
    (0..windows).map(|window| started.window(application, window)).collect()
}

/// A deployment whose devices have opened their sessions.
pub(super) struct OpenDeployment {
    pub(super) embedded: EmbeddedDeployment,
    rng: ChaCha20Rng,
}

impl OpenDeployment {
    pub(super) fn new(
        folder: &Path,
        application: &Application,
        producers: u32,
        release: Release,
        party: Party,
    ) -> Result<OpenDeployment, BenchError> {
        let mut rng = ChaCha20Rng::from_seed([6; 32]);
        let mut embedded = deployment(folder, application, producers, party, &mut rng)?;
        let plan = plan_in(&embedded, application, release, &mut rng)?;
        embedded.start(START, &[plan])?;
        let running = embedded.running();
        if running.iter().any(|plan| embedded.manager.service.refusals(plan).next().is_some()) {
            return Err(BenchError::Query);
        }
        open_sessions(&mut embedded, &mut rng)?;
        Ok(OpenDeployment { embedded, rng })
    }

    pub(super) fn window(
        &mut self,
        application: &Application,
        window: usize,
    ) -> Result<Cost, BenchError> {
        one_window(&mut self.embedded, application, window, &mut self.rng)
    }
}

/// The plan that such a deployment runs.
pub(super) fn plan_of(
    application: &Application,
    producers: u32,
    release: Release,
) -> Result<Plan, BenchError> {
    let mut rng = ChaCha20Rng::from_seed([6; 32]);
    let folder = tempfile::tempdir()?;
    let embedded = deployment(folder.path(), application, producers, Party::One, &mut rng)?;
    plan_in(&embedded, application, release, &mut rng)
}

fn deployment(
    folder: &Path,
    application: &Application,
    producers: u32,
    party: Party,
    rng: &mut ChaCha20Rng,
) -> Result<EmbeddedDeployment, BenchError> {
    let members: Vec<Member> = (0..producers)
        .map(|number| {
            let metadata =
                application.schema.metadata.first().map(|it| (it.name.clone(), "bench".to_owned()));
            let (key, owner) = (format!("stream {number}"), format!("owner {number}"));
            Member { key, owner, metadata: metadata.into_iter().collect::<BTreeMap<_, _>>() }
        })
        .collect();
    let controllers = match party {
        Party::One => Controllers::Count(1),
        Party::PerOwner => Controllers::PerOwner,
    };
    let (schema, policies) = (&application.schema, &application.policies);
    // A window without one of them measures nothing, however slow the machine is.
    let all = Span::seconds(60);
    let timing = Timing { presence: all, tokens: all, ..Timing::default() };
    let pace = Pace::Live { timing, idle: WINDOW };
    Ok(EmbeddedDeployment::open(folder, schema, &members, policies, controllers, pace, rng)?)
}

fn plan_in(
    embedded: &EmbeddedDeployment,
    application: &Application,
    release: Release,
    rng: &mut ChaCha20Rng,
) -> Result<Plan, BenchError> {
    let planned = query_planner::plan_query(
        &application.query,
        &embedded.manager.catalog,
        query_planner::QueryContext::from(START),
        rng,
    )
    .map_err(|_| BenchError::Query)?;
    let mut plan = planned.plans.into_iter().next().ok_or(BenchError::Query)?;
    if release == Release::AllWords {
        release_all(&mut plan, application);
    }
    Ok(plan)
}

/// Every word in its own row and column.
fn release_all(plan: &mut Plan, application: &Application) {
    let words = application.layout.words;
    let columns = 0..words - 1;
    plan.release.rows = (0..words).map(|word| vec![word]).collect();
    plan.attributes = (0..).take(application.schema.attributes.len()).collect();
    let item = |cell| SelectItem {
        alias: format!("word {cell}"),
        statistic: Statistic::Sum { sum: cell, count: None, scale: 0 },
    };
    plan.select = ReleasePlan {
        cells: columns.clone().map(|row| SumLocation::Whole { row }).collect(),
        items: columns.map(item).collect(),
    };
}

fn open_sessions(
    embedded: &mut EmbeddedDeployment,
    rng: &mut ChaCha20Rng,
) -> Result<(), BenchError> {
    let mut batch = Batch::new();
    for device in &mut embedded.devices {
        device.open(Start::First, START, rng, &mut batch)?;
    }
    embedded.store.commit(batch)?;
    Ok(())
}

fn one_window(
    embedded: &mut EmbeddedDeployment,
    application: &Application,
    window: usize,
    rng: &mut ChaCha20Rng,
) -> Result<Cost, BenchError> {
    let mut cost = Cost::default();
    let (size, steps) = (application.window, application.steps);
    let start = Timestamp(START.0 + window as u64 * size.0);
    let end = start.plus(size);
    let flushed = flushes(embedded);
    for step in 0..steps {
        let at = Timestamp(start.0 + 1 + u64::from(step) * size.0 / u64::from(steps));
        let mut batch = Batch::new();
        measured_here(&mut cost.devices, || {
            let number = window * steps as usize + step as usize;
            embedded.devices.iter_mut().enumerate().try_for_each(|(device, sender)| {
                let event = application.event(device, number);
                sender.event(at, event, &embedded.encoder, rng, &mut batch)
            })
        })?;
        measured(&mut cost.append, || embedded.store.commit(batch))?;
        measured_here(&mut cost.ingest, || embedded.manager.service.ingest(at))?;
    }
    let mut batch = Batch::new();
    measured_here(&mut cost.devices, || {
        embedded.devices.iter_mut().try_for_each(|device| device.advance(end, rng, &mut batch))
    })?;
    measured(&mut cost.append, || embedded.store.commit(batch))?;
    let row = close(embedded, end, &mut cost)?;
    measured(&mut cost.checkpoint, || embedded.manager.service.checkpoint_if_worth())?;
    cost.flushes = (flushes(embedded) - flushed) as f64;
    if row.status != OK {
        return Err(BenchError::Window(row.status));
    }
    cost.outputs = row.outputs;
    Ok(cost)
}

/// From the last border in the log to the row, and on until no messages are
/// left.
fn close(
    embedded: &mut EmbeddedDeployment,
    end: Timestamp,
    cost: &mut Cost,
) -> Result<Row, BenchError> {
    let began = Instant::now();
    measured_here(&mut cost.ingest, || embedded.manager.service.ingest(end))?;
    let mut round = measured(&mut cost.close, || {
        embedded.manager.service.close_windows(wall_clock(), Timestamp(0))
    })?;
    let mut row = None;
    loop {
        if let Some(found) = round.rows.pop() {
            row = Some(found);
            cost.delay = began.elapsed().as_secs_f64() * 1e3;
        }
        if round.messages.is_empty() {
            return row.ok_or(BenchError::Window("no result came".to_owned()));
        }
        let messages = std::mem::take(&mut round.messages);
        let answers = measured(&mut cost.controllers, || embedded.host.handle(end, messages))?;
        round = measured(&mut cost.close, || {
            embedded.manager.service.receive(wall_clock(), end, answers)
        })?;
    }
}

/// Disk flushes of the service's store and the controllers' host.
fn flushes(embedded: &EmbeddedDeployment) -> u64 {
    embedded.store.stats().syncs + embedded.host.flushes()
}

/// The service's clock.
fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
