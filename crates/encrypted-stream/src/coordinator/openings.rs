//! Steps 2 to 4: tokens come in, S is fixed, openings come in, and the sum
//! `Σ_S (R·c + T_p − o_p)` is the result.

use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_time::Timestamp;

use super::Coordinator;
use super::blame::ask_for_edges;
use super::output::{Output, Sums, WindowResult};
use super::presences::{send_membership, send_summons};
use super::recovery::ServiceRecord;
use super::round::{FixedRound, Opening as Opens, Phase, Round};
use super::totals::Turn;
use crate::consumer::SealedSum;
use crate::counts::narrow;
use crate::error::{MessageError, ReleaseError};
use crate::ledger::Step;
use crate::mask::set::RosterSet;
use crate::messages::{Opening, OpeningSet, ServiceMessage, Token};
use crate::sums::add;

impl Coordinator {
    /// Takes a token if it is for this M.
    pub(super) fn token(
        &mut self,
        now: Timestamp,
        (token, signed): (&Verified<Token>, Option<&Signed<Token>>),
        sums: &impl Sums,
    ) -> Result<Step<Vec<Output>>, MessageError> {
        let outputs = self.plan().release.outputs();
        let round = self.round_mut(token.window)?;
        let (fixing, wanted) = match &round.phase {
            Phase::Summoned => return Err(MessageError::Mismatched),
            Phase::Collecting(fixing) => (fixing, fixing.fixed.members()),
            Phase::Opening(fixing, opening) => (fixing, &opening.set),
        };
        if fixing.fixed.digest() != token.membership {
            return Err(MessageError::Mismatched);
        }
        if !wanted.contains(token.controller) {
            return Err(MessageError::Late);
        }
        if token.words.len() != outputs {
            return Err(MessageError::Malformed);
        }
        if !round.shares.take_token(token.controller, signed) {
            return Err(MessageError::Mismatched);
        }
        round.refusals.remove(&token.controller);
        let mut step = self.keep(token.window, token.controller, false, &token.words);
        step.merge(self.advance(now, token.window.start, sums));
        Ok(step)
    }

    /// Takes an opening if it is for this S.
    pub(super) fn opening(
        &mut self,
        now: Timestamp,
        (opening, signed): (&Verified<Opening>, Option<&Signed<Opening>>),
        sums: &impl Sums,
    ) -> Result<Step<Vec<Output>>, MessageError> {
        let outputs = self.plan().release.outputs();
        let round = self.round_mut(opening.window)?;
        let Phase::Opening(_, opens) = &round.phase else { return Err(MessageError::Mismatched) };
        if opens.digest != opening.opening_set || !opens.set.contains(opening.controller) {
            return Err(MessageError::Mismatched);
        }
        if opening.words.len() != outputs {
            return Err(MessageError::Malformed);
        }
        if !round.shares.take_opening(opening, signed) {
            return Err(MessageError::Mismatched);
        }
        let mut step = self.keep(opening.window, opening.controller, true, &opening.words);
        step.merge(self.advance(now, opening.window.start, sums));
        Ok(step)
    }

    /// Fixes S once all tokens are here or time is up. A single controller's token opens by
    /// itself.
    pub(super) fn advance_to_opening_set(
        &mut self,
        now: Timestamp,
        start: Timestamp,
        sums: &impl Sums,
    ) -> Step<Vec<Output>> {
        let Some(round) = self.rounds.get(&start) else { return Step::default() };
        let waits = now < round.deadline && round.waits() && !round.committed.is_closing;
        if !matches!(round.phase, Phase::Collecting(_)) || waits {
            return Step::default();
        }
        if self.is_proven() {
            match self.check_contributions(now, start) {
                None => return Step::default(),
                Some(Err(failure)) => return self.fail(start, failure),
                Some(Ok(())) => {}
            }
        }
        let Some(round) = self.rounds.get(&start) else { return Step::default() };
        let Phase::Collecting(fixing) = &round.phase else { return Step::default() };
        let all = RosterSet::of(self.announced.controllers(), round.tokens.keys().copied());
        let held = self.graph.peel(all.clone());
        if let Some(failure) = self.forbids(&fixing.fixed, &held) {
            // Too few tokens is the better reason, if peeling alone is not to blame.
            let failure = self.forbids(&fixing.fixed, &all).unwrap_or(failure);
            return self.fail(start, self.reason(round, failure));
        }
        let held = match self.openable(round, fixing, held) {
            Ok(held) => held,
            Err(ruin) => {
                let is_ruined = ruin.is_believed;
                self.rounds.entry(start).and_modify(|round| round.is_ruined = is_ruined);
                return self.fail(start, ruin.failure);
            }
        };
        let held = match self.turn(now, start, held) {
            Turn::Now(held) => held,
            Turn::Later => {
                self.note_turn(start, true);
                return Step::default();
            }
        };
        self.note_turn(start, false);
        let Some(round) = self.rounds.get(&start) else { return Step::default() };
        if self.announced.is_single() && !self.delegates {
            let result = self.add_up(round, &held, sums);
            return self.end(start, result);
        }
        self.open_set(now, start, held)
    }

    fn open_set(&mut self, now: Timestamp, start: Timestamp, set: RosterSet) -> Step<Vec<Output>> {
        let (plan, key, timing) = (self.id(), self.key.clone(), self.timing);
        let masked = !self.announced.is_single();
        let Some(round) = self.rounds.get_mut(&start) else { return Step::default() };
        let phase = std::mem::replace(&mut round.phase, Phase::Summoned);
        let Phase::Collecting(fixing) = phase else { return Step::default() };
        let (window, membership) = (round.window, fixing.fixed.digest());
        let signed = Signed::new(&OpeningSet { plan, window, membership, set: set.clone() }, &key);
        let digest = signed.digest();
        let opens = Opens { signed: signed.clone(), set, digest, masked, blaming: None };
        round.phase = Phase::Opening(fixing, Box::new(opens));
        round.committed.is_closing = false;
        round.summonses.clear();
        round.wait(now, timing.openings, timing.retry);
        if masked {
            // A single controller's share was noted with M.
            self.note_shares(start);
        }
        let mut messages = self.rounds.get(&start).map(send_opening_set).unwrap_or_default();
        messages.extend(self.set_for_sums(start));
        Step::new(vec![self.put(&ServiceRecord::OpeningSet { window, signed })], messages)
    }

    /// Ends the window once all openings are here, one is refused, or time is up.
    pub(super) fn conclude(
        &mut self,
        now: Timestamp,
        start: Timestamp,
        sums: &impl Sums,
    ) -> Step<Vec<Output>> {
        let Some(round) = self.rounds.get(&start) else { return Step::default() };
        let Phase::Opening(_, opens) = &round.phase else { return Step::default() };
        if opens.blaming.is_some() {
            return self.conclude_blame(now, start);
        }
        if !round.waits() || round.committed.is_closing {
            if self.is_proven() {
                return self.conclude_bounded(now, start);
            }
            if self.delegates {
                return self.wait_for_sums(now, start);
            }
            let result = self.add_up(round, &opens.set, sums);
            return self.end(start, result);
        }
        if round.is_of_lost_state(self.announced.tolerated()) {
            return self.fail(start, ReleaseError::StateLost);
        }
        if let Some(reason) = round.fatal_refusal(&opens.set) {
            return self.fail(start, ReleaseError::ControllerRefused(reason));
        }
        if now >= round.deadline {
            return self.fail(start, ReleaseError::OpeningLost);
        }
        Step::default()
    }

    /// `Σ_S (R·c + T − o)`; in a verified plan `Σ_S (Z − o)`, without any ciphertext.
    fn add_up(
        &self,
        round: &Round,
        set: &RosterSet,
        sums: &impl Sums,
    ) -> Result<WindowResult, ReleaseError> {
        let outputs = self.plan().release.outputs();
        let sum = match self.is_verified() {
            true => vec![0; outputs],
            false => {
                let streams = round.accepted_streams(set);
                let sum = sums.sum(&self.id(), round.window, &streams);
                sum.ok_or(ReleaseError::SumsLost)?
            }
        };
        let mut result =
            Some(sum).filter(|sum| sum.len() == outputs).ok_or(ReleaseError::WrongLength)?;
        self.refine(&mut result);
        for position in set.iter() {
            if let Some(token) = round.tokens.get(&position) {
                add(&mut result, token);
            }
            for (word, opened) in
                result.iter_mut().zip(round.openings.get(&position).into_iter().flatten())
            {
                *word = word.wrapping_sub(*opened);
            }
        }
        self.result_of_sum(round, set, result)
    }

    /// The result of a window if its check word is zero, or if the consumer checks it.
    pub(super) fn result_of_sum(
        &self,
        round: &Round,
        set: &RosterSet,
        mut result: Vec<u64>,
    ) -> Result<WindowResult, ReleaseError> {
        let sealed = self.sealed_sum(round, set, &mut result);
        if sealed.is_none() && result.last() != Some(&0) {
            return Err(ReleaseError::CheckWord);
        }
        let members = round.reports.iter().filter(|(position, _)| set.contains(**position));
        let population = members.fold(0_u32, |n, (_, p)| n.saturating_add(p.owners));
        let silent = round.owners(self.plan(), set).saturating_sub(population);
        let (members, receipt) = (narrow(set.count()), self.receipt(round, set));
        Ok(WindowResult {
            outputs: result,
            sealed,
            population,
            silent,
            members,
            left_out: 0,
            windows: 0,
            lost: 0,
            receipt,
            bounded: None,
        })
    }

    /// If the plan is sealed to a consumer: the sum, with what the consumer needs to remove
    /// the pads.
    fn sealed_sum(&self, round: &Round, set: &RosterSet, sum: &mut Vec<u64>) -> Option<SealedSum> {
        self.plan().sealed_to?;
        let (Phase::Collecting(fixing) | Phase::Opening(fixing, _)) = &round.phase else {
            return None;
        };
        let (plan, window, words) = (self.id(), round.window, std::mem::take(sum));
        let membership = fixing.fixed.digest();
        Some(SealedSum { plan, window, membership, set: set.clone(), words })
    }

    /// Asks the controllers that have not answered again, once it is time.
    pub(super) fn ask_again(&mut self, now: Timestamp, start: Timestamp) -> Step<Vec<Output>> {
        let Some(round) = self.rounds.get_mut(&start) else { return Step::default() };
        if now < round.retry {
            return Step::default();
        }
        round.back_off(now);
        Step::new(Vec::new(), pending_requests(round))
    }
}

/// The requests to controllers that have not answered.
pub(super) fn pending_requests(round: &Round) -> Vec<Output> {
    let missing = round.missing();
    // A controller loses its presence in a restart, but not its token.
    let summons =
        || missing.iter().filter_map(|to| Some(send_summons(*to, round.summonses.get(to)?)));
    match &round.phase {
        Phase::Summoned => summons().collect(),
        Phase::Collecting(fixing) => {
            summons().chain(send_membership(fixing, missing.iter().copied())).collect()
        }
        Phase::Opening(_, opens) if opens.blaming.is_some() => ask_for_edges(round),
        Phase::Opening(fixing, _) => {
            let tokenless = missing.iter().copied().filter(|p| !round.tokens.contains_key(p));
            let mut messages = send_membership(fixing, tokenless);
            let lack = |p: &u32| !round.openings.contains_key(p);
            messages.extend(
                send_opening_set(round)
                    .into_iter()
                    .filter(|output| matches!(output, Output::Send { to, .. } if lack(to))),
            );
            messages
        }
    }
}

/// S, to each of its members.
fn send_opening_set(round: &Round) -> Vec<Output> {
    let Phase::Opening(_, opens) = &round.phase else { return Vec::new() };
    let message =
        |to| Output::Send { to, message: ServiceMessage::OpeningSet(opens.signed.clone()) };
    opens.set.iter().filter(|_| opens.masked).map(message).collect()
}

/// The phase after a restart of a window whose S is fixed.
pub(super) fn opening_phase(
    fixing: FixedRound,
    signed: Signed<OpeningSet>,
    set: RosterSet,
    masked: bool,
) -> Phase {
    let digest = signed.digest();
    let opens = Opens { signed, set, digest, masked, blaming: None };
    Phase::Opening(Box::new(fixing), Box::new(opens))
}
