//! Where others add up: what they are given, and what they say.
//!
//! A coordinator adds up the answers that come to it, and is told ciphertext sums by whoever
//! holds them. At scale neither of the two need pass through one process: then each
//! answer goes on to whoever adds up as soon as it is known whose it is, with S once S is
//! fixed, and two sums come back. What is signed, recorded and asked stays the same.

use alpheus_policy::time::{Timestamp, Window};

use super::Coordinator;
use super::output::Output;
use super::round::{Phase, Round};
use crate::error::Failure;
use crate::ledger::Step;
use crate::sums::add;

/// To whoever adds up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForSums {
    /// S of a window, in the commit in which it is recorded; of a window that fails before, an
    /// empty one.
    Set(SumSet),
    /// What a controller answered, whose signature was checked. After a restart it may come
    /// again, and is the same.
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
    /// Whether each token has an opening that is taken off; not so of a single controller.
    pub masked: bool,
}

/// A controller's token, or its opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The window.
    pub window: Window,
    /// Whose, by position in the roster.
    pub controller: u32,
    /// Whether it is the opening, which is taken off.
    pub opens: bool,
    /// One word for each output.
    pub words: Vec<u64>,
}

impl Coordinator {
    /// Leaves adding up to others: they get [`Output::ForSums`], and
    /// [`Coordinator::summed`] says what they made of it.
    #[must_use]
    pub fn that_leaves_sums_to_others(mut self) -> Self {
        self.delegates = true;
        self
    }

    /// S of a window that is being opened.
    #[must_use]
    pub fn sum_set(&self, start: Timestamp) -> Option<SumSet> {
        let round = self.rounds.get(&start)?;
        let Phase::Opening(_, opens) = &round.phase else { return None };
        let (window, streams) = (round.window, round.accepted(&opens.set));
        let controllers = opens.set.iter().collect();
        Some(SumSet { window, streams, controllers, masked: opens.masked })
    }

    /// The sums of a window over S: `Σ R·c` of its streams and `Σ (T − o)` of its controllers,
    /// one word for each output. Whoever calls it has compared streams, controllers and lengths
    /// with S ([`Coordinator::sum_set`]) and the release. Of a window that has ended, or has
    /// no S, it changes nothing.
    pub fn summed(
        &mut self,
        start: Timestamp,
        ciphertexts: &[u64],
        tokens: &[u64],
    ) -> Step<Output> {
        let outputs = self.plan().release.outputs();
        let Some(round) = self.rounds.get(&start) else { return Step::default() };
        let Phase::Opening(_, opens) = &round.phase else { return Step::default() };
        if ciphertexts.len() != outputs || tokens.len() != outputs {
            self.summed_others(start);
            return Step::default();
        }
        let mut sum = ciphertexts.to_vec();
        self.refine(&mut sum);
        add(&mut sum, tokens);
        let result = self.opened(round, &opens.set, sum);
        self.end(start, result)
    }

    /// What came as a window's sums are sums of something else: if none of its own follow in
    /// time, that is why it fails.
    pub fn summed_others(&mut self, start: Timestamp) {
        if let Some(round) = self.rounds.get_mut(&start) {
            round.other_sums = true;
        }
    }

    /// Keeps an answer, or that it was there where others keep it. The first of a
    /// controller's counts for them.
    pub(super) fn keep(
        &mut self,
        window: Window,
        controller: u32,
        opens: bool,
        words: &[u64],
    ) -> Step<Output> {
        let delegates = self.delegates;
        let Some(round) = self.rounds.get_mut(&window.start) else { return Step::default() };
        let answers = if opens { &mut round.openings } else { &mut round.tokens };
        let kept = if delegates { Vec::new() } else { words.to_vec() };
        let known = answers.insert(controller, kept).is_some();
        if !delegates || known {
            return Step::default();
        }
        let answer = Answer { window, controller, opens, words: words.to_vec() };
        Step::new(Vec::new(), vec![Output::ForSums(ForSums::Answer(answer))])
    }

    /// S, for those who add up.
    pub(super) fn set_for_sums(&self, start: Timestamp) -> Option<Output> {
        let set = self.sum_set(start).filter(|_| self.delegates)?;
        Some(Output::ForSums(ForSums::Set(set)))
    }

    /// The same of a window that ends without S: whoever adds up lets it go.
    pub(super) fn without_set(&self, round: &Round) -> Option<Output> {
        let fixed = matches!(round.phase, Phase::Opening(..));
        let given = self.delegates && !fixed;
        given.then(|| Output::ForSums(ForSums::Set(SumSet::none(round.window))))
    }

    /// All answers are given: from now on the sums are waited for.
    pub(super) fn wait_for_sums(&mut self, now: Timestamp, start: Timestamp) -> Step<Output> {
        let timing = self.timing;
        let Some(round) = self.rounds.get_mut(&start) else { return Step::default() };
        if !round.waits_for_sums {
            round.waits_for_sums = true;
            round.wait(now, timing.sums, timing.sums);
        }
        let failure = if round.other_sums { Failure::OtherSums } else { Failure::SumsLate };
        if now < round.deadline { Step::default() } else { self.fail(start, failure) }
    }
}

impl SumSet {
    /// Of a window that does not open.
    #[must_use]
    pub fn none(window: Window) -> SumSet {
        SumSet { window, streams: Vec::new(), controllers: Vec::new(), masked: true }
    }
}
