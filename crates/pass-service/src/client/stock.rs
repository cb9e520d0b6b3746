//! Fetches the next period's pass before it is needed, while a session runs.

use crate::client::fetch::IssueRequest;
use crate::client::passfile::PassFile;
use alpheus_anonymous_credential::configuration::PinnedConfiguration;
use alpheus_anonymous_credential::holder::Timing;
use alpheus_anonymous_credential::schedule::{Period, Schedule};
use alpheus_node::clock;
use alpheus_node::failure::Failure;
use alpheus_node::retry::{Backoff, RetryPolicy};
use alpheus_time::Timestamp;
use rand_core::Rng;
use std::time::Duration;
use tokio::sync::oneshot;

/// Pauses before the issuer is asked again.
const RETRY: RetryPolicy = RetryPolicy::doubling(Duration::from_secs(2), Duration::from_secs(600));

/// A request, and the issuer's answer.
type Exchange = (IssueRequest, Result<Vec<u8>, Failure>);

/// Fetches the next period's pass at a random time in this one.
///
/// # Privacy
/// The issuer learns that the account's machine is on at that time. A time related to the
/// session, such as its start or a period's border, would link account and session.
pub struct Stock {
    fetches: bool,
    /// The next period, and when to request its pass; `None` if the pass is in the file.
    due: Option<(Period, Option<Timestamp>)>,
    exchange: Option<oneshot::Receiver<Exchange>>,
    backoff: Backoff,
}

impl Stock {
    /// `fetches` is false if the user fetches passes.
    #[must_use]
    pub fn new(fetches: bool) -> Self {
        Self { fetches, due: None, exchange: None, backoff: Backoff::new(RETRY) }
    }

    /// Fetches the pass if it is time, without blocking. Failures are logged and retried.
    pub fn tend(&mut self, file: &mut PassFile, pinned: &PinnedConfiguration, rng: &mut impl Rng) {
        if !self.fetches {
            return;
        }
        if let Err(failure) = self.step(file, pinned, rng) {
            tracing::warn!(error = %failure, "the next pass was not fetched; will retry");
            self.exchange = None;
            let again = clock::now().0.saturating_add(micros(self.backoff.pause()));
            self.due = self.due.map(|(period, _)| (period, Some(Timestamp(again))));
        }
    }

    fn step(
        &mut self,
        file: &mut PassFile,
        pinned: &PinnedConfiguration,
        rng: &mut impl Rng,
    ) -> Result<(), Failure> {
        if let Some(exchange) = &mut self.exchange {
            match exchange.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => return Ok(()),
                Err(oneshot::error::TryRecvError::Closed) => {}
                Ok((request, answer)) => {
                    let pass = request.finish(file, &answer?)?;
                    tracing::info!(period = pass.period.0, "the next pass was fetched");
                }
            }
            (self.exchange, self.due) = (None, None);
            self.backoff.reset();
        }
        let now = clock::now();
        let Some(running) = pinned.schedule.epoch_at(now) else { return Ok(()) };
        let period = Period(pinned.schedule.period_of(running).0.saturating_add(1));
        if self.due.is_none_or(|(next, _)| next != period) {
            let has_pass = file.holder(pinned, period)?.is_some();
            let moment = || moment(&pinned.schedule, now, period, rng);
            self.due = Some((period, (!has_pass).then(moment)));
        }
        if self.due.and_then(|(_, due)| due).is_some_and(|due| due <= now) {
            self.request(file)?;
        }
        Ok(())
    }

    fn request(&mut self, file: &mut PassFile) -> Result<(), Failure> {
        let Some(request) = IssueRequest::begin(file, Timing::Next)? else {
            self.due = None;
            return Ok(());
        };
        let (sender, exchange) = oneshot::channel();
        tokio::spawn(async move {
            let answer = request.send().await;
            // The client may have stopped.
            let _ = sender.send((request, answer));
        });
        self.exchange = Some(exchange);
        Ok(())
    }
}

/// A random time from now until two pre-logins before the period begins.
fn moment(schedule: &Schedule, now: Timestamp, period: Period, rng: &mut impl Rng) -> Timestamp {
    let opens = schedule.opens(schedule.first_epoch(period)).0;
    let last = opens.saturating_sub(schedule.border_pre_login.0);
    let spread = u128::from(last.saturating_sub(now.0)) * u128::from(rng.next_u32());
    Timestamp(now.0.saturating_add(u64::try_from(spread >> 32).unwrap_or(0)))
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_time::Span;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};

    #[test]
    fn requests_spread_over_the_period_except_its_border() {
        let schedule = Schedule {
            start: Timestamp(0),
            epoch: Span(100),
            pre_login: Span(10),
            border_pre_login: Span(50),
            epochs_per_period: 10,
            ahead: 0,
        };
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let mut draw = |now| moment(&schedule, Timestamp(now), Period(1), &mut rng).0;
        let drawn: Vec<u64> = (0..1000).map(|_| draw(200)).collect();
        assert!(drawn.iter().all(|at| (200..900).contains(at)));
        for third in [200..430, 430..670, 670..900] {
            assert!(drawn.iter().filter(|at| third.contains(*at)).count() > 250, "{third:?}");
        }
        assert_eq!(draw(980), 980, "too late to choose");
    }
}
