//! How an aggregate ended, as its smoothers say, whatever the aggregator says.

use crate::closing::OneSet;
use crate::configuration::{Pinned, SmootherId};
use crate::definition::Agreed;
use crate::endorsed::Endorsed;
use crate::messages::{End, Outcome, Published, Ready, Reason};
use std::collections::BTreeMap;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With a result, of this set and no other.
    Result(Published, OneSet),
    /// Without one.
    Without(Reason),
}

/// How an aggregate ended, once enough smoothers have said so. A result is one that t have signed
/// alike, one of whom keeps to the protocol; the set is the one that a quorum has agreed to.
/// That there is none takes a quorum, for some may run out of time while others have one. What is
/// not signed by its smoother, or is about something else, counts for nothing.
#[must_use]
pub fn verdict(ends: &[(SmootherId, End)], agreed: &Agreed, pinned: &Pinned) -> Option<Verdict> {
    let (mut results, mut sets) = (Endorsed::<Outcome>::default(), Endorsed::<Ready>::default());
    let mut without: BTreeMap<SmootherId, Reason> = BTreeMap::new();
    for (by, End { outcome, ready }) in ends {
        let opened = pinned.key(*by).and_then(|key| outcome.open(key).ok());
        match opened.map(|opened| opened.into_inner()) {
            Some(Outcome { aggregate, result: Err(why) }) if aggregate == agreed.name() => {
                without.insert(*by, why);
            }
            _ => results.add(*by, outcome.clone()),
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
            Some(Verdict::Result(published, OneSet::new(ready)))
        }
        _ if without.len() >= pinned.quorum() => most(without.values()).map(Verdict::Without),
        _ => None,
    }
}

/// The reason that most of them give.
fn most<'a>(reasons: impl Iterator<Item = &'a Reason>) -> Option<Reason> {
    let mut times: BTreeMap<Reason, usize> = BTreeMap::new();
    reasons.for_each(|reason| *times.entry(*reason).or_default() += 1);
    times.into_iter().max_by_key(|(_, times)| *times).map(|(reason, _)| reason)
}
