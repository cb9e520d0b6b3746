//! How the service is, for people and for whoever draws it.

use super::Api;
use crate::network::answer::ApiError;
use crate::runtime::embedded::wall_clock;
use alpheus_policy::time::Timestamp;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A host that was not heard of for so long is not there.
const THERE: Duration = Duration::from_secs(60);

/// What has come of everything since the start. Counts and reasons; about no stream.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    /// The service's clock, in milliseconds since the Unix epoch.
    pub now: u64,
    /// Milliseconds from the event time that all partitions have reached until now; none
    /// before the first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// Windows being opened.
    pub under_way: usize,
    /// Windows that opened.
    pub opened: u64,
    /// Windows that did not, by reason.
    pub failed: BTreeMap<String, u64>,
    /// Streams left out of windows, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Frames read from the log.
    pub frames: u64,
    /// Frames that became dead letters, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Hosts of controllers.
    pub hosts: usize,
    /// Those of them that were heard of in the last minute.
    pub hosts_there: usize,
}

pub(super) async fn status(State(api): State<Api>) -> Result<Json<Status>, ApiError> {
    let counters = api.engine.ask(|engine| engine.manager.service.counters.clone()).await?;
    let Timestamp(now) = wall_clock();
    let (hosts, hosts_there) = api.outboxes.hosts(THERE);
    let said = |(reason, count): (&dyn ToString, &u64)| (reason.to_string(), *count);
    Ok(Json(Status {
        now: now / 1000,
        behind: counters.watermark.map(|reached| now.saturating_sub(reached.0) / 1000),
        under_way: counters.under_way,
        opened: counters.opened,
        failed: counters.failed.iter().map(|(reason, n)| said((reason, n))).collect(),
        left_out: counters.exclusions.iter().map(|(reason, n)| said((reason, n))).collect(),
        frames: counters.frames,
        refused: counters.refused_frames,
        hosts,
        hosts_there,
    }))
}
