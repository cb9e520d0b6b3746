//! Lanes: eight 64-bit words at a time, with 52-bit products. They are AVX-512 IFMA
//! registers where the machine has them, and arrays of words elsewhere. All arithmetic of
//! the crate is written once, over [`Lanes`]. Nothing here branches on a word.

/// The number of words in a vector.
pub(crate) const WIDTH: usize = 8;

/// The low 52 bits.
pub(crate) const LOW: u64 = (1 << 52) - 1;

/// Operations on eight words. Sums are modulo 2^64. Products take the low 52 bits of their
/// factors.
pub(crate) trait Lanes: Copy {
    type V: Copy;
    fn load(self, words: &[u64; WIDTH]) -> Self::V;
    fn store(self, lanes: Self::V, words: &mut [u64; WIDTH]);
    fn splat(self, word: u64) -> Self::V;
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// The smaller, as unsigned words.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    fn and(self, a: Self::V, b: Self::V) -> Self::V;
    fn shift_52(self, a: Self::V) -> Self::V;
    /// `acc` + the low 52 bits of a·b.
    fn low(self, acc: Self::V, a: Self::V, b: Self::V) -> Self::V;
    /// `acc` + a·b / 2^52.
    fn high(self, acc: Self::V, a: Self::V, b: Self::V) -> Self::V;
    /// Transposes eight by eight words.
    fn transpose(self, rows: [Self::V; WIDTH]) -> [Self::V; WIDTH];
}

/// Work that runs on any lanes.
pub(crate) trait Kernel {
    type Output;
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// Lanes for any machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

#[inline(always)]
fn each(f: impl Fn(usize) -> u64) -> [u64; WIDTH] {
    std::array::from_fn(f)
}

#[inline(always)]
fn product(a: u64, b: u64) -> u128 {
    u128::from(a & LOW) * u128::from(b & LOW)
}

#[expect(clippy::cast_possible_truncation, reason = "halves of a product of 52-bit words")]
impl Lanes for Portable {
    type V = [u64; WIDTH];

    #[inline(always)]
    fn load(self, words: &[u64; WIDTH]) -> Self::V {
        *words
    }

    #[inline(always)]
    fn store(self, lanes: Self::V, words: &mut [u64; WIDTH]) {
        *words = lanes;
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Self::V {
        [word; WIDTH]
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        each(|i| a[i].wrapping_add(b[i]))
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        each(|i| a[i].wrapping_sub(b[i]))
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        // A mask from the borrow, so that the compiler does not branch.
        each(|i| {
            let (difference, less) = a[i].overflowing_sub(b[i]);
            b[i].wrapping_add(difference & 0u64.wrapping_sub(u64::from(less)))
        })
    }

    #[inline(always)]
    fn and(self, a: Self::V, b: Self::V) -> Self::V {
        each(|i| a[i] & b[i])
    }

    #[inline(always)]
    fn shift_52(self, a: Self::V) -> Self::V {
        each(|i| a[i] >> 52)
    }

    #[inline(always)]
    fn low(self, acc: Self::V, a: Self::V, b: Self::V) -> Self::V {
        each(|i| acc[i].wrapping_add(product(a[i], b[i]) as u64 & LOW))
    }

    #[inline(always)]
    fn high(self, acc: Self::V, a: Self::V, b: Self::V) -> Self::V {
        each(|i| acc[i].wrapping_add((product(a[i], b[i]) >> 52) as u64))
    }

    #[inline(always)]
    fn transpose(self, rows: [Self::V; WIDTH]) -> [Self::V; WIDTH] {
        std::array::from_fn(|i| each(|j| rows[j][i]))
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use ifma::Ifma;

#[cfg(target_arch = "x86_64")]
mod ifma {
    use super::{Kernel, LOW, Lanes, WIDTH};
    use std::arch::x86_64::__m512i;

    pulp::simd_type!({
        /// Proof that the machine has AVX-512 with 52-bit products. Only run-time detection
        /// makes one.
        pub(crate) struct Ifma {
            avx: f!("avx"),
            avx2: f!("avx2"),
            avx512f: f!("avx512f"),
            avx512vl: f!("avx512vl"),
            avx512dq: f!("avx512dq"),
            avx512ifma: f!("avx512ifma"),
        }
    });

    impl Ifma {
        /// Runs a kernel compiled for this machine.
        #[inline(always)]
        pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
            struct WithFeatures<K>(K, Ifma);
            impl<K: Kernel> pulp::NullaryFnOnce for WithFeatures<K> {
                type Output = K::Output;

                #[inline(always)]
                fn call(self) -> K::Output {
                    self.0.run(self.1)
                }
            }
            self.vectorize(WithFeatures(kernel, self))
        }
    }

    impl Lanes for Ifma {
        type V = __m512i;

        #[inline(always)]
        fn load(self, words: &[u64; WIDTH]) -> __m512i {
            pulp::cast(*words)
        }

        #[inline(always)]
        fn store(self, lanes: __m512i, words: &mut [u64; WIDTH]) {
            *words = pulp::cast(lanes);
        }

        #[inline(always)]
        fn splat(self, word: u64) -> __m512i {
            self.avx512f._mm512_set1_epi64(word.cast_signed())
        }

        #[inline(always)]
        fn add(self, a: __m512i, b: __m512i) -> __m512i {
            self.avx512f._mm512_add_epi64(a, b)
        }

        #[inline(always)]
        fn sub(self, a: __m512i, b: __m512i) -> __m512i {
            self.avx512f._mm512_sub_epi64(a, b)
        }

        #[inline(always)]
        fn min(self, a: __m512i, b: __m512i) -> __m512i {
            self.avx512f._mm512_min_epu64(a, b)
        }

        #[inline(always)]
        fn and(self, a: __m512i, b: __m512i) -> __m512i {
            self.avx512f._mm512_and_si512(a, b)
        }

        #[inline(always)]
        fn shift_52(self, a: __m512i) -> __m512i {
            self.avx512f._mm512_srli_epi64::<52>(a)
        }

        #[inline(always)]
        fn low(self, acc: __m512i, a: __m512i, b: __m512i) -> __m512i {
            self.avx512ifma._mm512_madd52lo_epu64(acc, a, b)
        }

        #[inline(always)]
        fn high(self, acc: __m512i, a: __m512i, b: __m512i) -> __m512i {
            self.avx512ifma._mm512_madd52hi_epu64(acc, a, b)
        }

        #[inline(always)]
        fn transpose(self, rows: [__m512i; WIDTH]) -> [__m512i; WIDTH] {
            let f = self.avx512f;
            // Pairs of words, then pairs of pairs, then halves.
            let pairs: [__m512i; WIDTH] = std::array::from_fn(|i| {
                let (a, b) = (rows[i & !1], rows[i | 1]);
                if i & 1 == 0 {
                    f._mm512_unpacklo_epi64(a, b)
                } else {
                    f._mm512_unpackhi_epi64(a, b)
                }
            });
            let quads: [__m512i; WIDTH] = std::array::from_fn(|i| {
                let (a, b) = (pairs[i & !2], pairs[i | 2]);
                if i & 2 == 0 {
                    f._mm512_shuffle_i64x2::<0b10_00_10_00>(a, b)
                } else {
                    f._mm512_shuffle_i64x2::<0b11_01_11_01>(a, b)
                }
            });
            std::array::from_fn(|i| {
                let (a, b) = (quads[i & !4], quads[i | 4]);
                if i & 4 == 0 {
                    f._mm512_shuffle_i64x2::<0b10_00_10_00>(a, b)
                } else {
                    f._mm512_shuffle_i64x2::<0b11_01_11_01>(a, b)
                }
            })
        }
    }

    const _: () = assert!(LOW.count_ones() == 52);
}

/// The lanes in use.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Backend {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Ifma(Ifma),
}

impl Backend {
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(ifma) = Ifma::try_new() {
            return Self::Ifma(ifma);
        }
        Self::Portable
    }

    #[inline(always)]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Self::Portable => kernel.run(Portable),
            #[cfg(target_arch = "x86_64")]
            Self::Ifma(ifma) => ifma.run(kernel),
        }
    }

    /// The name, for reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Ifma(_) => "avx512-ifma",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every operation on some words.
    struct All([[u64; WIDTH]; 3]);

    impl Kernel for All {
        type Output = Vec<[u64; WIDTH]>;

        fn run<L: Lanes>(self, l: L) -> Self::Output {
            let [acc, a, b] = self.0.each_ref().map(|words| l.load(words));
            let rows = std::array::from_fn(|i| l.add(a, l.splat(i as u64 * 1000)));
            let mut all = vec![l.add(a, b), l.sub(a, b), l.min(a, b), l.and(a, b), l.shift_52(a)];
            all.extend([l.low(acc, a, b), l.high(acc, a, b)]);
            all.extend(l.transpose(rows));
            let stored = |v| {
                let mut words = [0; WIDTH];
                l.store(v, &mut words);
                words
            };
            all.into_iter().map(stored).collect()
        }
    }

    proptest! {
        #[test]
        fn both_kinds_of_lanes_agree(words: [[u64; WIDTH]; 3]) {
            let portable = Portable;
            prop_assert_eq!(All(words).run(portable), Backend::detect().run(All(words)));
        }
    }

    #[test]
    fn portable_products_have_their_documented_halves() {
        let all = Backend::Portable.run(All([[3; 8], [LOW; 8], [1 << 51; 8]]));
        let product = u128::from(LOW) << 51;
        assert_eq!(u128::from(all[5][0]), 3 + (product & u128::from(LOW)));
        assert_eq!(u128::from(all[6][0]), 3 + (product >> 52));
        assert_eq!(all[2][0], 1 << 51);
    }
}
