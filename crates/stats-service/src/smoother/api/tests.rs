//! Who may ask what, and what the metrics say of it.

use super::*;
use crate::keys;
use crate::links;
use crate::membership::{HEADER, stated};
use crate::test_deployment::TestDeployment;
use alpheus_node::engine::channel;
use alpheus_node::network::base::Base;
use alpheus_node::network::role::Name;
use alpheus_node::service::metrics::Metrics;
use axum::body::Body;
use axum::middleware::map_request;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use rcgen::{CertificateParams, KeyPair, SanType};
use std::sync::Arc;

/// The API of a smoother whose engine has stopped.
fn api(metrics: &Metrics, place: &TestDeployment) -> Api {
    let (engine, _) = channel();
    let (requests, forwarder) = (metrics.requests("stats_requests"), Forwarder::default());
    let (outbox, id) = (Outbox::new(1, Timestamp(0)), SmootherId(0));
    let nobody = Base::parse("http://127.0.0.1:9").unwrap();
    let aggregator = PartyClient::over(links::aggregator(nobody, None).unwrap());
    let relayed = RelayedResponses::default();
    let (quorum, smoothers) = (3, 4);
    let members = Members::new(&place.card.pinned);
    Api { engine, outbox, aggregator, relayed, forwarder, id, quorum, smoothers, members, requests }
}

async fn ask(router: &Router, method: &str, path: &str) -> StatusCode {
    let request = Request::builder().method(method).uri(path).body(Body::from("no message"));
    let answer = TowerToHyperService::new(router.clone()).call(request.unwrap()).await;
    answer.unwrap().status()
}

/// The peer routes as a party with this certificate name reaches them; `None` has no certificate.
/// It states what a member of a deployment would.
fn reached_by(
    (metrics, place): (&Metrics, &TestDeployment),
    name: Option<&str>,
    of: &TestDeployment,
) -> Router {
    let own = name.and_then(|name| name.parse::<Name>().ok()).map(|name| {
        let key = match name.role {
            Role::Aggregator => keys::signing(&of.keys("aggregator").join(keys::SIGNING)).unwrap(),
            _ => of.smoother(0),
        };
        stated(&of.card.pinned, &name, &key)
    });
    let certificate = name.map(|name| {
        let mut params = CertificateParams::new([]).unwrap();
        params.subject_alt_names.push(SanType::URI(name.try_into().unwrap()));
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        Arc::from(certificate.der().as_ref())
    });
    let address = "127.0.0.1:1".parse().unwrap();
    let states = map_request(move |mut request: Request| {
        if let Some(own) = &own {
            request.headers_mut().insert(HEADER, own.parse().unwrap());
        }
        std::future::ready(request)
    });
    peers(api(metrics, place)).layer(Extension(Peer { address, certificate })).layer(states)
}

/// Until an aggregate ends, nobody may learn its number of samples, not even from metrics:
/// neither by answers, nor by failures, nor by how many clients ask for definitions.
#[tokio::test]
async fn requests_are_counted_only_of_the_aggregator() {
    let metrics = Metrics::new();
    let place = TestDeployment::new();
    let router = clients(api(&metrics, &place));
    let by = |name| reached_by((&metrics, &place), Some(name), &place);
    let (peer, aggregator) = (by("alpheus://smoother/eve"), by("alpheus://aggregator/eve"));
    let before = values(&metrics);
    for path in ["slots", "deposits", "certificates", "definitions", "definitions/propose"] {
        assert!(ask(&router, "POST", &format!("/v1/{path}")).await.is_client_error());
    }
    assert!(ask(&router, "GET", "/v1/definitions/0").await.is_success());
    let name = "00".repeat(32);
    // The engine has stopped, so this fails.
    assert!(ask(&router, "GET", &format!("/v1/ends/{name}")).await.is_server_error());
    for path in ["outbox/1/0".into(), format!("sealed-uploads/{name}/0")] {
        ask(&peer, "GET", &format!("/v1/{path}")).await;
    }
    assert_eq!(values(&metrics), before);
    ask(&aggregator, "GET", "/v1/outcomes").await;
    assert!(values(&metrics).contains("request=\"outcomes\""));
}

/// Everything that is exported, but for the time since the start.
fn values(metrics: &Metrics) -> String {
    let text = metrics.text();
    let lines = text.lines().filter(|line| !line.starts_with("alpheus_uptime_seconds"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Routes that reveal the time of deposits, or open a sum, are for smoothers. Deposits and
/// outcomes are for the aggregator.
#[tokio::test]
async fn peer_routes_reject_other_roles() {
    let name = "00".repeat(32);
    let of = |path: &str| path.replace("NAME", &name);
    let of_smoothers =
        ["outbox/1/0", "certificates/NAME/0", "ready-statements/NAME", "sealed-uploads/NAME/0"]
            .map(of);
    let of_aggregator = [format!("release/{name}/0"), "outcomes".into()];
    let posted = [format!("check/{name}"), format!("disclosed/{name}"), "close".into()];
    let gets = |paths: &[String]| paths.iter().map(|path| ("GET", path.clone())).collect();
    let [mut smoothers, mut aggregator]: [Vec<_>; 2] = [gets(&of_smoothers), gets(&of_aggregator)];
    aggregator.extend(posted.into_iter().map(|path| ("POST", path)));
    smoothers.push(("POST", "deposits".into()));
    let (one, two) = ("alpheus://smoother/eve", "alpheus://aggregator/eve");
    let (place, elsewhere) = (TestDeployment::new(), TestDeployment::new());
    for (routes, who) in [(&smoothers, one), (&aggregator, two)] {
        for (method, path) in routes {
            for other in [Some(one), Some(two), Some("alpheus://registrar/eve"), None] {
                let reached = reached_by((&Metrics::new(), &place), other, &place);
                let status = ask(&reached, method, &format!("/v1/{path}")).await;
                let shut = [StatusCode::FORBIDDEN, StatusCode::UNAUTHORIZED].contains(&status);
                assert_eq!(shut, other != Some(who), "{path} by {other:?}: {status}");
            }
            // Of another deployment, under the same authority.
            let stranger = reached_by((&Metrics::new(), &place), Some(who), &elsewhere);
            let status = ask(&stranger, method, &format!("/v1/{path}")).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        }
    }
}
