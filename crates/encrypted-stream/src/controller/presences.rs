//! Step 1: a window has closed. The controller looks at what the service has of
//! its own streams and says which of them its token will cover.

use std::collections::BTreeSet;

use alpheus_crypto::signed::{Signed, Verified};
use alpheus_policy::ids::{OwnerId, StreamId};
use alpheus_policy::time::Timestamp;

use super::budgets::Charges;
use super::held::Stretch;
use super::joined::{Joined, Summoned};
use super::sessions::Session;
use super::{Controller, policies};
use crate::announced::narrow;
use crate::error::{Exclusion, Refused};
use crate::ledger::{Change, Record, Step, session_key};
use crate::messages::{ControllerMessage, Presence, SummonedStream, Summons};

/// What became of the streams of a summons.
#[derive(Default)]
struct Examined {
    stretches: Vec<(u32, Vec<Stretch>)>,
    charges: Vec<(u32, Charges)>,
    excluded: Vec<(u32, Exclusion)>,
    owners: BTreeSet<OwnerId>,
    fresh: Vec<Record>,
    gone: Vec<(StreamId, u64)>,
}

impl Controller {
    /// Answers a summons with a presence. The presence of a window may change
    /// with the summons until a token is spent.
    ///
    /// # Errors
    /// [`Refused`] names the rule. A stream that is not sound is no error: it
    /// is excluded by name, and the others go on.
    pub fn summoned(
        &mut self,
        now: Timestamp,
        summons: &Verified<Summons>,
    ) -> Result<Step<ControllerMessage>, Refused> {
        let by_service = summons.signer() == self.deployment.service();
        let joined = self.window_of(now, &summons.plan, summons.window, by_service)?;
        if summons.controller != joined.position {
            return Err(Refused::NotForMe);
        }
        if let Some(round) = joined.rounds.get(&summons.window.start) {
            let same = round.summoned.as_ref().filter(|s| s.summons == summons.digest());
            if let Some(summoned) = same {
                return Ok(send(summoned.signed.clone(), Vec::new()));
            }
            if round.spent.is_some() {
                return Err(Refused::AlreadySpent);
            }
        }
        check_order(joined, &summons.streams)?;
        self.draw_for(now, &summons.plan, summons.window)?;
        self.present(now, summons)
    }

    fn present(
        &mut self,
        now: Timestamp,
        summons: &Verified<Summons>,
    ) -> Result<Step<ControllerMessage>, Refused> {
        let mut examined = Examined::default();
        // What an earlier summons of the window promised is promised anew.
        self.settle_budget(now, &summons.plan, summons.window);
        for stream in &summons.streams {
            match self.examine(now, summons, stream, &mut examined) {
                Ok(stretches) => examined.stretches.push((stream.position, stretches)),
                Err(reason) => examined.excluded.push((stream.position, reason)),
            }
        }
        let Examined { stretches, charges, excluded, owners, fresh, gone } = examined;
        let joined = self.plans.get_mut(&summons.plan).ok_or(Refused::UnknownPlan)?;
        let presence = Presence {
            plan: summons.plan,
            window: summons.window,
            controller: joined.position,
            summons: summons.digest(),
            accepted: stretches.iter().map(|(position, _)| *position).collect(),
            excluded,
            owners: narrow(owners.len()),
        };
        let signed = Signed::new(&presence, self.identity.signing());
        let (digest, copy) = (signed.digest(), signed.clone());
        let summons_digest = summons.digest();
        let summoned = Summoned {
            summons: summons_digest,
            presence,
            digest,
            signed: copy,
            stretches,
            charges,
        };
        joined.rounds.entry(summons.window.start).or_default().summoned = Some(summoned);
        let mut changes: Vec<Change> =
            fresh.into_iter().map(|record| self.put(now, record)).collect();
        let id = self.identity.id();
        let keys = gone.iter().map(|(stream, session)| session_key(id, *stream, *session));
        changes.extend(keys.map(|key| Change { key, value: None }));
        changes.extend(self.forget(now, &summons.plan));
        Ok(send(signed, changes))
    }

    /// Checks one stream: policy first, then what was released, then borders,
    /// sessions and check word.
    fn examine(
        &mut self,
        now: Timestamp,
        summons: &Summons,
        stream: &SummonedStream,
        examined: &mut Examined,
    ) -> Result<Vec<Stretch>, Exclusion> {
        let joined = self.plans.get_mut(&summons.plan).ok_or(Exclusion::Policy)?;
        let planned = *joined.own(stream.position).ok_or(Exclusion::Policy)?;
        let held = self.streams.get_mut(&planned.stream).ok_or(Exclusion::Policy)?;
        let charges = policies::allow(joined, stream.position, held, summons.window, now)?;
        if !held.is_confirmed_for(summons.window) {
            return Err(Exclusion::Unconfirmed);
        }
        if joined.was_released(stream.position, summons.window) {
            return Err(Exclusion::Released);
        }
        let attributes = &joined.plan().attributes;
        let (stretches, events, seen) = held.examine(stream, summons.window, attributes, now)?;
        let record = |known: Session| {
            let Session { session, from, to, closed } = known;
            Record::Session { stream: planned.stream, session, from, to, closed }
        };
        examined.fresh.extend(seen.fresh.into_iter().map(record));
        examined.gone.extend(seen.gone.into_iter().map(|session| (planned.stream, session)));
        if joined.plan().privacy.as_ref().is_some_and(|privacy| events > privacy.events) {
            return Err(Exclusion::BeyondNoise);
        }
        // Without events nothing of the owner's values is in it: that costs nothing.
        if events > 0 {
            let window = joined.charged_for(summons.window);
            let (release, slack) = ((summons.plan, window), joined.slack_bits);
            let noisy = joined.plan().privacy.is_some();
            if !self.books.promise(planned.owner, release, &charges, slack) {
                return Err(Exclusion::BudgetSpent);
            }
            if noisy {
                examined.charges.push((stream.position, charges));
            }
            examined.owners.insert(planned.owner);
        }
        Ok(stretches)
    }
}

/// Own streams only, each once, in order.
fn check_order(joined: &Joined, streams: &[SummonedStream]) -> Result<(), Refused> {
    let ascends = streams.windows(2).all(|p| matches!(p, [a, b] if a.position < b.position));
    let own = streams.iter().all(|stream| joined.own(stream.position).is_some());
    if ascends && own { Ok(()) } else { Err(Refused::MalformedSummons) }
}

fn send(signed: Signed<Presence>, changes: Vec<Change>) -> Step<ControllerMessage> {
    Step::new(changes, vec![ControllerMessage::Presence(signed)])
}
