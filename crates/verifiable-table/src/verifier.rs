//! The verifier: checks an answer against its question, and only then decrypts it. In
//! this scheme it is the owner, who alone has the key.

use crate::cipher::Ciphertext;
use crate::error::VerifyError;
use crate::keys::Keys;
use crate::label::{Address, Column, Kind};
use crate::mask::Masks;
use crate::messages::{Answer, Block, Manifest, Request};
use crate::planner::Question;
use crate::tag::Tag;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A sum with a valid tag. Except with probability 2^−150 for each question, and 2^−148 for products,
/// beyond the advantage of telling AES-128 from random, it is an honest server's answer. Only a verified sum can be decrypted.
pub struct VerifiedSum {
    request: Request,
    sum: Ciphertext,
}

/// A verified sum, decrypted: the weighted sum over the blocks, for each slot.
pub struct DecryptedSum {
    pub(crate) request: Request,
    pub(crate) slots: Zeroizing<Vec<i128>>,
}

impl DecryptedSum {
    /// Each slot's sum.
    #[must_use]
    pub fn slots(&self) -> &[i128] {
        &self.slots
    }
}

impl Keys {
    /// Checks σ = L(ν) + ρ, in constant time.
    pub(crate) fn verify(
        &self,
        question: &Question,
        answer: &[u8],
    ) -> Result<VerifiedSum, VerifyError> {
        let request = question.request();
        let sum = self.check(request, answer)?;
        Ok(VerifiedSum { request: request.clone(), sum })
    }

    /// The same for any request. The result is not certain to decrypt.
    pub(crate) fn check(
        &self,
        request: &Request,
        answer: &[u8],
    ) -> Result<Ciphertext, VerifyError> {
        let Answer { sum, tag } = Answer::from_bytes(self.ring, request.kind, answer)?;
        let mut expected = self.hash.hash(self.ring, &sum.parts());
        for run in &request.runs {
            let masks = Masks::new(self, (run.segment, run.epoch), request.kind);
            masks.add_run(&mut expected, run, &request.weights);
        }
        if bool::from(expected.ct_eq(&tag)) { Ok(sum) } else { Err(VerifyError) }
    }

    /// Decrypts a verified sum.
    pub(crate) fn open(&self, verified: &VerifiedSum) -> DecryptedSum {
        let slots = self.secret.decrypt(self.ring, &verified.sum);
        DecryptedSum { request: verified.request.clone(), slots }
    }

    /// Verifies one column of a fetched block under its expected label, and decrypts it.
    pub(crate) fn open_column<B: AsRef<[u8]>>(
        &self,
        manifest: &Manifest,
        address: &Address,
        block: &Block<B>,
        column: Column,
    ) -> Result<Zeroizing<Vec<i64>>, VerifyError> {
        let kind = Kind::Column(column);
        let ciphertext = block.ciphertext(manifest, column).ok_or(VerifyError)?;
        let tag: Tag = block.tag(manifest, kind).ok_or(VerifyError)?;
        if !bool::from(self.tag(address, kind, &ciphertext).ct_eq(&tag)) {
            return Err(VerifyError);
        }
        let slots = self.secret.decrypt(self.ring, &ciphertext);
        // Allocated once: a growing vector would leave unwiped copies behind.
        let mut items = Zeroizing::new(Vec::with_capacity(slots.len()));
        for slot in slots.iter() {
            items.push(i64::try_from(*slot).map_err(|_| VerifyError)?);
        }
        Ok(items)
    }
}
