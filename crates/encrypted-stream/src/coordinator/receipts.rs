//! Receipts of verified windows: what members said, as they signed it.

use std::collections::BTreeMap;

use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;

use super::Coordinator;
use super::graph::pickers_of;
use super::round::{FixedRound, Phase, Round};
use crate::mask::set::RosterSet;
use crate::messages::{Opening, Token};
use crate::receipt::{ExcludingPresence, Receipt, Share};

/// What the members of a window of a verified plan have signed so far.
#[derive(Default)]
pub(super) struct Shares {
    tokens: BTreeMap<u32, Signed<Token>>,
    openings: BTreeMap<u32, (Option<Digest>, Signed<Opening>)>,
}

impl Shares {
    /// Keeps a token, if the plan is verified. False if its controller has opened another one.
    pub(super) fn take_token(&mut self, from: u32, signed: Option<&Signed<Token>>) -> bool {
        let Some(signed) = signed else { return true };
        let opened = self.openings.get(&from).map(|(token, _)| *token);
        let fits = opened.is_none_or(|opened| opened == Some(signed.digest()));
        if fits {
            self.tokens.insert(from, signed.clone());
        }
        fits
    }

    /// Keeps an opening, if the plan is verified. False if it opens another token than is here.
    pub(super) fn take_opening(
        &mut self,
        opening: &Opening,
        signed: Option<&Signed<Opening>>,
    ) -> bool {
        let Some(signed) = signed else { return opening.token.is_none() };
        let held = self.tokens.get(&opening.controller).map(Signed::digest);
        let fits = opening.token.is_some() && (held.is_none() || held == opening.token);
        if fits {
            self.openings.insert(opening.controller, (opening.token, signed.clone()));
        }
        fits
    }
}

impl Coordinator {
    /// Whether the members of the plan's windows decide what rows say.
    pub(super) fn is_verified(&self) -> bool {
        self.plan().integrity.is_verified()
    }

    /// The receipt of a window that opens over these members, in a verified plan.
    pub(super) fn receipt(&self, round: &Round, set: &RosterSet) -> Option<Box<Receipt>> {
        if !self.is_verified() || self.is_proven() {
            return None;
        }
        let (fixing, opening_set) = match &round.phase {
            Phase::Summoned => return None,
            Phase::Collecting(fixing) => (fixing, None),
            Phase::Opening(fixing, opening) => (fixing, Some(opening.signed.clone())),
        };
        let share = |member: u32| {
            let token = round.shares.tokens.get(&member)?.clone();
            let opening = round.shares.openings.get(&member).map(|(_, opening)| opening.clone());
            Some(Share { token, opening })
        };
        let shares = set.iter().map(share).collect::<Option<Vec<_>>>()?;
        let exclusions = excluding(round, fixing);
        let (membership, listing) = (fixing.signed.clone(), self.announced.listing().cloned());
        Some(Box::new(Receipt { membership, opening_set, shares, exclusions, listing }))
    }
}

/// The presences of M's members that left out streams.
pub(super) fn excluding(round: &Round, fixing: &FixedRound) -> Vec<ExcludingPresence> {
    let one = |(member, report): (&u32, &super::MemberReport)| {
        let presence = report.signed.clone()?;
        let rank = fixing.fixed.rank(*member)?;
        let proof = fixing.tree.prove(usize::try_from(rank).ok()?)?;
        let pickers = fixing.pickers.as_ref().map(|all| pickers_of(all, *member).to_vec());
        Some(ExcludingPresence { presence, proof, pickers })
    };
    round.reports.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use alpheus_crypto::secret::Secret;
    use alpheus_crypto::sign::SigningKey;
    use alpheus_policy::ids::PlanId;
    use alpheus_time::{Timestamp, Window};

    use super::*;

    const PLAN: PlanId = PlanId([1; 32]);
    const WINDOW: Window = Window { start: Timestamp(0), end: Timestamp(10) };

    fn key() -> SigningKey {
        SigningKey::from_seed(&Secret::from_bytes([7; 32]))
    }

    fn token(word: u64) -> Signed<Token> {
        let (membership, words) = (Digest([2; 32]), vec![word]);
        Signed::new(&Token { plan: PLAN, window: WINDOW, controller: 0, membership, words }, &key())
    }

    fn opening(token: Option<Digest>) -> Opening {
        let (opening_set, words) = (Digest([3; 32]), vec![5]);
        Opening { plan: PLAN, window: WINDOW, controller: 0, opening_set, token, words }
    }

    /// Whichever of them comes first.
    #[test]
    fn a_token_and_an_opening_belong_together() {
        let (own, other) = (token(1), token(2));
        let opens = |shares: &mut Shares, opening: &Opening| {
            shares.take_opening(opening, Some(&Signed::new(opening, &key())))
        };
        let of_own = opening(Some(own.digest()));
        let mut shares = Shares::default();
        assert!(shares.take_token(0, Some(&own)));
        assert!(!opens(&mut shares, &opening(Some(other.digest()))));
        assert!(!opens(&mut shares, &opening(None)));
        assert!(opens(&mut shares, &of_own));
        let mut shares = Shares::default();
        assert!(opens(&mut shares, &of_own));
        assert!(!shares.take_token(0, Some(&other)));
        assert!(shares.take_token(0, Some(&own)));
        // In a plan that is not verified, an opening names no token.
        assert!(!Shares::default().take_opening(&of_own, None));
    }
}
