//! What follows from the statements, for everybody alike. A server is identified by its side in
//! mode 1 and by its index in mode 2.

use super::{Candidates, Dispute, Set, Transcript, sorted};
use crate::coalition::audit::{self, Answer};
use crate::coalition::engine::Parity;
use crate::coalition::parity::Permutation;
use crate::configuration::Party;
use crate::dpf::Side;
use crate::dpf::digest::Kappa;
use crate::dpf::prg::Prgs;
use crate::messages::{Body, Fault, Tag, WriteDigest, WriteName};
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::hybrid::HybridPublic;
use alpheus_crypto::labels;
use std::collections::HashSet;

impl Transcript {
    /// A database's keys for the epoch.
    #[must_use]
    pub fn keys(&self, by: impl Into<Party>) -> Option<(&HybridPublic, AgreementPublic)> {
        match self.by(by, Body::BEGIN)? {
            Body::Begin { sealing, agreement } => Some((sealing, *agreement)),
            _ => None,
        }
    }

    /// The digests of all databases' Begin, once all have begun.
    fn begins(&self) -> Option<Vec<Digest>> {
        let begun = |by: &Party| {
            self.keys(*by)?;
            self.digest_of(*by, Body::BEGIN)
        };
        self.board.databases().iter().map(begun).collect()
    }

    /// A key of the epoch that nobody could know, or precompute anything for, before it began.
    fn permutation(&self, purpose: &[u8]) -> Option<[u8; 16]> {
        let begins = self.begins()?;
        let mut parts: Vec<&[u8]> = begins.iter().map(AsRef::as_ref).collect();
        parts.push(purpose);
        let digest = labelled_hash(labels::BOARD_PERMUTATIONS, &parts);
        Some(std::array::from_fn(|i| digest.0[i]))
    }

    /// The epoch's permutations in mode 1, once both databases have begun it.
    #[must_use]
    pub fn permutations(&self) -> Option<Prgs> {
        let key = |purpose: &[u8]| self.permutation(purpose);
        Some(Prgs::new(&key(b"tree")?, &key(b"payload")?, &key(b"hash")?))
    }

    /// The epoch's key construction in mode 2, once all servers have begun it.
    #[must_use]
    pub fn parity(&self) -> Option<Parity> {
        let permutation = Permutation::new(&self.permutation(b"parity")?);
        Some(Parity::new(permutation, *self.board.grid()?))
    }

    /// The digest that an envelope of mode 1 is bound to: board, epoch, the databases' keys.
    #[must_use]
    pub fn begun(&self) -> Option<Digest> {
        let (board, epoch) = (self.board.fingerprint(), self.epoch.0.to_be_bytes());
        let begins = self.begins()?;
        let mut parts: Vec<&[u8]> = vec![board.as_ref(), &epoch];
        parts.extend(begins.iter().map(|begin| begin.as_ref() as &[u8]));
        Some(labelled_hash(labels::BOARD_BEGINS, &parts))
    }

    /// The digest that a write of mode 2 is bound to: board, epoch, the servers' keys, the writer's
    /// tag.
    #[must_use]
    pub fn bound(&self, tag: &Tag) -> Option<Digest> {
        let (board, epoch) = (self.board.fingerprint(), self.epoch.0.to_be_bytes());
        let begins = self.begins()?;
        let mut parts: Vec<&[u8]> = vec![board.as_ref(), &epoch, &tag.0];
        parts.extend(begins.iter().map(|begin| begin.as_ref() as &[u8]));
        Some(labelled_hash(labels::BOARD_WRITE_BINDING, &parts))
    }

    /// The writes that a database had when it closed the epoch.
    #[must_use]
    pub fn closing_list(&self, by: impl Into<Party>) -> Option<&[WriteName]> {
        match self.by(by, Body::CLOSE)? {
            Body::Close { writes, .. } => Some(writes),
            _ => None,
        }
    }

    /// A database's own candidates and its contribution to κ.
    #[must_use]
    pub fn candidates_of(&self, by: impl Into<Party>) -> Option<(&[WriteName], &[u8; 32])> {
        match self.by(by, Body::CANDIDATES)? {
            Body::Candidates { writes, coin } => Some((writes, coin)),
            _ => None,
        }
    }

    /// The common candidates, once all databases have published theirs.
    #[must_use]
    pub fn candidates(&self) -> Option<&Candidates> {
        if self.derived.candidates.get().is_none() {
            let candidates = self.compute_candidates()?;
            return Some(self.derived.candidates.get_or_init(|| candidates));
        }
        self.derived.candidates.get()
    }

    fn compute_candidates(&self) -> Option<Candidates> {
        let databases = self.board.databases();
        let own: Option<Vec<_>> = databases.iter().map(|by| self.candidates_of(*by)).collect();
        let own = own?;
        let ((first, _), others) = own.split_first()?;
        let mut common: Vec<WriteName> = first.to_vec();
        for (theirs, _) in others {
            let theirs: HashSet<&WriteName> = theirs.iter().collect();
            common.retain(|name| theirs.contains(name));
        }
        let writes = sorted(common);
        let mut bases = Vec::new();
        for sequence in [Body::BEGIN, Body::CANDIDATES] {
            for by in databases {
                bases.push(self.digest_of(*by, sequence)?);
            }
        }
        let digest = self.names(labels::BOARD_CANDIDATES, &bases, &writes);
        let mut coins: Vec<&[u8]> = own.iter().map(|(_, coin)| coin.as_slice()).collect();
        coins.push(digest.as_ref());
        let randomness = labelled_hash(labels::BOARD_KAPPA, &coins);
        let kappa = Kappa(std::array::from_fn(|i| randomness.0[i]));
        Some(Candidates { writes, digest, randomness, kappa })
    }

    fn names(&self, label: &str, more: &[Digest], writes: &[WriteName]) -> Digest {
        let board = self.board.fingerprint();
        let epoch = self.epoch.0.to_be_bytes();
        let mut parts: Vec<&[u8]> = vec![board.as_ref(), &epoch];
        parts.extend(more.iter().map(|digest| digest.as_ref() as &[u8]));
        parts.extend(writes.iter().map(|name| name.0.as_ref() as &[u8]));
        labelled_hash(label, &parts)
    }

    /// The commitment of a database to its digests and a nonce, in mode 1.
    #[must_use]
    pub fn digest_commitment(
        &self,
        side: Side,
        candidates: &Digest,
        audited: &[WriteDigest],
        nonce: &[u8; 32],
    ) -> Digest {
        let mut bytes = Vec::with_capacity(64 * audited.len());
        for one in audited {
            bytes.extend_from_slice(&one.digest.0);
            bytes.extend_from_slice(one.shared.as_ref());
        }
        let parts = [side.name(), candidates.as_ref(), &bytes, nonce];
        labelled_hash(labels::BOARD_DIGESTS, &parts)
    }

    /// The commitment of a server to its answers and a nonce, in mode 2.
    #[must_use]
    pub fn answer_commitment(
        &self,
        by: Party,
        candidates: &Digest,
        answers: &[Answer],
        nonce: &[u8; 32],
    ) -> Digest {
        let numbers = answers.iter().flat_map(|answer| answer.0.as_flattened().as_flattened());
        let bytes: Vec<u8> = numbers.copied().collect();
        labelled_hash(labels::BOARD_ANSWERS, &[&by.name(), candidates.as_ref(), &bytes, nonce])
    }

    /// The candidates for which a database has committed to its answers.
    #[must_use]
    pub fn commitment(&self, by: impl Into<Party>) -> Option<Digest> {
        match self.by(by, Body::COMMIT)? {
            Body::Commit { candidates, .. } => Some(*candidates),
            _ => None,
        }
    }

    /// A database's opened digests, if they match its commitment.
    #[must_use]
    pub fn opened_digests(&self, side: Side) -> Option<Result<&[WriteDigest], Dispute>> {
        let Body::Open { digests, nonce } = self.by(side, Body::OPEN)? else { return None };
        let bound = self.check_opening(side.into(), digests.len(), |candidates| {
            self.digest_commitment(side, candidates, digests, nonce)
        })?;
        Some(bound.map(|()| digests.as_slice()))
    }

    /// A server's opened answers, if they match its commitment.
    #[must_use]
    pub fn opened_answers(&self, by: Party) -> Option<Result<&[Answer], Dispute>> {
        let Body::Answer { answers, nonce } = self.by(by, Body::OPEN)? else { return None };
        let bound = self.check_opening(by, answers.len(), |candidates| {
            self.answer_commitment(by, candidates, answers, nonce)
        })?;
        Some(bound.map(|()| answers.as_slice()))
    }

    /// Checks `count` opened values against the commitment. `binding` computes what the commitment
    /// must be.
    fn check_opening(
        &self,
        by: Party,
        count: usize,
        binding: impl FnOnce(&Digest) -> Digest,
    ) -> Option<Result<(), Dispute>> {
        let Body::Commit { candidates, digests } = self.by(by, Body::COMMIT)? else { return None };
        let known = self.candidates()?;
        let bound = self.derived.bound.get(by.index())?.get_or_init(|| {
            if *candidates != known.digest {
                return Err(Dispute::Contradiction);
            }
            let good = binding(&known.digest) == *digests && count == known.writes.len();
            if good { Ok(()) } else { Err(Dispute::Blamed(by, Fault::Digests)) }
        });
        Some(*bound)
    }

    /// The agreed set, or why there is none. `None` until all databases have opened their
    /// commitments.
    #[must_use]
    pub fn set(&self) -> Option<Result<&Set, Dispute>> {
        let set = match self.derived.set.get() {
            Some(set) => set,
            None => {
                let equal = self.audit_results()?;
                let set = match equal {
                    Ok(passed) => Ok(self.compute_set(&passed)?),
                    Err(dispute) => Err(dispute),
                };
                self.derived.set.get_or_init(|| set)
            }
        };
        Some(set.as_ref().map_err(|dispute| *dispute))
    }

    /// Which candidates have passed the audit, in order.
    fn audit_results(&self) -> Option<Result<Vec<bool>, Dispute>> {
        if self.board.grid().is_none() {
            let both = [self.opened_digests(Side::First)?, self.opened_digests(Side::Second)?];
            let equal = |opened: Vec<&[WriteDigest]>| {
                let [first, second] = opened.as_slice() else { return Vec::new() };
                first.iter().zip(*second).map(|(a, b)| a == b).collect()
            };
            return Some(all(both).map(equal));
        }
        let answers: Option<Vec<_>> =
            self.board.databases().iter().map(|by| self.opened_answers(*by)).collect();
        let count = self.candidates()?.writes.len();
        let accepted = |opened: Vec<&[Answer]>| {
            let of = |at: usize| -> Vec<Answer> {
                opened.iter().filter_map(|answers| answers.get(at).copied()).collect()
            };
            (0..count).map(|at| audit::accepts(&of(at))).collect()
        };
        Some(all(answers?).map(accepted))
    }

    fn compute_set(&self, passed: &[bool]) -> Option<Set> {
        let candidates = self.candidates()?;
        let names = candidates.writes.iter().zip(passed);
        let accepted: Vec<_> = names.clone().filter(|(_, e)| **e).map(|(n, _)| *n).collect();
        let rejected = names.filter(|(_, e)| !**e).map(|(n, _)| *n).collect();
        let mut bases = Vec::new();
        for by in self.board.databases() {
            bases.extend([self.digest_of(*by, Body::COMMIT)?, self.digest_of(*by, Body::OPEN)?]);
        }
        let bases: Vec<&[u8]> = bases.iter().map(AsRef::as_ref).collect();
        let opens = labelled_hash(labels::BOARD_OPENS, &bases);
        let digest = self.names(labels::BOARD_SET, &[candidates.digest, opens], &accepted);
        Some(Set { accepted, rejected, opens, digest })
    }

    /// Whether a database computes the same set as this transcript, from the same statements.
    ///
    /// # Errors
    /// Inside: [`Dispute`].
    #[must_use]
    pub fn agrees(&self, by: impl Into<Party>, set: &Set) -> Option<Result<(), Dispute>> {
        let by = by.into();
        let Body::Agree { opens, set: theirs, size } = self.by(by, Body::AGREE)? else {
            return None;
        };
        if *opens != set.opens {
            return Some(Err(Dispute::Contradiction));
        }
        let same = *theirs == set.digest && usize::try_from(*size) == Ok(set.accepted.len());
        Some(if same { Ok(()) } else { Err(Dispute::Blamed(by, Fault::Set)) })
    }

    /// Whether a database is bound to this set: it has agreed to it, or has ended the epoch before it
    /// agreed to any. An honest one then lets nobody check its share of another set. `None` if it has
    /// done neither.
    pub(crate) fn holds_to(&self, by: impl Into<Party>, set: &Set) -> Option<bool> {
        let by = by.into();
        match self.agrees(by, set) {
            Some(agreed) => Some(agreed.is_ok()),
            None => self.abort_reason(by).map(|_| true),
        }
    }

    /// The digest of a share in a database's latch.
    #[must_use]
    pub fn share_digest(by: impl Into<Party>, set: &Digest, share: &[u8]) -> Digest {
        labelled_hash(labels::BOARD_SHARE, &[&by.into().name(), set.as_ref(), share])
    }

    /// The digest that identifies a published table.
    #[must_use]
    pub fn table_digest(set: &Digest, table: &[u8]) -> Digest {
        labelled_hash(labels::BOARD_TABLE, &[set.as_ref(), table])
    }
}

/// All opened values, or a dispute. A server that is provably to blame is reported before a
/// contradiction that another server may have caused.
fn all<T>(opened: impl IntoIterator<Item = Result<T, Dispute>>) -> Result<Vec<T>, Dispute> {
    let mut found = None;
    let mut good = Vec::new();
    for one in opened {
        match one {
            Ok(one) => good.push(one),
            Err(dispute @ Dispute::Blamed(..)) => return Err(dispute),
            Err(dispute) => found = Some(dispute),
        }
    }
    found.map_or(Ok(good), Err)
}
