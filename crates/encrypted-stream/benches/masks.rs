//! One controller's cost of masks, openings and noise for a window, beside the floor: the AES and
//! the random bytes that no implementation can avoid. `cargo bench -p alpheus-encrypted-stream`.

#![expect(clippy::unwrap_used, reason = "a bench's way to fail")]

mod processor;

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use alpheus_crypto::agree::{AgreementKey, AgreementPublic};
use alpheus_crypto::hash::labelled_hash;
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::decode::decode;
use alpheus_encrypted_stream::mask::cuts::{Cuts, least};
use alpheus_encrypted_stream::mask::epoch::Epoch;
use alpheus_encrypted_stream::mask::params::{self, largest_b};
use alpheus_encrypted_stream::mask::set::RosterSet;
use alpheus_encrypted_stream::mask::{Masker, OwnKey, PairKeys, Storage, Terms, WindowMembers};
use alpheus_encrypted_stream::noise::{SeedTables, Shares};
use alpheus_encrypted_stream::sums::add;
use alpheus_policy::budget::{RowNoise, RunningNoise};
use alpheus_policy::ids::PlanId;
use alpheus_policy::plan::MaskStrategy;
use alpheus_policy::select::{
    Bins, HistogramOutput, MomentOutput, ReleasePlan, SelectItem, Statistic, SumLocation,
};
use alpheus_time::{Span, Timestamp, Window};
use chacha20::ChaCha20Rng;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use processor::measure;
use rand_core::{Rng, SeedableRng};
use std::hint::black_box;
use std::num::NonZeroU32;

const CONTROLLERS: u32 = 1_000;
/// Half of the controllers may collude, as in the paper's measurements.
const COLLUDERS: u32 = 500;
const DELTA_EXPONENT: u8 = 7;
/// The measured controller's position.
const OWN: u32 = 500;
const PLAN: PlanId = PlanId([5; 32]);
const LENGTH: Span = Span::seconds(10);
/// Words of a token: a small release, and a wide one as in `alpheus-bench`.
const WORDS: [usize; 2] = [3, 683];

fn secret(label: &str, position: u32) -> Secret<32> {
    Secret::from_bytes(labelled_hash(label, &[&position.to_be_bytes()]).0)
}

fn terms(masks: MaskStrategy) -> Terms {
    Terms { plan: PLAN, controllers: CONTROLLERS, window: LENGTH, masks, may_be_alone: false }
}

/// Keys with every other controller. The agreements' values do not matter here.
fn all_pairs(storage: Storage) -> PairKeys {
    let others: Vec<Secret<32>> = (1..CONTROLLERS).map(|other| secret("pair", other)).collect();
    PairKeys::from_secrets(OWN, &others, storage)
}

/// A roster of key pairs, for keys with picks alone.
struct Roster {
    key: AgreementKey,
    public: Vec<AgreementPublic>,
}

impl Roster {
    fn new() -> Roster {
        let key = |position| AgreementKey::from_seed(&secret("key", position));
        let public = (0..CONTROLLERS).map(|position| key(position).public()).collect();
        Roster { key: key(OWN), public }
    }

    /// This many positions, evenly spread, without the controller's own.
    fn picks(&self, count: u32, shift: u32) -> Vec<u32> {
        let step = CONTROLLERS / count;
        (0..count).map(|i| i * step + shift).filter(|position| *position != OWN).collect()
    }

    fn pairs(&self, picks: &[u32]) -> PairKeys {
        let storage = Storage::Expanded;
        PairKeys::agree_with_picks(&self.key, &self.public, OWN, picks, storage).unwrap()
    }
}

/// The sets of a window.
struct Sets {
    members: RosterSet,
    /// All members, or nine in ten.
    opened: [RosterSet; 2],
    pickers: Vec<u32>,
}

impl Sets {
    fn new(pickers: Vec<u32>) -> Sets {
        let members = RosterSet::full(CONTROLLERS);
        let most = (0..CONTROLLERS).filter(|position| position % 10 != 7);
        let opened = [members.clone(), RosterSet::of(CONTROLLERS, most)];
        Sets { members, opened, pickers }
    }

    /// Windows in turn, all of one epoch: drawing an epoch has a separate figure.
    fn round(&self, number: u64) -> WindowMembers<'_> {
        let start = Timestamp(number % 256 * LENGTH.0);
        let window = Window { start, end: start.plus(LENGTH) };
        let (members, membership) = (&self.members, labelled_hash("M", &[]));
        WindowMembers { window, members, membership, pickers: &self.pickers }
    }
}

/// A strategy's masker, and the expected number of neighbours.
struct Case {
    name: &'static str,
    masker: Masker,
    sets: Sets,
    degree: u32,
}

impl Case {
    fn new(name: &'static str, masks: MaskStrategy, pairs: PairKeys, degree: u32) -> Case {
        let own = OwnKey::new(&secret("own", OWN), &PLAN);
        let masker = Masker::with(terms(masks), pairs, own).unwrap();
        Case { name, masker, sets: Sets::new(Vec::new()), degree }
    }

    fn all() -> [Case; 4] {
        let bits = largest_b(COLLUDERS, DELTA_EXPONENT).unwrap();
        let (all, sparse) = (CONTROLLERS - 1, (CONTROLLERS - 1) >> bits);
        let pairs = || all_pairs(Storage::Expanded);
        [
            Case::new("clique", MaskStrategy::Clique, pairs(), all),
            Case::new("dream", MaskStrategy::Dream { bits }, pairs(), sparse),
            Case::new("epoch", MaskStrategy::Epoch { bits }, pairs(), sparse),
            Case::neighbours(),
        ]
    }

    fn neighbours() -> Case {
        let Cuts { picks: count, cut_off } = least(CONTROLLERS, CONTROLLERS / 3, 9).unwrap();
        let roster = Roster::new();
        let (picks, pickers) = (roster.picks(count, 1), roster.picks(count, 2));
        let degree = u32::try_from(picks.len() + pickers.len()).unwrap();
        let masks = MaskStrategy::Neighbours { picks: count, cut_off };
        let mut case = Case::new("neighbours", masks, roster.pairs(&picks), degree);
        case.masker.extend_keys(&roster.key, &roster.public, &pickers).unwrap();
        case.sets = Sets::new(pickers);
        case
    }
}

/// The floor of one round: for each pad one AES block that starts its chain, and one for every two
/// words, under expanded keys.
struct Pads {
    keys: Vec<Aes128Enc>,
    blocks: Vec<Block>,
    sum: Vec<u128>,
}

impl Pads {
    fn new(pads: u32, words: usize) -> Pads {
        let key = |position: u32| Aes128Enc::new(&u128::from(position).to_le_bytes().into());
        let blocks = words.div_ceil(2);
        let keys = (0..pads).map(key).collect();
        Pads { keys, blocks: vec![Block::default(); blocks], sum: vec![0; blocks] }
    }

    fn add(&mut self) {
        for key in &self.keys {
            let mut chain = Block::default();
            key.encrypt_block(&mut chain);
            let chain = u128::from_le_bytes(chain.0);
            for (j, block) in (0_u128..).zip(&mut self.blocks) {
                *block = Block::from((chain ^ j).to_le_bytes());
            }
            key.encrypt_blocks(&mut self.blocks);
            for (sum, block) in self.sum.iter_mut().zip(&self.blocks) {
                *sum = sum.wrapping_add(u128::from_le_bytes(block.0));
            }
        }
        black_box(&self.sum);
    }
}

/// A controller's two answers for a window. The floor is that of each; `Dream` also draws its
/// edges in a window.
fn windows(c: &mut Criterion) {
    for Case { name, mut masker, sets, degree } in Case::all() {
        for words in WORDS {
            let title = format!("{name}, {CONTROLLERS} controllers, {words} words");
            let mut group = c.benchmark_group(title);
            let mut floor = Pads::new(degree + 1, words);
            group.bench_function("floor: AES of the pads", |b| measure(b, || floor.add()));
            let mut number = 0;
            group.bench_function("token", |b| {
                measure(b, || {
                    number += 1;
                    masker.token(&sets.round(number), vec![0; words]).unwrap()
                });
            });
            for (opened, which) in sets.opened.iter().zip(["opening", "opening, 1 in 10 dropped"]) {
                let digest = labelled_hash("S", &[which.as_bytes()]);
                // The round of the last token, so that its neighbours are known.
                let round = sets.round(number);
                group.bench_function(which, |b| {
                    measure(b, || masker.opening(&round, opened, &digest, words).unwrap());
                });
            }
            group.finish();
        }
    }
}

/// Once an epoch: N − 1 key schedules and blocks, and the lists of all its rounds.
fn epochs(c: &mut Criterion) {
    let bits = largest_b(COLLUDERS, DELTA_EXPONENT).unwrap();
    let name = format!("epoch of {} rounds, {CONTROLLERS} controllers", params::rounds(bits));
    let mut group = c.benchmark_group(name);
    let keys: Vec<[u8; 16]> = (1..u128::from(CONTROLLERS)).map(u128::to_le_bytes).collect();
    group.bench_function("floor: AES of the edges", |b| {
        measure(b, || {
            for key in black_box(&keys) {
                let mut block = Block::default();
                Aes128Enc::new(key.into()).encrypt_block(&mut block);
                black_box(block);
            }
        });
    });
    let (pairs, mut epoch) = (all_pairs(Storage::Compact), Epoch::new(PLAN, bits));
    let mut number = 0;
    group.bench_function("draw", |b| {
        measure(b, || {
            number += 1;
            epoch.prepare(&pairs, number);
        });
    });
    group.finish();
}

/// A roster's key agreements. The floor is in them: one X25519 each.
fn agreements(c: &mut Criterion) {
    let roster = Roster::new();
    let picks = roster.picks(100, 1);
    let mut group = c.benchmark_group("key agreement");
    group.throughput(Throughput::Elements(picks.len() as u64));
    group.bench_function("floor: X25519", |b| {
        measure(b, || {
            for pick in &picks {
                let _ = black_box(roster.key.agree(&roster.public[*pick as usize]));
            }
        });
    });
    group.bench_function("with picks", |b| measure(b, || roster.pairs(&picks)));
    group.finish();
}

/// One share of noise for one row. The floor is the randomness that it uses.
fn noise(c: &mut Criterion) {
    let rows = [
        ("Laplace, scale 1,000", RowNoise::Laplace { above: 1, below: 1_000 }),
        ("Laplace, scale 10^9", RowNoise::Laplace { above: 1, below: 1_000_000_000 }),
        ("Skellam, V = 1,000", RowNoise::Skellam { above: 1_000, below: 1, granule: 1 }),
        ("Gaussian, V = 10^6", RowNoise::Gaussian { variance: 1_000_000 }),
    ];
    for ((name, row), honest) in rows.into_iter().flat_map(|row| [(row, 10), (row, 100)]) {
        let shares = Shares::new(&[row], NonZeroU32::new(honest).unwrap()).unwrap();
        let mut rng = ChaCha20Rng::from_seed([7; 32]);
        let mut group = c.benchmark_group(format!("noise share: {name}, n = {honest}"));
        let mut bytes = vec![0; usize::try_from(shares.bytes_per_draw()).unwrap()];
        group.bench_function("floor: ChaCha20", |b| measure(b, || rng.fill_bytes(&mut bytes)));
        group.bench_function("draw", |b| measure(b, || shares.draw(&mut rng)));
        group.finish();
    }
    const WINDOWS: u32 = 500;
    // A coarse grid of seeds, so that they are drawn soon: a share's work does not depend on it.
    let row = RunningNoise { seed_scale: 6 << 8, fraction_bits: 2, fine_bits: 8 };
    let running = SeedTables::new(&[RowNoise::Running(row)], WINDOWS).unwrap();
    let (mut seeds, mut rng) = (running.seeds(), ChaCha20Rng::from_seed([8; 32]));
    (0..WINDOWS).for_each(|_| seeds.extend(&mut rng).unwrap());
    c.bench_function(&format!("share of a running total, window {WINDOWS}"), |b| {
        measure(b, || seeds.share(running.coefficients(), WINDOWS - 1, None).unwrap());
    });
}

/// What the service does once every opening is there: `Σ R·c + Σ (T − o)`, and reading the rows.
fn results(c: &mut Criterion) {
    const BINS: u16 = 100;
    let rows: Vec<u64> = (0..u64::from(BINS)).chain([0]).collect();
    let answers = vec![rows.clone(); 2 * CONTROLLERS as usize];
    c.bench_function(&format!("sum of {CONTROLLERS} tokens and openings, {BINS} rows"), |b| {
        measure(b, || {
            let mut sum = rows.clone();
            answers.iter().for_each(|answer| add(&mut sum, answer));
            sum
        });
    });
    let edges = (0..i64::from(BINS)).collect();
    let cells = (0..BINS).map(|bin| vec![bin]).collect();
    let bins = Bins { edges, cells, min: 0, max: BINS.into(), scale: 0 };
    let median = HistogramOutput::Quantile { numerator: 1, denominator: 2 };
    let histogram = Statistic::Histogram { output: median, bins };
    let (output, scale) = (MomentOutput::Deviation, 1);
    let deviation = Statistic::Moments { output, count: 50, sum: 50, squares: Some(99), scale };
    let item = |statistic| SelectItem { alias: String::new(), statistic };
    let plan = ReleasePlan {
        cells: (0..BINS).map(|row| SumLocation::Whole { row }).collect(),
        items: vec![item(histogram), item(deviation)],
    };
    c.bench_function("decode a median of 100 bins and a standard deviation", |b| {
        measure(b, || decode(&plan, black_box(&rows)).unwrap());
    });
}

criterion_group! {
    name = benches;
    config = processor::config();
    targets = windows, epochs, agreements, noise, results
}
criterion_main!(benches);
