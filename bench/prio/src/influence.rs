//! How far one owner's window moves the mean of 100 owners, whatever it claims: without bounds, and with
//! those that its controller checks.

use crate::ours::{EVENTS, MAX_VALUE, digest, terms};
use alpheus_bounded_influence::commit::{Committer, OwnerValues};
use alpheus_crypto::secret::Secret;
use serde_json::{Value, json};

const OWNERS: i128 = 100;

/// What an honest owner's window says: ten events of 50.
const HONEST: [i128; 3] = [10, 500, 25_000];

/// For each claimed sum of the one that lies: the mean of an event without bounds, and with them.
pub(crate) fn points() -> Value {
    let committer = Committer::new(terms(OWNERS as u32, 2), Secret::from_bytes([1; 32]));
    let honest = (OWNERS - 1) * HONEST[0];
    let mean = |count: i128, sum: i128| sum as f64 / count as f64;
    let truth = mean(OWNERS * HONEST[0], OWNERS * HONEST[1]);
    let claims = (0..=60).map(|step| 10_f64.powf(f64::from(step) / 5.0) as i128);
    let point = |claimed: i128| {
        // As many events as the sum needs, where that is allowed, so that it moves the mean most.
        let count = ((claimed + MAX_VALUE - 1) / MAX_VALUE).clamp(1, EVENTS);
        let squares = (claimed * claimed + count - 1) / count;
        let values = vec![count, claimed, squares.min(claimed * MAX_VALUE)];
        let admitted = committer.admit(vec![OwnerValues::new(digest(&[b"liar"]), values)]);
        let is_in = admitted.is_ok_and(|own| own.left_out().is_empty());
        let moved = |count: i128, sum: i128| {
            (mean(honest + count, (OWNERS - 1) * HONEST[1] + sum) - truth).abs()
        };
        let without = moved(count, claimed);
        let with = if is_in { without } else { moved(0, 0) };
        json!({ "claimed": claimed as f64, "without": without, "with": with })
    };
    claims.map(point).collect()
}
