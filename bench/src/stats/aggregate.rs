//! An aggregate that ends: sums, trees, partial decryptions with their proofs, logarithms.

use super::kernel::{EncodedTuple, arrived, binding};
use crate::measure::processor_time;
use crate::report::{Figure, Goal};
use alpheus_accountable_statistics::closing::Trees;
use alpheus_accountable_statistics::configuration::KeyEpoch;
use alpheus_accountable_statistics::interval::Interval;
use alpheus_accountable_statistics::logarithm::{Bounds, Table};
use alpheus_accountable_statistics::messages::Entry;
use alpheus_accountable_statistics::sums::{Part, Sums};
use alpheus_accountable_statistics::threshold::ceremony::{Announcement, Ceremony};
use alpheus_accountable_statistics::threshold::dealing::Dealer;
use alpheus_accountable_statistics::threshold::settlement::Settlement;
use alpheus_accountable_statistics::threshold::{Committee, KeyShare, SharedKey};
use alpheus_accountable_statistics::tuple::{CheckedTuple, Checker, Terms, Tuple};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::secret::Secret;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use chacha20::ChaCha20Rng;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::time::Instant;

const GROUP: &str = "statistics, an aggregate that ends (processor time of one core)";
/// Smoothers, and how many decrypt.
const MEMBERS: u16 = 4;
const THRESHOLD: u16 = 2;
/// Tuples that differ; more come again.
const DIFFERENT: u32 = 500;
/// Tuples that are checked together.
const BATCH: usize = 256;
/// Bits of the table by which sums are read.
const BITS: u8 = 20;

/// A key as smoothers make it.
fn key(rng: &mut ChaCha20Rng) -> Result<(SharedKey, Vec<KeyShare>), Failure> {
    let check = Category::Check;
    let committee = Committee::new(Digest([1; 32]), MEMBERS, THRESHOLD).blame(check)?;
    let seeds: Vec<Secret<32>> = (0..MEMBERS).map(|_| Secret::random(rng)).collect();
    let members = || (0..MEMBERS).zip(&seeds);
    let announced = members().map(|(member, seed)| Announcement::new(&committee, 0, member, seed));
    let announced = announced.collect::<Result<Vec<_>, _>>().blame(check)?;
    let ceremony = Ceremony::new(committee, 0, &announced);
    let dealers = members().map(|(member, seed)| Dealer::new(&ceremony, member, seed, rng));
    let dealers = dealers.collect::<Result<Vec<_>, _>>().blame(check)?;
    let dealt = dealers.iter().map(|d| d.dealing().clone().verify(&ceremony, &d.pledge()));
    let dealt = dealt.collect::<Result<Vec<_>, _>>().blame(check)?;
    let settled = Settlement::new(&ceremony, &dealt, &[], &[]).blame(check)?;
    let mut shares = Vec::new();
    for (member, dealer) in (0..).zip(&dealers) {
        let taken =
            dealt.iter().map(|dealt| dealer.open_share(dealt)).collect::<Result<Vec<_>, _>>();
        let taken = taken.map_err(|_| "a good share is refused").blame(check)?;
        shares.push(settled.share(member, taken).blame(check)?);
    }
    Ok((settled.key().clone(), shares))
}

/// Seconds of processor time, and what came of it.
fn timed<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<(f64, T), Failure> {
    let before = processor_time();
    let done = work()?;
    Ok(((processor_time() - before).as_secs_f64(), done))
}

fn checked(checker: &Checker, arrived: &[EncodedTuple]) -> Result<Vec<CheckedTuple>, Failure> {
    let interval = checker.terms().interval();
    let read = arrived.iter().map(|(binding, bytes)| {
        Ok((*binding, Tuple::from_bytes(bytes, interval).blame(Category::Check)?))
    });
    let read = read.collect::<Result<Vec<_>, Failure>>()?;
    let verdicts = checker.check_batch(read).into_iter();
    verdicts.collect::<Result<Vec<_>, _>>().blame(Category::Check)
}

/// Checks everything by so many threads; gives the seconds by the clock.
fn checked_by(threads: usize, checker: &Checker, arrived: &[EncodedTuple]) -> Result<f64, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let start = Instant::now();
    pool.blame(Category::Io)?.install(|| {
        let batches = arrived.par_chunks(BATCH);
        batches.map(|batch| checked(checker, batch).map(drop)).collect::<Result<(), Failure>>()
    })?;
    Ok(start.elapsed().as_secs_f64())
}

/// A part of the sums: partial decryptions of so many smoothers, each proven and verified, put
/// together and read.
fn open(
    (key, shares): (&SharedKey, &[KeyShare]),
    (sums, part): (&Sums, Part),
    (table, bounds): (&Table, &Bounds),
    rng: &mut ChaCha20Rng,
) -> Result<u64, Failure> {
    let (check, context) = (Category::Check, Digest([5; 32]));
    let sum = sums.ciphertext(part).ok_or("sums without that part").blame(check)?;
    let mut partials = Vec::new();
    for share in shares.iter().take(usize::from(THRESHOLD)) {
        let partial = share.dangerous_open(key, &sum, &context, rng).blame(check)?;
        partials.push(key.verify(partial, &sum, &context).blame(check)?);
    }
    let opened = key.combine(&sum, &context, &partials).blame(check)?;
    table.read(opened.total(), bounds).blame(check)
}

fn added<'a>(
    terms: &Terms,
    tuples: impl Iterator<Item = &'a CheckedTuple>,
) -> Result<Sums, Failure> {
    let mut sums = Sums::new(terms, binding(0).aggregate);
    for tuple in tuples {
        sums.add(tuple).blame(Category::Check)?;
    }
    Ok(sums)
}

/// Seconds of one core.
///
/// # Errors
/// If what is measured does not work, or reads another number than the plaintext's.
pub(super) fn figures(tuples: u32) -> Result<Vec<Figure>, Failure> {
    let mut rng = entropy::rng()?;
    let interval = Interval::new(0, 65_535, true).blame(Category::Check)?;
    let (shared, shares) = key(&mut rng)?;
    let terms = Terms::new(*shared.key(), interval);
    let (arrived, checker) = (arrived(terms, DIFFERENT, &mut rng)?, Checker::new(terms));
    let all: Vec<EncodedTuple> = arrived.iter().cycle().take(tuples as usize).cloned().collect();
    // On this thread, whose processor time is measured.
    let (checking, _) = timed(|| checked(&checker, &all))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let checking_at_once = checked_by(threads, &checker, &all)?;
    let checked = checked(&checker, &arrived)?;
    let (summing, sums) = timed(|| added(&terms, checked.iter().cycle().take(tuples as usize)))?;
    let (rooting, _) = timed(|| Ok(trees(tuples)))?;
    let (key, table) = ((&shared, shares.as_slice()), Table::new(BITS));
    let (mean, (count, sum)) = timed(|| {
        let bounds = Bounds::count(tuples);
        let count = open(key, (&sums, Part::Count), (&table, &bounds), &mut rng)?;
        let bounds = Bounds::value(&interval, count);
        Ok((count, open(key, (&sums, Part::Value), (&table, &bounds), &mut rng)?))
    })?;
    let (deviation, squares) = timed(|| {
        let bounds = Bounds::square(&interval, count, sum);
        open(key, (&sums, Part::Square), (&table, &bounds), &mut rng)
    })?;
    if (count, sum, squares) != plain(tuples) {
        return Err("sums that are not the plaintext's").blame(Category::Check);
    }
    let figure =
        |what: &str, value| Figure::alone(GROUP, format!("{tuples} tuples: {what}"), "s", value);
    let closed = summing + rooting + mean;
    Ok(vec![
        figure("proofs checked, as they come", checking),
        figure("added up", summing),
        figure("both trees of the closing, once", rooting),
        figure("count and mean opened", mean),
        figure("closed, added up, count and mean opened", closed)
            .with_goal(Goal::AtMost(1.0))
            .beside_paper(0.46),
        figure("the same with all proofs checked again, by one core", closed + checking),
        figure(
            &format!("the same, proofs by {threads} cores, by the clock"),
            closed + checking_at_once,
        )
        .with_goal(Goal::AtMost(1.0)),
        figure("sum of squares opened", deviation).with_goal(Goal::AtMost(10.0)),
    ])
}

fn trees(tuples: u32) -> Digest {
    let entry = |slot: u32| {
        let binding = binding(slot);
        let (content, sealed) = (Digest([2; 32]), Digest([3; 32]));
        let (aggregate, ephemeral) = (binding.aggregate, binding.ephemeral);
        (
            slot,
            Entry {
                aggregate,
                key_epoch: KeyEpoch(0),
                slot,
                revision: 0,
                ephemeral,
                content,
                sealed,
            },
        )
    };
    let entries: BTreeMap<u32, Entry> = (0..tuples).map(entry).collect();
    Trees::new(tuples, &entries, |_| true).tuples()
}

/// What the sums are.
fn plain(tuples: u32) -> (u64, u64, u64) {
    let values = (0..u64::from(tuples)).map(|i| i % u64::from(DIFFERENT) * 7919 % 65_535);
    values.fold((0, 0, 0), |(n, sum, squares), v| (n + 1, sum + v, squares + v * v))
}
