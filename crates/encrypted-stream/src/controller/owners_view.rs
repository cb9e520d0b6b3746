//! What owners can see of their streams here, besides the log and the budgets.

use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::{ConsumerId, StreamId};
use alpheus_policy::plan::Plan;

use super::Controller;
use crate::certificate::Certificate;
use crate::grant::Days;

/// Why nothing of a stream is released, if nothing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamHolds {
    /// Its owner has withdrawn consent, for good.
    pub revoked: bool,
    /// Its key is destroyed.
    pub erased: bool,
    /// Its device has a copy, until the owner submits a choice again.
    pub copied: bool,
    /// The ledger is not known to be the latest, until the owner submits a choice again.
    pub unconfirmed: bool,
}

/// What an owner last stated about a reader.
#[derive(Clone, Debug)]
pub struct StatedGrant<'a> {
    /// The reader.
    pub reader: ConsumerId,
    /// Its name.
    pub name: &'a str,
    /// Its certificate.
    pub certificate: &'a Signed<Certificate>,
    /// Which days it may read; `None` if the owner has ended the access.
    pub days: Option<Days>,
    /// The days whose keys it has, under this grant and earlier ones.
    pub handed: Vec<Days>,
}

impl Controller {
    /// Why nothing of a stream is released; `None` if the stream is not held.
    #[must_use]
    pub fn holds_on(&self, stream: &StreamId) -> Option<StreamHolds> {
        let state = self.streams.get(stream)?;
        Some(StreamHolds {
            revoked: state.revoked.is_some(),
            erased: self.erasures.contains_key(stream),
            copied: state.copies.waits(),
            unconfirmed: state.is_suspended(),
        })
    }

    /// What the owner of a stream has stated about readers.
    pub fn grants_of(&self, stream: StreamId) -> impl Iterator<Item = StatedGrant<'_>> {
        let own = self.grants.iter().filter(move |((of, _), _)| *of == stream);
        own.map(|((_, reader), granted)| StatedGrant {
            reader: *reader,
            name: &granted.name,
            certificate: &granted.certificate,
            days: granted.days.filter(|_| !granted.stopped),
            handed: granted.handed.iter().map(|(days, _)| *days).collect(),
        })
    }

    /// The plans that use a stream, and whether each has ended. Old ones may be forgotten.
    pub fn plans_of(&self, stream: StreamId) -> impl Iterator<Item = (&Plan, bool)> {
        let uses = move |plan: &Plan| {
            plan.streams.binary_search_by_key(&stream, |planned| planned.stream).is_ok()
        };
        let known = self.plans.values().map(|joined| (joined.plan(), joined.ended.is_some()));
        known.filter(move |(plan, _)| uses(plan))
    }
}
