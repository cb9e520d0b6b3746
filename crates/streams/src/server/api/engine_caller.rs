//! How requests give work to the engine.

use crate::server::engine::{Call, Engine};
use alpheus_node::engine::{Handle, Reply};
use alpheus_node::network::answer::ApiError;
use alpheus_node::service::metrics::Metrics;
use axum::http::StatusCode;
use prometheus_client::metrics::gauge::Gauge;

/// Gives work to the engine's thread. Clones share it.
#[derive(Clone)]
pub struct EngineCaller {
    engine: Handle<Call>,
    waiting: Gauge,
}

impl EngineCaller {
    /// Exports how many requests wait, as `alpheus_engine_waiting`.
    #[must_use]
    pub fn new(engine: Handle<Call>, metrics: &Metrics) -> EngineCaller {
        let waiting = Gauge::default();
        let help = "Requests that wait for the engine";
        metrics.with(|registry| registry.register("engine_waiting", help, waiting.clone()));
        EngineCaller { engine, waiting }
    }

    /// Runs work on the thread, once there is room, and waits for its result.
    ///
    /// # Errors
    /// [`ApiError`]: the thread has ended, since its store failed or the process is stopping.
    pub async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Engine) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let waiting = WaitingCount::of(&self.waiting);
        let call = |reply: Reply<T>| -> Call {
            Box::new(move |engine| {
                drop(waiting);
                // The caller may be gone.
                let _ = reply.send(work(engine));
            })
        };
        let answer = self.engine.ask_patiently(call).await;
        answer.map_err(|_| {
            let detail = "the service is stopping";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", detail)
        })
    }
}

/// Counts a request for as long as it waits, also one that is given up.
struct WaitingCount(Gauge);

impl WaitingCount {
    fn of(gauge: &Gauge) -> WaitingCount {
        gauge.inc();
        WaitingCount(gauge.clone())
    }
}

impl Drop for WaitingCount {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_node::engine::channel_for;
    use axum::response::IntoResponse;

    #[tokio::test]
    async fn a_request_is_counted_until_it_is_taken_up_or_given_up() {
        let (engine, mut calls) = channel_for(1);
        let caller = EngineCaller::new(engine, &Metrics::new());
        let (first, second) = (caller.clone(), caller.clone());
        let first = tokio::spawn(async move { first.ask(|_| ()).await });
        let call = calls.recv().await.unwrap();
        assert_eq!(caller.waiting.get(), 1);
        drop(call);
        assert!(first.await.unwrap().is_err() && caller.waiting.get() == 0);
        // One fills the channel, and one is given up while it waits for room.
        let second = tokio::spawn(async move { second.ask(|_| ()).await });
        let gauge = caller.waiting.clone();
        while gauge.get() < 1 {
            tokio::task::yield_now().await;
        }
        let third = tokio::spawn(async move { caller.ask(|_| ()).await.is_ok() });
        while gauge.get() < 2 {
            tokio::task::yield_now().await;
        }
        third.abort();
        assert!(third.await.is_err());
        assert_eq!(gauge.get(), 1);
        drop(calls.recv().await.unwrap());
        assert!(second.await.unwrap().is_err() && gauge.get() == 0);
    }

    #[tokio::test]
    async fn a_request_to_an_engine_that_has_ended_is_refused_as_stopping() {
        let (engine, calls) = channel_for(1);
        drop(calls);
        let refusal = EngineCaller::new(engine, &Metrics::new()).ask(|_| ()).await.unwrap_err();
        assert_eq!(refusal.rule(), "stopping");
        assert_eq!(refusal.into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
