//! What noise promises, what error it makes and what it costs, before a query runs.

use crate::budget::{Epsilon, Guarantee, Horizon, Mechanism};
use crate::catalog::CatalogSchema;
use crate::plan::Plan;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a plan's noise promises, what error it makes and what it costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivacyExplanation {
    /// The guarantee in one sentence.
    pub sentence: String,
    /// How noise is drawn.
    pub mechanism: Mechanism,
    /// ε of a window, or of all running totals together, over all attributes, in
    /// millionths.
    pub micro_epsilon: u64,
    /// Its δ, in units of 10^−18.
    pub atto_delta: u64,
    /// How far running totals reach; none where each window has noise of its own.
    pub horizon: Option<Horizon>,
    /// Most events of a stream in a window; streams with more are left out.
    pub events: u64,
    /// Most streams of one owner.
    pub streams_per_owner: u32,
    /// Honest controllers whose shares alone make up the noise, when all open; of
    /// running totals, when as few do as may.
    pub honest: u32,
    /// What each attribute is charged for a window, or for all running totals, by name.
    pub charges: Vec<(String, String)>,
    /// Windows, or queries for such totals, until the first member's budget is spent,
    /// where nothing was spent before; none where nothing is charged.
    pub lasts: Option<u64>,
    /// The expected error of each column.
    pub guarantee: Guarantee,
}

/// What the noise of a plan promises when all its controllers open and each
/// owner has one value.
pub(super) fn of(
    plan: &Plan,
    schema: &CatalogSchema,
    lasts: Option<u64>,
) -> Option<PrivacyExplanation> {
    let own = plan.privacy.as_ref()?;
    let noise = plan.calibrated(&schema.schema, &schema.layout).ok().flatten()?;
    let members = u32::try_from(plan.roster.len()).unwrap_or(u32::MAX);
    let values: u32 = super::owners_per_controller(plan).iter().sum();
    let guarantee = Guarantee::of(plan, &noise, own.unit, own.atto_delta, members, values.into());
    let name = |attribute: u16| {
        let attribute = schema.schema.attributes.get(usize::from(attribute));
        attribute.map_or_else(String::new, |attribute| attribute.name.clone())
    };
    Some(PrivacyExplanation {
        sentence: guarantee.sentence(),
        mechanism: own.mechanism,
        micro_epsilon: own.micro_epsilon,
        atto_delta: own.atto_delta,
        horizon: own.horizon(),
        events: own.events,
        streams_per_owner: own.streams_per_owner,
        honest: match own.horizon() {
            None => members.saturating_sub(u32::try_from(plan.discounted()).unwrap_or(u32::MAX)),
            Some(_) => plan.least_honest(),
        },
        charges: noise.charges.iter().map(|(at, cost)| (name(*at), cost.to_string())).collect(),
        lasts,
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
            None => f.write_str(" a window")?,
            Some(Horizon { windows, .. }) => write!(f, " for all {windows} totals together")?,
        }
        match self.honest {
            1 => writeln!(f, ", from the share of any one honest controller")?,
            many => writeln!(f, ", from the shares of any {many} honest controllers")?,
        }
        let streams = match self.streams_per_owner {
            0 | 1 => String::new(),
            streams => format!(", and {streams} streams of an owner"),
        };
        writeln!(
            f,
            "    for at most {} events of a stream in a window{streams}; streams with more are left out",
            self.events
        )?;
        let charges: Vec<_> =
            self.charges.iter().map(|(name, cost)| format!("{name} {cost}")).collect();
        match self.horizon {
            None => write!(f, "    costs an owner with data, each window: ")?,
            Some(_) => write!(f, "    costs an owner with data, once for all windows: ")?,
        }
        match charges.is_empty() {
            true => writeln!(f, "nothing, since numbers of events are public")?,
            false => writeln!(f, "{}", charges.join(", "))?,
        }
        if let Some(lasts) = self.lasts {
            let what = match (self.horizon, lasts) {
                (None, 1) => "window",
                (None, _) => "windows",
                (Some(_), 1) => "query like this",
                (Some(_), _) => "queries like this",
            };
            writeln!(
                f,
                "    the first budget is spent after {lasts} {what}; budgets are counted by each controller for itself"
            )?;
        }
        write!(f, "{}", self.guarantee)
    }
}
