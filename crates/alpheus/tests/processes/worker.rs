//! A deployment whose sums a group of workers adds up. Rows are the plaintext's, once each, though
//! workers are killed, added and removed: played in this process, and as processes over a real broker.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::broker::{Broker, prefix};
use crate::common::deployment::{Cluster, QUERY, RunningSite, Site, until};
use crate::common::embedded_replay::Scene;
use crate::common::recording::{BASE, Draw, Recording, Result as Row, WINDOW, check};
use crate::common::{Process, free_address, get};
use alpheus_encrypted_stream::coordinator::Timing;
use alpheus_encrypted_stream::transformer::Shape;
use alpheus_node::service::health::Health;
use alpheus_node::service::heartbeat::Heart;
use alpheus_policy::layout::Layout;
use alpheus_stream_runtime::embedded_deployment::{
    Controllers, EmbeddedDeployment, Pace as Run, RunOptions, Stores,
};
use alpheus_stream_runtime::engine_kind::EngineKind;
use alpheus_stream_runtime::error::RuntimeError;
use alpheus_stream_runtime::storage::read_on;
use alpheus_time::{Span, Timestamp};
use alpheus_transport::simulation::Machine;
use alpheus_transport::{Ownership, Partition, Record, Store};
use alpheus_worker::group::{Group, Names, Work};
use alpheus_worker::lane::Pace;
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

const STREAMS: u64 = 4;
const WINDOWS: u64 = 24;
const SECOND: u64 = 1_000_000;
/// The service waits for what workers report, however long that takes.
const PATIENT: Span = Span::seconds(10_000);
/// Partitions of events in this process.
const PARTITIONS: u32 = 4;

fn scene(recording: &Recording, controllers: Controllers, ticks: bool) -> Scene {
    let timing = Timing {
        sums: Span::seconds(600),
        presence: Span::seconds(600),
        tokens: Span::seconds(600),
        ..Timing::default()
    };
    let how = RunOptions { pace: Run::Live { timing, idle: PATIENT }, engine: EngineKind::Job };
    let scene = if ticks {
        Scene::with_ticks(recording, controllers)
    } else {
        Scene::new(recording, controllers)
    };
    Scene { from: Timestamp(BASE * SECOND), how, ..scene }
}

/// Workers that share all partitions, and are killed, added and removed as the draw will have it.
struct Workers {
    draw: Draw,
    groups: Vec<(Group, BTreeSet<Partition>)>,
    kills: u32,
    moves: u32,
}

impl Workers {
    fn made(&mut self, scene: &Scene, embedded: &EmbeddedDeployment) -> Group {
        let names = Names::new(PARTITIONS).unwrap();
        for topic in [&names.journals, &names.parts] {
            embedded.store.ensure_topic(topic, PARTITIONS).unwrap();
        }
        let shape = Shape::of(&scene.schema, &Layout::of(&scene.schema).unwrap(), Span(0));
        let idle = Span::seconds(WINDOW);
        let pace = Pace { disorder: Span(0), idle, skew: Span::seconds(1 << 20) };
        // Some commit at once, and some nothing until they give a partition up.
        let commit = if self.draw.below(3) > 0 { Duration::ZERO } else { Duration::MAX };
        let ingest = (!scene.schema.frames.is_events()).then(|| embedded.ingest().unwrap());
        let counted = (alpheus_worker::Meter::default(), Heart::watched(&Health::new(), "worker"));
        let work = Work { names, shape, pace, commit };
        Group::open(embedded.store.clone(), work, ingest, counted).unwrap()
    }

    fn give(&mut self, to: usize, partitions: BTreeSet<Partition>) {
        let (group, own) = &mut self.groups[to];
        group.change(Ownership::Gained(partitions.iter().cloned().collect())).unwrap();
        own.extend(partitions);
    }

    /// Something may happen to one of them, and then all work.
    fn turn(&mut self, scene: &Scene, embedded: &EmbeddedDeployment, clock: Timestamp) {
        self.suffer(scene, embedded);
        self.work(clock);
    }

    fn suffer(&mut self, scene: &Scene, embedded: &EmbeddedDeployment) {
        if self.groups.is_empty() {
            let group = self.made(scene, embedded);
            let all =
                group.shared().map(|topic| (0..PARTITIONS).map(move |at| topic.partition(at)));
            let all = all.into_iter().flatten().collect();
            self.groups.push((group, BTreeSet::new()));
            self.give(0, all);
        }
        let one = usize::try_from(self.draw.below(self.groups.len() as u64)).unwrap();
        match self.draw.below(8) {
            0 => {
                // As by kill -9: another takes over what it had.
                let (killed, own) = self.groups.swap_remove(one);
                drop(killed);
                let group = self.made(scene, embedded);
                self.groups.push((group, BTreeSet::new()));
                let heir = usize::try_from(self.draw.below(self.groups.len() as u64)).unwrap();
                self.give(heir, own);
                self.kills += 1;
            }
            1 => {
                // One is added, or gets more: some of another's partitions move.
                if self.groups.len() < 3 {
                    let group = self.made(scene, embedded);
                    self.groups.push((group, BTreeSet::new()));
                }
                let half = self.groups[one].1.len() / 2;
                let moved: BTreeSet<_> = self.groups[one].1.iter().take(half).cloned().collect();
                let (group, own) = &mut self.groups[one];
                group.change(Ownership::Leaving(moved.iter().cloned().collect())).unwrap();
                own.retain(|partition| !moved.contains(partition));
                let last = self.groups.len() - 1;
                self.give(last, moved);
                self.moves += 1;
            }
            _ => {}
        }
    }

    fn work(&mut self, clock: Timestamp) {
        for (group, _) in &mut self.groups {
            group.turn(clock).unwrap();
        }
    }

    /// Everybody speaks out.
    fn end(&mut self) {
        self.groups.iter_mut().for_each(|(group, _)| group.end().unwrap());
    }
}

/// Rows of a service beside workers, and how often those were killed and moved.
fn rows(scene: &Scene, seed: u64) -> Result<(Vec<Row>, u32, u32), RuntimeError> {
    let (service, private, fence) = (Machine::new(), Machine::new(), tempfile::tempdir().unwrap());
    let stores = Stores {
        service: service.open().unwrap(),
        private: private.open().unwrap(),
        fence: fence.path().join("fence"),
    };
    let mut workers = Workers { draw: Draw(seed), groups: Vec::new(), kills: 0, moves: 0 };
    let mut life = scene.wake(stores, 1)?;
    let fed = life.feed_beside(
        || Some(1),
        |embedded, clock| {
            workers.turn(scene, embedded, clock);
            embedded.pump(clock).map(|_| ())
        },
    )?;
    assert!(fed);
    // The clock closes the last windows, and none after them.
    let end = Timestamp((BASE + WINDOWS * WINDOW) * SECOND);
    for second in 0..2 * WINDOW {
        let clock = end.plus(Span::seconds(second));
        workers.work(clock);
        workers.end();
        life.embedded.pump(clock)?;
    }
    for _ in 0..3 {
        workers.work(end.plus(Span::seconds(2 * WINDOW - 1)));
        workers.end();
        life.embedded.pump(end.plus(Span::seconds(2 * WINDOW)))?;
    }
    nothing_twice(life.embedded.store.as_ref());
    Ok((life.results(), workers.kills, workers.moves))
}

/// Reports and sums were said once each, although workers were killed before or after.
fn nothing_twice(store: &dyn Store) {
    let Names { topics, parts, .. } = Names::new(PARTITIONS).unwrap();
    let mut said = BTreeSet::new();
    for topic in [&topics.job.summaries, &topics.job.sums, &parts] {
        for number in 0..store.partitions(topic).unwrap().unwrap() {
            let mut position = store.bounds(&topic.partition(number)).unwrap().start;
            read_on(store, &topic.partition(number), &mut position, |fetched| {
                let is_said = |record: &Record| {
                    !record.key.starts_with(b"progress/")
                        && record.key != alpheus_worker::joiner::KEY
                };
                for record in fetched.filter(is_said) {
                    // Parts of a window have one key.
                    let of = if *topic == parts { &record.value } else { &record.key };
                    let once = said.insert((topic.clone(), of.to_vec()));
                    assert!(once, "twice in {topic}: {:?}", record.key);
                }
                Ok::<(), alpheus_transport::Error>(())
            })
            .unwrap();
        }
    }
    assert!(said.len() > 3 * usize::try_from(WINDOWS).unwrap(), "{}", said.len());
}

#[test]
fn rows_are_those_of_a_service_that_adds_up_itself() {
    let (mut kills, mut moves) = (0, 0);
    for seed in 0..6 {
        let recording = Recording::made(STREAMS, WINDOWS);
        for (controllers, ticks) in [
            (Controllers::Count(1), false),
            (Controllers::PerOwner, false),
            (Controllers::PerOwner, true),
        ] {
            let (rows, killed, moved) = rows(&scene(&recording, controllers, ticks), seed).unwrap();
            let about = format!("seed {seed}, {controllers:?}, ticks: {ticks}");
            let missing = check(&rows, &recording.truth(), &about);
            assert!(missing.is_empty(), "{about}: {missing:?} of {rows:?}");
            let opened = rows.iter().filter(|row| row.status == "ok").count() as u64;
            assert!(opened > WINDOWS / 2, "{about}: {rows:?}");
            (kills, moves) = (kills + killed, moves + moved);
        }
    }
    assert!(kills > 20 && moves > 20, "{kills} kills, {moves} moves");
}

/// Seconds until the first reading. Meters send all at once, and workers start after them: no machine is
/// too slow for this.
const START: u64 = 6;
/// Readings of each house, a second apart.
const READINGS: u64 = 14;

/// Starts a worker; it has taken part when this returns.
fn worker(place: &Site, cluster: &Cluster) -> Process {
    // If it is killed it is missed soon.
    worker_at(place, cluster, free_address(), 6)
}

/// A worker that shows its metrics at `listen`, and is missed after so many seconds.
fn worker_at(place: &Site, cluster: &Cluster, listen: SocketAddr, missed: u32) -> Process {
    let mut command = command(place, cluster, missed);
    let mut process = Process::start(command.args(["--listen", &listen.to_string()]));
    process.wait_for_prefix("taking part");
    process
}

/// How many of the partitions a worker has, in both topics.
fn owned(listen: SocketAddr) -> u32 {
    let metrics = get(listen, "/metrics").unwrap().1;
    let count = |name: &str| -> u32 {
        let count = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        count.trim().parse().unwrap()
    };
    count("alpheus_worker_partitions ") + count("alpheus_worker_part_partitions ")
}

fn command(place: &Site, cluster: &Cluster, missed: u32) -> Command {
    let properties = format!("session.timeout.ms={missed}000\nheartbeat.interval.ms=1000\n");
    let file = format!("kafka-{missed}.properties");
    fs::write(place.path(&file), properties).unwrap();
    let prefix = format!("{}run-service.", cluster.prefix);
    let mut command = place.command(&[
        "worker",
        "--identity",
        "pki/service",
        "--schema",
        "schema.yaml",
        "--kafka-brokers",
        &cluster.brokers,
        "--kafka-prefix",
        &prefix,
        "--kafka-properties",
        &file,
        "--disorder",
        "1",
        "--idle",
        "10",
        "--skew",
        "300",
    ]);
    command.env("ALPHEUS_LOG", "info");
    command
}

/// The starts of the windows in which every meter has two readings, in milliseconds.
fn expected(place: &Site) -> BTreeSet<u64> {
    let lines = fs::read_to_string(place.path("a.json")).unwrap();
    let at = |line: &str| -> u64 {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["at"].as_u64().unwrap()
    };
    let all: BTreeSet<u64> = lines.lines().map(at).collect();
    let start = |at: &u64| at / 2000 * 2000;
    let windows = all.iter().map(start);
    windows.filter(|from| [500, 1500].iter().all(|at| all.contains(&(from + at)))).collect()
}

/// How many of the expected windows are there, each once and as the plaintext is.
fn whole(running: &RunningSite, expected: &BTreeSet<u64>) -> usize {
    let mut windows = BTreeSet::new();
    for row in running.place.rows(&running.server) {
        let start = row["window_start"].as_u64().unwrap();
        assert!(windows.insert(start), "a window twice: {row}");
        if expected.contains(&start) {
            assert_eq!(row["status"], "ok", "{row}");
            let counts = (row["population"].as_u64(), row["count_reading"].as_u64());
            assert_eq!(counts, (Some(3), Some(6)), "{row}");
            assert_eq!(row["sum_reading"], "12", "{row}");
        } else {
            // Sessions begin or end in it, or nobody is online.
            assert_eq!(row["population"], 0, "{row}");
        }
    }
    windows.intersection(expected).count()
}

/// Waits for another whole window, if there is one to come.
fn more_than(running: &RunningSite, seen: usize, expected: &BTreeSet<u64>) -> usize {
    until("whole window", || {
        let many = whole(running, expected);
        (many > seen || many == expected.len()).then_some(many)
    })
}

#[test]
fn rows_are_the_plaintexts_though_workers_are_killed_added_and_removed() {
    let Some(broker) = Broker::start() else { return };
    let prefix = prefix();
    let made = || Cluster { brokers: broker.open.clone(), prefix: prefix.clone(), job: true };
    let running = RunningSite::start_in(Site::with_ticks_in(Some(made())), |_, api| api.to_owned());
    let asked = running.place.ask(&running.server, QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let mut devices = running.feed_in(START, READINGS);
    devices.iter_mut().for_each(|device| assert!(device.wait().success()));
    let expected = expected(&running.place);
    assert!(expected.len() as u64 >= READINGS / 2 - 1);
    let mut first = worker(&running.place, &made());
    let mut second = worker(&running.place, &made());
    let seen = more_than(&running, 0, &expected);

    first.kill();
    let third_at = free_address();
    // This one is never missed.
    let third = worker_at(&running.place, &made(), third_at, 60);
    let seen = more_than(&running, seen, &expected);
    // The group settles, and then both have some.
    until("even shares", || (owned(third_at) == PARTITIONS).then_some(()));

    // While it stands its partitions become the third's, and what it does then counts for nothing.
    second.freeze();
    until("takeover of all partitions", || (owned(third_at) == 2 * PARTITIONS).then_some(()));
    second.thaw();
    let again = |line: &str| line.contains("joins the group again").then_some(());
    second.wait_for("another joining", again);

    // Who is asked to end in the meantime has nothing left to do.
    until("even shares again", || (owned(third_at) == PARTITIONS).then_some(()));
    second.freeze();
    until("another takeover", || (owned(third_at) == 2 * PARTITIONS).then_some(()));
    second.terminate();
    second.thaw();
    assert!(second.wait().success(), "{}", second.log());
    more_than(&running, seen, &expected);
    more_than(&running, usize::MAX, &expected);
    // The third may join again, but only since the group refused a commit that met a new division, or
    // since the broker of a busy machine answered too late.
    let log = third.log();
    let mut again = log.lines().filter(|line| line.contains("again"));
    let reasons = ["gave this process's partitions to others", "answered in time"];
    assert!(again.all(|line| reasons.iter().any(|reason| line.contains(reason))), "{log}");
}
