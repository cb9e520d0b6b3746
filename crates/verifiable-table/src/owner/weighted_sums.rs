//! Weighted sums and polynomials: the paper's sections 7 and 6.

use super::{OpenBlock, Owner, Part, Plan, Version};
use crate::error::PlanError;
use crate::label::Kind;
use crate::layout::{Moment, Row, Term};
use crate::messages::{Request, Weights};
use crate::owner::TotalError;
use crate::planner::{self, Question};
use crate::verifier::DecryptedSum;
use num_bigint::{BigInt, BigUint};
use std::ops::Range;

/// The parts of Σ w(r)·x_r over rows r, with w(r) = Σ c_k·r^k.
#[derive(Debug)]
pub struct WeightedPlan {
    /// The rows, and the blocks to fetch at the ends.
    rows: Plan,
    kind: Kind,
    coefficients: Vec<i64>,
    /// Σ_i i^j·x_{n·i + s} for each power j.
    powers: Vec<Question>,
}

impl WeightedPlan {
    /// The questions, one for each power of the block number. Empty if the range has no
    /// whole block.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.powers
    }

    /// The blocks to fetch and open.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        self.rows.parts()
    }
}

/// The parts of the value at x of the polynomial Σ_r a_r·x^r, modulo t.
#[derive(Debug)]
pub struct PolynomialPlan {
    kind: Kind,
    x: u64,
    whole: Option<Question>,
    version: Version,
}

impl PolynomialPlan {
    /// The question over all blocks. `None` if no block is full.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        self.whole.as_ref()
    }
}

impl Owner {
    /// Plans a weighted sum of one column. The weight of a row is a polynomial in its number,
    /// lowest coefficient first. Verifying takes constant time if the degree is below the
    /// table's order.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn plan_weighted(
        &self,
        moment: Moment,
        from: u64,
        to: u64,
        coefficients: &[i64],
    ) -> Result<WeightedPlan, PlanError> {
        let Some(Term::Sum(kind @ Kind::Column(_))) = self.layout.term(moment) else {
            return Err(PlanError::NotRegistered);
        };
        let rows = self.plan_term(Term::Sum(kind), from, to)?;
        let mut powers = Vec::new();
        if let Some(question) = rows.question() {
            for j in 0..coefficients.len() {
                let mut weight = vec![0; j + 1];
                weight[j] = 1;
                let (runs, weights) =
                    (question.request().runs.clone(), Weights::Polynomial(weight));
                let request = Request { kind, runs, weights };
                powers.push(planner::plan(self.manifest.set, request, self.layout.bound(kind))?);
            }
        }
        Ok(WeightedPlan { rows, kind, coefficients: coefficients.to_vec(), powers })
    }

    /// Adds up a weighted sum, exactly.
    ///
    /// # Errors
    /// [`TotalError`].
    pub fn weighted_total<'a>(
        &self,
        plan: &WeightedPlan,
        answers: &[DecryptedSum],
        open: impl Fn(u64) -> Option<&'a OpenBlock>,
    ) -> Result<BigInt, TotalError> {
        self.check_version(plan.rows.version)?;
        let (n, weight) = (self.block_rows(), |row: u64| value(&plan.coefficients, row));
        let mut total = BigInt::ZERO;
        for (j, question) in plan.powers.iter().enumerate() {
            let opened = answers.get(j).filter(|opened| opened.request == *question.request());
            for (slot, sum) in opened.ok_or(TotalError::MissingAnswer)?.slots.iter().enumerate() {
                total += sum * slot_weight(&plan.coefficients, j, n, slot as u64);
            }
        }
        let Kind::Column(column) = plan.kind else { return Err(TotalError::MissingAnswer) };
        for Part { index, slots, .. } in plan.rows.parts() {
            let block = open(*index).filter(|block| self.is_current_block(block, *index));
            let block = block.ok_or(TotalError::MissingBlock(*index))?;
            for slot in Range::clone(slots) {
                let item = block.item(column, slot).ok_or(TotalError::MissingBlock(*index))?;
                total += weight(index * n + slot as u64) * item;
            }
        }
        let of = |row: &Row| self.layout.row_value(plan.kind, row);
        let (from, to) = (plan.rows.from, plan.rows.to);
        let first = from.max(self.blocks() * n);
        for (row, cells) in (first..).zip(self.tail_between(from, to)) {
            total += weight(row) * of(cells);
        }
        for (row, (old, new)) in self.exceptions.range(from..to) {
            total += weight(*row) * (of(new) - of(old));
        }
        Ok(total)
    }

    /// Plans the value at x of the polynomial whose coefficients are a column. Row 0 is the
    /// constant coefficient.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn plan_polynomial(&self, column: u16, x: u64) -> Result<PolynomialPlan, PlanError> {
        let Some(Term::Sum(kind)) = self.layout.term(Moment::Sum(column)) else {
            return Err(PlanError::NotRegistered);
        };
        let mut plan = PolynomialPlan { kind, x, whole: None, version: self.version() };
        if self.blocks() > 0 {
            let runs = self.runs_between(0, self.blocks());
            let request = Request { kind, runs, weights: Weights::Powers(x) };
            let bound = self.layout.bound(kind);
            plan.whole = Some(planner::plan(self.manifest.set, request, bound)?);
        }
        Ok(plan)
    }

    /// The value modulo t, centred: the integer itself if it is smaller than t/2.
    ///
    /// # Errors
    /// [`TotalError::MissingAnswer`], [`TotalError::Stale`].
    pub fn polynomial_value(
        &self,
        plan: &PolynomialPlan,
        whole: Option<&DecryptedSum>,
    ) -> Result<BigInt, TotalError> {
        self.check_version(plan.version)?;
        let n = self.block_rows();
        let modulus = self.keys.ring.plain_modulus();
        let (t, mut total) = (BigInt::from(modulus), BigInt::ZERO);
        if let Some(question) = &plan.whole {
            let opened = whole.filter(|opened| opened.request == *question.request());
            total = horner(&opened.ok_or(TotalError::MissingAnswer)?.slots, plan.x, modulus);
        }
        let power =
            |row: u64| BigInt::from(BigUint::from(plan.x).modpow(&row.into(), t.magnitude()));
        let of = |row: &Row| self.layout.row_value(plan.kind, row);
        let mut at = power(self.blocks() * n);
        for row in &self.tail {
            total += &at * of(row);
            at = at * plan.x % &t;
        }
        for (row, (old, new)) in &self.exceptions {
            total += power(*row) * (of(new) - of(old));
        }
        let half: BigInt = &t / 2;
        let total: BigInt = ((total + &half) % &t + &t) % &t;
        Ok(total - half)
    }
}

/// Σ slots·x^s modulo t.
pub(crate) fn horner(slots: &[i128], x: u64, t: u128) -> BigInt {
    let (x, t) = (BigInt::from(x), BigInt::from(t));
    slots.iter().rev().fold(BigInt::ZERO, |sum, slot| (sum * &x + slot) % &t)
}

/// Σ c_k·r^k.
fn value(coefficients: &[i64], row: u64) -> BigInt {
    coefficients.iter().rev().fold(BigInt::ZERO, |sum, c| sum * row + *c)
}

/// The factor of i^j in w(n·i + s): Σ_k c_k·C(k, j)·n^j·s^(k−j).
fn slot_weight(coefficients: &[i64], j: usize, n: u64, slot: u64) -> BigInt {
    let mut sum = BigInt::ZERO;
    for (k, c) in coefficients.iter().enumerate().skip(j).rev() {
        // C(k, j), by Horner from the highest k.
        let choose = (0..j).fold(BigInt::from(1), |c, i| c * (k - i) / (i + 1));
        sum = sum * slot + choose * *c;
    }
    let power = u32::try_from(j).unwrap_or(u32::MAX);
    sum * BigInt::from(n).pow(power)
}
