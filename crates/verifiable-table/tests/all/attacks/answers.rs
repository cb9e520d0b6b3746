//! Lies about sums.

use crate::attacks::words;
use crate::attacks::world::{World, X, XX, XY, Y, world};
use crate::support::upload;
use alpheus_verifiable_table::label::Kind;
use alpheus_verifiable_table::layout::{Moment, Row};
use alpheus_verifiable_table::messages::{Answer, Request, Run, Weights};
use alpheus_verifiable_table::owner::Owner;
use alpheus_verifiable_table::parameters::Set;

/// The q of the sets with n = 4096.
const Q: [u64; 2] = [2_251_799_813_554_177, 2_251_799_813_472_257];

/// Each lie is an honest sum of something other than requested.
#[test]
fn sums_of_other_blocks_columns_or_weights_are_rejected() {
    let world = world(Set::S128, 4, 1);
    let question = world.question(XY, 0, 4);
    let request = question.request().clone();
    let honest = world.answer(&request);
    let run = request.runs[0];
    let other = |change: fn(&mut Run)| {
        let mut run = run;
        change(&mut run);
        Request { runs: vec![run], ..request.clone() }
    };
    let part = |from, to| Run { from, to, ..run };
    let weighted = |weights| Request { weights, ..request.clone() };
    let lies = [
        ("the last block is dropped", other(|run| run.to = 3)),
        ("the first block is dropped", other(|run| run.from = 1)),
        ("a stale prefix", other(|run| run.to = 2)),
        (
            "an inner block is dropped",
            Request { runs: vec![part(0, 1), part(2, 4)], ..request.clone() },
        ),
        ("one block for another", other(|run| (run.from, run.to) = (1, 4))),
        ("x² for xy", Request { kind: XX, ..request.clone() }),
        ("doubled by weight", weighted(Weights::Polynomial(vec![2]))),
        ("another weight", weighted(Weights::Polynomial(vec![1, 1]))),
        ("a block twice, one not at all", weighted(Weights::Each(0, vec![2, 0, 1, 1]))),
        ("blocks against each other", weighted(Weights::Each(0, vec![1, -1, 1, 1]))),
    ];
    for (case, lie) in lies {
        world.accepts_only(&question, &honest, &world.answer(&lie), case);
    }
    let question = world.question(X, 0, 4);
    let honest = world.answer(question.request());
    let column = Request { kind: Y, ..question.request().clone() };
    world.accepts_only(&question, &honest, &world.answer(&column), "another column");
}

#[test]
fn another_tables_answer_is_rejected() {
    let (one, mut other) = (world(Set::L128, 2, 2), world(Set::L128, 2, 3));
    // The same rows at the same numbers, with the other table's blocks under this one's labels.
    let run = one.owner.runs()[0];
    let moved = other.server.blocks.values().cloned().collect::<Vec<_>>();
    let question = one.question(X, 0, 2);
    let honest = one.answer(question.request());
    let theirs = other.question(X, 0, 2);
    one.accepts_only(&question, &honest, &other.answer(theirs.request()), "another data set");
    assert_eq!(moved.len(), 2);
    assert_ne!(run.segment, other.owner.runs()[0].segment);
    other.server.manifest = one.server.manifest.clone();
    for block in moved {
        assert!(other.server.store(block.as_bytes()).is_err(), "a block names its table");
    }
}

#[test]
fn answers_with_wrong_weights_are_rejected() {
    let world = world(Set::X128, 3, 4);
    let n = world.owner.block_rows();
    let plan = world.owner.plan_weighted(Moment::Sum(0), 0, 3 * n, &[5, 7]).unwrap();
    let [plain, linear] = plan.questions() else { panic!("one for each power") };
    let (a, b) = (world.answer(plain.request()), world.answer(linear.request()));
    world.accepts_only(plain, &a, &b, "i for 1");
    world.accepts_only(linear, &b, &a, "1 for i");
    let plan = world.owner.plan_polynomial(0, 12).unwrap();
    let question = plan.question().unwrap();
    let lie = Request { weights: Weights::Powers(13), ..question.request().clone() };
    world.accepts_only(
        question,
        &world.answer(question.request()),
        &world.answer(&lie),
        "another x",
    );
}

#[test]
fn changed_bytes_are_rejected() {
    let world = world(Set::L128, 2, 5);
    let question = world.question(X, 0, 2);
    let honest = world.answer(question.request());
    let (ring, words_in) = (Set::L128.ring(), 2 * 2 * 4096);
    assert_eq!(honest.len(), Answer::length(ring, X));
    let tag = words_in * 51 / 8;
    // One residue off by one, in each limb and component, at positions that differ in block,
    // vector and lane.
    for component in 0..2 {
        for (limb, q) in Q.into_iter().enumerate() {
            for place in [0, 1, 9, 511, 512, 4095] {
                let at = (component * 2 + limb) * 4096 + place;
                let mut lie = honest.clone();
                let word = words::get(&lie, at);
                words::set(&mut lie, at, (word + 1) % q);
                world.accepts_only(&question, &honest, &lie, "one residue of one limb");
                // The same number, not canonical.
                words::set(&mut lie, at, word);
                assert_eq!(lie, honest);
                words::set(&mut lie, at, q);
                world.accepts_only(&question, &honest, &lie, "a word that is not canonical");
            }
        }
    }
    for at in [tag, tag + 7, honest.len() - 1] {
        let mut lie = honest.clone();
        lie[at] ^= 1;
        world.accepts_only(&question, &honest, &lie, "a bit of the tag");
    }
    // The right word of the tag, in another encoding.
    let (word, mut lie) = (words::tag(&honest, tag)[0], honest.clone());
    lie[tag..tag + 8].copy_from_slice(&(word + Q[0]).to_le_bytes());
    world.accepts_only(&question, &honest, &lie, "a word of the tag that is not canonical");
    let longer = [honest.as_slice(), &[0]].concat();
    let lies = [&honest[..honest.len() - 1], &honest[..tag], &honest[1..], &longer, &[]];
    for lie in lies {
        world.accepts_only(&question, &honest, lie, "another length");
    }
}

/// These lies decrypt to the right numbers, or to sums or multiples of right ones.
#[test]
fn noise_multiples_and_sums_of_answers_are_rejected() {
    let world = world(Set::L128, 2, 6);
    let question = world.question(X, 0, 2);
    let honest = world.answer(question.request());
    let ring = Set::L128.ring();
    let t = ring.plain_modulus();
    // Adding t to every value is t·e with e = 1 in the constant coefficient alone: far below
    // the limit of decoding.
    let (words_in, mut noisy) = (2 * 2 * 4096, honest.clone());
    for at in 0..2 * 4096 {
        let q = Q[at / 4096];
        let sum = u128::from(words::get(&noisy, at)) + t % u128::from(q);
        words::set(&mut noisy, at, u64::try_from(sum % u128::from(q)).unwrap());
    }
    world.accepts_only(&question, &honest, &noisy, "noise below the threshold");

    let other = world.answer(world.question(X, 1, 2).request());
    let mut added = honest.clone();
    for at in 0..words_in {
        let q = Q[at / 4096 % 2];
        words::set(&mut added, at, (words::get(&honest, at) + words::get(&other, at)) % q);
    }
    let from = words_in * 51 / 8;
    let tags = words::tag(&honest, from).into_iter().zip(words::tag(&other, from));
    let mut bytes = added[..from].to_vec();
    for (at, (a, b)) in tags.enumerate() {
        bytes.extend(((a + b) % Q[at / 3]).to_le_bytes());
    }
    world.accepts_only(&question, &honest, &bytes, "two answers added up");
    world.accepts_only(&question, &honest, &other, "the answer to another question");
    let zero = vec![0; honest.len()];
    world.accepts_only(&question, &honest, &zero, "all zero");
}

#[test]
fn tags_of_one_kind_do_not_pass_for_another() {
    let world = world(Set::S128, 2, 7);
    let (linear, product) = (world.question(X, 0, 2), world.question(XX, 0, 2));
    let (a, b) = (world.answer(linear.request()), world.answer(product.request()));
    let component = 3 * 8192 * 51 / 8;
    let tag = 3 * 3 * 8;
    assert_eq!((a.len(), b.len()), (2 * component + tag, 3 * component + tag));
    // x as (c0, c1, 0) with its linear tag; x² without its third component.
    let padded = [&a[..2 * component], &vec![0; component], &a[2 * component..]].concat();
    world.accepts_only(&product, &b, &padded, "a linear answer for a product");
    let mixed = [&b[..3 * component], &a[2 * component..]].concat();
    world.accepts_only(&product, &b, &mixed, "a linear tag on a product");
    let cut = [&b[..2 * component], &b[3 * component..]].concat();
    world.accepts_only(&linear, &a, &cut, "a product for a linear answer");
    world.accepts_only(&product, &b, &a, "the other's answer");
    assert!(world.owner.plan(Moment::PairSquare(0, 1), 0, 8192).is_ok());
    assert_eq!(Kind::components(XX), 3);
}

#[test]
fn a_block_from_before_its_rewrite_is_rejected() {
    let mut world: World = world(Set::L128, 3, 8);
    let before = world.question(X, 0, 3);
    let old_answer = world.answer(before.request());
    let opened = crate::support::fetch(&world.owner, &world.server, 1).unwrap();
    let row = vec![Some(1), Some(2)];
    let n = world.owner.block_rows();
    let step = world.owner.correct(n + 5, row, Some(&opened)).unwrap();
    step.commit(&mut world.store).unwrap();
    let step = world.owner.rewrite(&opened, &mut world.rng).unwrap();
    let block = step.commit(&mut world.store).unwrap();
    let old_address = before.request().runs[0].addresses().nth(1).unwrap();
    assert_ne!(old_address, block.address());
    world.server.store(block.as_bytes()).unwrap();
    let after = world.question(X, 0, 3);
    let honest = world.answer(after.request());
    world.accepts_only(&after, &honest, &old_answer, "the sum before the correction");
    // The old block at the new one's address.
    let old = world.server.blocks[&old_address].as_bytes().to_vec();
    assert!(world.owner.open_block(1, &world.owner.all_columns(), &old).is_err());
    let mut renamed = old;
    renamed[17..45].copy_from_slice(&block.as_bytes()[17..45]);
    assert!(world.owner.open_block(1, &world.owner.all_columns(), &renamed).is_err());
}

/// A range over three starts, with one block rewritten: any change to any run is a lie.
#[test]
fn lies_over_several_runs_and_epochs_are_rejected() {
    let mut world: World = world(Set::S128, 2, 11);
    let n = i64::try_from(world.owner.block_rows()).unwrap();
    for start in 0..2 {
        let World { key, owner, server, store, rng } = &mut world;
        *owner = Owner::open(key, &*store, rng).unwrap();
        let rows: Vec<Row> =
            (0..2 * n).map(|i| vec![Some((i + start) % 991), Some(i * i % 701)]).collect();
        upload(owner, store, server, &rows, rng).unwrap();
    }
    let old = world.owner.runs().to_vec();
    let opened = crate::support::fetch(&world.owner, &world.server, 3).unwrap();
    let step = world.owner.rewrite(&opened, &mut world.rng).unwrap();
    let block = step.commit(&mut world.store).unwrap();
    world.server.store(block.as_bytes()).unwrap();
    for kind in [X, XY] {
        let question = world.question(kind, 0, 6);
        let request = question.request().clone();
        let honest = world.answer(&request);
        let runs = &request.runs;
        assert_eq!(runs.len(), 4, "two starts, a rewritten block, a start");
        let with = |at: usize, run: Option<Run>| {
            let mut runs = runs.clone();
            runs.splice(at..=at, run);
            Request { runs, ..request.clone() }
        };
        let before = Run { from: 3, to: 4, ..old[1] };
        let mut lies = vec![("the block before its rewrite", with(2, Some(before)))];
        for (at, run) in runs.iter().enumerate() {
            lies.push(("a run is left out", with(at, None)));
            let mut shorter = *run;
            shorter.to -= 1;
            lies.push(("a run is cut", with(at, Some(shorter).filter(|run| run.from < run.to))));
        }
        lies.push((
            "all runs before the rewrite",
            Request { runs: old.clone(), ..request.clone() },
        ));
        for (case, lie) in lies {
            world.accepts_only(&question, &honest, &world.answer(&lie), case);
        }
    }
}
