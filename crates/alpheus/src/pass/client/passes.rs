//! What the passes in a pass file show: each durable before it is sent, and never
//! shown anew where it was shown before.

use crate::pass::client::passfile::PassFile;
use crate::pass::client::session::SessionError;
use crate::pass::clock;
use alpheus_anonymous_credential::configuration::{Compared, Pinned};
use alpheus_anonymous_credential::error::HolderRefused;
use alpheus_anonymous_credential::holder::{Holder, Outgoing, Which};
use alpheus_anonymous_credential::schedule::{Epoch, Period};
use alpheus_crypto::hash::Digest;
use rand_core::CryptoRng;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// There is no pass for the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no pass for this period; fetch it")]
pub struct NoPass;

/// The passes of a file. At a period's border two are in use: one whose session
/// still runs, and one that has logged in ahead.
pub struct Passes {
    file: PassFile,
    pinned: Pinned,
    held: BTreeMap<Period, Holder>,
}

impl Passes {
    /// The passes of a file.
    #[must_use]
    pub fn new(file: PassFile, pinned: Pinned) -> Self {
        Self { file, pinned, held: BTreeMap::new() }
    }

    /// The file, for what else is in it.
    pub fn file(&mut self) -> &mut PassFile {
        &mut self.file
    }

    /// The pass of an epoch's period. One that was fetched meanwhile is found.
    ///
    /// # Errors
    /// [`SessionError::NoPass`].
    pub fn of(&mut self, epoch: Epoch) -> Result<&mut Holder, SessionError> {
        Ok(self.open(epoch)?.0)
    }

    fn open(&mut self, epoch: Epoch) -> Result<(&mut Holder, &mut PassFile), SessionError> {
        let Self { file, pinned, held } = self;
        let period = pinned.schedule.period_of(epoch);
        held.retain(|known, _| known.0.saturating_add(1) >= period.0);
        let holder = match held.entry(period) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(place) => {
                let holder = file.holder(pinned, period);
                let holder = holder.map_err(|failure| SessionError::Failed(failure.to_string()))?;
                let holder = holder.ok_or(NoPass)?;
                // A session of the period before may still run.
                file.forget_before(Period(period.0.saturating_sub(1)))?;
                place.insert(holder)
            }
        };
        Ok((holder, file))
    }

    /// Shows the pass in an epoch; what was shown in it already is given again, or what
    /// carried that session on to the next epoch, if that is open.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn log_in(
        &mut self,
        epoch: Epoch,
        which: Which,
        compared: &Compared,
        rng: &mut impl CryptoRng,
    ) -> Result<Outgoing, SessionError> {
        let (holder, file) = self.open(epoch)?;
        let shown = holder.log_in(clock::now(), which, compared, &Digest([0; 32]), rng);
        let step = match shown {
            Err(HolderRefused::Burnt) => holder.resend_latest(clock::now(), epoch)?,
            shown => shown?,
        };
        let sent = step.commit(file)?;
        holder.prune().commit(file)?;
        Ok(sent)
    }

    /// Carries a session on that has come to `epoch`.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn re_up(
        &mut self,
        epoch: Epoch,
        rng: &mut impl CryptoRng,
    ) -> Result<Outgoing, SessionError> {
        let (holder, file) = self.open(epoch)?;
        let step = if holder.newest() == Some(epoch.next()) {
            holder.resend(epoch.next())?
        } else {
            holder.re_up(clock::now(), rng)?
        };
        let sent = step.commit(file)?;
        holder.prune().commit(file)?;
        Ok(sent)
    }
}
