//! Presentations of the passes in a file. Each is durable before it is sent, and an epoch
//! never gets a second one.

use crate::client::passfile::PassFile;
use crate::client::session::SessionError;
use alpheus_anonymous_credential::configuration::{ConfigurationMatch, PinnedConfiguration};
use alpheus_anonymous_credential::error::HolderError;
use alpheus_anonymous_credential::holder::{Holder, OutboundMessage, Timing};
use alpheus_anonymous_credential::messages::SessionId;
use alpheus_anonymous_credential::schedule::{Epoch, Period};
use alpheus_crypto::hash::Digest;
use alpheus_node::clock;
use rand_core::CryptoRng;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// There is no pass for the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no pass for this period; fetch it")]
pub struct NoPassError;

/// The passes of a file. At a period's border two are in use: one whose session
/// still runs, and one that has logged in ahead.
pub struct Passes {
    file: PassFile,
    pinned: PinnedConfiguration,
    holders: BTreeMap<Period, Holder>,
}

impl Passes {
    /// The passes of a file.
    #[must_use]
    pub fn new(file: PassFile, pinned: PinnedConfiguration) -> Self {
        Self { file, pinned, holders: BTreeMap::new() }
    }

    /// The file, for its other contents.
    pub fn file(&mut self) -> &mut PassFile {
        &mut self.file
    }

    /// The pass of an epoch's period, even if it was fetched just now.
    ///
    /// # Errors
    /// [`SessionError::NoPass`].
    pub fn of(&mut self, epoch: Epoch) -> Result<&mut Holder, SessionError> {
        Ok(self.open(epoch)?.0)
    }

    fn open(&mut self, epoch: Epoch) -> Result<(&mut Holder, &mut PassFile), SessionError> {
        let Self { file, pinned, holders } = self;
        let period = pinned.schedule.period_of(epoch);
        holders.retain(|other, _| other.0.saturating_add(1) >= period.0);
        let holder = match holders.entry(period) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let holder = file.holder(pinned, period);
                let holder = holder.map_err(|failure| SessionError::Failed(failure.to_string()))?;
                let holder = holder.ok_or(NoPassError)?;
                // A session of the previous period may still run.
                file.forget_before(Period(period.0.saturating_sub(1)))?;
                entry.insert(holder)
            }
        };
        Ok((holder, file))
    }

    /// Presents the pass in an epoch. If it was presented before, returns the same message,
    /// or the re-up to the next epoch if that one is open.
    ///
    /// # Errors
    /// [`SessionError`]; [`HolderError::Code`] until the epochs of a login code are over.
    pub fn log_in(
        &mut self,
        epoch: Epoch,
        timing: Timing,
        compared: &ConfigurationMatch,
        rng: &mut impl CryptoRng,
    ) -> Result<OutboundMessage, SessionError> {
        let (holder, file) = self.open(epoch)?;
        let login = holder.log_in(timing, compared, &Digest([0; 32]), clock::now(), rng);
        let step = match login {
            Err(HolderError::Burnt) => holder.resend_latest(epoch, clock::now())?,
            login => login?,
        };
        let sent = step.commit(file)?;
        holder.prune().commit(file)?;
        Ok(sent)
    }

    /// Renews a session of `epoch` for the next one.
    ///
    /// # Errors
    /// [`SessionError`]; [`HolderError::Burnt`] if the next epoch has another session.
    pub fn re_up(
        &mut self,
        session: SessionId,
        epoch: Epoch,
        rng: &mut impl CryptoRng,
    ) -> Result<OutboundMessage, SessionError> {
        let (holder, file) = self.open(epoch)?;
        let step = if holder.has_presented(session, epoch.next()) {
            holder.resend(epoch.next())?
        } else if holder.newest() > Some(epoch) {
            return Err(HolderError::Burnt.into());
        } else {
            holder.re_up(clock::now(), rng)?
        };
        let sent = step.commit(file)?;
        holder.prune().commit(file)?;
        Ok(sent)
    }
}
