//! A pass's file, which the caller makes durable before anything leaves.

use super::card::Card;
use crate::codes::Code;
use crate::randomness::Randomness;
use crate::refusal::Refusal;
use alpheus_access_pass::error::FileError;
use alpheus_access_pass::file::{Contents, Evidence, FileKey};
use alpheus_anonymous_credential::holder::Holder;
use alpheus_anonymous_credential::ledger::{Change, Ledger, LedgerError, Step};
use alpheus_anonymous_credential::schedule::Period;
use alpheus_crypto::vault::Hardness;

/// The least length of a key.
const MIN_KEY: usize = 16;

/// Makes a file durable in place of the one before; says whether it did.
pub type Write = Box<dyn FnMut(&[u8]) -> bool>;

/// The content of a pass file, its key, and where it is written.
pub struct Store {
    key: FileKey,
    /// The card, the account, and the holder's records.
    pub contents: Contents,
    pub(super) rng: Randomness,
    write: Write,
    failed: bool,
}

impl Store {
    /// The store of a new pass, written once.
    ///
    /// # Errors
    /// [`Code::KeyWrong`], or [`Code::IoFailed`] if it is not written.
    pub fn create(
        contents: Contents,
        key: &[u8],
        hardness: Hardness,
        mut rng: Randomness,
        write: Write,
    ) -> Result<Store, Refusal> {
        let key = FileKey::create(long(key)?, hardness, &mut rng).map_err(of_file)?;
        let mut store = Store { key, contents, rng, write, failed: false };
        store.write_file().map_err(unstored)?;
        Ok(store)
    }

    /// Opens a pass file.
    ///
    /// # Errors
    /// [`Code::KeyWrong`] or [`Code::PassfileInvalid`].
    pub fn open(file: &[u8], key: &[u8], rng: Randomness, write: Write) -> Result<Store, Refusal> {
        let (key, contents) = FileKey::open(long(key)?, file).map_err(of_file)?;
        Ok(Store { key, contents, rng, write, failed: false })
    }

    /// Fails once a file was not stored: the content is ahead of it.
    ///
    /// # Errors
    /// [`Code::IoFailed`].
    pub(super) fn check(&self) -> Result<(), Refusal> {
        if self.failed { Err(unstored(LedgerError)) } else { Ok(()) }
    }

    /// The pass of a period.
    ///
    /// # Errors
    /// [`Code::PassMissing`], or [`Code::PassfileInvalid`] if a record is damaged.
    pub(super) fn holder(&self, card: &Card, period: Period) -> Result<Holder, Refusal> {
        let held = Holder::restore(card.pinned.clone(), period, &self.contents.records);
        let held = held.map_err(|error| Refusal::of(Code::PassfileInvalid, &error))?;
        held.ok_or_else(|| {
            let what = "there is no pass for this period; request it from the issuer";
            Refusal::new(Code::PassMissing, "NoPass", what)
        })
    }

    /// Makes a step durable, and gives what it releases.
    ///
    /// # Errors
    /// [`Code::IoFailed`].
    pub(super) fn release<T>(&mut self, step: Step<T>) -> Result<T, Refusal> {
        step.commit(self).map_err(unstored)
    }

    /// The account, and the value of the header `Authorization` if it shows a secret.
    pub(super) fn account(&self) -> (&str, Option<&str>) {
        match &self.contents.evidence {
            Evidence::Secret(secret) if !secret.is_empty() => {
                (&self.contents.account, Some(secret))
            }
            Evidence::Secret(_) | Evidence::IdTokenCommand(_) => (&self.contents.account, None),
        }
    }
}

impl Ledger for Store {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        if self.failed {
            return Err(LedgerError);
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.contents.apply(changes);
        self.write_file()
    }
}

impl Store {
    fn write_file(&mut self) -> Result<(), LedgerError> {
        // Until the caller has stored it, nobody knows which file is the current one.
        self.failed = true;
        let file = self.key.seal(&self.contents, &mut self.rng).map_err(|_| LedgerError)?;
        if !(self.write)(&file) {
            return Err(LedgerError);
        }
        self.failed = false;
        Ok(())
    }
}

fn long(key: &[u8]) -> Result<&[u8], Refusal> {
    if key.len() < MIN_KEY {
        let what = "the key has fewer than 16 bytes; draw 32 random ones, and keep them elsewhere";
        return Err(Refusal::new(Code::KeyWrong, "ShortKey", what));
    }
    Ok(key)
}

fn of_file(error: FileError) -> Refusal {
    let code = match error {
        FileError::Locked => Code::KeyWrong,
        _ => Code::PassfileInvalid,
    };
    Refusal::of(code, &error)
}

fn unstored(_: LedgerError) -> Refusal {
    let what = "the pass file was not stored, so nothing was released; free this handle, repair \
                the storage, and open the file that it has";
    Refusal::new(Code::IoFailed, "NotStored", what)
}
