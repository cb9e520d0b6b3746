//! A holder's showings about one subject: each index is burnt durably before it is
//! shown, as in an epoch.

use super::{Hedge, Holder, Shown, records};
use crate::error::HolderRefused;
use crate::holder::DamagedRecord;
use crate::ledger::Step;
use crate::messages::{SessionId, TagId};
use crate::subjects::Subject;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::Digest;
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
        let tag = TagId::of(&self.subject.fingerprint(), epoch, &login.tag);
        let bytes = login.to_bytes();
        let shown = Shown { session: SessionId(tag), seed: hedge.seed(), bytes: bytes.clone() };
        let change = records::about(&self.subject, index, &shown);
        self.holder.shown.insert((epoch, index), shown);
        Ok(Step::new(vec![change], bytes))
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
