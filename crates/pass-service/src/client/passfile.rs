//! The pass file on disk. Each change replaces the whole file durably, and one process at a
//! time may use it.

use crate::card::{Card, VerifiedCard};
use alpheus_access_pass::error::FileError;
use alpheus_access_pass::file::{Contents, Evidence, FileKey};
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::holder::{Holder, PendingRequest, forget_before};
use alpheus_anonymous_credential::ledger::{Change, Ledger, LedgerError};
use alpheus_anonymous_credential::schedule::Period;
use alpheus_crypto::vault::Hardness;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::{Readers, beside, read_key_file, replace};
use chacha20::ChaCha20Rng;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The least length of a key file.
const MIN_KEY_FILE: usize = 16;

/// An open pass file.
pub struct PassFile {
    path: PathBuf,
    key: FileKey,
    contents: Contents,
    rng: ChaCha20Rng,
    failed: bool,
    _lock: File,
}

/// Why a pass file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PassFileError {
    /// Another process uses it.
    #[error("another process uses this pass; two processes would log in for the same epoch")]
    Locked,
    /// The key file is too short.
    #[error(
        "the key file has fewer than 16 bytes; create a random one: `(umask 077; head -c 32 /dev/urandom | base64 > FILE)`"
    )]
    ShortKey,
    /// The file exists.
    #[error("the pass file exists; a new one would lose the record of used epochs")]
    Exists,
    /// The file is invalid.
    #[error(transparent)]
    Refused(#[from] FileError),
    /// A record is damaged.
    #[error("a record of the pass is damaged; fetch the next period's pass")]
    Damaged,
    /// What was to be sent is not in the file, or may not be.
    #[error(
        "the pass file could not be written, so nothing is sent; free some space, then start again"
    )]
    NotWritten,
}

impl PassFile {
    /// Creates a pass file for an account.
    ///
    /// # Errors
    /// If it exists, or cannot be written.
    pub fn create(
        path: &Path,
        key_file: &Path,
        card: &Card,
        account: &str,
        evidence: Evidence,
    ) -> Result<Self, Failure> {
        let lock = lock(path)?;
        if path.exists() {
            return Err(PassFileError::Exists).blame_input(path);
        }
        let mut rng = entropy::rng()?;
        let passphrase = passphrase(key_file)?;
        let key = FileKey::create(&passphrase, Hardness::of(&passphrase), &mut rng);
        let key = key.map_err(PassFileError::from).blame_input(path)?;
        let mut contents = Contents::default();
        contents.card = serde_json::to_vec(card).blame(Category::Io)?;
        account.clone_into(&mut contents.account);
        contents.evidence = evidence;
        let path = path.to_owned();
        let mut file = Self { path, key, contents, rng, failed: false, _lock: lock };
        file.write().blame_io(&file.path.clone())?;
        Ok(file)
    }

    /// Opens a pass file.
    ///
    /// # Errors
    /// If it cannot be read or decrypted, or another process uses it.
    pub fn open(path: &Path, key_file: &Path) -> Result<Self, Failure> {
        let help = "`alpheus pass client join` creates a pass file";
        let metadata = std::fs::metadata(path).blame_io(path);
        metadata.map_err(|failure| failure.with_help(help))?;
        // Locked before it is read: otherwise epochs that another process uses up meanwhile
        // would be lost.
        let lock = lock(path)?;
        let bytes = std::fs::read(path).blame_io(path)?;
        let opened = FileKey::open(&passphrase(key_file)?, &bytes);
        let (key, contents) = opened.map_err(PassFileError::from).blame_input(path)?;
        let (path, rng) = (path.to_owned(), entropy::rng()?);
        Ok(Self { path, key, contents, rng, failed: false, _lock: lock })
    }

    /// The card that was pinned when the file was created.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn card(&self) -> Result<VerifiedCard, Failure> {
        let card: Card = serde_json::from_slice(&self.contents.card).blame_input(&self.path)?;
        card.open().blame_input(&self.path)
    }

    /// The account's name, and what it shows to the issuer.
    #[must_use]
    pub fn account(&self) -> (&str, &Evidence) {
        (&self.contents.account, &self.contents.evidence)
    }

    /// The pass of a period, if there is one.
    ///
    /// # Errors
    /// If its records are damaged, or the last change could not be written.
    pub fn holder(
        &self,
        pinned: &PinnedConfiguration,
        period: Period,
    ) -> Result<Option<Holder>, Failure> {
        self.check_written()?;
        Holder::restore(pinned.clone(), period, &self.contents.records)
            .map_err(|_| PassFileError::Damaged)
            .blame_input(&self.path)
    }

    /// The request for a period's pass that has no answer yet, if there is one.
    ///
    /// # Errors
    /// As [`PassFile::holder`].
    pub fn pending_request(
        &self,
        pinned: &PinnedConfiguration,
        period: Period,
    ) -> Result<Option<PendingRequest>, Failure> {
        self.check_written()?;
        PendingRequest::restore(pinned.clone(), period, &self.contents.records)
            .map_err(|_| PassFileError::Damaged)
            .blame_input(&self.path)
    }

    /// Memory is ahead of the file after a failed change, and its records must not be sent.
    fn check_written(&self) -> Result<(), Failure> {
        let written = if self.failed { Err(PassFileError::NotWritten) } else { Ok(()) };
        written.blame_io(&self.path)
    }

    /// Deletes records of past periods, so that a thief of the file does not find them.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn forget_before(&mut self, period: Period) -> Result<(), LedgerError> {
        forget_before(period, &self.contents.records).commit(self)
    }

    /// Writes a new file and renames it, so that a crash leaves the old or the new one.
    fn write(&mut self) -> std::io::Result<()> {
        let sealed = self.key.seal(&self.contents, &mut self.rng);
        let sealed = sealed.map_err(std::io::Error::other)?;
        replace(&self.path, &sealed, Readers::Owner)
    }
}

impl Ledger for PassFile {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        if self.failed {
            return Err(LedgerError);
        }
        self.contents.apply(changes);
        self.write().map_err(|error| {
            tracing::error!(%error, "the pass file could not be written");
            self.failed = true;
            LedgerError
        })
    }
}

fn passphrase(key_file: &Path) -> Result<zeroize::Zeroizing<Vec<u8>>, Failure> {
    let bytes = read_key_file(key_file)?;
    if bytes.len() < MIN_KEY_FILE {
        return Err(PassFileError::ShortKey).blame_input(key_file);
    }
    Ok(bytes)
}

fn lock(path: &Path) -> Result<File, Failure> {
    let lock = beside(path, ".lock");
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(&lock);
    let file = file.blame_io(&lock)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(PassFileError::Locked).blame_input(path),
        Err(TryLockError::Error(error)) => Err(error).blame_io(&lock),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::Content;
    use alpheus_anonymous_credential::configuration::Configuration;
    use alpheus_anonymous_credential::keys::IssuerKey;
    use alpheus_anonymous_credential::limit::Limit;
    use alpheus_anonymous_credential::schedule::Schedule;
    use alpheus_crypto::secret::Secret;
    use alpheus_crypto::sign::SigningKey;
    use alpheus_crypto::signed_message::Signed;
    use alpheus_node::clock;
    use std::io::Write;
    use std::process::Command;

    fn card() -> Card {
        let key = IssuerKey::random(&mut entropy::rng().unwrap()).unwrap();
        let schedule = Schedule {
            start: clock::now(),
            epoch: alpheus_time::Span(15),
            pre_login: alpheus_time::Span(3),
            border_pre_login: alpheus_time::Span(3),
            epochs_per_period: 100,
            ahead: 0,
        };
        let (issuer, limit) = (*key.public(), Limit::ONE);
        let deployment = [1; 32];
        let (kind, tier, incarnation) = (1, 1, 1);
        let configuration =
            Configuration { deployment, kind, tier, limit, incarnation, schedule, issuer };
        let operator = SigningKey::from_seed(&Secret::from_bytes([3; 32]));
        let signed = Signed::new(&configuration, &operator);
        let (issuer, gateway) = ("https://a".into(), "https://b".into());
        Card::new(&Content::new(&signed, &operator, issuer, gateway, None), &operator)
    }

    fn key_file(folder: &Path) -> PathBuf {
        let path = folder.join("key");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path).unwrap();
        file.write_all(b"a key file of some length").unwrap();
        path
    }

    #[test]
    fn a_pass_file_is_created_once_and_used_by_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = (folder.path().join("pass"), key_file(folder.path()));
        let secret = || Evidence::Secret("secret".to_owned());
        let create = || PassFile::create(&path, &key, &card(), "ada", secret());
        let message = |failure: Option<Failure>| failure.unwrap().to_string();
        let file = create().unwrap();
        assert!(message(create().err()).contains("another process uses this pass"));
        assert!(message(PassFile::open(&path, &key).err()).contains("another process"));
        drop(file);
        assert!(message(create().err()).contains("the pass file exists"));
        let file = PassFile::open(&path, &key).unwrap();
        assert!(matches!(file.account(), ("ada", Evidence::Secret(secret)) if secret == "secret"));
    }

    #[test]
    fn nothing_comes_out_of_a_file_that_could_not_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let (path, key) = (inner.join("pass"), key_file(folder.path()));
        let mut file = PassFile::create(&path, &key, &card(), "ada", Evidence::default()).unwrap();
        let pinned = file.card().unwrap().pinned;
        assert!(file.pending_request(&pinned, Period(0)).unwrap().is_none());
        std::fs::remove_dir_all(&inner).unwrap();
        let change = Change::put(b"key".to_vec(), b"value".to_vec());
        assert!(file.commit(&[change]).is_err());
        let refused = file.pending_request(&pinned, Period(0)).err().unwrap().to_string();
        assert!(refused.contains("could not be written"), "{refused}");
        assert!(file.holder(&pinned, Period(0)).is_err());
    }

    /// Content that is read before the lock is held may be outdated.
    #[test]
    fn a_pass_file_is_locked_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = (folder.path().join("pass"), key_file(folder.path()));
        drop(PassFile::create(&path, &key, &card(), "ada", Evidence::default()).unwrap());
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(beside(&path, ".lock")).unwrap();
        // A reader of a named pipe waits for a writer.
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let reader = std::thread::spawn({
            let path = path.clone();
            move || PassFile::open(&path, &key).is_ok()
        });
        // A writer of a named pipe waits for a reader.
        let writer = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut pipe = OpenOptions::new().write(true).open(&path).unwrap();
                let locked = lock(&path).is_err();
                pipe.write_all(&bytes).unwrap();
                locked
            }
        });
        assert!(reader.join().unwrap());
        assert!(writer.join().unwrap(), "it reads before it locks");
    }
}
