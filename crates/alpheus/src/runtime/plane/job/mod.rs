//! Window sums by a job beside this process, over topics of the same store: the service tells
//! it plans, opening sets and answers, and reads what it has of streams and windows.
//!
//! A window closes once the job is beyond it. One that the clock closes, since the job says
//! nothing, counts the streams that nothing was told of; if that is all, it fails by that name.
//!
//! Nothing that stands in these topics twice does harm: the job takes the first opening set
//! and the first answer of each, and a window that has ended is not opened again. So what is
//! noted here saves reading; it need not be exact.
//!
//! # Privacy
//! This process sees counts, times and borders of streams, and answers: under their masks, or
//! of a single controller without. Of ciphertexts it sees nothing but sums over opening sets. Who
//! else may read `sums` reads results: both sums of a window stand there.

mod progress;
mod sums;
mod tail;
mod windows;

pub(in crate::runtime) use sums::open_sums;

use super::{NotSummed, Plane};
use crate::runtime::service::ServiceError;
use crate::runtime::storage::{Topics, bury};
use crate::runtime::watch::Counters;
use alpheus_encrypted_stream::coordinator::{Answer, ForSums, SumSet, Sums, WindowReport};
use alpheus_encrypted_stream::job::{
    JobMessage, Join, Opening, PlanEnd, PlanView, SetDigest, Token, Told, WindowSum,
};
use alpheus_encrypted_stream::transformer::{Shape, Transformer};
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_policy::plan::Plan;
use alpheus_policy::time::{Timestamp, Window};
use alpheus_transport::{Batch, NewRecord, Offset, Partition, Record, Store, partition_for_key};
use progress::Reached;
use std::collections::BTreeMap;
use std::sync::Arc;
use tail::Tail;
use windows::{Mark, Misfit, Windows};

/// Under which a plan's mark stands; there once the job was told of the plan.
const PLAN: &[u8] = b"job/plan/";
const SUMMARIES: &[u8] = b"job/summaries/";
const SUMS: &[u8] = b"job/sums/";
/// Ticks of a window: a summary has a border of each, 41 bytes, in a record of a megabyte.
const TICKS: u64 = 20_000;
/// Names the reason of a dead letter, as the job itself does.
const REASON: &str = "alpheus.reason";
/// Bytes of messages that are written in one commit, or so.
const MOST: usize = 4 << 20;
/// Records, and ended windows, that a restart may have to read or close again.
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
    reached: Reached,
    summaries: Tail,
    sums: Tail,
    /// How far sums were handed on.
    sums_taken: Vec<Offset>,
    /// Sums that were read and not handed on.
    came: Vec<(Record, WindowSum)>,
    /// What is to be said in the next batch, in order.
    out: Batch,
    /// Answers that one batch has no room for: they rest on no record.
    answers: Vec<Batch>,
    /// Records read, windows ended and dead letters written since that was last noted.
    since: u64,
    ended: u64,
    dead: bool,
    /// The latest end of a window that was told of.
    told: Timestamp,
}

impl Job {
    /// As it was left.
    pub(super) fn resume(
        store: &Arc<dyn Store>,
        topics: &Topics,
        shape: Shape,
    ) -> Result<Job, ServiceError> {
        let own = &topics.job;
        // In one partition what the job tells stands in order.
        for topic in [&own.instructions, &own.summaries, &own.dead_letters] {
            store.ensure_topic(topic, 1)?;
        }
        // Whoever made the others before may have chosen how many partitions they have.
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
        Ok(Job {
            sums_taken: sums.positions().to_vec(),
            store: store.clone(),
            topics: topics.clone(),
            shape,
            token_partitions,
            plans: BTreeMap::new(),
            reached: Reached::default(),
            summaries,
            sums,
            came: Vec::new(),
            out: Batch::new(),
            answers: Vec::new(),
            since: 0,
            ended: 0,
            dead: false,
            told: Timestamp(0),
        })
    }

    /// Tells the job of a plan and its streams, durably. What was said before a crash is said
    /// again, and changes nothing.
    fn introduce(&mut self, plan: &Plan, view: &PlanView, mark: Mark) -> Result<(), ServiceError> {
        let instructions = self.topics.job.instructions.partition(0);
        let mut batch = Batch::new();
        append(&mut batch, &instructions, view.from, view)?;
        for (position, planned) in (0u32..).zip(&plan.streams) {
            let join = Join { stream: planned.stream, plan: view.clone(), position };
            append(&mut batch, &instructions, view.from, &join)?;
            if batch.bytes() >= MOST {
                self.store.commit(std::mem::take(&mut batch))?;
            }
        }
        batch.put(&self.topics.service, mark_of(&view.plan), mark.to_bytes())?;
        self.store.commit(batch)?;
        Ok(())
    }

    fn say_set(&mut self, id: &PlanId, set: &SumSet, rows: usize) -> Result<(), ServiceError> {
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

    fn say_answer(&mut self, id: &PlanId, answer: &Answer) -> Result<(), ServiceError> {
        let Answer { window, controller, opens, words } = answer;
        let (start, rows) = (window.start, words.clone());
        let token = Token { plan: *id, start, controller: *controller, opens: *opens, rows };
        let key = [&id.0[..], &controller.to_be_bytes()].concat();
        let partition = partition_for_key(&key, self.token_partitions);
        let to = self.topics.job.tokens.partition(partition);
        if self.out.bytes() < MOST {
            return append(&mut self.out, &to, window.end, &token);
        }
        if self.answers.last().is_none_or(|last| last.bytes() >= MOST) {
            self.answers.push(Batch::new());
        }
        let last = self.answers.last_mut();
        last.map_or(Ok(()), |last| append(last, &to, window.end, &token))
    }

    /// Of windows that start no later than `latest`.
    fn read_summaries(&mut self, latest: Timestamp, dead: &mut Batch) -> Result<(), ServiceError> {
        let Job { store, plans, summaries, since, reached, told, topics, .. } = self;
        summaries.read(store.as_ref(), |record| {
            *since += 1;
            let fits = match Told::from_bytes(&record.value) {
                Err(bad) => return refuse(dead, topics, &record, bad.name()),
                Ok(Told::Progress(progress)) => {
                    reached.hear(latest, progress);
                    Ok(())
                }
                Ok(Told::Joined(joined)) => plans.get_mut(&joined.plan).map_or(Ok(()), |windows| {
                    windows.join(record.offset, joined.stream, joined.position)
                }),
                Ok(Told::Summary(summary)) => {
                    plans.get_mut(&summary.plan).map_or(Ok(()), |windows| {
                        let end = windows.take(latest, record.offset, summary)?;
                        *told = end.max(*told);
                        Ok(())
                    })
                }
            };
            fits.or_else(|Misfit| refuse(dead, topics, &record, Misfit::NAME))
        })
    }

    fn read_sums(&mut self, dead: &mut Batch) -> Result<(), ServiceError> {
        let Job { store, sums, came, since, topics, .. } = self;
        sums.read(store.as_ref(), |record| {
            *since += 1;
            match WindowSum::from_bytes(&record.value) {
                Ok(sum) => came.push((record, sum)),
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

/// What is short enough for every store, or was cut to be.
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
    tracing::warn!(reason, "a record of the job is not understood");
    Ok(bury(dead, &topics.job.dead_letters, REASON, record, reason)?)
}

fn mark_of(plan: &PlanId) -> Vec<u8> {
    [PLAN, &plan.0].concat()
}

impl Sums for Job {
    /// Coordinators are told sums; they do not ask.
    fn sum(&self, _: &PlanId, _: Window, _: &[u32]) -> Option<Vec<u64>> {
        None
    }
}

impl Plane for Job {
    fn check(&self, plan: &Plan) -> Result<(), NotSummed> {
        let far = |time: u64| time >= Timestamp::LIMIT.0;
        if far(plan.window.0) || far(plan.grace.0) || far(plan.from.0) {
            return Err(NotSummed::Time);
        }
        let ticks = plan.window.0 / self.shape.tick.0.max(1);
        if ticks > TICKS {
            return Err(NotSummed::Ticks { ticks, most: TICKS });
        }
        Ok(())
    }

    fn register(&mut self, plan: &Plan) -> Result<(), ServiceError> {
        // The job would lay what does not fit with the dead letters.
        Transformer::new(self.shape, 0).register(plan)?;
        let view = PlanView::of(plan);
        let damaged = ServiceError::Damaged { what: "mark of a plan" };
        let mark = match self.store.get(&self.topics.service, &mark_of(&view.plan))? {
            Some(mark) => Mark::from_bytes(&mark).ok_or(damaged)?,
            None => Mark { from: view.from, joined: false },
        };
        if !mark.joined {
            // Said again, it is answered again: a transaction of the job may have been lost.
            self.introduce(plan, &view, mark)?;
        }
        let streams = plan.streams.iter().map(|planned| planned.stream).collect();
        self.plans.insert(view.plan, Windows::new(view, streams, mark));
        Ok(())
    }

    fn unregister(&mut self, plan: &PlanId) {
        if self.plans.remove(plan).is_some() {
            let to = self.topics.job.instructions.partition(0);
            written(append(&mut self.out, &to, self.told, &PlanEnd { plan: *plan }));
            let marked = self.out.delete(&self.topics.service, mark_of(plan));
            written(marked.map_err(ServiceError::from));
        }
    }

    /// The job takes events of any stream, and keeps those of plans' streams.
    fn admit(&mut self, _: StreamId) {}

    /// The job alone knows when its input ends.
    fn seal(&mut self, _: Timestamp) {}

    /// As far as windows were told of.
    fn watermark(&self) -> Timestamp {
        self.told
    }

    fn ingest(&mut self, now: Timestamp, _: &mut Counters) -> Result<(), ServiceError> {
        let mut dead = Batch::new();
        self.read_summaries(now.plus(self.shape.skew), &mut dead)?;
        self.read_sums(&mut dead)?;
        if !dead.is_empty() {
            self.store.commit(dead)?;
            self.dead = true;
        }
        Ok(())
    }

    fn due(&self, plan: &PlanId, idle: Timestamp) -> Option<Window> {
        self.plans.get(plan)?.due(self.reached.by(), idle)
    }

    /// Of a window that nothing was told of too: whether anybody was online is not known.
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

    fn adds_up(&self) -> bool {
        true
    }

    fn give(&mut self, id: &PlanId, plan: &Plan, given: &ForSums) -> Result<(), ServiceError> {
        match given {
            ForSums::Set(set) => self.say_set(id, set, plan.release.outputs()),
            ForSums::Answer(answer) => self.say_answer(id, answer),
        }
    }

    fn staged(&mut self) -> Result<Batch, ServiceError> {
        for answers in std::mem::take(&mut self.answers) {
            self.store.commit(answers)?;
        }
        Ok(std::mem::take(&mut self.out))
    }

    fn has_sums(&self) -> bool {
        !self.came.is_empty()
    }

    fn take_sums(&mut self) -> Vec<(Record, WindowSum)> {
        self.sums_taken = self.sums.positions().to_vec();
        // Tasks of the job commit apart: totals go on best in the order of windows.
        self.came.sort_by_key(|(_, sum)| (sum.plan, sum.start));
        std::mem::take(&mut self.came)
    }

    fn bury(&mut self, record: &Record, reason: &str) {
        let to = &self.topics.job.dead_letters;
        written(bury(&mut self.out, to, REASON, record, reason).map_err(ServiceError::from));
        self.dead = true;
    }
}
