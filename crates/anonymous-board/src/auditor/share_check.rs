//! The check of one database's share: from its keys of the accepted writes the auditor computes their
//! digests and the share again, masked, and compares them with what the database has opened and latched.

use super::Case;
use crate::configuration::{Board, Epoch, Party};
use crate::dpf::digest::Kappa;
use crate::dpf::pass::{Pass, Share};
use crate::dpf::prg::Prgs;
use crate::dpf::{Shape, Side};
use crate::envelope::{RevealedKeys, UnsealedKey, canonical};
use crate::messages::{Fault, Reveal, WriteDigest};
use crate::secrets::mask;
use crate::transcript::Transcript;
use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::hybrid::HybridKey;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
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
    by: Side,
    /// What the database revealed, if it opens.
    revealed: Option<Zeroizing<Vec<u8>>>,
    /// What it had opened of the accepted writes.
    opened: Vec<WriteDigest>,
    kappa: Kappa,
    prgs: Prgs,
    shape: Shape,
    own: AgreementPublic,
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

    /// An honest database's share is the sum of the keys whose digests it has opened, so every
    /// difference is the database's fault. The digests matter as much as the share: of a write of
    /// its own member a database could open the other key's digest, and add its own key, with what
    /// noise it likes. With digests that are right, each accepted write adds to one row.
    fn check(&self) -> Result<(), Fault> {
        let revealed: RevealedKeys =
            self.revealed.as_ref().and_then(|bytes| canonical(bytes)).ok_or(Fault::Seed)?;
        let agreement = AgreementKey::from_seed(&Secret::from_bytes(revealed.agreement));
        if agreement.public() != self.own {
            return Err(Fault::Seed);
        }
        let keys: Result<Vec<UnsealedKey>, _> =
            revealed.writes.iter().map(|write| write.check(&self.board, self.epoch)).collect();
        let keys = keys.map_err(|_| Fault::WrongDigest)?;
        let shares: Vec<Share<'_>> =
            keys.iter().map(|of| Share { root: &of.key.root, words: &of.key.words }).collect();
        let mut table = Zeroizing::new(vec![0; self.shape.bytes()]);
        let pass = Pass::new(&self.prgs, self.shape, self.by);
        let digests = pass.add_and_digest(&shares, &mut table, &self.kappa);
        let digests = digests.map_err(|_| Fault::Share)?.into_iter().zip(&keys);
        let right = digests.map(|(digest, key)| WriteDigest { digest, shared: key.shared });
        if !right.eq(self.opened.iter().copied()) {
            return Err(Fault::WrongDigest);
        }
        let agreed = agreement.agree(&self.other).map_err(|_| Fault::Share)?;
        mask(&agreed, &self.set, &mut table);
        let digest = Transcript::share_digest(self.by, &self.set, &table);
        if digest == self.latched { Ok(()) } else { Err(Fault::Share) }
    }
}

impl Case {
    /// The database whose reveal is awaited.
    pub(super) fn awaited_reveal(&self) -> Option<Party> {
        let lacking = self.evidence.reveal.is_none() && !self.has_ended();
        Some(self.transcript.checked_side()?.ok().filter(|_| lacking)?.into())
    }

    /// The check, once everything is there. It is returned once.
    pub(super) fn next_check(&mut self, board: &Board) -> Option<ShareCheck> {
        let ready = self.evidence.progress == Progress::Waiting && !self.has_ended();
        let reveal = self.evidence.reveal.as_ref().filter(|_| ready)?;
        let transcript = &self.transcript;
        let by = transcript.checked_side()?.ok()?;
        let (set, latched) = transcript.latch(by)?;
        let ((_, own), (_, other)) = (transcript.keys(by)?, transcript.keys(by.other())?);
        let candidates = transcript.candidates()?;
        let accepted = &transcript.set()?.ok()?.accepted;
        let all = candidates.writes.iter().zip(transcript.opened_digests(by)?.ok()?);
        let opened = all.filter(|(name, _)| accepted.binary_search(name).is_ok());
        let opened = opened.map(|(_, digest)| *digest).collect();
        let epoch = transcript.epoch();
        let (fingerprint, number) = (board.fingerprint(), epoch.0.to_be_bytes());
        let context = [fingerprint.as_ref(), number.as_slice()];
        let reveal = reveal.open(board.key(by.into())?).ok()?;
        let (key, label) = (sealing(self.seed.as_ref()?), labels::BOARD_REVEALED_KEYS);
        let check = ShareCheck {
            epoch,
            board: board.clone(),
            by,
            revealed: key.open_bytes(label, &context, &reveal.keys).ok(),
            opened,
            kappa: candidates.kappa,
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
