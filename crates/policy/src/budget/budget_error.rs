//! A release that cannot be charged, and the nearest one that could be.

use super::Epsilon;
use super::calibrate::Cost;
use super::loss::PrivacyLoss;
use alpheus_time::Span;

/// The rule that a release would break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `perWindow`: the amount spent on data of one point in time.
    Window,
    /// `total`: everything ever spent.
    Total,
    /// `total` of a `person-per-period` budget: everything spent on data of one period of
    /// this length, counted from the Unix epoch.
    Period(Span),
    /// The window starts before the mark up to which the account is summed up.
    Settled,
    /// The same plan and window were charged at a different cost.
    Charged,
}

/// A release that would exceed a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetError {
    /// The rule.
    pub rule: Rule,
    /// Position of the attribute in the schema.
    pub attribute: u16,
    /// The cost of the release.
    pub requested: Cost,
    /// What the rule counts as already spent.
    pub spent: PrivacyLoss,
    /// What the rule allows in total.
    pub limit: Epsilon,
    /// The largest cost that the rule still allows, if any.
    pub nearest: Option<Cost>,
}

impl BudgetError {
    pub(super) fn settled(attribute: u16, requested: Cost, spent: PrivacyLoss) -> BudgetError {
        let (limit, nearest) = (Epsilon(0), None);
        BudgetError { rule: Rule::Settled, attribute, requested, spent, limit, nearest }
    }

    pub(super) fn charged(attribute: u16, requested: Cost, known: Cost) -> BudgetError {
        let spent = PrivacyLoss::default().with(known, super::Slack(0));
        let (limit, nearest) = (Epsilon(0), Some(known));
        BudgetError { rule: Rule::Charged, attribute, requested, spent, limit, nearest }
    }

    /// The rule's name in metrics and logs.
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

impl std::fmt::Display for BudgetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let BudgetError { attribute, requested, spent, limit, .. } = self;
        write!(f, "attribute {attribute}: ")?;
        match self.rule {
            Rule::Window => write!(
                f,
                "{requested}, with {spent} already spent on the same time, exceeds the limit of ε = {limit} per window"
            ),
            Rule::Total => write!(
                f,
                "{requested}, with {spent} already spent, exceeds the limit of ε = {limit} in total"
            ),
            Rule::Period(period) => write!(
                f,
                "{requested}, with {spent} already spent in the period, exceeds the limit of ε = {limit} per {period}"
            ),
            Rule::Settled => {
                return f.write_str(
                    "the window starts in the part of the account that is already summed up; request a later window",
                );
            }
            Rule::Charged => {
                return write!(f, "the same window was already charged {spent}, not {requested}");
            }
        }?;
        match self.nearest {
            Some(nearest) => write!(f, "; at most {nearest} is left"),
            None => f.write_str("; nothing is left"),
        }
    }
}

impl std::error::Error for BudgetError {}
