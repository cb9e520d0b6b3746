//! `EXPLAIN` of a query that running queries block: what it would reveal without them.

use alpheus_policy::catalog::{Catalog, RunningQuery};
use alpheus_policy::planner::{
    ExclusionError, PlannedQuery, PlanningError, RuleError, ViolationError,
};
use alpheus_policy::query::Create;
use alpheus_stream_runtime::query_planner::{QueryContext, plan_query};
use alpheus_stream_runtime::refusal_ids::of_violations;
use rand_core::CryptoRng;
use std::collections::BTreeSet;

/// A plan names only the first query that holds an attribute, so others come to light once that one is away.
const ROUNDS: usize = 4;

/// Plans a query that is not started. If only running queries stand in its way, it is planned as if they
/// had ended, and the sentence says that it could not be started now.
///
/// # Errors
/// [`PlanningError`] if it is refused for another reason.
pub(super) fn plan_beside(
    catalog: &mut Catalog,
    create: &Create,
    asking: QueryContext<'_>,
    rng: &mut impl CryptoRng,
) -> Result<(PlannedQuery, Option<String>), PlanningError> {
    let (mut refusals, mut away) = (Vec::<PlanningError>::new(), Vec::<RunningQuery>::new());
    // A catalog may have a million streams, so it is not copied. They are back before anyone else looks,
    // and nothing can have taken their place.
    let planned = loop {
        let refusal = match plan_query(create, catalog, asking, rng) {
            Ok(planned) => break Some(planned),
            Err(refusal) => refusal,
        };
        let names: BTreeSet<&str> = refusal.violations.iter().filter_map(obstacle).collect();
        let more: Vec<RunningQuery> = names.iter().filter_map(|name| catalog.stop(name)).collect();
        let is_last = more.is_empty() || refusals.len() == ROUNDS;
        away.extend(more);
        refusals.push(refusal);
        if is_last {
            break None;
        }
    };
    for query in away {
        if let Err(error) = catalog.start(query) {
            tracing::error!(%error, "a bug: a running query is missing in the catalog until a restart");
        }
    }
    match planned {
        Some(planned) => Ok((planned, not_now(&refusals))),
        None => Err(refusals.swap_remove(0)),
    }
}

/// The running query in the way, if that is what a violation says.
fn obstacle(violation: &ViolationError) -> Option<&str> {
    match &violation.rule {
        RuleError::NameTaken { name } => Some(name),
        RuleError::Excluded { exclusion: ExclusionError::Locked { query, .. }, .. } => Some(query),
        _ => None,
    }
}

/// That it could not be started now, by which rule, and what would change that. None if it could.
fn not_now(refusals: &[PlanningError]) -> Option<String> {
    let all = refusals.iter().flat_map(|refusal| &refusal.violations);
    let in_the_way = all.filter(|violation| obstacle(violation).is_some());
    let mut known = BTreeSet::new();
    let why = in_the_way.clone().map(ToString::to_string);
    let why: Vec<String> = why.filter(|what| known.insert(what.clone())).collect();
    (!why.is_empty()).then(|| {
        let id = of_violations(in_the_way).id();
        format!("This query could not be started now ({id}): {}.", why.join("; "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assumed_owners::AssumedOwners;
    use alpheus_policy::policy::{Policies, ResolvedPolicy};
    use alpheus_policy::query::{Statement, parse};
    use alpheus_policy::schema::Schema;
    use alpheus_stream_runtime::embedded_deployment::Controllers;
    use alpheus_time::Timestamp;
    use chacha20::ChaCha20Rng;
    use rand_core::SeedableRng;
    use std::path::Path;

    const SCHEMA: &str = "
name: Meters
tick: 1s
capacity: { population: 100, events: 10 }
streamAttributes:
  - { name: load, type: integer, min: 0, max: 100, aggregations: [mean] }
  - { name: heat, type: integer, min: 0, max: 100, aggregations: [mean] }
streamPolicyOptions:
  - { name: total, option: aggregate, clients: [10], window: 1s, alpha: 0 }
";

    fn create(name: &str, item: &str) -> Create {
        let text = format!(
            "CREATE STREAM {name} AS SELECT {item} WINDOW TUMBLING (SIZE 1 SECOND) FROM Meters"
        );
        let Ok(Statement::Create(create)) = parse(&text) else { panic!("{text}") };
        create
    }

    #[test]
    fn what_a_running_query_is_in_the_way_of_is_planned_and_nothing_changes() {
        let schema = Schema::from_yaml(SCHEMA).unwrap();
        let policies = Policies::for_all(ResolvedPolicy::first_offered(&schema));
        let owners = AssumedOwners::invented(20, Controllers::Count(1), &schema, &[]).unwrap();
        let mut catalog = owners.catalog(Path::new("schema.yaml"), schema, &policies).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let asking = QueryContext::from(Timestamp(0));
        let first = plan_query(&create("Load", "SUM(load)"), &catalog, asking, &mut rng).unwrap();
        let plans = first.to_run();
        catalog.start(RunningQuery { name: first.name, sql: first.sql, plans }).unwrap();
        let before = catalog.clone();
        let mut explained = |name: &str, item: &str| {
            let planned = plan_beside(&mut catalog, &create(name, item), asking, &mut rng);
            assert_eq!(format!("{catalog:?}"), format!("{before:?}"), "{name} {item}");
            planned.map(|(planned, not_now)| (planned.plans.len(), not_now))
        };
        let held = "20 of 20 streams cannot take part: their `load` is already released by the running query \
                    `Load`, and only one query may release it; its consumer can end it with `DROP STREAM Load`";
        let not_now = |why: &str| {
            Some(format!("This query could not be started now (policy-released-once): {why}."))
        };
        assert_eq!(explained("Mean", "AVG(load)"), Ok((1, not_now(held))));
        let taken = "a query named `Load` is already running; choose another name, or run DROP STREAM Load first";
        let both = format!("{taken}; {held}");
        assert_eq!(explained("Load", "AVG(load)"), Ok((1, not_now(&both))));
        assert_eq!(explained("Heat", "AVG(heat)"), Ok((1, None)));
        // What is refused in any case stays refused.
        let refusal = explained("Median", "MEDIAN(load)").unwrap_err();
        assert!(refusal.to_string().contains("does not support MEDIAN"), "{refusal}");
    }
}
