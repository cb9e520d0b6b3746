//! One list's cohorts, their bounds and strategies, and whether their windows open.

use super::presence::{Population, happens};
use alpheus_encrypted_stream::mask::cuts::{self, Cuts};
use alpheus_encrypted_stream::mask::params::{MIN_DELTA_EXPONENT, largest_b};
use alpheus_policy::membership::{cohort_bits, cohort_colluders, tolerated};
use alpheus_policy::plan::{Fraction, needed_picks};
use alpheus_policy::quorum::{majority, min_opening};
use chacha20::ChaCha20Rng;
use rand_core::Rng;
use std::collections::BTreeMap;

/// Longer lists take `neighbours`, where that opens.
const NEIGHBOURS_ABOVE: u32 = 500;
/// Longer lists do not take the clique.
const CLIQUE_UP_TO: u32 = 1000;

/// What the plan states.
pub(super) struct Bounds {
    pub(super) alpha: Fraction,
    pub(super) dropout: Fraction,
    pub(super) colluders: u32,
    pub(super) cohort: u32,
    pub(super) minimum: u32,
}

/// A list, cut.
pub(super) struct Cohorts {
    pub(super) all: Vec<Cohort>,
}

/// Members of an epoch that open together.
pub(super) struct Cohort {
    members: Vec<u32>,
    tolerated: u32,
    strategy: Strategy,
    /// The picks of each member, by position, for `neighbours`.
    picks: Vec<Vec<u32>>,
    minimum: u32,
    dropout: Fraction,
}

#[derive(Clone, Copy)]
enum Strategy {
    Clique,
    Neighbours(Cuts),
    Dream,
}

/// A cohort's part of a window.
pub(super) struct Opening {
    /// How many took part.
    pub(super) members: u32,
    /// Why it did not open; `None` if it did.
    pub(super) failed: Option<&'static str>,
}

impl Cohorts {
    /// Cuts a list by the members' lots. `least` is the length of the shortest recent list.
    pub(super) fn of(
        listed: &[u32],
        lots: &[u32],
        bounds: &Bounds,
        least: u32,
        rng: &mut ChaCha20Rng,
    ) -> Self {
        let bits = cohort_bits(narrow(listed.len()), bounds.cohort);
        let colluders = cohort_colluders(bounds.colluders, bits, MIN_DELTA_EXPONENT);
        let mut parts: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for at in listed {
            let lot = lots.get(*at as usize).copied().unwrap_or(0);
            let prefix = lot.checked_shr(32 - u32::from(bits)).unwrap_or(0);
            parts.entry(prefix).or_default().push(*at);
        }
        let all = parts.into_values();
        let all = all.map(|members| Cohort::new(members, bounds, colluders, least >> bits, rng));
        Self { all: all.collect() }
    }
}

impl Cohort {
    fn new(
        members: Vec<u32>,
        bounds: &Bounds,
        colluders: u32,
        least: u32,
        rng: &mut ChaCha20Rng,
    ) -> Self {
        let count = narrow(members.len());
        let tolerated = tolerated(count, bounds.alpha, colluders);
        let strategy = choose(count, tolerated, bounds.minimum, least);
        let picks = match strategy {
            Strategy::Neighbours(cuts) => {
                (0..count).map(|own| draw_picks(own, count, cuts.picks, rng)).collect()
            }
            Strategy::Clique | Strategy::Dream => Vec::new(),
        };
        Self {
            members,
            tolerated,
            strategy,
            picks,
            minimum: bounds.minimum,
            dropout: bounds.dropout,
        }
    }

    /// A window: the listed that are still awake answer, some of them fail before the opening.
    pub(super) fn window(
        &self,
        population: &Population,
        failures: f64,
        rng: &mut ChaCha20Rng,
    ) -> Opening {
        let listed = narrow(self.members.len());
        let mut present: Vec<bool> =
            self.members.iter().map(|at| population.is_awake(*at)).collect();
        self.peel(&mut present);
        let members = count(&present);
        let mut set: Vec<bool> =
            present.iter().map(|here| *here && !happens(failures, rng)).collect();
        self.peel(&mut set);
        let opening = count(&set);
        let cut_off = self.cut_off();
        let discounted = self.tolerated + 2 * cut_off;
        let quorum = min_opening(listed, discounted, members, self.dropout);
        let counted = opening.saturating_sub(self.tolerated + cut_off).max(1);
        let failed = if members < majority(listed, discounted) {
            Some("too few of the listed are present")
        } else if opening < quorum {
            Some("too many fail between the messages")
        } else if counted < self.minimum {
            Some("the population is below the minimum")
        } else {
            None
        };
        Opening { members, failed }
    }

    /// Takes out those that lack too many of their picks, until none does.
    fn peel(&self, set: &mut [bool]) {
        let Strategy::Neighbours(cuts) = self.strategy else { return };
        let needed = needed_picks(cuts.picks);
        loop {
            let lacks = |own: usize| {
                let picks = self.picks.get(own).map(Vec::as_slice).unwrap_or_default();
                let here = picks.iter().filter(|at| set.get(**at as usize) == Some(&true));
                narrow(here.count()) < needed
            };
            let out: Vec<usize> =
                (0..set.len()).filter(|own| set.get(*own) == Some(&true) && lacks(*own)).collect();
            if out.is_empty() {
                return;
            }
            for own in out {
                if let Some(it) = set.get_mut(own) {
                    *it = false;
                }
            }
        }
    }

    fn cut_off(&self) -> u32 {
        match self.strategy {
            Strategy::Neighbours(cuts) => cuts.cut_off,
            Strategy::Clique | Strategy::Dream => 0,
        }
    }

    /// Key agreements of one member for an epoch.
    pub(super) fn agreements(&self) -> f64 {
        match self.strategy {
            // One's own picks, and as many pickers on average.
            Strategy::Neighbours(cuts) => 2.0 * f64::from(cuts.picks),
            Strategy::Clique | Strategy::Dream => (self.members.len() as f64) - 1.0,
        }
    }

    /// Bytes of the list, with one owner at each member.
    pub(super) fn list_bytes(&self) -> f64 {
        const ENTRY: f64 = 32.0 + 32.0 + 2.0 + 16.0;
        self.members.len() as f64 * ENTRY
    }

    /// Bytes that one member sends and receives in a window.
    pub(super) fn window_bytes(&self, members: u32, words: u32) -> f64 {
        /// Signature, plan, window, epoch and digests of a message.
        const HEAD: f64 = 64.0 + 32.0 + 16.0 + 8.0 + 64.0;
        /// A segment without gaps: two claims.
        const SEGMENT: f64 = 2.0 * 73.0;
        let listed = self.members.len() as f64;
        let path = 32.0 * f64::from(members.max(1)).log2().ceil();
        let pickers = match self.strategy {
            Strategy::Neighbours(cuts) => 4.0 * f64::from(cuts.picks),
            Strategy::Clique | Strategy::Dream => 0.0,
        };
        let summons = HEAD + SEGMENT;
        let presence = HEAD + 8.0;
        let membership = HEAD + listed / 8.0 + f64::from(members) + path + pickers;
        let set = HEAD + listed / 8.0;
        let answers = 2.0 * (HEAD + 8.0 * f64::from(words));
        summons + presence + membership + set + answers
    }
}

/// Never a strategy that fails where another opens: `neighbours` only where recent lists
/// were long enough for the members that it does not count.
fn choose(listed: u32, tolerated: u32, minimum: u32, least: u32) -> Strategy {
    if listed > NEIGHBOURS_ABOVE
        && let Some(cuts) = cuts::least(listed, tolerated, MIN_DELTA_EXPONENT)
        && least > minimum + tolerated + 2 * cuts.cut_off
    {
        return Strategy::Neighbours(cuts);
    }
    if listed <= CLIQUE_UP_TO {
        return Strategy::Clique;
    }
    let honest = majority(listed, tolerated).saturating_sub(tolerated);
    match largest_b(honest, MIN_DELTA_EXPONENT) {
        Some(_) => Strategy::Dream,
        None => Strategy::Clique,
    }
}

/// `picks` different others, by position.
fn draw_picks(own: u32, count: u32, picks: u32, rng: &mut ChaCha20Rng) -> Vec<u32> {
    let others = u64::from(count.saturating_sub(1));
    let mut drawn = Vec::with_capacity(picks as usize);
    while narrow(drawn.len()) < picks && u64::from(picks) <= others {
        let at = ((u64::from(rng.next_u32()) * others) >> 32) as u32;
        let at = at + u32::from(at >= own);
        if !drawn.contains(&at) {
            drawn.push(at);
        }
    }
    drawn
}

fn count(set: &[bool]) -> u32 {
    narrow(set.iter().filter(|here| **here).count())
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
