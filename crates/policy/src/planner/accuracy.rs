//! The least noise with which results are as exact as a query asks: chooses ε, the smallest
//! population and the limit on events, within what policies allow.
//!
//! Errors are those of the smallest population that a window opens with. They follow from the
//! noise alone, but for what a query says of its data: `typical`, the mean of its attribute (by
//! default the middle of the schema's bounds), and `values`, how many values a stream has in a
//! window (by default one).

mod remedy;

pub use remedy::{Bounds, Remedy};

use super::attempt::attempt;
use super::digits::{many, short, step, three_digits, two_digits};
use super::error::RuleError;
use super::finding::{Finding, Fix};
use super::{PlanOptions, PlannedQuery, with_noise_if_needed};
use crate::budget::{
    Epsilon, NoiseShares, assumed_sums, expected_errors, farthest, rank_margin, statistic_of,
};
use crate::catalog::{Catalog, CatalogSchema};
use crate::plan::Plan;
use crate::query::{Accuracy, Create, Decimal, Percent};
use crate::schema::AttributeKind;
use crate::select::{ByOutput, CellRef, HistogramOutput, MomentOutput, SelectItem, Statistic};

/// How often ε is changed by one in its third digit.
const MAX_STEPS: u32 = 40;

/// Plans a query that says how exact its results have to be.
pub(super) fn answer(
    create: &Create,
    catalog: &Catalog,
    options: &PlanOptions<'_>,
) -> Result<PlannedQuery, Vec<Finding>> {
    let mut plain = create.clone();
    plain.settings.accuracy = Accuracy::default();
    let (planned, noisy) = with_noise_if_needed(&plain, catalog, options)?;
    let known = catalog.schema(&create.from.text);
    let exact = planned.plans.iter().all(|plan| plan.privacy.is_none());
    let (false, Some(schema)) = (exact, known) else {
        let accuracy = exact_in_words(create);
        return Ok(PlannedQuery { sql: create.to_string(), accuracy, ..planned });
    };
    let solver = Solver { asked: create, catalog, options, schema };
    solver.solve(planned, noisy).map_err(|finding| vec![*finding])
}

/// The message if nobody's policy asks for noise.
fn exact_in_words(create: &Create) -> Vec<String> {
    let of = |item: &crate::query::Item| {
        let (column, asked) = (&item.alias, asked_in_words(&create.settings.accuracy));
        format!(
            "{column}: exact, since no policy asks for noise; so it is as exact as asked{asked}"
        )
    };
    create.items.iter().map(of).collect()
}

fn asked_in_words(accuracy: &Accuracy) -> String {
    match (accuracy.error, accuracy.within) {
        (Some(error), None) => format!(" (asked: {})", Percent(error)),
        (None, Some(within)) => format!(" (asked: ±{within})"),
        _ => String::new(),
    }
}

type SolverResult<T> = Result<T, Box<Finding>>;

struct Solver<'a> {
    /// The query with its demands.
    asked: &'a Create,
    catalog: &'a Catalog,
    options: &'a PlanOptions<'a>,
    schema: &'a CatalogSchema,
}

/// A query without demands, its plans, and the margin of each column beside what is asked.
struct Trial {
    create: Create,
    planned: PlannedQuery,
    worst: Margin,
    all: Vec<Margin>,
}

/// The margin of a column in 95 of 100 windows, and the largest that the query accepts.
#[derive(Clone, Debug)]
struct Margin {
    column: String,
    margin: f64,
    accepted: f64,
    /// What the margin is a share of, if the query asks for a share.
    whole: Option<f64>,
}

impl Margin {
    /// At most 1 if the margin is small enough.
    fn gap(&self) -> f64 {
        if self.margin <= 0.0 { 0.0 } else { self.margin / self.accepted }
    }

    fn is_met(&self) -> bool {
        self.gap() <= 1.0
    }

    fn in_words(&self, margin: f64) -> String {
        if margin.is_infinite() {
            return "unknown, since there would be more noise than values".to_owned();
        }
        let share = |whole: &f64| format!(" ({} %)", short(margin / whole * 100.0));
        let share = self.whole.as_ref().map(share).unwrap_or_default();
        format!("±{}{share}", short(margin))
    }
}

impl Solver<'_> {
    fn solve(&self, planned: PlannedQuery, noisy: Create) -> SolverResult<PlannedQuery> {
        let mut best = self.measured(planned, noisy)?;
        let first = best.create.clone();
        if !best.worst.is_met() {
            best = self.with_more_owners(best);
        }
        if !best.worst.is_met() {
            best = self.with_fewer_events(&first, best);
        }
        if !best.worst.is_met() {
            return Err(Box::new(self.out_of_reach(&first, &best)));
        }
        let best = self.with_least_epsilon(best);
        let mut planned = best.planned;
        // Rows say whether they are as exact as asked, so that stays with the query.
        let mut shown = best.create;
        shown.settings.accuracy = self.asked.settings.accuracy;
        planned.sql = shown.to_string();
        planned.accuracy = self.in_words(&best.all, planned.plans.first());
        Ok(planned)
    }

    fn measured(&self, planned: PlannedQuery, create: Create) -> SolverResult<Trial> {
        let mut all: Vec<Margin> = Vec::new();
        for plan in &planned.plans {
            for margin in self.margins(plan)? {
                match all.iter_mut().find(|known| known.column == margin.column) {
                    Some(known) if known.gap() < margin.gap() => *known = margin,
                    Some(_) => {}
                    None => all.push(margin),
                }
            }
        }
        let worst = all.iter().max_by(|one, other| one.gap().total_cmp(&other.gap())).cloned();
        let nothing = Margin { column: String::new(), margin: 0.0, accepted: 1.0, whole: None };
        Ok(Trial { create, planned, worst: worst.unwrap_or(nothing), all })
    }

    /// Plans a query without demands. `None` if it is refused.
    fn tried(&self, create: Create) -> Option<Trial> {
        let planned = attempt(&create, self.catalog, self.options).ok()?;
        self.measured(planned, create).ok()
    }

    /// The smallest larger population with which the demands are met, of at most nine tenths of
    /// the owners, since windows of fewer do not open. If none is enough, the largest.
    fn with_more_owners(&self, best: Trial) -> Trial {
        let counted = best.planned.plans.iter().map(Plan::counted).min().unwrap_or(0);
        let (_, max) = best.create.population.unwrap_or((1, self.capacity()));
        let min = best.planned.plans.iter().map(|plan| plan.population.min).max().unwrap_or(1);
        let (mut low, mut high) = (min.saturating_add(1), (counted - counted / 10).min(max));
        if low > high {
            return best;
        }
        let with =
            |min: u32| self.tried(Create { population: Some((min, max)), ..best.create.clone() });
        let Some(mut found) = with(high) else { return best };
        while found.worst.is_met() && low < high {
            let middle = low.midpoint(high);
            match with(middle).filter(|tried| tried.worst.is_met()) {
                Some(tried) => (found, high) = (tried, middle),
                None => low = middle.saturating_add(1),
            }
        }
        if found.worst.gap() < best.worst.gap() { found } else { best }
    }

    /// As many events of a stream as the demands allow, but not fewer than it is expected to have,
    /// unless the query limits them itself. Streams with more are then excluded.
    fn with_fewer_events(&self, first: &Create, best: Trial) -> Trial {
        let (None, Some(values)) =
            (self.asked.settings.events, self.asked.settings.accuracy.values)
        else {
            return best;
        };
        let enough = [first, &best.create].into_iter().find_map(|own| self.few_enough_events(own));
        let mut create = first.clone();
        let fewest = values.min(self.schema.schema.capacity.events);
        create.settings.events = Some(enough.unwrap_or(fewest));
        let Some(mut tried) = self.tried(create) else { return best };
        if !tried.worst.is_met() {
            tried = self.with_more_owners(tried);
        }
        if tried.worst.gap() < best.worst.gap() { tried } else { best }
    }

    /// The smallest ε of three digits with which the demands are met, unless the query sets it.
    fn with_least_epsilon(&self, best: Trial) -> Trial {
        let Some(most) = best.create.settings.epsilon.and_then(|own| own.scaled_towards_zero(6))
        else {
            return best;
        };
        let most = most.unsigned_abs();
        if self.asked.settings.epsilon.is_some() || most == 0 {
            return best;
        }
        let with = |micro: u64| {
            let mut create = best.create.clone();
            create.settings.epsilon = Some(Decimal::from_scaled(i64::try_from(micro).ok()?, 6));
            self.tried(create).filter(|tried| micro <= most && tried.worst.is_met())
        };
        // Noise is nearly inversely proportional to ε.
        let mut micro = three_digits((most as f64 * best.worst.gap()).max(1.0));
        let mut found = None;
        for _ in 0..MAX_STEPS {
            match with(micro) {
                Some(tried) => {
                    found = Some(tried);
                    match micro.saturating_sub(step(micro - 1)) {
                        0 => break,
                        less => micro = less,
                    }
                }
                None if found.is_some() || micro >= most => break,
                None => micro = micro.saturating_add(step(micro)).min(most),
            }
        }
        found.unwrap_or(best)
    }

    fn capacity(&self) -> u32 {
        u32::try_from(self.schema.schema.capacity.population).unwrap_or(u32::MAX)
    }

    // Errors.

    /// The number of values of a plan's smallest window, in each of its windows so far.
    fn values(&self, plan: &Plan) -> f64 {
        let each = self.asked.settings.accuracy.values.unwrap_or(1);
        let windows = plan.horizon().map_or(1, |horizon| horizon.windows);
        f64::from(plan.population.min) * each as f64 * f64::from(windows)
    }

    fn margins(&self, plan: &Plan) -> SolverResult<Vec<Margin>> {
        let Some(privacy) = &plan.privacy else { return Ok(Vec::new()) };
        let honest = plan.min_honest().max(1);
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let members = honest.saturating_add(plan.discounted()).min(narrow(plan.roster.len()));
        let windows = plan.horizon().map_or(1, |horizon| horizon.windows);
        let shared = NoiseShares { honest, members: members.max(honest), windows, lost: 0 };
        let values = self.values(plan);
        let typical = self.typical(plan)?;
        let sums =
            assumed_sums((&plan.release, &plan.select), &self.schema.layout, values, |attribute| {
                typical.map_or_else(|| farthest(&self.schema.schema, attribute), f64::abs)
            });
        let errors = expected_errors(&plan.select, &privacy.noise, shared, &sums);
        let mut margins = Vec::new();
        for (item, error) in plan.select.items.iter().zip(errors) {
            let mut margin = error.spread.map(|spread| spread.within);
            if margin.is_none() && self.has_noisy_count(plan, item, values) {
                margin = Some(f64::INFINITY);
            }
            let rank = match &item.statistic {
                Statistic::Histogram { output: HistogramOutput::Quantile { .. }, bins } => {
                    Some(rank_margin(&plan.select, &privacy.noise, shared, bins, values))
                }
                _ => None,
            };
            let accuracy = &self.asked.settings.accuracy;
            if let Some(share) = accuracy.error {
                let whole = if rank.is_some() { Some(1.0) } else { self.whole(plan, item, values) };
                let (Some(whole), Some(margin)) = (whole, rank.or(margin)) else {
                    return Err(self.unknown(item, margin.is_some()));
                };
                margins.push(Margin {
                    column: item.alias.clone(),
                    margin,
                    accepted: number(share) * whole,
                    whole: Some(whole),
                });
            }
            if let Some(accepted) = accuracy.within {
                let Some(margin) = margin else { return Err(self.unknown(item, false)) };
                let (column, accepted) = (item.alias.clone(), number(accepted));
                margins.push(Margin { column, margin, accepted, whole: None });
            }
        }
        Ok(margins)
    }

    /// What the error of a column is a share of. `None` if that depends on the data.
    fn whole(&self, plan: &Plan, item: &SelectItem, values: f64) -> Option<f64> {
        match &item.statistic {
            Statistic::Count { .. }
            | Statistic::Histogram { output: HistogramOutput::Counts, .. }
            | Statistic::By { output: ByOutput::Count, .. } => Some(values),
            Statistic::Sum { sum, .. } => Some(values * self.mean(plan, *sum)?),
            Statistic::Moments { output: MomentOutput::Mean, sum, .. } => self.mean(plan, *sum),
            _ => None,
        }
    }

    /// Whether it is a mean over a count of values that is known, but to which too much noise is
    /// added. With less, its error is known.
    fn has_noisy_count(&self, plan: &Plan, item: &SelectItem, values: f64) -> bool {
        let is_mean =
            matches!(item.statistic, Statistic::Moments { output: MomentOutput::Mean, .. });
        is_mean && self.whole(plan, item, values).is_some()
    }

    /// The mean that is expected of the attribute that a cell sums, without its sign.
    fn mean(&self, plan: &Plan, sum: CellRef) -> Option<f64> {
        if let Some(typical) = self.asked.settings.accuracy.typical {
            return Some(number(typical).abs());
        }
        let attribute = statistic_of((&plan.release, &plan.select), &self.schema.layout, sum)?
            .attributes()
            .next()?;
        match self.schema.schema.attributes.get(usize::from(attribute)).map(|own| &own.kind) {
            Some(AttributeKind::Number { scale, min, max }) => {
                let middle = f64::midpoint(*min as f64, *max as f64).abs();
                let size = if middle > 0.0 { middle } else { *max as f64 / 2.0 };
                Some(size / 10f64.powi((*scale).into()))
            }
            _ => Some(0.5),
        }
    }

    /// The typical value in units of the attribute's scale, if the query states one.
    fn typical(&self, plan: &Plan) -> SolverResult<Option<f64>> {
        let Some(typical) = self.asked.settings.accuracy.typical else { return Ok(None) };
        let mut named = plan.attributes.iter();
        let (Some(attribute), None) = (named.next(), named.next()) else {
            return Err(Box::new(Finding::plain(self.at(), RuleError::TypicalOfSeveral)));
        };
        let scale = self.schema.schema.scale_of(*attribute);
        Ok(Some(number(typical) * 10f64.powi(scale.into())))
    }

    // Words.

    fn at(&self) -> crate::query::Location {
        self.asked.settings.accuracy.at.0
    }

    fn unknown(&self, item: &SelectItem, relative: bool) -> Box<Finding> {
        let rule = RuleError::ErrorUnknown { column: item.alias.clone(), relative };
        let position = self.asked.items.iter().position(|own| own.alias == item.alias);
        Box::new(Finding { at: self.at(), rule, fix: position.map(Fix::Drop) })
    }

    fn out_of_reach(&self, first: &Create, best: &Trial) -> Finding {
        let Margin { column, margin, accepted, .. } = &best.worst;
        let accuracy = &self.asked.settings.accuracy;
        // A share of 100 % or more says nothing.
        let whole = Decimal::from_scaled(1, 0);
        let worse = |asked: Decimal| two_digits(number(asked) * best.worst.gap());
        let error = accuracy.error.map(worse);
        let possible = error.is_none_or(|error| error.is_some_and(|error| error < whole));
        let within = accuracy.within.map(worse);
        let possible = possible && within.is_none_or(|within| within.is_some());
        let larger = possible.then(|| (error.flatten(), within.flatten()));
        let worse = larger.map(|(error, within)| Fix::Accuracy(error, within));
        let mut remedy = self.remedy(first, best);
        remedy.larger = larger;
        let fewer = remedy.events.map(Fix::Events);
        let plan = best.planned.plans.first();
        let privacy = plan.and_then(|plan| plan.privacy.as_ref());
        let noise = privacy.map_or_else(String::new, |own| {
            let epsilon = Epsilon::from_micro(own.micro_epsilon);
            let events = many(own.events, "event");
            format!("{} noise of ε = {epsilon} for at most {events}", own.mechanism)
        });
        let rule = RuleError::OutOfReach {
            column: column.clone(),
            asked: best.worst.in_words(*accepted),
            best: best.worst.in_words(*margin),
            noise,
            owners: plan.map_or(0, |plan| plan.population.min),
            values: self.each(),
            remedy: Box::new(remedy),
        };
        Finding { at: self.at(), rule, fix: fewer.or(worse) }
    }

    fn each(&self) -> String {
        many(self.asked.settings.accuracy.values.unwrap_or(1), "value")
    }

    fn in_words(&self, margins: &[Margin], plan: Option<&Plan>) -> Vec<String> {
        let owners = plan.map_or(0, |plan| plan.population.min);
        let accuracy = &self.asked.settings.accuracy;
        let typical = match (accuracy.typical, accuracy.error) {
            (Some(typical), _) => format!(", if their mean is {typical}"),
            (None, Some(_)) => ", if their mean is in the middle of the schema's bounds".to_owned(),
            (None, None) => String::new(),
        };
        let asked = asked_in_words(accuracy);
        let assumed = match accuracy.values {
            None => "; one value each is assumed: `values = 24` says that there are 24",
            Some(_) => "",
        };
        let of = |margin: &Margin| {
            if margin.margin <= 0.0 {
                return format!("{}: without noise, since it counts owners alone", margin.column);
            }
            format!(
                "{}: within {}{asked} in 95 of 100 windows of {owners} owners with {} each{typical}{assumed}",
                margin.column,
                margin.in_words(margin.margin),
                self.each()
            )
        };
        let events = plan.and_then(|plan| plan.privacy.as_ref()).map(|own| own.events);
        margins.iter().map(of).chain(events.map(left_out)).collect()
    }
}

/// What margins of noise do not count: those with many events differ from others, and are left out.
fn left_out(events: u64) -> String {
    let events = many(events, "event");
    format!(
        "a stream with more than {events} in a window is left out of it, and the margins do not count what that changes; `excluded` of each row says how many were left out"
    )
}

fn number(decimal: Decimal) -> f64 {
    decimal.to_string().parse().unwrap_or(f64::NAN)
}
