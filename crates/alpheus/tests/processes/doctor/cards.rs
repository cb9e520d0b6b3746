//! The processes of a card, as the doctor finds them at its addresses.

use crate::common::deployment::Site;
use crate::common::route_server::serve;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_node::service::shutdown::Trigger;
use alpheus_node::settings::TlsFiles;
use axum::Router;

/// A server of a role, which the site's authority certifies first; it serves as long as the trigger is kept.
pub(crate) fn stand_in(place: &Site, role: Role) -> (Trigger, String) {
    let name = role.as_str();
    place.issue(name, name);
    let tls = IdentityFolder::open(&place.path(&format!("pki/{name}")), role).unwrap().tls();
    serve(&TlsFiles { client_ca: None, ..tls }, Router::new().fallback(|| async { "here" }))
}

/// Makes a pass deployment with these addresses; its card is in the folder.
pub(crate) fn pass(place: &Site, folder: &str, issuer: &str, gateway: &str, authority: &str) {
    let init = ["pass", "init", folder, "--issuer", issuer, "--gateway", gateway];
    place.done(&[&init[..], &["--authority", authority, "--epoch", "60"]].concat());
}

/// A certificate of the right authority for the right host is not enough: at an address of a card the
/// doctor demands the role that clients demand there.
#[test]
fn a_card_that_leads_to_a_process_of_another_role_is_named() {
    let place = Site::new();
    let servers = [Role::Issuer, Role::Gateway, Role::Board].map(|role| stand_in(&place, role));
    let [issuer, gateway, board] = servers.each_ref().map(|(_running, address)| address);
    let roles =
        [("right", issuer, gateway), ("issuer", board, gateway), ("gateway", issuer, board)];
    for (folder, issuer, gateway) in roles {
        pass(&place, folder, issuer, gateway, "pki/ca.pem");
        let output = place.run(&["doctor", "--card", &format!("{folder}/card.json")]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_named = said.contains("wrong-card") && said.contains(board);
        assert_eq!(is_named, folder != "right", "{folder}: {said}");
        assert_eq!(output.status.code(), Some(i32::from(is_named)), "{folder}: {said}");
    }
}
