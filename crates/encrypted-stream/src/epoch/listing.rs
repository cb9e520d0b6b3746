//! How a list is made from attendances.

use std::collections::BTreeSet;
use std::sync::Arc;

use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::ControllerId;
use alpheus_policy::membership::tolerated;
use alpheus_policy::plan::MaskStrategy;

use super::caller::{Caller, PendingEpoch};
use crate::announced_plan::AnnouncedPlan;
use crate::counts::narrow;
use crate::error::ReleaseError;
use crate::mask::params::{self, MaskPreference};
use crate::mask::quorum::{Roster, counted_population};
use crate::messages::{List, Listing};

impl Caller {
    /// The list over all that attended; without those who are listed last, if there is such a list.
    pub(super) fn fix(&self, calling: &PendingEpoch) -> Result<Arc<Listing>, ReleaseError> {
        let without = (!calling.last.is_empty()).then(|| self.list_without(calling, &calling.last));
        match without {
            Some(Ok(listing)) => Ok(listing),
            _ => self.list_without(calling, &BTreeSet::new()),
        }
    }

    fn list_without(
        &self,
        calling: &PendingEpoch,
        left_out: &BTreeSet<ControllerId>,
    ) -> Result<Arc<Listing>, ReleaseError> {
        let called = calling.called.iter().filter(|(id, _)| !left_out.contains(*id));
        let attended = called.filter_map(|(_, called)| {
            Some((called.attended.as_ref()?.entry.clone(), called.certificate.clone()))
        });
        let (entries, certificates): (Vec<_>, Vec<_>) = attended.unzip();
        let owners: Vec<u32> = entries.iter().map(|entry| narrow(entry.owners.len())).collect();
        let masks = self.masks_for(&owners)?;
        let (terms, window, windows) = (self.id, calling.window, calling.windows);
        let list = List { terms, window, windows, masks, entries };
        let list = Signed::new(&list, &self.key);
        let (call, consumer) = (calling.call.clone(), self.consumer.clone());
        let listing = Listing { call, list, certificates, consumer };
        // What no member would accept is not sent.
        let listing = Arc::new(listing);
        match AnnouncedPlan::open_list(&listing, &self.deployment) {
            Ok(_) => Ok(listing),
            Err(_) => Err(ReleaseError::NotListed),
        }
    }

    /// Those whom a list names.
    pub(super) fn members(&self, listing: &Listing) -> Vec<ControllerId> {
        let opened = listing.list.open(self.deployment.service());
        let entries = opened.map(|list| list.into_inner().entries).unwrap_or_default();
        entries.into_iter().map(|entry| entry.controller).collect()
    }

    /// How the members mask, or why their windows would not open.
    fn masks_for(&self, owners: &[u32]) -> Result<MaskStrategy, ReleaseError> {
        let listed = narrow(owners.len());
        let tolerated = tolerated(listed, self.terms.alpha, self.terms.colluders);
        let min = self.terms.population.min;
        let alone = listed == 1 && (min > 1 || self.terms.alpha.numerator > 0);
        if listed == 0 || alone {
            return Err(ReleaseError::QuorumLost { held: listed, needed: listed + 1 });
        }
        let roster = Roster::new(owners, tolerated, min);
        let counted = least_count(owners, tolerated, listed);
        if counted < u64::from(min) {
            let counted = u32::try_from(counted).unwrap_or(u32::MAX);
            return Err(ReleaseError::PopulationTooSmall { counted, needed: min });
        }
        // The graph of `Epoch` lasts for many windows, and a list for few.
        let sparse = listed >= params::SPARSE_FROM;
        let wanted = match self.masks {
            Some(MaskPreference::Clique | MaskPreference::Dream) => self.masks,
            _ if sparse => Some(MaskPreference::Dream),
            _ => None,
        };
        params::choose(wanted, &roster, self.terms.delta_exponent)
            .map_err(|_| ReleaseError::NotListed)
    }
}

/// The owners that the worst placed member counts. Its token is needed as well: without it the
/// others count even fewer.
fn least_count(owners: &[u32], tolerated: u32, listed: u32) -> u64 {
    let mut owners = owners.to_vec();
    owners.sort_unstable();
    let (own, others) = owners.split_first().map_or((0, &[][..]), |(own, others)| (*own, others));
    counted_population(own, others, tolerated, listed, true)
}
