//! How an aggregate ended according to its smoothers, whatever the aggregator says.

use crate::closing::AgreedSet;
use crate::configuration::{PinnedConfiguration, SmootherId};
use crate::definition::AgreedDefinition;
use crate::endorsement::Endorsed;
use crate::messages::{End, NoResultError, Outcome, PublishedResult, Ready};
use std::collections::BTreeMap;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With a result of this set and no other.
    Result(PublishedResult, AgreedSet),
    /// Without a result.
    Without(NoResultError),
    /// A quorum says that there is no result, and a smoother has signed one: some of them tell
    /// readers something else.
    Disputed,
}

/// How an aggregate ended, once enough smoothers have reported it. A result needs equal signatures
/// of t, one of which is honest; its set is the one that a quorum has agreed to. No result needs a
/// quorum, because some may run out of time while others have a result, and no signed result beside it:
/// with another smoother's signature that one may be published. A statement that its
/// smoother has not signed, or that is about something else, does not count.
#[must_use]
pub fn verdict(
    ends: &[(SmootherId, End)],
    agreed: &AgreedDefinition,
    pinned: &PinnedConfiguration,
) -> Option<Verdict> {
    let (mut results, mut sets) = (Endorsed::<Outcome>::default(), Endorsed::<Ready>::default());
    let (mut without, mut signed) = (BTreeMap::<SmootherId, NoResultError>::new(), false);
    for (by, End { outcome, ready }) in ends {
        let opened = pinned.key(*by).and_then(|key| outcome.open(key).ok());
        match opened.map(|opened| opened.into_inner()) {
            Some(Outcome { aggregate, result: Err(why) }) if aggregate == agreed.name() => {
                without.insert(*by, why);
            }
            opened => {
                signed |= opened.is_some_and(|opened| opened.aggregate == agreed.name());
                results.add(*by, outcome.clone());
            }
        }
        ready.iter().for_each(|ready| sets.add(*by, ready.clone()));
    }
    let result = results.open(pinned, pinned.threshold.into()).ok().map(|it| it.into_inner());
    let set = sets.open(pinned, pinned.quorum()).ok().map(|it| it.into_inner());
    let ours = |aggregate| aggregate == agreed.name();
    match (result, set) {
        (Some(Outcome { aggregate, result: Ok(published) }), Some(ready))
            if ours(aggregate) && ours(ready.aggregate) && ready.key_epoch == agreed.key_epoch =>
        {
            Some(Verdict::Result(published, AgreedSet::new(ready)))
        }
        _ if without.len() >= pinned.quorum() && signed => Some(Verdict::Disputed),
        _ if without.len() >= pinned.quorum() => most(without.values()).map(Verdict::Without),
        _ => None,
    }
}

/// The most frequent reason.
pub(crate) fn most<'a>(reasons: impl Iterator<Item = &'a NoResultError>) -> Option<NoResultError> {
    let mut times: BTreeMap<NoResultError, usize> = BTreeMap::new();
    reasons.for_each(|reason| *times.entry(*reason).or_default() += 1);
    times.into_iter().max_by_key(|(_, times)| *times).map(|(reason, _)| reason)
}
