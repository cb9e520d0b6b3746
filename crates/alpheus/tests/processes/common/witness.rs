//! Looks into stores after each crash: what was released once is released once.

use alpheus_crypto::hash::Digest;
use alpheus_encrypted_stream::ledger::{LogEvent, Record, StampedRecord};
use alpheus_node::ledger::scan_all;
use alpheus_policy::ids::PlanId;
use alpheus_stream_runtime::results::Row;
use alpheus_stream_runtime::storage::Topics;
use alpheus_time::Timestamp;
use alpheus_transport::{Limits, Offset, Store, local};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Site = (Vec<u8>, PlanId, Timestamp);

/// Remembers every token, opening and result that ever was durable.
#[derive(Default)]
pub(crate) struct Witness {
    tokens: BTreeMap<Site, (Digest, Digest)>,
    openings: BTreeMap<Site, (Digest, Digest)>,
    rows: BTreeMap<(String, u64), Row>,
}

impl Witness {
    /// Looks into a state folder that no process uses.
    pub(crate) fn look(&mut self, state: &Path, about: &str) {
        let [private, service] = ["private", "service"].map(|name| {
            let folder = state.join(name);
            folder.is_dir().then(|| local::open(&folder, &local::Options::default()).unwrap())
        });
        private.iter().for_each(|store| self.ledgers(store.as_ref(), about));
        service.iter().for_each(|store| self.results(store.as_ref(), about));
    }

    /// No controller has given two tokens or openings for one window.
    pub(crate) fn ledgers(&mut self, private: &dyn Store, about: &str) {
        let space = Topics::new(1).unwrap().ledger;
        private.ensure_space(&space).unwrap();
        let mut released = BTreeSet::new();
        for (key, value) in scan_all(private, &space, b"c").unwrap() {
            let controller = key[..33].to_vec();
            match StampedRecord::read(&value).unwrap().record {
                Record::Spent(spent) => {
                    let place = (controller, spent.plan, spent.window.start);
                    same(&mut self.tokens, place, (spent.membership, spent.answer.digest()), about);
                }
                Record::Opened { plan, window, opening_set, answer } => {
                    let place = (controller, plan, window.start);
                    same(&mut self.openings, place, (opening_set, answer.digest()), about);
                }
                Record::Log(line) => {
                    if let LogEvent::Released { plan, window, .. } = line.event {
                        let first = released.insert((controller, plan, window.start));
                        assert!(first, "{about}: an owner's log has {window:?} twice");
                    }
                }
                _ => {}
            }
        }
    }

    /// No window has two results, and none changes.
    pub(crate) fn results(&mut self, service: &dyn Store, about: &str) {
        let topic = Topics::new(1).unwrap().results;
        if service.partitions(&topic).unwrap().is_none() {
            return;
        }
        let (mut from, mut seen) = (Offset(0), BTreeSet::new());
        loop {
            let fetched = service.read(&topic.partition(0), from, Limits::default()).unwrap();
            if fetched.next_offset() == from {
                break;
            }
            from = fetched.next_offset();
            for record in fetched {
                let row: Row = serde_json::from_slice(&record.value).unwrap();
                let window = (row.query.clone(), row.window_start);
                assert!(seen.insert(window.clone()), "{about}: two results: {row:?}");
                same(&mut self.rows, window, row, about);
            }
        }
        let lost = self.rows.keys().find(|window| !seen.contains(*window));
        assert!(lost.is_none(), "{about}: a result was lost: {lost:?}");
    }

    /// Tokens that were seen.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens.len()
    }
}

fn same<K: Ord, V: PartialEq>(known: &mut BTreeMap<K, V>, key: K, value: V, about: &str) {
    if let Some(before) = known.get(&key) {
        assert!(*before == value, "{about}: a window was released twice, differently");
        return;
    }
    known.insert(key, value);
}
