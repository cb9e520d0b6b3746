//! How numbers change from one reading of an owner to the next: standings of meters only rise.

use crate::number::Decimal;
use crate::windows::{DAY, SECOND};
use crate::words::{BALANCES, METERS, SO_FAR, has};
use std::cmp::Ordering;

/// Words of what rates a balance, as that of sleep, and holds no money.
const SCORES: &[&str] = &["score", "scores", "rating", "index", "ratio", "percent", "punkte"];

/// The reading before of one attribute of an owner: its time and its number.
pub(crate) type Before = Option<(i64, Decimal)>;

/// Steps from one reading of an owner to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steps {
    rises: u64,
    falls: u64,
    /// Falls to a third and less.
    starts: u64,
    /// Steps from a number other than zero to the same.
    holds: u64,
    stays: u64,
}

/// How numbers progress from one reading of an owner to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Course {
    /// Up and down.
    #[default]
    Any,
    /// They only rise, as the standings of a meter.
    Rises,
    /// They rise, and fall only to start again, as totals so far of a day.
    StartsAgain,
    /// They are what is left after each reading, as the balance of an account.
    Stands,
}

impl Course {
    /// Whether a sum of the numbers says something.
    #[must_use]
    pub fn adds_up(self) -> bool {
        self == Course::Any
    }

    /// What to say behind the name of a column.
    pub(crate) fn says(self) -> &'static str {
        match self {
            Course::Any => "",
            Course::Rises => ", which only rises",
            Course::StartsAgain => ", which rises and starts again",
            Course::Stands => ", which is a balance",
        }
    }
}

impl Steps {
    /// Steps before a column is a meter's, if its name says so, and if not.
    const MIN_NAMED: u64 = 10;
    const MIN: u64 = 100;
    /// Steps of each owner, in the same cases.
    const MIN_NAMED_EACH: u64 = 2;
    const MIN_EACH: u64 = 24;
    /// The same in files of more than half a year, in which all that has seasons falls too. A year
    /// of monthly readings has eleven.
    const MIN_LONG_EACH: u64 = 8;
    const LONG: i64 = 183 * DAY * SECOND;
    /// One step in so many may fall: meters are replaced, and begin again.
    const RARE: u64 = 200;
    /// Falls after which a column is no longer looked at, unless so many times as many steps rise.
    const ENOUGH: u64 = 64;
    const STEEP: u64 = 3;
    /// Falls of which a pattern is seen.
    const MIN_STARTS: u64 = 2;

    /// Adds a reading. Rows may come in any order, also the latest first.
    pub(crate) fn add(&mut self, before: &mut Before, time: i64, value: Decimal) {
        if self.falls > Self::ENOUGH && self.falls * Self::STEEP > self.rises + self.holds {
            return;
        }
        if let Some((earlier, known)) = before.replace((time, value))
            && earlier != time
        {
            let (from, to) = if earlier < time { (known, value) } else { (value, known) };
            match from.cmp(&to) {
                Ordering::Equal => {
                    self.stays += 1;
                    self.holds += u64::from(from != Decimal::ZERO);
                }
                Ordering::Less => self.rises += 1,
                Ordering::Greater => {
                    self.falls += 1;
                    let is_start = to >= Decimal::ZERO && from.minus(to).minus(to) >= to;
                    self.starts += u64::from(is_start);
                }
            }
        }
    }

    /// How a column of this name progresses. `span` is the time from the first to the last reading,
    /// in microseconds.
    pub(crate) fn course(&self, name: &str, owners: u64, span: i64) -> Course {
        if has(name, BALANCES) && !has(name, SCORES) {
            return Course::Stands;
        }
        // Of one number a day, a total of the day starts again each time.
        let so_far = has(name, SO_FAR) && self.is_dense(owners, span);
        if self.starts_again(name, so_far) {
            return Course::StartsAgain;
        }
        let named = so_far || has(name, METERS);
        if self.only_rise(named, owners, span) { Course::Rises } else { Course::Any }
    }

    /// Whether many numbers never fell, though each owner has too few to tell.
    pub(crate) fn may_count_up(&self) -> bool {
        self.falls == 0 && self.count() >= Self::MIN && self.rises * 2 >= self.count()
    }

    /// How often numbers fell.
    pub(crate) fn falls(&self) -> u64 {
        self.falls
    }

    fn count(&self) -> u64 {
        self.rises + self.falls + self.stays
    }

    /// Whether an owner has several readings a day.
    fn is_dense(&self, owners: u64, span: i64) -> bool {
        const A_DAY: i128 = 4;
        let (steps, owners) = (i128::from(self.count()), i128::from(owners));
        i128::from(span) * owners * A_DAY <= steps * i128::from(DAY * SECOND)
    }

    /// Whether numbers fall only to start again near zero, and rise several times in between. Of
    /// rain there may be little in between: then a name such as `rain today` decides, if numbers
    /// stay until they start again. With such a name, one start of several readings a day is enough.
    fn starts_again(&self, name: &str, is_so_far: bool) -> bool {
        let steps = self.count();
        let least = if is_so_far { 1 } else { Self::MIN_STARTS };
        let clear = self.falls >= least && self.starts * 10 >= self.falls * 9;
        let steep = self.rises >= self.falls * Self::STEEP && self.rises * 10 >= steps;
        let so_far = has(name, SO_FAR) || has(name, METERS);
        let kept = so_far && self.rises >= self.falls && self.holds >= self.falls * 2;
        clear && steps >= Self::MIN_NAMED && (steep || kept)
    }

    /// Whether a column holds standings of meters, or whatever else only grows. `named`: whether its
    /// name says so.
    fn only_rise(&self, named: bool, owners: u64, span: i64) -> bool {
        let steps = self.count();
        let (least, each) = match named {
            true => (Self::MIN_NAMED, Self::MIN_NAMED_EACH),
            false if span >= Self::LONG => (Self::MIN, Self::MIN_LONG_EACH),
            false => (Self::MIN, Self::MIN_EACH),
        };
        steps >= least.max(owners.saturating_mul(each))
            && self.rises * 10 >= steps
            && self.falls * Self::RARE <= self.rises
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_rise(name: &str, numbers: &[i128]) -> bool {
        let (mut steps, mut before) = (Steps::default(), None);
        for (time, digits) in numbers.iter().enumerate() {
            let time = i64::try_from(time).unwrap();
            steps.add(&mut before, time, Decimal { digits: *digits, places: 1 });
        }
        steps.only_rise(has(name, METERS), 1, 0)
    }

    #[test]
    fn what_never_falls_is_a_meters_standing() {
        let rising: Vec<i128> = (0..300).map(|n| 5000 + n / 2).collect();
        assert!(only_rise("kwh", &rising) && only_rise("Zählerstand", &rising[..30]));
        assert!(only_rise("Zählerstand", &rising[..12]), "a year of months");
        assert!(!only_rise("kwh", &rising[..30]), "too few to tell without a name");
        let replaced: Vec<i128> = (0..600).map(|n| if n < 400 { 9000 + n } else { n }).collect();
        assert!(only_rise("meter_reading", &replaced));
        let usage: Vec<i128> = (0..300).map(|n| n * 7 % 13).collect();
        assert!(!only_rise("meter_reading", &usage));
        assert!(!only_rise("kwh", &[7; 300]), "a number that stays is no meter's");
    }

    #[test]
    fn monthly_readings_of_many_meters_only_rise() {
        let of = |each: fn(i128, i128) -> i128, days: i64| {
            let mut steps = Steps::default();
            for owner in 0..30 {
                let mut before = None;
                for month in 0..12 {
                    let digits = each(owner, month);
                    let value = Decimal { digits, places: 0 };
                    steps.add(&mut before, i64::try_from(month).unwrap(), value);
                }
            }
            steps.only_rise(false, 30, days * DAY * SECOND)
        };
        let standings = |owner, month| 1000 * owner + (130 + owner) * month;
        assert!(of(standings, 334));
        assert!(!of(standings, 1), "a morning may rise everywhere");
        assert!(!of(|owner, month| 100 + (owner * 7 + month * 5) % 12, 334), "usage falls too");
    }

    #[test]
    fn the_latest_row_may_come_first() {
        let (mut steps, mut before) = (Steps::default(), None);
        for n in (0..200).rev() {
            steps.add(&mut before, n, Decimal { digits: n.into(), places: 0 });
        }
        assert!(steps.only_rise(true, 1, 0));
    }
}
