//! Steps that are committed together, and actions that follow.

use super::outbox::Outbox;
use alpheus_crypto::ledger::{Ledger, LedgerError, Step};
use alpheus_node::engine::Reply;

/// An action that follows once a step is durable.
type Then = Box<dyn FnOnce(&Outbox) + Send>;

/// Steps to commit together.
#[derive(Default)]
pub struct Batch(Vec<Step<Then>>);

impl Batch {
    /// Adds a step, and an action that follows once it is durable.
    pub fn add<T: Send + 'static>(
        &mut self,
        step: Step<T>,
        then: impl FnOnce(T, &Outbox) + Send + 'static,
    ) {
        self.0.push(step.then(|released| {
            let then: Then = Box::new(move |outbox: &Outbox| then(released, outbox));
            Step::new(Vec::new(), then)
        }));
    }

    /// Answers a request with a step's output, or with an error.
    pub fn answer<T: Send + 'static, E: Send + 'static>(
        &mut self,
        done: Result<Step<T>, E>,
        reply: Reply<Result<T, E>>,
        tell: impl FnOnce(&T, &Outbox) + Send + 'static,
    ) {
        match done {
            Ok(step) => self.add(step, move |released, outbox| {
                tell(&released, outbox);
                let _ = reply.send(Ok(released));
            }),
            Err(why) => self.add(Step::new(Vec::new(), ()), move |(), _| {
                let _ = reply.send(Err(why));
            }),
        }
    }

    /// Adds all steps of another batch.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Makes all steps durable, then runs the actions.
    ///
    /// # Errors
    /// [`LedgerError`]: no action has run.
    pub fn commit(self, ledger: &mut impl Ledger, outbox: &Outbox) -> Result<(), LedgerError> {
        for then in Step::join(self.0).commit(ledger)? {
            then(outbox);
        }
        Ok(())
    }
}
