//! A client: gets its credentials, contributes a sample or volunteers a dummy, and checks that it
//! counts.
//!
//! Presentations are burnt durably before they are sent, and sent again unchanged. Give each
//! sample to one aggregate: two aggregates that share one could be distinguished by it.

mod attempt;

pub use attempt::Attempt;

use crate::configuration::{PinnedConfiguration, SmootherId};
use crate::definition::AgreedDefinition;
use crate::role_error::ContributionError;
use crate::tally::Tally;
use alpheus_anonymous_credential::error::HolderError;
use alpheus_anonymous_credential::holder::{
    DamagedRecordError, Holder, PendingRequest, SubjectPresenter, Timing,
};
use alpheus_anonymous_credential::schedule::Period;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::Step;
use alpheus_time::Timestamp;
use rand_core::CryptoRng;
use std::collections::BTreeMap;
use zeroize::Zeroize;

/// The contents of a client's ledger.
pub type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// A client that waits for its credentials.
pub struct Registration(Vec<(Vec<u8>, PendingRequest)>);

/// A client with the credentials of one period. Not `Clone`, not `Debug`.
pub struct Client {
    pinned: PinnedConfiguration,
    uploads: Holder,
    slots: Vec<Holder>,
    /// As of its start; read when an aggregate is first used.
    records: Records,
    presentations: BTreeMap<Digest, SubjectPresentations>,
    counts: BTreeMap<Digest, SubjectPresenter>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.records.values_mut().for_each(Zeroize::zeroize);
    }
}

/// Its presentations about one aggregate.
pub(crate) struct SubjectPresentations {
    pub(crate) uploads: SubjectPresenter,
    pub(crate) slots: Vec<SubjectPresenter>,
}

const UPLOADS: &[u8] = b"u";
const SLOTS: u8 = b's';

/// The ledger prefix of the credential for slots of a smoother.
fn slots_prefix(id: SmootherId) -> Vec<u8> {
    [[SLOTS].as_slice(), &id.0.to_be_bytes()].concat()
}

/// The part of a ledger under a prefix.
fn records_under(records: &Records, prefix: &[u8]) -> Records {
    let part = records.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(prefix));
    part.map(|(key, value)| (key[prefix.len()..].to_vec(), value.clone())).collect()
}

impl Registration {
    /// Requests credentials of the running or the next period.
    ///
    /// # Errors
    /// [`HolderError`].
    pub fn begin(
        pinned: &PinnedConfiguration,
        account: &[u8],
        timing: Timing,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Self>, HolderError> {
        let slots = pinned.ids().filter_map(|id| Some((slots_prefix(id), pinned.slots(id)?)));
        let all = std::iter::once((UPLOADS.to_vec(), pinned.uploads())).chain(slots);
        let mut steps = Vec::new();
        for (prefix, pass) in all {
            let step =
                PendingRequest::begin(pass.clone(), account, timing, now, rng)?.under(&prefix);
            steps.push(step.map(|requests| (prefix, requests)));
        }
        Ok(Step::join(steps).map(Self))
    }

    /// The requests to send to the registrar, as often as needed.
    #[must_use]
    pub fn requests(&self) -> Vec<Vec<u8>> {
        self.0.iter().map(|(_, requests)| requests.bytes()).collect()
    }

    /// The period of the credentials.
    #[must_use]
    pub fn period(&self) -> Option<Period> {
        self.0.first().map(|(_, requests)| requests.period())
    }

    /// Stores the registrar's answers. Once that is durable, [`Client::restore`] reads them.
    ///
    /// # Errors
    /// [`HolderError`].
    pub fn handle(&self, answers: &[Vec<u8>]) -> Result<Step<()>, HolderError> {
        if answers.len() != self.0.len() {
            return Err(HolderError::Response);
        }
        let mut steps = Vec::new();
        for ((prefix, requests), answer) in self.0.iter().zip(answers) {
            steps.push(requests.finish(answer)?.under(prefix));
        }
        Ok(Step::join(steps).map(drop))
    }

    /// A pending registration of a period, if all of it is stored.
    ///
    /// # Errors
    /// [`DamagedRecordError`].
    pub fn restore(
        pinned: &PinnedConfiguration,
        period: Period,
        records: &Records,
    ) -> Result<Option<Self>, DamagedRecordError> {
        let slots = pinned.ids().filter_map(|id| Some((slots_prefix(id), pinned.slots(id)?)));
        let all = std::iter::once((UPLOADS.to_vec(), pinned.uploads())).chain(slots);
        let mut requests = Vec::new();
        for (prefix, pass) in all {
            let ours = records_under(records, &prefix);
            let Some(one) = PendingRequest::restore(pass.clone(), period, &ours)? else {
                return Ok(None);
            };
            requests.push((prefix, one));
        }
        Ok(Some(Self(requests)))
    }
}

/// Deletes what a client's ledger holds of earlier periods and of aggregates that are not `open`:
/// presentations and their secrets, which would reveal its uploads to anyone who takes the device.
pub fn forget_before(
    pinned: &PinnedConfiguration,
    period: Period,
    open: &[AgreedDefinition],
    records: &Records,
) -> Step<()> {
    let prefixes = std::iter::once(UPLOADS.to_vec()).chain(pinned.ids().map(slots_prefix));
    let past = prefixes.map(|prefix| {
        alpheus_anonymous_credential::holder::forget_before(
            period,
            &records_under(records, &prefix),
        )
        .under(&prefix)
    });
    let past = Step::join(past).map(drop);
    let attempts = Attempt::forget_others(open, records);
    past.then(|()| attempts)
}

impl Client {
    /// A client with the credentials of a period, if its ledger has all of them.
    ///
    /// # Errors
    /// [`DamagedRecordError`].
    pub fn restore(
        pinned: &PinnedConfiguration,
        period: Period,
        records: Records,
    ) -> Result<Option<Self>, DamagedRecordError> {
        let uploads = records_under(&records, UPLOADS);
        let Some(uploads) = Holder::restore(pinned.uploads().clone(), period, &uploads)? else {
            return Ok(None);
        };
        let mut slots = Vec::new();
        for id in pinned.ids() {
            let Some(pass) = pinned.slots(id) else { return Ok(None) };
            let ours = records_under(&records, &slots_prefix(id));
            let Some(holder) = Holder::restore(pass.clone(), period, &ours)? else {
                return Ok(None);
            };
            slots.push(holder);
        }
        let (pinned, presentations, counts) = (pinned.clone(), BTreeMap::new(), BTreeMap::new());
        Ok(Some(Self { pinned, uploads, slots, records, presentations, counts }))
    }

    /// The deployment's configuration.
    #[must_use]
    pub fn pinned(&self) -> &PinnedConfiguration {
        &self.pinned
    }

    /// How many more contributions to an aggregate the credentials allow.
    ///
    /// # Errors
    /// [`ContributionError::Holder`].
    pub fn left(&mut self, agreed: &AgreedDefinition) -> Result<u32, ContributionError> {
        let presentations = self.about(agreed)?;
        let slots = presentations.slots.iter().map(SubjectPresenter::left).min().unwrap_or(0);
        Ok(presentations.uploads.left().min(slots))
    }

    /// Presents the upload credential about a pure count: the message to send at a time from
    /// [`Tally::draw`]. The second call returns the same bytes.
    ///
    /// # Errors
    /// [`ContributionError::Holder`].
    pub fn count(
        &mut self,
        tally: &Tally,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<u8>>, ContributionError> {
        let name = tally.name();
        if !self.counts.contains_key(&name) {
            let ours = records_under(&self.records, UPLOADS);
            let about = self.uploads.for_subject(tally.subject(self.pinned.uploads()), &ours)?;
            self.counts.insert(name, about);
        }
        let about = self.counts.get_mut(&name).ok_or(ContributionError::Damaged)?;
        let step = match about.resend() {
            Some(again) => again,
            None => about.present(&name, rng)?,
        };
        Ok(step.under(UPLOADS))
    }

    /// Its presentations about an aggregate.
    pub(crate) fn about(
        &mut self,
        agreed: &AgreedDefinition,
    ) -> Result<&mut SubjectPresentations, ContributionError> {
        let name = agreed.name();
        if !self.presentations.contains_key(&name) {
            let presentations = self.read_about(agreed)?;
            self.presentations.insert(name, presentations);
        }
        self.presentations.get_mut(&name).ok_or(ContributionError::Damaged)
    }

    fn read_about(
        &self,
        agreed: &AgreedDefinition,
    ) -> Result<SubjectPresentations, ContributionError> {
        let ours = records_under(&self.records, UPLOADS);
        let uploads = self.uploads.for_subject(agreed.subject(self.pinned.uploads()), &ours)?;
        let mut slots = Vec::new();
        for (id, holder) in self.pinned.ids().zip(&self.slots) {
            let pass = self.pinned.slots(id).ok_or(ContributionError::Damaged)?;
            let ours = records_under(&self.records, &slots_prefix(id));
            slots.push(holder.for_subject(agreed.subject(pass), &ours)?);
        }
        Ok(SubjectPresentations { uploads, slots })
    }
}
