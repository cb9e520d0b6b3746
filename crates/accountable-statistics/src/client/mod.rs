//! A client: gets its credentials, gives a sample to an aggregate or volunteers a dummy,
//! and sees that it counts.
//!
//! Showings are burnt durably before they are sent, and what was sent is sent again as it
//! was. Give each sample to one aggregate: two that share one could be told apart by it.

mod attempt;

pub use attempt::Attempt;

use crate::configuration::{Pinned, SmootherId};
use crate::definition::Agreed;
use crate::refused::NotContributed;
use crate::tally::Tally;
use alpheus_anonymous_credential::error::HolderRefused;
use alpheus_anonymous_credential::holder::{About, DamagedRecord, Holder, Requesting, Which};
use alpheus_anonymous_credential::schedule::{Period, Time};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::ledger::Step;
use rand_core::CryptoRng;
use std::collections::BTreeMap;
use zeroize::Zeroize;

/// What a client's ledger holds.
pub type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// A client that waits for its credentials.
pub struct Registering(Vec<(Vec<u8>, Requesting)>);

/// A client with the credentials of one period. Not `Clone`, not `Debug`.
pub struct Client {
    pinned: Pinned,
    uploads: Holder,
    slots: Vec<Holder>,
    /// As of its start: read when an aggregate is first looked at.
    records: Records,
    abouts: BTreeMap<Digest, Abouts>,
    counts: BTreeMap<Digest, About>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.records.values_mut().for_each(Zeroize::zeroize);
    }
}

/// Its showings about one aggregate.
pub(crate) struct Abouts {
    pub(crate) uploads: About,
    pub(crate) slots: Vec<About>,
}

const UPLOADS: &[u8] = b"u";
const SLOTS: u8 = b's';

/// Where a ledger has the credential for slots of a smoother.
fn of_slots(id: SmootherId) -> Vec<u8> {
    [[SLOTS].as_slice(), &id.0.to_be_bytes()].concat()
}

/// The part of a ledger under a prefix.
fn part_of(records: &Records, prefix: &[u8]) -> Records {
    let part = records.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(prefix));
    part.map(|(key, value)| (key[prefix.len()..].to_vec(), value.clone())).collect()
}

impl Registering {
    /// Asks for credentials of the running or the next period.
    ///
    /// # Errors
    /// [`HolderRefused`].
    pub fn begin(
        pinned: &Pinned,
        account: &[u8],
        now: Time,
        which: Which,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Self>, HolderRefused> {
        let slots = pinned.ids().filter_map(|id| Some((of_slots(id), pinned.slots(id)?)));
        let all = std::iter::once((UPLOADS.to_vec(), pinned.uploads())).chain(slots);
        let mut steps = Vec::new();
        for (prefix, pass) in all {
            let step = Requesting::begin(pass.clone(), account, now, which, rng)?.under(&prefix);
            steps.push(step.then(|asking| Step::new(Vec::new(), (prefix, asking))));
        }
        Ok(Step::join(steps).then(|all| Step::new(Vec::new(), Self(all))))
    }

    /// What to send to the registrar, as often as it takes.
    #[must_use]
    pub fn requests(&self) -> Vec<Vec<u8>> {
        self.0.iter().map(|(_, asking)| asking.bytes()).collect()
    }

    /// The period of the credentials.
    #[must_use]
    pub fn period(&self) -> Option<Period> {
        self.0.first().map(|(_, asking)| asking.period())
    }

    /// Takes the registrar's answers. Once this is durable, [`Client::restore`] reads it.
    ///
    /// # Errors
    /// [`HolderRefused`].
    pub fn finish(&self, answers: &[Vec<u8>]) -> Result<Step<()>, HolderRefused> {
        if answers.len() != self.0.len() {
            return Err(HolderRefused::Response);
        }
        let mut steps = Vec::new();
        for ((prefix, asking), answer) in self.0.iter().zip(answers) {
            steps.push(asking.finish(answer)?.under(prefix));
        }
        Ok(Step::join(steps).then(|_| Step::new(Vec::new(), ())))
    }

    /// What waits for answers of a period, if all of it does.
    ///
    /// # Errors
    /// [`DamagedRecord`].
    pub fn restore(
        pinned: &Pinned,
        period: Period,
        records: &Records,
    ) -> Result<Option<Self>, DamagedRecord> {
        let slots = pinned.ids().filter_map(|id| Some((of_slots(id), pinned.slots(id)?)));
        let all = std::iter::once((UPLOADS.to_vec(), pinned.uploads())).chain(slots);
        let mut asking = Vec::new();
        for (prefix, pass) in all {
            let ours = part_of(records, &prefix);
            let Some(one) = Requesting::restore(pass.clone(), period, &ours)? else {
                return Ok(None);
            };
            asking.push((prefix, one));
        }
        Ok(Some(Self(asking)))
    }
}

/// Removes all that a client's ledger holds of periods before this one, and of aggregates that
/// are not among those that are open: showings and what they were made from, by which whoever
/// takes the device would find its uploads.
pub fn forget_before(
    pinned: &Pinned,
    period: Period,
    open: &[Agreed],
    records: &Records,
) -> Step<()> {
    let prefixes = std::iter::once(UPLOADS.to_vec()).chain(pinned.ids().map(of_slots));
    let past = prefixes.map(|prefix| {
        alpheus_anonymous_credential::holder::forget_before(period, &part_of(records, &prefix))
            .under(&prefix)
    });
    let past = Step::join(past).then(|_| Step::new(Vec::new(), ()));
    let attempts = Attempt::not_about(open, records);
    past.then(|()| attempts)
}

impl Client {
    /// A client with the credentials of a period, if its ledger has all of them.
    ///
    /// # Errors
    /// [`DamagedRecord`].
    pub fn restore(
        pinned: &Pinned,
        period: Period,
        records: Records,
    ) -> Result<Option<Self>, DamagedRecord> {
        let uploads = part_of(&records, UPLOADS);
        let Some(uploads) = Holder::restore(pinned.uploads().clone(), period, &uploads)? else {
            return Ok(None);
        };
        let mut slots = Vec::new();
        for id in pinned.ids() {
            let Some(pass) = pinned.slots(id) else { return Ok(None) };
            let ours = part_of(&records, &of_slots(id));
            let Some(holder) = Holder::restore(pass.clone(), period, &ours)? else {
                return Ok(None);
            };
            slots.push(holder);
        }
        let (pinned, abouts, counts) = (pinned.clone(), BTreeMap::new(), BTreeMap::new());
        Ok(Some(Self { pinned, uploads, slots, records, abouts, counts }))
    }

    /// The deployment.
    #[must_use]
    pub fn pinned(&self) -> &Pinned {
        &self.pinned
    }

    /// How many more contributions to an aggregate the credentials allow.
    ///
    /// # Errors
    /// [`NotContributed::Holder`].
    pub fn left(&mut self, agreed: &Agreed) -> Result<u32, NotContributed> {
        let abouts = self.about(agreed)?;
        let slots = abouts.slots.iter().map(About::left).min().unwrap_or(0);
        Ok(abouts.uploads.left().min(slots))
    }

    /// Shows the upload credential about a pure count: what to send at a time that
    /// [`Tally::draw`] gives. The second time, the same bytes.
    ///
    /// # Errors
    /// [`NotContributed::Holder`].
    pub fn count(
        &mut self,
        tally: &Tally,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Vec<u8>>, NotContributed> {
        let name = tally.name();
        if !self.counts.contains_key(&name) {
            let ours = part_of(&self.records, UPLOADS);
            let about = self.uploads.about(tally.subject(self.pinned.uploads()), &ours)?;
            self.counts.insert(name, about);
        }
        let about = self.counts.get_mut(&name).ok_or(NotContributed::Damaged)?;
        let step = match about.resend() {
            Some(again) => again,
            None => about.show(&name, rng)?,
        };
        Ok(step.under(UPLOADS))
    }

    /// Its showings about an aggregate.
    pub(crate) fn about(&mut self, agreed: &Agreed) -> Result<&mut Abouts, NotContributed> {
        let name = agreed.name();
        if !self.abouts.contains_key(&name) {
            let abouts = self.read_about(agreed)?;
            self.abouts.insert(name, abouts);
        }
        self.abouts.get_mut(&name).ok_or(NotContributed::Damaged)
    }

    fn read_about(&self, agreed: &Agreed) -> Result<Abouts, NotContributed> {
        let ours = part_of(&self.records, UPLOADS);
        let uploads = self.uploads.about(agreed.subject(self.pinned.uploads()), &ours)?;
        let mut slots = Vec::new();
        for (id, holder) in self.pinned.ids().zip(&self.slots) {
            let pass = self.pinned.slots(id).ok_or(NotContributed::Damaged)?;
            let ours = part_of(&self.records, &of_slots(id));
            slots.push(holder.about(agreed.subject(pass), &ours)?);
        }
        Ok(Abouts { uploads, slots })
    }
}
