//! Pure counts, which need no smoother: each account counts once, at a time that it draws.

use crate::aggregator::Node;
use crate::configuration::Pinned;
use crate::definition::Place;
use alpheus_anonymous_credential::configuration::Pinned as Pass;
use alpheus_anonymous_credential::error::Refused;
use alpheus_anonymous_credential::limit::Limit;
use alpheus_anonymous_credential::messages::{Login, TagId};
use alpheus_anonymous_credential::schedule::{Period, Time};
use alpheus_anonymous_credential::subjects::Subject;
use alpheus_anonymous_credential::verifier::Verifier;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::ledger::{Change, DamagedLog, Step, put};
use alpheus_crypto::signed::{Message, Rejected, Signed, Verified};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many were somewhere: defined by the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The configuration's fingerprint.
    pub deployment: Digest,
    /// Where.
    pub place: Place,
    /// From when on.
    pub start: Time,
    /// Until when, exclusive.
    pub end: Time,
    /// When it closes: showings come in at times drawn between `end` and this.
    pub closes: Time,
    /// With fewer nothing is published.
    pub fewest: u64,
}

impl Message for Question {
    const LABEL: &'static str = labels::STATISTICS_TALLY;
}

/// A question that the operator has signed. Cheap to clone.
#[derive(Clone)]
pub struct Tally(Arc<(Verified<Question>, Period)>);

/// A question that is not to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTally {
    /// Not the operator's.
    #[error("the question is not signed by the operator: {0}")]
    Signature(Rejected),
    /// Of another deployment, or without time.
    #[error("the question is another deployment's, or start, end and close are not in order")]
    Content,
}

/// Why a showing is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTallied {
    /// It is another node's.
    #[error("this count belongs to another node")]
    Elsewhere,
    /// Not now.
    #[error("counts are taken between a question's end and its close")]
    Time,
    /// The showing does not count, or did already.
    #[error("the showing does not count: {0}")]
    Showing(#[from] Refused),
    /// Shown for something else.
    #[error("the credential was shown for something else")]
    OtherShowing,
}

impl Tally {
    /// Opens a question.
    ///
    /// # Errors
    /// [`BadTally`].
    pub fn open(signed: &Signed<Question>, pinned: &Pinned) -> Result<Self, BadTally> {
        let question = signed.open(pinned.operator()).map_err(BadTally::Signature)?;
        let schedule = pinned.uploads().schedule;
        let period = schedule.epoch_at(question.start).map(|epoch| schedule.period_of(epoch));
        let ordered = question.start < question.end && question.end < question.closes;
        match period {
            Some(period) if ordered && question.deployment == pinned.fingerprint() => {
                Ok(Self(Arc::new((question, period))))
            }
            _ => Err(BadTally::Content),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> Digest {
        self.0.0.digest()
    }

    /// What upload credentials are shown about, once each.
    #[must_use]
    pub fn subject(&self, uploads: &Pass) -> Subject {
        Subject::new(uploads, &self.name(), Limit::ONE, self.0.1)
    }

    /// When to send a showing: any time between end and close is as likely, so that its time
    /// does not tell when the client was there.
    pub fn draw(&self, rng: &mut impl CryptoRng) -> Time {
        let span = self.closes.0.saturating_sub(self.end.0).max(1);
        Time(self.end.0.saturating_add(rng.next_u64().checked_rem(span).unwrap_or(0)))
    }
}

impl std::ops::Deref for Tally {
    type Target = Question;

    fn deref(&self) -> &Question {
        &self.0.0
    }
}

/// Kind of its records, apart from those of an aggregator in the same ledger.
const TALLY: u8 = b't';

/// The aggregator's side of one count.
pub struct Counter {
    /// Whether it is this node's: no two keep tags of one.
    mine: bool,
    tally: Tally,
    subject: Subject,
    tags: BTreeSet<TagId>,
    /// What it came to, once it is over and the tags are forgotten.
    ended: Option<u64>,
}

impl Counter {
    /// A count as its ledger has it, at one of the aggregator's nodes.
    ///
    /// # Errors
    /// [`DamagedLog`].
    pub fn restore(
        tally: Tally,
        pinned: &Pinned,
        node: Node,
        records: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<Self, DamagedLog> {
        let prefix = [[TALLY].as_slice(), tally.name().as_bytes()].concat();
        let (mut tags, mut ended) = (BTreeSet::new(), None);
        for (key, value) in records {
            match key.strip_prefix(prefix.as_slice()) {
                None => {}
                Some([]) => {
                    let count = value.try_into().map_err(|_| DamagedLog)?;
                    ended = Some(u64::from_be_bytes(count));
                }
                Some(tag) => {
                    tags.insert(TagId(Digest(tag.try_into().map_err(|_| DamagedLog)?)));
                }
            }
        }
        let subject = tally.subject(pinned.uploads());
        Ok(Self { mine: node.has(&tally.name()), subject, tally, tags, ended })
    }

    /// Counts a showing, once. Sent again, it is acknowledged again.
    ///
    /// # Errors
    /// [`NotTallied`].
    ///
    /// # Privacy
    /// The aggregator learns that somebody counts, at a drawn time.
    pub fn take(
        &mut self,
        now: Time,
        showing: &[u8],
        verifier: &Verifier,
    ) -> Result<Step<()>, NotTallied> {
        if !self.mine {
            return Err(NotTallied::Elsewhere);
        }
        if now < self.tally.end || now >= self.tally.closes {
            return Err(NotTallied::Time);
        }
        let login = Login::from_bytes(showing, Limit::ONE).map_err(Refused::from)?;
        if login.message != self.tally.name() {
            return Err(NotTallied::OtherShowing);
        }
        let verdict = verifier.verify_about(&self.subject, vec![login]).pop();
        let tag = verdict.unwrap_or(Err(Refused::Proof))?.name(&self.subject);
        self.tags.insert(tag);
        let name = self.tally.name();
        let key = [[TALLY].as_slice(), name.as_bytes(), tag.0.as_bytes()].concat();
        // Written again for one that is there, so that it is durable before it is acknowledged.
        Ok(Step::new(vec![put(key, Vec::new())], ()))
    }

    /// Ends it, once it is over: how many counted is kept, and of whom is forgotten.
    pub fn poll(&mut self, now: Time) -> Step<()> {
        if now < self.tally.closes || self.ended.is_some() {
            return Step::new(Vec::new(), ());
        }
        let count = self.tags.len() as u64;
        self.ended = Some(count);
        let prefix = [[TALLY].as_slice(), self.tally.name().as_bytes()].concat();
        let mut changes = vec![put(prefix.clone(), count.to_be_bytes().to_vec())];
        let tags = std::mem::take(&mut self.tags).into_iter();
        changes.extend(tags.map(|tag| {
            let key = [prefix.as_slice(), tag.0.as_bytes()].concat();
            Change { key, value: None }
        }));
        Step::new(changes, ())
    }

    /// Forgets what it came to: for who has published it, and has no such question any more.
    pub fn forget(self) -> Step<()> {
        let prefix = [[TALLY].as_slice(), self.tally.name().as_bytes()].concat();
        let tags = self.tags.iter().map(|tag| [prefix.as_slice(), tag.0.as_bytes()].concat());
        let keys = tags.chain([prefix.clone()]);
        Step::new(keys.map(|key| Change { key, value: None }).collect(), ())
    }

    /// How many counted, once it is over and they were enough.
    #[must_use]
    pub fn result(&self, now: Time) -> Option<u64> {
        let count = self.ended.unwrap_or(self.tags.len() as u64);
        (now >= self.tally.closes && count >= self.tally.fewest).then_some(count)
    }
}
