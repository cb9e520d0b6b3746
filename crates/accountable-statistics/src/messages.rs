//! All messages between parties. For one definition, messages of a kind that clients send have one
//! size, whatever they hold.

use crate::configuration::{KeyEpoch, SmootherId};
use crate::definition::{Definition, Turn};
use crate::endorsement::Endorsed;
use crate::sums::Part;
use crate::threshold::SharedKey;
use crate::tuple::{Binding, Tuple};
use alpheus_anonymous_credential::refutation::OpenPresentation;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_crypto::onetime::{OneTimePublic, OneTimeSignature, SEAL};
use alpheus_crypto::signed_message::{Message, Signed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Client to keeper: requests a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRequest {
    /// The aggregate.
    pub aggregate: Digest,
    /// E: the client's key for this upload alone.
    pub ephemeral: OneTimePublic,
    /// Presentation of the keeper's slot credential, for [`request_digest`].
    pub presentation: Vec<u8>,
}

/// The message that slot credentials are presented for: an upload of this key.
#[must_use]
pub fn request_digest(aggregate: &Digest, ephemeral: &OneTimePublic) -> Digest {
    labelled_hash(labels::STATISTICS_REQUEST, &[aggregate.as_bytes(), ephemeral.as_bytes()])
}

/// Keeper to client: grants a slot. Smoothers and the client see it. The aggregator does not:
/// turns would show how many slots were given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The aggregate.
    pub aggregate: Digest,
    /// The slot.
    #[serde(with = "postcard::fixint::be")]
    pub slot: u32,
    /// The turn at which it was granted.
    pub turn: Turn,
    /// Identifies this grant of the slot. Drawn at random, so that it reveals nothing else.
    #[serde(with = "postcard::fixint::be")]
    pub revision: u64,
    /// The client's key.
    pub ephemeral: OneTimePublic,
}

impl Message for Grant {
    const LABEL: &'static str = labels::STATISTICS_GRANT;
}

/// One line of the ledger of slots. A smoother signs one per slot and one per key. An entry that a
/// quorum has signed is certified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// The aggregate.
    pub aggregate: Digest,
    /// Its key epoch: smoothers forget aggregates of earlier ones, and must recognise statements
    /// about those.
    pub key_epoch: KeyEpoch,
    /// The slot.
    #[serde(with = "postcard::fixint::be")]
    pub slot: u32,
    /// The grant's revision.
    #[serde(with = "postcard::fixint::be")]
    pub revision: u64,
    /// The client's key.
    pub ephemeral: OneTimePublic,
    /// The upload: [`content_digest`].
    pub content: Digest,
    /// The sealed upload: [`sealed_digest`].
    pub sealed: Digest,
}

impl Message for Entry {
    const LABEL: &'static str = labels::STATISTICS_ENTRY;
}

impl Entry {
    /// What the entry's tuple is bound to.
    #[must_use]
    pub fn binding(&self, tag: Element) -> Binding {
        let Self { aggregate, ephemeral, .. } = *self;
        Binding { tag, aggregate, ephemeral }
    }

    /// What else its upload is sealed under. Another content has another context, so one key never
    /// seals two uploads alike.
    pub(crate) fn context<'a>(aggregate: &'a Digest, content: &'a Digest) -> [&'a [u8]; 2] {
        [aggregate.as_bytes(), content.as_bytes()]
    }

    /// The bytes that the upload's key signs, and that proofs about the entry name.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// The entry for a grant of a key epoch, from the upload's content and its sealed form.
    #[must_use]
    pub fn of(grant: &Grant, key_epoch: KeyEpoch, content: Digest, sealed: &SealedUpload) -> Self {
        let Grant { aggregate, slot, revision, ephemeral, .. } = *grant;
        let sealed = sealed_digest(sealed);
        Self { aggregate, key_epoch, slot, revision, ephemeral, content, sealed }
    }
}

/// Client to each smoother: an upload for the slot. All but the presentation is the same for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deposit {
    /// The smoother that signed the grant.
    pub keeper: SmootherId,
    /// The grant.
    pub grant: Signed<Grant>,
    /// The upload's [`content_digest`].
    pub content: Digest,
    /// The upload, for the aggregator.
    pub sealed: SealedUpload,
    /// By the grant's key, over the entry.
    pub signature: OneTimeSignature,
    /// Presentation of this smoother's slot credential, for [`request_digest`].
    pub presentation: Vec<u8>,
    /// Receipts of others, for a deposit that crosses the end of its turn.
    pub receipts: Vec<Receipt>,
}

impl Deposit {
    /// The aggregate that the sender claims, unverified: finds the party that checks it.
    #[must_use]
    pub fn unverified_aggregate(&self) -> Option<Digest> {
        self.grant.dangerous_first()
    }
}

/// Client to the keeper of its slot: an upload for the slot, which the keeper stores and forwards.
/// So the client needs one connection. Parts that only one smoother may use are for that smoother's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardedDeposit {
    /// The deposit for the keeper itself.
    pub own: Deposit,
    /// Presentations of the other smoothers' slot credentials.
    pub others: BTreeMap<SmootherId, Vec<u8>>,
}

impl ForwardedDeposit {
    /// The deposits for the others.
    pub fn for_others(&self) -> impl Iterator<Item = (SmootherId, Deposit)> {
        self.others.iter().map(|(to, presentation)| {
            (*to, Deposit { presentation: presentation.clone(), ..self.own.clone() })
        })
    }
}

/// The digest by which entries name a sealed upload.
#[must_use]
pub fn sealed_digest(sealed: &SealedUpload) -> Digest {
    labelled_hash(labels::STATISTICS_DEPOSIT_CONTENT, &[sealed.as_bytes()])
}

/// An [`Upload`], sealed for the aggregator by the upload's own key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedUpload(Vec<u8>);

impl SealedUpload {
    /// From its bytes.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The length of every sealed upload of a definition.
    #[must_use]
    pub fn length(definition: &Definition) -> usize {
        Upload::length(definition) + SEAL
    }
}

/// Two statements that one party signed in one place: proof against it for everybody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Evidence {
    /// A keeper gave one slot twice at one turn.
    Grants(SmootherId, Signed<Grant>, Signed<Grant>),
    /// A smoother signed two entries of one slot.
    Entries(SmootherId, Signed<Entry>, Signed<Entry>),
}

impl Evidence {
    /// The party that it convicts.
    #[must_use]
    pub fn against(&self) -> SmootherId {
        match self {
            Self::Grants(by, ..) | Self::Entries(by, ..) => *by,
        }
    }
}

/// A smoother has signed an entry and stores the sealed upload. Any smoother may forward it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The smoother that signed.
    pub by: SmootherId,
    /// The entry.
    pub entry: Signed<Entry>,
}

impl Receipt {
    /// The aggregate that the sender claims, unverified: finds the party that checks it.
    #[must_use]
    pub fn unverified_aggregate(&self) -> Option<Digest> {
        self.entry.dangerous_first()
    }
}

/// Smoother to client: the response to a deposit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DepositResponse {
    /// The deposit is stored.
    Stored(Receipt),
    /// The deposit will never be stored.
    Conflict(ConflictingEntry),
}

/// The entry that keeps a smoother from ever signing another. A refusal without it does not count:
/// otherwise a lying smoother could make a client give a sample twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConflictingEntry {
    /// The entry that this smoother has signed for the slot or for the key.
    Signed(Receipt),
    /// The entry that a quorum has signed for the slot.
    Certified(Endorsed<Entry>),
}

/// The content sealed for the aggregator. Definition and quota fix the size of both parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The tuple.
    pub tuple: Vec<u8>,
    /// [Open](OpenPresentation) presentation of the upload credential, for [`upload_digest`].
    pub presentation: Vec<u8>,
}

impl Upload {
    /// Bytes of every upload of a definition as it is sealed: the same for a dummy and a sample.
    #[must_use]
    pub fn length(definition: &Definition) -> usize {
        let presentation = OpenPresentation::length(definition.quota);
        let parts = [Tuple::length(&definition.interval), presentation];
        parts.iter().map(|part| part + encode(part).len()).sum()
    }
}

/// The message that an upload credential is presented for: this tuple of this upload.
#[must_use]
pub fn upload_digest(binding: &Binding, tuple: &[u8]) -> Digest {
    labelled_hash(labels::STATISTICS_UPLOAD, &[binding.digest().as_bytes(), tuple])
}

/// The digest by which the ledger knows an upload.
#[must_use]
pub fn content_digest(tag: &Element, tuple: &[u8], presentation: &Digest) -> Digest {
    labelled_hash(labels::STATISTICS_CONTENT, &[tag.as_bytes(), tuple, presentation.as_bytes()])
}

/// The digest of a presentation in an upload's content: smoothers need not see the presentation.
#[must_use]
pub fn presentation_digest(presentation: &[u8]) -> Digest {
    labelled_hash(labels::STATISTICS_PRESENTATION, &[presentation])
}

/// Smoother to aggregator, from the release time on: the ledger and all sealed uploads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The aggregate.
    pub aggregate: Digest,
    /// The certified slots, in order.
    pub slots: Vec<ReleasedSlot>,
}

/// One certified slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleasedSlot {
    /// The certified entry.
    pub entry: Entry,
    /// The sealed upload.
    pub sealed: SealedUpload,
}

/// Aggregator to smoothers: a tuple that the closing counts, to be checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosingTuple {
    /// The slot.
    pub slot: u32,
    /// The tag of its upload credential.
    pub tag: Element,
    /// The tuple.
    pub tuple: Vec<u8>,
    /// The presentation's [`presentation_digest`].
    pub presentation: Digest,
}

/// Aggregator to everybody: what the aggregate counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closing {
    /// The aggregate.
    pub aggregate: Digest,
    /// Root over the entries of all slots.
    pub ledger: Digest,
    /// Root over the counted entries of all slots.
    pub tuples: Digest,
    /// Slots without an entry, in order.
    pub empty: Vec<u32>,
    /// Slots with an entry whose upload does not count, in order.
    pub rejected: Vec<u32>,
}

impl Message for Closing {
    const LABEL: &'static str = labels::STATISTICS_CLOSING;
}

/// A smoother would decrypt the sum of this set, and of no other set of the aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The aggregate.
    pub aggregate: Digest,
    /// The key epoch of its key.
    pub key_epoch: KeyEpoch,
    /// Root over the entries of all slots.
    pub ledger: Digest,
    /// Root over the counted entries of all slots.
    pub tuples: Digest,
}

impl Message for Ready {
    const LABEL: &'static str = labels::STATISTICS_READY;
}

impl Ready {
    /// The context that partial decryptions are bound to.
    #[must_use]
    pub fn context(&self) -> Digest {
        labelled_hash(labels::STATISTICS_READY, &[&encode(self)])
    }
}

/// The public side of a key epoch's key, as a smoother has it from making the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The key epoch.
    pub key_epoch: KeyEpoch,
    /// The attempt at which a quorum voted for it: cards of different attempts do not add up.
    pub attempt: u32,
    /// P, and the public shares.
    pub key: SharedKey,
}

impl Message for Card {
    const LABEL: &'static str = labels::STATISTICS_CARD;
}

/// Smoother to smoothers: a partial decryption of one part of the sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// The set that was agreed on.
    pub ready: Ready,
    /// The part, by [`Part::number`].
    pub part: u8,
    /// The partial decryption with its proof.
    pub partial: Vec<u8>,
}

impl Message for Opening {
    const LABEL: &'static str = labels::STATISTICS_OPENING;
}

/// How an aggregate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The aggregate.
    pub aggregate: Digest,
    /// The result, or why there is none.
    pub result: Result<PublishedResult, NoResultError>,
}

impl Message for Outcome {
    const LABEL: &'static str = labels::STATISTICS_OUTCOME;
}

/// Smoother to everybody: how an aggregate ended there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The outcome.
    pub outcome: Signed<Outcome>,
    /// The one set that this smoother has agreed to, if any.
    pub ready: Option<Signed<Ready>>,
}

/// What the release rule leaves of the sums, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PublishedResult {
    /// The rounded mean.
    Mean(i64),
    /// All sums.
    Full {
        /// N.
        count: u64,
        /// Σ v.
        sum: i128,
        /// Σ v².
        squares: Option<i128>,
        /// Uploads that count, dummies included.
        uploads: u32,
    },
}

/// Why an aggregate ended without a result.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error,
)]
pub enum NoResultError {
    /// There were too few samples and volunteers for its slots.
    #[error("not all slots were filled")]
    NotFilled,
    /// There were fewer samples than its crowd.
    #[error("fewer samples than may be opened")]
    TooFew,
    /// A sum is not a number that can be found: one party's blindings cancel out.
    #[error("its sums cannot be read")]
    Unreadable,
    /// No set was agreed on and opened before the deadline.
    #[error("not opened in time")]
    Late,
}

/// Encodes plain data.
pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "plain data serialises")]
    postcard::to_allocvec(value).expect("plain data serialises")
}

/// Decodes a value if the bytes are its only encoding.
#[must_use]
pub fn decode<T: Serialize + for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    let value: T = postcard::from_bytes(bytes).ok()?;
    (encode(&value) == bytes).then_some(value)
}

/// The part with this number.
#[must_use]
pub fn part(number: u8) -> Option<Part> {
    [Part::Count, Part::Value, Part::Square].into_iter().find(|part| part.number() == number)
}
