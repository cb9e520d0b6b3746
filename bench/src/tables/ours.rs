//! Our tables (mode A): what each part takes, what checking adds, bytes, and curves.

use super::paper::{Row, Security};
use super::rows::Bench;
use crate::measure::Effort;
use crate::report::{Figure, Goal, Series};
use alpheus_verifiable_table::label::{Column, DataSet};
use alpheus_verifiable_table::measure::{Part, Parts};
use alpheus_verifiable_table::messages::Manifest;
use alpheus_verifiable_table::parameters::Set;
use std::cell::RefCell;

/// Parts, in the order in which they are done, the paper's row, and what they may take in
/// the default set, in microseconds. An answer's components are unpacked before they are
/// verified.
struct Work(&'static str, &'static [Part], Option<Row>, Option<f64>);

const WORK: &[Work] = &[
    Work(
        "ProbGen: encrypt and tag a column",
        &[Part::Encrypt, Part::Tag],
        Some(Row::ProbGen),
        Some(600.0),
    ),
    Work("ProbGen: tag a column and its square", &[Part::Tags(1)], None, Some(100.0)),
    Work("Add", &[Part::Add, Part::AddTag], Some(Row::Add), Some(60.0)),
    Work("ConstMult", &[Part::Scale, Part::AddTag], Some(Row::ConstMult), Some(60.0)),
    Work("Mult, into a sum", &[Part::AddProduct, Part::AddTag], Some(Row::Mult), Some(130.0)),
    Work(
        "Verify and decrypt, degree 1",
        &[Part::Unpack, Part::Unpack, Part::Verify(1 << 10), Part::Decrypt],
        None,
        None,
    ),
    Work(
        "Verify and decrypt, degree 2",
        &[
            Part::Unpack,
            Part::Unpack,
            Part::Unpack,
            Part::VerifyProduct(1 << 10),
            Part::DecryptProduct,
        ],
        Some(Row::Verify),
        Some(350.0),
    ),
    Work("Verify over 1,000 runs, as after 1,000 starts", &[Part::VerifyRuns(1000)], None, None),
    Work(
        "a stored block's ciphertext, unpacked and expanded",
        &[Part::Unpack, Part::Expand],
        None,
        None,
    ),
];

/// Rows of a table whose bytes are counted, and the degree of a polynomial.
const MILLION: u64 = 1_000_000;

/// What checking may add, in per cent.
const SERVER: Option<f64> = Some(3.0);
const OWNER: Option<f64> = Some(20.0);

/// All figures of a set.
pub(super) fn figures(set: Set, effort: Effort) -> Vec<Figure> {
    let mut parts = Parts::new(set);
    let products = parts.supports_products();
    let mut run = |part| parts.run(part);
    let bench = Bench {
        group: group(set),
        effort,
        slots: set.ring().degree() as f64,
        security: Security::of(set),
        run: RefCell::new(&mut run),
    };
    let mut figures = Vec::new();
    // No planner lets a product through that does not decrypt.
    let borne = |Work(_, all, ..): &&Work| products || !all.iter().any(Part::of_products);
    for Work(name, all, paper, goal) in WORK.iter().filter(borne) {
        let goal = goal.filter(|_| set == Set::X128).map(Goal::AtMost);
        let mut rows = bench.rows(name, all, *paper).into_iter();
        figures.extend(rows.next().map(|figure| goal.into_iter().fold(figure, Figure::with_goal)));
        figures.extend(rows);
    }
    figures.extend(overheads(&bench));
    if products {
        figures.extend(overheads_of_products(&bench));
    }
    figures.extend(polynomial(&bench, set));
    figures.push(uploaded(set));
    figures
}

/// The same work unchecked is the floor.
fn overheads(bench: &Bench<'_, Part>) -> Vec<Figure> {
    let sum = [Part::Unpack, Part::Expand, Part::Add];
    let sealing = [Part::Encrypt, Part::Pack];
    let opening = [Part::Unpack, Part::Unpack, Part::Decrypt];
    let mut figures = [
        bench.overhead("server, sum", &sum, &[Part::AddTag], SERVER),
        bench.overhead("owner, sealing a column", &sealing, &[Part::Tag], OWNER),
        bench.overhead("owner, opening a sum", &opening, &[Part::Verify(1 << 10)], OWNER),
    ]
    .concat();
    let compared = bench
        .effort
        .compare(|| bench.all(&[Part::Verify(1)]), || bench.all(&[Part::Verify(MILLION)]));
    let name = "Verify at 10^6 blocks beside one block (figure 1)".to_owned();
    let figure = Figure::compared(bench.group, name, "ns", compared);
    figures.push(figure.with_goal(Goal::RatioAtMost(1.1)));
    figures
}

/// The same where products are: unchecked, an owner makes none when sealing.
fn overheads_of_products(bench: &Bench<'_, Part>) -> Vec<Figure> {
    let product = [Part::Unpack, Part::Expand, Part::AddProduct];
    let opening = [Part::Unpack, Part::Unpack, Part::Unpack, Part::DecryptProduct];
    [
        bench.overhead("server, sum of products", &product, &[Part::AddTag], SERVER),
        bench.overhead(
            "owner, sealing a block of 3 columns, squares and pairs",
            &[Part::Encrypt, Part::Pack].repeat(3),
            &[Part::Tags(3)],
            OWNER,
        ),
        bench.overhead(
            "owner, opening a sum of products",
            &opening,
            &[Part::VerifyProduct(1 << 10)],
            OWNER,
        ),
    ]
    .concat()
}

/// Section 6: a polynomial of degree 10^6 whose coefficients are encrypted.
fn polynomial(bench: &Bench<'_, Part>, set: Set) -> Vec<Figure> {
    let blocks = MILLION.div_ceil(set.ring().degree() as u64);
    let opening = [Part::VerifyPowers(blocks), Part::Decrypt, Part::Horner];
    let name = "polynomial of degree 10^6: verify, decrypt, Horner (table 5)";
    let whole = bench.effort.time(|| bench.all(&opening)) / 1000.0;
    let verify = Figure::alone(bench.group, name.to_owned(), "µs", whole);
    // Ours is one value, the paper's is one for each of its slots.
    let value = Figure::alone(bench.group, format!("{name}, a value"), "µs", whole);
    let raw = bench.security.raw(Row::VerifyPolynomial);
    let block = [Part::Unpack, Part::Expand, Part::Scale, Part::Add, Part::AddTag];
    let compute = bench.effort.time(|| bench.all(&block)) / bench.slots;
    let name = "polynomial: compute, a coefficient (table 5)".to_owned();
    let theirs = 1000.0 * bench.security.raw(Row::Compute) / bench.security.slots();
    vec![
        verify.beside_paper(raw),
        value.beside_paper(raw / bench.security.slots()),
        Figure::alone(bench.group, name, "ns", compute).beside_paper(theirs),
    ]
}

/// What 10^6 rows of three columns take on the wire, with squares and all pairs.
fn uploaded(set: Set) -> Figure {
    let columns = 0..3_u16;
    let pairs = columns.clone().flat_map(|a| (a..3).map(move |b| (Column(a), Column(b))));
    let manifest =
        Manifest { data_set: DataSet([0; 16]), set, columns: 3, products: pairs.collect() };
    let blocks = MILLION.div_ceil(set.ring().degree() as u64);
    let bytes = blocks as f64 * manifest.block_length() as f64;
    let name = "10^6 rows of 3 columns, squares and pairs, uploaded".to_owned();
    let figure = Figure::alone(group(set), name, "MB", bytes / 1e6);
    if set == Set::X128 { figure.with_goal(Goal::AtMost(80.0)) } else { figure }
}

/// The paper's figure 1: what it takes to check a sum of products over N values, and to
/// compute it.
pub(super) fn curves(set: Set, effort: Effort) -> Vec<Series> {
    let parts = Parts::new(set);
    if !parts.supports_products() {
        return Vec::new();
    }
    let (parts, n) = (RefCell::new(parts), set.ring().degree() as u64);
    let run = |all: &[Part]| all.iter().for_each(|part| parts.borrow_mut().run(*part));
    let column = [Part::Unpack, Part::Expand];
    let block = [&column[..], &column, &[Part::AddProduct, Part::AddTag]].concat();
    let name = set.name();
    let check = |blocks| run(&[Part::VerifyProduct(blocks)]);
    let compute = |blocks| (0..blocks).for_each(|_| run(&block));
    vec![
        super::curve(name, "checking", n, |blocks| effort.time(|| check(blocks))),
        super::curve(name, "computing", n, |blocks| effort.time(|| compute(blocks))),
    ]
}

fn group(set: Set) -> &'static str {
    match set {
        Set::L128 => "tables, L128",
        Set::S128 => "tables, S128",
        Set::X128 => "tables, X128",
        Set::W128 => "tables, W128",
        Set::C80 => "tables, C80",
    }
}
