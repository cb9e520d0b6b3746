//! The cost of one event at the producer and in a window sum, beside the floor: the AES and the
//! additions that no implementation can avoid. `cargo bench -p alpheus-encrypted-stream`.

#![expect(clippy::unwrap_used, reason = "a bench's way to fail")]

mod processor;

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_encrypted_stream::frame::{Frame, FrameView};
use alpheus_encrypted_stream::keys::{MasterSecret, StreamKeys};
use alpheus_encrypted_stream::producer::{EventVector, Producer, Session, Start};
use alpheus_encrypted_stream::sums::TickSum;
use alpheus_policy::ids::StreamId;
use alpheus_policy::layout::Layout;
use alpheus_policy::plan::Release;
use alpheus_policy::schema::{AttributeKind, Schema};
use alpheus_time::Timestamp;
use chacha20::ChaCha12Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use processor::measure;
use std::hint::black_box;

/// The applications' schemas.
const SCHEMAS: [(&str, &str); 3] = [
    ("fitness", include_str!("../../../examples/fitness/schema.yaml")),
    ("web analytics", include_str!("../../../examples/web-analytics/schema.yaml")),
    ("car maintenance", include_str!("../../../examples/car-maintenance/schema.yaml")),
];

/// Different events in turn, so that no branch predictor learns one by heart.
const EVENTS: usize = 64;
const START: Timestamp = Timestamp(1_700_000_000_000_000);
const STREAM: StreamId = StreamId([1; 16]);

struct Application {
    name: String,
    schema: Schema,
    layout: Layout,
    encoder: Encoder,
    events: Vec<Vec<Value<'static>>>,
    rng: ChaCha12Rng,
}

impl Application {
    fn new((name, yaml): (&str, &str)) -> Application {
        let schema = Schema::from_yaml(&format!("frames: events\n{yaml}")).unwrap();
        let layout = Layout::of(&schema).unwrap();
        let encoder = Encoder::new(&schema, &layout).unwrap();
        let mut rng = ChaCha12Rng::from_seed([3; 32]);
        let events = (0..EVENTS).map(|_| event(&schema, &mut rng)).collect();
        let name = format!("{name}, {} words", layout.words);
        Application { name, schema, layout, encoder, events, rng }
    }

    fn master() -> MasterSecret {
        MasterSecret::new(Secret::from_bytes([2; 32]))
    }

    fn session(&mut self, sink: &mut impl FnMut(&[u8])) -> Session {
        let master = Self::master();
        let producer = Producer::for_schema(&master, STREAM, &self.schema, &self.layout).unwrap();
        let start = producer.next_tick(START);
        producer.open(Start::First, start, &mut self.rng, sink).unwrap()
    }

    /// Data frames, and no borders.
    fn frames(&mut self) -> Vec<Vec<u8>> {
        let mut frames: Vec<Vec<u8>> = Vec::new();
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        let mut session = self.session(sink);
        for (i, event) in (1..).zip(&self.events) {
            let (encoder, rng) = (&self.encoder, &mut self.rng);
            let t = Timestamp(session.last().0 + i);
            session.event(t, |v| encoder.encode(event, rng, |w, a| v.add(w, a)), sink).unwrap();
        }
        frames.split_off(1)
    }
}

/// Values in the lower part of the attributes' ranges, where histograms have bins.
fn event(schema: &Schema, rng: &mut ChaCha12Rng) -> Vec<Value<'static>> {
    let value = |kind: &AttributeKind| match *kind {
        AttributeKind::Number { min, max, .. } => {
            let range = max.abs_diff(min).clamp(1, 1000);
            Value::Number(min.saturating_add_unsigned(rng.next_u64() % range))
        }
        AttributeKind::Boolean => Value::Boolean(rng.next_u32() & 1 == 1),
        AttributeKind::Text { .. } => Value::Text(b"text"),
    };
    schema.attributes.iter().map(|attribute| &attribute.kind).map(value).collect()
}

/// The floor of an event: an AES key stream, minus the previous one.
struct KeyStream {
    key: Aes128Enc,
    blocks: Vec<Block>,
    last: Vec<[u64; 2]>,
    words: Vec<[u64; 2]>,
}

impl KeyStream {
    fn new(words: u16) -> KeyStream {
        let blocks = usize::from(words).div_ceil(2);
        KeyStream {
            key: Aes128Enc::new(&[7; 16].into()),
            blocks: vec![Block::default(); blocks],
            last: vec![[0; 2]; blocks],
            words: vec![[0; 2]; blocks],
        }
    }

    fn next(&mut self, t: u64) {
        for (j, block) in (0_u64..).zip(&mut self.blocks) {
            *block = Block::from((u128::from(t) << 64 | u128::from(j)).to_be_bytes());
        }
        self.key.encrypt_blocks(&mut self.blocks);
        for ((block, last), words) in self.blocks.iter().zip(&mut self.last).zip(&mut self.words) {
            let (halves, _) = block.0.as_chunks::<8>();
            let key = [halves[0], halves[1]].map(u64::from_le_bytes);
            *words = [key[0].wrapping_sub(last[0]), key[1].wrapping_sub(last[1])];
            *last = key;
        }
        black_box(&self.words);
    }
}

fn events(c: &mut Criterion) {
    for schema in SCHEMAS {
        let mut app = Application::new(schema);
        let mut group = c.benchmark_group(format!("event/{}", app.name));
        group.throughput(Throughput::Elements(1));
        let (mut floor, mut t) = (KeyStream::new(app.layout.words), 0);
        group.bench_function("floor: AES key stream and subtraction", |b| {
            measure(b, || {
                t += 1;
                floor.next(black_box(t));
            });
        });
        let mut words = vec![0_u64; app.layout.words.into()];
        let mut turn = app.events.iter().cycle();
        group.bench_function("encode", |b| {
            measure(b, || {
                let event = black_box(turn.next().unwrap());
                let add = |word: u16, addend| {
                    let word = &mut words[usize::from(word)];
                    *word = word.wrapping_add(addend);
                };
                app.encoder.encode(event, &mut app.rng, add).unwrap();
            });
        });
        let sink = &mut |frame: &[u8]| _ = black_box(frame);
        let mut session = app.session(sink);
        let (mut t, mut turn) = (session.last().0, app.events.iter().cycle());
        group.bench_function("encode and encrypt", |b| {
            measure(b, || {
                t += 1 + u64::from((t + 1).is_multiple_of(app.schema.tick.0));
                let (encoder, rng, event) = (&app.encoder, &mut app.rng, turn.next().unwrap());
                let encode = |vector: &mut EventVector<'_>| {
                    encoder.encode(black_box(event), rng, |word, addend| vector.add(word, addend))
                };
                session.event(Timestamp(t), encode, sink).unwrap();
            });
        });
        group.finish();
    }
}

fn window_sums(c: &mut Criterion) {
    for schema in SCHEMAS {
        let mut app = Application::new(schema);
        let (frames, words) = (app.frames(), usize::from(app.layout.words));
        let plain: Vec<Vec<u64>> = frames
            .iter()
            .map(|frame| FrameView::parse(frame).unwrap().words().unwrap().iter().collect())
            .collect();
        let mut group = c.benchmark_group(format!("window sum/{}", app.name));
        group.throughput(Throughput::Elements(EVENTS as u64));
        let mut sum = vec![0_u64; words];
        group.bench_function("floor: addition of words", |b| {
            measure(b, || {
                for event in black_box(&plain) {
                    sum.iter_mut()
                        .zip(event)
                        .for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
                }
            });
        });
        let mut sum = TickSum::new(words);
        group.bench_function("read frames and add them to a tick", |b| {
            measure(b, || {
                for frame in black_box(&frames) {
                    match FrameView::parse(frame).unwrap() {
                        Frame::Data { link, words } => sum.add_data(&link, &words).unwrap(),
                        _ => unreachable!("only data frames"),
                    }
                }
            });
        });
        let other = sum.clone();
        group.throughput(Throughput::Elements(1));
        group.bench_function("merge two sums", |b| measure(b, || sum.merge(&other).unwrap()));
        group.finish();
    }
}

/// A controller's key part of a token: two key vectors, whatever the number of events.
fn key_sums(c: &mut Criterion) {
    for schema in SCHEMAS {
        let app = Application::new(schema);
        let words = app.layout.words;
        let mut keys = StreamKeys::new(&Application::master(), STREAM, app.schema.id());
        let mut group = c.benchmark_group(format!("key sum/{}", app.name));
        let (mut floor, mut t) = (KeyStream::new(words), 0);
        group.bench_function("floor: two AES key streams", |b| {
            measure(b, || {
                t += 2;
                floor.next(black_box(t - 1));
                floor.next(black_box(t));
            });
        });
        let release = Release { rows: (0..words).map(|word| vec![word]).collect() };
        let tick = app.schema.tick;
        group.bench_function("token of all words", |b| {
            measure(b, || keys.key_sum(&release, 7, START, START.plus(tick)).unwrap());
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = processor::config();
    targets = events, window_sums, key_sums
}
criterion_main!(benches);
