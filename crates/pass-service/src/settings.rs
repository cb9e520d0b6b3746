//! Settings of the pass's processes: `pass.…` in the file, `ALPHEUS_PASS__…` in
//! the environment, flags.

use alpheus_node::settings::Part;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The settings of the pass's processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct PassSettings {
    /// The folder of the issuer's key and the card.
    pub deployment: Option<PathBuf>,
    /// The public card.
    pub card: Option<PathBuf>,
    /// The issuer's file of accounts.
    pub accounts: Option<PathBuf>,
    /// A command that checks accounts and prints their identifiers, instead of a file.
    pub accounts_command: Option<String>,
    /// An OpenID Connect provider that knows the accounts, instead of a file.
    pub oidc_provider: Option<String>,
    /// The issuer's client at the provider.
    pub oidc_client: Option<String>,
    /// Authorities that the provider's certificate may come from.
    pub oidc_authority: Option<PathBuf>,
    /// How many requests one address may make to the issuer in a minute.
    pub requests_per_minute: Option<u32>,
    /// Addresses of the verifiers in the order of shards, separated by commas.
    pub verifiers: Option<String>,
    /// The shard of this verifier.
    pub shard: Option<usize>,
    /// The service behind a gateway.
    pub upstream: Option<String>,
    /// The address at which a gateway answers forward authentication.
    pub check: Option<SocketAddr>,
    /// Concurrent requests of one session.
    pub concurrent: Option<u32>,
    /// How long running requests may continue after their session ends.
    pub overlap_milliseconds: Option<u64>,
    /// Serve without TLS, on this machine only.
    pub plain: Option<bool>,
}

impl Part for PassSettings {
    const KEY: &'static str = "pass";
}
