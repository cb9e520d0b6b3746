//! Login codes on a shard: the login's tag and those of the epochs after it are
//! spent together, or none is.
//!
//! Tags of other shards are held there first, under a name of this code in this
//! scan: neither a session of the same login's tag nor another scan of the code may
//! take these holds for its own, or lose them when this scan gives them back.
//! [`Shard::admit`] then spends the login's tag and every tag of its own in one
//! commit. A scan that gives back what it holds is void from then on, by
//! [`Shard::give_up`]: were it sent again meanwhile, it would rely on these holds.
//! A code begins no session: it opens a gate once.

use super::{Shard, Spent, Unspent};
use crate::codes::Code;
use crate::configuration::Pinned;
use crate::error::Refused;
use crate::ledger::Step;
use crate::messages::{SessionId, TagId};
use crate::schedule::Time;
use crate::sessions::peers::Wanted;
use crate::sessions::records;
use crate::verifier::ProvenCode;
use alpheus_crypto::hash::{Digest, labelled};
use alpheus_crypto::labels;

/// A code whose login's tag was not spent when it was looked up.
pub struct UnspentCode(pub(crate) Box<Code>);

/// What the look-up of a code found.
pub enum CodeLookUp {
    /// Nothing: verify it.
    Unspent(UnspentCode),
    /// The same scan: it opens again, for an answer that was lost.
    Same(Step<()>),
}

/// What a scan that was refused may do about its holds elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// Give these back: it is void, and never goes through.
    Void(Vec<Wanted>),
    /// Nothing: it went through, asked by another request.
    Admitted,
}

impl Shard {
    /// Looks up the tag of a code's login. `scan` names the scan, the same only if
    /// the same gate asks again about the same scan.
    ///
    /// # Errors
    /// [`Refused`], [`Refused::Used`] if the code opened a gate in another scan,
    /// [`Refused::Spent`] also if this scan was given up.
    pub fn look_up_code(
        &self,
        now: Time,
        code: Code,
        scan: &Digest,
    ) -> Result<CodeLookUp, Refused> {
        let epoch = code.login.epoch;
        self.check(now, epoch)?;
        if self.pinned.schedule.ahead == 0 {
            return Err(Refused::NoCodes);
        }
        let id = self.tag_id(epoch, &code.login.tag);
        if self.void.contains(&(epoch, hold_name(SessionId(id), scan))) {
            return Err(Refused::Spent);
        }
        match self.tags.get(&(epoch, id)) {
            None => Ok(CodeLookUp::Unspent(UnspentCode(Box::new(code)))),
            Some(known) if *known == Spent::Admitted(*scan) => {
                // Stored again, as a login that is sent again.
                Ok(CodeLookUp::Same(Step::new(vec![records::tag(epoch, id, *known)], ())))
            }
            Some(Spent::Admitted(_)) => Err(Refused::Used),
            Some(_) => Err(Refused::Spent),
        }
    }

    /// Spends all of a verified code's tags that `here` says are this shard's, if
    /// none is spent: the others are held by their shards already.
    ///
    /// # Errors
    /// [`Refused`]; nothing is spent then.
    pub fn admit(
        &mut self,
        now: Time,
        ProvenCode(code): &ProvenCode,
        scan: &Digest,
        here: impl Fn(&Wanted) -> bool,
    ) -> Result<Step<()>, Refused> {
        let mut wanted = code_tags(&self.pinned, code, scan).into_iter();
        let login = wanted.next().ok_or(Refused::NoCodes)?;
        self.check(now, login.epoch)?;
        if self.void.contains(&(login.epoch, login.session)) {
            return Err(Refused::Spent);
        }
        match self.tags.get(&(login.epoch, login.tag)) {
            None => {}
            Some(known) if *known == Spent::Admitted(*scan) => {
                return Ok(Step::new(vec![records::tag(login.epoch, login.tag, *known)], ()));
            }
            Some(Spent::Admitted(_)) => return Err(Refused::Used),
            Some(_) => return Err(Refused::Spent),
        }
        let ours: Vec<Wanted> = wanted.filter(here).collect();
        for wanted in &ours {
            self.check_held(now, wanted.epoch)?;
            let known = self.tags.get(&(wanted.epoch, wanted.tag));
            if known.is_some_and(|known| *known != Spent::Pending(wanted.session)) {
                return Err(Refused::Spent);
            }
        }
        let mut changes = self.tick(now);
        changes.push(self.set_tag(login.epoch, login.tag, Spent::Admitted(*scan)));
        for Wanted { epoch, tag, session } in ours {
            changes.push(self.set_tag(epoch, tag, Spent::Active(session)));
        }
        Ok(Step::new(changes, ()))
    }
}

impl Shard {
    /// A scan was refused elsewhere: unless it went through meanwhile, it is void
    /// before anything of it is given back. `tags` are the code's, of
    /// [`code_tags`]; the login's tag lies here.
    ///
    /// # Errors
    /// [`Refused::NoCodes`] if there are no tags; [`Refused::Epoch`] and others if this
    /// shard may have forgotten by now that the scan went through.
    pub fn give_up(
        &mut self,
        now: Time,
        tags: &[Wanted],
        scan: &Digest,
    ) -> Result<Step<GivenUp>, Refused> {
        let (login, onward) = tags.split_first().ok_or(Refused::NoCodes)?;
        self.check(now, login.epoch)?;
        let known = self.tags.get(&(login.epoch, login.tag));
        if let Some(known) = known.filter(|known| **known == Spent::Admitted(*scan)) {
            let again = records::tag(login.epoch, login.tag, *known);
            return Ok(Step::new(vec![again], GivenUp::Admitted));
        }
        self.void.insert((login.epoch, login.session));
        let change = records::void(login.epoch, login.session);
        Ok(Step::new(vec![change], GivenUp::Void(onward.to_vec())))
    }
}

/// Every tag of a code, the login's first, for a name that no session and no other
/// scan has.
#[must_use]
pub fn code_tags(pinned: &Pinned, code: &Code, scan: &Digest) -> Vec<Wanted> {
    let session = hold_name(code.session(pinned), scan);
    let tags = code.tags(pinned).into_iter();
    tags.map(|(epoch, tag)| Wanted { epoch, tag, session }).collect()
}

fn hold_name(SessionId(TagId(session)): SessionId, scan: &Digest) -> SessionId {
    let parts: [&[u8]; 2] = [session.as_bytes(), scan.as_bytes()];
    SessionId(TagId(labelled(labels::CREDENTIAL_CODE_HOLD, &parts)))
}

impl UnspentCode {
    /// The tags to hold on other shards once the code is verified.
    #[must_use]
    pub fn code(&self) -> &Code {
        &self.0
    }

    /// The login alone, to be verified as any.
    pub(crate) fn login(&self) -> Unspent {
        Unspent(Box::new(self.0.login.clone()))
    }
}
