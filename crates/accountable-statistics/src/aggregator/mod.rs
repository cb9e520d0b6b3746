//! The aggregator: collects what the smoothers (aggregation nodes) release, checks it, closes the
//! aggregate and publishes what the smoothers have opened.
//!
//! Nodes share aggregates by their names, so no two nodes store tags of one.

mod ends;
mod examination;

pub use examination::{Examination, ExaminationReport};

use crate::closing::{Leaves, Trees};
use crate::configuration::{PinnedConfiguration, SmootherId};
use crate::definition::{AgreedDefinition, Definition, DefinitionError};
use crate::disclosure::DisclosedUpload;
use crate::endorsement::Endorsed;
use crate::messages::{
    Closing, ClosingTuple, Entry, NoResultError, Outcome, Release, ReleasedSlot, SealedUpload,
    decode, encode, sealed_digest,
};
use crate::role_error::{AggregatorError, RestoreError};
use alpheus_anonymous_credential::keys::IssuerKey;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::{Change, DamagedLedgerError, Step, put};
use alpheus_crypto::onetime::RecipientKey;
use alpheus_crypto::sign::SigningKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_time::Timestamp;
use ends::{EndRecord, SignedOutcome};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// Which aggregates belong to this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// This node, from 0.
    pub index: u64,
    /// The number of nodes.
    pub of: u64,
}

impl Node {
    /// The only node.
    pub const ALONE: Self = Self { index: 0, of: 1 };

    /// Whether an aggregate belongs to this node.
    #[must_use]
    pub fn has(&self, aggregate: &Digest) -> bool {
        let head = aggregate.as_bytes().first_chunk().map_or(0, |head| u64::from_be_bytes(*head));
        head.checked_rem(self.of) == Some(self.index)
    }
}

/// The aggregator's keys.
pub struct Identity {
    /// Its signing key.
    pub key: SigningKey,
    /// Opens deposits.
    pub sealing: RecipientKey,
    /// The issuer key of the upload credential.
    pub uploads: IssuerKey,
}

/// Opens and checks uploads; shared by threads.
pub(crate) struct Keys {
    sealing: RecipientKey,
    verifier: Verifier,
}

/// An aggregator's node.
pub struct Aggregator {
    pinned: PinnedConfiguration,
    node: Node,
    key: SigningKey,
    keys: Arc<Keys>,
    aggregates: BTreeMap<Digest, AggregateState>,
    /// Those whose outcome has changed, until they are taken.
    ended: Vec<Digest>,
    /// It may have forgotten closings of aggregates that were released until then.
    sits_out: Option<Timestamp>,
}

/// The state of one aggregate.
struct AggregateState {
    definition: AgreedDefinition,
    signed: Endorsed<Definition>,
    /// The ledger that each smoother has released last.
    ledgers: BTreeMap<SmootherId, BTreeSet<Entry>>,
    /// Sealed uploads by the entry that names them.
    sealed: BTreeMap<Entry, SealedUpload>,
    closing: Option<ClosingRecord>,
    leaves: Option<Leaves>,
    /// Of this run: what smoothers are shown.
    shown: Option<Arc<ShownUploads>>,
    outcomes: BTreeMap<SmootherId, SignedOutcome>,
    outcome: Option<Outcome>,
}

/// What smoothers are shown of a closing.
#[derive(Default)]
pub struct ShownUploads {
    /// The tuples that count.
    pub tuples: Vec<ClosingTuple>,
    /// What proves that the others do not.
    pub disclosed: Vec<DisclosedUpload>,
}

/// A closing and what it covers.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct ClosingRecord {
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
    /// An aggregator from its ledger.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn restore(
        pinned: &PinnedConfiguration,
        identity: Identity,
        node: Node,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<Self, RestoreError> {
        let Identity { key, sealing, uploads } = identity;
        if key.verifying_key() != pinned.aggregator || *sealing.public() != pinned.sealing {
            return Err(RestoreError::OtherKey);
        }
        let verifier = Verifier::new(uploads, pinned.uploads().clone());
        let verifier = verifier.map_err(|_| RestoreError::OtherKey)?;
        let keys = Arc::new(Keys { sealing, verifier });
        let (pinned, aggregates) = (pinned.clone(), BTreeMap::new());
        let ended = Vec::new();
        let mut aggregator = Self { pinned, node, key, keys, aggregates, ended, sits_out: None };
        let mut later = Vec::new();
        for (key, value) in records {
            if key == [SITS_OUT] {
                let until = value.try_into().map_err(|_| DamagedLedgerError)?;
                aggregator.sits_out = Some(Timestamp(u64::from_be_bytes(until)));
                continue;
            }
            let rest = key.strip_prefix(&[AGGREGATE]).ok_or(DamagedLedgerError)?;
            let (name, kind) = rest.split_first_chunk().ok_or(DamagedLedgerError)?;
            match kind {
                [DEFINITION] => {
                    let signed = decode(&value).ok_or(DamagedLedgerError)?;
                    let _ =
                        aggregator.handle_definition(&signed).map_err(|_| DamagedLedgerError)?;
                }
                [kind] => later.push((Digest(*name), *kind, value)),
                _ => return Err(DamagedLedgerError.into()),
            }
        }
        for (name, kind, value) in later {
            let state = aggregator.aggregates.get_mut(&name).ok_or(DamagedLedgerError)?;
            match kind {
                CLOSING => state.closing = Some(decode(&value).ok_or(DamagedLedgerError)?),
                PUBLISHED => {
                    let end: EndRecord = decode(&value).ok_or(DamagedLedgerError)?;
                    state.restore_end(end, &aggregator.pinned);
                }
                _ => return Err(DamagedLedgerError.into()),
            }
        }
        Ok(aggregator)
    }

    /// Adopts a definition that a quorum has signed.
    ///
    /// # Errors
    /// [`DefinitionError`].
    pub fn handle_definition(
        &mut self,
        signed: &Endorsed<Definition>,
    ) -> Result<Step<AgreedDefinition>, DefinitionError> {
        let agreed = AgreedDefinition::open(signed, &self.pinned)?;
        let name = agreed.name();
        self.aggregates.entry(name).or_insert_with(|| AggregateState {
            definition: agreed.clone(),
            signed: signed.clone(),
            ledgers: BTreeMap::new(),
            sealed: BTreeMap::new(),
            closing: None,
            leaves: None,
            shown: None,
            outcomes: BTreeMap::new(),
            outcome: None,
        });
        Ok(Step::new(vec![record(&name, DEFINITION, encode(signed))], agreed))
    }

    fn state_of(&mut self, name: &Digest) -> Result<&mut AggregateState, AggregatorError> {
        if !self.node.has(name) {
            return Err(AggregatorError::Elsewhere);
        }
        self.aggregates.get_mut(name).ok_or(AggregatorError::Unknown)
    }

    /// The verifier of upload credentials, for pure counts.
    #[must_use]
    pub fn verifier(&self) -> &Verifier {
        &self.keys.verifier
    }

    /// Collects a smoother's release. Returns whether a quorum has released.
    ///
    /// # Errors
    /// [`AggregatorError`].
    pub fn handle_release(
        &mut self,
        release: Release,
        by: SmootherId,
    ) -> Result<bool, AggregatorError> {
        let (quorum, known) = (self.pinned.quorum(), self.pinned.key(by).is_some());
        let state = self.state_of(&release.aggregate)?;
        if state.outcome.is_some() {
            return Err(AggregatorError::Ended);
        }
        let (name, slots) = (state.definition.name(), state.definition.slots);
        let length = SealedUpload::length(&state.definition);
        let slot = |released: &ReleasedSlot| released.entry.slot;
        let ordered = release.slots.is_sorted_by(|a, b| slot(a) < slot(b));
        let ours = |released: &ReleasedSlot| {
            released.entry.aggregate == name
                && slot(released) < slots
                && released.sealed.as_bytes().len() == length
        };
        if !known || !ordered || !release.slots.iter().all(ours) {
            return Err(AggregatorError::Malformed);
        }
        let entries = release.slots.iter().map(|released| released.entry).collect();
        for ReleasedSlot { entry, sealed } in release.slots {
            if sealed_digest(&sealed) == entry.sealed {
                state.sealed.insert(entry, sealed);
            }
        }
        state.ledgers.insert(by, entries);
        state.drop_unlisted();
        Ok(state.ledgers.len() >= quorum)
    }

    /// The examination to run, on any thread, once a quorum has released its ledgers. Entries that
    /// t smoothers list are certified at an honest one. After the closing, it covers what was
    /// closed.
    ///
    /// # Errors
    /// [`AggregatorError`].
    pub fn examination(&mut self, name: &Digest) -> Result<Examination, AggregatorError> {
        let (keys, pinned) = (Arc::clone(&self.keys), self.pinned.clone());
        let sits_out = self.sits_out;
        let state = self.state_of(name)?;
        if state.outcome.is_some() {
            return Err(AggregatorError::Ended);
        }
        if state.closing.is_none() && Some(state.definition.release()) <= sits_out {
            return Err(AggregatorError::SitsOut);
        }
        let entries = match &state.closing {
            Some(closed) => closed.entries.values().copied().collect(),
            None => state.agreed_entries(&pinned).ok_or(AggregatorError::NoLedger)?,
        };
        let sealed = |entry: Entry| {
            let sealed = state.sealed.get(&entry).ok_or(AggregatorError::Lacking)?;
            Ok((entry, sealed.clone()))
        };
        let uploads = entries.into_iter().map(sealed).collect::<Result<_, AggregatorError>>()?;
        Ok(Examination::new(keys, &pinned, state.definition.clone(), uploads))
    }

    /// Closes an aggregate over an examination's report. The closing is durable before it is sent,
    /// and there is only one: later reports only supply what is shown of it.
    ///
    /// # Errors
    /// [`AggregatorError`].
    pub fn close(
        &mut self,
        report: ExaminationReport,
    ) -> Result<Step<Signed<Closing>>, AggregatorError> {
        let rejected = report.rejected_slots();
        let ExaminationReport { aggregate, uploads, counted, disclosed, .. } = report;
        let entries: BTreeMap<u32, Entry> =
            uploads.into_iter().map(|(slot, (entry, _))| (slot, entry)).collect();
        let disclosed = disclosed.into_values().collect();
        let mut shown = ShownUploads { tuples: counted, disclosed };
        let state = self.state_of(&aggregate)?;
        let slots = state.definition.slots;
        if let Some(closed) = &state.closing {
            if entries != closed.entries {
                return Err(AggregatorError::Closed);
            }
            shown.tuples.retain(|tuple| !closed.rejected.contains(&tuple.slot));
            state.shown = Some(Arc::new(shown));
            let change = record(&aggregate, CLOSING, encode(closed));
            return Ok(Step::new(vec![change], closed.closing.clone()));
        }
        let counts: BTreeSet<u32> = shown.tuples.iter().map(|tuple| tuple.slot).collect();
        let trees = Trees::new(slots, &entries, |slot| counts.contains(&slot));
        let (ledger, tuples) = (trees.ledger(), trees.tuples());
        let empty = (0..slots).filter(|slot| !entries.contains_key(slot)).collect();
        let closing = Closing { aggregate, ledger, tuples, empty, rejected: rejected.clone() };
        let closing = Signed::new(&closing, &self.key);
        let closed = ClosingRecord { closing: closing.clone(), entries, rejected };
        let change = record(&aggregate, CLOSING, encode(&closed));
        if let Some(state) = self.aggregates.get_mut(&aggregate) {
            state.closing = Some(closed);
            state.leaves = Some(trees.leaves().clone());
            state.shown = Some(Arc::new(shown));
        }
        Ok(Step::new(vec![change], closing))
    }

    /// The tuples that count, for each smoother to check, and what proves that the others do not.
    /// None before the closing, and none after a restart until they are examined again.
    #[must_use]
    pub fn shown(&self, name: &Digest) -> Option<Arc<ShownUploads>> {
        let state = self.aggregates.get(name)?;
        state.closing.as_ref()?;
        state.shown.clone()
    }

    /// The closing, for everybody.
    #[must_use]
    pub fn closing(&self, name: &Digest) -> Option<Signed<Closing>> {
        self.aggregates.get(name)?.closing.as_ref().map(|closed| closed.closing.clone())
    }

    /// What the closing counts, for everybody.
    #[must_use]
    pub fn leaves(&mut self, name: &Digest) -> Option<Leaves> {
        let state = self.aggregates.get_mut(name)?;
        let ClosingRecord { entries, rejected, .. } = state.closing.as_ref()?;
        let leaves = state.leaves.get_or_insert_with(|| {
            let rejected: BTreeSet<u32> = rejected.iter().copied().collect();
            let counts = |slot: u32| !rejected.contains(&slot);
            Trees::new(state.definition.slots, entries, counts).leaves().clone()
        });
        Some(leaves.clone())
    }

    /// Sits out what was released until now: its ledger is an old copy, so it may have closed some
    /// of that and forgotten it. Closing it again could be over another set. Smoothers report how
    /// it ended.
    pub fn sit_out(&mut self, now: Timestamp) -> Step<()> {
        self.sits_out = self.sits_out.max(Some(now));
        Step::new(vec![put(vec![SITS_OUT], now.0.to_be_bytes().to_vec())], ())
    }

    /// Whether it closes nothing that was released at a time.
    #[must_use]
    pub fn sits_out(&self, release: Timestamp) -> bool {
        Some(release) <= self.sits_out
    }

    /// The deployment's configuration.
    #[must_use]
    pub fn pinned(&self) -> &PinnedConfiguration {
        &self.pinned
    }

    /// Whether it has adopted a definition.
    #[must_use]
    pub fn knows(&self, name: &Digest) -> bool {
        self.aggregates.contains_key(name)
    }

    /// All aggregates of this node, in the order of their names.
    pub fn aggregates(&self) -> impl Iterator<Item = &AgreedDefinition> {
        self.aggregates_after(None)
    }

    /// Those whose names come after one.
    pub fn aggregates_after(
        &self,
        name: Option<&Digest>,
    ) -> impl Iterator<Item = &AgreedDefinition> {
        let after = name.map_or(Bound::Unbounded, Bound::Excluded);
        let states = self.aggregates.range::<Digest, _>((after, Bound::Unbounded));
        let ours = states.filter(|(name, _)| self.node.has(name));
        ours.map(|(_, state)| &state.definition)
    }

    /// An aggregate's definition.
    #[must_use]
    pub fn aggregate(&self, name: &Digest) -> Option<&AgreedDefinition> {
        self.aggregates.get(name).map(|state| &state.definition)
    }

    /// When to poll next; none without an open aggregate.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let open = self.aggregates.values().filter(|state| state.outcome.is_none());
        open.map(AggregateState::given_up).min()
    }

    /// Ends aggregates without a report of the smoothers: their deadline is over by another
    /// `patience`, in which smoothers are asked for their outcomes.
    pub fn poll(&mut self, now: Timestamp) -> Step<()> {
        let mut changes = Vec::new();
        for (name, state) in &mut self.aggregates {
            if state.outcome.is_none() && now >= state.given_up() {
                let reason = if state.closing.is_some() {
                    NoResultError::Late
                } else {
                    NoResultError::NotFilled
                };
                state.outcome = Some(Outcome { aggregate: *name, result: Err(reason) });
                state.ledgers.clear();
                self.ended.push(*name);
                changes.extend(state.end_record(name));
            }
        }
        Step::new(changes, ())
    }
}

impl Aggregator {
    /// Forgets aggregates that ended and whose deadline passed so many microseconds ago: no client
    /// asks any more whether its entry counts. The caller keeps what was published.
    pub fn prune(&mut self, now: Timestamp, kept: u64) -> Step<()> {
        let over = self.aggregates.extract_if(.., |_, state| {
            let end = state.definition.deadline().0.saturating_add(kept);
            state.outcome.is_some() && now.0 >= end
        });
        let gone = |name: &Digest, kind| {
            let key = [[AGGREGATE].as_slice(), name.as_bytes(), &[kind]].concat();
            Change::remove(key)
        };
        let changes = over
            .flat_map(|(name, _)| [DEFINITION, CLOSING, PUBLISHED].map(|kind| gone(&name, kind)));
        Step::new(changes.collect(), ())
    }
}

impl AggregateState {
    /// When it ends without a report of the smoothers.
    fn given_up(&self) -> Timestamp {
        self.definition.deadline().plus(self.definition.closing.patience)
    }

    /// Entries that t smoothers list, once a quorum has released.
    fn agreed_entries(&self, pinned: &PinnedConfiguration) -> Option<Vec<Entry>> {
        if self.ledgers.len() < pinned.quorum() {
            return None;
        }
        let mut times: BTreeMap<&Entry, usize> = BTreeMap::new();
        self.ledgers.values().flatten().for_each(|entry| *times.entry(entry).or_default() += 1);
        let enough = |(_, times): &(&Entry, usize)| *times >= usize::from(pinned.threshold);
        Some(times.into_iter().filter(enough).map(|(entry, _)| *entry).collect())
    }

    /// Drops sealed uploads of entries that no smoother lists and that were not closed.
    fn drop_unlisted(&mut self) {
        let Self { ledgers, sealed, closing, .. } = self;
        let closed = closing.as_ref();
        sealed.retain(|entry, _| {
            let listed = ledgers.values().any(|entries| entries.contains(entry));
            listed || closed.is_some_and(|closed| closed.entries.get(&entry.slot) == Some(entry))
        });
    }
}
