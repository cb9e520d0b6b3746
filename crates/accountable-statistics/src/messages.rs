//! All that crosses between parties. Of one definition, messages of a kind that clients
//! send have one size, whatever they hold.

use crate::configuration::{KeyEpoch, SmootherId};
use crate::definition::{Definition, Turn};
use crate::endorsed::Endorsed;
use crate::sums::Part;
use crate::threshold::SharedKey;
use crate::tuple::{Binding, Tuple};
use alpheus_anonymous_credential::messages::Login;
use alpheus_crypto::group::Element;
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;
use alpheus_crypto::seal::Sealed;
use alpheus_crypto::sign::{Signature, VerifyingKey};
use alpheus_crypto::signed::{Message, Signed};
use serde::{Deserialize, Serialize};

/// Client to keeper: a slot, please.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRequest {
    /// The aggregate.
    pub aggregate: Digest,
    /// E: the client's key for this upload alone.
    pub ephemeral: VerifyingKey,
    /// Of the keeper's slot credential, for [`request_digest`].
    pub showing: Vec<u8>,
}

/// What slot credentials are shown for: an upload of this key.
#[must_use]
pub fn request_digest(aggregate: &Digest, ephemeral: &VerifyingKey) -> Digest {
    labelled(labels::STATISTICS_REQUEST, &[aggregate.as_bytes(), ephemeral.as_bytes()])
}

/// Keeper to client: this slot. Smoothers and the client see it, the aggregator does not: turns
/// would tell it how many slots were given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The aggregate.
    pub aggregate: Digest,
    /// The slot.
    #[serde(with = "postcard::fixint::be")]
    pub slot: u32,
    /// At which turn it was given.
    pub turn: Turn,
    /// Which grant of the slot it is: drawn at random, so that it says nothing more.
    #[serde(with = "postcard::fixint::be")]
    pub revision: u64,
    /// To whom.
    pub ephemeral: VerifyingKey,
}

impl Message for Grant {
    const LABEL: &'static str = labels::STATISTICS_GRANT;
}

/// One line of the ledger of slots. A smoother signs one for a slot and one for a key; one that
/// a quorum has signed is certified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// The aggregate.
    pub aggregate: Digest,
    /// Its key epoch: smoothers forget aggregates of earlier ones, and must know what is about
    /// one that they have forgotten.
    pub key_epoch: KeyEpoch,
    /// The slot.
    #[serde(with = "postcard::fixint::be")]
    pub slot: u32,
    /// Of the grant.
    #[serde(with = "postcard::fixint::be")]
    pub revision: u64,
    /// Whose upload.
    pub ephemeral: VerifyingKey,
    /// Of the upload: [`content_digest`].
    pub content: Digest,
    /// Of what is sealed for the aggregator: [`sealed_digest`].
    pub sealed: Digest,
}

impl Message for Entry {
    const LABEL: &'static str = labels::STATISTICS_ENTRY;
}

impl Entry {
    /// What its tuple is bound to.
    #[must_use]
    pub fn binding(&self, tag: Element) -> Binding {
        let Self { aggregate, slot, revision, ephemeral, .. } = *self;
        Binding { tag, aggregate, slot, revision, ephemeral }
    }

    /// Whose grant it is for, of which key epoch, what the upload is and how it is sealed.
    #[must_use]
    pub fn of(grant: &Grant, key_epoch: KeyEpoch, content: Digest, sealed: &Sealed) -> Self {
        let Grant { aggregate, slot, revision, ephemeral, .. } = *grant;
        let sealed = sealed_digest(sealed);
        Self { aggregate, key_epoch, slot, revision, ephemeral, content, sealed }
    }

    /// What the upload is sealed under, beside the label.
    pub(crate) fn context(
        aggregate: &Digest,
        slot: u32,
        revision: u64,
        ephemeral: &VerifyingKey,
    ) -> [Vec<u8>; 4] {
        [
            aggregate.as_bytes().to_vec(),
            slot.to_be_bytes().to_vec(),
            revision.to_be_bytes().to_vec(),
            ephemeral.as_bytes().to_vec(),
        ]
    }
}

/// Client to each smoother: here is my upload for the slot. All but the showing is the same
/// for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deposit {
    /// Who has signed the grant.
    pub keeper: SmootherId,
    /// The grant.
    pub grant: Signed<Grant>,
    /// Of the upload.
    pub content: Digest,
    /// The [`Upload`], for the aggregator.
    pub sealed: Sealed,
    /// By the grant's key, over the entry.
    pub signature: Signature,
    /// Of this smoother's slot credential, for [`request_digest`].
    pub showing: Vec<u8>,
    /// Of others, for a deposit that crosses the end of its turn.
    pub receipts: Vec<Receipt>,
}

impl Deposit {
    /// For which aggregate, as whoever sends it says: to find who is to check it.
    #[must_use]
    pub fn said_to_be_for(&self) -> Option<Digest> {
        self.grant.dangerous_first()
    }
}

/// What is sealed, as entries name it.
#[must_use]
pub fn sealed_digest(sealed: &Sealed) -> Digest {
    labelled(labels::STATISTICS_DEPOSITED, &[&encode(sealed)])
}

/// Two things that one party signed in one place: proof against it for everybody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Evidence {
    /// A keeper gave one slot twice at one turn.
    Grants(SmootherId, Signed<Grant>, Signed<Grant>),
    /// A smoother signed two entries of one slot.
    Entries(SmootherId, Signed<Entry>, Signed<Entry>),
}

impl Evidence {
    /// Whom it is against.
    #[must_use]
    pub fn against(&self) -> SmootherId {
        match self {
            Self::Grants(by, ..) | Self::Entries(by, ..) => *by,
        }
    }
}

/// A smoother has an entry and keeps what is sealed. Any smoother may hand it on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Whose.
    pub by: SmootherId,
    /// The entry.
    pub entry: Signed<Entry>,
}

impl Receipt {
    /// For which aggregate, as whoever sends it says: to find who is to check it.
    #[must_use]
    pub fn said_to_be_for(&self) -> Option<Digest> {
        self.entry.dangerous_first()
    }
}

/// Smoother to client: what a deposit comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deposited {
    /// It is kept.
    Kept(Receipt),
    /// It never will be.
    Taken(InPlace),
}

/// Why a smoother never signs an entry: what stands in its place. Without it a refusal counts for
/// nothing, or a smoother that lies would make a client give a sample twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InPlace {
    /// What this smoother has signed for the slot, or for the key.
    Signed(Receipt),
    /// What a quorum has signed for the slot.
    Certified(Endorsed<Entry>),
}

/// What is sealed for the aggregator: both parts of a size that definition and limit fix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The tuple.
    pub tuple: Vec<u8>,
    /// Of the upload credential, for [`upload_digest`].
    pub showing: Vec<u8>,
}

impl Upload {
    /// Bytes of every upload of a definition, as they are sealed: what is sealed is as long for
    /// a dummy as for a sample.
    #[must_use]
    pub fn length(definition: &Definition) -> usize {
        let parts = [Tuple::length(&definition.interval), Login::length(definition.quota)];
        parts.iter().map(|part| part + encode(part).len()).sum()
    }
}

/// What an upload credential is shown for: this tuple at this place.
#[must_use]
pub fn upload_digest(binding: &Binding, tuple: &[u8]) -> Digest {
    labelled(labels::STATISTICS_UPLOAD, &[binding.digest().as_bytes(), tuple])
}

/// What the ledger knows an upload by.
#[must_use]
pub fn content_digest(tag: &Element, tuple: &[u8], showing: &Digest) -> Digest {
    labelled(labels::STATISTICS_CONTENT, &[tag.as_bytes(), tuple, showing.as_bytes()])
}

/// A showing inside of a content: smoothers need not see it.
#[must_use]
pub fn showing_digest(showing: &[u8]) -> Digest {
    labelled(labels::STATISTICS_SHOWING, &[showing])
}

/// Smoother to aggregator, once the time has come: the ledger and all that is sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The aggregate.
    pub aggregate: Digest,
    /// By slot.
    pub listed: Vec<Listed>,
}

/// One slot of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The certified entry.
    pub entry: Entry,
    /// The upload.
    pub sealed: Sealed,
}

/// Aggregator to smoothers: a tuple to check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// Its slot.
    pub slot: u32,
    /// Of its upload credential.
    pub tag: Element,
    /// The tuple.
    pub tuple: Vec<u8>,
    /// [`showing_digest`].
    pub showing: Digest,
}

/// Aggregator to everybody: what is counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closing {
    /// The aggregate.
    pub aggregate: Digest,
    /// Root over all slots' entries.
    pub ledger: Digest,
    /// Root over all slots' tuples.
    pub tuples: Digest,
    /// Slots without an entry, in order.
    pub empty: Vec<u32>,
    /// Slots with an entry whose upload does not count, in order.
    pub rejected: Vec<u32>,
}

impl Message for Closing {
    const LABEL: &'static str = labels::STATISTICS_CLOSING;
}

/// A smoother would decrypt the sum of this set, and never of another set of the aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The aggregate.
    pub aggregate: Digest,
    /// Whose key it is under.
    pub key_epoch: KeyEpoch,
    /// Root over all slots' entries.
    pub ledger: Digest,
    /// Root over all slots' tuples.
    pub tuples: Digest,
}

impl Message for Ready {
    const LABEL: &'static str = labels::STATISTICS_READY;
}

impl Ready {
    /// What partial decryptions are bound to.
    #[must_use]
    pub fn context(&self) -> Digest {
        labelled(labels::STATISTICS_READY, &[&encode(self)])
    }
}

/// The public side of a key epoch's key, as a smoother has it from generating the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The key epoch.
    pub key_epoch: KeyEpoch,
    /// At which attempt a quorum has voted for it: cards of different attempts do not add up.
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
    /// What was agreed on.
    pub ready: Ready,
    /// Which part, by [`Part::number`].
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
    /// With what.
    pub result: Result<Published, Reason>,
}

impl Message for Outcome {
    const LABEL: &'static str = labels::STATISTICS_OUTCOME;
}

/// Smoother to everybody: how an aggregate ended there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How.
    pub outcome: Signed<Outcome>,
    /// The one set that it has agreed to, if it has.
    pub ready: Option<Signed<Ready>>,
}

/// What the definition's rule leaves of the sums. In steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Published {
    /// The rounded mean.
    Mean(i64),
    /// All of it.
    Full {
        /// N.
        count: u64,
        /// Σ v.
        sum: i128,
        /// Σ v².
        squares: Option<i128>,
    },
}

/// Why an aggregate ended without a result.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error,
)]
pub enum Reason {
    /// Samples and volunteers were too few for its slots.
    #[error("not all slots were filled")]
    NotFilled,
    /// Fewer samples than its crowd.
    #[error("fewer samples than may be opened")]
    TooFew,
    /// Its sums are no numbers that can be found: one party's blindings cancel out.
    #[error("its sums cannot be read")]
    Unreadable,
    /// No set was agreed on and opened before its deadline.
    #[error("not opened in time")]
    Late,
}

/// Bytes of plain data.
pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "plain data serialises")]
    postcard::to_allocvec(value).expect("plain data serialises")
}

/// A value whose one encoding the bytes are.
#[must_use]
pub fn decode<T: Serialize + for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    let value: T = postcard::from_bytes(bytes).ok()?;
    (encode(&value) == bytes).then_some(value)
}

/// The part with a number.
#[must_use]
pub fn part(number: u8) -> Option<Part> {
    [Part::Count, Part::Value, Part::Square].into_iter().find(|part| part.number() == number)
}
