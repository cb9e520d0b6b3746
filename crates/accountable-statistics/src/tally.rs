//! Pure counts, without smoothers: each account counts once, at a time that it draws.

use crate::aggregator::Node;
use crate::configuration::PinnedConfiguration;
use crate::definition::Location;
use alpheus_anonymous_credential::configuration::PinnedConfiguration as Pass;
use alpheus_anonymous_credential::error::VerifierError;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, TagId};
use alpheus_anonymous_credential::schedule::Period;
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::ledger::{Change, DamagedLedgerError, Step, put};
use alpheus_crypto::signed_message::{Message, Signed, SignedMessageError, Verified};
use alpheus_time::Timestamp;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Defines a count of how many were at a location. Signed by the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TallyDefinition {
    /// The configuration's fingerprint.
    pub deployment: Digest,
    /// The location.
    pub location: Location,
    /// Start of the time, inclusive.
    pub start: Timestamp,
    /// End of the time, exclusive.
    pub end: Timestamp,
    /// When it closes. Presentations arrive at times drawn between `end` and this.
    pub closes: Timestamp,
    /// With fewer, nothing is published.
    pub min_count: u64,
}

impl Message for TallyDefinition {
    const LABEL: &'static str = labels::STATISTICS_TALLY;
}

/// A definition that the operator has signed. Cheap to clone.
#[derive(Clone)]
pub struct Tally(Arc<(Verified<TallyDefinition>, Period)>);

/// An unusable definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TallyError {
    /// Not signed by the operator.
    #[error("the count's definition is not signed by the operator: {0}")]
    Signature(SignedMessageError),
    /// Of another deployment, or its times are not in order.
    #[error(
        "the count's definition belongs to another deployment, or its start, end and close are not in order"
    )]
    Content,
}

/// Why a presentation is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// The count belongs to another node.
    #[error("this count belongs to another node")]
    Elsewhere,
    /// The count is not open now.
    #[error("a count is open between its end and its close")]
    Time,
    /// The presentation is invalid.
    #[error("the presentation is not valid: {0}")]
    Presentation(#[from] VerifierError),
    /// The credential was presented for something else.
    #[error("the credential was presented for something else")]
    OtherPresentation,
}

impl Tally {
    /// Opens a signed definition.
    ///
    /// # Errors
    /// [`TallyError`].
    pub fn open(
        signed: &Signed<TallyDefinition>,
        pinned: &PinnedConfiguration,
    ) -> Result<Self, TallyError> {
        let question = signed.open(pinned.operator()).map_err(TallyError::Signature)?;
        let schedule = pinned.uploads().schedule;
        let period = schedule.epoch_at(question.start).map(|epoch| schedule.period_of(epoch));
        let ordered = question.start < question.end && question.end < question.closes;
        match period {
            Some(period) if ordered && question.deployment == pinned.fingerprint() => {
                Ok(Self(Arc::new((question, period))))
            }
            _ => Err(TallyError::Content),
        }
    }

    /// The digest that names it.
    #[must_use]
    pub fn name(&self) -> Digest {
        self.0.0.digest()
    }

    /// The subject that upload credentials are presented about, once each.
    #[must_use]
    pub fn subject(&self, uploads: &Pass) -> Subject {
        Subject::new(uploads, &self.name(), Limit::ONE, self.0.1)
    }

    /// When to send a presentation: uniform over the first three quarters of the time between
    /// end and close, so that the time does not reveal when the client was there. The last
    /// quarter is for those that do not get through at once.
    pub fn draw(&self, rng: &mut impl CryptoRng) -> Timestamp {
        let open = self.closes.0.saturating_sub(self.end.0);
        let span = (open - open / 4).max(1);
        Timestamp(self.end.0.saturating_add(rng.next_u64().checked_rem(span).unwrap_or(0)))
    }
}

impl std::ops::Deref for Tally {
    type Target = TallyDefinition;

    fn deref(&self) -> &TallyDefinition {
        &self.0.0
    }
}

/// Kind of its records, distinct from an aggregator's in the same ledger.
const TALLY: u8 = b't';

/// The aggregator's side of one count.
pub struct Counter {
    /// Whether it belongs to this node: no two nodes store tags of one count.
    mine: bool,
    tally: Tally,
    subject: Subject,
    tags: BTreeSet<TagId>,
    /// The count, once it is over and the tags are forgotten.
    ended: Option<u64>,
}

impl Counter {
    /// A count from its ledger, at one of the aggregator's nodes.
    ///
    /// # Errors
    /// [`DamagedLedgerError`].
    pub fn restore(
        tally: Tally,
        pinned: &PinnedConfiguration,
        node: Node,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<Self, DamagedLedgerError> {
        let prefix = [[TALLY].as_slice(), tally.name().as_bytes()].concat();
        let (mut tags, mut ended) = (BTreeSet::new(), None);
        for (key, value) in records {
            match key.strip_prefix(prefix.as_slice()) {
                None => {}
                Some([]) => {
                    let count = value.try_into().map_err(|_| DamagedLedgerError)?;
                    ended = Some(u64::from_be_bytes(count));
                }
                Some(tag) => {
                    tags.insert(TagId(Digest(tag.try_into().map_err(|_| DamagedLedgerError)?)));
                }
            }
        }
        let subject = tally.subject(pinned.uploads());
        Ok(Self { mine: node.has(&tally.name()), subject, tally, tags, ended })
    }

    /// Counts a presentation once. If it is sent again, it is acknowledged again.
    ///
    /// # Errors
    /// [`CountError`].
    ///
    /// # Privacy
    /// The aggregator learns that somebody counts, at a drawn time.
    pub fn handle(
        &mut self,
        presentation: &[u8],
        now: Timestamp,
        verifier: &Verifier,
    ) -> Result<Step<()>, CountError> {
        if !self.mine {
            return Err(CountError::Elsewhere);
        }
        if now < self.tally.end || now >= self.tally.closes {
            return Err(CountError::Time);
        }
        let login = Login::from_bytes(presentation, Limit::ONE).map_err(VerifierError::from)?;
        if login.message != self.tally.name() {
            return Err(CountError::OtherPresentation);
        }
        let verdict = verifier.verify_for_subject(&self.subject, vec![login]).pop();
        let tag = verdict.unwrap_or(Err(VerifierError::Proof))?.name(&self.subject);
        self.tags.insert(tag);
        let name = self.tally.name();
        let key = [[TALLY].as_slice(), name.as_bytes(), tag.0.as_bytes()].concat();
        // Written again if it is there, so that it is durable before it is acknowledged.
        Ok(Step::new(vec![put(key, Vec::new())], ()))
    }

    /// Ends the count once it is over: keeps how many counted and forgets which tags.
    pub fn poll(&mut self, now: Timestamp) -> Step<()> {
        if now < self.tally.closes || self.ended.is_some() {
            return Step::default();
        }
        let count = self.tags.len() as u64;
        self.ended = Some(count);
        let prefix = [[TALLY].as_slice(), self.tally.name().as_bytes()].concat();
        let mut changes = vec![put(prefix.clone(), count.to_be_bytes().to_vec())];
        let tags = std::mem::take(&mut self.tags).into_iter();
        changes.extend(tags.map(|tag| {
            let key = [prefix.as_slice(), tag.0.as_bytes()].concat();
            Change::remove(key)
        }));
        Step::new(changes, ())
    }

    /// When to poll next; none once the count is over.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.ended.is_none().then_some(self.tally.closes)
    }

    /// Forgets the count, once it is published and its definition is gone.
    pub fn forget(self) -> Step<()> {
        let prefix = [[TALLY].as_slice(), self.tally.name().as_bytes()].concat();
        let tags = self.tags.iter().map(|tag| [prefix.as_slice(), tag.0.as_bytes()].concat());
        let keys = tags.chain([prefix.clone()]);
        Step::new(keys.map(Change::remove).collect(), ())
    }

    /// How many counted, once the count is over, if they are enough.
    #[must_use]
    pub fn result(&self, now: Timestamp) -> Option<u64> {
        let count = self.ended.unwrap_or(self.tags.len() as u64);
        (now >= self.tally.closes && count >= self.tally.min_count).then_some(count)
    }
}
