//! The population of a plan, as its controllers will count it.

use super::refusal::Exclusion;
use crate::ids::{ControllerId, OwnerId};
use crate::plan::{Fraction, PopulationBounds};
use crate::schema::PrivacyUnit;
use std::collections::{BTreeMap, BTreeSet};

/// What a stream's policy asks of the plan that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// Least population.
    pub(super) min: u32,
    /// Least share of colluders to be tolerated.
    pub(super) alpha: Fraction,
    /// Greatest share that may drop out.
    pub(super) dropout: Fraction,
    /// Controllers that its owner trusts, ascending.
    pub(super) trusted: Vec<ControllerId>,
    /// What noise must hide, if it is released under such a policy.
    pub(super) unit: Option<PrivacyUnit>,
}

/// A stream that may take part if the population suffices.
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
    pub(super) dropout: Fraction,
}

/// What the query asks for itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) bounds: PopulationBounds,
    pub(super) alpha: Option<Fraction>,
    pub(super) dropout: Option<Fraction>,
    /// The schema's capacity.
    pub(super) streams: u64,
}

/// Who is in a plan, and who is not.
pub(super) struct Settled<'a> {
    /// The members and the plan's numbers; none where nobody is left.
    pub(super) members: Option<(Vec<Candidate<'a>>, Numbers)>,
    /// Who had to go, and why.
    pub(super) gone: Vec<(Candidate<'a>, Exclusion)>,
}

/// The largest set of candidates whose policies and the query agree, and the
/// plan's numbers; who had to go and why.
///
/// A plan takes over the largest α that anybody asks for, and with it everybody
/// counts for less. So where the population does not suffice, it is tried without
/// those who ask for the most, down to those who ask for the least: nobody's
/// caution costs more streams than their own.
pub(super) fn settle<'a>(mut candidates: Vec<Candidate<'a>>, asked: Asked) -> Settled<'a> {
    let mut gone = Vec::new();
    exclude(&mut candidates, &mut gone, |candidate| {
        let (least, most) = (candidate.terms.min, asked.bounds.max);
        (least > most).then_some(Exclusion::MaximumTooLow { least, most })
    });
    let mut best = settle_all(candidates.clone(), asked);
    if best.gone.iter().any(|(_, exclusion)| matches!(exclusion, Exclusion::TooFew { .. })) {
        let too_few = Counted::of(&candidates, numbers(&candidates, asked).alpha)
            .too_few(numbers(&candidates, asked));
        let alphas: BTreeSet<Fraction> = candidates.iter().map(|one| one.terms.alpha).collect();
        for ceiling in alphas.into_iter().rev().skip(1) {
            let (mut rest, mut left_out) = (candidates.clone(), Vec::new());
            exclude(&mut rest, &mut left_out, |candidate| {
                (candidate.terms.alpha > ceiling).then(|| too_few.clone())
            });
            let mut settled = settle_all(rest, asked);
            if settled.size() > best.size() {
                settled.gone.append(&mut left_out);
                best = settled;
            }
        }
    }
    best.gone.append(&mut gone);
    best
}

impl Settled<'_> {
    fn size(&self) -> usize {
        self.members.as_ref().map_or(0, |(members, _)| members.len())
    }
}

/// The same where nobody goes for their α. The strictest go first, until what
/// the rest ask for is met by the rest: removing a stream can only lower the
/// population and what is asked of it, so this ends.
fn settle_all<'a>(mut candidates: Vec<Candidate<'a>>, asked: Asked) -> Settled<'a> {
    let mut gone = Vec::new();
    loop {
        if candidates.is_empty() {
            return Settled { members: None, gone };
        }
        let numbers = numbers(&candidates, asked);
        let counted = Counted::of(&candidates, numbers.alpha);
        if counted.counted >= numbers.bounds.min {
            if counted.owners > asked.bounds.max || candidates.len() as u64 > asked.streams {
                keep_at_most(&mut candidates, &mut gone, asked);
                continue;
            }
            return Settled { members: Some((candidates, numbers)), gone };
        }
        let too_few = counted.too_few(numbers);
        // Those who ask the most go; if the query itself asks more, all do.
        let strictest = candidates.iter().map(|candidate| candidate.terms.min).max().unwrap_or(0);
        let all = asked.bounds.min >= strictest;
        exclude(&mut candidates, &mut gone, |candidate| {
            (all || candidate.terms.min == strictest).then(|| too_few.clone())
        });
    }
}

fn exclude<'a>(
    candidates: &mut Vec<Candidate<'a>>,
    gone: &mut Vec<(Candidate<'a>, Exclusion)>,
    reason: impl Fn(&Candidate<'a>) -> Option<Exclusion>,
) {
    let (out, rest): (Vec<_>, Vec<_>) = std::mem::take(candidates)
        .into_iter()
        .map(|candidate| (reason(&candidate), candidate))
        .partition(|(reason, _)| reason.is_some());
    *candidates = rest.into_iter().map(|(_, candidate)| candidate).collect();
    gone.extend(out.into_iter().filter_map(|(reason, candidate)| Some((candidate, reason?))));
}

/// Streams of as many owners as the query and the schema's capacity take: those
/// who ask for the least population first, then in order of streams, whose ids
/// mean nothing.
fn keep_at_most<'a>(
    candidates: &mut Vec<Candidate<'a>>,
    gone: &mut Vec<(Candidate<'a>, Exclusion)>,
    asked: Asked,
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
    exclude(candidates, gone, |candidate| {
        let full = Exclusion::BeyondCapacity { most: asked.streams };
        let stays = kept.contains(&candidate.stream.stream);
        let known = owners.contains(&candidate.stream.owner);
        (!stays).then_some(if known || owners.len() < most as usize {
            full
        } else {
            Exclusion::BeyondMaximum { most }
        })
    });
}

/// The least population, the largest α and the smallest dropout that anybody
/// asks for; a fifth may drop out if nobody says.
fn numbers(candidates: &[Candidate<'_>], asked: Asked) -> Numbers {
    let terms = || candidates.iter().map(|candidate| &candidate.terms);
    let min = terms().map(|terms| terms.min).max().unwrap_or(1).max(asked.bounds.min).max(1);
    let alpha =
        terms().map(|terms| terms.alpha).chain(asked.alpha).max().unwrap_or(Fraction::THIRD);
    let own = asked.dropout.unwrap_or(Fraction::FIFTH);
    let dropout = terms().map(|terms| terms.dropout).fold(own, Fraction::min);
    Numbers { bounds: PopulationBounds { min, max: asked.bounds.max.max(min) }, alpha, dropout }
}

/// A population with everybody there, as the honest controller counts it that
/// counts the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) controllers: u32,
    pub(super) tolerated: u32,
    pub(super) owners: u32,
    pub(super) counted: u32,
}

impl Counted {
    pub(super) fn of(candidates: &[Candidate<'_>], alpha: Fraction) -> Counted {
        let mut hosts: BTreeMap<ControllerId, BTreeSet<OwnerId>> = BTreeMap::new();
        for candidate in candidates {
            hosts.entry(candidate.stream.controller).or_default().insert(candidate.stream.owner);
        }
        let mut sizes: Vec<usize> = hosts.values().map(BTreeSet::len).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let tolerated =
            if mutual_trust(candidates, &hosts) { 0 } else { alpha.tolerated(sizes.len()) };
        let owners: usize = sizes.iter().sum();
        let counted = owners - sizes.iter().take(tolerated).sum::<usize>();
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Counted {
            controllers: narrow(sizes.len()),
            tolerated: narrow(tolerated),
            owners: narrow(owners),
            counted: narrow(counted),
        }
    }

    fn too_few(self, numbers: Numbers) -> Exclusion {
        Exclusion::TooFew {
            needed: numbers.bounds.min,
            present: self.owners,
            counted: self.counted,
            tolerated: self.tolerated,
            controllers: self.controllers,
            alpha: numbers.alpha,
            enough: enough(numbers.bounds.min, numbers.alpha),
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

/// The least number of controllers, with one owner each, that count as `min`
/// when everybody has data: the least N with N − t ≥ min.
pub(crate) fn enough(min: u32, alpha: Fraction) -> u32 {
    let counts = |controllers: u64| {
        let controllers = usize::try_from(controllers).unwrap_or(usize::MAX);
        controllers.saturating_sub(alpha.tolerated(controllers)) as u64
    };
    // N − ⌊αN⌋ never falls as N grows, and rises by at most one.
    let (mut low, mut high) = (u64::from(min), u64::from(u32::MAX));
    while low < high {
        let middle = u64::midpoint(low, high);
        if counts(middle) >= u64::from(min) { high = middle } else { low = middle + 1 }
    }
    u32::try_from(low).unwrap_or(u32::MAX)
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

    /// How many take part, and the plan's α.
    fn settled(terms: &[(u32, Fraction)]) -> Option<(usize, Fraction)> {
        let streams = streams(terms);
        let candidate = |(stream, (min, alpha)): (_, &(u32, Fraction))| {
            let (min, alpha, trusted) = (*min, *alpha, Vec::new());
            let (dropout, unit) = (Fraction::FIFTH, None);
            Candidate { stream, terms: Terms { min, alpha, dropout, trusted, unit } }
        };
        let candidates: Vec<_> = streams.iter().zip(terms).map(candidate).collect();
        let bounds = PopulationBounds { min: 1, max: 1000 };
        let all = candidates.len();
        let settled =
            settle(candidates, Asked { bounds, alpha: None, dropout: None, streams: 1000 });
        let members = settled.members.as_ref().map_or(0, |(members, _)| members.len());
        assert_eq!(members + settled.gone.len(), all, "somebody is lost");
        settled.members.map(|(members, numbers)| (members.len(), numbers.alpha))
    }

    #[test]
    fn whoever_asks_for_too_much_goes_alone() {
        let (third, all) = (Fraction::THIRD, Fraction { numerator: 1, denominator: 1 });
        let honest = vec![(10, third); 30];
        assert_eq!(settled(&honest), Some((30, third)));
        let with = |terms: (u32, Fraction)| [honest.clone(), vec![terms]].concat();
        // With α = 1 nobody counts for anything, and the hostile stream asks for one.
        assert_eq!(settled(&with((1, all))), Some((30, third)));
        assert_eq!(
            settled(&with((1, Fraction { numerator: 9, denominator: 10 }))),
            Some((30, third))
        );
        assert_eq!(settled(&with((500, all))), Some((30, third)));
        // Caution that costs nobody anything is heeded.
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
    fn thirty_controllers_count_as_twenty_and_ten_need_fourteen() {
        assert_eq!(30 - Fraction::THIRD.tolerated(30), 20);
        assert_eq!(enough(10, Fraction::THIRD), 14);
        assert_eq!(enough(10, Fraction::ZERO), 10);
        assert_eq!(enough(1, Fraction::THIRD), 1);
        assert_eq!(enough(2, Fraction::THIRD), 3);
    }

    #[test]
    fn enough_is_the_least() {
        for min in 1..200 {
            for alpha in
                [Fraction::ZERO, Fraction::THIRD, Fraction { numerator: 1, denominator: 2 }]
            {
                let counts = |n: usize| n - alpha.tolerated(n);
                let n = enough(min, alpha) as usize;
                assert!(
                    counts(n) >= min as usize && counts(n - 1) < min as usize,
                    "{min} {alpha:?} {n}"
                );
            }
        }
    }
}
