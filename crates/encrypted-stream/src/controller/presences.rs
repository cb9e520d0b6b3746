//! Step 1: a window has closed. The controller checks what the service has of its streams
//! and lists those that its token will cover.

use std::collections::BTreeSet;

use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_policy::ids::{OwnerId, StreamId};
use alpheus_time::Timestamp;

use super::bounded_plans::OpenedStream;
use super::budgets::Charges;
use super::copies::NewCopy;
use super::plan_state::{AnsweredSummons, PlanState};
use super::segments::{ExaminedSegments, KeySpan};
use super::sessions::Session;
use super::stream_state::StreamState;
use super::verified_plans::UnaskedLines;
use super::{Controller, policies};
use crate::counts::narrow;
use crate::error::{ExclusionError, WindowRefusalError};
use crate::ledger::{Change, LogEvent, LogLine, Record, Step, session_key};
use crate::messages::{ControllerMessage, Presence, Segments, SummonedStream, Summons};
use crate::sums::add;

/// The limit on different summonses of one window. A presence says how many of the summoned streams
/// were silent, so a service that could ask about each alone would learn which.
const MAX_SUMMONSES: u32 = 16;

/// The result of checking the streams of a summons.
#[derive(Default)]
pub(super) struct Examination {
    pub(super) spans: Vec<(u32, Vec<KeySpan>)>,
    /// In a verified plan: what the accepted streams' sums release together.
    sums: Vec<u64>,
    /// In a bounded plan: what each accepted stream releases, in the clear.
    pub(super) opened: Vec<OpenedStream>,
    pub(super) charges: Vec<(u32, Charges)>,
    pub(super) excluded: Vec<(u32, ExclusionError)>,
    pub(super) owners: BTreeSet<OwnerId>,
    pub(super) silent: u32,
    pub(super) fresh: Vec<Record>,
    /// In a bounded plan: what the logs of owners say that are out of bounds.
    pub(super) out_of_bounds: Vec<LogLine>,
    gone: Vec<(StreamId, u64)>,
    /// Records of copies that are forgotten, and lines that are no longer true.
    forgotten: Vec<Record>,
    /// Owners whose streams wait.
    restless: BTreeSet<OwnerId>,
    /// Whether the sets of the window's day are bounded. Then no tick may be missing: the service
    /// could cut a stream's last ticks in one window after the other, and each sum over the same
    /// owners would tell something else.
    whole: bool,
}

impl Examination {
    /// Lines of owners' logs about windows before it that nobody asked about.
    fn note_unasked(&mut self, lines: UnaskedLines) {
        self.fresh.extend(lines.new);
        self.forgotten.extend(lines.gone);
    }

    /// If the service shows that the stream's device has a copy: the stream waits for its owner,
    /// whose log says so.
    fn note_copy(
        &mut self,
        stream: StreamId,
        state: &mut StreamState,
        segments: &Segments,
        at: Timestamp,
    ) {
        let Segments::OfTicks { conflict, .. } = segments else { return };
        let Some(claim) = state.copied_claim(conflict.as_deref()) else { return };
        let new = state.copies.note(claim.session, claim.to);
        let Some(NewCopy { copy, forgotten }) = new else { return };
        let record = |session, confirmed| Record::Cloned { stream, session, confirmed };
        self.fresh.push(record(copy.session, copy.confirmed));
        // The owner has confirmed that this one is gone.
        if copy.confirmed.is_none() {
            let event = LogEvent::Cloned { border: claim.to };
            self.fresh.push(Record::Log(LogLine { at, streams: vec![stream], event }));
        }
        self.forgotten.extend(forgotten.map(|session| record(session, None)));
    }
}

/// Of an examination: new records, sessions that are gone, records to delete, and lines of owners' logs.
type ExaminationRecords = (Vec<Record>, Vec<(StreamId, u64)>, Vec<Record>, Vec<LogLine>);

impl Controller {
    /// Answers a summons with a presence. Until a token is spent, a new summons may change
    /// the presence of a window.
    ///
    /// # Errors
    /// [`WindowRefusalError`] names the rule. An invalid stream is no error: it is excluded with its
    /// reason, and the others proceed.
    pub fn handle_summons(
        &mut self,
        summons: &Verified<Summons>,
        now: Timestamp,
    ) -> Result<Step<Vec<ControllerMessage>>, WindowRefusalError> {
        let answer = self.answer_summons(summons, now);
        if answer.is_err() {
            self.note_refused(summons, now);
        }
        answer
    }

    fn answer_summons(
        &mut self,
        summons: &Verified<Summons>,
        now: Timestamp,
    ) -> Result<Step<Vec<ControllerMessage>>, WindowRefusalError> {
        let by_service = summons.signer() == self.deployment.service();
        let joined = self.window_of(now, &summons.plan, summons.window, by_service)?;
        if summons.controller != joined.position {
            return Err(WindowRefusalError::NotForMe);
        }
        if let Some(round) = joined.rounds.get(&summons.window.start) {
            let same = round.summoned.as_ref().filter(|s| s.summons == summons.digest());
            // Once its keys are wiped, a presence leads to no token. Then there is another one.
            let is_void =
                round.spent.is_none() && joined.has_no_keys(&self.generations, summons.window);
            if let Some(summoned) = same.filter(|_| !is_void) {
                return Ok(send(summoned.signed.clone(), Vec::new()));
            }
            if round.spent.is_some() {
                return Err(WindowRefusalError::AlreadySpent);
            }
            if round.summonses >= MAX_SUMMONSES {
                return Err(WindowRefusalError::TooManySummonses { limit: MAX_SUMMONSES });
            }
        }
        self.check_day(joined.plan(), summons.window)?;
        check_order(joined, &summons.streams)?;
        self.draw_for(now, &summons.plan, summons.window)?;
        self.present(now, summons)
    }

    fn present(
        &mut self,
        now: Timestamp,
        summons: &Verified<Summons>,
    ) -> Result<Step<Vec<ControllerMessage>>, WindowRefusalError> {
        let (generation, mask_key) = self.mask_key(now, &summons.plan)?.unzip();
        let mut examined = self.examination(summons, now);
        examined.note_unasked(self.note_summons(summons, now));
        // Releases what an earlier summons of the window promised; the promise is made
        // again below.
        self.settle_budget(now, &summons.plan, summons.window);
        for stream in &summons.streams {
            match self.examine(now, summons, stream, &mut examined) {
                Ok(spans) => examined.spans.push((stream.position, spans)),
                Err(reason) => examined.excluded.push((stream.position, reason)),
            }
        }
        self.leave_out_read(&summons.plan, summons.window, &mut examined.owners);
        let admitted = self.admit(summons, generation, &mut examined)?;
        let Examination { spans, sums, charges, excluded, owners, silent, .. } = examined;
        let noted = (examined.fresh, examined.gone, examined.forgotten, examined.out_of_bounds);
        let joined = self.plans.get_mut(&summons.plan).ok_or(WindowRefusalError::UnknownPlan)?;
        let presence = Presence {
            plan: summons.plan,
            window: summons.window,
            controller: joined.position,
            summons: summons.digest(),
            accepted: spans.iter().map(|(position, _)| *position).collect(),
            excluded,
            owners: narrow(owners.len()),
            silent,
            mask_key,
        };
        let signed = Signed::new(&presence, self.identity.signing());
        let summoned = AnsweredSummons {
            summons: summons.digest(),
            presence,
            digest: signed.digest(),
            signed: signed.clone(),
            spans,
            sums,
            charges,
            admitted,
        };
        joined.rounds.entry(summons.window.start).or_default().present(summoned, generation);
        let mut changes = self.note_lines(now, summons, noted);
        changes.extend(self.forget(now, &summons.plan));
        Ok(send(signed, changes))
    }

    /// What the ledger notes of a presence, with the owners' lines that are true now.
    fn note_lines(
        &mut self,
        now: Timestamp,
        summons: &Summons,
        (mut fresh, gone, mut forgotten, lines): ExaminationRecords,
    ) -> Vec<Change> {
        fresh.extend(lines.iter().cloned().map(Record::Log));
        if let Some(joined) = self.plans.get_mut(&summons.plan) {
            let untrue = joined.note_out_of_bounds(summons.window, lines).into_iter();
            forgotten.extend(untrue.map(Record::Log));
        }
        if !forgotten.is_empty() {
            // The ledger's last sequence number may have been in one of them.
            fresh.push(Record::Identity { controller: self.identity.id() });
        }
        self.note_examined(now, fresh, &gone, &forgotten)
    }

    /// One of no streams yet.
    fn examination(&self, summons: &Summons, now: Timestamp) -> Examination {
        let (sums, restless) = (self.no_sums(&summons.plan), self.restless(now));
        let joined = self.plans.get(&summons.plan);
        let bound = joined.and_then(|own| self.sets_per_day(own.plan(), summons.window));
        Examination { sums, restless, whole: bound.is_some(), ..Examination::default() }
    }

    /// What an examination changes in the ledger: new records, ended sessions, forgotten copies.
    fn note_examined(
        &mut self,
        now: Timestamp,
        fresh: Vec<Record>,
        gone: &[(StreamId, u64)],
        forgotten: &[Record],
    ) -> Vec<Change> {
        let mut changes: Vec<Change> =
            fresh.into_iter().map(|record| self.put(now, record)).collect();
        let id = self.identity.id();
        let keys = gone.iter().map(|(stream, session)| session_key(id, *stream, *session));
        changes.extend(keys.map(Change::remove));
        changes.extend(forgotten.iter().map(|record| Change::remove(record.key(id))));
        changes
    }

    /// Checks one stream: first the policy, then earlier releases, then borders, sessions
    /// and check word.
    fn examine(
        &mut self,
        now: Timestamp,
        summons: &Summons,
        stream: &SummonedStream,
        examined: &mut Examination,
    ) -> Result<Vec<KeySpan>, ExclusionError> {
        let joined = self.plans.get_mut(&summons.plan).ok_or(ExclusionError::Policy)?;
        let planned = *joined.own(stream.position).ok_or(ExclusionError::Policy)?;
        let state = self.streams.get_mut(&planned.stream).ok_or(ExclusionError::Policy)?;
        examined.note_copy(planned.stream, state, &stream.segments, now);
        let charges = policies::allow(joined, stream.position, state, summons.window, now)?;
        state.check_waiting(summons.window, examined.restless.contains(&planned.owner))?;
        joined.check_free(stream.position, summons.window)?;
        // Its owner's accounts have left with it.
        state.tenure.check_noise(joined.plan().privacy.is_some())?;
        let needed = joined.needed_blocks(&state.layout);
        let plan = joined.plan();
        let sums = needed.as_deref().map(|needed| (needed, &plan.release));
        let ExaminedSegments { spans, events, seen, sum } =
            state.examine(stream, summons.window, (&plan.attributes, sums, examined.whole), now)?;
        let words = state.opened(joined.plan(), &spans, &sum)?;
        let record = |known: Session| {
            let Session { session, from, to, closed } = known;
            Record::Session { stream: planned.stream, session, from, to, closed }
        };
        examined.fresh.extend(seen.fresh.into_iter().map(record));
        examined.gone.extend(seen.gone.into_iter().map(|session| (planned.stream, session)));
        if joined.plan().privacy.as_ref().is_some_and(|privacy| events > privacy.events) {
            return Err(ExclusionError::BeyondNoise);
        }
        // A window without events holds none of the owner's values, so it costs nothing.
        if events > 0 {
            let window = joined.charged_for(summons.window);
            let (release, slack) = ((summons.plan, window), joined.slack_bits);
            let noisy = joined.plan().privacy.is_some();
            if !self.books.promise(planned.owner, release, &charges, slack) {
                return Err(ExclusionError::BudgetSpent);
            }
            if noisy {
                examined.charges.push((stream.position, charges));
            }
            examined.owners.insert(planned.owner);
        } else {
            examined.silent = examined.silent.saturating_add(1);
        }
        add(&mut examined.sums, &sum);
        examined.open(stream.position, &planned, events, words);
        Ok(spans)
    }
}

/// Only this controller's streams, each once, in order.
pub(super) fn check_order(
    joined: &PlanState,
    streams: &[SummonedStream],
) -> Result<(), WindowRefusalError> {
    let ascends = streams.windows(2).all(|p| matches!(p, [a, b] if a.position < b.position));
    let own = streams.iter().all(|stream| joined.own(stream.position).is_some());
    if ascends && own { Ok(()) } else { Err(WindowRefusalError::MalformedSummons) }
}

fn send(signed: Signed<Presence>, changes: Vec<Change>) -> Step<Vec<ControllerMessage>> {
    Step::new(changes, vec![ControllerMessage::Presence(signed)])
}
