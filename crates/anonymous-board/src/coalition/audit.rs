//! A write in its parts: what everybody sees, what one server gets, what servers open.
//!
//! The writer commits to every server's key; the points of the audit are a hash of the
//! commitments and the word, so that they are fixed when all keys are. The proof for these
//! points comes with the keys; where it is opened the servers draw when the epoch has
//! closed.

use super::engine::{Engine, Parity, Points};
use super::field::{Binary, Field};
use super::gate::{Opening, Place, Proof};
use super::parity::{BadKey, Key};
use crate::dpf::BLOCK;
use crate::dpf::generate::NotGenerated;
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// What all servers get of a write, in the clear. It tells nothing of row or message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    /// Tells writes apart.
    pub nonce: [u8; 16],
    /// Binds the writer to each server's key, in the servers' order.
    pub keys: Vec<Digest>,
    /// The correction word.
    pub word: Vec<u8>,
}

impl Common {
    /// What envelopes are bound to.
    pub(crate) fn digest(&self) -> Digest {
        let keys: Vec<&[u8]> = self.keys.iter().map(AsRef::as_ref).collect();
        let keys = labelled(labels::BOARD_KEYS, &keys);
        labelled(labels::BOARD_COMMON, &[&self.nonce, keys.as_ref(), &self.word])
    }
}

/// What one server gets of a write, in its envelope. Secret.
#[derive(Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct Part {
    pub(crate) key: Vec<u8>,
    pub(crate) salt: [u8; 32],
    /// A share of the proof for each copy of the audit.
    pub(crate) proofs: Vec<u8>,
}

/// One server's part, checked: what a pass needs.
pub struct Held {
    pub(crate) word: Vec<u8>,
    pub(crate) key: Key,
    points: Vec<Points<Binary>>,
    proofs: Vec<Proof<Binary>>,
}

/// Why a part holds nothing that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPart {
    /// Not as many commitments as servers.
    #[error("the write does not commit to one key for each server")]
    Commitments,
    /// The key or the word does not fit.
    #[error(transparent)]
    Key(#[from] BadKey),
    /// The key is another than the writer is bound to.
    #[error("the key is not the one that the write commits to")]
    OtherKey,
    /// The proof has another length, or is no list of numbers.
    #[error("the proof is malformed")]
    Proof,
}

/// What a server opens of one write: for each copy of the audit its shares of f, g, h and
/// the gate. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer(pub [[[u8; BLOCK]; 4]; Parity::COPIES]);

/// Binds a writer to the key of one server.
pub(crate) fn commitment(server: u8, key: &[u8], salt: &[u8; 32]) -> Digest {
    labelled(labels::BOARD_KEY, &[&[server], key, salt])
}

/// The points of each copy of the audit: `bound` names board, epoch, the servers' keys of
/// the epoch and the writer's tag.
pub fn points(bound: &Digest, common: &Common) -> Vec<Points<Binary>> {
    let common = common.digest();
    let point = |copy: u8, which: &[u8]| {
        let parts = [bound.as_ref(), common.as_ref(), &[copy], which];
        Binary::hashed(labels::BOARD_POINTS, &parts)
    };
    let of = |copy| Points { row: point(copy, b"row"), r: point(copy, b"r"), s: point(copy, b"s") };
    (0..).take(Parity::COPIES).map(of).collect()
}

/// A write: what all servers get, and each server's part.
///
/// # Errors
/// [`NotGenerated`].
///
/// # Privacy
/// All parts but one, and all that is opened of the last one, tell nothing of row or
/// message.
pub fn write(
    engine: &Parity,
    bound: &Digest,
    row: u32,
    message: &[u8],
    rng: &mut impl CryptoRng,
) -> Result<(Common, Vec<Part>), NotGenerated> {
    let (word, keys, known) = engine.generate(row, message, rng)?;
    let keys: Vec<&[u8]> = keys.iter().map(Key::expose).collect();
    let prove = |points: &_, rng: &mut _| Proof::new(&engine.sums(&known, points), rng);
    Ok(dangerous_write(bound, word, &keys, prove, rng))
}

/// The same from keys and proofs of any kind, for tests of writers who do not keep to the
/// protocol.
pub fn dangerous_write<R: CryptoRng>(
    bound: &Digest,
    word: Vec<u8>,
    keys: &[&[u8]],
    prove: impl Fn(&Points<Binary>, &mut R) -> Proof<Binary>,
    rng: &mut R,
) -> (Common, Vec<Part>) {
    let part = |key: &&[u8]| {
        let mut salt = [0; 32];
        rng.fill_bytes(&mut salt);
        Part { key: key.to_vec(), salt, proofs: Vec::new() }
    };
    let mut parts: Vec<Part> = keys.iter().map(part).collect();
    let mut nonce = [0; 16];
    rng.fill_bytes(&mut nonce);
    let keys = (0..).zip(&parts).map(|(server, part)| commitment(server, &part.key, &part.salt));
    let common = Common { nonce, keys: keys.collect(), word };
    for points in points(bound, &common) {
        let shares = prove(&points, rng).share(parts.len(), rng);
        for (part, share) in parts.iter_mut().zip(shares) {
            part.proofs.append(&mut share.expose());
        }
    }
    (common, parts)
}

impl Held {
    /// Checks a server's part, without expanding anything.
    ///
    /// # Errors
    /// [`BadPart`].
    pub fn open(
        engine: &Parity,
        bound: &Digest,
        server: u8,
        common: &Common,
        mut part: Part,
    ) -> Result<Self, BadPart> {
        if common.keys.len() != engine.grid().servers() {
            return Err(BadPart::Commitments);
        }
        engine.grid().check_word(&common.word)?;
        let bound_to = commitment(server, &part.key, &part.salt);
        if common.keys.get(usize::from(server)) != Some(&bound_to) {
            return Err(BadPart::OtherKey);
        }
        let each = Proof::<Binary>::NUMBERS * Binary::BYTES;
        if part.proofs.len() != Parity::COPIES * each {
            return Err(BadPart::Proof);
        }
        let proofs: Option<Vec<_>> =
            part.proofs.chunks_exact(each).map(Proof::from_bytes).collect();
        let proofs = proofs.ok_or(BadPart::Proof)?;
        let key = engine.key(Zeroizing::new(std::mem::take(&mut part.key)))?;
        Ok(Self { word: common.word.clone(), key, points: points(bound, common), proofs })
    }

    /// Adds the write to this server's share of the table, and computes what it opens.
    #[must_use]
    pub fn add(
        &self,
        engine: &Parity,
        places: &[Place<Binary>],
        table: &mut Zeroizing<Vec<u8>>,
    ) -> Answer {
        let sums = engine.add(&self.word, &self.key, &self.points, table);
        let mut answer = Answer([[[0; BLOCK]; 4]; Parity::COPIES]);
        let opened = sums.iter().zip(&self.proofs).zip(places);
        for (copy, ((sums, proof), place)) in answer.0.iter_mut().zip(opened) {
            let Opening { f, g, h, gate } = place.open(sums, proof);
            *copy = [f.0, g.0, h.0, gate.0];
        }
        answer
    }

    /// Adds the write without an audit: twice is not at all.
    pub fn add_only(&self, engine: &Parity, table: &mut Zeroizing<Vec<u8>>) {
        engine.add(&self.word, &self.key, &[], table);
    }
}

/// Where all writes of an epoch are opened, from what the servers have drawn.
#[must_use]
pub fn places(drawn: &[u8]) -> Vec<Place<Binary>> {
    let copies = (0_u8..).take(Parity::COPIES);
    copies.map(|copy| Place::hashed(labels::BOARD_PLACE, &[drawn, &[copy]])).collect()
}

/// Whether a write counts: what all servers have opened of it holds in every copy.
#[must_use]
pub fn accepted(answers: &[Answer]) -> bool {
    (0..Parity::COPIES).all(|copy| {
        let openings: Vec<Opening<Binary>> = answers
            .iter()
            .map(|answer| {
                let [f, g, h, gate] = answer.0[copy].map(Binary);
                Opening { f, g, h, gate }
            })
            .collect();
        Opening::hold(&openings)
    })
}
