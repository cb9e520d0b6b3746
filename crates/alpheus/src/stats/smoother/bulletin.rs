//! What a smoother has said, for whoever asks: peers fetch it in order, so nothing that
//! one missed is lost. It is made anew at each start.

use alpheus_accountable_statistics::definition::Definition;
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_accountable_statistics::keymaking::KeyWord;
use alpheus_accountable_statistics::messages::{Card, Opening, Outcome, Ready, Receipt};
use alpheus_accountable_statistics::smoother::Output;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed::Signed;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
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

impl Said {
    /// Of which aggregate it is, as whoever says it has it: to find who is to hear it.
    #[must_use]
    pub fn said_to_be_for(&self) -> Option<Digest> {
        match self {
            Self::Receipt(receipt) => receipt.said_to_be_for(),
            Self::Ready(ready) => ready.dangerous_first(),
            Self::Opening(opening) => Some(opening.dangerous_unverified()?.ready.aggregate),
            Self::Word(_) | Self::Card(_) | Self::Key(_) | Self::Definition(_) => None,
        }
    }
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
    said: BTreeMap<usize, Said>,
    next: usize,
    /// What had been said when, to forget it.
    marks: VecDeque<(Time, usize)>,
    keys: Vec<Endorsed<Card>>,
    definitions: BTreeMap<Digest, Endorsed<Definition>>,
    outcomes: BTreeMap<Digest, Signed<Outcome>>,
}

/// So many keys are shown: those of the running and the next key epoch are among them.
const KEYS: usize = 8;
/// So much is given at a time.
pub const PAGE: usize = 512;

impl Board {
    fn add(&mut self, said: Said) {
        self.said.insert(self.next, said);
        self.next = self.next.saturating_add(1);
    }
}

impl Bulletin {
    /// Nothing was said since this start.
    #[must_use]
    pub fn new(boot: u64) -> Self {
        Self(Arc::new(RwLock::new(Board {
            boot,
            said: BTreeMap::new(),
            next: 0,
            marks: VecDeque::new(),
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
        self.write().add(said);
    }

    /// Says that a key is made.
    pub fn made(&self, key: Endorsed<Card>) {
        let mut board = self.write();
        board.keys.push(key.clone());
        if board.keys.len() > KEYS {
            board.keys.remove(0);
        }
        board.add(Said::Key(Box::new(key)));
    }

    /// Says a definition, once.
    pub fn define(&self, name: Digest, signed: &Endorsed<Definition>) {
        let mut board = self.write();
        if board.definitions.insert(name, signed.clone()).is_none() {
            board.add(Said::Definition(Box::new(signed.clone())));
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
        let from = if boot == board.boot { from.min(board.next) } else { 0 };
        let page: Vec<(usize, Said)> =
            board.said.range(from..).take(PAGE).map(|(at, said)| (*at, said.clone())).collect();
        let next = page.last().map_or(from, |(at, _)| at.saturating_add(1));
        Page { boot: board.boot, next, said: page.into_iter().map(|(_, said)| said).collect() }
    }

    /// Forgets what was said so long ago, in microseconds: what rests on it is over.
    pub fn prune(&self, now: Time, kept: u64) {
        let mut board = self.write();
        let next = board.next;
        let due = board.marks.back().is_none_or(|(at, _)| now.0.saturating_sub(at.0) >= kept / 64);
        if due {
            board.marks.push_back((now, next));
        }
        while board.marks.front().is_some_and(|(at, _)| now.0.saturating_sub(at.0) >= kept) {
            if let Some((_, first)) = board.marks.pop_front() {
                board.said = board.said.split_off(&first);
            }
        }
    }

    /// Forgets aggregates that are over.
    pub fn forget(&self, names: &[Digest]) {
        let mut board = self.write();
        for name in names {
            board.definitions.remove(name);
            board.outcomes.remove(name);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
    use alpheus_accountable_statistics::keymaking::What;
    use alpheus_crypto::secret::Secret;
    use alpheus_crypto::sign::SigningKey;

    fn word(attempt: u32) -> Said {
        let key = SigningKey::from_seed(&Secret::from_bytes([1; 32]));
        let what = What::Verdict(vec![]);
        let word = KeyWord { epoch: KeyEpoch(1), attempt, by: SmootherId(0), what };
        Said::Word(Signed::new(&word, &key))
    }

    #[test]
    fn what_was_said_long_ago_is_forgotten_and_nobody_misses_what_was_said_since() {
        let bulletin = Bulletin::new(7);
        (0..600).for_each(|attempt| bulletin.say(word(attempt)));
        let first = bulletin.page(7, 0);
        assert_eq!((first.said.len(), first.next), (512, 512));
        bulletin.prune(Time(0), 6400);
        (0..10).for_each(|attempt| bulletin.say(word(attempt)));
        bulletin.prune(Time(6399), 6400);
        assert_eq!(bulletin.page(7, 512).said.len(), 98);
        bulletin.prune(Time(6400), 6400);
        // Who had come to the middle goes on where there is something.
        let rest = bulletin.page(7, 512);
        assert_eq!((rest.said.len(), rest.next), (10, 610));
        assert_eq!(bulletin.page(6, 512).said.len(), 10, "another start begins at zero");
        assert!(bulletin.page(7, 610).said.is_empty() && bulletin.page(7, 610).next == 610);
    }
}
