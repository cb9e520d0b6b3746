//! Answers to a query: which sums to request, which blocks to fetch, and statistics of the
//! verified sums, in exact arithmetic, rounded once.

use super::index::GroupKey;
use super::remote::Remote;
use super::sql::{Function, TableQuery, day_text};
use super::state::TableState;
use alpheus_encrypted_stream::decode::Rational;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_verifiable_table::error::{PlanError, VerifyError};
use alpheus_verifiable_table::label::Column;
use alpheus_verifiable_table::layout::Moment;
use alpheus_verifiable_table::owner::{OpenBlock, Part};
use alpheus_verifiable_table::planner::Question;
use alpheus_verifiable_table::verifier::DecryptedSum;
use num_bigint::BigInt;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

/// A row of an answer.
pub type AnswerRow = Map<String, Value>;

/// Milliseconds of a day.
const DAY_MILLISECONDS: i64 = 86_400_000;

/// Runs queries of an owner.
pub struct QueryRunner<'a> {
    state: &'a TableState,
    remote: &'a mut Remote,
    /// Fetched, verified and decrypted blocks, with all columns that the query needs.
    blocks: BTreeMap<u64, OpenBlock>,
    /// Time that the owner has spent.
    owner_time: Duration,
}

/// The sums that a function needs.
fn moments(function: &Function) -> Vec<Moment> {
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

/// The cost of a query, for EXPLAIN.
#[derive(Default)]
struct Cost {
    questions: u64,
    blocks: u64,
    bytes: u64,
    noise: Option<f64>,
    range: Option<f64>,
}

impl Cost {
    fn add(&mut self, question: &Question, length: usize) {
        self.questions += 1;
        self.blocks += question.request().blocks();
        self.bytes += length as u64;
        let min = |old: Option<f64>, new: f64| Some(old.map_or(new, |old| old.min(new)));
        self.noise = min(self.noise, question.margin().noise_bits);
        if let Some(bits) = question.margin().range_bits {
            self.range = min(self.range, bits);
        }
    }
}

impl<'a> QueryRunner<'a> {
    /// Queries the server behind `remote`.
    pub fn new(state: &'a TableState, remote: &'a mut Remote) -> Self {
        Self { state, remote, blocks: BTreeMap::new(), owner_time: Duration::ZERO }
    }

    /// All rows of the answer, ordered by day and groups.
    ///
    /// # Errors
    /// The planner refuses, the server does not answer, or its answer is rejected.
    pub fn answer(&mut self, query: &TableQuery) -> Result<Vec<AnswerRow>, Failure> {
        let mut groups = self.state.index.select(&query.rows);
        if !query.rows.by_day && query.rows.by_groups.is_empty() && groups.is_empty() {
            groups.insert((None, Vec::new()), Vec::new());
        }
        if query.explain {
            return self.explain(query, &groups);
        }
        let needed = self.needed(query, groups.values().flatten())?;
        let mut rows = Vec::new();
        for (key, ranges) in &groups {
            let before = (self.remote.bytes, self.remote.server_time, self.owner_time);
            let mut row = self.keys(query, key);
            self.fill(query, ranges, &needed, &mut row)?;
            let since = |all: Duration, then: Duration| (all - then).as_secs_f64() * 1000.0;
            row.insert("verified".into(), true.into());
            row.insert("server_ms".into(), json!(since(self.remote.server_time, before.1)));
            row.insert("owner_ms".into(), json!(since(self.owner_time, before.2)));
            row.insert("bytes".into(), (self.remote.bytes - before.0).into());
            rows.push(row);
        }
        Ok(rows)
    }

    fn keys(&self, query: &TableQuery, (day, values): &GroupKey) -> AnswerRow {
        let mut row = AnswerRow::new();
        if let Some(day) = day {
            row.insert("window_start".into(), (day * DAY_MILLISECONDS).into());
            row.insert("day".into(), day_text(*day).into());
        }
        for (at, value) in query.rows.by_groups.iter().zip(values) {
            let name = self.state.schema.groups.get(*at).cloned().unwrap_or_default();
            row.insert(name, value.clone().into());
        }
        row
    }

    /// The columns to fetch of each block, for the whole query.
    fn needed<'r>(
        &self,
        query: &TableQuery,
        ranges: impl Iterator<Item = &'r Range<u64>>,
    ) -> Result<BTreeMap<u64, BTreeSet<Column>>, Failure> {
        let mut needed: BTreeMap<u64, BTreeSet<Column>> = BTreeMap::new();
        let mut add = |parts: &[Part]| {
            for part in parts {
                needed.entry(part.index).or_default().extend(&part.columns);
            }
        };
        let all: BTreeSet<Moment> = query.items.iter().flat_map(|i| moments(&i.function)).collect();
        // A moment that the layout lacks is refused even for an empty table.
        if all.iter().any(|moment| self.state.owner.layout().term(*moment).is_none()) {
            return Err(refused(PlanError::NotRegistered));
        }
        for range in ranges {
            for moment in &all {
                let plan = self.state.owner.plan(*moment, range.start, range.end);
                add(plan.map_err(refused)?.parts());
            }
            for item in &query.items {
                if let Function::Weighted(x, weights) = &item.function {
                    let plan = self.weighted(*x, range, weights)?;
                    add(plan.parts());
                }
            }
        }
        Ok(needed)
    }

    fn weighted(
        &self,
        x: u16,
        range: &Range<u64>,
        weights: &[i64],
    ) -> Result<alpheus_verifiable_table::owner::WeightedPlan, Failure> {
        let owner = &self.state.owner;
        owner.plan_weighted(Moment::Sum(x), range.start, range.end, weights).map_err(refused)
    }

    fn fill(
        &mut self,
        query: &TableQuery,
        ranges: &[Range<u64>],
        needed: &BTreeMap<u64, BTreeSet<Column>>,
        row: &mut AnswerRow,
    ) -> Result<(), Failure> {
        let all: BTreeSet<Moment> = query.items.iter().flat_map(|i| moments(&i.function)).collect();
        let mut sums = BTreeMap::new();
        for moment in all {
            let mut total = 0;
            for range in ranges {
                total += self.total(moment, range, needed)?;
            }
            sums.insert(moment, total);
        }
        for item in &query.items {
            let value = match &item.function {
                Function::Rows => {
                    json!(ranges.iter().map(|range| range.end - range.start).sum::<u64>())
                }
                Function::Weighted(x, weights) => {
                    let mut total = BigInt::ZERO;
                    for range in ranges {
                        total += self.weighted_total(*x, range, weights, needed)?;
                    }
                    decimal(&total, self.state.schema.scale(*x)).into()
                }
                Function::Polynomial(x, at) => {
                    decimal(&self.polynomial(*x, *at)?, self.state.schema.scale(*x)).into()
                }
                function => self.statistic(function, &sums),
            };
            row.insert(item.alias.clone(), value);
        }
        Ok(())
    }

    /// A sum over rows.
    fn total(
        &mut self,
        moment: Moment,
        range: &Range<u64>,
        needed: &BTreeMap<u64, BTreeSet<Column>>,
    ) -> Result<i128, Failure> {
        let plan = self.state.owner.plan(moment, range.start, range.end).map_err(refused)?;
        let opened = plan.question().map(|question| self.ask(question)).transpose()?;
        self.open(plan.parts(), needed)?;
        let began = Instant::now();
        let open = |index| self.blocks.get(&index);
        let total = self.state.owner.total(&plan, opened.as_ref(), open);
        self.owner_time += began.elapsed();
        total.blame(Category::Io)
    }

    fn weighted_total(
        &mut self,
        x: u16,
        range: &Range<u64>,
        weights: &[i64],
        needed: &BTreeMap<u64, BTreeSet<Column>>,
    ) -> Result<BigInt, Failure> {
        let plan = self.weighted(x, range, weights)?;
        let asked = plan.questions().iter().map(|question| self.ask(question));
        let answers: Vec<DecryptedSum> = asked.collect::<Result<_, _>>()?;
        self.open(plan.parts(), needed)?;
        let open = |index| self.blocks.get(&index);
        self.state.owner.weighted_total(&plan, &answers, open).blame(Category::Io)
    }

    fn polynomial(&mut self, x: u16, at: u64) -> Result<BigInt, Failure> {
        let plan = self.state.owner.plan_polynomial(x, at).map_err(refused)?;
        let opened = plan.question().map(|question| self.ask(question)).transpose()?;
        let began = Instant::now();
        let value = self.state.owner.polynomial_value(&plan, opened.as_ref());
        self.owner_time += began.elapsed();
        value.blame(Category::Io)
    }

    /// Requests one sum, verifies it and decrypts it.
    fn ask(&mut self, question: &Question) -> Result<DecryptedSum, Failure> {
        let answer = self.remote.sum(question.request())?;
        let began = Instant::now();
        let verified = self.state.owner.verify(question, &answer).map_err(rejected)?;
        let opened = self.state.owner.decrypt(&verified);
        self.owner_time += began.elapsed();
        Ok(opened)
    }

    /// Fetches, verifies and decrypts blocks that are missing, with all needed columns.
    fn open(
        &mut self,
        parts: &[Part],
        needed: &BTreeMap<u64, BTreeSet<Column>>,
    ) -> Result<(), Failure> {
        for part in parts {
            if self.blocks.get(&part.index).is_some_and(|block| block.has(&part.columns)) {
                continue;
            }
            let Some(address) = self.state.owner.address(part.index) else { continue };
            let bytes = self.remote.fetch(address)?;
            let began = Instant::now();
            let columns = needed
                .get(&part.index)
                .map_or_else(|| part.columns.clone(), |columns| columns.iter().copied().collect());
            let block = self.state.owner.open_block(part.index, &columns, &bytes);
            self.blocks.insert(part.index, block.map_err(rejected)?);
            self.owner_time += began.elapsed();
        }
        Ok(())
    }

    /// A statistic of its sums, in natural units; null if there are no values.
    fn statistic(&self, function: &Function, sums: &BTreeMap<Moment, i128>) -> Value {
        let sum = |moment| BigInt::from(sums.get(&moment).copied().unwrap_or(0));
        let places = |x| i32::from(self.state.schema.scale(x));
        let number = |value: Option<Rational>, exponent: i32| {
            json!(value.map(|value| value.times_ten_to(exponent).to_f64()))
        };
        match *function {
            Function::Count(x) => sums.get(&Moment::Count(x)).map_or(Value::Null, |n| {
                u64::try_from(*n).map_or_else(|_| n.to_string().into(), Value::from)
            }),
            Function::Sum(x) if sum(Moment::Count(x)) == BigInt::ZERO => Value::Null,
            Function::Sum(x) => decimal(&sum(Moment::Sum(x)), self.state.schema.scale(x)).into(),
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
                    Function::Slope(..) => {
                        number(Rational::new(above, below), places(x) - places(y))
                    }
                    _ => number(Rational::new(&sy * &sxx - &sx * &sxy, below), -places(y)),
                }
            }
            Function::Rows | Function::Weighted(..) | Function::Polynomial(..) => Value::Null,
        }
    }

    /// Server work, answer sizes and margins, without a request.
    fn explain(
        &self,
        query: &TableQuery,
        groups: &BTreeMap<GroupKey, Vec<Range<u64>>>,
    ) -> Result<Vec<AnswerRow>, Failure> {
        let owner = &self.state.owner;
        let ring = owner.manifest().ring();
        let ranges = || groups.values().flatten();
        let needed = self.needed(query, ranges())?;
        let mut rows = Vec::new();
        for item in &query.items {
            let mut cost = Cost::default();
            let mut add = |question: &Question| {
                let length = alpheus_verifiable_table::messages::Answer::length;
                cost.add(question, length(ring, question.request().kind));
            };
            for range in ranges() {
                for moment in moments(&item.function) {
                    let plan = owner.plan(moment, range.start, range.end).map_err(refused)?;
                    plan.question().into_iter().for_each(&mut add);
                }
                if let Function::Weighted(x, weights) = &item.function {
                    self.weighted(*x, range, weights)?.questions().iter().for_each(&mut add);
                }
            }
            if let Function::Polynomial(x, at) = item.function {
                let plan = owner.plan_polynomial(x, at).map_err(refused)?;
                plan.question().into_iter().for_each(&mut add);
            }
            rows.push(explained(&item.alias, &cost));
        }
        let mut fetched = explained("blocks at the ends", &Cost::default());
        let bytes = needed.len() as u64 * owner.manifest().block_length() as u64;
        fetched.insert("blocks".into(), needed.len().into());
        fetched.insert("answer_bytes".into(), bytes.into());
        rows.push(fetched);
        Ok(rows)
    }
}

fn explained(part: &str, cost: &Cost) -> AnswerRow {
    let bits = |bits: Option<f64>| bits.map_or(Value::Null, |bits| format!("{bits:.1}").into());
    let mut row = AnswerRow::new();
    row.insert("part".into(), part.into());
    row.insert("questions".into(), cost.questions.into());
    row.insert("blocks".into(), cost.blocks.into());
    row.insert("answer_bytes".into(), cost.bytes.into());
    row.insert("noise_margin_bits".into(), bits(cost.noise));
    row.insert("range_margin_bits".into(), bits(cost.range));
    row
}

fn refused(refusal: PlanError) -> Failure {
    Failure::new(Category::Refused, refusal)
}

/// The one error for every wrong answer.
pub fn rejected(rejected: VerifyError) -> Failure {
    Failure::new(Category::Check, rejected)
}

/// A scaled integer of any size, as a decimal.
fn decimal(scaled: &BigInt, scale: u8) -> String {
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
