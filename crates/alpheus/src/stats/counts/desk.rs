//! The aggregator's side of counts: questions that the operator has signed, a tag for each account
//! that counts, and how many there were once it is over.

use crate::pass::ledger::Logged;
use crate::stats::results::Row;
use alpheus_accountable_statistics::aggregator::{Aggregator, Node};
use alpheus_accountable_statistics::configuration::Pinned;
use alpheus_accountable_statistics::tally::{BadTally, Counter, NotTallied, Question, Tally};
use alpheus_anonymous_credential::schedule::Time;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLog, Step, put};
use alpheus_crypto::signed::Signed;
use std::collections::BTreeMap;

/// Kind of the records of questions; counters have theirs.
const QUESTION: u8 = b'q';
const TALLY: u8 = b't';

/// Why a showing does not count here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCounted {
    /// There is no such question.
    #[error("this aggregator knows no such count; ask it which there are")]
    Unknown,
    /// Who counted already may be forgotten.
    #[error("this aggregator's state is an old copy: it counts nothing that had ended before")]
    SitsOut,
    /// The showing does not count.
    #[error(transparent)]
    Showing(#[from] NotTallied),
}

/// One count.
struct Counting {
    signed: Signed<Question>,
    tally: Tally,
    counter: Counter,
    /// Whether its row is in the log.
    told: bool,
}

/// All counts.
pub struct Desk {
    pinned: Pinned,
    counts: BTreeMap<Digest, Counting>,
}

/// A ledger's records.
type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// Records of counts, and of everything else.
#[must_use]
pub fn divided(records: Records) -> (Records, Records) {
    let ours = |key: &[u8]| matches!(key.first(), Some(&(QUESTION | TALLY)));
    records.into_iter().partition(|(key, _)| ours(key))
}

fn record(name: &Digest) -> Vec<u8> {
    [[QUESTION].as_slice(), name.as_bytes()].concat()
}

impl Desk {
    /// As its records have it.
    ///
    /// # Errors
    /// [`DamagedLog`].
    pub fn restore(pinned: &Pinned, records: &Records, now: Time) -> Result<Self, DamagedLog> {
        let mut desk = Self { pinned: pinned.clone(), counts: BTreeMap::new() };
        for (key, value) in records {
            if key.first() == Some(&QUESTION) {
                let signed = postcard::from_bytes(value).map_err(|_| DamagedLog)?;
                let tally = Tally::open(&signed, pinned).map_err(|_| DamagedLog)?;
                desk.begin(signed, tally, records, now)?;
            }
        }
        Ok(desk)
    }

    fn begin(
        &mut self,
        signed: Signed<Question>,
        tally: Tally,
        records: &Records,
        now: Time,
    ) -> Result<(), DamagedLog> {
        let name = tally.name();
        let prefix = [[TALLY].as_slice(), name.as_bytes()].concat();
        let ours = records.iter().filter(|(key, _)| key.starts_with(&prefix)).cloned();
        let ended = records.iter().any(|(key, _)| *key == prefix);
        let counter = Counter::restore(tally.clone(), &self.pinned, Node::ALONE, ours)?;
        let told = ended && now >= tally.closes;
        self.counts.insert(name, Counting { signed, tally, counter, told });
        Ok(())
    }

    /// Counts for a question from now on.
    ///
    /// # Errors
    /// [`BadTally`].
    pub fn ask(&mut self, signed: Signed<Question>, now: Time) -> Result<Step<()>, BadTally> {
        let tally = Tally::open(&signed, &self.pinned)?;
        let name = tally.name();
        if self.counts.contains_key(&name) || now >= tally.closes {
            return Ok(Step::new(Vec::new(), ()));
        }
        let value = postcard::to_allocvec(&signed).unwrap_or_default();
        // Of nothing, nothing is damaged.
        let _ = self.begin(signed, tally, &Vec::new(), now);
        Ok(Step::new(vec![put(record(&name), value)], ()))
    }

    /// Questions that are not over.
    #[must_use]
    pub fn questions(&self, now: Time) -> Vec<Signed<Question>> {
        let open = self.counts.values().filter(|count| now < count.tally.closes);
        open.map(|count| count.signed.clone()).collect()
    }

    /// Counts a showing, once.
    ///
    /// # Errors
    /// [`NotCounted`].
    pub fn take(
        &mut self,
        name: &Digest,
        showing: &[u8],
        (aggregator, now): (&Aggregator, Time),
    ) -> Result<Step<()>, NotCounted> {
        let Counting { tally, counter, .. } =
            self.counts.get_mut(name).ok_or(NotCounted::Unknown)?;
        if aggregator.sits_out(tally.end) {
            return Err(NotCounted::SitsOut);
        }
        Ok(counter.take(now, showing, aggregator.verifier())?)
    }

    /// Ends those that are over; the rows that are to be logged with it.
    pub fn poll(&mut self, now: Time) -> (Step<()>, Vec<Logged>) {
        let (mut steps, mut lines) = (Vec::new(), Vec::new());
        for (name, count) in &mut self.counts {
            if count.told || now < count.tally.closes {
                continue;
            }
            count.told = true;
            steps.push(count.counter.poll(now));
            let row = Row::of_count(&count.tally, &count.counter, now);
            // A row is plain data.
            let value = serde_json::to_vec(&row).unwrap_or_default();
            let (key, timestamp) = (name.as_bytes().to_vec(), count.tally.end.0);
            lines.push(Logged { key, value, timestamp });
        }
        (Step::join(steps).then(|_| Step::new(Vec::new(), ())), lines)
    }

    /// Forgets counts that were over so long ago, in microseconds. Their rows stay in the log.
    pub fn prune(&mut self, now: Time, kept: u64) -> Step<()> {
        let is_over = |_: &Digest, count: &mut Counting| {
            count.told && now.0 >= count.tally.closes.0.saturating_add(kept)
        };
        let mut steps = Vec::new();
        for (name, count) in self.counts.extract_if(.., is_over) {
            let question = Change { key: record(&name), value: None };
            steps.push(count.counter.forget());
            steps.push(Step::new(vec![question], ()));
        }
        Step::join(steps).then(|_| Step::new(Vec::new(), ()))
    }

    /// Rows of all of them.
    #[must_use]
    pub fn rows(&self, now: Time) -> Vec<Row> {
        let row = |count: &Counting| Row::of_count(&count.tally, &count.counter, now);
        self.counts.values().map(row).collect()
    }
}
