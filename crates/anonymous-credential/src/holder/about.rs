//! A holder's showings about one subject: each index is burnt durably before it is
//! shown, as in an epoch.

use super::showing::{Bits, Unproven};
use super::{Hedge, Holder, Shown, records};
use crate::error::HolderRefused;
use crate::holder::DamagedRecord;
use crate::ledger::Step;
use crate::messages::{Joint, Login, SessionId, TagId};
use crate::statements::OWN;
use crate::subjects::Subject;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sigma::{Joined, prove_together};
use rand_core::CryptoRng;
use std::collections::BTreeMap;

/// A holder's showings about one subject. Not `Clone`, not `Debug`.
pub struct About {
    /// With the subject's fingerprint and limit, and what was shown about it.
    holder: Holder,
    subject: Subject,
}

impl Holder {
    /// What this holder has shown about a subject, and may show still.
    ///
    /// # Errors
    /// [`HolderRefused::OtherPeriod`], [`HolderRefused::Damaged`].
    pub fn about(
        &self,
        subject: Subject,
        records: &BTreeMap<Vec<u8>, Vec<u8>>,
    ) -> Result<About, HolderRefused> {
        if subject.period() != self.period {
            return Err(HolderRefused::OtherPeriod);
        }
        let shown = records::read_about(&subject, records);
        let shown = shown.map_err(|DamagedRecord| HolderRefused::Damaged)?;
        let holder = Holder {
            pinned: subject.pinned().clone(),
            period: self.period,
            m1: self.m1.duplicate(),
            u: self.u,
            mac: self.mac,
            shown,
        };
        Ok(About { holder, subject })
    }
}

/// Shows several credentials about one subject each, with one index and for one purpose: for less
/// than one after the other, since the index is proven once. All have one limit, and the index is
/// the next that none of them has burnt.
///
/// One step for each credential, in their order: commit all at once.
///
/// # Errors
/// [`HolderRefused`]; [`HolderRefused::OtherConfiguration`] if limits differ.
///
/// # Privacy
/// As of a login; which showings were made together is seen by whoever sees several of them.
pub fn show_together(
    abouts: &mut [About],
    message: &Digest,
    rng: &mut impl CryptoRng,
) -> Result<Vec<Step<Vec<u8>>>, HolderRefused> {
    let limit = abouts.first().ok_or(HolderRefused::NothingShown)?.subject.limit();
    if abouts.iter().any(|about| about.subject.limit() != limit) {
        return Err(HolderRefused::OtherConfiguration);
    }
    let index = abouts.iter().map(About::next).max().unwrap_or(0);
    if index >= limit.get() {
        return Err(HolderRefused::Burnt);
    }
    let hedges: Vec<Hedge> =
        abouts.iter().map(|about| about.holder.hedge(about.subject.epoch(), index, rng)).collect();
    let bits = Bits::new(limit, index, &Hedge::joined(&hedges))?;
    let shown = abouts.iter().zip(&hedges).map(|(about, hedge)| {
        about.holder.unproven((about.subject.epoch(), index), hedge, message, &bits)
    });
    let shown = shown.collect::<Result<Vec<Unproven>, _>>()?;
    let joined = abouts.iter().zip(&shown).map(|(about, shown)| Joined {
        statement: &shown.showing.statement,
        witness: shown.witness(&about.holder.m1, &bits),
        openings: bits.openings(&shown.showing),
    });
    let proofs = prove_together(&joined.collect::<Vec<_>>(), OWN, rng)?;
    let shown = shown.into_iter().map(|shown| shown.login).zip(proofs);
    let steps = abouts.iter_mut().zip(&hedges).zip(shown);
    let steps = steps.map(|((about, hedge), (login, (proof, beside)))| {
        let login = Login { proof: proof.to_bytes(), ..login };
        about.burn(index, hedge, &login.tag, Joint { login: login.clone(), beside }.to_bytes())
    });
    Ok(steps.collect())
}

impl About {
    /// How many showings are left.
    #[must_use]
    pub fn left(&self) -> u32 {
        self.subject.limit().get().saturating_sub(self.next())
    }

    /// The tag of the next showing, for whatever that is bound to.
    ///
    /// # Errors
    /// [`HolderRefused::Burnt`] if none is left.
    pub fn next_tag(&self) -> Result<Element, HolderRefused> {
        Ok(self.holder.tag(self.subject.epoch(), self.unburnt()?)?)
    }

    /// Shows the credential, with the next index that is unburnt.
    ///
    /// # Errors
    /// [`HolderRefused`].
    ///
    /// # Privacy
    /// As of a login: two showings cannot be linked, about one subject or two, unless
    /// the channel links them.
    pub fn show(
        &mut self,
        message: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<u8>>, HolderRefused> {
        let (epoch, index) = (self.subject.epoch(), self.unburnt()?);
        let hedge: Hedge = self.holder.hedge(epoch, index, rng);
        let login = self.holder.show((epoch, index), &hedge, message, rng)?;
        Ok(self.burn(index, &hedge, &login.tag, login.to_bytes()))
    }

    fn burn(&mut self, index: u32, hedge: &Hedge, tag: &Element, bytes: Vec<u8>) -> Step<Vec<u8>> {
        let epoch = self.subject.epoch();
        let tag = TagId::of(&self.subject.fingerprint(), epoch, tag);
        let shown = Shown { session: SessionId(tag), seed: hedge.seed(), bytes: bytes.clone() };
        let change = records::about(&self.subject, index, &shown);
        self.holder.shown.insert((epoch, index), shown);
        Step::new(vec![change], bytes)
    }

    /// What was shown last, once more, byte for byte; none if nothing was.
    #[must_use]
    pub fn resend(&self) -> Option<Step<Vec<u8>>> {
        let ((_, index), shown) = self.holder.shown.last_key_value()?;
        let change = records::about(&self.subject, *index, shown);
        Some(Step::new(vec![change], shown.bytes.clone()))
    }

    fn next(&self) -> u32 {
        self.holder.shown.last_key_value().map_or(0, |((_, index), _)| index + 1)
    }

    fn unburnt(&self) -> Result<u32, HolderRefused> {
        if self.left() == 0 { Err(HolderRefused::Burnt) } else { Ok(self.next()) }
    }
}
