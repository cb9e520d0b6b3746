//! Everything that a change could consist of.

use super::super::finding::Fix;
use super::super::fix::names;
use super::{Owners, Weight};
use crate::policy::{ResolvedOption, Section};
use crate::query::Create;
use crate::schema::{OptionKind, Schema};
use alpheus_time::Span;
use std::cmp::Reverse;

/// Alternatives, of which a change has at most one.
pub(super) struct Slot(pub(super) Vec<Edit>);

/// A part of a change.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) weight: Weight,
    /// Smaller ones come first: whom it concerns, and how much it changes.
    pub(super) detail: Vec<u64>,
    pub(super) act: Act,
}

#[derive(Clone, Debug)]
pub(super) enum Act {
    /// A change of the query.
    Fix(Fix),
    /// A change of the query to a number that the planner names when it refuses.
    Solve(SolvedNumber),
    /// A choice of owners.
    Grant(Grant),
}

/// Numbers that follow from what policies allow together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SolvedNumber {
    /// ε.
    Epsilon,
    /// The bounds of the population.
    Population,
    /// How exact results have to be.
    Accuracy,
    /// The most events of a stream.
    Events,
    /// The bounds of an attribute in the schema.
    Bounds,
}

/// What owners would choose beside what they have chosen.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) section: Section,
    pub(super) attribute: u16,
    pub(super) option: ResolvedOption,
}

impl Slot {
    pub(super) fn asks_owners(&self) -> bool {
        self.0.iter().any(|edit| edit.grant().is_some())
    }
}

impl Edit {
    fn of(weight: Weight, detail: u64, fix: Fix) -> Edit {
        Edit { weight, detail: vec![detail], act: Act::Fix(fix) }
    }

    pub(super) fn fix(&self) -> Option<&Fix> {
        if let Act::Fix(fix) = &self.act { Some(fix) } else { None }
    }

    pub(super) fn found(&self) -> Option<SolvedNumber> {
        if let Act::Solve(found) = self.act { Some(found) } else { None }
    }

    pub(super) fn grant(&self) -> Option<&Grant> {
        if let Act::Grant(grant) = &self.act { Some(grant) } else { None }
    }
}

impl SolvedNumber {
    /// The changes of this kind among these, nearest to the query first.
    pub(super) fn fixes(self, all: &[Fix]) -> Vec<Fix> {
        let is_own = |fix: &&Fix| match self {
            SolvedNumber::Epsilon => matches!(fix, Fix::Epsilon(_) | Fix::Noise(..)),
            SolvedNumber::Population => matches!(fix, Fix::Population(..)),
            SolvedNumber::Accuracy => matches!(fix, Fix::Accuracy(..)),
            SolvedNumber::Events => matches!(fix, Fix::Events(_)),
            SolvedNumber::Bounds => matches!(fix, Fix::Bounds(_)),
        };
        let mut own: Vec<Fix> = all.iter().filter(is_own).cloned().collect();
        own.sort_by_key(|fix| match fix {
            Fix::Population(min, max) => (Reverse(*min), *max),
            _ => (Reverse(0), 0),
        });
        own.dedup();
        own
    }
}

/// The attributes that a query names, ascending.
pub(super) fn attributes(query: &Create, schema: &Schema) -> Vec<u16> {
    let all = (0u16..).zip(&schema.attributes).map(|(position, _)| position);
    let named = |attribute: &u16| query.items.iter().any(|item| names(item, *attribute, schema));
    all.filter(named).collect()
}

/// Whether a choice could allow a query, as far as that does not depend on noise, buckets and who
/// else takes part.
pub(super) fn passes(
    option: &ResolvedOption,
    query: &Create,
    any_population: bool,
    streams: usize,
) -> bool {
    let most = query.population.filter(|_| !any_population).map_or(u32::MAX, |(_, max)| max);
    let sealed = query.release_to.as_ref().is_some_and(|to| option.to.contains(&to.text));
    option.kind != OptionKind::Private
        && query.window.0.is_multiple_of(option.window.0.max(1))
        && (option.to.is_empty() || sealed)
        && option.min_population <= most
        && option.min_population as usize <= streams
}

/// All slots of a query, or those that only change how much noise there is.
pub(super) fn of(
    query: &Create,
    owners: &Owners<'_>,
    consumer: &str,
    noise_only: bool,
) -> Vec<Slot> {
    let Some(known) = owners.catalog.schema(&query.from.text) else { return Vec::new() };
    let attributes = attributes(query, &known.schema);
    let offered: Vec<Vec<ResolvedOption>> =
        attributes.iter().map(|attribute| known.schema.choices(*attribute)).collect();
    let chosen = owners.catalog.streams().flat_map(|stream| {
        let of = |attribute: &u16| stream.policy.attribute(*attribute);
        attributes.iter().filter_map(of).flat_map(|own| own.alternatives.clone())
    });
    let mut known_options: Vec<ResolvedOption> = offered.iter().flatten().cloned().collect();
    for option in chosen {
        if !known_options.contains(&option) {
            known_options.push(option);
        }
    }
    let mut slots = settings(query);
    // More values are in windows up to 31 times as long, as a month is of days.
    slots.push(windows(query, &known_options, if noise_only { 31 } else { 1 }));
    slots.push(found(Weight::Clause, SolvedNumber::Population));
    slots.push(recipients(query, &known_options, consumer));
    slots.extend(grants(owners, &attributes, &offered));
    slots.extend(columns(query, &attributes, &known_options));
    if noise_only {
        slots.iter_mut().for_each(|slot| slot.0.retain(|edit| edit.weight <= Weight::Bounds));
    }
    slots.retain(|slot| !slot.0.is_empty());
    slots
}

fn found(weight: Weight, found: SolvedNumber) -> Slot {
    Slot(vec![Edit { weight, detail: Vec::new(), act: Act::Solve(found) }])
}

fn settings(query: &Create) -> Vec<Slot> {
    let settings = &query.settings;
    let one = |weight, fix| Slot(vec![Edit::of(weight, 1, fix)]);
    let mut slots = Vec::new();
    let noise = settings.epsilon.is_some()
        || settings.delta.is_some()
        || settings.mechanism.is_some()
        || settings.events.is_some();
    if noise || query.cumulating.is_some() {
        let mut edits = Vec::new();
        if settings.delta.is_some() || settings.mechanism.is_some() || query.cumulating.is_some() {
            edits.push(Edit::of(Weight::Setting, 1, Fix::Laplace));
        }
        // Where the query says how exact results have to be, the planner chooses.
        let act = match (settings.accuracy.is_asked(), settings.epsilon) {
            (true, Some(_)) => Some(Act::Fix(Fix::AnyEpsilon)),
            (true, None) => None,
            (false, _) => Some(Act::Solve(SolvedNumber::Epsilon)),
        };
        edits.extend(act.map(|act| Edit { weight: Weight::Setting, detail: vec![0], act }));
        edits.push(Edit::of(Weight::Column, 0, Fix::NoNoise));
        slots.push(Slot(edits));
    }
    if query.cumulating.is_some() {
        slots.push(one(Weight::Clause, Fix::Tumbling));
    }
    if settings.accuracy.is_asked() || settings.events.is_some() {
        slots.push(found(Weight::Setting, SolvedNumber::Events));
    }
    if settings.accuracy.is_asked() {
        slots.push(found(Weight::Bounds, SolvedNumber::Bounds));
        slots.push(found(Weight::Error, SolvedNumber::Accuracy));
    }
    slots.extend(settings.alpha.map(|_| one(Weight::Setting, Fix::NoAlpha)));
    slots.extend(settings.masks.map(|_| one(Weight::Setting, Fix::NoMasks)));
    slots
}

/// The next windows that are multiples of what options allow, alone and together.
fn windows(query: &Create, options: &[ResolvedOption], most: u64) -> Slot {
    let mut steps: Vec<u64> = vec![1];
    for option in options {
        for at in 0..steps.len() {
            let together = least_multiple(steps.get(at).copied().unwrap_or(1), option.window.0);
            steps.extend(together.filter(|step| !steps.contains(step)));
        }
    }
    let asked = query.window.0;
    let next = steps.iter().filter_map(|step| asked.div_ceil(*step).checked_mul(*step));
    let times = |size: u64| (1..=most).map(move |times| size.saturating_mul(times));
    let mut sizes: Vec<u64> = next.flat_map(times).collect();
    sizes.retain(|size| *size != asked && *size < MAX_WINDOW.0);
    sizes.sort_unstable();
    sizes.dedup();
    let edit = |size| Edit::of(Weight::Clause, size, Fix::Window(Span(size)));
    Slot(sizes.into_iter().map(edit).collect())
}

/// Ten years, as in the query language.
const MAX_WINDOW: Span = Span(520 * 604_800_000_000);

fn least_multiple(one: u64, other: u64) -> Option<u64> {
    let (mut a, mut b) = (one, other.max(1));
    while b != 0 {
        (a, b) = (b, a % b);
    }
    (one / a.max(1)).checked_mul(other).filter(|size| *size < MAX_WINDOW.0)
}

fn recipients(query: &Create, options: &[ResolvedOption], consumer: &str) -> Slot {
    let mut names: Vec<&String> = options.iter().flat_map(|option| &option.to).collect();
    names.sort_unstable_by_key(|name| (name.as_str() != consumer, name.as_str()));
    names.dedup();
    names.retain(|name| query.release_to.as_ref().is_none_or(|to| to.text != **name));
    let edit =
        |(at, name): (u64, &String)| Edit::of(Weight::Clause, at, Fix::Consumer(name.clone()));
    Slot((0..).zip(names).map(edit).collect())
}

/// For each part of the policies file and each attribute, what it could also choose.
fn grants(owners: &Owners<'_>, attributes: &[u16], offered: &[Vec<ResolvedOption>]) -> Vec<Slot> {
    let mut sections: Vec<Section> = owners.sections.values().copied().collect();
    sections.sort_unstable();
    let mut slots = Vec::new();
    for own in sections.chunk_by(|one, other| one == other) {
        let Some(section) = own.first().copied() else { continue };
        let policy = owners.policies.of_section(section);
        for (attribute, options) in attributes.iter().zip(offered) {
            let chosen = policy.attribute(*attribute).map_or(&[][..], |own| &own.alternatives);
            let edit = |option: &ResolvedOption| Edit {
                weight: Weight::Grant,
                detail: exposure(own.len() as u64, option),
                act: Act::Grant(Grant { section, attribute: *attribute, option: option.clone() }),
            };
            let new = options.iter().filter(|option| !chosen.contains(option));
            slots.push(Slot(new.map(edit).collect()));
        }
    }
    slots
}

/// How much a choice allows, of how many streams. If one option allows all that another does and
/// more, its number is larger.
fn exposure(streams: u64, option: &ResolvedOption) -> Vec<u64> {
    let kind = match option.kind {
        OptionKind::Private => 0,
        OptionKind::DpAggregate => 1,
        OptionKind::Aggregate => 2,
        OptionKind::StreamAggregate => 3,
        OptionKind::Public => 4,
    };
    let below = |number: u64| u64::MAX - number;
    let share = |fraction: crate::fraction::Fraction| {
        u64::from(fraction.numerator) * 1_000_000 / u64::from(fraction.denominator.max(1))
    };
    let budget = option.budget;
    vec![
        streams,
        kind,
        u64::from(option.to.is_empty()),
        option.to.len() as u64,
        budget.map_or(0, |own| own.window_micro_epsilon),
        budget.map_or(0, |own| own.total_micro_epsilon),
        budget.map_or(0, |own| own.atto_delta),
        below(option.min_population.into()),
        below(option.window.0),
        below(share(option.alpha)),
        below(option.colluders.into()),
        share(option.dropout),
        below(option.generalise.len() as u64),
        u64::from(option.missing_ticks),
        u64::from(option.split_populations),
        option.trusted.len() as u64,
        u64::from(option.verified),
    ]
}

/// Coarser columns, fewer columns, and other owners.
fn columns(query: &Create, attributes: &[u16], options: &[ResolvedOption]) -> Vec<Slot> {
    let mut slots = Vec::new();
    for attribute in attributes {
        let mut edits: Vec<Edit> = Vec::new();
        for to in options.iter().flat_map(|option| &option.generalise) {
            let fix = Fix::Generalise(*attribute, to.clone());
            if to.attribute == *attribute && edits.iter().all(|edit| edit.fix() != Some(&fix)) {
                edits.push(Edit::of(Weight::Buckets, edits.len() as u64, fix));
            }
        }
        slots.push(Slot(edits));
    }
    let last = query.items.len() as u64;
    if last > 1 {
        let drop =
            |at: usize| Slot(vec![Edit::of(Weight::Column, last - at as u64, Fix::Drop(at))]);
        slots.extend((0..query.items.len()).map(drop));
    }
    if !query.group_by.is_empty() {
        slots.push(Slot(vec![Edit::of(Weight::Owners, 0, Fix::NoGroups)]));
    }
    if query.filter.is_some() {
        slots.push(Slot(vec![Edit::of(Weight::Owners, 1, Fix::NoFilter)]));
    }
    slots
}
