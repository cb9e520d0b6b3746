//! `EXPLAIN`: what a query will reveal, to whom, about how many owners, and what can go
//! wrong, before it runs.

mod epochs;
mod integrity;
mod privacy;

pub use integrity::receipt_bytes;
pub use privacy::PrivacyExplanation;

use crate::budget::Epsilon;
use crate::catalog::CatalogSchema;
use crate::columns::{Column, columns};
use crate::fraction::Fraction;
use crate::ids::PlanId;
use crate::layout::{FieldStatistic, Packing};
use crate::plan::{MaskStrategy, Plan};
use crate::planner::{ExclusionCount, PlannedQuery, Share, controllers_for, in_words};
use crate::query::{MembershipChoice, QuerySpan};
use crate::quorum::{majority, min_opening};
use crate::window_loss::{WindowRisk, max_absent};
use alpheus_time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A description of a planned query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Why the query could not be started now, in a sentence, if running queries are in its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_now: Option<String>,
    /// Name of the result stream.
    pub name: String,
    /// The schema.
    pub schema: String,
    /// What each window reveals. Nothing else leaves the streams.
    pub revealed: Vec<String>,
    /// The columns of its rows: their names, and what they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// Who learns it.
    pub learns: Vec<String>,
    /// Size of the windows.
    pub window: Span,
    /// How long windows wait for late events.
    pub grace: Span,
    /// Number of streams that match the conditions on metadata.
    pub fitting: u32,
    /// How many of them do not take part, by reason.
    pub excluded: Vec<ExclusionCount>,
    /// The groups.
    pub groups: Vec<GroupExplanation>,
    /// How exact columns are, in words: the error that the query asks for, and the widths of bins.
    #[serde(default)]
    pub accuracy: Vec<String>,
    /// When it is fixed who takes part, if that is by epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub membership: Option<String>,
    /// If the members of a window decide what its row says: what that shows and costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<String>,
    /// What the results do not hide.
    pub warnings: Vec<String>,
    /// Whether to show only what is revealed to whom.
    pub privacy_only: bool,
}

/// The plan of a group in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupExplanation {
    /// The plan.
    pub plan: PlanId,
    /// The group's values.
    pub group: Vec<(String, String)>,
    /// Number of streams.
    pub streams: u32,
    /// Number of different owners.
    pub owners: u32,
    /// Number of controllers (N).
    pub controllers: u32,
    /// Share of controllers that may collude with the service (α).
    pub alpha: Fraction,
    /// How many colluding controllers of the whole deployment the members' policies think of
    /// (c).
    pub colluders: u32,
    /// Number of controllers that may collude (t).
    pub tolerated: u32,
    /// Number of owners as an honest controller counts them if all have data: without those
    /// of the t + r largest other controllers.
    pub counted: u32,
    /// Minimum population of a window, counted in this way.
    pub min_population: u32,
    /// Maximum population.
    pub max_population: u32,
    /// The smallest number of these controllers, with one owner each, that count as the
    /// minimum population.
    pub controllers_needed: u32,
    /// The smallest number of controllers, with one owner each, that would be enough in their
    /// own plan.
    pub controllers_enough: u32,
    /// The smallest number of colluding controllers that read one owner together with the service:
    /// nobody but an owner's own controller can check that the owner exists, and t are left out.
    pub inventors: u32,
    /// The smallest number of tokens that open a window if all controllers answered.
    pub quorum: u32,
    /// Share of controllers that may drop out of a window (d).
    pub dropout: Fraction,
    /// How masks are shared.
    pub masks: MaskStrategy,
    /// A part of the controllers can open by itself with probability at most 10^-this (δ).
    pub delta_exponent: u8,
    /// Assumed share of a window's controllers that fail.
    pub failure_rate: f64,
    /// The probability that a window is lost at that rate.
    pub loss: f64,
    /// Guarantee and cost of noise, if there is noise.
    pub privacy: Option<PrivacyExplanation>,
}

/// Explains a planned query. `failure_rate` is the share of controllers expected to fail
/// between the two messages of a window.
#[must_use]
pub fn explain(
    planned: &PlannedQuery,
    schema: &CatalogSchema,
    failure_rate: f64,
    privacy_only: bool,
) -> Explanation {
    let first = planned.plans.first();
    let by_epochs = planned.membership == MembershipChoice::Epochs;
    let group = |(at, plan): (usize, &Plan)| {
        let life = planned.budgets.get(at).copied().flatten();
        let privacy = privacy::of(plan, schema, life);
        let id = if by_epochs { plan.terms().id() } else { plan.id() };
        GroupExplanation { privacy, plan: id, ..group(plan, failure_rate) }
    };
    let groups: Vec<_> = planned.plans.iter().enumerate().map(group).collect();
    Explanation {
        not_now: None,
        name: planned.name.clone(),
        schema: schema.schema.name.clone(),
        revealed: first.map_or_else(Vec::new, |plan| revealed(plan, schema)),
        columns: first.map_or_else(Vec::new, |plan| columns(plan, &schema.schema, &schema.layout)),
        learns: first.map_or_else(Vec::new, learns),
        window: first.map_or(Span(0), |plan| plan.window),
        grace: first.map_or(Span(0), |plan| plan.grace),
        fitting: planned.fitting,
        excluded: planned.excluded.clone(),
        membership: by_epochs.then(|| epochs::said(planned)),
        integrity: first.and_then(|plan| integrity::of(plan, schema, by_epochs)),
        warnings: all_warnings(planned, schema, &groups),
        groups,
        accuracy: planned.accuracy.clone(),
        privacy_only,
    }
}

/// Above this loss over a query's life a guarantee says little.
const MAX_LIFETIME_MICRO_EPSILON: u64 = 10_000_000;

/// The warnings of all groups, each once.
fn all_warnings(
    planned: &PlannedQuery,
    schema: &CatalogSchema,
    groups: &[GroupExplanation],
) -> Vec<String> {
    let mut all: Vec<String> = planned.raised().into_iter().collect();
    let of_plans = planned.plans.iter().flat_map(|plan| warnings(plan, schema));
    for warning in of_plans.chain(groups.iter().filter_map(lifetime_warning)) {
        if !all.contains(&warning) {
            all.push(warning);
        }
    }
    all
}

fn lifetime_warning(group: &GroupExplanation) -> Option<String> {
    let (micro, period) = group.privacy.as_ref()?.lifetime()?;
    (micro > MAX_LIFETIME_MICRO_EPSILON).then(|| {
        let each = period.map_or_else(String::new, |period| format!(" in each {period}"));
        format!(
            "One person may lose ε = {}{each} while this query runs. Above {}, a guarantee says little: choose longer windows, a smaller epsilon, or policies with smaller budgets.",
            Epsilon::from_micro(micro),
            Epsilon::from_micro(MAX_LIFETIME_MICRO_EPSILON)
        )
    })
}

/// A description of what a plan's rows reveal, by field. It is derived from the release, not
/// from the query, so it describes exactly what leaves the streams.
#[must_use]
pub fn revealed(plan: &Plan, schema: &CatalogSchema) -> Vec<String> {
    let mut fields: Vec<(FieldStatistic, usize, usize)> = Vec::new();
    for row in &plan.release.rows {
        let Some(field) = row.first().and_then(|word| schema.layout.field_at(*word)) else {
            continue;
        };
        // Both halves of a sum in limbs are one number.
        let low_half = |word: &u16| (word - field.first).is_multiple_of(2);
        let numbers = match field.packing {
            Packing::Whole => 1,
            Packing::Digits { .. } => row.iter().map(|word| field.cells_of(*word).len()).sum(),
            Packing::Limbs => usize::from(row.first().is_some_and(low_half)),
        };
        let of = usize::from(field.cells);
        match fields.iter_mut().find(|(statistic, ..)| *statistic == field.statistic) {
            Some((_, known, _)) => *known += numbers,
            None => fields.push((field.statistic, numbers, of)),
        }
    }
    fields
        .into_iter()
        .map(|(statistic, numbers, of)| in_bins(in_words(&schema.schema, statistic), numbers, of))
        .collect()
}

fn in_bins(what: String, numbers: usize, of: usize) -> String {
    match (numbers, of) {
        (1, 1) => what,
        (numbers, of) if numbers == of => format!("{what}, in each of {of} bins"),
        (numbers, of) => format!("{what}, as {numbers} sums over {of} cells"),
    }
}

fn learns(plan: &Plan) -> Vec<String> {
    let opens = match (plan.sealed_to, plan.consumer.as_str()) {
        (Some(_), reader) => format!(
            "{reader} alone, with its own key: the service sees that each window opened and over how many owners, but no value"
        ),
        (None, "service") => "the service, which opens each window's result".to_owned(),
        (None, reader) => {
            format!("the service, which opens each window's result, and {reader}, who reads it")
        }
    };
    vec![
        opens,
        "the service also sees which streams are online and how many events each sends".to_owned(),
        "each owner sees in their log that they took part".to_owned(),
    ]
}

fn warnings(plan: &Plan, schema: &CatalogSchema) -> Vec<String> {
    let mut warnings = Vec::new();
    let attributes =
        plan.attributes.iter().filter_map(|at| schema.schema.attributes.get(usize::from(*at)));
    let optional: Vec<&str> = attributes
        .filter(|attribute| attribute.optional)
        .map(|attribute| attribute.name.as_str())
        .collect();
    if !optional.is_empty() && plan.population.min > 1 {
        warnings.push(format!(
            "The minimum population counts owners with events, but events may lack {}, so fewer owners may contribute to its results.",
            optional.join(", ")
        ));
    }
    if plan.roster.len() == 1 {
        warnings.push(
            "Only one controller takes part, so the one who runs it and the service together can read what its owners sent. Let owners choose among several controllers; `alpheus query` and `alpheus up` with `--controllers 3` show what that changes."
                .to_owned(),
        );
    } else if plan.privacy.is_none() {
        warnings.push(
            "If one member joins or leaves between windows and the data changes slowly, the difference of two results reveals data of that member. Only noise prevents this."
                .to_owned(),
        );
    }
    if plan.population.min == 1 {
        warnings.push("A window may show a single person: the minimum population is 1.".to_owned());
    }
    if plan.alpha.numerator == 0 && plan.roster.len() > 1 {
        warnings
            .push("No controller is assumed to collude with the service (alpha is 0).".to_owned());
    }
    warnings.extend(absence(plan));
    warnings
}

/// The effect of absent controllers on a sparse graph.
fn absence(plan: &Plan) -> Option<String> {
    let (MaskStrategy::Neighbours { picks, .. }, Some(needed)) =
        (plan.masks, plan.masks.needed_picks())
    else {
        return None;
    };
    let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (controllers, discounted) = (narrow(plan.roster.len()), plan.discounted());
    let least = majority(controllers, discounted.saturating_add(plan.masks.cut_off()));
    let most = max_absent(controllers, least, (picks, picks - needed));
    Some(format!(
        "Each controller needs {needed} of the {picks} others that it picked: if more than about {most} of {controllers} controllers are absent, no window opens. `masks = 'epoch'` tolerates more absences."
    ))
}

fn group(plan: &Plan, failure_rate: f64) -> GroupExplanation {
    let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (controllers, tolerated) = (narrow(plan.roster.len()), plan.tolerated());
    let owners: u32 = plan.owners_per_controller().iter().sum();
    let (counted, min) = (plan.counted(), plan.population.min);
    let (discounted, cut_off) = (plan.discounted(), plan.masks.cut_off());
    let quorum = quorum(controllers, discounted.saturating_add(cut_off), plan.dropout);
    // How many owners may be missing before the rest are too few.
    let beyond = u64::from(counted.saturating_sub(min));
    let slack = beyond * u64::from(controllers) / u64::from(owners.max(1));
    let slack = u32::try_from(slack).unwrap_or(u32::MAX);
    GroupExplanation {
        plan: plan.id(),
        group: plan.group.clone(),
        streams: narrow(plan.streams.len()),
        owners,
        controllers,
        alpha: plan.alpha,
        colluders: plan.colluders,
        tolerated,
        counted,
        min_population: min,
        max_population: plan.population.max,
        controllers_needed: min.saturating_add(discounted),
        controllers_enough: controllers_for(min, plan.alpha, plan.colluders),
        inventors: controllers_for(min.min(2), plan.alpha, plan.colluders).saturating_sub(1),
        quorum,
        dropout: plan.dropout,
        masks: plan.masks,
        delta_exponent: plan.delta_exponent,
        failure_rate,
        loss: WindowRisk {
            controllers,
            members: controllers,
            spare: controllers.saturating_sub(quorum).min(slack),
            rate: failure_rate,
        }
        .chance_of_loss(plan),
        privacy: None,
    }
}

/// The smallest opening if all N answered, with t + 2r for t under `Neighbours`.
fn quorum(controllers: u32, tolerated: u32, dropout: Fraction) -> u32 {
    min_opening(controllers, tolerated, controllers, dropout).min(controllers)
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.not_now.iter().try_for_each(|why| writeln!(f, "{why}\n"))?;
        writeln!(f, "{} from {}", self.name, self.schema)?;
        writeln!(f, "  revealed in each window of {}:", QuerySpan(self.window))?;
        self.revealed.iter().try_for_each(|what| writeln!(f, "    {what}"))?;
        writeln!(f, "  as columns:")?;
        for Column { name, what, unit, .. } in &self.columns {
            let unit = if unit.is_empty() { String::new() } else { format!(", in {unit}") };
            writeln!(f, "    {name}: {what}{unit}")?;
        }
        writeln!(f, "  to:")?;
        self.learns.iter().try_for_each(|who| writeln!(f, "    {who}"))?;
        let out: u32 = self.excluded.iter().map(|excluded| excluded.streams).sum();
        writeln!(
            f,
            "  streams: {} match the conditions, {} take part",
            self.fitting,
            self.fitting.saturating_sub(out)
        )?;
        for ExclusionCount { reason, streams } in &self.excluded {
            writeln!(f, "    {streams} excluded: {reason}")?;
        }
        self.membership.iter().try_for_each(|how| writeln!(f, "  membership: {how}"))?;
        self.integrity.iter().try_for_each(|how| writeln!(f, "  integrity: {how}"))?;
        self.groups.iter().try_for_each(|group| group.write(f, self.privacy_only))?;
        self.accuracy.iter().try_for_each(|what| writeln!(f, "  exactness: {what}"))?;
        if !self.privacy_only {
            match self.grace {
                Span(0) => writeln!(f, "  windows do not wait for late events")?,
                grace => writeln!(f, "  windows wait {} for late events", QuerySpan(grace))?,
            }
        }
        self.warnings.iter().try_for_each(|warning| writeln!(f, "  warning: {warning}"))
    }
}

impl GroupExplanation {
    fn write(&self, f: &mut fmt::Formatter<'_>, privacy_only: bool) -> fmt::Result {
        let values: Vec<_> =
            self.group.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        match values.is_empty() {
            true => writeln!(f, "  population:")?,
            false => writeln!(f, "  population where {}:", values.join(", "))?,
        }
        let one = if self.controllers == 1 { "" } else { "s" };
        writeln!(f, "    {} owners at {} controller{one}", self.owners, self.controllers)?;
        if self.tolerated > 0 {
            writeln!(
                f,
                "    {} of the controllers may collude (alpha {}, colluders {}), so these owners count as {}",
                self.tolerated,
                Share(self.alpha),
                self.colluders,
                self.counted
            )?;
            writeln!(f, "    {}", self.readers())?;
        }
        write!(
            f,
            "    a window opens with {} to {} owners with data",
            self.min_population, self.max_population
        )?;
        if self.tolerated > 0 {
            write!(
                f,
                "; with one owner per controller, that takes {} of these controllers, or {} in a plan of their own",
                self.controllers_needed, self.controllers_enough
            )?;
        }
        writeln!(f)?;
        self.privacy.iter().try_for_each(|privacy| write!(f, "{privacy}"))?;
        if privacy_only || self.controllers == 1 { Ok(()) } else { self.write_masks(f) }
    }

    /// How many controllers it takes to read one owner. The service chooses who takes part: it
    /// can plan with an owner's controller and colluders alone.
    fn readers(&self) -> String {
        let stated = self.colluders.saturating_add(self.min_population).saturating_sub(1);
        let most = self.controllers_enough.saturating_sub(1);
        let inventors = self.inventors;
        let takes = match most == stated {
            true => format!("c + min − 1 = {stated}"),
            false => format!("{most}, as alpha asks for more than c + min − 1 = {stated}"),
        };
        format!(
            "{inventors} colluding controllers that invent owners can read one owner, if the service colludes too; with one owner each it takes {takes}"
        )
    }

    fn write_masks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  masks: {}; {} of {} tokens open a window (dropout {})",
            self.masks,
            self.quorum,
            self.controllers,
            Share(self.dropout)
        )?;
        if let (MaskStrategy::Neighbours { picks, cut_off }, Some(needed)) =
            (self.masks, self.masks.needed_picks())
        {
            writeln!(
                f,
                "    each controller picks {picks} others and needs {needed} of them; {cut_off} more controllers do not count, since dropouts may cut them off; the chance that fewer can open a window by themselves is below 1e-{}",
                self.delta_exponent
            )?;
        }
        writeln!(
            f,
            "    if {:.1} % of controllers fail in a window, the chance of losing it is {}",
            self.failure_rate * 100.0,
            Chance(self.loss)
        )
    }
}

/// A probability in readable form.
struct Chance(f64);

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            chance if chance >= 0.001 => write!(f, "{:.1} %", chance * 100.0),
            chance => write!(f, "{chance:.0e}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quorums_follow_the_formula() {
        assert_eq!(quorum(30, 10, Fraction::FIFTH), 24);
        assert_eq!(quorum(30, 10, Fraction::ZERO), 29);
        assert_eq!(quorum(3, 0, Fraction::ZERO), 3);
        assert_eq!(quorum(2, 1, Fraction::FIFTH), 2);
        assert_eq!(quorum(1, 0, Fraction::FIFTH), 1);
        assert_eq!(quorum(10, 9, Fraction::FIFTH), 10);
    }
}
