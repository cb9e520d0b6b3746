//! Sums of numbers so small, or so many, that only their logarithms are representable.

/// Σ exp(term), stored as scaled·exp(largest), so that no term overflows and no
/// significant term underflows.
#[derive(Clone, Copy, Debug)]
pub(super) struct LnSum {
    largest: f64,
    scaled: f64,
}

impl Default for LnSum {
    fn default() -> Self {
        Self { largest: f64::NEG_INFINITY, scaled: 0.0 }
    }
}

impl LnSum {
    /// Adds exp(term).
    pub(super) fn add(&mut self, term: f64) {
        if term > self.largest {
            self.scaled = self.scaled * (self.largest - term).exp() + 1.0;
            self.largest = term;
        } else if term > f64::NEG_INFINITY {
            self.scaled += (term - self.largest).exp();
        }
    }

    /// The sum's logarithm; negative infinity for an empty sum.
    pub(super) fn ln(&self) -> f64 {
        self.largest + self.scaled.ln()
    }
}

/// ln C(n, k); negative infinity for k > n.
pub(super) fn ln_choose(n: u32, k: u32) -> f64 {
    match n.checked_sub(k) {
        Some(rest) => ln_factorial(n) - ln_factorial(k) - ln_factorial(rest),
        None => f64::NEG_INFINITY,
    }
}

/// ln n!: by multiplication where that is exact, otherwise by Stirling's series. Its
/// first omitted term is below 10^-13 for n > 20.
fn ln_factorial(n: u32) -> f64 {
    if n <= 20 {
        return (1..=n).map(f64::from).product::<f64>().ln();
    }
    let n = f64::from(n);
    let series = (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * n * n)) / (n * n)) / (n * n))
        / n;
    (n + 0.5) * n.ln() - n + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factorials_equal_sums_of_logarithms() {
        let mut sum = 0.0;
        for n in 1..2_000_u32 {
            sum += f64::from(n).ln();
            assert!((ln_factorial(n) - sum).abs() <= 1e-12 * (1.0 + sum), "{n}");
        }
        assert_eq!(ln_choose(5, 6), f64::NEG_INFINITY);
        assert!((ln_choose(52, 5) - 2_598_960.0_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn small_terms_do_not_underflow() {
        let mut sum = LnSum::default();
        assert_eq!(sum.ln(), f64::NEG_INFINITY);
        [f64::NEG_INFINITY, -5_000.0, -5_001.0, -5_000.0].into_iter().for_each(|t| sum.add(t));
        assert!((sum.ln() - (-5_000.0 + (2.0 + (-1.0_f64).exp()).ln())).abs() < 1e-12);
    }
}
