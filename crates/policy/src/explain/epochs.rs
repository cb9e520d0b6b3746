//! What membership by epochs means for an explanation, and what it does not hide.

use crate::plan::Plan;
use crate::planner::{PlannedQuery, controllers_for};

/// What it means for the numbers of an explanation.
const EPOCHS: &str = "by epochs of one window: those whose streams are online and whose controllers answer after the window; the numbers below assume that all who may take part do";

/// The same, with what a service learns that lies about who is there.
pub(super) fn said(planned: &PlannedQuery) -> String {
    let list = |plan: &Plan| controllers_for(plan.population.min, plan.alpha, plan.colluders);
    let (min, list) =
        planned.plans.iter().map(|plan| (plan.population.min, list(plan))).min().unwrap_or((1, 1));
    let learns = match planned.sets_per_day {
        None => format!(
            "A service that lies about who is online learns a value that does not change from 2 windows, and everybody's from about {}: not all members limit the sets of a day (`setsPerDay` in an owner's choice)",
            list.saturating_add(1)
        ),
        Some(sets) => format!(
            "A day is summed over at most {sets} different sets of owners. So each day, a service that lies about who is online learns at most {} of {min} owners' values that do not change",
            sets.min(min)
        ),
    };
    format!("{EPOCHS}. {learns}")
}
