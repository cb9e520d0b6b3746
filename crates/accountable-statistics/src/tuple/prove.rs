//! Making a tuple.

use super::proof::{range, statement};
use super::{Binding, Ciphertexts, Contribution, Pair, Terms, Tuple, message_base};
use crate::error::ProvingError;
use alpheus_crypto::group::{Element, IdentityError, Multiple, SecretScalar};
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sigma;
use rand_core::CryptoRng;
use zeroize::{Zeroize, Zeroizing};

/// Makes tuples under some terms. It holds generators: make one and keep it.
pub struct Prover {
    terms: Terms,
    range: range::RangeProver,
}

/// v', c and their blindings. Wiped on drop.
pub(crate) struct Opening {
    offset: u32,
    real: u32,
    pub(crate) r_value: SecretScalar,
    pub(crate) r_count: SecretScalar,
    r_square: SecretScalar,
}

impl Prover {
    /// A prover under some terms.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self { range: range::RangeProver::new(&terms), terms }
    }

    /// The terms that it proves under.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Encrypts a contribution and proves it well-formed for one binding, in a time that does not
    /// depend on the contribution.
    ///
    /// Blindings depend on randomness, contribution, terms and binding, so that a generator that
    /// repeats itself reveals nothing.
    ///
    /// # Errors
    /// [`ProvingError`].
    ///
    /// # Privacy
    /// Without the key the tuple reveals neither the value nor whether it is a dummy (decisional
    /// Diffie–Hellman assumption, random-oracle model).
    pub fn prove(
        &self,
        contribution: Contribution,
        binding: &Binding,
        rng: &mut impl CryptoRng,
    ) -> Result<Tuple, ProvingError> {
        let opening = Opening::new(&self.terms, contribution, binding, rng)?;
        self.finish(&opening, binding, rng)
    }

    pub(super) fn finish(
        &self,
        opening: &Opening,
        binding: &Binding,
        rng: &mut impl CryptoRng,
    ) -> Result<Tuple, ProvingError> {
        let ciphertexts =
            opening.encrypt(&self.terms).map_err(|IdentityError| ProvingError::Generator)?;
        let witness = opening.witness(&self.terms);
        let witness: Vec<&SecretScalar> = witness.iter().collect();
        let (statement, of, base) = statement::places(&self.terms, binding, &ciphertexts);
        // R_v = r_v·B, which has a table.
        let known = sigma::Opening { of, terms: vec![(opening.r_value.duplicate(), base)] };
        let proof = statement.prove_with_openings(&witness, &[known], rng);
        let proof = proof.map_err(|_| ProvingError::Generator)?;
        let bound = range::bound(&self.terms, binding, &ciphertexts, &proof);
        let range = self.range.prove(opening, &ciphertexts, &bound, rng)?;
        Ok(Tuple { ciphertexts, proof, range })
    }
}

impl Opening {
    pub(super) fn new(
        terms: &Terms,
        contribution: Contribution,
        binding: &Binding,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, ProvingError> {
        let (value, real) = match contribution {
            Contribution::Sample(value) => (value, 1),
            Contribution::Dummy => (terms.interval().lowest(), 0),
        };
        let offset = terms.interval().offset(value)?;
        let fresh = Secret::<32>::random(rng);
        let mut given = Zeroizing::new([0; 8]);
        given[..4].copy_from_slice(&u32::to_be_bytes(offset));
        given[4..].copy_from_slice(&u32::to_be_bytes(real));
        let binding = binding.digest();
        let blinding = |which: u8| {
            let parts: [&[u8]; 5] = [
                fresh.expose(),
                given.as_slice(),
                terms.digest().as_bytes(),
                binding.as_bytes(),
                &[which],
            ];
            SecretScalar::from_hash(labels::STATISTICS_BLINDING, &parts)
        };
        let [r_value, r_count, r_square] = [0, 1, 2].map(blinding);
        Ok(Self { offset, real, r_value, r_count, r_square })
    }

    /// v'.
    pub(crate) fn offset(&self) -> u32 {
        self.offset
    }

    /// c.
    pub(crate) fn real(&self) -> u32 {
        self.real
    }

    fn encrypt(&self, terms: &Terms) -> Result<Ciphertexts, IdentityError> {
        let (base, message, key) = (Element::base(), message_base(), terms.key().0);
        let [value, count] = [self.offset, self.real].map(SecretScalar::from_small);
        // v'·(R_v, C_v), blinded again.
        let squared = value.times(&value);
        let r_square = value.times(&self.r_value).plus(&self.r_square);
        let pairs = [(&value, &self.r_value), (&count, &self.r_count), (&squared, &r_square)];
        let pairs = pairs.into_iter().take(if terms.interval().square() { 3 } else { 2 });
        let sums = pairs.flat_map(|(number, blinding)| {
            [vec![(blinding, &base)], vec![(number, &message), (blinding, &key)]]
        });
        let sums: Vec<Vec<Multiple<'_>>> = sums.collect();
        let made = Element::combine_all(&sums.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let pair = |at: usize| Some(Pair { r: *made.get(at)?, c: *made.get(at + 1)? });
        let (value, count) = (pair(0).ok_or(IdentityError)?, pair(2).ok_or(IdentityError)?);
        Ok(Ciphertexts { value, count, square: pair(4) })
    }

    /// In the order of the statement's secrets.
    fn witness(&self, terms: &Terms) -> Vec<SecretScalar> {
        let real = SecretScalar::from_small(self.real);
        let dummy = SecretScalar::from_small(1).minus(&real);
        let mut witness = vec![
            SecretScalar::from_small(self.offset),
            self.r_value.duplicate(),
            real,
            self.r_count.duplicate(),
            dummy.times(&self.r_count),
            dummy.times(&self.r_value),
        ];
        if terms.interval().square() {
            witness.push(self.r_square.duplicate());
        }
        witness
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.offset.zeroize();
        self.real.zeroize();
    }
}
