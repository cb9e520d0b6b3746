//! Whether a function's value is sure to decrypt and to be exact, by its worst case.

use super::messages::{Function, Shape, Statistic};
use super::ring::modulus;
use crate::error::Refusal;
use crate::label::Segment;
use crate::messages::{COEFFICIENTS, REQUEST_LIMIT, Request, Run, Weights};
use crate::planner::{Limits, Margin, largest, noise, total};
use num_bigint::BigUint;

/// Checks a function before it is prepared.
pub(super) fn check(shape: &Shape, function: &Function) -> Result<Margin, Refusal> {
    let Function { from, to, .. } = *function;
    if from >= to {
        return Err(Refusal::Rows { from, to, rows: to });
    }
    if function.columns().into_iter().any(|column| column.0 >= shape.columns) {
        return Err(Refusal::NotRegistered);
    }
    if to - from > REQUEST_LIMIT {
        return Err(Refusal::Blocks { asked: to - from, most: REQUEST_LIMIT });
    }
    if matches!(function.weights(), Weights::Polynomial(c) if c.len() > COEFFICIENTS) {
        return Err(Refusal::Coefficients { most: COEFFICIENTS });
    }
    let (kind, plain) = (function.kind(), shape.set.ring().plain);
    let run = Run { segment: Segment([0; 16]), epoch: 0, from, to };
    let weights = function.weights().clone();
    let modular = matches!(weights, Weights::Powers(_));
    let request = Request { kind, runs: vec![run], weights };
    let limits = Limits::new(plain, shape.set.name(), modulus(), noise(plain, kind));
    let item = u128::from(shape.bound.unsigned_abs());
    let bound = (!modular).then(|| if function.degree() == 1 { item } else { item * item });
    if let Statistic::Covariance(..) = function.of {
        // N·Σxy and Σx·Σy: N² products each.
        let weights = BigUint::from(to - from).pow(2) * 2_u32;
        return limits.check(&weights, bound, |most| (most / 2_u32).sqrt());
    }
    let (weights, largest) = (total(plain, &request)?, largest(plain, &request));
    limits.check(&weights, bound, |most| most / (&largest).max(&BigUint::from(1_u32)))
}
