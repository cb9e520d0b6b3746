//! Shares of a row, and the pads that hide them: scalars modulo the group order, two for each cell.
//!
//! A pad's scalar is 64 bytes of the pseudorandom function under the key of two controllers, or of
//! one alone, modulo the group order.

use crate::messages::{MaskedShare, Scope};
use alpheus_crypto::group::{Element, IdentityError, PublicScalar, SecretScalar};
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::prf::{PadDigest, Prf};
use zeroize::Zeroizing;

/// Words of the pseudorandom function for one scalar.
const WORDS: usize = 8;

/// Two secret scalars for each cell: of values, and of the blindings of their commitments.
pub struct Share {
    pub(crate) values: Vec<SecretScalar>,
    pub(crate) blindings: Vec<SecretScalar>,
}

/// Another controller with which one shares pads.
#[derive(Clone, Copy)]
pub struct Neighbour<'a> {
    /// Its position in the roster.
    pub position: u32,
    /// The key that both have.
    pub key: &'a Prf,
}

/// A controller's own position, key and neighbours in one round.
#[derive(Clone, Copy)]
pub struct Masks<'a> {
    /// Its position in the roster.
    pub position: u32,
    /// The key that it alone has.
    pub own: &'a Prf,
    /// Those that share pads with it in this round and are in M.
    pub neighbours: &'a [Neighbour<'a>],
    /// The key that it shares with the plan's consumer, if the plan is sealed.
    pub consumer: Option<&'a Prf>,
}

/// What a controller answers to one opening set, made from its masks and noise. The same set gets the
/// same answer, also after a restart.
pub struct Answer<'a> {
    pub(crate) masks: Masks<'a>,
    pub(crate) scope: Scope,
    pub(crate) opening_set: Digest,
    /// Neighbours in S.
    opened: Vec<Neighbour<'a>>,
    share: MaskedShare,
}

impl Share {
    /// Zeros.
    #[must_use]
    pub fn zero(cells: usize) -> Self {
        let zeros = || (0..cells).map(|_| SecretScalar::from_small(0)).collect();
        Self { values: zeros(), blindings: zeros() }
    }

    /// The pad under a key that is bound to a digest: first the values' scalars, then the blindings'.
    #[must_use]
    pub fn pad(cells: usize, key: &Prf, digest: &PadDigest) -> Self {
        let mut words = Zeroizing::new(vec![0; 2 * cells * WORDS]);
        key.add_pad(digest, &mut words);
        let scalar = |words: &[u64]| {
            let mut bytes = Zeroizing::new([0; 8 * WORDS]);
            for (out, word) in bytes.chunks_exact_mut(8).zip(words) {
                out.copy_from_slice(&word.to_le_bytes());
            }
            SecretScalar::from_wide(&bytes)
        };
        let mut values: Vec<_> = words.chunks_exact(WORDS).map(scalar).collect();
        let blindings = values.split_off(cells);
        Self { values, blindings }
    }

    /// The pad over a row that only the plan's consumer removes, under the key that it shares with
    /// this controller.
    #[must_use]
    pub fn consumer_pad(cells: usize, key: &Prf, scope: &Scope) -> Self {
        let digest = labelled_hash(labels::BOUNDED_CONSUMER, &[scope.digest().as_bytes()]);
        Self::pad(cells, key, &PadDigest::new(&digest))
    }

    /// Adds another share.
    pub fn add(&mut self, other: &Self) {
        self.apply(other, SecretScalar::plus);
    }

    /// Subtracts another share.
    pub fn subtract(&mut self, other: &Self) {
        self.apply(other, SecretScalar::minus);
    }

    fn apply(&mut self, other: &Self, by: impl Fn(&SecretScalar, &SecretScalar) -> SecretScalar) {
        let own = self.values.iter_mut().chain(&mut self.blindings);
        let others = other.values.iter().chain(&other.blindings);
        own.zip(others).for_each(|(own, other)| *own = by(own, other));
    }

    /// Commitments to the values, with its blindings.
    ///
    /// # Errors
    /// [`IdentityError`], once in 2^252 times.
    pub fn commitments(&self) -> Result<Vec<Element>, IdentityError> {
        let (g, h) = (Element::base(), Element::second_base());
        let cells = self.values.iter().zip(&self.blindings);
        cells.map(|(value, by)| Element::combine(&[(value, &g), (by, &h)], &[], &[])).collect()
    }

    /// The scalars, to be sent. Only what is under pads, or a part of the row, may be.
    #[must_use]
    pub fn dangerous_reveal(&self) -> MaskedShare {
        let public = |scalars: &[SecretScalar]| {
            let bytes = scalars.iter().map(SecretScalar::expose);
            // Bytes of a scalar are canonical.
            bytes.filter_map(|bytes| PublicScalar::from_bytes(bytes.expose()).ok()).collect()
        };
        MaskedShare { values: public(&self.values), blindings: public(&self.blindings) }
    }
}

impl MaskedShare {
    /// Zeros.
    #[must_use]
    pub fn zero(cells: usize) -> Self {
        let zeros = vec![PublicScalar::of(0); cells];
        Self { values: zeros.clone(), blindings: zeros }
    }

    /// Whether it has two scalars for each cell.
    #[must_use]
    pub fn is_for(&self, cells: usize) -> bool {
        self.values.len() == cells && self.blindings.len() == cells
    }

    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.apply(other, PublicScalar::plus);
    }

    /// Subtracts another.
    pub fn subtract(&mut self, other: &Self) {
        self.apply(other, PublicScalar::minus);
    }

    fn apply(&mut self, other: &Self, by: impl Fn(&PublicScalar, &PublicScalar) -> PublicScalar) {
        let own = self.values.iter_mut().chain(&mut self.blindings);
        let others = other.values.iter().chain(&other.blindings);
        own.zip(others).for_each(|(own, other)| *own = by(own, other));
    }
}

fn mask_digest(scope: &Scope) -> PadDigest {
    PadDigest::new(&labelled_hash(labels::BOUNDED_MASK, &[scope.digest().as_bytes()]))
}

fn open_digest(scope: &Scope, opening_set: &Digest) -> PadDigest {
    let (scope, set) = (scope.digest(), opening_set);
    PadDigest::new(&labelled_hash(labels::BOUNDED_OPEN, &[scope.as_bytes(), set.as_bytes()]))
}

impl<'a> Masks<'a> {
    /// Z: the share, the consumer's pad if the plan is sealed, and this round's masks.
    ///
    /// # Privacy
    /// It is hidden from anyone who lacks `own`. Once it is opened, it is hidden from anyone who lacks
    /// the key of one honest neighbour. The caller makes sure that there are enough neighbours.
    #[must_use]
    pub fn masked(&self, mut share: Share, scope: &Scope) -> MaskedShare {
        let (cells, digest) = (share.values.len(), mask_digest(scope));
        let consumer_pad = self.consumer.map(|key| Share::consumer_pad(cells, key, scope));
        consumer_pad.iter().for_each(|pad| share.add(pad));
        share.add(&Share::pad(cells, self.own, &digest));
        for neighbour in self.neighbours {
            self.apply(&mut share, neighbour, &Share::pad(cells, neighbour.key, &digest));
        }
        share.dangerous_reveal()
    }

    /// o: noise, the mask of its own, masks with those outside S, and opening pads with those in it.
    ///
    /// # Privacy
    /// The caller makes sure that one window is opened for one S, once.
    #[must_use]
    pub fn opening(
        &self,
        mut noise: Share,
        scope: &Scope,
        opening_set: &Digest,
        opened: impl Fn(u32) -> bool,
    ) -> Answer<'a> {
        let (cells, mask) = (noise.values.len(), mask_digest(scope));
        let open = open_digest(scope, opening_set);
        noise.add(&Share::pad(cells, self.own, &mask));
        for neighbour in self.neighbours {
            let digest = if opened(neighbour.position) { &open } else { &mask };
            self.apply(&mut noise, neighbour, &Share::pad(cells, neighbour.key, digest));
        }
        let in_set = self.neighbours.iter().filter(|neighbour| opened(neighbour.position));
        let (scope, opening_set) = (*scope, *opening_set);
        let (opened, share) = (in_set.copied().collect(), noise.dangerous_reveal());
        Answer { masks: *self, scope, opening_set, opened, share }
    }

    /// Pads count towards later positions, and against earlier ones.
    fn apply(&self, share: &mut Share, neighbour: &Neighbour<'_>, pad: &Share) {
        if neighbour.position > self.position { share.add(pad) } else { share.subtract(pad) }
    }
}

impl Answer<'_> {
    /// Plan and window.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Whose answer it is.
    #[must_use]
    pub fn controller(&self) -> u32 {
        self.masks.position
    }

    /// o, to be signed and sent.
    #[must_use]
    pub fn share(&self) -> &MaskedShare {
        &self.share
    }

    fn cells(&self) -> usize {
        self.share.values.len()
    }

    /// For each neighbour in S the difference of mask pad and opening pad. Both ends compute the same.
    pub(crate) fn pads(&self) -> impl Iterator<Item = (u32, Share)> {
        let digests = (mask_digest(&self.scope), open_digest(&self.scope, &self.opening_set));
        self.opened.iter().map(move |neighbour| {
            let mut pad = Share::pad(self.cells(), neighbour.key, &digests.0);
            pad.subtract(&Share::pad(self.cells(), neighbour.key, &digests.1));
            (neighbour.position, pad)
        })
    }

    /// The pad for the plan's consumer.
    pub(crate) fn consumer_pad(&self) -> Option<Share> {
        self.masks.consumer.map(|key| Share::consumer_pad(self.cells(), key, &self.scope))
    }
}
