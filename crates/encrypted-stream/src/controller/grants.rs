//! Raw access: owners' grants, and the day keys released under them.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::hybrid::HybridPublic;
use alpheus_crypto::signed_message::Signed;
use alpheus_policy::ids::{ConsumerId, OwnerId, PlanId, StreamId};
use alpheus_time::{Span, Timestamp, Window};
use rand_core::CryptoRng;
use std::collections::BTreeSet;

use super::Controller;
use super::plan_state::PlanState;
use super::stream_state::StreamState;
use crate::certificate::{Certificate, CertifiedOwner, Deployment, consumer_id};
use crate::error::{GrantError, RestoreError};
use crate::grant::{self, Days, Grant, GrantedStream, HandedDays};
use crate::ledger::{Change, LogEvent, LogLine, Record, Step};
use crate::messages::ControllerMessage;

/// How far an owner's clock may run ahead of the controller's.
const AHEAD: Span = Span::seconds(600);

/// The limit on spans of days that are remembered apart.
const MAX_HANDED: usize = 32;

/// What a consumer may read of a stream.
pub(super) struct GrantState {
    at: Timestamp,
    owner: CertifiedOwner,
    signed: Signed<Grant>,
    pub(super) certificate: Signed<Certificate>,
    /// Which days, under this grant and earlier ones, and when first. The line about them is the same
    /// whenever it is written.
    pub(super) handed: Vec<(Days, Timestamp)>,
    /// Withdrawn since, by a statement that was signed earlier than the grant.
    pub(super) stopped: bool,
    signed_at: Timestamp,
    pub(super) days: Option<Days>,
    pub(super) name: String,
    /// Of the key that the reader's certificate names.
    hybrid: Digest,
}

impl GrantState {
    /// Fails unless the certificate is that of a consumer with a key to seal for.
    fn new(
        deployment: &Deployment,
        (at, owner): (Timestamp, &CertifiedOwner),
        signed: &Signed<Grant>,
        opened: &Grant,
        certificate: &Signed<Certificate>,
    ) -> Result<Self, GrantError> {
        let reader = deployment.consumer(certificate).map_err(|_| GrantError::Certificate)?;
        if consumer_id(&reader) != opened.reader {
            return Err(GrantError::OtherReader);
        }
        Ok(Self {
            at,
            owner: owner.clone(),
            signed: signed.clone(),
            certificate: certificate.clone(),
            handed: Vec::new(),
            stopped: false,
            // *No more* is accepted even from a clock that is far ahead; it must not stay
            // in force longer than that.
            signed_at: opened.at.min(at.plus(AHEAD)),
            days: opened.days,
            name: reader.party.name.clone(),
            hybrid: reader.party.hybrid.ok_or(GrantError::Certificate)?,
        })
    }

    /// Whether the reader can read a part of the window, now or once its day is over.
    fn opens(&self, window: Window) -> bool {
        let granted = self.days.filter(|_| !self.stopped);
        let handed = self.handed.iter().map(|(days, _)| *days);
        granted.into_iter().chain(handed).any(|days| days.overlap(window))
    }

    /// Remembers that keys of these days were released. Spans that overlap or touch become one. If
    /// there are too many, the first two do, with the days between them: no day is forgotten.
    fn note(&mut self, days: Days, now: Timestamp) {
        let touch = |one: &Days, other: &Days| {
            one.first <= other.last.saturating_add(1) && other.first <= one.last.saturating_add(1)
        };
        let (mut all, mut apart) = (days, Vec::new());
        for known in std::mem::take(&mut self.handed) {
            if touch(&known.0, &all) { all = all.with(known.0) } else { apart.push(known) }
        }
        if apart.len() >= MAX_HANDED {
            let (oldest, _) = apart.remove(0);
            if let Some((next, _)) = apart.first_mut() {
                *next = next.with(oldest);
            }
        }
        apart.push((all, now));
        self.handed = apart;
    }

    fn record(&self, stream: StreamId, reader: ConsumerId) -> Record {
        let Self { at, owner, signed, certificate, handed, stopped, .. } = self;
        Record::Grant {
            at: *at,
            owner: owner.certificate().clone(),
            signed: signed.clone(),
            certificate: certificate.clone(),
            handed: handed.clone(),
            stopped: *stopped,
            stream,
            reader,
        }
    }
}

/// Combines a known grant with a new statement; also returns the reason if the new one is
/// refused.
fn follow(known: GrantState, new: GrantState) -> (GrantState, Option<GrantError>) {
    if known.signed == new.signed {
        // The line stays as first written: that commit may have failed.
        return (known, None);
    }
    if new.signed_at > known.signed_at {
        return (GrantState { handed: known.handed, ..new }, None);
    }
    if new.days.is_none() {
        // The later grant stays known, so that no earlier one can return.
        return (GrantState { stopped: true, at: new.at, ..known }, None);
    }
    let latest = known.signed_at;
    (known, Some(GrantError::NotLater { signed_at: new.signed_at, latest }))
}

impl Controller {
    /// Takes an owner's statement on what a consumer may read of a stream. It is in force
    /// once the step is committed, until a later one. Repeating it changes nothing. *No
    /// more* is accepted whenever it was signed.
    ///
    /// # Errors
    /// [`GrantError`] names the rule.
    pub fn grant(
        &mut self,
        signed: &Signed<Grant>,
        certificate: &Signed<Certificate>,
        owner: &CertifiedOwner,
        now: Timestamp,
    ) -> Result<Step<Vec<ControllerMessage>>, GrantError> {
        let stream = signed.open(owner.key()).map_err(|_| GrantError::Unsigned)?.stream;
        let state = self.guarded_stream(&stream)?;
        let opened = grant::open(signed, owner, &state.owner)?;
        let now = now.max(self.clock);
        self.admit_signed_at(now, &opened)?;
        // What an older ledger may have lost was accepted before the restore.
        let at = now.max(self.restored_at.map_or(Timestamp(0), |at| Timestamp(at.0 + 1)));
        let new = GrantState::new(&self.deployment, (at, owner), signed, &opened, certificate)?;
        let key = (stream, opened.reader);
        let granted = match self.grants.remove(&key) {
            None => new,
            Some(known) => {
                let (next, refused) = follow(known, new);
                if let Some(refused) = refused {
                    self.grants.insert(key, next);
                    return Err(refused);
                }
                next
            }
        };
        let days = granted.days.filter(|_| !granted.stopped);
        let event = LogEvent::Granted { reader: granted.name.clone(), days };
        let line = LogLine { at: granted.at, streams: vec![stream], event };
        let record = granted.record(stream, opened.reader);
        self.grants.insert(key, granted);
        let changes = [record, Record::Log(line)].map(|record| self.put(now, record));
        Ok(Step::new(changes.into(), Vec::new()))
    }

    /// Checks the time at which a grant was signed. It must not be before a *no more* that
    /// may be lost, nor so late that it would override the next one.
    fn admit_signed_at(&self, now: Timestamp, opened: &Grant) -> Result<(), GrantError> {
        let signed_at = opened.at;
        match self.restored_at {
            _ if opened.days.is_none() => Ok(()),
            Some(restored) if signed_at <= restored => {
                Err(GrantError::BeforeRestore { signed_at, restored })
            }
            _ if signed_at > now.plus(AHEAD) => Err(GrantError::Ahead { signed_at, now }),
            _ => Ok(()),
        }
    }

    /// Leaves owners out who let the consumer of a plan read raw data of a window. It can subtract
    /// them from the sum, so they hide nobody from it. A minimum of one hides nobody anyway.
    pub(super) fn leave_out_read(
        &self,
        plan: &PlanId,
        window: Window,
        owners: &mut BTreeSet<OwnerId>,
    ) {
        let joined = self.plans.get(plan).map(PlanState::plan);
        let sealed = joined.filter(|plan| plan.population.min > 1 && plan.sealed_to.is_some());
        let Some(reader) = sealed.map(|plan| plan.consumer.as_str()) else { return };
        for granted in self.grants.values() {
            // By name, as policies have it: a new certificate does not make somebody else of a reader.
            if granted.name == reader && granted.opens(window) {
                owners.remove(&granted.owner.id());
            }
        }
    }

    /// What an owner last stated about a reader, and that owner.
    #[must_use]
    pub fn grant_for(
        &self,
        stream: &StreamId,
        reader: &ConsumerId,
    ) -> Option<(&Signed<Grant>, &CertifiedOwner)> {
        self.grants.get(&(*stream, *reader)).map(|granted| (&granted.signed, &granted.owner))
    }

    /// A stream whose keys may be released.
    fn guarded_stream(&self, stream: &StreamId) -> Result<&StreamState, GrantError> {
        let state = self.streams.get(stream).ok_or(GrantError::NotHeld)?;
        if state.revoked.is_some() {
            return Err(GrantError::Withdrawn);
        }
        if state.is_suspended() {
            return Err(GrantError::Unconfirmed);
        }
        Ok(state)
    }

    /// Hands the keys of all granted days that are over to their reader, sealed for the key that
    /// the reader's certificate names. The owner's log lists new ones, in the commit that releases
    /// the keys.
    ///
    /// # Privacy
    /// Anyone who holds the reader's key can read every event of these days.
    ///
    /// # Errors
    /// [`GrantError`] names the rule.
    pub fn hand_out(
        &mut self,
        stream: &StreamId,
        (reader, key): (&ConsumerId, &HybridPublic),
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<HandedDays>, GrantError> {
        // A reader without a grant must not learn whether consent was withdrawn.
        let granted = self.grants.get(&(*stream, *reader)).ok_or(GrantError::NotGranted)?;
        let state = self.guarded_stream(stream)?;
        if state.is_barred {
            return Err(GrantError::Revoked);
        }
        if self.restored_at.is_some_and(|restored| granted.at <= restored) {
            return Err(GrantError::Unconfirmed);
        }
        let days = granted.days.filter(|_| !granted.stopped).ok_or(GrantError::NotGranted)?;
        let days = days.over_by(now).ok_or(GrantError::NotOver)?;
        let days = state.tenure.days(days).ok_or(GrantError::NotHeld)?;
        state.check_day_edges(days)?;
        if granted.hybrid != key.digest() {
            return Err(GrantError::OtherHybrid);
        }
        let secret = |day| state.day_secret(day).ok_or(GrantError::Withdrawn);
        let secrets = (days.first..=days.last).map(secret).collect::<Result<Vec<_>, _>>()?;
        let of = GrantedStream {
            stream: *stream,
            schema: state.schema.id(),
            owner: state.owner,
            controller: self.identity.id(),
        };
        let authority = self.deployment.authority();
        let handed = of.seal(authority, (reader, key), (days, &secrets), rng)?;
        Ok(Step::new(self.note_handed(now, (*stream, *reader), days), handed))
    }

    fn note_handed(
        &mut self,
        now: Timestamp,
        key: (StreamId, ConsumerId),
        days: Days,
    ) -> Vec<Change> {
        let Some(granted) = self.grants.get_mut(&key) else { return Vec::new() };
        // Repeated requests do not fill the log: the line is the same and replaces itself.
        // It is written whenever keys are sent, since an earlier commit may have failed.
        let known = granted.handed.iter().find(|(handed, _)| handed.with(days) == *handed);
        let known = known.map(|(_, at)| *at);
        let at = known.unwrap_or(now);
        if known.is_none() {
            granted.note(days, now);
        }
        let record = granted.record(key.0, key.1);
        let event = LogEvent::KeysHanded { reader: granted.name.clone(), days };
        let line = Record::Log(LogLine { at, streams: vec![key.0], event });
        [record, line].map(|record| self.put(now, record)).into()
    }

    /// Applies a record of the ledger.
    pub(super) fn remember_grant(
        &mut self,
        (at, owner): (Timestamp, &Signed<Certificate>),
        (signed, certificate): (&Signed<Grant>, &Signed<Certificate>),
        (handed, stopped): (Vec<(Days, Timestamp)>, bool),
        bad: RestoreError,
    ) -> Result<(), RestoreError> {
        let owner = self.deployment.owner(owner).map_err(|_| bad)?;
        let opened = signed.open(owner.key()).map_err(|_| bad)?;
        let granted = GrantState::new(&self.deployment, (at, &owner), signed, &opened, certificate);
        let granted = granted.map_err(|_| bad)?;
        self.grants
            .insert((opened.stream, opened.reader), GrantState { handed, stopped, ..granted });
        Ok(())
    }
}
