//! A whole deployment on one machine, for replays: PKI, keys, card, clock and a process
//! for each role, all of which go with the command.

use crate::ca;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::network::role::Role;
use crate::pass::init::write_new;
use crate::pass::issuer::accounts::line;
use crate::service::children::{Children, Folder, free_address};
use crate::stats::card::{Addresses, Opened, SmootherAt};
use crate::stats::clock::{Clock, Hand};
use crate::stats::init::{self, Plan};
use crate::stats::keys;
use crate::stats::plan::Plan as Measured;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use data_encoding::BASE64URL_NOPAD;
use std::net::SocketAddr;
use std::path::Path;
use zeroize::Zeroizing;

/// A deployment, as long as it is kept.
pub struct Stage {
    /// The deployment's card.
    pub card: Opened,
    /// What definitions are signed with.
    pub definer: SigningKey,
    /// What counts are signed with.
    pub operator: SigningKey,
    /// What all processes read the time from.
    pub clock: Clock,
    /// What moves it.
    pub hand: Hand,
    /// Accounts and their secrets.
    pub accounts: Vec<(String, Zeroizing<String>)>,
    children: Children,
    // Last: it goes when nothing runs in it any more.
    _folder: Folder,
}

/// How large.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// n.
    pub smoothers: usize,
    /// t.
    pub threshold: u16,
    /// Accounts.
    pub clients: usize,
    /// Where days begin.
    pub start: Time,
    /// For so many days credentials are good.
    pub days: u64,
    /// What time it is first.
    pub now: Time,
    /// When the first aggregate starts.
    pub first: Time,
}

/// Where a smoother listens.
struct At {
    clients: SocketAddr,
    peers: SocketAddr,
}

impl Stage {
    /// Makes a deployment and starts its processes; for counts, of which nothing is measured, no
    /// smoother is started.
    ///
    /// # Errors
    /// If a file cannot be written or a process not started.
    pub fn start(size: Size, measured: Option<&Measured>) -> Result<Self, Failure> {
        let folder = Folder::create("stats")?;
        let path = folder.path();
        let names: Vec<String> = (1..=size.smoothers).map(|i| format!("smoother-{i}")).collect();
        let mut identities = vec![(Role::Registrar, "registrar"), (Role::Aggregator, "aggregator")];
        identities.extend(names.iter().map(|name| (Role::Smoother, name.as_str())));
        ca::make(&path.join("pki"), &identities)?;
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
        let hand = Hand::create(&clock, size.now)?;
        let mut children = Children::default();
        start(&mut children, path, "registrar", &others[0], &["--accounts", "accounts.txt"])?;
        start(&mut children, path, "aggregator", &others[1], &[])?;
        let started = names.iter().zip(&at).filter(|_| measured.is_some());
        for (name, at) in started {
            start(&mut children, path, name, &at.clients, &["--peers", &at.peers.to_string()])?;
        }
        let clock = Clock::of(Some(&clock))?;
        Ok(Self { card, definer, operator, clock, hand, accounts, children, _folder: folder })
    }

    /// Numbers of the processes: registrar, aggregator, smoothers.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        (0..self.card.smoothers.len() + 2).map(|index| self.children.id(index)).collect()
    }

    /// The processes, which are to go before the stage does.
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
        crowd: 2,
        wasteful: 0,
        days: size.days,
        tolerance: init::TOLERANCE,
    })
}

/// Accounts by number: who they are is nobody's business here either.
fn accounts(folder: &Path, many: usize) -> Result<Vec<(String, Zeroizing<String>)>, Failure> {
    let (mut rng, mut accounts, mut lines) = (entropy::rng()?, Vec::new(), String::new());
    for number in 1..=many {
        let secret = Secret::<32>::random(&mut rng);
        let secret = Zeroizing::new(BASE64URL_NOPAD.encode(secret.expose()));
        let name = format!("client-{number}");
        lines += &line(&name, &secret);
        accounts.push((name, secret));
    }
    write_new(&folder.join("accounts.txt"), &lines, 0o600)?;
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
    let rest = ["--card", "keys/card.json", "--clock", "clock", "--api", &at];
    std::fs::create_dir_all(folder.join("run")).blame(Category::Io)?;
    children.start(folder, &[who.as_slice(), &rest, more].concat())
}
