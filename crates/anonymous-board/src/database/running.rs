//! One epoch at one database: what it holds, and what it says next.

use super::crowd::TurnedAway;
use super::records;
use super::work::{Done, Keys, Openings, Outcome, TableShare, Task, Work};
use crate::coalition::audit;
use crate::configuration::{Epoch, Party, Pinned, Time};
use crate::envelope::{self, BadEnvelope, Opened};
use crate::error::Refused;
use crate::messages::{Fault, Submission, Tag, What, Why, WriteName};
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
    part: OwnPart,
}

/// What of a write is this server's.
#[derive(Clone)]
enum OwnPart {
    /// Mode 1.
    Tree(Arc<Opened>),
    /// Mode 2.
    Parity(Arc<audit::Held>),
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
    pub(super) turned_away: TurnedAway,
    /// Writes that other databases have closed with and that are waited for here, once all
    /// have closed, and who lists each and has not handed on what is none.
    lacking: Option<BTreeMap<WriteName, BTreeSet<Party>>>,
    audited: Option<(Openings, TableShare)>,
    /// The share of the table with accepted writes alone.
    share: Option<TableShare>,
    /// The same, masked: what leaves.
    pub(super) masked: Option<Arc<Vec<u8>>>,
    /// The others' masked shares.
    pub(super) theirs: BTreeMap<Party, Vec<u8>>,
    pub(super) table: Option<Arc<Vec<u8>>>,
    pub(super) fault: Option<(Party, Fault)>,
    /// When this database first knew that all have closed.
    all_closed: Option<Time>,
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
            turned_away: TurnedAway::default(),
            lacking: None,
            audited: None,
            share: None,
            masked: None,
            theirs: BTreeMap::new(),
            table: None,
            fault: None,
            all_closed: None,
            busy: false,
        }
    }

    pub(super) fn ended(&self, own: Party) -> bool {
        self.transcript.aborted(own).is_some() || self.transcript.published(own).is_some()
    }

    /// Opens this server's envelope and takes the write in, if its key was not seen before.
    pub(super) fn take(
        &mut self,
        board: &Pinned,
        own: Party,
        name: WriteName,
        tag: Tag,
        submission: Submission,
    ) -> Result<(), Refused> {
        let (part, key) = self.opened(board, own, &tag, &submission)?;
        if !self.roots.insert(key) {
            return Err(Refused::Replayed);
        }
        if let Some(lacking) = &mut self.lacking {
            lacking.remove(&name);
        }
        self.tags.insert(tag, name);
        self.writes.insert(name, Held { submission, part });
        Ok(())
    }

    /// This server's part of a write, and what its key is known again by.
    fn opened(
        &self,
        board: &Pinned,
        own: Party,
        tag: &Tag,
        submission: &Submission,
    ) -> Result<(OwnPart, Digest), Refused> {
        let sealing = &self.secrets.as_ref().ok_or(BadEnvelope::Unreadable)?.sealing;
        let Submission { epoch, envelopes, common, .. } = submission;
        let sealed = envelopes.get(own.index()).ok_or(BadEnvelope::Envelopes)?;
        let one_each = envelopes.len() == board.databases().len();
        match (own, common) {
            (Party::Database(side), None) if one_each => {
                let opened = envelope::open(sealing, board, *epoch, side, tag, sealed)?;
                let root = labelled(labels::BOARD_ROOT, &[opened.key.root.expose()]);
                Ok((OwnPart::Tree(Arc::new(opened)), root))
            }
            (Party::Server(place), Some(common)) if one_each => {
                // Writers know the keys of all servers; this one may not have heard them yet.
                let bound = self.transcript.bound(tag).ok_or(Refused::Beginning)?;
                let engine = self.transcript.parity().ok_or(Refused::Beginning)?;
                let held = envelope::open_part(sealing, &engine, &bound, place, common, sealed)?;
                let key = common.keys.get(own.index()).ok_or(BadEnvelope::Envelopes)?;
                Ok((OwnPart::Parity(Arc::new(held)), *key))
            }
            _ => Err(BadEnvelope::Envelopes.into()),
        }
    }

    /// Looks what this database lacks, once all others have closed.
    pub(super) fn note_lacking(&mut self, board: &Pinned, own: Party) {
        if self.lacking.is_some()
            || !others(board, own).all(|by| self.transcript.closed(by).is_some())
        {
            return;
        }
        let mut lacking: BTreeMap<WriteName, BTreeSet<Party>> = BTreeMap::new();
        for by in others(board, own) {
            let listed = self.transcript.closed(by).unwrap_or_default().iter();
            for name in listed.filter(|name| !self.writes.contains_key(name)) {
                lacking.entry(*name).or_default().insert(by);
            }
        }
        self.lacking = Some(lacking);
    }

    /// Writes that other databases have closed with, and this one lacks, and who is to be
    /// asked for each: fetched before this one closes too, since another may have closed
    /// because it is full.
    pub(super) fn missing(
        &self,
        own: Party,
    ) -> impl Iterator<Item = (&WriteName, &BTreeSet<Party>)> {
        let over = self.ended(own) || self.transcript.own_candidates(own).is_some();
        self.lacking.iter().flatten().filter(move |_| !over)
    }

    /// Whether a write is waited for.
    pub(super) fn waits_for(&self, own: Party, name: &WriteName) -> bool {
        self.missing(own).any(|(missing, _)| missing == name)
    }

    /// What that server handed on under this name is not to be taken: it is asked no more,
    /// and once nobody is left who lists the write, that is not waited for.
    pub(super) fn ask_no_more(&mut self, from: Party, name: &WriteName) {
        let Some(lacking) = &mut self.lacking else { return };
        let Some(listing) = lacking.get_mut(name) else { return };
        listing.remove(&from);
        if listing.is_empty() {
            lacking.remove(name);
        }
    }

    /// What this database says next, if it is time.
    pub(super) fn next(&mut self, board: &Pinned, own: Party, now: Time) -> Option<What> {
        if self.ended(own) {
            return None;
        }
        if let Some(why) = self.broken(board, own, now) {
            return Some(What::Abort { why });
        }
        match self.transcript.heard_of(own) {
            What::CLOSE => self.close(board, now),
            What::CANDIDATES => self.candidates(board, own, now),
            What::COMMIT => self.commit(board, own),
            What::OPEN => self.open(board, own),
            What::AGREE => self.agree(board, own),
            What::LATCH => self.latch(board, own),
            What::PUBLISH => self.publish(board, own),
            _ => None,
        }
    }

    /// Why the epoch is over without a table, if it is. Once all are bound to their shares
    /// this one's may have left and the others' not come: that is what writers are to know,
    /// and whoever keeps its share back could as well abort or be blamed for something.
    fn broken(&self, board: &Pinned, own: Party, now: Time) -> Option<Why> {
        let mut others = board.parties().iter().copied().filter(|by| *by != own);
        let told = others.find(|by| self.transcript.aborted(*by).is_some());
        let why = match (self.fault, told) {
            (Some((by, fault)), _) => Why::Blamed(by, fault),
            (None, Some(by)) => Why::Told(by),
            (None, None) if now < board.schedule.burns(self.transcript.epoch()) => return None,
            (None, None) => Why::Late,
        };
        let latched = board.databases().iter().all(|by| self.transcript.latched(*by).is_some());
        Some(match (own, why) {
            _ if !latched => why,
            (Party::Database(side), Why::Late) => Why::Withheld(side.other().into()),
            _ => Why::Unshared,
        })
    }

    /// By its own count or clock, whatever the other database says: one that could close
    /// for both would choose the crowd.
    fn close(&self, board: &Pinned, now: Time) -> Option<What> {
        let full = self.writes.len() >= board.writers as usize;
        let over = now >= board.schedule.end(self.transcript.epoch());
        let writes = || sorted(self.writes.keys().copied());
        (full || over).then(|| What::Close { writes: writes() })
    }

    /// After the others have closed and handed over what was missing, or half of the
    /// patience is over since all have closed: a server that holds writes back cannot burn
    /// the epoch.
    fn candidates(&mut self, board: &Pinned, own: Party, now: Time) -> Option<What> {
        if !others(board, own).all(|by| self.transcript.closed(by).is_some()) {
            return None;
        }
        let end = board.schedule.end(self.transcript.epoch());
        let since = (*self.all_closed.get_or_insert(now)).min(end);
        let waited = now.0 >= since.0.saturating_add(board.schedule.patience / 2);
        if self.missing(own).next().is_some() && !waited {
            return None;
        }
        let coin = *self.secrets.as_ref()?.coin.expose();
        Some(What::Candidates { writes: sorted(self.writes.keys().copied()), coin })
    }

    fn commit(&self, board: &Pinned, own: Party) -> Option<What> {
        let candidates = self.transcript.candidates()?;
        if let Some(why) = self.too_few(board, own, &candidates.writes) {
            return Some(What::Abort { why });
        }
        let (audited, _) = self.audited.as_ref()?;
        let nonce = self.secrets.as_ref()?.nonce.expose();
        let (transcript, named) = (&self.transcript, candidates.digest);
        let digests = match (own, audited) {
            (Party::Database(side), Openings::Digests(audited)) => {
                transcript.binding(side, &named, audited, nonce)
            }
            (_, Openings::Answers(answers)) => {
                transcript.answer_binding(own, &named, answers, nonce)
            }
            _ => return None,
        };
        Some(What::Commit { candidates: named, digests })
    }

    /// In mode 2 only if all servers have computed from the same statements: what is opened
    /// at two places would tell of the row.
    fn open(&self, board: &Pinned, own: Party) -> Option<What> {
        let committed: Option<Vec<Digest>> =
            others(board, own).map(|by| self.transcript.committed(by)).collect();
        let (committed, named) = (committed?, self.transcript.candidates()?.digest);
        let (audited, _) = self.audited.as_ref()?;
        let nonce = *self.secrets.as_ref()?.nonce.expose();
        match audited {
            Openings::Digests(digests) => Some(What::Open { digests: digests.clone(), nonce }),
            Openings::Answers(_) if committed.iter().any(|theirs| *theirs != named) => {
                Some(What::Abort { why: Why::Contradiction })
            }
            Openings::Answers(answers) => Some(What::Answer { answers: answers.clone(), nonce }),
        }
    }

    fn agree(&self, board: &Pinned, own: Party) -> Option<What> {
        let set = match self.transcript.set()? {
            Ok(set) => set,
            Err(dispute) => return Some(What::Abort { why: dispute.into() }),
        };
        let fewer = match own {
            // Whose digest was wrong a writer's complaint shows.
            Party::Database(_) => {
                (set.accepted.len() < board.fewest as usize).then_some(Why::TooFew)
            }
            _ => self.too_few(board, own, &set.accepted),
        };
        if let Some(why) = fewer {
            return Some(What::Abort { why });
        }
        let size = u32::try_from(set.accepted.len()).ok()?;
        Some(What::Agree { opens: set.opens, set: set.digest, size })
    }

    /// The set, if all others say the same. An honest auditor settles only what both
    /// databases have agreed on toward it, so this one too.
    fn settled(&self, board: &Pinned, own: Party) -> Option<Result<&Set, Dispute>> {
        let set = self.transcript.set()?.ok()?;
        for by in others(board, own) {
            if let Err(dispute) = self.transcript.agrees(by, set)? {
                return Some(Err(dispute));
            }
        }
        let same = board.grid().is_some() || self.transcript.settled()? == set.digest;
        Some(if same { Ok(set) } else { Err(Dispute::Blamed(Party::Auditor, Fault::Set)) })
    }

    fn latch(&mut self, board: &Pinned, own: Party) -> Option<What> {
        let set = match self.settled(board, own)? {
            Ok(set) => set.digest,
            Err(dispute) => return Some(What::Abort { why: dispute.into() }),
        };
        let mut masked = Zeroizing::new(self.share.as_ref()?.to_vec());
        for by in others(board, own) {
            let (_, theirs) = self.transcript.keys(by)?;
            let Ok(agreed) = self.secrets.as_ref()?.agreement.agree(&theirs) else {
                return Some(What::Abort { why: Why::Blamed(by, Fault::Keys) });
            };
            mask(&agreed, &set, &mut masked);
        }
        let masked = std::mem::take(&mut *masked);
        let digest = Transcript::share_digest(own, &set, &masked);
        self.masked = Some(Arc::new(masked));
        Some(What::Latch { set, share: digest })
    }

    fn publish(&mut self, board: &Pinned, own: Party) -> Option<What> {
        let (set, _) = self.transcript.latched(own)?;
        let mut table = self.masked.as_ref()?.to_vec();
        for by in others(board, own) {
            let theirs = self.theirs.get(&by)?;
            table.iter_mut().zip(theirs).for_each(|(byte, b)| *byte ^= b);
        }
        let digest = Transcript::table_digest(&set, &table);
        self.table = Some(Arc::new(table));
        Some(What::Publish { set, table: digest })
    }

    /// What is to be computed next. It is handed out once.
    pub(super) fn work(&mut self, board: &Pinned, own: Party) -> Option<Work> {
        if self.ended(own) || self.busy || self.share.is_some() || self.masked.is_some() {
            return None;
        }
        let candidates = self.transcript.candidates()?;
        if self.too_few(board, own, &candidates.writes).is_some() {
            return None;
        }
        let (keys, task) = if self.audited.is_none() {
            let keys = self.keys(board, own, &candidates.writes)?;
            let (kappa, drawn, candidates) =
                (candidates.kappa, candidates.drawn, candidates.digest);
            (keys, Task::Audit { kappa, drawn, candidates })
        } else {
            let keys = self.keys(board, own, &self.transcript.set()?.ok()?.rejected)?;
            let (_, table) = self.audited.as_mut()?;
            (keys, Task::Remove { table: std::mem::take(table) })
        };
        self.busy = true;
        Some(Work { epoch: self.transcript.epoch(), keys, task })
    }

    /// This server's keys of writes.
    fn keys(&self, board: &Pinned, own: Party, names: &[WriteName]) -> Option<Keys> {
        let parts = names.iter().map(|name| self.writes.get(name).map(|held| &held.part));
        if let Party::Database(side) = own {
            let key = |part: Option<&OwnPart>| match part? {
                OwnPart::Tree(opened) => Some(Arc::clone(opened)),
                OwnPart::Parity(_) => None,
            };
            let (prgs, shape) = (Box::new(self.transcript.permutations()?), board.shape());
            return Some(Keys::Tree {
                prgs,
                shape,
                side,
                keys: parts.map(key).collect::<Option<_>>()?,
            });
        }
        let key = |part: Option<&OwnPart>| match part? {
            OwnPart::Parity(held) => Some(Arc::clone(held)),
            OwnPart::Tree(_) => None,
        };
        let keys = parts.map(key).collect::<Option<_>>()?;
        Some(Keys::Parity { engine: Box::new(self.transcript.parity()?), keys })
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
        changes.extend(self.forget_turned_away());
        self.secrets = None;
        self.writes.clear();
        self.tags.clear();
        self.roots.clear();
        self.audited = None;
        self.share = None;
        self.theirs.clear();
        self.lacking = None;
        changes
    }
}

/// The servers beside this one that hold shares.
pub(super) fn others(board: &Pinned, own: Party) -> impl Iterator<Item = Party> {
    board.databases().iter().copied().filter(move |by| *by != own)
}

/// Adds the mask that two databases have alike for one set: the masks of all pairs cancel
/// in the sum of all shares for the same set, and in no other.
fn mask(agreed: &Secret<32>, set: &Digest, share: &mut [u8]) {
    let key: Secret<16> = derive(agreed.expose(), labels::BOARD_MASK, &[set.as_ref()]);
    let mut pad = Zeroizing::new(vec![0_u64; share.len().div_ceil(8)]);
    Prf::new(&key).keystream(0, &mut pad);
    let pad = pad.iter().flat_map(|word| word.to_le_bytes());
    share.iter_mut().zip(pad).for_each(|(byte, pad)| *byte ^= pad);
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
        let mask = |agreed: &Secret<32>, set: &Digest| {
            let mut nothing = vec![0; 333];
            super::mask(agreed, set, &mut nothing);
            nothing
        };
        let masked = mask(&agreed, &set);
        assert_eq!(masked, mask(&other, &set), "both have the same");
        let zeros = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == 0).count();
        assert!(zeros(&masked) < 20);
        let sum = masked.iter().zip(mask(&other, &another)).map(|(a, b)| a ^ b);
        assert!(zeros(&sum.collect::<Vec<u8>>()) < 20);
    }
}
