//! Accounts that may get a pass: in a file, or checked by a command.

use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

const EXAMPLES: &str = "\
Examples:
  alpheus pass account ada --accounts accounts.txt
  alpheus pass account ada --accounts accounts.txt > ada.secret";

/// How long a command may take to check an account.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_NAME: usize = 128;

/// Arguments of `alpheus pass account`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The account's name
    name: String,
    /// The issuer's file, to which a line is appended
    #[arg(long, value_name = "FILE")]
    accounts: PathBuf,
}

/// No account has a longer secret.
const MAX_SECRET: usize = 1024;

/// Accounts that may get a pass.
pub enum Accounts {
    /// Lines of `name digest`, read again when the file has changed.
    File(AccountsFile),
    /// A command that reads name and secret as two lines, and exits with 0 if they match.
    Command(String),
}

/// A file of accounts, and its content when it was last read.
pub struct AccountsFile {
    path: PathBuf,
    read: Mutex<Option<(Version, BTreeMap<String, Secret<32>>)>>,
}

/// The time of the file's last change, and its length.
type Version = (SystemTime, u64);

impl AccountsFile {
    /// The file at a path. It need not exist yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::new(None) }
    }

    fn has(&self, name: &str, digest: &Secret<32>) -> Result<bool, AccountError> {
        let metadata = std::fs::metadata(&self.path)?;
        let version = (metadata.modified()?, metadata.len());
        let mut cache = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.as_ref().is_none_or(|(cached, _)| *cached != version) {
            *cache = Some((version, read(&self.path)?));
        }
        let accounts = cache.as_ref().map(|(_, accounts)| accounts);
        Ok(accounts.and_then(|accounts| accounts.get(name)).is_some_and(|stored| stored == digest))
    }
}

/// Why an account is refused.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// An invalid name.
    #[error(
        "an account's name has 1 to 128 ASCII characters, without spaces and colons, and does not start with `#`"
    )]
    Name,
    /// The account exists.
    #[error("an account of this name exists; remove its line to create it with a new secret")]
    Exists,
    /// A malformed line.
    #[error("line {0} is not `name digest`; use `alpheus pass account` to add accounts")]
    Line(usize),
    /// No such account, or a wrong secret.
    #[error("no such account, or a wrong secret")]
    Unknown,
    /// The file cannot be read, or the command cannot be run.
    #[error("the accounts cannot be looked up: {0}")]
    Io(#[from] std::io::Error),
    /// The command took too long.
    #[error("the command that checks accounts took longer than ten seconds")]
    Slow,
}

/// Adds an account, and prints its secret. The secret is not stored.
///
/// # Errors
/// If the account exists, or the file cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    check_name(&args.name).blame(Category::Usage)?;
    let accounts = if args.accounts.exists() { read(&args.accounts) } else { Ok(BTreeMap::new()) };
    if accounts.blame_input(&args.accounts)?.contains_key(&args.name) {
        return Err(AccountError::Exists).blame(Category::Usage);
    }
    let secret = Secret::<32>::random(&mut entropy::rng()?);
    let secret = zeroize::Zeroizing::new(BASE64URL_NOPAD.encode(secret.expose()));
    let line = line(&args.name, &secret);
    let mut options = std::fs::OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(&args.accounts);
    let mut file = file.blame_io(&args.accounts)?;
    file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).blame_io(&args.accounts)?;
    println!("{}", *secret);
    Ok(())
}

/// An account's line in a file of accounts.
#[must_use]
pub fn line(name: &str, secret: &str) -> String {
    format!("{name} {}\n", HEXLOWER.encode(&digest(name, secret)))
}

/// A fast digest is enough: secrets are 32 random bytes, which nobody can guess.
fn digest(name: &str, secret: &str) -> [u8; 32] {
    labelled_hash(labels::PASS_ACCOUNT, &[name.as_bytes(), secret.as_bytes()]).0
}

fn check_name(name: &str) -> Result<(), AccountError> {
    let good = |c: char| c.is_ascii_graphic() && c != ':';
    let good = (1..=MAX_NAME).contains(&name.len()) && name.chars().all(good);
    if good && !name.starts_with('#') { Ok(()) } else { Err(AccountError::Name) }
}

fn read(path: &Path) -> Result<BTreeMap<String, Secret<32>>, AccountError> {
    let text = std::fs::read_to_string(path)?;
    let mut accounts = BTreeMap::new();
    for (at, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, digest) = line.split_once(' ').ok_or(AccountError::Line(at))?;
        let digest = HEXLOWER_PERMISSIVE.decode(digest.trim().as_bytes()).ok();
        let digest = digest.and_then(|bytes| Secret::from_slice(&bytes));
        accounts.insert(name.to_owned(), digest.ok_or(AccountError::Line(at))?);
    }
    Ok(accounts)
}

impl Accounts {
    /// Whether the secret is the account's. May block.
    ///
    /// # Errors
    /// [`AccountError`]. It does not reveal whether the name or the secret is wrong.
    pub fn check(&self, name: &str, secret: &str) -> Result<(), AccountError> {
        self.check_within(name, secret, COMMAND_TIMEOUT)
    }

    fn check_within(&self, name: &str, secret: &str, limit: Duration) -> Result<(), AccountError> {
        check_name(name).map_err(|_| AccountError::Unknown)?;
        let matches = match self {
            Self::File(file) => file.has(name, &Secret::from_bytes(digest(name, secret)))?,
            Self::Command(command) => run_command(command, name, secret, limit)?,
        };
        if matches { Ok(()) } else { Err(AccountError::Unknown) }
    }
}

/// Name and secret go to standard input. Arguments would be visible to other users of the
/// machine, and would need quoting.
fn run_command(
    command: &str,
    name: &str,
    secret: &str,
    limit: Duration,
) -> Result<bool, AccountError> {
    // A pipe holds this much, so writing to it does not block.
    if secret.contains('\n') || secret.len() > MAX_SECRET {
        return Ok(false);
    }
    let mut shell = Command::new("sh");
    let shell = shell.arg("-c").arg(command).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = shell.process_group(0).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // The command may exit without reading its input.
        let _ = input.write_all(format!("{name}\n{secret}\n").as_bytes());
    }
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() > deadline {
            // Without a process group, at least the command itself.
            kill_all(child.id()).or_else(|_| child.kill())?;
            child.wait()?;
            return Err(AccountError::Slow);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills a process group: a command and all processes that it started.
fn kill_all(group: u32) -> std::io::Result<()> {
    let mut kill = Command::new("sh");
    let kill = kill.args(["-c", "kill -s KILL -- \"-$1\"", "sh", &group.to_string()]);
    let killed = kill.status()?.success();
    if killed { Ok(()) } else { Err(std::io::Error::other("no such process group")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_accepts_only_its_accounts_and_names_bad_lines() {
        let folder = tempfile::tempdir().unwrap();
        let accounts = folder.path().join("accounts");
        let add = |name: &str| run(&Args { name: name.into(), accounts: accounts.clone() });
        add("ada@example").unwrap();
        assert!(add("ada@example").is_err() && add("a b").is_err() && add("a:b").is_err());
        let line = format!("bob {}\n# a comment\n\n", HEXLOWER.encode(&digest("bob", "s3")));
        std::fs::write(&accounts, line).unwrap();
        let file = Accounts::File(AccountsFile::new(accounts.clone()));
        assert!(file.check("bob", "s3").is_ok());
        for (name, secret) in [("bob", "s4"), ("eve", "s3"), ("", ""), ("bob\n", "s3")] {
            assert!(matches!(file.check(name, secret), Err(AccountError::Unknown)), "{name}");
        }
        std::fs::write(&accounts, "bob\n").unwrap();
        assert!(matches!(file.check("bob", "s3"), Err(AccountError::Line(1))));
    }

    #[test]
    fn a_command_reads_name_and_secret_from_its_input() {
        let hook = Accounts::Command("read n; read s; test \"$n-$s\" = 'bob-$(x) ;y'".into());
        assert!(hook.check("bob", "$(x) ;y").is_ok());
        assert!(matches!(hook.check("bob", "y"), Err(AccountError::Unknown)));
        assert!(matches!(hook.check("bob", "$(x) ;y\nz"), Err(AccountError::Unknown)));
        assert!(Accounts::Command("exit 0".into()).check("bob", "any").is_ok());
    }

    /// The processes that it started are killed too.
    #[test]
    fn a_command_that_hangs_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let ticks = folder.path().join("ticks");
        let every = format!("while sleep 0.05; do echo >> {}; done", ticks.display());
        let hook = Accounts::Command(format!("({every}) & wait"));
        assert!(matches!(
            hook.check_within("bob", "s", Duration::from_millis(300)),
            Err(AccountError::Slow)
        ));
        let length = || std::fs::metadata(&ticks).unwrap().len();
        let then = length();
        std::thread::sleep(Duration::from_millis(300));
        assert!(then > 0 && length() == then, "it still runs");
        // A secret that does not fit into a pipe is refused at once.
        let long = "s".repeat(1 << 20);
        assert!(matches!(hook.check("bob", &long), Err(AccountError::Unknown)));
    }
}
