//! The aggregator: takes what the smoothers release, checks all of it, closes the
//! aggregate and publishes what the smoothers have opened.
//!
//! Nodes share aggregates by their names, so that no two keep tags of one.

mod examining;

pub use examining::{Examined, Work};

use crate::closing::{Leaves, Trees};
use crate::configuration::{Pinned, SmootherId};
use crate::definition::{Agreed, BadDefinition, Definition};
use crate::endorsed::Endorsed;
use crate::messages::{
    Closing, Entry, Listed, Outcome, Reason, Release, Shown, decode, encode, sealed_digest,
};
use crate::refused::{NotGathered, NotHeard, NotRestored};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::schedule::Time;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLog, Step, put};
use alpheus_crypto::seal::{Sealed, SealingKey};
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed::Signed;
use std::collections::{BTreeMap, BTreeSet};
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
    /// It may have forgotten closings of aggregates that were released until then.
    sits_out: Option<Time>,
}

/// One aggregate.
struct Gathering {
    agreed: Agreed,
    /// The ledger that each smoother has given last.
    given: BTreeMap<SmootherId, BTreeSet<Entry>>,
    /// What is sealed for an entry, which names it.
    sealed: BTreeMap<Entry, Sealed>,
    closed: Option<Closed>,
    leaves: Option<Leaves>,
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
const SITS_OUT: u8 = b'o';
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
        let mut aggregator = Self { pinned, node, key, keys, gathering, sits_out: None };
        let mut later = Vec::new();
        for (key, value) in records {
            if key == [SITS_OUT] {
                let until = value.try_into().map_err(|_| DamagedLog)?;
                aggregator.sits_out = Some(Time(u64::from_be_bytes(until)));
                continue;
            }
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
            sealed: BTreeMap::new(),
            closed: None,
            leaves: None,
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

    /// Takes what a smoother releases. Says whether a quorum has given theirs.
    ///
    /// # Errors
    /// [`NotGathered`].
    pub fn take(&mut self, by: SmootherId, release: Release) -> Result<bool, NotGathered> {
        let (quorum, known) = (self.pinned.quorum(), self.pinned.key(by).is_some());
        let gathering = self.of(&release.aggregate)?;
        let (name, slots) = (gathering.agreed.name(), gathering.agreed.slots);
        let slot = |listed: &Listed| listed.entry.slot;
        let ordered = release.listed.is_sorted_by(|a, b| slot(a) < slot(b));
        let ours = |listed: &Listed| listed.entry.aggregate == name && slot(listed) < slots;
        if !known || !ordered || !release.listed.iter().all(ours) {
            return Err(NotGathered::Malformed);
        }
        let entries = release.listed.iter().map(|listed| listed.entry).collect();
        for Listed { entry, sealed } in release.listed {
            if sealed_digest(&sealed) == entry.sealed {
                gathering.sealed.insert(entry, sealed);
            }
        }
        gathering.given.insert(by, entries);
        gathering.forget_unlisted();
        Ok(gathering.given.len() >= quorum)
    }

    /// What is to be checked, once a quorum has given their ledgers: it runs anywhere. Entries that t
    /// smoothers list are certified at one that keeps to the protocol. After the closing, it is
    /// what was closed.
    ///
    /// # Errors
    /// [`NotGathered`].
    pub fn work(&mut self, name: &Digest) -> Result<Work, NotGathered> {
        let (keys, pinned) = (Arc::clone(&self.keys), self.pinned.clone());
        let sits_out = self.sits_out;
        let gathering = self.of(name)?;
        if gathering.published.is_some() {
            return Err(NotGathered::Ended);
        }
        if gathering.closed.is_none() && Some(gathering.agreed.release()) <= sits_out {
            return Err(NotGathered::SitsOut);
        }
        let entries = match &gathering.closed {
            Some(closed) => closed.entries.values().copied().collect(),
            None => gathering.listed(&pinned).ok_or(NotGathered::NoLedger)?,
        };
        let sealed = |entry: Entry| {
            let sealed = gathering.sealed.get(&entry).ok_or(NotGathered::Lacking)?;
            Ok((entry, sealed.clone()))
        };
        let all = entries.into_iter().map(sealed).collect::<Result<_, NotGathered>>()?;
        Ok(Work::new(keys, &pinned, gathering.agreed.clone(), all))
    }

    /// Closes an aggregate over what was examined. The closing is durable before it leaves, and
    /// there is one: what is examined after it is only shown.
    ///
    /// # Errors
    /// [`NotGathered`].
    pub fn close(&mut self, examined: Examined) -> Result<Step<Signed<Closing>>, NotGathered> {
        let Examined { aggregate, entries, mut shown, rejected } = examined;
        let gathering = self.of(&aggregate)?;
        let slots = gathering.agreed.slots;
        if let Some(closed) = &gathering.closed {
            if entries != closed.entries {
                return Err(NotGathered::Closed);
            }
            shown.retain(|shown| !closed.rejected.contains(&shown.slot));
            gathering.shown = Some(Arc::new(shown));
            let change = record(&aggregate, CLOSING, encode(closed));
            return Ok(Step::new(vec![change], closed.closing.clone()));
        }
        let counts: BTreeSet<u32> = shown.iter().map(|shown| shown.slot).collect();
        let trees = Trees::new(slots, &entries, |slot| counts.contains(&slot));
        let (ledger, tuples) = (trees.ledger(), trees.tuples());
        let empty = (0..slots).filter(|slot| !entries.contains_key(slot)).collect();
        let closing = Closing { aggregate, ledger, tuples, empty, rejected: rejected.clone() };
        let closing = Signed::new(&closing, &self.key);
        let closed = Closed { closing: closing.clone(), entries, rejected };
        let change = record(&aggregate, CLOSING, encode(&closed));
        if let Some(gathering) = self.gathering.get_mut(&aggregate) {
            gathering.closed = Some(closed);
            gathering.leaves = Some(trees.leaves().clone());
            gathering.shown = Some(Arc::new(shown));
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

    /// What the closing counts, for everybody.
    #[must_use]
    pub fn leaves(&mut self, name: &Digest) -> Option<Leaves> {
        let gathering = self.gathering.get_mut(name)?;
        let Closed { entries, rejected, .. } = gathering.closed.as_ref()?;
        let leaves = gathering.leaves.get_or_insert_with(|| {
            let rejected: BTreeSet<u32> = rejected.iter().copied().collect();
            let counts = |slot: u32| !rejected.contains(&slot);
            Trees::new(gathering.agreed.slots, entries, counts).leaves().clone()
        });
        Some(leaves.clone())
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
        if *gathering.outcomes.entry(by).or_insert(outcome) != outcome {
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

    /// Its ledger is an old copy: it may have closed what was released until now, and forgotten it.
    /// It closes none of that again, which would be another set; smoothers say how it ended.
    pub fn sit_out(&mut self, now: Time) -> Step<()> {
        self.sits_out = self.sits_out.max(Some(now));
        Step::new(vec![put(vec![SITS_OUT], now.0.to_be_bytes().to_vec())], ())
    }

    /// Whether it closes nothing that was released at a time.
    #[must_use]
    pub fn sits_out(&self, release: Time) -> bool {
        Some(release) <= self.sits_out
    }

    /// The deployment.
    #[must_use]
    pub fn pinned(&self) -> &Pinned {
        &self.pinned
    }

    /// Whether it works by a definition.
    #[must_use]
    pub fn knows(&self, name: &Digest) -> bool {
        self.gathering.contains_key(name)
    }

    /// How many slots of a closed aggregate do not count.
    #[must_use]
    pub fn missing(&self, name: &Digest) -> Option<usize> {
        let gathering = self.gathering.get(name)?;
        let Closed { entries, rejected, .. } = gathering.closed.as_ref()?;
        let empty = (gathering.agreed.slots as usize).saturating_sub(entries.len());
        Some(empty + rejected.len())
    }

    /// All aggregates of this node.
    pub fn aggregates(&self) -> impl Iterator<Item = &Agreed> {
        self.gathering
            .values()
            .map(|gathering| &gathering.agreed)
            .filter(|a| self.node.has(&a.name()))
    }

    /// Aggregates that ended without a word of the smoothers: their deadline is over, and as much
    /// time again, in which smoothers are asked for their outcomes.
    pub fn poll(&mut self, now: Time) -> Step<()> {
        let mut changes = Vec::new();
        for (name, gathering) in &mut self.gathering {
            let patience = gathering.agreed.after.patience;
            let late = gathering.agreed.deadline().0.saturating_add(patience);
            if gathering.published.is_none() && now.0 >= late {
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

impl Aggregator {
    /// Forgets aggregates that ended and whose deadline is so long over, in microseconds: no client
    /// asks any more whether its entry counts. What was published is the caller's to keep.
    pub fn prune(&mut self, now: Time, kept: u64) -> Step<()> {
        let over = self.gathering.extract_if(.., |_, gathering| {
            let end = gathering.agreed.deadline().0.saturating_add(kept);
            gathering.published.is_some() && now.0 >= end
        });
        let gone = |name: &Digest, kind| {
            let key = [[AGGREGATE].as_slice(), name.as_bytes(), &[kind]].concat();
            Change { key, value: None }
        };
        let changes = over
            .flat_map(|(name, _)| [DEFINITION, CLOSING, PUBLISHED].map(|kind| gone(&name, kind)));
        Step::new(changes.collect(), ())
    }
}

impl Gathering {
    /// Entries that t smoothers list, once a quorum has listed theirs.
    fn listed(&self, pinned: &Pinned) -> Option<Vec<Entry>> {
        if self.given.len() < pinned.quorum() {
            return None;
        }
        let mut times: BTreeMap<&Entry, usize> = BTreeMap::new();
        self.given.values().flatten().for_each(|entry| *times.entry(entry).or_default() += 1);
        let enough = |(_, times): &(&Entry, usize)| *times >= usize::from(pinned.threshold);
        Some(times.into_iter().filter(enough).map(|(entry, _)| *entry).collect())
    }

    /// Keeps what is sealed for entries that somebody lists, and for those that were closed.
    fn forget_unlisted(&mut self) {
        let Self { given, sealed, closed, .. } = self;
        let closed = closed.as_ref();
        sealed.retain(|entry, _| {
            let listed = given.values().any(|entries| entries.contains(entry));
            listed || closed.is_some_and(|closed| closed.entries.get(&entry.slot) == Some(entry))
        });
    }
}
