//! What a suggestion has to be, beside answered.

use super::{CAPACITY, CHOICES, Choice, MAX_VALUES, NoisyQuery, by_force, grow, longer_windows};
use crate::planner::fixture::create;
use crate::planner::suggested_world::{Draws, Small, options};
use alpheus_policy::planner::plan;
use alpheus_policy::planner::suggest::{Advice, Change, Suggestion};
use alpheus_policy::policy::Section;
use alpheus_policy::query::Decimal;
use std::collections::BTreeMap;

/// The query and what owners choose, with a change.
fn with(mut own: NoisyQuery, change: &Change) -> NoisyQuery {
    match change {
        Change::Grant { section, attribute, option, clients, .. } => {
            let known = |choice: &Choice| choice.name == option && choice.clients == *clients;
            let part = usize::from(*section == Section::Mix(0));
            let choice = CHOICES.into_iter().find(known).unwrap();
            own.parts[part][usize::from(attribute == "b")].push(choice);
        }
        Change::Schema { attribute, after: [_, most], .. } => {
            own.bounds[usize::from(attribute == "b")] = most.parse().unwrap();
        }
        Change::Query { clause: "SELECT", before, .. } => {
            let lost = usize::from(before.as_deref() == Some("SUM(b)"));
            own.attributes.retain(|at| *at != lost);
        }
        Change::Query { clause: "its noise" | "its settings of noise and error", .. } => {
            (own.epsilon, own.events) = (None, None);
        }
        // The planner chooses it.
        Change::Query { clause: "epsilon", .. } => own.epsilon = None,
        Change::Query { clause, after, .. } => {
            let after = after.as_deref().unwrap();
            match *clause {
                "WINDOW" => {
                    let length = after.split(" (").next().unwrap();
                    let text = format!("SELECT SUM(a) WINDOW TUMBLING (SIZE {length}) FROM Meters");
                    grow(
                        &mut own,
                        create(&format!("CREATE STREAM s AS {text}")).window.0 / 1_000_000,
                    );
                }
                "BETWEEN" => {
                    let (min, max) = after.split_once(" AND ").unwrap();
                    own.population = Some((min.parse().unwrap(), max.parse().unwrap()));
                }
                "events" => own.events = Some(after.parse().unwrap()),
                "the error" => match after.strip_prefix("WITHIN ") {
                    Some(margin) => own.within = Some(margin.parse().unwrap()),
                    None => own.error = after.strip_suffix(" %").map(|own| own.parse().unwrap()),
                },
                other => panic!("{other}"),
            }
        }
    }
    own
}

/// The window first: other numbers are of it.
fn with_all<'a>(asked: &NoisyQuery, changes: impl Iterator<Item = &'a Change>) -> NoisyQuery {
    let is_window = |own: &&Change| matches!(own, Change::Query { clause: "WINDOW", .. });
    let (first, rest): (Vec<_>, Vec<_>) = changes.partition(is_window);
    first.into_iter().chain(rest).fold(asked.clone(), with)
}

/// What the planner says of a query, which is what the rules say.
fn is_planned(asked: &NoisyQuery) -> bool {
    let small = Small::of(&asked.schema(), &asked.policies(), asked.owners.iter().sum(), |_| 1).0;
    let planned = plan(&create(&asked.sql()), &small.catalog, &options());
    assert_eq!(planned.is_ok(), asked.is_answered(), "{asked:?}\n{}\n{planned:?}", asked.sql());
    planned.is_ok()
}

/// Without any one of its edits, the planner refuses.
fn every_edit_is_needed(asked: &NoisyQuery, found: &Suggestion) {
    assert!(is_planned(&with_all(asked, found.changes.iter())), "{found:?}");
    for left_out in 0..found.changes.len() {
        let rest = found.changes.iter().enumerate().filter(|(at, _)| *at != left_out);
        let fewer = with_all(asked, rest.map(|(_, change)| change));
        assert!(!is_planned(&fewer), "{found:?} without {left_out}");
    }
}

fn no_narrower_choice_is_enough(rest: &NoisyQuery, change: &Change) {
    let Change::Grant { section, attribute, option, clients, .. } = change else { return };
    let own = CHOICES.iter().find(|own| own.name == option && own.clients == *clients).unwrap();
    for less in CHOICES.iter().filter(|less| less.is_narrower_than(*own)) {
        let mut fewer = rest.clone();
        let part = usize::from(*section == Section::Mix(0));
        fewer.parts[part][usize::from(attribute == "b")].push(*less);
        assert!(!fewer.is_answered(), "{change:?}: {less:?} is enough");
    }
}

fn no_wider_bounds_are_enough(all: &NoisyQuery, rest: &NoisyQuery) {
    let at = all.attributes[0];
    // The planner may choose as few events as the query says that there are.
    let chosen = all.values.filter(|_| all.events.is_none());
    let events = chosen.map_or(all.limit(), |values| values.min(all.limit()));
    let of = |most: i64, stay| {
        let mut wider = rest.clone();
        wider.bounds[at] = most;
        wider.is_met(events, stay)
    };
    let stay = of(all.bounds[at], true);
    assert!(!(all.bounds[at] + 1..MAX_VALUES[at]).any(|most| of(most, stay)), "{all:?}");
}

/// No bounds of the population are enough that are nearer to those asked.
fn no_nearer_population_is_enough(all: &NoisyQuery, rest: &NoisyQuery) {
    let ((low, high), (min, max)) = (rest.population.unwrap(), all.population.unwrap());
    assert!(min <= low && max >= high, "{all:?}");
    let nearer = (min..=low).flat_map(|min| (high..=max).map(move |max| (min, max)));
    for nearer in nearer.filter(|nearer| *nearer != (min, max)) {
        let own = NoisyQuery { population: Some(nearer), ..rest.clone() };
        assert!(!own.is_answered(), "{all:?}: {nearer:?} is enough");
    }
}

/// No shorter window is enough. It comes first: other numbers are of it.
fn no_shorter_window_is_enough(asked: &NoisyQuery, others: &[&Change], window: u64) {
    for shorter in longer_windows(asked).into_iter().filter(|own| *own < window) {
        let mut own = asked.clone();
        grow(&mut own, shorter);
        let own = others.iter().fold(own, |own, change| with(own, change));
        assert!(!own.is_answered(), "{asked:?} with {others:?}: {shorter} of {window} is enough");
    }
}

/// No edit changes more than needed, with the others as they are.
fn no_edit_is_larger_than_needed(asked: &NoisyQuery, found: &Suggestion) {
    let all = with_all(asked, found.changes.iter());
    for (at, change) in found.changes.iter().enumerate() {
        let rest = found.changes.iter().enumerate().filter(|(other, _)| *other != at);
        let rest = with_all(asked, rest.map(|(_, change)| change));
        match change {
            Change::Grant { .. } => no_narrower_choice_is_enough(&rest, change),
            Change::Query { clause: "events", .. } => {
                let (own, stay) = (all.events.unwrap(), all.is_met(all.events.unwrap(), true));
                let more = own + 1..rest.limit();
                assert!(!more.clone().any(|more| all.is_met(more, stay)), "{found:?}");
            }
            Change::Schema { .. } => no_wider_bounds_are_enough(&all, &rest),
            Change::Query { clause: "BETWEEN", .. } => no_nearer_population_is_enough(&all, &rest),
            Change::Query { clause: "WINDOW", .. } => {
                let others = found.changes.iter().enumerate().filter(|(other, _)| *other != at);
                let others: Vec<&Change> = others.map(|(_, change)| change).collect();
                no_shorter_window_is_enough(asked, &others, all.window);
            }
            Change::Query { clause: "the error", .. } => {
                // In two digits.
                let less = |own: f64| own - 10f64.powf(own.log10().floor() - 1.0) * 1.01;
                let error = all.error.map(less);
                let within = all.within.map(less);
                let nearer = NoisyQuery { error, within, ..rest };
                assert!(!nearer.is_answered(), "{found:?}: {nearer:?}");
            }
            _ => {}
        }
    }
}

/// What is suggested is the query with these changes, and it is nowhere wider than asked.
fn nothing_else_changes(asked: &NoisyQuery, found: &Suggestion) {
    let all = with_all(asked, found.changes.iter());
    let (to, changed) = (create(&found.query), create(&all.sql()));
    assert_eq!((&to.items, to.window), (&changed.items, changed.window), "{found:?}");
    let small = Small::of(&all.schema(), &all.policies(), all.owners.iter().sum(), |_| 1).0;
    assert_eq!(found.policies, small.policies);
    let planned = plan(&to, &small.catalog, &options()).unwrap();
    let noisy = planned.plans.iter().find_map(|plan| plan.privacy.as_ref());
    assert_eq!(found.cost.is_some(), noisy.is_some(), "{found:?}");
    let Some(noise) = noisy else { return };
    // With noise, what it says of its results stays.
    let (mut of_results, mut asked_of) = (to.settings.accuracy, changed.settings.accuracy);
    (of_results.at, asked_of.at) = Default::default();
    assert_eq!(of_results, asked_of, "{found:?}");
    let (min, max) = to.population.unwrap_or((1, CAPACITY.0));
    let (least, most) = all.population.unwrap_or((1, CAPACITY.0));
    assert!(min >= least && max <= most, "{found:?}");
    let epsilon = all.epsilon.or(all.most_epsilon()).unwrap();
    assert!(noise.micro_epsilon <= u64::from(epsilon) * 1_000_000, "{found:?}");
    assert!(noise.events <= all.limit());
    let cost = found.cost.as_ref().unwrap();
    let Some(life) = found.budget else {
        // Everybody who takes part would release exact totals.
        assert!(cost.starts_with("nothing is charged") && all.members(None).is_some(), "{found:?}");
        return;
    };
    assert!(life.day_micro_epsilon > 0 && life.day_micro_epsilon <= life.year_micro_epsilon);
    let day = Decimal::from_scaled(i64::try_from(life.day_micro_epsilon).unwrap(), 6);
    assert!(cost.contains(&format!("ε = {day} a day")), "{found:?}");
}

fn weight(change: &Change) -> u32 {
    match change {
        Change::Grant { .. } => 30,
        Change::Schema { .. } => 25,
        Change::Query { clause: "WINDOW" | "BETWEEN", .. } => 20,
        Change::Query { clause: "the error", .. } => 28,
        Change::Query { clause: "events" | "epsilon", .. } => 10,
        Change::Query { .. } => 50,
    }
}

fn compare(seeds: std::ops::Range<u64>) {
    let (mut kinds, mut answered, mut none) = (BTreeMap::new(), 0, 0);
    for seed in seeds {
        let mut draws = Draws(seed);
        let mut asked = NoisyQuery::draw(&mut draws);
        let owners = u32::try_from(draws.below(9) + 1).unwrap();
        let (small, counts) = Small::of(&asked.schema(), &asked.policies(), owners, |_| 1);
        asked.owners = counts;
        let context = format!("{seed}: {} of {owners}\n{asked:?}", asked.sql());
        let is_answered = is_planned(&asked);
        match (small.advice(&asked.sql()), by_force(&asked)) {
            (Advice::Nothing(_), _) => {
                assert!(is_answered, "{context}");
                answered += 1;
            }
            (Advice::Change { change, without_grants, .. }, least) => {
                let own = (change.changes.len(), change.changes.iter().map(weight).sum());
                let is_least = least.map_or(own.0 > 2, |least| own == least);
                assert!(is_least, "{context}\n{least:?}\n{:?}\n{}", change.changes, change.query);
                for change in &change.changes {
                    let Change::Query { clause, .. } = change else {
                        *kinds
                            .entry(if change.is_grant() { "grant" } else { "bounds" })
                            .or_insert(0) += 1;
                        continue;
                    };
                    *kinds.entry(clause).or_insert(0) += 1;
                }
                let all = [Some(change), without_grants];
                for change in all.iter().flatten() {
                    every_edit_is_needed(&asked, change);
                    no_edit_is_larger_than_needed(&asked, change);
                    nothing_else_changes(&asked, change);
                }
            }
            (Advice::Impossible { edits, .. }, least) => {
                assert!(least.is_none_or(|(size, _)| size > edits), "{context}\n{least:?}");
                none += 1;
            }
        }
    }
    // The worlds are of all kinds.
    println!("{answered} {none} {kinds:?}");
    for kind in ["events", "bounds", "WINDOW", "BETWEEN", "epsilon", "the error", "grant", "SELECT"]
    {
        assert!(kinds.contains_key(kind), "no {kind}: {kinds:?}");
    }
    assert!(answered > 0);
}

#[test]
fn suggestions_for_noise_are_the_smallest_of_all_changes() {
    compare(0..30);
}

#[test]
#[ignore = "the same over many more worlds; run by `make drills`"]
fn suggestions_for_noise_are_the_smallest_of_all_changes_in_many_worlds() {
    compare(30..2000);
}
