//! Closes a connection in the middle of an answer, whether or not the client reads.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Completes when a request must be cut off.
pub type Cut = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Closes the connection of a request; an extension of each request. The connection's own
/// task waits for the cut: a separate task for each answer would wake another processor
/// each time.
#[derive(Clone, Default)]
pub struct Closer(Arc<Mutex<Ending>>);

#[derive(Default)]
struct Ending {
    /// Ends the current answer; a connection has one at a time.
    cut: Option<Cut>,
    /// Counts answers, so that one that ends late does not remove another's cut.
    answer: u64,
    over: bool,
    connection: Option<Waker>,
}

/// Watches an answer, which is cut with its connection; dropped when the answer has ended.
pub struct CutGuard {
    closer: Closer,
    answer: u64,
}

impl Closer {
    fn lock(&self) -> MutexGuard<'_, Ending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection once `cut` completes, unless the answer has ended.
    #[must_use = "the answer is watched as long as this lasts"]
    pub fn watch(self, mut cut: Cut) -> CutGuard {
        let mut ending = self.lock();
        ending.answer += 1;
        let answer = ending.answer;
        if let Some(connection) = ending.connection.clone() {
            // Polled for the connection's task, which then need not be woken.
            if cut.as_mut().poll(&mut Context::from_waker(&connection)).is_ready() {
                ending.over = true;
                connection.wake();
            } else {
                ending.cut = Some(cut);
            }
        } else {
            ending.cut = Some(cut);
        }
        drop(ending);
        CutGuard { closer: self, answer }
    }

    /// Completes when the connection is to be closed.
    pub(super) fn closing(&self) -> impl Future<Output = ()> + Send + use<> {
        let closer = self.clone();
        poll_fn(move |context| closer.lock().poll(context))
    }
}

impl Ending {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.over {
            return Poll::Ready(());
        }
        if !self.connection.as_ref().is_some_and(|it| it.will_wake(context.waker())) {
            self.connection = Some(context.waker().clone());
        }
        let Some(cut) = &mut self.cut else { return Poll::Pending };
        let polled = cut.as_mut().poll(context);
        self.over = polled.is_ready();
        polled
    }
}

impl Drop for CutGuard {
    fn drop(&mut self) {
        let mut ending = self.closer.lock();
        if ending.answer == self.answer {
            ending.cut = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use std::task::Context;

    #[test]
    fn a_cut_closes_and_an_answer_that_ended_does_not() {
        let context = &mut Context::from_waker(Waker::noop());
        let closer = Closer::default();
        let mut closing = Box::pin(closer.closing());
        assert!(closing.as_mut().poll(context).is_pending());
        let (cut, over) = tokio::sync::oneshot::channel::<()>();
        let watching = closer.clone().watch(Box::pin(async { drop(over.await) }));
        let next = closer.clone().watch(Box::pin(pending()));
        // The earlier answer ends late; the later one is still watched.
        drop(watching);
        assert!(closing.as_mut().poll(context).is_pending());
        drop((cut, next));
        let ended = closer.clone().watch(Box::pin(pending()));
        drop(ended);
        assert!(closing.as_mut().poll(context).is_pending());
        let _watching = closer.watch(Box::pin(ready(())));
        assert!(closing.as_mut().poll(context).is_ready());
    }
}
