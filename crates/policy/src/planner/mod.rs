//! From a query to plans (Zeph §4.3): filters streams by metadata, groups them, checks each
//! owner's policy, and settles populations.
//!
//! ```text
//! names ─ resolve ─ filter ─ group ─ eligible ─ settle ─ Plan (one a group)
//!   └────────┴── PlanningError: everything wrong, and the nearest query ──┘
//! ```
//!
//! The planner does not decide for owners: each controller checks a plan again
//! ([`crate::comply`]) before it takes part.

mod accuracy;
mod attempt;
mod bins;
mod brittle_minimums;
mod digits;
mod eligibility;
mod epochs;
mod error;
mod exclusion;
mod fill;
mod filter;
mod finding;
mod fix;
mod integrity;
mod noise;
mod offers;
mod plan_meaning;
mod population;
mod resolve;
mod rows;
pub mod suggest;

pub use accuracy::{Bounds, Remedy};
pub use error::{PlanningError, RuleError, ViolationError};
pub use exclusion::ExclusionError;
pub(crate) use exclusion::Share;
pub use filter::selection;
pub(crate) use offers::{in_words, offered};
pub use plan_meaning::{OtherMeaningError, check_meaning};
pub(crate) use population::controllers_for;
pub use resolve::columns;

use crate::budget::Epsilon;
use crate::catalog::Catalog;
use crate::ids::ConsumerId;
use crate::plan::{MaskStrategy, Plan};
use crate::query::{Create, MaskChoice, MembershipChoice};
use alpheus_time::{Span, Timestamp};
use finding::{Finding, Fix};
use serde::{Deserialize, Serialize};

/// Everything about a plan that is not in the query.
#[derive(Clone, Copy)]
pub struct PlanOptions<'a> {
    /// The current time. Windows that start earlier are not released.
    pub now: Timestamp,
    /// If set, released windows start here instead (for recorded input).
    pub from: Option<Timestamp>,
    /// Fresh random bytes, from which each plan's nonce derives.
    pub nonce: &'a [u8; 32],
    /// Who runs the query, unless it has `RELEASE TO`.
    pub consumer: &'a str,
    /// How long windows wait for late events, unless the query sets it.
    pub grace: Span,
    /// The probability that an epoch's graphs are disconnected is at most 10^-this, unless
    /// the query sets it.
    pub mask_delta_exponent: u8,
    /// The certificate of a consumer named by `RELEASE TO`. `None` if the certificate is
    /// unknown, or someone else runs the query.
    pub readers: &'a dyn Fn(&str) -> Option<ConsumerId>,
    /// Chooses how controllers share masks. `None` if no strategy is safe.
    pub masks: &'a dyn Fn(&MaskRequest<'_>) -> Option<MaskStrategy>,
}

/// The inputs to a choice of masks.
#[derive(Clone, Copy, Debug)]
pub struct MaskRequest<'a> {
    /// The strategy that the query requests.
    pub wanted: Option<MaskChoice>,
    /// The number of different owners at each controller, in roster order.
    pub owners: &'a [u32],
    /// How many of the controllers may collude with the service (t).
    pub tolerated: u32,
    /// The plan's minimum population.
    pub min_population: u32,
    /// The probability that an epoch's graphs are disconnected is at most 10^-this.
    pub delta_exponent: u8,
}

/// A query that can run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedQuery {
    /// Name of the result stream.
    pub name: String,
    /// The query as SQL.
    pub sql: String,
    /// One plan for each group, ascending by the group's values. At least one.
    pub plans: Vec<Plan>,
    /// Number of streams that match the conditions on metadata.
    pub fitting: u32,
    /// How many of them do not take part, by reason.
    pub excluded: Vec<ExclusionCount>,
    /// For each plan, how long its members' budgets last. `None` if nothing is charged.
    pub budgets: Vec<Option<BudgetLife>>,
    /// How exact columns are, in words: the error that the query asks for, and the widths of bins.
    #[serde(default)]
    pub accuracy: Vec<String>,
    /// When it is fixed who takes part. By epochs, the plans list those who may.
    pub membership: MembershipChoice,
    /// Over how many different sets of owners a day is summed at most, if all members bound it.
    #[serde(default)]
    pub sets_per_day: Option<u32>,
    /// How the query wants masks to be shared.
    pub masks: Option<MaskChoice>,
    /// The smallest population that the query asks for, if windows need a larger one.
    #[serde(default)]
    pub raised_from: Option<u32>,
}

impl PlannedQuery {
    /// What is to run: the plans, or by epochs their terms.
    #[must_use]
    pub fn to_run(&self) -> Vec<Plan> {
        match self.membership {
            MembershipChoice::Fixed => self.plans.clone(),
            MembershipChoice::Epochs => self.plans.iter().map(Plan::terms).collect(),
        }
    }

    /// That windows need more owners than the query asks for, in words.
    #[must_use]
    pub fn raised(&self) -> Option<String> {
        let (asked, all) = (self.raised_from?, self.plans.iter().map(|plan| plan.population.min));
        let min = all.max()?;
        Some(format!(
            "The query asks for at least {asked} owners. Windows open with {min} or more, because policies or the error that it asks for take as many."
        ))
    }

    /// The budgets of an owner who is in one of the plans: the least windows, and the highest costs. An
    /// owner with streams in several groups pays in each. `None` if nothing is charged.
    #[must_use]
    pub fn budget(&self) -> Option<BudgetLife> {
        self.budgets.iter().flatten().copied().reduce(BudgetLife::worse)
    }

    /// What results with noise cost an owner, in words: in each group, because each is charged for
    /// itself. `None` if results are exact.
    #[must_use]
    pub fn cost(&self) -> Option<String> {
        let noisy = self.plans.iter().find(|plan| plan.privacy.is_some())?;
        let Some(life) = self.budget() else {
            return Some("nothing is charged to owners' budgets".to_owned());
        };
        let window = noisy.horizon().is_none().then_some(noisy.window);
        let once = Epsilon::from_micro(life.day_micro_epsilon);
        let mut words = match window {
            Some(window) => life.per_day_and_year(window),
            None => format!("one person pays up to ε = {once} once, for all windows together"),
        };
        if self.plans.len() > 1 {
            words.push_str(", for each group that has a stream of theirs");
        }
        Some(format!("{words}; {}", life.used_up(window)))
    }
}

/// How long the members' budgets last, and what that costs one of them. Only controllers
/// know what was spent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLife {
    /// The number of windows, or of such queries for running totals, until the first budget
    /// is used up (in each period, for budgets per period).
    pub windows: u64,
    /// The most that the budgets of one member allow all windows together to cost, in
    /// millionths of ε, added up over the query's attributes.
    pub total_micro_epsilon: u64,
    /// The period in which they allow it, or `None` if that is all time.
    pub period: Option<Span>,
    /// The most that windows of one day cost one member, in millionths of ε, added up over
    /// attributes. For running totals, their whole cost, once.
    #[serde(default)]
    pub day_micro_epsilon: u64,
    /// The same of a year.
    #[serde(default)]
    pub year_micro_epsilon: u64,
}

impl BudgetLife {
    /// What windows of this length cost one member, in words.
    #[must_use]
    pub fn per_day_and_year(self, window: Span) -> String {
        let [day, year] =
            [self.day_micro_epsilon, self.year_micro_epsilon].map(Epsilon::from_micro);
        // On a day within a longer window, one window is paid for.
        let each = if window > Span::DAY { "for a window" } else { "a day" };
        format!("one person pays up to ε = {day} {each} and ε = {year} a year")
    }

    /// When the first budget is used up, in words: after windows of this length, or running totals.
    #[must_use]
    pub fn used_up(self, window: Option<Span>) -> String {
        let after = |what| {
            format!("the first budget is used up after {}", digits::many(self.windows, what))
        };
        let all = window.map(|own| Span(own.0.saturating_mul(self.windows)));
        match (all, self.period) {
            (Some(all), Some(own)) if all >= own => format!("no budget is used up within {own}"),
            (Some(all), _) => format!("{} ({})", after("window"), all.in_largest_unit()),
            (None, _) => after("run") + " of such a query",
        }
    }
}

/// The number of streams that do not take part for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusionCount {
    /// The reason.
    pub reason: ExclusionError,
    /// The number of streams.
    pub streams: u32,
}

/// Maximum number of successive changes to a refused query.
const MAX_CHANGES: usize = 12;

/// Plans a query. The same arguments return the same plans.
///
/// # Errors
/// If the query cannot run: every rule that it breaks, with the numbers, and the nearest
/// query that this function accepts.
///
/// # Privacy
/// Uses schemas, annotations and locks, which are public.
pub fn plan(
    create: &Create,
    catalog: &Catalog,
    options: &PlanOptions<'_>,
) -> Result<PlannedQuery, PlanningError> {
    let first = match answer(create, catalog, options) {
        Ok(planned) => return Ok(planned),
        Err(findings) => findings,
    };
    let mut violations = first.iter().map(Finding::violation).collect::<Vec<_>>();
    // Add noise where it is required. If that does not help, request less.
    for noise in [true, false] {
        let mut next = |query: &Create, findings: &[Finding]| {
            let schema = catalog.schema(&query.from.text).map(|known| &known.schema);
            let fixes = finding::first_fixes(findings).cloned();
            let fixes: Vec<_> =
                fixes.map(|fix| if noise { fix } else { fix.without_noise() }).collect();
            fix::apply_fixes(query, &fixes, schema)
        };
        let try_one = |query: &Create| match query.settings.accuracy.is_asked() {
            true => answer(query, catalog, options).err(),
            false => attempt::attempt(query, catalog, options).err(),
        };
        if let Some(nearest) = search(create, &first, &mut next, try_one, &mut violations) {
            return Err(PlanningError { violations, nearest: Some(Box::new(nearest)) });
        }
    }
    Err(PlanningError { violations, nearest: None })
}

/// Plans a query, with noise if policies allow it only so, and as exact as it asks for.
fn answer(
    create: &Create,
    catalog: &Catalog,
    options: &PlanOptions<'_>,
) -> Result<PlannedQuery, Vec<Finding>> {
    let mut planned = match create.settings.accuracy.is_asked() {
        true => accuracy::answer(create, catalog, options)?,
        false => with_noise_if_needed(create, catalog, options)?.0,
    };
    let needed = planned.plans.iter().map(|plan| plan.population.min).max();
    planned.raised_from =
        create.population.map(|(min, _)| min).filter(|min| needed.is_some_and(|own| own > *min));
    Ok(planned)
}

/// Plans a query, and the query that was planned: if no policy allows it without noise and it does
/// not set epsilon, with the largest that all allow.
fn with_noise_if_needed(
    create: &Create,
    catalog: &Catalog,
    options: &PlanOptions<'_>,
) -> Result<(PlannedQuery, Create), Vec<Finding>> {
    let first = match attempt::attempt(create, catalog, options) {
        Ok(planned) => return Ok((planned, create.clone())),
        Err(findings) => findings,
    };
    let noisy = first.iter().find_map(|finding| match (create.settings.epsilon, &finding.fix) {
        (None, Some(fix @ (Fix::Noise(..) | Fix::Epsilon(_)))) => Some(fix.clone()),
        _ => None,
    });
    let Some(noisy) = noisy.and_then(|fix| fix::apply_fixes(create, &[fix], None)) else {
        return Err(first);
    };
    let planned = attempt::attempt(&noisy, catalog, options).map_err(|_| first)?;
    Ok((planned, noisy))
}

/// Changes a query until it is accepted, and collects violations on the way.
fn search(
    create: &Create,
    first: &[Finding],
    next: &mut impl FnMut(&Create, &[Finding]) -> Option<Create>,
    try_one: impl Fn(&Create) -> Option<Vec<Finding>>,
    violations: &mut Vec<ViolationError>,
) -> Option<Create> {
    let (mut query, mut findings) = (create.clone(), first.to_vec());
    for _ in 0..MAX_CHANGES {
        let changed = next(&query, &findings)?;
        let Some(more) = try_one(&changed) else { return Some(changed) };
        for violation in more.iter().map(Finding::violation) {
            if violations.iter().all(|known| known.rule != violation.rule) {
                violations.push(violation);
            }
        }
        (query, findings) = (changed, more);
    }
    None
}
