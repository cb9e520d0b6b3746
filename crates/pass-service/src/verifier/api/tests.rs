//! Who may ask what of which shard. A tag that two shards accept would allow two sessions, and so
//! would a subscriber who could hold and release tags.

use super::*;
use crate::verifier::shards::AMONG_VERIFIERS;
use alpheus_access_pass::code::{Binding, present};
use alpheus_anonymous_credential::configuration::Configuration;
use alpheus_anonymous_credential::holder::{PendingRequest, Timing};
use alpheus_anonymous_credential::issuer::{Applicant, Issuer};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::ledger::StateOrigin;
use alpheus_anonymous_credential::schedule::Schedule;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::entropy;
use alpheus_node::network::base::Base;
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::error::RequestError;
use alpheus_node::network::identity::{CERTIFICATE, IdentityFolder};
use alpheus_node::network::peer::ExpectedPeer;
use alpheus_node::pki;
use alpheus_node::service::http::Server;
use alpheus_node::service::metrics::Metrics;
use alpheus_node::service::shutdown::Trigger;
use alpheus_time::Span;
use std::collections::BTreeMap;
use std::path::Path as FilePath;
use std::time::Duration;

const NONCE: GateNonce = [7; 16];
const ROLES: [Role; 3] = [Role::Gateway, Role::Verifier, Role::Issuer];

/// A request, and whether its placement counts.
struct TestRequest {
    name: &'static str,
    from: Role,
    placed: bool,
    body: Vec<u8>,
}

/// Every request about one pass, with the shard of its tag among two.
fn requests(pinned: &PinnedConfiguration, key: IssuerKey) -> (Vec<TestRequest>, u64) {
    let (rng, mut books) = (&mut entropy::rng().unwrap(), BTreeMap::new());
    let now = clock::now();
    let issuer = Issuer::restore(key, pinned.clone(), [], StateOrigin::New, now).unwrap();
    let mut issuer = issuer.commit(&mut books).unwrap();
    let asking = PendingRequest::begin(pinned.clone(), b"ada", Timing::Running, now, rng);
    let asking = asking.unwrap().commit(&mut books).unwrap();
    let answer = issuer.issue(Applicant::named(b"ada"), &asking.bytes(), now, rng).unwrap();
    let answer = answer.commit(&mut books).unwrap();
    let mut holder = asking.finish(&answer).unwrap().commit(&mut books).unwrap();
    let compared = pinned.compare(&pinned.fingerprint()).unwrap();
    let sent = holder.code(&compared, now, rng).unwrap().commit(&mut books).unwrap();
    let code = Code::from_bytes(&sent.bytes).unwrap();
    let shown = present(&holder, &sent, &Binding::Gate(NONCE)).unwrap();
    let (session, epoch) = (sent.session, sent.epoch.next());
    let (tag, proof) = code.onward[0].clone();
    let re_up = ReUp { epoch, session, tag, proof }.to_bytes();
    let scan = encode(&Scan { scan: [1; 32], nonce: Some(NONCE), shown }).unwrap();
    let logout = holder.log_out(session).unwrap().to_bytes();
    let held = encode(&HoldRequest { epoch, tag: session.0, session }).unwrap();
    let asked =
        |name, from, placed, body: &[u8]| TestRequest { name, from, placed, body: body.into() };
    let (gateway, verifier) = (Role::Gateway, Role::Verifier);
    let all = vec![
        asked("login", gateway, true, &code.login.to_bytes()),
        asked("re-up", gateway, true, &re_up),
        asked("code", gateway, true, &scan),
        asked("logout", gateway, false, &logout),
        asked("session", gateway, false, &encode(&session).unwrap()),
        asked("hold", verifier, true, &held),
        asked("keep", verifier, true, &held),
        asked("hold-for-code", verifier, true, &held),
        asked("release", verifier, true, &held),
    ];
    (all, session.0.shard(2))
}

fn pinned(key: &IssuerKey) -> PinnedConfiguration {
    let epoch = Span::seconds(600);
    let schedule = Schedule {
        start: clock::now(),
        epoch,
        pre_login: epoch,
        border_pre_login: epoch,
        epochs_per_period: 1 << 20,
        ahead: 1,
    };
    let (issuer, limit) = (*key.public(), Limit::ONE);
    let configuration = Configuration {
        deployment: [1; 32],
        kind: 1,
        tier: 1,
        limit,
        incarnation: 1,
        schedule,
        issuer,
    };
    let operator = SigningKey::from_seed(&Secret::from_bytes([3; 32]));
    PinnedConfiguration::open(&Signed::new(&configuration, &operator), &operator.verifying_key())
        .unwrap()
}

/// One of two shards, as a party with this role sees it. Its engine has stopped, so whatever passes
/// the checks is answered with `busy`.
async fn shard(
    folder: &FilePath,
    pinned: &PinnedConfiguration,
    index: u64,
    role: Role,
) -> (HttpClient, Trigger) {
    let identity = IdentityFolder::open(&folder.join("verifier"), Role::Verifier).unwrap();
    let urls = "https://localhost:1,https://localhost:2";
    let (engine, _) = alpheus_node::engine::channel();
    let api = Api {
        engine,
        pinned: pinned.clone(),
        place: ShardIndex { index, count: 2 },
        shards: Shards::new(urls, &identity, AMONG_VERIFIERS).unwrap(),
        requests: Metrics::new().requests("asked"),
    };
    let certificate = folder.join(role.as_str()).join(CERTIFICATE);
    let certificate = Some(pki::read_certificate(&certificate).unwrap().into());
    let server = Server::bind(([127, 0, 0, 1], 0).into(), None).await.unwrap();
    let address = server.address().unwrap();
    let router = router(api).layer(Extension(Peer { address, certificate }));
    let trigger = Trigger::new();
    tokio::spawn(server.serve(router, trigger.shutdown(), Duration::ZERO));
    let base = Base::parse(&format!("http://{address}")).unwrap();
    (HttpClient::anonymous(base, ExpectedPeer::External, None).unwrap(), trigger)
}

#[tokio::test]
async fn a_shard_answers_about_its_own_tags_and_to_the_right_role() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("pki");
    pki::make(&folder, &ROLES.map(|role| (role, role.as_str()))).unwrap();
    let key = IssuerKey::random(&mut entropy::rng().unwrap()).unwrap();
    let pinned = pinned(&key);
    let (requests, home) = requests(&pinned, key);
    let mut wrong = Vec::new();
    for (index, role) in (0..2).flat_map(|index| ROLES.map(|role| (index, role))) {
        let (link, _running) = shard(&folder, &pinned, index, role).await;
        for TestRequest { name, from, placed, body } in &requests {
            let wanted = match () {
                () if role != *from => "role",
                () if *placed && index != home => "shard",
                () => "busy",
            };
            let answer = link.post(&format!("/v1/shards/{index}/2/{name}"), body.clone()).await;
            let rule = answer.as_ref().err().and_then(RequestError::rule);
            if rule != Some(wanted) {
                wrong.push(format!("{name} from {}: {rule:?}, not {wanted}", role.as_str()));
            }
            // It was meant for the other shard.
            let other = format!("/v1/shards/{}/2/{name}", 1 - index);
            let other = link.post(&other, body.clone()).await;
            assert_eq!(other.unwrap_err().rule(), Some("shard"), "{name}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
