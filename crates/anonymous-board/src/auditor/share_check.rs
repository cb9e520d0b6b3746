//! The check of one database's share: from its seed and the accepted writes, the auditor computes the
//! share again, masked, and compares it with the database's latch.

use super::Case;
use crate::configuration::{Board, Epoch, Party};
use crate::dpf::pass::{Pass, Share};
use crate::dpf::prg::Prgs;
use crate::dpf::{Shape, Side};
use crate::envelope::{self, UnsealedKey};
use crate::messages::{Fault, Reveal, Submission, WriteName};
use crate::secrets::{Secrets, mask};
use crate::transcript::Transcript;
use alpheus_crypto::agree::AgreementPublic;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::hybrid::{HybridKey, HybridPublic};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed::Signed;
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// The auditor's coin of an epoch.
pub(super) fn coin(seed: &Secret<32>) -> [u8; 32] {
    let coin: Secret<32> = derive(seed.expose(), labels::BOARD_AUDITOR, &[b"coin"]);
    *coin.expose()
}

/// The key that opens a database's reveal.
pub(super) fn sealing(seed: &Secret<32>) -> HybridKey {
    HybridKey::from_seed(&derive(seed.expose(), labels::BOARD_AUDITOR, &[b"sealing"]))
}

/// What a check needs beside the transcript.
#[derive(Default)]
pub(super) struct Evidence {
    /// Accepted writes.
    pub(super) writes: BTreeMap<WriteName, Submission>,
    pub(super) reveal: Option<Signed<Reveal>>,
    pub(super) progress: Progress,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Progress {
    #[default]
    Waiting,
    Working,
    Done(Result<(), Fault>),
}

/// The computation. [`run`](Self::run) takes as long as a database's pass over the table.
pub struct ShareCheck {
    epoch: Epoch,
    board: Board,
    begun: Digest,
    by: Side,
    seed: Option<Secret<32>>,
    writes: Vec<Submission>,
    prgs: Prgs,
    shape: Shape,
    own: (HybridPublic, AgreementPublic),
    other: AgreementPublic,
    set: Digest,
    latched: Digest,
}

/// The result of a check.
pub struct CheckedShare {
    pub(super) epoch: Epoch,
    pub(super) result: Result<(), Fault>,
}

impl ShareCheck {
    /// Runs the check.
    #[must_use]
    pub fn run(self) -> CheckedShare {
        CheckedShare { epoch: self.epoch, result: self.check() }
    }

    /// An honest database's share is the sum of the keys in its envelopes, so every difference is
    /// the database's fault.
    fn check(&self) -> Result<(), Fault> {
        let secrets = Secrets::new(self.seed.as_ref().ok_or(Fault::Seed)?);
        if *secrets.sealing.public() != self.own.0 || secrets.agreement.public() != self.own.1 {
            return Err(Fault::Seed);
        }
        let keys: Option<Vec<UnsealedKey>> =
            self.writes.iter().map(|write| self.open(&secrets, write)).collect();
        let keys = keys.ok_or(Fault::Share)?;
        let shares: Vec<Share<'_>> =
            keys.iter().map(|of| Share { root: &of.key.root, words: &of.key.words }).collect();
        let mut table = Zeroizing::new(vec![0; self.shape.bytes()]);
        let pass = Pass::new(&self.prgs, self.shape, self.by);
        pass.add(&shares, &mut table).map_err(|_| Fault::Share)?;
        let agreed = secrets.agreement.agree(&self.other).map_err(|_| Fault::Share)?;
        mask(&agreed, &self.set, &mut table);
        let digest = Transcript::share_digest(self.by, &self.set, &table);
        if digest == self.latched { Ok(()) } else { Err(Fault::Share) }
    }

    fn open(&self, secrets: &Secrets, write: &Submission) -> Option<UnsealedKey> {
        let sealed = write.envelopes.get(self.by.index())?;
        let bound = (self.epoch, &self.begun);
        envelope::open(&secrets.sealing, &self.board, bound, self.by, None, sealed).ok()
    }
}

impl Case {
    /// The accepted writes that are still needed for the check.
    pub(super) fn missing_writes(&self) -> Vec<WriteName> {
        let needed = self.transcript.settled_set().is_some() && !self.has_ended();
        let set = self.transcript.set().and_then(Result::ok).filter(|_| needed);
        let accepted = set.into_iter().flat_map(|set| &set.accepted);
        accepted.filter(|name| !self.evidence.writes.contains_key(name)).copied().collect()
    }

    /// The database whose reveal is awaited.
    pub(super) fn awaited_reveal(&self) -> Option<Party> {
        let lacking = self.evidence.reveal.is_none() && !self.has_ended();
        Some(self.transcript.checked_side()?.ok().filter(|_| lacking)?.into())
    }

    /// The check, once everything is there. It is returned once.
    pub(super) fn next_check(&mut self, board: &Board) -> Option<ShareCheck> {
        let ready = self.evidence.progress == Progress::Waiting && !self.has_ended();
        let reveal = self.evidence.reveal.as_ref().filter(|_| ready)?;
        if !self.missing_writes().is_empty() {
            return None;
        }
        let transcript = &self.transcript;
        let by = transcript.checked_side()?.ok()?;
        let (set, latched) = transcript.latch(by)?;
        let ((sealed_for, agreement), (_, other)) =
            (transcript.keys(by)?, transcript.keys(by.other())?);
        let own = (sealed_for.clone(), agreement);
        let epoch = transcript.epoch();
        let (fingerprint, number) = (board.fingerprint(), epoch.0.to_be_bytes());
        let context = [fingerprint.as_ref(), number.as_slice()];
        let reveal = reveal.open(board.key(by.into())?).ok()?;
        let opened =
            sealing(self.seed.as_ref()?).open(labels::BOARD_REVEALED_SEED, &context, &reveal.seed);
        let check = ShareCheck {
            epoch,
            board: board.clone(),
            begun: transcript.begun()?,
            by,
            seed: opened.ok(),
            writes: self.evidence.writes.values().cloned().collect(),
            prgs: transcript.permutations()?,
            shape: board.shape(),
            own,
            other,
            set,
            latched,
        };
        self.evidence.progress = Progress::Working;
        Some(check)
    }
}
