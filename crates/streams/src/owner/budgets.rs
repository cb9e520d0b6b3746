//! The state of an owner's budgets, as text.

use super::{Owner, StreamArgs, in_utc};
use alpheus_input::tables::print_tables;
use alpheus_node::failure::{Failure, printed};
use alpheus_node::globals::Globals;
use alpheus_policy::budget::{BudgetStanding, Epsilon};
use alpheus_policy::schema::{PrivacyUnit, Schema};
use alpheus_policy::show::Table;
use std::time::Duration;

/// One line for each budget, as the command and the console show it.
pub fn in_words(standing: &BudgetStanding, schema: &Schema) -> [String; 5] {
    let attribute = schema.attributes.get(usize::from(standing.attribute));
    let attribute = attribute.map_or("?", |attribute| attribute.name.as_str());
    let budget = &standing.budget;
    let total = Epsilon::from_micro(budget.total_micro_epsilon);
    let delta = match budget.atto_delta {
        0 => String::new(),
        atto => format!(", δ = {:.0e}", atto as f64 * 1e-18),
    };
    let counts = match (budget.unit, standing.period) {
        (PrivacyUnit::PersonPerPeriod(_), Some(period)) => in_utc(period),
        (PrivacyUnit::Event, _) => "each event, forever".to_owned(),
        _ => "each window's data, forever".to_owned(),
    };
    let used = standing.spent.map_or_else(
        || "unlimited: this budget has no δ".to_owned(),
        |spent| format!("ε = {spent}"),
    );
    let share = format!("{:.1} %", 100.0 * standing.share());
    [attribute.to_owned(), format!("ε = {total}{delta}"), counts, used, share]
}

/// Prints them.
pub(super) fn show(one: &StreamArgs, globals: &Globals) -> Result<(), Failure> {
    let (owner, _) = Owner::open(&one.reach)?;
    let schema: Schema = owner.client.get_json("/v1/schema", Duration::ZERO)?;
    let path = format!("/v1/streams/{}/budgets", one.stream);
    let standings: Vec<BudgetStanding> = owner.client.get_json(&path, Duration::ZERO)?;
    let table = Table {
        title: "Your privacy budgets spent on noise here".to_owned(),
        columns: ["attribute", "budget", "counts per", "used", "share"].map(str::to_owned).to_vec(),
        rows: standings.iter().map(|one| in_words(one, &schema).to_vec()).collect(),
    };
    let out = &mut std::io::stdout().lock();
    printed(print_tables(&[table], globals.format.unwrap_or_default(), out)).map(drop)
}
