//! The ledger of a server, in which the secrets of an epoch can be erased. Data that is deleted from a store
//! stays in its files, and in copies of them. So a secret is stored locked under a slot of its own,
//! in a file beside the fence, and the slot is overwritten in place when the record is removed.
//!
//! The slot is durable before its record, and the removal before the slot is overwritten. Slots that a
//! crash leaves between the two are overwritten at the next start.

use alpheus_crypto::ledger::{Change, Ledger, LedgerError};
use alpheus_crypto::vault::VaultKey;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::beside;
use alpheus_node::ledger::{FencedLedger, Records};
use alpheus_node::slots::{SlotError, SlotFile};
use chacha20::ChaCha20Rng;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Whether the record of this key holds a secret.
pub type IsSecret = fn(&[u8]) -> bool;

/// A fenced ledger with slots.
pub struct ErasingLedger {
    ledger: FencedLedger,
    slots: SlotFile,
    /// The slot of each secret record.
    held: BTreeMap<Vec<u8>, u64>,
    is_secret: IsSecret,
    rng: ChaCha20Rng,
}

/// The slot file that belongs to a fence.
pub fn slots_of(fence: &Path) -> PathBuf {
    beside(fence, ".slots")
}

impl ErasingLedger {
    /// Opens the secrets among the records, in place. False if one of them cannot be opened: its slot
    /// is overwritten or lost, so the ledger is an older copy, or the slot file is. That record is
    /// dropped.
    ///
    /// # Errors
    /// The slot file cannot be read or written.
    pub fn open(
        ledger: FencedLedger,
        slots: SlotFile,
        is_secret: IsSecret,
        rng: ChaCha20Rng,
        records: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<(Self, bool), Failure> {
        let mut this = Self { ledger, slots, held: BTreeMap::new(), is_secret, rng };
        let (mut opened, mut is_whole) = (Vec::with_capacity(records.len()), true);
        for (key, value) in records.drain(..) {
            if !is_secret(&key) {
                opened.push((key, value));
            } else if let Some((slot, secret)) = this.unlock(&key, &value).blame(Category::Io)? {
                this.held.insert(key.clone(), slot);
                opened.push((key, secret));
            } else {
                is_whole = false;
            }
        }
        *records = opened;
        this.overwrite_unused().blame(Category::Io)?;
        Ok((this, is_whole))
    }

    /// Reads its records beside the writer.
    #[must_use]
    pub fn records(&self) -> Records {
        self.ledger.records()
    }

    /// The slot of a locked record, and its content. None if it does not open.
    fn unlock(&self, key: &[u8], value: &[u8]) -> Result<Option<(u64, Vec<u8>)>, SlotError> {
        let Some((slot, locked)) = value.split_first_chunk() else { return Ok(None) };
        let slot = u64::from_be_bytes(*slot);
        let secret = match self.slots.read(slot) {
            Ok(Some(secret)) => secret,
            Ok(None) | Err(SlotError::Lost { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let opened = VaultKey::of_slot(&secret).unlock(key, locked);
        Ok(opened.ok().map(|opened| (slot, opened.to_vec())))
    }

    fn overwrite_unused(&self) -> Result<(), SlotError> {
        let used: Vec<u64> = self.held.values().copied().collect();
        let unused = self.slots.filled()?.into_iter().filter(|slot| !used.contains(slot));
        self.slots.destroy(unused)
    }

    /// Locks the secrets among the changes. Returns the slots that are no longer used.
    fn lock(&mut self, changes: &[Change]) -> Result<(Vec<Change>, Vec<u64>), SlotError> {
        let (mut locked, mut unused) = (Vec::with_capacity(changes.len()), Vec::new());
        for change in changes {
            let Change { key, value } = change;
            if !(self.is_secret)(key) {
                locked.push(change.clone());
                continue;
            }
            unused.extend(self.held.remove(key));
            let Some(value) = value else {
                locked.push(Change::remove(key.clone()));
                continue;
            };
            let (slot, secret) = self.slots.draw(&mut self.rng)?;
            let inside = VaultKey::of_slot(&secret).lock(key, value, &mut self.rng);
            locked.push(Change::put(key.clone(), [&slot.to_be_bytes()[..], &inside].concat()));
            self.held.insert(key.clone(), slot);
        }
        Ok((locked, unused))
    }
}

impl Ledger for ErasingLedger {
    fn commit(&mut self, changes: &[Change]) -> Result<(), LedgerError> {
        if !changes.iter().any(|change| (self.is_secret)(&change.key)) {
            return self.ledger.commit(changes);
        }
        let failed = |error: SlotError| {
            tracing::error!(%error, "the slot file could not be written");
            LedgerError
        };
        let (locked, unused) = self.lock(changes).map_err(failed)?;
        self.ledger.commit(&locked)?;
        self.slots.destroy(unused).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_transport::simulation::Machine;
    use alpheus_transport::{Space, Store};
    use chacha20::rand_core::SeedableRng;
    use std::sync::Arc;

    const SECRET: &[u8] = b"a secret of thirty-two bytes ...";

    struct Server {
        folder: tempfile::TempDir,
        store: Arc<dyn Store>,
    }

    /// What a start finds.
    struct StartupState {
        ledger: ErasingLedger,
        records: Vec<(Vec<u8>, Vec<u8>)>,
        is_whole: bool,
    }

    impl Server {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap(), store: Machine::new().open().unwrap() }
        }

        fn slots(&self) -> PathBuf {
            slots_of(&self.folder.path().join("fence"))
        }

        fn start(&self) -> StartupState {
            let fence = self.folder.path().join("fence");
            let found = FencedLedger::open(Arc::clone(&self.store), &fence, None).unwrap();
            let (slots, rng) =
                (SlotFile::open(&self.slots()).unwrap(), ChaCha20Rng::from_seed([1; 32]));
            let (is_secret, mut records): (IsSecret, _) = (|key| key[0] == b'k', found.records);
            let (ledger, is_whole) =
                ErasingLedger::open(found.ledger, slots, is_secret, rng, &mut records).unwrap();
            StartupState { ledger, records, is_whole }
        }

        /// A record as the store has it.
        fn stored(&self, key: &[u8]) -> Vec<u8> {
            self.store.get(&Space::new("pass").unwrap(), key).unwrap().unwrap().to_vec()
        }
    }

    fn put(key: &[u8], value: &[u8]) -> Change {
        Change::put(key.to_vec(), value.to_vec())
    }

    /// A copy of the store from the time when the secret was needed is worthless afterwards.
    #[test]
    fn a_removed_secret_opens_from_no_copy() {
        let server = Server::new();
        let mut started = server.start();
        started.ledger.commit(&[put(b"w", b"a write"), put(b"k1", SECRET)]).unwrap();
        let copy = server.stored(b"k1");
        assert!(!copy.windows(8).any(|part| part == &SECRET[..8]), "it is locked");
        let mut started = server.start();
        let all = [(b"k1".to_vec(), SECRET.to_vec()), (b"w".to_vec(), b"a write".to_vec())];
        assert!(started.is_whole && started.records == all);
        let slots = std::fs::read(server.slots()).unwrap();
        started.ledger.commit(&[Change::remove(b"k1".to_vec())]).unwrap();
        assert!(started.ledger.unlock(b"k1", &copy).unwrap().is_none());
        let now = std::fs::read(server.slots()).unwrap();
        assert!(now.len() == slots.len() && now[32..] != slots[32..], "overwritten in place");
        assert!(!now.windows(8).any(|part| part == &slots[32..40]));
        // With the old slot file it would open: so that one must not be copied.
        std::fs::write(server.slots(), &slots).unwrap();
        assert!(started.ledger.unlock(b"k1", &copy).unwrap().is_some());
        assert!(started.ledger.unlock(b"k2", &copy).unwrap().is_none(), "under its own key only");
    }

    /// A slot without a record, as a crash on either side of a commit leaves it, is overwritten.
    #[test]
    fn a_start_overwrites_what_a_crash_has_left() {
        let server = Server::new();
        let mut started = server.start();
        started.ledger.commit(&[put(b"k1", SECRET)]).unwrap();
        let copy = server.stored(b"k1");
        let before = std::fs::read(server.slots()).unwrap();
        started.ledger.commit(&[Change::remove(b"k1".to_vec()), put(b"k2", SECRET)]).unwrap();
        // The machine stopped before slot 1 was overwritten, and after slot 3 was drawn.
        let mut crashed = std::fs::read(server.slots()).unwrap();
        crashed[32..64].copy_from_slice(&before[32..64]);
        crashed.extend([9; 32]);
        std::fs::write(server.slots(), crashed).unwrap();
        let started = server.start();
        assert!(started.is_whole && started.ledger.unlock(b"k1", &copy).unwrap().is_none());
        assert_eq!(started.ledger.slots.filled().unwrap(), [2]);
        assert_eq!(started.records, [(b"k2".to_vec(), SECRET.to_vec())]);
    }

    #[test]
    fn a_ledger_without_its_slots_is_an_old_copy() {
        let server = Server::new();
        server.start().ledger.commit(&[put(b"k1", SECRET), put(b"w", b"x")]).unwrap();
        std::fs::remove_file(server.slots()).unwrap();
        let started = server.start();
        assert!(!started.is_whole);
        assert_eq!(started.records, [(b"w".to_vec(), b"x".to_vec())]);
    }
}
