//! What follows from statements, for everybody alike. A server is named by its side in
//! mode 1, and by its place in mode 2.

use super::{Candidates, Dispute, Set, Transcript, sorted};
use crate::coalition::audit::{self, Answer};
use crate::coalition::engine::Parity;
use crate::coalition::parity::Permutation;
use crate::configuration::Party;
use crate::dpf::Side;
use crate::dpf::digest::Kappa;
use crate::dpf::prg::Prgs;
use crate::messages::{Audited, Fault, Tag, What, Why, WriteName};
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::seal::SealingPublic;
use std::collections::HashSet;

impl Transcript {
    /// A database's keys of the epoch.
    #[must_use]
    pub fn keys(&self, by: impl Into<Party>) -> Option<(SealingPublic, AgreementPublic)> {
        match self.by(by, What::BEGIN)? {
            What::Begin { sealing, agreement } => Some((*sealing, *agreement)),
            _ => None,
        }
    }

    /// The digests of all databases' Begin, once all have begun.
    fn begins(&self) -> Option<Vec<Digest>> {
        let begun = |by: &Party| {
            self.keys(*by)?;
            self.digest_of(*by, What::BEGIN)
        };
        self.board.databases().iter().map(begun).collect()
    }

    /// A key of the epoch that nobody could have worked on before.
    fn permutation(&self, what: &[u8]) -> Option<[u8; 16]> {
        let begins = self.begins()?;
        let mut parts: Vec<&[u8]> = begins.iter().map(AsRef::as_ref).collect();
        parts.push(what);
        let digest = labelled(labels::BOARD_PERMUTATIONS, &parts);
        Some(std::array::from_fn(|i| digest.0[i]))
    }

    /// Mode 1's permutations of the epoch, once both databases have begun it.
    #[must_use]
    pub fn permutations(&self) -> Option<Prgs> {
        let key = |what: &[u8]| self.permutation(what);
        Some(Prgs::new(&key(b"tree")?, &key(b"payload")?, &key(b"hash")?))
    }

    /// Mode 2's construction of keys in the epoch, once all servers have begun it.
    #[must_use]
    pub fn parity(&self) -> Option<Parity> {
        let permutation = Permutation::new(&self.permutation(b"parity")?);
        Some(Parity::new(permutation, *self.board.grid()?))
    }

    /// What a write of mode 2 is bound to: board, epoch, the servers' keys, whose it is.
    #[must_use]
    pub fn bound(&self, tag: &Tag) -> Option<Digest> {
        let (board, epoch) = (self.board.fingerprint(), self.epoch.0.to_be_bytes());
        let begins = self.begins()?;
        let mut parts: Vec<&[u8]> = vec![board.as_ref(), &epoch, &tag.0];
        parts.extend(begins.iter().map(|begin| begin.as_ref() as &[u8]));
        Some(labelled(labels::BOARD_BOUND, &parts))
    }

    /// The writes that a database had when it closed.
    #[must_use]
    pub fn closed(&self, by: impl Into<Party>) -> Option<&[WriteName]> {
        match self.by(by, What::CLOSE)? {
            What::Close { writes } => Some(writes),
            _ => None,
        }
    }

    /// A database's own candidates and its part of κ.
    #[must_use]
    pub fn own_candidates(&self, by: impl Into<Party>) -> Option<(&[WriteName], &[u8; 32])> {
        match self.by(by, What::CANDIDATES)? {
            What::Candidates { writes, coin } => Some((writes, coin)),
            _ => None,
        }
    }

    /// The candidates, once all databases have said theirs.
    #[must_use]
    pub fn candidates(&self) -> Option<&Candidates> {
        if self.known.candidates.get().is_none() {
            let candidates = self.compute_candidates()?;
            return Some(self.known.candidates.get_or_init(|| candidates));
        }
        self.known.candidates.get()
    }

    fn compute_candidates(&self) -> Option<Candidates> {
        let databases = self.board.databases();
        let own: Option<Vec<_>> = databases.iter().map(|by| self.own_candidates(*by)).collect();
        let own = own?;
        let ((first, _), others) = own.split_first()?;
        let mut common: Vec<WriteName> = first.to_vec();
        for (theirs, _) in others {
            let theirs: HashSet<&WriteName> = theirs.iter().collect();
            common.retain(|name| theirs.contains(name));
        }
        let writes = sorted(common);
        let mut bases = Vec::new();
        for place in [What::BEGIN, What::CANDIDATES] {
            for by in databases {
                bases.push(self.digest_of(*by, place)?);
            }
        }
        let digest = self.names(labels::BOARD_CANDIDATES, &bases, &writes);
        let mut coins: Vec<&[u8]> = own.iter().map(|(_, coin)| coin.as_slice()).collect();
        coins.push(digest.as_ref());
        let drawn = labelled(labels::BOARD_KAPPA, &coins);
        let kappa = Kappa(std::array::from_fn(|i| drawn.0[i]));
        Some(Candidates { writes, digest, drawn, kappa })
    }

    fn names(&self, label: &str, more: &[Digest], writes: &[WriteName]) -> Digest {
        let board = self.board.fingerprint();
        let epoch = self.epoch.0.to_be_bytes();
        let mut parts: Vec<&[u8]> = vec![board.as_ref(), &epoch];
        parts.extend(more.iter().map(|digest| digest.as_ref() as &[u8]));
        parts.extend(writes.iter().map(|name| name.0.as_ref() as &[u8]));
        labelled(label, &parts)
    }

    /// What a database's commitment is to be for digests and a nonce, in mode 1.
    #[must_use]
    pub fn binding(
        &self,
        side: Side,
        candidates: &Digest,
        audited: &[Audited],
        nonce: &[u8; 32],
    ) -> Digest {
        let mut bytes = Vec::with_capacity(64 * audited.len());
        for one in audited {
            bytes.extend_from_slice(&one.digest.0);
            bytes.extend_from_slice(one.shared.as_ref());
        }
        let parts = [side.name(), candidates.as_ref(), &bytes, nonce];
        labelled(labels::BOARD_DIGESTS, &parts)
    }

    /// What a server's commitment is to be for answers and a nonce, in mode 2.
    #[must_use]
    pub fn answer_binding(
        &self,
        by: Party,
        candidates: &Digest,
        answers: &[Answer],
        nonce: &[u8; 32],
    ) -> Digest {
        let numbers = answers.iter().flat_map(|answer| answer.0.as_flattened().as_flattened());
        let bytes: Vec<u8> = numbers.copied().collect();
        labelled(labels::BOARD_ANSWERS, &[&by.name(), candidates.as_ref(), &bytes, nonce])
    }

    /// The candidates that a database has bound itself to answers for.
    #[must_use]
    pub fn committed(&self, by: impl Into<Party>) -> Option<Digest> {
        match self.by(by, What::COMMIT)? {
            What::Commit { candidates, .. } => Some(*candidates),
            _ => None,
        }
    }

    /// A database's digests, if they are those that it committed to.
    #[must_use]
    pub fn audited(&self, side: Side) -> Option<Result<&[Audited], Dispute>> {
        let What::Open { digests, nonce } = self.by(side, What::OPEN)? else { return None };
        let bound = self.opened(side.into(), digests.len(), |candidates| {
            self.binding(side, candidates, digests, nonce)
        })?;
        Some(bound.map(|()| digests.as_slice()))
    }

    /// A server's answers, if they are those that it committed to.
    #[must_use]
    pub fn answered(&self, by: Party) -> Option<Result<&[Answer], Dispute>> {
        let What::Answer { answers, nonce } = self.by(by, What::OPEN)? else { return None };
        let bound = self.opened(by, answers.len(), |candidates| {
            self.answer_binding(by, candidates, answers, nonce)
        })?;
        Some(bound.map(|()| answers.as_slice()))
    }

    /// Whether so many opened values, which bind as said, are what was committed to.
    fn opened(
        &self,
        by: Party,
        many: usize,
        binding: impl FnOnce(&Digest) -> Digest,
    ) -> Option<Result<(), Dispute>> {
        let What::Commit { candidates, digests } = self.by(by, What::COMMIT)? else { return None };
        let known = self.candidates()?;
        let bound = self.known.bound.get(by.index())?.get_or_init(|| {
            if *candidates != known.digest {
                return Err(Dispute::Contradiction);
            }
            let good = binding(&known.digest) == *digests && many == known.writes.len();
            if good { Ok(()) } else { Err(Dispute::Blamed(by, Fault::Digests)) }
        });
        Some(*bound)
    }

    /// The agreed set, or why there is none; nothing before all databases have opened what
    /// they committed to.
    #[must_use]
    pub fn set(&self) -> Option<Result<&Set, Dispute>> {
        let set = match self.known.set.get() {
            Some(set) => set,
            None => {
                let equal = self.passed()?;
                let set = match equal {
                    Ok(passed) => Ok(self.compute_set(&passed)?),
                    Err(dispute) => Err(dispute),
                };
                self.known.set.get_or_init(|| set)
            }
        };
        Some(set.as_ref().map_err(|dispute| *dispute))
    }

    /// Which candidates have passed the audit, in their order.
    fn passed(&self) -> Option<Result<Vec<bool>, Dispute>> {
        if self.board.grid().is_none() {
            let both = [self.audited(Side::First)?, self.audited(Side::Second)?];
            let equal = |opened: Vec<&[Audited]>| {
                let [first, second] = opened.as_slice() else { return Vec::new() };
                first.iter().zip(*second).map(|(a, b)| a == b).collect()
            };
            return Some(all(both).map(equal));
        }
        let answers: Option<Vec<_>> =
            self.board.databases().iter().map(|by| self.answered(*by)).collect();
        let many = self.candidates()?.writes.len();
        let accepted = |opened: Vec<&[Answer]>| {
            let of = |at: usize| -> Vec<Answer> {
                opened.iter().filter_map(|answers| answers.get(at).copied()).collect()
            };
            (0..many).map(|at| audit::accepted(&of(at))).collect()
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
            bases.extend([self.digest_of(*by, What::COMMIT)?, self.digest_of(*by, What::OPEN)?]);
        }
        let bases: Vec<&[u8]> = bases.iter().map(AsRef::as_ref).collect();
        let opens = labelled(labels::BOARD_OPENS, &bases);
        let digest = self.names(labels::BOARD_SET, &[candidates.digest, opens], &accepted);
        Some(Set { accepted, rejected, opens, digest })
    }

    /// Whether a database computes the set as it is computed here, from the same statements.
    ///
    /// # Errors
    /// Inside: [`Dispute`].
    #[must_use]
    pub fn agrees(&self, by: impl Into<Party>, set: &Set) -> Option<Result<(), Dispute>> {
        let by = by.into();
        let What::Agree { opens, set: theirs, size } = self.by(by, What::AGREE)? else {
            return None;
        };
        if *opens != set.opens {
            return Some(Err(Dispute::Contradiction));
        }
        let same = *theirs == set.digest && usize::try_from(*size) == Ok(set.accepted.len());
        Some(if same { Ok(()) } else { Err(Dispute::Blamed(by, Fault::Set)) })
    }

    /// The set that the auditor settled.
    #[must_use]
    pub fn settled(&self) -> Option<Digest> {
        match self.by(Party::Auditor, 0).filter(|_| self.board.grid().is_none())? {
            What::Settle { set } => Some(*set),
            _ => None,
        }
    }

    /// The set and the share that a database is bound to.
    #[must_use]
    pub fn latched(&self, by: impl Into<Party>) -> Option<(Digest, Digest)> {
        match self.by(by, What::LATCH)? {
            What::Latch { set, share } => Some((*set, *share)),
            _ => None,
        }
    }

    /// The set that all databases are bound to shares for.
    #[must_use]
    pub fn all_latched(&self) -> Option<Digest> {
        self.same(|by| self.latched(by).map(|(set, _)| set))
    }

    /// The set and the table that a database published.
    #[must_use]
    pub fn published(&self, by: impl Into<Party>) -> Option<(Digest, Digest)> {
        match self.by(by, What::PUBLISH)? {
            What::Publish { set, table } => Some((*set, *table)),
            _ => None,
        }
    }

    /// The set and the table that all databases published.
    #[must_use]
    pub fn all_published(&self) -> Option<(Digest, Digest)> {
        self.same(|by| self.published(by))
    }

    /// Whether all databases are bound to their shares and not all have published: some may
    /// have read the table, whatever any of them says.
    #[must_use]
    pub fn unshared(&self) -> bool {
        let all = |said: &dyn Fn(Party) -> bool| self.board.databases().iter().all(|by| said(*by));
        all(&|by| self.latched(by).is_some()) && !all(&|by| self.published(by).is_some())
    }

    /// Why the epoch is burnt, if some server says so. That some server may have read the
    /// table goes before all else: who has may say what it likes.
    #[must_use]
    pub fn burnt(&self) -> Option<Why> {
        let said = || self.board.parties().iter().filter_map(|by| self.aborted(*by));
        let first = said().next()?;
        let warning = said().find(Why::warns).or(self.unshared().then_some(Why::Unshared));
        Some(warning.unwrap_or(first))
    }

    /// Whether all databases have ended the epoch, with a table or without: before, one that
    /// is silent here may still give its share.
    #[must_use]
    pub fn ended(&self) -> bool {
        let ended = |by: &Party| self.aborted(*by).is_some() || self.published(*by).is_some();
        self.board.databases().iter().all(ended)
    }

    /// What all databases say alike.
    fn same<T: PartialEq>(&self, said: impl Fn(Party) -> Option<T>) -> Option<T> {
        let (first, others) = self.board.databases().split_first()?;
        let first = said(*first)?;
        others.iter().all(|by| said(*by).as_ref() == Some(&first)).then_some(first)
    }

    /// What a database's latch is to bind.
    #[must_use]
    pub fn share_digest(by: impl Into<Party>, set: &Digest, share: &[u8]) -> Digest {
        labelled(labels::BOARD_SHARE, &[&by.into().name(), set.as_ref(), share])
    }

    /// What a published table is named by.
    #[must_use]
    pub fn table_digest(set: &Digest, table: &[u8]) -> Digest {
        labelled(labels::BOARD_TABLE, &[set.as_ref(), table])
    }
}

/// What all have opened, or the first dispute: whoever is to blame is named before what
/// may be another's doing.
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
