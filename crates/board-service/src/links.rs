//! The servers that processes of boards call, and the role that each must have.

use alpheus_node::failure::Failure;
use alpheus_node::network::base::Base;
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::role::Role;

/// A database, a server, the auditor or the doorkeeper. Writers call all of them; readers and other
/// servers call all but the doorkeeper.
///
/// # Errors
/// If the authority cannot be used.
pub fn server(base: Base, authority: Option<&str>) -> Result<HttpClient, Failure> {
    HttpClient::anonymous(base, Role::Board, authority)
}
