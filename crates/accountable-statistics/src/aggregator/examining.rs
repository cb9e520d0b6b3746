//! The expensive part of a closing, apart from the state that decides on it: it may run
//! on any thread, and running it again gives the same.

use super::Keys;
use crate::configuration::Pinned;
use crate::definition::Agreed;
use crate::messages::{
    Entry, Shown, Upload, content_digest, decode, showing_digest, upload_digest,
};
use crate::tuple::{Binding, Checker, Tuple};
use alpheus_anonymous_credential::messages::Login;
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::seal::Sealed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Uploads that are checked together.
const BATCH: usize = 64;

/// What is to be opened and checked.
pub struct Work {
    keys: Arc<Keys>,
    agreed: Agreed,
    subject: Subject,
    entries: Vec<(Entry, Sealed)>,
}

/// What was found.
pub struct Examined {
    pub(super) aggregate: Digest,
    pub(super) entries: BTreeMap<u32, Entry>,
    pub(super) shown: Vec<Shown>,
    pub(super) rejected: Vec<u32>,
}

/// An upload that opened.
struct Candidate {
    entry: Entry,
    login: Login,
    upload: Upload,
}

impl Work {
    pub(super) fn new(
        keys: Arc<Keys>,
        pinned: &Pinned,
        agreed: Agreed,
        entries: Vec<(Entry, Sealed)>,
    ) -> Self {
        let subject = agreed.subject(pinned.uploads());
        Self { keys, agreed, subject, entries }
    }

    /// Its share for so many threads; put together again by [`Examined::join`].
    #[must_use]
    pub fn split(self, parts: usize) -> Vec<Self> {
        let Self { keys, agreed, subject, entries } = self;
        let size = entries.len().div_ceil(parts.max(1)).max(1);
        let part = |entries: &[(Entry, Sealed)]| Self {
            keys: Arc::clone(&keys),
            agreed: agreed.clone(),
            subject: subject.clone(),
            entries: entries.to_vec(),
        };
        if entries.is_empty() { vec![part(&[])] } else { entries.chunks(size).map(part).collect() }
    }

    /// Opens and checks everything.
    #[must_use]
    pub fn run(self) -> Examined {
        let checker = Checker::new(*self.agreed.terms());
        let mut shown = Vec::with_capacity(self.entries.len());
        for chunk in self.entries.chunks(BATCH) {
            let opened = chunk.iter().filter_map(|(entry, sealed)| self.open(entry, sealed));
            let paid = self.paid(opened.collect());
            shown.extend(sound(&checker, paid));
        }
        let entries = self.entries.iter().map(|(entry, _)| (entry.slot, *entry)).collect();
        Examined { aggregate: self.agreed.name(), entries, shown, rejected: Vec::new() }.settled()
    }

    /// The upload of an entry, if what is sealed is that.
    fn open(&self, entry: &Entry, sealed: &Sealed) -> Option<Candidate> {
        let Entry { aggregate, slot, revision, ephemeral, content, .. } = entry;
        let context = Entry::context(aggregate, *slot, *revision, ephemeral);
        let context = context.each_ref().map(Vec::as_slice);
        let opened = self.keys.sealing.open_bytes(labels::STATISTICS_SEALED, &context, sealed);
        let upload: Upload = decode(&opened.ok()?)?;
        let login = Login::from_bytes(&upload.showing, self.agreed.quota).ok()?;
        let showing = showing_digest(&upload.showing);
        let is = content_digest(&login.tag, &upload.tuple, &showing) == *content;
        let message = upload_digest(&entry.binding(login.tag), &upload.tuple);
        (is && login.message == message).then_some(Candidate { entry: *entry, login, upload })
    }

    /// Those whose showing holds.
    fn paid(&self, candidates: Vec<Candidate>) -> Vec<Candidate> {
        let logins = candidates.iter().map(|candidate| candidate.login.clone()).collect();
        let verdicts = self.keys.verifier.verify_about(&self.subject, logins);
        let verdicts = candidates.into_iter().zip(verdicts);
        verdicts.filter_map(|(candidate, verdict)| verdict.ok().map(|_| candidate)).collect()
    }
}

/// Those whose tuple holds.
fn sound(checker: &Checker, candidates: Vec<Candidate>) -> Vec<Shown> {
    let interval = checker.terms().interval();
    let decoded = candidates.into_iter().filter_map(|candidate| {
        let tuple = Tuple::from_bytes(&candidate.upload.tuple, interval).ok()?;
        let binding = candidate.entry.binding(candidate.login.tag);
        Some((candidate, (binding, tuple)))
    });
    let (candidates, tuples): (Vec<Candidate>, Vec<(Binding, Tuple)>) = decoded.unzip();
    let verdicts = checker.check_batch(tuples);
    let shown = |(candidate, _): (Candidate, _)| Shown {
        slot: candidate.entry.slot,
        tag: candidate.login.tag,
        tuple: candidate.upload.tuple,
        showing: showing_digest(&candidate.upload.showing),
    };
    candidates.into_iter().zip(verdicts).filter(|(_, verdict)| verdict.is_ok()).map(shown).collect()
}

impl Examined {
    /// Puts parts of one aggregate together; none of none.
    #[must_use]
    pub fn join(parts: Vec<Self>) -> Option<Self> {
        let mut parts = parts.into_iter();
        let mut whole = parts.next()?;
        for part in parts {
            whole.entries.extend(part.entries);
            whole.shown.extend(part.shown);
        }
        Some(whole.settled())
    }

    /// Of uploads with one tag, that in the lowest slot counts; what does not count is rejected.
    fn settled(mut self) -> Self {
        self.shown.sort_by_key(|shown| shown.slot);
        let mut tags = BTreeSet::new();
        self.shown.retain(|shown| tags.insert(*shown.tag.as_bytes()));
        let counted: BTreeSet<u32> = self.shown.iter().map(|shown| shown.slot).collect();
        self.rejected =
            self.entries.keys().copied().filter(|slot| !counted.contains(slot)).collect();
        self
    }

    /// How many are rejected.
    #[must_use]
    pub fn rejected(&self) -> usize {
        self.rejected.len()
    }
}
