//! Inputs near valid ones, the same at every run.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::mac::Tag;
use alpheus_encrypted_stream::annotation::Annotation;
use alpheus_encrypted_stream::frame::{Frame, Link};
use alpheus_encrypted_stream::grant::{Days, Grant};
use alpheus_encrypted_stream::tick::claim::{Claim, ClaimKind, RootPrefix};
use alpheus_encrypted_stream::tick::frame::{MAC_LEN, body};
use alpheus_encrypted_stream::tick::opening::{OPENING_LEN, OpeningHead};
use alpheus_policy::ids::{ConsumerId, OwnerId, StreamId};
use alpheus_policy::policy::ResolvedPolicy;
use alpheus_policy::schema::Schema;
use alpheus_time::Timestamp;
use chacha20::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Numbers and signs that decoders trip over.
const TOKENS: &[&[u8]] = &[
    b"",
    b"0",
    b"-1",
    b"18446744073709551616",
    b"1e999",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"\0",
    b"\xf0\x9f\x9a\xb2",
    b"'",
    b"\"",
    b"{{{{{{{{",
    b"[[[[[[[[",
    b"((((((((",
    b"\n",
    b",,",
    b": ",
    b"&a *a",
    b"--",
    b";",
];

/// Hands `count` mutations of the seeds to `check`.
pub(crate) fn each(seeds: &[Vec<u8>], count: usize, check: fn(&[u8])) {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..count {
        let mut data = pick(&mut rng, seeds).clone();
        for _ in 0..=below(&mut rng, 4) {
            mutate(&mut rng, &mut data, seeds);
        }
        check(&data);
    }
}

fn mutate(rng: &mut impl Rng, data: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let at = below(rng, data.len() + 1);
    let end = (at + below(rng, 9)).min(data.len());
    match below(rng, 6) {
        0 => data.truncate(at),
        1 => drop(data.drain(at..end)),
        2 => drop(data.splice(at..end, pick(rng, TOKENS).iter().copied())),
        3 => {
            let other = pick(rng, seeds);
            let from = below(rng, other.len() + 1);
            let to = (from + below(rng, 40)).min(other.len());
            drop(data.splice(at..at, other[from..to].iter().copied()));
        }
        4 if at < data.len() => data[at] ^= 1 << below(rng, 8),
        _ if at < data.len() => data[at] = below(rng, 256).to_le_bytes()[0],
        _ => data.push(0),
    }
}

fn below(rng: &mut impl Rng, bound: usize) -> usize {
    usize::try_from(rng.next_u64() % (bound.max(1) as u64)).unwrap_or(0)
}

fn pick<'a, T>(rng: &mut impl Rng, list: &'a [T]) -> &'a T {
    &list[below(rng, list.len())]
}

/// One event of each kind.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let link = Link { session: 7, previous: Timestamp(10), t: Timestamp(20) };
    let tag = Tag([3; 16]);
    let words = vec![1_u64, u64::MAX, 0];
    let frames = [
        Frame::Opening { session: 7, t: Timestamp(10), tag },
        Frame::Data { link, words: words.clone() },
        Frame::Border { link, count: 2, tag, words: words.clone() },
        Frame::Closing { link, count: 0, tag, words },
    ];
    frames.iter().map(Frame::to_bytes).collect()
}

/// One tick frame of each kind.
pub(crate) fn tick_frames() -> Vec<Vec<u8>> {
    let claim = |kind| Claim {
        kind,
        session: 7,
        from: Timestamp(1_000_000),
        to: Timestamp(2_000_000),
        masked_count: 9,
        root: RootPrefix([5; 16]),
        tag: Tag([3; 16]),
    };
    let with_mac = |mut frame: Vec<u8>| {
        frame.extend([4; MAC_LEN]);
        frame
    };
    let tick = |kind| with_mac(body(&claim(kind), &[1, u64::MAX, 0]));
    let gap = |kind| with_mac(body(&claim(kind), &[]));
    let opening = |previous| {
        let (at, ingest) = (Timestamp(10), Digest([1; 32]));
        let head = OpeningHead { session: 7, at, tag: Tag([3; 16]), ingest, previous };
        let mut frame = head.to_bytes();
        frame.resize(OPENING_LEN, 8);
        frame
    };
    vec![
        tick(ClaimKind::Tick),
        tick(ClaimKind::ClosingTick),
        gap(ClaimKind::Gap),
        gap(ClaimKind::ClosingGap),
        opening(None),
        opening(Some((6, Timestamp(9)))),
    ]
}

/// One annotation.
pub(crate) fn annotations() -> Vec<Vec<u8>> {
    let schema = Schema::from_yaml(include_str!("../../../examples/fitness/schema.yaml"));
    let annotation = schema.map(|schema| Annotation {
        stream: StreamId([1; 16]),
        owner: OwnerId([9; 32]),
        schema: schema.id(),
        valid_from: Timestamp(0),
        valid_to: Timestamp(1 << 50),
        version: 300,
        metadata: vec![("region".to_owned(), "west".to_owned())],
        policy: ResolvedPolicy::first_offered(&schema),
    });
    annotation.iter().filter_map(|annotation| postcard::to_allocvec(annotation).ok()).collect()
}

/// A grant, and a day's key that a controller hands out.
pub(crate) fn raw_access() -> Vec<Vec<u8>> {
    let (stream, reader) = (StreamId([1; 16]), ConsumerId([2; 32]));
    let grant = Grant { stream, reader, at: Timestamp(7), days: Days::new(1, 9).ok() };
    let day = [&[3][..], &[5; 32], &[32], &[6; 32]].concat();
    postcard::to_allocvec(&grant).into_iter().chain([day]).collect()
}
