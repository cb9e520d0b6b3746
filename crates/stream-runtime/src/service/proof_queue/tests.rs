//! Checks that block, break off or come in too great a number.

use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// A check that tells when it begins, and waits until its sender is gone.
struct Probe {
    number: u32,
    proofs: usize,
    breaks_off: bool,
    is_wanted: bool,
    begun: Sender<u32>,
    go: Option<Receiver<()>>,
}

impl Check for Probe {
    type Findings = (u32, Option<UncheckedProofsError>);

    fn proofs(&self) -> usize {
        self.proofs
    }

    fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    fn run(self) -> Self::Findings {
        self.begun.send(self.number).unwrap();
        // A sender that is gone lets it go.
        self.go.iter().for_each(|go| assert!(go.recv().is_err()));
        assert!(!self.breaks_off, "this check is made to break off");
        (self.number, None)
    }

    fn unchecked(&self, why: UncheckedProofsError) -> Self::Findings {
        (self.number, Some(why))
    }
}

/// What makes probes, and hears from them.
struct Probes {
    begun: Sender<u32>,
    heard: Receiver<u32>,
}

/// So long that only a check that hangs takes longer.
const LONG: Duration = Duration::from_secs(60);

impl Probes {
    fn new() -> Self {
        let (begun, heard) = channel();
        Self { begun, heard }
    }

    fn probe(&self, number: u32, proofs: usize) -> Probe {
        let begun = self.begun.clone();
        Probe { number, proofs, breaks_off: false, is_wanted: true, begun, go: None }
    }

    fn next(&self) -> u32 {
        self.heard.recv_timeout(LONG).unwrap()
    }
}

const PLAN: PlanId = PlanId([7; 32]);

/// Waits until so many were found.
fn found(queue: &ProofQueue<Probe>, many: usize) -> Vec<(u32, Option<UncheckedProofsError>)> {
    let mut all = Vec::new();
    let deadline = std::time::Instant::now() + LONG;
    while all.len() < many {
        assert!(std::time::Instant::now() < deadline, "only {all:?} were found");
        all.extend(queue.take_found().into_iter().map(|(_, found)| found));
        std::thread::yield_now();
    }
    all
}

/// A check that broke off once left its window, and all others, waiting for ever.
#[test]
fn a_check_that_breaks_off_costs_itself_alone() {
    let (probes, queue) = (Probes::new(), ProofQueue::with(100, 1));
    queue.add(PLAN, Probe { breaks_off: true, ..probes.probe(1, 10) });
    queue.add(PLAN, probes.probe(2, 10));
    let all = found(&queue, 2);
    assert_eq!(all, [(1, Some(UncheckedProofsError::Broken)), (2, None)]);
    assert_eq!(queue.counts(), ProofCounts { waiting: 0, refused: 0, broken: 1 });
}

/// Waiting checks are counted in proofs, over all windows, and those beyond the limit are refused with a reason.
#[test]
fn a_full_queue_refuses_and_goes_on() {
    let (probes, queue) = (Probes::new(), ProofQueue::with(100, 1));
    let (start, starts) = channel();
    queue.add(PLAN, Probe { go: Some(starts), ..probes.probe(1, 60) });
    assert_eq!(probes.next(), 1, "it is being checked");
    queue.add(PLAN, probes.probe(2, 40));
    queue.add(PLAN, probes.probe(3, 1));
    assert_eq!(found(&queue, 1), [(3, Some(UncheckedProofsError::QueueFull))]);
    assert_eq!(queue.counts(), ProofCounts { waiting: 100, refused: 1, broken: 0 });
    drop(start);
    assert_eq!(found(&queue, 2), [(1, None), (2, None)]);
    // One that is larger than the queue is taken if nothing else waits.
    queue.add(PLAN, probes.probe(4, 1_000));
    assert_eq!(found(&queue, 1), [(4, None)]);
    assert_eq!(queue.counts().waiting, 0);
}

/// One long check does not keep others waiting where there are threads for them.
#[test]
fn checks_run_side_by_side() {
    let (probes, queue) = (Probes::new(), ProofQueue::with(100, 2));
    let (start, starts) = channel();
    queue.add(PLAN, Probe { go: Some(starts), ..probes.probe(1, 1) });
    assert_eq!(probes.next(), 1);
    queue.add(PLAN, probes.probe(2, 1));
    assert_eq!(found(&queue, 1), [(2, None)], "the first one still goes on");
    drop(start);
    assert_eq!(found(&queue, 1), [(1, None)]);
}

/// A window that has failed meanwhile, as by its deadline, leaves no work.
#[test]
fn what_nobody_waits_for_is_not_checked() {
    let (probes, queue) = (Probes::new(), ProofQueue::with(100, 1));
    queue.add(PLAN, Probe { is_wanted: false, ..probes.probe(1, 50) });
    queue.add(PLAN, probes.probe(2, 50));
    assert_eq!(found(&queue, 1), [(2, None)]);
    assert_eq!((probes.next(), queue.counts().waiting), (2, 0));
}

/// A machine that gives no threads checks all the same.
#[test]
fn without_threads_checks_are_done_at_once() {
    let (probes, queue) = (Probes::new(), ProofQueue::with(100, 0));
    queue.add(PLAN, probes.probe(1, 1));
    assert_eq!(queue.take_found(), [(PLAN, (1, None))]);
}
