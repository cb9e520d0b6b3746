//! Bounds of attributes: generous and round, from the data and the unit. A choice, not a fact.

use crate::number::{Decimal, scaled_text};

/// Most decimal places that a schema takes.
const MAX_SCALE: u8 = 18;
/// The greatest scaled bound.
const MAX_BOUND: i128 = 9_000_000_000_000_000_000;

/// What a schema lets an attribute take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Decimal places.
    pub scale: u8,
    /// The least value, in units of `10^-scale`.
    pub min: i128,
    /// The greatest value.
    pub max: i128,
}

impl Bounds {
    /// Bounds for values in a range, with so many decimal places in their texts.
    #[must_use]
    pub fn of(range: Option<(Decimal, Decimal)>, places: u8, unit: Option<&str>) -> Bounds {
        let (lo, hi) = range.unwrap_or((Decimal::ZERO, Decimal::ZERO));
        let hundred = Decimal { digits: 100, places: 0 };
        let (min, max) = if unit == Some("%") && lo >= Decimal::ZERO && hi <= hundred {
            (Decimal::ZERO, hundred)
        } else {
            let max = if hi > Decimal::ZERO { round_up(hi.times(2)) } else { Decimal::ZERO };
            let min = if lo < Decimal::ZERO {
                negative(round_up(negative(lo.times(2))))
            } else {
                Decimal::ZERO
            };
            let nothing = min == max;
            (min, if nothing { Decimal { digits: 1, places: 0 } } else { max })
        };
        let mut scale = places.min(MAX_SCALE);
        while scale > 0 && (scaled(max, scale) > MAX_BOUND || -scaled(min, scale) > MAX_BOUND) {
            scale -= 1;
        }
        let bound = |value: i128| value.clamp(-MAX_BOUND, MAX_BOUND);
        Bounds { scale, min: bound(scaled(min, scale)), max: bound(scaled(max, scale)) }
    }

    /// The bounds as texts.
    #[must_use]
    pub fn texts(&self) -> (String, String) {
        (self.text(self.min), self.text(self.max))
    }

    /// A number in units of `10^-scale` as text.
    fn text(&self, value: i128) -> String {
        let text = scaled_text(&value.to_string(), usize::from(self.scale));
        let short = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        };
        short.to_owned()
    }

    /// A histogram over this range of numbers, which lies in the bounds, in bins of a round width, as
    /// schemas write it.
    pub(crate) fn histogram(&self, range: Option<(Decimal, Decimal)>) -> String {
        /// Bins at most: each is one more number in a device's messages.
        const MAX_BINS: i128 = 40;
        let unit = |number: Decimal| scaled(number, self.scale);
        let (lo, hi) = range.map_or((self.min, self.max), |(lo, hi)| (unit(lo), unit(hi)));
        // 1, 2, 5, 10, 20, 50 and so on.
        let widths = (0..=18).flat_map(|power| [1, 2, 5].map(|step| step * 10i128.pow(power)));
        let fits = |width: &i128| (hi - lo.div_euclid(*width) * width) / width < MAX_BINS;
        let width = widths.clone().find(fits).or(widths.last()).unwrap_or(1);
        // Round ends, or the bins would tell the least and the greatest number of a person.
        let round = 5 * width;
        let lo = (lo.div_euclid(round) * round).max(self.min);
        let hi = (hi.div_euclid(round) * round + round).min(self.max).max(lo + width);
        let bins = (hi - lo) / width + i128::from((hi - lo) % width > 0);
        let (lo, width) = (self.text(lo), self.text(width));
        format!("histogram: {{ lo: {lo}, width: {width}, bins: {bins} }}")
    }

    /// Whether the squares of so many values surely fit where sums of squares are kept: in one word
    /// up to 2^63, or in two, of which each adds up halves of 32 bits.
    #[must_use]
    pub fn squares_fit(&self, values: u64) -> bool {
        // Noise adds to it.
        const WORD: i128 = 1 << 62;
        let (reach, values) = (self.max.max(-self.min), i128::from(values));
        let Some(square) = reach.checked_mul(reach) else { return false };
        let fits = |each: i128| each.checked_mul(values).is_some_and(|sum| sum < WORD);
        fits(square) || (fits(1 << 32) && fits((square >> 32) + 1))
    }
}

/// Numbers of a column that lie far from all others.
#[derive(Clone, Debug, Default)]
pub struct Outliers {
    /// How many cells there are.
    pub count: u64,
    /// Their texts, with their count.
    pub texts: Vec<(String, u64)>,
    /// The least and the greatest of the others.
    pub range: Option<(Decimal, Decimal)>,
}

/// How the numbers of a column are spread: a regular sample, and the ends.
#[derive(Clone, Debug)]
pub struct Spread {
    seen: u64,
    stride: u64,
    sample: Vec<Decimal>,
    high: Vec<(Decimal, String, u64)>,
    low: Vec<(Decimal, String, u64)>,
}

impl Default for Spread {
    fn default() -> Self {
        Spread { seen: 0, stride: 1, sample: Vec::new(), high: Vec::new(), low: Vec::new() }
    }
}

impl Spread {
    /// Numbers of a sample, at most.
    const SAMPLE: usize = 4096;
    /// Different numbers that are kept at each end.
    const ENDS: usize = 16;
    /// Numbers that a column has at least before one of them may be far from the others.
    const MIN_NUMBERS: u64 = 20;
    /// How many times farther from the middle an outlier is than all other numbers.
    const FAR: i128 = 20;
    /// One number in so many may be an outlier.
    const RARE: u64 = 1000;

    /// Adds a number, with its text.
    pub fn add(&mut self, value: Decimal, text: &str) {
        if self.seen.is_multiple_of(self.stride) {
            self.sample.push(value);
            if self.sample.len() >= Self::SAMPLE {
                let mut at = 0;
                self.sample.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.stride *= 2;
            }
        }
        self.seen += 1;
        keep(&mut self.high, value, text, |a, b| a > b);
        keep(&mut self.low, value, text, |a, b| a < b);
    }

    /// The numbers that lie far from all others: rare, and many times farther from the middle
    /// than the next. None if most numbers are zero.
    #[must_use]
    pub fn outliers(&self) -> Outliers {
        let mut sample = self.sample.clone();
        sample.sort();
        let at = |part: usize| sample.get(part * sample.len().saturating_sub(1) / 100).copied();
        let (Some(q1), Some(middle), Some(q99)) = (at(1), at(50), at(99)) else {
            return Outliers::default();
        };
        let size = if middle < Decimal::ZERO { negative(middle) } else { middle };
        let usual = q99.minus(q1).max(size);
        if self.seen < Self::MIN_NUMBERS || usual == Decimal::ZERO {
            return Outliers::default();
        }
        let most = (self.seen / Self::RARE).max(1);
        let above = beyond(&self.high, |v| v.minus(middle), usual, most);
        let below = beyond(&self.low, |v| middle.minus(v), usual, most);
        let ends = self.low.get(below).zip(self.high.get(above));
        let range = ends.map(|(low, high)| (low.0, high.0));
        let far = self.high.iter().take(above).chain(self.low.iter().take(below));
        let texts: Vec<(String, u64)> =
            far.map(|(_, text, count)| (text.clone(), *count)).collect();
        Outliers { count: texts.iter().map(|(_, count)| count).sum(), texts, range }
    }

    /// One or two numbers that lie farther from the others than twice as far as these from each
    /// other, with the least and the greatest of the others.
    #[must_use]
    pub fn alone(&self) -> Option<(Vec<String>, (Decimal, Decimal))> {
        const FEW: u64 = 2;
        if self.seen < Self::MIN_NUMBERS {
            return None;
        }
        let of = |far: &[(Decimal, String, u64)], other: &[(Decimal, String, u64)]| {
            let farthest = other.first()?.0;
            let cells = |at: usize| far[..at].iter().map(|(_, _, count)| count).sum::<u64>();
            (1..far.len()).take_while(|at| cells(*at) <= FEW).find_map(|at| {
                let (last, next) = (far[at - 1].0, far[at].0);
                let (span, gap) = (distance(next, farthest), distance(last, next));
                let texts = || far[..at].iter().map(|(_, text, _)| text.clone()).collect();
                let range = (next.min(farthest), next.max(farthest));
                (span > Decimal::ZERO && gap > span.times(2)).then(|| (texts(), range))
            })
        };
        of(&self.high, &self.low).or_else(|| of(&self.low, &self.high))
    }
}

fn distance(one: Decimal, other: Decimal) -> Decimal {
    if one > other { one.minus(other) } else { other.minus(one) }
}

/// Keeps a number if it is among the ends.
fn keep(
    ends: &mut Vec<(Decimal, String, u64)>,
    value: Decimal,
    text: &str,
    beyond: impl Fn(Decimal, Decimal) -> bool,
) {
    if ends.len() == Spread::ENDS && ends.last().is_some_and(|last| beyond(last.0, value)) {
        return;
    }
    let at = ends.iter().position(|end| !beyond(end.0, value)).unwrap_or(ends.len());
    match ends.iter_mut().find(|end| end.1 == text) {
        Some(same) => same.2 += 1,
        None => {
            ends.insert(at, (value, text.to_owned(), 1));
            ends.truncate(Spread::ENDS);
        }
    }
}

/// How many of the numbers at an end lie far beyond the next.
fn beyond(
    ends: &[(Decimal, String, u64)],
    distance: impl Fn(Decimal) -> Decimal,
    usual: Decimal,
    most: u64,
) -> usize {
    let (mut cells, mut found) = (0, 0);
    for (at, pair) in ends.windows(2).enumerate() {
        cells += pair[0].2;
        let next = distance(pair[1].0).max(usual);
        if cells <= most && distance(pair[0].0) > next.times(Spread::FAR) {
            found = at + 1;
        }
    }
    found
}

fn negative(value: Decimal) -> Decimal {
    Decimal { digits: -value.digits, places: value.places }
}

/// The next of 1, 2, 5, 10, 20, 50 and so on, in units of the last place.
fn round_up(value: Decimal) -> Decimal {
    let mut power: i128 = 1;
    loop {
        for step in [1, 2, 5] {
            let digits = power.saturating_mul(step);
            if digits >= value.digits || digits == i128::MAX {
                return Decimal { digits, places: value.places };
            }
        }
        power = power.saturating_mul(10);
    }
}

/// A round value in units of `10^-scale`, away from zero.
fn scaled(value: Decimal, scale: u8) -> i128 {
    if scale >= value.places {
        let power = 10i128.saturating_pow(u32::from(scale - value.places));
        return value.digits.saturating_mul(power);
    }
    let divisor = 10i128.saturating_pow(u32::from(value.places - scale));
    let up = if value.digits % divisor == 0 { 0 } else { value.digits.signum() };
    value.digits / divisor + up
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lo: &str, hi: &str, unit: Option<&str>) -> (u8, String, String) {
        let (lo, hi) = (Decimal::read(lo).unwrap(), Decimal::read(hi).unwrap());
        let bounds = Bounds::of(Some((lo, hi)), lo.places.max(hi.places), unit);
        let (min, max) = bounds.texts();
        (bounds.scale, min, max)
    }

    fn outliers(numbers: impl Iterator<Item = i128>) -> Outliers {
        let mut spread = Spread::default();
        for digits in numbers {
            spread.add(Decimal { digits, places: 0 }, &digits.to_string());
        }
        spread.outliers()
    }

    #[test]
    fn a_histogram_covers_the_numbers_with_few_round_bins() {
        let number = |digits| Decimal { digits, places: 1 };
        for (lo, hi, scale, says) in [
            (0, 2000, 0, "{ lo: 0, width: 10, bins: 25 }"),
            (-53, 57, 1, "{ lo: -7.5, width: 0.5, bins: 30 }"),
            (600, 970, 0, "{ lo: 60, width: 1, bins: 40 }"),
            (30, 30, 0, "{ lo: 0, width: 1, bins: 5 }"),
            (251, 10_999, 1, "{ lo: 0, width: 50, bins: 25 }"),
        ] {
            let bounds = Bounds { scale, min: -20_000, max: 20_000 };
            let range = Some((number(lo), number(hi)));
            assert_eq!(bounds.histogram(range), format!("histogram: {says}"));
        }
    }

    #[test]
    fn what_lies_far_from_all_others_is_found() {
        let usual = || (0..100).map(|n| 200 + n % 10);
        let one = outliers(usual().chain([1_000_000]));
        assert_eq!((one.count, one.texts), (1, vec![("1000000".to_owned(), 1)]));
        assert_eq!(one.range.map(|(lo, hi)| (lo.digits, hi.digits)), Some((200, 209)));
        let below = outliers((0..5000).map(|n| 20 + n % 7).chain([-9000, -9001]));
        assert_eq!(below.count, 2);
        for none in [
            outliers(usual().chain([1000])),
            outliers(usual().chain([1_000_000, 1_000_001])),
            outliers((0..100).map(|n| i128::from(n == 7) * 50)),
            outliers((0..20).map(|n| 1 << n)),
            outliers([1, 2, 1_000_000].into_iter()),
        ] {
            assert_eq!(none.count, 0, "{:?}", none.texts);
        }
    }

    #[test]
    fn one_or_two_numbers_far_from_all_others_are_alone() {
        let alone = |numbers: &mut dyn Iterator<Item = i128>| {
            let mut spread = Spread::default();
            for digits in numbers {
                spread.add(Decimal { digits, places: 0 }, &digits.to_string());
            }
            spread.alone().map(|(texts, (lo, hi))| (texts.join(" "), lo.digits, hi.digits))
        };
        let usual = || (0..100).map(|n| 60 + n % 41);
        let said = |texts: &str| Some((texts.to_owned(), 60, 100));
        assert_eq!(alone(&mut usual().chain([1_000_000])), said("1000000"));
        assert_eq!(alone(&mut usual().chain([1_000_000, 999_000])), said("1000000 999000"));
        assert_eq!(alone(&mut usual().chain([-700])), said("-700"));
        for others in [vec![150], vec![1000, 1001, 1002], vec![]] {
            assert_eq!(alone(&mut usual().chain(others)), None);
        }
        assert_eq!(alone(&mut (0..20).map(|n| 1 << n)), None);
    }

    #[test]
    fn squares_fit_in_one_word_or_in_two() {
        let of = |max| Bounds { scale: 0, min: 0, max };
        assert!(of(10_000).squares_fit(10_000_000_000) && of(100_000).squares_fit(100_000_000));
        // Too great for one word, and too many for two.
        assert!(!of(100_000).squares_fit(10_000_000_000));
        assert!(!of(i128::MAX).squares_fit(1) && !of(1 << 40).squares_fit(1 << 29));
    }

    #[test]
    fn bounds_are_generous_and_round() {
        let text = |scale, min: &str, max: &str| (scale, min.to_owned(), max.to_owned());
        assert_eq!(of("0", "10554", None), text(0, "0", "50000"));
        assert_eq!(of("-75", "331", None), text(0, "-200", "1000"));
        assert_eq!(of("12.5", "99.9", Some("%")), text(1, "0", "100"));
        assert_eq!(of("0.0057637691497802734", "243.465813", None), text(16, "0", "500"));
        assert_eq!(of("-7.0448303", "-5.52", None), text(7, "-20", "0"));
        assert_eq!(of("0", "0", None), text(0, "0", "1"));
        assert_eq!(of("0", "9000000000000000000", None).2, "9000000000000000000");
    }
}
