//! The data plane, which sums ciphertexts: in this process, or by a job beside it.
//!
//! The service registers plans with it, asks for windows that have passed, and forwards the
//! coordinators' messages for sums. Both kinds have the same interface.

mod in_process;
mod job;

pub use in_process::noted_positions;

use super::counters::Counters;
use super::engine_kind::EngineKind;
use super::refused_frames::RefusedFrames;
use super::service_error::ServiceError;
use super::storage::{PLANS, TERMS, Topics};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_encrypted_stream::coordinator::{AdderMessage, Sums, WindowReport};
use alpheus_encrypted_stream::job::WindowSum;
use alpheus_encrypted_stream::tick::ingest::Ingest;
use alpheus_encrypted_stream::tick::sums::Blocks;
use alpheus_encrypted_stream::transformer::{Shape, Transformer};
use alpheus_node::ledger::scan_all;
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_policy::plan::Plan;
use alpheus_time::{Timestamp, Window};
use alpheus_transport::{Batch, Error, Record, Store};
use in_process::InProcess;
use job::Job;
pub(super) use job::open_sums;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The key in the service's store that marks a job as the engine.
const ENGINE: &[u8] = b"engine";
const JOB: &[u8] = b"job";

/// Why an engine cannot sum a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedPlanError {
    /// The summary of one stream's window would not fit into a record.
    #[error(
        "the engine `job` sums windows of at most {most} ticks of the schema, and this one has {ticks}: choose a shorter window, or the engine `in-process`"
    )]
    Ticks {
        /// Ticks in the window.
        ticks: u64,
        /// The maximum.
        most: u64,
    },
    /// The job's time ends in the year 2112.
    #[error(
        "the query's window, grace period or start is beyond the time range of the engine `job`"
    )]
    Time,
    /// It sums streams that a plan names.
    #[error(
        "the engine `job` sums fixed plans only: set `membership = 'fixed'`, or use the engine `in-process`"
    )]
    Epochs,
    /// It keeps no sums of sessions.
    #[error(
        "the engine `job` does not support `integrity = 'verified'` or `'bounded'`: remove it, or use the engine `in-process`"
    )]
    Verified,
    /// The summary of one stream's window would not fit into a record, with one frame a tick.
    #[error(
        "the engine `job` sums windows of at most {most} anchor periods of the schema, and this one has {anchors}: choose a shorter window or a longer `anchor`, or the engine `in-process`"
    )]
    Anchors {
        /// Anchor periods in the window.
        anchors: u64,
        /// The maximum.
        most: u64,
    },
}

/// Where ciphertexts are added up.
pub(super) trait Plane: Sums + Send + Sync {
    /// Whether it can sum a plan that is to start.
    fn check(&self, _plan: &Plan) -> Result<(), UnsupportedPlanError> {
        Ok(())
    }

    /// Says how the schema's sums are cut into blocks, which verified plans need.
    fn prove_with(&mut self, _blocks: Blocks) {}

    /// Starts or resumes summing for a plan.
    fn register(&mut self, plan: &Plan) -> Result<(), ServiceError>;

    /// Stops summing for a plan.
    fn unregister(&mut self, plan: &PlanId);

    /// Stops summing for all plans but these, once all that run are registered.
    fn keep_only(&mut self, _plans: &BTreeSet<PlanId>) {}

    /// What sums plans by epochs; none if this engine sums fixed plans only.
    fn epochs(&self) -> Option<&Transformer> {
        None
    }

    /// The same, to change it.
    fn epochs_mut(&mut self) -> Option<&mut Transformer> {
        None
    }

    /// Accepts a stream's events, before any plan needs them.
    fn admit(&mut self, stream: StreamId);

    /// Checks frames with these keys. Without them, no frame of a schema with one frame a tick
    /// counts. A job has keys of its own.
    fn check_with(&mut self, _ingest: Ingest) {}

    /// The device of a stream: the digest of its certificate, and its key. A stream has one at
    /// a time.
    fn admit_device(
        &mut self,
        stream: StreamId,
        certificate: Digest,
        key: VerifyingKey,
    ) -> Result<(), ServiceError>;

    /// The stream's device is no longer let in.
    fn dismiss_device(&mut self, stream: &StreamId) -> Result<(), ServiceError>;

    /// These certificates of ingest keys are revoked. A job has keys of its own, and continues with
    /// them until it is restarted with others.
    fn revoke_ingest(&mut self, _revoked: &BTreeSet<Digest>) {}

    /// Frames that were refused, as far as that is kept.
    fn refused(&self) -> RefusedFrames;

    /// Marks `end` as the end of all input.
    fn seal(&mut self, end: Timestamp);

    /// The event time reached.
    fn watermark(&self) -> Timestamp;

    /// The time of the latest entry of the log that was read, as far as it is known.
    fn last_entry(&self) -> Option<Timestamp> {
        None
    }

    /// Waits for the streams that have reached `since` and were online, until each has reached
    /// `until`: no window ends by event time that one of them lacks. Returns how many.
    fn wait_for_streams(&mut self, _since: Timestamp, _until: Timestamp) -> usize {
        0
    }

    /// How many streams are still waited for.
    fn absent_streams(&mut self) -> usize {
        0
    }

    /// Waits for no stream any more.
    fn stop_waiting(&mut self) {}

    /// Reads everything new from the log.
    fn ingest(&mut self, now: Timestamp, counters: &mut Counters) -> Result<(), ServiceError>;

    /// The next window of a plan that has passed: by event time, or because it and its grace
    /// period ended before `idle`.
    fn due(&self, plan: &PlanId, idle: Timestamp) -> Option<Window>;

    /// Closes a window that is due; none if it cannot be closed.
    fn close(&mut self, plan: &PlanId, window: Window) -> Option<WindowReport>;

    /// Windows of a plan with fixed streams that were closed before a restart and have not
    /// ended. An engine that closes such windows again has none.
    fn unfinished(&self, _plan: &PlanId) -> Vec<WindowReport> {
        Vec::new()
    }

    /// Forgets a window that has ended.
    fn finish(&mut self, plan: &PlanId, window: Window);

    /// Whether at least as many bytes were read since the last [note](Plane::note) as a note
    /// takes.
    fn is_worth_noting(&self) -> bool;

    /// Adds the read positions and the durable state to a batch.
    fn note(&self, batch: &mut Batch) -> Result<(), ServiceError>;

    /// The last note is durable.
    fn noted(&mut self);

    /// Whether coordinators delegate sums to it.
    fn sums_for_coordinators(&self) -> bool {
        false
    }

    /// Takes a coordinator's message for sums.
    fn give(
        &mut self,
        _id: &PlanId,
        _plan: &Plan,
        _given: &AdderMessage,
    ) -> Result<(), ServiceError> {
        Ok(())
    }

    /// Outgoing messages, for the same commit as the records that they depend on.
    fn staged(&mut self) -> Result<Batch, ServiceError> {
        Ok(Batch::new())
    }

    /// Whether sums of windows have arrived.
    fn has_sums(&self) -> bool {
        false
    }

    /// Sums of windows that have arrived, with their records.
    fn take_sums(&mut self) -> Vec<(Record, WindowSum)> {
        Vec::new()
    }

    /// Adds a record of the log to the dead letters.
    fn bury(&mut self, _record: &Record, _reason: &str) {}
}

impl Sums for Box<dyn Plane> {
    fn sum(&self, plan: &PlanId, window: Window, streams: &[u32]) -> Option<Vec<u64>> {
        (**self).sum(plan, window, streams)
    }
}

/// Opens the data plane in its stored state.
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

/// Refuses to change the engine of running plans, since the other one lacks their sums.
fn take_over(kind: EngineKind, store: &dyn Store, topics: &Topics) -> Result<(), ServiceError> {
    let known = store.get(&topics.service, ENGINE)?;
    let before = known.map_or(EngineKind::InProcess, |_| EngineKind::Job);
    if before == kind {
        return Ok(());
    }
    let runs = |prefix| Ok::<_, Error>(!scan_all(store, &topics.service, prefix)?.is_empty());
    if runs(PLANS)? || runs(TERMS)? {
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
