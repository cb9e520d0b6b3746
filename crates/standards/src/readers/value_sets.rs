//! Sets of allowed values: of numbers the least and the greatest are bounds.

use super::rules;
use crate::contract::{Demand, Limits, Rule};
use crate::cursor::{Clause, Cursor};
use crate::tree::Tree;

/// The bounds that a set of numbers gives, which may be texts or entries with a `value`; none if
/// anything else is among them.
pub(super) fn bounds(all: &[Cursor<'_>]) -> Limits {
    let all = all.iter().map(|item| item.get("value").unwrap_or_else(|| item.clone()));
    let all = all.filter(|own| *own.tree() != Tree::Null);
    let numbers: Option<Vec<(f64, Clause<String>)>> = all
        .map(|own| {
            let noted = own.noted().filter(|_| !matches!(own.tree(), Tree::Boolean(_)))?;
            let number = noted.value.trim().parse::<f64>().ok()?;
            number.is_finite().then_some((number, noted))
        })
        .collect();
    let mut sorted = numbers.unwrap_or_default();
    sorted.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let at =
        |pair: Option<&(f64, Clause<String>)>| Vec::from_iter(pair.map(|(_, own)| own.clone()));
    Limits { min: at(sorted.first()), max: at(sorted.last()), ..Limits::default() }
}

/// `enum` and `const` of a part.
pub(super) fn stated(part: &Cursor<'_>) -> Limits {
    let listed = part.get("enum").map(|list| list.items()).unwrap_or_default();
    bounds(&part.get("const").into_iter().chain(listed).collect::<Vec<_>>())
}

/// A quality rule of a column. If it allows a set of numbers and no exception, it is a range, whose
/// limits join the column's.
pub(super) fn rule(at: &Cursor<'_>, tables: &[String], limits: &mut Limits) -> Rule {
    let mut rule = rules::quality(at, tables);
    let arguments = at.get("arguments");
    let places = [Some(at.clone()), arguments];
    let values = places.iter().flatten().find_map(|place| place.get("validValues"));
    let Some(values) = values.filter(|_| rule.demand == Demand::Other(rules::SET)) else {
        return rule;
    };
    let all_hold = match at.text("mustBe") {
        Some(number) => number.value == "0" && is_of_invalid(at),
        None => !is_of_invalid(at) && !at.entries().iter().any(|(key, _)| key.starts_with("must")),
    };
    let is_partial =
        places.iter().flatten().any(|place| place.first(&["filter", "where"]).is_some());
    let own = bounds(&values.items());
    if all_hold && !is_partial && !own.min.is_empty() {
        *limits = std::mem::take(limits).and(own);
        rule.demand = Demand::Range;
    }
    rule
}

/// Whether a rule counts values that are not allowed.
fn is_of_invalid(at: &Cursor<'_>) -> bool {
    let named = ["metric", "rule", "name"].iter().find_map(|key| at.text(key));
    named.is_some_and(|noted| noted.value.to_ascii_lowercase().starts_with("invalid"))
}
