//! Properties: sums are exact.

use crate::properties::commit;
use crate::support::{Server, Store, ask, ends, fetch, total, upload};
use alpheus_verifiable_table::TableKey;
use alpheus_verifiable_table::error::{PlanError, RequestError};
use alpheus_verifiable_table::label::Order;
use alpheus_verifiable_table::layout::{ColumnDeclaration, Layout, LayoutError, Moment, Row};
use alpheus_verifiable_table::owner::{AppendError, CorrectError, Owner};
use alpheus_verifiable_table::parameters::Set;
use alpheus_verifiable_table::server::Sum;
use chacha20::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use num_bigint::BigInt;
use proptest::prelude::*;

/// Three columns: one wide, one signed with empty cells, one small with empty cells. All
/// pairs are registered.
fn layout() -> Layout {
    let column = |min, max, optional| ColumnDeclaration { min, max, optional, squares: true };
    let declared =
        vec![column(0, u32::MAX.into(), false), column(-40_000, 50_000, true), column(0, 9, true)];
    Layout::new(declared, &[(0, 1), (1, 2), (2, 0)]).unwrap()
}

fn rows(count: u64, rng: &mut ChaCha20Rng) -> Vec<Row> {
    let mut row = || {
        let word = rng.next_u64();
        let x = i64::from(u32::try_from(word & 0xffff_ffff).unwrap());
        let y = !(word >> 33).is_multiple_of(5);
        let z = !(word >> 40).is_multiple_of(3);
        let signed = i64::try_from((word >> 20) % 90_001).unwrap() - 40_000;
        let digit = i64::try_from((word >> 50) % 10).unwrap();
        vec![Some(x), y.then_some(signed), z.then_some(digit)]
    };
    (0..count).map(|_| row()).collect()
}

const MOMENTS: [Moment; 16] = [
    Moment::Count(0),
    Moment::Count(1),
    Moment::Sum(0),
    Moment::Sum(1),
    Moment::Square(0),
    Moment::Square(1),
    Moment::Square(2),
    Moment::PairCount(0, 1),
    Moment::PairCount(1, 2),
    Moment::PairCount(1, 0),
    Moment::PairSum(0, 1),
    Moment::PairSum(1, 2),
    Moment::PairSquare(0, 1),
    Moment::PairSquare(2, 1),
    Moment::PairProduct(0, 1),
    Moment::PairProduct(2, 1),
];

/// A moment of plain rows, by definition.
fn plain(moment: Moment, rows: &[Row]) -> i128 {
    let cell = |row: &Row, x: u16| row[usize::from(x)].map(i128::from);
    let one = |row: &Row| match moment {
        Moment::Count(x) => cell(row, x).map(|_| 1),
        Moment::Sum(x) => cell(row, x),
        Moment::Square(x) => cell(row, x).map(|x| x * x),
        Moment::PairCount(x, y) => cell(row, x).and(cell(row, y)).map(|_| 1),
        Moment::PairSum(x, y) => cell(row, y).and(cell(row, x)),
        Moment::PairSquare(x, y) => cell(row, y).and(cell(row, x)).map(|x| x * x),
        Moment::PairProduct(x, y) => Some(cell(row, x)? * cell(row, y)?),
    };
    rows.iter().filter_map(one).sum()
}

struct Table {
    key: TableKey,
    owner: Owner,
    server: Server,
    store: Store,
    rng: ChaCha20Rng,
    rows: Vec<Row>,
}

impl Table {
    fn new(seed: u64, order: u8) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (key, mut store) = (TableKey::random(&mut rng), Store::new());
        let order = Order::new(order).unwrap();
        let step = Owner::create(&key, Set::X128, order, layout(), &mut rng);
        let owner = commit(step, &mut store);
        let server = Server::new(owner.manifest());
        Self { key, owner, server, store, rng, rows: Vec::new() }
    }

    fn append(&mut self, count: u64) {
        let more = rows(count, &mut self.rng);
        let Self { owner, store, server, rng, .. } = self;
        upload(owner, store, server, &more, rng).unwrap();
        self.rows.extend(more);
    }

    fn restart(&mut self) {
        self.owner = Owner::open(&self.key, &self.store, &mut self.rng).unwrap();
    }

    fn correct(&mut self, row: u64) {
        let cells = rows(1, &mut self.rng).pop().unwrap();
        let n = self.owner.block_rows();
        let sealed = row < self.owner.blocks() * n;
        let block = sealed.then(|| fetch(&self.owner, &self.server, row / n).unwrap());
        let step = self.owner.correct(row, cells.clone(), block.as_ref()).unwrap();
        commit(step, &mut self.store);
        self.rows[usize::try_from(row).unwrap()] = cells;
    }

    fn rewrite(&mut self, index: u64) {
        let block = fetch(&self.owner, &self.server, index).unwrap();
        let step = self.owner.rewrite(&block, &mut self.rng).unwrap();
        let sealed = commit(step, &mut self.store);
        let address = self.server.store(sealed.as_bytes()).unwrap();
        commit(self.owner.acknowledge(&address).unwrap(), &mut self.store);
    }

    fn check(&self, from: u64, to: u64) {
        let rows = &self.rows[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()];
        for moment in MOMENTS {
            let sum = total(&self.owner, &self.server, moment, from, to).unwrap();
            assert_eq!(sum, plain(moment, rows), "{moment:?} over {from} to {to}");
        }
    }
}

/// Appends of all sizes, restarts, corrections in blocks and in the tail, and a rewritten
/// block: sums stay exact over ranges with every kind of end.
#[test]
fn sums_are_exact_through_a_tables_life() {
    let mut table = Table::new(1, 2);
    for count in [0, 1, 8191, 100, 9000] {
        table.append(count);
    }
    table.restart();
    table.append(8000);
    assert_eq!((table.owner.blocks(), table.owner.tail_rows()), (3, 716));
    for (from, to) in [(0, 0), (0, 25_292), (8192, 16_384), (5, 6), (100, 8000), (8000, 8400)] {
        table.check(from, to);
    }
    for row in [0, 8191, 10_000, 24_576, 25_291] {
        table.correct(row);
    }
    table.check(0, 25_292);
    let stale = fetch(&table.owner, &table.server, 1).unwrap();
    table.rewrite(1);
    let row = table.rows[10_000].clone();
    let refused = table.owner.correct(10_000, row, Some(&stale)).err();
    assert_eq!(refused, Some(CorrectError::NotOpen(1)), "the block was rewritten since");
    table.correct(10_001);
    table.restart();
    assert_eq!(table.owner.runs().len(), 3);
    assert_eq!(table.owner.corrected_rows().collect::<Vec<_>>(), [0, 8191, 10_001]);
    for (from, to) in [(0, 25_292), (8192, 16_384), (16_000, 25_000), (24_576, 25_292)] {
        table.check(from, to);
    }
}

/// The largest items of the layout, in every slot.
#[test]
fn extreme_items_are_exact() {
    let mut table = Table::new(2, 1);
    let extreme: Row = vec![Some(u32::MAX.into()), Some(-40_000), Some(9)];
    let all = vec![extreme; 2 * 8192];
    let Table { owner, store, server, rng, .. } = &mut table;
    upload(owner, store, server, &all, rng).unwrap();
    table.rows = all;
    table.check(0, 2 * 8192);
}

/// Weighted sums and polynomial values, with corrections, a tail and two starts.
#[test]
fn weights_and_polynomials_are_exact() {
    let mut table = Table::new(3, 3);
    table.append(9000);
    table.restart();
    table.append(8000);
    table.correct(12);
    table.correct(16_900);
    let Table { owner, server, rows, .. } = &table;
    for (from, to) in [(0, 17_000), (8000, 16_500), (16_384, 17_000), (10, 20)] {
        let coefficients = [-7, 11, 3];
        let plan = owner.plan_weighted(Moment::Sum(1), from, to, &coefficients).unwrap();
        let asked = plan.questions().iter().map(|question| ask(owner, server, question).unwrap());
        let answers: Vec<_> = asked.collect();
        let blocks: Vec<_> =
            plan.parts().iter().map(|p| fetch(owner, server, p.index).unwrap()).collect();
        let open = |index| blocks.iter().find(|block| block.index() == index);
        let found = owner.weighted_total(&plan, &answers, open).unwrap();
        let weight = |r: i128| 3 * r * r + 11 * r - 7;
        let numbered = (from..to).map(|r| (i128::from(r), &rows[usize::try_from(r).unwrap()]));
        let expected: i128 =
            numbered.map(|(r, row)| weight(r) * i128::from(row[1].unwrap_or(0))).sum();
        assert_eq!(found, BigInt::from(expected), "{from} to {to}");
    }
    let t = BigInt::from(Set::X128.ring().plain_modulus());
    for x in [0_u64, 1, 2, 1 << 40] {
        let plan = owner.plan_polynomial(2, x).unwrap();
        let opened = plan.question().map(|question| ask(owner, server, question).unwrap());
        let found = owner.polynomial_value(&plan, opened.as_ref()).unwrap();
        let horner = |sum: BigInt, row: &Row| (sum * x + row[2].unwrap_or(0)) % &t;
        let expected = rows.iter().rev().fold(BigInt::ZERO, horner);
        assert_eq!((found - expected) % &t, BigInt::ZERO, "at {x}");
    }
}

#[test]
fn invalid_rows_layouts_and_plans_are_rejected_with_a_remedy() {
    let mut table = Table::new(4, 1);
    let bad = |cells: Row| (vec![vec![Some(1), None, None], cells], 1);
    let cases = [
        (bad(vec![Some(-1), None, None]), "row 1, column 0: the value is out of the bounds 0 to"),
        (bad(vec![Some(1), Some(50_001), None]), "column 1: the value is out of the bounds -40000"),
        (bad(vec![None, None, None]), "row 1, column 0: the cell is empty"),
        (bad(vec![Some(1)]), "row 1 has 1 cells, but the table has 3 columns"),
    ];
    for ((rows, at), message) in cases {
        let error: AppendError = table.owner.append(&rows, &mut table.rng).err().unwrap();
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(table.owner.rows(), 0, "bad row {at} keeps out the others too");
    }
    let beyond = table.owner.plan(Moment::Sum(0), 0, 1).unwrap_err();
    assert!(matches!(beyond, PlanError::Rows { rows: 0, .. }));
    let column = ColumnDeclaration { min: 0, max: 9, optional: false, squares: false };
    let plain = Layout::new(vec![column.clone(), column], &[]).unwrap();
    assert_eq!(plain.term(Moment::Square(0)), None);
    assert_eq!(plain.term(Moment::PairProduct(0, 1)), None);
    let wide = ColumnDeclaration { min: 0, max: 1 << 50, optional: false, squares: false };
    assert_eq!(Layout::new(vec![wide], &[]), Err(LayoutError::Bounds(0)));
    table.append(8192);
    let row = vec![Some(0), None, None];
    assert!(matches!(table.owner.correct(0, row.clone(), None), Err(CorrectError::NotOpen(0))));
    assert!(matches!(table.owner.correct(8192, row, None), Err(CorrectError::NoRow { .. })));
    let plan = table.owner.plan(Moment::Sum(0), 0, 8192).unwrap();
    assert!(table.owner.total(&plan, None, |_| None).is_err(), "the answer is missing");
    let blocks = ends(&table.owner, &table.server, &plan).unwrap();
    assert!(blocks.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_range_is_exact(ends: [u16; 2]) {
        thread_local! {
            static TABLE: Table = {
                let mut table = Table::new(5, 1);
                table.append(20_000);
                table.correct(9000);
                table
            };
        }
        let [a, b] = ends.map(|end| u64::from(end) % 20_001);
        TABLE.with(|table| table.check(a.min(b), a.max(b)));
    }
}

/// So a server need not read the rest of a block.
#[test]
fn a_sum_needs_only_the_parts_that_it_names() {
    let mut table = Table::new(11, 1);
    table.append(8192);
    let (owner, manifest) = (&table.owner, &table.server.manifest);
    let whole = table.server.blocks.values().next().unwrap().as_bytes();
    for moment in [Moment::Sum(0), Moment::Square(0), Moment::PairProduct(0, 1)] {
        let plan = owner.plan(moment, 0, 8192).unwrap();
        let request = plan.question().unwrap().request();
        let mut parts: Vec<&[u8]> =
            manifest.parts(request.kind).unwrap().into_iter().map(|at| &whole[at]).collect();
        assert!(parts.iter().map(|part| part.len()).sum::<usize>() < whole.len() / 3);
        let answer = |parts: &[&[u8]]| -> Result<Vec<u8>, RequestError> {
            let mut sum = Sum::new(manifest, request)?;
            sum.add_parts(0, parts)?;
            Ok(sum.answer().to_bytes(manifest.ring()))
        };
        let bytes = answer(&parts).unwrap();
        assert_eq!(bytes, table.server.answer(request).unwrap());
        let verified = owner.verify(plan.question().unwrap(), &bytes).unwrap();
        let total = owner.total(&plan, Some(&owner.decrypt(&verified)), |_| None);
        assert_eq!(total.unwrap(), plain(moment, &table.rows));
        // A part is missing or cut short.
        let last = parts.pop().unwrap();
        assert_eq!(answer(&parts), Err(RequestError::Damaged(0)));
        parts.push(&last[1..]);
        assert_eq!(answer(&parts), Err(RequestError::Damaged(0)));
        parts[0] = &parts[0][..100];
        assert_eq!(answer(&parts), Err(RequestError::Damaged(0)));
    }
}
