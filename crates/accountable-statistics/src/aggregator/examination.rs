//! The expensive part of a closing, separate from the state that decides on it. It may run on any
//! thread. Running it again gives the same verdicts, with other proofs of rejections.

use super::Keys;
use crate::configuration::PinnedConfiguration;
use crate::definition::AgreedDefinition;
use crate::disclosure::{DisclosedUpload, OpenedUpload, disclosure, refuted};
use crate::messages::{ClosingTuple, Entry, SealedUpload, presentation_digest};
use crate::tuple::{Binding, Checker, Tuple};
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_crypto::hash::Digest;
use rand_core::CryptoRng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many uploads are checked together.
const BATCH: usize = 64;

/// Uploads to open and check.
pub struct Examination {
    keys: Arc<Keys>,
    definition: AgreedDefinition,
    subject: Subject,
    uploads: Vec<(Entry, SealedUpload)>,
}

/// What an examination found.
pub struct ExaminationReport {
    pub(super) aggregate: Digest,
    pub(super) uploads: BTreeMap<u32, (Entry, SealedUpload)>,
    pub(super) counted: Vec<ClosingTuple>,
    /// What proves that the others do not count.
    pub(super) disclosed: BTreeMap<u32, DisclosedUpload>,
    keys: Arc<Keys>,
}

/// The proofs about refuted presentations, by slot.
type Refutations = BTreeMap<u32, Vec<u8>>;

impl Examination {
    pub(super) fn new(
        keys: Arc<Keys>,
        pinned: &PinnedConfiguration,
        definition: AgreedDefinition,
        uploads: Vec<(Entry, SealedUpload)>,
    ) -> Self {
        let subject = definition.subject(pinned.uploads());
        Self { keys, definition, subject, uploads }
    }

    /// Splits it for so many threads; [`ExaminationReport::join`] joins their reports.
    #[must_use]
    pub fn split(self, parts: usize) -> Vec<Self> {
        let Self { keys, definition, subject, uploads } = self;
        let size = uploads.len().div_ceil(parts.max(1)).max(1);
        let part = |uploads: &[(Entry, SealedUpload)]| Self {
            keys: Arc::clone(&keys),
            definition: definition.clone(),
            subject: subject.clone(),
            uploads: uploads.to_vec(),
        };
        if uploads.is_empty() { vec![part(&[])] } else { uploads.chunks(size).map(part).collect() }
    }

    /// Opens and checks everything, and proves what does not count.
    #[must_use]
    pub fn run(self, rng: &mut impl CryptoRng) -> ExaminationReport {
        let checker = Checker::new(*self.definition.terms());
        let mut counted = Vec::with_capacity(self.uploads.len());
        let mut refutations = Refutations::new();
        for chunk in self.uploads.chunks(BATCH) {
            let open = |(entry, sealed): &(Entry, SealedUpload)| {
                OpenedUpload::open(&self.keys.sealing, entry, sealed, &self.definition)
            };
            let paid = self.paid(chunk.iter().filter_map(open).collect(), &mut refutations, rng);
            counted.extend(with_valid_tuple(&checker, paid));
        }
        let Self { keys, definition, uploads, .. } = self;
        let uploads = uploads.into_iter().map(|upload| (upload.0.slot, upload)).collect();
        let (aggregate, disclosed) = (definition.name(), BTreeMap::new());
        let mut report = ExaminationReport { aggregate, uploads, counted, disclosed, keys };
        report.reject(&refutations, rng);
        report
    }

    /// The uploads with a valid presentation. An upload that looks valid to others is refuted.
    fn paid(
        &self,
        opened: Vec<OpenedUpload>,
        refutations: &mut Refutations,
        rng: &mut impl CryptoRng,
    ) -> Vec<OpenedUpload> {
        let shown = opened.iter().map(|opened| opened.presentation.clone()).collect();
        let verdicts = self.keys.verifier.verify_open(&self.subject, shown);
        let mut paid = Vec::with_capacity(opened.len());
        for (opened, verdict) in opened.into_iter().zip(verdicts) {
            let OpenedUpload { entry, presentation, .. } = &opened;
            if verdict.is_ok() {
                paid.push(opened);
            } else if presentation.check(&self.subject).is_ok() {
                let about = refuted(entry);
                let made = self.keys.verifier.refute(&self.subject, presentation, &about, rng);
                // Without a proof the rejection counts as a missing slot.
                made.ok().map(|made| refutations.insert(entry.slot, made.to_bytes()));
            }
        }
        paid
    }
}

/// The uploads with a valid tuple.
fn with_valid_tuple(checker: &Checker, opened: Vec<OpenedUpload>) -> Vec<ClosingTuple> {
    let interval = checker.terms().interval();
    let decoded = opened.into_iter().filter_map(|opened| {
        let tuple = Tuple::from_bytes(&opened.upload.tuple, interval).ok()?;
        let binding = opened.entry.binding(opened.presentation.login.tag);
        Some((opened, (binding, tuple)))
    });
    let (opened, tuples): (Vec<OpenedUpload>, Vec<(Binding, Tuple)>) = decoded.unzip();
    let verdicts = checker.check_batch(tuples);
    let counted = |(opened, _): (OpenedUpload, _)| ClosingTuple {
        slot: opened.entry.slot,
        tag: opened.presentation.login.tag,
        tuple: opened.upload.tuple,
        presentation: presentation_digest(&opened.upload.presentation),
    };
    opened.into_iter().zip(verdicts).filter(|(_, verdict)| verdict.is_ok()).map(counted).collect()
}

impl ExaminationReport {
    /// Joins reports on one aggregate; none if there are none.
    #[must_use]
    pub fn join(parts: Vec<Self>, rng: &mut impl CryptoRng) -> Option<Self> {
        let mut parts = parts.into_iter();
        let mut whole = parts.next()?;
        for part in parts {
            whole.uploads.extend(part.uploads);
            whole.counted.extend(part.counted);
            whole.disclosed.extend(part.disclosed);
        }
        whole.reject(&Refutations::new(), rng);
        Some(whole)
    }

    /// Rejects what is not valid, and of uploads with one tag all but the one in the lowest slot.
    /// That one is disclosed beside them: else anybody who saw a tag early could deposit it in a
    /// lower slot, and have its owner's upload rejected.
    fn reject(&mut self, refutations: &Refutations, rng: &mut impl CryptoRng) {
        self.counted.sort_by_key(|tuple| tuple.slot);
        let (mut tags, mut shown) = (BTreeMap::new(), BTreeSet::new());
        self.counted.retain(|tuple| {
            let first = *tags.entry(*tuple.tag.as_bytes()).or_insert(tuple.slot);
            if first != tuple.slot {
                shown.insert(first);
            }
            first == tuple.slot
        });
        shown.extend(self.rejected_slots());
        for slot in shown {
            let Some((entry, sealed)) = self.uploads.get(&slot) else { continue };
            if self.disclosed.contains_key(&slot) {
                continue;
            }
            let bytes = entry.bytes();
            let made = self.keys.sealing.disclose(&entry.ephemeral, disclosure(&bytes), rng);
            // Without a proof the rejection counts as a missing slot.
            let Ok(disclosure) = made else { continue };
            let (sealed, refutation) = (sealed.clone(), refutations.get(&slot).cloned());
            self.disclosed.insert(slot, DisclosedUpload { slot, sealed, disclosure, refutation });
        }
    }

    /// The slots that are rejected, in order.
    pub(super) fn rejected_slots(&self) -> Vec<u32> {
        let counted: BTreeSet<u32> = self.counted.iter().map(|tuple| tuple.slot).collect();
        self.uploads.keys().copied().filter(|slot| !counted.contains(slot)).collect()
    }

    /// How many are rejected.
    #[must_use]
    pub fn rejected(&self) -> usize {
        self.uploads.len().saturating_sub(self.counted.len())
    }
}
