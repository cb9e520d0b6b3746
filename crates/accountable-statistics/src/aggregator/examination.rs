//! The expensive part of a closing, separate from the state that decides on it. It may run on any
//! thread, and running it again gives the same report.

use super::Keys;
use crate::configuration::Pinned;
use crate::definition::AgreedDefinition;
use crate::messages::{
    ClosingTuple, Entry, Upload, content_digest, decode, presentation_digest, upload_digest,
};
use crate::tuple::{Binding, Checker, Tuple};
use alpheus_anonymous_credential::messages::Login;
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::seal::Sealed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many uploads are checked together.
const BATCH: usize = 64;

/// Uploads to open and check.
pub struct Examination {
    keys: Arc<Keys>,
    definition: AgreedDefinition,
    subject: Subject,
    entries: Vec<(Entry, Sealed)>,
}

/// What an examination found.
pub struct ExaminationReport {
    pub(super) aggregate: Digest,
    pub(super) entries: BTreeMap<u32, Entry>,
    pub(super) counted: Vec<ClosingTuple>,
    pub(super) rejected: Vec<u32>,
}

/// An upload that opened.
struct Candidate {
    entry: Entry,
    login: Login,
    upload: Upload,
}

impl Examination {
    pub(super) fn new(
        keys: Arc<Keys>,
        pinned: &Pinned,
        definition: AgreedDefinition,
        entries: Vec<(Entry, Sealed)>,
    ) -> Self {
        let subject = definition.subject(pinned.uploads());
        Self { keys, definition, subject, entries }
    }

    /// Splits it for so many threads; [`ExaminationReport::join`] joins their reports.
    #[must_use]
    pub fn split(self, parts: usize) -> Vec<Self> {
        let Self { keys, definition, subject, entries } = self;
        let size = entries.len().div_ceil(parts.max(1)).max(1);
        let part = |entries: &[(Entry, Sealed)]| Self {
            keys: Arc::clone(&keys),
            definition: definition.clone(),
            subject: subject.clone(),
            entries: entries.to_vec(),
        };
        if entries.is_empty() { vec![part(&[])] } else { entries.chunks(size).map(part).collect() }
    }

    /// Opens and checks everything.
    #[must_use]
    pub fn run(self) -> ExaminationReport {
        let checker = Checker::new(*self.definition.terms());
        let mut counted = Vec::with_capacity(self.entries.len());
        for chunk in self.entries.chunks(BATCH) {
            let opened = chunk.iter().filter_map(|(entry, sealed)| self.open(entry, sealed));
            let paid = self.with_valid_presentation(opened.collect());
            counted.extend(with_valid_tuple(&checker, paid));
        }
        let entries = self.entries.iter().map(|(entry, _)| (entry.slot, *entry)).collect();
        let (aggregate, rejected) = (self.definition.name(), Vec::new());
        ExaminationReport { aggregate, entries, counted, rejected }.deduplicated()
    }

    /// The upload of an entry, if the sealed bytes hold it.
    fn open(&self, entry: &Entry, sealed: &Sealed) -> Option<Candidate> {
        let Entry { aggregate, slot, revision, ephemeral, content, .. } = entry;
        let context = Entry::context(aggregate, *slot, *revision, ephemeral);
        let context = context.each_ref().map(Vec::as_slice);
        let opened =
            self.keys.sealing.open_bytes(labels::STATISTICS_UPLOAD_SEALING, &context, sealed);
        let upload: Upload = decode(&opened.ok()?)?;
        let login = Login::from_bytes(&upload.presentation, self.definition.quota).ok()?;
        let presentation = presentation_digest(&upload.presentation);
        let is = content_digest(&login.tag, &upload.tuple, &presentation) == *content;
        let message = upload_digest(&entry.binding(login.tag), &upload.tuple);
        (is && login.message == message).then_some(Candidate { entry: *entry, login, upload })
    }

    /// The candidates with a valid presentation.
    fn with_valid_presentation(&self, candidates: Vec<Candidate>) -> Vec<Candidate> {
        let logins = candidates.iter().map(|candidate| candidate.login.clone()).collect();
        let verdicts = self.keys.verifier.verify_for_subject(&self.subject, logins);
        let verdicts = candidates.into_iter().zip(verdicts);
        verdicts.filter_map(|(candidate, verdict)| verdict.ok().map(|_| candidate)).collect()
    }
}

/// The candidates with a valid tuple.
fn with_valid_tuple(checker: &Checker, candidates: Vec<Candidate>) -> Vec<ClosingTuple> {
    let interval = checker.terms().interval();
    let decoded = candidates.into_iter().filter_map(|candidate| {
        let tuple = Tuple::from_bytes(&candidate.upload.tuple, interval).ok()?;
        let binding = candidate.entry.binding(candidate.login.tag);
        Some((candidate, (binding, tuple)))
    });
    let (candidates, tuples): (Vec<Candidate>, Vec<(Binding, Tuple)>) = decoded.unzip();
    let verdicts = checker.check_batch(tuples);
    let counted = |(candidate, _): (Candidate, _)| ClosingTuple {
        slot: candidate.entry.slot,
        tag: candidate.login.tag,
        tuple: candidate.upload.tuple,
        presentation: presentation_digest(&candidate.upload.presentation),
    };
    candidates
        .into_iter()
        .zip(verdicts)
        .filter(|(_, verdict)| verdict.is_ok())
        .map(counted)
        .collect()
}

impl ExaminationReport {
    /// Joins reports on one aggregate; none if there are none.
    #[must_use]
    pub fn join(parts: Vec<Self>) -> Option<Self> {
        let mut parts = parts.into_iter();
        let mut whole = parts.next()?;
        for part in parts {
            whole.entries.extend(part.entries);
            whole.counted.extend(part.counted);
        }
        Some(whole.deduplicated())
    }

    /// Of uploads with one tag, the one in the lowest slot counts. All others are rejected.
    fn deduplicated(mut self) -> Self {
        self.counted.sort_by_key(|tuple| tuple.slot);
        let mut tags = BTreeSet::new();
        self.counted.retain(|tuple| tags.insert(*tuple.tag.as_bytes()));
        let slots: BTreeSet<u32> = self.counted.iter().map(|tuple| tuple.slot).collect();
        self.rejected = self.entries.keys().copied().filter(|slot| !slots.contains(slot)).collect();
        self
    }

    /// How many are rejected.
    #[must_use]
    pub fn rejected(&self) -> usize {
        self.rejected.len()
    }
}
