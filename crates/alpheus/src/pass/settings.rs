//! Settings of the pass's processes: `pass.…` in the file, `ALPHEUS_PASS__…` in
//! the environment, flags.

use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What the pass's processes can be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct PassSettings {
    /// The folder with the issuer's key and the card.
    pub deployment: Option<PathBuf>,
    /// The public card.
    pub card: Option<PathBuf>,
    /// The issuer's file of accounts.
    pub accounts: Option<PathBuf>,
    /// Or a command that knows them.
    pub accounts_command: Option<String>,
    /// Where the verifiers are, shard by shard, between commas.
    pub verifiers: Option<String>,
    /// Which of the shards this verifier is.
    pub shard: Option<usize>,
    /// The service that a gateway protects.
    pub upstream: Option<String>,
    /// Where a gateway answers forward authentication.
    pub check: Option<SocketAddr>,
    /// Requests of one session at the same time.
    pub concurrent: Option<u32>,
    /// How long running requests may go on after their session's end.
    pub overlap_milliseconds: Option<u64>,
    /// Open connections at once.
    pub connections: Option<usize>,
    /// A gateway without TLS, on this machine only.
    pub plain: Option<bool>,
}
