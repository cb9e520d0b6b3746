//! Raw access: owners' grants, and days' keys handed out under them.

use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Signed;
use alpheus_policy::ids::{ConsumerId, StreamId};
use alpheus_policy::time::Timestamp;
use rand_core::CryptoRng;

use super::Controller;
use super::held::Held;
use crate::certificate::{Certificate, Deployment, consumer_id};
use crate::error::{GrantRefused, RestoreError};
use crate::grant::{self, Days, Grant, GrantedDay, HandedDay};
use crate::ledger::{Change, LogEvent, LogLine, Record, Step};
use crate::messages::ControllerMessage;

/// What a consumer may read of a stream.
pub(super) struct Granted {
    at: Timestamp,
    owner: VerifyingKey,
    signed: Signed<Grant>,
    certificate: Signed<Certificate>,
    handed: Option<Days>,
    version: u32,
    days: Option<Days>,
    name: String,
    sealing: SealingPublic,
}

impl Granted {
    /// Whose certificate it is, if it is a consumer's with a key to seal for.
    fn new(
        deployment: &Deployment,
        (at, owner): (Timestamp, &VerifyingKey),
        signed: &Signed<Grant>,
        opened: &Grant,
        certificate: &Signed<Certificate>,
    ) -> Result<Self, GrantRefused> {
        let reader = deployment.consumer(certificate).map_err(|_| GrantRefused::Certificate)?;
        if consumer_id(&reader) != opened.reader {
            return Err(GrantRefused::OtherReader);
        }
        Ok(Self {
            at,
            owner: *owner,
            signed: signed.clone(),
            certificate: certificate.clone(),
            handed: None,
            version: opened.version,
            days: opened.days,
            name: reader.name.clone(),
            sealing: reader.sealing.ok_or(GrantRefused::NoSealing)?,
        })
    }

    fn record(&self, stream: StreamId, reader: ConsumerId) -> Record {
        let Self { at, owner, signed, certificate, handed, .. } = self;
        Record::Grant {
            at: *at,
            owner: *owner,
            signed: signed.clone(),
            certificate: certificate.clone(),
            handed: *handed,
            stream,
            reader,
        }
    }
}

impl Controller {
    /// Takes an owner's word on what a consumer may read of a stream. It holds once the
    /// step is committed, until the next; the same again changes nothing.
    ///
    /// # Errors
    /// [`GrantRefused`] names the rule.
    pub fn grant(
        &mut self,
        now: Timestamp,
        owner: &VerifyingKey,
        signed: &Signed<Grant>,
        certificate: &Signed<Certificate>,
    ) -> Result<Step<ControllerMessage>, GrantRefused> {
        let stream = signed.open(owner).map_err(|_| GrantRefused::Unsigned)?.stream;
        let held = self.guarded(&stream)?;
        let opened = grant::open(signed, owner, &held.owner)?;
        // What an older ledger may have lost was taken before it was restored.
        let at =
            now.max(self.clock).max(self.restored.map_or(Timestamp(0), |at| Timestamp(at.0 + 1)));
        let mut granted =
            Granted::new(&self.deployment, (at, owner), signed, &opened, certificate)?;
        let key = (stream, opened.reader);
        if let Some(known) = self.grants.get(&key) {
            let (given, known_version) = (opened.version, known.version);
            // Said again after a restore that may have lost a later one, it counts anew.
            let again = known.signed == granted.signed;
            if given < known_version || (given == known_version && !again) {
                return Err(GrantRefused::NotLater { given, known: known_version });
            }
            granted.handed = known.handed;
        }
        let event = LogEvent::Granted { reader: granted.name.clone(), days: granted.days };
        let record = granted.record(stream, opened.reader);
        self.grants.insert(key, granted);
        let line = Record::Log(LogLine { at, streams: vec![stream], event });
        let changes = [record, line].map(|record| self.put(now, record));
        Ok(Step::new(changes.into(), Vec::new()))
    }

    /// What an owner last said of a reader, and with which key.
    #[must_use]
    pub fn granted(
        &self,
        stream: &StreamId,
        reader: &ConsumerId,
    ) -> Option<(&Signed<Grant>, &VerifyingKey)> {
        self.grants.get(&(*stream, *reader)).map(|granted| (&granted.signed, &granted.owner))
    }

    /// A stream that something may be handed out of.
    fn guarded(&self, stream: &StreamId) -> Result<&Held, GrantRefused> {
        let held = self.streams.get(stream).ok_or(GrantRefused::NotHeld)?;
        if held.revoked.is_some() {
            return Err(GrantRefused::Withdrawn);
        }
        if held.is_suspended() {
            return Err(GrantRefused::Unconfirmed);
        }
        Ok(held)
    }

    /// Hands the keys of all granted days that are over to their reader, sealed. The
    /// owner's log names new ones, in the commit that the step's keys come out of.
    ///
    /// # Privacy
    /// Whoever holds the reader's key reads every event of these days.
    ///
    /// # Errors
    /// [`GrantRefused`] names the rule.
    pub fn hand_out(
        &mut self,
        now: Timestamp,
        stream: &StreamId,
        reader: &ConsumerId,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<HandedDay>, GrantRefused> {
        let held = self.guarded(stream)?;
        let granted = self.grants.get(&(*stream, *reader)).ok_or(GrantRefused::NotGranted)?;
        if self.restored.is_some_and(|restored| granted.at <= restored) {
            return Err(GrantRefused::Unconfirmed);
        }
        let days = granted.days.ok_or(GrantRefused::NotGranted)?;
        let days = days.over_by(now).ok_or(GrantRefused::NotOver)?;
        held.parted_at(days)?;
        let hand = |day| {
            let schema = held.schema.id();
            let granted_day = GrantedDay { stream: *stream, schema, reader: *reader, day };
            let secret = held.day_secret(day).ok_or(GrantRefused::Withdrawn)?;
            granted_day.seal(&granted.sealing, &secret, rng)
        };
        let handed = (days.first..=days.last).map(hand).collect::<Result<Vec<_>, _>>()?;
        Ok(Step::new(self.note_handed(now, (*stream, *reader), days), handed))
    }

    fn note_handed(
        &mut self,
        now: Timestamp,
        key: (StreamId, ConsumerId),
        days: Days,
    ) -> Vec<Change> {
        let Some(granted) = self.grants.get_mut(&key) else { return Vec::new() };
        // Asked again, the reader fills no log: the same record, and the same line.
        let first = granted.handed != Some(days);
        granted.handed = Some(days);
        let record = granted.record(key.0, key.1);
        let event = LogEvent::KeysHanded { reader: granted.name.clone(), days };
        let line = Record::Log(LogLine { at: now, streams: vec![key.0], event });
        let line = first.then_some(line);
        [Some(record), line].into_iter().flatten().map(|record| self.put(now, record)).collect()
    }

    /// Takes what a ledger kept.
    pub(super) fn remember_grant(
        &mut self,
        (at, owner): (Timestamp, &VerifyingKey),
        (signed, certificate): (&Signed<Grant>, &Signed<Certificate>),
        handed: Option<Days>,
        bad: RestoreError,
    ) -> Result<(), RestoreError> {
        let opened = signed.open(owner).map_err(|_| bad)?;
        let granted = Granted::new(&self.deployment, (at, owner), signed, &opened, certificate);
        let granted = granted.map_err(|_| bad)?;
        self.grants.insert((opened.stream, opened.reader), Granted { handed, ..granted });
        Ok(())
    }
}
