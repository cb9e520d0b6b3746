//! The negacyclic number-theoretic transform: between a polynomial modulo X^n + 1 and its
//! values at the odd powers of a 2n-th root of one.
//!
//! Position 64g + 8v + l holds the value at ψ^(2·rev(64g + 8l + v) + 1), where rev reverses
//! log₂ n bits. This is the usual order of in-place transforms, with each tile of 64 words
//! transposed so that the last three rounds work on whole vectors. Pointwise work does not
//! depend on the order.

use super::lanes::{Backend, Kernel, Lanes, WIDTH};
use super::prime::{Factor, Factors, Modular, Prime};

/// The words of a tile, which are transposed together.
const TILE: usize = WIDTH * WIDTH;

/// Tables of one prime and one degree.
pub(crate) struct Ntt {
    pub(crate) prime: Prime,
    backend: Backend,
    forward: Rounds,
    inverse: Rounds,
    /// n⁻¹.
    shrink: Factor,
}

/// The factors of one direction.
struct Rounds {
    /// For distances of at least [`WIDTH`]: one for each block of each round.
    outer: Vec<Factor>,
    /// For distances 4, 2, 1 within each tile: values, then quotients.
    inner: Vec<[[[u64; WIDTH]; 2]; 7]>,
}

impl Rounds {
    /// The powers of `root` in bit-reversed order. Block i of the round with m blocks takes
    /// number m + i.
    fn new(prime: &Prime, n: usize, root: u64) -> Self {
        let bits = n.trailing_zeros();
        let mut powers = vec![Factor::default(); n];
        let mut power = 1;
        for i in 0..n {
            powers[i.reverse_bits() >> (usize::BITS - bits)] = prime.factor(power);
            power = prime.mul(power, root);
        }
        let lanes = |first: usize, step: usize| {
            let of = |f: fn(&Factor) -> u64| std::array::from_fn(|v| f(&powers[first + v * step]));
            [of(|factor| factor.value), of(|factor| factor.quotient)]
        };
        let tile = |g: usize| {
            let of =
                |round: usize, b: usize| lanes(round * n / WIDTH + round * WIDTH * g + b, round);
            [of(1, 0), of(2, 0), of(2, 1), of(4, 0), of(4, 1), of(4, 2), of(4, 3)]
        };
        let inner = (0..n / TILE).map(tile).collect();
        powers.truncate(n / WIDTH);
        Self { outer: powers, inner }
    }
}

impl Ntt {
    /// Tables for degree n, a power of two of at least 64 with p ≡ 1 mod 2n. ψ is
    /// g^((p − 1)/2n) for the smallest g ≥ 2 that yields an element of order 2n.
    pub(crate) fn new(p: u64, n: usize, backend: Backend) -> Self {
        assert!(n.is_power_of_two() && n >= TILE && (p - 1).is_multiple_of(2 * n as u64));
        let prime = Prime::new(p);
        let order = 2 * n as u64;
        let candidates = (2..p).map(|g| prime.pow(g, (p - 1) / order));
        let mut roots = candidates.filter(|root| prime.pow(*root, order / 2) == p - 1);
        #[expect(clippy::expect_used, reason = "half of all candidates are")]
        let root = roots.next().expect("the group is cyclic");
        Self {
            forward: Rounds::new(&prime, n, root),
            inverse: Rounds::new(&prime, n, prime.invert(root)),
            shrink: prime.factor(prime.invert(n as u64)),
            prime,
            backend,
        }
    }

    /// Coefficients, lazy or canonical, to values, canonical.
    pub(crate) fn forward(&self, words: &mut [u64]) {
        self.backend.run(Forward { ntt: self, words });
    }

    /// Values, lazy or canonical, to coefficients, canonical.
    pub(crate) fn inverse(&self, words: &mut [u64]) {
        self.backend.run(Inverse { ntt: self, words });
    }
}

/// The butterflies of one tile, by round: distance d, then first row (paired with row + d)
/// and index of the factor.
const PAIRS: [(usize, [(usize, usize); 4]); 3] = [
    (4, [(0, 0), (1, 0), (2, 0), (3, 0)]),
    (2, [(0, 1), (1, 1), (4, 2), (5, 2)]),
    (1, [(0, 3), (2, 4), (4, 5), (6, 6)]),
];

struct Forward<'a> {
    ntt: &'a Ntt,
    words: &'a mut [u64],
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let m = self.ntt.prime.on(lanes);
        let words = self.words.as_chunks_mut::<WIDTH>().0;
        let mut blocks = 1;
        while words.len() / blocks >= 4 {
            // Two rounds at once halve the reads and writes.
            let factors = &self.ntt.forward.outer;
            for (i, block) in words.chunks_exact_mut(words.len() / blocks).enumerate() {
                let spread = [blocks + i, 2 * (blocks + i), 2 * (blocks + i) + 1]
                    .map(|at| m.broadcast(factors[at]));
                for_quarters(m, block, |m, x| two_rounds(m, x, spread));
            }
            blocks *= 4;
        }
        if words.len() / blocks >= 2 {
            for (i, block) in words.chunks_exact_mut(words.len() / blocks).enumerate() {
                let factor = m.broadcast(self.ntt.forward.outer[blocks + i]);
                for_halves(m, block, |m, a, b| butterfly(m, a, b, factor));
            }
        }
        for (tile, factors) in
            words.as_chunks_mut::<WIDTH>().0.iter_mut().zip(&self.ntt.forward.inner)
        {
            let mut rows = lanes.transpose(std::array::from_fn(|i| lanes.load(&tile[i])));
            for (distance, pairs) in PAIRS {
                for (at, factor) in pairs {
                    let factor = load_factors(lanes, &factors[factor]);
                    (rows[at], rows[at + distance]) =
                        butterfly(m, rows[at], rows[at + distance], factor);
                }
            }
            for (row, out) in rows.into_iter().zip(tile) {
                lanes.store(m.canonical(row), out);
            }
        }
    }
}

struct Inverse<'a> {
    ntt: &'a Ntt,
    words: &'a mut [u64],
}

impl Kernel for Inverse<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let m = self.ntt.prime.on(lanes);
        let words = self.words.as_chunks_mut::<WIDTH>().0;
        for (tile, factors) in
            words.as_chunks_mut::<WIDTH>().0.iter_mut().zip(&self.ntt.inverse.inner)
        {
            let mut rows: [L::V; WIDTH] = std::array::from_fn(|i| lanes.load(&tile[i]));
            for (distance, pairs) in PAIRS.into_iter().rev() {
                for (at, factor) in pairs {
                    let factor = load_factors(lanes, &factors[factor]);
                    (rows[at], rows[at + distance]) =
                        inverse_butterfly(m, rows[at], rows[at + distance], factor);
                }
            }
            for (row, out) in lanes.transpose(rows).into_iter().zip(tile) {
                lanes.store(row, out);
            }
        }
        let factors = &self.ntt.inverse.outer;
        let mut blocks = words.len() / 2;
        if !words.len().trailing_zeros().is_multiple_of(2) {
            for (i, block) in words.chunks_exact_mut(2).enumerate() {
                let factor = m.broadcast(factors[blocks + i]);
                for_halves(m, block, |m, a, b| inverse_butterfly(m, a, b, factor));
            }
            blocks /= 2;
        }
        while blocks > 0 {
            let outer = blocks / 2;
            for (i, block) in words.chunks_exact_mut(words.len() / outer).enumerate() {
                let spread = [outer + i, 2 * (outer + i), 2 * (outer + i) + 1]
                    .map(|at| m.broadcast(factors[at]));
                for_quarters(m, block, |m, x| two_inverse_rounds(m, x, spread));
            }
            blocks = outer / 2;
        }
        let shrink = m.broadcast(self.ntt.shrink);
        for word in words {
            let x = m.canonical(m.mul_factor(lanes.load(word), shrink));
            lanes.store(x, word);
        }
    }
}

/// (a + b·w, a − b·w), lazy.
#[inline(always)]
fn butterfly<L: Lanes>(m: Modular<L>, a: L::V, b: L::V, w: Factors<L::V>) -> (L::V, L::V) {
    let b = m.mul_factor(b, w);
    (m.add(a, b), m.sub(a, b))
}

/// (a + b, (a − b)·w), lazy.
#[inline(always)]
fn inverse_butterfly<L: Lanes>(m: Modular<L>, a: L::V, b: L::V, w: Factors<L::V>) -> (L::V, L::V) {
    (m.add(a, b), m.mul_factor(m.sub(a, b), w))
}

/// Two rounds on one element of each quarter, with the factors of the outer round and of both
/// halves of the inner.
#[inline(always)]
fn two_rounds<L: Lanes>(
    m: Modular<L>,
    [a, b, c, d]: [L::V; 4],
    [outer, first, second]: [Factors<L::V>; 3],
) -> [L::V; 4] {
    let ((a, c), (b, d)) = (butterfly(m, a, c, outer), butterfly(m, b, d, outer));
    let ((a, b), (c, d)) = (butterfly(m, a, b, first), butterfly(m, c, d, second));
    [a, b, c, d]
}

/// The inverse of [`two_rounds`], but for the scale.
#[inline(always)]
fn two_inverse_rounds<L: Lanes>(
    m: Modular<L>,
    [a, b, c, d]: [L::V; 4],
    [outer, first, second]: [Factors<L::V>; 3],
) -> [L::V; 4] {
    let (a, b) = inverse_butterfly(m, a, b, first);
    let (c, d) = inverse_butterfly(m, c, d, second);
    let (a, c) = inverse_butterfly(m, a, c, outer);
    let (b, d) = inverse_butterfly(m, b, d, outer);
    [a, b, c, d]
}

#[inline(always)]
fn load_factors<L: Lanes>(lanes: L, [value, quotient]: &[[u64; WIDTH]; 2]) -> Factors<L::V> {
    Factors { value: lanes.load(value), quotient: lanes.load(quotient) }
}

/// Applies `f` to the elements at each position of both halves.
#[inline(always)]
fn for_halves<L: Lanes>(
    m: Modular<L>,
    block: &mut [[u64; WIDTH]],
    f: impl Fn(Modular<L>, L::V, L::V) -> (L::V, L::V),
) {
    let (low, high) = block.split_at_mut(block.len() / 2);
    for (low, high) in low.iter_mut().zip(high) {
        let (a, b) = f(m, m.lanes.load(low), m.lanes.load(high));
        m.lanes.store(a, low);
        m.lanes.store(b, high);
    }
}

/// Applies `f` to the elements at each position of all quarters.
#[inline(always)]
fn for_quarters<L: Lanes>(
    m: Modular<L>,
    block: &mut [[u64; WIDTH]],
    f: impl Fn(Modular<L>, [L::V; 4]) -> [L::V; 4],
) {
    let (low, high) = block.split_at_mut(block.len() / 2);
    let (a, b) = low.split_at_mut(low.len() / 2);
    let (c, d) = high.split_at_mut(high.len() / 2);
    for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
        let x = f(m, [&*a, &*b, &*c, &*d].map(|words| m.lanes.load(words)));
        for (x, out) in x.into_iter().zip([a, b, c, d]) {
            m.lanes.store(x, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: the value at ψ^(2·rev(i) + 1), in the documented order.
    fn by_definition(ntt: &Ntt, root: u64, coefficients: &[u64]) -> Vec<u64> {
        let (n, prime) = (coefficients.len(), &ntt.prime);
        let bits = n.trailing_zeros();
        let value = |at: usize| {
            let (g, v, l) = (at / 64, at / 8 % 8, at % 8);
            let i = (64 * g + 8 * l + v).reverse_bits() >> (usize::BITS - bits);
            let x = prime.pow(root, 2 * i as u64 + 1);
            coefficients.iter().rev().fold(0, |sum, c| (prime.mul(sum, x) + c) % prime.p)
        };
        (0..n).map(value).collect()
    }

    fn random(n: usize, p: u64, seed: u64) -> Vec<u64> {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 13) % p
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn the_transform_is_the_values_at_odd_powers_of_the_root() {
        for (p, n) in [(12_289, 512), (2_251_799_813_554_177, 64), (4_398_047_051_777, 128)] {
            for backend in [Backend::Portable, Backend::detect()] {
                let ntt = Ntt::new(p, n, backend);
                let mut powers = (2..).map(|g| ntt.prime.pow(g, (p - 1) / (2 * n as u64)));
                let root = powers.find(|root| ntt.prime.pow(*root, n as u64) == p - 1).unwrap();
                let coefficients = random(n, p, 7);
                let mut words = coefficients.clone();
                ntt.forward(&mut words);
                assert_eq!(words, by_definition(&ntt, root, &coefficients), "{p} {n}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// On both kinds of lanes, at every size in use and with extreme residues.
        #[test]
        fn the_inverse_undoes_the_transform(seed: u64, size in 6..15_u32, top: bool) {
            let (n, p) = (1 << size, 2_251_799_813_554_177);
            let coefficients = if top { vec![p - 1; n] } else { random(n, p, seed) };
            let [mut a, mut b] = [coefficients.clone(), coefficients.clone()];
            let (one, other) = (Ntt::new(p, n, Backend::Portable), Ntt::new(p, n, Backend::detect()));
            one.forward(&mut a);
            other.forward(&mut b);
            prop_assert_eq!(&a, &b);
            prop_assert!(a.iter().all(|x| *x < p));
            one.inverse(&mut a);
            other.inverse(&mut b);
            prop_assert_eq!(&a, &coefficients);
            prop_assert_eq!(&b, &coefficients);
        }
    }
}
