//! Arithmetic modulo a prime below 2^51, on lanes.
//!
//! A residue is *canonical* below p, *lazy* below 2p < 2^52, and *loose* below 2^52
//! and below 3p. Products by a known factor use Shoup's precomputed quotient. Products of
//! two variables are accumulated, high and low words apart, and reduced once.

use super::lanes::{LOW, Lanes};

/// A prime p < 2^51 and the constants for reduction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prime {
    pub(crate) p: u64,
    /// 2^52 and 2^104 modulo p.
    carry: Factor,
    carry2: Factor,
    /// 1, to reduce a word of 52 bits.
    one: Factor,
    /// Whether every 52-bit word is below 3p.
    full: bool,
}

/// A public factor w and ⌊w·2^52 / p⌋.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Factor {
    pub(crate) value: u64,
    pub(crate) quotient: u64,
}

/// A [`Factor`] in every lane, or one for each lane.
#[derive(Clone, Copy)]
pub(crate) struct Factors<V> {
    pub(crate) value: V,
    pub(crate) quotient: V,
}

/// A sum of products: `low + 2^52·high`, each below 2^64.
#[derive(Clone, Copy)]
pub(crate) struct Wide<V> {
    pub(crate) low: V,
    pub(crate) high: V,
}

/// The most products of canonical residues that an accumulator holds without overflow.
pub(crate) const MAX_PRODUCTS: usize = 1 << 11;

impl Prime {
    pub(crate) fn new(p: u64) -> Self {
        assert!(p % 2 == 1 && p > 2 && p < 1 << 51, "an odd prime below 2^51");
        let [carry, carry2, one] = [Factor::default(); 3];
        let mut prime = Self { p, carry, carry2, one, full: 3 * p >= 1 << 52 };
        prime.one = prime.factor(1);
        let carry = prime.reduce(1 << 52);
        prime.carry = prime.factor(carry);
        prime.carry2 = prime.factor(prime.mul(carry, carry));
        prime
    }

    /// A public number modulo p.
    #[expect(clippy::cast_possible_truncation, reason = "below p")]
    pub(crate) fn reduce(&self, x: u128) -> u64 {
        (x % u128::from(self.p)) as u64
    }

    /// A public product.
    pub(crate) fn mul(&self, a: u64, b: u64) -> u64 {
        self.reduce(u128::from(a) * u128::from(b))
    }

    /// A public power.
    pub(crate) fn pow(&self, base: u64, mut exponent: u64) -> u64 {
        let (mut power, mut square) = (1, base % self.p);
        while exponent > 0 {
            if exponent & 1 == 1 {
                power = self.mul(power, square);
            }
            square = self.mul(square, square);
            exponent >>= 1;
        }
        power
    }

    /// A public inverse.
    pub(crate) fn invert(&self, a: u64) -> u64 {
        self.pow(a, self.p - 2)
    }

    /// A public signed number modulo p.
    pub(crate) fn signed(&self, x: i128) -> u64 {
        self.reduce(x.rem_euclid(i128::from(self.p)).cast_unsigned())
    }

    /// Precomputes products by a public `value` < p.
    #[expect(clippy::cast_possible_truncation, reason = "below 2^52")]
    pub(crate) fn factor(&self, value: u64) -> Factor {
        Factor { value, quotient: ((u128::from(value) << 52) / u128::from(self.p)) as u64 }
    }

    /// The quotient of a secret factor below p, in constant time.
    pub(crate) fn secret_quotient(&self, value: u64) -> u64 {
        let step = |(quotient, rest): (u64, u64), _| {
            let (reduced, below) = (2 * rest).overflowing_sub(self.p);
            let below = u64::from(below);
            (2 * quotient + 1 - below, reduced.wrapping_add(self.p & 0u64.wrapping_sub(below)))
        };
        (0..52).fold((0, value), step).0
    }

    /// The prime's constants on these lanes.
    #[inline(always)]
    pub(crate) fn on<L: Lanes>(&self, lanes: L) -> Modular<L> {
        let spread = |factor: Factor| Factors {
            value: lanes.splat(factor.value),
            quotient: lanes.splat(factor.quotient),
        };
        Modular {
            lanes,
            p: lanes.splat(self.p),
            negative: lanes.splat((1 << 52) - self.p),
            twice: lanes.splat(2 * self.p),
            mask: lanes.splat(LOW),
            carry: spread(self.carry),
            carry2: spread(self.carry2),
            one: spread(self.one),
            full: self.full,
        }
    }
}

/// A prime's constants in all lanes.
#[derive(Clone, Copy)]
pub(crate) struct Modular<L: Lanes> {
    pub(crate) lanes: L,
    p: L::V,
    /// −p modulo 2^52.
    negative: L::V,
    twice: L::V,
    mask: L::V,
    carry: Factors<L::V>,
    carry2: Factors<L::V>,
    one: Factors<L::V>,
    full: bool,
}

impl<L: Lanes> Modular<L> {
    #[inline(always)]
    pub(crate) fn broadcast(&self, factor: Factor) -> Factors<L::V> {
        let l = self.lanes;
        Factors { value: l.splat(factor.value), quotient: l.splat(factor.quotient) }
    }

    /// x·w, lazy, for any x below 2^52.
    #[inline(always)]
    pub(crate) fn mul_factor(&self, x: L::V, w: Factors<L::V>) -> L::V {
        let l = self.lanes;
        let zero = l.splat(0);
        let quotient = l.high(zero, w.quotient, x);
        l.and(l.low(l.low(zero, w.value, x), quotient, self.negative), self.mask)
    }

    /// From below 4p to lazy.
    #[inline(always)]
    pub(crate) fn lazy(&self, x: L::V) -> L::V {
        self.lanes.min(x, self.lanes.sub(x, self.twice))
    }

    /// From lazy to canonical.
    #[inline(always)]
    pub(crate) fn canonical(&self, x: L::V) -> L::V {
        self.lanes.min(x, self.lanes.sub(x, self.p))
    }

    /// a + b, lazy from lazy.
    #[inline(always)]
    pub(crate) fn add(&self, a: L::V, b: L::V) -> L::V {
        self.lazy(self.lanes.add(a, b))
    }

    /// a − b, lazy from lazy.
    #[inline(always)]
    pub(crate) fn sub(&self, a: L::V, b: L::V) -> L::V {
        let l = self.lanes;
        self.lazy(l.sub(l.add(a, self.twice), b))
    }

    /// An empty accumulator.
    #[inline(always)]
    pub(crate) fn zero_sum(&self) -> Wide<L::V> {
        let zero = self.lanes.splat(0);
        Wide { low: zero, high: zero }
    }

    /// sum + a·b, for factors below 2^52; see [`MAX_PRODUCTS`].
    #[inline(always)]
    pub(crate) fn accumulate(&self, sum: Wide<L::V>, a: L::V, b: L::V) -> Wide<L::V> {
        let l = self.lanes;
        Wide { low: l.low(sum.low, a, b), high: l.high(sum.high, a, b) }
    }

    /// Reduces an accumulator, canonical.
    #[inline(always)]
    pub(crate) fn reduce_sum(&self, sum: Wide<L::V>) -> L::V {
        let l = self.lanes;
        // low = l0 + 2^52·l1; high + l1 = h0 + 2^52·h1: l0 + 2^52·h0 + 2^104·h1.
        let high = l.add(sum.high, l.shift_52(sum.low));
        let (low, top) = (l.and(sum.low, self.mask), l.shift_52(high));
        let middle = l.and(high, self.mask);
        let first = self.add(self.mul_factor(low, self.one), self.mul_factor(middle, self.carry));
        self.canonical(self.add(first, self.mul_factor(top, self.carry2)))
    }

    /// Reduces a sum below 2^104, such as three products of canonical residues and some
    /// words. Loose, but less work.
    #[inline(always)]
    pub(crate) fn reduce_few(&self, sum: Wide<L::V>) -> L::V {
        let l = self.lanes;
        let high = l.add(sum.high, l.shift_52(sum.low));
        self.fold(l.and(sum.low, self.mask), high)
    }

    /// a·b, canonical, for factors below 2^52.
    #[inline(always)]
    pub(crate) fn mul(&self, a: L::V, b: L::V) -> L::V {
        let l = self.lanes;
        let zero = l.splat(0);
        self.canonical_from_loose(self.fold(l.low(zero, a, b), l.high(zero, a, b)))
    }

    /// low + 2^52·high, both below 2^52, loose.
    #[inline(always)]
    fn fold(&self, low: L::V, high: L::V) -> L::V {
        // The branch depends on the prime alone.
        let low = if self.full { low } else { self.mul_factor(low, self.one) };
        self.lazy(self.lanes.add(low, self.mul_factor(high, self.carry)))
    }

    /// From loose to canonical.
    #[inline(always)]
    pub(crate) fn canonical_from_loose(&self, x: L::V) -> L::V {
        self.canonical(self.canonical(x))
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::{Backend, Kernel, WIDTH};
    use super::*;
    use proptest::prelude::*;

    pub(crate) const PRIMES: [u64; 4] =
        [2_251_799_813_554_177, 2_251_799_812_784_129, 4_398_047_051_777, 12_289];

    struct Check {
        prime: Prime,
        a: [u64; WIDTH],
        b: [u64; WIDTH],
    }

    impl Kernel for Check {
        type Output = [[u64; WIDTH]; 5];

        fn run<L: Lanes>(self, lanes: L) -> Self::Output {
            let m = self.prime.on(lanes);
            let (a, b) = (lanes.load(&self.a), lanes.load(&self.b));
            let factor = self.prime.factor(self.b[0] % self.prime.p);
            let mut sum = m.zero_sum();
            for _ in 0..MAX_PRODUCTS {
                sum = m.accumulate(sum, a, b);
            }
            let (x, y) = (m.canonical(a), m.canonical(b));
            let few = (0..3).fold(m.zero_sum(), |few, _| m.accumulate(few, x, y));
            let few = Wide { low: lanes.add(few.low, a), high: few.high };
            let all = [
                m.mul(a, b),
                m.reduce_sum(sum),
                m.canonical(m.mul_factor(a, m.broadcast(factor))),
                m.canonical(m.sub(m.canonical(a), m.canonical(b))),
                m.canonical_from_loose(m.reduce_few(few)),
            ];
            all.map(|v| {
                let mut words = [0; WIDTH];
                lanes.store(v, &mut words);
                words
            })
        }
    }

    proptest! {
        #[test]
        fn secret_and_public_quotients_agree(value: u64, which in 0..4_usize) {
            let prime = Prime::new(PRIMES[which]);
            for value in [0, 1, prime.p - 1, value % prime.p] {
                prop_assert_eq!(prime.secret_quotient(value), prime.factor(value).quotient);
            }
        }

        /// Up to the largest lazy residues, on both kinds of lanes.
        #[test]
        fn lanes_agree_with_integer_arithmetic(a: [u64; WIDTH], b: [u64; WIDTH], which in 0..4_usize, top: bool) {
            let prime = Prime::new(PRIMES[which]);
            let lazy = |x: u64| if top { 2 * prime.p - 1 - x % 3 } else { x % (2 * prime.p) };
            let (a, b) = (a.map(lazy), b.map(lazy));
            for backend in [Backend::Portable, Backend::detect()] {
                let [product, sum, times, minus, few] = backend.run(Check { prime, a, b });
                for i in 0..WIDTH {
                    let expected = prime.mul(a[i], b[i]);
                    prop_assert_eq!(product[i], expected);
                    prop_assert_eq!(sum[i], prime.mul(expected, MAX_PRODUCTS as u64));
                    prop_assert_eq!(times[i], prime.mul(a[i], b[0] % prime.p));
                    prop_assert_eq!(few[i], prime.reduce(3 * u128::from(expected) + u128::from(a[i])));
                    prop_assert_eq!(minus[i], (a[i] % prime.p + prime.p - b[i] % prime.p) % prime.p);
                }
            }
        }
    }
}
