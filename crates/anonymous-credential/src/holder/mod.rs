//! The holder: requests a credential for a period, shows it, re-ups a session,
//! and sends again what was lost.
//!
//! Every showing is burnt durably before it is sent: [`Holder::log_in`] and
//! [`Holder::re_up`] give a [`Step`] whose bytes come out by committing it.
//! What was sent once is sent again as it was, never proven again. Epochs come
//! from the holder's own clock and pinned schedule; no argument names one.

mod about;
mod codes;
mod records;
mod request;
mod showing;

pub use about::{About, show_together};
pub use records::{DamagedRecord, forget_before};
pub use request::Requesting;

use crate::configuration::{Compared, Pinned};
use crate::error::HolderRefused;
use crate::ledger::{Change, Step};
use crate::limit::Limit;
use crate::messages::{Login, Logout, ReUp, SessionId, TagId};
use crate::schedule::{Epoch, Period, Time};
use crate::sessions::connection;
use crate::statements;
use alpheus_crypto::group::{Element, SecretScalar, Vanished};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::kdf::derive;
use alpheus_crypto::labels;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sigma::NotProven;
use alpheus_crypto::sign::{Signature, SigningKey};
use rand_core::CryptoRng;
use showing::Bits;
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// Which of the two epochs or periods that may be open is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that runs.
    Running,
    /// The next one, shortly before it starts.
    Next,
}

/// A holder with a credential of one period. Not `Clone`, not `Debug`; its
/// secrets are wiped on drop.
pub struct Holder {
    pinned: Pinned,
    period: Period,
    m1: SecretScalar,
    u: Element,
    /// U' = (x0 + x1·m1 + x2·m2)·U.
    mac: Element,
    /// By epoch and index. Burnt whether or not it ever arrived.
    shown: BTreeMap<(Epoch, u32), Shown>,
}

/// Something that was shown, to be sent again as it was.
struct Shown {
    session: SessionId,
    /// Of the session's key.
    seed: Secret<32>,
    bytes: Vec<u8>,
}

/// What to send, on a connection of its own, and which session it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The session that it begins or carries on.
    pub session: SessionId,
    /// The epoch that it is for; a code's first.
    pub epoch: Epoch,
    /// A [`Login`] or [`ReUp`].
    pub bytes: Vec<u8>,
}

impl Outgoing {
    /// Whether it is a [`ReUp`].
    #[must_use]
    pub fn is_re_up(&self) -> bool {
        self.bytes.len() == ReUp::LENGTH
    }
}

impl Holder {
    /// Shows the credential in an open epoch, with the next index that is unburnt.
    ///
    /// # Errors
    /// [`HolderRefused`].
    ///
    /// # Privacy
    /// The verifier learns that some holder of the period shows. Two showings
    /// cannot be linked, by it and the issuer together, unless the channel links
    /// them: use a fresh connection for each.
    pub fn log_in(
        &mut self,
        now: Time,
        which: Which,
        compared: &Compared,
        message: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Outgoing>, HolderRefused> {
        if compared.0 != self.pinned.fingerprint() {
            return Err(HolderRefused::OtherConfiguration);
        }
        let epoch = self.epoch(now, which)?;
        if self.pinned.schedule.period_of(epoch) != self.period {
            return Err(HolderRefused::OtherPeriod);
        }
        let used = self.shown.range((epoch, 0)..=(epoch, u32::MAX)).next_back();
        let index = used.map_or(0, |((_, index), _)| index + 1);
        if index >= self.pinned.limit.get() {
            return Err(HolderRefused::Burnt);
        }
        let hedge = self.hedge(epoch, index, rng);
        let seed = hedge.seed();
        let login = self.show((epoch, index), &hedge, message, rng)?;
        let tag = TagId::of(&self.pinned.fingerprint(), epoch, &login.tag);
        let shown = Shown { session: SessionId(tag), seed, bytes: login.to_bytes() };
        Ok(self.burn(epoch, index, shown))
    }

    /// Carries the newest session on to the next epoch, once that is open.
    ///
    /// # Errors
    /// [`HolderRefused`].
    ///
    /// # Privacy
    /// The re-up is linked to its session, by design, and to no other.
    pub fn re_up(
        &mut self,
        now: Time,
        rng: &mut impl CryptoRng,
    ) -> Result<Step<Outgoing>, HolderRefused> {
        if self.pinned.limit != Limit::ONE {
            return Err(HolderRefused::LimitForbids);
        }
        let newest = self.shown.last_key_value().ok_or(HolderRefused::NothingShown)?;
        let (from, session, seed) = (newest.0.0, newest.1.session, newest.1.seed.duplicate());
        self.check_clock(now)?;
        let epoch = from.next();
        if !self.pinned.schedule.is_open(epoch, now) {
            let over = now >= self.pinned.schedule.starts(epoch.next());
            return Err(if over { HolderRefused::NothingShown } else { HolderRefused::Epoch });
        }
        if self.pinned.schedule.period_of(epoch) != self.period {
            return Err(HolderRefused::NeedsLogin);
        }
        let re_up = self.carry(from, session, rng)?;
        let shown = Shown { session, seed, bytes: re_up.to_bytes() };
        Ok(self.burn(epoch, 0, shown))
    }

    /// What was shown last in an epoch, once more, byte for byte: after a lost
    /// acknowledgement, on a new connection.
    ///
    /// # Errors
    /// [`HolderRefused::NothingShown`].
    pub fn resend(&self, epoch: Epoch) -> Result<Step<Outgoing>, HolderRefused> {
        let last = self.shown.range((epoch, 0)..=(epoch, u32::MAX)).next_back();
        let ((_, index), shown) = last.ok_or(HolderRefused::NothingShown)?;
        let outgoing = Outgoing { session: shown.session, epoch, bytes: shown.bytes.clone() };
        // Stored again, in case the first commit is still on its way to the disk.
        Ok(Step::new(vec![records::shown(self.period, epoch, *index, shown)], outgoing))
    }

    /// What was shown last of the session that an epoch was shown for: if it was carried
    /// on to the next epoch, and that is open, its store takes nothing else any more.
    ///
    /// # Errors
    /// [`HolderRefused::NothingShown`].
    pub fn resend_latest(&self, now: Time, epoch: Epoch) -> Result<Step<Outgoing>, HolderRefused> {
        let session = |epoch| self.shown.get(&(epoch, 0)).map(|shown| shown.session);
        let onward = epoch.next();
        let carried = session(epoch).is_some() && session(epoch) == session(onward);
        let open = self.pinned.schedule.is_open(onward, now);
        self.resend(if carried && open { onward } else { epoch })
    }

    /// Signs a server's fresh nonce for a connection of a session.
    ///
    /// # Errors
    /// [`HolderRefused::NothingShown`] if the session is not this holder's.
    pub fn connect(&self, id: SessionId, nonce: &[u8; 32]) -> Result<Signature, HolderRefused> {
        let key = self.session_key(id)?;
        Ok(key.sign(labels::CREDENTIAL_CONNECTION, &connection(id, nonce)))
    }

    /// Signs for an application that knows a session by its key, under that
    /// application's own label.
    ///
    /// # Errors
    /// [`HolderRefused::NothingShown`] if the session is not this holder's.
    ///
    /// # Privacy
    /// All that one session's key signs is linked, by design.
    pub fn sign(
        &self,
        id: SessionId,
        label: &'static str,
        message: &[u8],
    ) -> Result<Signature, HolderRefused> {
        Ok(self.session_key(id)?.sign(label, message))
    }

    /// Ends a session.
    ///
    /// # Errors
    /// [`HolderRefused::NothingShown`] if the session is not this holder's.
    pub fn log_out(&self, id: SessionId) -> Result<Logout, HolderRefused> {
        let key = self.session_key(id)?;
        let signature = key.sign(labels::CREDENTIAL_LOGOUT, id.0.0.as_bytes());
        Ok(Logout { session: id, signature })
    }

    /// The newest epoch that was shown in.
    #[must_use]
    pub fn newest(&self) -> Option<Epoch> {
        self.shown.last_key_value().map(|((epoch, _), _)| *epoch)
    }

    /// Whether a session was begun or carried on for an epoch, as far as that is
    /// remembered.
    #[must_use]
    pub fn has_shown(&self, session: SessionId, epoch: Epoch) -> bool {
        let mut shown = self.shown.range((epoch, 0)..=(epoch, u32::MAX));
        shown.any(|(_, shown)| shown.session == session)
    }

    /// The period of the credential.
    #[must_use]
    pub fn period(&self) -> Period {
        self.period
    }

    /// Forgets the bytes of epochs that can no longer be shown in.
    pub fn prune(&mut self) -> Step<()> {
        let Some(newest) = self.newest() else { return Step::new(Vec::new(), ()) };
        // A code is shown in the first of its epochs, when all are burnt already.
        let reach = self.pinned.schedule.ahead.saturating_add(1);
        let first = (Epoch(newest.0.saturating_sub(reach)), 0);
        let kept = self.shown.split_off(&first);
        let over = std::mem::replace(&mut self.shown, kept);
        let gone = |(epoch, index): &(Epoch, u32)| Change {
            key: records::shown_key(self.period, *epoch, *index),
            value: None,
        };
        Step::new(over.keys().map(gone).collect(), ())
    }

    fn session_key(&self, id: SessionId) -> Result<SigningKey, HolderRefused> {
        let shown = self.shown.values().find(|shown| shown.session == id);
        Ok(session_key(&shown.ok_or(HolderRefused::NothingShown)?.seed))
    }

    /// The epoch that is meant, if it is open by the holder's clock.
    fn epoch(&self, now: Time, which: Which) -> Result<Epoch, HolderRefused> {
        self.check_clock(now)?;
        let running = self.pinned.schedule.epoch_at(now);
        let epoch = match which {
            Which::Running => running.ok_or(HolderRefused::Epoch)?,
            Which::Next => running.map_or(Epoch(0), Epoch::next),
        };
        if self.pinned.schedule.is_open(epoch, now) { Ok(epoch) } else { Err(HolderRefused::Epoch) }
    }

    /// Nothing is shown in a past that records of may have been forgotten.
    fn check_clock(&self, now: Time) -> Result<(), HolderRefused> {
        let running = self.pinned.schedule.epoch_at(now).map_or(0, |epoch| epoch.0);
        let newest = self.newest().map_or(0, |epoch| epoch.0);
        let ahead = self.pinned.schedule.ahead;
        if running.saturating_add(1).saturating_add(ahead) < newest {
            Err(HolderRefused::ClockStepped)
        } else {
            Ok(())
        }
    }

    fn burn(&mut self, epoch: Epoch, index: u32, shown: Shown) -> Step<Outgoing> {
        let change = records::shown(self.period, epoch, index, &shown);
        let outgoing = Outgoing { session: shown.session, epoch, bytes: shown.bytes.clone() };
        self.shown.insert((epoch, index), shown);
        Step::new(vec![change], outgoing)
    }

    /// The showing itself: a fresh randomisation of the credential, the tag, and
    /// the proof that they belong together.
    fn show(
        &self,
        (epoch, index): (Epoch, u32),
        hedge: &Hedge,
        message: &Digest,
        rng: &mut impl CryptoRng,
    ) -> Result<Login, HolderRefused> {
        let bits = Bits::new(self.pinned.limit, index, hedge)?;
        let shown = self.unproven((epoch, index), hedge, message, &bits)?;
        let witness = shown.witness(&self.m1, &bits);
        let openings = bits.openings(&shown.showing);
        let proof = shown.showing.statement.prove_by(&witness, &openings, rng)?;
        Ok(Login { proof: proof.to_bytes(), ..shown.login })
    }

    /// Hedged randomness of one showing.
    fn hedge(&self, epoch: Epoch, index: u32, rng: &mut impl CryptoRng) -> Hedge {
        let (fresh, m1) = (Secret::<32>::random(rng), self.m1.expose());
        let (fingerprint, epoch) = (self.pinned.fingerprint(), epoch.0.to_be_bytes());
        // One allocation, so that no copy is left behind.
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
    ) -> Result<ReUp, HolderRefused> {
        let epoch = from.next();
        let re_up = ReUp { epoch, session, tag: self.tag(epoch, 0)?, proof: Vec::new() };
        let statement = statements::re_up(&self.pinned, &self.tag(from, 0)?, &re_up);
        Ok(ReUp { proof: statement.prove(&[&self.m1], rng)?.to_bytes(), ..re_up })
    }

    /// τ = (m1 + i)⁻¹·T.
    fn tag(&self, epoch: Epoch, index: u32) -> Result<Element, NotProven> {
        let tag = self.pinned.context(epoch).times(&self.shifted(index)?);
        tag.map_err(|Vanished| NotProven::Vanished)
    }

    /// (m1 + i)⁻¹.
    fn shifted(&self, index: u32) -> Result<SecretScalar, NotProven> {
        let shifted = self.m1.plus(&SecretScalar::from_small(index));
        shifted.inverted().map_err(|_| NotProven::Vanished)
    }
}

/// Fresh randomness, m1, fingerprint, epoch and index: were the generator to
/// repeat itself, no two showings would share a blinding, and so be linked.
struct Hedge(Zeroizing<Vec<u8>>);

impl Hedge {
    /// Of showings that are made together: each one's, one after the other.
    fn joined(all: &[Self]) -> Self {
        let length = all.iter().map(|hedge| hedge.0.len()).sum();
        let mut joined = Zeroizing::new(Vec::with_capacity(length));
        all.iter().for_each(|hedge| joined.extend_from_slice(&hedge.0));
        Self(joined)
    }

    fn scalar(&self, j: u64) -> SecretScalar {
        let parts: [&[u8]; 2] = [&self.0, &j.to_be_bytes()];
        SecretScalar::hashed(labels::CREDENTIAL_SHOWING_SECRETS, &parts)
    }

    /// Of the session's key.
    fn seed(&self) -> Secret<32> {
        derive(&self.0, labels::CREDENTIAL_SHOWING_SECRETS, &[])
    }
}

fn session_key(seed: &Secret<32>) -> SigningKey {
    SigningKey::from_seed(&derive(seed.expose(), labels::CREDENTIAL_SESSION_KEY, &[]))
}
