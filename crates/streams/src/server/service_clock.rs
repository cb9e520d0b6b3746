//! The service's clock: the machine's, which somebody may set, beside one that never jumps.
//!
//! When the machine's clock jumps by more than the skew that devices are allowed, either may be
//! right: somebody has set it wrong, or the machine slept. Devices know. The service goes on with
//! the steady time until more devices agree with the machine's clock than with the steady time.
//! Until then no frame is refused for its time by the slower of the two, and no window ends by
//! the faster. While no device agrees with either, frames wait in the log.

use alpheus_policy::ids::StreamId;
use alpheus_time::{Span, Timestamp};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Devices whose times are kept.
const MAX_DEVICES: usize = 10_000;
/// Times of devices count for so long.
const RECENT: Duration = Duration::from_secs(60);

/// The times that devices said last. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct DeviceTimes(Arc<Mutex<HashMap<StreamId, (Timestamp, Duration)>>>);

impl DeviceTimes {
    /// A device of this stream has sent a frame of this time; `steady` is when.
    pub fn note(&self, stream: StreamId, said: Timestamp, steady: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_DEVICES && !all.contains_key(&stream) {
            all.retain(|_, (_, noted)| steady.saturating_sub(*noted) <= RECENT);
        }
        if all.len() < MAX_DEVICES || all.contains_key(&stream) {
            all.insert(stream, (said, steady));
        }
    }

    /// How many devices lately said a time about `at`, which may be off by the skew. Each time
    /// moves on with the steady clock.
    fn agree(&self, at: Timestamp, steady: Duration, skew: Span) -> usize {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let agrees = |(said, noted): &&(Timestamp, Duration)| {
            let since = steady.saturating_sub(*noted);
            since <= RECENT && off(said.plus(span(since)), at) <= skew.0
        };
        all.values().filter(agrees).count()
    }
}

/// The service's clock.
#[derive(Debug)]
pub struct ServiceClock {
    /// The largest step of the machine's clock that is no jump.
    skew: Span,
    devices: DeviceTimes,
    /// What the clock showed at a time of the steady clock.
    set: Option<(Timestamp, Duration)>,
    /// What the machine's clock showed last.
    machine: Timestamp,
    /// Whether the machine's clock has jumped, and nobody knows yet which time is right.
    has_jumped: bool,
    /// Jumps since the start.
    jumps: u64,
}

/// What happened to the machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockEvent {
    /// It jumped by so many microseconds, and the service does not follow for now.
    Jumped(i128),
    /// Devices agree with it: the service follows.
    Followed,
    /// It shows the service's time again.
    Returned,
}

impl ServiceClock {
    /// A clock that has not been read.
    #[must_use]
    pub fn new(skew: Span, devices: DeviceTimes) -> ServiceClock {
        let (set, machine, has_jumped, jumps) = (None, Timestamp(0), false, 0);
        ServiceClock { skew, devices, set, machine, has_jumped, jumps }
    }

    /// Starts the clock, and gives the time. It showed `last`, or a later time, before the service
    /// stopped: a machine's clock that shows an earlier time has jumped.
    pub fn begin(
        &mut self,
        last: Option<Timestamp>,
        machine: Timestamp,
        steady: Duration,
    ) -> Timestamp {
        let last = last.filter(|last| *last > machine.plus(self.skew));
        let shown = last.unwrap_or(machine);
        self.set = Some((shown, steady));
        shown
    }

    /// The time, given what the machine's clock and the steady clock show.
    pub fn read(
        &mut self,
        machine: Timestamp,
        steady: Duration,
    ) -> (Timestamp, Option<ClockEvent>) {
        self.machine = machine;
        let Some((shown, at)) = self.set else {
            self.set = Some((machine, steady));
            return (machine, None);
        };
        let own = shown.plus(span(steady.saturating_sub(at)));
        if off(machine, own) <= self.skew.0 {
            // It is corrected a little: the service follows, but not back.
            let now = if machine >= shown { machine } else { shown };
            self.set = Some((now, steady));
            let event = std::mem::take(&mut self.has_jumped).then_some(ClockEvent::Returned);
            return (now, event);
        }
        let with_machine = self.devices.agree(machine, steady, self.skew);
        if with_machine > self.devices.agree(own, steady, self.skew) {
            self.set = Some((machine, steady));
            self.jumps += u64::from(!std::mem::take(&mut self.has_jumped));
            return (machine, Some(ClockEvent::Followed));
        }
        let is_new = !std::mem::replace(&mut self.has_jumped, true);
        self.jumps += u64::from(is_new);
        let by = i128::from(machine.0) - i128::from(own.0);
        (own, is_new.then_some(ClockEvent::Jumped(by)))
    }

    /// Whether a device agrees with the service's time, or nothing is in doubt.
    #[must_use]
    pub fn is_trusted(&self, now: Timestamp, steady: Duration) -> bool {
        !self.has_jumped || self.devices.agree(now, steady, self.skew) > 0
    }

    /// The later of the two times, after which a frame is too early.
    #[must_use]
    pub fn later(&self, now: Timestamp) -> Timestamp {
        now.max(self.machine)
    }

    /// Jumps since the start.
    #[must_use]
    pub fn jumps(&self) -> u64 {
        self.jumps
    }
}

fn off(one: Timestamp, other: Timestamp) -> u64 {
    one.0.abs_diff(other.0)
}

fn span(time: Duration) -> Span {
    Span(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKEW: Span = Span::seconds(60);

    fn at(seconds: u64) -> Timestamp {
        Timestamp(seconds * 1_000_000)
    }

    fn after(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn started() -> (ServiceClock, DeviceTimes) {
        let devices = DeviceTimes::default();
        let mut clock = ServiceClock::new(SKEW, devices.clone());
        assert_eq!(clock.read(at(10_000), after(5)), (at(10_000), None));
        (clock, devices)
    }

    #[test]
    fn small_corrections_are_followed_but_never_back() {
        let (mut clock, _) = started();
        assert_eq!(clock.read(at(10_030), after(15)), (at(10_030), None));
        assert_eq!(clock.read(at(10_000), after(16)), (at(10_030), None));
        assert_eq!(clock.read(at(10_032), after(20)), (at(10_032), None));
        assert_eq!(clock.jumps(), 0);
    }

    #[test]
    fn a_jump_is_said_once_and_not_followed_while_devices_disagree() {
        for (machine, by) in [(at(13_610), 3_600), (at(6_410), -3_600)] {
            let (mut clock, devices) = started();
            devices.note(StreamId([1; 16]), at(10_009), after(14));
            let jumped = ClockEvent::Jumped(by * 1_000_000);
            assert_eq!(clock.read(machine, after(15)), (at(10_010), Some(jumped)));
            let later = machine.plus(Span::seconds(5));
            assert_eq!(clock.read(later, after(20)), (at(10_015), None));
            // Neither of the two times makes a frame too early.
            assert_eq!(clock.later(at(10_015)), at(10_015).max(later));
            assert_eq!(clock.read(at(10_021), after(25)), (at(10_021), Some(ClockEvent::Returned)));
            assert_eq!(clock.jumps(), 1);
        }
    }

    #[test]
    fn a_jump_is_followed_once_most_devices_agree_with_it() {
        let (mut clock, devices) = started();
        // The machine slept for an hour.
        assert!(matches!(clock.read(at(13_610), after(15)).1, Some(ClockEvent::Jumped(_))));
        devices.note(StreamId([1; 16]), at(10_012), after(16));
        devices.note(StreamId([2; 16]), at(13_612), after(17));
        assert_eq!(clock.read(at(13_613), after(18)), (at(10_013), None), "one against one");
        devices.note(StreamId([3; 16]), at(13_613), after(18));
        assert_eq!(clock.read(at(13_614), after(19)), (at(13_614), Some(ClockEvent::Followed)));
        assert_eq!(clock.read(at(13_615), after(20)), (at(13_615), None));
        assert_eq!(clock.jumps(), 1);
    }

    #[test]
    fn a_clock_that_shows_less_than_before_the_last_stop_has_jumped() {
        let devices = DeviceTimes::default();
        let mut clock = ServiceClock::new(SKEW, devices.clone());
        assert_eq!(clock.begin(Some(at(10_000)), at(100), after(0)), at(10_000));
        let jumped = Some(ClockEvent::Jumped(-9_901_000_000));
        assert_eq!(clock.read(at(100), after(1)), (at(10_001), jumped));
        assert!(!clock.is_trusted(at(10_001), after(1)), "nobody knows");
        devices.note(StreamId([1; 16]), at(20_000), after(2));
        assert!(!clock.is_trusted(at(10_002), after(2)), "it is neither time");
        // Somebody sets the clock.
        assert_eq!(clock.read(at(20_001), after(3)), (at(20_001), Some(ClockEvent::Followed)));
        assert!(clock.is_trusted(at(20_001), after(3)));
        // A clock that is later, or a little earlier, is taken as it is.
        for machine in [9_950, 15_000] {
            let mut clock = ServiceClock::new(SKEW, DeviceTimes::default());
            let begun = clock.begin(Some(at(10_000)), at(machine), after(1));
            assert_eq!(begun, at(machine));
            assert_eq!(clock.read(at(machine), after(1)), (at(machine), None));
        }
    }

    #[test]
    fn what_devices_said_long_ago_does_not_count() {
        let (mut clock, devices) = started();
        devices.note(StreamId([1; 16]), at(13_000), after(5));
        assert!(matches!(clock.read(at(13_095), after(100)).1, Some(ClockEvent::Jumped(_))));
        devices.note(StreamId([1; 16]), at(13_095), after(100));
        assert_eq!(clock.read(at(13_096), after(101)).1, Some(ClockEvent::Followed));
    }
}
