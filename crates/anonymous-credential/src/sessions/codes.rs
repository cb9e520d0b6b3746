//! Login codes on a shard. The login's tag and those of the following epochs are spent together,
//! or none is.
//!
//! Tags on other shards are held there first, under a name made from this code and this scan. So
//! neither a session with the same login tag nor another scan of the code can use these holds,
//! or lose them when this scan releases them. [`Shard::admit`] then spends the login's tag and
//! every tag of this shard in one commit. Before a scan releases its holds, [`Shard::void_scan`]
//! makes it void: sent again meanwhile, it would rely on holds that are about to go. A code
//! begins no session; it opens a gate once.

use super::{Shard, TagUse, UnspentLogin};
use crate::codes::Code;
use crate::configuration::PinnedConfiguration;
use crate::error::VerifierError;
use crate::ledger::Step;
pub use crate::lookups::UnspentCode;
use crate::messages::{SessionId, TagId};
use crate::sessions::peers::HoldRequest;
use crate::sessions::records;
use crate::verifier::ProvenCode;
use alpheus_crypto::hash::{Digest, labelled_hash};
use alpheus_crypto::labels;
use alpheus_time::Timestamp;

/// The result of looking up a code.
pub enum CodeLookUp {
    /// The tag is unspent: verify the code.
    Unspent(UnspentCode),
    /// The same scan, again: the gate opens, in case the first answer was lost.
    Same(Step<()>),
}

/// What a rejected scan may do about its holds on other shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VoidOutcome {
    /// Release these. The scan is void and will never be admitted.
    Void(Vec<HoldRequest>),
    /// Nothing: another request had the scan admitted.
    Admitted,
}

impl Shard {
    /// Looks up the tag of a code's login. `scan` names the scan; only the same gate, asking
    /// about the same scan, uses the same name.
    ///
    /// # Errors
    /// [`VerifierError`]; [`VerifierError::Used`] if the code opened a gate in another scan;
    /// [`VerifierError::Spent`] also if this scan is void.
    pub fn look_up_code(
        &self,
        code: Code,
        scan: &Digest,
        now: Timestamp,
    ) -> Result<CodeLookUp, VerifierError> {
        let epoch = code.login.epoch;
        self.check(epoch, now)?;
        if self.pinned.schedule.ahead == 0 {
            return Err(VerifierError::NoCodes);
        }
        let id = self.tag_id(epoch, &code.login.tag);
        if self.void.contains(&(epoch, hold_name(SessionId(id), scan))) {
            return Err(VerifierError::Spent);
        }
        match self.tags.get(&(epoch, id)) {
            None => Ok(CodeLookUp::Unspent(UnspentCode(Box::new(code)))),
            Some(known) if *known == TagUse::Admitted(*scan) => {
                // Stored again, as for a login that is resent.
                Ok(CodeLookUp::Same(Step::new(vec![records::tag(epoch, id, *known)], ())))
            }
            Some(TagUse::Admitted(_)) => Err(VerifierError::Used),
            Some(_) => Err(VerifierError::Spent),
        }
    }

    /// Spends those tags of a verified code that are this shard's according to `here`, if none
    /// is spent. The other tags are already held on their shards.
    ///
    /// # Errors
    /// [`VerifierError`]; then nothing is spent.
    pub fn admit(
        &mut self,
        ProvenCode(code): &ProvenCode,
        scan: &Digest,
        now: Timestamp,
        here: impl Fn(&HoldRequest) -> bool,
    ) -> Result<Step<()>, VerifierError> {
        let mut request = code_tags(&self.pinned, code, scan).into_iter();
        let login = request.next().ok_or(VerifierError::NoCodes)?;
        self.check(login.epoch, now)?;
        if self.void.contains(&(login.epoch, login.session)) {
            return Err(VerifierError::Spent);
        }
        match self.tags.get(&(login.epoch, login.tag)) {
            None => {}
            Some(known) if *known == TagUse::Admitted(*scan) => {
                return Ok(Step::new(vec![records::tag(login.epoch, login.tag, *known)], ()));
            }
            Some(TagUse::Admitted(_)) => return Err(VerifierError::Used),
            Some(_) => return Err(VerifierError::Spent),
        }
        let ours: Vec<HoldRequest> = request.filter(here).collect();
        for request in &ours {
            self.check_held(request.epoch, now)?;
            let known = self.tags.get(&(request.epoch, request.tag));
            if known.is_some_and(|known| *known != TagUse::Pending(request.session)) {
                return Err(VerifierError::Spent);
            }
        }
        let mut changes = self.tick(now);
        changes.push(self.set_tag(login.epoch, login.tag, TagUse::Admitted(*scan)));
        for HoldRequest { epoch, tag, session } in ours {
            changes.push(self.set_tag(epoch, tag, TagUse::Active(session)));
        }
        Ok(Step::new(changes, ()))
    }
}

impl Shard {
    /// Makes a scan void that another shard rejected, unless it was admitted meanwhile. Void
    /// comes first, releasing its holds second. `tags` are the code's, from [`code_tags`]; the
    /// login's tag is on this shard.
    ///
    /// # Errors
    /// [`VerifierError::NoCodes`] if there are no tags; [`VerifierError::Epoch`] and others if
    /// this shard may have forgotten that the scan was admitted.
    pub fn void_scan(
        &mut self,
        tags: &[HoldRequest],
        scan: &Digest,
        now: Timestamp,
    ) -> Result<Step<VoidOutcome>, VerifierError> {
        let (login, onward) = tags.split_first().ok_or(VerifierError::NoCodes)?;
        self.check(login.epoch, now)?;
        let known = self.tags.get(&(login.epoch, login.tag));
        if let Some(known) = known.filter(|known| **known == TagUse::Admitted(*scan)) {
            let again = records::tag(login.epoch, login.tag, *known);
            return Ok(Step::new(vec![again], VoidOutcome::Admitted));
        }
        self.void.insert((login.epoch, login.session));
        let change = records::void(login.epoch, login.session);
        Ok(Step::new(vec![change], VoidOutcome::Void(onward.to_vec())))
    }
}

/// Hold requests for every tag of a code, the login's first, under a name that no session and no
/// other scan has.
#[must_use]
pub fn code_tags(pinned: &PinnedConfiguration, code: &Code, scan: &Digest) -> Vec<HoldRequest> {
    let session = hold_name(code.session(pinned), scan);
    let tags = code.tags(pinned).into_iter();
    tags.map(|(epoch, tag)| HoldRequest { epoch, tag, session }).collect()
}

fn hold_name(SessionId(TagId(session)): SessionId, scan: &Digest) -> SessionId {
    let parts: [&[u8]; 2] = [session.as_bytes(), scan.as_bytes()];
    SessionId(TagId(labelled_hash(labels::CREDENTIAL_CODE_HOLD, &parts)))
}

impl UnspentCode {
    /// The code, whose other tags are to be held once it is verified.
    #[must_use]
    pub fn code(&self) -> &Code {
        &self.0
    }

    /// The login alone, to be verified like any other.
    pub(crate) fn login(&self) -> UnspentLogin {
        UnspentLogin(Box::new(self.0.login.clone()))
    }
}
