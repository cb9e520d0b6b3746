//! Certificates that the authority revokes while all processes run: their holders are out within
//! a minute, whatever their role, and stay out after a restart.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::alpheus;
use crate::common::deployment::{HOUSES, QUERY, RunningSite, Site, until};
use crate::pass::town::Town;
use crate::table::world::{SCHEMA, World};
use alpheus_node::network::base::Base;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::client::Limits;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::peer::ExpectedPeer;
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_streams::wire::ControllerView;
use axum::http::Method;
use std::fs;
use std::process::Output;
use std::time::{Duration, Instant};

/// How long it may take.
const SOON: Duration = Duration::from_secs(60);

/// The authority revokes these, and everybody gets the list.
fn revoke(running: &RunningSite, certificates: &[&str]) -> Instant {
    running.place.done(&[&["ca", "revoke", "pki"], certificates].concat());
    let hosts = HOUSES.map(|house| format!("host-{house}"));
    let owners = HOUSES.map(|house| format!("owner-{house}"));
    let meters = HOUSES.map(|house| format!("meter-{house}"));
    let all = hosts.iter().chain(&owners).chain(&meters).map(String::as_str);
    for party in all.chain(["service", "analyst", "eve"]) {
        let own = running.place.path(&format!("pki/{party}/revoked.txt"));
        fs::copy(running.place.path("pki/revoked.txt"), own).unwrap();
    }
    Instant::now()
}

/// Waits until it is refused for a revoked certificate, in good time.
fn is_refused(what: &str, since: Instant, mut attempt: impl FnMut() -> Output) {
    until(what, || {
        let output = attempt();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // Before the list is known it may fail for another reason.
        let is_refused = !output.status.success() && said.contains("the authority has revoked");
        is_refused.then_some(())
    });
    assert!(since.elapsed() < SOON, "{what}: {:?}", since.elapsed());
}

/// What a party hears whose own certificate is revoked, and one that calls another such party.
const YOURS: &str = "the authority has revoked your certificate";
const THEIRS: &str = "the authority has revoked the certificate at the other end";

/// Waits until somebody's log says so. A process hears it when it next calls the other end, which a
/// device with nothing to send does now and then.
fn says(what: &str, log: impl Fn() -> String, text: &str) {
    until(what, || log().contains(text).then_some(()));
}

/// The certificate of a house's controller goes into a file of this name.
pub(crate) fn certificate_of(running: &RunningSite, house: usize, file: &str) {
    let owner = running.place.path(&format!("pki/owner-{}", HOUSES[house]));
    let owner = IdentityFolder::open(&owner, Role::Owner).unwrap();
    let base = format!("https://{}", running.hosts[house].0);
    let client = BlockingClient::new(&base, ExpectedPeer::controller(None), &owner).unwrap();
    let known: Vec<ControllerView> = client.get_json("/v1/controllers", Duration::ZERO).unwrap();
    fs::write(running.place.path(file), &known[0].certificate).unwrap();
}

/// A verifier and a gateway: each refuses the other once its certificate is revoked.
#[test]
fn a_verifier_and_its_caller_refuse_each_others_revoked_certificates() {
    let town = Town::new("60", 1, &[]);
    let _verifier = town.verifier(0);
    let identity = || open_identity(&town.path("pki/gateway"), Role::Gateway).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let ask = |identity: &IdentityFolder| {
        let base = Base::parse(&town.urls()).unwrap();
        let client = alpheus_pass_service::links::verifier(base, identity).unwrap();
        let asked = client.exchange(Method::GET, "/nothing", &[], Vec::new(), Limits::SHORT);
        runtime.block_on(asked).unwrap_err().to_string()
    };
    let copy = |to: &str| {
        fs::copy(town.path("pki/revoked.txt"), town.path(&format!("pki/{to}/revoked.txt")))
            .unwrap();
        Instant::now()
    };
    let own = identity();
    assert!(!ask(&own).contains("revoked"), "{}", ask(&own));
    town.done(&["ca", "revoke", "pki", "pki/gateway/tls.pem"]);
    let since = copy("shard-0");
    until("a refusal by the verifier", || ask(&own).contains(YOURS).then_some(()));
    assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
    town.done(&["ca", "revoke", "pki", "pki/shard-0/tls.pem"]);
    let since = copy("gateway");
    until("a refusal of the verifier", || ask(&own).contains(THEIRS).then_some(()));
    assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
    assert!(ask(&identity()).contains(THEIRS), "and from the start");
}

#[test]
fn a_table_server_refuses_an_owner_whose_certificate_is_revoked() {
    let world = World::new(SCHEMA);
    world.write_rows("counts.csv", 0, 10);
    world.done("append counts.csv");
    let revoke = ["ca", "revoke", "pki", "pki/ada/tls.pem"];
    let revoked = alpheus(revoke).current_dir(world.path(".")).output().unwrap();
    assert!(revoked.status.success(), "{}", String::from_utf8_lossy(&revoked.stderr));
    fs::copy(world.path("pki/revoked.txt"), world.path("pki/service/revoked.txt")).unwrap();
    is_refused("the owner", Instant::now(), || world.run("verify"));
    let again = String::from_utf8(world.run("verify").stderr).unwrap();
    assert!(again.contains("alpheus errors certificate-refused"), "{again}");
    let other = world.command_of("eve", "verify").output().unwrap();
    assert!(!String::from_utf8_lossy(&other.stderr).contains("revoked"), "{other:?}");
}

#[test]
fn a_revoked_certificate_is_refused_by_everybody_within_a_minute() {
    let mut running = RunningSite::start_in(Site::with_ticks(), |_, api| api.to_owned());
    running.place.issue("consumer", "eve");
    let ask = |running: &RunningSite, sql: &str| running.place.ask(&running.server, sql);
    let sealed = format!("{QUERY} BETWEEN 1 AND 100 RELEASE TO analyst");
    assert!(ask(&running, &sealed).status.success());
    // Their input lasts longer than anybody waits here, and all of it is sent at once.
    let devices = running.feed_in(4, 2000);
    let log = |house: usize| running.owner_does(house, "log", &[]);
    assert!(log(1).status.success() && log(2).status.success());
    certificate_of(&running, 2, "host-c.txt");

    // A device, an owner, and the certificate that results are sealed to.
    let out = ["pki/meter-a/tls.pem", "pki/meter-a/device.txt", "pki/owner-b/tls.pem"];
    let since = revoke(&running, &[&out[..], &["pki/analyst/consumer.txt"]].concat());
    is_refused("the owner", since, || log(1));
    is_refused("the reader", since, || ask(&running, &format!("EXPLAIN {sealed}")));
    says("the device", || devices[0].log(), YOURS);
    until("the end of the query of the reader", || {
        running.service.log().contains("the query's consumer is revoked").then_some(())
    });
    assert!(log(2).status.success(), "nobody else is refused");
    assert!(!devices[1].log().contains("the authority has revoked"));
    let first = fs::read(running.place.path("pki/revoked.txt")).unwrap();

    // A controller, for the service and for its owner; and a consumer.
    let since = revoke(&running, &["pki/host-c/tls.pem", "host-c.txt", "pki/analyst/tls.pem"]);
    is_refused("the consumer", since, || ask(&running, "SHOW QUERIES"));
    is_refused("the controller, by its owner", since, || log(2));
    says("the controller, by the service", || running.hosts[2].1.log(), YOURS);

    // After a restart, an older list is refused.
    let second = fs::read(running.place.path("pki/revoked.txt")).unwrap();
    let kept = running.place.path("pki/host-a/revoked.known");
    until("a list that is kept", || (fs::read(&kept).ok()? == second).then_some(()));
    let (api, host) = &mut running.hosts[0];
    host.kill();
    fs::write(running.place.path("pki/host-a/revoked.txt"), first).unwrap();
    let mut again = running.place.start_controller(HOUSES[0], api, &running.server);
    assert!(!again.wait().success());
    assert!(again.log().contains("version 2 is already known"), "{}", again.log());

    // The service: devices and controllers end their connections.
    revoke(&running, &["pki/service/tls.pem"]);
    says("the service, by a device", || devices[1].log(), THEIRS);
    says("the service, by a controller", || running.hosts[1].1.log(), THEIRS);
}
