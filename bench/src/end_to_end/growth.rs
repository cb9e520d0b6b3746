//! What a window leaves: in ledgers, in the service's store, in memory.

use super::application::{Application, Release};
use super::ours::{OpenDeployment, Party};
use crate::BenchError;
use crate::report::Figure;
use crate::sums::resident;
use alpheus_encrypted_stream::ledger::{Record, StampedRecord};
use alpheus_node::ledger::scan_all;
use alpheus_stream_runtime::embedded_deployment::EmbeddedDeployment;
use alpheus_transport::{Limits, Offset};
use std::path::Path;

/// The number of streams, with one controller and with a controller for each.
const PRODUCERS: u32 = 30;
/// Windows before the first mark. By then deletion of old records has started (64
/// to 96 windows back at controllers, 256 to 512 at the service), many at a time.
const BEFORE: usize = 2 * TURN;
/// After so many windows all of it is where it was.
const TURN: usize = 256;

/// Sizes at one time, in bytes.
#[derive(Clone, Copy, Default)]
struct Sizes {
    /// Of controllers' ledgers, without the owners' log.
    ledger: u64,
    /// Of the owners' log.
    log: u64,
    /// Of the service's space.
    service: u64,
    /// Of result rows.
    rows: u64,
    /// Of this process in memory.
    memory: u64,
}

/// Bytes that a million windows leave, extrapolated from the growth after the first mark.
pub(crate) fn figures(
    directory: &Path,
    windows: usize,
    mut say: impl FnMut(&str),
) -> Result<Vec<Figure>, BenchError> {
    let windows = windows.next_multiple_of(TURN);
    let application = &Application::of("car-maintenance", None)?;
    let mut figures = Vec::new();
    for (party, who) in [(Party::One, "one controller"), (Party::PerOwner, "a controller each")] {
        say(&format!("growth: {PRODUCERS} streams, {who}, {windows} windows"));
        let folder = tempfile::tempdir_in(directory)?;
        let release = Release::Query;
        let mut started =
            OpenDeployment::new(folder.path(), application, PRODUCERS, release, party)?;
        let mut at = Sizes::default();
        for window in 0..BEFORE + windows {
            if window == BEFORE {
                at = sizes(&started.embedded)?;
            }
            started.window(application, window)?;
        }
        let end = sizes(&started.embedded)?;
        let found = grown(who, at, end, windows);
        found.iter().for_each(|figure| say(&figure.to_string()));
        figures.extend(found);
    }
    Ok(figures)
}

fn grown(who: &str, at: Sizes, end: Sizes, windows: usize) -> [Figure; 5] {
    let figure = |what: &str, before: u64, after: u64| {
        let each = (after as f64 - before as f64) / windows as f64;
        let name = format!("{what}, per million windows, {PRODUCERS} streams, {who}");
        Figure::alone("growth", name, "MB", each)
    };
    [
        figure("ledgers without the owners' log", at.ledger, end.ledger),
        figure("the owners' log", at.log, end.log),
        figure("the service's records", at.service, end.service),
        figure("result rows", at.rows, end.rows),
        figure("memory", at.memory, end.memory),
    ]
}

fn sizes(embedded: &EmbeddedDeployment) -> Result<Sizes, BenchError> {
    let mut sizes = Sizes { memory: resident() as u64, ..Sizes::default() };
    let (store, topics) = (embedded.store.as_ref(), &embedded.topics);
    for (key, value) in embedded.ledger_records()? {
        let bytes = (key.len() + value.len()) as u64;
        let log = StampedRecord::read(&value).is_ok_and(|own| matches!(own.record, Record::Log(_)));
        *(if log { &mut sizes.log } else { &mut sizes.ledger }) += bytes;
    }
    for (key, value) in scan_all(store, &topics.service, b"")? {
        sizes.service += (key.len() + value.len()) as u64;
    }
    let (partition, mut position) = (topics.results.partition(0), Offset(0));
    loop {
        let fetched = store.read(&partition, position, Limits::default())?;
        let next = fetched.next_offset();
        if next == position {
            return Ok(sizes);
        }
        sizes.rows += fetched.map(|record| record.value.len() as u64).sum::<u64>();
        position = next;
    }
}
