//! The aggregator: takes what the smoothers release, checks all of it, closes the
//! aggregate and publishes what the smoothers have opened.
//!
//! Nodes share aggregates by their names, so that no two keep tags of one.

mod examining;

pub use examining::{Examined, Work};

use crate::closing::{Inclusion, Trees};
use crate::configuration::{Pinned, SmootherId};
use crate::definition::{Agreed, BadDefinition, Definition};
use crate::endorsed::Endorsed;
use crate::messages::{Closing, Entry, Outcome, Reason, Release, Shown, decode, encode};
use crate::refused::{NotGathered, NotHeard, NotRestored};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLog, Step, put};
use alpheus_crypto::seal::{Sealed, SealingKey};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which of the aggregates are this node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// This node, from 0.
    pub index: u64,
    /// All nodes.
    pub of: u64,
}

impl Node {
    /// The only one.
    pub const ALONE: Self = Self { index: 0, of: 1 };

    /// Whether an aggregate is this node's.
    #[must_use]
    pub fn has(&self, aggregate: &Digest) -> bool {
        let head = aggregate.as_bytes().first_chunk().map_or(0, |head| u64::from_be_bytes(*head));
        head.checked_rem(self.of) == Some(self.index)
    }
}

/// Who the aggregator is.
pub struct Identity {
    /// Its signing key.
    pub key: SigningKey,
    /// What deposits are sealed for.
    pub sealing: SealingKey,
    /// The key of the upload credential.
    pub uploads: IssuerKey,
}

/// What opens and checks uploads: shared by threads.
pub(crate) struct Keys {
    sealing: SealingKey,
    verifier: Verifier,
}

/// An aggregator's node.
pub struct Aggregator {
    pinned: Pinned,
    node: Node,
    key: SigningKey,
    keys: Arc<Keys>,
    gathering: BTreeMap<Digest, Gathering>,
}

/// One aggregate.
struct Gathering {
    agreed: Agreed,
    /// The ledger that each smoother has given, by its digest.
    given: BTreeMap<SmootherId, Digest>,
    ledgers: BTreeMap<Digest, BTreeMap<u32, Entry>>,
    /// What is sealed for an entry: more than one if smoothers give different bytes.
    sealed: BTreeMap<Entry, Vec<Sealed>>,
    closed: Option<Closed>,
    /// Of this run: what is shown to smoothers.
    shown: Option<Arc<Vec<Shown>>>,
    outcomes: BTreeMap<SmootherId, Outcome>,
    published: Option<Outcome>,
}

/// A closing, and what it is about.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Closed {
    closing: Signed<Closing>,
    entries: BTreeMap<u32, Entry>,
    rejected: Vec<u32>,
}

const AGGREGATE: u8 = b'a';
const DEFINITION: u8 = b'd';
const CLOSING: u8 = b'c';
const PUBLISHED: u8 = b'p';

fn record(name: &Digest, kind: u8, value: Vec<u8>) -> Change {
    put([[AGGREGATE].as_slice(), name.as_bytes(), &[kind]].concat(), value)
}

impl Aggregator {
    /// An aggregator as its ledger has it.
    ///
    /// # Errors
    /// [`NotRestored`].
    pub fn restore(
        pinned: &Pinned,
        identity: Identity,
        node: Node,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<Self, NotRestored> {
        let Identity { key, sealing, uploads } = identity;
        if key.verifying_key() != pinned.aggregator || sealing.public() != pinned.sealing {
            return Err(NotRestored::OtherKey);
        }
        let verifier = Verifier::new(uploads, pinned.uploads().clone());
        let verifier = verifier.map_err(|_| NotRestored::OtherKey)?;
        let keys = Arc::new(Keys { sealing, verifier });
        let (pinned, gathering) = (pinned.clone(), BTreeMap::new());
        let mut aggregator = Self { pinned, node, key, keys, gathering };
        let mut later = Vec::new();
        for (key, value) in records {
            let rest = key.strip_prefix(&[AGGREGATE]).ok_or(DamagedLog)?;
            let (name, kind) = rest.split_first_chunk().ok_or(DamagedLog)?;
            match kind {
                [DEFINITION] => {
                    let signed = decode(&value).ok_or(DamagedLog)?;
                    let _ = aggregator.learn(&signed).map_err(|_| DamagedLog)?;
                }
                [kind] => later.push((Digest(*name), *kind, value)),
                _ => return Err(DamagedLog.into()),
            }
        }
        for (name, kind, value) in later {
            let gathering = aggregator.gathering.get_mut(&name).ok_or(DamagedLog)?;
            match kind {
                CLOSING => gathering.closed = Some(decode(&value).ok_or(DamagedLog)?),
                PUBLISHED => gathering.published = Some(decode(&value).ok_or(DamagedLog)?),
                _ => return Err(DamagedLog.into()),
            }
        }
        Ok(aggregator)
    }

    /// Works by a definition that a quorum has signed from now on.
    ///
    /// # Errors
    /// [`BadDefinition`].
    pub fn learn(&mut self, signed: &Endorsed<Definition>) -> Result<Step<Agreed>, BadDefinition> {
        let agreed = Agreed::open(signed, &self.pinned)?;
        let name = agreed.name();
        self.gathering.entry(name).or_insert_with(|| Gathering {
            agreed: agreed.clone(),
            given: BTreeMap::new(),
            ledgers: BTreeMap::new(),
            sealed: BTreeMap::new(),
            closed: None,
            shown: None,
            outcomes: BTreeMap::new(),
            published: None,
        });
        Ok(Step::new(vec![record(&name, DEFINITION, encode(signed))], agreed))
    }

    fn of(&mut self, name: &Digest) -> Result<&mut Gathering, NotGathered> {
        if !self.node.has(name) {
            return Err(NotGathered::Elsewhere);
        }
        self.gathering.get_mut(name).ok_or(NotGathered::Unknown)
    }

    /// What checks showings of upload credentials, for pure counts.
    #[must_use]
    pub fn verifier(&self) -> &Verifier {
        &self.keys.verifier
    }

    /// Takes what a smoother releases. Says whether a quorum has given the same ledger.
    ///
    /// # Errors
    /// [`NotGathered`].
    pub fn take(&mut self, by: SmootherId, release: Release) -> Result<bool, NotGathered> {
        let quorum = self.pinned.quorum();
        let gathering = self.of(&release.aggregate)?;
        let (name, slots) = (gathering.agreed.name(), gathering.agreed.slots);
        let ordered = release.listed.windows(2).all(|pair| match pair {
            [a, b] => a.entry.slot < b.entry.slot,
            _ => true,
        });
        let ours = |entry: &Entry| entry.aggregate == name && entry.slot < slots;
        if !ordered || !release.listed.iter().all(|listed| ours(&listed.entry)) {
            return Err(NotGathered::Malformed);
        }
        let entries: BTreeMap<u32, Entry> =
            release.listed.iter().map(|listed| (listed.entry.slot, listed.entry)).collect();
        for listed in release.listed {
            let Some(sealed) = listed.sealed else { continue };
            let known = gathering.sealed.entry(listed.entry).or_default();
            if !known.contains(&sealed) {
                known.push(sealed);
            }
        }
        let root = Trees::new(slots, &entries, |_| true).ledger();
        gathering.ledgers.insert(root, entries);
        gathering.given.insert(by, root);
        Ok(gathering.ledger(quorum).is_some())
    }

    /// What is to be checked, once a quorum has given the same ledger: it runs anywhere.
    /// With `hasty` what nobody has given counts as rejected.
    ///
    /// # Errors
    /// [`NotGathered`].
    pub fn work(&mut self, name: &Digest, hasty: bool) -> Result<Work, NotGathered> {
        let (quorum, keys, pinned) =
            (self.pinned.quorum(), Arc::clone(&self.keys), self.pinned.clone());
        let gathering = self.of(name)?;
        if gathering.published.is_some() {
            return Err(NotGathered::Ended);
        }
        let entries = gathering.ledger(quorum).ok_or(NotGathered::NoLedger)?;
        let sealed = |entry: &Entry| gathering.sealed.get(entry).cloned().unwrap_or_default();
        let all: Vec<(Entry, Vec<Sealed>)> =
            entries.values().map(|entry| (*entry, sealed(entry))).collect();
        if !hasty && all.iter().any(|(_, sealed)| sealed.is_empty()) {
            return Err(NotGathered::Lacking);
        }
        Ok(Work::new(keys, &pinned, gathering.agreed.clone(), all))
    }

    /// Closes an aggregate over what was examined. The closing is durable before it leaves, and
    /// there is one: after a crash what is examined again gives the same.
    ///
    /// # Errors
    /// [`NotGathered`].
    pub fn close(&mut self, examined: Examined) -> Result<Step<Signed<Closing>>, NotGathered> {
        let Examined { aggregate, entries, shown, rejected } = examined;
        let quorum = self.pinned.quorum();
        let gathering = self.of(&aggregate)?;
        if gathering.ledger(quorum) != Some(&entries) {
            return Err(NotGathered::NoLedger);
        }
        gathering.shown = Some(Arc::new(shown));
        if let Some(closed) = &gathering.closed {
            let change = record(&aggregate, CLOSING, encode(closed));
            return Ok(Step::new(vec![change], closed.closing.clone()));
        }
        let trees = Trees::new(gathering.agreed.slots, &entries, |slot| !rejected.contains(&slot));
        let (ledger, tuples) = (trees.ledger(), trees.tuples());
        let closing = Closing { aggregate, ledger, tuples, rejected: rejected.clone() };
        let closing = Signed::new(&closing, &self.key);
        let closed = Closed { closing: closing.clone(), entries, rejected };
        let change = record(&aggregate, CLOSING, encode(&closed));
        if let Some(gathering) = self.gathering.get_mut(&aggregate) {
            gathering.closed = Some(closed);
        }
        Ok(Step::new(vec![change], closing))
    }

    /// The tuples that count, for each smoother to check; none before the closing, or after
    /// a restart before it was examined again.
    #[must_use]
    pub fn shown(&self, name: &Digest) -> Option<Arc<Vec<Shown>>> {
        let gathering = self.gathering.get(name)?;
        gathering.closed.as_ref()?;
        gathering.shown.clone()
    }

    /// The closing, for everybody.
    #[must_use]
    pub fn closing(&self, name: &Digest) -> Option<Signed<Closing>> {
        self.gathering.get(name)?.closed.as_ref().map(|closed| closed.closing.clone())
    }

    /// The proof that a slot's entry is counted.
    #[must_use]
    pub fn inclusion(&self, name: &Digest, slot: u32) -> Option<Inclusion> {
        let gathering = self.gathering.get(name)?;
        let Closed { entries, rejected, .. } = gathering.closed.as_ref()?;
        let counts = |slot| !rejected.contains(&slot);
        Trees::new(gathering.agreed.slots, entries, counts).prove(slot)
    }

    /// Takes how an aggregate ended, as a smoother says. t that say the same are published.
    ///
    /// # Errors
    /// [`NotHeard`].
    pub fn hear(
        &mut self,
        by: SmootherId,
        outcome: &Signed<Outcome>,
    ) -> Result<Step<Option<Outcome>>, NotHeard> {
        let key = self.pinned.key(by).ok_or(NotHeard::Signature(by))?;
        let outcome = outcome.open(key).map_err(|_| NotHeard::Signature(by))?.into_inner();
        let threshold = usize::from(self.pinned.threshold);
        let name = outcome.aggregate;
        let gathering = self.of(&name).map_err(|_| NotHeard::Unknown)?;
        if gathering.outcomes.insert(by, outcome).is_some_and(|before| before != outcome) {
            return Err(NotHeard::Equivocation(by));
        }
        let alike = gathering.outcomes.values().filter(|other| **other == outcome).count();
        // Some smoothers may have run out of time while others have a result: that stands.
        let better =
            gathering.published.is_none_or(|known| known.result.is_err() && outcome.result.is_ok());
        if alike < threshold || !better {
            return Ok(Step::new(Vec::new(), gathering.published));
        }
        gathering.published = Some(outcome);
        gathering.shown = None;
        gathering.sealed.clear();
        Ok(Step::new(vec![record(&name, PUBLISHED, encode(&outcome))], Some(outcome)))
    }

    /// How an aggregate ended.
    #[must_use]
    pub fn published(&self, name: &Digest) -> Option<Outcome> {
        self.gathering.get(name)?.published
    }

    /// All aggregates of this node.
    pub fn aggregates(&self) -> impl Iterator<Item = &Agreed> {
        self.gathering
            .values()
            .map(|gathering| &gathering.agreed)
            .filter(|a| self.node.has(&a.name()))
    }

    /// Aggregates that ended without a word of the smoothers: their deadline is over.
    pub fn poll(&mut self, now: Time) -> Step<()> {
        let mut changes = Vec::new();
        for (name, gathering) in &mut self.gathering {
            if gathering.published.is_none() && now >= gathering.agreed.deadline() {
                let reason =
                    if gathering.closed.is_some() { Reason::Late } else { Reason::NotFilled };
                let outcome = Outcome { aggregate: *name, result: Err(reason) };
                gathering.published = Some(outcome);
                changes.push(record(name, PUBLISHED, encode(&outcome)));
            }
        }
        Step::new(changes, ())
    }
}

impl Gathering {
    /// The ledger that so many smoothers have given alike.
    fn ledger(&self, quorum: usize) -> Option<&BTreeMap<u32, Entry>> {
        let alike =
            |root: &&Digest| self.given.values().filter(|given| given == root).count() >= quorum;
        self.ledgers.keys().find(alike).and_then(|root| self.ledgers.get(root))
    }
}
