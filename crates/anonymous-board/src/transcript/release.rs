//! From the settled set to the table: latches, the check of one share, publication.

use super::{Dispute, Transcript};
use crate::configuration::Party;
use crate::dpf::Side;
use crate::messages::{Body, BurnReason, Fault};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::hybrid::HybridPublic;
use alpheus_crypto::labels;

impl Transcript {
    fn is_audited(&self) -> bool {
        self.board.grid().is_none()
    }

    /// The set that the auditor settled.
    #[must_use]
    pub fn settled_set(&self) -> Option<Digest> {
        match self.by(Party::Auditor, 0).filter(|_| self.is_audited())? {
            Body::Settle { set, .. } => Some(*set),
            _ => None,
        }
    }

    /// The digest of the auditor's statement that settles the set. A latch names it.
    #[must_use]
    pub fn settle_digest(&self) -> Option<Digest> {
        self.settled_set()?;
        self.digest_of(Party::Auditor, Body::SETTLE)
    }

    /// The key for which a database seals its keys of the accepted writes, if its share is to be checked.
    #[must_use]
    pub fn reveal_key(&self) -> Option<&HybridPublic> {
        match self.by(Party::Auditor, Body::SETTLE)? {
            Body::Settle { sealing, .. } => Some(sealing),
            _ => None,
        }
    }

    /// The auditor's commitment to its coin for a set.
    #[must_use]
    pub fn draw_commitment(&self, set: &Digest, coin: &[u8; 32]) -> Digest {
        let (board, epoch) = (self.board.fingerprint(), self.epoch.0.to_be_bytes());
        labelled_hash(labels::BOARD_DRAW, &[board.as_ref(), &epoch, set.as_ref(), coin])
    }

    /// Whether both databases are bound to their shares of one set, on the statement of the auditor
    /// that is recorded here. Then there is one commitment, so one coin and one side.
    #[must_use]
    pub fn agreed_settle(&self) -> bool {
        let known = self.settle_digest();
        let names = |by: &Party| match self.by(*by, Body::LATCH) {
            Some(Body::Latch { settle, .. }) => *settle == known,
            _ => false,
        };
        let set = self.agreed_latch();
        known.is_some()
            && set.is_some()
            && set == self.settled_set()
            && self.board.databases().iter().all(names)
    }

    /// The side whose share the auditor checks, once it has opened its coin.
    ///
    /// # Errors
    /// Inside: [`Dispute`], if the coin is not the one that the auditor had committed to.
    #[must_use]
    pub fn checked_side(&self) -> Option<Result<Side, Dispute>> {
        let Body::Draw { coin } = self.by(Party::Auditor, Body::DRAW)? else { return None };
        let Body::Settle { set, draw, .. } = self.by(Party::Auditor, Body::SETTLE)? else {
            return None;
        };
        if self.draw_commitment(set, coin) != *draw {
            return Some(Err(Dispute::Blamed(Party::Auditor, Fault::Draw)));
        }
        Some(Ok(Side::BOTH[usize::from(coin[0] & 1)]))
    }

    /// Whether the auditor has cleared the settled set's shares, in mode 1.
    #[must_use]
    pub fn is_cleared(&self) -> bool {
        match self.by(Party::Auditor, Body::CLEAR) {
            _ if !self.is_audited() => true,
            Some(Body::Clear { set }) => self.settled_set() == Some(*set),
            _ => false,
        }
    }

    /// The set and the share that a database is bound to by its latch.
    #[must_use]
    pub fn latch(&self, by: impl Into<Party>) -> Option<(Digest, Digest)> {
        match self.by(by, Body::LATCH)? {
            Body::Latch { set, share, .. } => Some((*set, *share)),
            _ => None,
        }
    }

    /// The set for which all databases are bound to their shares.
    #[must_use]
    pub fn agreed_latch(&self) -> Option<Digest> {
        self.agreed(|by| self.latch(by).map(|(set, _)| set))
    }

    /// The set and the table that a database published.
    #[must_use]
    pub fn published_table(&self, by: impl Into<Party>) -> Option<(Digest, Digest)> {
        match self.by(by, Body::PUBLISH)? {
            Body::Publish { set, table } => Some((*set, *table)),
            _ => None,
        }
    }

    /// The set and the table that all databases published.
    #[must_use]
    pub fn agreed_table(&self) -> Option<(Digest, Digest)> {
        self.agreed(|by| self.published_table(by))
    }

    /// Whether shares may have been sent: all databases are bound to theirs, and in mode 1 the auditor
    /// has checked one of them.
    #[must_use]
    pub fn is_released(&self) -> bool {
        let latched = self.board.databases().iter().all(|by| self.latch(*by).is_some());
        latched && self.is_cleared()
    }

    /// Whether shares may have been sent, but not all databases have published. Then some may have
    /// read the table, whatever they state.
    #[must_use]
    pub fn may_have_been_read(&self) -> bool {
        let published = |by: &Party| self.published_table(*by).is_some();
        self.is_released() && !self.board.databases().iter().all(published)
    }

    /// Why the epoch is burnt, if some server reports it. A warning that some server may have read
    /// the table takes precedence: such a server can report any reason. A server that only repeats
    /// another's report comes last.
    #[must_use]
    pub fn burn_reason(&self) -> Option<BurnReason> {
        let reasons = || self.board.parties().iter().filter_map(|by| self.abort_reason(*by));
        let repeats = |reason: &BurnReason| matches!(reason, BurnReason::Reported(_));
        let first = reasons().find(|reason| !repeats(reason)).or_else(|| reasons().next())?;
        // What is seen here says more than what a server cannot rule out.
        let is_doubt = |reason: &BurnReason| *reason == BurnReason::Restored;
        let warning = reasons()
            .find(|reason| reason.warns() && !is_doubt(reason))
            .or(self.may_have_been_read().then_some(BurnReason::Unshared))
            .or_else(|| reasons().find(is_doubt));
        Some(warning.unwrap_or(first))
    }

    /// Whether all databases have ended the epoch, with a table or without. Until then a server
    /// that is silent here may still release its share.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let ended =
            |by: &Party| self.abort_reason(*by).is_some() || self.published_table(*by).is_some();
        self.board.databases().iter().all(ended)
    }

    /// A value that all databases state alike.
    fn agreed<T: PartialEq>(&self, value: impl Fn(Party) -> Option<T>) -> Option<T> {
        let (first, others) = self.board.databases().split_first()?;
        let first = value(*first)?;
        others.iter().all(|by| value(*by).as_ref() == Some(&first)).then_some(first)
    }
}
