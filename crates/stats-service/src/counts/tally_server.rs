//! The aggregator's side of counts: definitions signed by the operator, a tag for each counted
//! account, and the result once a count is over.

use crate::results_reader::ShownResult;
use crate::row::{CountOutcome, Row};
use alpheus_accountable_statistics::aggregator::{Aggregator, Node};
use alpheus_accountable_statistics::configuration::PinnedConfiguration;
use alpheus_accountable_statistics::tally::{
    CountError, Counter, Tally, TallyDefinition, TallyError,
};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLedgerError, Step, put};
use alpheus_crypto::signed_message::Signed;
use alpheus_node::ledger::LogRecord;
use alpheus_time::Timestamp;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The prefix of records of definitions; counters have their own.
const QUESTION: u8 = b'q';
const TALLY: u8 = b't';

/// A presentation is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountRejectedError {
    /// The count is unknown.
    #[error("this aggregator does not know this count; fetch the open counts again")]
    Unknown,
    /// The accounts counted so far may be lost.
    #[error(
        "this aggregator's state is an old copy: it takes no presentations for counts that ended before; wait for the next count"
    )]
    SitsOut,
    /// The presentation is invalid.
    #[error(transparent)]
    Presentation(#[from] CountError),
}

/// One count.
struct OpenCount {
    signed: Signed<TallyDefinition>,
    tally: Tally,
    counter: Counter,
    /// Whether its row is in the log.
    logged: bool,
}

impl OpenCount {
    /// What may be published. Nothing if tags may be lost, since the ledger is an old copy: it would be
    /// lower than what clients had an answer for.
    fn outcome(&self, aggregator: &Aggregator, now: Timestamp) -> CountOutcome {
        if now < self.tally.closes {
            return CountOutcome::Open;
        }
        if aggregator.sits_out(self.tally.end) {
            return CountOutcome::Lost;
        }
        self.counter.result(now).map_or(CountOutcome::TooFew, CountOutcome::Counted)
    }
}

/// All counts.
pub struct TallyServer {
    pinned: PinnedConfiguration,
    counts: BTreeMap<Digest, OpenCount>,
}

/// A ledger's records.
type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// Splits records into those of counts and the rest.
#[must_use]
pub fn split_records(records: Records) -> (Records, Records) {
    let ours = |key: &[u8]| matches!(key.first(), Some(&(QUESTION | TALLY)));
    records.into_iter().partition(|(key, _)| ours(key))
}

fn record(name: &Digest) -> Vec<u8> {
    [[QUESTION].as_slice(), name.as_bytes()].concat()
}

impl TallyServer {
    /// Restores the counts from records.
    ///
    /// # Errors
    /// [`DamagedLedgerError`].
    pub fn restore(
        pinned: &PinnedConfiguration,
        records: &Records,
        now: Timestamp,
    ) -> Result<Self, DamagedLedgerError> {
        let mut server = Self { pinned: pinned.clone(), counts: BTreeMap::new() };
        for (key, value) in records {
            if key.first() == Some(&QUESTION) {
                let signed = postcard::from_bytes(value).map_err(|_| DamagedLedgerError)?;
                let tally = Tally::open(&signed, pinned).map_err(|_| DamagedLedgerError)?;
                server.begin(signed, tally, records, now)?;
            }
        }
        Ok(server)
    }

    fn begin(
        &mut self,
        signed: Signed<TallyDefinition>,
        tally: Tally,
        records: &Records,
        now: Timestamp,
    ) -> Result<(), DamagedLedgerError> {
        let name = tally.name();
        let prefix = [[TALLY].as_slice(), name.as_bytes()].concat();
        let ours = records.iter().filter(|(key, _)| key.starts_with(&prefix)).cloned();
        let ended = records.iter().any(|(key, _)| *key == prefix);
        let counter = Counter::restore(tally.clone(), &self.pinned, Node::ALONE, ours)?;
        let logged = ended && now >= tally.closes;
        self.counts.insert(name, OpenCount { signed, tally, counter, logged });
        Ok(())
    }

    /// Opens a count.
    ///
    /// # Errors
    /// [`TallyError`].
    pub fn ask(
        &mut self,
        signed: Signed<TallyDefinition>,
        now: Timestamp,
    ) -> Result<Step<()>, TallyError> {
        let tally = Tally::open(&signed, &self.pinned)?;
        let name = tally.name();
        if self.counts.contains_key(&name) || now >= tally.closes {
            return Ok(Step::new(Vec::new(), ()));
        }
        let value = postcard::to_allocvec(&signed).unwrap_or_default();
        // Without records, nothing can be corrupt.
        let _ = self.begin(signed, tally, &Vec::new(), now);
        Ok(Step::new(vec![put(record(&name), value)], ()))
    }

    /// The definitions of open counts.
    #[must_use]
    pub fn questions(&self, now: Timestamp) -> Vec<Signed<TallyDefinition>> {
        let open = self.counts.values().filter(|count| now < count.tally.closes);
        open.map(|count| count.signed.clone()).collect()
    }

    /// Counts a presentation once.
    ///
    /// # Errors
    /// [`CountRejectedError`].
    pub fn take(
        &mut self,
        name: &Digest,
        presentation: &[u8],
        (aggregator, now): (&Aggregator, Timestamp),
    ) -> Result<Step<()>, CountRejectedError> {
        let OpenCount { tally, counter, .. } =
            self.counts.get_mut(name).ok_or(CountRejectedError::Unknown)?;
        if aggregator.sits_out(tally.end) {
            return Err(CountRejectedError::SitsOut);
        }
        Ok(counter.handle(presentation, now, aggregator.verifier())?)
    }

    /// Ends counts that are over; returns their rows for the log.
    pub fn poll(&mut self, aggregator: &Aggregator, now: Timestamp) -> (Step<()>, Vec<LogRecord>) {
        let (mut steps, mut lines) = (Vec::new(), Vec::new());
        for (name, count) in &mut self.counts {
            if count.logged || now < count.tally.closes {
                continue;
            }
            count.logged = true;
            steps.push(count.counter.poll(now));
            let row = Row::of_count(&count.tally, count.outcome(aggregator, now));
            // A row is plain data.
            let value = serde_json::to_vec(&row).unwrap_or_default();
            let (key, timestamp) = (name.as_bytes().to_vec(), count.tally.end.0);
            lines.push(LogRecord { key, value, timestamp });
        }
        (Step::join(steps).then(|_| Step::new(Vec::new(), ())), lines)
    }

    /// Deletes counts that ended `kept` microseconds ago or earlier. Their rows stay in the log.
    pub fn prune(&mut self, now: Timestamp, kept: u64) -> Step<()> {
        let is_over = |_: &Digest, count: &mut OpenCount| {
            count.logged && now.0 >= count.tally.closes.0.saturating_add(kept)
        };
        let mut steps = Vec::new();
        for (name, count) in self.counts.extract_if(.., is_over) {
            let question = Change { key: record(&name), value: None };
            steps.push(count.counter.forget());
            steps.push(Step::new(vec![question], ()));
        }
        Step::join(steps).then(|_| Step::new(Vec::new(), ()))
    }

    /// The names of counts after one, in order.
    pub fn names_after(&self, name: Option<&Digest>) -> impl Iterator<Item = Digest> {
        let after = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.counts.range::<Digest, _>((after, Bound::Unbounded)).map(|(name, _)| *name)
    }

    /// A count, for everybody.
    #[must_use]
    pub fn shown(
        &self,
        name: &Digest,
        aggregator: &Aggregator,
        now: Timestamp,
    ) -> Option<ShownResult> {
        let asked = self.counts.get(name)?;
        let (question, outcome) = (asked.signed.clone(), asked.outcome(aggregator, now));
        Some(ShownResult::Count { question, outcome })
    }

    /// A count's row.
    #[must_use]
    pub fn row(&self, name: &Digest, aggregator: &Aggregator, now: Timestamp) -> Option<Row> {
        let asked = self.counts.get(name)?;
        Some(Row::of_count(&asked.tally, asked.outcome(aggregator, now)))
    }
}
