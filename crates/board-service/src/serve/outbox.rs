//! The items that a server has published, for anyone to read.

use alpheus_anonymous_board::configuration::{Epoch, Party};
use alpheus_anonymous_board::database::Output;
use alpheus_anonymous_board::messages::{PublishedStatement, Statement};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::signed_message::Signed;
use axum::body::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The number of epochs kept for readers.
const MAX_PAGES: usize = 64;
/// The number of tables, and their decoded messages, kept in memory. Older tables are read from
/// the ledger.
const MAX_TABLES: usize = 3;
/// The published items. Clones share one content.
#[derive(Clone, Default)]
pub struct Outbox(Arc<RwLock<BTreeMap<Epoch, Page>>>);

/// The items of one epoch.
#[derive(Clone, Default)]
pub struct Page {
    /// Each server's statements, as received here.
    pub said: BTreeMap<Party, Vec<EncodedStatement>>,
    /// For each server, the first statement that conflicts with those.
    pub conflicts: BTreeMap<Party, Arc<Signed<Statement>>>,
    /// The masked share.
    pub share: Option<Arc<Vec<u8>>>,
    /// Its keys of the accepted writes, sealed for the auditor: as long as a share, so encoded once.
    pub reveal: Option<Arc<Vec<u8>>>,
    /// Whether there is a table, here or in the ledger.
    pub published: bool,
    /// The table, of one of the last epochs.
    pub table: Option<Arc<Vec<u8>>>,
    /// The decoded messages as JSON, after the first request for them.
    pub messages: Option<Bytes>,
}

/// A statement. A list of writes is long, so all who read it share one encoding.
#[derive(Clone)]
pub struct EncodedStatement {
    /// What was signed.
    pub digest: Digest,
    /// The encoded statement.
    pub encoded: Bytes,
}

impl Page {
    /// Whether a server's statement is here, or another proof that it contradicts itself.
    #[must_use]
    pub fn has(&self, by: Party, digest: Digest) -> bool {
        let mut said = self.said.get(&by).into_iter().flatten();
        self.conflicts.contains_key(&by) || said.any(|said| said.digest == digest)
    }
}

impl Outbox {
    /// One epoch.
    #[must_use]
    pub fn page(&self, epoch: Epoch) -> Option<Page> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&epoch).cloned()
    }

    /// The last epoch that has a table.
    #[must_use]
    pub fn last(&self) -> Option<Epoch> {
        let pages = self.0.read().unwrap_or_else(PoisonError::into_inner);
        pages.iter().rev().find(|(_, page)| page.published).map(|(epoch, _)| *epoch)
    }

    /// Publishes a database's output.
    pub fn put_out(&self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Statement(said) => self.say(said),
                Output::Share(epoch, share) => self.change(epoch, |page| page.share = Some(share)),
                Output::Reveal(epoch, reveal) => {
                    let encoded = postcard::to_allocvec(reveal.as_ref()).map(Arc::new).ok();
                    self.change(epoch, |page| page.reveal = encoded);
                }
                // An epoch that ends after a reveal ends with one of these.
                Output::ShareRemoved(epoch) => self.change(epoch, |page| {
                    (page.share, page.reveal) = (None, None);
                }),
                Output::Table(epoch, table) => self.change(epoch, |page| {
                    (page.published, page.table, page.reveal) = (true, Some(table), None);
                }),
            }
        }
    }

    /// Keeps the decoded messages of a table, as JSON, for later requests.
    pub fn keep(&self, epoch: Epoch, messages: Bytes) {
        self.change(epoch, |page| page.messages = Some(messages));
    }

    /// Publishes a statement.
    pub fn say(&self, spoken: PublishedStatement) {
        let PublishedStatement { epoch, by, conflicts, signed } = spoken;
        let encoded = postcard::to_allocvec(&signed).map(Bytes::from);
        self.change(epoch, |page| {
            if conflicts {
                tracing::warn!(%by, epoch = epoch.0, "the server has signed two conflicting statements");
                page.conflicts.insert(by, Arc::new(signed));
            } else if let Ok(encoded) = encoded {
                page.said.entry(by).or_default().push(EncodedStatement { digest: signed.digest(), encoded });
            }
        });
    }

    fn change(&self, epoch: Epoch, change: impl FnOnce(&mut Page)) {
        let mut pages = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(pages.entry(epoch).or_default());
        while pages.len() > MAX_PAGES {
            pages.pop_first();
        }
        let held = |page: &&mut Page| page.table.is_some() || page.messages.is_some();
        for page in pages.values_mut().rev().filter(held).skip(MAX_TABLES) {
            (page.table, page.messages) = (None, None);
        }
    }
}
