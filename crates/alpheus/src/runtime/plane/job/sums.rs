//! What the sums that came of a window do to it.

use alpheus_encrypted_stream::coordinator::{Coordinator, Output};
use alpheus_encrypted_stream::job::{SetDigest, Tally, WindowSum};
use alpheus_encrypted_stream::ledger::Step;

/// Opens a window that waits for its sums, if they are those of its opening set by number and
/// digest; else the reason is for the dead letters, and the window goes on waiting. Of a window
/// that has ended it changes nothing.
pub(in crate::runtime) fn open_sums(
    coordinator: &mut Coordinator,
    sum: &WindowSum,
) -> (Step<Output>, Option<&'static str>) {
    if coordinator.has_ended(sum.start) {
        return (Step::default(), None);
    }
    let Some(set) = coordinator.sum_set(sum.start) else {
        return (Step::default(), Some("no-opening-set"));
    };
    let plan = coordinator.plan();
    let outputs = plan.release.outputs();
    let streams = set.streams.iter().filter_map(|at| plan.streams.get(*at as usize));
    let streams = Tally {
        count: set.streams.len() as u64,
        digest: SetDigest::of_streams(&sum.plan, sum.start, streams.map(|at| at.stream)),
    };
    let controllers = Tally {
        count: set.controllers.len() as u64,
        digest: SetDigest::of_controllers(&sum.plan, sum.start, &set.controllers),
    };
    if (sum.streams, sum.controllers) != (streams, controllers) {
        coordinator.summed_others(sum.start);
        return (Step::default(), Some("other-set"));
    }
    if sum.ciphertexts.len() != outputs || sum.tokens.len() != outputs {
        coordinator.summed_others(sum.start);
        return (Step::default(), Some("other-length"));
    }
    (coordinator.summed(sum.start, &sum.ciphertexts, &sum.tokens), None)
}
