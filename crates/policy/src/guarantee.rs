//! The privacy guarantee in words and the expected error, for `EXPLAIN PRIVACY`.

use crate::budget::{
    Calibration, Cost, Epsilon, NoiseShares, OutputError, expected_errors, min_epsilon,
};
use crate::plan::Plan;
use crate::schema::PrivacyUnit;
use alpheus_time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The guarantee that a query with noise gives an owner, and the expected error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guarantee {
    /// The unit of protection.
    pub unit: PrivacyUnit,
    /// Size of the query's windows.
    pub window: Span,
    /// The cost of one window, or of all windows together if `running`.
    pub cost: Cost,
    /// The δ at which a concentrated cost is reported, in units of 10^−18.
    pub atto_delta: u64,
    /// Whether the results are running totals.
    pub running: bool,
    /// Controllers in the plan.
    pub controllers: u32,
    /// How many of them may collude with the service (t).
    pub tolerated: u32,
    /// The number of controllers assumed to open a window, for the error.
    pub members: u32,
    /// The expected error of each output column.
    pub errors: Vec<OutputError>,
}

impl Guarantee {
    /// The guarantee of a plan with this noise, if `members` of its controllers open a window
    /// whose cells have these sums (as far as they are known).
    #[must_use]
    pub fn of(
        plan: &Plan,
        noise: &Calibration,
        unit: PrivacyUnit,
        atto_delta: u64,
        members: u32,
        sums: &[f64],
    ) -> Guarantee {
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let tolerated = plan.tolerated();
        let honest = members.saturating_sub(plan.discounted());
        let horizon = plan.horizon();
        let windows = horizon.map_or(1, |horizon| horizon.windows);
        let shared = NoiseShares { honest, members, windows, lost: 0 };
        Guarantee {
            unit,
            window: plan.window,
            cost: noise.cost,
            atto_delta,
            running: horizon.is_some(),
            controllers: narrow(plan.roster.len()),
            tolerated,
            members,
            errors: expected_errors(&plan.select, &noise.rows, shared, sums),
        }
    }

    /// The reported ε, rounded up. `None` for a concentrated cost with δ = 0.
    #[must_use]
    pub fn epsilon(&self) -> Option<Epsilon> {
        match self.cost {
            Cost::Pure(epsilon) => Some(epsilon),
            Cost::Concentrated(rho) => min_epsilon(rho, self.atto_delta),
        }
    }

    /// The guarantee in words.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Some(epsilon) = self.epsilon() else {
            return "There is no guarantee: a concentrated loss needs a δ above 0.".to_owned();
        };
        let factor = (epsilon.0 as f64 * 1e-18).exp();
        let factor = match factor {
            factor if factor < 100.0 => format!("{:.2}", (factor * 100.0).ceil() / 100.0),
            factor => power(factor),
        };
        let (what, of) = (self.protected(), if self.running { "all results" } else { "a result" });
        let plus = match self.cost {
            Cost::Pure(_) => "plus 1e-18 for sampling".to_owned(),
            Cost::Concentrated(_) => format!("plus δ = {}", power(self.atto_delta as f64 * 1e-18)),
        };
        let colluders = match (self.controllers, self.tolerated) {
            (_, 0) => "as long as no controller colludes with the service".to_owned(),
            (all, most) => {
                format!("as long as at most {most} of {all} controllers collude with the service")
            }
        };
        format!(
            "Any conclusion drawn from {of} is at most {factor} times as likely, {plus}, as with any other values of {what}, whatever else is known (ε = {epsilon}), {colluders}. This does not hide who takes part, when and with how many events, or what follows from that alone: populations, exclusions, and which windows open."
        )
    }

    fn protected(&self) -> String {
        match self.unit {
            PrivacyUnit::Event => "any one event".to_owned(),
            PrivacyUnit::PersonPerWindow => {
                format!("everything one person sends in a window of {}", self.window)
            }
            PrivacyUnit::PersonPerPeriod(period) if self.running => {
                format!("everything one person sends in {period}")
            }
            PrivacyUnit::PersonPerPeriod(period) => format!(
                "everything one person sends in a window of {} (windows add up to the budget of {period})",
                self.window
            ),
        }
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  privacy: {}", self.sentence())?;
        let of = if self.running { "the last running total" } else { "each window" };
        let one = if self.members == 1 { "" } else { "s" };
        writeln!(f, "  expected error of {of}, with {} controller{one}:", self.members)?;
        for OutputError { alias, spread, at_most } in &self.errors {
            let bound = match at_most {
                true => ", or less: for one value per owner, as far from zero as the schema allows",
                false => "",
            };
            match spread {
                Some(spread) => writeln!(
                    f,
                    "    {alias}: within ±{} in 95 of 100 cases (standard deviation {}){bound}",
                    RoundedNumber(spread.within),
                    RoundedNumber(spread.deviation)
                )?,
                None => writeln!(f, "    {alias}: depends on the data")?,
            }
        }
        Ok(())
    }
}

/// A number to one significant digit, rounded up.
fn power(number: f64) -> String {
    let exponent = number.log10().floor();
    match (number / 10f64.powf(exponent) - 1e-9).ceil() {
        10.0 => format!("1e{}", exponent + 1.0),
        digit => format!("{digit}e{exponent}"),
    }
}

/// A number to three significant digits, rounded up.
pub(crate) struct RoundedNumber(pub(crate) f64);

impl fmt::Display for RoundedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 <= 0.0 || !self.0.is_finite() {
            return write!(f, "{}", self.0);
        }
        let digits = 2.0 - self.0.log10().floor();
        let unit = 10f64.powf(digits);
        let rounded = (self.0 * unit - 1e-9).ceil() / unit;
        let places = if digits > 0.0 { digits.min(17.0) } else { 0.0 };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 17"
        )]
        let places = places as usize;
        write!(f, "{rounded:.places$}")
    }
}
