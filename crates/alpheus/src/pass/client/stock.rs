//! Sees to it that the next period's pass is there before it is needed, while a
//! session runs.

use crate::failure::Failure;
use crate::pass::client::fetch::Fetching;
use crate::pass::client::passfile::PassFile;
use crate::pass::clock;
use crate::pass::link::LinkError;
use alpheus_anonymous_credential::configuration::Pinned;
use alpheus_anonymous_credential::holder::Which;
use alpheus_anonymous_credential::schedule::{Period, Schedule, Time};
use rand_core::Rng;
use std::time::Duration;
use tokio::sync::oneshot;

/// The first pause before the issuer is asked again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(600));

/// What comes back from the issuer.
type Answered = (Fetching, Result<Vec<u8>, LinkError>);

/// Fetches the next period's pass at a random moment of this one.
///
/// # Privacy
/// The issuer learns that the account's machine is on at that moment. Were it a
/// moment of the session's, as its beginning or a border, it would link the two.
pub struct Stock {
    fetches: bool,
    /// The period that is seen to, and when to ask for it; never if it is there.
    due: Option<(Period, Option<Time>)>,
    asked: Option<oneshot::Receiver<Answered>>,
    pause: Duration,
}

impl Stock {
    /// One that fetches, or leaves it to its owner.
    #[must_use]
    pub fn new(fetches: bool) -> Self {
        Self { fetches, due: None, asked: None, pause: PAUSES.0 }
    }

    /// Looks after it, without waiting for anybody. What goes wrong is logged, and
    /// tried again.
    pub fn tend(&mut self, file: &mut PassFile, pinned: &Pinned, rng: &mut impl Rng) {
        if !self.fetches {
            return;
        }
        if let Err(failure) = self.step(file, pinned, rng) {
            tracing::warn!(error = %failure, "the next pass was not fetched; trying again");
            self.asked = None;
            let again = clock::now().0.saturating_add(micros(self.pause));
            self.due = self.due.map(|(period, _)| (period, Some(Time(again))));
            self.pause = (self.pause * 2).min(PAUSES.1);
        }
    }

    fn step(
        &mut self,
        file: &mut PassFile,
        pinned: &Pinned,
        rng: &mut impl Rng,
    ) -> Result<(), Failure> {
        if let Some(answered) = &mut self.asked {
            match answered.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => return Ok(()),
                Err(oneshot::error::TryRecvError::Closed) => {}
                Ok((fetching, answer)) => {
                    let fetched = fetching.finish(file, &answer?)?;
                    tracing::info!(period = fetched.period.0, "the next pass is there");
                }
            }
            (self.asked, self.due, self.pause) = (None, None, PAUSES.0);
        }
        let now = clock::now();
        let Some(running) = pinned.schedule.epoch_at(now) else { return Ok(()) };
        let period = Period(pinned.schedule.period_of(running).0.saturating_add(1));
        if self.due.is_none_or(|(known, _)| known != period) {
            let there = file.holder(pinned, period)?.is_some();
            let moment = || moment(&pinned.schedule, now, period, rng);
            self.due = Some((period, (!there).then(moment)));
        }
        if self.due.and_then(|(_, due)| due).is_some_and(|due| due <= now) {
            self.ask(file)?;
        }
        Ok(())
    }

    fn ask(&mut self, file: &mut PassFile) -> Result<(), Failure> {
        let Some(fetching) = Fetching::begin(file, Which::Next)? else {
            self.due = None;
            return Ok(());
        };
        let (tell, answered) = oneshot::channel();
        tokio::spawn(async move {
            let answer = fetching.ask().await;
            // A client that stops does not hear it.
            let _ = tell.send((fetching, answer));
        });
        self.asked = Some(answered);
        Ok(())
    }
}

/// Between now and two pre-logins before the period begins.
fn moment(schedule: &Schedule, now: Time, period: Period, rng: &mut impl Rng) -> Time {
    let opens = schedule.opens(schedule.first_epoch(period)).0;
    let last = opens.saturating_sub(schedule.border_pre_login);
    let spread = u128::from(last.saturating_sub(now.0)) * u128::from(rng.next_u32());
    Time(now.0.saturating_add(u64::try_from(spread >> 32).unwrap_or(0)))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

    #[test]
    fn it_asks_at_any_moment_but_not_at_the_border() {
        let schedule = Schedule {
            start: Time(0),
            epoch: 100,
            pre_login: 10,
            border_pre_login: 50,
            epochs_per_period: 10,
            ahead: 0,
        };
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let mut draw = |now| moment(&schedule, Time(now), Period(1), &mut rng).0;
        let drawn: Vec<u64> = (0..1000).map(|_| draw(200)).collect();
        assert!(drawn.iter().all(|at| (200..900).contains(at)));
        for third in [200..430, 430..670, 670..900] {
            assert!(drawn.iter().filter(|at| third.contains(*at)).count() > 250, "{third:?}");
        }
        assert_eq!(draw(980), 980, "too late to choose");
    }
}
