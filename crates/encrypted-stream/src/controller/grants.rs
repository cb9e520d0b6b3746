//! Raw access: owners' grants, and days' keys handed out under them.

use alpheus_crypto::seal::SealingPublic;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed::Signed;
use alpheus_policy::ids::{ConsumerId, StreamId};
use alpheus_policy::time::{Span, Timestamp};
use rand_core::CryptoRng;

use super::Controller;
use super::held::Held;
use crate::certificate::{Certificate, Deployment, consumer_id};
use crate::error::{GrantRefused, RestoreError};
use crate::grant::{self, Days, Grant, GrantedDay, HandedDay};
use crate::ledger::{Change, LogEvent, LogLine, Record, Step};
use crate::messages::ControllerMessage;

/// How far an owner's clock may run ahead of the controller's.
const AHEAD: Span = Span::seconds(600);

/// What a consumer may read of a stream.
pub(super) struct Granted {
    at: Timestamp,
    owner: VerifyingKey,
    signed: Signed<Grant>,
    certificate: Signed<Certificate>,
    /// Which days, and when first: the line about it is the same whenever it is written.
    handed: Option<(Days, Timestamp)>,
    /// Taken back since, by a word that was signed before it.
    stopped: bool,
    said: Timestamp,
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
            stopped: false,
            said: opened.at,
            days: opened.days,
            name: reader.name.clone(),
            sealing: reader.sealing.ok_or(GrantRefused::NoSealing)?,
        })
    }

    fn record(&self, stream: StreamId, reader: ConsumerId) -> Record {
        let Self { at, owner, signed, certificate, handed, stopped, .. } = self;
        Record::Grant {
            at: *at,
            owner: *owner,
            signed: signed.clone(),
            certificate: certificate.clone(),
            handed: *handed,
            stopped: *stopped,
            stream,
            reader,
        }
    }
}

/// What stands after a new word, and why it is not taken if it is not.
fn follow(known: Granted, new: Granted) -> (Granted, Option<GrantRefused>) {
    if known.signed == new.signed {
        // As it was taken, and in the same line: that may not have become durable.
        return (known, None);
    }
    if new.said > known.said {
        return (Granted { handed: known.handed, ..new }, None);
    }
    if new.days.is_none() {
        // The later grant stays known, so that none of before it comes back.
        return (Granted { stopped: true, at: new.at, ..known }, None);
    }
    let (given, known_at) = (new.said, known.said);
    (known, Some(GrantRefused::NotLater { given, known: known_at }))
}

impl Controller {
    /// Takes an owner's word on what a consumer may read of a stream. It holds once the
    /// step is committed, until a later one. The same again changes nothing; that there be
    /// *no more* is taken whenever it was signed.
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
        let now = now.max(self.clock);
        self.admit_signed_at(now, &opened)?;
        // What an older ledger may have lost was taken before it was restored.
        let at = now.max(self.restored.map_or(Timestamp(0), |at| Timestamp(at.0 + 1)));
        let new = Granted::new(&self.deployment, (at, owner), signed, &opened, certificate)?;
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

    /// Whether days may be granted by a word of this time: none from before a *no more*
    /// that may be lost, and none that would still be later than that.
    fn admit_signed_at(&self, now: Timestamp, opened: &Grant) -> Result<(), GrantRefused> {
        let given = opened.at;
        match self.restored {
            _ if opened.days.is_none() => Ok(()),
            Some(restored) if given <= restored => {
                Err(GrantRefused::BeforeRestore { given, restored })
            }
            _ if given > now.plus(AHEAD) => Err(GrantRefused::Ahead { given, now }),
            _ => Ok(()),
        }
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
        // Who was never granted anything does not learn whether consent was withdrawn.
        let granted = self.grants.get(&(*stream, *reader)).ok_or(GrantRefused::NotGranted)?;
        let held = self.guarded(stream)?;
        if self.restored.is_some_and(|restored| granted.at <= restored) {
            return Err(GrantRefused::Unconfirmed);
        }
        let days = granted.days.filter(|_| !granted.stopped).ok_or(GrantRefused::NotGranted)?;
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
        // Asked again, the reader fills no log: it is the same line, which replaces itself. It
        // is written whenever keys leave, since an earlier commit may have failed.
        let first = granted.handed.filter(|(handed, _)| *handed == days);
        let (_, at) = *granted.handed.insert(first.unwrap_or((days, now)));
        let record = granted.record(key.0, key.1);
        let event = LogEvent::KeysHanded { reader: granted.name.clone(), days };
        let line = Record::Log(LogLine { at, streams: vec![key.0], event });
        [record, line].map(|record| self.put(now, record)).into()
    }

    /// Takes what a ledger kept.
    pub(super) fn remember_grant(
        &mut self,
        (at, owner): (Timestamp, &VerifyingKey),
        (signed, certificate): (&Signed<Grant>, &Signed<Certificate>),
        (handed, stopped): (Option<(Days, Timestamp)>, bool),
        bad: RestoreError,
    ) -> Result<(), RestoreError> {
        let opened = signed.open(owner).map_err(|_| bad)?;
        let granted = Granted::new(&self.deployment, (at, owner), signed, &opened, certificate);
        let granted = granted.map_err(|_| bad)?;
        self.grants.insert((opened.stream, opened.reader), Granted { handed, stopped, ..granted });
        Ok(())
    }
}
