//! Statistics computed from sums of powers: mean, variance, regression.

use super::{ColumnError, Output, Rational};
use alpheus_policy::select::{MomentOutput, RegressionOutput};
use num_bigint::BigInt;

/// Count, sum and sum of squares of one attribute, scaled.
pub(super) struct Moments {
    pub(super) count: i128,
    pub(super) sum: i128,
    pub(super) squares: Option<i128>,
    pub(super) scale: u8,
}

impl Moments {
    pub(super) fn output(&self, output: MomentOutput) -> Result<Output, ColumnError> {
        match output {
            MomentOutput::Mean => Ok(self.mean()),
            MomentOutput::Variance => self.variance(),
            MomentOutput::Deviation => match self.exact_variance()? {
                None => Ok(Output::Null),
                Some(variance) => {
                    variance.sqrt_to_f64().map(Output::Float).ok_or(ColumnError::Impossible)
                }
            },
        }
    }

    /// Σx / (n · 10^scale).
    pub(super) fn mean(&self) -> Output {
        let mean = Rational::new(self.sum, self.count);
        float(mean.map(|mean| mean.times_ten_to(-i32::from(self.scale))))
    }

    /// (n·Σx² − (Σx)²) / (n² · 10^(2·scale)).
    pub(super) fn variance(&self) -> Result<Output, ColumnError> {
        self.exact_variance().map(float)
    }

    fn exact_variance(&self) -> Result<Option<Rational>, ColumnError> {
        let squares = self.squares.ok_or(ColumnError::Reference)?;
        let spread = spread(self.count, self.sum, squares)?;
        let count = BigInt::from(self.count);
        let variance = Rational::new(spread, &count * &count);
        Ok(variance.map(|variance| variance.times_ten_to(-2 * i32::from(self.scale))))
    }
}

/// n·Σx² − (Σx)², which is never negative for real data.
fn spread(count: i128, sum: i128, squares: i128) -> Result<BigInt, ColumnError> {
    let spread = products(count, squares, sum, sum);
    if spread < BigInt::ZERO { Err(ColumnError::Impossible) } else { Ok(spread) }
}

/// ab − cd.
fn products(a: i128, b: i128, c: i128, d: i128) -> BigInt {
    BigInt::from(a) * BigInt::from(b) - BigInt::from(c) * BigInt::from(d)
}

/// Null if the denominator was zero.
fn float(value: Option<Rational>) -> Output {
    value.map_or(Output::Null, |value| Output::Float(value.to_f64()))
}

/// Scaled moments of events that have both x and y.
pub(super) struct Pair {
    pub(super) count: i128,
    pub(super) x: i128,
    pub(super) y: i128,
    pub(super) xx: Option<i128>,
    pub(super) xy: i128,
    pub(super) yy: Option<i128>,
    pub(super) x_scale: u8,
    pub(super) y_scale: u8,
}

impl Pair {
    pub(super) fn output(&self, output: RegressionOutput) -> Result<Output, ColumnError> {
        let (x, y) = (i32::from(self.x_scale), i32::from(self.y_scale));
        let (value, exponent) = match output {
            RegressionOutput::Slope => (Rational::new(self.co_spread(), self.x_spread()?), x - y),
            RegressionOutput::Intercept => (self.intercept()?, -y),
            RegressionOutput::RSquared => (self.r_squared()?, 0),
            RegressionOutput::Covariance => {
                let count = BigInt::from(self.count);
                (Rational::new(self.co_spread(), &count * &count), -x - y)
            }
        };
        Ok(float(value.map(|value| value.times_ten_to(exponent))))
    }

    /// n·Σxy − ΣxΣy.
    fn co_spread(&self) -> BigInt {
        products(self.count, self.xy, self.x, self.y)
    }

    /// n·Σx² − (Σx)².
    fn x_spread(&self) -> Result<BigInt, ColumnError> {
        spread(self.count, self.x, self.xx.ok_or(ColumnError::Reference)?)
    }

    /// (ΣyΣx² − ΣxΣxy) / (n·Σx² − (Σx)²): exact, where n·intercept = Σy − slope·Σx.
    fn intercept(&self) -> Result<Option<Rational>, ColumnError> {
        let xx = self.xx.ok_or(ColumnError::Reference)?;
        Ok(Rational::new(products(self.y, xx, self.x, self.xy), self.x_spread()?))
    }

    /// (n·Σxy − ΣxΣy)² / ((n·Σx² − (Σx)²)(n·Σy² − (Σy)²)).
    fn r_squared(&self) -> Result<Option<Rational>, ColumnError> {
        let y_spread = spread(self.count, self.y, self.yy.ok_or(ColumnError::Reference)?)?;
        let co_spread = self.co_spread();
        Ok(Rational::new(&co_spread * &co_spread, self.x_spread()? * y_spread))
    }
}
