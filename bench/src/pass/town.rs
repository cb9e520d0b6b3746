//! A deployment in a temporary folder, and its processes, which run the measured
//! program.

use crate::program::{Program, Server, free};
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::network::base::Base;
use alpheus_node::network::client::HttpClient;
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_pass_service::card::{self, CARD};
use alpheus_pass_service::init::issuer_key;
use alpheus_pass_service::links;
use std::net::SocketAddr;
use tokio::runtime::Runtime;

/// A deployment.
pub(super) struct Town {
    program: Program,
    pub(super) pinned: PinnedConfiguration,
    pub(super) runtime: Runtime,
    pub(super) accounts: Vec<(String, String)>,
    pub(super) issuer_at: SocketAddr,
    pub(super) verifier_at: SocketAddr,
    pub(super) gateway_at: SocketAddr,
}

impl Town {
    /// With epochs of this many seconds. In all except the first, re-ups are
    /// accepted early, so that clients spread.
    pub(super) fn new(epoch: u32, accounts: u32) -> Result<Self, Failure> {
        let program = Program::new()?;
        let ours = |args: &[&str]| program.run(args);
        ours(&["ca", "init", "pki"])?;
        for role in ["issuer", "verifier", "gateway"] {
            ours(&["ca", "issue", "pki", "--role", role, "--name", role])?;
        }
        let (issuer_at, verifier_at, gateway_at) = (free()?, free()?, free()?);
        let (issuer, gateway) = (format!("https://{issuer_at}"), format!("http://{gateway_at}"));
        let (early, epoch) = ((epoch - 1).to_string(), epoch.to_string());
        let init = ["pass", "init", "deployment", "--issuer", &issuer, "--gateway", &gateway];
        let schedule = ["--epoch", &epoch, "--pre-login", &early, "--authority", "pki/ca.pem"];
        ours(&[&init[..], &schedule].concat())?;
        let mut known = Vec::new();
        for number in 0..accounts.min(500) {
            let name = format!("account-{number}");
            known
                .push((name.clone(), ours(&["pass", "account", &name, "--accounts", "accounts"])?));
        }
        let pinned = card::Card::load(&program.path("deployment").join(CARD))?.1.pinned;
        let runtime = tokio::runtime::Runtime::new().blame(Category::Io)?;
        Ok(Self { program, pinned, runtime, accounts: known, issuer_at, verifier_at, gateway_at })
    }

    /// The issuer's key, to make passes faster than with requests.
    pub(super) fn key(&self) -> Result<IssuerKey, Failure> {
        issuer_key(&self.program.path("deployment"))
    }

    pub(super) fn issuer(&self) -> Result<Server, Failure> {
        let at = self.issuer_at.to_string();
        let issuer = ["pass", "issuer", "--identity", "pki/issuer", "--deployment", "deployment"];
        let rest = ["--accounts", "accounts", "--state", "issuer", "--api", &at, "--new-state"];
        // All subscribers come from this machine.
        let limit = ["--requests-per-minute", "1000000"];
        self.program.start(&[&issuer[..], &rest, &limit].concat())
    }

    pub(super) fn verifier(&self) -> Result<Server, Failure> {
        let at = self.verifier_at.to_string();
        let verifier = ["pass", "verifier", "--identity", "pki/verifier"];
        let rest = ["--deployment", "deployment", "--state", "verifier", "--api", &at];
        self.program.start(&[&verifier[..], &rest].concat())
    }

    /// This many shards, each alone on a processor, and their addresses in order.
    pub(super) fn verifiers(&self, processors: usize) -> Result<(Vec<Server>, String), Failure> {
        let mut at = Vec::new();
        for _ in 0..processors {
            at.push(free()?.to_string());
        }
        let addresses: Vec<_> = at.iter().map(|at| format!("https://{at}")).collect();
        let addresses = addresses.join(",");
        let start = |(number, at): (usize, &String)| {
            let (shard, state) = (number.to_string(), format!("shard-{number}"));
            let verifier = ["pass", "verifier", "--identity", "pki/verifier"];
            let rest = ["--deployment", "deployment", "--state", &state, "--api", at];
            let place = ["--verifiers", &addresses, "--shard", &shard];
            let args = [&verifier[..], &rest, &place].concat();
            self.program.start_by(&["taskset", "--cpu-list", &shard], &args)
        };
        let started: Result<Vec<_>, _> = at.iter().enumerate().map(start).collect();
        Ok((started?, addresses))
    }

    pub(super) fn gateway(&self) -> Result<Server, Failure> {
        let (at, verifier) = (self.gateway_at.to_string(), format!("https://{}", self.verifier_at));
        let gateway = ["pass", "gateway", "--identity", "pki/gateway", "--card"];
        let rest = ["deployment/card.json", "--verifiers", &verifier, "--api", &at, "--plain"];
        self.program.start(&[&gateway[..], &rest].concat())
    }

    /// The gateway's identity.
    pub(super) fn identity(&self) -> Result<IdentityFolder, Failure> {
        IdentityFolder::open(&self.program.path("pki/gateway"), Role::Gateway)
    }

    /// A client of the issuer.
    pub(super) fn issuer_client(&self) -> Result<HttpClient, Failure> {
        let path = self.program.path("pki/ca.pem");
        let authority = std::fs::read_to_string(&path).blame_io(&path)?;
        links::issuer(base("https", self.issuer_at)?, Some(&authority))
    }

    /// A client of the verifier, as the gateway.
    pub(super) fn verifier_client(&self) -> Result<HttpClient, Failure> {
        links::verifier(base("https", self.verifier_at)?, &self.identity()?)
    }

    /// A client of the gateway, which is without TLS.
    pub(super) fn gateway_client(&self) -> Result<HttpClient, Failure> {
        links::gateway(base("http", self.gateway_at)?, None)
    }
}

fn base(scheme: &str, at: SocketAddr) -> Result<Base, Failure> {
    Base::parse(&format!("{scheme}://{at}")).blame(Category::Io)
}
