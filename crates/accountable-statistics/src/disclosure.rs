//! Uploads that the aggregator discloses, to prove that they do not count.
//!
//! Smoothers see entries and sealed uploads, and have no key that opens or checks them. So an
//! aggregator that leaves an upload out discloses what opens it. Then anybody finds the fault
//! alone, but for one: whether a presentation is of a credential, only the aggregator's key shows.
//! Then it adds a [`Refutation`]. Both are proven, and for the one upload alone.

use crate::definition::AgreedDefinition;
use crate::messages::{
    Entry, SealedUpload, Upload, content_digest, decode, encode, presentation_digest,
    sealed_digest, upload_digest,
};
use crate::role_error::DisclosureError;
use crate::tuple::{Checker, Tuple};
use alpheus_anonymous_credential::refutation::{OpenPresentation, Refutation};
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::onetime::{Disclosure, RecipientKey};
use serde::{Deserialize, Serialize};

/// Aggregator to smoothers: what an upload holds that does not count, or that counts beside one
/// with the same tag.
///
/// # Privacy
/// Opens this upload to anyone who sees it: its tag, its tuple, whose sample only t smoothers can
/// decrypt, and its presentation, which nothing links to an account. It opens whatever was sealed with the
/// same one-time key, and so nobody else's upload: nobody else can sign an entry with that key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisclosedUpload {
    /// The slot.
    pub slot: u32,
    /// The sealed upload, by which the slot's entry names it.
    pub sealed: SealedUpload,
    /// What opens it.
    pub disclosure: Disclosure,
    /// The proof that its presentation is of no valid credential, if that is what is wrong. As
    /// [`Refutation::to_bytes`].
    pub refutation: Option<Vec<u8>>,
}

/// What a check of a disclosed upload has found. Made by [`DisclosedUpload::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It can never count.
    Bad,
    /// It looks valid, and the one who made it knows the secret of its tag, which is this one. It
    /// counts, unless there is another one with this tag in a lower slot.
    Tag(Element),
}

/// An upload that has opened to what its entry names. Its proofs are not checked yet.
pub(crate) struct OpenedUpload {
    pub(crate) entry: Entry,
    pub(crate) presentation: OpenPresentation,
    pub(crate) upload: Upload,
}

/// What it takes to check disclosed uploads of one aggregate.
pub(crate) struct DisclosureCheck<'a> {
    pub(crate) agreed: &'a AgreedDefinition,
    /// The aggregator's key that uploads are sealed for.
    pub(crate) sealing: &'a Element,
    /// Of the upload credential.
    pub(crate) subject: &'a Subject,
    pub(crate) checker: &'a Checker,
}

/// The label and the subject of a disclosure.
pub(crate) fn disclosure(entry: &[u8]) -> (&'static str, &[u8]) {
    (labels::STATISTICS_DISCLOSURE, entry)
}

/// What a refutation is about: one rejection of one entry.
pub(crate) fn refuted(entry: &Entry) -> Digest {
    labelled_hash(labels::STATISTICS_REJECTION, &[&encode(entry)])
}

impl OpenedUpload {
    /// Opens an upload with the aggregator's key.
    pub(crate) fn open(
        key: &RecipientKey,
        entry: &Entry,
        sealed: &SealedUpload,
        agreed: &AgreedDefinition,
    ) -> Option<Self> {
        let context = Entry::context(&entry.aggregate, &entry.content);
        let context = (labels::STATISTICS_UPLOAD_SEALING, context.as_slice());
        let opened = key.open(&entry.ephemeral, context, sealed.as_bytes()).ok()?;
        Self::read(entry, &opened, agreed)
    }

    /// Reads an upload, if it is what its entry names and its credential is presented for it.
    fn read(entry: &Entry, opened: &[u8], agreed: &AgreedDefinition) -> Option<Self> {
        let upload: Upload = decode(opened)?;
        let presentation = OpenPresentation::from_bytes(&upload.presentation, agreed.quota).ok()?;
        let tag = presentation.login.tag;
        let shown = presentation_digest(&upload.presentation);
        let is = content_digest(&tag, &upload.tuple, &shown) == entry.content;
        let message = upload_digest(&entry.binding(tag), &upload.tuple);
        let ours = is && presentation.login.message == message;
        ours.then_some(Self { entry: *entry, presentation, upload })
    }
}

impl DisclosedUpload {
    /// Finds out what is wrong with the upload of its slot's entry, whatever the aggregator says about
    /// it.
    ///
    /// # Errors
    /// [`DisclosureError`]: this shows nothing.
    pub(crate) fn check(
        &self,
        entry: &Entry,
        by: &DisclosureCheck<'_>,
    ) -> Result<Finding, DisclosureError> {
        if sealed_digest(&self.sealed) != entry.sealed {
            return Err(DisclosureError::Sealed);
        }
        let bytes = entry.bytes();
        let seen = self.disclosure.verify(by.sealing, &entry.ephemeral, disclosure(&bytes));
        let seen = seen.map_err(|_| DisclosureError::Disclosure)?;
        let context = Entry::context(&entry.aggregate, &entry.content);
        let context = (labels::STATISTICS_UPLOAD_SEALING, context.as_slice());
        let opened = seen.open(context, self.sealed.as_bytes()).ok();
        match opened.and_then(|opened| OpenedUpload::read(entry, &opened, by.agreed)) {
            None => Ok(Finding::Bad),
            Some(opened) => self.check_opened(&opened, by),
        }
    }

    fn check_opened(
        &self,
        opened: &OpenedUpload,
        by: &DisclosureCheck<'_>,
    ) -> Result<Finding, DisclosureError> {
        let OpenedUpload { entry, presentation, upload } = opened;
        let tag = presentation.login.tag;
        let tuple = Tuple::from_bytes(&upload.tuple, by.checker.terms().interval());
        let counts = tuple.is_ok_and(|tuple| by.checker.check(entry.binding(tag), tuple).is_ok());
        if !counts || presentation.check(by.subject).is_err() {
            return Ok(Finding::Bad);
        }
        let Some(refutation) = &self.refutation else { return Ok(Finding::Tag(tag)) };
        let refutation = Refutation::from_bytes(refutation);
        let refutation = refutation.map_err(|_| DisclosureError::Refutation)?;
        let verdict = refutation.verify(by.subject, presentation, &refuted(entry));
        verdict.map_err(|_| DisclosureError::Refutation).map(|()| Finding::Bad)
    }
}
