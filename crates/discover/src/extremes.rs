//! The least and the greatest number of a column, how often each occurs, and the next to them: a
//! number far from all others that repeats may stand for a missing one.

use crate::number::Decimal;
use std::collections::BTreeMap;

/// Cells of one number as the file writes them, such as `511`, `511.0` and `511,0`, each with how
/// often.
pub(crate) type Cells = BTreeMap<String, u64>;

/// Counts a cell of a number.
pub(crate) fn count_cell(cells: &mut Cells, cell: &str) {
    match cells.get_mut(cell) {
        Some(count) => *count += 1,
        None => drop(cells.insert(cell.to_owned(), 1)),
    }
}

/// One end of a column's numbers.
#[derive(Clone, Debug, Default)]
struct End {
    value: Option<Decimal>,
    text: String,
    cells: Cells,
    next: Option<Decimal>,
}

/// A number that repeats far from all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Far {
    /// The number with a decimal point and without marks, as it is first written.
    pub text: String,
    /// Its cells.
    pub cells: Cells,
    /// Whether it lies farther from the others than these from each other.
    pub apart: bool,
}

/// Both ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extremes {
    least: End,
    most: End,
}

impl End {
    fn add(
        &mut self,
        value: Decimal,
        (plain, cell): (&str, &str),
        is_beyond: fn(&Decimal, &Decimal) -> bool,
    ) {
        match self.value {
            Some(own) if own == value => count_cell(&mut self.cells, cell),
            Some(own) if !is_beyond(&value, &own) => {
                if self.next.is_none_or(|next| is_beyond(&value, &next)) {
                    self.next = Some(value);
                }
            }
            _ => {
                self.next = self.value.replace(value);
                self.cells.clear();
                count_cell(&mut self.cells, cell);
                plain.clone_into(&mut self.text);
            }
        }
    }

    fn count(&self) -> u64 {
        self.cells.values().sum()
    }
}

impl Extremes {
    /// Adds a number with its text and its cell.
    pub(crate) fn add(&mut self, value: Decimal, texts: (&str, &str)) {
        self.least.add(value, texts, |one, other| one < other);
        self.most.add(value, texts, |one, other| one > other);
    }

    /// Of so many numbers, those that repeat at an end and lie far from all others.
    pub(crate) fn far(&self, numbers: u64) -> Vec<Far> {
        const MIN: u64 = 5;
        const MIN_ALONE: u64 = 3;
        const MANY: u64 = 100;
        let far = |(end, other): (&End, &End)| -> Option<Far> {
            let (value, next, count) = (end.value?, end.next?, end.count());
            let distance = |a: Decimal, b: Decimal| if a > b { a.minus(b) } else { b.minus(a) };
            let gap = distance(value, next);
            // The other end may be a mark as well, such as 85 beside -127.
            let (far_end, near_end) = (other.value?, other.next?);
            let inner = distance(next, near_end);
            let is_mark = other.count() >= MIN_ALONE
                && (distance(far_end, near_end) > inner.times(3)
                    || (is_failure(far_end) && distance(far_end, near_end) > inner));
            let span = if is_mark { inner } else { distance(next, far_end) };
            // Zero is usual where something is off for long.
            let usual = value == Decimal::ZERO && count * 10 > numbers;
            // What a sensor writes when it fails stands out however rare it is.
            let distance_alone = if is_failure(value) { span } else { span.times(3) };
            let stands_alone = is_failure(value) && gap > span.times(3);
            let least = if stands_alone { 1 } else { MIN_ALONE };
            let alone = numbers >= MANY && count >= least && gap > distance_alone;
            let often = alone || (count >= MIN && count * 100 >= numbers);
            let frequent = count * 20 >= numbers && gap.times(3) > span;
            let apart = gap > span;
            let is_far = !usual && span > Decimal::ZERO && often && (apart || frequent);
            is_far.then(|| Far { text: end.text.clone(), cells: end.cells.clone(), apart })
        };
        let ends = [(&self.least, &self.most), (&self.most, &self.least)];
        ends.into_iter().filter_map(far).collect()
    }
}

/// Whether sensors write a number when they fail: 85 and -127 of the DS18B20, and the greatest
/// numbers of 8 and 16 bits in tenths and hundredths.
fn is_failure(value: Decimal) -> bool {
    const WHOLE: &[i128] = &[85, -127, 127, 255, 999, -999];
    const HUNDREDTHS: &[i128] = &[32_767, -32_768, 65_535, 327_670, 655_350, 99_990];
    let hundredths = |digits: &i128| Decimal { digits: *digits, places: 2 } == value;
    let whole = |digits: &i128| Decimal { digits: *digits, places: 0 } == value;
    WHOLE.iter().any(whole) || HUNDREDTHS.iter().any(hundredths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_far_from_all_others_is_found() {
        let far = |of: &dyn Fn(i128) -> i128| {
            let mut extremes = Extremes::default();
            for n in 0..400 {
                let digits = of(n);
                let text = digits.to_string();
                extremes.add(Decimal { digits, places: 0 }, (&text, &text));
            }
            let far = extremes.far(400).into_iter();
            far.map(|far| (far.text, far.cells.values().sum())).collect::<Vec<(String, u64)>>()
        };
        let with = |mark: i128, each: i128, of: fn(i128) -> i128| {
            far(&move |n| if n % each == 0 { mark } else { of(n) })
        };
        assert_eq!(with(-777, 50, |n| 300 + n % 200), [("-777".to_owned(), 8)]);
        assert_eq!(with(511, 2, |n| n * 7 % 360), [("511".to_owned(), 200)]);
        assert_eq!(with(0, 20, |n| 980 + n % 60), [("0".to_owned(), 20)]);
        assert_eq!(with(0, 2, |n| 1200 + n % 60), [], "off for half of the time");
        assert_eq!(with(400, 200, |n| n % 200), [], "rare");
        assert_eq!(with(-127, 130, |n| 150 + n % 50), [("-127".to_owned(), 4)], "rare and alone");
        let both = |n: i128| match n % 130 {
            0 => -127,
            1 => 850,
            n => 150 + n % 50,
        };
        assert_eq!(far(&both), [("-127".to_owned(), 4), ("850".to_owned(), 4)], "at both ends");
        assert_eq!(with(85, 130, |n| n % 28 - 22), [("85".to_owned(), 4)], "a sensor that fails");
        let fridge = |n: i128| match n % 130 {
            0 => -127,
            1 => 85,
            n => n % 28 - 22,
        };
        assert_eq!(far(&fridge), [("-127".to_owned(), 4), ("85".to_owned(), 4)], "both");
        assert_eq!(with(86, 130, |n| n % 28 - 22), [], "no number of a failure");
        assert_eq!(with(130, 50, |n| n % 100), [], "near");
        assert_eq!(far(&|n| n % 2), [], "two values");
    }
}
