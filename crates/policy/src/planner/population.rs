//! The population of a plan, as its controllers will count it.

use super::brittle_minimums::leave_out_brittle;
use super::exclusion::ExclusionError;
use crate::fraction::Fraction;
use crate::ids::{ControllerId, OwnerId};
use crate::membership::{DEFAULT_COLLUDERS, tolerated};
use crate::plan::PopulationBounds;
use crate::schema::PrivacyUnit;
use std::collections::{BTreeMap, BTreeSet};

/// What a stream's policy requires of its plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// Minimum population.
    pub(super) min: u32,
    /// Minimum share of colluders to tolerate.
    pub(super) alpha: Fraction,
    /// Minimum number of colluders of the whole deployment.
    pub(super) colluders: u32,
    /// Maximum share that may drop out.
    pub(super) dropout: Fraction,
    /// Controllers that its owner trusts, ascending.
    pub(super) trusted: Vec<ControllerId>,
    /// The unit of protection, if the policy requires noise.
    pub(super) unit: Option<PrivacyUnit>,
}

/// A stream that may take part if the population is large enough.
#[derive(Clone, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) stream: &'a crate::catalog::CatalogStream,
    pub(super) terms: Terms,
}

/// The numbers of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) bounds: PopulationBounds,
    pub(super) alpha: Fraction,
    pub(super) colluders: u32,
    pub(super) dropout: Fraction,
}

impl Numbers {
    /// How many of so many controllers may collude with the service (t).
    pub(super) fn tolerated(self, controllers: u32) -> u32 {
        tolerated(controllers, self.alpha, self.colluders)
    }
}

/// What the query itself requires.
#[derive(Clone, Copy, Debug)]
pub(super) struct PopulationRequest {
    pub(super) bounds: PopulationBounds,
    pub(super) alpha: Option<Fraction>,
    pub(super) dropout: Option<Fraction>,
    /// The schema's capacity.
    pub(super) streams: u64,
}

/// The members of a plan, and the streams that were excluded.
pub(super) struct Settlement<'a> {
    /// The members and the plan's numbers, if any member is left.
    pub(super) members: Option<(Vec<Candidate<'a>>, Numbers)>,
    /// Excluded candidates, with the reason.
    pub(super) excluded: Vec<(Candidate<'a>, ExclusionError)>,
}

/// The largest set of candidates whose policies agree with the query, the plan's numbers,
/// and the excluded candidates with reasons.
///
/// A plan adopts the largest α and c of its members, and larger ones make everyone count for
/// less. So if the population is too small, this retries with each ceiling on both that some
/// members set, without the members above it. One member's α or c never excludes more streams
/// than its own.
pub(super) fn settle<'a>(
    mut candidates: Vec<Candidate<'a>>,
    asked: PopulationRequest,
) -> Settlement<'a> {
    let mut excluded = Vec::new();
    exclude(&mut candidates, &mut excluded, |candidate| {
        let (least, most) = (candidate.terms.min, asked.bounds.max);
        (least > most).then_some(ExclusionError::MaximumTooLow { least, most })
    });
    let mut best = settle_all(candidates.clone(), asked);
    if best.excluded.iter().any(|(_, exclusion)| matches!(exclusion, ExclusionError::TooFew { .. }))
    {
        let adopted = numbers(&candidates, asked);
        let too_few = PopulationCount::of(&candidates, adopted).too_few(adopted);
        for (alpha, colluders) in ceilings(&candidates) {
            let (mut rest, mut left_out) = (candidates.clone(), Vec::new());
            exclude(&mut rest, &mut left_out, |candidate| {
                let above = candidate.terms.alpha > alpha || candidate.terms.colluders > colluders;
                above.then(|| too_few.clone())
            });
            let mut settled = settle_all(rest, asked);
            if settled.size() > best.size() {
                settled.excluded.append(&mut left_out);
                best = settled;
            }
        }
    }
    let mut best = leave_out_brittle(best, asked);
    best.excluded.append(&mut excluded);
    best
}

/// Each pair of an α and a c that some members require, but for the largest of both, largest
/// first. A schema has few options, and each has one α and one c.
fn ceilings(candidates: &[Candidate<'_>]) -> Vec<(Fraction, u32)> {
    let alphas: BTreeSet<Fraction> = candidates.iter().map(|one| one.terms.alpha).collect();
    let numbers: BTreeSet<u32> = candidates.iter().map(|one| one.terms.colluders).collect();
    let pairs = alphas.iter().rev().flat_map(|alpha| numbers.iter().rev().map(|c| (*alpha, *c)));
    pairs.skip(1).collect()
}

impl Settlement<'_> {
    fn size(&self) -> usize {
        self.members.as_ref().map_or(0, |(members, _)| members.len())
    }
}

/// The same without exclusions because of α and c. Excludes the strictest members until the rest
/// meet their own requirements. Removing a stream can only lower the population and its
/// requirements, so this terminates.
pub(super) fn settle_all<'a>(
    mut candidates: Vec<Candidate<'a>>,
    asked: PopulationRequest,
) -> Settlement<'a> {
    let mut excluded = Vec::new();
    loop {
        if candidates.is_empty() {
            return Settlement { members: None, excluded };
        }
        let numbers = numbers(&candidates, asked);
        let counted = PopulationCount::of(&candidates, numbers);
        if counted.counted >= numbers.bounds.min {
            if counted.owners > asked.bounds.max || candidates.len() as u64 > asked.streams {
                keep_at_most(&mut candidates, &mut excluded, asked);
                continue;
            }
            return Settlement { members: Some((candidates, numbers)), excluded };
        }
        let too_few = counted.too_few(numbers);
        // Exclude the strictest. If the query is stricter than all of them, exclude all.
        let strictest = candidates.iter().map(|candidate| candidate.terms.min).max().unwrap_or(0);
        let all = asked.bounds.min >= strictest;
        exclude(&mut candidates, &mut excluded, |candidate| {
            (all || candidate.terms.min == strictest).then(|| too_few.clone())
        });
    }
}

fn exclude<'a>(
    candidates: &mut Vec<Candidate<'a>>,
    excluded: &mut Vec<(Candidate<'a>, ExclusionError)>,
    reason: impl Fn(&Candidate<'a>) -> Option<ExclusionError>,
) {
    let (out, rest): (Vec<_>, Vec<_>) = std::mem::take(candidates)
        .into_iter()
        .map(|candidate| (reason(&candidate), candidate))
        .partition(|(reason, _)| reason.is_some());
    *candidates = rest.into_iter().map(|(_, candidate)| candidate).collect();
    excluded.extend(out.into_iter().filter_map(|(reason, candidate)| Some((candidate, reason?))));
}

/// Keeps streams of as many owners as the query and the schema's capacity allow. Those with
/// the smallest minimum population come first, then in order of stream ids, which have no
/// meaning.
fn keep_at_most<'a>(
    candidates: &mut Vec<Candidate<'a>>,
    excluded: &mut Vec<(Candidate<'a>, ExclusionError)>,
    asked: PopulationRequest,
) {
    let most = asked.bounds.max;
    let mut order: Vec<_> =
        candidates.iter().map(|one| (one.terms.min, one.stream.stream, one.stream.owner)).collect();
    order.sort_unstable();
    let (mut owners, mut kept) = (BTreeSet::new(), BTreeSet::new());
    for (_, stream, owner) in order {
        let room = owners.contains(&owner) || owners.len() < most as usize;
        if room && (kept.len() as u64) < asked.streams {
            owners.insert(owner);
            kept.insert(stream);
        }
    }
    exclude(candidates, excluded, |candidate| {
        let full = ExclusionError::BeyondCapacity { most: asked.streams };
        let stays = kept.contains(&candidate.stream.stream);
        let known = owners.contains(&candidate.stream.owner);
        (!stays).then_some(if known || owners.len() < most as usize {
            full
        } else {
            ExclusionError::BeyondMaximum { most }
        })
    });
}

/// The largest minimum population, the largest α and c, and the smallest dropout that anyone
/// requires. By default a fifth may drop out.
fn numbers(candidates: &[Candidate<'_>], asked: PopulationRequest) -> Numbers {
    let terms = || candidates.iter().map(|candidate| &candidate.terms);
    let min = terms().map(|terms| terms.min).max().unwrap_or(1).max(asked.bounds.min).max(1);
    let alpha =
        terms().map(|terms| terms.alpha).chain(asked.alpha).max().unwrap_or(Fraction::THIRD);
    let colluders = terms().map(|terms| terms.colluders).max().unwrap_or(DEFAULT_COLLUDERS);
    let own = asked.dropout.unwrap_or(Fraction::FIFTH);
    let dropout = terms().map(|terms| terms.dropout).fold(own, Fraction::min);
    let bounds = PopulationBounds { min, max: asked.bounds.max.max(min) };
    Numbers { bounds, alpha, colluders, dropout }
}

/// A population with everyone present, as counted by the honest controller that counts
/// the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PopulationCount {
    pub(super) controllers: u32,
    pub(super) tolerated: u32,
    pub(super) owners: u32,
    pub(super) counted: u32,
}

impl PopulationCount {
    pub(super) fn of(candidates: &[Candidate<'_>], numbers: Numbers) -> PopulationCount {
        let mut hosts: BTreeMap<ControllerId, BTreeSet<OwnerId>> = BTreeMap::new();
        for candidate in candidates {
            hosts.entry(candidate.stream.controller).or_default().insert(candidate.stream.owner);
        }
        let mut sizes: Vec<usize> = hosts.values().map(BTreeSet::len).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let controllers = narrow(sizes.len());
        let trusted = mutual_trust(candidates, &hosts);
        let tolerated = if trusted { 0 } else { numbers.tolerated(controllers) };
        let owners: usize = sizes.iter().sum();
        let counted = owners - sizes.iter().take(tolerated as usize).sum::<usize>();
        PopulationCount { controllers, tolerated, owners: narrow(owners), counted: narrow(counted) }
    }

    fn too_few(self, numbers: Numbers) -> ExclusionError {
        ExclusionError::TooFew {
            needed: numbers.bounds.min,
            present: self.owners,
            counted: self.counted,
            tolerated: self.tolerated,
            controllers: self.controllers,
            alpha: numbers.alpha,
            colluders: numbers.colluders,
            enough: controllers_for(numbers.bounds.min, numbers.alpha, numbers.colluders),
        }
    }
}

/// Whether there are two controllers and all owners trust both.
fn mutual_trust(
    candidates: &[Candidate<'_>],
    hosts: &BTreeMap<ControllerId, BTreeSet<OwnerId>>,
) -> bool {
    let trusts_others = |candidate: &Candidate<'_>| {
        hosts.keys().all(|host| {
            *host == candidate.stream.controller || candidate.terms.trusted.contains(host)
        })
    };
    hosts.len() == 2 && candidates.iter().all(trusts_others)
}

/// The smallest number of controllers, with one owner each, that count as `min` if everyone
/// has data: the smallest N with N − t ≥ min.
pub(crate) fn controllers_for(min: u32, alpha: Fraction, colluders: u32) -> u32 {
    // N − t never falls as N grows, and rises by at most one.
    let (mut low, mut high) = (min, u32::MAX);
    while low < high {
        let middle = low.midpoint(high);
        let enough = middle - tolerated(middle, alpha, colluders) >= min;
        if enough { high = middle } else { low = middle + 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CatalogStream;
    use crate::ids::{SchemaId, StreamId};
    use crate::policy::ResolvedPolicy;

    /// One stream of one owner at a controller of its own for each of the terms.
    fn streams(terms: &[(u32, Fraction)]) -> Vec<CatalogStream> {
        let one = |number: usize| {
            let id = (number as u64).to_be_bytes();
            let (mut short, mut long) = ([0; 16], [0; 32]);
            short[..8].copy_from_slice(&id);
            long[..8].copy_from_slice(&id);
            CatalogStream {
                stream: StreamId(short),
                owner: OwnerId(long),
                controller: ControllerId(long),
                schema: SchemaId([0; 32]),
                metadata: Vec::new(),
                policy: ResolvedPolicy { attributes: Vec::new() },
            }
        };
        (0..terms.len()).map(one).collect()
    }

    /// The number of members, and the plan's α.
    fn settled(terms: &[(u32, Fraction)]) -> Option<(usize, Fraction)> {
        let streams = streams(terms);
        let candidate = |(stream, (min, alpha)): (_, &(u32, Fraction))| {
            let (min, alpha, trusted) = (*min, *alpha, Vec::new());
            let (dropout, unit) = (Fraction::FIFTH, None);
            let colluders = 1;
            Candidate { stream, terms: Terms { min, alpha, colluders, dropout, trusted, unit } }
        };
        let candidates: Vec<_> = streams.iter().zip(terms).map(candidate).collect();
        let bounds = PopulationBounds { min: 1, max: 1000 };
        let all = candidates.len();
        let settled = settle(
            candidates,
            PopulationRequest { bounds, alpha: None, dropout: None, streams: 1000 },
        );
        let members = settled.members.as_ref().map_or(0, |(members, _)| members.len());
        assert_eq!(members + settled.excluded.len(), all, "a candidate is missing");
        settled.members.map(|(members, numbers)| (members.len(), numbers.alpha))
    }

    #[test]
    fn only_members_with_excessive_requirements_are_excluded() {
        let (third, all) = (Fraction::THIRD, Fraction { numerator: 1, denominator: 1 });
        let honest = vec![(10, third); 30];
        assert_eq!(settled(&honest), Some((30, third)));
        let with = |terms: (u32, Fraction)| [honest.clone(), vec![terms]].concat();
        // With α = 1 nobody counts, and the hostile stream requires one.
        assert_eq!(settled(&with((1, all))), Some((30, third)));
        assert_eq!(
            settled(&with((1, Fraction { numerator: 9, denominator: 10 }))),
            Some((30, third))
        );
        assert_eq!(settled(&with((500, all))), Some((30, third)));
        // A larger α that excludes nobody is adopted.
        let half = Fraction { numerator: 1, denominator: 2 };
        assert_eq!(settled(&with((1, half))), Some((31, half)));
    }

    #[test]
    fn the_larger_group_takes_part() {
        let (third, high) = (Fraction::THIRD, Fraction { numerator: 3, denominator: 4 });
        let few = [vec![(10, third); 20], vec![(2, high); 3]].concat();
        assert_eq!(settled(&few), Some((20, third)));
        let many = [vec![(10, third); 3], vec![(2, high); 20]].concat();
        assert_eq!(settled(&many), Some((20, high)));
    }

    #[test]
    fn a_minimum_that_makes_windows_brittle_is_left_out() {
        let third = Fraction::THIRD;
        // 36 controllers count as 24, so a minimum of 24 loses each window in which one fails.
        let honest = vec![(10, third); 35];
        let with = |min: u32| [honest.clone(), vec![(min, third)]].concat();
        assert_eq!(settled(&with(24)), Some((35, third)));
        assert_eq!(settled(&with(12)), Some((36, third)), "it leaves room");
        // What half of them choose is left in, and what nobody is safe without.
        let half = [vec![(10, third); 18], vec![(24, third); 18]].concat();
        assert_eq!(settled(&half), Some((36, third)));
        assert_eq!(settled(&[(2, third), (2, third), (1, third)]), Some((3, third)));
    }

    #[test]
    fn thirty_controllers_count_as_twenty_and_ten_need_fourteen() {
        assert_eq!(30 - tolerated(30, Fraction::THIRD, 8), 20);
        assert_eq!(controllers_for(10, Fraction::THIRD, 1), 14);
        assert_eq!(controllers_for(10, Fraction::THIRD, 8), 18);
        assert_eq!(controllers_for(10, Fraction::ZERO, 8), 10);
        assert_eq!(controllers_for(1, Fraction::THIRD, 1), 1);
        assert_eq!(controllers_for(2, Fraction::THIRD, 1), 3);
        assert_eq!(controllers_for(2, Fraction::THIRD, u32::MAX), u32::MAX);
    }

    #[test]
    fn controllers_for_returns_the_smallest_number() {
        for min in 1..200 {
            for alpha in
                [Fraction::ZERO, Fraction::THIRD, Fraction { numerator: 1, denominator: 2 }]
            {
                for colluders in [0, 1, 8, 40] {
                    let counts = |n: u32| n - tolerated(n, alpha, colluders);
                    let n = controllers_for(min, alpha, colluders);
                    let least = counts(n) >= min && counts(n - 1) < min;
                    assert!(least, "{min} {alpha:?} {colluders} {n}");
                }
            }
        }
    }
}
