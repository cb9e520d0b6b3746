//! The data plane: where ciphertexts are added up, in this process or by a job beside it.
//!
//! The service says to either which plans run, asks for windows that have passed, and hands
//! on what coordinators give out for sums. It learns the same from both.

mod in_process;
mod job;

pub use in_process::noted_positions;

use super::service::ServiceError;
use super::storage::{PLANS, Topics, scan_all};
use super::watch::Counters;
use alpheus_encrypted_stream::coordinator::{ForSums, Sums, WindowReport};
use alpheus_encrypted_stream::job::WindowSum;
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_policy::plan::Plan;
use alpheus_policy::time::{Timestamp, Window};
use alpheus_transport::{Batch, Record, Store};
use clap::ValueEnum;
use in_process::InProcess;
use job::Job;
pub(super) use job::open_sums;
use serde::Deserialize;
use std::fmt;
use std::sync::Arc;

/// Under which the service's store says that a job adds up.
const ENGINE: &[u8] = b"engine";
const JOB: &[u8] = b"job";

/// What adds up ciphertexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// The service itself.
    #[default]
    InProcess,
    /// A job that reads and writes topics of the same store.
    Job,
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}

/// Why an engine does not sum a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSummed {
    /// What it would say of one stream's window is longer than a record of its topics.
    #[error(
        "the engine `job` sums windows of at most {most} ticks of the schema, and this one has {ticks}: choose a shorter window, or the engine `in-process`"
    )]
    Ticks {
        /// Of the window.
        ticks: u64,
        /// The most.
        most: u64,
    },
    /// It counts time up to the year 2112.
    #[error("the engine `job` does not count time as far as the query's window, grace or start")]
    Time,
}

/// Where ciphertexts are added up.
pub(super) trait Plane: Sums + Send + Sync {
    /// Whether it can sum a plan that is to start.
    fn check(&self, _plan: &Plan) -> Result<(), NotSummed> {
        Ok(())
    }

    /// Starts to sum for a plan, or takes it up again.
    fn register(&mut self, plan: &Plan) -> Result<(), ServiceError>;

    /// Stops to sum for a plan.
    fn unregister(&mut self, plan: &PlanId);

    /// Lets a stream's events in, before any plan asks for them.
    fn admit(&mut self, stream: StreamId);

    /// No more input comes, and `end` is the end of what there was.
    fn seal(&mut self, end: Timestamp);

    /// Event time as far as it has come.
    fn watermark(&self) -> Timestamp;

    /// Reads everything new from the log.
    fn ingest(&mut self, now: Timestamp, counters: &mut Counters) -> Result<(), ServiceError>;

    /// The next window of a plan that has passed: by event time, or because it ended, with its
    /// grace, before `idle`.
    fn due(&self, plan: &PlanId, idle: Timestamp) -> Option<Window>;

    /// Closes a window that is due; none if it cannot be closed.
    fn close(&mut self, plan: &PlanId, window: Window) -> Option<WindowReport>;

    /// Forgets a window that has ended.
    fn finish(&mut self, plan: &PlanId, window: Window);

    /// Whether at least as much was read since the last [note](Plane::note) as one takes up.
    fn is_worth_noting(&self) -> bool;

    /// How far the log was read, and what of it must outlive this process.
    fn note(&self, batch: &mut Batch) -> Result<(), ServiceError>;

    /// What was noted is durable.
    fn noted(&mut self);

    /// Whether coordinators leave adding up to it.
    fn adds_up(&self) -> bool {
        false
    }

    /// Takes what a coordinator gives out for sums.
    fn give(&mut self, _id: &PlanId, _plan: &Plan, _given: &ForSums) -> Result<(), ServiceError> {
        Ok(())
    }

    /// What it is to say to others, for the commit of the records that it rests on.
    fn staged(&mut self) -> Result<Batch, ServiceError> {
        Ok(Batch::new())
    }

    /// Whether sums of windows have come.
    fn has_sums(&self) -> bool {
        false
    }

    /// Sums of windows that have come, as they stood in the log.
    fn take_sums(&mut self) -> Vec<(Record, WindowSum)> {
        Vec::new()
    }

    /// Lays a record of the log with the dead letters.
    fn bury(&mut self, _record: &Record, _reason: &str) {}
}

impl Sums for Box<dyn Plane> {
    fn sum(&self, plan: &PlanId, window: Window, streams: &[u32]) -> Option<Vec<u64>> {
        (**self).sum(plan, window, streams)
    }
}

/// Opens the data plane as it was left.
pub(super) fn open(
    kind: EngineKind,
    store: &Arc<dyn Store>,
    topics: &Topics,
    shape: Shape,
) -> Result<Box<dyn Plane>, ServiceError> {
    take_over(kind, store.as_ref(), topics)?;
    Ok(match kind {
        EngineKind::InProcess => Box::new(InProcess::resume(store, topics, shape)?),
        EngineKind::Job => Box::new(Job::resume(store, topics, shape)?),
    })
}

/// Plans that run stay with what they were started under: nobody else has their sums.
fn take_over(kind: EngineKind, store: &dyn Store, topics: &Topics) -> Result<(), ServiceError> {
    let known = store.get(&topics.service, ENGINE)?;
    let before = known.map_or(EngineKind::InProcess, |_| EngineKind::Job);
    if before == kind {
        return Ok(());
    }
    if !scan_all(store, &topics.service, PLANS)?.is_empty() {
        return Err(ServiceError::OtherEngine { before, asked: kind });
    }
    let mut batch = Batch::new();
    match kind {
        EngineKind::Job => batch.put(&topics.service, ENGINE, JOB)?,
        EngineKind::InProcess => batch.delete(&topics.service, ENGINE)?,
    }
    store.commit(batch)?;
    Ok(())
}
