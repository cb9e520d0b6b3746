//! Bounded windows: contributions are checked before S is fixed, openings once they are all here, and
//! the row is what the commitments open to (`docs/protocol.md`, *Bounded windows*).

use std::collections::BTreeMap;
use std::sync::Arc;

use alpheus_bounded_influence::blame::LieError;
use alpheus_bounded_influence::check::{
    BoundedContribution, BoundedRow, Checker, Contributions, FaultError, FaultyError,
    OpenedContribution, OpeningsError,
};
use alpheus_bounded_influence::messages::Scope;
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_policy::ids::ControllerId;
use alpheus_time::{Timestamp, Window};

use super::Coordinator;
use super::blame::{StruckEdges, UnstatedEdgesError};
use super::output::{Output, Sums, WindowResult};
use super::proofs::{AwaitedCheck, ProofCheck};
use super::round::{FixedRound, Phase, Round};
use crate::bounded_terms::scope_of;
use crate::decode::rows_of;
use crate::error::{MessageError, ReleaseError, UncheckedProofsError};
use crate::ledger::Step;
use crate::mask::set::RosterSet;
use crate::messages::{BoundedOpening, Contribution};
use crate::receipt::{BoundedReceipt, BoundedShare};

/// Why a member of a bounded window is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberFaultError {
    /// Its commitments or its opening do not hold. Nobody who keeps to the protocol does that.
    #[error(transparent)]
    Fault(FaultError),
    /// A row failed, and it lied.
    #[error(transparent)]
    Lie(LieError),
}

/// Members that are named, and those that are silent, with the reason.
type Faults = Vec<(ControllerId, MemberFaultError)>;
type Silent = Vec<(ControllerId, UnstatedEdgesError)>;

/// A message as it was opened, and as it was signed. They are long, so those who check them share them.
pub(super) type SignedAnswer<T> = (Arc<Verified<T>>, Arc<Signed<T>>);

/// What the members of a bounded window have committed to so far.
#[derive(Default)]
pub(super) struct CommittedShares {
    contributions: BTreeMap<u32, SignedAnswer<Contribution>>,
    openings: BTreeMap<u32, SignedAnswer<BoundedOpening>>,
    /// Those whose proofs hold.
    bounded: BTreeMap<u32, BoundedContribution>,
    /// What the shares of S open to, once they were checked; nothing if one does not hold.
    pub(super) opened: Option<Option<Vec<OpenedContribution>>>,
    /// Whether it waits for no further messages of its phase.
    pub(super) is_closing: bool,
    /// The check that it waits for, which another thread does.
    pub(super) awaited: Option<AwaitedCheck>,
    /// Why there was none.
    pub(super) unchecked: Option<UncheckedProofsError>,
    /// Members whose messages do not hold.
    pub(super) faults: Vec<(u32, MemberFaultError)>,
    /// Members that have not stated their edges.
    pub(super) silent: Vec<(u32, UnstatedEdgesError)>,
}

/// The bounded side of a coordinator; nothing of it in any other plan.
#[derive(Default)]
pub(super) struct BoundedSide {
    pub(super) checker: Option<Arc<Checker>>,
    /// The edges that are struck: all that earlier rounds of blame have left.
    pub(super) struck: StruckEdges,
    /// Members whose messages do not hold, which was found once their window had ended.
    pub(super) late: BTreeMap<u32, MemberFaultError>,
    /// Whether another thread checks proofs, and what it is to check.
    pub(super) checks_apart: bool,
    pub(super) checks: Vec<ProofCheck>,
}

impl CommittedShares {
    /// Keeps the first contribution of a member, unless it has opened another one.
    fn take_contribution(&mut self, from: u32, held: SignedAnswer<Contribution>) -> bool {
        let digest = held.0.digest();
        let known = self.contributions.get(&from).is_none_or(|(own, _)| own.digest() == digest);
        let opens = self.openings.get(&from).is_none_or(|(own, _)| own.contribution == digest);
        if known && opens {
            self.contributions.entry(from).or_insert(held);
        }
        known && opens
    }

    /// Keeps the first opening of a member, unless it is of another contribution than is here.
    fn take_opening(&mut self, from: u32, held: SignedAnswer<BoundedOpening>) -> bool {
        let (own, digest) = (self.contributions.get(&from), held.0.digest());
        let known = self.openings.get(&from).is_none_or(|(own, _)| own.digest() == digest);
        let opens = own.is_none_or(|(own, _)| own.digest() == held.0.contribution);
        if known && opens {
            self.openings.entry(from).or_insert(held);
        }
        known && opens
    }

    /// Contributions that are not checked yet.
    pub(super) fn unchecked(&self) -> impl Iterator<Item = (u32, &Arc<Verified<Contribution>>)> {
        let new = self.contributions.iter();
        let new = new.filter(|(member, _)| !self.bounded.contains_key(member));
        new.map(|(member, (given, _))| (*member, given))
    }

    /// Whether a member's contribution holds.
    pub(super) fn has(&self, member: u32) -> bool {
        self.bounded.contains_key(&member)
    }

    /// A member's contribution and its opening, if both are here and the first holds.
    pub(super) fn share_of(
        &self,
        member: u32,
    ) -> Option<(BoundedContribution, Arc<Verified<BoundedOpening>>)> {
        let bounded = self.bounded.get(&member)?.clone();
        Some((bounded, Arc::clone(&self.openings.get(&member)?.0)))
    }

    /// Takes what was found of these members' contributions. One that does not hold counts as none, and
    /// its member is named.
    pub(super) fn take_bounded(&mut self, checked: &[u32], found: Contributions) {
        self.note(&found.faulty);
        self.bounded.extend(found.bounded.into_iter().map(|own| (own.controller(), own)));
        let (bounded, all) = (&self.bounded, &mut self.contributions);
        all.retain(|member, _| !checked.contains(member) || bounded.contains_key(member));
    }

    /// Takes what was found of openings. If one does not hold, its member is named.
    pub(super) fn take_opened(&mut self, opened: Result<Vec<OpenedContribution>, OpeningsError>) {
        if let Err(OpeningsError::Refused { faulty, .. }) = &opened {
            self.note(faulty);
        }
        self.opened = Some(opened.ok());
    }

    fn note(&mut self, faulty: &[FaultyError]) {
        let named = faulty.iter().map(|one| (one.controller, MemberFaultError::Fault(one.fault)));
        self.faults.extend(named);
    }
}

impl Coordinator {
    /// For a bounded plan: what its members prove. Without it no contribution counts, so none of its
    /// windows opens.
    #[must_use]
    pub fn with_checker(mut self, checker: Arc<Checker>) -> Self {
        self.bounded.checker = Some(checker);
        self
    }

    /// Whether members commit to their owners' values.
    pub(super) fn is_proven(&self) -> bool {
        self.plan().integrity.is_bounded()
    }

    /// The scope of a window under a membership, if this is a bounded plan whose terms are known.
    pub(super) fn scope(&self, window: Window, fixing: &FixedRound) -> Option<Scope> {
        let checker = self.bounded.checker.as_deref().filter(|_| self.is_proven())?;
        Some(scope_of(&self.id(), checker.terms(), window, fixing.fixed.digest()))
    }

    /// The window that a scope states, if it is one in progress under this membership.
    pub(super) fn window_of_scope(&self, scope: &Scope) -> Result<Window, MessageError> {
        let (start, end) = (Timestamp(scope.start), Timestamp(scope.end));
        let window = Window { start, end };
        let round = self.rounds.get(&start).filter(|round| round.window == window);
        let round = round.ok_or(MessageError::UnknownWindow)?;
        let (Phase::Collecting(fixing) | Phase::Opening(fixing, _)) = &round.phase else {
            return Err(MessageError::Mismatched);
        };
        let own = self.scope(window, fixing);
        if own == Some(*scope) { Ok(window) } else { Err(MessageError::Mismatched) }
    }

    /// Takes a contribution if it is for this M. Its proofs are checked with all others, before S
    /// is fixed.
    pub(super) fn contribution(
        &mut self,
        now: Timestamp,
        (given, signed): &SignedAnswer<Contribution>,
        sums: &impl Sums,
    ) -> Result<Step<Vec<Output>>, MessageError> {
        let (window, controller) = (self.window_of_scope(&given.scope)?, given.controller);
        let listed = usize::try_from(self.announced.owners(controller)).unwrap_or(usize::MAX);
        let round = self.round_mut(window)?;
        let wanted = match &round.phase {
            // Those that are here are being checked, and the window goes on with them.
            _ if round.committed.is_closing => return Err(MessageError::Late),
            Phase::Opening(_, opening) => &opening.set,
            Phase::Collecting(fixing) => fixing.fixed.members(),
            Phase::Summoned => return Err(MessageError::Mismatched),
        };
        if !wanted.contains(controller) {
            return Err(MessageError::Late);
        }
        if given.owners.len() > listed {
            return Err(MessageError::Malformed);
        }
        if !round.committed.take_contribution(controller, (Arc::clone(given), Arc::clone(signed))) {
            return Err(MessageError::Mismatched);
        }
        round.refusals.remove(&controller);
        round.tokens.insert(controller, Vec::new());
        Ok(self.advance(now, window.start, sums))
    }

    /// Takes an opening if it is for this S.
    pub(super) fn bounded_opening(
        &mut self,
        now: Timestamp,
        (given, signed): &SignedAnswer<BoundedOpening>,
        sums: &impl Sums,
    ) -> Result<Step<Vec<Output>>, MessageError> {
        let (window, controller) = (self.window_of_scope(&given.scope)?, given.controller);
        let round = self.round_mut(window)?;
        let Phase::Opening(_, opens) = &round.phase else { return Err(MessageError::Mismatched) };
        if opens.digest != given.opening_set || !opens.set.contains(controller) {
            return Err(MessageError::Mismatched);
        }
        if !round.committed.take_opening(controller, (Arc::clone(given), Arc::clone(signed))) {
            return Err(MessageError::Mismatched);
        }
        round.openings.insert(controller, Vec::new());
        Ok(self.advance(now, window.start, sums))
    }

    /// Ends a bounded window whose openings are all here, or asks who lied.
    pub(super) fn conclude_bounded(
        &mut self,
        now: Timestamp,
        start: Timestamp,
    ) -> Step<Vec<Output>> {
        // Those of before a restart are not checked yet.
        match self.check_contributions(now, start) {
            None => return Step::default(),
            Some(Err(failure)) => return self.fail(start, failure),
            Some(Ok(())) => {}
        }
        let opened = match self.opened_shares(now, start) {
            None => return Step::default(),
            Some(Ok(opened)) => opened,
            Some(Err(failure)) => return self.fail(start, failure),
        };
        let Some(round) = self.rounds.get(&start) else { return Step::default() };
        let Phase::Opening(fixing, opens) = &round.phase else { return Step::default() };
        let members: Vec<u32> = opens.set.iter().collect();
        let checker = self.bounded.checker.as_deref();
        match checker.map(|checker| checker.row(&members, &opened, None)) {
            Some(Ok(row)) => {
                let result = self.bounded_result(round, (fixing, &opens.set), &row);
                self.end(start, result)
            }
            _ => self.begin_blame(now, start, opened),
        }
    }

    /// The result of a row that the commitments open to.
    fn bounded_result(
        &self,
        round: &Round,
        (fixing, set): (&FixedRound, &RosterSet),
        row: &BoundedRow,
    ) -> Result<WindowResult, ReleaseError> {
        let plan = self.plan();
        let outputs = rows_of(&plan.select, plan.release.outputs(), row.values());
        // Terms are such that the sum of all bounds fits the plan's words, so this is a bug.
        let outputs = outputs.ok_or(ReleaseError::WrongLength)?;
        let receipt = self.bounded_receipt(round, fixing).ok_or(ReleaseError::FaultyOpening)?;
        let result = self.result_of_sum(round, set, outputs)?;
        let left_out = fixing.fixed.size().saturating_sub(result.members);
        Ok(WindowResult { bounded: Some(Arc::new(receipt)), left_out, ..result })
    }

    /// Who is named with a window, also for an earlier one that ended before it was found out, and who is silent.
    pub(super) fn named_and_silent(&mut self, round: &Round) -> (Faults, Silent) {
        let late = std::mem::take(&mut self.bounded.late);
        let own = round.committed.faults.iter().copied();
        let is_known = |at: &u32| round.committed.faults.iter().any(|(known, _)| known == at);
        let faults = own.chain(late.into_iter().filter(|(at, _)| !is_known(at)));
        let faults = faults.filter_map(|(at, why)| Some((self.controller_at(at)?, why))).collect();
        let silent = round.committed.silent.iter();
        let silent = silent.filter_map(|(at, why)| Some((self.controller_at(*at)?, *why)));
        (faults, silent.collect())
    }

    /// What the members said, for readers.
    fn bounded_receipt(&self, round: &Round, fixing: &FixedRound) -> Option<BoundedReceipt> {
        let Phase::Opening(_, opens) = &round.phase else { return None };
        let share = |member: u32| {
            let contribution = (*round.committed.contributions.get(&member)?.1).clone();
            let opening = (*round.committed.openings.get(&member)?.1).clone();
            Some(BoundedShare { contribution, opening })
        };
        let shares = opens.set.iter().map(share).collect::<Option<Vec<_>>>()?;
        let exclusions = super::receipts::excluding(round, fixing);
        let (membership, opening_set) = (fixing.signed.clone(), opens.signed.clone());
        Some(BoundedReceipt { membership, opening_set, shares, exclusions })
    }
}
