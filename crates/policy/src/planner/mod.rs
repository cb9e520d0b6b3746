//! From a query to plans (Zeph §4.3): streams are filtered by metadata and
//! grouped, each owner's policy is asked, populations are settled.
//!
//! ```text
//! names ─ resolve ─ filter ─ group ─ eligible ─ settle ─ Plan (one a group)
//!   └────────┴── a Refusal: all that is wrong, and the nearest query ──┘
//! ```
//!
//! The planner decides nothing for owners: each controller checks a plan again
//! ([`crate::comply`]) before it takes part.

mod attempt;
mod bins;
mod eligible;
mod fill;
mod filter;
mod finding;
mod mend;
mod noise;
mod offers;
mod population;
mod raw;
mod refusal;
mod resolve;
mod rows;

pub(crate) use offers::{in_words, offered};
pub(crate) use population::enough;
pub use raw::event_columns;
pub(crate) use refusal::Share;
pub use refusal::{Exclusion, Refusal, Rule, Violation};

use crate::catalog::Catalog;
use crate::ids::ConsumerId;
use crate::plan::{Fraction, MaskStrategy, Plan};
use crate::query::{Create, MaskChoice};
use crate::time::{Span, Timestamp};
use finding::{Finding, Mend};
use serde::{Deserialize, Serialize};

/// What a query does not say.
#[derive(Clone, Copy)]
pub struct PlanOptions<'a> {
    /// The time now: windows that start before it are not released.
    pub now: Timestamp,
    /// Released windows start here instead, where it is given (recorded input).
    pub from: Option<Timestamp>,
    /// Fresh random bytes, from which each plan's nonce derives.
    pub nonce: &'a [u8; 32],
    /// Who asks, unless the query says `RELEASE TO`.
    pub consumer: &'a str,
    /// How long windows wait for late events, unless the query says.
    pub grace: Span,
    /// Bound on the chance that an epoch's graphs fall apart is 10^-this,
    /// unless the query says.
    pub mask_delta_exponent: u8,
    /// The certificate of a consumer that `RELEASE TO` names; none where it is not
    /// known here, or somebody else asks.
    pub readers: &'a dyn Fn(&str) -> Option<ConsumerId>,
    /// Chooses how controllers share masks; none where nothing is safe.
    pub masks: &'a dyn Fn(&MaskRequest<'_>) -> Option<MaskStrategy>,
}

/// What a choice of masks depends on.
#[derive(Clone, Copy, Debug)]
pub struct MaskRequest<'a> {
    /// The query's wish.
    pub wanted: Option<MaskChoice>,
    /// Different owners of each controller, in roster order.
    pub owners: &'a [u32],
    /// Share of controllers that may collude.
    pub alpha: Fraction,
    /// The plan's least population.
    pub min_population: u32,
    /// Share of members that may drop out of a window.
    pub dropout: Fraction,
    /// The graphs of an epoch fall apart with a chance below 10^-this.
    pub delta_exponent: u8,
}

/// A query that can run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedQuery {
    /// Name of the stream of results.
    pub name: String,
    /// The query as SQL.
    pub sql: String,
    /// One plan for each group, ascending by the group's values; at least one.
    pub plans: Vec<Plan>,
    /// Streams that fit the conditions on metadata.
    pub fitting: u32,
    /// Those of them that take no part, counted by reason.
    pub excluded: Vec<Excluded>,
    /// For each plan, how many windows the budgets of its members allow, until the
    /// first is spent (in each period, where they are by period); none where nothing is
    /// charged. What was spent before, only controllers know.
    pub lasts: Vec<Option<u64>>,
}

/// Streams that take no part for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excluded {
    /// The reason.
    pub reason: Exclusion,
    /// How many.
    pub streams: u32,
}

/// How many changes to a refused query are tried one after the other.
const MOST_CHANGES: usize = 12;

/// Plans a query. The same arguments give the same plans.
///
/// # Errors
/// Every rule that the query breaks, with the numbers, and the nearest query
/// that this function accepts.
///
/// # Privacy
/// Uses schemas, annotations and locks, which are public.
pub fn plan(
    create: &Create,
    catalog: &Catalog,
    options: &PlanOptions<'_>,
) -> Result<PlannedQuery, Refusal> {
    let first = match attempt::attempt(create, catalog, options) {
        Ok(planned) => return Ok(planned),
        Err(findings) => findings,
    };
    // Where nobody gives it without noise and the query does not say how much.
    let noisy = first.iter().find_map(|finding| match (create.settings.epsilon, &finding.mend) {
        (None, Some(mend @ (Mend::Noise(..) | Mend::Epsilon(_)))) => Some(mend.clone()),
        _ => None,
    });
    let noisy = noisy.and_then(|mend| mend::mended(create, &[mend], None));
    if let Some(Ok(planned)) = noisy.map(|noisy| attempt::attempt(&noisy, catalog, options)) {
        return Ok(planned);
    }
    let mut violations = first.iter().map(Finding::violation).collect::<Vec<_>>();
    // Ask for noise where it is needed; if that leads nowhere, ask for less.
    for noise in [true, false] {
        let mut next = |query: &Create, findings: &[Finding]| {
            let schema = catalog.schema(&query.from.text).map(|known| &known.schema);
            let mends = findings.iter().filter_map(|finding| finding.mend.clone());
            let mends: Vec<_> =
                mends.map(|mend| if noise { mend } else { mend.without_noise() }).collect();
            mend::mended(query, &mends, schema)
        };
        let try_one = |query: &Create| attempt::attempt(query, catalog, options).err();
        if let Some(nearest) = search(create, &first, &mut next, try_one, &mut violations) {
            return Err(Refusal { violations, nearest: Some(Box::new(nearest)) });
        }
    }
    Err(Refusal { violations, nearest: None })
}

/// Changes a query until it is accepted; notes what is wrong on the way.
fn search(
    create: &Create,
    first: &[Finding],
    next: &mut impl FnMut(&Create, &[Finding]) -> Option<Create>,
    try_one: impl Fn(&Create) -> Option<Vec<Finding>>,
    violations: &mut Vec<Violation>,
) -> Option<Create> {
    let (mut query, mut findings) = (create.clone(), first.to_vec());
    for _ in 0..MOST_CHANGES {
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
