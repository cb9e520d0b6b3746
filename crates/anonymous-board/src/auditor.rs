//! The auditor: keeps the signed transcript, hears complaints, settles the set. It
//! has no say in what the set is: the databases check each other themselves.

use crate::configuration::{Epoch, Party, Pinned, Time};
use crate::dpf::pass::{Pass, Share};
use crate::dpf::{Key, Side};
use crate::envelope;
use crate::error::NotRestored;
use crate::messages::{
    Audited, Complaint, Fault, Grounds, Opening, Receipt, Spoken, Statement, Submission, What, Why,
};
use crate::transcript::{Dispute, Heard, NotHeard, Transcript};
use alpheus_crypto::ledger::{Change, DamagedLog, Log, Step, put};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use std::collections::BTreeMap;

/// Epochs whose transcripts are kept.
const KEPT: u64 = 64;

/// Where, among a server's statements, the ledger has the one that conflicts with them.
const CONFLICT: usize = 255;

/// The auditor.
pub struct Auditor {
    board: Pinned,
    key: SigningKey,
    epochs: BTreeMap<Epoch, Case>,
}

struct Case {
    transcript: Transcript,
    /// When both databases were first heard to agree: the time for complaints.
    agreed: Option<Time>,
    fault: Option<(Party, Fault)>,
}

/// An auditor, and what it had said and heard, to be published again.
pub type Restored = (Auditor, Step<Vec<Spoken>>);

/// A verdict, and the statement that burns the epoch if it is upheld and is not burnt yet.
pub type Judged = (Verdict, Option<Spoken>);

/// What becomes of a complaint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A server is to blame; the epoch is burnt.
    Upheld(Party, Fault),
    /// The complaint shows nothing: the server did what the write says.
    Void,
}

/// Why a complaint is not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotJudged {
    /// Nothing is known of the epoch.
    #[error("nothing is known here of that epoch")]
    Epoch,
    /// The digests are not there yet.
    #[error("the databases have not opened their digests yet; complain once they have")]
    TooEarly,
    /// The set is settled, or the epoch over.
    #[error("the epoch is settled or over; complaints are heard before that")]
    TooLate,
}

impl Auditor {
    /// An auditor as its ledger has it; an empty one for a new auditor.
    ///
    /// After a log that may be an old copy, all that had not ended is burnt, and all that
    /// may have begun and is not known any more: it may be settled already.
    ///
    /// # Errors
    /// [`NotRestored`].
    pub fn restore(
        board: &Pinned,
        key: SigningKey,
        log: Log,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
        now: Time,
    ) -> Result<Restored, NotRestored> {
        if key.verifying_key() != *board.key(Party::Auditor) {
            return Err(NotRestored::OtherKey);
        }
        let mut auditor = Self { board: board.clone(), key, epochs: BTreeMap::new() };
        let (mut outputs, mut changes) = (Vec::new(), Vec::new());
        for (key, value) in records {
            let (epoch, by, conflicts) = read_key(&key)?;
            let signed = postcard::from_bytes(&value).map_err(|_| DamagedLog)?;
            let case = auditor.case(epoch);
            match case.transcript.hear(by, &signed).map_err(|_| DamagedLog)? {
                Heard::New if !conflicts => {}
                Heard::Fault(fault) if conflicts => case.fault = Some((by, fault)),
                _ => return Err(DamagedLog.into()),
            }
            outputs.push(Spoken { epoch, by, conflicts, signed });
        }
        if (log == Log::New) != auditor.epochs.is_empty() && log != Log::Doubtful {
            return Err(DamagedLog.into());
        }
        for epoch in if log == Log::Doubtful { auditor.open_epochs(now) } else { Vec::new() } {
            let (said, change) = auditor.say(epoch, What::Abort { why: Why::Restored });
            outputs.push(said);
            changes.push(change);
        }
        Ok((auditor, Step::new(changes, outputs)))
    }

    /// Epochs that have begun by now and are not over, as far as is known here.
    fn open_epochs(&mut self, now: Time) -> Vec<Epoch> {
        if let Some(current) = self.board.schedule.at(now) {
            for epoch in (current.0.saturating_sub(KEPT)..=current.0).map(Epoch) {
                if now < self.board.schedule.burns(epoch) {
                    self.case(epoch);
                }
            }
        }
        let open = self.epochs.iter().filter(|(_, case)| !ended(&case.transcript));
        open.map(|(epoch, _)| *epoch).collect()
    }

    fn case(&mut self, epoch: Epoch) -> &mut Case {
        let board = &self.board;
        self.epochs.entry(epoch).or_insert_with(|| Case {
            transcript: Transcript::new(board, epoch),
            agreed: None,
            fault: None,
        })
    }

    /// The transcript of an epoch.
    #[must_use]
    pub fn transcript(&self, epoch: Epoch) -> Option<&Transcript> {
        self.epochs.get(&epoch).map(|case| &case.transcript)
    }

    /// Takes a statement of a database.
    ///
    /// # Errors
    /// [`NotHeard`]: nothing has changed.
    pub fn hear(
        &mut self,
        now: Time,
        side: Side,
        epoch: Epoch,
        signed: &Signed<Statement>,
    ) -> Result<Step<Vec<Spoken>>, NotHeard> {
        let current = self.board.schedule.at(now).ok_or(NotHeard::Elsewhere)?;
        if epoch.0 > current.0.saturating_add(1) || epoch.0 + KEPT < current.0 {
            return Err(NotHeard::Elsewhere);
        }
        let by = Party::Database(side);
        let case = self.case(epoch);
        let place = case.transcript.heard_of(by);
        let known = case.transcript.conflict(by).is_some();
        let mut said = Vec::new();
        let mut spoken = |conflicts| {
            said.push(Spoken { epoch, by, conflicts, signed: signed.clone() });
            record(epoch, by, if conflicts { CONFLICT } else { place }, signed)
        };
        let mut changes = match case.transcript.hear(by, signed)? {
            Heard::Known => Vec::new(),
            Heard::New => vec![spoken(false)],
            Heard::Fault(fault) => {
                case.fault = Some((by, fault));
                if known { Vec::new() } else { vec![spoken(true)] }
            }
        };
        // Last: what is forgotten must reach the ledger.
        changes.extend(self.forget(current));
        Ok(Step::new(changes, said))
    }

    /// One step further in some epoch, if it is time; to be called until nothing comes.
    pub fn advance(&mut self, now: Time) -> Option<Step<Spoken>> {
        let board = &self.board;
        let next = self
            .epochs
            .iter_mut()
            .find_map(|(epoch, case)| case.next(board, now).map(|what| (*epoch, what)));
        let (epoch, what) = next?;
        let (said, change) = self.say(epoch, what);
        Some(Step::new(vec![change], said))
    }

    /// Judges a complaint. If it is upheld the epoch is burnt and the statement
    /// that says so comes with the verdict.
    ///
    /// # Errors
    /// [`NotJudged`].
    ///
    /// # Privacy
    /// The auditor sees one key of the write at most: neither row nor message.
    pub fn judge(&mut self, complaint: &Complaint) -> Result<Step<Judged>, NotJudged> {
        let epoch = complaint.submission.epoch;
        let case = self.epochs.get(&epoch).ok_or(NotJudged::Epoch)?;
        let over = ended(&case.transcript);
        // A burnt epoch of which nobody is blamed yet: who left writes out burnt it so.
        let unblamed = match case.transcript.aborted(Party::Auditor) {
            Some(why) => !matches!(why, Why::Blamed(..)),
            None => false,
        };
        if over && !(unblamed && matches!(complaint.grounds, Grounds::LeftOut(_))) {
            return Err(NotJudged::TooLate);
        }
        let verdict = judged(&self.board, &case.transcript, complaint)?;
        let Verdict::Upheld(by, fault) = verdict else {
            return Ok(Step::new(Vec::new(), (verdict, None)));
        };
        if over {
            return Ok(Step::new(Vec::new(), (verdict, None)));
        }
        let (said, change) = self.say(epoch, What::Abort { why: Why::Blamed(by, fault) });
        Ok(Step::new(vec![change], (verdict, Some(said))))
    }

    fn say(&mut self, epoch: Epoch, what: What) -> (Spoken, Change) {
        let (board, by) = (self.board.fingerprint(), Party::Auditor);
        let place = self.case(epoch).transcript.next_place(by);
        let signed = Signed::new(&Statement { board, epoch, by, place, what }, &self.key);
        // One's own statement is in turn and one's own.
        let _ = self.case(epoch).transcript.hear(by, &signed);
        let change = record(epoch, by, usize::from(place), &signed);
        (Spoken { epoch, by, conflicts: false, signed }, change)
    }

    fn forget(&mut self, now: Epoch) -> Vec<Change> {
        let old: Vec<Epoch> =
            self.epochs.keys().copied().take_while(|epoch| epoch.0 + KEPT < now.0).collect();
        let mut changes = Vec::new();
        for epoch in old {
            let Some(case) = self.epochs.remove(&epoch) else { continue };
            for by in Party::ALL {
                let places = (0..case.transcript.heard_of(by)).chain([CONFLICT]);
                changes
                    .extend(places.map(|place| Change { key: key(epoch, by, place), value: None }));
            }
        }
        changes
    }
}

impl Case {
    fn next(&mut self, board: &Pinned, now: Time) -> Option<What> {
        if ended(&self.transcript) {
            return None;
        }
        let abort = |why| Some(What::Abort { why });
        if let Some((by, fault)) = self.fault {
            return abort(Why::Blamed(by, fault));
        }
        let databases = Side::BOTH.map(Party::Database);
        if let Some(by) = databases.into_iter().find(|by| self.transcript.aborted(*by).is_some()) {
            return abort(Why::Told(by));
        }
        if now >= board.schedule.burns(self.transcript.epoch()) {
            return abort(Why::Late);
        }
        let set = match self.transcript.set()? {
            Ok(set) => set,
            Err(dispute) => return abort(dispute.into()),
        };
        for side in Side::BOTH {
            if let Err(dispute) = self.transcript.agrees(side, set)? {
                return abort(dispute.into());
            }
        }
        let since = *self.agreed.get_or_insert(now);
        let over = now.0 >= since.0.saturating_add(board.schedule.complaints);
        over.then_some(What::Settle { set: set.digest })
    }
}

/// Whether the auditor has nothing more to say.
fn ended(transcript: &Transcript) -> bool {
    transcript.heard_of(Party::Auditor) > 0
}

fn judged(
    board: &Pinned,
    transcript: &Transcript,
    complaint: &Complaint,
) -> Result<Verdict, NotJudged> {
    match &complaint.grounds {
        Grounds::LeftOut(receipt) => left_out(board, transcript, &complaint.submission, receipt),
        Grounds::Digest { side, opening } => {
            wrong_digest(board, transcript, &complaint.submission, *side, opening)
        }
    }
}

fn left_out(
    board: &Pinned,
    transcript: &Transcript,
    submission: &Submission,
    receipt: &Signed<Receipt>,
) -> Result<Verdict, NotJudged> {
    let name = submission.name(&board.fingerprint());
    for side in Side::BOTH {
        let by = Party::Database(side);
        let Ok(receipt) = receipt.open(board.key(by)) else { continue };
        let (board, epoch) = (board.fingerprint(), submission.epoch);
        if *receipt != (Receipt { board, epoch, by: side, write: name }) {
            return Ok(Verdict::Void);
        }
        let (writes, _) = transcript.own_candidates(side).ok_or(NotJudged::TooEarly)?;
        let there = writes.contains(&name);
        return Ok(if there { Verdict::Void } else { Verdict::Upheld(by, Fault::LeftOut) });
    }
    Ok(Verdict::Void)
}

/// Seals again what is said to be in the envelope, so that the writer cannot show
/// another key than it sent, and computes that key's digest.
fn wrong_digest(
    board: &Pinned,
    transcript: &Transcript,
    submission: &Submission,
    side: Side,
    opening: &Opening,
) -> Result<Verdict, NotJudged> {
    let audited = match transcript.audited(side).ok_or(NotJudged::TooEarly)? {
        Ok(audited) => audited,
        Err(Dispute::Blamed(by, fault)) => return Ok(Verdict::Upheld(by, fault)),
        Err(Dispute::Contradiction) => return Ok(Verdict::Void),
    };
    let candidates = transcript.candidates().ok_or(NotJudged::TooEarly)?;
    // Whether there is such a write first: what follows costs a decryption and a pass.
    let name = submission.name(&board.fingerprint());
    let Ok(at) = candidates.writes.binary_search(&name) else { return Ok(Verdict::Void) };
    let (keys, prgs) = (transcript.keys(side), transcript.permutations());
    let (Some((sealing, _)), Some(prgs)) = (keys, prgs) else { return Err(NotJudged::TooEarly) };
    let root = Secret::from_bytes(opening.root);
    let seed = Secret::from_bytes(opening.seal);
    let sealed = envelope::seal(&sealing, side, &opening.shared, &root, &seed);
    if sealed.ok().as_ref() != submission.envelopes.get(side.index()) {
        return Ok(Verdict::Void);
    }
    let key = Key { root, words: opening.shared.words.clone() };
    if key.check(&board.shape()).is_err() || opening.shared.board != board.fingerprint() {
        return Ok(Verdict::Void);
    }
    let pass = Pass::new(&prgs, board.shape(), side);
    let share = Share { root: &key.root, words: &key.words };
    let digest = pass.digests(&[share], &candidates.kappa).ok();
    let Some(digest) = digest.and_then(|digests| digests.first().copied()) else {
        return Ok(Verdict::Void);
    };
    let right = audited.get(at) == Some(&Audited { digest, shared: opening.shared.digest() });
    let upheld = Verdict::Upheld(Party::Database(side), Fault::WrongDigest);
    Ok(if right { Verdict::Void } else { upheld })
}

fn key(epoch: Epoch, by: Party, place: usize) -> Vec<u8> {
    let place = u8::try_from(place).unwrap_or(u8::MAX);
    [epoch.0.to_be_bytes().as_slice(), &[by.number(), place]].concat()
}

fn read_key(key: &[u8]) -> Result<(Epoch, Party, bool), DamagedLog> {
    let (epoch, rest) = key.split_first_chunk::<8>().ok_or(DamagedLog)?;
    let by = rest.first().and_then(|by| Party::ALL.get(usize::from(*by))).ok_or(DamagedLog)?;
    let conflicts = rest.get(1).is_some_and(|place| usize::from(*place) == CONFLICT);
    Ok((Epoch(u64::from_be_bytes(*epoch)), *by, conflicts))
}

fn record(epoch: Epoch, by: Party, place: usize, said: &Signed<Statement>) -> Change {
    #[expect(clippy::expect_used, reason = "plain data serialises")]
    put(key(epoch, by, place), postcard::to_allocvec(said).expect("plain data serialises"))
}
