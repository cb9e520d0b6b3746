//! The server that owners of tables call, and the role that it must have.

use alpheus_node::failure::Failure;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;

/// The server that stores tables: called by their owners.
///
/// # Errors
/// If the address or a file of the identity cannot be used.
pub fn server(base: &str, identity: &IdentityFolder) -> Result<BlockingClient, Failure> {
    BlockingClient::new(base, Role::Server, identity)
}
