//! The parts of a write: the public part, each server's part, and the openings.
//!
//! The writer commits to every server's key. The audit's points are a hash of the commitments and
//! the word, so they are fixed once all keys are. The proof for these points accompanies the keys.
//! The servers draw the point where it is opened after the epoch has closed.

use super::engine::{Engine, Parity, Points};
use super::field::{Binary, Field};
use super::gate::{EvaluationPoint, Opening, Proof};
use super::parity::{Key, KeyError};
use crate::dpf::BLOCK;
use crate::dpf::generate::GenerationError;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The part of a write that all servers get in the clear. It reveals nothing about row or message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonPart {
    /// Distinguishes writes.
    pub nonce: [u8; 16],
    /// Commitments that bind the writer to each server's key, in server order.
    pub keys: Vec<Digest>,
    /// The correction word.
    pub word: Vec<u8>,
}

impl CommonPart {
    /// The digest that envelopes are bound to.
    pub(crate) fn digest(&self) -> Digest {
        let keys: Vec<&[u8]> = self.keys.iter().map(AsRef::as_ref).collect();
        let keys = labelled_hash(labels::BOARD_KEYS, &keys);
        labelled_hash(labels::BOARD_COMMON, &[&self.nonce, keys.as_ref(), &self.word])
    }
}

/// One server's part of a write, in its envelope. Secret.
#[derive(Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct Part {
    pub(crate) key: Vec<u8>,
    pub(crate) salt: [u8; 32],
    /// A share of the proof, for each copy of the audit.
    pub(crate) proofs: Vec<u8>,
}

/// One server's part after its checks: the input to a pass.
pub struct CheckedPart {
    pub(crate) word: Vec<u8>,
    pub(crate) key: Key,
    points: Vec<Points<Binary>>,
    proofs: Vec<Proof<Binary>>,
}

/// Why a part is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The number of commitments is not that of servers.
    #[error("the write must commit to exactly one key for each server")]
    Commitments,
    /// The key or the word does not fit.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key does not match the writer's commitment.
    #[error("the key does not match the write's commitment")]
    OtherKey,
    /// The proof has the wrong length or does not consist of numbers.
    #[error("the proof is malformed")]
    Proof,
}

/// A server's opening for one write: its shares of f, g, h and the gate, for each copy of the
/// audit. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer(pub [[[u8; BLOCK]; 4]; Parity::COPIES]);

/// A commitment to one server's key.
pub(crate) fn commitment(server: u8, key: &[u8], salt: &[u8; 32]) -> Digest {
    labelled_hash(labels::BOARD_KEY, &[&[server], key, salt])
}

/// The points for each copy of the audit. `bound` covers board, epoch, the servers' keys of the
/// epoch and the writer's tag.
pub fn points(bound: &Digest, common: &CommonPart) -> Vec<Points<Binary>> {
    let common = common.digest();
    let point = |copy: u8, which: &[u8]| {
        let parts = [bound.as_ref(), common.as_ref(), &[copy], which];
        Binary::from_hash(labels::BOARD_POINTS, &parts)
    };
    let of = |copy| Points { row: point(copy, b"row"), r: point(copy, b"r"), s: point(copy, b"s") };
    (0..).take(Parity::COPIES).map(of).collect()
}

/// Makes a write: the common part, and each server's part.
///
/// # Errors
/// [`GenerationError`].
///
/// # Privacy
/// All parts but one, together with everything that is opened of the last one, reveal nothing about
/// row or message.
pub fn write(
    engine: &Parity,
    bound: &Digest,
    row: u32,
    message: &[u8],
    rng: &mut impl CryptoRng,
) -> Result<(CommonPart, Vec<Part>), GenerationError> {
    let (word, keys, known) = engine.generate(row, message, rng)?;
    let keys: Vec<&[u8]> = keys.iter().map(Key::expose).collect();
    let prove = |points: &_, rng: &mut _| Proof::new(&engine.sums(&known, points), rng);
    Ok(dangerous_write(bound, word, &keys, prove, rng))
}

/// The same from arbitrary keys and proofs, to test writers that break the protocol.
pub fn dangerous_write<R: CryptoRng>(
    bound: &Digest,
    word: Vec<u8>,
    keys: &[&[u8]],
    prove: impl Fn(&Points<Binary>, &mut R) -> Proof<Binary>,
    rng: &mut R,
) -> (CommonPart, Vec<Part>) {
    let part = |key: &&[u8]| {
        let mut salt = [0; 32];
        rng.fill_bytes(&mut salt);
        Part { key: key.to_vec(), salt, proofs: Vec::new() }
    };
    let mut parts: Vec<Part> = keys.iter().map(part).collect();
    let mut nonce = [0; 16];
    rng.fill_bytes(&mut nonce);
    let keys = (0..).zip(&parts).map(|(server, part)| commitment(server, &part.key, &part.salt));
    let common = CommonPart { nonce, keys: keys.collect(), word };
    for points in points(bound, &common) {
        let shares = prove(&points, rng).share(parts.len(), rng);
        for (part, share) in parts.iter_mut().zip(shares) {
            part.proofs.append(&mut share.expose());
        }
    }
    (common, parts)
}

impl CheckedPart {
    /// Checks a server's part without expanding anything.
    ///
    /// # Errors
    /// [`PartError`].
    pub fn open(
        engine: &Parity,
        bound: &Digest,
        server: u8,
        common: &CommonPart,
        mut part: Part,
    ) -> Result<Self, PartError> {
        if common.keys.len() != engine.grid().servers() {
            return Err(PartError::Commitments);
        }
        engine.grid().check_word(&common.word)?;
        let bound_to = commitment(server, &part.key, &part.salt);
        if common.keys.get(usize::from(server)) != Some(&bound_to) {
            return Err(PartError::OtherKey);
        }
        let each = Proof::<Binary>::NUMBERS * Binary::BYTES;
        if part.proofs.len() != Parity::COPIES * each {
            return Err(PartError::Proof);
        }
        let proofs: Option<Vec<_>> =
            part.proofs.chunks_exact(each).map(Proof::from_bytes).collect();
        let proofs = proofs.ok_or(PartError::Proof)?;
        let key = engine.key(Zeroizing::new(std::mem::take(&mut part.key)))?;
        Ok(Self { word: common.word.clone(), key, points: points(bound, common), proofs })
    }

    /// Adds the write to this server's share of the table and computes the opening.
    #[must_use]
    pub fn add(
        &self,
        engine: &Parity,
        evaluation_points: &[EvaluationPoint<Binary>],
        table: &mut Zeroizing<Vec<u8>>,
    ) -> Answer {
        let sums = engine.add(&self.word, &self.key, &self.points, table);
        let mut answer = Answer([[[0; BLOCK]; 4]; Parity::COPIES]);
        let openings = sums.iter().zip(&self.proofs).zip(evaluation_points);
        for (copy, ((sums, proof), point)) in answer.0.iter_mut().zip(openings) {
            let Opening { f, g, h, gate } = point.open(sums, proof);
            *copy = [f.0, g.0, h.0, gate.0];
        }
        answer
    }

    /// Adds the write without an audit. A second time removes it.
    pub fn add_only(&self, engine: &Parity, table: &mut Zeroizing<Vec<u8>>) {
        engine.add(&self.word, &self.key, &[], table);
    }
}

/// The points where all proofs of an epoch are opened, from the servers' joint randomness.
#[must_use]
pub fn evaluation_points(randomness: &[u8]) -> Vec<EvaluationPoint<Binary>> {
    let copies = (0_u8..).take(Parity::COPIES);
    copies
        .map(|copy| EvaluationPoint::from_hash(labels::BOARD_PLACE, &[randomness, &[copy]]))
        .collect()
}

/// Whether a write counts: the openings of all servers are valid in every copy.
#[must_use]
pub fn accepts(answers: &[Answer]) -> bool {
    (0..Parity::COPIES).all(|copy| {
        let openings: Vec<Opening<Binary>> = answers
            .iter()
            .map(|answer| {
                let [f, g, h, gate] = answer.0[copy].map(Binary);
                Opening { f, g, h, gate }
            })
            .collect();
        Opening::verify(&openings)
    })
}
