//! A deployment whose sums a job adds up, over topics of one store: whatever comes late, twice,
//! in another order or wrongly, and whenever the service ends, each window opens once, to the
//! plaintext's answer, or says why it did not.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use crate::common::embedded_replay::Scene;
use crate::common::played_job::{Lie, PlayedJob, shape_of};
use crate::common::recording::{BASE, Draw, Recording, Result as Row, WINDOW, check};
use crate::common::witness::Witness;
use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_stream_runtime::embedded_deployment::{Controllers, Pace, RunOptions, Stores};
use alpheus_stream_runtime::engine_kind::EngineKind;
use alpheus_stream_runtime::error::RuntimeError;
use alpheus_stream_runtime::refused_frames::{RefusalReason, RefusedFrame};
use alpheus_stream_runtime::service::ServiceError;
use alpheus_stream_runtime::storage::{Topics, read_on};
use alpheus_streams::server::retention::Retention;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::simulation::{Fault, Machine};
use alpheus_transport::{Batch, NewRecord, Offset, Record, Store, Topic};
use std::collections::BTreeMap;

const STREAMS: u64 = 4;
const WINDOWS: u64 = 24;
const SECOND: u64 = 1_000_000;
/// A window that ended so long ago closes without streams that nothing was reported of: a job
/// that speaks at once has reported them by then, and one in a storm gets the time it takes.
const IDLE: Span = Span::seconds(2 * WINDOW);
const PATIENT: Span = Span::seconds(10_000);

/// A scene whose sums a job adds up.
fn scene(recording: &Recording, controllers: Controllers, sums: Span, idle: Span) -> Scene {
    // The wall clock's deadlines pass only where a test waits for them.
    let timing = Timing {
        sums,
        presence: Span::seconds(600),
        tokens: Span::seconds(600),
        ..Timing::default()
    };
    let how = RunOptions { pace: Pace::Live { timing, idle }, engine: EngineKind::Job };
    let from = Timestamp(BASE * SECOND);
    Scene { from, how, ..Scene::new(recording, controllers) }
}

/// The same of a schema with one frame a tick.
fn with_ticks(recording: &Recording, scene: Scene) -> Scene {
    let Scene { controllers, from, how, .. } = scene;
    Scene { from, how, ..Scene::with_ticks(recording, controllers) }
}

/// Two disks, and one folder.
struct House {
    service: Machine,
    private: Machine,
    fence: tempfile::TempDir,
    witness: Witness,
}

impl House {
    fn new() -> House {
        let (service, private) = (Machine::new(), Machine::new());
        let fence = tempfile::tempdir().unwrap();
        House { service, private, fence, witness: Witness::default() }
    }

    fn stores(&self) -> Stores {
        Stores {
            service: self.service.open().unwrap(),
            private: self.private.open().unwrap(),
            fence: self.fence.path().join("fence"),
        }
    }

    /// Everything stops; what was not synced is gone, or some of it.
    fn pull_the_plug(&mut self, draw: &mut Draw, about: &str) {
        self.service.crash(draw.below(u64::MAX));
        self.private.crash(draw.below(u64::MAX));
        let stores = self.stores();
        self.witness.ledgers(stores.private.as_ref(), about);
        self.witness.results(stores.service.as_ref(), about);
        self.service.crash(0);
        self.private.crash(0);
    }
}

/// How the job speaks: at once, or as the draw will have it.
enum Voice {
    Clear,
    Stormy(Draw),
    /// Says nothing until it was asked so often, and everything then.
    Lagging(u64),
    Silent,
}

impl Voice {
    fn speak(&mut self, job: &mut PlayedJob, store: &dyn Store) -> Result<(), RuntimeError> {
        if let Voice::Lagging(rounds @ 1..) = self {
            *rounds -= 1;
            return Ok(());
        }
        if !matches!(self, Voice::Silent) {
            job.work(store)?;
        }
        match self {
            Voice::Silent => {}
            Voice::Clear | Voice::Lagging(_) => job.speak_out(store)?,
            Voice::Stormy(draw) => job.speak(store, draw)?,
        }
        Ok(())
    }
}

/// One life of the service beside a job; its rows if it came to the recording's end.
fn live(
    scene: &Scene,
    stores: Stores,
    job: &mut PlayedJob,
    (number, voice): (u64, &mut Voice),
    chunk: impl FnMut() -> Option<u64>,
) -> Result<Option<Vec<Row>>, RuntimeError> {
    let store = stores.service.clone();
    let mut life = scene.wake(stores, number)?;
    if !scene.schema.frames.is_events() {
        job.ingest = Some(life.embedded.ingest()?);
    }
    let done = life.feed_beside(chunk, |embedded, clock| {
        voice.speak(job, embedded.store.as_ref())?;
        embedded.pump(clock).map(|_| ())
    })?;
    if !done {
        return Ok(None);
    }
    let Pace::Live { idle, .. } = scene.how.pace else { panic!("the clock decides") };
    let end = Timestamp((BASE + WINDOWS * WINDOW) * SECOND);
    job.seal(end);
    voice.speak(job, store.as_ref())?;
    job.speak_out(store.as_ref())?;
    for _ in 0..30 {
        life.embedded.pump(end.plus(idle))?;
        voice.speak(job, store.as_ref())?;
    }
    life.embedded.pump(end.plus(idle))?;
    // As the process does when it is asked to stop.
    life.embedded.manager.service.checkpoint()?;
    Ok(Some(life.results()))
}

fn fresh(scene: &Scene) -> PlayedJob {
    PlayedJob::new(shape_of(&scene.schema), &Topics::new(4).unwrap())
}

/// One undisturbed life.
fn calm(scene: &Scene, house: &House, job: &mut PlayedJob, number: u64) -> Vec<Row> {
    let mut voice = Voice::Clear;
    live(scene, house.stores(), job, (number, &mut voice), || Some(1)).unwrap().unwrap()
}

#[test]
fn rows_are_those_of_a_service_that_adds_up_itself() {
    for controllers in [Controllers::Count(1), Controllers::PerOwner, Controllers::Count(2)] {
        let recording = Recording::made(STREAMS, WINDOWS);
        let own = Scene::new(&recording, controllers);
        let by_job = scene(&recording, controllers, Span::seconds(600), IDLE);
        let job = agree(&own, &by_job, &recording);
        assert!(!job.received.contains_key("device"));
        let own = Scene::with_ticks(&recording, controllers);
        let job = agree(&own, &with_ticks(&recording, by_job), &recording);
        assert_eq!(job.received["device"], 4, "one for each stream");
    }
}

/// A service that adds up itself and one beside a job have the same rows.
fn agree(own: &Scene, by_job: &Scene, recording: &Recording) -> PlayedJob {
    let mut life = own.wake(House::new().stores(), 1).unwrap();
    assert!(life.feed(|| Some(1)).unwrap());
    let mut job = fresh(by_job);
    let rows = calm(by_job, &House::new(), &mut job, 1);
    assert_eq!(rows, life.results(), "{:?}", own.controllers);
    assert!(check(&rows, &recording.truth(), "calm").is_empty());
    assert_eq!((job.received["start"], job.received["join"]), (1, 4));
    let opened = rows.iter().filter(|row| row.status == "ok").count();
    assert_eq!(job.received["set"] as usize, opened, "one set for each window that opens");
    job
}

#[test]
fn devices_learn_which_frames_the_job_refused() {
    let recording = Recording::made(STREAMS, WINDOWS);
    let by_job = scene(&recording, Controllers::Count(1), Span::seconds(600), IDLE);
    let scene = with_ticks(&recording, by_job);
    let mut life = scene.wake(House::new().stores(), 1).unwrap();
    let embedded = &mut life.embedded;
    let (stream, topics) = (embedded.streams[0], embedded.topics.clone());
    let mut batch = Batch::new();
    let frame = [&[0x21][..], &7_u64.to_le_bytes()].concat();
    for reason in ["duplicate", "unknown-session"] {
        let headers = &[("alpheus.reason", reason.as_bytes())][..];
        let record = NewRecord { key: &stream.0, value: &frame, headers, ..Default::default() };
        batch.append(&topics.job.dead_letters.partition(0), &record).unwrap();
    }
    embedded.store.commit(batch).unwrap();
    embedded.pump(scene.from).unwrap();
    let refused = embedded.manager.service.refused().take(&stream);
    let expected = RefusedFrame { stream, session: 7, reason: RefusalReason::UnknownSession };
    assert_eq!(refused, [expected]);
    assert_eq!(embedded.manager.service.refused().take(&stream), []);
}

/// Lives until a fault, or until it is tired, beside a job that forgets everything now and
/// then; then the next one.
///
/// How many lives it took, how many windows opened, and of how many.
fn ordeal(seed: u64, controllers: Controllers, ticks: bool) -> [u64; 3] {
    let recording = Recording::made(STREAMS, WINDOWS);
    let scene = scene(&recording, controllers, Span::seconds(600), PATIENT);
    let scene = if ticks { with_ticks(&recording, scene) } else { scene };
    let (mut house, mut draw) = (House::new(), Draw(seed));
    let mut job = fresh(&scene);
    for number in 0..60 {
        let about = format!("seed {seed}, life {number}, {controllers:?}, ticks: {ticks}");
        let patience = 1 + draw.below(8);
        let stores = house.stores();
        if number < 6 {
            let fault = match draw.below(2) {
                0 => Fault::DiskFull,
                _ => Fault::SyncFails(draw.below(u64::MAX)),
            };
            house.service.inject(fault, draw.below(60));
        }
        let mut chunks = 0;
        let chunk = || {
            chunks += 1;
            (number >= 6 || chunks <= patience).then(|| 1 + chunks % 3)
        };
        let mut voice = Voice::Stormy(Draw(seed ^ number));
        let lived = live(&scene, stores, &mut job, (seed << 8 | number, &mut voice), chunk);
        house.pull_the_plug(&mut draw, &about);
        // What it was saying when a disk failed it has not said.
        if lived.is_err() || draw.below(2) == 0 {
            job = fresh(&scene);
        }
        if let Ok(Some(rows)) = lived {
            check(&rows, &recording.truth(), &about);
            let opened = rows.iter().filter(|row| row.status == "ok").count();
            // Whose first commit came without its fence answers for no window of before.
            let is_restored = rows.iter().any(|row| row.status.contains("ledger was restored"));
            assert!(is_restored || 2 * opened > rows.len(), "{about}: {rows:?}");
            assert!(is_restored || house.witness.tokens() > 0, "{about}");
            return [number, opened as u64, rows.len() as u64];
        }
    }
    panic!("seed {seed}: it does not come to an end")
}

fn seeds() -> u64 {
    std::env::var("ALPHEUS_KILLS").map_or(12, |many| many.parse().unwrap())
}

#[test]
fn windows_open_once_beside_a_job_that_repeats_itself_whenever_the_service_ends() {
    ordeals(Controllers::Count(1), false);
    ordeals(Controllers::PerOwner, false);
}

#[test]
fn windows_of_ticks_open_once_beside_a_job_whenever_the_service_ends() {
    ordeals(Controllers::PerOwner, true);
}

fn ordeals(controllers: Controllers, ticks: bool) {
    let [mut lives, mut opened, mut rows] = [0; 3];
    for seed in 0..seeds() {
        let [more, ok, all] = ordeal(seed, controllers, ticks);
        (lives, opened, rows) = (lives + more, opened + ok, rows + all);
    }
    assert!(lives > seeds(), "only {lives} ends");
    assert!(2 * opened > rows, "{opened} of {rows} windows opened");
}

fn dead_letters(store: &dyn Store) -> BTreeMap<String, u32> {
    let (mut found, mut position) = (BTreeMap::new(), Offset(0));
    let topic = Topics::new(4).unwrap().job.dead_letters.partition(0);
    read_on(store, &topic, &mut position, |fetched| {
        for record in fetched {
            *found.entry(reason(&record)).or_default() += 1;
        }
        Ok::<(), alpheus_transport::Error>(())
    })
    .unwrap();
    found
}

fn reason(record: &Record) -> String {
    let found = record.headers().find(|(name, _)| *name == "alpheus.reason");
    String::from_utf8(found.unwrap().1.to_vec()).unwrap()
}

/// The window of a lie.
fn window_of(lie: usize) -> u64 {
    BASE + (10 + lie as u64) * WINDOW
}

fn liar(scene: &Scene, lies: &[Lie]) -> PlayedJob {
    let mut job = fresh(scene);
    job.lies = (0..).zip(lies).map(|(at, lie)| (window_of(at) * SECOND, *lie)).collect();
    job
}

#[test]
fn sums_of_other_sets_are_dead_letters_and_the_truth_that_follows_opens() {
    let recording = Recording::made(STREAMS, WINDOWS);
    let scene = scene(&recording, Controllers::PerOwner, Span::seconds(600), IDLE);
    let (house, lies) =
        (House::new(), [Lie::Number, Lie::StreamDigest, Lie::TokenDigest, Lie::Length]);
    let rows = calm(&scene, &house, &mut liar(&scene, &lies), 1);
    assert!((0..lies.len()).all(|lie| rows.iter().all(|row| row.start != window_of(lie))));
    let rows = calm(&scene, &house, &mut fresh(&scene), 2);
    assert!(check(&rows, &recording.truth(), "the truth").is_empty());
    let dead = dead_letters(house.stores().service.as_ref());
    let expected = [("other-length".to_owned(), 1), ("other-set".to_owned(), 3)];
    assert_eq!(dead, BTreeMap::from(expected));
}

#[test]
fn the_check_word_says_nothing_of_other_words() {
    let recording = Recording::made(STREAMS, WINDOWS);
    let scene = scene(&recording, Controllers::PerOwner, Span::seconds(600), IDLE);
    let lies = [Lie::Ciphertexts, Lie::Tokens, Lie::FirstWord];
    let rows = calm(&scene, &House::new(), &mut liar(&scene, &lies), 1);
    let row = |lie: usize| rows.iter().find(|row| row.start == window_of(lie)).unwrap();
    for wrong in [row(0), row(1)] {
        assert!(wrong.status.contains("check word") && wrong.sum.is_none(), "{wrong:?}");
    }
    // The operator of the job is trusted with this, as SECURITY.md says.
    let (count, sum) = recording.truth()[&row(2).start]
        .iter()
        .fold((0, 0), |(count, sum), (n, x)| (count + n, sum + x));
    assert_eq!(row(2).status, "ok");
    assert_ne!((row(2).count, row(2).sum), (Some(count), Some(sum)));
}

#[test]
fn windows_that_a_job_reports_nothing_of_say_so_once_and_stay_so() {
    let recording = Recording::made(STREAMS, WINDOWS);
    let scene = scene(&recording, Controllers::PerOwner, Span::seconds(600), IDLE);
    let house = House::new();
    let (mut job, mut voice) = (fresh(&scene), Voice::Silent);
    let lived = live(&scene, house.stores(), &mut job, (1, &mut voice), || Some(1));
    let rows = lived.unwrap().unwrap();
    let truth = recording.truth();
    assert!(rows.iter().map(|row| &row.start).eq(truth.keys()));
    for row in &rows {
        assert!(row.status.contains("the job reported nothing"), "{row:?}");
    }
    // What it reports later, to a service that comes back, is too late.
    assert_eq!(calm(&scene, &house, &mut fresh(&scene), 2), rows);
}

/// As after an outage: nothing is closed over its head, and nobody who was offline is waited for.
#[test]
fn windows_wait_for_a_job_that_lags_and_close_once_it_is_beyond_them() {
    let recording = Recording::made(STREAMS, WINDOWS);
    let scene = scene(&recording, Controllers::PerOwner, Span::seconds(600), PATIENT);
    let rows = |voice: Voice| {
        let (house, mut job, mut voice) = (House::new(), fresh(&scene), voice);
        let mut life = scene.wake(house.stores(), 1).unwrap();
        let store = life.embedded.store.clone();
        let fed = life.feed_beside(
            || Some(1),
            |embedded, clock| {
                voice.speak(&mut job, store.as_ref())?;
                embedded.pump(clock).map(|_| ())
            },
        );
        assert!(fed.unwrap());
        for _ in 0..30 {
            voice.speak(&mut job, store.as_ref()).unwrap();
            // The clock is before every window's end and `idle`.
            life.embedded.pump(Timestamp((BASE + WINDOWS * WINDOW) * SECOND)).unwrap();
        }
        life.results()
    };
    let (clear, lagging) = (rows(Voice::Clear), rows(Voice::Lagging(WINDOWS / 2)));
    assert!(check(&clear, &recording.truth(), "clear").len() < 2, "but for the last one");
    assert_eq!(clear, lagging);
    assert!(clear.iter().filter(|row| row.status == "ok").count() as u64 > WINDOWS / 2);
    assert_eq!(rows(Voice::Silent), []);
}

#[test]
fn windows_whose_sums_come_too_late_fail_once_and_name_the_job() {
    let recording = Recording::made(STREAMS, WINDOWS);
    let scene = scene(&recording, Controllers::PerOwner, Span(0), IDLE);
    let (house, mut job) = (House::new(), fresh(&scene));
    job.lies.insert((BASE + 12 * WINDOW) * SECOND, Lie::Garbage);
    let (rows, truth) = (calm(&scene, &house, &mut job, 1), recording.truth());
    assert_eq!(
        rows.iter().map(|row| &row.start).collect::<Vec<_>>(),
        truth.keys().collect::<Vec<_>>()
    );
    let with_data = |row: &&Row| truth[&row.start].iter().any(|(count, _)| *count > 0);
    for row in rows.iter().filter(with_data) {
        assert!(row.status.contains("the job did not deliver the window's sums"), "{row:?}");
    }
    // What came later changed nothing; what was no message is kept.
    let dead = dead_letters(house.stores().service.as_ref());
    assert_eq!(dead, BTreeMap::from([("version".to_owned(), 1)]));
}

#[test]
fn old_messages_of_job_and_service_are_deleted_except_instructions() {
    let recording = Recording::made(STREAMS, WINDOWS);
    let scene = scene(&recording, Controllers::Count(1), Span::seconds(600), IDLE);
    let (house, mut job) = (House::new(), fresh(&scene));
    calm(&scene, &house, &mut job, 1);
    let (store, topics) = (house.service.open().unwrap(), Topics::new(4).unwrap());
    let held = |topic: &Topic| {
        let partitions = 0..store.partitions(topic).unwrap().unwrap();
        let bounds = partitions.map(|at| store.bounds(&topic.partition(at)).unwrap());
        bounds.map(|bounds| bounds.end.0 - bounds.start.0).sum::<u64>()
    };
    let own = &topics.job;
    let old = [&topics.events, &own.tokens, &own.summaries, &own.sums];
    let (before, keep) = (held(&own.instructions), Span::seconds(60));
    assert!(old.iter().all(|topic| held(topic) > 0) && before > 0);
    let retention = Retention::open(store.clone(), topics.clone(), keep).unwrap();
    let mut retention = retention.with_job();
    retention.turn(Timestamp(SECOND)).unwrap();
    assert!(old.iter().all(|topic| held(topic) > 0));
    retention.turn(Timestamp(61 * SECOND)).unwrap();
    assert!(old.iter().all(|topic| held(topic) == 0));
    assert_eq!(held(&own.instructions), before);
}

#[test]
fn plans_stay_with_the_engine_that_runs_them() {
    let recording = Recording::made(STREAMS, WINDOWS);
    let by_job = scene(&recording, Controllers::Count(1), Span::seconds(600), IDLE);
    let own = Scene::new(&recording, Controllers::Count(1));
    for (first, second) in [(&by_job, &own), (&own, &by_job)] {
        let house = House::new();
        drop(first.wake(house.stores(), 1).unwrap());
        let refused = second.wake(house.stores(), 2).err().unwrap();
        let RuntimeError::Service(ServiceError::OtherEngine { before, asked }) = &refused else {
            panic!("{refused}")
        };
        assert_eq!((*before, *asked), (first.how.engine, second.how.engine));
        assert!(refused.to_string().contains("drop their queries"), "{refused}");
        drop(first.wake(house.stores(), 3).unwrap());
    }
}
