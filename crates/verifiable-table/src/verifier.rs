//! The verifier: checks an answer against its question, and only then opens it. In
//! this scheme it is the owner, who alone has the key.

use crate::cipher::Ciphertext;
use crate::error::Rejected;
use crate::keys::Keys;
use crate::label::{Address, Column, Kind};
use crate::mask::Masks;
use crate::messages::{Answer, Block, Manifest, Request};
use crate::planner::Question;
use crate::tag::Tag;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A sum whose tag was right: what an honest server would have said, but with chance
/// 2^−150 for each question. There is no other way to have one opened.
pub struct Verified {
    request: Request,
    sum: Ciphertext,
}

/// A verified sum, decrypted: for each slot its weighted sum over the blocks.
pub struct Opened {
    pub(crate) request: Request,
    pub(crate) slots: Zeroizing<Vec<i128>>,
}

impl Opened {
    /// Each slot's sum.
    #[must_use]
    pub fn slots(&self) -> &[i128] {
        &self.slots
    }
}

impl Keys {
    /// σ = L(ν) + ρ, compared in constant time.
    pub(crate) fn verify(&self, question: &Question, answer: &[u8]) -> Result<Verified, Rejected> {
        let request = question.request();
        let sum = self.check(request, answer)?;
        Ok(Verified { request: request.clone(), sum })
    }

    /// The same of any request; what it gives is not sure to decrypt.
    pub(crate) fn check(&self, request: &Request, answer: &[u8]) -> Result<Ciphertext, Rejected> {
        let Answer { sum, tag } = Answer::from_bytes(self.ring, request.kind, answer)?;
        let mut expected = self.hash.hash(self.ring, &sum.parts());
        for run in &request.runs {
            let masks = Masks::new(self, (run.segment, run.epoch), request.kind);
            masks.add_run(&mut expected, run, &request.weights);
        }
        if bool::from(expected.ct_eq(&tag)) { Ok(sum) } else { Err(Rejected) }
    }

    /// Decrypts what was verified.
    pub(crate) fn open(&self, verified: &Verified) -> Opened {
        let slots = self.secret.decrypt(self.ring, &verified.sum);
        Opened { request: verified.request.clone(), slots }
    }

    /// Verifies one column of a fetched block under the label where it must stand, and
    /// decrypts it.
    pub(crate) fn open_column<B: AsRef<[u8]>>(
        &self,
        manifest: &Manifest,
        address: &Address,
        block: &Block<B>,
        column: Column,
    ) -> Result<Zeroizing<Vec<i64>>, Rejected> {
        let kind = Kind::Column(column);
        let ciphertext = block.ciphertext(manifest, column).ok_or(Rejected)?;
        let tag: Tag = block.tag(manifest, kind).ok_or(Rejected)?;
        if !bool::from(self.tag(address, kind, &ciphertext).ct_eq(&tag)) {
            return Err(Rejected);
        }
        let slots = self.secret.decrypt(self.ring, &ciphertext);
        // Of its whole size at once: one that grows would leave its cells behind.
        let mut items = Zeroizing::new(Vec::with_capacity(slots.len()));
        for slot in slots.iter() {
            items.push(i64::try_from(*slot).map_err(|_| Rejected)?);
        }
        Ok(items)
    }
}
