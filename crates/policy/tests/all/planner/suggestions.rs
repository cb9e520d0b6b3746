//! Suggestions are the smallest changes: compared with all changes, in a small world whose rules
//! are written here a second time.

use crate::planner::fixture::create;
use crate::planner::suggested_world::{Draws, Small};
use alpheus_policy::planner::suggest::{Advice, Change, Suggestion};
use alpheus_policy::policy::Policies;
use alpheus_policy::query::{Create, Word};
use alpheus_time::Span;

const SCHEMA: &str = "
name: Meters
tick: 10s
capacity: { population: 100, events: 10 }
streamAttributes:
  - { name: a, type: integer, min: 0, max: 9, aggregations: [sum] }
  - { name: b, type: integer, min: 0, max: 9, aggregations: [sum] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [2, 4], window: [10s, 30s], alpha: 0, dropout: 0 }
  - { name: lab, option: aggregate, clients: [3], window: 20s, alpha: 0, dropout: 0, to: lab }
  - { name: open, option: public, attributes: [b] }
  - { name: none, option: private }
";

/// What can be chosen: option, population, window, recipient, and how wide its kind is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    name: &'static str,
    clients: u32,
    window: u64,
    to: Option<&'static str>,
    only_b: bool,
}

const fn choice(name: &'static str, clients: u32, window: u64) -> Choice {
    Choice { name, clients, window, to: None, only_b: false }
}

const CHOICES: [Choice; 6] = [
    choice("crowd", 2, 10),
    choice("crowd", 2, 30),
    choice("crowd", 4, 10),
    choice("crowd", 4, 30),
    Choice { to: Some("lab"), ..choice("lab", 3, 20) },
    Choice { only_b: true, ..choice("open", 1, 10) },
];

impl Choice {
    fn yaml(self) -> String {
        match self.name {
            "crowd" => {
                format!("{{ option: crowd, clients: {}, window: {}s }}", self.clients, self.window)
            }
            name => format!("{{ option: {name} }}"),
        }
    }

    /// Whether the other allows no less and something else.
    fn is_narrower_than(self, other: Choice) -> bool {
        let public = |own: Choice| own.only_b;
        self != other
            && (public(other) || !public(self))
            && self.clients >= other.clients
            && self.window.is_multiple_of(other.window)
            && (other.to.is_none() || other.to == self.to)
    }
}

/// What the owners of the two parts of a file choose, for `a` and `b`, and how many there are.
#[derive(Clone, Debug)]
struct OwnerChoices {
    parts: [[Vec<Choice>; 2]; 2],
    owners: [u32; 2],
}

impl OwnerChoices {
    fn yaml(&self) -> String {
        let list = |own: &[Choice]| {
            let all: Vec<String> = own.iter().map(|choice| choice.yaml()).collect();
            format!("[{}]", all.join(", "))
        };
        let part = |[a, b]: &[Vec<Choice>; 2]| format!("{{ a: {}, b: {} }}", list(a), list(b));
        format!(
            "default: {}\nmix: [{{ share: 0.5, policy: {} }}]\n",
            part(&self.parts[0]),
            part(&self.parts[1])
        )
    }
}

/// A query in numbers.
#[derive(Clone, Debug, PartialEq)]
struct NumericQuery {
    attributes: Vec<usize>,
    window: u64,
    population: Option<(u32, u32)>,
    to: Option<&'static str>,
}

impl NumericQuery {
    fn sql(&self) -> String {
        let items: Vec<_> = self.attributes.iter().map(|at| ["SUM(a)", "SUM(b)"][*at]).collect();
        let between = self.population.map(|(min, max)| format!(" BETWEEN {min} AND {max}"));
        let to = self.to.map(|to| format!(" RELEASE TO {to}"));
        format!(
            "CREATE STREAM s AS SELECT {} WINDOW TUMBLING (SIZE {} SECONDS) FROM Meters{}{}",
            items.join(", "),
            self.window,
            between.unwrap_or_default(),
            to.unwrap_or_default()
        )
    }
}

/// The rules: an owner takes part if for each attribute a choice allows the query, with the least
/// population of those. There must be as many as the most demanding of them and the query require.
fn is_answered(chosen: &OwnerChoices, asked: &NumericQuery) -> bool {
    let (least, most) = asked.population.unwrap_or((1, 100));
    let mut terms = Vec::new();
    for (part, owners) in chosen.parts.iter().zip(chosen.owners) {
        let min = |at: &usize| {
            let allows = |own: &&Choice| {
                asked.window.is_multiple_of(own.window) && (own.to.is_none() || own.to == asked.to)
            };
            part[*at].iter().filter(allows).map(|own| own.clients).min()
        };
        let mins: Option<Vec<u32>> = asked.attributes.iter().map(min).collect();
        let needed = mins.and_then(|mins| mins.into_iter().max()).filter(|needed| *needed <= most);
        terms.extend(needed.map(|needed| (needed, owners)));
    }
    terms.iter().any(|(limit, _)| {
        let within = terms.iter().filter(|(needed, _)| needed <= limit);
        within.map(|(_, owners)| owners).sum::<u32>() >= least.max(*limit)
    })
}

type Act = Box<dyn Fn(&mut OwnerChoices, &mut NumericQuery)>;
/// An edit, as its weight and what it does. Edits of one slot exclude each other.
struct Edit {
    slot: usize,
    weight: u32,
    act: Act,
}

fn all_edits(chosen: &OwnerChoices, asked: &NumericQuery) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut add = |slot, weight, act: Act| {
        edits.push(Edit { slot, weight, act });
    };
    for part in 0..2 {
        for at in 0..2 {
            for choice in CHOICES {
                let known = chosen.parts[part][at].contains(&choice) || chosen.owners[part] == 0;
                if !known && (at == 1 || !choice.only_b) {
                    let act = move |all: &mut OwnerChoices, _: &mut NumericQuery| {
                        all.parts[part][at].push(choice);
                    };
                    add(2 * part + at, 3, Box::new(act));
                }
            }
        }
    }
    for window in (1..=6).map(|n| 10 * n).filter(|window| *window > asked.window) {
        add(4, 2, Box::new(move |_, asked| asked.window = window));
    }
    if let Some((least, most)) = asked.population {
        for (min, max) in
            (1..=least).flat_map(|min| (most..=most.max(4)).map(move |max| (min, max)))
        {
            add(5, 2, Box::new(move |_, asked| asked.population = Some((min, max))));
        }
    }
    add(6, 2, Box::new(|_, asked| asked.to = Some("lab")));
    if asked.attributes.len() > 1 {
        for position in 0..asked.attributes.len() {
            let act = move |_: &mut OwnerChoices, asked: &mut NumericQuery| {
                let kept = asked.attributes.iter().enumerate();
                asked.attributes =
                    kept.filter(|(at, _)| *at != position).map(|(_, own)| *own).collect();
            };
            add(7, 5, Box::new(act));
        }
    }
    edits
}

/// The least number of edits, and of those the least weight, by trying all.
fn by_force(chosen: &OwnerChoices, asked: &NumericQuery) -> Option<(usize, u32)> {
    let edits = all_edits(chosen, asked);
    let works = |picked: &[&Edit]| {
        let (mut chosen, mut asked) = (chosen.clone(), asked.clone());
        picked.iter().for_each(|edit| (edit.act)(&mut chosen, &mut asked));
        is_answered(&chosen, &asked)
    };
    let one = edits.iter().filter(|edit| works(&[edit])).map(|edit| edit.weight).min();
    if let Some(weight) = one {
        return Some((1, weight));
    }
    let mut best: Option<(usize, u32)> = None;
    for (at, first) in edits.iter().enumerate() {
        for (next, second) in edits.iter().enumerate().skip(at + 1) {
            if second.slot != first.slot && works(&[first, second]) {
                let found = (2, first.weight + second.weight);
                best = Some(best.map_or(found, |best| best.min(found)));
            }
            if best.is_some_and(|(edits, _)| edits == 2) {
                continue;
            }
            for third in edits.iter().skip(next + 1) {
                let differ = first.slot != second.slot
                    && second.slot != third.slot
                    && first.slot != third.slot;
                if differ && works(&[first, second, third]) {
                    let found = (3, first.weight + second.weight + third.weight);
                    best = Some(best.map_or(found, |best| best.min(found)));
                }
            }
        }
    }
    best
}

fn world(draws: &mut Draws) -> (OwnerChoices, NumericQuery) {
    let mut part = || {
        [0, 1].map(|at| {
            let mut own = Vec::new();
            for _ in 0..[0, 0, 1, 1, 2][usize::try_from(draws.below(5)).unwrap()] {
                let choice = CHOICES[usize::try_from(draws.below(6)).unwrap()];
                if (at == 1 || !choice.only_b) && !own.contains(&choice) {
                    own.push(choice);
                }
            }
            own
        })
    };
    let parts = [part(), part()];
    let attributes =
        [vec![0], vec![1], vec![0, 1]][usize::try_from(draws.below(3)).unwrap()].clone();
    let min = u32::try_from(draws.below(6) + 1).unwrap();
    let max = min + u32::try_from(draws.below(5)).unwrap();
    let asked = NumericQuery {
        attributes,
        window: 10 * (draws.below(3) + 1),
        population: (draws.below(2) > 0).then_some((min, max)),
        to: (draws.below(4) == 0).then_some("lab"),
    };
    (OwnerChoices { parts, owners: [0, 0] }, asked)
}

fn weight(change: &Change) -> u32 {
    match change {
        Change::Grant { .. } => 3,
        Change::Query { clause: "SELECT", .. } => 5,
        Change::Query { .. } => 2,
        Change::Schema { .. } => panic!("no error is asked for"),
    }
}

/// Whether the planner answers with another change in place of one.
fn is_enough(
    (small, asked, found): (&Small, &Create, &Suggestion),
    replaced: usize,
    instead: impl FnOnce(&mut Policies, &mut Create),
) -> bool {
    let (mut policies, mut query) = (small.policies.clone(), asked.clone());
    let to = create(&found.query);
    for (at, change) in found.changes.iter().enumerate() {
        if at != replaced {
            apply(small, change, &to, &mut policies, &mut query);
        }
    }
    instead(&mut policies, &mut query);
    small.is_answered(&policies, &query)
}

/// Without any one of its edits, the planner refuses.
fn every_edit_is_needed(small: &Small, asked: &Create, found: &Suggestion) {
    for left_out in 0..found.changes.len() {
        let fewer = is_enough((small, asked, found), left_out, |_, _| ());
        assert!(!fewer, "{found:?} without {left_out}");
    }
}

fn apply(small: &Small, change: &Change, to: &Create, policies: &mut Policies, query: &mut Create) {
    match change {
        Change::Grant { section, attribute, option, clients, window, .. } => {
            let position = small.schema.position(attribute).unwrap();
            let choices = small.schema.choices(position);
            let own = choices.into_iter().find(|own| {
                own.name == *option && own.min_population == *clients && own.window == *window
            });
            *policies = policies.with_choice(*section, position, own.unwrap());
        }
        Change::Query { clause: "WINDOW", .. } => query.window = to.window,
        Change::Query { clause: "BETWEEN", .. } => query.population = to.population,
        Change::Query { clause: "RELEASE TO", after, .. } => {
            query.release_to = after.as_deref().map(Word::new);
        }
        Change::Query { clause: "SELECT", before, .. } => {
            query.items.retain(|item| Some(item.to_string()) != *before);
        }
        other => panic!("{other:?}"),
    }
}

/// No choice allows more than needed.
fn no_choice_is_wider_than_needed(small: &Small, asked: &Create, found: &Suggestion) {
    let to = create(&found.query);
    for (wide, change) in found.changes.iter().enumerate() {
        let Change::Grant { section, attribute, option, clients, window, .. } = change else {
            continue;
        };
        let seconds = window.0 / 1_000_000;
        let own = CHOICES
            .into_iter()
            .find(|own| own.name == option && own.clients == *clients && own.window == seconds);
        let position = small.schema.position(attribute).unwrap();
        let offered = small.schema.choices(position);
        for narrow in CHOICES.into_iter().filter(|narrow| narrow.is_narrower_than(own.unwrap())) {
            let narrower = Change::Grant {
                section: *section,
                streams: 0,
                attribute: attribute.clone(),
                option: narrow.name.to_owned(),
                kind: alpheus_policy::schema::OptionKind::Aggregate,
                clients: narrow.clients,
                window: Span::seconds(narrow.window),
            };
            if offered.iter().any(|own| own.name == narrow.name) {
                let enough = is_enough((small, asked, found), wide, |policies, query| {
                    apply(small, &narrower, &to, policies, query);
                });
                assert!(!enough, "{found:?}: {narrow:?} is enough");
            }
        }
    }
}

/// No window is longer than needed, and no bounds of the population are farther from those asked.
/// Returns how many of them are compared with something.
fn no_clause_is_wider_than_needed(small: &Small, asked: &Create, found: &Suggestion) -> [usize; 3] {
    let (to, mut compared) = (create(&found.query), [0; 3]);
    for (wide, change) in found.changes.iter().enumerate() {
        let enough = |instead: &dyn Fn(&mut Create)| {
            is_enough((small, asked, found), wide, |_, query| instead(query))
        };
        match change {
            Change::Query { clause: "WINDOW", .. } => {
                // The windows of options are multiples of 10 seconds.
                let all = (1..).map(|n| Span::seconds(10 * n)).take_while(|own| *own < to.window);
                for shorter in all.filter(|own| *own > asked.window) {
                    let enough = enough(&|query| query.window = shorter);
                    assert!(!enough, "{found:?}: {shorter} is enough");
                    compared[0] += 1;
                }
            }
            Change::Query { clause: "BETWEEN", .. } => {
                let ((least, most), (min, max)) =
                    (asked.population.unwrap(), to.population.unwrap());
                assert!(min <= least && max >= most, "{found:?}");
                let all = (min..=least).flat_map(|min| (most..=max).map(move |max| (min, max)));
                for nearer in all.filter(|nearer| *nearer != (min, max)) {
                    let enough = enough(&|query| query.population = Some(nearer));
                    assert!(!enough, "{found:?}: {nearer:?} is enough");
                }
                compared[1] += usize::from(min < least);
                compared[2] += usize::from(max > most);
            }
            _ => {}
        }
    }
    compared
}

fn nothing_else_changes(small: &Small, asked: &Create, found: &Suggestion) {
    let to = create(&found.query);
    let changes = |clause: &str| {
        found
            .changes
            .iter()
            .any(|change| matches!(change, Change::Query { clause: own, .. } if *own == clause))
    };
    assert!(changes("WINDOW") || to.window == asked.window);
    assert!(changes("BETWEEN") || to.population == asked.population);
    assert!(changes("RELEASE TO") || to.release_to == asked.release_to);
    assert!(changes("SELECT") || to.items == asked.items);
    let (mut policies, mut query) = (small.policies.clone(), asked.clone());
    found.changes.iter().for_each(|change| apply(small, change, &to, &mut policies, &mut query));
    assert_eq!(policies, found.policies);
    let written = found.policies.to_yaml(&small.schema);
    assert_eq!(Policies::from_yaml(&written, &small.schema).unwrap(), found.policies, "{written}");
    assert!(small.is_answered(&found.policies, &to));
}

fn compare(seeds: std::ops::Range<u64>) {
    let (mut sizes, mut answered, mut compared) = ([0; 5], 0, [0; 3]);
    for seed in seeds {
        let mut draws = Draws(seed);
        let (mut chosen, asked) = world(&mut draws);
        let owners = u32::try_from(draws.below(7) + 1).unwrap();
        let (small, counts) = Small::of(SCHEMA, &chosen.yaml(), owners, |n| n);
        chosen.owners = counts;
        let create = create(&asked.sql());
        let context = format!("{seed}: {} over {owners} owners\n{}", asked.sql(), chosen.yaml());
        // The two writings of the rules agree.
        let is_answered = is_answered(&chosen, &asked);
        assert_eq!(small.is_answered(&small.policies, &create), is_answered, "{context}");
        match (small.advice(&asked.sql()), by_force(&chosen, &asked)) {
            (Advice::Nothing(_), _) => {
                assert!(is_answered, "{context}");
                answered += 1;
            }
            (Advice::Change { change, without_grants, .. }, Some(least)) => {
                let weights = change.changes.iter().map(weight).sum();
                assert_eq!((change.changes.len(), weights), least, "{context}\n{change:?}");
                no_choice_is_wider_than_needed(&small, &create, &change);
                nothing_else_changes(&small, &create, &change);
                if let Some(other) = &without_grants {
                    assert!(!other.changes.iter().any(Change::is_grant), "{context}\n{other:?}");
                }
                for found in [Some(change), without_grants].iter().flatten() {
                    every_edit_is_needed(&small, &create, found);
                    let own = no_clause_is_wider_than_needed(&small, &create, found);
                    compared.iter_mut().zip(own).for_each(|(all, own)| *all += own);
                }
                sizes[least.0] += 1;
            }
            (Advice::Impossible { edits, .. }, least) => {
                assert!(least.is_none_or(|(size, _)| size > edits), "{context}\n{least:?}");
                sizes[0] += 1;
            }
            (other, None) => assert!(
                matches!(&other, Advice::Change { change, .. } if change.changes.len() > 3),
                "{context}\n{other:?}"
            ),
        }
    }
    // The worlds are of all kinds.
    assert!(answered > 0 && sizes[1] > 0 && sizes[2] > 0, "{answered} {sizes:?}");
    assert!(compared.iter().all(|own| *own > 0), "{compared:?}");
    println!("{answered} {sizes:?} {compared:?}");
}

#[test]
fn suggestions_are_the_smallest_of_all_changes() {
    compare(0..200);
}

#[test]
#[ignore = "the same over ten times as many worlds; run by `make drills`"]
fn suggestions_are_the_smallest_of_all_changes_in_many_worlds() {
    compare(1000..3000);
}

/// Owners who choose nothing.
fn of_nobody(owners: u32) -> Small {
    let chosen = OwnerChoices { parts: Default::default(), owners: [0, 0] };
    Small::of(SCHEMA, &chosen.yaml(), owners, |n| n).0
}

#[test]
fn a_change_is_said_in_sentences() {
    let small = of_nobody(9);
    let asked = "CREATE STREAM s AS SELECT SUM(a) WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters BETWEEN 2 AND 9";
    let Advice::Change { change, refusal, .. } = small.advice(asked) else { panic!() };
    assert!(refusal.to_string().contains("keep `a` private"), "{refusal}");
    let [only] = change.changes.as_slice() else { panic!("{change:?}") };
    let text = only.to_string();
    assert!(text.contains("also choose `crowd` for `a`: totals of at least "), "{text}");
    assert!(text.contains("in windows that are multiples of 10 SECONDS"), "{text}");
    assert!(!change.query_changed && change.query == create(asked).to_string());
}

#[test]
fn what_no_change_makes_possible_is_refused() {
    let small = of_nobody(1);
    let asked = "CREATE STREAM s AS SELECT SUM(a) WINDOW TUMBLING (SIZE 10 SECONDS) FROM Meters";
    let Advice::Impossible { refusal, edits } = small.advice(asked) else { panic!() };
    assert!(edits >= 3 && refusal.nearest.is_none(), "{edits} {refusal}");
}
