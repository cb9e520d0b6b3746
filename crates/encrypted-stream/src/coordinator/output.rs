//! Inputs and outputs of a coordinator.

use std::collections::BTreeMap;
use std::sync::Arc;

use alpheus_policy::ids::{ControllerId, PlanId};
use alpheus_time::{Span, Window};

use super::adder::AdderMessage;
use super::blame::UnstatedEdgesError;
use super::bounded_windows::MemberFaultError;
use crate::consumer::SealedSum;
use crate::error::{
    ExclusionError, PlanRefusalError, ReleaseError, UncheckedProofsError, WindowRefusalError,
};
use crate::ledger::Step;
use crate::mask::set::RosterSet;
use crate::messages::{ServiceMessage, SummonedStream};
use crate::receipt::{BoundedReceipt, Receipt, WindowReceipt};
use crate::transformer::{self, IncompleteError, Transformer};

/// How long a window waits in each step. Once all answers are here it does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// For presences. A controller that has not answered by then is not in M.
    pub presence: Span,
    /// For tokens. A controller that has not answered by then is not in S.
    pub tokens: Span,
    /// For openings, all of which are needed; then the window fails. A wait of hours does no harm.
    pub openings: Span,
    /// In a bounded plan: for a check of its members' proofs, while others are checked before; then
    /// the window fails.
    pub proofs: Span,
    /// With an adder: for its sums, once it has everything that it needs; then the window
    /// fails. A wait of hours does no harm.
    pub sums: Span,
    /// A controller that has not answered is asked again after this long.
    pub retry: Span,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            presence: Span::seconds(2),
            tokens: Span::seconds(2),
            openings: Span::seconds(24 * 3600),
            proofs: Span::seconds(600),
            sums: Span::seconds(24 * 3600),
            retry: Span(500_000),
        }
    }
}

/// What a transformer reports about a closed window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowReport {
    /// The window.
    pub window: Window,
    /// Streams that are complete, by position in the plan, ascending.
    pub complete: Vec<SummonedStream>,
    /// Streams that were online but are not complete, by position in the plan.
    pub excluded: Vec<(u32, ExclusionError)>,
    /// Streams of the plan that nothing was reported about when the clock closed the
    /// window. Whether they were online is not known.
    pub unreported: u32,
}

impl From<transformer::WindowReport> for WindowReport {
    fn from(report: transformer::WindowReport) -> Self {
        Self {
            window: report.window,
            excluded: report.excluded().map(|(at, why)| (at, why.into())).collect(),
            complete: report.complete().cloned().collect(),
            unreported: 0,
        }
    }
}

impl From<IncompleteError> for ExclusionError {
    fn from(why: IncompleteError) -> Self {
        match why {
            IncompleteError::OverCapacity => ExclusionError::TooManyEvents,
            _ => ExclusionError::Incomplete,
        }
    }
}

/// The ciphertext sums of windows, under the plan's release.
pub trait Sums {
    /// `Σ R·c` of a window over these streams, by position in the plan: one word for each
    /// output. `None` if the sums are gone.
    fn sum(&self, plan: &PlanId, window: Window, streams: &[u32]) -> Option<Vec<u64>>;
}

impl Sums for Transformer {
    fn sum(&self, plan: &PlanId, window: Window, streams: &[u32]) -> Option<Vec<u64>> {
        Transformer::sum(self, plan, window, streams).ok()
    }
}

/// An output of a coordinator.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A message to one controller of the roster.
    Send {
        /// Its position.
        to: u32,
        /// The message.
        message: ServiceMessage,
    },
    /// A message to every controller of the roster.
    Broadcast(ServiceMessage),
    /// A controller has answered the plan.
    Answered {
        /// Its position.
        controller: u32,
        /// Its answer.
        answer: Result<(), PlanRefusalError>,
    },
    /// The outcome of a window: one for each window, in the same commit as its record.
    Outcome(Box<Outcome>),
    /// A message to the adder, if the [sums are
    /// delegated](super::Coordinator::with_delegated_sums), in the same commit as
    /// the step's records.
    ToAdder(AdderMessage),
}

impl Outcome {
    /// The outcomes of windows that end with a step. Their results belong in the same
    /// commit as the step's records.
    pub fn in_step(step: &Step<Vec<Output>>) -> impl Iterator<Item = &Self> {
        step.dangerous_preview().iter().filter_map(|output| match output {
            Output::Outcome(outcome) => Some(&**outcome),
            _ => None,
        })
    }
}

impl AdderMessage {
    /// The messages of a step to the adder. They belong in the same commit as the step's
    /// records.
    pub fn in_step(step: &Step<Vec<Output>>) -> impl Iterator<Item = &Self> {
        step.dangerous_preview().iter().filter_map(|output| match output {
            Output::ToAdder(for_sums) => Some(for_sums),
            _ => None,
        })
    }
}

/// How a window ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The window.
    pub window: Window,
    /// Its result, or why it has none.
    pub result: Result<WindowResult, ReleaseError>,
    /// Streams that were online and are not in the result, by reason.
    pub excluded: BTreeMap<ExclusionError, u32>,
    /// With an adder: streams that nothing was reported about in time, because they were
    /// offline or the adder lags.
    pub unreported: Option<u32>,
    /// Controllers that refused a request, by reason.
    pub refused: BTreeMap<WindowRefusalError, u32>,
    /// Members whose answers the window lacked: they have ruined it. Of the opening set those without
    /// an opening; where that set is one too many for others on its day, those without a token.
    pub unopened: Vec<ControllerId>,
    /// The opening set, if there was one and its members mask.
    pub opening_set: Option<RosterSet>,
    /// In a bounded plan: members whose messages do not hold, and why. Of those of an earlier window too,
    /// if that was found after its end.
    pub faults: Vec<(ControllerId, MemberFaultError)>,
    /// In a bounded plan, if the row did not hold: members that have not stated their edges. Each of
    /// them may be honest.
    pub silent: Vec<(ControllerId, UnstatedEdgesError)>,
}

/// The result of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowResult {
    /// One word for each row of the release. The last is the check word, which is zero.
    /// With running totals: the sum of all windows so far, in whole units. Empty if the
    /// window is sealed to a consumer.
    pub outputs: Vec<u64>,
    /// If the plan is sealed to a consumer: the sum under its pads, whose check word only
    /// the consumer can check.
    pub sealed: Option<SealedSum>,
    /// Owners with data.
    pub population: u32,
    /// Owners whose streams were complete, without data.
    pub silent: u32,
    /// Controllers whose tokens opened it. If the plan adds noise, each has added a share.
    pub members: u32,
    /// In a bounded plan: members of M without which it opened. Of some the proofs did not hold.
    pub left_out: u32,
    /// With running totals: how many windows they include, this one too; else 0.
    pub windows: u32,
    /// With running totals: an upper bound for the variance left over by shares of noise
    /// that are in no result, in thousandths of a seed's; else 0.
    pub lost: u64,
    /// In a verified plan: what the members said, from which anyone recomputes the sum.
    pub receipt: Option<Box<Receipt>>,
    /// The same in a bounded plan, with commitments and proofs. It is long, so copies share it.
    pub bounded: Option<Arc<BoundedReceipt>>,
}

impl WindowResult {
    /// What the members said, if the plan asks them to sign rows.
    #[must_use]
    pub fn window_receipt(&self) -> Option<WindowReceipt> {
        let verified = || self.receipt.as_deref().cloned().map(WindowReceipt::from);
        let bounded = self.bounded.as_deref().cloned();
        bounded.map(WindowReceipt::from).or_else(verified)
    }
}

impl Outcome {
    /// Whether the window was begun in a state that was lost, so that nobody here knows how it
    /// ended. There is nothing to announce.
    #[must_use]
    pub fn is_of_lost_state(&self) -> bool {
        matches!(self.result, Err(ReleaseError::StateLost))
    }
}

impl ReleaseError {
    /// What [`kind`](Self::kind) may be.
    pub const KINDS: [&'static str; 19] = [
        "population below the minimum",
        "population above the bound",
        "too few controllers answered",
        "a controller refused",
        "a controller that sent its token did not send its opening",
        "the check word is not zero",
        "a token has another length than the plan's outputs",
        "the sums of the window are gone",
        "the plan was retired",
        "the sums of the window did not come in time",
        "the job has reported nothing about the window",
        "no list of the epoch would be accepted",
        "begun in a state that was lost",
        "the sums are not those of the opening set",
        "the opening of a member does not hold",
        "the commitments do not open to the row",
        "too many proofs were waiting",
        "proofs were not checked in time",
        "a check of proofs broke off",
    ];

    /// The rule without its numbers, for counting.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::PopulationTooSmall { .. } => "population below the minimum",
            Self::PopulationTooLarge { .. } => "population above the bound",
            Self::QuorumLost { .. } => "too few controllers answered",
            Self::ControllerRefused(_) => "a controller refused",
            Self::OpeningLost => "a controller that sent its token did not send its opening",
            Self::CheckWord => "the check word is not zero",
            Self::WrongLength => "a token has another length than the plan's outputs",
            Self::SumsLost => "the sums of the window are gone",
            Self::Retired => "the plan was retired",
            Self::SumsLate => "the sums of the window did not come in time",
            Self::NothingReported => "the job has reported nothing about the window",
            Self::NotListed => "no list of the epoch would be accepted",
            Self::StateLost => "begun in a state that was lost",
            Self::OtherSums => "the sums are not those of the opening set",
            Self::FaultyOpening => "the opening of a member does not hold",
            Self::NotTheRow => "the commitments do not open to the row",
            Self::Unchecked(UncheckedProofsError::QueueFull) => "too many proofs were waiting",
            Self::Unchecked(UncheckedProofsError::Late) => "proofs were not checked in time",
            Self::Unchecked(UncheckedProofsError::Broken) => "a check of proofs broke off",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::WindowRefusalError;

    /// A rule that is added here does not compile without its place.
    fn place(failure: ReleaseError) -> usize {
        match failure {
            ReleaseError::PopulationTooSmall { .. } => 0,
            ReleaseError::PopulationTooLarge { .. } => 1,
            ReleaseError::QuorumLost { .. } => 2,
            ReleaseError::ControllerRefused(_) => 3,
            ReleaseError::OpeningLost => 4,
            ReleaseError::CheckWord => 5,
            ReleaseError::WrongLength => 6,
            ReleaseError::SumsLost => 7,
            ReleaseError::Retired => 8,
            ReleaseError::SumsLate => 9,
            ReleaseError::NothingReported => 10,
            ReleaseError::NotListed => 11,
            ReleaseError::StateLost => 12,
            ReleaseError::OtherSums => 13,
            ReleaseError::FaultyOpening => 14,
            ReleaseError::NotTheRow => 15,
            ReleaseError::Unchecked(UncheckedProofsError::QueueFull) => 16,
            ReleaseError::Unchecked(UncheckedProofsError::Late) => 17,
            ReleaseError::Unchecked(UncheckedProofsError::Broken) => 18,
        }
    }

    #[test]
    fn all_kinds_are_listed() {
        let unchecked = [
            UncheckedProofsError::QueueFull,
            UncheckedProofsError::Late,
            UncheckedProofsError::Broken,
        ];
        let mut all = vec![
            ReleaseError::PopulationTooSmall { counted: 0, needed: 1 },
            ReleaseError::PopulationTooLarge { counted: 1, most: 0 },
            ReleaseError::QuorumLost { held: 0, needed: 1 },
            ReleaseError::ControllerRefused(WindowRefusalError::KeysGone),
            ReleaseError::OpeningLost,
            ReleaseError::CheckWord,
            ReleaseError::WrongLength,
            ReleaseError::SumsLost,
            ReleaseError::Retired,
            ReleaseError::SumsLate,
            ReleaseError::NothingReported,
            ReleaseError::NotListed,
            ReleaseError::StateLost,
            ReleaseError::OtherSums,
            ReleaseError::FaultyOpening,
            ReleaseError::NotTheRow,
        ];
        all.extend(unchecked.map(ReleaseError::Unchecked));
        let places: Vec<usize> = all.iter().map(|failure| place(*failure)).collect();
        assert_eq!(places, (0..ReleaseError::KINDS.len()).collect::<Vec<_>>());
        let kinds: Vec<&str> = all.iter().map(ReleaseError::kind).collect();
        assert_eq!(kinds, ReleaseError::KINDS);
    }
}
