//! The service's clock: the machine's, which somebody may set, beside one that never jumps.
//!
//! When the machine's clock is off the steady time by more than the skew that devices are allowed,
//! either may be right: somebody has set it wrong, or the machine slept. Devices know. The service
//! continues with the steady time, and lets frames wait in the log until devices have had the time to
//! speak. Then it follows the machine's clock if more of them agree with that than with the steady
//! time. While neither has more, frames keep waiting. Each device counts once, by the name in the
//! certificate that it connects with, and only with what it said since the doubt began.

use alpheus_time::{Span, Timestamp};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Devices whose times are kept.
const MAX_DEVICES: usize = 10_000;
/// Times of devices count for so long.
const RECENT: Duration = Duration::from_secs(60);
/// Devices have so long to speak before they are counted.
const HEARING: Duration = Duration::from_secs(5);
/// How often they are counted while the time is in doubt.
const COUNTING: Duration = Duration::from_secs(1);

/// A time that a device said, and when by the steady clock.
type DeviceTime = (Timestamp, Duration);

/// The times that devices said last. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct DeviceTimes(Arc<Mutex<HashMap<String, DeviceTime>>>);

impl DeviceTimes {
    /// The device of this name, which its certificate states, has sent a frame of this time;
    /// `steady` is when.
    pub fn note(&self, device: &str, said: Timestamp, steady: Duration) {
        let mut all = self.all();
        if let Some(known) = all.get_mut(device) {
            *known = (said, steady);
            return;
        }
        if all.len() >= MAX_DEVICES {
            all.retain(|_, (_, noted)| steady.saturating_sub(*noted) <= RECENT);
        }
        if all.len() < MAX_DEVICES {
            all.insert(device.to_owned(), (said, steady));
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, DeviceTime>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many devices said each of two times, lately and not before `since`. Their times may be off by
    /// the skew, and advance with the steady clock.
    fn agree(
        &self,
        at: [Timestamp; 2],
        steady: Duration,
        since: Duration,
        skew: Span,
    ) -> [usize; 2] {
        let mut counts = [0; 2];
        for (said, noted) in self.all().values().filter(|(_, noted)| *noted >= since) {
            let ago = steady.saturating_sub(*noted);
            let now = said.plus(span(ago));
            for (count, at) in counts.iter_mut().zip(at) {
                *count += usize::from(ago <= RECENT && off(now, at) <= skew.0);
            }
        }
        counts
    }
}

/// The service's clock.
#[derive(Debug)]
pub struct ServiceClock {
    /// The largest difference to the steady time that is no jump.
    skew: Span,
    devices: DeviceTimes,
    /// What the clock showed at a time of the steady clock: at the start, or when it last followed
    /// a jump. Small corrections do not move it, so that many of them are a jump.
    set: Option<DeviceTime>,
    /// What the clock showed last.
    shown: Timestamp,
    doubt: Option<Doubt>,
    /// Jumps since the start.
    jumps: u64,
}

/// The machine's clock has jumped, and nobody knows yet which time is right.
#[derive(Debug)]
struct Doubt {
    /// Since when, by the steady clock.
    since: Duration,
    /// When devices were counted last.
    counted: Option<Duration>,
    /// Whether more devices agreed with the service's time than with the machine's.
    is_service_right: bool,
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
        let (set, shown, doubt, jumps) = (None, Timestamp(0), None, 0);
        ServiceClock { skew, devices, set, shown, doubt, jumps }
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
        self.show_from(last.unwrap_or(machine), steady)
    }

    fn show_from(&mut self, time: Timestamp, steady: Duration) -> Timestamp {
        self.set = Some((time, steady));
        self.shown = time;
        time
    }

    /// The time, given what the machine's clock and the steady clock show.
    pub fn read(
        &mut self,
        machine: Timestamp,
        steady: Duration,
    ) -> (Timestamp, Option<ClockEvent>) {
        let Some((set, at)) = self.set else {
            return (self.show_from(machine, steady), None);
        };
        let own = set.plus(span(steady.saturating_sub(at)));
        let is_near = off(machine, own) <= self.skew.0;
        // Small corrections are followed, but not back.
        self.shown = self.shown.max(if is_near { machine } else { own });
        if is_near {
            return (self.shown, self.doubt.take().map(|_| ClockEvent::Returned));
        }
        let is_new = self.doubt.is_none();
        let begun = Doubt { since: steady, counted: None, is_service_right: false };
        let doubt = self.doubt.get_or_insert(begun);
        if doubt.is_to_count(steady) {
            let times = [machine, own];
            let agree = self.devices.agree(times, steady, doubt.since, self.skew);
            let [with_machine, with_service] = agree;
            doubt.is_service_right = with_service > with_machine;
            if with_machine > with_service {
                self.doubt = None;
                return (self.show_from(machine, steady), Some(ClockEvent::Followed));
            }
        }
        self.jumps += u64::from(is_new);
        let by = i128::from(machine.0) - i128::from(own.0);
        (self.shown, is_new.then_some(ClockEvent::Jumped(by)))
    }

    /// Whether nothing is in doubt, or most devices agree with the service's time.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.doubt.as_ref().is_none_or(|doubt| doubt.is_service_right)
    }

    /// Jumps since the start.
    #[must_use]
    pub fn jumps(&self) -> u64 {
        self.jumps
    }
}

impl Doubt {
    /// Whether devices are to be counted, which takes a while.
    fn is_to_count(&mut self, steady: Duration) -> bool {
        let due = self.counted.map_or(self.since + HEARING, |counted| counted + COUNTING);
        let is_due = steady >= due;
        if is_due {
            self.counted = Some(steady);
        }
        is_due
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
    fn many_small_steps_are_a_jump() {
        let (mut clock, _) = started();
        assert_eq!(clock.read(at(10_045), after(6)).1, None);
        assert_eq!(clock.read(at(10_061), after(7)).1, None);
        let jumped = Some(ClockEvent::Jumped(97_000_000));
        assert_eq!(clock.read(at(10_100), after(8)), (at(10_061), jumped));
        assert!(!clock.is_trusted());
    }

    #[test]
    fn a_jump_is_said_once_and_not_followed_while_devices_disagree() {
        for (machine, by) in [(at(13_610), 3_600), (at(6_410), -3_600)] {
            let (mut clock, devices) = started();
            let jumped = ClockEvent::Jumped(by * 1_000_000);
            assert_eq!(clock.read(machine, after(15)), (at(10_010), Some(jumped)));
            devices.note("one", at(10_011), after(16));
            assert!(!clock.is_trusted(), "others may be about to speak");
            let later = machine.plus(Span::seconds(5));
            assert_eq!(clock.read(later, after(20)), (at(10_015), None));
            assert!(clock.is_trusted());
            assert_eq!(clock.read(at(10_021), after(25)), (at(10_021), Some(ClockEvent::Returned)));
            assert_eq!(clock.jumps(), 1);
        }
    }

    #[test]
    fn a_jump_is_followed_once_most_devices_agree_with_it() {
        let (mut clock, devices) = started();
        // The machine slept for an hour.
        devices.note("one", at(10_009), after(14));
        assert!(matches!(clock.read(at(13_610), after(15)).1, Some(ClockEvent::Jumped(_))));
        devices.note("two", at(10_012), after(16));
        devices.note("three", at(13_612), after(17));
        assert_eq!(clock.read(at(13_615), after(20)), (at(10_015), None), "one against one");
        assert!(!clock.is_trusted());
        devices.note("four", at(13_613), after(18));
        assert_eq!(clock.read(at(13_616), after(21)), (at(13_616), Some(ClockEvent::Followed)));
        assert_eq!(clock.read(at(13_617), after(22)), (at(13_617), None));
        assert!(clock.is_trusted());
        assert_eq!(clock.jumps(), 1);
    }

    #[test]
    fn a_device_counts_once() {
        let (mut clock, devices) = started();
        assert!(matches!(clock.read(at(13_610), after(15)).1, Some(ClockEvent::Jumped(_))));
        for _ in 0..5 {
            devices.note("eve", at(13_611), after(16));
        }
        devices.note("one", at(10_012), after(16));
        devices.note("two", at(10_012), after(16));
        assert_eq!(clock.read(at(13_615), after(20)), (at(10_015), None));
        assert!(clock.is_trusted());
    }

    #[test]
    fn a_clock_that_shows_less_than_before_the_last_stop_has_jumped() {
        let devices = DeviceTimes::default();
        let mut clock = ServiceClock::new(SKEW, devices.clone());
        assert_eq!(clock.begin(Some(at(10_000)), at(100), after(0)), at(10_000));
        let jumped = Some(ClockEvent::Jumped(-9_901_000_000));
        assert_eq!(clock.read(at(101), after(2)), (at(10_002), jumped));
        devices.note("one", at(20_000), after(3));
        assert_eq!(clock.read(at(106), after(7)), (at(10_007), None));
        assert!(!clock.is_trusted(), "it is neither time");
        // Somebody sets the clock.
        assert_eq!(clock.read(at(20_005), after(8)), (at(20_005), Some(ClockEvent::Followed)));
        assert!(clock.is_trusted());
        // A clock that is later, or a little earlier, is taken as it is.
        for machine in [9_950, 15_000] {
            let mut clock = ServiceClock::new(SKEW, DeviceTimes::default());
            let begun = clock.begin(Some(at(10_000)), at(machine), after(1));
            assert_eq!(begun, at(machine));
            assert_eq!(clock.read(at(machine), after(1)), (at(machine), None));
        }
    }

    #[test]
    fn what_devices_said_before_the_doubt_or_long_ago_does_not_count() {
        let (mut clock, devices) = started();
        devices.note("one", at(13_090), after(95));
        assert!(matches!(clock.read(at(13_095), after(100)).1, Some(ClockEvent::Jumped(_))));
        assert_eq!(clock.read(at(13_100), after(105)).1, None);
        devices.note("one", at(13_101), after(106));
        assert_eq!(clock.read(at(13_167), after(172)).1, None);
        devices.note("one", at(13_167), after(172));
        assert_eq!(clock.read(at(13_168), after(173)).1, Some(ClockEvent::Followed));
    }
}
