//! The definitions that a client has received, by their signed content. The sender chooses which
//! signatures to include, and their order, so these identify nothing.

use alpheus_accountable_statistics::configuration::PinnedConfiguration;
use alpheus_accountable_statistics::definition::{AgreedDefinition, Definition};
use alpheus_accountable_statistics::endorsement::Endorsed;
use alpheus_crypto::hash::Digest;
use std::collections::BTreeMap;

/// Whether all that was signed here is known: then no signature needs a check. Smoothers send the
/// same definitions again and again.
pub fn is_known(signed: &Endorsed<Definition>, known: impl Fn(&Digest) -> bool) -> bool {
    signed.signatures().all(|(_, signed)| known(&signed.digest()))
}

/// All valid definitions received.
#[derive(Default)]
pub struct Definitions(BTreeMap<Digest, AgreedDefinition>);

impl Definitions {
    /// Adds definitions; returns the valid ones that are new.
    pub fn new_among(
        &mut self,
        definitions: &[Endorsed<Definition>],
        pinned: &PinnedConfiguration,
    ) -> Vec<AgreedDefinition> {
        let mut new = Vec::new();
        for signed in definitions {
            if is_known(signed, |name| self.0.contains_key(name)) {
                continue;
            }
            let Ok(agreed) = AgreedDefinition::open(signed, pinned) else { continue };
            if self.0.insert(agreed.name(), agreed.clone()).is_none() {
                new.push(agreed);
            }
        }
        new
    }

    /// All definitions.
    #[must_use]
    pub fn all(&self) -> Vec<AgreedDefinition> {
        self.0.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_deployment::TestDeployment;
    use alpheus_accountable_statistics::configuration::SmootherId;

    /// Although a smoother leaves signatures out or reorders them, a definition is accepted once, as
    /// soon as some smoother sends it complete.
    #[test]
    fn a_definition_is_identified_by_its_signed_content() {
        let place = TestDeployment::new();
        let (good, other) = (place.definition(0), place.definition(1));
        let signed = |by: &[(usize, &Definition)]| {
            let mut endorsed = Endorsed::default();
            for (id, definition) in by {
                let id = u16::try_from(*id).unwrap();
                endorsed.add(SmootherId(id), place.signed_by(id.into(), *definition));
            }
            endorsed
        };
        let mut set = Definitions::default();
        let mut new = |definitions: &[Endorsed<Definition>]| {
            set.new_among(definitions, &place.card.pinned).len()
        };
        assert_eq!(new(&[signed(&[(0, &good)])]), 0, "no quorum");
        let junk_first = signed(&[(0, &other), (1, &good), (2, &good), (3, &good)]);
        assert_eq!(new(&[junk_first.clone(), junk_first]), 1);
        assert_eq!(new(&[signed(&[(1, &good), (2, &good), (3, &good)])]), 0, "it is known");
        assert_eq!(new(&[signed(&[(1, &other), (2, &other), (3, &other)])]), 1);
        assert_eq!(set.all().len(), 2);
    }
}
