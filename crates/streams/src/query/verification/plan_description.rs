//! In words what rows of a plan say. Nobody has compared it with a statement: the reader does.

use alpheus_policy::columns::columns;
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Plan;
use alpheus_policy::schema::Schema;

/// What rows of a plan say. Two plans of one meaning have the same text.
pub(super) fn meaning(plan: &Plan, schema: Option<&Schema>) -> String {
    let known = schema.filter(|schema| schema.id() == plan.schema);
    let layout = known.and_then(|schema| Some((schema, Layout::of(schema).ok()?)));
    let what = match layout {
        Some((schema, layout)) => {
            let of = |column: alpheus_policy::columns::Column| match column.unit.as_str() {
                "" => format!("{} is the {}", column.name, column.what),
                unit => format!("{} is the {} in {unit}", column.name, column.what),
            };
            let all: Vec<String> = columns(plan, schema, &layout).into_iter().map(of).collect();
            all.join(", ")
        }
        None => "what their columns are computed from is not known: there is no schema of them"
            .to_owned(),
    };
    let groups: Vec<&str> = plan.group.iter().map(|(name, _)| name.as_str()).collect();
    let by = if groups.is_empty() { String::new() } else { format!(" by {}", groups.join(", ")) };
    let some = if plan.selection.steps.is_empty() { "" } else { ", of some streams only (WHERE)" };
    let sealed =
        plan.sealed_to.map_or_else(String::new, |_| format!(", sealed to {}", plan.consumer));
    format!(
        "compare with what you asked for: in the next rows {what}; windows of {}{by}{some}{sealed}, over {} to {} people",
        plan.window, plan.population.min, plan.population.max
    )
}
