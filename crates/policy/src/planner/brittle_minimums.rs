//! A few owners' larger minimum that would lose everybody's windows.
//!
//! A plan takes the largest minimum of its members. With one that is only just met, each window
//! in which a few controllers fail is lost for all. Such a choice is left out by name, if fewer
//! than half of the streams make it, and the others' windows are safe without it.

use super::exclusion::ExclusionError;
use super::population::{
    Candidate, Numbers, PopulationCount, PopulationRequest, Settlement, settle_all,
};
use crate::quorum::min_opening;
use crate::window_loss::chance_of_loss;
use std::collections::BTreeSet;

/// The share of controllers that is assumed to fail in a window.
const FAILURE_RATE: f64 = 0.01;
/// The largest chance that a window is lost.
const MAX_LOSS: f64 = 1e-3;

/// Leaves out the choices that make a settlement brittle.
pub(super) fn leave_out_brittle<'a>(
    settled: Settlement<'a>,
    asked: PopulationRequest,
) -> Settlement<'a> {
    let Some((members, numbers)) = &settled.members else { return settled };
    let loss = chance(members, *numbers);
    if loss <= MAX_LOSS {
        return settled;
    }
    let minima = members.iter().map(|member| member.terms.min);
    let minima: BTreeSet<u32> = minima.filter(|min| *min > asked.bounds.min).collect();
    for least in minima.into_iter().rev() {
        let stays = |member: &Candidate<'a>| member.terms.min < least;
        let (rest, out): (Vec<_>, Vec<_>) = members.iter().cloned().partition(stays);
        if out.len() * 2 >= members.len() {
            break;
        }
        let again = settle_all(rest, asked);
        let is_safe = again.excluded.is_empty()
            && again.members.as_ref().is_some_and(|(rest, fewer)| chance(rest, *fewer) <= MAX_LOSS);
        if !is_safe {
            continue;
        }
        let reason = ExclusionError::Brittle { least, losses: in_a_thousand(loss) };
        let out = out.into_iter().map(|member| (member, reason.clone()));
        let excluded = settled.excluded.into_iter().chain(out).collect();
        return Settlement { members: again.members, excluded };
    }
    settled
}

/// The chance that a window is lost, if all are there at first.
fn chance(members: &[Candidate<'_>], numbers: Numbers) -> f64 {
    let PopulationCount { controllers, tolerated, owners, counted } =
        PopulationCount::of(members, numbers);
    if controllers <= 1 {
        return 0.0;
    }
    let quorum = min_opening(controllers, tolerated, controllers, numbers.dropout);
    let beyond = u64::from(counted.saturating_sub(numbers.bounds.min));
    let slack = beyond * u64::from(controllers) / u64::from(owners.max(1));
    let slack = u32::try_from(slack).unwrap_or(u32::MAX);
    chance_of_loss(controllers, controllers.saturating_sub(quorum).min(slack), FAILURE_RATE)
}

/// Losses in a thousand windows, rounded up.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 1000")]
fn in_a_thousand(loss: f64) -> u32 {
    (loss * 1000.0).ceil().clamp(0.0, 1000.0) as u32
}
