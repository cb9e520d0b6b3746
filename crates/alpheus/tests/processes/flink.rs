//! A deployment of processes whose sums the Flink job adds up, over a real broker: rows are
//! the plaintext's, once each, though service, job and broker are killed in between.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::broker::{Broker, prefix};
use crate::common::deployment::{Cluster, QUERY, RunningSite, Site};
use crate::common::{PATIENCE, Process};
use alpheus_test_support::skip;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Seconds until the first reading, in which all meters of a machine that does much else start.
const START: u64 = 45;

/// Readings of each house in one feed, a second apart.
const READINGS: u64 = 40;

/// A meter sends all readings of its file at once. The last one must not lie so far ahead of
/// the clock that the job sets it aside.
const SKEW_MILLIS: u64 = 1000 * (START + READINGS + 35);

/// What runs the job, if this machine has it.
fn classpath() -> Option<String> {
    let made = concat!(env!("CARGO_MANIFEST_DIR"), "/../../jvm/flink-job/target/classpath");
    let classpath = skip::class_path("ALPHEUS_TEST_JOB_CLASSPATH", made);
    let classes = concat!(env!("CARGO_MANIFEST_DIR"), "/../../jvm/flink-job/target/classes");
    classpath.map(|classpath| format!("{classes}:{classpath}"))
}

/// The job's last checkpoint, if it has come to one.
fn checkpoint(place: &Site) -> Option<PathBuf> {
    let folders = |of: PathBuf| fs::read_dir(of).into_iter().flatten().flatten();
    let runs = folders(place.path("checkpoints"));
    let kept = runs.flat_map(|run| folders(run.path())).map(|kept| kept.path().join("_metadata"));
    let whole = kept.filter_map(|file| Some((fs::metadata(&file).ok()?.modified().ok()?, file)));
    whole.max().and_then(|(_, file)| Some(file.parent()?.to_owned()))
}

/// Starts the job on a cluster of its own process, from its last checkpoint.
fn job(place: &Site, cluster: &Cluster, classpath: &str) -> Process {
    // The job has the service's ingest keys, for a schema with one frame a tick.
    let identity = place.path("pki/service");
    let topics = format!("{}run-service.", cluster.prefix);
    let mut settings = format!(
        "bootstrap.servers={}\nalpheus.schema={}\nalpheus.job={topics}job\n\
         alpheus.identity.folder={}\nalpheus.checkpoint.ms=500\nalpheus.idle.ms=10000\nalpheus.disorder.ms=0\n\
         alpheus.skew.ms={SKEW_MILLIS}\n\
         flink.execution.checkpointing.dir=file://{}\n",
        cluster.brokers,
        place.path("schema.yaml").display(),
        identity.display(),
        place.path("checkpoints").display(),
    );
    if let Some(kept) = checkpoint(place) {
        let path = format!("flink.execution.state-recovery.path=file://{}\n", kept.display());
        settings.push_str(&path);
    }
    for topic in ["events", "instructions", "tokens", "summaries", "sums", "dead-letters"] {
        settings.push_str(&format!("alpheus.topic.{topic}={topics}{topic}\n"));
    }
    fs::write(place.path("job.properties"), settings).unwrap();
    let mut command = Command::new("java");
    let opens =
        ["java.util", "java.lang"].map(|of| format!("--add-opens=java.base/{of}=ALL-UNNAMED"));
    // A job that lives for seconds is not worth a second compiler.
    command.args(opens).args([
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xmx512m",
        "-cp",
        classpath,
    ]);
    command.arg("alpheus.flink.WindowSumsJob");
    Process::start(command.arg(place.path("job.properties")).stdin(Stdio::null()))
}

/// The windows of all three houses that were opened; every row is right and there once.
fn windows(running: &RunningSite) -> BTreeSet<String> {
    let (mut windows, mut whole) = (BTreeSet::new(), BTreeSet::new());
    for row in running.place.rows(&running.server) {
        let start = row["window_start"].to_string();
        assert!(windows.insert(start.clone()), "a window twice: {row}");
        if row["status"] != "ok" || row["population"] != 3 {
            continue;
        }
        // Each house's number, as often as it was read.
        let sum: u64 = row["sum_reading"].as_str().unwrap().parse().unwrap();
        assert_eq!(sum, 2 * row["count_reading"].as_u64().unwrap(), "{row}");
        if row["count_reading"] == 6 {
            whole.insert(start);
        }
    }
    whole
}

/// Waits for so many whole windows: a broker, a cluster and a job take their time to start.
fn at_least(running: &RunningSite, many: usize, after: &str) -> BTreeSet<String> {
    let end = Instant::now() + PATIENCE;
    loop {
        let windows = windows(running);
        if windows.len() >= many {
            return windows;
        }
        assert!(
            Instant::now() < end,
            "{} of {many} whole windows after {after}:\n{}",
            windows.len(),
            running.service.log(),
        );
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn rows_are_the_plaintexts_whatever_is_killed() {
    let Some(classpath) = classpath() else { return };
    let Some(broker) = Broker::start() else { return };
    let prefix = prefix();
    let made = || Cluster { brokers: broker.open.clone(), prefix: prefix.clone(), job: true };
    let place = Site::with_state_in(Some(made()));
    let mut running = RunningSite::start_in(place, |_, api| api.to_owned());
    let mut flink = job(&running.place, &made(), &classpath);
    let asked = running.place.ask(&running.server, QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let mut devices = running.feed_in(START, READINGS);
    let seen = at_least(&running, 1, "the start").len();

    running.service.kill();
    let api = running.server.strip_prefix("https://").unwrap().to_owned();
    running.service = running.place.server(&api);
    let seen = at_least(&running, seen + 1, "the service").len();

    flink.kill();
    flink = job(&running.place, &made(), &classpath);
    let seen = at_least(&running, seen + 1, "the job").len();

    devices.iter_mut().for_each(|device| assert!(device.wait().success()));
    broker.order("kill");
    broker.order("start");
    let _devices = running.feed_in(START, READINGS);
    at_least(&running, seen + 1, "the broker");
    assert!(!flink.has_ended(), "{}", flink.log());
    // Forty readings of each house, a second apart, and forty more, make so many whole windows;
    // behind the last one nothing comes that would end it.
    let all = at_least(&running, 2 * 19 - 1, "all of it");
    assert!(all.len() <= 2 * 20, "{all:?}");
}

#[test]
fn rows_of_ticks_are_the_plaintexts_though_the_job_is_killed() {
    let Some(classpath) = classpath() else { return };
    let Some(broker) = Broker::start() else { return };
    let prefix = prefix();
    let made = || Cluster { brokers: broker.open.clone(), prefix: prefix.clone(), job: true };
    let running = RunningSite::start_in(Site::with_ticks_in(Some(made())), |_, api| api.to_owned());
    let mut flink = job(&running.place, &made(), &classpath);
    let asked = running.place.ask(&running.server, QUERY);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let _devices = running.feed_in(START, READINGS);
    let seen = at_least(&running, 1, "the start").len();

    flink.kill();
    flink = job(&running.place, &made(), &classpath);
    at_least(&running, seen + 1, "the job");
    // Behind the last window nothing comes that would end it.
    let all = at_least(&running, 18, "all of it");
    assert!(!flink.has_ended() && all.len() <= 20, "{all:?}");
}
