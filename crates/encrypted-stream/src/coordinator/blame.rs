//! A bounded row that does not hold: one round of statements names who lied, or strikes edges about
//! which two members differ. Later windows leave struck edges out.

use std::collections::BTreeMap;

use alpheus_bounded_influence::blame::Judgement;
use alpheus_bounded_influence::check::Opened as OpenedShare;
use alpheus_crypto::signed::{Signed, Verified};
use alpheus_time::Timestamp;

use super::Coordinator;
use super::bounded::MemberFaultError;
use super::output::{Output, Sums};
use super::recovery::ServiceRecord;
use super::round::{Phase, Round};
use crate::error::{MessageError, ReleaseError, WindowRefusalError};
use crate::ledger::{Change, Step};
use crate::messages::{EdgeRequest, EdgeStatement, ServiceMessage, Strike};

/// Why a member of a row that failed has not stated its edges. It proves nothing: an honest one may have
/// been offline, or restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnstatedEdgesError {
    /// It did not answer.
    #[error("it did not state its edges in time")]
    NoAnswer,
    /// It answered that it cannot state its edges, for example after a restart.
    #[error("it could not state its edges: {0}")]
    Refused(WindowRefusalError),
}

/// Two ends of an edge. The lower position is first.
pub(super) type Ends = (u32, u32);

/// Edges about which their ends have signed different things, with what they have signed.
#[derive(Clone, Default)]
pub(super) struct Struck(BTreeMap<Ends, (Signed<EdgeStatement>, Signed<EdgeStatement>)>);

/// A statement as it was opened, and as it was signed.
type SignedEdges = (Verified<EdgeStatement>, Signed<EdgeStatement>);

/// A round of blame in progress.
pub(super) struct Blaming {
    pub(super) request: Signed<EdgeRequest>,
    opened: Vec<OpenedShare>,
    /// By member: the first statement, and the first other one.
    pub(super) statements: BTreeMap<u32, Vec<SignedEdges>>,
}

impl Struck {
    /// The edges.
    pub(super) fn edges(&self) -> impl Iterator<Item = Ends> {
        self.0.keys().copied()
    }

    /// The same, of these edges alone.
    pub(super) fn of(&self, edges: &[Ends]) -> Self {
        let own = edges.iter().filter_map(|ends| Some((*ends, self.0.get(ends)?.clone())));
        Self(own.collect())
    }

    /// Adds an edge.
    pub(super) fn add(
        &mut self,
        ends: Ends,
        statements: (Signed<EdgeStatement>, Signed<EdgeStatement>),
    ) {
        self.0.entry(ends).or_insert(statements);
    }

    /// Why a member leaves out edges.
    pub(super) fn strikes(&self, member: u32) -> Vec<Strike> {
        let strike = |(ends, (lower, upper)): (&Ends, &(Signed<_>, Signed<_>))| {
            let (lower, upper) = (lower.clone(), upper.clone());
            match *ends {
                (at, _) if at == member => Some(Strike { own: lower, other: upper }),
                (_, at) if at == member => Some(Strike { own: upper, other: lower }),
                _ => None,
            }
        };
        self.0.iter().filter_map(strike).collect()
    }
}

impl Coordinator {
    /// A window that was resumed leaves out the edges that its members left out.
    pub(super) fn leave_out(&self, round: &mut Round, edges: Option<&Vec<Ends>>) {
        let (Phase::Collecting(fixing) | Phase::Opening(fixing, _)) = &mut round.phase else {
            return;
        };
        fixing.struck = edges.map(|edges| self.bounded.struck.of(edges)).unwrap_or_default();
    }

    /// Asks the members of S for their edges.
    pub(super) fn begin_blame(
        &mut self,
        now: Timestamp,
        start: Timestamp,
        opened: Vec<OpenedShare>,
    ) -> Step<Vec<Output>> {
        let (plan, key, timing) = (self.id(), self.key.clone(), self.timing);
        let Some(round) = self.rounds.get_mut(&start) else { return Step::default() };
        let window = round.window;
        let Phase::Opening(_, opens) = &mut round.phase else { return Step::default() };
        let request = EdgeRequest { plan, window, opening_set: opens.digest };
        let request = Signed::new(&request, &key);
        opens.blaming = Some(Box::new(Blaming { request, opened, statements: BTreeMap::new() }));
        round.refusals.clear();
        round.wait(now, timing.tokens, timing.retry);
        Step::new(Vec::new(), ask_for_edges(round))
    }

    /// Takes a statement of edges if it is for this round.
    pub(super) fn edges(
        &mut self,
        now: Timestamp,
        (stated, signed): (&Verified<EdgeStatement>, &Signed<EdgeStatement>),
        sums: &impl Sums,
    ) -> Result<Step<Vec<Output>>, MessageError> {
        let members = self.plan().roster.len();
        // Others are shown what is kept here, and take it only for this round.
        let start = self.window_of_scope(&stated.scope)?.start;
        let round = self.rounds.get_mut(&start).ok_or(MessageError::UnknownWindow)?;
        let Phase::Opening(_, opens) = &mut round.phase else {
            return Err(MessageError::Mismatched);
        };
        let (digest, is_member) = (opens.digest, opens.set.contains(stated.controller));
        let blaming = opens.blaming.as_mut().ok_or(MessageError::Mismatched)?;
        if digest != stated.opening_set || !is_member {
            return Err(MessageError::Mismatched);
        }
        if stated.edges.len() > members {
            return Err(MessageError::Malformed);
        }
        let own = blaming.statements.entry(stated.controller).or_default();
        let is_known = own.iter().any(|(known, _)| known.digest() == stated.digest());
        if !is_known && own.len() < 2 {
            own.push((stated.clone(), signed.clone()));
        }
        round.refusals.remove(&stated.controller);
        Ok(self.advance(now, start, sums))
    }

    /// Ends a window whose row does not hold, once all have stated their edges or time is up.
    pub(super) fn conclude_blame(&mut self, now: Timestamp, start: Timestamp) -> Step<Vec<Output>> {
        let Some(round) = self.rounds.get(&start) else { return Step::default() };
        if now < round.deadline && round.waits() {
            return Step::default();
        }
        let judged = self.judge(start);
        let changes =
            judged.map_or_else(Vec::new, |judgement| self.note_judgement(start, &judgement));
        let mut step = Step::new(changes, Vec::new());
        step.merge(self.fail(start, ReleaseError::NotTheRow));
        step
    }

    fn judge(&mut self, start: Timestamp) -> Option<Judgement> {
        let round = self.rounds.get(&start)?;
        let Phase::Opening(fixing, opens) = &round.phase else { return None };
        let blaming = opens.blaming.as_ref()?;
        let members: Vec<u32> = opens.set.iter().collect();
        let checker = self.bounded.checker.as_deref()?;
        let failed = checker.failed(&members, &blaming.opened).ok()?;
        let failed = failed.without(fixing.struck.edges());
        let all = blaming.statements.values().flatten();
        let signed: Vec<_> = all.map(|(stated, _)| stated).collect();
        Some(self.bounded.blame.as_mut()?.judge(&failed, &signed))
    }

    /// Notes who is named and who is silent, and makes struck edges durable.
    fn note_judgement(&mut self, start: Timestamp, judgement: &Judgement) -> Vec<Change> {
        let Some(round) = self.rounds.get_mut(&start) else { return Vec::new() };
        let named = judgement.named.iter().map(|(at, lie)| (*at, MemberFaultError::Lie(*lie)));
        round.committed.faults.extend(named);
        let why = |at: &u32| match round.refusals.get(at) {
            Some(reason) => UnstatedEdgesError::Refused(*reason),
            None => UnstatedEdgesError::NoAnswer,
        };
        round.committed.silent = judgement.silent.iter().map(|at| (*at, why(at))).collect();
        let Phase::Opening(_, opens) = &round.phase else { return Vec::new() };
        let Some(blaming) = &opens.blaming else { return Vec::new() };
        let said = |member: &u32| Some(blaming.statements.get(member)?.first()?.1.clone());
        let records = judgement.struck.iter().filter_map(|(one, other)| {
            let statements = Box::new((said(one)?, said(other)?));
            Some(ServiceRecord::Struck { ends: (*one, *other), statements })
        });
        let records: Vec<ServiceRecord> = records.collect();
        for record in &records {
            if let ServiceRecord::Struck { ends, statements } = record {
                self.bounded.struck.add(*ends, (**statements).clone());
            }
        }
        records.iter().map(|record| self.put(record)).collect()
    }
}

/// The request for edges, to members that have not answered.
pub(super) fn ask_for_edges(round: &Round) -> Vec<Output> {
    let Phase::Opening(_, opens) = &round.phase else { return Vec::new() };
    let Some(blaming) = &opens.blaming else { return Vec::new() };
    let message =
        |to| Output::Send { to, message: ServiceMessage::EdgeRequest(blaming.request.clone()) };
    round.missing().into_iter().map(message).collect()
}
