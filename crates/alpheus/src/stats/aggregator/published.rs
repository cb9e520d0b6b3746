//! Results as a topic: a row is appended to the log `results` of the aggregator's store in the
//! commit that publishes it. Who reads the log has each result once, and of an aggregate the last.

use crate::failure::{Blame, Category, Failure};
use crate::pass::ledger::{FencedLedger, Logged};
use crate::stats::results::Row;
use alpheus_accountable_statistics::aggregator::Aggregator;
use alpheus_accountable_statistics::messages::Outcome;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{LedgerError, Step};
use alpheus_transport::Topic;
use std::collections::BTreeMap;

/// The log of results.
pub const RESULTS: &str = "results";

/// The log, and what stands in it.
pub struct Results {
    log: Topic,
    told: BTreeMap<Digest, Outcome>,
}

impl Results {
    /// What was published before this start stands in the log already.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn open(aggregator: &Aggregator, ledger: &FencedLedger) -> Result<Self, Failure> {
        let log = Topic::new(RESULTS).blame(Category::Usage)?;
        ledger.ensure_log(&log)?;
        let mut results = Self { log, told: BTreeMap::new() };
        drop(results.new_rows(aggregator));
        Ok(results)
    }

    /// Commits, and appends the row of each aggregate that has another outcome than before.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn publish<T>(
        &mut self,
        aggregator: &Aggregator,
        ledger: &mut FencedLedger,
        step: Step<T>,
    ) -> Result<T, LedgerError> {
        let rows = self.new_rows(aggregator);
        self.append(ledger, step, rows)
    }

    /// Commits, and appends these rows.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn append<T>(
        &self,
        ledger: &mut FencedLedger,
        step: Step<T>,
        rows: Vec<Logged>,
    ) -> Result<T, LedgerError> {
        step.commit(&mut ledger.with(&self.log, rows))
    }

    fn new_rows(&mut self, aggregator: &Aggregator) -> Vec<Logged> {
        let mut lines = Vec::new();
        for agreed in aggregator.aggregates() {
            let name = agreed.name();
            let Some(outcome) = aggregator.published(&name) else { continue };
            if self.told.insert(name, outcome) == Some(outcome) {
                continue;
            }
            let row = Row::new(agreed, Some(&outcome), aggregator.missing(&name));
            let (key, timestamp) = (name.as_bytes().to_vec(), agreed.end.0);
            // A row is plain data.
            let value = serde_json::to_vec(&row).unwrap_or_default();
            lines.push(Logged { key, value, timestamp });
        }
        lines
    }

    /// Forgets aggregates that the role has forgotten. Their rows stay in the log.
    pub fn forget(&mut self, aggregator: &Aggregator) {
        self.told.retain(|name, _| aggregator.published(name).is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::ledger::Found;
    use crate::stats::keys;
    use crate::stats::testing::Place;
    use alpheus_accountable_statistics::aggregator::{Identity, Node};
    use alpheus_accountable_statistics::configuration::SmootherId;
    use alpheus_accountable_statistics::endorsed::Endorsed;
    use alpheus_accountable_statistics::messages::Reason;
    use alpheus_anonymous_credential::schedule::Time;
    use alpheus_transport::simulated::Machine;
    use alpheus_transport::{Limits, Offset, Store};
    use std::sync::Arc;

    fn open(place: &Place, store: &Arc<dyn Store>) -> (Aggregator, FencedLedger, Results) {
        let fence = place.folder.path().join("fence");
        let found = FencedLedger::open_spaces(Arc::clone(store), &fence, None, ["s", "f"]).unwrap();
        let Found { ledger, records, .. } = found;
        let of = |file: &str| place.keys("aggregator").join(file);
        let identity = Identity {
            key: keys::signing(&of(keys::SIGNING)).unwrap(),
            sealing: keys::sealing(&of(keys::SEALING)).unwrap(),
            uploads: keys::issuing(&of(keys::UPLOADS)).unwrap(),
        };
        let restored = Aggregator::restore(&place.card.pinned, identity, Node::ALONE, records);
        let aggregator = restored.unwrap();
        let results = Results::open(&aggregator, &ledger).unwrap();
        (aggregator, ledger, results)
    }

    fn rows(store: &Arc<dyn Store>) -> Vec<serde_json::Value> {
        let log = Topic::new(RESULTS).unwrap().partition(0);
        let fetched = store.read(&log, Offset(0), Limits::default()).unwrap();
        fetched.map(|record| serde_json::from_slice(&record.value).unwrap()).collect()
    }

    /// Each outcome once, whatever is said again and whoever is restarted; a result after a reason
    /// comes after it.
    #[test]
    fn a_row_is_in_the_log_as_soon_as_it_is_published_and_once() {
        let (place, store) = (Place::new(), Machine::new().open().unwrap());
        let (mut aggregator, mut ledger, mut results) = open(&place, &store);
        let mut endorsed = Endorsed::default();
        let definition = place.definition(0);
        (0..4_u16).for_each(|by| {
            endorsed.add(SmootherId(by), place.signed_by(by.into(), &definition));
        });
        let agreed = aggregator.learn(&endorsed).unwrap().commit(&mut ledger).unwrap();
        let hear = |aggregator: &mut Aggregator, by: u16, result| {
            let outcome = Outcome { aggregate: agreed.name(), result };
            aggregator.hear(SmootherId(by), &place.signed_by(by.into(), &outcome)).unwrap()
        };
        let end = Time(agreed.deadline().0 + agreed.after.patience);
        let step = aggregator.poll(Time(end.0 - 1));
        results.publish(&aggregator, &mut ledger, step).unwrap();
        assert!(rows(&store).is_empty());
        for _ in 0..2 {
            let step = aggregator.poll(end);
            results.publish(&aggregator, &mut ledger, step).unwrap();
        }
        assert_eq!(rows(&store).len(), 1);
        assert_eq!(rows(&store)[0]["state"], Reason::NotFilled.to_string());
        let full = alpheus_accountable_statistics::messages::Published::Full {
            count: 8,
            sum: 61,
            squares: None,
        };
        drop((results, ledger, aggregator));
        let (mut aggregator, mut ledger, mut results) = open(&place, &store);
        for by in [0, 1, 2, 2] {
            let step = hear(&mut aggregator, by, Ok(full));
            results.publish(&aggregator, &mut ledger, step).unwrap();
        }
        let rows = rows(&store);
        assert_eq!((rows.len(), &rows[1]["count"], &rows[1]["sum"]), (2, &8.into(), &61.into()));
    }
}
