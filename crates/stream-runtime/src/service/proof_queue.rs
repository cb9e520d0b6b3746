//! Checks of proofs that wait for a thread: so many, and no more. One that breaks off costs its own window alone.

#[cfg(test)]
mod tests;

use crate::counters::ProofCounts;
use alpheus_encrypted_stream::error::UncheckedProofsError;
use alpheus_policy::ids::PlanId;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Proofs that wait or are being checked, of all windows together. One takes 0.3 ms of a thread, so the
/// last of them waits for some 20 s, and has 2 KB in memory, so all have 140 MB; while it is checked, some 8 KB.
const MAX_PROOFS: usize = 1 << 16;

/// Threads, at most. More would find proofs faster than the service takes their windows on.
const MAX_THREADS: usize = 8;

/// Something that is checked by another thread.
pub(super) trait Check: Send + 'static {
    /// What it finds.
    type Findings: Send + 'static;

    /// How many proofs it has.
    fn proofs(&self) -> usize;

    /// Whether anybody still waits for what it finds.
    fn is_wanted(&self) -> bool;

    /// Does it.
    fn run(self) -> Self::Findings;

    /// What is found if it is not done.
    fn unchecked(&self, why: UncheckedProofsError) -> Self::Findings;
}

/// Checks that wait, and what was found. Its threads end with it.
pub(super) struct ProofQueue<C: Check> {
    shared: Arc<QueueState<C>>,
    most: usize,
    has_threads: bool,
}

struct QueueState<C: Check> {
    state: Mutex<State<C>>,
    changed: Condvar,
}

struct State<C: Check> {
    waiting: VecDeque<(PlanId, C)>,
    found: Vec<(PlanId, C::Findings)>,
    counts: ProofCounts,
    is_over: bool,
}

impl<C: Check> ProofQueue<C> {
    /// With as many threads as there are cores beside the service's own.
    pub(super) fn start() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with(MAX_PROOFS, cores.saturating_sub(1).clamp(1, MAX_THREADS))
    }

    fn with(most: usize, threads: usize) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            found: Vec::new(),
            counts: ProofCounts::default(),
            is_over: false,
        };
        let shared = Arc::new(QueueState { state: Mutex::new(state), changed: Condvar::new() });
        let start = |number: usize| {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(format!("proofs-{number}"));
            thread.spawn(move || shared.work())
        };
        let started: Vec<_> = (0..threads).map(start).collect();
        let has_threads = started.iter().any(Result::is_ok);
        for error in started.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "one thread less for proofs; without any, they are checked between other work");
        }
        Self { shared, most, has_threads }
    }

    /// Adds a check. If too many proofs wait, what it finds is just that. One that is larger than all
    /// that may wait is taken once nothing else waits.
    pub(super) fn add(&self, plan: PlanId, check: C) {
        let mut state = self.shared.lock();
        let all = state.counts.waiting.saturating_add(check.proofs());
        if state.counts.waiting > 0 && all > self.most {
            tracing::warn!(%plan, waiting = state.counts.waiting, "too many proofs wait to be checked: a window is lost");
            state.counts.refused += 1;
            let found = check.unchecked(UncheckedProofsError::QueueFull);
            state.found.push((plan, found));
            return;
        }
        state.counts.waiting = all;
        state.waiting.push_back((plan, check));
        drop(state);
        self.shared.changed.notify_one();
        if !self.has_threads {
            self.shared.do_next();
        }
    }

    /// Whether anything was found.
    pub(super) fn has_found(&self) -> bool {
        !self.shared.lock().found.is_empty()
    }

    /// What was found since the last time.
    pub(super) fn take_found(&self) -> Vec<(PlanId, C::Findings)> {
        std::mem::take(&mut self.shared.lock().found)
    }

    /// What became of checks.
    pub(super) fn counts(&self) -> ProofCounts {
        self.shared.lock().counts
    }
}

impl<C: Check> Drop for ProofQueue<C> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        state.waiting.clear();
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl<C: Check> QueueState<C> {
    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks until it is over.
    fn work(&self) {
        loop {
            let idle = |state: &mut State<C>| state.waiting.is_empty() && !state.is_over;
            let waited = self.changed.wait_while(self.lock(), idle);
            let state = waited.unwrap_or_else(PoisonError::into_inner);
            if state.is_over {
                return;
            }
            drop(state);
            self.do_next();
        }
    }

    /// Does the next check that somebody waits for.
    fn do_next(&self) {
        let Some((plan, check)) = self.lock().waiting.pop_front() else { return };
        let proofs = check.proofs();
        let found = check.is_wanted().then(|| {
            let broken = check.unchecked(UncheckedProofsError::Broken);
            catch_unwind(AssertUnwindSafe(|| check.run())).map_err(|_| broken)
        });
        let mut state = self.lock();
        state.counts.waiting = state.counts.waiting.saturating_sub(proofs);
        let found = found.map(|found| {
            found.unwrap_or_else(|broken| {
                tracing::error!(%plan, "a check of proofs crashed, which is a bug: a window is lost, and all others continue");
                state.counts.broken += 1;
                broken
            })
        });
        state.found.extend(found.map(|found| (plan, found)));
    }
}
