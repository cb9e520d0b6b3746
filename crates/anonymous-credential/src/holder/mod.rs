//! The holder requests a credential for a period, presents it, re-ups a session, and resends
//! lost messages.
//!
//! Every presentation is burnt durably before it is sent: [`Holder::log_in`] and
//! [`Holder::re_up`] return a [`Step`], whose commit releases the bytes. A message is resent
//! byte for byte and never proven again. Epochs come from the holder's own clock and pinned
//! schedule; no argument names one.

mod codes;
mod presentation;
mod records;
mod request;
mod subject_presenter;

pub use records::{DamagedRecordError, forget_before};
pub use request::PendingRequest;
pub use subject_presenter::{SubjectPresenter, present_together};

use crate::configuration::{ConfigurationMatch, PinnedConfiguration};
use crate::error::HolderError;
use crate::ledger::{Change, Step};
use crate::limit::Limit;
use crate::messages::{Login, Logout, ReUp, SessionId, TagId, connection};
use crate::refutation::OpenPresentation;
use crate::schedule::{Epoch, Period};
use crate::statements;
use alpheus_crypto::group::{Element, IdentityError, SecretScalar};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sigma::ProvingError;
use alpheus_crypto::sign::{Signature, SigningKey};
use alpheus_time::Timestamp;
use presentation::Bits;
use rand_core::CryptoRng;
use std::collections::{BTreeMap, BTreeSet};
use zeroize::Zeroizing;

/// Which of the two epochs (or periods) that may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// The running one.
    Running,
    /// The next one, shortly before it starts.
    Next,
}

/// A holder with a credential of one period. Not `Clone`, not `Debug`; its secrets are wiped on
/// drop.
pub struct Holder {
    pinned: PinnedConfiguration,
    period: Period,
    m1: SecretScalar,
    u: Element,
    /// U' = (x0 + x1·m1 + x2·m2)·U.
    mac: Element,
    /// By epoch and index. An entry is burnt even if it never arrived.
    presentations: BTreeMap<(Epoch, u32), StoredPresentation>,
    /// Epochs whose presentations are parts of a login code: they are for gates only.
    codes: BTreeSet<Epoch>,
}

/// A stored presentation, to be resent byte for byte.
struct StoredPresentation {
    session: SessionId,
    /// Seed of the session's key.
    seed: Secret<32>,
    bytes: Vec<u8>,
}

/// Bytes to send, on a fresh connection, and the session that they are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundMessage {
    /// The session that it begins or continues.
    pub session: SessionId,
    /// The epoch that it is for; for a code, its first.
    pub epoch: Epoch,
    /// A [`Login`] or [`ReUp`].
    pub bytes: Vec<u8>,
}

impl OutboundMessage {
    /// Whether it is a [`ReUp`].
    #[must_use]
    pub fn is_re_up(&self) -> bool {
        self.bytes.len() == ReUp::LENGTH
    }
}

impl Holder {
    /// Presents the credential in an open epoch, with the next unburnt index.
    ///
    /// # Errors
    /// [`HolderError`].
    ///
    /// # Privacy
    /// The verifier learns that some holder of the period is present. Verifier and issuer
    /// together cannot link two presentations, unless the channel links them: use a fresh
    /// connection for each.
    pub fn log_in(
        &mut self,
        timing: Timing,
        compared: &ConfigurationMatch,
        message: &Digest,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<OutboundMessage>, HolderError> {
        if compared.0 != self.pinned.fingerprint() {
            return Err(HolderError::OtherConfiguration);
        }
        let epoch = self.epoch(timing, now)?;
        if self.pinned.schedule.period_of(epoch) != self.period {
            return Err(HolderError::OtherPeriod);
        }
        self.check_no_code(epoch)?;
        let used = self.presentations.range((epoch, 0)..=(epoch, u32::MAX)).next_back();
        let index = used.map_or(0, |((_, index), _)| index + 1);
        if index >= self.pinned.limit.get() {
            return Err(HolderError::Burnt);
        }
        let hedge = self.hedge(epoch, index, rng);
        let seed = hedge.seed();
        let login = self.present((epoch, index), &hedge, message, rng)?.login;
        let tag = TagId::of(&self.pinned.fingerprint(), epoch, &login.tag);
        let stored = StoredPresentation { session: SessionId(tag), seed, bytes: login.to_bytes() };
        Ok(self.burn(epoch, index, stored))
    }

    /// Carries the newest session to the next epoch, once that is open.
    ///
    /// # Errors
    /// [`HolderError`].
    ///
    /// # Privacy
    /// The re-up is linked to its session, by design, and to no other.
    pub fn re_up(
        &mut self,
        now: Timestamp,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<OutboundMessage>, HolderError> {
        if self.pinned.limit != Limit::ONE {
            return Err(HolderError::LimitForbids);
        }
        let newest = self.presentations.last_key_value().ok_or(HolderError::NothingPresented)?;
        let (from, session, seed) = (newest.0.0, newest.1.session, newest.1.seed.duplicate());
        self.check_clock(now)?;
        let epoch = from.next();
        if !self.pinned.schedule.is_open(epoch, now) {
            let over = now >= self.pinned.schedule.starts(epoch.next());
            return Err(if over { HolderError::NothingPresented } else { HolderError::Epoch });
        }
        if self.pinned.schedule.period_of(epoch) != self.period {
            return Err(HolderError::NeedsLogin);
        }
        self.check_no_code(from)?;
        let re_up = self.carry(from, session, rng)?;
        let stored = StoredPresentation { session, seed, bytes: re_up.to_bytes() };
        Ok(self.burn(epoch, 0, stored))
    }

    /// The last presentation of an epoch, byte for byte, to be resent on a new connection after
    /// its acknowledgement was lost.
    ///
    /// # Errors
    /// [`HolderError::NothingPresented`]; [`HolderError::Code`] for a part of a login code.
    pub fn resend(&self, epoch: Epoch) -> Result<Step<OutboundMessage>, HolderError> {
        self.check_no_code(epoch)?;
        let last = self.presentations.range((epoch, 0)..=(epoch, u32::MAX)).next_back();
        let ((_, index), stored) = last.ok_or(HolderError::NothingPresented)?;
        let outgoing =
            OutboundMessage { session: stored.session, epoch, bytes: stored.bytes.clone() };
        // Stored again, since the first commit may not have reached the disk yet.
        Ok(Step::new(vec![records::presentation(self.period, epoch, *index, stored)], outgoing))
    }

    /// Like [`Holder::resend`], for the session that was logged in or re-upped for `epoch`. If
    /// it was carried to the next epoch, and that is open, this is the re-up: the store accepts
    /// nothing older.
    ///
    /// # Errors
    /// As for [`Holder::resend`].
    pub fn resend_latest(
        &self,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Step<OutboundMessage>, HolderError> {
        let session = |epoch| self.presentations.get(&(epoch, 0)).map(|stored| stored.session);
        let onward = epoch.next();
        let carried = session(epoch).is_some() && session(epoch) == session(onward);
        let open = self.pinned.schedule.is_open(onward, now);
        self.resend(if carried && open { onward } else { epoch })
    }

    /// Signs a server's fresh nonce for a connection of a session.
    ///
    /// # Errors
    /// [`HolderError::NothingPresented`] if the session is not this holder's.
    pub fn connect(&self, id: SessionId, nonce: &[u8; 32]) -> Result<Signature, HolderError> {
        let key = self.session_key(id)?;
        Ok(key.sign(labels::CREDENTIAL_CONNECTION, &connection(id, nonce)))
    }

    /// Signs for an application that identifies a session by its key, under the application's
    /// own label.
    ///
    /// # Errors
    /// [`HolderError::NothingPresented`] if the session is not this holder's.
    ///
    /// # Privacy
    /// Everything that one session's key signs is linked, by design.
    pub fn sign(
        &self,
        id: SessionId,
        label: &'static str,
        message: &[u8],
    ) -> Result<Signature, HolderError> {
        Ok(self.session_key(id)?.sign(label, message))
    }

    /// Ends a session.
    ///
    /// # Errors
    /// [`HolderError::NothingPresented`] if the session is not this holder's.
    pub fn log_out(&self, id: SessionId) -> Result<Logout, HolderError> {
        let key = self.session_key(id)?;
        let signature = key.sign(labels::CREDENTIAL_LOGOUT, id.0.0.as_bytes());
        Ok(Logout { session: id, signature })
    }

    /// The newest epoch with a presentation.
    #[must_use]
    pub fn newest(&self) -> Option<Epoch> {
        self.presentations.last_key_value().map(|((epoch, _), _)| *epoch)
    }

    /// Whether a session was begun or carried on for an epoch, as far as records remain.
    #[must_use]
    pub fn has_presented(&self, session: SessionId, epoch: Epoch) -> bool {
        let mut stored = self.presentations.range((epoch, 0)..=(epoch, u32::MAX));
        stored.any(|(_, stored)| stored.session == session)
    }

    /// The period of the credential.
    #[must_use]
    pub fn period(&self) -> Period {
        self.period
    }

    /// Deletes the records of epochs that can no longer be presented in.
    pub fn prune(&mut self) -> Step<()> {
        let Some(newest) = self.newest() else { return Step::new(Vec::new(), ()) };
        // A code is shown in the first of its epochs, when all of them are already burnt.
        let reach = self.pinned.schedule.ahead.saturating_add(1);
        let first = (Epoch(newest.0.saturating_sub(reach)), 0);
        let kept = self.presentations.split_off(&first);
        let over = std::mem::replace(&mut self.presentations, kept);
        let gone = |(epoch, index): &(Epoch, u32)| Change {
            key: records::presentation_key(self.period, *epoch, *index),
            value: None,
        };
        let kept = self.codes.split_off(&first.0);
        let codes = std::mem::replace(&mut self.codes, kept);
        let codes = codes.iter().map(|epoch| records::no_code(self.period, *epoch));
        Step::new(over.keys().map(gone).chain(codes).collect(), ())
    }

    /// Checks that an epoch is not a login code's. Nothing of a code may reach a gateway, which
    /// could link the scan at the gate to the connection.
    ///
    /// # Errors
    /// [`HolderError::Code`].
    pub fn check_no_code(&self, epoch: Epoch) -> Result<(), HolderError> {
        if self.codes.contains(&epoch) { Err(HolderError::Code) } else { Ok(()) }
    }

    fn session_key(&self, id: SessionId) -> Result<SigningKey, HolderError> {
        let stored = self.presentations.values().find(|stored| stored.session == id);
        Ok(session_key(&stored.ok_or(HolderError::NothingPresented)?.seed))
    }

    /// The chosen epoch, if it is open by the holder's clock.
    fn epoch(&self, timing: Timing, now: Timestamp) -> Result<Epoch, HolderError> {
        self.check_clock(now)?;
        let running = self.pinned.schedule.epoch_at(now);
        let epoch = match timing {
            Timing::Running => running.ok_or(HolderError::Epoch)?,
            Timing::Next => running.map_or(Epoch(0), Epoch::next),
        };
        if self.pinned.schedule.is_open(epoch, now) { Ok(epoch) } else { Err(HolderError::Epoch) }
    }

    /// Refuses a clock in the past, for which burnt records may have been deleted.
    fn check_clock(&self, now: Timestamp) -> Result<(), HolderError> {
        let running = self.pinned.schedule.epoch_at(now).map_or(0, |epoch| epoch.0);
        let newest = self.newest().map_or(0, |epoch| epoch.0);
        let ahead = self.pinned.schedule.ahead;
        if running.saturating_add(1).saturating_add(ahead) < newest {
            Err(HolderError::ClockStepped)
        } else {
            Ok(())
        }
    }

    fn burn(
        &mut self,
        epoch: Epoch,
        index: u32,
        stored: StoredPresentation,
    ) -> Step<OutboundMessage> {
        let change = records::presentation(self.period, epoch, index, &stored);
        let outgoing =
            OutboundMessage { session: stored.session, epoch, bytes: stored.bytes.clone() };
        self.presentations.insert((epoch, index), stored);
        Step::new(vec![change], outgoing)
    }

    /// Builds a presentation: a fresh randomisation of the credential, the tag, and the proof
    /// that they belong together.
    fn present(
        &self,
        (epoch, index): (Epoch, u32),
        hedge: &Hedge,
        message: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Result<OpenPresentation, HolderError> {
        let bits = Bits::new(self.pinned.limit, index, hedge)?;
        let unproven = self.unproven((epoch, index), hedge, message, &bits)?;
        let witness = unproven.witness(&self.m1, &bits);
        let openings = bits.openings(&unproven.presentation);
        let proof =
            unproven.presentation.statement.prove_with_openings(&witness, &openings, rng)?;
        let login = Login { proof: proof.to_bytes(), ..unproven.login };
        Ok(OpenPresentation { v: unproven.v, login })
    }

    /// Hedged randomness of one presentation.
    fn hedge(&self, epoch: Epoch, index: u32, rng: &mut impl CryptoRng) -> Hedge {
        let (fresh, m1) = (Secret::<32>::random(rng), self.m1.expose());
        let (fingerprint, epoch) = (self.pinned.fingerprint(), epoch.0.to_be_bytes());
        // One allocation, so that no copy stays behind.
        let mut hedge = Zeroizing::new(Vec::with_capacity(128));
        let parts = [fresh.expose(), m1.expose(), fingerprint.as_bytes(), &epoch[..]];
        parts.iter().for_each(|part| hedge.extend_from_slice(part));
        hedge.extend_from_slice(&index.to_be_bytes());
        Hedge(hedge)
    }

    fn carry(
        &self,
        from: Epoch,
        session: SessionId,
        rng: &mut impl CryptoRng,
    ) -> Result<ReUp, HolderError> {
        let epoch = from.next();
        let re_up = ReUp { epoch, session, tag: self.tag(epoch, 0)?, proof: Vec::new() };
        let statement = statements::re_up(&self.pinned, &self.tag(from, 0)?, &re_up);
        Ok(ReUp { proof: statement.prove(&[&self.m1], rng)?.to_bytes(), ..re_up })
    }

    /// τ = (m1 + i)⁻¹·T.
    fn tag(&self, epoch: Epoch, index: u32) -> Result<Element, ProvingError> {
        let tag = self.pinned.context(epoch).times(&self.shifted(index)?);
        tag.map_err(|IdentityError| ProvingError::Identity)
    }

    /// (m1 + i)⁻¹.
    fn shifted(&self, index: u32) -> Result<SecretScalar, ProvingError> {
        let shifted = self.m1.plus(&SecretScalar::from_small(index));
        shifted.inverse().map_err(|_| ProvingError::Identity)
    }
}

/// Fresh randomness, m1, fingerprint, epoch and index. Even if the generator repeats itself, no
/// two presentations share a blinding, which would link them.
struct Hedge(Zeroizing<Vec<u8>>);

impl Hedge {
    /// For joint presentations: the hedges of all, concatenated.
    fn joined(all: &[Self]) -> Self {
        let length = all.iter().map(|hedge| hedge.0.len()).sum();
        let mut joined = Zeroizing::new(Vec::with_capacity(length));
        all.iter().for_each(|hedge| joined.extend_from_slice(&hedge.0));
        Self(joined)
    }

    fn scalar(&self, j: u64) -> SecretScalar {
        let parts: [&[u8]; 2] = [&self.0, &j.to_be_bytes()];
        SecretScalar::from_hash(labels::CREDENTIAL_PRESENTATION_SECRETS, &parts)
    }

    /// Seed of the session's key.
    fn seed(&self) -> Secret<32> {
        derive(&self.0, labels::CREDENTIAL_PRESENTATION_SECRETS, &[])
    }
}

fn session_key(seed: &Secret<32>) -> SigningKey {
    SigningKey::from_seed(&derive(seed.expose(), labels::CREDENTIAL_SESSION_KEY, &[]))
}
