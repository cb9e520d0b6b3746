//! Requests in batches: a server sums many at once, and while the answers to one batch are
//! verified, the next is on its way.

use super::remote::Remote;
use super::wire::{MAX_ANSWERS, MAX_OBJECT, SumResponse};
use alpheus_node::failure::{Category, Failure};
use alpheus_verifiable_table::label::Address;
use alpheus_verifiable_table::messages::{Answer, MAX_REQUEST_BLOCKS, Manifest, Request};
use std::sync::mpsc::sync_channel;
use std::thread;

/// About how many bytes of answers a batch has. Two batches are in memory at a time.
const BATCH_BYTES: usize = 8 << 20;
/// The most blocks that a batch sums, unless one request has more.
const BATCH_BLOCKS: u64 = 1 << 14;

/// What one part of a query needs from the server.
#[derive(Clone, Debug, Default)]
pub struct QueryNeeds {
    /// Sums.
    pub sums: Vec<Request>,
    /// Blocks, as they were stored.
    pub blocks: Vec<Address>,
}

/// What the server answers, in the order of the questions. Nothing of it is verified yet.
pub struct Answers {
    /// Sums.
    pub sums: Vec<SumResponse>,
    /// Blocks.
    pub blocks: Vec<Vec<u8>>,
}

/// Parts of a query that are asked for together.
pub struct Batch<T> {
    /// The parts.
    pub parts: Vec<T>,
    needed: QueryNeeds,
}

impl QueryNeeds {
    fn bytes(&self, manifest: &Manifest) -> usize {
        let length = |request: &Request| Answer::length(manifest.ring(), request.kind);
        let sums: usize = self.sums.iter().map(length).sum();
        sums + self.blocks.len() * manifest.block_length()
    }

    fn summed(&self) -> u64 {
        self.sums.iter().fold(0, |sum, request| sum.saturating_add(request.blocks()))
    }
}

/// Divides parts into batches, in order.
pub fn batches<T>(
    parts: impl IntoIterator<Item = (T, QueryNeeds)>,
    manifest: &Manifest,
) -> Vec<Batch<T>> {
    let (mut all, mut bytes, mut blocks): (Vec<Batch<T>>, _, _) = (Vec::new(), 0, 0_u64);
    for (part, needed) in parts {
        let (more, summed) = (needed.bytes(manifest), needed.summed());
        let full = bytes + more > BATCH_BYTES || blocks.saturating_add(summed) > BATCH_BLOCKS;
        match all.last_mut().filter(|_| !full) {
            Some(batch) => {
                batch.parts.push(part);
                batch.needed.sums.extend(needed.sums);
                batch.needed.blocks.extend(needed.blocks);
                (bytes, blocks) = (bytes + more, blocks.saturating_add(summed));
            }
            None => {
                all.push(Batch { parts: vec![part], needed });
                (bytes, blocks) = (more, summed);
            }
        }
    }
    all
}

/// Divides questions so that the answers to each part have at most [`MAX_OBJECT`] bytes together, and
/// take at most as many blocks as a server sums at once. A part has one question at least.
fn chunks<T>(questions: &[T], cost: impl Fn(&T) -> (usize, u64)) -> Vec<&[T]> {
    let (mut all, mut rest) = (Vec::new(), questions);
    while !rest.is_empty() {
        let (mut bytes, mut blocks) = (0_usize, 0_u64);
        let fits = rest.iter().take_while(|question| {
            let (more, summed) = cost(question);
            (bytes, blocks) = (bytes.saturating_add(more), blocks.saturating_add(summed));
            bytes <= MAX_OBJECT && blocks <= MAX_REQUEST_BLOCKS
        });
        let (first, others) = rest.split_at(fits.count().clamp(1, MAX_ANSWERS));
        all.push(first);
        rest = others;
    }
    all
}

/// Asks for all batches in order, each while `each` works on the answers to the one before.
///
/// # Errors
/// The first of the server and of `each`.
pub fn ask_all<T: Send>(
    (remote, manifest): (&Remote, &Manifest),
    batches: Vec<Batch<T>>,
    mut each: impl FnMut(Vec<T>, Answers) -> Result<(), Failure>,
) -> Result<(), Failure> {
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(0);
        scope.spawn(move || {
            for Batch { parts, needed } in batches {
                let answers = ask((remote, manifest), &needed);
                let stop = answers.is_err();
                // Nobody receives once an answer was rejected.
                if sender.send(answers.map(|answers| (parts, answers))).is_err() || stop {
                    break;
                }
            }
        });
        receiver.into_iter().try_for_each(|answers| {
            let (parts, answers) = answers?;
            each(parts, answers)
        })
    })
}

/// One round trip for sums and one for blocks, or several if the server's responses would be too long.
fn ask((remote, manifest): (&Remote, &Manifest), needed: &QueryNeeds) -> Result<Answers, Failure> {
    let mut answers = Answers { sums: Vec::new(), blocks: Vec::new() };
    let answer = |one: &Request| (Answer::length(manifest.ring(), one.kind), one.blocks());
    for requests in chunks(&needed.sums, answer) {
        answers.sums.extend(remote.sums(requests)?);
    }
    for addresses in chunks(&needed.blocks, |_| (manifest.block_length(), 0)) {
        answers.blocks.extend(remote.fetch(addresses)?);
    }
    Ok(answers)
}

/// The next of some answers.
///
/// # Errors
/// There is none, which is a bug.
pub fn next<T>(answers: &mut impl Iterator<Item = T>) -> Result<T, Failure> {
    answers.next().ok_or_else(|| Failure::new(Category::Io, "an answer is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alpheus_verifiable_table::label::{Column, DataSet, Kind, Segment};
    use alpheus_verifiable_table::messages::{Run, Weights};
    use alpheus_verifiable_table::parameters::Set;

    fn manifest() -> Manifest {
        Manifest { data_set: DataSet([1; 16]), set: Set::L128, columns: 1, products: Vec::new() }
    }

    fn needed(blocks: u64) -> QueryNeeds {
        let run = Run { segment: Segment([2; 16]), epoch: 0, from: 0, to: blocks };
        let kind = Kind::Column(Column(0));
        let sums = vec![Request { kind, runs: vec![run], weights: Weights::Ones }];
        QueryNeeds { sums, blocks: Vec::new() }
    }

    /// No part is lost or moved, and no batch is larger than its limits or smaller than needed.
    #[test]
    fn batches_are_full_and_in_order() {
        let (manifest, ring) = (manifest(), Set::L128.ring());
        let length = Answer::length(ring, Kind::Column(Column(0)));
        let many: Vec<(u32, QueryNeeds)> = (0..500).map(|part| (part, needed(1))).collect();
        let found = batches(many, &manifest);
        assert_eq!(found.len(), 500_usize.div_ceil(BATCH_BYTES / length));
        let parts = found.iter().flat_map(|batch| batch.parts.iter().copied());
        assert!(parts.eq(0..500));
        assert!(found.iter().all(|batch| batch.needed.sums.len() * length <= BATCH_BYTES));
        let large =
            [needed(BATCH_BLOCKS), needed(2 * BATCH_BLOCKS), QueryNeeds::default(), needed(1)];
        let found = batches(large.into_iter().map(|needed| ((), needed)), &manifest);
        let sizes: Vec<usize> = found.iter().map(|batch| batch.parts.len()).collect();
        assert_eq!(sizes, [1, 1, 2]);
    }

    /// No question is lost or moved, and a server answers each part.
    #[test]
    fn questions_are_divided_so_that_a_server_answers_them() {
        let sizes = |costs: &[(usize, u64)]| -> Vec<usize> {
            let parts = chunks(costs, |cost| *cost);
            assert_eq!(parts.concat(), costs);
            parts.iter().map(|part| part.len()).collect()
        };
        let half = MAX_OBJECT / 2;
        assert_eq!(sizes(&[]), [] as [usize; 0]);
        assert_eq!(sizes(&[(half, 0), (half, 0), (half + 1, 0), (half, 0)]), [2, 1, 1]);
        assert_eq!(sizes(&[(1, MAX_REQUEST_BLOCKS), (1, 1), (1, 2)]), [1, 2]);
        assert_eq!(sizes(&[(MAX_OBJECT + 1, 0), (1, 0)]), [1, 1], "one at least");
        assert_eq!(sizes(&vec![(1, 0); MAX_ANSWERS + 1]), [MAX_ANSWERS, 1]);
    }
}
