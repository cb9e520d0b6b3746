//! Failures of commands beside a deployment that runs, and beside servers that do not answer as ours do.

use super::walk::{Case, Ground};
use crate::common::deployment::{QUERY, RunningSite, Site, free};
use crate::common::route_server::serve;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::any;
use serde_json::json;

/// What people do wrong there. `ask` sends a query as the consumer `analyst`.
pub(super) const CASES: &[Case] = &[
    Case(
        "query-name-taken",
        3,
        "./ask \"${NOISY/Alarms/Readings} WITH (epsilon = 1)\"",
        "a query named `Readings` is already running",
        "",
    ),
    Case(
        "policy-released-once",
        3,
        "./ask \"${QUERY/Readings/Others}\"",
        "already released by the running query `Readings`",
        "",
    ),
    Case(
        "query-reader",
        3,
        "./ask \"${NOISY/Alarms/Sealed} RELEASE TO hospital\"",
        "only `hospital` itself can request results that are sealed to it",
        "",
    ),
    Case(
        "query-too-many",
        3,
        "./ask \"$NOISY\" > /dev/null && ./ask \"${NOISY//larms/thers}\"",
        "you have 2 running queries",
        "",
    ),
    Case(
        "not-found",
        4,
        "alpheus query --server $SERVER --identity pki/analyst --results Nothing",
        "Nothing",
        "",
    ),
    Case(
        "state-in-use",
        5,
        "alpheus server --identity pki/service --schema schema.yaml --state run/service --api $FREE",
        "run/service: another process has this store open",
        "stop the other process",
    ),
    Case("server-busy", 5, "./ask 'SHOW SCHEMAS' $BUSY", "it answered 503", ""),
    Case("server-failed", 5, "./ask 'SHOW SCHEMAS' $FAILED", "it answered 500", ""),
    Case("server-other-version", 5, "./ask 'SHOW SCHEMAS' $OTHER", "", ""),
];

const FILES: &str = r#"
cat > ask <<'END'
#!/bin/bash
exec alpheus query --server "${2:-$SERVER}" --identity pki/analyst --query "$1"
END
chmod +x ask
./ask "$QUERY" > /dev/null
"#;

/// A server with the service's certificate, which gives everybody the same answer.
fn stub(
    running: &RunningSite,
    status: u16,
    answer: serde_json::Value,
) -> (alpheus_node::service::shutdown::Trigger, String) {
    let identity = IdentityFolder::open(&running.place.path("pki/service"), Role::Server).unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    let answer = move || async move {
        (status, [("content-type", "application/problem+json")], answer.to_string()).into_response()
    };
    serve(&identity.tls(), Router::new().fallback(any(answer)))
}

#[test]
fn failures_beside_a_deployment_print_their_ids() {
    let running =
        RunningSite::start_in(Site::with_setting("ALPHEUS_QUERIES_PER_CONSUMER", "2"), |_, api| {
            api.to_owned()
        });
    let (_busy, busy) = stub(&running, 503, json!(null));
    let (_failed, failed) = stub(&running, 500, json!(null));
    let (_other, other) = stub(&running, 200, json!("another program"));
    let noisy =
        "CREATE STREAM Alarms AS SELECT SUM(alarms) WINDOW TUMBLING (SIZE 2 SECONDS) FROM Meters";
    let variables = [
        ("SERVER", running.server.clone()),
        ("FREE", free()),
        ("QUERY", format!("{QUERY} BETWEEN 3 AND 100")),
        ("NOISY", noisy.to_owned()),
        ("BUSY", busy),
        ("FAILED", failed),
        ("OTHER", other),
    ];
    let place = Ground { folder: &running.place.path(""), variables: &variables };
    place.prepare(FILES);
    place.walk(CASES);
}
