//! One epoch at one database: what it holds, and what it says next.

use super::records;
use super::work::{Done, Outcome, TableShare, Task, Work};
use crate::configuration::{Epoch, Party, Pinned, Time};
use crate::dpf::Side;
use crate::envelope::{self, BadEnvelope, Opened};
use crate::error::Refused;
use crate::messages::{Audited, Fault, Submission, Tag, What, Why, WriteName};
use crate::transcript::{Dispute, Set, Transcript, sorted};
use alpheus_crypto::agree::AgreementKey;
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::ledger::Change;
use alpheus_crypto::prf::Prf;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use zeroize::Zeroizing;

/// A database's secrets of an epoch, all from one seed; wiped here and removed from the
/// ledger when it ends, which is not to say from the disk.
pub(super) struct Secrets {
    pub(super) sealing: SealingKey,
    pub(super) agreement: AgreementKey,
    coin: Secret<32>,
    nonce: Secret<32>,
}

impl Secrets {
    pub(super) fn new(seed: &Secret<32>) -> Self {
        let part = |what: &[u8]| derive(seed.expose(), labels::BOARD_EPOCH, &[what]);
        Self {
            sealing: SealingKey::from_seed(&part(b"sealing")),
            agreement: AgreementKey::from_seed(&part(b"agreement")),
            coin: part(b"coin"),
            nonce: part(b"nonce"),
        }
    }
}

/// An accepted write.
pub(super) struct Held {
    pub(super) submission: Submission,
    pub(super) opened: Arc<Opened>,
}

/// An epoch.
pub(super) struct Running {
    pub(super) transcript: Transcript,
    /// None once the epoch has ended.
    pub(super) secrets: Option<Secrets>,
    pub(super) writes: BTreeMap<WriteName, Held>,
    pub(super) tags: HashMap<Tag, WriteName>,
    /// Digests of the roots that were opened.
    pub(super) roots: HashSet<Digest>,
    /// Writes that the other database has closed with and that are waited for here, once
    /// it has closed.
    lacking: Option<BTreeSet<WriteName>>,
    audited: Option<(Vec<Audited>, TableShare)>,
    /// The share of the table with accepted writes alone.
    share: Option<TableShare>,
    /// The same, masked: what leaves.
    pub(super) masked: Option<Arc<Vec<u8>>>,
    pub(super) theirs: Option<Vec<u8>>,
    pub(super) table: Option<Arc<Vec<u8>>>,
    pub(super) fault: Option<(Party, Fault)>,
    /// When this database first knew that both have closed.
    both_closed: Option<Time>,
    /// Work is out.
    busy: bool,
}

impl Running {
    pub(super) fn new(board: &Pinned, epoch: Epoch) -> Self {
        Self {
            transcript: Transcript::new(board, epoch),
            secrets: None,
            writes: BTreeMap::new(),
            tags: HashMap::new(),
            roots: HashSet::new(),
            lacking: None,
            audited: None,
            share: None,
            masked: None,
            theirs: None,
            table: None,
            fault: None,
            both_closed: None,
            busy: false,
        }
    }

    pub(super) fn ended(&self, side: Side) -> bool {
        self.transcript.aborted(Party::Database(side)).is_some()
            || self.transcript.published(side).is_some()
    }

    /// Opens this side's envelope and takes the write in, if its key was not seen before.
    pub(super) fn take(
        &mut self,
        board: &Pinned,
        side: Side,
        name: WriteName,
        tag: Tag,
        submission: Submission,
    ) -> Result<(), Refused> {
        let secrets = self.secrets.as_ref().ok_or(BadEnvelope::Unreadable)?;
        let sealed = &submission.envelopes[side.index()];
        let opened = envelope::open(&secrets.sealing, board, submission.epoch, side, &tag, sealed)?;
        if !self.roots.insert(root_digest(&opened)) {
            return Err(Refused::Replayed);
        }
        if let Some(lacking) = &mut self.lacking {
            lacking.remove(&name);
        }
        self.tags.insert(tag, name);
        self.writes.insert(name, Held { submission, opened: Arc::new(opened) });
        Ok(())
    }

    /// Looks what this database lacks, once the other one has closed.
    pub(super) fn note_lacking(&mut self, side: Side) {
        let (None, Some(theirs)) = (&self.lacking, self.transcript.closed(side.other())) else {
            return;
        };
        let lacking = theirs.iter().filter(|name| !self.writes.contains_key(name));
        self.lacking = Some(lacking.copied().collect());
    }

    /// Writes that the other database has closed with, and this one lacks: fetched before
    /// this one closes too, since the other may have closed because it is full.
    pub(super) fn missing(&self, side: Side) -> impl Iterator<Item = &WriteName> {
        let over = self.ended(side) || self.transcript.own_candidates(side).is_some();
        self.lacking.iter().flatten().filter(move |_| !over)
    }

    /// Whether a write was waited for; it is no more.
    pub(super) fn wait_no_more(&mut self, side: Side, name: &WriteName) -> bool {
        let over = self.ended(side) || self.transcript.own_candidates(side).is_some();
        !over && self.lacking.as_mut().is_some_and(|lacking| lacking.remove(name))
    }

    /// What this database says next, if it is time.
    pub(super) fn next(&mut self, board: &Pinned, side: Side, now: Time) -> Option<What> {
        let epoch = self.transcript.epoch();
        if self.ended(side) {
            return None;
        }
        let abort = |why| Some(What::Abort { why });
        let others = [Party::Database(side.other()), Party::Auditor];
        if let Some((by, fault)) = self.fault {
            return abort(Why::Blamed(by, fault));
        }
        if let Some(by) = others.into_iter().find(|by| self.transcript.aborted(*by).is_some()) {
            return abort(Why::Told(by));
        }
        if now >= board.schedule.burns(epoch) {
            let both = Side::BOTH.iter().all(|side| self.transcript.latched(*side).is_some());
            let by = Party::Database(side.other());
            return abort(if both { Why::Withheld(by) } else { Why::Late });
        }
        match self.transcript.heard_of(Party::Database(side)) {
            What::CLOSE => self.close(board, now),
            What::CANDIDATES => self.candidates(board, side, now),
            What::COMMIT => self.commit(board, side),
            What::OPEN => self.open(side),
            What::AGREE => self.agree(board),
            What::LATCH => self.latch(side),
            What::PUBLISH => self.publish(side),
            _ => None,
        }
    }

    /// By its own count or clock, whatever the other database says: one that could close
    /// for both would choose the crowd.
    fn close(&self, board: &Pinned, now: Time) -> Option<What> {
        let full = self.writes.len() >= board.writers as usize;
        let over = now >= board.schedule.end(self.transcript.epoch());
        let writes = || sorted(self.writes.keys().copied());
        (full || over).then(|| What::Close { writes: writes() })
    }

    /// After the other database has closed and handed over what was missing, or half
    /// of the patience is over since both have closed: a server that holds writes back
    /// cannot burn the epoch.
    fn candidates(&mut self, board: &Pinned, side: Side, now: Time) -> Option<What> {
        self.transcript.closed(side.other())?;
        let end = board.schedule.end(self.transcript.epoch());
        let since = (*self.both_closed.get_or_insert(now)).min(end);
        let waited = now.0 >= since.0.saturating_add(board.schedule.patience / 2);
        if self.missing(side).next().is_some() && !waited {
            return None;
        }
        let coin = *self.secrets.as_ref()?.coin.expose();
        Some(What::Candidates { writes: sorted(self.writes.keys().copied()), coin })
    }

    fn commit(&self, board: &Pinned, side: Side) -> Option<What> {
        let candidates = self.transcript.candidates()?;
        if candidates.writes.len() < board.fewest as usize {
            return Some(What::Abort { why: Why::TooFew });
        }
        if self.thinned(side, candidates.writes.len()) {
            let by = Party::Database(side.other());
            return Some(What::Abort { why: Why::Thinned(by) });
        }
        let (audited, _) = self.audited.as_ref()?;
        let nonce = self.secrets.as_ref()?.nonce.expose();
        let digests = self.transcript.binding(side, &candidates.digest, audited, nonce);
        Some(What::Commit { candidates: candidates.digest, digests })
    }

    /// Whether the other database has left out more than half of what this one closed
    /// with: so few would be a crowd of its choice.
    fn thinned(&self, side: Side, common: usize) -> bool {
        self.transcript.closed(side).is_some_and(|own| common.saturating_mul(2) < own.len())
    }

    fn open(&self, side: Side) -> Option<What> {
        if !self.transcript.committed(side.other()) {
            return None;
        }
        let (audited, _) = self.audited.as_ref()?;
        let nonce = *self.secrets.as_ref()?.nonce.expose();
        Some(What::Open { digests: audited.clone(), nonce })
    }

    fn agree(&self, board: &Pinned) -> Option<What> {
        match self.transcript.set()? {
            Err(dispute) => Some(What::Abort { why: dispute.into() }),
            Ok(set) if set.accepted.len() < board.fewest as usize => {
                Some(What::Abort { why: Why::TooFew })
            }
            Ok(set) => {
                let size = u32::try_from(set.accepted.len()).ok()?;
                Some(What::Agree { opens: set.opens, set: set.digest, size })
            }
        }
    }

    /// The set, if the other database and the auditor say the same. An honest auditor
    /// settles only what both databases have agreed on toward it, so this one too.
    fn settled(&self, side: Side) -> Option<Result<&Set, Dispute>> {
        let set = self.transcript.set()?.ok()?;
        if let Err(dispute) = self.transcript.agrees(side.other(), set)? {
            return Some(Err(dispute));
        }
        let same = self.transcript.settled()? == set.digest;
        Some(if same { Ok(set) } else { Err(Dispute::Blamed(Party::Auditor, Fault::Set)) })
    }

    fn latch(&mut self, side: Side) -> Option<What> {
        let set = match self.settled(side)? {
            Ok(set) => set.digest,
            Err(dispute) => return Some(What::Abort { why: dispute.into() }),
        };
        let share = self.share.as_ref()?;
        let (_, theirs) = self.transcript.keys(side.other())?;
        let Ok(agreed) = self.secrets.as_ref()?.agreement.agree(&theirs) else {
            let by = Party::Database(side.other());
            return Some(What::Abort { why: Why::Blamed(by, Fault::Keys) });
        };
        let masked = mask(&agreed, &set, share);
        let digest = Transcript::share_digest(side, &set, &masked);
        self.masked = Some(Arc::new(masked));
        Some(What::Latch { set, share: digest })
    }

    fn publish(&mut self, side: Side) -> Option<What> {
        let (set, _) = self.transcript.latched(side)?;
        let (ours, theirs) = (self.masked.as_ref()?, self.theirs.as_ref()?);
        let table: Vec<u8> = ours.iter().zip(theirs).map(|(a, b)| a ^ b).collect();
        let digest = Transcript::table_digest(&set, &table);
        self.table = Some(Arc::new(table));
        Some(What::Publish { set, table: digest })
    }

    /// What is to be computed next. It is handed out once.
    pub(super) fn work(&mut self, board: &Pinned, side: Side) -> Option<Work> {
        if self.ended(side) || self.busy || self.share.is_some() || self.masked.is_some() {
            return None;
        }
        let candidates = self.transcript.candidates()?;
        let common = candidates.writes.len();
        if common < board.fewest as usize || self.thinned(side, common) {
            return None;
        }
        let prgs = self.transcript.permutations()?;
        let keys_of = |names: &[WriteName]| -> Option<Vec<Arc<Opened>>> {
            names.iter().map(|n| self.writes.get(n).map(|held| Arc::clone(&held.opened))).collect()
        };
        let (keys, task) = if self.audited.is_none() {
            let task = Task::Audit { kappa: candidates.kappa, candidates: candidates.digest };
            (keys_of(&candidates.writes)?, task)
        } else {
            let set = self.transcript.set()?.ok()?;
            let keys = keys_of(&set.rejected)?;
            let (_, table) = self.audited.as_mut()?;
            (keys, Task::Remove { table: std::mem::take(table) })
        };
        self.busy = true;
        let (epoch, shape) = (self.transcript.epoch(), board.shape());
        Some(Work { epoch, prgs, shape, side, keys, task })
    }

    pub(super) fn worked(&mut self, done: Done) {
        self.busy = false;
        match done.result {
            Outcome::Audited { candidates, audited, table } => {
                if self.transcript.candidates().is_some_and(|c| c.digest == candidates) {
                    self.audited = Some((audited, table));
                }
            }
            Outcome::Removed { table } => self.share = Some(table),
        }
    }

    /// Forgets what an ended epoch no longer needs, here and in the ledger.
    pub(super) fn remove_secrets(&mut self) -> Vec<Change> {
        let epoch = self.transcript.epoch();
        let mut changes = vec![records::no_seed(epoch)];
        changes.extend(self.writes.keys().map(|name| records::no_write(epoch, name)));
        self.secrets = None;
        self.writes.clear();
        self.tags.clear();
        self.roots.clear();
        self.audited = None;
        self.share = None;
        self.theirs = None;
        self.lacking = None;
        changes
    }
}

fn root_digest(opened: &Opened) -> Digest {
    labelled(labels::BOARD_ROOT, &[opened.key.root.expose()])
}

/// A share under the mask that both databases have alike for one set: the masks
/// cancel in the sum of shares for the same set, and in no other.
fn mask(agreed: &Secret<32>, set: &Digest, share: &[u8]) -> Vec<u8> {
    let key: Secret<16> = derive(agreed.expose(), labels::BOARD_MASK, &[set.as_ref()]);
    let mut pad = Zeroizing::new(vec![0_u64; share.len().div_ceil(8)]);
    Prf::new(&key).keystream(0, &mut pad);
    let pad = pad.iter().flat_map(|word| word.to_le_bytes());
    share.iter().zip(pad).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Alone a share is noise, and two that were masked for different sets stay so.
    #[test]
    fn masks_cancel_for_one_set_only() {
        let keys = [1, 2].map(|n| AgreementKey::from_seed(&Secret::from_bytes([n; 32])));
        let agreed = keys[0].agree(&keys[1].public());
        let other = keys[1].agree(&keys[0].public());
        let (Ok(agreed), Ok(other)) = (agreed, other) else { panic!("good keys") };
        let (set, another) = (Digest([1; 32]), Digest([2; 32]));
        let nothing = [0; 333];
        let masked = mask(&agreed, &set, &nothing);
        assert_eq!(masked, mask(&other, &set, &nothing), "both have the same");
        let zeros = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == 0).count();
        assert!(zeros(&masked) < 20);
        let sum = masked.iter().zip(mask(&other, &another, &nothing)).map(|(a, b)| a ^ b);
        assert!(zeros(&sum.collect::<Vec<u8>>()) < 20);
    }
}
