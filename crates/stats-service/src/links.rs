//! The servers that processes of statistics call, and the role that each must have.

use alpheus_node::failure::Failure;
use alpheus_node::network::base::Base;
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;

/// The registrar: called by clients without a certificate.
///
/// # Errors
/// If the authority cannot be used.
pub fn registrar(base: Base, authority: Option<&str>) -> Result<HttpClient, Failure> {
    HttpClient::anonymous(base, Role::Registrar, authority)
}

/// The aggregator: called by clients and readers without a certificate.
///
/// # Errors
/// If the authority cannot be used.
pub fn aggregator(base: Base, authority: Option<&str>) -> Result<HttpClient, Failure> {
    HttpClient::anonymous(base, Role::Aggregator, authority)
}

/// A smoother: called by clients without a certificate.
///
/// # Errors
/// If the authority cannot be used.
pub fn smoother(base: Base, authority: Option<&str>) -> Result<HttpClient, Failure> {
    HttpClient::anonymous(base, Role::Smoother, authority)
}

/// A smoother at the address for its peers: called by other smoothers and the aggregator.
///
/// # Errors
/// If the address is without TLS, or a file of the identity cannot be used.
pub fn smoother_peer(base: Base, identity: &IdentityFolder) -> Result<HttpClient, Failure> {
    HttpClient::identified(base, Role::Smoother, identity)
}
