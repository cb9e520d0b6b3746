//! Delegated sums: messages to and from an *adder*, a party that adds up in the
//! coordinator's place.
//!
//! A coordinator adds up the answers that it receives, and gets ciphertext sums from the
//! party that holds them. At scale neither needs to pass through one process. Each answer
//! is then forwarded to the adder once its sender is verified, with S once S is fixed, and
//! two sums come back. Signatures, records and requests stay the same.

use alpheus_time::{Timestamp, Window};

use super::Coordinator;
use super::output::Output;
use super::round::Phase;
use crate::error::ReleaseError;
use crate::ledger::Step;
use crate::sums::add;

/// To the adder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdderMessage {
    /// S of a window, in the commit that records it. An empty one, in the commit of its
    /// outcome, if the window fails, before S was fixed or after.
    Set(SumSet),
    /// A controller's answer, whose signature was checked. After a restart the same answer
    /// may come again.
    Answer(Answer),
}

/// What a window opens over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumSet {
    /// The window.
    pub window: Window,
    /// The streams that S's members have accepted, by position in the plan, ascending.
    pub streams: Vec<u32>,
    /// S: positions in the roster, ascending.
    pub controllers: Vec<u32>,
    /// Whether each token has an opening to subtract; false with a single controller.
    pub masked: bool,
}

/// A controller's token, or its opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The window.
    pub window: Window,
    /// The controller's position in the roster.
    pub controller: u32,
    /// Whether it is the opening, which is subtracted.
    pub opens: bool,
    /// One word for each output.
    pub words: Vec<u64>,
}

impl Coordinator {
    /// Delegates the sums to an adder: it gets [`Output::ToAdder`] and returns its sums
    /// through [`Coordinator::handle_sums`].
    #[must_use]
    pub fn with_delegated_sums(mut self) -> Self {
        self.delegates = true;
        self
    }

    /// S of a window that is being opened.
    #[must_use]
    pub fn sum_set(&self, start: Timestamp) -> Option<SumSet> {
        let round = self.rounds.get(&start)?;
        let Phase::Opening(_, opens) = &round.phase else { return None };
        let (window, streams) = (round.window, round.accepted_streams(&opens.set));
        let controllers = opens.set.iter().collect();
        Some(SumSet { window, streams, controllers, masked: opens.masked })
    }

    /// The sums of a window over S: `Σ R·c` of its streams and `Σ (T − o)` of its
    /// controllers, one word for each output. The caller has compared streams, controllers
    /// and lengths with S ([`Coordinator::sum_set`]) and the release. Nothing changes if
    /// the window has ended or has no S.
    pub fn handle_sums(
        &mut self,
        start: Timestamp,
        ciphertexts: &[u64],
        tokens: &[u64],
    ) -> Step<Vec<Output>> {
        let outputs = self.plan().release.outputs();
        let Some(round) = self.rounds.get(&start) else { return Step::default() };
        let Phase::Opening(_, opens) = &round.phase else { return Step::default() };
        if ciphertexts.len() != outputs || tokens.len() != outputs {
            self.reject_sums(start);
            return Step::default();
        }
        let mut sum = ciphertexts.to_vec();
        self.refine(&mut sum);
        add(&mut sum, tokens);
        let result = self.result_of_sum(round, &opens.set, sum);
        self.end(start, result)
    }

    /// The sums that came for a window are not those of its S. The window fails for that
    /// reason, unless its own sums follow in time.
    pub fn reject_sums(&mut self, start: Timestamp) {
        if let Some(round) = self.rounds.get_mut(&start) {
            round.other_sums = true;
        }
    }

    /// Keeps an answer; where an adder keeps it, only the fact that it came. The adder
    /// counts a controller's first answer.
    pub(super) fn keep(
        &mut self,
        window: Window,
        controller: u32,
        opens: bool,
        words: &[u64],
    ) -> Step<Vec<Output>> {
        let delegates = self.delegates;
        let Some(round) = self.rounds.get_mut(&window.start) else { return Step::default() };
        let answers = if opens { &mut round.openings } else { &mut round.tokens };
        let kept = if delegates { Vec::new() } else { words.to_vec() };
        let known = answers.insert(controller, kept).is_some();
        if !delegates || known {
            return Step::default();
        }
        let answer = Answer { window, controller, opens, words: words.to_vec() };
        Step::new(Vec::new(), vec![Output::ToAdder(AdderMessage::Answer(answer))])
    }

    /// S, for the adder.
    pub(super) fn set_for_sums(&self, start: Timestamp) -> Option<Output> {
        let set = self.sum_set(start).filter(|_| self.delegates)?;
        Some(Output::ToAdder(AdderMessage::Set(set)))
    }

    /// An empty S for a window that ends without a result, so that the adder drops it. It may have S.
    pub(super) fn without_set(&self, window: Window) -> Option<Output> {
        let none = || Output::ToAdder(AdderMessage::Set(SumSet::none(window)));
        self.delegates.then(none)
    }

    /// All answers are here: from now on the window waits for its sums.
    pub(super) fn wait_for_sums(&mut self, now: Timestamp, start: Timestamp) -> Step<Vec<Output>> {
        let timing = self.timing;
        let Some(round) = self.rounds.get_mut(&start) else { return Step::default() };
        if !round.waits_for_sums {
            round.waits_for_sums = true;
            round.wait(now, timing.sums, timing.sums);
        }
        let failure =
            if round.other_sums { ReleaseError::OtherSums } else { ReleaseError::SumsLate };
        if now < round.deadline { Step::default() } else { self.fail(start, failure) }
    }
}

impl SumSet {
    /// For a window that does not open.
    #[must_use]
    pub fn none(window: Window) -> SumSet {
        SumSet { window, streams: Vec::new(), controllers: Vec::new(), masked: true }
    }
}
