//! Whose message it is: most of the work that a controller's message makes, and
//! none that changes anything.

use alpheus_crypto::signed::{Checked, Message, Signed, Together, Verified};
use alpheus_policy::ids::PlanId;

use super::Coordinator;
use crate::error::{NotTaken, PlanRefused};
use crate::messages::{ControllerMessage, Declined, Opening, Presence, Token};

/// A message of a controller of a plan whose signature holds: only
/// [`Coordinator::hear`] and [`Coordinator::hear_all`] make one.
pub struct Said {
    pub(super) plan: PlanId,
    pub(super) from: u32,
    pub(super) what: What,
}

pub(super) enum What {
    Answer(Result<(), PlanRefused>),
    Picks(Vec<u32>),
    Presence(Verified<Presence>),
    Token(Verified<Token>),
    Opening(Verified<Opening>),
    Declined(Verified<Declined>),
}

impl Coordinator {
    /// Checks whose message it is: most of the work that a message makes, and
    /// none that changes anything, so that many may be heard at a time.
    ///
    /// # Errors
    /// [`NotTaken`]: drop it and count it.
    pub fn hear(&self, from: u32, message: &ControllerMessage) -> Result<Said, NotTaken> {
        self.hear_among(from, message, &Checked::default())
    }

    /// The same of many messages, whose signatures are checked together: the
    /// coordinator alone decides whether a controller has spoken, and nobody
    /// else is shown these signatures. Where one of them does not hold, each is
    /// checked by itself, so that only its sender is not heard.
    pub fn hear_all(&self, messages: &[(u32, &ControllerMessage)]) -> Vec<Result<Said, NotTaken>> {
        let mut together = Together::default();
        for (from, message) in messages {
            if let Some(key) = self.announced.verifying().get(*from as usize) {
                message.check_with(key, &mut together);
            }
        }
        let checked = together.check();
        let hear = |(from, message): &(u32, &_)| self.hear_among(*from, message, &checked);
        messages.iter().map(hear).collect()
    }

    fn hear_among(
        &self,
        from: u32,
        message: &ControllerMessage,
        checked: &Checked,
    ) -> Result<Said, NotTaken> {
        let said = match message {
            ControllerMessage::Acceptance(signed) => {
                let acceptance = self.open(from, signed, checked)?;
                self.check_sender(acceptance.plan, acceptance.controller, from)?;
                What::Answer(Ok(()))
            }
            ControllerMessage::Refusal(signed) => {
                let refusal = self.open(from, signed, checked)?;
                self.check_sender(refusal.plan, from, from)?;
                What::Answer(Err(refusal.reason.clone()))
            }
            ControllerMessage::Presence(signed) => {
                let presence = self.open(from, signed, checked)?;
                self.check_sender(presence.plan, presence.controller, from)?;
                What::Presence(presence)
            }
            ControllerMessage::Token(signed) => {
                let token = self.open(from, signed, checked)?;
                self.check_sender(token.plan, token.controller, from)?;
                What::Token(token)
            }
            ControllerMessage::Opening(signed) => {
                let opening = self.open(from, signed, checked)?;
                self.check_sender(opening.plan, opening.controller, from)?;
                What::Opening(opening)
            }
            ControllerMessage::Picks(signed) => {
                let picks = self.open(from, signed, checked)?;
                self.check_sender(picks.plan, picks.controller, from)?;
                What::Picks(picks.picks.clone())
            }
            ControllerMessage::Declined(signed) => {
                let declined = self.open(from, signed, checked)?;
                self.check_sender(declined.plan, from, from)?;
                What::Declined(declined)
            }
        };
        Ok(Said { plan: self.id(), from, what: said })
    }

    fn open<T: Message>(
        &self,
        from: u32,
        signed: &Signed<T>,
        checked: &Checked,
    ) -> Result<Verified<T>, NotTaken> {
        let key = self.announced.verifying().get(from as usize);
        Ok(signed.open_among(key.ok_or(NotTaken::UnknownController)?, checked)?)
    }

    fn check_sender(&self, plan: PlanId, controller: u32, from: u32) -> Result<(), NotTaken> {
        if plan != self.id() {
            return Err(NotTaken::OtherPlan);
        }
        if controller == from { Ok(()) } else { Err(NotTaken::Malformed) }
    }
}
