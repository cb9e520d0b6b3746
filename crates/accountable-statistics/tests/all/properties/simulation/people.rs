//! What people do in a simulation: each contributes its samples, then volunteers.

use super::{Letter, Party, World};
use crate::properties::helpers::restored;
use crate::support::at;
use alpheus_accountable_statistics::client::Attempt;
use alpheus_accountable_statistics::configuration::SmootherId;
use alpheus_accountable_statistics::messages::Grant;
use alpheus_accountable_statistics::role_error::{ContributionError, SlotError};
use alpheus_accountable_statistics::tuple::Contribution;
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_crypto::signed_message::Signed;

impl World {
    /// One minute of a person.
    pub(super) fn walk(&mut self, who: usize) {
        let Some(turn) = self.agreed.turn(at(self.minute)) else { return };
        if self.walkers[who].attempt.is_none() {
            self.set_out(who, turn.0 > 0);
        }
        let minute = self.minute;
        let walker = &mut self.walkers[who];
        let Some(attempt) = &mut walker.attempt else { return };
        if minute < walker.since {
            return;
        }
        walker.since = minute + 3;
        walker.tries += 1;
        let deposits = attempt.deposits();
        if walker.tries > 12 {
            return self.give_up(who);
        }
        if deposits.is_empty() {
            self.ask(who);
        } else {
            for (to, deposit) in deposits {
                let letter = Letter::Deposit(who, Box::new(deposit));
                self.send(Party::Smoother(usize::from(to.0)), letter);
            }
        }
    }

    fn set_out(&mut self, who: usize, filling: bool) {
        let walker = &mut self.walkers[who];
        if self.minute < walker.done_until || (who == self.cheat && walker.samples.is_empty()) {
            return;
        }
        // People come by at different times; the cheat gives its victim's value.
        let early = self.minute < 65 + who as u64 * 3;
        let value = if who == self.cheat { 20 } else { *walker.samples.first().unwrap_or(&0) };
        let contribution = match (walker.samples.is_empty(), filling, early) {
            (false, _, false) => Contribution::Sample(value),
            (true, true, _) => Contribution::Dummy,
            _ => return,
        };
        let (now, rng) = (at(self.minute), &mut self.town.rng);
        let of = (&self.agreed, &self.prover);
        let begun = walker.person.client.begin(of, contribution, now, rng);
        let Ok(step) = begun else { return };
        let attempt = step.commit(&mut walker.person.store).unwrap();
        if matches!(contribution, Contribution::Sample(_)) {
            self.given.insert(attempt.ephemeral(), value);
            walker.samples.clear();
        }
        (walker.attempt, walker.since, walker.tries) = (Some(attempt), self.minute, 0);
    }

    fn ask(&mut self, who: usize) {
        let walker = &mut self.walkers[who];
        let Some(attempt) = &mut walker.attempt else { return };
        if walker.tries.is_multiple_of(3) {
            attempt.handle_refusal();
        }
        match attempt.request() {
            Ok((keeper, request)) => {
                let to = Party::Smoother(usize::from(keeper.0));
                self.send(to, Letter::Ask(who, request));
            }
            // Full: try again at the next turn.
            Err(ContributionError::Full) => walker.since = self.minute + 7,
            Err(why) => panic!("{why}"),
        }
    }

    /// Contributes again by another key what could not be placed, as long as there is a turn and a
    /// quota.
    fn give_up(&mut self, who: usize) {
        let now = at(self.minute);
        let walker = &mut self.walkers[who];
        let pinned = &self.town.pinned;
        let open = |attempt: &mut Attempt| attempt.is_lost(pinned) || attempt.entry().is_none();
        let Some(attempt) = walker.attempt.take_if(open) else { return self.forget(who) };
        let value = self.given.get(&attempt.ephemeral()).copied();
        walker.done_until = self.minute + 2;
        let (client, rng) = (&mut walker.person.client, &mut self.town.rng);
        let Ok(step) = attempt.retry(client, &self.prover, now, rng) else {
            return;
        };
        let attempt = step.commit(&mut walker.person.store).unwrap();
        value.and_then(|value| self.given.insert(attempt.ephemeral(), value));
        (walker.attempt, walker.since, walker.tries) = (Some(attempt), self.minute, 0);
    }

    fn forget(&mut self, who: usize) {
        let walker = &mut self.walkers[who];
        if let Some(attempt) = walker.attempt.take() {
            attempt.forget().commit(&mut walker.person.store).unwrap();
        }
        walker.done_until = self.minute + 2;
    }

    pub(super) fn at_person(&mut self, who: usize, letter: Letter) {
        match letter {
            Letter::Answer(ephemeral, keeper, Ok(grant)) => {
                self.granted(who, ephemeral, keeper, &grant);
            }
            Letter::Answer(ephemeral, _, Err(SlotError::Full | SlotError::Lapsed)) => {
                let walker = &mut self.walkers[who];
                let mine = |attempt: &&mut Attempt| attempt.ephemeral() == ephemeral;
                if let Some(attempt) = walker.attempt.as_mut().filter(mine) {
                    attempt.handle_refusal();
                    walker.since = self.minute;
                }
            }
            Letter::Refused(ephemeral, by, shown) => {
                let pinned = self.town.pinned.clone();
                let walker = &mut self.walkers[who];
                let mine = |attempt: &&mut Attempt| attempt.ephemeral() == ephemeral;
                if let Some(attempt) = walker.attempt.as_mut().filter(mine) {
                    let _ = attempt.handle_conflict(&shown, by, &pinned);
                    if attempt.is_lost(&pinned) {
                        self.give_up(who);
                    }
                }
            }
            Letter::Receipt(receipt) => {
                let pinned = self.town.pinned.clone();
                let walker = &mut self.walkers[who];
                let Some(attempt) = &mut walker.attempt else { return };
                let Ok(step) = attempt.handle_receipt(&receipt, &pinned) else { return };
                step.commit(&mut walker.person.store).unwrap();
                let done = attempt.deposits().is_empty();
                if let Some(certificate) = attempt.certificate(&pinned) {
                    for to in 0..4 {
                        let letter = Letter::Certificate(certificate.clone());
                        self.send(Party::Smoother(to), letter);
                    }
                }
                if done {
                    self.forget(who);
                }
            }
            _ => {}
        }
    }

    fn granted(
        &mut self,
        who: usize,
        ephemeral: OneTimePublic,
        keeper: SmootherId,
        grant: &Signed<Grant>,
    ) {
        let walker = &mut self.walkers[who];
        let Some(attempt) = &mut walker.attempt else { return };
        if attempt.ephemeral() != ephemeral {
            return;
        }
        let (pinned, now, rng) = (&self.town.pinned, at(self.minute), &mut self.town.rng);
        if let Ok(step) = attempt.handle_grant((keeper, grant), pinned, now, rng) {
            step.commit(&mut walker.person.store).unwrap();
            walker.since = self.minute;
        }
    }

    /// Restarts the person's device.
    pub(super) fn kill_person(&mut self, who: usize) {
        let store = self.walkers[who].person.store.clone();
        let person = restored(&self.town, store);
        let mut attempts = Attempt::restore_all(&self.agreed, &person.store).unwrap();
        let walker = &mut self.walkers[who];
        (walker.person, walker.attempt) = (person, attempts.pop());
    }
}
