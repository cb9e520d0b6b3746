//! Checks of a controller's message: most of the work that a message causes, without any
//! change of state.

use std::sync::Arc;

use alpheus_bounded_influence::messages::Scope;
use alpheus_crypto::signed_message::{
    CheckedSignatures, Message, SignatureBatch, Signed, Verified,
};
use alpheus_policy::ids::PlanId;

use super::Coordinator;
use super::bounded_windows::SignedAnswer;
use crate::bounded_terms::most_bytes;
use crate::error::{MessageError, PlanRefusalError};
use crate::messages::{
    BoundedOpening, Contribution, ControllerMessage, EdgeStatement, Opening, Presence, Token,
    WindowRefusal,
};

/// A message of a controller whose signature and sender were checked. Only
/// [`Coordinator::verify`] and [`Coordinator::verify_all`] create one.
pub struct VerifiedMessage {
    pub(super) plan: PlanId,
    pub(super) from: u32,
    pub(super) content: Content,
}

pub(super) enum Content {
    Answer(Result<(), PlanRefusalError>),
    Picks(Vec<u32>),
    /// These three also as they were signed, in a verified plan.
    Presence(Verified<Presence>, Option<Signed<Presence>>),
    Token(Verified<Token>, Option<Signed<Token>>),
    Opening(Verified<Opening>, Option<Signed<Opening>>),
    /// The next three only in a bounded plan.
    Contribution(SignedAnswer<Contribution>),
    BoundedOpening(SignedAnswer<BoundedOpening>),
    Edges(Verified<EdgeStatement>, Signed<EdgeStatement>),
    WindowRefusal(Verified<WindowRefusal>),
}

impl Coordinator {
    /// Checks signature and sender of a message. This is most of the work that a message
    /// causes, and changes nothing, so many messages can be checked in parallel.
    ///
    /// # Errors
    /// [`MessageError`]: drop the message and count it.
    pub fn verify(
        &self,
        message: &ControllerMessage,
        from: u32,
    ) -> Result<VerifiedMessage, MessageError> {
        self.verify_in_batch(from, message, &CheckedSignatures::default())
    }

    /// Checks many messages, with their signatures in one batch. Only the coordinator
    /// decides whether a controller sent a message, and nobody else sees these signatures.
    /// If one of them is invalid, each is checked on its own, so that only its sender is
    /// affected.
    pub fn verify_all(
        &self,
        messages: &[(u32, &ControllerMessage)],
    ) -> Vec<Result<VerifiedMessage, MessageError>> {
        let mut together = SignatureBatch::default();
        for (from, message) in messages {
            if self.is_verified() && message.is_in_receipts() {
                continue;
            }
            if let Some(key) = self.announced.verifying().get(*from as usize) {
                message.check_with(key, &mut together);
            }
        }
        let checked = together.check();
        let hear = |(from, message): &(u32, &_)| self.verify_in_batch(*from, message, &checked);
        messages.iter().map(hear).collect()
    }

    fn verify_in_batch(
        &self,
        from: u32,
        message: &ControllerMessage,
        checked: &CheckedSignatures,
    ) -> Result<VerifiedMessage, MessageError> {
        // In a bounded plan shares are committed to, and in no other.
        let content = match message {
            ControllerMessage::Contribution(_)
            | ControllerMessage::BoundedOpening(_)
            | ControllerMessage::Edges(_) => self.proven(from, message)?,
            ControllerMessage::Token(_) | ControllerMessage::Opening(_) if self.is_proven() => {
                return Err(MessageError::Malformed);
            }
            _ => self.content(from, message, checked)?,
        };
        Ok(VerifiedMessage { plan: self.id(), from, content })
    }

    fn content(
        &self,
        from: u32,
        message: &ControllerMessage,
        checked: &CheckedSignatures,
    ) -> Result<Content, MessageError> {
        // Others check these too, one by one. A batch lets signatures pass that this does not.
        let alone = CheckedSignatures::default();
        let in_receipts = if self.is_verified() { &alone } else { checked };
        Ok(match message {
            ControllerMessage::Acceptance(signed) => {
                let acceptance = self.open(from, signed, checked)?;
                self.check_sender(acceptance.plan, acceptance.controller, from)?;
                Content::Answer(Ok(()))
            }
            ControllerMessage::PlanRefusal(signed) => {
                let refusal = self.open(from, signed, checked)?;
                self.check_sender(refusal.plan, from, from)?;
                Content::Answer(Err(refusal.reason.clone()))
            }
            ControllerMessage::Presence(signed) => {
                let presence = self.open(from, signed, in_receipts)?;
                self.check_sender(presence.plan, presence.controller, from)?;
                Content::Presence(presence, self.is_verified().then(|| signed.clone()))
            }
            ControllerMessage::Token(signed) => {
                let token = self.open(from, signed, in_receipts)?;
                self.check_sender(token.plan, token.controller, from)?;
                Content::Token(token, self.is_verified().then(|| signed.clone()))
            }
            ControllerMessage::Opening(signed) => {
                let opening = self.open(from, signed, in_receipts)?;
                self.check_sender(opening.plan, opening.controller, from)?;
                Content::Opening(opening, self.is_verified().then(|| signed.clone()))
            }
            ControllerMessage::Picks(signed) => {
                let picks = self.open(from, signed, checked)?;
                self.check_sender(picks.plan, picks.controller, from)?;
                Content::Picks(picks.picks.clone())
            }
            ControllerMessage::WindowRefusal(signed) => {
                let declined = self.open(from, signed, checked)?;
                self.check_sender(declined.plan, from, from)?;
                Content::WindowRefusal(declined)
            }
            // An attendance answers a call, before there is a plan to coordinate.
            _ => return Err(MessageError::OtherPlan),
        })
    }

    /// A message that there is in bounded plans alone. Others check its signature too.
    fn proven(&self, from: u32, message: &ControllerMessage) -> Result<Content, MessageError> {
        let alone = CheckedSignatures::default();
        let sender =
            |scope: &Scope, controller| self.check_sender(PlanId(scope.plan.0), controller, from);
        let fits = |length: usize, each: u32| {
            if length <= most_bytes(each) { Ok(()) } else { Err(MessageError::Malformed) }
        };
        match message {
            ControllerMessage::Contribution(signed) if self.is_proven() => {
                fits(signed.length(), self.announced.owners(from))?;
                let given = self.open(from, signed, &alone)?;
                sender(&given.scope, given.controller)?;
                Ok(Content::Contribution((Arc::new(given), Arc::new(signed.clone()))))
            }
            ControllerMessage::BoundedOpening(signed) if self.is_proven() => {
                // That of its noise is the only proof.
                fits(signed.length(), 1)?;
                let given = self.open(from, signed, &alone)?;
                sender(&given.scope, given.controller)?;
                Ok(Content::BoundedOpening((Arc::new(given), Arc::new(signed.clone()))))
            }
            ControllerMessage::Edges(signed) if self.is_proven() => {
                fits(signed.length(), self.announced.controllers())?;
                let stated = self.open(from, signed, &alone)?;
                sender(&stated.scope, stated.controller)?;
                Ok(Content::Edges(stated, signed.clone()))
            }
            _ => Err(MessageError::Malformed),
        }
    }

    fn open<T: Message>(
        &self,
        from: u32,
        signed: &Signed<T>,
        checked: &CheckedSignatures,
    ) -> Result<Verified<T>, MessageError> {
        let key = self.announced.verifying().get(from as usize);
        Ok(signed.open_with(key.ok_or(MessageError::UnknownController)?, checked)?)
    }

    fn check_sender(&self, plan: PlanId, controller: u32, from: u32) -> Result<(), MessageError> {
        if plan != self.id() {
            return Err(MessageError::OtherPlan);
        }
        if controller == from { Ok(()) } else { Err(MessageError::Malformed) }
    }
}
