//! A holder's presentations about one subject. As in an epoch, each index is burnt durably
//! before it is presented.

use super::presentation::{Bits, UnprovenPresentation};
use super::{Hedge, Holder, StoredPresentation, records};
use crate::error::HolderError;
use crate::holder::DamagedRecordError;
use crate::ledger::Step;
use crate::messages::{JointPresentation, Login, SessionId, TagId};
use crate::refutation::OpenPresentation;
use crate::statements::OWN;
use crate::subjects::Subject;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sigma::{JointStatement, prove_together};
use rand_core::CryptoRng;
use std::collections::{BTreeMap, BTreeSet};

/// A holder's presentations about one subject. Not `Clone`, not `Debug`.
pub struct SubjectPresenter {
    /// Has the subject's fingerprint and limit, and the presentations about it.
    holder: Holder,
    subject: Subject,
}

impl Holder {
    /// Restores this holder's presentations about a subject, to continue with the next.
    ///
    /// # Errors
    /// [`HolderError::OtherPeriod`], [`HolderError::Damaged`].
    pub fn for_subject(
        &self,
        subject: Subject,
        records: &BTreeMap<Vec<u8>, Vec<u8>>,
    ) -> Result<SubjectPresenter, HolderError> {
        if subject.period() != self.period {
            return Err(HolderError::OtherPeriod);
        }
        let presentations = records::read_subject(&subject, records)
            .map_err(|DamagedRecordError| HolderError::Damaged)?;
        let holder = Holder {
            pinned: subject.pinned().clone(),
            period: self.period,
            m1: self.m1.duplicate(),
            u: self.u,
            mac: self.mac,
            presentations,
            codes: BTreeSet::new(),
        };
        Ok(SubjectPresenter { holder, subject })
    }
}

/// Presents several credentials, each about its own subject, with one index and for one purpose.
/// This costs less than separate presentations, since the index is proven once. All subjects
/// have the same limit. The index is the next that none of the credentials has burnt.
///
/// Returns one step for each credential, in their order. Commit all of them together.
///
/// # Errors
/// [`HolderError`]; [`HolderError::OtherConfiguration`] if the limits differ.
///
/// # Privacy
/// As for a login. Anyone who sees several of these presentations sees that they were made
/// together.
pub fn present_together(
    presenters: &mut [SubjectPresenter],
    message: &Digest,
    rng: &mut impl CryptoRng,
) -> Result<Vec<Step<Vec<u8>>>, HolderError> {
    let limit = presenters.first().ok_or(HolderError::NothingPresented)?.subject.limit();
    if presenters.iter().any(|presenter| presenter.subject.limit() != limit) {
        return Err(HolderError::OtherConfiguration);
    }
    let index = presenters.iter().map(SubjectPresenter::next).max().unwrap_or(0);
    if index >= limit.get() {
        return Err(HolderError::Burnt);
    }
    let hedges: Vec<Hedge> = presenters
        .iter()
        .map(|presenter| presenter.holder.hedge(presenter.subject.epoch(), index, rng))
        .collect();
    let bits = Bits::new(limit, index, &Hedge::joined(&hedges))?;
    let unproven = presenters.iter().zip(&hedges).map(|(presenter, hedge)| {
        presenter.holder.unproven((presenter.subject.epoch(), index), hedge, message, &bits)
    });
    let unproven = unproven.collect::<Result<Vec<UnprovenPresentation>, _>>()?;
    let joined = presenters.iter().zip(&unproven).map(|(presenter, unproven)| JointStatement {
        statement: &unproven.presentation.statement,
        witness: unproven.witness(&presenter.holder.m1, &bits),
        openings: bits.openings(&unproven.presentation),
    });
    let proofs = prove_together(&joined.collect::<Vec<_>>(), OWN, rng)?;
    let logins = unproven.into_iter().map(|unproven| unproven.login).zip(proofs);
    let steps = presenters.iter_mut().zip(&hedges).zip(logins);
    let steps = steps.map(|((presenter, hedge), (login, (proof, context)))| {
        let login = Login { proof: proof.to_bytes(), ..login };
        presenter.burn(
            index,
            hedge,
            &login.tag,
            JointPresentation { login: login.clone(), context }.to_bytes(),
        )
    });
    Ok(steps.collect())
}

impl SubjectPresenter {
    /// How many presentations are left.
    #[must_use]
    pub fn left(&self) -> u32 {
        self.subject.limit().get().saturating_sub(self.next())
    }

    /// The tag of the next presentation, so that other values can be bound to it.
    ///
    /// # Errors
    /// [`HolderError::Burnt`] if none is left.
    pub fn next_tag(&self) -> Result<Element, HolderError> {
        Ok(self.holder.tag(self.subject.epoch(), self.unburnt()?)?)
    }

    /// Presents the credential with the next unburnt index.
    ///
    /// # Errors
    /// [`HolderError`].
    ///
    /// # Privacy
    /// As for a login: two presentations cannot be linked, whether about one subject or two,
    /// unless the channel links them.
    pub fn present(
        &mut self,
        message: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<u8>>, HolderError> {
        self.present_as(message, rng, |open| open.login.to_bytes())
    }

    /// The same as an open presentation, whose proof anybody can check.
    ///
    /// # Errors
    /// [`HolderError`].
    ///
    /// # Privacy
    /// As for [`SubjectPresenter::present`], to everybody who sees it.
    pub fn present_openly(
        &mut self,
        message: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<u8>>, HolderError> {
        self.present_as(message, rng, OpenPresentation::to_bytes)
    }

    fn present_as(
        &mut self,
        message: &Digest,
        rng: &mut impl CryptoRng,
        encode: impl FnOnce(&OpenPresentation) -> Vec<u8>,
    ) -> Result<Step<Vec<u8>>, HolderError> {
        let (epoch, index) = (self.subject.epoch(), self.unburnt()?);
        let hedge: Hedge = self.holder.hedge(epoch, index, rng);
        let open = self.holder.present((epoch, index), &hedge, message, rng)?;
        Ok(self.burn(index, &hedge, &open.login.tag, encode(&open)))
    }

    fn burn(&mut self, index: u32, hedge: &Hedge, tag: &Element, bytes: Vec<u8>) -> Step<Vec<u8>> {
        let epoch = self.subject.epoch();
        let tag = TagId::of(&self.subject.fingerprint(), epoch, tag);
        let stored = StoredPresentation {
            session: SessionId(tag),
            seed: hedge.seed(),
            bytes: bytes.clone(),
        };
        let change = records::subject_presentation(&self.subject, index, &stored);
        self.holder.presentations.insert((epoch, index), stored);
        Step::new(vec![change], bytes)
    }

    /// The last presentation, byte for byte, if there was one.
    #[must_use]
    pub fn resend(&self) -> Option<Step<Vec<u8>>> {
        let ((_, index), stored) = self.holder.presentations.last_key_value()?;
        let change = records::subject_presentation(&self.subject, *index, stored);
        Some(Step::new(vec![change], stored.bytes.clone()))
    }

    fn next(&self) -> u32 {
        self.holder.presentations.last_key_value().map_or(0, |((_, index), _)| index + 1)
    }

    fn unburnt(&self) -> Result<u32, HolderError> {
        if self.left() == 0 { Err(HolderError::Burnt) } else { Ok(self.next()) }
    }
}
