//! What is committed at once, and answered after it.

use super::bulletin::Bulletin;
use crate::service::engine::Reply;
use alpheus_crypto::ledger::{Ledger, LedgerError, Step};

/// What follows once it is durable.
type Then = Box<dyn FnOnce(&Bulletin) + Send>;

/// What is done together.
#[derive(Default)]
pub struct Together(Vec<Step<Then>>);

impl Together {
    /// Adds a step, and what follows once it is durable.
    pub fn add<T: Send + 'static>(
        &mut self,
        step: Step<T>,
        then: impl FnOnce(T, &Bulletin) + Send + 'static,
    ) {
        self.0.push(step.then(|released| {
            let then: Then = Box::new(move |bulletin: &Bulletin| then(released, bulletin));
            Step::new(Vec::new(), then)
        }));
    }

    /// Answers what a step releases, or why there is none.
    pub fn answer<T: Send + 'static, E: Send + 'static>(
        &mut self,
        done: Result<Step<T>, E>,
        reply: Reply<Result<T, E>>,
        tell: impl FnOnce(&T, &Bulletin) + Send + 'static,
    ) {
        match done {
            Ok(step) => self.add(step, move |released, bulletin| {
                tell(&released, bulletin);
                let _ = reply.send(Ok(released));
            }),
            Err(why) => self.add(Step::new(Vec::new(), ()), move |(), _| {
                let _ = reply.send(Err(why));
            }),
        }
    }

    /// Adds all of another's.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Makes all of it durable, then does what follows.
    ///
    /// # Errors
    /// [`LedgerError`]: nothing has followed.
    pub fn commit(self, ledger: &mut impl Ledger, bulletin: &Bulletin) -> Result<(), LedgerError> {
        for then in Step::join(self.0).commit(ledger)? {
            then(bulletin);
        }
        Ok(())
    }
}
