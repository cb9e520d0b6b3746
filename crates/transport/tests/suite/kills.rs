//! kill -9 at random moments. This test binary runs itself as a child that writes and
//! processes records, kills it, and checks the store.
//!
//! `ALPHEUS_KILLS` sets the number of kills (20 by default). `ALPHEUS_SEED` sets the seed.

use crate::world::*;
#[cfg(feature = "kafka")]
use alpheus_transport::kafka;
use alpheus_transport::local;
use alpheus_transport::{Batch, Error, Limits, Partition, Store};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const CHILD: &str = "ALPHEUS_TEST_KILLED_CHILD";

pub(crate) fn parameter(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// Opens a directory, or the store named by `kafka BROKER PREFIX`.
fn open(location: &str) -> Arc<dyn Store> {
    #[cfg(feature = "kafka")]
    if let Some((broker, prefix)) =
        location.strip_prefix("kafka ").and_then(|it| it.split_once(' '))
    {
        return kafka::open(&kafka::Options::new(broker, prefix)).unwrap();
    }
    let mut options = options();
    // Small, so that memtables are flushed and journals rotated during the kills.
    options.memtable = 1 << 20;
    local::open(Path::new(location), &options).unwrap()
}

pub(crate) fn prepare(store: &dyn Store) {
    store.ensure_topic(&topic("in"), 2).unwrap();
    store.ensure_topic(&topic("out"), 1).unwrap();
    store.ensure_space(&space()).unwrap();
}

/// Fills pages: batches have about 20 KB.
const PADDING: [u8; 10_000] = [0xa5; 10_000];

/// Appends batch `n` to both partitions and stores `n` as the count.
pub(crate) fn produce(store: &dyn Store, n: u64) {
    let mut batch = Batch::new();
    for index in 0..2 {
        let value = [&n.to_le_bytes(), &PADDING[..]].concat();
        batch.append(&topic("in").partition(index), &record(&value)).unwrap();
    }
    batch.put(&space(), "count", n.to_le_bytes().to_vec()).unwrap();
    store.commit(batch).unwrap();
}

pub(crate) fn input() -> Partition {
    topic("in").partition(0)
}

/// Sums the new records of partition 0, exactly once.
pub(crate) fn process(store: &dyn Store) -> Result<bool, Error> {
    let (input, output) = (input(), topic("out").partition(0));
    let from = store.position(&group(), &input)?.unwrap_or_default();
    let mut sum = store.get(&space(), b"sum")?.map_or(0, |value| number(&value));
    let fetched = store.read(&input, from, Limits { records: 5, bytes: 1 << 20 })?;
    let next = fetched.next_offset();
    let mut batch = Batch::new();
    for read in fetched {
        sum += number(&read.value[..8]);
        batch.append(&output, &record(&sum.to_le_bytes()))?;
    }
    let is_more = !batch.is_empty();
    batch.put(&space(), "sum", sum.to_le_bytes().to_vec())?;
    batch.set_position(&group(), &input, next);
    store.commit(batch)?;
    Ok(is_more)
}

/// Not a test: the program of the child.
#[test]
fn child() {
    let Ok(location) = std::env::var(CHILD) else { return };
    let store = open(&location);
    prepare(&*store);
    let operator = Arc::clone(&store);
    std::thread::spawn(move || while process(&*operator).is_ok() {});
    let mut n = store.get(&space(), b"count").unwrap().map_or(0, |value| number(&value));
    loop {
        n += 1;
        produce(&*store, n);
        writeln!(std::io::stdout(), "acknowledged {n}").unwrap();
    }
}

fn spawn(location: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::child", "--nocapture"])
        .env(CHILD, location)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// From when on a child lives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// Its start.
    Started,
    /// Its first batch, however long that takes.
    Wrote,
}

/// Runs a child for `life` and kills it. Returns the last batch that it reported as
/// acknowledged.
pub(crate) fn run_and_kill(location: &str, from: Life, life: Duration) -> Option<u64> {
    let mut child = spawn(location);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let lines = lines.map_while(Result::ok);
    let mut numbers =
        lines.filter_map(|line| line.strip_prefix("acknowledged ")?.parse::<u64>().ok());
    let first = if from == Life::Wrote { numbers.next() } else { None };
    std::thread::sleep(life);
    child.kill().unwrap();
    child.wait().unwrap();
    numbers.last().or(first)
}

/// Checks that the content of the store is consistent, and returns its count of batches.
pub(crate) fn check(store: &dyn Store, acknowledged: u64) -> u64 {
    prepare(store);
    let count = store.get(&space(), b"count").unwrap().map_or(0, |value| number(&value));
    assert!(
        count >= acknowledged,
        "batch {acknowledged} was acknowledged, but there are only {count}"
    );
    for index in 0..2 {
        let read: Vec<_> = values(store, &topic("in").partition(index))
            .iter()
            .map(|value| number(&value[..8]))
            .collect();
        assert_eq!(read, (1..=count).collect::<Vec<_>>(), "in/{index}");
    }
    let position = offset_of(store, &topic("in").partition(0));
    let read = read_all(store, &topic("in").partition(0));
    let processed = read.iter().filter(|record| record.offset < position).count() as u64;
    let sums: Vec<_> =
        values(store, &topic("out").partition(0)).iter().map(|v| number(v)).collect();
    assert_eq!(sums, (1..=processed).map(|n| n * (n + 1) / 2).collect::<Vec<_>>());
    count
}

#[test]
fn kill_nine_loses_no_acknowledged_batch_and_tears_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let location = path.to_str().unwrap();
    let mut seeded = SplitMix(parameter("ALPHEUS_SEED", 1));
    let mut count = 0;
    for kill in 0..parameter("ALPHEUS_KILLS", 20) {
        // Some are killed while they start.
        let (from, most) = if kill % 4 == 0 { (Life::Started, 20) } else { (Life::Wrote, 100) };
        let life = Duration::from_millis(seeded.below(most));
        let acknowledged = run_and_kill(location, from, life).unwrap_or(count);
        count = check(&*open(location), acknowledged.max(count));
    }
    assert!(count > 20, "the children were killed too early: {count} batches");
}
