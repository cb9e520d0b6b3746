//! Accounts that may get a pass: in a file, checked by a command, or at an OpenID Connect
//! provider. Each answers with an identifier that is the same however a name is spelled.

use super::oidc::{Provider, TokenError};
use crate::command::{self, CommandError, MAX_INPUT};
use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

const EXAMPLES: &str = "\
Examples:
  alpheus pass account ada --accounts accounts.txt
  (umask 077; alpheus pass account ada --accounts accounts.txt > ada.secret)";

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

/// No account has a longer identifier; `sub` of a token has at most 255 characters as well.
const MAX_IDENTIFIER: usize = 255;

/// Accounts that may get a pass.
pub enum Accounts {
    /// Lines of `name digest`, read again when the file has changed.
    File(AccountsFile),
    /// A command that reads name and secret as two lines. If they match, it prints the account's
    /// identifier and exits with 0.
    Command(String),
    /// A provider whose ID tokens name the account.
    Provider(Provider),
}

/// What a subscriber shows.
pub enum Evidence {
    /// An account's name and secret.
    Secret(String, zeroize::Zeroizing<String>),
    /// A token of a provider.
    IdToken(zeroize::Zeroizing<String>),
}

/// An account whose holder has shown that it is theirs.
pub struct IdentifiedAccount {
    /// The identifier: the same however the name is spelled.
    pub account: String,
    /// The name as the subscriber spells it.
    pub name: String,
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
    #[error(
        "an account of this name exists, perhaps in upper or lower case; remove its line to create it with a new secret"
    )]
    Exists,
    /// A malformed line.
    #[error("line {0} is not `name digest`; use `alpheus pass account` to add accounts")]
    Line(usize),
    /// No such account, or a wrong secret.
    #[error("no such account, or a wrong secret")]
    Unknown,
    /// The file cannot be read.
    #[error("the accounts cannot be looked up: {0}")]
    Io(#[from] std::io::Error),
    /// The command gives no result.
    #[error("accounts are checked by a command: {0}")]
    Command(#[from] CommandError),
    /// The command does not name the account.
    #[error(
        "the command that checks accounts must print the account's identifier, the same for every spelling of the name: one line of 1 to 255 visible ASCII characters"
    )]
    Identifier,
    /// The token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// Accounts of this issuer are shown in another way.
    #[error("{0}")]
    Way(&'static str),
}

/// Adds an account, and prints its secret. The secret is not stored.
///
/// # Errors
/// If the account exists, or the file cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    check_name(&args.name).blame(Category::Usage)?;
    let accounts = if args.accounts.exists() { read(&args.accounts) } else { Ok(BTreeMap::new()) };
    let same = |other: &String| other.eq_ignore_ascii_case(&args.name);
    if accounts.blame_input(&args.accounts)?.keys().any(same) {
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
    /// The account that the evidence is good for. May block.
    ///
    /// # Errors
    /// [`AccountError`]. It does not reveal whether the name or the secret is wrong.
    pub fn identify(&self, evidence: &Evidence) -> Result<IdentifiedAccount, AccountError> {
        match (self, evidence) {
            (Self::Provider(provider), Evidence::IdToken(token)) => {
                let account = provider.subject(token)?;
                Ok(IdentifiedAccount { name: account.clone(), account })
            }
            (Self::Provider(_), Evidence::Secret(..)) => Err(AccountError::Way(NEEDS_TOKEN)),
            (_, Evidence::IdToken(_)) => Err(AccountError::Way(NEEDS_SECRET)),
            (_, Evidence::Secret(name, secret)) => {
                let account = self.check(name, secret)?;
                Ok(IdentifiedAccount { account, name: name.clone() })
            }
        }
    }

    /// The identifier of the account whose secret this is. May block.
    ///
    /// # Errors
    /// [`AccountError`]. It does not reveal whether the name or the secret is wrong.
    pub fn check(&self, name: &str, secret: &str) -> Result<String, AccountError> {
        check_name(name).map_err(|_| AccountError::Unknown)?;
        let account = match self {
            Self::File(file) => {
                let has = file.has(name, &Secret::from_bytes(digest(name, secret)))?;
                has.then(|| name.to_owned())
            }
            Self::Command(command) => run_command(command, name, secret, COMMAND_TIMEOUT)?,
            Self::Provider(_) => return Err(AccountError::Way(NEEDS_TOKEN)),
        };
        account.ok_or(AccountError::Unknown)
    }
}

const NEEDS_TOKEN: &str =
    "this issuer takes ID tokens; create the pass file with `join --id-token-command`";
const NEEDS_SECRET: &str =
    "this issuer takes an account and its secret; create the pass file with `join --account`";

/// What a command prints for name and secret, as two lines of its input.
fn run_command(
    command: &str,
    name: &str,
    secret: &str,
    limit: Duration,
) -> Result<Option<String>, AccountError> {
    let input = zeroize::Zeroizing::new(format!("{name}\n{secret}\n"));
    if secret.contains('\n') || input.len() > MAX_INPUT {
        return Ok(None);
    }
    let printed = command::run(command, &input, limit)?;
    printed.map(|printed| identifier(&printed)).transpose()
}

/// The account's identifier: all that a command prints.
fn identifier(printed: &[u8]) -> Result<String, AccountError> {
    let printed = printed.strip_suffix(b"\n").unwrap_or(printed);
    let good = printed.iter().all(u8::is_ascii_graphic);
    let good = good && (1..=MAX_IDENTIFIER).contains(&printed.len());
    let text = String::from_utf8(printed.to_vec()).ok().filter(|_| good);
    text.ok_or(AccountError::Identifier)
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
        assert_eq!(file.check("bob", "s3").unwrap(), "bob");
        for (name, secret) in [("bob", "s4"), ("eve", "s3"), ("", ""), ("bob\n", "s3")] {
            assert!(matches!(file.check(name, secret), Err(AccountError::Unknown)), "{name}");
        }
        std::fs::write(&accounts, "bob\n").unwrap();
        assert!(matches!(file.check("bob", "s3"), Err(AccountError::Line(1))));
    }

    fn hook(command: &str) -> Accounts {
        Accounts::Command(command.to_owned())
    }

    #[test]
    fn a_command_reads_name_and_secret_from_its_input() {
        let bobs = hook("read n; read s; test \"$n-$s\" = 'bob-$(x) ;y' && echo 17");
        assert_eq!(bobs.check("bob", "$(x) ;y").unwrap(), "17");
        assert!(matches!(bobs.check("bob", "y"), Err(AccountError::Unknown)));
        assert!(matches!(bobs.check("bob", "$(x) ;y\nz"), Err(AccountError::Unknown)));
        // A secret that does not fit into a pipe is refused at once.
        let long = "s".repeat(1 << 20);
        assert!(matches!(bobs.check("bob", &long), Err(AccountError::Unknown)));
    }

    /// A command that only says yes would leave the spelling of the name to the subscriber.
    #[test]
    fn a_command_must_print_one_identifier() {
        assert_eq!(hook("printf u-1").check("bob", "s").unwrap(), "u-1");
        let long = format!("echo {}", "7".repeat(256));
        for bad in ["exit 0", "echo", "echo a b", "printf 'a\nb\n'", "printf '\\303\\251'", &long] {
            let refused = hook(bad).check("bob", "s");
            assert!(matches!(refused, Err(AccountError::Identifier)), "{bad}");
        }
    }

    #[test]
    fn names_that_differ_in_case_only_are_one_account() {
        let folder = tempfile::tempdir().unwrap();
        let accounts = folder.path().join("accounts");
        let add = |name: &str| run(&Args { name: name.into(), accounts: accounts.clone() });
        add("Ada").unwrap();
        assert!(add("ada").is_err() && add("ADA").is_err());
        add("adam").unwrap();
    }
}
