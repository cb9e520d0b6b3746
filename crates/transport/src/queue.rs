//! Group commit: changes wait in memory until a caller needs one of them to be durable.
//!
//! The first caller writes all waiting changes at once. Callers that arrive meanwhile wait
//! for the next write. After a failed write, nothing more is accepted.

use crate::error::Error;
use crate::receipt::Sequence;
use crate::store::Stats;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Makes changes durable, one group at a time.
pub(crate) trait Writer {
    /// The state that readers see, and that changes are checked against.
    type ReadState;
    /// An accepted change.
    type Change;
    /// What a write needs from `ReadState`, read before others may change it.
    type Plan;

    /// Reads what writing `group` needs.
    fn plan(&self, shared: &Self::ReadState, group: &[Self::Change]) -> Self::Plan;

    /// Makes a group durable atomically. No other write runs at the same time.
    ///
    /// # Errors
    /// The error of the storage. The queue then refuses all work.
    fn write(&self, group: &[Self::Change], plan: Self::Plan) -> Result<(), Error>;

    /// Makes a durable group visible to readers. Returns its number of records.
    fn publish(&self, shared: &mut Self::ReadState, group: Vec<Self::Change>) -> u64;

    /// The error after the writing thread panicked.
    fn abandoned(&self) -> Error;
}

/// Changes on their way to a writer.
#[derive(Debug)]
pub(crate) struct Queue<W: Writer> {
    writer: W,
    max_staged: usize,
    state: Mutex<State<W>>,
    changed: Condvar,
}

/// The state that all threads share.
pub(crate) struct State<W: Writer> {
    pub(crate) shared: W::ReadState,
    staged: Vec<W::Change>,
    waiting_bytes: usize,
    writing_bytes: usize,
    accepted: Sequence,
    durable: Sequence,
    writing: bool,
    /// Number of finished writes.
    writes: u64,
    nudged: bool,
    failed: Option<Error>,
    stats: Stats,
}

impl<W: Writer> std::fmt::Debug for State<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("accepted", &self.accepted).finish_non_exhaustive()
    }
}

pub(crate) type Guard<'a, W> = MutexGuard<'a, State<W>>;

impl<W: Writer> Queue<W> {
    /// At most `max_staged` bytes wait for a write, and as many are being written.
    pub(crate) fn new(writer: W, shared: W::ReadState, max_staged: usize) -> Self {
        let state = State {
            shared,
            staged: Vec::new(),
            waiting_bytes: 0,
            writing_bytes: 0,
            accepted: Sequence::default(),
            durable: Sequence::default(),
            writing: false,
            writes: 0,
            nudged: false,
            failed: None,
            stats: Stats::default(),
        };
        Self { writer, max_staged, state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(crate) const fn writer(&self) -> &W {
        &self.writer
    }

    /// Locks the state. A thread that panicked with the lock left nothing half done that
    /// matters; see [`Lead`].
    fn lock(&self) -> Guard<'_, W> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, unless a write has failed.
    pub(crate) fn usable(&self) -> Result<Guard<'_, W>, Error> {
        let state = self.lock();
        match &state.failed {
            Some(failed) => Err(failed.clone()),
            None => Ok(state),
        }
    }

    /// Refuses all work from now on. Returns the accepted changes that were not written.
    pub(crate) fn fail(&self, error: Error) -> (Vec<W::Change>, W::Plan) {
        let mut state = self.lock();
        state.failed = Some(error);
        let staged = std::mem::take(&mut state.staged);
        let plan = self.writer.plan(&state.shared, &staged);
        drop(state);
        self.changed.notify_all();
        (staged, plan)
    }

    /// Queues a change. Waits first while too much is queued.
    pub(crate) fn stage(
        &self,
        bytes: usize,
        prepare: impl FnOnce(&mut W::ReadState) -> Result<Option<W::Change>, Error>,
    ) -> Result<Option<Sequence>, Error> {
        let mut state = self.usable()?;
        if bytes > self.max_staged {
            return Err(Error::BatchTooLarge { bytes, limit: self.max_staged });
        }
        while state.staged_bytes() + bytes > self.max_staged {
            let oldest = Sequence(state.durable.0 + 1);
            state = self.reach(state, oldest)?;
        }
        let Some(change) = prepare(&mut state.shared)? else { return Ok(None) };
        state.accepted = Sequence(state.accepted.0 + 1);
        state.waiting_bytes += bytes;
        state.staged.push(change);
        Ok(Some(state.accepted))
    }

    /// Waits until `sequence` is durable, writing it if nobody else does.
    pub(crate) fn settle(&self, sequence: Sequence) -> Result<(), Error> {
        self.reach(self.lock(), sequence).map(drop)
    }

    /// Makes all accepted changes durable. Returns the last of them.
    pub(crate) fn flush(&self) -> Result<Sequence, Error> {
        let state = self.usable()?;
        let accepted = state.accepted;
        drop(self.reach(state, accepted)?);
        Ok(accepted)
    }

    /// The last durable change. Waits for one after `seen`, or for a nudge.
    pub(crate) fn wait(&self, seen: Sequence, timeout: Duration) -> Result<Sequence, Error> {
        let until = Instant::now().checked_add(timeout);
        let mut state = self.usable()?;
        while state.durable <= seen && !std::mem::take(&mut state.nudged) {
            let left =
                until.map_or(timeout, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break;
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
        }
        Ok(state.durable)
    }

    /// Waits until the current write, if any, has ended.
    #[cfg(feature = "kafka")]
    pub(crate) fn after_write(&self) -> Result<Guard<'_, W>, Error> {
        let mut state = self.usable()?;
        let writes = state.writes;
        while state.writing && state.writes == writes {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
        }
        Ok(state)
    }

    /// Wakes a waiter: there may be records of other producers.
    #[cfg(feature = "kafka")]
    pub(crate) fn nudge(&self) {
        self.lock().nudged = true;
        self.changed.notify_all();
    }

    /// Statistics. The caller fills in `disk_bytes`.
    pub(crate) fn stats(&self) -> Stats {
        let state = self.lock();
        Stats { staged_bytes: state.staged_bytes() as u64, ..state.stats }
    }

    /// The number of changes that wait for a write.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().staged.len()
    }

    fn reach<'a>(
        &'a self,
        mut state: Guard<'a, W>,
        sequence: Sequence,
    ) -> Result<Guard<'a, W>, Error> {
        while state.durable < sequence {
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
            state = if state.writing {
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.lead(state)
            };
        }
        Ok(state)
    }

    /// Writes all waiting changes, without holding the lock during the write.
    fn lead<'a>(&'a self, mut state: Guard<'a, W>) -> Guard<'a, W> {
        let group = std::mem::take(&mut state.staged);
        let plan = self.writer.plan(&state.shared, &group);
        let upto = state.accepted;
        state.writing_bytes = std::mem::take(&mut state.waiting_bytes);
        state.writing = true;
        drop(state);
        let guard = Lead { queue: self };
        let start = Instant::now();
        let written = self.writer.write(&group, plan);
        std::mem::forget(guard);
        let mut state = self.lock();
        state.writing = false;
        state.writes += 1;
        match written {
            Ok(()) => self.publish(&mut state, group, upto, start.elapsed()),
            Err(error) => state.failed = Some(error),
        }
        self.changed.notify_all();
        state
    }

    fn publish(&self, state: &mut State<W>, group: Vec<W::Change>, upto: Sequence, took: Duration) {
        state.stats.batches += group.len() as u64;
        state.stats.records += self.writer.publish(&mut state.shared, group);
        state.stats.bytes += std::mem::take(&mut state.writing_bytes) as u64;
        state.stats.syncs += 1;
        state.stats.sync_time += took;
        state.durable = state.durable.max(upto);
    }
}

impl<W: Writer> State<W> {
    const fn staged_bytes(&self) -> usize {
        self.waiting_bytes + self.writing_bytes
    }
}

/// If the writing thread panics, it is unknown what is durable. The store then fails, so that
/// other threads do not wait forever.
struct Lead<'a, W: Writer> {
    queue: &'a Queue<W>,
}

impl<W: Writer> Drop for Lead<'_, W> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.writing = false;
        state.failed = Some(self.queue.writer.abandoned());
        drop(state);
        self.queue.changed.notify_all();
    }
}
