//! A proof that a shared vector m has at most one nonzero entry, by a party that knows m to all
//! holders of its shares. It proves the gate ⟨r,m⟩·⟨s,m⟩ = ⟨rs,m⟩·⟨1,m⟩ for random r and s, with a
//! fully linear proof (Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai: *Zero-Knowledge Proofs on
//! Secret-Shared Data via Fully Linear PCPs*, Crypto 2019).
//!
//! If two entries are nonzero, the gate is a nonzero polynomial in r and s. f takes the values
//! ⟨r,m⟩ at 1 and ⟨rs,m⟩ at 2, g takes ⟨s,m⟩ at 1 and ⟨1,m⟩ at 2, and both take random values at 0.
//! h = f·g has five coefficients, and the gate holds if h(1) = h(2). Servers open only f, g and h
//! at one more point τ, and h(1) − h(2).

use super::field::Field;
use rand_core::CryptoRng;

/// ⟨r,m⟩, ⟨s,m⟩, ⟨rs,m⟩ and ⟨1,m⟩ of a vector, or of a share of it.
pub struct Sums<F> {
    /// ⟨r,m⟩.
    pub r: F,
    /// ⟨s,m⟩.
    pub s: F,
    /// ⟨rs,m⟩.
    pub both: F,
    /// ⟨1,m⟩.
    pub plain: F,
}

/// The writer's addition: f(0), g(0) and the coefficients of h, or shares of them. Secret.
pub struct Proof<F> {
    f: F,
    g: F,
    h: [F; 5],
}

/// One server's opening: its shares of f(τ), g(τ), h(τ) and h(1) − h(2), or their sums. Public.
pub struct Opening<F> {
    /// The share of f(τ).
    pub f: F,
    /// The share of g(τ).
    pub g: F,
    /// The share of h(τ).
    pub h: F,
    /// The share of h(1) − h(2).
    pub gate: F,
}

/// The point τ where proofs are opened, with precomputed interpolation. Public.
pub struct EvaluationPoint<F> {
    tau: F,
    interpolation: Interpolation<F>,
}

/// Precomputed inverses that turn values at nodes 0, 1 and 2 into coefficients.
struct Interpolation<F> {
    two: F,
    /// 1/2, 1/(1 − 2) and 1/(2·(2 − 1)), for the field's nodes 1 and 2.
    inverses: [F; 3],
}

impl<F: Field> Interpolation<F> {
    fn new() -> Self {
        let (one, two) = (F::node(1), F::node(2));
        let difference = one.minus(&two);
        let product = two.times(&two.minus(&one));
        let inverses = [two.inverse(), difference.inverse(), product.inverse()];
        Self { two, inverses }
    }

    /// The coefficients of the polynomial of degree two through three values.
    fn through(&self, values: [&F; 3]) -> [F; 3] {
        let [a, b, c] = [0, 1, 2].map(|i: usize| values[i].times(&self.inverses[i]));
        let sum = F::node(1).plus(&self.two);
        let linear = F::node(0).minus(&sum.times(&a)).minus(&self.two.times(&b)).minus(&c);
        [values[0].duplicate(), linear, a.plus(&b).plus(&c)]
    }
}

fn evaluate<F: Field>(coefficients: &[F], point: &F) -> F {
    let highest_first = coefficients.iter().rev();
    highest_first.fold(F::node(0), |value, c| value.times(point).plus(c))
}

impl<F: Field> EvaluationPoint<F> {
    /// τ from a hash, never one of the three interpolation nodes.
    #[must_use]
    pub fn from_hash(label: &str, parts: &[&[u8]]) -> Self {
        let mut tries = 0_u8;
        loop {
            let more: Vec<&[u8]> =
                parts.iter().copied().chain([std::slice::from_ref(&tries)]).collect();
            let tau = F::from_hash(label, &more);
            if (0..3).all(|which| !tau.equals(&F::node(which))) {
                return Self { tau, interpolation: Interpolation::new() };
            }
            tries = tries.wrapping_add(1);
        }
    }

    /// A server's opening, from its shares.
    #[must_use]
    pub fn open(&self, sums: &Sums<F>, proof: &Proof<F>) -> Opening<F> {
        let f = self.interpolation.through([&proof.f, &sums.r, &sums.both]);
        let g = self.interpolation.through([&proof.g, &sums.s, &sums.plain]);
        let gate =
            evaluate(&proof.h, &F::node(1)).minus(&evaluate(&proof.h, &self.interpolation.two));
        Opening {
            f: evaluate(&f, &self.tau),
            g: evaluate(&g, &self.tau),
            h: evaluate(&proof.h, &self.tau),
            gate,
        }
    }
}

impl<F: Field> Proof<F> {
    /// The count of numbers in a proof.
    pub const NUMBERS: usize = 7;

    /// The proof for the sums of a vector.
    #[must_use]
    pub fn new(sums: &Sums<F>, rng: &mut impl CryptoRng) -> Self {
        Self::dangerous_masked(sums, F::random(rng), F::random(rng))
    }

    /// The same with given f(0) and g(0). They must be random and used once, because they hide the
    /// rest.
    #[must_use]
    pub fn dangerous_masked(sums: &Sums<F>, at_f: F, at_g: F) -> Self {
        let interpolation = Interpolation::new();
        let f = interpolation.through([&at_f, &sums.r, &sums.both]);
        let g = interpolation.through([&at_g, &sums.s, &sums.plain]);
        let h = std::array::from_fn(|k| {
            let pairs = (0..3_usize).filter_map(|i| Some((f.get(i)?, g.get(k.checked_sub(i)?)?)));
            pairs.fold(F::node(0), |sum, (a, b)| sum.plus(&a.times(b)))
        });
        Self { f: at_f, g: at_g, h }
    }

    /// Splits the proof into shares for `servers` servers, all of which are needed: random ones,
    /// and the remainder.
    #[must_use]
    pub fn share(self, servers: usize, rng: &mut impl CryptoRng) -> Vec<Self> {
        let mut rest = self;
        let mut shares = Vec::with_capacity(servers);
        for _ in 1..servers {
            let share = Self::from_numbers(std::array::from_fn(|_| F::random(rng)));
            rest =
                Self::from_numbers(std::array::from_fn(|i| rest.number(i).minus(share.number(i))));
            shares.push(share);
        }
        shares.push(rest);
        shares
    }

    fn from_numbers(numbers: [F; 7]) -> Self {
        let [f, g, h0, h1, h2, h3, h4] = numbers;
        Self { f, g, h: [h0, h1, h2, h3, h4] }
    }

    fn number(&self, i: usize) -> &F {
        match i {
            0 => &self.f,
            1 => &self.g,
            _ => &self.h[i - 2],
        }
    }

    /// The encoding, for the envelope.
    #[must_use]
    pub fn expose(&self) -> Vec<u8> {
        (0..Self::NUMBERS).flat_map(|i| self.number(i).expose()).collect()
    }

    /// Decodes a share.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::NUMBERS * F::BYTES {
            return None;
        }
        let numbers: Option<Vec<F>> = bytes.chunks_exact(F::BYTES).map(F::from_bytes).collect();
        numbers?.try_into().ok().map(Self::from_numbers)
    }
}

impl<F: Field> Opening<F> {
    /// The count of numbers in an opening.
    pub const NUMBERS: usize = 4;

    /// Whether all servers' openings together prove that the vector has at most one nonzero entry.
    /// False if there are none.
    #[must_use]
    pub fn verify<'a>(openings: impl IntoIterator<Item = &'a Self>) -> bool
    where
        F: 'a,
    {
        let sum = openings.into_iter().fold(None, |sum: Option<Self>, one| {
            Some(match sum {
                None => one.duplicate(),
                Some(sum) => sum.plus(one),
            })
        });
        let zero = F::node(0);
        sum.is_some_and(|s| s.gate.equals(&zero) && s.f.times(&s.g).equals(&s.h))
    }

    fn duplicate(&self) -> Self {
        let [f, g, h, gate] = [&self.f, &self.g, &self.h, &self.gate].map(F::duplicate);
        Self { f, g, h, gate }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            f: self.f.plus(&other.f),
            g: self.g.plus(&other.g),
            h: self.h.plus(&other.h),
            gate: self.gate.plus(&other.gate),
        }
    }

    /// The encoding.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.f, &self.g, &self.h, &self.gate].into_iter().flat_map(F::expose).collect()
    }

    /// Decodes an opening.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::NUMBERS * F::BYTES {
            return None;
        }
        let numbers: Option<Vec<F>> = bytes.chunks_exact(F::BYTES).map(F::from_bytes).collect();
        let [f, g, h, gate] = numbers?.try_into().ok()?;
        Some(Self { f, g, h, gate })
    }
}
