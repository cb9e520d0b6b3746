//! Answers to a query: which sums to request, which blocks to fetch, and the verified sums of
//! each group of rows.

use super::ask::{Answers, QueryNeeds, ask_all, batches, next};
use super::index::GroupKey;
use super::query_cost::QueryCost;
use super::remote::{Remote, rejected};
use super::sql::{Function, TableQuery};
use super::state::TableState;
use super::statistics::{decimal, moments, statistic};
use super::wire::SumResponse;
use alpheus_input::calendar::day_text;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_verifiable_table::error::PlanError;
use alpheus_verifiable_table::label::{Address, Column};
use alpheus_verifiable_table::layout::Moment;
use alpheus_verifiable_table::owner::{OpenBlock, Part, Plan, PolynomialPlan, WeightedPlan};
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
    remote: &'a Remote,
    /// Fetched, verified and decrypted blocks, with all columns that the query needs.
    blocks: BTreeMap<u64, OpenBlock>,
    spent: QueryCost,
}

/// A sum over one range of rows of one group.
struct RangeSum {
    group: usize,
    sum: Sum,
    /// Blocks that no sum before it fetches.
    fetched: Vec<(u64, Address)>,
}

/// What is summed, and how.
enum Sum {
    Moment(Moment, Plan),
    /// The number of the item, and its plan.
    Weighted(usize, WeightedPlan),
    Polynomial(usize, PolynomialPlan),
}

impl Sum {
    fn questions(&self) -> Vec<&Question> {
        match self {
            Self::Moment(_, plan) => plan.question().into_iter().collect(),
            Self::Weighted(_, plan) => plan.questions().iter().collect(),
            Self::Polynomial(_, plan) => plan.question().into_iter().collect(),
        }
    }

    fn parts(&self) -> &[Part] {
        match self {
            Self::Moment(_, plan) => plan.parts(),
            Self::Weighted(_, plan) => plan.parts(),
            Self::Polynomial(..) => &[],
        }
    }
}

/// The sums of one group of rows.
#[derive(Default)]
struct Totals {
    moments: BTreeMap<Moment, i128>,
    /// By the number of the item.
    others: BTreeMap<usize, BigInt>,
}

/// The columns to open of each block, for a whole query.
type Columns = BTreeMap<u64, BTreeSet<Column>>;

fn columns_of(sums: &[RangeSum]) -> Columns {
    let mut needed = Columns::new();
    for part in sums.iter().flat_map(|range| range.sum.parts()) {
        needed.entry(part.index).or_default().extend(&part.columns);
    }
    needed
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
    pub fn new(state: &'a TableState, remote: &'a Remote) -> Self {
        Self { state, remote, blocks: BTreeMap::new(), spent: QueryCost::default() }
    }

    /// What the answers so far have cost.
    #[must_use]
    pub fn spent(&self) -> &QueryCost {
        &self.spent
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
        self.blocks.clear();
        let mut sums = self.plan(query, groups.values())?;
        let columns = columns_of(&sums);
        self.divide_blocks(&mut sums);
        let needed = |range: RangeSum| {
            let sums = range.sum.questions().into_iter().map(|asked| asked.request().clone());
            let blocks = range.fetched.iter().map(|(_, address)| *address);
            (QueryNeeds { sums: sums.collect(), blocks: blocks.collect() }, range)
        };
        let sums = sums.into_iter().map(needed).map(|(needed, range)| (range, needed));
        let batches = batches(sums, self.state.owner.manifest());
        let mut totals: Vec<Totals> = groups.iter().map(|_| Totals::default()).collect();
        let server = (self.remote, self.state.owner.manifest());
        ask_all(server, batches, |sums, answers| {
            self.add_up(&sums, answers, &columns, &mut totals)
        })?;
        let each = groups.iter().zip(&totals);
        Ok(each.map(|((key, ranges), totals)| self.row(query, key, ranges, totals)).collect())
    }

    /// All sums of a query, in the order of its groups.
    fn plan<'r>(
        &self,
        query: &TableQuery,
        groups: impl Iterator<Item = &'r Vec<Range<u64>>>,
    ) -> Result<Vec<RangeSum>, Failure> {
        let owner = &self.state.owner;
        let all: BTreeSet<Moment> = query.items.iter().flat_map(|i| moments(&i.function)).collect();
        // A moment that the layout lacks is refused even for an empty table.
        if all.iter().any(|moment| owner.layout().term(*moment).is_none()) {
            return Err(refused(PlanError::NotRegistered));
        }
        let mut sums = Vec::new();
        let mut add = |group, sum| sums.push(RangeSum { group, sum, fetched: Vec::new() });
        for (group, ranges) in groups.enumerate() {
            for Range { start, end } in ranges {
                for moment in &all {
                    let plan = owner.plan(*moment, *start, *end).map_err(refused)?;
                    add(group, Sum::Moment(*moment, plan));
                }
            }
            for (at, item) in query.items.iter().enumerate() {
                if let Function::Weighted(x, weights) = &item.function {
                    for range in ranges {
                        add(group, Sum::Weighted(at, self.weighted(*x, range, weights)?));
                    }
                }
                if let Function::Polynomial(x, point) = item.function {
                    let plan = owner.plan_polynomial(x, point).map_err(refused)?;
                    add(group, Sum::Polynomial(at, plan));
                }
            }
        }
        Ok(sums)
    }

    fn weighted(
        &self,
        x: u16,
        range: &Range<u64>,
        weights: &[i64],
    ) -> Result<WeightedPlan, Failure> {
        let owner = &self.state.owner;
        owner.plan_weighted(Moment::Sum(x), range.start, range.end, weights).map_err(refused)
    }

    /// Has the first sum that needs a block fetch it.
    fn divide_blocks(&self, sums: &mut [RangeSum]) {
        let mut taken = BTreeSet::new();
        for range in sums {
            for part in range.sum.parts().iter().filter(|part| taken.insert(part.index)) {
                let address = self.state.owner.address(part.index);
                range.fetched.extend(address.map(|address| (part.index, address)));
            }
        }
    }

    /// Verifies, decrypts and adds up the answers to some sums.
    fn add_up(
        &mut self,
        sums: &[RangeSum],
        answers: Answers,
        columns: &Columns,
        totals: &mut [Totals],
    ) -> Result<(), Failure> {
        let (mut answered, mut blocks) = (answers.sums.into_iter(), answers.blocks.into_iter());
        for range in sums {
            let Some(totals) = totals.get_mut(range.group) else { continue };
            let began = Instant::now();
            for (index, _) in &range.fetched {
                let bytes = next(&mut blocks)?;
                self.spent.bytes += bytes.len() as u64;
                self.open(*index, columns, &bytes)?;
            }
            let mut opened = Vec::new();
            for question in range.sum.questions() {
                opened.push(self.verify(question, &next(&mut answered)?)?);
            }
            self.add(&range.sum, &opened, totals)?;
            self.spent.owner += began.elapsed();
        }
        Ok(())
    }

    /// Verifies one sum and decrypts it.
    fn verify(&mut self, question: &Question, said: &SumResponse) -> Result<DecryptedSum, Failure> {
        let server = Duration::from_micros(said.microseconds);
        self.spent.server = self.spent.server.saturating_add(server);
        self.spent.bytes += said.answer.len() as u64;
        let verified = self.state.owner.verify(question, &said.answer).map_err(rejected)?;
        Ok(self.state.owner.decrypt(&verified))
    }

    /// Verifies and decrypts a block, with all columns that the query needs.
    fn open(&mut self, index: u64, columns: &Columns, bytes: &[u8]) -> Result<(), Failure> {
        let columns: Vec<Column> = columns.get(&index).into_iter().flatten().copied().collect();
        let block = self.state.owner.open_block(index, &columns, bytes);
        self.blocks.insert(index, block.map_err(rejected)?);
        Ok(())
    }

    fn add(&self, sum: &Sum, opened: &[DecryptedSum], totals: &mut Totals) -> Result<(), Failure> {
        let (owner, open) = (&self.state.owner, |index| self.blocks.get(&index));
        match sum {
            Sum::Moment(moment, plan) => {
                let total = owner.total(plan, opened.first(), open).blame(Category::Io)?;
                *totals.moments.entry(*moment).or_default() += total;
            }
            Sum::Weighted(item, plan) => {
                let total = owner.weighted_total(plan, opened, open).blame(Category::Io)?;
                *totals.others.entry(*item).or_default() += total;
            }
            Sum::Polynomial(item, plan) => {
                let value = owner.polynomial_value(plan, opened.first()).blame(Category::Io)?;
                totals.others.insert(*item, value);
            }
        }
        Ok(())
    }

    /// A row of the answer.
    fn row(
        &self,
        query: &TableQuery,
        key: &GroupKey,
        ranges: &[Range<u64>],
        totals: &Totals,
    ) -> AnswerRow {
        let mut row = self.keys(query, key);
        for (at, item) in query.items.iter().enumerate() {
            let other = || totals.others.get(&at).cloned().unwrap_or_default();
            let value = match &item.function {
                Function::Rows => {
                    json!(ranges.iter().map(|range| range.end - range.start).sum::<u64>())
                }
                Function::Weighted(x, _) | Function::Polynomial(x, _) => {
                    decimal(&other(), self.state.schema.scale(*x)).into()
                }
                function => statistic(&self.state.schema, function, &totals.moments),
            };
            row.insert(item.alias.clone(), value);
        }
        row.insert("verified".into(), true.into());
        row
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

    /// Server work, answer sizes and margins, without a request.
    fn explain(
        &self,
        query: &TableQuery,
        groups: &BTreeMap<GroupKey, Vec<Range<u64>>>,
    ) -> Result<Vec<AnswerRow>, Failure> {
        let owner = &self.state.owner;
        let ring = owner.manifest().ring();
        let ranges = || groups.values().flatten();
        let needed = columns_of(&self.plan(query, groups.values())?);
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
