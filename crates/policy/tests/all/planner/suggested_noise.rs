//! Suggestions for queries with noise are the smallest changes: compared with all changes, in a
//! small world whose rules are written here a second time, but for how wide noise of a scale is.

mod checks;

use crate::planner::suggested_world::Draws;
use alpheus_policy::budget::{NoiseShares, RowNoise, row_spread};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

const SCHEMA: &str = "
name: Meters
tick: 10s
capacity: { population: 9, CAPACITY }
streamAttributes:
  - { name: a, type: integer, min: 0, max: MOST_A, aggregations: [sum] }
  - { name: b, type: integer, min: 0, max: MOST_B, aggregations: [sum] }
streamPolicyOptions:
  - { name: crowd, option: aggregate, clients: [4], window: 30s, alpha: 0, dropout: 0 }
  - { name: loud, option: dp-aggregate, clients: [2, 5], window: 10s, alpha: 0, dropout: 0, budget: { perWindow: 4, total: 40, unit: UNIT } }
  - { name: quiet, option: dp-aggregate, clients: [3], window: 20s, alpha: 0, dropout: 0, budget: { perWindow: 1, total: 10, unit: UNIT } }
  - { name: none, option: private }
";
const MAX_VALUES: [i64; 2] = [12, 5];
/// What owners can be at most, and events of one in a window.
const CAPACITY: (u32, u64) = (9, 6);

/// What can be chosen, and of noise the ε of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    name: &'static str,
    clients: u32,
    window: u64,
    epsilon: Option<u32>,
}

const CHOICES: [Choice; 4] = [
    Choice { name: "crowd", clients: 4, window: 30, epsilon: None },
    Choice { name: "loud", clients: 2, window: 10, epsilon: Some(4) },
    Choice { name: "loud", clients: 5, window: 10, epsilon: Some(4) },
    Choice { name: "quiet", clients: 3, window: 20, epsilon: Some(1) },
];

impl Choice {
    fn yaml(self) -> String {
        match self.name {
            "loud" => format!("{{ option: loud, clients: {} }}", self.clients),
            name => format!("{{ option: {name} }}"),
        }
    }

    /// Whether the other allows no less and something else.
    fn is_narrower_than(self, other: Choice) -> bool {
        let noise = |own: Choice| own.epsilon.map_or(u32::MAX, |epsilon| epsilon);
        self != other
            && noise(self) <= noise(other)
            && self.clients >= other.clients
            && self.window.is_multiple_of(other.window)
    }
}

/// A query in numbers, over what owners choose and under what the schema bounds.
#[derive(Clone, Debug)]
struct NoisyQuery {
    /// What the two parts of the file choose for `a` and `b`, and how many owners are in each.
    parts: [[Vec<Choice>; 2]; 2],
    owners: [u32; 2],
    /// Whether noise hides single events, and not all that a person sends in a window.
    events_alone: bool,
    /// Whether the schema states a rate: two events in ten seconds.
    rate: bool,
    attributes: Vec<usize>,
    bounds: [i64; 2],
    window: u64,
    population: Option<(u32, u32)>,
    /// As a percentage of the result, and in units.
    error: Option<f64>,
    within: Option<f64>,
    typical: Option<u32>,
    values: Option<u64>,
    events: Option<u64>,
    epsilon: Option<u32>,
}

impl NoisyQuery {
    fn draw(draws: &mut Draws) -> NoisyQuery {
        let mut part = || {
            [0, 1].map(|_| {
                let mut own = Vec::new();
                for _ in 0..[0, 1, 1, 2][draws.at_most(3)] {
                    let choice = CHOICES[draws.at_most(3)];
                    if !own.contains(&choice) {
                        own.push(choice);
                    }
                }
                own
            })
        };
        let parts = [part(), part()];
        let alone = draws.at_most(2) < 2;
        let attributes = if alone { vec![draws.at_most(1)] } else { vec![0, 1] };
        let min = 1 + u32::try_from(draws.at_most(3)).unwrap();
        let max = min + u32::try_from(draws.at_most(4)).unwrap();
        let is_share = draws.at_most(1) > 0;
        let typical = alone && (is_share || draws.at_most(1) > 0) && draws.at_most(3) > 0;
        NoisyQuery {
            parts,
            owners: [0, 0],
            events_alone: draws.at_most(1) > 0,
            rate: draws.at_most(2) == 0,
            bounds: MAX_VALUES,
            window: [10, 20][draws.at_most(1)],
            population: (draws.at_most(1) > 0).then_some((min, max)),
            error: is_share.then(|| [2.0, 5.0, 10.0, 20.0, 40.0][draws.at_most(4)]),
            within: (!is_share).then(|| [3.0, 8.0, 20.0, 60.0, 150.0][draws.at_most(4)]),
            typical: typical.then(|| if attributes == [0] { 5 } else { 2 }),
            values: (draws.at_most(1) > 0).then(|| 1 + draws.at_most(3) as u64),
            events: (draws.at_most(2) == 0).then(|| [2, 4, 6, 8][draws.at_most(3)]),
            epsilon: (draws.at_most(4) == 0).then(|| [1, 3, 9][draws.at_most(2)]),
            attributes,
        }
    }

    fn schema(&self) -> String {
        let unit = if self.events_alone { "event" } else { "person-per-window" };
        // Six events in thirty seconds.
        let rate = "eventsPerSecond: 0.2, window: 30s";
        let capacity = if self.rate { rate } else { "events: 6" };
        let [a, b] = self.bounds.map(|most| most.to_string());
        let schema = SCHEMA.replace("MOST_A", &a).replace("MOST_B", &b);
        schema.replace("UNIT", unit).replace("CAPACITY", capacity)
    }

    fn policies(&self) -> String {
        let list = |own: &[Choice]| {
            let all: Vec<String> = own.iter().map(|choice| choice.yaml()).collect();
            format!("[{}]", all.join(", "))
        };
        let part = |[a, b]: &[Vec<Choice>; 2]| format!("{{ a: {}, b: {} }}", list(a), list(b));
        let [usual, other] = [0, 1].map(|at| part(&self.parts[at]));
        format!("default: {usual}\nmix: [{{ share: 0.5, policy: {other} }}]\n")
    }

    fn sql(&self) -> String {
        let items: Vec<_> = self.attributes.iter().map(|at| ["SUM(a)", "SUM(b)"][*at]).collect();
        let between = self.population.map(|(min, max)| format!(" BETWEEN {min} AND {max}"));
        let set = |name: &str, own: Option<String>| own.map(|own| format!("{name} = {own}"));
        let settings = [
            set("epsilon", self.epsilon.map(|own| own.to_string())),
            set("events", self.events.map(|own| own.to_string())),
            set("error", self.error.map(|own| format!("{own} %"))),
            set("typical", self.typical.map(|own| own.to_string())),
            set("values", self.values.map(|own| own.to_string())),
        ];
        let settings: Vec<String> = settings.into_iter().flatten().collect();
        let with = (!settings.is_empty()).then(|| format!(" WITH ({})", settings.join(", ")));
        let within = self.within.map(|own| format!(" WITHIN {own} OF 95 %"));
        format!(
            "CREATE STREAM s AS SELECT {} WINDOW TUMBLING (SIZE {} SECONDS) FROM Meters{}{}{}",
            items.join(", "),
            self.window,
            between.unwrap_or_default(),
            with.unwrap_or_default(),
            within.unwrap_or_default()
        )
    }

    /// The noise that all owners' choices allow, of those who require some.
    fn most_epsilon(&self) -> Option<u32> {
        let parts = self.parts.iter().zip(self.owners).filter(|(_, owners)| *owners > 0);
        let chosen = parts.flat_map(|(part, _)| self.attributes.iter().flat_map(|at| &part[*at]));
        let least = chosen.filter_map(|choice| choice.epsilon).min();
        least.map(|epsilon| epsilon * u32::try_from(self.attributes.len()).unwrap())
    }

    /// The smallest population of a window and how many take part, with so much noise: an owner does
    /// if for each attribute a choice allows the query, with the least population of those. The
    /// strictest are left out until there are as many as they and the query require.
    fn members(&self, epsilon: Option<u32>) -> Option<(u32, u32)> {
        let (least, most) = self.population.unwrap_or((1, CAPACITY.0));
        let share = epsilon.map(|all| f64::from(all) / self.attributes.len() as f64);
        let allows = |own: &&Choice| {
            let noise = own.epsilon.is_none_or(|own| share.is_some_and(|all| all <= own.into()));
            noise && self.window.is_multiple_of(own.window)
        };
        let mut needs: Vec<u32> = Vec::new();
        for (part, owners) in self.parts.iter().zip(self.owners) {
            let min = |at: &usize| part[*at].iter().filter(allows).map(|own| own.clients).min();
            let mins: Option<Vec<u32>> = self.attributes.iter().map(min).collect();
            let needed = mins.and_then(|mins| mins.into_iter().max());
            needs.extend(needed.into_iter().flat_map(|own| vec![own; owners as usize]));
        }
        needs.retain(|own| *own <= most);
        needs.sort_unstable();
        while let Some(strictest) = needs.last().copied() {
            let min = strictest.max(least);
            let many = u32::try_from(needs.len()).unwrap();
            match many >= min {
                true if many > most => needs.truncate(most as usize),
                true => return Some((min, many)),
                false if least >= strictest => return None,
                false => needs.retain(|own| *own < strictest),
            }
        }
        None
    }

    /// The limit on events.
    fn limit(&self) -> u64 {
        let usual = if self.rate { (self.window / 5).min(CAPACITY.1) } else { CAPACITY.1 };
        self.events.unwrap_or(usual)
    }

    /// The fewest events that a limit leaves.
    fn fewest(&self) -> u64 {
        let usual = if self.rate { (self.window / 5).min(CAPACITY.1) } else { 1 };
        self.values.unwrap_or(usual)
    }

    /// Whether results have noise, are allowed and are as exact as asked; windows may need more owners
    /// than the query and its members require, unless they `stay`.
    fn is_met(&self, events: u64, stay: bool) -> bool {
        let Some(epsilon) = self.epsilon.or(self.most_epsilon()) else { return false };
        let Some((min, counted)) = self.members(Some(epsilon)) else { return false };
        if events == 0 || events > CAPACITY.1 {
            return false;
        }
        let (_, most) = self.population.unwrap_or((1, CAPACITY.0));
        let raised = if stay { min } else { min.max((counted - counted / 10).min(most)) };
        let is_noisy = self.parts.iter().zip(self.owners).any(|(part, owners)| {
            let mut asked = self.attributes.iter().flat_map(|at| &part[*at]);
            owners > 0 && asked.any(|own| own.epsilon.is_some())
        });
        let hidden = if self.events_alone && is_noisy { 1 } else { events };
        self.attributes.iter().all(|at| {
            let moved = u64::try_from(self.bounds[*at]).unwrap() * hidden;
            let scale = moved * self.attributes.len() as u64;
            let margin = margin(epsilon, scale);
            let mean = self.typical.map_or(self.bounds[*at] as f64 / 2.0, f64::from);
            let values = self.values.unwrap_or(1) as f64;
            let whole = f64::from(raised) * values * mean;
            self.error.is_none_or(|own| margin <= own / 100.0 * whole)
                && self.within.is_none_or(|own| margin <= own)
        })
    }

    /// Whether the planner is to answer it.
    fn is_answered(&self) -> bool {
        if self.events == Some(0) {
            return false;
        }
        let exact = self.epsilon.is_none() && self.events.is_none();
        if exact && self.members(None).is_some() {
            return true;
        }
        // It may limit events to those that owners have.
        let auto = self.values.filter(|_| self.events.is_none());
        let fewest = auto.map_or(self.limit(), |values| values.min(self.limit()));
        self.is_met(self.limit(), false) || self.is_met(fewest, false)
    }
}

/// How far from the truth noise is in 95 of 100 windows at most. The same are asked for often.
fn margin(epsilon: u32, scale: u64) -> f64 {
    thread_local! {
        static KNOWN: RefCell<BTreeMap<(u32, u64), f64>> = RefCell::default();
    }
    let of = || {
        let noise = RowNoise::Laplace { above: epsilon.into(), below: scale.into() };
        let one = NoiseShares { honest: 1, members: 1, windows: 1, lost: 0 };
        row_spread(&noise, one).within
    };
    KNOWN.with_borrow_mut(|known| *known.entry((epsilon, scale)).or_insert_with(of))
}

type Act = Box<dyn Fn(&mut NoisyQuery)>;
/// An edit, as its weight and what it does. Edits of one slot exclude each other.
struct Edit {
    slot: usize,
    weight: u32,
    act: Act,
}

/// Whether the bounds of an attribute are known to be too wide: it is the only one, and the query says
/// what to expect of it.
fn has_bounds(asked: &NoisyQuery, at: usize, most: i64) -> bool {
    asked.attributes == [at]
        && (asked.error.is_none() || (asked.typical.is_some() && asked.values.is_some()))
        && asked.typical.is_none_or(|own| most > own.into())
}

/// The query in a window of another length, in which owners have more values if there is room.
fn grow(asked: &mut NoisyQuery, window: u64) {
    let grown = |own: u64| (own * window / asked.window).min(own.max(CAPACITY.1)).max(1);
    (asked.events, asked.values) = (asked.events.map(grown), asked.values.map(grown));
    asked.window = window;
}

/// The changes of a query's noise, in these windows.
fn of_noise(asked: &NoisyQuery, windows: impl Iterator<Item = u64>) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut add = |slot, weight, act: Act| edits.push(Edit { slot, weight, act });
    for window in windows.filter(|own| *own > asked.window) {
        add(4, 20, Box::new(move |own| grow(own, window)));
    }
    if let Some((least, most)) = asked.population {
        for (min, max) in (1..=least).flat_map(|min| (most..=CAPACITY.0).map(move |max| (min, max)))
        {
            add(5, 20, Box::new(move |own| own.population = Some((min, max))));
        }
    }
    for events in 1..=CAPACITY.1 {
        let act = move |own: &mut NoisyQuery| {
            let is_fewer = events >= own.fewest() && events < own.limit();
            own.events = if is_fewer { Some(events) } else { Some(0) };
        };
        add(6, 10, Box::new(act));
    }
    for (at, most) in
        [0, 1].into_iter().flat_map(|at| (1..MAX_VALUES[at]).map(move |own| (at, own)))
    {
        let act = move |own: &mut NoisyQuery| match has_bounds(own, at, most) {
            true => own.bounds[at] = most,
            false => own.events = Some(0),
        };
        add(8, 25, Box::new(act));
    }
    if asked.epsilon.is_some() {
        add(9, 10, Box::new(|own| own.epsilon = None));
    }
    edits
}

fn all_edits(asked: &NoisyQuery) -> Vec<Edit> {
    // The next multiples of what options allow.
    let mut edits = of_noise(asked, [20, 30, 60].into_iter());
    let mut add = |slot, weight, act: Act| edits.push(Edit { slot, weight, act });
    for (part, at) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for choice in CHOICES {
            if !asked.parts[part][at].contains(&choice) && asked.owners[part] > 0 {
                let act = move |own: &mut NoisyQuery| own.parts[part][at].push(choice);
                add(2 * part + at, 30, Box::new(act));
            }
        }
    }
    for position in (0..asked.attributes.len()).filter(|_| asked.attributes.len() > 1) {
        let act = move |own: &mut NoisyQuery| own.attributes = vec![own.attributes[1 - position]];
        add(7, 50, Box::new(act));
    }
    if asked.epsilon.is_some() || asked.events.is_some() {
        add(9, 50, Box::new(|own| (own.epsilon, own.events) = (None, None)));
    }
    // A share of 100 % or more says nothing. Bounds are for an error that is asked for, so one slot.
    add(
        8,
        28,
        Box::new(|own| {
            (own.error, own.within) = (own.error.map(|_| 99.0), own.within.map(|_| 1e9));
        }),
    );
    edits
}

/// The least weight of so many of these edits that are enough together.
fn least(asked: &NoisyQuery, edits: &[Edit], count: usize, sofar: &[usize]) -> Option<u32> {
    if count == 0 {
        return asked.is_answered().then_some(0);
    }
    let mut best: Option<u32> = None;
    for edit in edits.iter().filter(|edit| sofar.iter().all(|slot| *slot < edit.slot)) {
        let mut changed = asked.clone();
        (edit.act)(&mut changed);
        let rest = least(&changed, edits, count - 1, &[sofar, &[edit.slot]].concat());
        let found = rest.map(|rest| rest + edit.weight);
        best = [best, found].into_iter().flatten().min();
    }
    best
}

/// The next windows that options allow, and up to 31 times those.
fn longer_windows(asked: &NoisyQuery) -> BTreeSet<u64> {
    let next = [asked.window, 20, 30, 60].into_iter().filter(|next| *next >= asked.window);
    let all = next.flat_map(|next| (1..=31).map(move |n| n * next));
    all.filter(|own| *own > asked.window).collect()
}

/// The least number of edits, and of those the least weight, by trying all: first of the noise.
fn by_force(asked: &NoisyQuery) -> Option<(usize, u32)> {
    let of = |edits: &[Edit], most: usize| {
        (1..=most).find_map(|count| Some((count, least(asked, edits, count, &[])?)))
    };
    of(&of_noise(asked, longer_windows(asked).into_iter()), 3).or_else(|| of(&all_edits(asked), 2))
}
