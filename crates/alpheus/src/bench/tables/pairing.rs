//! The paper's own scheme (mode P), on this machine.

use super::paper::{Row, Security};
use super::rows::Bench;
use crate::bench::measure::Effort;
use crate::bench::report::{Figure, Series};
use alpheus_verifiable_table::pairing::measure::{Part, Parts};
use alpheus_verifiable_table::pairing::parameters::PairingSet;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::cell::RefCell;

/// Parts, in the order in which they are done, and the paper's row.
struct Work(&'static str, &'static [Part], Option<Row>);

const WORK: &[Work] = &[
    Work("ProbGen: encrypt and tag a column", &[Part::Encrypt, Part::Tag], Some(Row::ProbGen)),
    Work("Add", &[Part::Add, Part::AddTag], Some(Row::Add)),
    Work("ConstMult, into a sum", &[Part::Scale, Part::ScaleTag], Some(Row::ConstMult)),
    Work("Mult, into a sum", &[Part::Product, Part::ProductTag], Some(Row::Mult)),
    Work("Verify and decrypt, degree 1", &[Part::Verify, Part::Decrypt], None),
    Work(
        "Verify and decrypt, degree 2",
        &[Part::VerifyProduct, Part::DecryptProduct],
        Some(Row::Verify),
    ),
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
    for (name, work, checks) in [
        ("server, sum", [Part::Add], [Part::AddTag]),
        ("server, sum of products", [Part::Product], [Part::ProductTag]),
        ("owner, sealing a column", [Part::Encrypt], [Part::Tag]),
        ("owner, opening a sum of products", [Part::DecryptProduct], [Part::VerifyProduct]),
    ] {
        figures.extend(bench.overhead(name, &work, &checks, None));
    }
    figures
}

/// Figure 1, of fewer samples: the last point takes seconds.
pub(super) fn curves(set: PairingSet, effort: Effort) -> Vec<Series> {
    let Some(parts) = Parts::new(set, &mut seed()) else { return Vec::new() };
    let (parts, n) = (RefCell::new(parts), set.ring().degree() as u64);
    let effort = Effort { repeats: 3, ..effort };
    let run = |part| parts.borrow_mut().run(part);
    let compute = |blocks| {
        (0..blocks).for_each(|_| [Part::Product, Part::ProductTag].into_iter().for_each(run))
    };
    let name = set.name();
    vec![
        super::curve(name, "checking", n, |_| effort.time(|| run(Part::VerifyProduct))),
        super::curve(name, "computing", n, |blocks| effort.time(|| compute(blocks))),
        super::curve(name, "preparing", n, |blocks| effort.time(|| run(Part::Prepare(blocks)))),
    ]
}

/// What is drawn takes the same time whatever it is.
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
