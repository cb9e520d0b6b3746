//! Which streams' policies allow a release, and on which terms.
//!
//! Uses [`comply`](crate::comply), as controllers do, so that nothing is planned that they
//! would refuse.

use super::exclusion::ExclusionError;
use super::finding::Fix;
use super::population::Terms;
use crate::budget::Cost;
use crate::comply::{ComplianceError, Demand, RequirementError};
use crate::decimal::format_scaled;
use crate::fraction::Fraction;
use crate::plan::{Plan, PopulationBounds};
use crate::policy::{AttributePolicy, ResolvedOption, ResolvedPolicy};
use crate::privacy::stronger;
use crate::query::Decimal;
use crate::schema::{CoarseBuckets, Generalisation, Schema};
use std::collections::HashMap;

/// A reason why a stream cannot take part, and a possible fix.
pub(super) type Objection = (ExclusionError, Option<Fix>);

/// Judges policies for a release. Many streams have the same policy, so verdicts are
/// cached.
pub(super) struct Judge<'a> {
    schema: &'a Schema,
    demand: Demand<'a>,
    attributes: &'a [u16],
    /// The largest ε that every policy allows.
    most: Option<Decimal>,
    known: HashMap<Vec<u8>, Result<Terms, Vec<Objection>>>,
}

/// The plan with a population, α, c and dropout that meet any policy. No set of streams can
/// fix the remaining objections.
pub(super) fn most_permissible(plan: &Plan, schema: &Schema) -> Plan {
    let most = u32::try_from(schema.capacity.population).unwrap_or(u32::MAX).max(1);
    Plan {
        population: PopulationBounds { min: most, max: most },
        alpha: Fraction { numerator: 1, denominator: 1 },
        colluders: u32::MAX,
        dropout: Fraction::ZERO,
        ..plan.clone()
    }
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        schema: &'a Schema,
        demand: Demand<'a>,
        attributes: &'a [u16],
        most: Option<Decimal>,
    ) -> Judge<'a> {
        Judge { schema, demand, attributes, most, known: HashMap::new() }
    }

    /// The terms on which a policy allows the release, or all objections.
    pub(super) fn judge(&mut self, policy: &ResolvedPolicy) -> Result<Terms, Vec<Objection>> {
        // A policy holds only integers and strings, so serialisation cannot fail.
        let key = postcard::to_allocvec(policy).unwrap_or_default();
        if let Some(verdict) = self.known.get(&key) {
            return verdict.clone();
        }
        let verdict = self.terms(policy);
        self.known.insert(key, verdict.clone());
        verdict
    }

    fn terms(&self, policy: &ResolvedPolicy) -> Result<Terms, Vec<Objection>> {
        let mut objections = Vec::new();
        let mut terms: Option<Terms> = None;
        for attribute in self.attributes {
            match self.easiest(*attribute, policy) {
                Ok(option) => terms = Some(joined(terms, option)),
                Err(refusal) => objections.extend(self.objections(&refusal, policy)),
            }
        }
        match terms {
            Some(terms) if objections.is_empty() => Ok(terms),
            _ => Err(objections),
        }
    }

    /// The least demanding of the chosen options that allow the release.
    fn easiest<'p>(
        &self,
        attribute: u16,
        policy: &'p ResolvedPolicy,
    ) -> Result<&'p ResolvedOption, ComplianceError> {
        let only = |option: Option<&ResolvedOption>| {
            let alternatives = option.cloned().into_iter().collect();
            self.demand.allowed_by(&self.alone(attribute, AttributePolicy { alternatives }, policy))
        };
        let options = policy.attribute(attribute).map_or(&[][..], |own| &own.alternatives);
        let allowing = options.iter().filter(|option| only(Some(option)).is_ok());
        match allowing.min_by(|a, b| burden(a).cmp(&burden(b))) {
            Some(option) => Ok(option),
            None => {
                // Noise is the planner's to add, so what only lacks that comes first.
                let lacks_noise = |refusal: &ComplianceError| {
                    matches!(refusal, ComplianceError::Policy { denials, .. }
                        if denials[..] == [RequirementError::NeedsNoise])
                };
                let mut refusals = options.iter().filter_map(|option| only(Some(option)).err());
                if let Some(refusal) = refusals.find(lacks_noise) {
                    return Err(refusal);
                }
                let own = policy.attribute(attribute).cloned().unwrap_or_default();
                Err(self
                    .demand
                    .allowed_by(&self.alone(attribute, own, policy))
                    .err()
                    .unwrap_or(ComplianceError::Private { attribute }))
            }
        }
    }

    /// A policy that allows everything for all attributes but one.
    fn alone(
        &self,
        attribute: u16,
        own: AttributePolicy,
        policy: &ResolvedPolicy,
    ) -> ResolvedPolicy {
        let mut own = Some(own);
        let attributes = (0u16..)
            .zip(&policy.attributes)
            .map(|(position, _)| match position == attribute {
                true => own.take().unwrap_or_default(),
                false => AttributePolicy { alternatives: vec![anything()] },
            })
            .collect();
        ResolvedPolicy { attributes }
    }

    fn objections(&self, refusal: &ComplianceError, policy: &ResolvedPolicy) -> Vec<Objection> {
        match refusal {
            ComplianceError::Private { attribute } => {
                vec![(
                    ExclusionError::Private { attribute: self.name(*attribute) },
                    Some(Fix::Without(*attribute)),
                )]
            }
            ComplianceError::Policy { attribute, option, denials, .. } => {
                let own = policy.attribute(*attribute).map_or(&[][..], |own| &own.alternatives);
                let chosen = own.iter().find(|known| known.name == *option);
                denials
                    .iter()
                    .map(|denial| self.objection(*attribute, option, chosen, denial))
                    .collect()
            }
            other => vec![(ExclusionError::Refused { rule: other.rule().to_owned() }, None)],
        }
    }

    fn objection(
        &self,
        a: u16,
        option: &str,
        chosen: Option<&ResolvedOption>,
        denial: &RequirementError,
    ) -> Objection {
        let (attribute, option) = (self.name(a), option.to_owned());
        match denial {
            RequirementError::NeedsNoise => {
                let fix = self.most.map_or(Fix::Without(a), |most| Fix::Noise(most, a));
                (ExclusionError::NeedsNoise { attribute, option }, Some(fix))
            }
            RequirementError::Epsilon { requested: Cost::Concentrated(_), pure: true, .. } => {
                (ExclusionError::NoDelta { attribute, option }, Some(Fix::Laplace))
            }
            RequirementError::Epsilon { requested: asked, max: most, .. } => {
                let asked = asked.to_string();
                let fix = self.most.map(Fix::Epsilon);
                (ExclusionError::Epsilon { attribute, option, asked, most: *most }, fix)
            }
            RequirementError::Window { requested: asked, allowed } => {
                let next = asked.0.div_ceil(allowed.0.max(1)).saturating_mul(allowed.0);
                let fix = Fix::Window(alpheus_time::Span(next));
                (ExclusionError::Window { attribute, option, allowed: *allowed }, Some(fix))
            }
            RequirementError::Consumer { allowed } => {
                let asks = allowed.iter().find(|name| *name == self.demand.consumer());
                let fix = asks.or(allowed.first()).cloned().map(Fix::Consumer);
                (ExclusionError::Consumer { attribute, option, allowed: allowed.clone() }, fix)
            }
            RequirementError::Finer { attribute: bucketed, .. }
            | RequirementError::NotBucketed { attribute: bucketed, .. } => {
                let generalise = chosen
                    .and_then(|own| own.generalise.iter().find(|to| to.attribute == *bucketed));
                let buckets = generalise.map_or_else(String::new, |to| self.buckets(to));
                let fix = generalise.map(|to| Fix::Generalise(*bucketed, to.clone()));
                (ExclusionError::Finer { option, bucketed: self.name(*bucketed), buckets }, fix)
            }
            RequirementError::Integrity => {
                let word = self.demand.integrity().word().to_owned();
                (ExclusionError::Integrity { word, attribute, option }, Some(Fix::PlainIntegrity))
            }
            RequirementError::Population { requested: asked, min: least } => {
                (ExclusionError::MaximumTooLow { least: *least, most: *asked }, None)
            }
            other => (ExclusionError::Refused { rule: other.rule().to_owned() }, None),
        }
    }

    fn name(&self, attribute: u16) -> String {
        self.schema.name_of(attribute).to_owned()
    }

    fn buckets(&self, to: &Generalisation) -> String {
        let scale = self.schema.scale_of(to.attribute);
        match &to.to {
            CoarseBuckets::Width(width) => format!("width {}", format_scaled(*width, scale)),
            CoarseBuckets::Edges(edges) => {
                let edges: Vec<_> = edges.iter().map(|edge| format_scaled(*edge, scale)).collect();
                format!("edges {}", edges.join(", "))
            }
        }
    }
}

/// How demanding an option is, for sorting.
fn burden(option: &ResolvedOption) -> (u32, Fraction, u32, std::cmp::Reverse<Fraction>, bool) {
    let noise = option.budget.is_some();
    let dropout = std::cmp::Reverse(option.dropout);
    (option.min_population, option.alpha, option.colluders, dropout, noise)
}

fn joined(sofar: Option<Terms>, option: &ResolvedOption) -> Terms {
    let own = Terms {
        min: option.min_population,
        alpha: option.alpha,
        colluders: option.colluders,
        dropout: option.dropout,
        trusted: option.trusted.clone(),
        unit: option.budget.map(|budget| budget.unit),
    };
    let Some(sofar) = sofar else { return own };
    Terms {
        min: sofar.min.max(own.min),
        alpha: sofar.alpha.max(own.alpha),
        colluders: sofar.colluders.max(own.colluders),
        dropout: sofar.dropout.min(own.dropout),
        trusted: sofar.trusted.into_iter().filter(|host| own.trusted.contains(host)).collect(),
        unit: match (sofar.unit, own.unit) {
            (Some(one), Some(other)) => Some(stronger(one, other)),
            (one, other) => one.or(other),
        },
    }
}

/// An option that allows everything.
fn anything() -> ResolvedOption {
    ResolvedOption {
        name: String::new(),
        kind: crate::schema::OptionKind::Public,
        window: alpheus_time::Span(1),
        min_population: 1,
        generalise: Vec::new(),
        budget: None,
        to: Vec::new(),
        alpha: Fraction::ZERO,
        colluders: 0,
        dropout: Fraction { numerator: 1, denominator: 1 },
        missing_ticks: 0,
        split_populations: false,
        trusted: Vec::new(),
        verified: true,
        sets_per_day: None,
    }
}
