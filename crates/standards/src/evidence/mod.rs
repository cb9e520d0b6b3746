//! What a service states as evidence for a data protection impact assessment: a text of JSON lines.
//! `docs/standards.md` describes them.
//!
//! | file | contents |
//! | --- | --- |
//! | `ended` | which plans have ended, and when they ran |
//! | `lines` | the lines, as they are written |
//! | `places` | how many statements are written at once |
//! | `plans` | plans, their noise, and what they charge |
//! | `spent` | what releases add up to for one owner |
//!
//! # Privacy
//! Policies and withdrawals are counted: no line names an owner or a stream. Rows are those that the caller
//! gives, so it must be shown them anyway.

mod ended_plans;
mod lines;
mod plans;
mod statement_loss;
mod statement_places;

pub use ended_plans::{EndedPlans, LogPlaces, PlanRun};
pub use lines::Head;
pub use statement_places::{BusyError, MAX_AT_ONCE, StatementPlace, StatementPlaces};

use alpheus_policy::budget::Cost;
use alpheus_policy::catalog::{Catalog, CatalogSchema, CatalogStream};
use alpheus_policy::ids::{OwnerId, PlanId};
use alpheus_policy::plan::{Fraction, Plan};
use alpheus_policy::policy::ResolvedOption;
use alpheus_policy::schema::{Budget, OptionKind};
use alpheus_time::{Span, Timestamp, Window};
use lines::{AllowedUse, Line, PolicyLine, Release, Revocations, SchemaLine, Withdrawals};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Version of the lines.
pub const FORMAT: u32 = 1;

/// The lines so far.
#[derive(Debug)]
pub struct Statement {
    text: String,
    span: Window,
    plans: BTreeMap<PlanId, PlanCost>,
    /// How often each plan was charged.
    charged: BTreeMap<PlanId, u64>,
    /// Budgets in force, by attribute.
    budgets: BTreeMap<u16, Vec<Budget>>,
}

/// What a plan costs, and whom.
#[derive(Debug)]
struct PlanCost {
    charges: Vec<(u16, Cost)>,
    /// Whether all of its windows are charged as one.
    once: bool,
    slack_bits: u32,
    /// None if members are fixed for each epoch: it may be any owner.
    owners: Option<BTreeSet<OwnerId>>,
}

/// A row that was published.
#[derive(Debug)]
pub struct PublishedRow {
    /// The query.
    pub query: String,
    /// Its plan, if it was noted.
    pub plan: Option<PlanId>,
    /// Whether it has a result.
    pub opened: bool,
    /// The row.
    pub row: Map<String, Value>,
    /// The digest of its receipt.
    pub receipt: Option<String>,
}

impl Statement {
    /// A statement about windows that start in a span of time. `catalog` has the policies in force.
    #[must_use]
    pub fn new(head: &Head, span: Window, catalog: &Catalog) -> Statement {
        let (text, plans, charged, budgets) = Default::default();
        let mut statement = Statement { text, span, plans, charged, budgets };
        statement.add(&Line::Head(head));
        for known in catalog.schemas() {
            let (id, schema) = (known.id.to_string(), &known.schema);
            statement.add(&Line::Schema(SchemaLine { id, schema }));
            statement.policies(catalog, known);
        }
        statement
    }

    /// A query that runs, as it is shown to consumers.
    pub fn query(&mut self, query: Value) {
        self.add(&Line::Query(query));
    }

    /// A plan of one of the caller's queries, and the digest of its announcement.
    pub fn plan(
        &mut self,
        plan: &Plan,
        schema: &CatalogSchema,
        (running, announcement): (bool, Option<String>),
    ) {
        let (line, cost) = plans::describe(plan, schema, running, announcement);
        self.add(&Line::Plan(Box::new(line)));
        self.plans.insert(plan.id(), cost);
    }

    /// When the service was informed of each withdrawal, as far as that is known.
    pub fn withdrawals(&mut self, all: impl Iterator<Item = Option<Timestamp>>) {
        let mut counted = Withdrawals::default();
        for at in all {
            let count = match at {
                None => &mut counted.unknown,
                Some(at) if at < self.span.start => &mut counted.before,
                Some(at) if at < self.span.end => &mut counted.within,
                Some(_) => &mut counted.after,
            };
            *count += 1;
        }
        self.add(&Line::Withdrawals(counted));
    }

    /// How many certificates the authority has revoked, in which version of its list.
    pub fn revocations(&mut self, version: u64, certificates: usize) {
        self.add(&Line::Revocations(Revocations { version, certificates }));
    }

    /// Whether a window that starts then, Unix milliseconds, is in the asked time.
    #[must_use]
    pub fn covers(&self, start: u64) -> bool {
        let start = Timestamp(start.saturating_mul(1000));
        self.span.start <= start && start < self.span.end
    }

    /// A row of the asked time.
    pub fn release(&mut self, published: PublishedRow) {
        let PublishedRow { query, plan, opened, row, receipt } = published;
        let known = plan.and_then(|plan| Some((plan, self.plans.get(&plan)?)));
        let cost = known.map(|(plan, known)| {
            if !opened || known.charges.is_empty() {
                return Vec::new();
            }
            let times = self.charged.entry(plan).or_default();
            *times = if known.once { 1 } else { *times + 1 };
            if known.once { Vec::new() } else { plans::charge_lines(&known.charges) }
        });
        let plan = plan.map(|plan| plan.to_string());
        self.add(&Line::Release(Release { query, plan, row, cost, receipt }));
    }

    /// The text so far, each line with its end.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    fn add(&mut self, line: &Line<'_>) {
        self.text.push_str(&line.text());
    }

    /// How many streams allow what of each attribute.
    fn policies(&mut self, catalog: &Catalog, known: &CatalogSchema) {
        let none = private();
        for (at, attribute) in (0_u16..).zip(&known.schema.attributes) {
            let streams = catalog.streams().filter(|own| own.schema == known.id);
            for Choosers { allowed, streams, owners } in choosers(streams, at, &none) {
                let budgets = self.budgets.entry(at).or_default();
                budgets.extend(allowed.budget.filter(|own| !budgets.contains(own)));
                let (attribute, owners) = (attribute.name.as_str(), owners.len());
                self.add(&Line::Policy(PolicyLine { attribute, allowed, streams, owners }));
            }
        }
    }
}

/// Who chose the same.
struct Choosers<'a> {
    allowed: AllowedUse<'a>,
    streams: usize,
    owners: HashSet<OwnerId>,
}

/// What streams allow of an attribute, in the order in which it is met first.
fn choosers<'a>(
    streams: impl Iterator<Item = &'a CatalogStream>,
    attribute: u16,
    none: &'a ResolvedOption,
) -> Vec<Choosers<'a>> {
    let (mut places, mut all) = (HashMap::new(), Vec::<Choosers<'a>>::new());
    for stream in streams {
        for option in options(stream, attribute, none) {
            let allowed = AllowedUse::from(option);
            let place = *places.entry(allowed).or_insert(all.len());
            if place == all.len() {
                all.push(Choosers { allowed, streams: 0, owners: HashSet::new() });
            }
            if let Some(chosen) = all.get_mut(place) {
                chosen.streams += 1;
                chosen.owners.insert(stream.owner);
            }
        }
    }
    all
}

/// What an attribute without any choice allows.
fn private() -> ResolvedOption {
    ResolvedOption {
        name: "private".to_owned(),
        kind: OptionKind::Private,
        window: Span(0),
        min_population: 0,
        generalise: Vec::new(),
        budget: None,
        to: Vec::new(),
        alpha: Fraction::ZERO,
        colluders: 0,
        dropout: Fraction::ZERO,
        missing_ticks: 0,
        sets_per_day: None,
        split_populations: false,
        trusted: Vec::new(),
        verified: false,
    }
}

/// What a stream allows of an attribute: at least that nothing is.
fn options<'a>(
    stream: &'a CatalogStream,
    attribute: u16,
    none: &'a ResolvedOption,
) -> impl Iterator<Item = &'a ResolvedOption> {
    let own = stream.policy.attribute(attribute).map_or(&[][..], |own| &own.alternatives);
    own.iter().chain(own.is_empty().then_some(none))
}
