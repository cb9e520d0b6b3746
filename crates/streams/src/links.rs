//! The servers that processes of streams call, and the role that each must have.

use alpheus_node::failure::Failure;
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::peer::ExpectedPeer;
use alpheus_node::network::role::Role;

/// The service: called by producers, controllers and consumers.
///
/// # Errors
/// If the address or a file of the identity cannot be used.
pub fn service(base: &str, identity: &IdentityFolder) -> Result<BlockingClient, Failure> {
    BlockingClient::new(base, Role::Server, identity)
}

/// A host of controllers, by its name if it is known: called by owners, and by consumers
/// with a grant.
///
/// # Errors
/// If the address or a file of the identity cannot be used.
pub fn controller(
    base: &str,
    name: Option<&str>,
    identity: &IdentityFolder,
) -> Result<BlockingClient, Failure> {
    BlockingClient::new(base, ExpectedPeer::controller(name), identity)
}
