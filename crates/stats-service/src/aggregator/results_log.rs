//! Results as a log: the commit that publishes a result also appends its row to the log `results`
//! in the aggregator's store. The log has each outcome once; the last row of an aggregate is valid.

use crate::row::Row;
use alpheus_accountable_statistics::aggregator::Aggregator;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{LedgerError, Step};
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::ledger::{FencedLedger, LogRecord};
use alpheus_transport::Topic;

/// The log of results.
pub const RESULTS: &str = "results";

/// The log.
pub struct ResultsLog(Topic);

impl ResultsLog {
    /// Opens the log. It already holds all results published before this start.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn open(ledger: &FencedLedger) -> Result<Self, Failure> {
        let log = Topic::new(RESULTS).blame(Category::Usage)?;
        ledger.ensure_log(&log)?;
        Ok(Self(log))
    }

    /// Commits, and appends the row of each aggregate whose outcome has changed.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn publish<T>(
        &self,
        aggregator: &mut Aggregator,
        ledger: &mut FencedLedger,
        step: Step<T>,
    ) -> Result<T, LedgerError> {
        let rows = new_rows(aggregator);
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
        rows: Vec<LogRecord>,
    ) -> Result<T, LedgerError> {
        step.commit(&mut ledger.with(&self.0, rows))
    }
}

/// The rows of what has ended, or ended otherwise, since this was called last.
fn new_rows(aggregator: &mut Aggregator) -> Vec<LogRecord> {
    let ended = aggregator.take_ended();
    let row = |name: Digest| {
        let (agreed, outcome) = (aggregator.aggregate(&name)?, aggregator.outcome(&name)?);
        let row = Row::new(agreed, Some(&outcome));
        let (key, timestamp) = (name.as_bytes().to_vec(), agreed.end.0);
        // A row is plain data.
        let value = serde_json::to_vec(&row).unwrap_or_default();
        Some(LogRecord { key, value, timestamp })
    };
    ended.into_iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;
    use crate::test_deployment::TestDeployment;
    use alpheus_accountable_statistics::aggregator::{Identity, Node};
    use alpheus_accountable_statistics::configuration::SmootherId;
    use alpheus_accountable_statistics::endorsement::Endorsed;
    use alpheus_accountable_statistics::messages::{NoResultError, Outcome};
    use alpheus_node::ledger::OpenedLedger;
    use alpheus_time::Timestamp;
    use alpheus_transport::simulation::Machine;
    use alpheus_transport::{Limits, Offset, Store};
    use std::sync::Arc;

    fn open(
        place: &TestDeployment,
        store: &Arc<dyn Store>,
    ) -> (Aggregator, FencedLedger, ResultsLog) {
        let fence = place.folder.path().join("fence");
        let found = FencedLedger::open_spaces(Arc::clone(store), &fence, None, ["s", "f"]).unwrap();
        let OpenedLedger { ledger, records, .. } = found;
        let of = |file: &str| place.keys("aggregator").join(file);
        let identity = Identity {
            key: keys::signing(&of(keys::SIGNING)).unwrap(),
            sealing: keys::sealing(&of(keys::SEALING)).unwrap(),
            uploads: keys::issuing(&of(keys::UPLOADS)).unwrap(),
        };
        let restored = Aggregator::restore(&place.card.pinned, identity, Node::ALONE, records);
        let aggregator = restored.unwrap();
        let results = ResultsLog::open(&ledger).unwrap();
        (aggregator, ledger, results)
    }

    fn rows(store: &Arc<dyn Store>) -> Vec<serde_json::Value> {
        let log = Topic::new(RESULTS).unwrap().partition(0);
        let fetched = store.read(&log, Offset(0), Limits::default()).unwrap();
        fetched.map(|record| serde_json::from_slice(&record.value).unwrap()).collect()
    }

    /// Each outcome appears once despite repeated outcomes and restarts. A late result follows the row
    /// with the reason.
    #[test]
    fn a_row_is_logged_with_its_publication_and_only_once() {
        let (place, store) = (TestDeployment::new(), Machine::new().open().unwrap());
        let (mut aggregator, mut ledger, results) = open(&place, &store);
        let mut endorsed = Endorsed::default();
        let definition = place.definition(0);
        (0..4_u16).for_each(|by| {
            endorsed.add(SmootherId(by), place.signed_by(by.into(), &definition));
        });
        let agreed = aggregator.handle_definition(&endorsed).unwrap().commit(&mut ledger).unwrap();
        let hear = |aggregator: &mut Aggregator, by: u16, result| {
            let outcome = Outcome { aggregate: agreed.name(), result };
            aggregator
                .handle_outcome(&place.signed_by(by.into(), &outcome), SmootherId(by))
                .unwrap()
        };
        let end = Timestamp(agreed.deadline().0 + agreed.closing.patience.0);
        let step = aggregator.poll(Timestamp(end.0 - 1));
        results.publish(&mut aggregator, &mut ledger, step).unwrap();
        assert!(rows(&store).is_empty());
        for _ in 0..2 {
            let step = aggregator.poll(end);
            results.publish(&mut aggregator, &mut ledger, step).unwrap();
        }
        assert_eq!(rows(&store).len(), 1);
        assert_eq!(rows(&store)[0]["state"], NoResultError::NotFilled.to_string());
        let full = alpheus_accountable_statistics::messages::PublishedResult::Full {
            count: 8,
            sum: 61,
            squares: None,
            uploads: 9,
        };
        drop((results, ledger, aggregator));
        let (mut aggregator, mut ledger, results) = open(&place, &store);
        for by in [0, 1, 2, 2] {
            let step = hear(&mut aggregator, by, Ok(full));
            results.publish(&mut aggregator, &mut ledger, step).unwrap();
        }
        let rows = rows(&store);
        assert_eq!((rows.len(), &rows[1]["count"], &rows[1]["sum"]), (2, &8.into(), &61.into()));
    }
}
