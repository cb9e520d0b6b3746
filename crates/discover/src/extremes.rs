//! The least and the greatest number of a column, how often each occurs, and the next to them: a
//! number far from all others that repeats may stand for a missing one.

use crate::number::Decimal;

/// One end of a column's numbers.
#[derive(Clone, Debug, Default)]
struct End {
    value: Option<Decimal>,
    text: String,
    count: u64,
    next: Option<Decimal>,
}

/// Both ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extremes {
    least: End,
    most: End,
}

impl End {
    fn add(&mut self, value: Decimal, plain: &str, is_beyond: fn(&Decimal, &Decimal) -> bool) {
        match self.value {
            Some(own) if own == value => self.count += 1,
            Some(own) if !is_beyond(&value, &own) => {
                if self.next.is_none_or(|next| is_beyond(&value, &next)) {
                    self.next = Some(value);
                }
            }
            _ => {
                self.next = self.value.replace(value);
                self.count = 1;
                plain.clone_into(&mut self.text);
            }
        }
    }
}

impl Extremes {
    /// Adds a number with its text.
    pub(crate) fn add(&mut self, value: Decimal, plain: &str) {
        self.least.add(value, plain, |one, other| one < other);
        self.most.add(value, plain, |one, other| one > other);
    }

    /// Of so many numbers, those that repeat at an end and lie far from all others: the text and
    /// the count of each.
    pub(crate) fn far(&self, numbers: u64) -> Vec<(String, u64)> {
        const MIN: u64 = 5;
        let is_far = |end: &&End, other: &End| -> Option<bool> {
            let (value, next) = (end.value?, end.next?);
            let distance = |a: Decimal, b: Decimal| if a > b { a.minus(b) } else { b.minus(a) };
            let (gap, span) = (distance(value, next), distance(next, other.value?));
            // Zero is usual where something is off for long.
            let usual = value == Decimal::ZERO && end.count * 10 > numbers;
            let often = end.count >= MIN && end.count * 100 >= numbers;
            let frequent = end.count * 20 >= numbers && gap.times(3) > span;
            Some(!usual && span > Decimal::ZERO && often && (gap > span || frequent))
        };
        let ends = [(&self.least, &self.most), (&self.most, &self.least)];
        let far = ends.iter().filter(|(end, other)| is_far(end, other) == Some(true));
        far.map(|(end, _)| (end.text.clone(), end.count)).collect()
    }
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
                extremes.add(Decimal { digits, places: 0 }, &digits.to_string());
            }
            extremes.far(400)
        };
        let with = |mark: i128, each: i128, of: fn(i128) -> i128| {
            far(&move |n| if n % each == 0 { mark } else { of(n) })
        };
        assert_eq!(with(-777, 50, |n| 300 + n % 200), [("-777".to_owned(), 8)]);
        assert_eq!(with(511, 2, |n| n * 7 % 360), [("511".to_owned(), 200)]);
        assert_eq!(with(0, 20, |n| 980 + n % 60), [("0".to_owned(), 20)]);
        assert_eq!(with(0, 2, |n| 1200 + n % 60), [], "off for half of the time");
        assert_eq!(with(400, 200, |n| n % 200), [], "rare");
        assert_eq!(with(130, 50, |n| n % 100), [], "near");
        assert_eq!(far(&|n| n % 2), [], "two values");
    }
}
