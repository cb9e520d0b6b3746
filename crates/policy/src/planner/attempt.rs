//! One attempt to plan a query.

use super::eligibility::{Judge, Objection, most_permissible};
use super::epochs::{beside_epochs, membership, sets_per_day};
use super::error::RuleError;
use super::exclusion::ExclusionError;
use super::fill::{Group, Query};
use super::filter::{selection, unknown_names};
use super::finding::{Finding, Fix};
use super::integrity::{integrity, not_boundable, not_verifiable, of_plan};
use super::noise::{self, NoiseOffers};
use super::population::{Candidate, PopulationRequest, settle};
use super::resolve::{ResolvedItems, resolve};
use super::{BudgetLife, ExclusionCount, PlanOptions, PlannedQuery};
use crate::catalog::{Catalog, CatalogSchema, CatalogStream};
use crate::comply::Demand;
use crate::fraction::Fraction;
use crate::ids::{ControllerId, OwnerId};
use crate::plan::{MaskStrategy, Plan, PopulationBounds};
use crate::privacy::Privacy;
use crate::query::{Create, Decimal, IntegrityChoice, Location, nearest};
use crate::selection::Selection;
use alpheus_time::{Span, Timestamp};
use std::collections::BTreeMap;

/// Plans the query, or returns everything that is wrong with it and how to fix it.
pub(super) fn attempt(
    create: &Create,
    catalog: &Catalog,
    options: &PlanOptions<'_>,
) -> Result<PlannedQuery, Vec<Finding>> {
    let schema = find_schema(create, catalog)?;
    let (resolved, mut findings) = resolve(&create.items, &schema.schema, &schema.layout);
    findings.extend(unknown_names(create.filter.as_ref(), &create.group_by, &schema.schema));
    findings.extend(against_the_query(create, catalog, schema));
    findings.extend(no_reader(create, options));
    findings.extend(beside_epochs(create));
    findings.extend(not_verifiable(create, schema));
    if create.settings.epsilon.is_some() {
        findings.extend(noise::meaningless(create, &resolved));
    }
    if findings.is_empty() && resolved.attributes.is_empty() {
        findings.push(Finding::plain(item_at(create), RuleError::NoAttribute));
    }
    match findings.is_empty() {
        true => {
            let selection = create.filter.as_ref().map(selection).unwrap_or_default();
            let (most, out, fitting) = (None, Vec::new(), 0);
            Attempt { create, catalog, options, schema, selection, most, out, fitting }
                .run(resolved)
        }
        false => Err(findings),
    }
}

pub(super) fn item_at(create: &Create) -> Location {
    create.items.first().map_or_else(Location::default, |item| item.at.0)
}

fn find_schema<'a>(
    create: &Create,
    catalog: &'a Catalog,
) -> Result<&'a CatalogSchema, Vec<Finding>> {
    let word = &create.from;
    catalog.schema(&word.text).ok_or_else(|| {
        let suggestion =
            nearest(&word.text, catalog.schemas().map(|known| known.schema.name.as_str()));
        let fix = suggestion.clone().map(Fix::Schema);
        let rule = RuleError::UnknownSchema { word: word.text.clone(), suggestion };
        vec![Finding { at: word.at, rule, fix }]
    })
}

/// Violations that no set of streams could fix.
fn against_the_query(create: &Create, catalog: &Catalog, schema: &CatalogSchema) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (asked, tick) = (create.window, schema.schema.tick);
    if tick.0 == 0 || asked.0 % tick.0 != 0 {
        let next = asked.0.div_ceil(tick.0.max(1)).saturating_mul(tick.0);
        let (at, fix) = (create.places.window.0, Some(Fix::Window(Span(next))));
        let word = create.window_word();
        findings.push(Finding {
            at,
            rule: RuleError::OffTick { requested: asked, tick, word },
            fix,
        });
    }
    let most = schema.schema.capacity.population;
    if let Some((min, max)) = create.population
        && u64::from(min) > most
    {
        let fix = u32::try_from(most).ok().map(|most| Fix::Population(most, max));
        findings.push(Finding {
            at: create.places.population.0,
            rule: RuleError::BeyondCapacity { requested: min, max: most },
            fix,
        });
    }
    findings.extend(beside_totals(create));
    let name = &create.name.text;
    if catalog.query(name).is_some() {
        let free =
            (2..).map(|n: u64| format!("{name}_{n}")).find(|free| catalog.query(free).is_none());
        let rule = RuleError::NameTaken { name: name.clone() };
        findings.push(Finding { at: create.name.at, rule, fix: free.map(Fix::Name) });
    }
    findings
}

/// Clauses that cannot be used with running totals.
fn beside_totals(create: &Create) -> Vec<Finding> {
    if create.cumulating.is_none() {
        return Vec::new();
    }
    let finding = |at, clause| {
        let fix = Some(Fix::Tumbling);
        Finding { at, rule: RuleError::NotOfTotals { clause }, fix }
    };
    let mechanism = create.settings.mechanism.map(|_| finding(create.places.window.0, "mechanism"));
    let sealed = create.release_to.as_ref().map(|word| finding(word.at, "RELEASE TO"));
    mechanism.into_iter().chain(sealed).collect()
}

/// Results are sealed to the consumer's key, so it must be known.
fn no_reader(create: &Create, options: &PlanOptions<'_>) -> Option<Finding> {
    let word = create.release_to.as_ref()?;
    let unknown = (options.readers)(&word.text).is_none();
    unknown.then(|| Finding::plain(word.at, RuleError::NoReader { consumer: word.text.clone() }))
}

/// The first multiple of `span` from `at` on.
fn next_multiple(at: Timestamp, span: Span) -> Timestamp {
    let before = at.floor(span);
    if before == at { at } else { before.plus(span) }
}

struct Attempt<'a> {
    create: &'a Create,
    catalog: &'a Catalog,
    options: &'a PlanOptions<'a>,
    schema: &'a CatalogSchema,
    /// What the query says of metadata.
    selection: Selection,
    /// The largest ε that every policy allows.
    most: Option<Decimal>,
    /// All objections to each stream that does not take part.
    out: Vec<Vec<Objection>>,
    fitting: u32,
}

impl<'a> Attempt<'a> {
    fn run(mut self, resolved: ResolvedItems) -> Result<PlannedQuery, Vec<Finding>> {
        let offered = NoiseOffers::new(
            self.schema,
            &resolved,
            self.catalog.streams().filter(|own| self.fits(own)),
        );
        let privacy = offered.request(self.create);
        self.most = offered.max_epsilon(self.create);
        self.check_settings()?;
        let mut template = self.template(resolved, privacy);
        noise::fill(&mut template, self.schema)
            .map_err(|fault| vec![noise::finding(self.create, fault)])?;
        not_boundable(&template, self.create, self.schema).map_or(Ok(()), |one| Err(vec![one]))?;
        let groups = self.candidates(&template)?;
        let (mut plans, mut budgets) = (Vec::new(), Vec::new());
        for (index, (group, candidates)) in groups.into_iter().enumerate() {
            if let Some((plan, life)) = self.group(&template, index as u64, group, candidates)? {
                plans.push(plan);
                budgets.push(life);
            }
        }
        if plans.is_empty() {
            return Err(self.nobody());
        }
        let sets_per_day = sets_per_day(&plans, self.catalog);
        Ok(PlannedQuery {
            name: self.create.name.text.clone(),
            sql: self.create.to_string(),
            plans,
            fitting: self.fitting,
            excluded: self.excluded(),
            budgets,
            accuracy: Vec::new(),
            membership: membership(self.create),
            masks: self.create.settings.masks,
            sets_per_day,
            raised_from: None,
        })
    }

    /// A query with settings for noise must set epsilon.
    fn check_settings(&self) -> Result<(), Vec<Finding>> {
        let settings = &self.create.settings;
        // Bounds of one owner's window depend on its events, also without noise.
        let bounded = settings.integrity == Some(IntegrityChoice::Bounded);
        let noise = settings.delta.is_some()
            || settings.mechanism.is_some()
            || (settings.events.is_some() && !bounded);
        // Without noise, running totals are not needed: the reader can add up the windows.
        let needs_epsilon = noise || self.create.cumulating.is_some();
        if settings.epsilon.is_some() || !needs_epsilon {
            return Ok(());
        }
        let fix = Some(self.most.map_or(Fix::NoNoise, Fix::Epsilon));
        Err(vec![Finding { at: Location::default(), rule: RuleError::NoEpsilon, fix }])
    }

    /// The plan before its members are known.
    fn template(&self, resolved: ResolvedItems, privacy: Option<Privacy>) -> Plan {
        let window = self.create.window;
        let integrity = integrity(self.create, &self.schema.schema);
        // Sessions' sums are known from an anchor on.
        let anchor = self.schema.schema.frames.anchor().filter(|_| integrity.is_verified());
        let now = anchor.map_or(self.options.now, |anchor| next_multiple(self.options.now, anchor));
        let next = next_multiple(now, window);
        let release_to = self.create.release_to.as_ref().map(|word| word.text.as_str());
        let consumer = release_to.unwrap_or(self.options.consumer);
        Plan {
            nonce: [0; 16],
            name: self.create.name.text.clone(),
            consumer: consumer.to_owned(),
            sealed_to: release_to.and_then(self.options.readers),
            schema: self.schema.id,
            group: Vec::new(),
            window,
            grace: self.create.grace.unwrap_or(self.options.grace),
            from: self.options.from.unwrap_or(next),
            release: resolved.release,
            select: resolved.select,
            integrity,
            // Those who decide what a row says check whom it is of.
            selection: if integrity.is_verified() {
                self.selection.clone()
            } else {
                Selection::default()
            },
            privacy,
            attributes: resolved.attributes,
            population: PopulationBounds { min: 1, max: 1 },
            alpha: Fraction::ZERO,
            colluders: 0,
            dropout: Fraction::ZERO,
            delta_exponent: self
                .create
                .settings
                .mask_delta_exponent
                .unwrap_or(self.options.mask_delta_exponent),
            masks: MaskStrategy::Single,
            epoch: None,
            roster: Vec::new(),
            streams: Vec::new(),
        }
    }

    /// Streams whose policies allow the release, by group.
    fn candidates(
        &mut self,
        template: &Plan,
    ) -> Result<BTreeMap<Group, Vec<Candidate<'a>>>, Vec<Finding>> {
        let obliging = most_permissible(template, &self.schema.schema);
        let demand = Demand::of(&obliging, &self.schema.schema, &self.schema.layout)
            .map_err(|refusal| vec![self.refused(refusal.rule())])?;
        let mut judge = Judge::new(&self.schema.schema, demand, &template.attributes, self.most);
        let mut groups: BTreeMap<Group, Vec<Candidate<'a>>> = BTreeMap::new();
        let mut homes: BTreeMap<OwnerId, ControllerId> = BTreeMap::new();
        for stream in self.catalog.streams() {
            if !self.fits(stream) {
                continue;
            }
            self.fitting = self.fitting.saturating_add(1);
            match self.consider(stream, template, &mut judge, &mut homes) {
                Ok((group, candidate)) => groups.entry(group).or_default().push(candidate),
                Err(objections) => self.out.push(objections),
            }
        }
        if self.fitting == 0 {
            let rule = RuleError::NoStreams { schema: self.schema.schema.name.clone() };
            let fix = self.create.filter.is_some().then_some(Fix::NoFilter);
            return Err(vec![Finding { at: self.create.from.at, rule, fix }]);
        }
        Ok(groups)
    }

    /// Whether a stream has this schema, in any version, and matches `WHERE`.
    fn fits(&self, stream: &CatalogStream) -> bool {
        let name = &self.schema.schema.name;
        let of_schema = stream.schema == self.schema.id
            || self
                .catalog
                .schemas()
                .any(|known| known.id == stream.schema && known.schema.name == *name);
        of_schema && self.selection.selects(|name| stream.value(name))
    }

    fn consider(
        &self,
        stream: &'a CatalogStream,
        template: &Plan,
        judge: &mut Judge<'_>,
        homes: &mut BTreeMap<OwnerId, ControllerId>,
    ) -> Result<(Group, Candidate<'a>), Vec<Objection>> {
        if stream.schema != self.schema.id {
            return Err(vec![(ExclusionError::OtherVersion, None)]);
        }
        let group = self.group_of(stream)?;
        let mut objections = Vec::new();
        if let Some(locked) = self.catalog.holder(stream, &template.attributes) {
            let query = self
                .catalog
                .query_of(&locked.holder)
                .map_or_else(String::new, |query| query.name.clone());
            let attribute = self.schema.schema.name_of(locked.attribute).to_owned();
            objections.push((
                ExclusionError::Locked { attribute, query },
                Some(Fix::Without(locked.attribute)),
            ));
        }
        match judge.judge(&stream.policy) {
            Ok(terms) if objections.is_empty() => {
                // An owner is counted once, so all their streams must be at one controller.
                match *homes.entry(stream.owner).or_insert(stream.controller) == stream.controller {
                    true => Ok((group, Candidate { stream, terms })),
                    false => Err(vec![(ExclusionError::SplitOwner, None)]),
                }
            }
            Ok(_) => Err(objections),
            Err(more) => {
                objections.extend(more);
                Err(objections)
            }
        }
    }

    fn group_of(&self, stream: &CatalogStream) -> Result<Group, Vec<Objection>> {
        let value = |word: &crate::query::Word| match stream.value(&word.text) {
            Some(value) => Ok((word.text.clone(), value.to_owned())),
            None => Err(vec![(
                ExclusionError::NoValue { metadata: word.text.clone() },
                Some(Fix::NoGroups),
            )]),
        };
        self.create.group_by.iter().map(value).collect()
    }

    fn asked(&self) -> PopulationRequest {
        let capacity = u32::try_from(self.schema.schema.capacity.population).unwrap_or(u32::MAX);
        let (min, max) = self.create.population.unwrap_or((1, capacity));
        PopulationRequest {
            bounds: PopulationBounds { min, max: max.min(capacity) },
            alpha: self.create.settings.alpha,
            dropout: self.create.settings.dropout,
            streams: self.schema.schema.capacity.population,
        }
    }

    /// The plan of a group, if enough streams may take part.
    fn group(
        &mut self,
        template: &Plan,
        index: u64,
        group: Group,
        candidates: Vec<Candidate<'a>>,
    ) -> Result<Option<(Plan, Option<BudgetLife>)>, Vec<Finding>> {
        let settled = settle(candidates, self.asked());
        for (candidate, exclusion) in settled.excluded {
            let fix = self.population_fix(&exclusion, &candidate);
            self.out.push(vec![(exclusion, fix)]);
        }
        let Some((members, numbers)) = settled.members else { return Ok(None) };
        let query = Query { create: self.create, options: self.options, template };
        let mut plan =
            query.plan(index, group, &members, numbers).map_err(|finding| vec![*finding])?;
        noise::size(&mut plan, &members, self.schema)
            .map_err(|fault| vec![noise::finding(self.create, fault)])?;
        let against =
            of_plan(&plan, self.create).or_else(|| not_boundable(&plan, self.create, self.schema));
        if let Some(finding) = against {
            return Err(vec![finding]);
        }
        let demand = Demand::of(&plan, &self.schema.schema, &self.schema.layout);
        let allowed = demand.and_then(|demand| {
            members.iter().try_for_each(|member| demand.allowed_by(&member.stream.policy))?;
            Ok(noise::budget_life(&demand, &members, &plan))
        });
        // Never plan what controllers would refuse. This should not happen.
        match allowed {
            Ok(life) => Ok(Some((plan, life))),
            Err(refusal) => Err(vec![self.refused(refusal.rule())]),
        }
    }

    fn refused(&self, rule: &str) -> Finding {
        let exclusion = ExclusionError::Refused { rule: rule.to_owned() };
        Finding::plain(
            item_at(self.create),
            RuleError::Excluded {
                streams: self.fitting,
                of: self.fitting,
                exclusion,
                window: self.create.window,
                word: self.create.window_word(),
            },
        )
    }

    fn population_fix(&self, exclusion: &ExclusionError, candidate: &Candidate<'_>) -> Option<Fix> {
        let bounds = self.asked().bounds;
        match exclusion {
            ExclusionError::MaximumTooLow { least, .. } => {
                Some(Fix::Population(bounds.min.min(*least), *least))
            }
            ExclusionError::TooFew { counted, needed, .. }
                if bounds.min == *needed
                    && *counted >= candidate.terms.min.max(1)
                    && *counted < *needed =>
            {
                Some(Fix::Population(*counted, bounds.max))
            }
            ExclusionError::TooFew { .. } if !self.create.group_by.is_empty() => {
                Some(Fix::NoGroups)
            }
            ExclusionError::TooFew { .. } if self.create.filter.is_some() => Some(Fix::NoFilter),
            _ => None,
        }
    }

    /// The numbers of streams that do not take part, by their first reason.
    fn excluded(&self) -> Vec<ExclusionCount> {
        let mut counts: BTreeMap<&ExclusionError, u32> = BTreeMap::new();
        for (exclusion, _) in self.out.iter().filter_map(|objections| objections.first()) {
            *counts.entry(exclusion).or_default() += 1;
        }
        counts
            .into_iter()
            .map(|(reason, streams)| ExclusionCount { reason: reason.clone(), streams })
            .collect()
    }

    /// Why nobody takes part: every reason with its count, fixable and common ones first.
    fn nobody(&self) -> Vec<Finding> {
        let mut counts: BTreeMap<&ExclusionError, (u32, Option<&Fix>)> = BTreeMap::new();
        for (exclusion, fix) in self.out.iter().flatten() {
            let entry = counts.entry(exclusion).or_insert((0, fix.as_ref()));
            entry.0 += 1;
        }
        let mut reasons: Vec<_> = counts.into_iter().collect();
        reasons.sort_by_key(|(_, (streams, fix))| (fix.is_none(), std::cmp::Reverse(*streams)));
        let of = self.fitting;
        let finding =
            |(exclusion, (streams, fix)): (&ExclusionError, (u32, Option<&Fix>))| Finding {
                at: self.at(exclusion),
                rule: RuleError::Excluded {
                    streams,
                    of,
                    exclusion: exclusion.clone(),
                    window: self.create.window,
                    word: self.create.window_word(),
                },
                fix: fix.cloned(),
            };
        reasons.into_iter().map(finding).collect()
    }

    /// The location in the query that an exclusion refers to.
    fn at(&self, exclusion: &ExclusionError) -> Location {
        match exclusion {
            ExclusionError::Window { .. } => self.create.places.window.0,
            ExclusionError::TooFew { .. } | ExclusionError::MaximumTooLow { .. } => {
                self.create.places.population.0
            }
            ExclusionError::Consumer { .. } => {
                self.create.release_to.as_ref().map_or(Location::default(), |word| word.at)
            }
            ExclusionError::Private { attribute }
            | ExclusionError::NeedsNoise { attribute, .. }
            | ExclusionError::Epsilon { attribute, .. }
            | ExclusionError::NoDelta { attribute, .. }
            | ExclusionError::Locked { attribute, .. }
            | ExclusionError::Finer { bucketed: attribute, .. } => self.item_naming(attribute),
            _ => Location::default(),
        }
    }

    fn item_naming(&self, attribute: &str) -> Location {
        let position = self.schema.schema.position(attribute);
        let naming = |item: &&crate::query::Item| {
            position.is_some_and(|position| super::fix::names(item, position, &self.schema.schema))
        };
        self.create.items.iter().find(naming).map_or_else(Location::default, |item| item.at.0)
    }
}
