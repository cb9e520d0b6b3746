//! What would make the error that a query asks for possible: fewer events of a stream, narrower
//! bounds of its attribute, or more owners.

use super::{SelectItem, Solver, Statistic, Trial};
use crate::budget::farthest;
use crate::catalog::{Catalog, CatalogSchema};
use crate::decimal::format_scaled;
use crate::plan::Plan;
use crate::planner::finding::Fix;
use crate::query::{Create, Decimal, Percent};
use crate::schema::AttributeKind;
use std::fmt;

/// What would make an error possible, as far as that is known: one of these is enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedy {
    /// The smallest error that is possible, as a share and as a margin, as far as they are asked for.
    pub larger: Option<(Option<Decimal>, Option<Decimal>)>,
    /// Whether the query does not say how many values a stream has, so that one is assumed.
    pub is_assumed: bool,
    /// A limit on the events of a stream in a window.
    pub events: Option<u64>,
    /// The largest population, if the query's own is too small.
    pub owners: Option<(u32, u32)>,
    /// Narrower bounds of an attribute in the schema.
    pub bounds: Option<Bounds>,
    /// If neither is enough alone: a limit on events and narrower bounds.
    pub both: Option<(u64, Bounds)>,
    /// The fewest events and the most owners, which are nearer if nothing is enough.
    nearer: (Option<u64>, Option<(u32, u32)>),
}

/// Bounds of an attribute of numbers, in units of its scale. They belong to the schema, so a query
/// cannot choose them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The attribute's position.
    pub attribute: u16,
    /// Its name.
    pub name: String,
    /// Minimum and maximum in the schema, as decimals.
    pub before: [String; 2],
    /// Those that it would have.
    pub after: [String; 2],
    range: (i64, i64),
}

impl Bounds {
    /// The widest bounds within the schema's that no number beyond ±`most` is in.
    fn within(schema: &CatalogSchema, attribute: u16, most: i64) -> Option<Bounds> {
        let own = schema.schema.attributes.get(usize::from(attribute))?;
        let AttributeKind::Number { scale, min, max } = own.kind else { return None };
        let range = (min.max(-most), max.min(most));
        let words = |(min, max): (i64, i64)| [min, max].map(|own| format_scaled(own, scale));
        let (before, after) = (words((min, max)), words(range));
        let is_narrower = range.0 < range.1 && before != after;
        is_narrower.then(|| Bounds { attribute, name: own.name.clone(), before, after, range })
    }

    /// The schema's streams under a schema with these bounds, with the same policies.
    pub(in crate::planner) fn applied(
        &self,
        catalog: &Catalog,
        known: &CatalogSchema,
    ) -> Option<Catalog> {
        let mut schema = known.schema.clone();
        let own = schema.attributes.get_mut(usize::from(self.attribute))?;
        let AttributeKind::Number { min, max, .. } = &mut own.kind else { return None };
        (*min, *max) = self.range;
        let mut changed = Catalog::default();
        let id = changed.add_schema(schema).ok()?;
        for stream in catalog.streams().filter(|stream| stream.schema == known.id) {
            let mut stream = stream.clone();
            stream.schema = id;
            changed.put_stream(stream);
        }
        Some(changed)
    }
}

impl Remedy {
    /// Changes, each of which is enough, or leads on with another.
    pub(in crate::planner) fn fixes(&self) -> Vec<Fix> {
        let both = self.both.as_ref().map(|(events, _)| *events);
        let events = self.events.or(both).or(self.nearer.0);
        let owners = self.owners.or(self.nearer.1).map(|(min, max)| Fix::Population(min, max));
        let bounds = self.bounds.clone().map(Fix::Bounds);
        events.map(Fix::Events).into_iter().chain(owners).chain(bounds).collect()
    }
}

impl Solver<'_> {
    /// Each is the least that is enough for windows as small as the query asks for, or else for the
    /// largest that open.
    pub(super) fn remedy(&self, first: &Create, best: &Trial) -> Remedy {
        let with_events = |create: &Create, events| {
            let mut create = create.clone();
            create.settings.events = events;
            create
        };
        let reduced = with_events(first, best.create.settings.events);
        let sizes = [&reduced, &best.create];
        let events = sizes.iter().find_map(|create| self.few_enough_events(create));
        let is_assumed = self.is_assumed(best);
        let known = best.planned.plans.first().filter(|_| !is_assumed);
        let bounds = |create: &Create| self.wide_enough_bounds(create, known?);
        let alone = sizes.iter().find_map(|create| bounds(create));
        let both = || {
            sizes.iter().find_map(|create| {
                let bounds = bounds(&with_events(create, Some(self.fewest_events(create))))?;
                let events = self.under(&bounds, |solver| solver.few_enough_events(create))??;
                Some((events, bounds))
            })
        };
        let is_enough = events.is_some() || alone.is_some();
        let both = if is_enough { None } else { both() };
        let fewest = Some(self.fewest_events(first)).filter(|own| *own < self.limit(first));
        let all = best.planned.fitting.min(self.capacity());
        let most = first.population.filter(|(_, max)| *max < all).map(|(min, _)| (min, all));
        let owners = most.and_then(|most| self.enough_owners(first, most));
        let (bounds, nearer, larger) = (alone, (fewest, most), None);
        Remedy { larger, is_assumed, events, owners, bounds, both, nearer }
    }

    /// Whether the margin depends on how many values there are, and the query does not say that.
    fn is_assumed(&self, best: &Trial) -> bool {
        let of_worst = |item: &&SelectItem| item.alias == best.worst.column;
        let items = best.planned.plans.first().map(|plan| &plan.select.items);
        let worst = items.and_then(|items| items.iter().find(of_worst));
        let is_plain = |item: &SelectItem| {
            matches!(item.statistic, Statistic::Sum { .. } | Statistic::Count { .. })
        };
        let accuracy = &self.asked.settings.accuracy;
        accuracy.values.is_none() && (accuracy.error.is_some() || !worst.is_some_and(is_plain))
    }

    fn is_enough(&self, create: Create) -> bool {
        self.tried(create).is_some_and(|tried| tried.worst.is_met())
    }

    /// As many events as a stream is expected to have: as the query says, or else at the schema's
    /// rate.
    fn fewest_events(&self, create: &Create) -> u64 {
        let capacity = &self.schema.schema.capacity;
        let at_rate = if capacity.micro_rate > 0 { capacity.events_in(create.window) } else { 1 };
        self.asked.settings.accuracy.values.unwrap_or(at_rate)
    }

    /// The limit on a stream's events.
    fn limit(&self, create: &Create) -> u64 {
        let at_rate = || self.schema.schema.capacity.events_in(create.window);
        create.settings.events.unwrap_or_else(at_rate)
    }

    /// The largest limit on a stream's events with which the demands are met, of as many as it is
    /// expected to have.
    pub(super) fn few_enough_events(&self, create: &Create) -> Option<u64> {
        let is_enough = |events: u64| {
            let mut create = create.clone();
            create.settings.events = Some(events);
            self.is_enough(create)
        };
        let mut found = self.fewest_events(create);
        let mut high = self.limit(create).checked_sub(1).filter(|high| *high >= found)?;
        if !is_enough(found) {
            return None;
        }
        while found < high {
            let middle = high - (high - found) / 2;
            if is_enough(middle) { found = middle } else { high = middle - 1 }
        }
        Some(found)
    }

    /// The widest bounds of the query's only attribute, of two digits around the mean that it
    /// expects, with which the demands are met.
    fn wide_enough_bounds(&self, create: &Create, plan: &Plan) -> Option<Bounds> {
        let [attribute] = plan.attributes.as_slice() else { return None };
        let typical = self.typical(plan).ok()?.map_or(0.0, f64::abs);
        if typical == 0.0 && self.asked.settings.accuracy.error.is_some() {
            // A share of the middle of bounds that become narrower.
            return None;
        }
        let bounds = |most: i64| Bounds::within(self.schema, *attribute, most);
        let far = farthest(&self.schema.schema, *attribute);
        let all = (0..).map_while(two_digits).take_while(|most| (*most as f64) < far);
        let all = all.filter(|most| *most as f64 > typical);
        let all: Vec<Bounds> = all.filter_map(bounds).collect();
        let is_enough = |bounds: &Bounds| {
            self.under(bounds, |solver| solver.is_enough(create.clone())).unwrap_or(false)
        };
        let enough = all.partition_point(is_enough);
        all.get(enough.checked_sub(1)?).cloned()
    }

    /// What is found under a schema with narrower bounds.
    fn under<T>(&self, bounds: &Bounds, find: impl FnOnce(&Solver<'_>) -> T) -> Option<T> {
        let catalog = bounds.applied(self.catalog, self.schema)?;
        let schema = catalog.schema(&self.asked.from.text)?;
        Some(find(&Solver { catalog: &catalog, schema, ..*self }))
    }

    /// A population with the smallest maximum with which the demands are met.
    fn enough_owners(&self, first: &Create, (min, most): (u32, u32)) -> Option<(u32, u32)> {
        let is_enough = |max: u32| {
            let tried = self.tried(Create { population: Some((min, max)), ..first.clone() });
            tried.is_some_and(|tried| self.with_more_owners(tried).worst.is_met())
        };
        let (_, mut low) = first.population.filter(|_| is_enough(most))?;
        let mut high = most;
        while low + 1 < high {
            let middle = low.midpoint(high);
            if is_enough(middle) { high = middle } else { low = middle }
        }
        Some((min, high))
    }
}

/// All numbers of up to two digits and zeros, ascending.
fn two_digits(index: u32) -> Option<i64> {
    match index {
        0..99 => Some(i64::from(index) + 1),
        _ => 10i64.checked_pow((index - 9) / 90)?.checked_mul(i64::from((index - 9) % 90) + 10),
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [least, most] = &self.after;
        write!(f, "`{}` between {least} and {most}", self.name)
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_assumed {
            f.write_str("\n  one value each is assumed: `values = 24` says that there are 24")?;
        }
        let (error, within) = self.larger.unwrap_or_default();
        let error = error.map(|own| format!("`error = {}`", Percent(own)));
        let within = within.map(|own| format!("`WITHIN {own} OF 95 %`"));
        let larger: Vec<String> = error.into_iter().chain(within).collect();
        if !larger.is_empty() {
            write!(f, "\n  possible with {}", larger.join(" and "))?;
        }
        if let Some(events) = self.events {
            write!(f, "\n  possible with `events = {events}`, which leaves out streams with more")?;
        }
        if let Some((min, max)) = self.owners {
            write!(f, "\n  possible with `BETWEEN {min} AND {max}`")?;
        }
        const REFUSED: &str = "in the schema, beyond which devices refuse readings";
        if let Some(bounds) = &self.bounds {
            write!(f, "\n  possible with {bounds} {REFUSED}")?;
        }
        if let Some((events, bounds)) = &self.both {
            write!(f, "\n  possible with `events = {events}` and {bounds} {REFUSED}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::two_digits;

    #[test]
    fn numbers_of_two_digits_ascend() {
        let all: Vec<i64> = (0..).map_while(two_digits).collect();
        assert!(all.is_sorted() && all[97..101] == [98, 99, 100, 110], "{:?}", &all[97..101]);
        assert_eq!(all.last(), Some(&9_200_000_000_000_000_000));
    }
}
