//! A job without encryption over the same log: the same batches, partitions and
//! durable result rows.

use super::application::{Application, START, WINDOW};
use super::clock::{measured, measured_here};
use super::{Cost, EVENTS};
use crate::BenchError;
use alpheus_encrypted_stream::decode::decode;
use alpheus_input::rows::Cell;
use alpheus_policy::select::ReleasePlan;
use alpheus_transport::{
    Batch, Limits, NewRecord, Offset, Partition, Space, Store, Topic, local, partition_for_key,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// As many as ours has.
const PARTITIONS: u32 = 4;
const DATA: u8 = 0;
/// A device has sent all of a window.
const BORDER: u8 = 1;

/// What the job writes, and what it makes of it.
pub(super) trait Job {
    /// Appends what a device sends of an event.
    fn write(&mut self, values: &[Cell], frame: &mut Vec<u8>) -> Result<(), BenchError>;
    /// Takes what a device sent.
    fn take(&mut self, device: [u8; 16], frame: &[u8]) -> Result<(), BenchError>;
    /// A device's window is whole.
    fn border(&mut self, device: [u8; 16]);
    /// The released rows of a window that is over.
    fn rows(&mut self) -> Vec<u64>;
}

/// Runs windows through a fresh log.
pub(super) fn run<J: Job>(
    folder: &Path,
    application: &Application,
    producers: u32,
    select: &ReleasePlan,
    job: J,
    windows: usize,
) -> Result<Vec<Cost>, BenchError> {
    let store = local::open(folder, &local::Options::default())?;
    let (events, results) = (Topic::new("events")?, Topic::new("results")?);
    let space = Space::new("service")?;
    store.ensure_topic(&events, PARTITIONS)?;
    store.ensure_topic(&results, 1)?;
    store.ensure_space(&space)?;
    let devices = (0..producers).map(|number| device(number, &events)).collect();
    let positions = vec![Offset(0); PARTITIONS as usize];
    let log = Log { store, events, results, space, positions, devices, borders: 0 };
    let mut plain = Plain { application, select, log, job };
    (0..windows).map(|window| plain.window(window)).collect()
}

fn device(number: u32, events: &Topic) -> ([u8; 16], Partition) {
    // Spread like ids that are drawn at random.
    let key = (u128::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    let key = key.to_le_bytes();
    (key, events.partition(partition_for_key(&key, PARTITIONS)))
}

struct Log {
    store: Arc<dyn Store>,
    events: Topic,
    results: Topic,
    space: Space,
    positions: Vec<Offset>,
    devices: Vec<([u8; 16], Partition)>,
    borders: usize,
}

struct Plain<'a, J> {
    application: &'a Application,
    select: &'a ReleasePlan,
    log: Log,
    job: J,
}

impl<J: Job> Plain<'_, J> {
    fn window(&mut self, window: usize) -> Result<Cost, BenchError> {
        let mut cost = Cost::default();
        let flushed = self.log.store.stats().syncs;
        for step in 0..EVENTS {
            let time = START.0
                + window as u64 * WINDOW.0
                + 1
                + u64::from(step) * WINDOW.0 / u64::from(EVENTS);
            let number = window * EVENTS as usize + step as usize;
            let batch = measured_here(&mut cost.devices, || self.events(time, number))?;
            measured(&mut cost.append, || self.log.store.commit(batch))?;
            measured_here(&mut cost.ingest, || self.ingest())?;
        }
        let batch = measured_here(&mut cost.devices, || self.log.border_everywhere())?;
        measured(&mut cost.append, || self.log.store.commit(batch))?;
        let began = Instant::now();
        measured_here(&mut cost.ingest, || self.ingest())?;
        cost.outputs = measured(&mut cost.close, || self.close())?;
        cost.delay = began.elapsed().as_secs_f64() * 1e3;
        cost.flushes = (self.log.store.stats().syncs - flushed) as f64;
        Ok(cost)
    }

    fn events(&mut self, time: u64, number: usize) -> Result<Batch, BenchError> {
        let (mut batch, mut frame) = (Batch::new(), Vec::new());
        for (at, (key, partition)) in self.log.devices.iter().enumerate() {
            frame.clear();
            frame.push(DATA);
            frame.extend_from_slice(&[0; 8]);
            frame.extend_from_slice(&time.to_le_bytes());
            frame.extend_from_slice(&time.to_le_bytes());
            self.job.write(self.application.event(at, number), &mut frame)?;
            let record = NewRecord { key, value: &frame, timestamp: time, headers: &[] };
            batch.append(partition, &record)?;
        }
        Ok(batch)
    }

    fn ingest(&mut self) -> Result<(), BenchError> {
        for partition in 0..PARTITIONS {
            let topic = self.log.events.partition(partition);
            loop {
                let position = self.log.positions[partition as usize];
                let fetched = self.log.store.read(&topic, position, Limits::default())?;
                let next = fetched.next_offset();
                if next == position {
                    break;
                }
                for record in fetched {
                    let device = record.key.as_ref().try_into().unwrap_or([0; 16]);
                    match record.value.split_first_chunk::<25>() {
                        Some(([DATA, ..], rest)) => self.job.take(device, rest)?,
                        _ => {
                            self.job.border(device);
                            self.log.borders += 1;
                        }
                    }
                }
                self.log.positions[partition as usize] = next;
            }
        }
        Ok(())
    }

    /// The row and the positions in one commit.
    fn close(&mut self) -> Result<Vec<(String, serde_json::Value)>, BenchError> {
        if self.log.borders != self.log.devices.len() {
            return Err(BenchError::Window("a border is missing".to_owned()));
        }
        self.log.borders = 0;
        let outputs = decode(self.select, &self.job.rows()).map_err(|_| BenchError::Query)?;
        let named = self.select.items.iter().zip(outputs).map(|(item, output)| {
            (item.alias.clone(), serde_json::to_value(output).unwrap_or_default())
        });
        let named: Vec<_> = named.collect();
        let value = serde_json::to_vec(&named).map_err(|_| BenchError::Query)?;
        let mut batch = Batch::new();
        let record = NewRecord { value: &value, ..Default::default() };
        batch.append(&self.log.results.partition(0), &record)?;
        for (partition, position) in (0_u32..).zip(&self.log.positions) {
            let (key, value) =
                (partition.to_be_bytes().to_vec(), position.0.to_be_bytes().to_vec());
            batch.put(&self.log.space, key, value)?;
        }
        self.log.store.commit(batch)?;
        Ok(named)
    }
}

impl Log {
    fn border_everywhere(&self) -> Result<Batch, BenchError> {
        let mut batch = Batch::new();
        for (key, partition) in &self.devices {
            let record = NewRecord { key, value: &[BORDER; 1], ..Default::default() };
            batch.append(partition, &record)?;
        }
        Ok(batch)
    }
}
