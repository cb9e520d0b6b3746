//! Without the shares of all t colluders, the remaining shares still meet the promise.

use crate::noise::pmf::Pmf;

/// max over x of ln(P(x) / P(x − shift)) where P is above rounding.
fn loss(law: &Pmf, shift: i64) -> f64 {
    (-law.reach + shift..=law.reach - shift)
        .filter(|x| law.at(*x) > 1e-200 && law.at(x - shift) > 1e-200)
        .map(|x| (law.at(x) / law.at(x - shift)).ln().abs())
        .fold(0.0, f64::max)
}

/// The law of the sum of `members` shares: the convolution of exact shares of shape 1/n.
fn sum_of(members: u32, n: u32, q: f64, reach: usize) -> Pmf {
    let mut share = vec![(1.0 - q).powf(1.0 / f64::from(n))];
    for k in 1..=reach {
        let last = share[k - 1];
        share.push(last * q * (1.0 / f64::from(n) + k as f64 - 1.0) / k as f64);
    }
    let mut sum = vec![1.0];
    for _ in 0..members {
        sum = (0..=reach)
            .map(|k| (0..=k.min(sum.len() - 1)).map(|i| sum[i] * share[k - i]).sum())
            .collect();
    }
    Pmf::difference(&sum)
}

/// |S| = 9, t = 3: six honest shares of shape 1/6 provide ε = 0.1 at sensitivity 1.
#[test]
fn the_honest_shares_alone_meet_the_promise() {
    let (epsilon, n, t) = (0.1f64, 6, 3);
    let q = (-epsilon).exp();
    let honest = sum_of(n, n, q, 300);
    let all = sum_of(n + t, n, q, 300);
    // Convolutions are cut at 300, and the law is exact up to there.
    let within =
        |law: &Pmf| loss(&Pmf { reach: 60, p: (-60..=60).map(|x| law.at(x)).collect() }, 1);
    assert!((within(&honest) - epsilon).abs() < 1e-6, "{}", within(&honest));
    assert!(within(&all) < epsilon + 1e-6, "{}", within(&all));
}

/// Why the floor matters: with shares of shape 1/|S|, half of S being honest is not enough.
#[test]
fn half_the_shares_of_a_sum_that_needs_all_break_the_promise() {
    let q = (-0.1f64).exp();
    let half = Pmf::polya(0.5, q, 1500);
    let near = Pmf { reach: 30, p: (-30..=30).map(|x| half.at(x)).collect() };
    let broken = loss(&near, 1);
    assert!((0.60..0.62).contains(&broken), "{broken}");
}

/// The exact law satisfies the bound that budgets charge for Skellam noise: a Rényi
/// divergence of at most α·(Δ²/2V·(1 + 1/V) + 3Δ/2V²).
#[test]
fn skellam_noise_meets_its_bound() {
    for (variance, reach) in [(4.0, 150), (30.0, 300)] {
        let law = Pmf::skellam(variance, reach as usize);
        for shift in [1i64, 3] {
            let d = shift as f64;
            let rho =
                d * d / (2.0 * variance) * (1.0 + 1.0 / variance) + 1.5 * d / (variance * variance);
            for order in [1.05, 2.0, 8.0] {
                let sum: f64 = (-reach + shift..=reach)
                    .filter(|x| law.at(*x) > 1e-120 && law.at(x - shift) > 1e-120)
                    .map(|x| {
                        (order * law.at(x).ln() + (1.0 - order) * law.at(x - shift).ln()).exp()
                    })
                    .sum();
                let divergence = sum.ln() / (order - 1.0);
                assert!(divergence <= order * rho, "{variance} {shift} {order}");
                assert!(divergence > 0.4 * order * d * d / (2.0 * variance));
            }
        }
    }
}
