//! The proofs of bounded windows, checked here or by another thread: what there is to check of a window
//! is a value, and so is what was found.

use std::sync::{Arc, Weak};

use alpheus_bounded_influence::check::{
    BoundedContribution, Checker, Contributions, FaultyError, Member, OpenedContribution,
    OpeningsError,
};
use alpheus_bounded_influence::messages::Scope;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Verified;
use alpheus_time::{Span, Timestamp};

use super::Coordinator;
use super::bounded_windows::MemberFaultError;
use super::output::{Output, Sums};
use super::round::{Phase, Round};
use crate::error::{ReleaseError, UncheckedProofsError};
use crate::ledger::Step;
use crate::messages::{BoundedOpening, Contribution};

/// How long a controller may take to prove one owner's window: five times what it takes.
const PROVING: Span = Span(100_000);

/// What there is to check of a window. It shares the messages with the window.
pub struct ProofCheck {
    start: Timestamp,
    checker: Arc<Checker>,
    work: Work,
    /// Nothing once the window waits for it no more.
    wanted: Weak<()>,
}

enum Work {
    Contributions(Scope, Vec<(Member, Arc<Verified<Contribution>>)>),
    Openings(Digest, Vec<(BoundedContribution, Arc<Verified<BoundedOpening>>)>),
}

/// What a window waits for: it is held there alone.
pub(super) type AwaitedCheck = Arc<()>;

/// What a check has found. Only [`ProofCheck::run`] makes one.
pub struct CheckedProofs {
    start: Timestamp,
    found: Verdict,
}

enum Verdict {
    /// Of these members; nothing if they could not be checked.
    Contributions(Scope, Vec<u32>, Contributions),
    Openings(Digest, Result<Vec<OpenedContribution>, OpeningsError>),
    /// Nothing, of the window that waits for this check.
    Nothing(Weak<()>, UncheckedProofsError),
}

impl ProofCheck {
    /// How many proofs there are to check: one for each owner, or one for each member's noise.
    #[must_use]
    pub fn proofs(&self) -> usize {
        match &self.work {
            Work::Contributions(_, signed) => signed.iter().map(|(_, one)| one.owners.len()).sum(),
            Work::Openings(_, shares) => shares.len(),
        }
    }

    /// Whether a window still waits for it.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.wanted.strong_count() > 0
    }

    /// In the place of what it would find: why it is not done. Its window fails with that.
    #[must_use]
    pub fn unchecked(&self, why: UncheckedProofsError) -> CheckedProofs {
        CheckedProofs { start: self.start, found: Verdict::Nothing(self.wanted.clone(), why) }
    }

    /// Checks all proofs in one batch. This takes long, and changes nothing.
    #[must_use]
    pub fn run(self) -> CheckedProofs {
        let Self { start, checker, work, wanted } = self;
        let found = match work {
            Work::Contributions(scope, signed) => {
                let members = signed.iter().map(|(member, _)| member.controller).collect();
                match checker.contributions(&scope, &signed) {
                    Ok(found) => Verdict::Contributions(scope, members, found),
                    // They were not asked about as they should be, which is nobody's fault among them.
                    Err(_) => Verdict::Nothing(wanted, UncheckedProofsError::Broken),
                }
            }
            Work::Openings(set, shares) => Verdict::Openings(set, checker.openings(&set, &shares)),
        };
        CheckedProofs { start, found }
    }
}

impl Coordinator {
    /// Leaves proofs to others: the caller [takes](Self::take_checks) the checks, lets
    /// another thread do them, and [hands back](Self::handle_checked) what they find.
    #[must_use]
    pub fn with_checks_apart(mut self) -> Self {
        self.bounded.checks_apart = true;
        self
    }

    /// The checks that are to be done.
    pub fn take_checks(&mut self) -> Vec<ProofCheck> {
        std::mem::take(&mut self.bounded.checks)
    }

    /// Takes what a check has found, and moves its window on.
    pub fn handle_checked(
        &mut self,
        now: Timestamp,
        checked: CheckedProofs,
        sums: &impl Sums,
    ) -> Step<Vec<Output>> {
        let start = checked.start;
        self.take_checked(checked);
        self.advance(now, start, sums)
    }

    /// How long a window waits for tokens: in a bounded plan also for proofs.
    pub(super) fn token_wait(&self) -> Span {
        let most = || {
            let all = 0..self.announced.controllers();
            u64::from(all.map(|at| self.announced.owners(at)).max().unwrap_or(0))
        };
        let proving = if self.is_proven() { PROVING.0.saturating_mul(most()) } else { 0 };
        Span(self.timing.tokens.0.saturating_add(proving))
    }

    /// Whether all contributions that are here are checked, or why they will not be. If neither is known
    /// yet, they are being checked. No others are taken any more.
    pub(super) fn check_contributions(
        &mut self,
        now: Timestamp,
        start: Timestamp,
    ) -> Option<Result<(), ReleaseError>> {
        if let Some(why) = self.unchecked(now, start) {
            return Some(Err(ReleaseError::Unchecked(why)));
        }
        if self.is_being_checked(start) {
            return None;
        }
        let Some(check) = self.contributions_of(start) else { return Some(Ok(())) };
        if !self.check(now, check) {
            return None;
        }
        let why = self.unchecked(now, start);
        Some(why.map_or(Ok(()), |why| Err(ReleaseError::Unchecked(why))))
    }

    /// The shares of the members of S, once all are here and hold; or who is at fault. Nothing while
    /// they are being checked.
    pub(super) fn opened_shares(
        &mut self,
        now: Timestamp,
        start: Timestamp,
    ) -> Option<Result<Vec<OpenedContribution>, ReleaseError>> {
        let lost = ReleaseError::FaultyOpening;
        let known = |own: &mut Self| own.rounds.get_mut(&start)?.committed.opened.take();
        if let Some(opened) = known(self) {
            return Some(opened.ok_or(lost));
        }
        if self.is_being_checked(start) {
            return None;
        }
        let Some(check) = self.openings_of(start) else { return Some(Err(lost)) };
        if !self.check(now, check) {
            return None;
        }
        Some(known(self).flatten().ok_or(lost))
    }

    /// Whether others check a window: then its messages are not looked through again.
    fn is_being_checked(&self, start: Timestamp) -> bool {
        self.rounds.get(&start).is_some_and(|round| round.committed.awaited.is_some())
    }

    /// Why a window is not checked, if it is not going to be.
    fn unchecked(&self, now: Timestamp, start: Timestamp) -> Option<UncheckedProofsError> {
        let round = self.rounds.get(&start)?;
        let is_late = round.committed.awaited.is_some() && now >= round.deadline;
        round.committed.unchecked.or_else(|| is_late.then_some(UncheckedProofsError::Late))
    }

    /// Checks, or has others do it, for so long at most. False while they do.
    fn check(&mut self, now: Timestamp, mut check: ProofCheck) -> bool {
        let most = self.timing.proofs;
        let Some(round) = self.rounds.get_mut(&check.start) else { return false };
        round.committed.is_closing = true;
        let awaited = AwaitedCheck::default();
        check.wanted = Arc::downgrade(&awaited);
        round.committed.awaited = Some(awaited);
        if !self.bounded.checks_apart {
            self.take_checked(check.run());
            return true;
        }
        round.deadline = now.plus(most);
        self.bounded.checks.push(check);
        false
    }

    /// The contributions that are here and not checked yet.
    fn contributions_of(&self, start: Timestamp) -> Option<ProofCheck> {
        let round = self.rounds.get(&start)?;
        let (Phase::Collecting(fixing) | Phase::Opening(fixing, _)) = &round.phase else {
            return None;
        };
        let (scope, checker) = (self.scope(round.window, fixing)?, self.bounded.checker.clone()?);
        let member = |controller: u32| Member {
            controller,
            counted: fixing.fixed.owners_at(controller),
            listed: self.announced.owners(controller),
        };
        let new = round.committed.unchecked();
        let signed: Vec<_> = new.map(|(at, given)| (member(at), Arc::clone(given))).collect();
        let work = Work::Contributions(scope, signed);
        let some = matches!(&work, Work::Contributions(_, signed) if !signed.is_empty());
        some.then_some(ProofCheck { start, checker, work, wanted: Weak::new() })
    }

    /// The shares of the members of S, if all are here.
    fn openings_of(&self, start: Timestamp) -> Option<ProofCheck> {
        let round = self.rounds.get(&start)?;
        let Phase::Opening(_, opens) = &round.phase else { return None };
        let shares: Option<Vec<_>> =
            opens.set.iter().map(|member| round.committed.share_of(member)).collect();
        let (checker, work) =
            (self.bounded.checker.clone()?, Work::Openings(opens.digest, shares?));
        Some(ProofCheck { start, checker, work, wanted: Weak::new() })
    }

    /// What was found goes into its window, if that is there and still about the same. If it has ended
    /// without, those whose messages do not hold are named with the next one that ends. Else a check that
    /// they make long would name them in no window.
    fn take_checked(&mut self, checked: CheckedProofs) {
        let CheckedProofs { start, found } = checked;
        let own = self.rounds.get(&start).and_then(|round| self.is_about(round, &found));
        let Some(round) = self.rounds.get_mut(&start).filter(|_| own.is_some()) else {
            let late = faulty_of(&found);
            let late = late.iter().map(|one| (one.controller, MemberFaultError::Fault(one.fault)));
            self.bounded.late.extend(late);
            return;
        };
        round.committed.awaited = None;
        match found {
            Verdict::Contributions(_, members, found) => {
                round.committed.take_bounded(&members, found);
                let bounded = &round.committed;
                round.tokens.retain(|member, _| bounded.has(*member));
            }
            Verdict::Openings(_, opened) => round.committed.take_opened(opened),
            Verdict::Nothing(_, why) => round.committed.unchecked = Some(why),
        }
    }

    /// Whether something found is about a window as it is now.
    fn is_about(&self, round: &Round, found: &Verdict) -> Option<()> {
        let same = match (&round.phase, found) {
            (_, Verdict::Nothing(of, _)) => {
                let awaited = round.committed.awaited.as_ref();
                awaited.is_some_and(|awaited| std::ptr::eq(Arc::as_ptr(awaited), of.as_ptr()))
            }
            (Phase::Summoned, _) => false,
            (
                Phase::Collecting(fixing) | Phase::Opening(fixing, _),
                Verdict::Contributions(of, ..),
            ) => self.scope(round.window, fixing) == Some(*of),
            (Phase::Opening(_, opens), Verdict::Openings(of, _)) => opens.digest == *of,
            (Phase::Collecting(_), Verdict::Openings(..)) => false,
        };
        same.then_some(())
    }
}

/// Those whose messages do not hold.
fn faulty_of(found: &Verdict) -> &[FaultyError] {
    match found {
        Verdict::Contributions(_, _, found) => &found.faulty,
        Verdict::Openings(_, Err(OpeningsError::Refused { faulty, .. })) => faulty,
        Verdict::Openings(..) | Verdict::Nothing(..) => &[],
    }
}
