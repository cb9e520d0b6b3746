//! Owners who change their choices so often that their streams wait.
//!
//! A choice, a withdrawal or an erasure between token and opening ends a window, and the service then leaves
//! out the host, with all its owners. So an owner may do that a few times a day, however many streams
//! the owner has.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_policy::ids::{OwnerId, StreamId};
use alpheus_time::{Span, Timestamp};

use super::Controller;
use crate::keys::DAY;

/// How often an owner may change choices within [`RESTLESS_FOR`]. After one more change all the owner's
/// streams wait.
const CHANGES_PER_DAY: usize = 3;
/// A day.
const RESTLESS_FOR: Span = Span(DAY);
/// Changes of different streams within this time are one: an owner chooses for all streams at once.
const AT_ONCE: Span = Span::seconds(60);

impl Controller {
    /// The owners here whose streams wait.
    pub(super) fn restless(&self, now: Timestamp) -> BTreeSet<OwnerId> {
        let mut changes: BTreeMap<OwnerId, Vec<(Timestamp, StreamId)>> = BTreeMap::new();
        for (stream, state) in &self.streams {
            for at in state.changes().filter(|at| now < at.plus(RESTLESS_FOR)) {
                changes.entry(state.owner).or_default().push((at, *stream));
            }
        }
        let often = changes.into_iter().filter_map(|(owner, mut changes)| {
            changes.sort_unstable();
            (times(&changes) > CHANGES_PER_DAY).then_some(owner)
        });
        often.collect()
    }
}

/// How many times it were, of changes in their order.
fn times(mut changes: &[(Timestamp, StreamId)]) -> usize {
    let mut times = 0;
    while let Some((first, _)) = changes.first() {
        let until = first.plus(AT_ONCE);
        let together = changes.partition_point(|(at, _)| *at < until);
        let (now, later) = changes.split_at(together);
        let mut of_streams: BTreeMap<StreamId, usize> = BTreeMap::new();
        now.iter().for_each(|(_, stream)| *of_streams.entry(*stream).or_default() += 1);
        times += of_streams.into_values().max().unwrap_or(0);
        changes = later;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_that_change_together_change_once_and_one_that_changes_again_does_so_twice() {
        let at = |second: u64, stream: u8| (Timestamp(second * 1_000_000), StreamId([stream; 16]));
        assert_eq!(times(&[]), 0);
        assert_eq!(times(&[at(0, 1), at(1, 2), at(59, 3)]), 1);
        assert_eq!(times(&[at(0, 1), at(1, 1), at(2, 2)]), 2);
        assert_eq!(times(&[at(0, 1), at(60, 2)]), 2);
        assert_eq!(times(&[at(0, 1), at(59, 2), at(61, 3), at(119, 4), at(121, 5)]), 3);
    }
}
