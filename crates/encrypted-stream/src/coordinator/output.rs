//! What goes into a coordinator and what comes out.

use std::collections::BTreeMap;

use alpheus_policy::ids::PlanId;
use alpheus_policy::time::{Span, Window};

use super::delegating::ForSums;
use crate::consumer::SealedSum;
use crate::error::{Exclusion, Failure, PlanRefused, Refused};
use crate::ledger::Step;
use crate::messages::{ServiceMessage, SummonedStream};
use crate::transformer::{self, Incomplete, Transformer};

/// How long a window waits in each step. Answers that are all there are never
/// waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// For presences; who has not answered then is not in M.
    pub presence: Span,
    /// For tokens; who has not answered then is not in S.
    pub tokens: Span,
    /// For openings, all of which are needed; then the window fails. Hours do
    /// no harm.
    pub openings: Span,
    /// Where others add up: for their sums, once they have all that they need; then the
    /// window fails. Hours do no harm.
    pub sums: Span,
    /// Who has not answered is asked again after this long.
    pub retry: Span,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            presence: Span::seconds(2),
            tokens: Span::seconds(2),
            openings: Span::seconds(24 * 3600),
            sums: Span::seconds(24 * 3600),
            retry: Span(500_000),
        }
    }
}

/// What a transformer knows of a window once it has closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowReport {
    /// The window.
    pub window: Window,
    /// Streams that are complete, by position in the plan, ascending.
    pub complete: Vec<SummonedStream>,
    /// Streams that were online and are not, by position in the plan.
    pub excluded: Vec<(u32, Exclusion)>,
    /// Streams of the plan that nothing was told of when the window was closed by the clock:
    /// whether they were online is not known.
    pub untold: u32,
}

impl From<transformer::WindowReport> for WindowReport {
    fn from(report: transformer::WindowReport) -> Self {
        Self {
            window: report.window,
            excluded: report.excluded().map(|(at, why)| (at, why.into())).collect(),
            complete: report.complete().cloned().collect(),
            untold: 0,
        }
    }
}

impl From<Incomplete> for Exclusion {
    fn from(why: Incomplete) -> Self {
        match why {
            Incomplete::OverCapacity => Exclusion::TooManyEvents,
            _ => Exclusion::Incomplete,
        }
    }
}

/// The ciphertext sums of windows, under the plan's release.
pub trait Sums {
    /// `Σ R·c` of a window over these streams, by position in the plan: one
    /// word for each output. None if they are gone.
    fn sum(&self, plan: &PlanId, window: Window, streams: &[u32]) -> Option<Vec<u64>>;
}

impl Sums for Transformer {
    fn sum(&self, plan: &PlanId, window: Window, streams: &[u32]) -> Option<Vec<u64>> {
        Transformer::sum(self, plan, window, streams).ok()
    }
}

/// What a coordinator gives out.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// To one controller of the roster.
    Send {
        /// Its position.
        to: u32,
        /// The message.
        message: ServiceMessage,
    },
    /// To every controller of the roster.
    Broadcast(ServiceMessage),
    /// A controller has answered the plan.
    Answered {
        /// Its position.
        controller: u32,
        /// What it said.
        answer: Result<(), PlanRefused>,
    },
    /// How a window ended: one for each window, in the same commit as the
    /// record that it has ended.
    Outcome(Outcome),
    /// To whoever adds up, of a [coordinator that leaves that to
    /// others](super::Coordinator::that_leaves_sums_to_others): in the same commit as the
    /// step's records.
    ForSums(ForSums),
}

impl Step<Output> {
    /// Windows that end with it: their results belong in the same commit as
    /// its records.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.messages().iter().filter_map(|output| match output {
            Output::Outcome(outcome) => Some(outcome),
            _ => None,
        })
    }

    /// What it gives to whoever adds up, which belongs there too.
    pub fn for_sums(&self) -> impl Iterator<Item = &ForSums> {
        self.messages().iter().filter_map(|output| match output {
            Output::ForSums(given) => Some(given),
            _ => None,
        })
    }
}

/// How a window ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The window.
    pub window: Window,
    /// What it opened to, or why it did not.
    pub result: Result<Opened, Failure>,
    /// Streams that were online and are not in the result, by reason.
    pub excluded: BTreeMap<Exclusion, u32>,
    /// Where others add up: streams that they told nothing of in time, since those were offline
    /// or they have not come to them.
    pub untold: Option<u32>,
    /// Controllers that declined something, by reason.
    pub refused: BTreeMap<Refused, u32>,
}

/// What a window opened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// One word for each row of the release; the last, the check word, is zero. Of
    /// running totals what all windows have opened to so far, in whole units. Empty if the window is sealed to a consumer.
    pub outputs: Vec<u64>,
    /// Of a plan that is sealed to a consumer: the sum under its pads, whose check
    /// word only the consumer can check.
    pub sealed: Option<SealedSum>,
    /// Owners with data.
    pub population: u32,
    /// Owners whose streams were complete, without data.
    pub silent: u32,
    /// Controllers whose tokens opened it: each has added a share of noise, if
    /// the plan adds any.
    pub members: u32,
    /// Of running totals: how many windows are in them, this one included; else 0.
    pub windows: u32,
    /// Of running totals: at most the variance that shares of noise which are in no result
    /// have left over, in thousandths of a seed's; else 0.
    pub lost: u64,
}

impl Failure {
    /// The rule without its numbers: for counting.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::PopulationTooSmall { .. } => "population below the minimum",
            Self::PopulationTooLarge { .. } => "population above the bound",
            Self::QuorumLost { .. } => "too few controllers answered",
            Self::ControllerRefused(_) => "a controller refused",
            Self::OpeningLost => "a controller that had given its token did not come back",
            Self::CheckWord => "the check word is not zero",
            Self::WrongLength => "a token has another length than the plan's outputs",
            Self::SumsLost => "the sums of the window are gone",
            Self::Retired => "the plan was retired",
            Self::SumsLate => "the sums of the window have not come",
            Self::Untold => "the job has told nothing of the window",
            Self::OtherSums => "the sums that came are not those of the opening set",
        }
    }
}
