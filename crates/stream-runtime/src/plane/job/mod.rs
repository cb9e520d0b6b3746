//! Window sums by a job beside this process, over topics of the same store. The service sends
//! plans, opening sets and answers, and reads summaries of streams and sums of windows.
//!
//! A window closes once the job has passed it. If the job is silent and the clock closes the
//! window, it counts the streams without a report. If no stream has one, the window fails
//! with that reason.
//!
//! Duplicate records in these topics do no harm: the job takes the first opening set and the
//! first answer of each controller, and a finished window is not opened again. So the notes
//! here only save reading; they need not be exact.
//!
//! # Privacy
//! This process sees counts, times and borders of streams, and answers: masked, or unmasked
//! with a single controller. Of ciphertexts it sees only sums over opening sets. Anyone who
//! can read `sums` can read results, because both sums of a window are in it.

mod progress;
mod sums;
mod tail;
mod windows;

pub(crate) use sums::open_sums;

use super::{Plane, UnsupportedPlanError};
use crate::counters::Counters;
use crate::refused_frames::RefusedFrames;
use crate::service_error::ServiceError;
use crate::storage::{Topics, bury};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_encrypted_stream::coordinator::{AdderMessage, Answer, SumSet, Sums, WindowReport};
use alpheus_encrypted_stream::job::{
    DeviceNote, JobMessage, JobReport, Join, Opening, PlanEnd, PlanView, SetDigest, Token,
    WindowSum,
};
use alpheus_encrypted_stream::transformer::{Shape, Transformer};
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_policy::plan::Plan;
use alpheus_policy::schema::Frames;
use alpheus_time::{Timestamp, Window};
use alpheus_transport::{Batch, NewRecord, Offset, Partition, Record, Store, partition_for_key};
use progress::TaskTimes;
use std::collections::BTreeMap;
use std::sync::Arc;
use tail::Tail;
use windows::{Mark, MembershipError, Windows};

/// Key prefix of plans' marks. A mark exists once the job was informed of the plan.
const PLAN: &[u8] = b"job/plan/";
/// Key prefix of streams' devices, as the job was last informed of them.
const DEVICE: &[u8] = b"job/device/";
const SUMMARIES: &[u8] = b"job/summaries/";
const SUMS: &[u8] = b"job/sums/";
/// Maximum ticks of a window: a summary has a border of 41 bytes for each, in a record of
/// a megabyte.
const MAX_TICKS: u64 = 20_000;
/// The same with one frame a tick: it has a claim of 65 bytes for each anchor, and others for
/// gaps. The job leaves a stream out that has more claims.
const MAX_ANCHORS: u64 = 14_000;
/// The header with the reason of a dead letter, as the job itself names it.
const REASON: &str = "alpheus.reason";
/// Approximate maximum bytes of messages in one commit.
const MAX_COMMIT_BYTES: usize = 4 << 20;
/// Maximum records, and finished windows, that a restart may have to repeat.
const RECORDS: u64 = 4096;
const ENDED: u64 = 16;

/// The service's end of the job.
pub(super) struct Job {
    store: Arc<dyn Store>,
    topics: Topics,
    shape: Shape,
    /// Partitions of the topic of tokens.
    token_partitions: u32,
    plans: BTreeMap<PlanId, Windows>,
    reached: TaskTimes,
    summaries: Tail,
    sums: Tail,
    /// With one frame a tick: dead letters since the start, for devices to know.
    refusals: Option<Tail>,
    refused: RefusedFrames,
    /// The position up to which sums were processed.
    sums_taken: Vec<Offset>,
    /// Sums that were read and not yet processed.
    arrived: Vec<(Record, WindowSum)>,
    /// Messages for the next batch, in order.
    out: Batch,
    /// Answers that do not fit into one batch; they depend on no record.
    answers: Vec<Batch>,
    /// Records read, windows finished and dead letters written since the last note.
    since: u64,
    ended: u64,
    dead: bool,
    /// The latest end of a reported window.
    reported: Timestamp,
}

impl Job {
    /// Restores the stored state.
    pub(super) fn resume(
        store: &Arc<dyn Store>,
        topics: &Topics,
        shape: Shape,
    ) -> Result<Job, ServiceError> {
        let own = &topics.job;
        // A single partition keeps the job's reports in order.
        for topic in [&own.instructions, &own.summaries, &own.dead_letters] {
            store.ensure_topic(topic, 1)?;
        }
        // Existing topics keep their number of partitions.
        let partitions = |topic, or: u32| -> Result<u32, ServiceError> {
            let partitions = store.partitions(topic)?.unwrap_or(or);
            store.ensure_topic(topic, partitions)?;
            Ok(partitions)
        };
        let token_partitions = partitions(&own.tokens, topics.partitions)?;
        let sums = partitions(&own.sums, 1)?;
        let tail =
            |topic, name, partitions| Tail::resume(store.as_ref(), topics, topic, name, partitions);
        let summaries = tail(&own.summaries, SUMMARIES, 1)?;
        let sums = tail(&own.sums, SUMS, sums)?;
        let refusals = match shape.frames {
            Frames::Events => None,
            Frames::Ticks { .. } => Some(Tail::from_end(store.as_ref(), &own.dead_letters)?),
        };
        Ok(Job {
            sums_taken: sums.positions().to_vec(),
            store: store.clone(),
            topics: topics.clone(),
            shape,
            token_partitions,
            plans: BTreeMap::new(),
            reached: TaskTimes::default(),
            summaries,
            sums,
            refusals,
            refused: RefusedFrames::default(),
            arrived: Vec::new(),
            out: Batch::new(),
            answers: Vec::new(),
            since: 0,
            ended: 0,
            dead: false,
            reported: Timestamp(0),
        })
    }

    /// Informs the job of a plan and its streams, durably. After a crash this is repeated,
    /// which changes nothing.
    fn introduce(&mut self, plan: &Plan, view: &PlanView, mark: Mark) -> Result<(), ServiceError> {
        let instructions = self.topics.job.instructions.partition(0);
        let mut batch = Batch::new();
        append(&mut batch, &instructions, view.from, view)?;
        for (position, planned) in (0u32..).zip(&plan.streams) {
            let join = Join { stream: planned.stream, plan: view.clone(), position };
            append(&mut batch, &instructions, view.from, &join)?;
            if batch.bytes() >= MAX_COMMIT_BYTES {
                self.store.commit(std::mem::take(&mut batch))?;
            }
        }
        batch.put(&self.topics.service, mark_of(&view.plan), mark.to_bytes())?;
        self.store.commit(batch)?;
        Ok(())
    }

    /// Informs the job of a stream's device, unless that was the last to be named.
    fn name_device(&mut self, device: &DeviceNote) -> Result<(), ServiceError> {
        if self.shape.frames.is_events() {
            return Ok(());
        }
        let name = [DEVICE, &device.stream.0].concat();
        let value = device.to_bytes();
        let (space, to) = (self.topics.service.clone(), self.topics.job.instructions.partition(0));
        if self.store.get(&space, &name)?.is_some_and(|known| *known == value) {
            return Ok(());
        }
        let mut batch = Batch::new();
        append(&mut batch, &to, self.reported, device)?;
        batch.put(&space, name, value)?;
        self.store.commit(batch)?;
        Ok(())
    }

    fn send_set(&mut self, id: &PlanId, set: &SumSet, rows: usize) -> Result<(), ServiceError> {
        let Some(windows) = self.plans.get(id) else { return Ok(()) };
        let start = set.window.start;
        let opening = Opening {
            plan: *id,
            start,
            stream_digest: SetDigest::of_streams(id, start, windows.streams_at(&set.streams)),
            streams: set.streams.clone(),
            token_digest: SetDigest::of_controllers(id, start, &set.controllers),
            controllers: set.controllers.clone(),
            masked: set.masked,
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
        };
        let to = self.topics.job.instructions.partition(0);
        append(&mut self.out, &to, set.window.end, &opening)
    }

    fn send_answer(&mut self, id: &PlanId, answer: &Answer) -> Result<(), ServiceError> {
        let Answer { window, controller, opens, words } = answer;
        let (start, rows) = (window.start, words.clone());
        let token = Token { plan: *id, start, controller: *controller, opens: *opens, rows };
        let key = [&id.0[..], &controller.to_be_bytes()].concat();
        let partition = partition_for_key(&key, self.token_partitions);
        let to = self.topics.job.tokens.partition(partition);
        if self.out.bytes() < MAX_COMMIT_BYTES {
            return append(&mut self.out, &to, window.end, &token);
        }
        if self.answers.last().is_none_or(|last| last.bytes() >= MAX_COMMIT_BYTES) {
            self.answers.push(Batch::new());
        }
        let last = self.answers.last_mut();
        last.map_or(Ok(()), |last| append(last, &to, window.end, &token))
    }

    /// Reads summaries of windows that start no later than `latest`.
    fn read_summaries(&mut self, latest: Timestamp, dead: &mut Batch) -> Result<(), ServiceError> {
        let Job { store, plans, summaries, since, reached, reported, topics, shape, .. } = self;
        summaries.read(store.as_ref(), |record| {
            *since += 1;
            let fits = match JobReport::from_bytes(&record.value, shape.frames) {
                Err(bad) => return refuse(dead, topics, &record, bad.name()),
                Ok(JobReport::Progress(progress)) => {
                    reached.update(latest, progress);
                    Ok(())
                }
                Ok(JobReport::JoinAck(joined)) => {
                    plans.get_mut(&joined.plan).map_or(Ok(()), |windows| {
                        windows.join(record.offset, joined.stream, joined.position)
                    })
                }
                Ok(JobReport::Summary(summary)) => {
                    plans.get_mut(&summary.plan).map_or(Ok(()), |windows| {
                        let end = windows.take(latest, record.offset, summary)?;
                        *reported = end.max(*reported);
                        Ok(())
                    })
                }
            };
            fits.or_else(|MembershipError| refuse(dead, topics, &record, MembershipError::NAME))
        })
    }

    /// Reads which frames the job refused, and why.
    fn read_refusals(&mut self) -> Result<(), ServiceError> {
        let Job { store, refusals, refused, .. } = self;
        let Some(tail) = refusals else { return Ok(()) };
        tail.read(store.as_ref(), |record| {
            let reason = record.header(REASON).and_then(|reason| std::str::from_utf8(reason).ok());
            // Other dead letters have other keys.
            let stream = record.key.as_ref().try_into().map(StreamId);
            if let (Some(reason), Ok(stream)) = (reason, stream) {
                refused.note(stream, &record.value, reason);
            }
            Ok(())
        })
    }

    fn read_sums(&mut self, dead: &mut Batch) -> Result<(), ServiceError> {
        let Job { store, sums, arrived, since, topics, .. } = self;
        sums.read(store.as_ref(), |record| {
            *since += 1;
            match WindowSum::from_bytes(&record.value) {
                Ok(sum) => arrived.push((record, sum)),
                Err(bad) => return refuse(dead, topics, &record, bad.name()),
            }
            Ok(())
        })
    }
}

fn append(
    batch: &mut Batch,
    to: &Partition,
    at: Timestamp,
    message: &impl JobMessage,
) -> Result<(), ServiceError> {
    let value = message.to_bytes();
    Ok(batch.append(to, &NewRecord { value: &value, timestamp: at.0, ..Default::default() })?)
}

/// Logs an error that cannot occur in practice: short records fit into every store.
fn written(appended: Result<(), ServiceError>) {
    if let Err(error) = appended {
        tracing::error!(%error, "a short record cannot be written");
    }
}

fn refuse(
    dead: &mut Batch,
    topics: &Topics,
    record: &Record,
    reason: &str,
) -> Result<(), ServiceError> {
    tracing::warn!(reason, "cannot read a record of the job");
    Ok(bury(dead, &topics.job.dead_letters, REASON, record, reason)?)
}

fn mark_of(plan: &PlanId) -> Vec<u8> {
    [PLAN, &plan.0].concat()
}

impl Sums for Job {
    /// The job sends sums to coordinators, so they do not ask for them.
    fn sum(&self, _: &PlanId, _: Window, _: &[u32]) -> Option<Vec<u64>> {
        None
    }
}

impl Plane for Job {
    fn check(&self, plan: &Plan) -> Result<(), UnsupportedPlanError> {
        if plan.is_terms() {
            return Err(UnsupportedPlanError::Epochs);
        }
        if plan.integrity.is_verified() {
            return Err(UnsupportedPlanError::Verified);
        }
        let far = |time: u64| time >= Timestamp::LIMIT.0;
        if far(plan.window.0) || far(plan.grace.0) || far(plan.from.0) {
            return Err(UnsupportedPlanError::Time);
        }
        if let Some(anchor) = self.shape.frames.anchor() {
            let anchors = plan.window.0 / anchor.0.max(1);
            let refused = UnsupportedPlanError::Anchors { anchors, most: MAX_ANCHORS };
            return if anchors > MAX_ANCHORS { Err(refused) } else { Ok(()) };
        }
        let ticks = plan.window.0 / self.shape.tick.0.max(1);
        if ticks > MAX_TICKS {
            return Err(UnsupportedPlanError::Ticks { ticks, most: MAX_TICKS });
        }
        Ok(())
    }

    fn register(&mut self, plan: &Plan) -> Result<(), ServiceError> {
        // The job would send an invalid plan to the dead letters.
        Transformer::new(self.shape, 0).register(plan)?;
        let view = PlanView::of(plan);
        let damaged = ServiceError::Damaged { what: "mark of a plan" };
        let mark = match self.store.get(&self.topics.service, &mark_of(&view.plan))? {
            Some(mark) => Mark::from_bytes(&mark).ok_or(damaged)?,
            None => Mark { from: view.from, joined: false },
        };
        if !mark.joined {
            // A repeated request is answered again: a transaction of the job may have been lost.
            self.introduce(plan, &view, mark)?;
        }
        let streams = plan.streams.iter().map(|planned| planned.stream).collect();
        self.plans.insert(view.plan, Windows::new(view, streams, mark));
        Ok(())
    }

    fn unregister(&mut self, plan: &PlanId) {
        if self.plans.remove(plan).is_some() {
            let to = self.topics.job.instructions.partition(0);
            written(append(&mut self.out, &to, self.reported, &PlanEnd { plan: *plan }));
            let marked = self.out.delete(&self.topics.service, mark_of(plan));
            written(marked.map_err(ServiceError::from));
        }
    }

    /// The job takes events of any stream and keeps those of plans' streams.
    fn admit(&mut self, _: StreamId) {}

    fn admit_device(
        &mut self,
        stream: StreamId,
        certificate: Digest,
        key: VerifyingKey,
    ) -> Result<(), ServiceError> {
        self.name_device(&DeviceNote { stream, certificate, key })
    }

    /// No opening names the certificate that the job then knows.
    fn dismiss_device(&mut self, stream: &StreamId) -> Result<(), ServiceError> {
        let name = [DEVICE, &stream.0].concat();
        let Some(known) = self.store.get(&self.topics.service, &name)? else { return Ok(()) };
        let known = DeviceNote::from_bytes(&known);
        let known = known.map_err(|_| ServiceError::Damaged { what: "device of a stream" })?;
        self.name_device(&DeviceNote { certificate: Digest([0; 32]), ..known })
    }

    fn refused(&self) -> RefusedFrames {
        self.refused.clone()
    }

    /// The job alone knows when its input ends.
    fn seal(&mut self, _: Timestamp) {}

    /// The latest end of a reported window.
    fn watermark(&self) -> Timestamp {
        self.reported
    }

    fn ingest(&mut self, now: Timestamp, _: &mut Counters) -> Result<(), ServiceError> {
        let mut dead = Batch::new();
        self.read_summaries(now.plus(self.shape.skew), &mut dead)?;
        self.read_sums(&mut dead)?;
        self.read_refusals()?;
        if !dead.is_empty() {
            self.store.commit(dead)?;
            self.dead = true;
        }
        Ok(())
    }

    fn due(&self, plan: &PlanId, idle: Timestamp) -> Option<Window> {
        self.plans.get(plan)?.due(self.reached.by(), idle)
    }

    /// Also closes a window without any report: whether a stream was online is unknown.
    fn close(&mut self, plan: &PlanId, window: Window) -> Option<WindowReport> {
        let reached = self.reached.by();
        Some(self.plans.get_mut(plan)?.close(reached, window))
    }

    fn finish(&mut self, plan: &PlanId, window: Window) {
        if let Some(windows) = self.plans.get_mut(plan) {
            windows.finish(window);
            self.ended += 1;
        }
    }

    fn is_worth_noting(&self) -> bool {
        self.dead || self.since >= RECORDS || self.ended >= ENDED
    }

    fn note(&self, batch: &mut Batch) -> Result<(), ServiceError> {
        for (plan, windows) in &self.plans {
            batch.put(&self.topics.service, mark_of(plan), windows.mark().to_bytes())?;
        }
        let needed = self.plans.values().filter_map(Windows::needed).min();
        self.summaries.note(batch, &self.topics, &self.summaries.least(needed))?;
        self.sums.note(batch, &self.topics, &self.sums_taken)
    }

    fn noted(&mut self) {
        (self.since, self.ended, self.dead) = (0, 0, false);
    }

    fn sums_for_coordinators(&self) -> bool {
        true
    }

    fn give(
        &mut self,
        id: &PlanId,
        plan: &Plan,
        message: &AdderMessage,
    ) -> Result<(), ServiceError> {
        match message {
            AdderMessage::Set(set) => self.send_set(id, set, plan.release.outputs()),
            AdderMessage::Answer(answer) => self.send_answer(id, answer),
        }
    }

    fn staged(&mut self) -> Result<Batch, ServiceError> {
        for answers in std::mem::take(&mut self.answers) {
            self.store.commit(answers)?;
        }
        Ok(std::mem::take(&mut self.out))
    }

    fn has_sums(&self) -> bool {
        !self.arrived.is_empty()
    }

    fn take_sums(&mut self) -> Vec<(Record, WindowSum)> {
        self.sums_taken = self.sums.positions().to_vec();
        // Tasks of the job commit separately: totals need their windows in order.
        self.arrived.sort_by_key(|(_, sum)| (sum.plan, sum.start));
        std::mem::take(&mut self.arrived)
    }

    fn bury(&mut self, record: &Record, reason: &str) {
        let to = &self.topics.job.dead_letters;
        written(bury(&mut self.out, to, REASON, record, reason).map_err(ServiceError::from));
        self.dead = true;
    }
}
