//! Compares the local store with a plain append-only file with the same flushes: `cargo run --release -p alpheus-transport --example throughput`.
//!
//! Arguments: directory (default: the system's temporary directory), records
//! (100000), bytes per record (5500), records per flush (1000), extra milliseconds
//! per flush (0).

use alpheus_transport::local::{self, Options};
use alpheus_transport::{Batch, Limits, NewRecord, Offset, Topic};
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

struct Load {
    records: u64,
    bytes: usize,
    per_flush: u64,
    delay: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().map_or_else(std::env::temp_dir, Into::into);
    let mut number = |default: u64| args.next().map_or(Ok(default), |arg| arg.parse::<u64>());
    let load = Load {
        records: number(100_000)?,
        bytes: usize::try_from(number(5_500)?)?,
        per_flush: number(1_000)?,
        delay: Duration::from_millis(number(0)?),
    };
    let work = tempfile::tempdir_in(dir)?;
    for round in 0..2 {
        let plain = plain_file(&load, &work.path().join(format!("plain-{round}")))?;
        report("plain file", &load, plain);
        let (write, read) = store(&load, &work.path().join(format!("store-{round}")))?;
        report("local store, write", &load, write);
        report("local store, read", &load, read);
        println!("ratio of writing: {:.2}", write.as_secs_f64() / plain.as_secs_f64());
    }
    Ok(())
}

fn report(subject: &str, load: &Load, elapsed: Duration) {
    let flushes = load.records.div_ceil(load.per_flush);
    let (seconds, megabytes) =
        (elapsed.as_secs_f64(), load.records as f64 * load.bytes as f64 / 1e6);
    println!(
        "{subject:20} {:>9.0} records/s {:>7.0} MB/s {:>6.1} flushes/s",
        load.records as f64 / seconds,
        megabytes / seconds,
        flushes as f64 / seconds,
    );
}

/// The baseline: appends length and value of each record to one file.
fn plain_file(load: &Load, path: &Path) -> Result<Duration, Box<dyn Error>> {
    let value = vec![0x5a; load.bytes];
    let mut file = File::create_new(path)?;
    let mut buffer = Vec::new();
    let start = Instant::now();
    for record in 1..=load.records {
        buffer.extend_from_slice(&u32::try_from(value.len())?.to_le_bytes());
        buffer.extend_from_slice(&value);
        if record % load.per_flush == 0 || record == load.records {
            file.write_all(&buffer)?;
            file.sync_data()?;
            std::thread::sleep(load.delay);
            buffer.clear();
        }
    }
    Ok(start.elapsed())
}

fn store(load: &Load, path: &Path) -> Result<(Duration, Duration), Box<dyn Error>> {
    let mut options = Options::default();
    options.sync_delay = load.delay;
    let store = local::open(path, &options)?;
    let partition = Topic::new("events")?.partition(0);
    store.ensure_topic(&partition.topic, 1)?;
    let value = vec![0x5a; load.bytes];
    let record = NewRecord { value: &value, ..Default::default() };
    let start = Instant::now();
    let mut batch = Batch::new();
    for n in 1..=load.records {
        batch.append(&partition, &record)?;
        if n % load.per_flush == 0 || n == load.records {
            store.commit(std::mem::take(&mut batch))?;
        }
    }
    let written = start.elapsed();
    let start = Instant::now();
    let (mut from, mut seen) = (Offset(0), 0);
    while seen < load.records {
        let fetched = store.read(&partition, from, Limits::default())?;
        from = fetched.next_offset();
        seen += fetched.map(|record| u64::from(record.value.len() == load.bytes)).sum::<u64>();
    }
    Ok((written, start.elapsed()))
}
