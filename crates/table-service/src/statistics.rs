//! Statistics of verified sums, in exact arithmetic, rounded once.

use super::schema::TableSchema;
use super::sql::Function;
use alpheus_encrypted_stream::decode::Rational;
use alpheus_verifiable_table::layout::Moment;
use num_bigint::BigInt;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The sums that a function needs.
pub fn moments(function: &Function) -> Vec<Moment> {
    match *function {
        Function::Count(x) => vec![Moment::Count(x)],
        Function::Sum(x) | Function::Mean(x) => vec![Moment::Sum(x), Moment::Count(x)],
        Function::Variance(x) => vec![Moment::Square(x), Moment::Sum(x), Moment::Count(x)],
        Function::Covariance(y, x) => pair(y, x),
        Function::Slope(y, x) | Function::Intercept(y, x) => {
            [pair(y, x), vec![Moment::PairSquare(x, y)]].concat()
        }
        Function::Rows | Function::Weighted(..) | Function::Polynomial(..) => Vec::new(),
    }
}

fn pair(y: u16, x: u16) -> Vec<Moment> {
    let sums = [Moment::PairSum(y, x), Moment::PairSum(x, y)];
    [[Moment::PairCount(y, x), Moment::PairProduct(y, x)], sums].concat()
}

/// A statistic of its sums, in natural units; null if there are no values.
pub fn statistic(
    schema: &TableSchema,
    function: &Function,
    sums: &BTreeMap<Moment, i128>,
) -> Value {
    let sum = |moment| BigInt::from(sums.get(&moment).copied().unwrap_or(0));
    let places = |x| i32::from(schema.scale(x));
    let number = |value: Option<Rational>, exponent: i32| {
        json!(value.map(|value| value.times_ten_to(exponent).to_f64()))
    };
    match *function {
        Function::Count(x) => sums.get(&Moment::Count(x)).map_or(Value::Null, |n| {
            u64::try_from(*n).map_or_else(|_| n.to_string().into(), Value::from)
        }),
        Function::Sum(x) if sum(Moment::Count(x)) == BigInt::ZERO => Value::Null,
        Function::Sum(x) => decimal(&sum(Moment::Sum(x)), schema.scale(x)).into(),
        Function::Mean(x) => {
            number(Rational::new(sum(Moment::Sum(x)), sum(Moment::Count(x))), -places(x))
        }
        Function::Variance(x) => {
            let (n, s) = (sum(Moment::Count(x)), sum(Moment::Sum(x)));
            let numerator = &n * sum(Moment::Square(x)) - &s * &s;
            number(Rational::new(numerator, &n * &n), -2 * places(x))
        }
        Function::Covariance(y, x) | Function::Slope(y, x) | Function::Intercept(y, x) => {
            let n = sum(Moment::PairCount(y, x));
            let (sy, sx) = (sum(Moment::PairSum(y, x)), sum(Moment::PairSum(x, y)));
            let (sxy, sxx) = (sum(Moment::PairProduct(y, x)), sum(Moment::PairSquare(x, y)));
            let (above, below) = (&n * &sxy - &sx * &sy, &n * &sxx - &sx * &sx);
            match function {
                Function::Covariance(..) => {
                    number(Rational::new(above, &n * &n), -places(x) - places(y))
                }
                Function::Slope(..) => number(Rational::new(above, below), places(x) - places(y)),
                _ => number(Rational::new(&sy * &sxx - &sx * &sxy, below), -places(y)),
            }
        }
        Function::Rows | Function::Weighted(..) | Function::Polynomial(..) => Value::Null,
    }
}

/// A scaled integer of any size, as a decimal.
pub fn decimal(scaled: &BigInt, scale: u8) -> String {
    let places = usize::from(scale);
    let digits = format!("{:0>width$}", scaled.magnitude().to_string(), width = places + 1);
    let (whole, behind) = digits.split_at(digits.len() - places);
    let sign = if *scaled < BigInt::ZERO { "-" } else { "" };
    if behind.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{behind}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_any_size_are_exact() {
        let wide = BigInt::from(10).pow(50) + 7;
        assert_eq!(decimal(&wide, 3), format!("1{}.007", "0".repeat(47)));
        assert_eq!(decimal(&BigInt::from(-5), 3), "-0.005");
        assert_eq!(decimal(&BigInt::from(12), 0), "12");
    }
}
