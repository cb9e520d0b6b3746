//! The guarantee, expected error and cost of noise, before a query runs.

use crate::budget::{Epsilon, Horizon, Mechanism, assumed_sums, farthest};
use crate::catalog::CatalogSchema;
use crate::guarantee::Guarantee;
use crate::plan::Plan;
use crate::planner::BudgetLife;
use crate::select::Statistic;
use alpheus_time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The guarantee, expected error and cost of a plan's noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivacyExplanation {
    /// The guarantee in words.
    pub sentence: String,
    /// How noise is drawn.
    pub mechanism: Mechanism,
    /// ε of a window, or of all running totals together, over all attributes, in millionths.
    pub micro_epsilon: u64,
    /// Its δ in units of 10^−18.
    pub atto_delta: u64,
    /// The extent of running totals, or `None` if each window has its own noise.
    pub horizon: Option<Horizon>,
    /// Maximum number of events of a stream in a window. Streams with more are excluded.
    pub events: u64,
    /// Maximum number of streams of one owner.
    pub streams_per_owner: u32,
    /// Number of honest controllers whose shares alone make up the noise, if all open. For
    /// running totals, if the smallest allowed set opens.
    pub honest: u32,
    /// The charge to each attribute, by name, for a window or for all running totals.
    pub charges: Vec<(String, String)>,
    /// How long the members' budgets last if nothing was spent before. `None` if nothing is
    /// charged.
    pub life: Option<BudgetLife>,
    /// The expected error of each column.
    pub guarantee: Guarantee,
}

/// The guarantee of a plan's noise if all its controllers open and each owner has one value.
pub(super) fn of(
    plan: &Plan,
    schema: &CatalogSchema,
    life: Option<BudgetLife>,
) -> Option<PrivacyExplanation> {
    let own = plan.privacy.as_ref()?;
    let noise = plan.calibration(&schema.schema, &schema.layout).ok().flatten()?;
    let members = u32::try_from(plan.roster.len()).unwrap_or(u32::MAX);
    let values: u32 = plan.owners_per_controller().iter().sum();
    let windows = own.horizon().map_or(1, |horizon| horizon.windows);
    let values = f64::from(values) * f64::from(windows);
    let most = |attribute| farthest(&schema.schema, attribute);
    let sums = assumed_sums((&plan.release, &plan.select), &schema.layout, values, most);
    let mut guarantee = Guarantee::of(plan, &noise, own.unit, own.atto_delta, members, &sums);
    for (error, item) in guarantee.errors.iter_mut().zip(&plan.select.items) {
        error.at_most = matches!(item.statistic, Statistic::Moments { .. });
    }
    let name = |attribute: u16| schema.schema.name_of(attribute).to_owned();
    Some(PrivacyExplanation {
        sentence: guarantee.sentence(),
        mechanism: own.mechanism,
        micro_epsilon: own.micro_epsilon,
        atto_delta: own.atto_delta,
        horizon: own.horizon(),
        events: own.events,
        streams_per_owner: own.streams_per_owner,
        honest: match own.horizon() {
            None => members.saturating_sub(plan.discounted()),
            Some(_) => plan.min_honest(),
        },
        charges: noise.charges.iter().map(|(at, cost)| (name(*at), cost.to_string())).collect(),
        life,
        guarantee,
    })
}

impl fmt::Display for PrivacyExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let epsilon = Epsilon::from_micro(self.micro_epsilon);
        write!(f, "  noise: {}, ε = {epsilon}", self.mechanism)?;
        if self.atto_delta > 0 {
            write!(f, ", δ = {:.0e}", self.atto_delta as f64 * 1e-18)?;
        }
        match self.horizon {
            None => f.write_str(" per window")?,
            Some(Horizon { windows, .. }) => write!(f, " for all {windows} totals together")?,
        }
        match self.honest {
            1 => writeln!(f, ", from the share of any one honest controller")?,
            many => writeln!(f, ", from the shares of any {many} honest controllers")?,
        }
        let streams = match self.streams_per_owner {
            0 | 1 => String::new(),
            streams => format!(", and at most {streams} streams per owner"),
        };
        writeln!(
            f,
            "    for at most {} events per stream and window{streams}; streams with more events are excluded, and no margin counts what that changes",
            self.events
        )?;
        let charges: Vec<_> =
            self.charges.iter().map(|(name, cost)| format!("{name} {cost}")).collect();
        match self.horizon {
            None => write!(f, "    cost for each owner with data, per window: ")?,
            Some(_) => write!(f, "    cost for each owner with data, once for all windows: ")?,
        }
        match charges.is_empty() {
            true => writeln!(
                f,
                "nothing, since this guarantee does not hide how many events there are"
            )?,
            false => writeln!(f, "{}", charges.join(", "))?,
        }
        self.life.iter().try_for_each(|life| self.write_life(*life, f))?;
        write!(f, "{}", self.guarantee)
    }
}

impl PrivacyExplanation {
    /// The most that one person can lose over the whole life of the query, in millionths of
    /// ε, and in which period. `None` if nothing is charged.
    #[must_use]
    pub fn lifetime(&self) -> Option<(u64, Option<Span>)> {
        let life = self.life?;
        match self.horizon {
            // All totals together cost this once.
            Some(_) => Some((self.micro_epsilon, None)),
            None => Some((life.total_micro_epsilon, life.period)),
        }
    }

    fn write_life(&self, life: BudgetLife, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let window = self.horizon.is_none().then_some(self.guarantee.window);
        writeln!(f, "    {}; each controller keeps its own accounts", life.used_up(window))?;
        window.map_or(Ok(()), |own| writeln!(f, "    {}", life.per_day_and_year(own)))?;
        let Some((micro, period)) = self.lifetime() else { return Ok(()) };
        write!(
            f,
            "    over the life of the query, one person may lose ε = {}",
            Epsilon::from_micro(micro)
        )?;
        match period {
            Some(period) => writeln!(f, " in each {period}"),
            None => writeln!(f, " in total"),
        }
    }
}
