//! The job that adds up at scale, played by hand from the messages in its topics: what it
//! reads, what it writes, and every way in which it may be late, doubled or wrong.

use super::recording::Draw;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_encrypted_stream::job::{
    DeviceNote, JobMessage, Join, JoinAck, Opening, PlanEnd, PlanView, Progress, SetDigest,
    Summary, Tally, TickSegments, Token, WindowSum,
};
use alpheus_encrypted_stream::messages::Segments;
use alpheus_encrypted_stream::tick::ingest::Ingest;
use alpheus_encrypted_stream::transformer::{IncompleteError, Shape, Status, Transformer};
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_stream_runtime::storage::{Topics, read_on};
use alpheus_time::{Span, Timestamp, Window};
use alpheus_transport::{Batch, Error, NewRecord, Offset, Partition, Store, Topic};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Beyond every event.
const LATER: Timestamp = Timestamp(1 << 51);

/// What is wrong with the sums of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    Number,
    StreamDigest,
    TokenDigest,
    Ciphertexts,
    Tokens,
    FirstWord,
    Length,
    Garbage,
}

/// A plan that runs in the job.
struct PlayedPlan {
    view: PlanView,
    streams: BTreeMap<u32, StreamId>,
    /// In the transformer, once all streams have joined.
    id: Option<PlanId>,
    /// Whether it was said that its streams are taken up.
    announced: bool,
}

/// A record: partition, value and key.
type New = (u32, Vec<u8>, Vec<u8>);

/// The job, since it was last started without its state.
pub(crate) struct PlayedJob {
    topics: Topics,
    shape: Shape,
    transformer: Transformer,
    /// With one frame a tick: what checks frames, and whose frames count.
    pub(crate) ingest: Option<Ingest>,
    devices: HashMap<StreamId, (Digest, VerifyingKey)>,
    read: BTreeMap<Partition, Offset>,
    plans: BTreeMap<PlanId, PlayedPlan>,
    sets: BTreeMap<(PlanId, Timestamp), Opening>,
    answers: BTreeMap<(PlanId, Timestamp, u32, bool), Vec<u64>>,
    closed: BTreeSet<(PlanId, Timestamp)>,
    given: BTreeSet<(PlanId, Timestamp)>,
    /// What was made and is not committed yet.
    out: Vec<(Topic, Vec<u8>)>,
    /// How the sums of a window that starts there are wrong.
    pub(crate) lies: BTreeMap<u64, Lie>,
    /// Instructions that were read: how often each kind.
    pub(crate) received: BTreeMap<&'static str, u32>,
}

impl PlayedJob {
    pub(crate) fn new(shape: Shape, topics: &Topics) -> PlayedJob {
        PlayedJob {
            topics: topics.clone(),
            shape,
            transformer: Transformer::new(shape, topics.partitions),
            ingest: None,
            devices: HashMap::new(),
            read: BTreeMap::new(),
            plans: BTreeMap::new(),
            sets: BTreeMap::new(),
            answers: BTreeMap::new(),
            closed: BTreeSet::new(),
            given: BTreeSet::new(),
            out: Vec::new(),
            lies: BTreeMap::new(),
            received: BTreeMap::new(),
        }
    }

    /// There are no more events.
    pub(crate) fn seal(&mut self, end: Timestamp) {
        self.transformer.watermarks().seal(end);
    }

    /// Reads what is new, and makes what there is to say.
    pub(crate) fn work(&mut self, store: &dyn Store) -> Result<(), Error> {
        let own = self.topics.job.clone();
        for (topic, hear) in [
            (own.instructions, PlayedJob::instruction as fn(&mut PlayedJob, &[u8])),
            (own.tokens, PlayedJob::token),
        ] {
            for value in self.news(store, &topic)? {
                hear(self, &value.1);
            }
        }
        self.register();
        for (partition, key, value) in self.events(store)? {
            self.event(partition, key, &value);
        }
        for partition in 0..self.topics.partitions {
            self.transformer.watermarks().caught_up(partition);
        }
        self.close();
        self.add_up();
        Ok(())
    }

    /// Commits some of what was made, in some order, some of it twice; the rest waits.
    pub(crate) fn speak(&mut self, store: &dyn Store, draw: &mut Draw) -> Result<(), Error> {
        let (mut batch, mut rest) = (Batch::new(), Vec::new());
        while !self.out.is_empty() {
            let at = usize::try_from(draw.below(self.out.len() as u64)).unwrap();
            let (topic, value) = self.out.swap_remove(at);
            let times = [1, 1, 2, 0][usize::try_from(draw.below(4)).unwrap()];
            let partitions = u64::from(store.partitions(&topic)?.unwrap());
            for _ in 0..times {
                let partition = u32::try_from(draw.below(partitions)).unwrap();
                let record = NewRecord { value: &value, ..Default::default() };
                batch.append(&topic.partition(partition), &record)?;
            }
            if times == 0 {
                rest.push((topic, value));
            }
        }
        self.out = rest;
        if self.out.is_empty() {
            self.tell_progress(&mut batch)?;
        }
        store.commit(batch).map(|_| ())
    }

    /// Behind all that it is about.
    fn tell_progress(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let progress = Progress { task: 0, tasks: 1, time: self.transformer.watermarks().now() };
        let summaries = self.topics.job.summaries.partition(0);
        let value = progress.to_bytes();
        batch.append(&summaries, &NewRecord { value: &value, ..Default::default() }).map(|_| ())
    }

    /// Commits all that was made.
    pub(crate) fn speak_out(&mut self, store: &dyn Store) -> Result<(), Error> {
        let mut batch = Batch::new();
        for (topic, value) in self.out.drain(..) {
            let record = NewRecord { value: &value, ..Default::default() };
            batch.append(&topic.partition(0), &record)?;
        }
        self.tell_progress(&mut batch)?;
        store.commit(batch).map(|_| ())
    }

    /// New records of a topic.
    fn news(&mut self, store: &dyn Store, topic: &Topic) -> Result<Vec<New>, Error> {
        let mut found = Vec::new();
        for number in 0..store.partitions(topic)?.unwrap_or(0) {
            let partition = topic.partition(number);
            let position = self.read.entry(partition.clone()).or_insert(Offset(0));
            read_on(store, &partition, position, |fetched| {
                found.extend(fetched.map(|it| (number, it.value.to_vec(), it.key.to_vec())));
                Ok::<(), Error>(())
            })?;
        }
        Ok(found)
    }

    /// Takes a frame. Refused frames are in nobody's window.
    fn event(&mut self, partition: u32, stream: StreamId, frame: &[u8]) {
        let Some(ingest) = &mut self.ingest else {
            let _ = self.transformer.handle(partition, stream, frame, LATER);
            return;
        };
        let known = self.devices.get(&stream);
        let device = |digest: &Digest| {
            known.filter(|(certificate, _)| certificate == digest).map(|(_, key)| *key)
        };
        let opening = |session| self.transformer.opening(&stream, session);
        let Ok(frame) = ingest.check(stream, frame, device, opening) else { return };
        if self.transformer.handle_tick(partition, &frame, LATER).is_ok() {
            ingest.keep(frame);
        }
    }

    fn events(&mut self, store: &dyn Store) -> Result<Vec<(u32, StreamId, Vec<u8>)>, Error> {
        let events = self.topics.events.clone();
        let news = self.news(store, &events)?.into_iter();
        let event =
            |(partition, frame, key): New| (partition, StreamId(key.try_into().unwrap()), frame);
        Ok(news.map(event).collect())
    }

    fn count(&mut self, kind: &'static str) {
        *self.received.entry(kind).or_default() += 1;
    }

    fn instruction(&mut self, value: &[u8]) {
        if let Ok(view) = PlanView::from_bytes(value) {
            self.count("start");
            assert!(view.from.0.is_multiple_of(view.window.0), "{view:?}");
            let played = PlayedPlan {
                view: view.clone(),
                streams: BTreeMap::new(),
                id: None,
                announced: false,
            };
            self.plans.entry(view.plan).or_insert(played);
        } else if let Ok(join) = Join::from_bytes(value) {
            self.count("join");
            let played = self.plans.get_mut(&join.plan.plan).unwrap();
            assert_eq!(played.view, join.plan);
            played.streams.insert(join.position, join.stream);
            played.announced = false;
        } else if let Ok(DeviceNote { stream, certificate, key }) = DeviceNote::from_bytes(value) {
            self.count("device");
            self.devices.insert(stream, (certificate, key));
        } else if let Ok(set) = Opening::from_bytes(value) {
            self.count(if set.controllers.is_empty() { "none" } else { "set" });
            let known = self.sets.entry((set.plan, set.start)).or_insert_with(|| set.clone());
            // One that failed after its set was fixed gets an empty one too.
            let is_end = set.controllers.is_empty();
            assert!(is_end || *known == set, "two sets of one window: {known:?} and {set:?}");
        } else {
            let end = PlanEnd::from_bytes(value).unwrap();
            self.count("end");
            let played = self.plans.remove(&end.plan).unwrap();
            played.id.iter().for_each(|id| assert!(self.transformer.unregister(id)));
        }
    }

    fn token(&mut self, value: &[u8]) {
        let token = Token::from_bytes(value).unwrap();
        let key = (token.plan, token.start, token.controller, token.opens);
        let first = self.answers.entry(key).or_insert_with(|| token.rows.clone());
        assert_eq!(*first, token.rows, "the same answer again");
    }

    fn register(&mut self) {
        for played in self.plans.values_mut().filter(|played| played.id.is_none()) {
            let streams = played.streams.values();
            let plan = played.view.plan_over(streams, self.shape.schema, [0; 16]);
            played.id = Some(self.transformer.register(&plan).unwrap());
        }
    }

    fn close(&mut self) {
        for (plan, played) in &mut self.plans {
            let Some(id) = played.id else { continue };
            while let Some(window) = self.transformer.closable_window(&id) {
                let report = self.transformer.close(&id, window, u64::MAX).unwrap();
                self.closed.insert((*plan, window.start));
                for (position, status) in report.streams {
                    let (check_sum, judgement) = match status {
                        Status::Complete(it) | Status::Silent(it) => {
                            (it.check_sum, Ok(it.segments))
                        }
                        Status::Incomplete(why) => (0, Err(why)),
                    };
                    let (stream, start) = (played.streams[&position], window.start);
                    let summary =
                        Summary { stream, plan: *plan, start, position, check_sum, judgement };
                    let value = summary_bytes(summary, self.ingest.is_some());
                    self.out.push((self.topics.job.summaries.clone(), value));
                }
                if !std::mem::replace(&mut played.announced, true) {
                    for (position, stream) in &played.streams {
                        let joined = JoinAck { stream: *stream, plan: *plan, position: *position };
                        self.out.push((self.topics.job.summaries.clone(), joined.to_bytes()));
                    }
                }
            }
        }
    }

    fn add_up(&mut self) {
        let due = self.sets.iter().filter(|(at, set)| {
            !set.controllers.is_empty() && self.closed.contains(*at) && !self.given.contains(*at)
        });
        let sums: Vec<WindowSum> = due.filter_map(|(_, set)| self.sum(set)).collect();
        for sum in sums {
            self.given.insert((sum.plan, sum.start));
            let value = match self.lies.get(&sum.start.0) {
                Some(Lie::Garbage) => b"garbage".to_vec(),
                Some(lie) => wrong(sum, *lie).to_bytes(),
                None => sum.to_bytes(),
            };
            self.out.push((self.topics.job.sums.clone(), value));
        }
    }

    fn sum(&self, set: &Opening) -> Option<WindowSum> {
        let played = self.plans.get(&set.plan)?;
        let window = Window { start: set.start, end: set.start.plus(played.view.window) };
        let mut tokens = vec![0_u64; set.rows as usize];
        for controller in &set.controllers {
            let answer = |opens| self.answers.get(&(set.plan, set.start, *controller, opens));
            tokens
                .iter_mut()
                .zip(answer(false)?)
                .for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
            if set.masked {
                tokens
                    .iter_mut()
                    .zip(answer(true)?)
                    .for_each(|(sum, word)| *sum = sum.wrapping_sub(*word));
            }
        }
        let ciphertexts = self.transformer.sum(&played.id?, window, &set.streams).ok()?;
        let members = set.streams.iter().map(|position| played.streams[position]);
        let streams = SetDigest::of_streams(&set.plan, set.start, members);
        let controllers = SetDigest::of_controllers(&set.plan, set.start, &set.controllers);
        assert_eq!((streams, controllers), (set.stream_digest, set.token_digest));
        let tally = |count: usize, digest| Tally { count: count as u64, digest };
        Some(WindowSum {
            plan: set.plan,
            start: set.start,
            streams: tally(set.streams.len(), streams),
            controllers: tally(set.controllers.len(), controllers),
            ciphertexts,
            tokens,
        })
    }
}

/// A summary as the job writes it.
fn summary_bytes(summary: Summary<Segments>, of_ticks: bool) -> Vec<u8> {
    fn with<S>(summary: Summary<Segments>, judgement: Result<S, IncompleteError>) -> Summary<S> {
        let Summary { stream, plan, start, position, check_sum, .. } = summary;
        Summary { stream, plan, start, position, check_sum, judgement }
    }
    match summary.judgement.clone() {
        Ok(Segments::OfTicks { claims, conflict, .. }) => {
            with(summary, Ok(TickSegments { claims, conflict })).to_bytes()
        }
        Err(why) if of_ticks => with::<TickSegments>(summary, Err(why)).to_bytes(),
        Ok(Segments::OfEvents(segments)) => with(summary, Ok(segments)).to_bytes(),
        Err(why) => with::<Vec<_>>(summary, Err(why)).to_bytes(),
    }
}

fn wrong(mut sum: WindowSum, lie: Lie) -> WindowSum {
    match lie {
        Lie::Number => sum.streams.count += 1,
        Lie::StreamDigest => sum.streams.digest.0[0] ^= 1,
        Lie::TokenDigest => sum.controllers.digest.0[3] ^= 1,
        Lie::Ciphertexts => *sum.ciphertexts.last_mut().unwrap() ^= 1,
        Lie::Tokens => *sum.tokens.last_mut().unwrap() ^= 1,
        Lie::FirstWord => sum.ciphertexts[0] = sum.ciphertexts[0].wrapping_add(1),
        Lie::Length => sum.tokens.push(0),
        Lie::Garbage => {}
    }
    sum
}

/// Of the deployment's schema, as the runtime has it.
pub(crate) fn shape_of(schema: &alpheus_policy::schema::Schema) -> Shape {
    let layout = alpheus_policy::layout::Layout::of(schema).unwrap();
    Shape::of(schema, &layout, Span::seconds(60))
}
