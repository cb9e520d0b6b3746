//! Who may get a pass: accounts in a file, or a command that knows them.

use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use alpheus_crypto::hash::labelled;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
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

/// How long a command may think about an account.
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST: usize = 128;

/// Arguments of `alpheus pass account`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What the account is called
    name: String,
    /// The issuer's file, which gets one line more
    #[arg(long, value_name = "FILE")]
    accounts: PathBuf,
}

/// A longer secret is nobody's.
const LONGEST_SECRET: usize = 1024;

/// Who may get a pass.
pub enum Accounts {
    /// Lines of `name digest`, read anew when the file has changed.
    File(AccountsFile),
    /// A command gets name and secret as two lines, and ends with 0 if they belong
    /// together.
    Command(String),
}

/// A file of accounts, as it was read last.
pub struct AccountsFile {
    path: PathBuf,
    read: Mutex<Option<(Version, BTreeMap<String, Secret<32>>)>>,
}

/// When the file was changed last, and its length.
type Version = (SystemTime, u64);

impl AccountsFile {
    /// The file at a path, which need not be there yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::new(None) }
    }

    fn has(&self, name: &str, shown: &Secret<32>) -> Result<bool, AccountError> {
        let metadata = std::fs::metadata(&self.path)?;
        let version = (metadata.modified()?, metadata.len());
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|(known, _)| *known != version) {
            *known = Some((version, read(&self.path)?));
        }
        let accounts = known.as_ref().map(|(_, accounts)| accounts);
        Ok(accounts.and_then(|accounts| accounts.get(name)).is_some_and(|kept| kept == shown))
    }
}

/// Why an account gets nothing.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// A name that cannot be one.
    #[error("an account has 1 to 128 letters, digits or signs, without spaces and colons")]
    Name,
    /// It is there already.
    #[error("there is an account of this name already; remove its line to give it a new secret")]
    Exists,
    /// A line that is none.
    #[error("line {0}: not `name digest`; `alpheus pass account` writes such lines")]
    Line(usize),
    /// No such account, or another secret.
    #[error("no such account, or another secret")]
    Unknown,
    /// The file cannot be read, or the command not be run.
    #[error("the accounts cannot be looked up: {0}")]
    Io(#[from] std::io::Error),
    /// It took too long.
    #[error("the accounts' command took longer than ten seconds")]
    Slow,
}

/// Adds an account, and prints its secret: this once.
///
/// # Errors
/// If it is there already, or the file cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    check_name(&args.name).blame(Category::Usage)?;
    let known = if args.accounts.exists() { read(&args.accounts) } else { Ok(BTreeMap::new()) };
    if known.blame_input(&args.accounts)?.contains_key(&args.name) {
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

/// The line of an account in a file of accounts.
#[must_use]
pub(crate) fn line(name: &str, secret: &str) -> String {
    format!("{name} {}\n", HEXLOWER.encode(&digest(name, secret)))
}

/// Secrets are 32 random bytes, so a fast digest is enough: nobody guesses them.
fn digest(name: &str, secret: &str) -> [u8; 32] {
    labelled(labels::PASS_ACCOUNT, &[name.as_bytes(), secret.as_bytes()]).0
}

fn check_name(name: &str) -> Result<(), AccountError> {
    let good = |c: char| c.is_ascii_graphic() && c != ':';
    let good = (1..=LONGEST).contains(&name.len()) && name.chars().all(good);
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
    /// [`AccountError`]; whether it is the name or the secret it does not say.
    pub fn check(&self, name: &str, secret: &str) -> Result<(), AccountError> {
        self.ask_for(name, secret, PATIENCE)
    }

    fn ask_for(&self, name: &str, secret: &str, patience: Duration) -> Result<(), AccountError> {
        check_name(name).map_err(|_| AccountError::Unknown)?;
        let belongs = match self {
            Self::File(file) => file.has(name, &Secret::from_bytes(digest(name, secret)))?,
            Self::Command(command) => ask(command, name, secret, patience)?,
        };
        if belongs { Ok(()) } else { Err(AccountError::Unknown) }
    }
}

/// Name and secret go in by standard input: arguments are seen by everybody on
/// the machine, and would have to be quoted.
fn ask(command: &str, name: &str, secret: &str, patience: Duration) -> Result<bool, AccountError> {
    // A pipe holds this much, so that writing to it waits for nobody.
    if secret.contains('\n') || secret.len() > LONGEST_SECRET {
        return Ok(false);
    }
    let mut shell = Command::new("sh");
    let shell = shell.arg("-c").arg(command).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = shell.process_group(0).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read its input may have decided already.
        let _ = input.write_all(format!("{name}\n{secret}\n").as_bytes());
    }
    let until = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() > until {
            // Itself at least, if there is no group to be killed.
            kill_all(child.id()).or_else(|_| child.kill())?;
            child.wait()?;
            return Err(AccountError::Slow);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills a process and whatever it started, which is of its group.
fn kill_all(group: u32) -> std::io::Result<()> {
    let mut kill = Command::new("sh");
    let kill = kill.args(["-c", "kill -s KILL -- \"-$1\"", "sh", &group.to_string()]);
    let killed = kill.status()?.success();
    if killed { Ok(()) } else { Err(std::io::Error::other("no such group of processes")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_knows_its_accounts() {
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
    fn a_command_is_asked_by_its_input() {
        let hook = Accounts::Command("read n; read s; test \"$n-$s\" = 'bob-$(x) ;y'".into());
        assert!(hook.check("bob", "$(x) ;y").is_ok());
        assert!(matches!(hook.check("bob", "y"), Err(AccountError::Unknown)));
        assert!(matches!(hook.check("bob", "$(x) ;y\nz"), Err(AccountError::Unknown)));
        assert!(Accounts::Command("exit 0".into()).check("bob", "any").is_ok());
    }

    /// What it started goes with it.
    #[test]
    fn a_command_that_hangs_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let ticks = folder.path().join("ticks");
        let every = format!("while sleep 0.05; do echo >> {}; done", ticks.display());
        let hook = Accounts::Command(format!("({every}) & wait"));
        assert!(matches!(
            hook.ask_for("bob", "s", Duration::from_millis(300)),
            Err(AccountError::Slow)
        ));
        let length = || std::fs::metadata(&ticks).unwrap().len();
        let then = length();
        std::thread::sleep(Duration::from_millis(300));
        assert!(then > 0 && length() == then, "it goes on");
        // A secret that no pipe holds is not waited with.
        let long = "s".repeat(1 << 20);
        assert!(matches!(hook.check("bob", &long), Err(AccountError::Unknown)));
    }
}
