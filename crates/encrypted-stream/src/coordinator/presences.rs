//! Step 1: a window has closed; presences come in; M is fixed.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_time::{Span, Timestamp, Window};

use super::Coordinator;
use super::graph::{pickers_of, tree};
use super::openings::pending_requests;
use super::output::{Output, Sums, WindowReport};
use super::recovery::ServiceRecord;
use super::round::{FixedRound, MemberReport, Phase, Round, SentSummons};
use crate::counts::narrow;
use crate::error::{MessageError, ReleaseError};
use crate::ledger::Step;
use crate::mask::set::RosterSet;
use crate::membership::FixedMembership;
use crate::messages::{Membership, Presence, Segments, ServiceMessage, SummonedStream, Summons};

impl Coordinator {
    /// A window has closed on the transformer's watermark, grace included. Every controller
    /// that has not refused the plan is summoned, even without a complete stream. A window
    /// that is in progress or has ended is left alone, unless M was fixed before a restart.
    /// In that case, members that have not spent a token on it are summoned again.
    pub fn handle_window_report(
        &mut self,
        report: &WindowReport,
        now: Timestamp,
    ) -> Step<Vec<Output>> {
        let start = report.window.start;
        let over = self.retired || self.has_ended(start);
        if over || report.window != self.plan().window_at(start) {
            return Step::default();
        }
        if self.rounds.contains_key(&start) {
            return self.call_again(report);
        }
        let mut round = Round::new(report.window, Phase::Summoned, now);
        round.wait(now, self.timing.presence, self.timing.retry);
        round.incomplete.clone_from(&report.excluded);
        round.unreported = report.unreported;
        round.summonses = self.call(report);
        let messages =
            round.summonses.iter().map(|(to, called)| send_summons(*to, called)).collect();
        self.rounds.insert(start, round);
        if report.unreported > 0 && report.complete.is_empty() && report.excluded.is_empty() {
            return self.fail(start, ReleaseError::NothingReported);
        }
        let mut step = Step::new(Vec::new(), messages);
        // Nobody to wait for: the window is over at once.
        if self.rounds.get(&start).is_some_and(|round| round.summonses.is_empty()) {
            let (held, needed) = (0, self.quorum(0));
            step.merge(self.fail(start, ReleaseError::QuorumLost { held, needed }));
        }
        step
    }

    /// Summons members again. A presence is not durable, so a controller that crashed
    /// before its spend has lost it. The same summons gets the same presence, which is the
    /// one in M.
    fn call_again(&mut self, report: &WindowReport) -> Step<Vec<Output>> {
        let called = self.call(&self.as_answered(report));
        let Some(round) = self.rounds.get_mut(&report.window.start) else {
            return Step::default();
        };
        if !matches!(round.phase, Phase::Collecting(_)) || !round.summonses.is_empty() {
            return Step::default();
        }
        round.summonses = called;
        Step::new(Vec::new(), pending_requests(round))
    }

    /// The report as M's members answered it. Streams that have become complete since would
    /// change the summons.
    fn as_answered(&self, report: &WindowReport) -> WindowReport {
        let present = self.rounds.get(&report.window.start).map(|round| &round.reports);
        let named = |stream: &&SummonedStream| {
            let planned = self.plan().streams.get(stream.position as usize);
            let said = planned.and_then(|planned| present?.get(&planned.controller));
            said.is_some_and(|said| {
                said.accepted.binary_search(&stream.position).is_ok()
                    || said.excluded.iter().any(|(position, _)| *position == stream.position)
            })
        };
        let complete = report.complete.iter().filter(named).cloned().collect();
        WindowReport { complete, excluded: report.excluded.clone(), ..*report }
    }

    /// Whether a window is in progress or has ended.
    #[must_use]
    pub fn knows(&self, window: Window) -> bool {
        self.has_ended(window.start) || self.rounds.contains_key(&window.start)
    }

    /// The signed summons of each controller.
    fn call(&self, report: &WindowReport) -> BTreeMap<u32, SentSummons> {
        let mut streams: BTreeMap<u32, Vec<SummonedStream>> = BTreeMap::new();
        for (controller, answer) in (0_u32..).zip(&self.answers) {
            if !matches!(answer, Some(Err(_))) {
                streams.insert(controller, Vec::new());
            }
        }
        for stream in &report.complete {
            let planned = self.plan().streams.get(stream.position as usize);
            let at = planned.and_then(|planned| streams.get_mut(&planned.controller));
            if let Some(at) = at {
                at.push(stream.clone());
            }
        }
        let (plan, window) = (self.id(), report.window);
        let call = |(controller, streams): (u32, Vec<SummonedStream>)| {
            let summons = Summons { plan, window, controller, streams };
            let signed = Signed::new(&summons, &self.key);
            (controller, SentSummons { signed, streams: summons.streams })
        };
        streams.into_iter().map(call).collect()
    }

    /// Takes a presence if it fits the summons.
    pub(super) fn presence(
        &mut self,
        now: Timestamp,
        (presence, signed): (&Verified<Presence>, Option<&Signed<Presence>>),
        sums: &impl Sums,
    ) -> Result<Step<Vec<Output>>, MessageError> {
        let owner = |plan: &alpheus_policy::plan::Plan, at: u32| {
            plan.streams.get(at as usize).map(|planned| planned.owner)
        };
        let announced = self.announced.clone();
        let lacks = self.graph.lacks(presence.controller);
        let round = self.round_mut(presence.window)?;
        let called = round.summonses.get(&presence.controller).ok_or(MessageError::Late)?;
        if called.signed.digest() != presence.summons {
            return Err(MessageError::Mismatched);
        }
        let may_be_read = announced.plan().sealed_to.is_some();
        let owner = |at| owner(announced.plan(), at);
        check_presence(presence, &called.streams, may_be_read, owner)?;
        self.mask_keys.check(&announced, presence, self.clock.unwrap_or(now))?;
        let round = self.round_mut(presence.window)?;
        let lacks = lacks && matches!(round.phase, Phase::Summoned);
        if lacks {
            // Without its picks, M could not state whom it masks with. It is asked again
            // once they are here.
            return Ok(self.announce_again(now, presence.controller));
        }
        if !matches!(round.phase, Phase::Summoned) {
            let known = round.reports.get(&presence.controller);
            let same = known.is_some_and(|known| known.digest == presence.digest());
            return if same { Ok(Step::default()) } else { Err(MessageError::Late) };
        }
        let present = MemberReport {
            digest: presence.digest(),
            accepted: presence.accepted.clone(),
            excluded: presence.excluded.clone(),
            owners: presence.owners,
            signed: signed.filter(|_| !presence.excluded.is_empty()).cloned(),
            mask_key: presence.mask_key.clone(),
        };
        round.reports.insert(presence.controller, present);
        round.refusals.remove(&presence.controller);
        Ok(self.advance(now, presence.window.start, sums))
    }

    /// Fixes M once all controllers have answered or time is up.
    pub(super) fn advance_to_membership(
        &mut self,
        now: Timestamp,
        start: Timestamp,
    ) -> Step<Vec<Output>> {
        let Some(round) = self.rounds.get(&start) else { return Step::default() };
        if !matches!(round.phase, Phase::Summoned) || (now < round.deadline && round.waits()) {
            return Step::default();
        }
        let waits = self.waits_with_membership(start);
        self.note_turn(start, waits);
        let Some(round) = self.rounds.get(&start).filter(|_| !waits) else {
            return Step::default();
        };
        let fixing = self.acceptable_without(round, now);
        let fixing = match fixing {
            Ok(fixing) => fixing,
            Err(failure) => return self.fail(start, self.reason(round, failure)),
        };
        let (most, retry) = (self.token_wait(), self.timing.retry);
        let Some(round) = self.rounds.get_mut(&start) else { return Step::default() };
        round.reports.retain(|position, _| fixing.fixed.members().contains(*position));
        round.absent = round.absent_streams();
        round.refusals.clear();
        round.wait(now, most, retry);
        let record = ServiceRecord::Fixed {
            window: round.window,
            signed: fixing.signed.clone(),
            present: round.reports.iter().map(|(p, present)| (*p, present.clone())).collect(),
            incomplete: round.incomplete.clone(),
            absent: round.absent,
        };
        let streams = round.unreported;
        let edges: Vec<_> = fixing.struck.edges().collect();
        let left_out = (!edges.is_empty()).then_some(ServiceRecord::LeftOut { start, edges });
        let messages = send_membership(&fixing, fixing.fixed.members().iter());
        round.phase = Phase::Collecting(Box::new(fixing));
        self.note_shares(start);
        let unreported = (streams > 0).then_some(ServiceRecord::Unreported { start, streams });
        let records = [record].into_iter().chain(unreported).chain(left_out);
        Step::new(records.map(|record| self.put(&record)).collect(), messages)
    }

    /// M without those who owe openings or have ruined windows. If the window cannot open without
    /// them, nothing is lost by including them.
    fn acceptable_without(
        &self,
        round: &Round,
        now: Timestamp,
    ) -> Result<FixedRound, ReleaseError> {
        let owing = self.owing(now);
        let withholders = self.withholders.left_out(round.window.start);
        let withholders = withholders.iter().filter_map(|id| self.announced.position(id));
        let both: BTreeSet<u32> = owing.iter().copied().chain(withholders).collect();
        let mut fixing = self.acceptable(round, &both);
        for left_out in [owing, BTreeSet::new()] {
            if fixing.is_err() && left_out.len() < both.len() {
                fixing = self.acceptable(round, &left_out);
            }
        }
        Ok(self.of_known_sets(round, fixing?, &both))
    }

    /// Controllers that have kept another window waiting for their openings for long. Each
    /// window with them in M would wait as well.
    pub(super) fn owing(&self, now: Timestamp) -> BTreeSet<u32> {
        let waiting = self.rounds.values().filter(|round| {
            let begun = round.deadline.0.saturating_sub(self.timing.openings.0);
            matches!(round.phase, Phase::Opening(..)) && now.0.saturating_sub(begun) >= OWED.0
        });
        waiting.flat_map(Round::missing).collect()
    }

    /// Why a window fails: what refusals say explains more than that a quorum is missing.
    pub(super) fn reason(&self, round: &Round, failure: ReleaseError) -> ReleaseError {
        if round.is_of_lost_state(self.announced.tolerated()) {
            return ReleaseError::StateLost;
        }
        round.blame(failure)
    }

    /// M over the controllers that are present and not left out, if it can open.
    pub(super) fn acceptable(
        &self,
        round: &Round,
        left_out: &BTreeSet<u32>,
    ) -> Result<FixedRound, ReleaseError> {
        let nobody = || {
            let (all, needed) = (narrow(round.reports.len()), self.quorum(0));
            // Enough were present, but none had enough of its picks.
            let held = if all < needed { all } else { 0 };
            ReleaseError::QuorumLost { held, needed }
        };
        let fixing = self.membership_of(round, left_out).ok_or_else(nobody)?;
        match self.forbids(&fixing.fixed, fixing.fixed.members()) {
            None => Ok(fixing),
            Some(failure) => Err(failure),
        }
    }

    fn membership_of(&self, round: &Round, left_out: &BTreeSet<u32>) -> Option<FixedRound> {
        let present = round.reports.iter().filter(|(position, _)| !left_out.contains(*position));
        let mut present: BTreeMap<u32, &MemberReport> =
            present.map(|(p, present)| (*p, present)).collect();
        let all = RosterSet::of(self.announced.controllers(), present.keys().copied());
        let members = self.graph.peel(all);
        present.retain(|position, _| members.contains(*position));
        let pickers = self.graph.pickers(&members);
        let tree = tree(&pickers, present.iter().map(|(at, present)| (*at, present.digest)));
        let membership = Membership {
            plan: self.id(),
            window: round.window,
            members,
            owners: present.values().map(|present| present.owners).collect(),
            root: tree.root(),
            mask_keys: present.values().filter_map(|present| present.mask_key.clone()).collect(),
        };
        let signed = Signed::new(&membership, &self.key);
        let inside = |at: u32| membership.members.contains(at);
        let edges =
            self.bounded.struck.edges().filter(|(one, other)| inside(*one) && inside(*other));
        let struck = self.bounded.struck.of(&edges.collect::<Vec<_>>());
        let fixed = FixedMembership::from_ledger(signed.digest(), membership).ok()?;
        (!present.is_empty()).then_some(FixedRound { signed, fixed, tree, pickers, struck })
    }

    /// The minimum |S| for a membership of this size.
    pub(super) fn quorum(&self, members: u32) -> u32 {
        self.announced.min_opening(members)
    }

    /// Why a set would be refused by its members, or is too small to open: there is no
    /// point in asking them.
    pub(super) fn forbids(&self, fixed: &FixedMembership, set: &RosterSet) -> Option<ReleaseError> {
        let (held, needed) = (narrow(set.count()), self.quorum(fixed.size()));
        if held < needed {
            return Some(ReleaseError::QuorumLost { held, needed });
        }
        let bounds = self.plan().population;
        let stated = fixed.population(set);
        // Of two controllers, each may trust the other; that is for them to decide.
        let counted = if set.roster() == 2 {
            stated
        } else {
            fixed.min_population(set, self.announced.discounted())
        };
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        if counted < u64::from(bounds.min) {
            let (counted, needed) = (narrow(counted), bounds.min);
            return Some(ReleaseError::PopulationTooSmall { counted, needed });
        }
        if stated > u64::from(bounds.max) {
            let (counted, most) = (narrow(stated), bounds.max);
            return Some(ReleaseError::PopulationTooLarge { counted, most });
        }
        None
    }
}

/// How long a window may wait for a controller's opening before other windows proceed
/// without that controller.
pub(super) const OWED: Span = Span::seconds(30);

pub(super) fn send_summons(to: u32, called: &SentSummons) -> Output {
    Output::Send { to, message: ServiceMessage::Summons(called.signed.clone()) }
}

/// M to these members, each with its own proof.
pub(super) fn send_membership(fixing: &FixedRound, to: impl Iterator<Item = u32>) -> Vec<Output> {
    let one = |to: u32| {
        let rank = fixing.fixed.rank(to)?;
        let proof = fixing.tree.prove(usize::try_from(rank).ok()?)?;
        let membership = fixing.signed.clone();
        let strikes = fixing.struck.strikes(to);
        let message = match &fixing.pickers {
            None if !strikes.is_empty() => {
                ServiceMessage::BoundedMembership { membership, proof, strikes }
            }
            None => ServiceMessage::Membership { membership, proof },
            Some(pickers) => {
                let pickers = pickers_of(pickers, to).to_vec();
                ServiceMessage::Introduction { membership, proof, pickers }
            }
        };
        Some(Output::Send { to, message })
    };
    to.filter_map(one).collect()
}

/// Checks that every stream of the summons is accepted or excluded, and that the count of
/// owners is what the borders state. Claims of ticks do not show who has data. There the
/// controller's word counts, as far as it is possible. If the plan's consumer may read owners'
/// raw data, some may not count.
fn check_presence<O: Ord>(
    presence: &Presence,
    streams: &[SummonedStream],
    may_be_read: bool,
    owner: impl Fn(u32) -> Option<O>,
) -> Result<(), MessageError> {
    // Receipts carry it as it was signed, and are read by order.
    let ascends = presence.accepted.is_sorted_by(|a, b| a < b)
        && presence.excluded.is_sorted_by(|a, b| a.0 < b.0);
    let excluded = presence.excluded.iter().map(|(position, _)| *position);
    let mut named: Vec<u32> = presence.accepted.iter().copied().chain(excluded).collect();
    named.sort_unstable();
    let all = named.iter().eq(streams.iter().map(|stream| &stream.position));
    let (mut certain, mut possible) = (BTreeSet::new(), BTreeSet::new());
    let (mut silent, mut unknown) = (0, 0);
    for stream in streams {
        if presence.accepted.binary_search(&stream.position).is_err() {
            continue;
        }
        match has_data(stream) {
            Some(false) => silent += 1,
            Some(true) => drop(certain.insert(owner(stream.position))),
            None => {
                unknown += 1;
                possible.insert(owner(stream.position));
            }
        }
    }
    let least = narrow(certain.len());
    possible.extend(certain);
    let most = narrow(possible.len());
    let said = presence.silent.checked_sub(silent).filter(|said| *said <= unknown);
    let possible = |said: u32| match said {
        // All of them have data.
        0 => most..=most,
        said => least..=most.min(least.saturating_add(unknown - said)),
    };
    let counted = said.map(possible).is_some_and(|owners| {
        let least = if may_be_read { 0 } else { *owners.start() };
        (least..=*owners.end()).contains(&presence.owners)
    });
    if ascends && all && counted { Ok(()) } else { Err(MessageError::Malformed) }
}

/// Whether a stream has data, as far as the service knows.
fn has_data(stream: &SummonedStream) -> Option<bool> {
    match &stream.segments {
        Segments::OfEvents(segments) => Some(segments.iter().any(|segment| segment.events() > 0)),
        Segments::OfTicks { .. } => None,
    }
}
