//! What a smoother has said, for whoever asks: peers fetch it in order, so nothing that
//! one missed is lost. It is made anew at each start.

use alpheus_accountable_statistics::definition::Definition;
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::keymaking::KeyWord;
use alpheus_accountable_statistics::messages::{Card, Opening, Outcome, Ready, Receipt};
use alpheus_accountable_statistics::smoother::Output;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::Signed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What smoothers say to each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Said {
    /// While a key is made.
    Word(Signed<KeyWord>),
    /// A key that a quorum has voted for.
    Card(Signed<Card>),
    /// A key that was made.
    Key(Box<Endorsed<Card>>),
    /// What a quorum has signed.
    Definition(Box<Endorsed<Definition>>),
    /// A deposit is here.
    Receipt(Box<Receipt>),
    /// Ready to decrypt a set.
    Ready(Signed<Ready>),
    /// A partial decryption.
    Opening(Signed<Opening>),
}

/// Some of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Page {
    /// Which start of the process: another one counts from zero.
    pub boot: u64,
    /// From where on to ask next.
    pub next: usize,
    /// What was said.
    pub said: Vec<Said>,
}

/// All of it. Clones are one.
#[derive(Clone)]
pub struct Bulletin(Arc<RwLock<Board>>);

struct Board {
    boot: u64,
    said: Vec<Said>,
    keys: Vec<Endorsed<Card>>,
    definitions: BTreeMap<Digest, Endorsed<Definition>>,
    outcomes: BTreeMap<Digest, Signed<Outcome>>,
}

/// So much is given at a time.
const PAGE: usize = 512;

impl Bulletin {
    /// Nothing was said since this start.
    #[must_use]
    pub fn new(boot: u64) -> Self {
        Self(Arc::new(RwLock::new(Board {
            boot,
            said: Vec::new(),
            keys: Vec::new(),
            definitions: BTreeMap::new(),
            outcomes: BTreeMap::new(),
        })))
    }

    fn read(&self) -> RwLockReadGuard<'_, Board> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Board> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something.
    pub fn say(&self, said: Said) {
        self.write().said.push(said);
    }

    /// Says that a key is made.
    pub fn made(&self, key: Endorsed<Card>) {
        let mut board = self.write();
        board.keys.push(key.clone());
        board.said.push(Said::Key(Box::new(key)));
    }

    /// Says a definition, once.
    pub fn define(&self, name: Digest, signed: &Endorsed<Definition>) {
        let mut board = self.write();
        if board.definitions.insert(name, signed.clone()).is_none() {
            board.said.push(Said::Definition(Box::new(signed.clone())));
        }
    }

    /// Says what came out of the role. Outcomes are for the aggregator.
    pub fn put_out(&self, name_of: impl Fn(&Signed<Outcome>) -> Option<Digest>, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Ready(ready) => self.say(Said::Ready(ready)),
                Output::Opening(opening) => self.say(Said::Opening(opening)),
                Output::Outcome(outcome) => {
                    if let Some(name) = name_of(&outcome) {
                        self.write().outcomes.insert(name, outcome);
                    }
                }
            }
        }
    }

    /// What was said from one place on, at a start.
    #[must_use]
    pub fn page(&self, boot: u64, from: usize) -> Page {
        let board = self.read();
        let from = if boot == board.boot { from.min(board.said.len()) } else { 0 };
        let said: Vec<Said> = board.said.iter().skip(from).take(PAGE).cloned().collect();
        Page { boot: board.boot, next: from + said.len(), said }
    }

    /// Definitions that it works by.
    #[must_use]
    pub fn definitions(&self) -> Vec<Endorsed<Definition>> {
        self.read().definitions.values().cloned().collect()
    }

    /// Keys that were made.
    #[must_use]
    pub fn keys(&self) -> Vec<Endorsed<Card>> {
        self.read().keys.clone()
    }

    /// How aggregates ended here.
    #[must_use]
    pub fn outcomes(&self) -> Vec<Signed<Outcome>> {
        self.read().outcomes.values().cloned().collect()
    }
}
