//! When a failed attempt is repeated: after a pause that grows, until a deadline.
//!
//! The [policy](RetryPolicy) is a value and reads no clock. [`retry`] and
//! [`retry_blocking`] follow it for one operation, [`Attempts`] for a loop of its own, and
//! [`Backoff`] for one without a deadline.

use rand_core::Rng;
use std::time::Duration;
use tokio::time::Instant;

/// How long the pauses between attempts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    first: Duration,
    factor: u32,
    max: Duration,
    deadline: Duration,
}

impl RetryPolicy {
    /// Pauses of the same length.
    #[must_use]
    pub const fn every(pause: Duration) -> Self {
        Self { first: pause, factor: 1, max: pause, deadline: Duration::MAX }
    }

    /// Pauses that double, up to a longest one.
    #[must_use]
    pub const fn doubling(first: Duration, max: Duration) -> Self {
        Self { first, factor: 2, max, deadline: Duration::MAX }
    }

    /// The same, but no attempt begins so long after the first one or later.
    #[must_use]
    pub const fn within(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }
}

/// The pauses of one loop.
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: RetryPolicy,
    next: Duration,
}

impl Backoff {
    /// Before the first failure.
    #[must_use]
    pub const fn new(policy: RetryPolicy) -> Self {
        Self { policy, next: policy.first }
    }

    /// The pause after one more failure.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(self.policy.factor).min(self.policy.max);
        pause
    }

    /// The same, shortened to a random part of its second half: callers that failed
    /// together do not come back together.
    pub fn jittered(&mut self, rng: &mut impl Rng) -> Duration {
        let half = self.pause() / 2;
        half + half.mul_f64(f64::from(rng.next_u32()) / f64::from(u32::MAX))
    }

    /// After a success the pauses begin with the first one again.
    pub fn reset(&mut self) {
        self.next = self.policy.first;
    }
}

/// The attempts of one loop, until the deadline of its policy.
#[derive(Clone, Debug)]
pub struct Attempts {
    begun: Instant,
    backoff: Backoff,
}

impl Attempts {
    /// The first attempt begins now.
    #[must_use]
    pub fn new(policy: RetryPolicy) -> Self {
        Self { begun: Instant::now(), backoff: Backoff::new(policy) }
    }

    /// Waits before one more attempt. Returns false if that would begin after the deadline.
    pub async fn again(&mut self) -> bool {
        match self.pause_after(self.begun.elapsed()) {
            Some(pause) => {
                tokio::time::sleep(pause).await;
                true
            }
            None => false,
        }
    }

    /// The pause before one more attempt, so long after the first one began; none if it would
    /// begin after the deadline.
    fn pause_after(&mut self, elapsed: Duration) -> Option<Duration> {
        let pause = self.backoff.pause();
        (elapsed.saturating_add(pause) < self.backoff.policy.deadline).then_some(pause)
    }
}

/// Repeats an operation while its error may pass.
///
/// # Errors
/// The error of the last attempt.
pub async fn retry<T, E, F: Future<Output = Result<T, E>>>(
    policy: RetryPolicy,
    may_pass: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    let mut attempts = Attempts::new(policy);
    loop {
        let answer = attempt().await;
        let again = answer.as_ref().is_err_and(&may_pass) && attempts.again().await;
        if !again {
            return answer;
        }
    }
}

/// [`retry`] on a thread.
///
/// # Errors
/// The error of the last attempt.
pub fn retry_blocking<T, E>(
    policy: RetryPolicy,
    may_pass: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut attempts = Attempts::new(policy);
    loop {
        let answer = attempt();
        let pause = match &answer {
            Err(error) if may_pass(error) => attempts.pause_after(attempts.begun.elapsed()),
            _ => None,
        };
        match pause {
            Some(pause) => std::thread::sleep(pause),
            None => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use rand_core::SeedableRng;
    use std::cell::Cell;

    const SECOND: Duration = Duration::from_secs(1);
    const POLICY: RetryPolicy = RetryPolicy::doubling(SECOND, Duration::from_secs(5));

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again_after_a_success() {
        let mut backoff = Backoff::new(POLICY);
        let pauses: Vec<u64> = (0..5).map(|_| backoff.pause().as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 5, 5]);
        backoff.reset();
        assert_eq!(backoff.pause(), SECOND);
    }

    #[test]
    fn jitter_shortens_a_pause_by_half_at_most() {
        let (mut rng, mut shortest, mut longest) =
            (ChaCha20Rng::from_seed([1; 32]), SECOND, Duration::ZERO);
        for _ in 0..1000 {
            let pause = Backoff::new(POLICY).jittered(&mut rng);
            (shortest, longest) = (shortest.min(pause), longest.max(pause));
        }
        assert!(shortest >= SECOND / 2 && shortest < SECOND * 11 / 20, "{shortest:?}");
        assert!(longest <= SECOND && longest > SECOND * 19 / 20, "{longest:?}");
    }

    #[test]
    fn no_attempt_begins_after_the_deadline() {
        let mut attempts = Attempts::new(POLICY.within(Duration::from_secs(12)));
        let mut elapsed = Duration::ZERO;
        while let Some(pause) = attempts.pause_after(elapsed) {
            elapsed += pause;
        }
        assert_eq!(elapsed, Duration::from_secs(7), "1 + 2 + 4, and not 5 more");
    }

    #[tokio::test]
    async fn attempts_end_with_a_success_an_error_that_stays_or_the_deadline() {
        let at_once = RetryPolicy::every(Duration::ZERO);
        for (policy, passes, attempts) in
            [(at_once, true, 3), (at_once, false, 1), (at_once.within(Duration::ZERO), true, 1)]
        {
            let tried = Cell::new(0);
            let attempt = || {
                tried.set(tried.get() + 1);
                if tried.get() == 3 { Ok(()) } else { Err(()) }
            };
            let answer = retry(policy, |()| passes, || std::future::ready(attempt())).await;
            assert_eq!((answer.is_ok(), tried.get()), (attempts == 3, attempts));
            tried.set(0);
            let answer = retry_blocking(policy, |()| passes, attempt);
            assert_eq!((answer.is_ok(), tried.get()), (attempts == 3, attempts));
        }
    }
}
