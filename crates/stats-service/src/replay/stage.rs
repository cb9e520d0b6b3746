//! A complete deployment on one machine, for replays: PKI, keys, card, clock and one process per
//! role. All of it is deleted when the command ends.

use crate::card::{Addresses, SmootherAt, VerifiedCard};
use crate::init::{self, Plan};
use crate::keys;
use crate::plan::Plan as MeasurementPlan;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_node::clock::{Clock, ClockWriter};
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::{Readers, write_new};
use alpheus_node::network::role::Role;
use alpheus_node::pki;
use alpheus_node::service::children::{Children, Folder, free_address};
use alpheus_pass_service::issuer::accounts::line;
use alpheus_time::Timestamp;
use data_encoding::BASE64URL_NOPAD;
use std::net::SocketAddr;
use std::path::Path;
use zeroize::Zeroizing;

/// A local deployment.
pub struct Stage {
    /// The deployment's card.
    pub card: VerifiedCard,
    /// The key that signs definitions.
    pub definer: SigningKey,
    /// The key that signs counts.
    pub operator: SigningKey,
    /// The clock that all processes read.
    pub clock: Clock,
    /// The writer that advances it.
    pub clock_writer: ClockWriter,
    /// Accounts and their secrets.
    pub accounts: Vec<(String, Zeroizing<String>)>,
    children: Children,
    // Last, so that it is deleted after the processes have ended.
    folder: Folder,
}

/// The size of a deployment.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number n of smoothers.
    pub smoothers: usize,
    /// The threshold t.
    pub threshold: u16,
    /// The number of accounts.
    pub clients: usize,
    /// The start of the first day.
    pub start: Timestamp,
    /// Days in a period of credentials.
    pub days: u64,
    /// The initial time.
    pub now: Timestamp,
    /// The start of the first aggregate.
    pub first: Timestamp,
}

/// A smoother's addresses.
struct At {
    clients: SocketAddr,
    peers: SocketAddr,
}

impl Stage {
    /// Creates a deployment and starts its processes. Counts, which have no measurement plan, need no
    /// smoothers.
    ///
    /// # Errors
    /// If a file cannot be written or a process cannot be started.
    pub fn start(size: Size, measured: Option<&MeasurementPlan>) -> Result<Self, Failure> {
        let folder = Folder::create("stats")?;
        let path = folder.path();
        let names: Vec<String> = (1..=size.smoothers).map(|i| format!("smoother-{i}")).collect();
        let mut identities = vec![(Role::Registrar, "registrar"), (Role::Aggregator, "aggregator")];
        identities.extend(names.iter().map(|name| (Role::Smoother, name.as_str())));
        pki::make(&path.join("pki"), &identities)?;
        let at = names.iter().map(|_| Ok(At { clients: free_address()?, peers: free_address()? }));
        let at = at.collect::<Result<Vec<At>, Failure>>()?;
        let others = [free_address()?, free_address()?];
        let card = init::make(&path.join("keys"), plan(path, size, &at, others)?)?;
        if let Some(measured) = measured {
            measured.check(&card.pinned, size.first).blame(Category::Input)?;
        }
        let key = |name: &str| keys::signing(&path.join("keys").join(name));
        let (definer, operator) = (key(init::DEFINER)?, key(init::OPERATOR)?);
        let accounts = accounts(path, size.clients)?;
        let clock = path.join("clock");
        let clock_writer = ClockWriter::create(&clock, size.now)?;
        let mut children = Children::default();
        start(&mut children, path, "registrar", &others[0], &["--accounts", "accounts.txt"])?;
        start(&mut children, path, "aggregator", &others[1], &[])?;
        let started = names.iter().zip(&at).filter(|_| measured.is_some());
        for (name, at) in started {
            start(&mut children, path, name, &at.clients, &["--peers", &at.peers.to_string()])?;
        }
        let clock = Clock::replayed(&clock)?;
        Ok(Self { card, definer, operator, clock, clock_writer, accounts, children, folder })
    }

    /// The process ids: registrar, aggregator, smoothers.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        (0..self.card.smoothers.len() + 2).map(|index| self.children.id(index)).collect()
    }

    /// The folder that the processes run in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Takes the processes, which must end before the folder is deleted.
    pub fn children(&mut self) -> Children {
        std::mem::take(&mut self.children)
    }
}

fn plan(folder: &Path, size: Size, at: &[At], others: [SocketAddr; 2]) -> Result<Plan, Failure> {
    let url = |at: &SocketAddr| format!("https://{at}");
    let smoother = |at: &At| SmootherAt { clients: url(&at.clients), peers: url(&at.peers) };
    let authority = folder.join("pki/ca.pem");
    let authority = std::fs::read_to_string(&authority).blame_io(&authority)?;
    let [registrar, aggregator] = others.each_ref().map(url);
    let smoothers = at.iter().map(smoother).collect();
    Ok(Plan {
        at: Addresses { registrar, aggregator, smoothers },
        threshold: size.threshold,
        authority: Some(authority),
        start: size.start,
        min_accounts: 2,
        wasteful_accounts: 0,
        period_days: size.days,
        tolerance: init::TOLERANCE,
    })
}

/// Creates numbered accounts.
fn accounts(folder: &Path, many: usize) -> Result<Vec<(String, Zeroizing<String>)>, Failure> {
    let (mut rng, mut accounts, mut lines) = (entropy::rng()?, Vec::new(), String::new());
    for number in 1..=many {
        let secret = Secret::<32>::random(&mut rng);
        let secret = Zeroizing::new(BASE64URL_NOPAD.encode(secret.expose()));
        let name = format!("client-{number}");
        lines += &line(&name, &secret);
        accounts.push((name, secret));
    }
    write_new(&folder.join("accounts.txt"), &lines, Readers::Owner)?;
    Ok(accounts)
}

fn start(
    children: &mut Children,
    folder: &Path,
    name: &str,
    at: &SocketAddr,
    more: &[&str],
) -> Result<(), Failure> {
    let role = name.split('-').next().unwrap_or_default();
    let (identity, keys, state) =
        (format!("pki/{name}"), format!("keys/{name}"), format!("run/{name}"));
    let at = at.to_string();
    let who = ["stats", role, "--identity", &identity, "--keys", &keys, "--state", &state];
    let rest = ["--card", "keys/card.json", "--replay-clock", "clock", "--api", &at];
    std::fs::create_dir_all(folder.join("run")).blame(Category::Io)?;
    children.start(folder, &[who.as_slice(), &rest, more].concat())
}
