//! A bounded row that does not hold: one round of statements names who lied, or strikes edges about
//! which two members differ. Later windows leave struck edges out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alpheus_bounded_influence::blame::{Blame, Judgement};
use alpheus_bounded_influence::check::OpenedContribution;
use alpheus_crypto::signed_message::{Signed, Verified};
use alpheus_time::Timestamp;

use super::Coordinator;
use super::bounded_windows::MemberFaultError;
use super::output::{Output, Sums};
use super::recovery::ServiceRecord;
use super::round::{Phase, Round};
use crate::error::{MessageError, ReleaseError, WindowRefusalError};
use crate::ledger::{Change, Step};
use crate::messages::{EdgeRequest, EdgeStatement, ServiceMessage, Strike};

/// What is kept of struck edges, at most.
#[derive(Clone, Copy)]
struct Limits {
    /// Edges that one failed row strikes for good. One is enough for those who lie to lose one.
    edges: usize,
    /// Bytes of statements about one member's edges: they come to it with each M.
    bytes: usize,
}

const LIMITS: Limits = Limits { edges: 16, bytes: 8 << 20 };

/// Why a member of a row that failed has not stated its edges, or is left out as if so. It proves nothing: an honest one may have
/// been offline, or restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnstatedEdgesError {
    /// It did not answer.
    #[error("it did not state its edges in time")]
    NoAnswer,
    /// It answered that it cannot state its edges, for example after a restart.
    #[error("it could not state its edges: {0}")]
    Refused(WindowRefusalError),
    /// It differs with another about an edge, and no more can be kept about the edges of one of both.
    #[error(
        "it disagrees with another controller, and no more statements about edges of one of them can be kept"
    )]
    TooMuchEvidence,
}

/// Two ends of an edge. The lower position is first.
pub(super) type Ends = (u32, u32);

/// What the ends of an edge have signed.
type Statements = (Signed<EdgeStatement>, Signed<EdgeStatement>);

/// The same, which is long, so windows in progress share it.
type Evidence = Arc<Statements>;

/// Edges about which their ends have signed different things, with what they have signed.
#[derive(Clone, Default)]
pub(super) struct StruckEdges(BTreeMap<Ends, Evidence>);

/// A statement as it was opened, and as it was signed.
type SignedEdges = (Verified<EdgeStatement>, Signed<EdgeStatement>);

/// What is kept of a round.
#[derive(Default)]
struct NewEdges {
    /// Edges that are struck from now on, with what their ends have signed.
    edges: Vec<(Ends, Statements)>,
    /// Members about an edge of whom no more can be kept.
    full: BTreeSet<u32>,
}

/// A round of blame in progress.
pub(super) struct BlameRound {
    pub(super) request: Signed<EdgeRequest>,
    opened: Vec<OpenedContribution>,
    /// By member: the first statement, and the first other one.
    pub(super) statements: BTreeMap<u32, Vec<SignedEdges>>,
}

impl StruckEdges {
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
    pub(super) fn add(&mut self, ends: Ends, statements: Statements) {
        self.0.entry(ends).or_insert_with(|| Arc::new(statements));
    }

    /// Keeps what a round has struck, within limits. Edges that are kept are new, and count from now on; others count
    /// for this round alone.
    fn keep(
        &mut self,
        judged: &BTreeSet<Ends>,
        said: impl Fn(u32) -> Option<Signed<EdgeStatement>>,
        limits: Limits,
    ) -> NewEdges {
        let new = judged.iter().filter(|ends| !self.0.contains_key(ends)).copied().collect();
        let mut kept = NewEdges::default();
        for ends in apart_first(&new) {
            let (Some(one), Some(other)) = (said(ends.0), said(ends.1)) else { continue };
            let statements = (one, other);
            let more = length(&statements);
            let has_room = |member| self.bytes_of(member).saturating_add(more) <= limits.bytes;
            if !has_room(ends.0) || !has_room(ends.1) {
                // One of both lies, and it must not cost the other alone.
                kept.full.extend([ends.0, ends.1]);
            } else if kept.edges.len() < limits.edges {
                self.add(ends, statements.clone());
                kept.edges.push((ends, statements));
            }
        }
        kept
    }

    /// How much is kept about a member's edges.
    fn bytes_of(&self, member: u32) -> usize {
        let own = self.0.iter().filter(|((one, other), _)| member == *one || member == *other);
        own.map(|(_, statements)| length(statements)).sum()
    }

    /// Why a member leaves out edges.
    pub(super) fn strikes(&self, member: u32) -> Vec<Strike> {
        let strike = |(ends, statements): (&Ends, &Evidence)| {
            let (own, other) = match *ends {
                (at, _) if at == member => (&statements.0, &statements.1),
                (_, at) if at == member => (&statements.1, &statements.0),
                _ => return None,
            };
            Some(Strike { own: own.clone(), other: other.clone() })
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
        opened: Vec<OpenedContribution>,
    ) -> Step<Vec<Output>> {
        let (plan, key, timing) = (self.id(), self.key.clone(), self.timing);
        let Some(round) = self.rounds.get_mut(&start) else { return Step::default() };
        let window = round.window;
        let Phase::Opening(_, opens) = &mut round.phase else { return Step::default() };
        let request = EdgeRequest { plan, window, opening_set: opens.digest };
        let request = Signed::new(&request, &key);
        opens.blaming = Some(Box::new(BlameRound { request, opened, statements: BTreeMap::new() }));
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

    /// What the statements show, with the edges that are struck: those that are kept, as after a restart.
    fn judge(&self, start: Timestamp) -> Option<Judgement> {
        let round = self.rounds.get(&start)?;
        let Phase::Opening(fixing, opens) = &round.phase else { return None };
        let blaming = opens.blaming.as_ref()?;
        let members: Vec<u32> = opens.set.iter().collect();
        let checker = self.bounded.checker.as_deref()?;
        let failed = checker.failed(&members, &blaming.opened).ok()?;
        let failed = failed.without(fixing.struck.edges());
        let all = blaming.statements.values().flatten();
        let signed: Vec<_> = all.map(|(stated, _)| stated).collect();
        let blame = Blame::new(self.announced.tolerated()).knowing(self.bounded.struck.edges());
        Some(blame.judge(&failed, &signed))
    }

    /// Notes who is named and who is silent, and makes struck edges durable, but no more than so many: a window
    /// that is lost names somebody, or those who lie lose an edge by it.
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
        let said = |member: u32| Some(blaming.statements.get(&member)?.first()?.1.clone());
        let kept = self.bounded.struck.keep(&judgement.struck, said, LIMITS);
        let full = kept.full.into_iter().map(|at| (at, UnstatedEdgesError::TooMuchEvidence));
        round.committed.silent.extend(full);
        let record =
            |(ends, statements)| ServiceRecord::Struck { ends, statements: Box::new(statements) };
        kept.edges.into_iter().map(|edge| self.put(&record(edge))).collect()
    }
}

fn length(statements: &Statements) -> usize {
    statements.0.length().saturating_add(statements.1.length())
}

/// These edges, first some of which no two have an end in common, so that as many members as possible
/// lose one.
fn apart_first(edges: &BTreeSet<Ends>) -> Vec<Ends> {
    let mut met = BTreeSet::new();
    let (mut first, rest): (Vec<Ends>, Vec<Ends>) =
        edges.iter().copied().partition(|(one, other)| {
            let is_apart = !met.contains(one) && !met.contains(other);
            is_apart && met.insert(*one) && met.insert(*other)
        });
    first.extend(rest);
    first
}

/// The request for edges, to members that have not answered.
pub(super) fn ask_for_edges(round: &Round) -> Vec<Output> {
    let Phase::Opening(_, opens) = &round.phase else { return Vec::new() };
    let Some(blaming) = &opens.blaming else { return Vec::new() };
    let message =
        |to| Output::Send { to, message: ServiceMessage::EdgeRequest(blaming.request.clone()) };
    round.missing().into_iter().map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::{LIMITS, Limits, NewEdges, StruckEdges, apart_first, length};
    use alpheus_bounded_influence::messages::{EdgeStatement, Scope};
    use alpheus_crypto::hash::Digest;
    use alpheus_crypto::secret::Secret;
    use alpheus_crypto::sign::SigningKey;
    use alpheus_crypto::signed_message::Signed;
    use std::collections::BTreeSet;

    /// One liar with many edges does not keep those of others from being struck.
    #[test]
    fn edges_without_a_common_end_come_first() {
        let edges = BTreeSet::from([(0, 1), (0, 2), (0, 3), (2, 4), (5, 6)]);
        assert_eq!(apart_first(&edges), [(0, 1), (2, 4), (5, 6), (0, 2), (0, 3)]);
    }

    /// A statement of a member. All have one length.
    fn stated(controller: u32) -> Option<Signed<EdgeStatement>> {
        let digest = Digest([u8::try_from(controller).unwrap(); 32]);
        let (plan, terms, membership) = (digest, digest, digest);
        let scope = Scope { plan, terms, start: 0, end: 1, epoch: 0, cohort: 0, membership };
        let (opening_set, edges, consumer_pad) = (digest, Vec::new(), None);
        let statement = EdgeStatement { scope, controller, opening_set, edges, consumer_pad };
        Some(Signed::new(&statement, &SigningKey::from_seed(&Secret::from_bytes([1; 32]))))
    }

    fn keep(struck: &mut StruckEdges, edges: &[(u32, u32)], limits: Limits) -> NewEdges {
        struck.keep(&edges.iter().copied().collect(), stated, limits)
    }

    /// Of one row, 16 edges are kept. Those that are left are kept once they are struck again.
    #[test]
    fn a_round_strikes_sixteen_edges() {
        let edges: Vec<(u32, u32)> = (0..20).map(|at| (at, 100 + at)).collect();
        let mut struck = StruckEdges::default();
        let kept = keep(&mut struck, &edges, LIMITS);
        assert!(kept.edges.iter().map(|(ends, _)| *ends).eq(edges[..16].iter().copied()));
        assert!(kept.full.is_empty() && struck.edges().eq(edges[..16].iter().copied()));
        let kept = keep(&mut struck, &edges, LIMITS);
        assert!(kept.edges.iter().map(|(ends, _)| *ends).eq(edges[16..].iter().copied()));
    }

    /// Of a member, so many bytes are kept, to the last. Both ends of an edge that is beyond are left out, others not.
    #[test]
    fn statements_about_a_member_have_a_limit() {
        let pair = length(&(stated(0).unwrap(), stated(1).unwrap()));
        let edges = [(0, 1), (0, 2), (0, 3), (4, 5)];
        let most = |bytes| Limits { bytes, ..LIMITS };
        for (bytes, full) in [(3 * pair, vec![]), (3 * pair - 1, vec![0, 3])] {
            let mut struck = StruckEdges::default();
            let kept = keep(&mut struck, &edges, most(bytes));
            assert_eq!(Vec::from_iter(kept.full), full);
            assert!(struck.edges().eq(edges.into_iter().filter(|(_, end)| !full.contains(end))));
        }
        // What is kept already counts.
        let mut struck = StruckEdges::default();
        assert!(keep(&mut struck, &edges[..2], most(2 * pair)).full.is_empty());
        assert_eq!(Vec::from_iter(keep(&mut struck, &edges[2..], most(2 * pair)).full), [0, 3]);
        assert_eq!(LIMITS.bytes, 8 << 20);
    }
}
