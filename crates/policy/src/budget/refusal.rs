//! Why a release is not charged, and the nearest that would be.

use super::Epsilon;
use super::calibrate::Cost;
use super::spent::Spent;
use crate::time::Span;

/// The rule that a release would break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `perWindow`: what is spent on data of one moment.
    Window,
    /// `total`: all that is ever spent.
    Total,
    /// `total` of a `person-per-period` budget: all that is spent on the data of
    /// one period of this length, counted from the Unix epoch.
    Period(Span),
    /// The window begins before what the account still tells apart.
    Settled,
    /// The same plan and window were charged, at another cost.
    Charged,
}

/// A release that would exceed a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overspent {
    /// The rule.
    pub rule: Rule,
    /// Position of the attribute in the schema.
    pub attribute: u16,
    /// What was asked for.
    pub asked: Cost,
    /// What the rule counts as spent before.
    pub spent: Spent,
    /// What it allows in all.
    pub limit: Epsilon,
    /// The most that it would allow now; none: nothing.
    pub nearest: Option<Cost>,
}

impl Overspent {
    pub(super) fn settled(attribute: u16, asked: Cost, spent: Spent) -> Overspent {
        let (limit, nearest) = (Epsilon(0), None);
        Overspent { rule: Rule::Settled, attribute, asked, spent, limit, nearest }
    }

    pub(super) fn charged(attribute: u16, asked: Cost, known: Cost) -> Overspent {
        let spent = Spent::default().with(known, super::Slack(0));
        let (limit, nearest) = (Epsilon(0), Some(known));
        Overspent { rule: Rule::Charged, attribute, asked, spent, limit, nearest }
    }

    /// The rule's name, as counts and logs write it.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self.rule {
            Rule::Window => "budget-per-window",
            Rule::Total => "budget-total",
            Rule::Period(_) => "budget-per-period",
            Rule::Settled => "budget-settled",
            Rule::Charged => "budget-charged",
        }
    }
}

impl std::fmt::Display for Overspent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Overspent { attribute, asked, spent, limit, .. } = self;
        write!(f, "attribute {attribute}: {asked} ")?;
        match self.rule {
            Rule::Window => {
                write!(f, "on top of {spent} spent on the same time exceeds the {limit} per window")
            }
            Rule::Total => write!(f, "on top of {spent} spent before exceeds the {limit} in total"),
            Rule::Period(period) => {
                write!(f, "on top of {spent} spent in the period exceeds the {limit} per {period}")
            }
            Rule::Settled => {
                return f.write_str("for a window before the account's mark; ask for later ones");
            }
            Rule::Charged => return write!(f, "where the same window was charged {spent}"),
        }?;
        match self.nearest {
            Some(nearest) => write!(f, "; {nearest} is left"),
            None => f.write_str("; nothing is left"),
        }
    }
}

impl std::error::Error for Overspent {}
