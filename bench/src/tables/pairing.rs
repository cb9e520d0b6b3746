//! The paper's own scheme (mode P), on this machine.

use super::paper::{Row, Security};
use super::rows::Bench;
use crate::measure::Effort;
use crate::report::{Figure, Series};
use alpheus_pairing_table::measure::{Part, Parts};
use alpheus_pairing_table::parameters::PairingSet;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::cell::RefCell;

/// Parts in order of execution, and the paper's row.
struct Work(&'static str, &'static [Part], Option<Row>);

const WORK: &[Work] = &[
    Work("ProbGen: encrypt and tag a column", &[Part::Encrypt, Part::Tag], Some(Row::ProbGen)),
    Work("Add, to be multiplied", &[Part::AddWhole], Some(Row::Add)),
    Work("Add, T and X of the tag alone", &[Part::Add, Part::AddTag], None),
    Work("ConstMult, into a sum, T and X alone", &[Part::Scale, Part::ScaleTag], None),
    Work("Mult, into a sum", &[Part::Product, Part::ProductTag], Some(Row::Mult)),
    Work("Verify and decrypt, degree 1", &[Part::Verify, Part::Decrypt], None),
    Work(
        "Verify and decrypt, degree 2",
        &[Part::VerifyProduct, Part::DecryptProduct],
        Some(Row::Verify),
    ),
    Work("the secret of a data set, before its first value is decrypted", &[Part::Secret], None),
    Work("reading an answer, degree 1", &[Part::Read], None),
    Work("reading an answer, degree 2", &[Part::ReadProduct], None),
];

/// Blocks of a function that is prepared.
const PREPARED: u64 = 64;

/// All figures of a set.
pub(super) fn figures(set: PairingSet, effort: Effort) -> Vec<Figure> {
    let Some(mut parts) = Parts::new(set, &mut seed()) else { return Vec::new() };
    let mut run = |part| parts.run(part);
    let bench = Bench {
        group: group(set),
        effort,
        slots: set.ring().degree() as f64,
        security: security(set),
        run: RefCell::new(&mut run),
    };
    let rows = WORK.iter().flat_map(|Work(name, all, paper)| bench.rows(name, all, *paper));
    let mut figures: Vec<Figure> = rows.collect();
    let prepare = effort.time(|| bench.all(&[Part::Prepare(PREPARED)])) / PREPARED as f64;
    let name = "KeyGen: prepare a sum of products, a block, once for all data sets".to_owned();
    figures.push(Figure::alone(bench.group, name, "µs", prepare / 1000.0));
    for Beside(name, unchecked, ours) in BESIDE {
        figures.extend(bench.beside(name, unchecked, ours, None));
    }
    figures
}

/// The same without and with checking. Checked work multiplies without reduction, so at twice
/// the length, and reads elements of groups.
struct Beside(&'static str, &'static [Part], &'static [Part]);

const BESIDE: &[Beside] = &[
    Beside(
        "server, sum",
        &[Part::ReadPlainBlock, Part::Expand, Part::Add],
        &[Part::ReadBlock, Part::Expand, Part::Add, Part::AddTag],
    ),
    Beside(
        "server, sum of squares",
        &[Part::ReadPlainBlock, Part::Expand, Part::PlainProduct],
        &[Part::ReadBlock, Part::Expand, Part::Product, Part::ProductTag],
    ),
    Beside("owner, sealing a column", &[Part::Encrypt], &[Part::Encrypt, Part::Tag]),
    Beside(
        "owner, opening a sum",
        &[Part::ReadPlain, Part::Decrypt],
        &[Part::Read, Part::Verify, Part::Decrypt],
    ),
    Beside(
        "owner, opening a sum of products",
        &[Part::ReadPlainProduct, Part::DecryptPlainProduct],
        &[Part::ReadProduct, Part::VerifyProduct, Part::DecryptProduct],
    ),
];

/// Figure 1, of fewer samples: the last point takes seconds.
pub(super) fn curves(set: PairingSet, effort: Effort) -> Vec<Series> {
    let Some(parts) = Parts::new(set, &mut seed()) else { return Vec::new() };
    let (parts, n) = (RefCell::new(parts), set.ring().degree() as u64);
    let effort = Effort { repeats: 3, ..effort };
    let run = |part| parts.borrow_mut().run(part);
    let check = |blocks| {
        // Preparation for this many blocks is not timed.
        let reached = parts.borrow_mut().reach(blocks);
        reached.map_or(f64::NAN, |()| effort.time(|| run(Part::VerifyProduct)))
    };
    let read = [Part::ReadBlock, Part::ReadBlock, Part::Expand, Part::Expand];
    let block = [&read[..], &[Part::Product, Part::ProductTag]].concat();
    let compute = |blocks| {
        (0..blocks).for_each(|_| block.iter().for_each(|part| run(*part)));
        run(Part::Finish);
    };
    let name = set.name();
    vec![
        super::curve(name, "checking", n, check),
        super::curve(name, "computing", n, |blocks| effort.time(|| compute(blocks))),
        super::curve(name, "preparing", n, |blocks| effort.time(|| run(Part::Prepare(blocks)))),
    ]
}

/// Times do not depend on the random values.
fn seed() -> ChaCha20Rng {
    ChaCha20Rng::from_seed([7; 32])
}

fn security(set: PairingSet) -> Security {
    if set == PairingSet::P80 { Security::Eighty } else { Security::Whole }
}

fn group(set: PairingSet) -> &'static str {
    match set {
        PairingSet::P80 => "tables, P80: the paper's own scheme",
        PairingSet::P128 => "tables, P128: the paper's own scheme",
    }
}
