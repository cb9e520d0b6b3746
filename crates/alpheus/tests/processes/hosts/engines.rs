//! What the engine `job` does not sum.

use super::world::{QUERY, SCHEMA, Town, at};
use alpheus_stream_runtime::engine_kind::EngineKind;
use alpheus_stream_runtime::manager::QueryError;
use alpheus_stream_runtime::plane::UnsupportedPlanError;

/// It keeps no sums of sessions, which the members of a window would check. The query runs without it.
#[test]
fn the_job_refuses_queries_whose_rows_members_decide() {
    let ticks = SCHEMA.replace("frames: events", "anchor: 2s");
    let mut town = Town::of(&ticks);
    town.engine = EngineKind::Job;
    let (mut hall, _, _) = town.two_houses();
    drop(hall.manager.drop_query(at(1), "Readings").unwrap().unwrap());
    for integrity in ["verified", "bounded"] {
        let sql = format!("{QUERY} WITH (integrity = '{integrity}', alpha = '1/3')");
        let refused = hall.ask_as("analyst", &sql, at(2), &mut town.rng).map(drop).unwrap_err();
        let QueryError::UnsupportedPlanError(why) = refused else { unreachable!("{refused}") };
        assert_eq!(why, UnsupportedPlanError::Verified);
        assert!(why.to_string().ends_with("remove it, or use the engine `in-process`"), "{why}");
    }
    assert_eq!(hall.manager.service.running(), []);
    drop(hall.ask(QUERY, at(3), &mut town.rng));
    assert_eq!(hall.manager.service.running().len(), 1);
}
