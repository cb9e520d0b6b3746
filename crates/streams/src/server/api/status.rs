//! The state of the service, for people and for monitoring.

use super::Api;
use crate::server::lost_state::LostStateReport;
use crate::server::outages::SILENT;
use alpheus_doctor::facts::Sign;
use alpheus_node::clock;
use alpheus_node::network::answer::{ApiError, caller};
use alpheus_node::network::role::Role;
use alpheus_node::service::http::Peer;
use alpheus_time::Timestamp;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Counts and reasons since the start; nothing about any single stream.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    /// The service's clock, in milliseconds since the Unix epoch.
    pub now: u64,
    /// How far event time is behind the clock, in milliseconds: the event time that all
    /// partitions have reached. None before the first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_ms: Option<u64>,
    /// Windows being opened.
    pub windows_in_progress: usize,
    /// Windows with a result.
    pub windows_opened: u64,
    /// Windows without one, by reason.
    pub windows_failed: BTreeMap<String, u64>,
    /// Streams left out of windows, by reason. For consumers: out of windows that opened.
    pub streams_excluded: BTreeMap<String, u64>,
    /// Frames read from the log.
    pub frames_read: u64,
    /// Frames that became dead letters, by reason.
    pub frames_refused: BTreeMap<String, u64>,
    /// Hosts of controllers.
    pub hosts: usize,
    /// Hosts that were heard from in the last minute.
    pub hosts_active: usize,
    /// Streams that are waited for after an outage.
    #[serde(default)]
    pub absent_streams: usize,
    /// Hosts that are waited for after an outage.
    #[serde(default)]
    pub absent_hosts: usize,
    /// Hosts that were not heard from in the last minute, or not since the service's start if that is longer
    /// ago.
    #[serde(default)]
    pub silent_hosts: usize,
    /// Signs of faults, and how often each was seen in the last ten minutes, or in the time that was asked
    /// for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recent: BTreeMap<Sign, u64>,
    /// Signs that the state was restored from a backup, or emptied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_state: Option<LostStateReport>,
    /// What `/healthz` says an operator should know, by subject.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, String>,
}

/// A host of controllers, for the operator.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// The name on its certificate.
    pub name: String,
    /// Its controllers that the service knows.
    pub controllers: usize,
    /// The streams that they guard.
    pub streams: usize,
    /// How long ago it was heard from, in milliseconds; none if not since the service's start.
    pub heard_ms_ago: Option<u64>,
    /// Messages that wait for it.
    pub waiting: usize,
    /// Whether it was not heard from in the last minute, or since the service's start if that is longer ago.
    #[serde(default)]
    pub silent: bool,
}

/// For how long back signs count.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Within {
    /// In seconds; an hour at most.
    #[serde(default = "ten_minutes")]
    within: u64,
}

fn ten_minutes() -> u64 {
    600
}

/// Whether a host that was heard from so long ago, or not at all, is silent. After the start hosts have a minute
/// to come back.
fn is_silent(heard: Option<Duration>, up: Duration) -> bool {
    heard.unwrap_or(up) > SILENT
}

/// The hosts of controllers, by name.
pub(super) async fn hosts(State(api): State<Api>) -> Result<Json<Vec<HostStatus>>, ApiError> {
    let known = api.engine.ask(|engine| engine.registry.hosts()).await?;
    let host = |(name, (controllers, streams)): (String, (usize, usize))| {
        let (heard, waiting) = api.outboxes.state_of(&name);
        let heard_ms_ago = heard.map(|ago| u64::try_from(ago.as_millis()).unwrap_or(u64::MAX));
        let silent = is_silent(heard, clock::steady());
        HostStatus { name, controllers, streams, heard_ms_ago, waiting, silent }
    };
    Ok(Json(known.into_iter().map(host).collect()))
}

pub(super) async fn status(
    State(api): State<Api>,
    Extension(peer): Extension<Peer>,
    Query(within): Query<Within>,
) -> Result<Json<Status>, ApiError> {
    let reader = caller(&peer, &[Role::Consumer, Role::Operator])?.role;
    read(&api, within, reader).await.map(Json)
}

/// The state, as this role may see it.
pub(super) async fn read(
    api: &Api,
    Within { within }: Within,
    reader: Role,
) -> Result<Status, ApiError> {
    let counters = api.engine.ask(|engine| engine.manager.service.counters.clone()).await?;
    let exclusions = match reader {
        Role::Operator => &counters.exclusions,
        _ => &counters.exclusions_of_opened,
    };
    let Timestamp(now) = clock::now();
    let (hosts, hosts_active) = api.outboxes.hosts(SILENT);
    let (steady, within) = (clock::steady(), Duration::from_secs(within));
    let silent_hosts = if is_silent(None, steady) { hosts - hosts_active } else { 0 };
    let entry = |(reason, count): (&dyn ToString, &u64)| (reason.to_string(), *count);
    Ok(Status {
        now: now / 1000,
        lag_ms: counters.watermark.map(|reached| now.saturating_sub(reached.0) / 1000),
        windows_in_progress: counters.in_progress,
        windows_opened: counters.opened,
        windows_failed: counters.failed.iter().map(|(reason, n)| entry((reason, n))).collect(),
        streams_excluded: exclusions.iter().map(|(r, n)| entry((r, n))).collect(),
        frames_read: counters.frames,
        frames_refused: counters.refused_frames,
        hosts,
        hosts_active,
        absent_streams: counters.absent_streams,
        absent_hosts: counters.absent_hosts,
        silent_hosts,
        recent: api.signs.within(steady, within),
        lost_state: api.lost.report(),
        notes: api
            .health
            .report()
            .notes
            .iter()
            .map(|(at, text)| (at.to_string(), text.clone()))
            .collect(),
    })
}
