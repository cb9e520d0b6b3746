//! Definitions that a client has heard of, by what a quorum has signed: who sends one chooses
//! which signatures come with it, and in which order, and these name nothing.

use crate::stats::ways::{Way, gathered};
use alpheus_accountable_statistics::configuration::Pinned;
use alpheus_accountable_statistics::definition::{Agreed, Definition};
use alpheus_accountable_statistics::endorsed::Endorsed;
use alpheus_crypto::hash::Digest;
use std::collections::BTreeMap;
use tokio::task::JoinSet;

/// What smoothers say is defined, once as many have answered as it takes: one may hide some.
pub async fn definitions(smoothers: &[Way], quorum: usize) -> Vec<Vec<Endorsed<Definition>>> {
    let mut asking = JoinSet::new();
    for way in smoothers {
        let way = way.clone();
        asking.spawn(async move {
            let answer = way.get::<Vec<Endorsed<Definition>>>("/v1/definitions").await;
            answer.inspect_err(|error| tracing::debug!(%error, "asking for definitions")).ok()
        });
    }
    gathered(asking, quorum, Option::is_some).await.into_iter().flatten().collect()
}

/// All that were heard of and hold.
#[derive(Default)]
pub struct Heard(BTreeMap<Digest, Agreed>);

impl Heard {
    /// Those that hold and were not heard of before.
    pub fn new_among(
        &mut self,
        definitions: &[Endorsed<Definition>],
        pinned: &Pinned,
    ) -> Vec<Agreed> {
        let mut new = Vec::new();
        for signed in definitions {
            let Ok(agreed) = Agreed::open(signed, pinned) else { continue };
            if self.0.insert(agreed.name(), agreed.clone()).is_none() {
                new.push(agreed);
            }
        }
        new
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<Agreed> {
        self.0.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::testing::Place;
    use alpheus_accountable_statistics::configuration::SmootherId;

    /// One smoother leaves signatures out, or puts others first: the definition is taken up once,
    /// as soon as somebody shows it whole.
    #[test]
    fn a_definition_is_known_by_what_a_quorum_has_signed() {
        let place = Place::new();
        let (good, other) = (place.definition(0), place.definition(1));
        let signed = |by: &[(usize, &Definition)]| {
            let mut endorsed = Endorsed::default();
            for (id, definition) in by {
                let id = u16::try_from(*id).unwrap();
                endorsed.add(SmootherId(id), place.signed_by(id.into(), *definition));
            }
            endorsed
        };
        let mut heard = Heard::default();
        let mut new = |definitions: &[Endorsed<Definition>]| {
            heard.new_among(definitions, &place.card.pinned).len()
        };
        assert_eq!(new(&[signed(&[(0, &good)])]), 0, "no quorum");
        let junk_first = signed(&[(0, &other), (1, &good), (2, &good), (3, &good)]);
        assert_eq!(new(&[junk_first.clone(), junk_first]), 1);
        assert_eq!(new(&[signed(&[(1, &good), (2, &good), (3, &good)])]), 0, "it is known");
        assert_eq!(new(&[signed(&[(1, &other), (2, &other), (3, &other)])]), 1);
        assert_eq!(heard.all().len(), 2);
    }
}
