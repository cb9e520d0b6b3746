//! Complaints: whether a server is to blame for a write that is missing.

use super::{ComplaintError, Verdict};
use crate::configuration::{Board, Party};
use crate::dpf::pass::{Pass, Share};
use crate::dpf::{Key, Side};
use crate::envelope;
use crate::messages::{
    Complaint, Fault, Grounds, Opening, Receipt, Submission, WriteDigest, WriteName, lock,
};
use crate::transcript::{Dispute, Transcript};
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use std::collections::BTreeSet;

/// Judges a complaint. `judged` holds the writes of which a complaint about a digest was judged: only
/// their writers can open their locks, and each is judged once. So complaints cost the auditor no
/// more than one sealing and one pass for a write, strangers cost it a hash and use nobody's right
/// up, and it never expands both keys of a write.
pub(super) fn judge(
    board: &Board,
    transcript: &Transcript,
    judged: &mut BTreeSet<WriteName>,
    complaint: &Complaint,
) -> Result<Verdict, ComplaintError> {
    let submission = &complaint.submission;
    match &complaint.grounds {
        Grounds::LeftOut(receipt) => left_out(board, transcript, submission, receipt),
        Grounds::Digest { side, opening } => {
            let mut is_first = |name| judged.insert(name);
            wrong_digest(board, transcript, submission, (*side, opening), &mut is_first)
        }
    }
}

fn left_out(
    board: &Board,
    transcript: &Transcript,
    submission: &Submission,
    receipt: &Signed<Receipt>,
) -> Result<Verdict, ComplaintError> {
    let name = submission.name(&board.fingerprint());
    for side in Side::BOTH {
        let by = Party::Database(side);
        let Some(Ok(receipt)) = board.key(by).map(|key| receipt.open(key)) else { continue };
        let (board, epoch) = (board.fingerprint(), submission.epoch);
        if *receipt != (Receipt { board, epoch, by, write: name }) {
            return Ok(Verdict::Void);
        }
        let (writes, _) = transcript.candidates_of(side).ok_or(ComplaintError::TooEarly)?;
        let there = writes.contains(&name);
        return Ok(if there { Verdict::Void } else { Verdict::Upheld(by, Fault::LeftOut) });
    }
    Ok(Verdict::Void)
}

/// Reseals the claimed content of the envelope, so that the writer cannot show another key than it
/// sent, and computes that key's digest. Before that it asks `is_first`, once the complaint is known
/// to be the writer's.
fn wrong_digest(
    board: &Board,
    transcript: &Transcript,
    submission: &Submission,
    (side, opening): (Side, &Opening),
    is_first: &mut dyn FnMut(WriteName) -> bool,
) -> Result<Verdict, ComplaintError> {
    let audited = match transcript.opened_digests(side).ok_or(ComplaintError::TooEarly)? {
        Ok(audited) => audited,
        Err(Dispute::Blamed(by, fault)) => return Ok(Verdict::Upheld(by, fault)),
        Err(Dispute::Contradiction) => return Ok(Verdict::Void),
    };
    let candidates = transcript.candidates().ok_or(ComplaintError::TooEarly)?;
    // First check that the write exists, and that its writer complains: the rest costs a sealing
    // and a pass.
    let name = submission.name(&board.fingerprint());
    let Ok(at) = candidates.writes.binary_search(&name) else { return Ok(Verdict::Void) };
    let (keys, prgs) = (transcript.keys(side), transcript.permutations());
    let (Some((sealing, _)), Some(prgs), Some(begun)) = (keys, prgs, transcript.begun()) else {
        return Err(ComplaintError::TooEarly);
    };
    if submission.lock != Some(lock(&opening.unlocks)) || !is_first(name) {
        return Ok(Verdict::Void);
    }
    let root = Secret::from_bytes(opening.root);
    let seed = Secret::from_bytes(opening.seal);
    let sealed = envelope::seal(sealing, &begun, side, &opening.shared, &root, &seed);
    if sealed.ok().as_ref() != submission.envelopes.get(side.index()) {
        return Ok(Verdict::Void);
    }
    let key = Key { root, words: opening.shared.words.clone() };
    let shared = &opening.shared;
    let is_other = shared.board != board.fingerprint() || shared.epoch != submission.epoch;
    if key.check(&board.shape()).is_err() || is_other {
        return Ok(Verdict::Void);
    }
    let pass = Pass::new(&prgs, board.shape(), side);
    let share = Share { root: &key.root, words: &key.words };
    let digest = pass.digests(&[share], &candidates.kappa).ok();
    let Some(digest) = digest.and_then(|digests| digests.first().copied()) else {
        return Ok(Verdict::Void);
    };
    let right = audited.get(at) == Some(&WriteDigest { digest, shared: opening.shared.digest() });
    let upheld = Verdict::Upheld(Party::Database(side), Fault::WrongDigest);
    Ok(if right { Verdict::Void } else { upheld })
}
