//! That a shared vector m has at most one place that is not zero, shown by whoever
//! knows it to all who hold shares of it: the gate ⟨r,m⟩·⟨s,m⟩ = ⟨rs,m⟩·⟨1,m⟩ for random
//! r and s, with a fully linear proof (Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai:
//! *Zero-Knowledge Proofs on Secret-Shared Data via Fully Linear PCPs*, Crypto 2019).
//!
//! With two places that are not zero the gate is a polynomial that is not zero in r and s.
//! f runs through ⟨r,m⟩ at 1 and ⟨rs,m⟩ at 2, g through ⟨s,m⟩ and ⟨1,m⟩, both through
//! something random at 0; h = f·g has five coefficients, and the gate says h(1) = h(2).
//! All that is opened is f, g, h at one more place τ, and h(1) − h(2).

use super::field::Field;
use rand_core::CryptoRng;

/// ⟨r,m⟩, ⟨s,m⟩, ⟨rs,m⟩ and ⟨1,m⟩: of a vector, or of somebody's share of it.
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

/// What the writer adds: f(0), g(0) and the coefficients of h, or shares of them. Secret.
pub struct Proof<F> {
    f: F,
    g: F,
    h: [F; 5],
}

/// What one server opens: its shares of f(τ), g(τ), h(τ) and h(1) − h(2), or their sums.
/// Public.
pub struct Opening<F> {
    /// Of f(τ).
    pub f: F,
    /// Of g(τ).
    pub g: F,
    /// Of h(τ).
    pub h: F,
    /// Of h(1) − h(2).
    pub gate: F,
}

/// Where proofs are opened, with what the three places give. Public.
pub struct Place<F> {
    tau: F,
    lines: Lines<F>,
}

/// Inverses that turn values at 0, 1 and 2 into coefficients.
struct Lines<F> {
    two: F,
    /// 1/2, 1/(1 − 2), 1/(2·(2 − 1)) for the field's places 1 and 2.
    over: [F; 3],
}

impl<F: Field> Lines<F> {
    fn new() -> Self {
        let (one, two) = (F::place(1), F::place(2));
        let difference = one.minus(&two);
        let product = two.times(&two.minus(&one));
        let over = [two.inverse(), difference.inverse(), product.inverse()];
        Self { two, over }
    }

    /// The coefficients of the polynomial of degree two through three values.
    fn through(&self, values: [&F; 3]) -> [F; 3] {
        let [a, b, c] = [0, 1, 2].map(|i: usize| values[i].times(&self.over[i]));
        let sum = F::place(1).plus(&self.two);
        let linear = F::place(0).minus(&sum.times(&a)).minus(&self.two.times(&b)).minus(&c);
        [values[0].duplicate(), linear, a.plus(&b).plus(&c)]
    }
}

fn at<F: Field>(coefficients: &[F], place: &F) -> F {
    let highest_first = coefficients.iter().rev();
    highest_first.fold(F::place(0), |value, c| value.times(place).plus(c))
}

impl<F: Field> Place<F> {
    /// τ from a hash: anything but the three places that the polynomials run through.
    #[must_use]
    pub fn hashed(label: &str, parts: &[&[u8]]) -> Self {
        let mut tries = 0_u8;
        loop {
            let more: Vec<&[u8]> =
                parts.iter().copied().chain([std::slice::from_ref(&tries)]).collect();
            let tau = F::hashed(label, &more);
            if (0..3).all(|which| !tau.equals(&F::place(which))) {
                return Self { tau, lines: Lines::new() };
            }
            tries = tries.wrapping_add(1);
        }
    }

    /// What a server opens, from its shares.
    #[must_use]
    pub fn open(&self, sums: &Sums<F>, proof: &Proof<F>) -> Opening<F> {
        let f = self.lines.through([&proof.f, &sums.r, &sums.both]);
        let g = self.lines.through([&proof.g, &sums.s, &sums.plain]);
        let gate = at(&proof.h, &F::place(1)).minus(&at(&proof.h, &self.lines.two));
        Opening { f: at(&f, &self.tau), g: at(&g, &self.tau), h: at(&proof.h, &self.tau), gate }
    }
}

impl<F: Field> Proof<F> {
    /// Numbers in a proof.
    pub const NUMBERS: usize = 7;

    /// The proof for the sums of a vector.
    #[must_use]
    pub fn new(sums: &Sums<F>, rng: &mut impl CryptoRng) -> Self {
        Self::dangerous_masked(sums, F::random(rng), F::random(rng))
    }

    /// The same with given f(0) and g(0), which must be random and used once: they are what
    /// hides the rest.
    #[must_use]
    pub fn dangerous_masked(sums: &Sums<F>, at_f: F, at_g: F) -> Self {
        let lines = Lines::new();
        let f = lines.through([&at_f, &sums.r, &sums.both]);
        let g = lines.through([&at_g, &sums.s, &sums.plain]);
        let h = std::array::from_fn(|k| {
            let pairs = (0..3_usize).filter_map(|i| Some((f.get(i)?, g.get(k.checked_sub(i)?)?)));
            pairs.fold(F::place(0), |sum, (a, b)| sum.plus(&a.times(b)))
        });
        Self { f: at_f, g: at_g, h }
    }

    /// Shares of it for so many servers, all of them needed: random ones, and the rest.
    #[must_use]
    pub fn share(self, servers: usize, rng: &mut impl CryptoRng) -> Vec<Self> {
        let mut rest = self;
        let mut shares = Vec::with_capacity(servers);
        for _ in 1..servers {
            let share = Self::of(std::array::from_fn(|_| F::random(rng)));
            rest = Self::of(std::array::from_fn(|i| rest.number(i).minus(share.number(i))));
            shares.push(share);
        }
        shares.push(rest);
        shares
    }

    fn of(numbers: [F; 7]) -> Self {
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
        numbers?.try_into().ok().map(Self::of)
    }
}

impl<F: Field> Opening<F> {
    /// Numbers in an opening.
    pub const NUMBERS: usize = 4;

    /// Whether all servers' openings together show that the vector has at most one place
    /// that is not zero; false of none.
    #[must_use]
    pub fn hold<'a>(openings: impl IntoIterator<Item = &'a Self>) -> bool
    where
        F: 'a,
    {
        let sum = openings.into_iter().fold(None, |sum: Option<Self>, one| {
            Some(match sum {
                None => one.duplicate(),
                Some(sum) => sum.plus(one),
            })
        });
        let zero = F::place(0);
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

    /// Decodes.
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
