//! Conditions on streams' public metadata, as a plan states them: so that the controller of a stream
//! can tell whether the query asked for it.

use crate::decimal::Decimal;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Most steps of a selection.
pub const MAX_STEPS: usize = 4096;

/// What a plan's streams have in common. Without steps it selects every stream.
///
/// It is a list of steps, each over the outcomes before it, and not a tree: a plan comes from
/// the service, and no depth of it may exhaust a controller's stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Conditions, and how they combine.
    pub steps: Vec<SelectionStep>,
}

/// A step of a selection. Outcomes are true, false or unknown, as in SQL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SelectionStep {
    /// Compares a value with one that is given: as numbers if both are numbers, else as text.
    Compare {
        /// The metadata attribute.
        attribute: String,
        /// The comparison.
        comparison: Comparison,
        /// What to compare with.
        value: String,
    },
    /// Whether a value is one of several.
    In {
        /// The metadata attribute.
        attribute: String,
        /// The values.
        values: Vec<String>,
        /// Whether it must be none of them.
        negated: bool,
    },
    /// Whether all of so many last outcomes are true.
    All(u32),
    /// Whether one of so many last outcomes is true.
    Any(u32),
    /// The opposite of the last outcome.
    Not,
}

/// A comparison, of numbers if both sides are numbers, else of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// `=`.
    Equal,
    /// `<>`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
}

impl Comparison {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Equal => ordering == Ordering::Equal,
            Comparison::NotEqual => ordering != Ordering::Equal,
            Comparison::Less => ordering == Ordering::Less,
            Comparison::LessOrEqual => ordering != Ordering::Greater,
            Comparison::Greater => ordering == Ordering::Greater,
            Comparison::GreaterOrEqual => ordering != Ordering::Less,
        }
    }
}

impl Selection {
    /// Whether it selects a stream with these values. As in SQL, a comparison with a missing
    /// value is neither true nor false, and only true selects. A selection that is not well
    /// formed selects nothing.
    #[must_use]
    pub fn selects<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.steps.is_empty() || self.outcome(value) == Some(Some(true))
    }

    /// Whether the steps leave one outcome, whatever the values are.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        self.steps.is_empty() || (self.steps.len() <= MAX_STEPS && self.outcome(|_| None).is_some())
    }

    fn outcome<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> Option<Option<bool>> {
        let mut outcomes: Vec<Option<bool>> = Vec::new();
        for step in &self.steps {
            let outcome = match step {
                SelectionStep::Compare { attribute, comparison, value: other } => {
                    value(attribute).map(|own| comparison.holds(compare(own, other)))
                }
                SelectionStep::In { attribute, values, negated } => value(attribute).map(|own| {
                    let is = |other: &String| compare(own, other) == Ordering::Equal;
                    values.iter().any(is) != *negated
                }),
                SelectionStep::All(many) => all(take(&mut outcomes, *many)?.into_iter()),
                SelectionStep::Any(many) => {
                    let none = take(&mut outcomes, *many)?.into_iter().map(opposite);
                    opposite(all(none))
                }
                SelectionStep::Not => opposite(outcomes.pop()?),
            };
            outcomes.push(outcome);
        }
        let last = outcomes.pop()?;
        outcomes.is_empty().then_some(last)
    }
}

fn take(outcomes: &mut Vec<Option<bool>>, many: u32) -> Option<Vec<Option<bool>>> {
    let rest = outcomes.len().checked_sub(usize::try_from(many).ok()?)?;
    Some(outcomes.split_off(rest))
}

fn opposite(outcome: Option<bool>) -> Option<bool> {
    outcome.map(|outcome| !outcome)
}

/// False if any is false, else unknown if any is unknown, else true.
fn all(outcomes: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = Some(true);
    for outcome in outcomes {
        match outcome {
            Some(false) => return Some(false),
            None => known = None,
            Some(true) => {}
        }
    }
    known
}

/// Compares numbers if both are numbers, else text.
fn compare(one: &str, other: &str) -> Ordering {
    match (Decimal::parse(one), Decimal::parse(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one.cmp(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(attribute: &str, value: &str) -> SelectionStep {
        let (attribute, value) = (attribute.to_owned(), value.to_owned());
        SelectionStep::Compare { attribute, comparison: Comparison::Equal, value }
    }

    fn selects(steps: &[SelectionStep], values: &[(&str, &'static str)]) -> bool {
        let selection = Selection { steps: steps.to_vec() };
        assert!(selection.is_well_formed());
        selection.selects(|name| values.iter().find(|(own, _)| *own == name).map(|(_, v)| *v))
    }

    #[test]
    fn unknown_values_select_nothing_and_neither_do_their_opposites() {
        let steps = [equal("a", "1.0"), equal("b", "x"), SelectionStep::Any(2)];
        assert!(selects(&steps, &[("a", "1"), ("b", "y")]));
        assert!(selects(&steps, &[("b", "x")]));
        assert!(!selects(&steps, &[("b", "y")]));
        assert!(!selects(&[equal("a", "1"), SelectionStep::Not], &[]));
        let both = [equal("a", "1"), equal("b", "x"), SelectionStep::All(2), SelectionStep::Not];
        assert!(selects(&both, &[("b", "y")]));
        assert!(!selects(&both, &[("b", "x")]));
    }

    #[test]
    fn steps_that_leave_no_outcome_or_several_select_nothing() {
        for steps in [
            vec![SelectionStep::Not],
            vec![equal("a", "1"), SelectionStep::All(2)],
            vec![equal("a", "1"), equal("a", "1")],
            vec![SelectionStep::All(u32::MAX)],
        ] {
            let selection = Selection { steps };
            assert!(!selection.is_well_formed() && !selection.selects(|_| Some("1")));
        }
        let many = Selection { steps: vec![equal("a", "1")] };
        assert!(many.is_well_formed());
        let deep = [vec![equal("a", "1")], vec![SelectionStep::Not; MAX_STEPS]].concat();
        assert!(!Selection { steps: deep }.is_well_formed());
    }
}
