//! Facts from processes that the caller can ask.

use super::local_facts::schema_facts;
use alpheus_doctor::facts::{Answer, Endpoint, Reach, RefusalFacts, Rejection, ServiceFacts};
use alpheus_node::clock;
use alpheus_node::failure::Failure;
use alpheus_node::network::base::Base;
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::error::{Problem, RequestError};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::probe::{Probe, ProbeAnswer, ProbeError};
use alpheus_node::network::role::Role;
use alpheus_streams::links;
use alpheus_streams::server::api::diagnosis::{Diagnosis, counts_of, query_of, silent_of};
use alpheus_streams::server::api::status::{HostStatus, Status};
use alpheus_streams::wire::QueryView;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Who asks.
pub(super) struct Caller<'a> {
    pub(super) folder: &'a IdentityFolder,
    /// For how many seconds back the service's counts matter.
    pub(super) within: u32,
}

/// What `/healthz` says.
#[derive(Default, Deserialize)]
struct Health {
    #[serde(default)]
    parts: BTreeMap<String, String>,
    #[serde(default)]
    notes: BTreeMap<String, String>,
}

impl Caller<'_> {
    /// The service, with all that the caller's role may see of it.
    pub(super) fn service(&self, address: &str) -> Result<ServiceFacts, Failure> {
        let probe = links::service(address, self.folder)?.http().probe();
        let endpoint = endpoint(address, &probe, Role::Server);
        let nothing = (None, None, Vec::new(), Vec::new(), Vec::new());
        let (schema, counts, silent_hosts, queries, found) = nothing;
        let mut facts = ServiceFacts { endpoint, schema, counts, silent_hosts, queries, found };
        if !matches!(facts.endpoint.reach, Reach::Answered(_)) {
            return Ok(facts);
        }
        match probe.get("/v1/schema") {
            Ok(answer) if is_revoked(&answer) => {
                facts.endpoint.reach = Reach::RejectedUs(Rejection::Revoked);
                return Ok(facts);
            }
            answer => facts.schema = read(answer).as_ref().map(schema_facts),
        }
        let role = self.folder.name().role;
        let may_watch = matches!(role, Role::Consumer | Role::Operator);
        if may_watch {
            let within = format!("?within={}", self.within);
            let status: Option<Status> = read(probe.get(&format!("/v1/status{within}")));
            facts.counts = status.as_ref().map(counts_of);
            let queries: Option<Vec<QueryView>> = read(probe.get("/v1/queries"));
            facts.queries = queries.iter().flatten().map(query_of).collect();
        }
        if role == Role::Operator {
            let hosts: Option<Vec<HostStatus>> = read(probe.get("/v1/hosts"));
            facts.silent_hosts = silent_of(hosts.unwrap_or_default());
            let path = format!("/v1/diagnosis?within={}", self.within);
            let diagnosis: Option<Diagnosis> = read(probe.get(&path));
            facts.found = diagnosis.map(|known| known.findings).unwrap_or_default();
        }
        Ok(facts)
    }

    /// A host of controllers.
    pub(super) fn controller(&self, address: &str) -> Result<Endpoint, Failure> {
        let probe = links::controller(address, None, self.folder)?.http().probe();
        Ok(endpoint(address, &probe, Role::Controller))
    }

    /// Why the service would refuse a query, if it says so.
    pub(super) fn refusal(&self, address: &str, sql: &str) -> Option<RefusalFacts> {
        let client = links::service(address, self.folder).ok()?;
        let words = sql.trim_start();
        let is_explained = words.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("explain"));
        let sql = if is_explained { words.to_owned() } else { format!("EXPLAIN {words}") };
        let statement = serde_json::json!({ "sql": sql });
        match client.post_json::<serde_json::Value>("/v1/statements", &statement) {
            Err(RequestError::Refused(Problem { id: Some(id), detail, .. })) => {
                // The rest shows the query again, with marks.
                let detail = detail.lines().next().unwrap_or_default().to_owned();
                Some(RefusalFacts { id, detail })
            }
            _ => None,
        }
    }
}

/// A process of a card: its address, the role that it must have, and how clients connect to it.
pub(super) type CardProcess = (String, Role, Connect);
/// A function of a `links.rs` that connects without a certificate.
pub(super) type Connect = fn(Base, Option<&str>) -> Result<HttpClient, Failure>;

/// Who answers at an address of a card, by the card's authority; none if clients cannot ask.
pub(super) fn card_endpoint(process: &CardProcess, authority: Option<&str>) -> Option<Endpoint> {
    let (address, expected, connect) = process;
    let client = connect(Base::anywhere(address).ok()?, authority).ok()?;
    Some(endpoint(address, &client.probe(), *expected))
}

fn endpoint(address: &str, probe: &Probe, expected: Role) -> Endpoint {
    let reach = match probe.get("/healthz") {
        Ok(answer) => Reach::Answered(answered(&answer)),
        Err(error) => reach_of(error, expected),
    };
    Endpoint { address: address.to_owned(), reach }
}

fn answered(answer: &ProbeAnswer) -> Answer {
    let Health { parts, notes } = serde_json::from_slice(&answer.body).unwrap_or_default();
    let now = i64::try_from(clock::now().0 / 1_000_000).unwrap_or(i64::MAX);
    let name = answer.peer.as_ref().map(|peer| peer.name.clone()).unwrap_or_default();
    // Others than ours name themselves too.
    let build = answer.build.clone().filter(|build| build.starts_with("alpheus/"));
    let ahead_seconds = answer.date.map(|date| date - now);
    Answer { name, build, ahead_seconds, parts, notes }
}

fn reach_of(error: ProbeError, expected: Role) -> Reach {
    match error {
        ProbeError::NoSuchHost => Reach::NoSuchHost,
        ProbeError::Refused => Reach::Refused,
        ProbeError::Silent => Reach::Silent,
        ProbeError::NotTls => Reach::NotTls,
        ProbeError::OtherHost => Reach::OtherHost,
        ProbeError::OtherAuthority | ProbeError::Nameless => Reach::OtherAuthority,
        ProbeError::Expired => Reach::Expired,
        ProbeError::NotYetValid => Reach::NotYetValid,
        ProbeError::Revoked => Reach::Revoked,
        ProbeError::OtherPeer(is) => Reach::OtherPeer {
            role: is.role.as_str().to_owned(),
            name: is.name,
            expected: expected.as_str().to_owned(),
        },
        ProbeError::RejectedExpired => Reach::RejectedUs(Rejection::Expired),
        ProbeError::RejectedAuthority => Reach::RejectedUs(Rejection::OtherAuthority),
        ProbeError::Rejected => Reach::RejectedUs(Rejection::Other),
    }
}

/// Whether the door refuses the caller's certificate as revoked.
fn is_revoked(answer: &ProbeAnswer) -> bool {
    let problem: Option<Problem> = serde_json::from_slice(&answer.body).ok();
    answer.status == 401 && problem.is_some_and(|problem| problem.rule == "revoked")
}

fn read<T: DeserializeOwned>(answer: Result<ProbeAnswer, ProbeError>) -> Option<T> {
    let answer = answer.ok().filter(|answer| answer.status == 200)?;
    serde_json::from_slice(&answer.body).ok()
}
