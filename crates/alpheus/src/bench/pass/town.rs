//! A deployment in a folder for temporary files, and its processes, which are
//! this program again.

use crate::failure::{Blame, Category, Failure};
use crate::network::identity::IdentityFolder;
use crate::network::role::Role;
use crate::pass::card::{self, CARD};
use crate::pass::init::issuer_key;
use crate::pass::link::{Base, Link};
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::keys::IssuerKey;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tokio::runtime::Runtime;

/// A deployment.
pub(super) struct Town {
    folder: tempfile::TempDir,
    pub(super) pinned: Pinned,
    pub(super) runtime: Runtime,
    pub(super) accounts: Vec<(String, String)>,
    pub(super) issuer_at: SocketAddr,
    pub(super) verifier_at: SocketAddr,
    pub(super) gateway_at: SocketAddr,
}

/// A process; it ends with this.
pub(super) struct Server(Child);

fn free() -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").blame(Category::Io)?;
    listener.local_addr().blame(Category::Io)
}

impl Town {
    /// With epochs of so many seconds, in all of which but the first re-ups are
    /// taken early, so that many clients spread.
    pub(super) fn new(epoch: u32, accounts: u32) -> Result<Self, Failure> {
        let folder = tempfile::tempdir().blame(Category::Io)?;
        let ours = |args: &[&str]| -> Result<String, Failure> {
            let exe = std::env::current_exe().blame(Category::Io)?;
            let output = Command::new(exe).args(args).current_dir(folder.path()).output();
            let output = output.blame(Category::Io)?;
            let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let failed = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(said) } else { Err(failed).blame(Category::Io) }
        };
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
        let pinned = card::open(&folder.path().join("deployment").join(CARD))?.1.pinned;
        let runtime = tokio::runtime::Runtime::new().blame(Category::Io)?;
        Ok(Self { folder, pinned, runtime, accounts: known, issuer_at, verifier_at, gateway_at })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The issuer's key, to make passes with faster than by asking.
    pub(super) fn key(&self) -> Result<IssuerKey, Failure> {
        issuer_key(&self.path("deployment"))
    }

    fn start(&self, args: &[&str]) -> Result<Server, Failure> {
        self.start_by(&[], args)
    }

    /// Starts this program again, by a command that is given its path and arguments.
    fn start_by(&self, by: &[&str], args: &[&str]) -> Result<Server, Failure> {
        let exe = std::env::current_exe().blame(Category::Io)?;
        let mut command = match by.split_first() {
            Some((by, rest)) => {
                let mut command = Command::new(by);
                command.args(rest).arg(exe);
                command
            }
            None => Command::new(exe),
        };
        let command = command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().blame(Category::Io)?;
        let said = child.stderr.take().ok_or("no standard error").blame(Category::Io)?;
        let server = Server(child);
        let mut lines = BufReader::new(said).lines().map_while(Result::ok);
        let ready = lines.find(|line| line.starts_with("serving at "));
        // What it says later is read too, so that it never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        ready.map(|_| server).ok_or("a process did not start").blame(Category::Io)
    }

    pub(super) fn issuer(&self) -> Result<Server, Failure> {
        let at = self.issuer_at.to_string();
        let issuer = ["pass", "issuer", "--identity", "pki/issuer", "--deployment", "deployment"];
        let rest = ["--accounts", "accounts", "--state", "issuer", "--api", &at, "--first"];
        self.start(&[&issuer[..], &rest].concat())
    }

    pub(super) fn verifier(&self) -> Result<Server, Failure> {
        let at = self.verifier_at.to_string();
        let verifier = ["pass", "verifier", "--identity", "pki/verifier"];
        let rest = ["--deployment", "deployment", "--state", "verifier", "--api", &at];
        self.start(&[&verifier[..], &rest].concat())
    }

    /// So many shards, each alone on a processor, and their addresses in order.
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
            self.start_by(&["taskset", "--cpu-list", &shard], &args)
        };
        let started: Result<Vec<_>, _> = at.iter().enumerate().map(start).collect();
        Ok((started?, addresses))
    }

    pub(super) fn gateway(&self) -> Result<Server, Failure> {
        let (at, verifier) = (self.gateway_at.to_string(), format!("https://{}", self.verifier_at));
        let gateway = ["pass", "gateway", "--identity", "pki/gateway", "--card"];
        let rest = ["deployment/card.json", "--verifiers", &verifier, "--api", &at, "--plain"];
        self.start(&[&gateway[..], &rest].concat())
    }

    /// The gateway's identity.
    pub(super) fn identity(&self) -> Result<IdentityFolder, Failure> {
        IdentityFolder::open(&self.path("pki/gateway"), Role::Gateway)
    }

    /// A way to a server, as the gateway.
    pub(super) fn link(&self, scheme: &str, at: SocketAddr) -> Result<Link, Failure> {
        let base = Base::parse(&format!("{scheme}://{at}")).blame(Category::Io)?;
        Link::of(base, &self.identity()?)
    }
}

impl Server {
    fn file(&self, name: &str) -> Result<String, Failure> {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.0.id())).blame(Category::Io)
    }

    /// Processor time so far, in seconds, of all its threads.
    pub(super) fn cpu(&self) -> Result<f64, Failure> {
        processor_seconds(&self.file("stat")?)
    }

    /// Memory in use, in KB.
    pub(super) fn memory(&self) -> Result<f64, Failure> {
        let status = self.file("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or("the kernel does not say").blame(Category::Io)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Processor time of all threads of a process, from its `/proc/…/stat`.
///
/// # Errors
/// If it is none.
pub(crate) fn processor_seconds(stat: &str) -> Result<f64, Failure> {
    // The name in parentheses may hold anything; after it come the numbers.
    let numbers = stat.rsplit(')').next().unwrap_or_default();
    let number =
        |at: usize| numbers.split_whitespace().nth(at).and_then(|text| text.parse::<f64>().ok());
    let ticks = number(11).zip(number(12)).map(|(user, system)| user + system);
    let ticks = ticks.ok_or("the kernel does not say").blame(Category::Io)?;
    // Linux counts in hundredths of a second for whoever asks this way.
    Ok(ticks / 100.0)
}
