//! The smallest change with which a refused query would be answered: of what owners choose, of the
//! query, or of its settings.
//!
//! A change takes at most one edit from each *slot*: a clause or a setting of the query, or one
//! attribute of one part of the policies file. All changes of one edit are tried, then all of two,
//! and so on, so nothing smaller than what is found would be enough. Of equally many edits, those
//! with the smallest weight come first ([`Weight`]), and of these the ones that ask owners for the
//! least. Whether a change is enough is what the [planner](super::plan) says.
//!
//! If a query says how exact results have to be, changes of its noise that keep that come first,
//! however many edits they are: of events, bounds, window, population, recipient and ε. All other
//! changes give up something that was asked for, or ask owners for more.

mod slots;
mod words;

pub use words::Change;

use super::accuracy::Bounds;
use super::attempt::attempt;
use super::error::RuleError;
use super::finding::{Finding, Fix};
use super::fix::apply_fixes;
use super::{BudgetLife, PlanOptions, PlannedQuery, PlanningError, answer, plan};
use crate::catalog::Catalog;
use crate::ids::StreamId;
use crate::policy::{Policies, ResolvedOption, Section};
use crate::privacy::Privacy;
use crate::query::{Accuracy, Create, Decimal};
use serde::Serialize;
use slots::{Edit, Grant, Slot, SolvedNumber, passes};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// The most edits of a change.
const MAX_EDITS: usize = 4;
/// The same of one that only changes noise.
const MAX_NOISE: usize = 3;
/// The most changes that are compared with each other.
const MAX_CANDIDATES: usize = 100_000;

/// How much a kind of edit changes. The sum over a change decides between equally many edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Weight {
    /// A setting.
    Setting = 10,
    /// Window, population or recipient: all columns stay, and owners share nothing more.
    Clause = 20,
    /// Devices refuse more readings.
    Bounds = 25,
    /// Results are less exact than asked.
    Error = 28,
    /// Owners allow more than they do.
    Grant = 30,
    /// A column is coarser.
    Buckets = 40,
    /// A column is missing, or its noise.
    Column = 50,
    /// The query is about other owners.
    Owners = 60,
}

/// Owners to plan over.
#[derive(Clone, Copy)]
pub struct Owners<'a> {
    /// Schemas and streams, with the policies of `policies`.
    pub catalog: &'a Catalog,
    /// What owners choose.
    pub policies: &'a Policies,
    /// The part of the policies file that decides for each stream.
    pub sections: &'a BTreeMap<StreamId, Section>,
}

/// What to change so that a query is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing: it is answered.
    Nothing(Box<PlannedQuery>),
    /// The smallest change.
    Change {
        /// Why the query is refused.
        refusal: PlanningError,
        /// The change.
        change: Box<Suggestion>,
        /// If that asks owners to choose something, the smallest change that does not.
        without_grants: Option<Box<Suggestion>>,
    },
    /// No change of at most so many edits is enough. The refusal has the nearest query that the
    /// planner finds with more changes, if any.
    Impossible {
        /// Why the query is refused.
        refusal: PlanningError,
        /// The number of edits up to which all changes were tried.
        edits: usize,
    },
}

/// A change with which a query is answered. Nothing less is enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// Its edits.
    pub changes: Vec<Change>,
    /// The query with these edits, as SQL.
    pub query: String,
    /// Whether that is another query than the one that was asked.
    pub query_changed: bool,
    /// The policies with these edits.
    #[serde(skip)]
    pub policies: Policies,
    /// The number of streams that would take part.
    pub streams: usize,
    /// If the query says how exact results have to be: the error of each column, in words.
    pub accuracy: Vec<String>,
    /// What results with noise cost one owner, in words.
    pub cost: Option<String>,
    /// How long owners' budgets last, and what the windows of a day and a year cost one of them.
    pub budget: Option<BudgetLife>,
}

/// Finds the smallest change with which the query is answered.
///
/// # Privacy
/// Uses schemas and policies, which are public.
#[must_use]
pub fn suggest(create: &Create, owners: Owners<'_>, options: &PlanOptions<'_>) -> Advice {
    let refusal = match plan(create, owners.catalog, options) {
        Ok(planned) => return Advice::Nothing(Box::new(planned)),
        Err(refusal) => refusal,
    };
    let search = Search { known: RefCell::default(), create, owners, options };
    let slots = |noise_only| slots::of(create, &owners, options.consumer, noise_only);
    let is_asked = create.settings.accuracy.is_asked();
    let exact = || is_asked.then(|| search.smallest(&slots(true), MAX_NOISE).0).flatten();
    let slots = slots(false);
    let (found, edits) =
        exact().map_or_else(|| search.smallest(&slots, MAX_EDITS), |own| (Some(own), 0));
    let Some((change, grants)) = found else { return Advice::Impossible { refusal, edits } };
    let own: Vec<Slot> = slots.into_iter().filter(|slot| !slot.asks_owners()).collect();
    let without_grants = if grants { search.smallest(&own, MAX_EDITS).0 } else { None };
    Advice::Change {
        refusal,
        change: Box::new(change),
        without_grants: without_grants.map(|(change, _)| Box::new(change)),
    }
}

/// A query that is answered, and narrower bounds that it takes.
struct BoundedPlan {
    planned: PlannedQuery,
    query: Create,
    bounds: Option<Bounds>,
}

struct Search<'a> {
    /// What the planner said of queries and choices.
    known: RefCell<HashMap<String, Result<PlannedQuery, Vec<Finding>>>>,
    create: &'a Create,
    owners: Owners<'a>,
    options: &'a PlanOptions<'a>,
}

impl Search<'_> {
    /// The smallest change, whether it asks owners for anything, and the number of edits up to
    /// which all changes were tried.
    fn smallest(&self, slots: &[Slot], most: usize) -> (Option<(Suggestion, bool)>, usize) {
        let most = most.min(slots.len());
        for edits in 1..=most {
            let mut candidates = Vec::new();
            if !combine(slots, edits, &mut Vec::new(), &mut candidates) {
                return (None, edits - 1);
            }
            candidates.sort_by_cached_key(|candidate| order(candidate));
            for candidate in &candidates {
                if let Some(found) = self.tried(candidate) {
                    let grants = candidate.iter().any(|edit| edit.grant().is_some());
                    return (Some((found, grants)), edits);
                }
            }
        }
        (None, most)
    }

    /// Plans the query with these edits.
    fn tried(&self, edits: &[&Edit]) -> Option<Suggestion> {
        let known = self.owners.catalog.schema(&self.create.from.text)?;
        let fixes: Vec<Fix> = edits.iter().filter_map(|edit| edit.fix().cloned()).collect();
        let query = match fixes.is_empty() {
            true => self.create.clone(),
            false => apply_fixes(self.create, &fixes, Some(&known.schema))?,
        };
        let grants: Vec<&Grant> = edits.iter().filter_map(|edit| edit.grant()).collect();
        let found: Vec<SolvedNumber> = edits.iter().filter_map(|edit| edit.found()).collect();
        let granted = |section, attribute| {
            let own = grants.iter().filter(move |own| own.section == section);
            own.filter(move |own| own.attribute == attribute).map(|own| &own.option)
        };
        if !self.may_pass(&query, found.contains(&SolvedNumber::Population), &granted) {
            return None;
        }
        let mut policies = self.owners.policies.clone();
        for grant in &grants {
            policies = policies.with_choice(grant.section, grant.attribute, grant.option.clone());
        }
        let changed;
        let catalog = match grants.is_empty() {
            true => self.owners.catalog,
            false => {
                changed = self.with_policies(&policies, &grants);
                &changed
            }
        };
        let BoundedPlan { planned, query, bounds } =
            self.reached(&query, &found, (catalog, Some(format!("{grants:?}").as_str())))?;
        let noise = planned.plans.iter().find_map(|plan| plan.privacy.as_ref());
        let query = stated(query, &fixes, noise);
        let changes = words::changes(edits, (self.create, &query), bounds.as_ref(), &self.owners);
        let after = if changes.iter().all(Change::is_grant) { self.create } else { &query };
        let chosen = query.settings.accuracy.is_asked() && noise.is_some();
        let (cost, budget) = (planned.cost(), planned.budget());
        Some(Suggestion {
            changes,
            // The planner states the noise that it chose.
            query: if chosen { planned.sql } else { after.to_string() },
            query_changed: after != self.create || chosen,
            policies,
            streams: planned.plans.iter().map(|plan| plan.streams.len()).sum(),
            cost,
            budget,
            accuracy: planned.accuracy,
        })
    }

    /// Whether some owners have a choice for every attribute that could allow the query. Most
    /// changes fail this, and it is quickly checked.
    fn may_pass<'g, I: Iterator<Item = &'g ResolvedOption>>(
        &self,
        query: &Create,
        any_population: bool,
        granted: &impl Fn(Section, u16) -> I,
    ) -> bool {
        let Some(known) = self.owners.catalog.schema(&query.from.text) else { return false };
        let attributes = slots::attributes(query, &known.schema);
        let mut sections: Vec<Section> = self.owners.sections.values().copied().collect();
        sections.sort_unstable();
        sections.dedup();
        let allows = |option: &ResolvedOption| {
            passes(option, query, any_population, self.owners.sections.len())
        };
        sections.into_iter().any(|section| {
            let policy = self.owners.policies.of_section(section);
            attributes.iter().all(|attribute| {
                let chosen = policy.attribute(*attribute).into_iter();
                chosen.flat_map(|own| &own.alternatives).any(allows)
                    || granted(section, *attribute).any(allows)
            })
        })
    }

    /// The streams with changed policies.
    fn with_policies(&self, policies: &Policies, grants: &[&Grant]) -> Catalog {
        let mut catalog = self.owners.catalog.clone();
        for stream in self.owners.catalog.streams() {
            let section = self.owners.sections.get(&stream.stream);
            if let Some(section) = section
                && grants.iter().any(|grant| grant.section == *section)
            {
                let mut stream = stream.clone();
                stream.policy = policies.of_section(*section).clone();
                catalog.put_stream(stream);
            }
        }
        catalog
    }

    /// Plans the query with numbers that the planner names when it refuses: each once.
    fn reached(
        &self,
        query: &Create,
        found: &[SolvedNumber],
        under: (&Catalog, Option<&str>),
    ) -> Option<BoundedPlan> {
        let findings = match self.answered(query, under) {
            Ok(planned) if found.is_empty() => {
                return Some(BoundedPlan { planned, query: query.clone(), bounds: None });
            }
            // Fewer edits are enough.
            Ok(_) => return None,
            Err(_) if found.is_empty() => return None,
            Err(findings) => findings,
        };
        for (position, kind) in found.iter().enumerate() {
            let mut rest = found.to_vec();
            rest.remove(position);
            for fix in kind.fixes(&self.all_fixes(query, &findings, under.0)) {
                let reached = if let Fix::Bounds(bounds) = fix {
                    let known = under.0.schema(&query.from.text)?;
                    let narrower = bounds.applied(under.0, known)?;
                    let reached = self.reached(query, &rest, (&narrower, None));
                    reached.map(|own| BoundedPlan { bounds: Some(bounds), ..own })
                } else {
                    let next = apply_fixes(query, std::slice::from_ref(&fix), None);
                    next.and_then(|next| {
                        let reached = self.reached(&next, &rest, under);
                        let again = reached.is_none() && self.is_named_again(*kind, query);
                        if again { self.reached(&next, found, under) } else { reached }
                    })
                };
                if reached.is_some() {
                    return reached;
                }
            }
        }
        None
    }

    /// What the planner says, which many changes ask alike: of the same query under the same choices.
    fn answered(
        &self,
        query: &Create,
        (catalog, grants): (&Catalog, Option<&str>),
    ) -> Result<PlannedQuery, Vec<Finding>> {
        let say = || answer(query, catalog, self.options);
        let Some(grants) = grants else { return say() };
        let mut known = self.known.borrow_mut();
        known.entry(format!("{query}{grants}")).or_insert_with(say).clone()
    }

    /// Whether the planner may name another number of this kind once the query has the first: what
    /// policies and the schema allow, and then what the error takes.
    fn is_named_again(&self, kind: SolvedNumber, query: &Create) -> bool {
        let known = self.owners.catalog.schema(&query.from.text);
        let most = known.map_or(u64::MAX, |known| known.schema.capacity.events);
        let is_above = query.settings.events.is_some_and(|events| events > most);
        kind == SolvedNumber::Population || (kind == SolvedNumber::Events && is_above)
    }

    /// What the planner would change. If it refuses a query that says how exact results have to
    /// be for another reason, that of the same query without it.
    fn all_fixes(&self, query: &Create, findings: &[Finding], catalog: &Catalog) -> Vec<Fix> {
        let of = |findings: &[Finding]| -> Vec<Fix> {
            let known = findings.iter().flat_map(|finding| match &finding.rule {
                RuleError::OutOfReach { remedy, .. } => remedy.fixes(),
                _ => Vec::new(),
            });
            findings.iter().filter_map(|finding| finding.fix.clone()).chain(known).collect()
        };
        let mut fixes = of(findings);
        if query.settings.epsilon.is_none() {
            // What is refused is the query with noise.
            let is_noise = |fix: &&Fix| matches!(fix, Fix::Noise(..) | Fix::Epsilon(_));
            let noise = fixes.iter().find(is_noise).cloned();
            let noisy = noise.and_then(|fix| apply_fixes(query, &[fix], None));
            let refused = noisy.and_then(|noisy| attempt(&noisy, catalog, self.options).err());
            fixes.extend(refused.iter().flat_map(|findings| of(findings)));
        }
        fixes
    }
}

/// The query with the ε that the planner chose, or without an error that exact results meet.
fn stated(mut query: Create, fixes: &[Fix], noise: Option<&Privacy>) -> Create {
    match noise {
        Some(own) if fixes.contains(&Fix::AnyEpsilon) => {
            let micro = i64::try_from(own.micro_epsilon).unwrap_or(i64::MAX);
            query.settings.epsilon = Some(Decimal::from_scaled(micro, 6));
        }
        None if fixes.contains(&Fix::NoNoise) => query.settings.accuracy = Accuracy::default(),
        _ => {}
    }
    query
}

/// Changes compared: by their weight, then by what they ask of whom.
fn order(edits: &[&Edit]) -> (u32, Vec<(u32, Vec<u64>)>) {
    let weight = edits.iter().map(|edit| edit.weight as u32).sum();
    (weight, edits.iter().map(|edit| (edit.weight as u32, edit.detail.clone())).collect())
}

/// All ways to take one edit each from so many slots. False if there are too many.
fn combine<'a>(
    slots: &'a [Slot],
    edits: usize,
    chosen: &mut Vec<&'a Edit>,
    out: &mut Vec<Vec<&'a Edit>>,
) -> bool {
    if edits == 0 {
        out.push(chosen.clone());
        return out.len() <= MAX_CANDIDATES;
    }
    for (position, slot) in slots.iter().enumerate() {
        let rest = slots.get(position + 1..).unwrap_or_default();
        for edit in &slot.0 {
            chosen.push(edit);
            let few = combine(rest, edits - 1, chosen, out);
            chosen.pop();
            if !few {
                return false;
            }
        }
    }
    true
}
