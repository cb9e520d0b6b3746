//! Columns whose numbers go round from row to row, such as 1 to 15 and then 1 again: they number
//! what each row is about.

use crate::number::Decimal;

/// Rounds that prove it, and the fewest numbers of one.
const MIN_ROUNDS: u64 = 3;
const MIN_LENGTH: i128 = 3;

/// How far the numbers of a column have gone round so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    /// The number with which all began, and the one before.
    first: Option<i128>,
    before: i128,
    /// The last number of the first round.
    last: Option<i128>,
    /// Times that the first number came again.
    again: u64,
    broken: bool,
}

impl Rounds {
    /// Adds the number of the next row.
    pub(crate) fn add(&mut self, value: Decimal) {
        if self.broken {
            return;
        }
        let number = value.digits;
        let Some(first) = self.first else {
            (self.first, self.before, self.broken) = (Some(number), number, value.places > 0);
            return;
        };
        let ends = self.last.is_none_or(|last| last == self.before);
        let goes_on = number == self.before + 1 && self.last.is_none_or(|last| number <= last);
        if number == first && ends && self.before > first {
            self.last = Some(self.before);
            self.again += 1;
        } else if !goes_on {
            self.broken = true;
        }
        self.broken |= value.places > 0;
        self.before = number;
    }

    /// The first and the last number of each round, if the column goes round throughout.
    pub(crate) fn ends(&self) -> Option<(i128, i128)> {
        let (first, last) = (self.first?, self.last?);
        let clear = !self.broken
            && (0..=1).contains(&first)
            && self.again >= MIN_ROUNDS
            && last - first + 1 >= MIN_LENGTH;
        clear.then_some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_go_round_are_found() {
        let ends = |numbers: &[i128]| {
            let mut rounds = Rounds::default();
            numbers.iter().for_each(|digits| rounds.add(Decimal { digits: *digits, places: 0 }));
            rounds.ends()
        };
        let round: Vec<i128> = (0..62).map(|n| 1 + n % 15).collect();
        assert_eq!(ends(&round), Some((1, 15)));
        assert_eq!(ends(&round[..40]), None, "too few rounds");
        assert_eq!(ends(&[&round[..], &[9]].concat()), None);
        assert_eq!(ends(&(0..99).map(|n| n / 10).collect::<Vec<_>>()), None);
        assert_eq!(ends(&(0..99).map(|n| n % 2).collect::<Vec<_>>()), None);
    }
}
