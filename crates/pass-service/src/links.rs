//! The servers that processes of passes call, and the role that each must have.

use alpheus_node::failure::Failure;
use alpheus_node::network::base::Base;
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::peer::ExpectedPeer;
use alpheus_node::network::role::Role;

/// The issuer: called by subscribers, who show no certificate.
///
/// # Errors
/// If the authority cannot be used.
pub fn issuer(base: Base, authority: Option<&str>) -> Result<HttpClient, Failure> {
    HttpClient::anonymous(base, Role::Issuer, authority)
}

/// The gateway, or the proxy in front of it: called by subscribers, who show no certificate.
///
/// # Errors
/// If the authority cannot be used.
pub fn gateway(base: Base, authority: Option<&str>) -> Result<HttpClient, Failure> {
    HttpClient::anonymous(base, ExpectedPeer::Front(Role::Gateway), authority)
}

/// A verifier: called by gateways, gates and other verifiers.
///
/// # Errors
/// If the address is without TLS, or a file of the identity cannot be used.
pub fn verifier(base: Base, identity: &IdentityFolder) -> Result<HttpClient, Failure> {
    HttpClient::identified(base, Role::Verifier, identity)
}

/// The service behind a gateway, which has no role.
///
/// # Errors
/// If the authority cannot be used.
pub fn upstream(base: Base, authority: Option<&str>) -> Result<HttpClient, Failure> {
    HttpClient::anonymous(base, ExpectedPeer::External, authority)
}
