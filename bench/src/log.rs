//! The embedded log, compared with a plain append-only file with the same batches.

use crate::BenchError;
use crate::floors;
use crate::measure::Comparison;
use crate::report::{Figure, Goal};
use alpheus_transport::local::{self, Options};
use alpheus_transport::{Batch, NewRecord, Store, Topic};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of a record: a frame of 683 words.
const RECORD: usize = 8 * 684 + 40;
/// Records of a batch.
const BATCH: usize = 1_000;
/// Batches of a sample.
const BATCHES: usize = 8;

/// Time for each record, ours and a plain file's, and fsyncs a second, with the
/// disk as it is and with 2 ms more for each fsync. Wall-clock time.
pub(crate) fn figures(
    directory: &Path,
    repeats: usize,
    mut say: impl FnMut(&str),
) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    for (delay, how) in
        [(Duration::ZERO, ""), (Duration::from_millis(2), ", 2 ms more for each fsync")]
    {
        say(&format!("log: {BATCH} records of {RECORD} bytes a batch{how}"));
        let samples = (0..repeats)
            .map(|_| sample(directory, delay))
            .collect::<Result<Vec<_>, BenchError>>()?;
        let compared =
            Comparison::of(&samples.iter().map(|it| (it.file, it.log)).collect::<Vec<_>>());
        let name = format!("a record of {RECORD} bytes, {BATCH} a batch{how}");
        let fsyncs = samples.iter().map(|it| it.fsyncs).fold(0.0, f64::max);
        figures
            .push(Figure::compared("log", name, "ns", compared).with_goal(Goal::RatioAtMost(2.5)));
        figures.push(Figure::alone("log", format!("fsyncs a second{how}"), "1/s", fsyncs));
    }
    Ok(figures)
}

struct Sample {
    /// Nanoseconds a record.
    file: f64,
    log: f64,
    fsyncs: f64,
}

fn sample(directory: &Path, delay: Duration) -> Result<Sample, BenchError> {
    let directory = tempfile::tempdir_in(directory)?;
    let record: Vec<u8> = (0..RECORD).map(|i| (i * i).to_le_bytes()[0]).collect();
    let mut file = floors::log::Log::create(&directory.path().join("file"), delay)?;
    let records = vec![record.as_slice(); BATCH];
    let start = Instant::now();
    for _ in 0..BATCHES {
        file.commit(&records)?;
    }
    let file = start.elapsed();

    let mut options = Options::default();
    options.sync_delay = delay;
    let store = local::open(&directory.path().join("log"), &options)?;
    let topic = Topic::new("bench")?;
    store.ensure_topic(&topic, 1)?;
    let before = store.stats().syncs;
    let start = Instant::now();
    for _ in 0..BATCHES {
        commit(store.as_ref(), &topic, &records)?;
    }
    let log = start.elapsed();
    let fsyncs = (store.stats().syncs - before) as f64 / log.as_secs_f64();
    let each = |time: Duration| time.as_secs_f64() * 1e9 / (BATCH * BATCHES) as f64;
    Ok(Sample { file: each(file), log: each(log), fsyncs })
}

fn commit(store: &dyn Store, topic: &Topic, records: &[&[u8]]) -> Result<(), BenchError> {
    let (mut batch, partition) = (Batch::new(), topic.partition(0));
    for value in records {
        let record = NewRecord { key: b"a stream's id 16", value, timestamp: 0, headers: &[] };
        batch.append(&partition, &record)?;
    }
    store.commit(batch)?;
    Ok(())
}
