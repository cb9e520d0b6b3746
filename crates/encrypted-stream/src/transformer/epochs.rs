//! Plans without a roster: streams join while they run, and who takes part in a window is known
//! only after it has closed.
//!
//! The sums of a closed window are kept for each stream until its epoch's list is fixed. Then
//! those of the listed streams continue under the epoch's own plan, and the others are dropped.

use std::collections::{BTreeMap, BTreeSet};

use alpheus_policy::ids::{PlanId, StreamId};
use alpheus_policy::plan::Plan;
use alpheus_time::{Timestamp, Window};
use serde::{Deserialize, Serialize};

use super::plan::RunningPlan;
use super::window::{OpenWindow, Status};
use super::{IncompleteError, PlanMismatchError, Transformer, WindowReport};

/// Whether the streams of a plan are fixed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Members {
    /// With the plan. Reports of windows that are closed and not finished, by start: who was
    /// to be asked about them is not known elsewhere before M is.
    Fixed(BTreeMap<Timestamp, WindowReport>),
    /// By a list for each window. Those that are closed and have no list yet, by start.
    Open(BTreeMap<Timestamp, WindowReport>),
    /// It is the plan of an epoch, whose only window is closed.
    Listed(Box<ListedWindow>),
}

/// A closed window of an epoch, as far as its list goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedWindow {
    /// The listed streams, by position in the epoch's plan.
    pub report: WindowReport,
    /// Complete streams that are not listed.
    pub unlisted: u32,
    /// Why other streams that are not listed are not complete.
    pub incomplete: Vec<IncompleteError>,
}

impl Members {
    /// Keeps the report of a window that was closed, until there is a list, or the window is
    /// finished.
    pub(super) fn note(&mut self, report: &WindowReport) {
        if let Members::Open(closed) | Members::Fixed(closed) = self {
            closed.insert(report.window.start, report.clone());
        }
    }

    pub(super) fn forget(&mut self, window: Window) {
        if let Members::Open(closed) | Members::Fixed(closed) = self {
            closed.remove(&window.start);
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap(&self) -> usize {
        let streams = match self {
            Members::Open(closed) | Members::Fixed(closed) => {
                closed.values().map(|report| report.streams.len()).sum()
            }
            Members::Listed(listed) => listed.report.streams.len(),
        };
        streams * size_of::<(u32, Status)>()
    }
}

impl Transformer {
    /// Starts to keep the windows of a plan without roster, for the streams that
    /// [join](Transformer::enrol).
    ///
    /// # Errors
    ///
    /// As [`Transformer::register`].
    pub fn register_terms(&mut self, terms: &Plan) -> Result<PlanId, PlanMismatchError> {
        let mut checked =
            RunningPlan::new(terms, &self.shape)?.proving(terms, self.blocks.as_ref())?;
        checked.members = Members::Open(BTreeMap::new());
        self.run(terms, checked)
    }

    /// A stream joins a plan without roster. Windows of which it lacks the beginning are not
    /// complete.
    pub fn enrol(&mut self, terms: &PlanId, stream: StreamId) {
        let index = self.position(stream);
        let Some((slot, running)) = self.plans.get_mut(terms) else { return };
        let known = usize::try_from(index).ok().and_then(|index| self.streams.get_mut(index));
        let joined = |stream: &super::Stream| stream.memberships().iter().any(|m| m.slot == slot);
        if let (Members::Open(_), Some(known)) = (&running.members, known)
            && !joined(known)
        {
            known.join(slot, running.enrol(index));
        }
    }

    /// The first closed window of a plan without roster that has no list, and the streams that
    /// were online in it.
    #[must_use]
    pub fn unlisted(&self, terms: &PlanId) -> Option<(Window, Vec<StreamId>)> {
        let (_, running) = self.plans.get(terms)?;
        let Members::Open(closed) = &running.members else { return None };
        let report = closed.values().next()?;
        let online = report.streams.iter().filter_map(|(at, _)| self.enrolled(running, *at));
        Some((report.window, online.collect()))
    }

    /// Reports on the windows of a plan with fixed streams that are closed and not finished,
    /// oldest first. [`Transformer::close`] reports a window once, so this is how a service
    /// that was restarted from a snapshot learns of it.
    #[must_use]
    pub fn unfinished(&self, plan: &PlanId) -> Vec<WindowReport> {
        match self.plans.get(plan).map(|(_, running)| &running.members) {
            Some(Members::Fixed(closed)) => closed.values().cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// The stream at a position of a plan.
    fn enrolled(&self, running: &RunningPlan, position: u32) -> Option<StreamId> {
        let index = running.streams().get(usize::try_from(position).ok()?)?;
        Some(self.stream(*index).ok()?.id)
    }

    /// The window of an epoch's plan has its list. The sums of its streams continue under that
    /// plan, as those of a closed window, and the others are dropped. Repeated, it returns the
    /// same. None if the window is not closed, or was given up.
    pub fn list(&mut self, terms: &PlanId, plan: &Plan) -> Option<ListedWindow> {
        let id = plan.id();
        if let Some((_, running)) = self.plans.get(&id) {
            let Members::Listed(listed) = &running.members else { return None };
            return Some(ListedWindow::clone(listed));
        }
        let window = plan.window_at(plan.from);
        let mut of_epoch = RunningPlan::new(plan, &self.shape).ok()?;
        let (report, sums) = self.take_unlisted(terms, window)?;
        let (_, running) = self.plans.get(terms)?;
        let mut listed = ListedWindow::none(window);
        let mut own = OpenWindow::new(plan.streams.len());
        let mut sums = sums.unwrap_or_else(|| OpenWindow::new(0));
        for (position, status) in report.streams {
            let stream = self.enrolled(running, position);
            let place = stream.and_then(|stream| {
                plan.streams.binary_search_by_key(&stream, |planned| planned.stream).ok()
            });
            match place.and_then(|place| u32::try_from(place).ok()) {
                Some(place) => {
                    sums.hand_over(position, &mut own, place);
                    listed.report.streams.push((place, status.at(place)));
                }
                None => listed.leave_out(status),
            }
        }
        listed.report.streams.sort_unstable_by_key(|(position, _)| *position);
        of_epoch.members = Members::Listed(Box::new(listed.clone()));
        self.plans.insert(id, of_epoch.closed_with(window, own), Vec::new());
        Some(listed)
    }

    /// A closed window of a plan without roster gets no list. Returns what it had.
    pub fn give_up(&mut self, terms: &PlanId, window: Window) -> Option<ListedWindow> {
        let (report, _) = self.take_unlisted(terms, window)?;
        let mut listed = ListedWindow::none(window);
        report.streams.into_iter().for_each(|(_, status)| listed.leave_out(status));
        Some(listed)
    }

    /// Stops all plans but these. A stored state may be older than the end of a plan.
    pub fn keep_only(&mut self, plans: &BTreeSet<PlanId>) {
        let others: Vec<PlanId> = self.plans.ids().filter(|id| !plans.contains(id)).collect();
        for plan in others {
            self.unregister(&plan);
        }
    }

    fn take_unlisted(
        &mut self,
        terms: &PlanId,
        window: Window,
    ) -> Option<(WindowReport, Option<OpenWindow>)> {
        let (_, running) = self.plans.get_mut(terms)?;
        let Members::Open(closed) = &mut running.members else { return None };
        let report = closed.remove(&window.start)?;
        Some((report, running.windows.remove(&window.start)))
    }
}

impl ListedWindow {
    /// Nobody is listed.
    fn none(window: Window) -> ListedWindow {
        let report = WindowReport { window, streams: Vec::new() };
        ListedWindow { report, unlisted: 0, incomplete: Vec::new() }
    }

    fn leave_out(&mut self, status: Status) {
        match status {
            Status::Complete(_) | Status::Silent(_) => self.unlisted += 1,
            Status::Incomplete(reason) => self.incomplete.push(reason),
        }
    }
}
