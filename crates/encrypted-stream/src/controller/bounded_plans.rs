//! What is particular about bounded plans: which owners are in bounds, contributions, openings with
//! their noise, and statements of edges (`docs/protocol.md`, *Bounded windows*).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alpheus_bounded_influence::blame::EdgesError;
use alpheus_bounded_influence::commit::{AdmittedOwners, Committer, Noise, OwnerValues};
use alpheus_bounded_influence::messages::{CommittedCells, Scope};
use alpheus_bounded_influence::share::{Answer, Masks, Neighbour};
use alpheus_bounded_influence::terms::Terms;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::prf::Prf;
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_policy::ids::{OwnerId, PlanId, StreamId};
use alpheus_policy::plan::{Plan, PlannedStream};
use alpheus_time::{Timestamp, Window};
use zeroize::Zeroizing;

use super::Controller;
use super::plan_state::{AnsweredSummons, PlanState};
use super::presences::Examination;
use super::tokens::{CheckedMembership, add_noise, mask_refusal, mask_round};
use crate::bounded_terms::{most_bytes, scope_of, terms_of};
use crate::decode::cells;
use crate::error::{ExclusionError, WindowRefusalError};
use crate::ledger::{LogEvent, LogLine, Share, SignedOpening, Step};
use crate::mask::generation::RoundKeys;
use crate::mask::set::RosterSet;
use crate::membership::FixedMembership;
use crate::messages::{
    BoundedOpening, Contribution, ControllerMessage, EdgeRequest, OpeningSet, Strike, Summons,
};

/// One accepted stream of a window: whose it is, and what it releases, in the clear.
pub(super) struct OpenedStream {
    pub(super) position: u32,
    pub(super) stream: StreamId,
    pub(super) owner: OwnerId,
    pub(super) has_data: bool,
    pub(super) words: Zeroizing<Vec<u64>>,
}

/// What one owner's accepted streams release together.
struct OwnerWindow {
    words: Zeroizing<Vec<u64>>,
    has_data: bool,
}

/// A round's keys, and with whom they make pads.
struct Pads {
    keys: RoundKeys,
    others: Vec<(u32, Prf)>,
}

impl Pads {
    fn with<T>(&self, position: u32, make: impl FnOnce(&Masks<'_>) -> T) -> T {
        let neighbour = |(position, key)| Neighbour { position, key };
        let neighbours: Vec<Neighbour<'_>> =
            self.others.iter().map(|(position, key)| neighbour((*position, key))).collect();
        let own = self.keys.own();
        make(&Masks { position, own, neighbours: &neighbours, consumer: None })
    }
}

impl Controller {
    /// The terms of a bounded plan, as far as this controller holds one of its streams.
    pub(super) fn terms(&self, plan: &Plan, position: u32) -> Option<Terms> {
        let mut own = plan.streams.iter().filter(|planned| planned.controller == position);
        let state = own.find_map(|planned| self.streams.get(&planned.stream))?;
        terms_of(plan, &state.schema, &state.layout).ok().flatten()
    }

    /// What commits to the owners' values in a window that was answered with keys of this generation.
    fn committer(
        &mut self,
        plan: &PlanId,
        generation: Option<u64>,
    ) -> Result<Arc<Committer>, WindowRefusalError> {
        let joined = self.plans.get(plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let (family, position) = (joined.family(), joined.position);
        if let Some(known) = self.generations.known_committer(generation, &family) {
            return Ok(known);
        }
        let terms = self.terms(joined.plan(), position).ok_or(WindowRefusalError::NothingToGive)?;
        let made = self.generations.committer(generation, &family, terms);
        made.ok_or(WindowRefusalError::KeysGone)
    }

    /// Leaves out the owners whose windows are out of bounds, with all of their streams: they cost
    /// nobody else anything, and their log says so. M counts the others, and only they can be committed
    /// to. Nothing unless the plan is bounded.
    pub(super) fn admit(
        &mut self,
        summons: &Summons,
        generation: Option<u64>,
        examined: &mut Examination,
    ) -> Result<Option<AdmittedOwners>, WindowRefusalError> {
        let joined = self.plans.get(&summons.plan).ok_or(WindowRefusalError::UnknownPlan)?;
        if !joined.plan().integrity.is_bounded() {
            return Ok(None);
        }
        let (select, name) = (joined.plan().select.clone(), joined.plan().name.clone());
        let committer = self.committer(&summons.plan, generation)?;
        let (mut values, mut out) = (Vec::new(), BTreeSet::new());
        for (owner, window) in by_owner(&examined.opened) {
            // The check word of each stream was zero, so of the sum it is too.
            // Those of owners that are left out are wiped as well.
            match (cells(&select, &window.words).map(Zeroizing::new), window.has_data) {
                (Ok(mut cells), true) => {
                    let cells = std::mem::take(&mut *cells);
                    values.push(OwnerValues::new(Digest(owner.0), cells));
                }
                (Ok(cells), false) if cells.iter().all(|cell| *cell == 0) => {}
                // A device that has no events and reports something all the same.
                _ => drop(out.insert(owner)),
            }
        }
        let admitted = committer.admit(values).map_err(|_| WindowRefusalError::NotProvable)?;
        out.extend(admitted.left_out().iter().map(|owner| OwnerId(owner.0)));
        let (plan, window) = (summons.plan, summons.window);
        examined.leave_out(&out, &LogEvent::OutOfBounds { plan, name, window }, window.end);
        Ok(Some(admitted))
    }

    /// Computes the contribution, and the step that spends the window on it.
    pub(super) fn contribute(
        &mut self,
        now: Timestamp,
        window: Window,
        checked: &CheckedMembership<'_>,
    ) -> Result<Step<Vec<ControllerMessage>>, WindowRefusalError> {
        let (fixed, plan) = (checked.fixed, checked.fixed.membership().plan);
        let committer = self.committer(&plan, self.generation_of(&plan, window))?;
        let (scope, pads) = self.pads(&committer, (fixed, &checked.struck), None, Some(now))?;
        let joined = self.plans.get(&plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let controller = joined.position;
        let round = joined.rounds.get(&window.start).ok_or(WindowRefusalError::NotPresent)?;
        let admitted = round.summoned.as_ref().and_then(|summoned| summoned.admitted.as_ref());
        let admitted = admitted.ok_or(WindowRefusalError::NotPresent)?;
        let made = committer.owners(&scope, controller, admitted);
        let (owners, sum) = made.map_err(|_| WindowRefusalError::NotProvable)?;
        let share = pads.with(controller, |masks| masks.masked(sum, &scope));
        let contribution = Contribution { scope, controller, share, owners };
        let answer = Share::Committed(Signed::new(&contribution, self.identity.signing()));
        if let Some(joined) = self.plans.get_mut(&plan) {
            joined.rounds.entry(window.start).or_default().struck.clone_from(&checked.struck);
        }
        self.spend_on(now, window, checked, answer)
    }

    /// A round's scope and pads. For the contribution, others' keys must be fresh at a time.
    fn pads(
        &mut self,
        committer: &Committer,
        (fixed, struck): (&FixedMembership, &[u32]),
        opened: Option<&RosterSet>,
        fresh_at: Option<Timestamp>,
    ) -> Result<(Scope, Pads), WindowRefusalError> {
        let (plan, window) = (fixed.membership().plan, fixed.membership().window);
        let joined = self.plans.get_mut(&plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let keys =
            joined.window_keys(&mut self.generations, &self.identity, (fixed, &[]), fresh_at)?;
        let keys = keys.into_pads().ok_or(WindowRefusalError::KeysGone)?;
        let masks = joined.masks.as_mut().ok_or(WindowRefusalError::NothingToOpen)?;
        let others = masks.neighbours(&mask_round(fixed, &[]), struck, opened);
        let others = others.and_then(|others| keys.with_others(&others)).map_err(mask_refusal)?;
        Ok((scope_of(&plan, committer.terms(), window, fixed.digest()), Pads { keys, others }))
    }

    /// The answer to S, with this controller's noise and its proof. It is the same whenever it is
    /// made.
    fn answer_to<T>(
        &mut self,
        (fixed, set, digest): (&FixedMembership, &RosterSet, Digest),
        make: impl FnOnce(&Answer<'_>, Option<CommittedCells>) -> T,
    ) -> Result<T, WindowRefusalError> {
        let (plan, window) = (fixed.membership().plan, fixed.membership().window);
        let committer = self.committer(&plan, self.generation_of(&plan, window))?;
        let joined = self.plans.get(&plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let controller = joined.position;
        let struck = joined.rounds.get(&window.start).map(|round| round.struck.clone());
        let struck = struck.unwrap_or_default();
        let noise = self.noise_of((fixed, set, digest), committer.terms())?;
        let made = committer.noise(
            &scope_of(&plan, committer.terms(), window, fixed.digest()),
            controller,
            &digest,
            &noise,
        );
        let (committed, noise) = made.map_err(|_| WindowRefusalError::NotProvable)?;
        let (scope, pads) = self.pads(&committer, (fixed, &struck), Some(set), None)?;
        Ok(pads.with(controller, |masks| {
            let answer = masks.opening(noise, &scope, &digest, |other| set.contains(other));
            make(&answer, committed)
        }))
    }

    /// This controller's share of the plan's noise, as one number for each cell.
    fn noise_of(
        &mut self,
        (fixed, set, digest): (&FixedMembership, &RosterSet, Digest),
        terms: &Terms,
    ) -> Result<Noise, WindowRefusalError> {
        let (plan, unfit) = (fixed.membership().plan, WindowRefusalError::NoiseUnfit);
        let joined = self.plans.get_mut(&plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let keys = joined.window_keys(&mut self.generations, &self.identity, (fixed, &[]), None)?;
        let mut words = Zeroizing::new(vec![0; joined.plan().release.outputs()]);
        add_noise(&mut words, joined, keys.noise(&self.identity), fixed, Some((set, &digest)))?;
        let cells = Zeroizing::new(cells(&joined.plan().select, &words).map_err(|_| unfit)?);
        Noise::new(terms, &cells).map_err(|_| unfit)
    }

    /// The first answer to S.
    pub(super) fn open_bounded(
        &mut self,
        request: &Verified<OpeningSet>,
        (fixed, contribution): (&FixedMembership, Digest),
    ) -> Result<SignedOpening, WindowRefusalError> {
        let (plan, window, opening_set) = (request.plan, request.window, request.digest());
        let opening = self.answer_to((fixed, &request.set, opening_set), |answer, noise| {
            let (scope, controller) = (*answer.scope(), answer.controller());
            let share = answer.share().clone();
            BoundedOpening { scope, controller, opening_set, contribution, share, noise }
        })?;
        let answer = SignedOpening::Committed(Signed::new(&opening, self.identity.signing()));
        let joined = self.plans.get_mut(&plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let round = joined.rounds.entry(window.start).or_default();
        round.opened = Some((opening_set, answer.clone()));
        round.opened_over = Some(request.set.clone());
        Ok(answer)
    }

    /// Answers a request for edges, about the opening that it has signed and about no other. So it makes
    /// one statement for a window, and the same bytes each time. Nothing of it needs to be durable: once
    /// the keys are gone it makes none.
    ///
    /// # Errors
    /// [`WindowRefusalError`] names the first rule that is broken.
    pub(super) fn handle_edge_request(
        &mut self,
        request: &Verified<EdgeRequest>,
        now: Timestamp,
    ) -> Result<Step<Vec<ControllerMessage>>, WindowRefusalError> {
        let by_service = request.signer() == self.deployment.service();
        let joined = self.window_of(now, &request.plan, request.window, by_service)?;
        let round =
            joined.rounds.get(&request.window.start).ok_or(WindowRefusalError::NotOpened)?;
        let (set, answer) = round.opened.as_ref().ok_or(WindowRefusalError::NotOpened)?;
        let SignedOpening::Committed(signed) = answer else {
            return Err(WindowRefusalError::NotOpened);
        };
        if *set != request.opening_set {
            return Err(WindowRefusalError::NotOpened);
        }
        let fixed = round.spent.as_ref().and_then(|(_, fixed)| fixed.clone());
        let (Some(fixed), Some(members)) = (fixed, round.opened_over.clone()) else {
            return Err(WindowRefusalError::KeysGone);
        };
        let own = signed.open(&self.identity.signing().verifying_key());
        let own = own.map_err(|_| WindowRefusalError::KeysGone)?;
        let stated = self
            .answer_to((&fixed, &members, request.opening_set), |answer, _| answer.edges(&own))?;
        let statement = stated.map_err(|error| match error {
            EdgesError::AnotherOpening => WindowRefusalError::KeysGone,
            EdgesError::Identity => WindowRefusalError::NotProvable,
        })?;
        let signed = Signed::new(&statement, self.identity.signing());
        Ok(Step::new(Vec::new(), vec![ControllerMessage::Edges(signed)]))
    }

    /// The generation whose keys a window was answered with.
    fn generation_of(&self, plan: &PlanId, window: Window) -> Option<u64> {
        self.plans.get(plan)?.rounds.get(&window.start)?.generation
    }

    /// Forgets the windows in the clear that an erased stream is in. These windows are lost here.
    pub(super) fn forget_values_of(&mut self, stream: &StreamId) {
        for joined in self.plans.values_mut() {
            let own = joined.own_streams().find(|(_, planned)| planned.stream == *stream);
            let Some(position) = own.map(|(position, _)| position) else { continue };
            let summoned = joined.rounds.values_mut().filter_map(|round| round.summoned.as_mut());
            let has =
                |summoned: &&mut AnsweredSummons| summoned.presence.accepted.contains(&position);
            summoned.filter(has).for_each(|summoned| summoned.admitted = None);
        }
    }
}

impl Examination {
    /// Notes what an accepted stream releases, in a bounded plan.
    pub(super) fn open(
        &mut self,
        position: u32,
        planned: &PlannedStream,
        events: u64,
        words: Option<Zeroizing<Vec<u64>>>,
    ) {
        let (owner, has_data) = (planned.owner, events > 0);
        let stream = planned.stream;
        let opened = words.map(|words| OpenedStream { position, stream, owner, has_data, words });
        self.opened.extend(opened);
    }

    /// Excludes all accepted streams of these owners. Each owner's log has a line, which another
    /// presence of the window takes back if it is no longer true.
    fn leave_out(&mut self, owners: &BTreeSet<OwnerId>, event: &LogEvent, at: Timestamp) {
        for owner in owners {
            let own = self.opened.iter().filter(|opened| opened.owner == *owner);
            let streams = own.map(|opened| opened.stream).collect();
            self.out_of_bounds.push(LogLine { at, streams, event: event.clone() });
        }
        for opened in self.opened.iter().filter(|opened| owners.contains(&opened.owner)) {
            self.excluded.push((opened.position, ExclusionError::OutOfBounds));
            self.spans.retain(|(position, _)| *position != opened.position);
            self.charges.retain(|(position, _)| *position != opened.position);
            self.silent = self.silent.saturating_sub(u32::from(!opened.has_data));
        }
        self.owners.retain(|owner| !owners.contains(owner));
        self.excluded.sort_unstable_by_key(|(position, _)| *position);
    }
}

/// What each owner's streams add up to.
fn by_owner(opened: &[OpenedStream]) -> BTreeMap<OwnerId, OwnerWindow> {
    let mut all: BTreeMap<OwnerId, OwnerWindow> = BTreeMap::new();
    for stream in opened {
        let zeros = || Zeroizing::new(vec![0; stream.words.len()]);
        let none = || OwnerWindow { words: zeros(), has_data: false };
        let own = all.entry(stream.owner).or_insert_with(none);
        crate::sums::add(&mut own.words, &stream.words);
        own.has_data |= stream.has_data;
    }
    all
}

/// The members with whom this controller has no pads in a window: those about which it has signed
/// something other than they have, in one round of this plan. Both signatures are checked, so the
/// service cannot part two honest members.
pub(super) fn struck_edges(
    joined: &PlanState,
    strikes: &[Strike],
) -> Result<Vec<u32>, WindowRefusalError> {
    let most = most_bytes(joined.announced.controllers());
    let one = |strike: &Strike| {
        if strike.own.length().max(strike.other.length()) > most {
            return None;
        }
        let position = joined.position;
        let key = |at: u32| joined.announced.verifying().get(usize::try_from(at).ok()?);
        let own = strike.own.open(key(position)?).ok()?;
        let stated = strike.other.dangerous_unverified()?.controller;
        let other = strike.other.open(key(stated)?).ok()?;
        let fits = own.controller == position
            && stated != position
            && own.scope.plan.0 == joined.id().0
            && own.strikes(&other);
        fits.then_some(stated)
    };
    if strikes.len() > joined.plan().roster.len() {
        return Err(WindowRefusalError::BadStrike);
    }
    strikes.iter().map(|strike| one(strike).ok_or(WindowRefusalError::BadStrike)).collect()
}
