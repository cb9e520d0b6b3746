//! The sums of one partition. A step takes instructions, then frames, then closes what event time has
//! passed. Its result follows from those and from [`Step`] alone.

mod plan;

use crate::instruction::Instruction;
use crate::part::Part;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_encrypted_stream::frame::{Frame, FrameView};
use alpheus_encrypted_stream::job::{DeviceNote, JobMessage, JoinAck};
use alpheus_encrypted_stream::tick::ingest::{AuthenticityError, Ingest};
use alpheus_encrypted_stream::transformer::{IngestError, Shape, Transformer};
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Offset, Record, partition_for_key};
use plan::{LanePlan, PlanState};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Version of the saved state.
const VERSION: u8 = 2;
/// Frames that are taken together: few enough to stay in the processor's cache.
const AT_A_TIME: usize = 64;
/// An opening has no more bytes than this, and most frames have.
const OPENING: usize = 64;
/// So many streams may be in a lane before it admits none that no plan has named.
const MAX_STREAMS: usize = 1 << 20;
/// A window whose opening set, or sum, has not come for so long after its end is given up.
pub(crate) const PATIENCE: Span = Span(7 * Span::DAY.0);
/// How often a lane that nothing moves says how far it is, at most.
const COARSE: u64 = 10;

/// How far a lane has come, and what its next step rests on besides the logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Which entry of the journal it is, from 1. The group keeps the last one's as its position in the
    /// journal, so that who takes over knows whether it sees all of them.
    pub number: u64,
    /// Instructions before this offset were taken.
    pub instructions: u64,
    /// Frames before this offset were taken.
    pub events: u64,
    /// The latest time that a frame could have.
    pub latest: u64,
    /// The event time that was reached.
    pub reached: u64,
    /// Frames that were refused: a repetition with other ingest keys would refuse others.
    pub refused: u64,
}

/// How a lane measures event time.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How far a partition's streams may be behind the first of them.
    pub disorder: Span,
    /// After this time without a later frame, the clock moves on what devices do not.
    pub idle: Span,
    /// How far ahead of the clock a frame may be.
    pub skew: Span,
}

/// What a step has to say.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Reports for the service, with their keys.
    pub reports: Vec<(String, Vec<u8>)>,
    /// Sums over this partition's streams of opening sets.
    pub parts: Vec<Part>,
    /// Frames that were refused, with the reason.
    pub refused: Vec<(Record, &'static str)>,
    /// Windows that were closed.
    pub closed: u64,
}

/// One of the things that a step has to say.
#[derive(Debug)]
pub enum Message {
    /// A report for the service, with its key.
    Report(String, Vec<u8>),
    /// A sum over this partition's streams.
    Part(Part),
    /// A frame that was refused, with the reason.
    Refused(Record, &'static str),
}

impl Outcome {
    /// Everything, in an order that a repetition of the step has too.
    pub fn messages(self) -> impl Iterator<Item = Message> {
        let reports = self.reports.into_iter().map(|(key, value)| Message::Report(key, value));
        let parts = self.parts.into_iter().map(Message::Part);
        let refused = self.refused.into_iter();
        let refused = refused.map(|(record, reason)| Message::Refused(record, reason));
        reports.chain(parts).chain(refused)
    }
}

/// The sums of one partition.
pub struct Lane {
    number: u32,
    of: u32,
    transformer: Transformer,
    plans: BTreeMap<PlanId, LanePlan>,
    devices: HashMap<StreamId, DeviceNote>,
    /// How many groups of streams were added to plans.
    cohorts: u64,
    step: Step,
    /// When a later frame came last. A lane that is taken over starts to wait again.
    moved: Option<Timestamp>,
    /// Whether one came in this step.
    later: bool,
    /// See [`MAX_STREAMS`].
    most: usize,
    out: Outcome,
}

#[derive(Serialize, Deserialize)]
struct SavedLane {
    version: u8,
    step: Step,
    cohorts: u64,
    transformer: Vec<u8>,
    plans: Vec<(Vec<u8>, PlanState)>,
    devices: Vec<Vec<u8>>,
}

impl Lane {
    /// A partition, of so many, of which nothing was read yet. Frames may be ahead of the time that they
    /// are taken at by the shape's skew.
    #[must_use]
    pub fn new(shape: Shape, (number, of): (u32, u32), from: Offset) -> Lane {
        Lane {
            number,
            of,
            transformer: Transformer::new(shape, 1),
            plans: BTreeMap::new(),
            devices: HashMap::new(),
            cohorts: 0,
            step: Step { events: from.0, ..Step::default() },
            moved: None,
            later: false,
            most: MAX_STREAMS,
            out: Outcome::default(),
        }
    }

    /// The same, but it admits no more streams than this that no plan has named. With one frame a tick the
    /// service names each one. The same number belongs to all of a journal.
    #[must_use]
    pub fn with_most_streams(self, most: usize) -> Lane {
        Lane { most, ..self }
    }

    /// The state as bytes; none if it cannot be written, which does not happen.
    #[must_use]
    pub fn save(&self) -> Option<Vec<u8>> {
        let plan = |plan: &LanePlan| (plan.view.to_bytes(), plan.state.clone());
        let saved = SavedLane {
            version: VERSION,
            step: self.step,
            cohorts: self.cohorts,
            transformer: self.transformer.snapshot(Vec::new()).ok()?,
            plans: self.plans.values().map(plan).collect(),
            devices: self.devices.values().map(DeviceNote::to_bytes).collect(),
        };
        postcard::to_allocvec(&saved).ok()
    }

    /// The lane of a saved state; none if the bytes are not of this version and schema.
    #[must_use]
    pub fn restore(shape: Shape, (number, of): (u32, u32), bytes: &[u8]) -> Option<Lane> {
        let saved: SavedLane = postcard::from_bytes(bytes).ok()?;
        let transformer = Transformer::restore(&saved.transformer).ok()?;
        if saved.version != VERSION || transformer.shape().schema != shape.schema {
            return None;
        }
        let plan = |(view, state): (Vec<u8>, PlanState)| LanePlan::restore(&view, state);
        let plans: Option<Vec<LanePlan>> = saved.plans.into_iter().map(plan).collect();
        let device = |bytes: &Vec<u8>| DeviceNote::from_bytes(bytes).ok();
        let devices: Option<Vec<DeviceNote>> = saved.devices.iter().map(device).collect();
        Some(Lane {
            number,
            of,
            transformer,
            plans: plans?.into_iter().map(|plan| (plan.view.plan, plan)).collect(),
            devices: devices?.into_iter().map(|device| (device.stream, device)).collect(),
            cohorts: saved.cohorts,
            step: saved.step,
            moved: None,
            later: false,
            most: MAX_STREAMS,
            out: Outcome::default(),
        })
    }

    /// How far it has come.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// The number of the journal's next entry, which is taken.
    pub fn next_entry(&mut self) -> u64 {
        self.step.number += 1;
        self.step.number
    }

    /// The journal's entries up to this one were repeated.
    pub fn repeated(&mut self, number: u64) {
        self.step.number = number;
    }

    /// Bytes of memory that its sums take.
    #[must_use]
    pub fn footprint(&self) -> usize {
        self.transformer.footprint()
    }

    /// Whether a stream is this partition's.
    fn has(&self, stream: &StreamId) -> bool {
        partition_for_key(&stream.0, self.of) == self.number
    }

    /// Takes an instruction. Call [`Lane::instructed`] after the last one of a step.
    pub fn instruct(&mut self, instruction: &Instruction) {
        match instruction {
            Instruction::Start(view) => {
                let new = || LanePlan::new(view.as_ref().clone());
                self.plans.entry(view.plan).or_insert_with(new);
            }
            Instruction::Join { stream, plan, position } if self.has(stream) => {
                self.join(*stream, plan, *position);
            }
            Instruction::Join { .. } => {}
            Instruction::End(plan) => {
                if let Some(mut plan) = self.plans.remove(plan) {
                    plan.end(&mut self.transformer);
                }
            }
            Instruction::Opening(set) => {
                if let Some(plan) = self.plans.get_mut(&set.plan) {
                    plan.open(set);
                }
            }
            Instruction::Device(device) if self.has(&device.stream) => {
                self.transformer.admit(device.stream);
                self.devices.insert(device.stream, *device);
            }
            Instruction::Device(_) => {}
        }
    }

    fn join(&mut self, stream: StreamId, id: &PlanId, position: u32) {
        let Some(plan) = self.plans.get_mut(id) else { return };
        plan.join(stream, position);
        let joined = JoinAck { stream, plan: *id, position };
        self.out.reports.push((format!("{id}/joined/{stream}"), joined.to_bytes()));
    }

    /// Adds the streams that have joined to their plans. All instructions before an offset were taken.
    pub fn instructed(&mut self, upto: Offset) {
        self.step.instructions = upto.0;
        let shape = *self.transformer.shape();
        for plan in self.plans.values_mut() {
            if plan.enrol(&mut self.transformer, shape, self.cohorts) {
                self.cohorts += 1;
            }
        }
    }

    /// Takes frames of its partition, in order; none may be later than `latest`. With one frame a tick,
    /// `ingest` checks them.
    pub fn take(&mut self, latest: Timestamp, records: &[Record], mut ingest: Option<&mut Ingest>) {
        let before = self.transformer.last_entry();
        self.step.latest = latest.0;
        for records in records.chunks(AT_A_TIME) {
            if self.transformer.shape().frames.is_events() {
                self.take_events(latest, records);
                continue;
            }
            for record in records {
                if let Err(refusal) = self.take_tick(latest, record, ingest.as_deref_mut()) {
                    self.out.refused.push((record.clone(), refusal.name()));
                }
            }
        }
        if let Some(last) = records.last() {
            self.step.events = last.offset.0 + 1;
        }
        self.later |= self.transformer.last_entry() > before;
    }

    /// All frames before an offset were taken: the log may have no record there.
    pub fn taken(&mut self, upto: Offset) {
        self.step.events = self.step.events.max(upto.0);
    }

    fn take_events(&mut self, latest: Timestamp, records: &[Record]) {
        // Summonses go to the partition that a stream's key names: elsewhere it would never be summed.
        let (number, of) = (self.number, self.of);
        let own = |record: &Record| {
            stream_of(record).filter(|stream| partition_for_key(&stream.0, of) == number)
        };
        for record in records.iter().filter(|record| record.value.len() <= OPENING) {
            // A stream may send before a plan names it. Nobody may fill the memory with such.
            if let (Some(stream), Ok(Frame::Opening { .. })) =
                (own(record), FrameView::parse(&record.value))
                && self.transformer.admitted() < self.most
            {
                self.transformer.admit(stream);
            }
        }
        let none = StreamId([0; 16]);
        let frames =
            records.iter().map(|record| (own(record).unwrap_or(none), record.value.as_ref()));
        let refused = &mut self.out.refused;
        self.transformer.handle_all(0, frames, latest, |place, taken| {
            if let (Err(refusal), Some(record)) = (taken, records.get(place)) {
                refused.push((record.clone(), refusal.name()));
            }
        });
    }

    fn take_tick(
        &mut self,
        latest: Timestamp,
        record: &Record,
        ingest: Option<&mut Ingest>,
    ) -> Result<(), IngestError> {
        let ingest = ingest.ok_or(AuthenticityError::UnknownIngestKey)?;
        let stream = stream_of(record).filter(|stream| self.has(stream));
        let stream = stream.ok_or(IngestError::UnknownStream)?;
        let known = self.devices.get(&stream).ok_or(AuthenticityError::UnknownDevice)?;
        let device = |digest: &Digest| -> Option<VerifyingKey> {
            (known.certificate == *digest).then_some(known.key)
        };
        let opening = |session| self.transformer.opening(&stream, session);
        let frame = ingest.check(stream, &record.value, device, opening)?;
        self.transformer.handle_tick(0, &frame, latest)?;
        ingest.keep(frame);
        Ok(())
    }

    /// The event time that this step reaches, and whether that is all there is to reach: a step closes no
    /// more than about a window, so that what it has to say fits into a commit. If the log was read to
    /// its end, and no later frame came for a while, the clock moves event time.
    pub fn reach(&mut self, now: Timestamp, caught_up: bool, pace: Pace) -> (Timestamp, bool) {
        if std::mem::take(&mut self.later) {
            self.moved = Some(now);
        }
        let moved = *self.moved.get_or_insert(now);
        if caught_up {
            self.transformer.watermarks().caught_up(0);
        }
        let before = |time: Timestamp, by: Span| Timestamp(time.0.saturating_sub(by.0));
        // Devices may be ahead of the clock.
        let mut reached = before(self.transformer.watermark().min(now), pace.disorder);
        let coarse = |by: Span| before(now, by).floor(Span((by.0 / COARSE).max(1_000_000)));
        if caught_up && moved <= before(now, pace.idle) {
            reached = reached.max(coarse(pace.idle));
        }
        // Nobody is waited for.
        if caught_up && !self.plans.values().any(LanePlan::has_members) {
            reached = reached.max(coarse(pace.disorder));
        }
        let reached = reached.max(Timestamp(self.step.reached));
        let views = || self.plans.values().map(|plan| &plan.view);
        let from = views().map(|view| view.from.0).min().map(|from| from.max(self.step.reached));
        let most = from.zip(views().map(|view| view.window.0).min());
        let most = most.map_or(reached, |(from, window)| Timestamp(from.saturating_add(window)));
        (reached.min(most), reached <= most)
    }

    /// Closes what has passed, and adds up what is opened. Ends the step.
    pub fn finish(&mut self, reached: Timestamp) -> Outcome {
        self.step.reached = self.step.reached.max(reached.0);
        let reached = Timestamp(self.step.reached);
        for plan in self.plans.values_mut() {
            plan.close(&mut self.transformer, reached, &mut self.out);
            plan.add_up(&mut self.transformer, self.number, &mut self.out.parts);
        }
        self.step.refused = self.out.refused.len() as u64;
        std::mem::take(&mut self.out)
    }

    /// Whether a plan runs that it may be waited for.
    #[must_use]
    pub fn has_plans(&self) -> bool {
        !self.plans.is_empty()
    }
}

/// The stream of a frame.
fn stream_of(record: &Record) -> Option<StreamId> {
    record.key.as_ref().try_into().ok().map(StreamId)
}
