//! Conversions between ε, ρ and δ, exact or rounded to the safe side.

use super::amount::{Epsilon, Rho};
use num_bigint::BigUint;

/// Precision of logarithms in bits.
const BITS: u64 = 256;
/// Logarithms are in units of 10^−24, as is [`Rho`].
const PLACES: u32 = 24;

/// `ln(1/δ)` for δ in units of 10^−18, in units of 10^−24, rounded up. `None` for δ = 0 or
/// δ ≥ 1.
#[must_use]
pub fn ln_inverse_delta(atto_delta: u64) -> Option<BigUint> {
    let one = BigUint::from(10u8).pow(18);
    let delta = BigUint::from(atto_delta);
    if atto_delta == 0 || delta >= one {
        return None;
    }
    // Each series has fewer than 256 terms, each short by less than 2 units, and the sum
    // contains ln 2 fewer than 64 times.
    let upper = ln(&one, &delta) + (BigUint::from(1u8) << 16u8);
    Some(ceiling(upper * BigUint::from(10u8).pow(PLACES), BITS))
}

/// `ln(above/below)` for quotients of at least 1, in units of 2^−256, rounded down.
fn ln(above: &BigUint, below: &BigUint) -> BigUint {
    // 2^k · y with 1 ≤ y < 2.
    let k = (above / below).bits().saturating_sub(1);
    let below = below << k;
    let two = twice_atanh(&BigUint::from(1u8), &BigUint::from(3u8));
    two * k + twice_atanh(&(above - &below), &(above + &below))
}

/// `2·atanh(above/below)` for quotients of at most 1/3, in units of 2^−256, rounded down.
fn twice_atanh(above: &BigUint, below: &BigUint) -> BigUint {
    let mut power = (above << (BITS + 1)) / below;
    let (above2, below2) = (above.pow(2), below.pow(2));
    let (mut sum, mut odd) = (BigUint::ZERO, 1u32);
    while power != BigUint::ZERO {
        sum += &power / odd;
        power = power * &above2 / &below2;
        odd += 2;
    }
    sum
}

/// `number / 2^bits`, rounded up.
pub(super) fn ceiling(number: BigUint, bits: u64) -> BigUint {
    (number + ((BigUint::from(1u8) << bits) - 1u8)) >> bits
}

/// Whether ρ-zCDP implies (ε, δ)-differential privacy, by either of two sufficient
/// conditions:
///
/// - ρ + 2·√(ρ·ln(1/δ)) ≤ ε (Bun and Steinke 2016, proposition 1.3), computed as
///   ρ ≤ ε and 4·ρ·ln(1/δ) ≤ (ε − ρ)²;
/// - `e^((α−1)(αρ−ε))/(α−1) · (1 − 1/α)^α ≤ δ` for some α > 1 (Canonne, Kamath,
///   Steinke 2020, proposition 12). With a = α − 1 = ⌊ε/2ρ⌋, if that is not 0, and
///   α·ln(1 − 1/α) ≤ −1 − 1/2α, it is computed as
///   `a·α·ρ + ln(1/δ) ≤ a·ε + ln a + 1 + 1/2α`.
#[must_use]
pub fn fits(rho: Rho, epsilon: Epsilon, atto_delta: u64) -> bool {
    ln_inverse_delta(atto_delta).is_some_and(|ln| fits_given(rho, epsilon, &ln))
}

fn fits_given(rho: Rho, epsilon: Epsilon, ln_delta: &BigUint) -> bool {
    let (rho, epsilon) = (BigUint::from(rho.0), BigUint::from(epsilon.0) * 1_000_000u32);
    if rho > epsilon {
        return false;
    }
    if &rho * ln_delta * 4u8 <= (&epsilon - &rho).pow(2) {
        return true;
    }
    let a = &epsilon / (&rho * 2u8);
    if a == BigUint::ZERO {
        return false;
    }
    let unit = BigUint::from(10u8).pow(PLACES);
    let ln_a = (ln(&a, &BigUint::from(1u8)) * &unit) >> BITS;
    let alpha = &a + 1u8;
    let least = &a * &epsilon + ln_a + &unit + &unit / (&alpha * 2u8);
    &a * &alpha * &rho + ln_delta <= least
}

/// The largest ρ that implies (ε, δ), or 0 for δ = 0.
#[must_use]
pub fn max_rho(epsilon: Epsilon, atto_delta: u64) -> Rho {
    let Some(ln) = ln_inverse_delta(atto_delta) else { return Rho(0) };
    Rho(last(epsilon.0.saturating_mul(1_000_000), |rho| fits_given(Rho(rho), epsilon, &ln)))
}

/// The smallest ε for ρ and δ, rounded up. `None` for δ = 0.
#[must_use]
pub fn min_epsilon(rho: Rho, atto_delta: u64) -> Option<Epsilon> {
    let ln = ln_inverse_delta(atto_delta)?;
    let short = last(u128::MAX - 1, |epsilon| !fits_given(rho, Epsilon(epsilon), &ln));
    let fits_at_zero = fits_given(rho, Epsilon(0), &ln);
    Some(Epsilon(if fits_at_zero { 0 } else { short + 1 }))
}

/// The largest number up to `max` for which `holds` is true, or 0 if it never is. `holds`
/// must be true up to some number and false beyond.
pub(super) fn last(max: u128, holds: impl Fn(u128) -> bool) -> u128 {
    let (mut low, mut high) = (0, max);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match holds(middle) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_rounded_up() {
        let ln = |atto: u64| ln_inverse_delta(atto).map(|ln| ln.to_string());
        // ln(10^9) = 20.723265836946411156161923092159…
        assert_eq!(ln(1_000_000_000).as_deref(), Some("20723265836946411156161924"));
        // ln(10^18) = 41.446531673892822312323846184318…
        assert_eq!(ln(1).as_deref(), Some("41446531673892822312323847"));
        // ln 2 = 0.693147180559945309417232121…
        assert_eq!(ln(500_000_000_000_000_000).as_deref(), Some("693147180559945309417233"));
        assert_eq!((ln(0), ln(1_000_000_000_000_000_000)), (None, None));
    }

    /// The smallest ε for ρ by proposition 12, over a fine grid of α. `ln` is the logarithm of
    /// 1/δ.
    fn tight(rho: f64, near: f64, ln: f64) -> f64 {
        let at = |alpha: f64| {
            alpha * rho
                + (ln - (alpha - 1.0).ln() + alpha * (1.0 - 1.0 / alpha).ln()) / (alpha - 1.0)
        };
        let center = near / rho / 2.0;
        (1..4000).map(|i| at(1.0 + center * f64::from(i) / 1000.0)).fold(f64::MAX, f64::min)
    }

    #[test]
    fn conversions_are_inverse_to_each_other() {
        for (micro, delta) in [(500_000, 1_000_000_000), (1, 1), (10_000_000, 1 << 40)] {
            let epsilon = Epsilon::from_micro(micro);
            let rho = max_rho(epsilon, delta);
            assert!(fits(rho, epsilon, delta) && !fits(Rho(rho.0 + 1), epsilon, delta));
            let least = min_epsilon(rho, delta);
            assert!(least.is_some_and(|least| least <= epsilon && fits(rho, least, delta)));
            let (r, e) = (rho.0 as f64 * 1e-24, micro as f64 * 1e-6);
            let ln = (1e18 / delta as f64).ln();
            assert!(r + 2.0 * (r * ln).sqrt() >= e * (1.0 - 1e-9), "{r} {e}");
            assert!(tight(r, e, ln) <= e && e <= 1.02 * tight(r, e, ln), "{r} {e}");
        }
        assert_eq!(max_rho(Epsilon::from_micro(1), 0), Rho(0));
        assert_eq!(min_epsilon(Rho(5), 0), None);
        assert_eq!(min_epsilon(Rho(0), 7), Some(Epsilon(0)));
    }
}
