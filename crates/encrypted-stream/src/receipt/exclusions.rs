//! Streams that controllers left out of a window, as they have signed it.
//!
//! A presence is bound to M by its path in M's tree, so of several that a controller signed, only
//! the one that M was fixed with counts.

use alpheus_crypto::merkle::Proof;
use alpheus_crypto::signed_message::Signed;
use serde::{Deserialize, Serialize};

use super::{ReceiptError, SharePart};
use crate::announced_plan::AnnouncedPlan;
use crate::counts::narrow;
use crate::error::ExclusionError;
use crate::membership::FixedMembership;
use crate::messages::{Presence, member_leaf};

/// The presence of a member that left out streams of its summons, with its place in M's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcludingPresence {
    /// Which streams, and why.
    pub presence: Signed<Presence>,
    /// From its leaf to M's root.
    pub proof: Proof,
    /// With `Neighbours`: the members that picked it, which its leaf covers.
    pub pickers: Option<Vec<u32>>,
}

/// What a controller has signed of the streams that it left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedExclusions {
    /// Its position.
    pub controller: u32,
    /// Streams, by position in the plan, ascending, each with the reason.
    pub streams: Vec<(u32, ExclusionError)>,
}

/// Checks these presences, and returns what they exclude.
pub(super) fn check(
    presences: &[ExcludingPresence],
    announced: &AnnouncedPlan,
    fixed: &FixedMembership,
) -> Result<Vec<SignedExclusions>, ReceiptError> {
    let claimed = |own: &ExcludingPresence| own.presence.dangerous_unverified();
    let stated: Vec<Option<u32>> =
        presences.iter().map(|own| claimed(own).map(|presence| presence.controller)).collect();
    let key = |at: &Option<u32>| announced.verifying().get(usize::try_from((*at)?).ok()?);
    let (mut after, mut found) = (None, Vec::new());
    for (own, at) in presences.iter().zip(&stated) {
        let part = SharePart::Presence;
        let controller = at.unwrap_or(u32::MAX);
        let forged = ReceiptError::Signature { controller, part };
        let opened = key(at).map(|key| own.presence.open(key));
        let presence = opened.ok_or(forged.clone())?.map_err(|_| forged)?;
        let fits = after.is_none_or(|after| after < controller)
            && is_of(&presence, announced, fixed)
            && stands(own, controller, fixed);
        if !fits {
            return Err(ReceiptError::OtherShare { controller, part });
        }
        after = Some(controller);
        found.push(SignedExclusions { controller, streams: presence.excluded.clone() });
    }
    Ok(found)
}

/// Whether it is of this window, and excludes streams of its controller, each once.
fn is_of(presence: &Presence, announced: &AnnouncedPlan, fixed: &FixedMembership) -> bool {
    let membership = fixed.membership();
    let streams = &announced.plan().streams;
    let own = |(at, _): &(u32, ExclusionError)| {
        let planned = usize::try_from(*at).ok().and_then(|at| streams.get(at));
        planned.is_some_and(|planned| planned.controller == presence.controller)
    };
    let ascends = presence.excluded.windows(2).all(|pair| matches!(pair, [a, b] if a.0 < b.0));
    (presence.plan, presence.window) == (membership.plan, membership.window)
        && !presence.excluded.is_empty()
        && ascends
        && presence.excluded.iter().all(own)
}

/// Whether it is the presence that M was fixed with.
fn stands(own: &ExcludingPresence, controller: u32, fixed: &FixedMembership) -> bool {
    let leaf = member_leaf(&own.presence.digest(), own.pickers.as_deref());
    fixed.rank(controller) == Some(own.proof.index)
        && own.proof.size == u64::from(fixed.size())
        && own.proof.verify(&leaf, &fixed.membership().root).is_ok()
}

/// Checks that a row states at least as many streams as left out as controllers have signed.
pub(super) fn check_stated(all: &[SignedExclusions], stated: u64) -> Result<(), ReceiptError> {
    let signed = narrow(all.iter().map(|own| own.streams.len()).sum());
    let hides = stated < u64::from(signed);
    if hides { Err(ReceiptError::FewerExcluded { stated, signed }) } else { Ok(()) }
}

/// In the words that people read; empty if nothing was excluded.
pub(super) fn in_words(all: &[SignedExclusions]) -> String {
    let streams: usize = all.iter().map(|own| own.streams.len()).sum();
    let streams = match streams {
        1 => "1 stream".to_owned(),
        n => format!("{n} streams"),
    };
    match all {
        [] => String::new(),
        [one] => format!("; controller {} signed that it left out {streams}", one.controller),
        _ => format!("; {} controllers signed that they left out {streams}", narrow(all.len())),
    }
}
