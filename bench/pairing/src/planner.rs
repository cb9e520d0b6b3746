//! Checks that a function's value is certain to decrypt and to be exact, by its worst case.

use crate::messages::{Function, Shape, Statistic};
use crate::ring::modulus;
use alpheus_verifiable_table::baseline::Limits;
use alpheus_verifiable_table::error::PlanError;
use alpheus_verifiable_table::label::Segment;
use alpheus_verifiable_table::messages::{
    MAX_COEFFICIENTS, MAX_REQUEST_BLOCKS, Request, Run, Weights,
};
use alpheus_verifiable_table::planner::Margin;
use num_bigint::BigUint;

/// Checks a function before it is prepared.
pub(super) fn check(shape: &Shape, function: &Function) -> Result<Margin, PlanError> {
    let Function { from, to, .. } = *function;
    if from >= to {
        return Err(PlanError::Rows { from, to, rows: to });
    }
    if function.columns().into_iter().any(|column| column.0 >= shape.columns) {
        return Err(PlanError::NotRegistered);
    }
    if to - from > MAX_REQUEST_BLOCKS {
        return Err(PlanError::Blocks { count: to - from, max: MAX_REQUEST_BLOCKS });
    }
    if matches!(function.weights(), Weights::Polynomial(c) if c.len() > MAX_COEFFICIENTS) {
        return Err(PlanError::Coefficients { max: MAX_COEFFICIENTS });
    }
    let limits = Limits::new(shape.set.ring().plain, shape.set.name(), modulus(), function.kind());
    let item = u128::from(shape.bound.unsigned_abs());
    let bound = if function.degree() == 1 { item } else { item * item };
    if let Statistic::Covariance(..) = function.of {
        // N·Σxy and Σx·Σy: N² products each.
        let weights = BigUint::from(to - from).pow(2) * 2_u32;
        return limits.check(&weights, Some(bound), |max| (max / 2_u32).sqrt());
    }
    let run = Run { segment: Segment([0; 16]), epoch: 0, from, to };
    let (kind, weights) = (function.kind(), function.weights().clone());
    limits.check_request(&Request { kind, runs: vec![run], weights }, bound)
}
