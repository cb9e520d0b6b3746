//! Opens windows with the sums that arrived for them.

use alpheus_encrypted_stream::coordinator::{Coordinator, Output};
use alpheus_encrypted_stream::job::{SetDigest, Tally, WindowSum};
use alpheus_encrypted_stream::ledger::Step;

/// Opens a window that waits for its sums, if they match its opening set by count and
/// digest. Otherwise returns the reason for the dead letters, and the window keeps waiting.
/// A finished window does not change.
pub(crate) fn open_sums(
    coordinator: &mut Coordinator,
    sum: &WindowSum,
) -> (Step<Vec<Output>>, Option<&'static str>) {
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
        coordinator.reject_sums(sum.start);
        return (Step::default(), Some("other-set"));
    }
    if sum.ciphertexts.len() != outputs || sum.tokens.len() != outputs {
        coordinator.reject_sums(sum.start);
        return (Step::default(), Some("other-length"));
    }
    (coordinator.handle_sums(sum.start, &sum.ciphertexts, &sum.tokens), None)
}
