//! What a plan requires of policies.

use super::{ComplianceError, RequirementError};
use crate::budget::{Calibration, Cost, Epsilon};
use crate::fraction::Fraction;
use crate::layout::{Field, FieldStatistic, Layout, MAX_WORDS, Packing, PairMoment};
use crate::plan::{NotVerifiableError, Plan};
use crate::policy::{ResolvedOption, ResolvedPolicy};
use crate::privacy::allows_window;
use crate::schema::{Budget, Edges, Generalisation, OptionKind, Schema};
use std::collections::BTreeSet;

/// A plan whose form has been checked. Whether a policy allows it is still open.
#[derive(Debug)]
pub struct Demand<'a> {
    plan: &'a Plan,
    schema: &'a Schema,
    rows: Vec<Row<'a>>,
    noise: Option<Calibration>,
}

/// A row of the release in terms of its field.
#[derive(Debug)]
struct Row<'a> {
    number: usize,
    statistic: FieldStatistic,
    /// Sets of cells whose sums it reveals, if the field has a grid: one set, or one for each
    /// digit of a packed word, since these are revealed separately.
    sums: Vec<Vec<u16>>,
    grid: Option<(u16, &'a Edges)>,
}

impl<'a> Demand<'a> {
    /// Reads a plan and checks everything that does not depend on a policy.
    ///
    /// # Errors
    /// If the plan is for another schema, contradicts itself, or releases an attribute that
    /// it does not name.
    pub fn of(
        plan: &'a Plan,
        schema: &'a Schema,
        layout: &Layout,
    ) -> Result<Demand<'a>, ComplianceError> {
        if plan.schema != schema.id() {
            return Err(ComplianceError::OtherSchema);
        }
        let (requested, tick) = (plan.window, schema.tick);
        if requested.0 == 0 || tick.0 == 0 || requested.0 % tick.0 != 0 {
            return Err(ComplianceError::WindowOffTick { requested, tick });
        }
        check_population(plan, schema)?;
        if !is_share(plan.alpha) || !is_share(plan.dropout) {
            return Err(ComplianceError::BadFraction);
        }
        if plan.integrity.is_verified() && schema.frames.is_events() {
            return Err(NotVerifiableError::Frames.into());
        }
        plan.bounded_terms(schema, layout)?;
        let rows = rows(plan, schema, layout)?;
        check_attributes(plan, schema, &rows)?;
        let noise = plan.check_noise(schema, layout)?;
        Ok(Demand { plan, schema, rows, noise })
    }

    /// −log2 of the probability mass that the noise samplers of a window, or of running
    /// totals, omit.
    #[must_use]
    pub fn slack_bits(&self) -> u32 {
        self.plan.slack_bits()
    }

    /// What a window, or running totals over all their windows, costs an attribute, if
    /// anything.
    #[must_use]
    pub fn cost(&self, attribute: u16) -> Option<Cost> {
        let charges = self.noise.as_ref().map_or(&[][..], |noise| &noise.charges);
        charges.iter().find(|(charged, _)| *charged == attribute).map(|(_, cost)| *cost)
    }

    /// Whether a stream's policy allows it.
    ///
    /// # Errors
    /// For the first attribute that does not: the unmet requirements of the closest chosen
    /// option.
    pub fn allowed_by(&self, policy: &ResolvedPolicy) -> Result<(), ComplianceError> {
        // A policy of another length was resolved against another schema.
        if policy.attributes.len() != self.schema.attributes.len() {
            return Err(ComplianceError::OtherSchema);
        }
        self.plan
            .attributes
            .iter()
            .try_for_each(|attribute| self.attribute(*attribute, policy).map(|_| ()))
    }

    /// The budgets that a window is charged to if a policy allows it, by attribute, with the
    /// cost. An attribute that is also allowed without noise is not charged.
    ///
    /// # Errors
    /// As [`Demand::allowed_by`].
    pub fn charges(
        &self,
        policy: &ResolvedPolicy,
    ) -> Result<Vec<(u16, Budget, Cost)>, ComplianceError> {
        self.allowed_by(policy)?;
        let mut charges = Vec::new();
        for attribute in &self.plan.attributes {
            let budget = self.attribute(*attribute, policy)?.budget;
            charges
                .extend(budget.zip(self.cost(*attribute)).map(|(b, cost)| (*attribute, b, cost)));
        }
        Ok(charges)
    }

    /// The option that allows the plan for one attribute. Options without noise come first,
    /// since they cost nothing.
    fn attribute<'p>(
        &self,
        attribute: u16,
        policy: &'p ResolvedPolicy,
    ) -> Result<&'p ResolvedOption, ComplianceError> {
        let mut with_noise = None;
        let mut nearest: Option<(&ResolvedOption, Vec<RequirementError>)> = None;
        for option in policy.attribute(attribute).into_iter().flat_map(|own| &own.alternatives) {
            if option.kind == OptionKind::Private {
                continue;
            }
            let denials = self.denials(attribute, option);
            if denials.is_empty() {
                match option.budget {
                    None => return Ok(option),
                    Some(_) => with_noise = with_noise.or(Some(option)),
                }
            }
            if !denials.is_empty()
                && nearest.as_ref().is_none_or(|(_, fewest)| denials.len() < fewest.len())
            {
                nearest = Some((option, denials));
            }
        }
        if let Some(option) = with_noise {
            return Ok(option);
        }
        Err(match nearest {
            None => ComplianceError::Private { attribute },
            Some((option, denials)) => {
                let (option, kind) = (option.name.clone(), option.kind);
                ComplianceError::Policy { attribute, option, kind, denials }
            }
        })
    }

    /// Who decides what the plan's rows say.
    #[cfg(feature = "query")]
    pub(crate) fn integrity(&self) -> crate::plan::Integrity {
        self.plan.integrity
    }

    /// The plan's consumer.
    #[cfg(feature = "query")]
    pub(crate) fn consumer(&self) -> &str {
        &self.plan.consumer
    }

    /// All requirements of an option that the plan does not meet.
    fn denials(&self, attribute: u16, option: &ResolvedOption) -> Vec<RequirementError> {
        let plan = self.plan;
        let mut denials = Vec::new();
        if option.kind == OptionKind::DpAggregate {
            denials.extend(self.noise_denial(attribute, option));
        }
        let (requested, allowed) = (plan.window, option.window);
        if allowed.0 == 0 || requested.0 % allowed.0 != 0 {
            denials.push(RequirementError::Window { requested, allowed });
        }
        let (requested, min) = (plan.population.min, option.min_population);
        if requested < min {
            denials.push(RequirementError::Population { requested, min });
        }
        if less(plan.alpha, option.alpha) {
            denials.push(RequirementError::Alpha { requested: plan.alpha, min: option.alpha });
        }
        let (requested, min) = (plan.colluders, option.colluders);
        if requested < min {
            denials.push(RequirementError::Colluders { requested, min });
        }
        if less(option.dropout, plan.dropout) {
            denials
                .push(RequirementError::Dropout { requested: plan.dropout, max: option.dropout });
        }
        // A result that the service opens is not released to the consumer alone.
        let sealed = plan.sealed_to.is_some() && option.to.contains(&plan.consumer);
        if !option.to.is_empty() && !sealed {
            denials.push(RequirementError::Consumer { allowed: option.to.clone() });
        }
        if plan.integrity.is_verified() && !option.verified {
            denials.push(RequirementError::Integrity);
        }
        denials.extend(self.generalise_denials(attribute, option));
        denials
    }

    /// The requirement of an option with noise that the plan's noise does not meet.
    fn noise_denial(&self, attribute: u16, option: &ResolvedOption) -> Option<RequirementError> {
        let (Some(privacy), Some(budget)) = (&self.plan.privacy, &option.budget) else {
            return Some(RequirementError::NeedsNoise);
        };
        if !privacy.protects(budget.unit, self.plan.window) {
            return Some(RequirementError::Unit);
        }
        let slack = self.slack_bits();
        let requested = self.cost(attribute).filter(|cost| !allows_window(*cost, slack, budget))?;
        let max = budget.window_micro_epsilon.min(budget.total_micro_epsilon);
        let pure = budget.atto_delta == 0;
        Some(RequirementError::Epsilon { requested, max: Epsilon::from_micro(max), pure })
    }

    /// For each generalised attribute, the first row that reveals more of it.
    fn generalise_denials(&self, attribute: u16, option: &ResolvedOption) -> Vec<RequirementError> {
        let own = |row: &&Row<'_>| row.statistic.attributes().any(|other| other == attribute);
        let first = |generalise| self.rows.iter().filter(own).find_map(|row| row.finer(generalise));
        option.generalise.iter().filter_map(first).collect()
    }
}

impl Row<'_> {
    fn finer(&self, generalise: &Generalisation) -> Option<RequirementError> {
        let (attribute, row) = (generalise.attribute, self.number);
        if moments_of(self.statistic).any(|other| other == attribute) {
            return Some(RequirementError::NotBucketed { attribute, row });
        }
        let (bucketed, grid) = self.grid?;
        if bucketed != attribute {
            return None;
        }
        let allowed = generalise
            .groups(grid)
            .is_some_and(|starts| self.sums.iter().all(|cells| is_union(cells, &starts, grid)));
        (!allowed).then_some(RequirementError::Finer { attribute, row })
    }
}

/// Attributes for which a statistic holds more than a count per bucket.
fn moments_of(statistic: FieldStatistic) -> impl Iterator<Item = u16> {
    let (one, other) = match statistic {
        FieldStatistic::Sum(a)
        | FieldStatistic::SumOfSquares(a)
        | FieldStatistic::Sketch(a, _)
        | FieldStatistic::Any(a)
        | FieldStatistic::All(a)
        | FieldStatistic::Threshold { of: a, .. } => (Some(a), None),
        FieldStatistic::By { of, order: 1.., .. } => (Some(of), None),
        FieldStatistic::Pair { moment: PairMoment::Count, .. } => (None, None),
        FieldStatistic::Pair { y, x, .. } => (Some(y), Some(x)),
        _ => (None, None),
    };
    one.into_iter().chain(other)
}

/// Whether ascending `cells` are a union of whole groups. Each group begins at a start and
/// ends before the next start.
fn is_union(cells: &[u16], starts: &[u16], grid: &Edges) -> bool {
    let ends = starts.iter().skip(1).copied().chain(std::iter::once(grid.bins()));
    starts.iter().zip(ends).all(|(start, end)| {
        let from = cells.partition_point(|cell| cell < start);
        let to = cells.partition_point(|cell| *cell < end);
        to == from || to - from == usize::from(end.saturating_sub(*start))
    })
}

fn check_population(plan: &Plan, schema: &Schema) -> Result<(), ComplianceError> {
    let (min, max) = (plan.population.min, plan.population.max);
    if min == 0 || min > max {
        return Err(ComplianceError::EmptyPopulation { min, max });
    }
    if u64::from(max) > schema.capacity.population {
        return Err(ComplianceError::BeyondCapacity {
            requested: max,
            max: schema.capacity.population,
        });
    }
    let (streams, max) = (plan.streams.len(), schema.capacity.population);
    if streams as u64 > max {
        return Err(ComplianceError::TooManyStreams { streams, max });
    }
    Ok(())
}

/// All rows in terms of their fields.
fn rows<'a>(
    plan: &Plan,
    schema: &'a Schema,
    layout: &Layout,
) -> Result<Vec<Row<'a>>, ComplianceError> {
    let Some((last, others)) = plan.release.rows.split_last() else {
        return Err(ComplianceError::CheckWord);
    };
    if last != &[layout.check_word()] {
        return Err(ComplianceError::CheckWord);
    }
    if others.len() > MAX_WORDS {
        return Err(ComplianceError::TooManyRows);
    }
    let read = |(number, words): (usize, &Vec<u16>)| {
        if words.contains(&layout.check_word()) {
            return Err(ComplianceError::CheckWord);
        }
        row(number, words, schema, layout).ok_or(ComplianceError::MalformedRow { row: number })
    };
    others.iter().enumerate().map(read).collect()
}

fn row<'a>(number: usize, words: &[u16], schema: &'a Schema, layout: &Layout) -> Option<Row<'a>> {
    let field = layout.field_at(*words.first()?)?;
    let end = field.first + field.words();
    let ascending = words.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascending || words.iter().any(|word| *word >= end) {
        return None;
    }
    let grid = field.statistic.grid(schema);
    if words.len() > 1 && (grid.is_none() || !may_add(field, words)) {
        return None;
    }
    let cells = words.iter().flat_map(|word| field.cells_of(*word));
    let sums = match field.packing {
        Packing::Digits { .. } => cells.map(|cell| vec![cell]).collect(),
        Packing::Whole | Packing::Limbs => vec![cells.collect()],
    };
    Some(Row { number, statistic: field.statistic, sums, grid })
}

/// Whether words of a field may be added. Packed digits may not, and low halves may not be
/// added to high halves.
fn may_add(field: &Field, words: &[u16]) -> bool {
    let half = |word: &u16| (word - field.first) % 2;
    match field.packing {
        Packing::Whole => true,
        Packing::Digits { .. } => false,
        Packing::Limbs => words.windows(2).all(|pair| half(&pair[0]) == half(&pair[1])),
    }
}

/// The plan must name every attribute that its rows derive from, in order. It may name
/// more: then more is locked, and more policies must allow it.
fn check_attributes(plan: &Plan, schema: &Schema, rows: &[Row<'_>]) -> Result<(), ComplianceError> {
    let Some(last) = plan.attributes.last() else { return Err(ComplianceError::NoAttribute) };
    let ascending = plan.attributes.windows(2).all(|pair| pair[0] < pair[1]);
    let derived: BTreeSet<u16> = rows.iter().flat_map(|row| row.statistic.attributes()).collect();
    let named = derived.iter().all(|attribute| plan.attributes.binary_search(attribute).is_ok());
    if ascending && named && usize::from(*last) < schema.attributes.len() {
        Ok(())
    } else {
        Err(ComplianceError::AttributesMisstated)
    }
}

fn is_share(fraction: Fraction) -> bool {
    fraction.denominator != 0 && fraction.numerator <= fraction.denominator
}

/// Whether one fraction is less than another.
fn less(one: Fraction, other: Fraction) -> bool {
    let (a, b) = (u64::from(one.numerator), u64::from(one.denominator));
    let (c, d) = (u64::from(other.numerator), u64::from(other.denominator));
    a * d < c * b
}
