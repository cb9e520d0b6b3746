//! Devices that die, come back, or fall silent for ever, in a running deployment.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_encrypted_stream::error::ExclusionError;
use alpheus_encrypted_stream::producer::Start;
use alpheus_input::rows::Cell;
use alpheus_policy::policy::Policies;
use alpheus_policy::query::{Statement, parse};
use alpheus_policy::schema::Schema;
use alpheus_stream_runtime::embedded_deployment::{Controllers, EmbeddedDeployment, Member, Pace};
use alpheus_stream_runtime::query_planner::{QueryContext, plan_query};
use alpheus_stream_runtime::results::Row;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::{Batch, NewRecord};
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::BTreeMap;

const SCHEMA: &str = "\
name: Meters
version: 1
tick: 10s
capacity: { population: 10, events: 100 }
streamAttributes:
  - { name: reading, type: integer, min: -1000, max: 1000, aggregations: [sum] }
streamPolicyOptions:
  - { name: strict, option: aggregate, clients: [1], window: 1min, alpha: 0, dropout: 0 }
  - { name: lenient, option: aggregate, clients: [1], window: 1min, alpha: 0, dropout: 0, missingTicks: 2 }
";
const QUERY: &str =
    "CREATE STREAM Readings AS SELECT SUM(reading) WINDOW TUMBLING (SIZE 1 MINUTE) FROM Meters";
const TICK: u64 = 10_000_000;
const START: u64 = 1_700_000_040_000_000;

/// Two meters under one policy option, one minute to a window.
struct Deployment {
    embedded: EmbeddedDeployment,
    rng: ChaCha20Rng,
    _folder: tempfile::TempDir,
}

impl Deployment {
    fn new(option: &str, pace: Pace) -> Self {
        Self::of("events", option, pace)
    }

    /// The same with devices that send these frames.
    fn of(frames: &str, option: &str, pace: Pace) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let schema = Schema::from_yaml(&format!("frames: {frames}\n{SCHEMA}")).unwrap();
        let policies = format!(
            "schema: Meters\nservice: s.example\ndefault: {{ reading: {{ option: {option}, clients: 1 }} }}\n"
        );
        let policies = Policies::from_yaml(&policies, &schema).unwrap();
        let member = |name: &str| Member {
            key: name.to_owned(),
            owner: name.to_owned(),
            metadata: BTreeMap::new(),
        };
        let members = [member("one"), member("two")];
        let controllers = Controllers::Count(1);
        let path = folder.path();
        let mut embedded = EmbeddedDeployment::open(
            path,
            &schema,
            &members,
            &policies,
            controllers,
            pace,
            &mut rng,
        )
        .unwrap();
        let Statement::Create(create) = parse(QUERY).unwrap() else { panic!("no query") };
        let planned = plan_query(
            &create,
            &embedded.manager.catalog,
            QueryContext::from(Timestamp(0)),
            &mut rng,
        )
        .unwrap();
        embedded.start(Timestamp(0), &planned.plans).unwrap();
        Self { embedded, rng, _folder: folder }
    }

    /// A tick in which these devices send 1, opening where they are offline; at
    /// the end of it the clock stands still until all is said.
    fn tick(&mut self, number: u64, online: &[usize], start: Start) -> Vec<Row> {
        let mut batch = Batch::new();
        self.say(number, online, start, &mut batch);
        self.embedded.store.commit(batch).unwrap();
        self.embedded.pump(Timestamp(START + (number + 1) * TICK)).unwrap()
    }

    /// What the devices send in a tick.
    fn say(&mut self, number: u64, online: &[usize], start: Start, batch: &mut Batch) {
        let (from, to) = (Timestamp(START + number * TICK), Timestamp(START + (number + 1) * TICK));
        for device in online {
            let device = &mut self.embedded.devices[*device];
            if !device.is_online() {
                device.open(start, from, &mut self.rng, batch).unwrap();
            }
            let (time, cells) = (Timestamp(from.0 + 1), [Cell::Number(1)]);
            device.event(time, &cells, &self.embedded.encoder, &mut self.rng, batch).unwrap();
            device.advance(to, &mut self.rng, batch).unwrap();
        }
    }

    /// A minute in which the second device dies in its third tick and comes
    /// back in the fifth.
    fn a_minute_with_a_death(&mut self) -> Row {
        let mut rows = Vec::new();
        for number in 0..6 {
            let again = Start::Again { now: Timestamp(START + number * TICK) };
            let start = if number == 0 { Start::First } else { again };
            let both = number != 2 && number != 3;
            rows.extend(self.tick(number, if both { &[0, 1] } else { &[0] }, start));
            if number == 1 {
                self.embedded.devices[1].crash();
            }
        }
        self.embedded.manager.service.seal(Timestamp(START + 6 * TICK));
        rows.extend(self.embedded.pump(Timestamp(START + 6 * TICK)).unwrap());
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows.remove(0)
    }
}

/// Two minutes: the second device dies in the last tick of the first one, and comes back in the
/// second tick of the other, before the first is due.
fn rows_of_a_death_between(option: &str) -> Vec<(u32, u32, String)> {
    let mut deployment = Deployment::of("ticks", option, Pace::Recorded);
    let mut rows = Vec::new();
    for number in 0..5 {
        rows.extend(deployment.tick(number, &[0, 1], Start::First));
    }
    deployment.embedded.devices[1].crash();
    let again = Start::Again { now: Timestamp(START + 7 * TICK) };
    let mut batch = Batch::new();
    for (number, online) in [(5, &[0][..]), (6, &[0]), (7, &[0, 1])] {
        deployment.say(number, online, again, &mut batch);
    }
    deployment.embedded.store.commit(batch).unwrap();
    for number in 8..12 {
        rows.extend(deployment.tick(number, &[0, 1], Start::First));
    }
    deployment.embedded.manager.service.seal(Timestamp(START + 12 * TICK));
    rows.extend(deployment.embedded.pump(Timestamp(START + 12 * TICK)).unwrap());
    let said = |row: Row| {
        assert_eq!(row.status, "ok", "{row:?}");
        (row.population, row.excluded, row.outputs[0].1.as_str().unwrap_or_default().to_owned())
    };
    rows.into_iter().map(said).collect()
}

#[test]
fn a_gap_at_a_windows_ends_is_tolerated_as_one_within() {
    let rows = rows_of_a_death_between("lenient");
    assert_eq!(rows, [(2, 0, "11".to_owned()), (2, 0, "11".to_owned())]);
    let rows = rows_of_a_death_between("strict");
    assert_eq!(rows, [(1, 1, "6".to_owned()), (1, 1, "6".to_owned())]);
}

#[test]
fn an_owner_who_allows_missing_ticks_stays_in_the_window() {
    let row = Deployment::new("lenient", Pace::Recorded).a_minute_with_a_death();
    assert_eq!((row.status.as_str(), row.population, row.excluded), ("ok", 2, 0));
    assert_eq!(row.outputs[0].1, "10");
}

#[test]
fn an_owner_who_does_not_is_left_out_by_that_name() {
    let mut deployment = Deployment::new("strict", Pace::Recorded);
    let row = deployment.a_minute_with_a_death();
    assert_eq!((row.status.as_str(), row.population, row.excluded), ("ok", 1, 1));
    assert_eq!(row.outputs[0].1, "6");
    let exclusions = &deployment.embedded.manager.service.counters.exclusions;
    assert_eq!(exclusions.get(&ExclusionError::MissingTicks), Some(&1), "{exclusions:?}");
}

#[test]
fn a_window_closes_by_the_clock_without_a_device_that_is_gone() {
    let idle = Span::seconds(30);
    let mut deployment = Deployment::new("strict", Pace::Live { timing: Timing::default(), idle });
    for number in 0..6 {
        let start = Start::First;
        let online: &[usize] = if number < 3 { &[0, 1] } else { &[0] };
        assert_eq!(deployment.tick(number, online, start), [], "tick {number}");
    }
    deployment.embedded.devices[0].crash();
    let after = |seconds: u64| Timestamp(START + 6 * TICK + seconds * 1_000_000);
    assert_eq!(deployment.embedded.pump(after(29)).unwrap(), [], "still waiting");
    let rows = deployment.embedded.pump(after(30)).unwrap();
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((row.status.as_str(), row.population, row.excluded), ("ok", 1, 1));
    assert_eq!(row.outputs[0].1, "6");
}

/// Puts frames that are none into the log, and lets the service read them.
fn feed_rubbish(size: usize, many: u64) {
    let mut deployment = Deployment::new("strict", Pace::Recorded);
    let (value, embedded) = (vec![0xff; size], &mut deployment.embedded);
    for _ in 0..many {
        let mut batch = Batch::new();
        let record = NewRecord { key: &[7; 16], value: &value, ..Default::default() };
        batch.append(&embedded.topics.events.partition(0), &record).unwrap();
        embedded.store.commit(batch).unwrap();
    }
    embedded.pump(Timestamp(START)).unwrap();
    let refused: u64 = embedded.manager.service.counters.refused_frames.values().sum();
    assert_eq!(refused, many);
    embedded.pump(Timestamp(START)).unwrap();
}

#[test]
fn many_bad_frames_do_not_stop_the_service() {
    feed_rubbish(8 << 20, 9);
}

#[test]
fn one_large_bad_frame_does_not_stop_the_service() {
    feed_rubbish((16 << 20) - 64, 1);
}
