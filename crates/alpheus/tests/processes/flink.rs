//! A deployment of processes whose sums the Flink job adds up, over a real broker: every whole row is
//! what the meters read, once, though service, job and broker are killed in between. A job that starts
//! again slowly leaves a stream out of a window. Time is that of a
//! clock which waits for all processes but those of Java, whose times are those of frames.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::broker::{Broker, prefix};
use crate::common::Process;
use crate::common::deployment::{Cluster, QUERY, Site};
use crate::common::live::Live;
use alpheus_test_support::skip;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// How far one meter may be behind another in a partition. A broker that stands still delays all,
/// and the clock does not wait for it.
const DISORDER_MILLIS: u64 = 10_000;

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
         alpheus.identity.folder={}\nalpheus.checkpoint.ms=500\nalpheus.idle.ms=10000\nalpheus.disorder.ms={DISORDER_MILLIS}\n\
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

/// A deployment with live meters and the job, which adds up the query's windows.
fn start(broker: &Broker, frames: &str, classpath: &str) -> (Live, Process, Cluster) {
    let prefix = prefix();
    let made = || Cluster { brokers: broker.open.clone(), prefix: prefix.clone(), job: true };
    let live = Live::start_in(Site::paced(frames, Some(made())));
    let flink = job(&live.running.place, &made(), classpath);
    live.ask(QUERY);
    (live, flink, made())
}

/// kill -9, and a start from the last checkpoint.
fn job_is_killed(flink: &mut Process, live: &Live, cluster: &Cluster, classpath: &str) {
    flink.kill();
    assert!(checkpoint(&live.running.place).is_some(), "{}", flink.log());
    *flink = job(&live.running.place, cluster, classpath);
    live.whole_window_since(live.now(), "the job");
}

#[test]
fn rows_are_the_plaintexts_whatever_is_killed() {
    let Some(classpath) = classpath() else { return };
    let Some(broker) = Broker::start() else { return };
    let (mut live, mut flink, cluster) = start(&broker, "frames: events\n", &classpath);
    live.whole_window_since(0, "the start");

    live.go_away(4);
    live.come_back();
    live.whole_window_since(live.now(), "the service");

    job_is_killed(&mut flink, &live, &cluster, &classpath);

    broker.order("kill");
    broker.order("start");
    live.whole_window_since(live.now(), "the broker");
    assert!(!flink.has_ended(), "{}", flink.log());
    live.whole_ones_are_true();
}

#[test]
fn rows_of_ticks_are_the_plaintexts_though_the_job_is_killed() {
    let Some(classpath) = classpath() else { return };
    let Some(broker) = Broker::start() else { return };
    let (live, mut flink, cluster) = start(&broker, "anchor: 4s\n", &classpath);
    live.whole_window_since(0, "the start");

    job_is_killed(&mut flink, &live, &cluster, &classpath);
    assert!(!flink.has_ended(), "{}", flink.log());
    live.whole_ones_are_true();
}
