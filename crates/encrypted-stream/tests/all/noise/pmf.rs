//! Exact distributions, and tests of samples against them.

use std::collections::BTreeMap;

/// P(x) for x from `−reach` to `reach`.
#[derive(Clone)]
pub(crate) struct Pmf {
    pub(crate) reach: i64,
    pub(crate) p: Vec<f64>,
}

impl Pmf {
    pub(crate) fn at(&self, x: i64) -> f64 {
        usize::try_from(x + self.reach).ok().and_then(|i| self.p.get(i)).copied().unwrap_or(0.0)
    }

    fn over(&self) -> impl Iterator<Item = (f64, f64)> {
        (-self.reach..).map(|x| x as f64).zip(self.p.iter().copied())
    }

    pub(crate) fn moment(&self, order: i32) -> f64 {
        self.over().map(|(x, p)| x.powi(order) * p).sum()
    }

    /// The distribution of X − Y for X and Y with these weights on 0, 1, ….
    pub(crate) fn difference(one: &[f64]) -> Pmf {
        let reach = one.len() as i64 - 1;
        let at = |x: i64| usize::try_from(x).ok().and_then(|i| one.get(i)).copied().unwrap_or(0.0);
        let p = (-reach..=reach).map(|d| (0..=reach).map(|y| at(y + d) * at(y)).sum()).collect();
        Pmf { reach, p }
    }

    /// Both signs of NB(r, q): a Pólya share.
    pub(crate) fn polya(r: f64, q: f64, reach: usize) -> Pmf {
        let mut weights = vec![(1.0 - q).powf(r)];
        for k in 1..=reach {
            let last = weights[k - 1];
            weights.push(last * q * (r + k as f64 - 1.0) / k as f64);
        }
        Pmf::difference(&weights)
    }

    pub(crate) fn skellam(variance: f64, reach: usize) -> Pmf {
        let mean = variance / 2.0;
        let mut weights = vec![(-mean).exp()];
        for k in 1..=reach {
            let last = weights[k - 1];
            weights.push(last * mean / k as f64);
        }
        Pmf::difference(&weights)
    }

    pub(crate) fn gaussian(variance: f64, reach: i64) -> Pmf {
        let p: Vec<f64> =
            (-reach..=reach).map(|x| (-(x * x) as f64 / (2.0 * variance)).exp()).collect();
        let total: f64 = p.iter().sum();
        Pmf { reach, p: p.into_iter().map(|p| p / total).collect() }
    }
}

/// Checks samples against a distribution: mean, variance and χ², each within 4 standard
/// errors.
pub(crate) fn assert_follows(samples: &[i64], law: &Pmf) {
    if let Err(why) = follows(samples, law) {
        panic!("{why}");
    }
}

pub(crate) fn follows(samples: &[i64], law: &Pmf) -> Result<(), String> {
    let m = samples.len() as f64;
    let (mean, variance) = (law.moment(1), law.moment(2) - law.moment(1).powi(2));
    let sampled = samples.iter().map(|x| *x as f64).sum::<f64>() / m;
    let off = (sampled - mean) / (variance / m).sqrt();
    if off.abs() > 4.0 {
        return Err(format!("mean {sampled} is {off:.1} standard errors off {mean}"));
    }
    let squares = samples.iter().map(|x| (*x as f64 - mean).powi(2)).sum::<f64>() / m;
    let off = (squares - variance) / ((law.moment(4) - variance.powi(2)) / m).sqrt();
    if off.abs() > 4.0 {
        return Err(format!("variance {squares} is {off:.1} standard errors off {variance}"));
    }
    let (statistic, cells) = chi_squared(samples, law);
    let off = (statistic - cells) / (2.0 * cells).sqrt();
    if off.abs() > 4.0 {
        return Err(format!("χ² {statistic:.0} is {off:.1} standard errors off {cells}"));
    }
    Ok(())
}

/// χ² over cells with an expected count of at least 50; the rest is one cell.
fn chi_squared(samples: &[i64], law: &Pmf) -> (f64, f64) {
    let mut counts: BTreeMap<i64, f64> = BTreeMap::new();
    for x in samples {
        *counts.entry(*x).or_default() += 1.0;
    }
    let m = samples.len() as f64;
    let (mut statistic, mut cells) = (0.0, -1.0);
    let (mut rest, mut expected_rest) = (m, m);
    for x in -law.reach..=law.reach {
        let expected = m * law.at(x);
        if expected >= 50.0 {
            let seen = counts.get(&x).copied().unwrap_or(0.0);
            statistic += (seen - expected).powi(2) / expected;
            cells += 1.0;
            rest -= seen;
            expected_rest -= expected;
        }
    }
    if expected_rest >= 5.0 {
        statistic += (rest - expected_rest).powi(2) / expected_rest;
        cells += 1.0;
    }
    (statistic, cells)
}
