//! A plan's windows over one partition's streams.
//!
//! Streams join a plan one by one, and a plan of the transformer has its streams from the start. So those
//! that join in one step are a cohort: a plan of its own there, with the same windows.

use super::{Outcome, PATIENCE};
use crate::part::{Part, add};
use alpheus_encrypted_stream::job::{
    JobMessage, Opening, PlanView, SetDigest, Summary, Tally, TickSegments,
};
use alpheus_encrypted_stream::messages::Segments;
use alpheus_encrypted_stream::transformer::{IncompleteError, Shape, Status, Transformer};
use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_time::{Timestamp, Window};
use serde::{Deserialize, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// A plan.
pub(super) struct LanePlan {
    pub(super) view: PlanView,
    pub(super) state: PlanState,
    /// Streams that have joined since the last step.
    joining: BTreeMap<StreamId, u32>,
}

/// What of it is saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PlanState {
    /// This partition's streams, by position.
    members: BTreeMap<u32, StreamId>,
    cohorts: Vec<Cohort>,
    /// This partition's streams of opening sets that are not added up, by the window's start.
    sets: BTreeMap<Timestamp, Vec<u32>>,
    /// Windows that end by then are closed.
    passed: Timestamp,
}

/// Streams that joined together.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cohort {
    /// The plan in the transformer.
    id: PlanId,
    /// Positions in the plan, in the transformer's order.
    positions: Vec<u32>,
    /// Closed windows that are not finished, by start.
    closed: BTreeSet<Timestamp>,
}

impl LanePlan {
    pub(super) fn new(view: PlanView) -> LanePlan {
        let state = PlanState {
            members: BTreeMap::new(),
            cohorts: Vec::new(),
            sets: BTreeMap::new(),
            passed: Timestamp(0),
        };
        LanePlan { view, state, joining: BTreeMap::new() }
    }

    pub(super) fn restore(view: &[u8], state: PlanState) -> Option<LanePlan> {
        Some(LanePlan { state, ..LanePlan::new(PlanView::from_bytes(view).ok()?) })
    }

    pub(super) fn has_members(&self) -> bool {
        !self.state.members.is_empty()
    }

    /// A stream joins. A repetition changes nothing.
    pub(super) fn join(&mut self, stream: StreamId, position: u32) {
        if let Entry::Vacant(member) = self.state.members.entry(position) {
            member.insert(stream);
            self.joining.insert(stream, position);
        }
    }

    /// Adds those who have joined as the cohort with this number. Returns whether there were any.
    pub(super) fn enrol(
        &mut self,
        transformer: &mut Transformer,
        shape: Shape,
        number: u64,
    ) -> bool {
        if self.joining.is_empty() {
            return false;
        }
        let joining = std::mem::take(&mut self.joining);
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&number.to_be_bytes());
        let plan = self.view.plan_over(joining.keys(), shape.schema, nonce);
        match transformer.register(&plan) {
            Ok(id) => {
                let positions = joining.into_values().collect();
                self.state.cohorts.push(Cohort { id, positions, closed: BTreeSet::new() });
            }
            Err(mismatch) => {
                tracing::error!(plan = %self.view.plan, %mismatch, "cannot sum a plan")
            }
        }
        true
    }

    /// Takes a window's opening set. The first one counts; they come in any order.
    pub(super) fn open(&mut self, set: &Opening) {
        let PlanState { members, sets, .. } = &mut self.state;
        if self.view.window_at(set.start).is_some() {
            let own = set.streams.iter().filter(|position| members.contains_key(position));
            sets.entry(set.start).or_insert_with(|| own.copied().collect());
        }
    }

    /// Stops.
    pub(super) fn end(&mut self, transformer: &mut Transformer) {
        for cohort in &self.state.cohorts {
            transformer.unregister(&cohort.id);
        }
    }

    /// Closes the windows that, with their grace, ended by a time, and reports on their streams.
    pub(super) fn close(
        &mut self,
        transformer: &mut Transformer,
        reached: Timestamp,
        out: &mut Outcome,
    ) {
        let limit = Timestamp(reached.0.saturating_sub(self.view.grace.0));
        let PlanState { members, cohorts, passed, .. } = &mut self.state;
        for cohort in cohorts {
            while let Some(window) = transformer.closable_window_by(&cohort.id, limit) {
                // Controllers know how many missing ticks each owner tolerates.
                let Ok(report) = transformer.close(&cohort.id, window, u64::MAX) else { break };
                out.closed += 1;
                for (at, status) in report.streams {
                    let at = usize::try_from(at).ok().and_then(|at| cohort.positions.get(at));
                    let known = at.and_then(|at| Some((*at, *members.get(at)?)));
                    if let Some((position, stream)) = known {
                        let ticks = !transformer.shape().frames.is_events();
                        let of = (&self.view, window.start, position, stream);
                        out.reports.push(report_of(of, status, ticks));
                    }
                }
                cohort.closed.insert(window.start);
            }
            // Its service is gone.
            let old = limit.0.saturating_sub(PATIENCE.0);
            while let Some(start) = cohort.closed.first().copied().filter(|start| start.0 < old) {
                transformer.finish(&cohort.id, Window { start, end: start.plus(self.view.window) });
                cohort.closed.remove(&start);
            }
        }
        *passed = limit.max(*passed);
    }

    /// Adds up the streams of opening sets whose windows are closed.
    pub(super) fn add_up(
        &mut self,
        transformer: &mut Transformer,
        lane: u32,
        parts: &mut Vec<Part>,
    ) {
        let PlanState { members, cohorts, sets, passed } = &mut self.state;
        let over = sets.keys().filter(|start| start.plus(self.view.window) <= *passed);
        let due: Vec<Timestamp> = over.copied().collect();
        for start in due {
            let set: BTreeSet<u32> = sets.remove(&start).into_iter().flatten().collect();
            let window = Window { start, end: start.plus(self.view.window) };
            let mut rows = vec![0; self.view.rows.len()];
            // A set that is repeated finds nothing.
            let mut found = 0;
            for cohort in cohorts.iter_mut() {
                if !cohort.closed.remove(&start) {
                    continue;
                }
                let own = (0_u32..).zip(&cohort.positions);
                let own = own.filter(|(_, position)| set.contains(position)).map(|(at, _)| at);
                let own: Vec<u32> = own.collect();
                match transformer.sum(&cohort.id, window, &own) {
                    Ok(sum) => {
                        found += own.len();
                        add(&mut rows, &sum);
                    }
                    Err(error) => {
                        let plan = self.view.plan;
                        tracing::error!(%plan, start = start.0, %error, "a window's sum is lost");
                    }
                }
                transformer.finish(&cohort.id, window);
            }
            if set.is_empty() || found != set.len() {
                continue;
            }
            let streams = set.iter().filter_map(|position| members.get(position).copied());
            let digest = SetDigest::of_streams(&self.view.plan, start, streams);
            let streams = Tally { count: set.len() as u64, digest };
            parts.push(Part { plan: self.view.plan, start, lane, streams, rows });
        }
    }
}

/// The report on a stream's window, with its key.
fn report_of(
    (view, start, position, stream): (&PlanView, Timestamp, u32, StreamId),
    status: Status,
    ticks: bool,
) -> (String, Vec<u8>) {
    let plan = view.plan;
    let (check_sum, judgement) = match status {
        Status::Complete(it) | Status::Silent(it) => (it.check_sum, Ok(it.segments)),
        Status::Incomplete(why) => (0, Err(why)),
    };
    let of = (stream, plan, start, position, check_sum);
    let value = match judgement {
        Ok(Segments::OfEvents(segments)) => bytes(of, Ok(segments)),
        Ok(Segments::OfTicks { claims, conflict, .. }) => {
            bytes(of, Ok(TickSegments { claims, conflict }))
        }
        Err(why) if ticks => bytes::<TickSegments>(of, Err(why)),
        Err(why) => bytes::<Vec<_>>(of, Err(why)),
    };
    (format!("{plan}/{}/{stream}", start.0), value)
}

fn bytes<S>(
    (stream, plan, start, position, check_sum): (StreamId, PlanId, Timestamp, u32, u64),
    judgement: Result<S, IncompleteError>,
) -> Vec<u8>
where
    Summary<S>: JobMessage,
{
    Summary { stream, plan, start, position, check_sum, judgement }.to_bytes()
}
