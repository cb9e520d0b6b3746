//! The module `known_answers`, for tests alone: sessions whose number and keys are chosen. The wheel
//! does not have it.

use alpheus_crypto::hash::Digest;
use alpheus_crypto::seal::SealingKey;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::sign::{SigningKey, VerifyingKey};
use alpheus_encrypted_stream::encode::{Encoder, Value};
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::producer::{
    EventVector, OpeningSecrets, Producer, Start, TickProducer, TickShape,
};
use alpheus_encrypted_stream::tick::sums::Blocks;
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_policy::layout::Layout;
use alpheus_policy::schema::Schema;
use alpheus_python::{OpenSession, refused};
use alpheus_stream_runtime::stream_producer::StreamProducer;
use alpheus_time::{Span, Timestamp};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use rand_core::{TryCryptoRng, TryRng};
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

/// What a session draws: a number that is chosen, then a key that is chosen, then what is not compared.
struct ChosenRng {
    number: u64,
    key: Option<[u8; 32]>,
}

impl TryRng for ChosenRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(0)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.number)
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        match self.key.take() {
            Some(key) if out.len() == key.len() => out.copy_from_slice(&key),
            _ => out.fill(1),
        }
        Ok(())
    }
}

impl TryCryptoRng for ChosenRng {}

/// A session of words, under a chosen number.
#[pyclass(frozen)]
struct KnownSession(Mutex<Option<OpenSession<ChosenRng>>>);

#[pymethods]
impl KnownSession {
    #[new]
    fn new(
        master: [u8; 32],
        stream: [u8; 16],
        schema: [u8; 32],
        shape: (u64, u16),
        opening: (u64, u64),
    ) -> PyResult<KnownSession> {
        let ((tick, words), (number, at)) = (shape, opening);
        let master = MasterSecret::new(Secret::from_bytes(master));
        let (stream, schema) = (StreamId(stream), SchemaId(schema));
        let producer = Producer::new(&master, stream, schema, Span(tick), words);
        let producer = producer.map_err(|error| refused(&error))?;
        let producer = StreamProducer::Events(Box::new(producer));
        KnownSession::open(producer, at, ChosenRng { number, key: None })
    }

    /// A session of one frame a tick, under a chosen number and key.
    #[staticmethod]
    fn ticks(
        keys: ([u8; 32], [u8; 16], [u8; 32]),
        shape: (u64, u64, Vec<u16>),
        secrets: [[u8; 32]; 5],
        opening: (u64, [u8; 32], u64),
    ) -> PyResult<KnownSession> {
        let (master, stream, schema) = keys;
        let (tick, anchor, lengths) = shape;
        let [device, certificate, authority, ingest, ingest_seed] = secrets;
        let (number, key, at) = opening;
        let authority = VerifyingKey::from_bytes(authority);
        let secrets = OpeningSecrets {
            device: SigningKey::from_seed(&Secret::from_bytes(device)),
            certificate: Digest(certificate),
            authority: authority.map_err(|error| refused(&error))?,
            ingest: Digest(ingest),
            ingest_key: SealingKey::from_seed(&Secret::from_bytes(ingest_seed)).public(),
        };
        let blocks = Blocks::of_lengths(&lengths);
        let shape = TickShape { tick: Span(tick), anchor: Span(anchor), blocks };
        let master = MasterSecret::new(Secret::from_bytes(master));
        let (stream, schema) = (StreamId(stream), SchemaId(schema));
        let producer = TickProducer::new(&master, stream, schema, shape, secrets);
        let producer = producer.map_err(|error| refused(&error))?;
        let producer = StreamProducer::Ticks(Box::new(producer));
        KnownSession::open(producer, at, ChosenRng { number, key: Some(key) })
    }

    fn advance<'py>(&self, py: Python<'py>, now: u64) -> PyResult<Bound<'py, PyList>> {
        self.with(py, |session| session.advance(Timestamp(now)))
    }

    fn sleep_until<'py>(&self, py: Python<'py>, now: u64) -> PyResult<Bound<'py, PyList>> {
        self.with(py, |session| session.sleep_until(Timestamp(now)))
    }

    /// Encrypts words; gives the frames since the last call.
    fn event<'py>(&self, py: Python<'py>, t: u64, plain: Vec<u64>) -> PyResult<Bound<'py, PyList>> {
        let encode = |_: &mut ChosenRng, vector: &mut EventVector<'_>| {
            for (at, word) in (0..).zip(&plain) {
                vector.add(at, *word);
            }
            Ok::<(), Infallible>(())
        };
        self.with(py, |session| session.event(Timestamp(t), encode, |never| match never {}))
    }

    fn close<'py>(&self, py: Python<'py>, at: u64) -> PyResult<Bound<'py, PyList>> {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let session = session.ok_or_else(|| PyValueError::new_err("closed"))?;
        frames(py, session.close(Timestamp(at))?)
    }
}

impl KnownSession {
    fn open(producer: StreamProducer, at: u64, rng: ChosenRng) -> PyResult<KnownSession> {
        let running = OpenSession::open(producer, (Start::First, Timestamp(at)), rng)?;
        Ok(KnownSession(Mutex::new(Some(running))))
    }

    /// Acts, and gives the frames since the last call.
    fn with<'py>(
        &self,
        py: Python<'py>,
        act: impl FnOnce(&mut OpenSession<ChosenRng>) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut session = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let session = session.as_mut().ok_or_else(|| PyValueError::new_err("closed"))?;
        act(session)?;
        frames(py, session.take())
    }
}

/// Encrypts so many events of one number in a loop of Rust: the bytes of their frames. Figures of
/// Python stand beside the time that this takes.
#[pyfunction]
fn encrypt_in_rust(py: Python<'_>, schema: &str, events: u64) -> PyResult<usize> {
    let schema =
        Schema::from_yaml(schema).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let layout = Layout::of(&schema).map_err(|error| refused(&error))?;
    let encoder = Encoder::new(&schema, &layout).map_err(|error| refused(&error))?;
    let master = MasterSecret::new(Secret::from_bytes([1; 32]));
    let producer = Producer::for_schema(&master, StreamId([2; 16]), &schema, &layout);
    let producer = producer.map_err(|error| refused(&error))?;
    let (mut bytes, begin) = (0, Timestamp(1_772_366_400_000_000));
    let rng = &mut ChosenRng { number: 1, key: None };
    py.detach(|| {
        let sink = &mut |frame: &[u8]| bytes += frame.len();
        let session = producer.open(Start::First, begin, rng, sink);
        let mut session = session.map_err(|error| refused(&error.error))?;
        for event in 0..events {
            let values = [Value::Number(i64::try_from(event % 6_800).unwrap_or(0))];
            let encode = |vector: &mut EventVector<'_>| {
                encoder.encode(&values, rng, |word, addend| vector.add(word, addend))
            };
            let at = Timestamp(begin.0 + 1 + event * 100);
            session.event(at, encode, sink).map_err(|error| refused(&error))?;
        }
        PyResult::Ok(())
    })?;
    Ok(bytes)
}

fn frames(py: Python<'_>, frames: Vec<Vec<u8>>) -> PyResult<Bound<'_, PyList>> {
    PyList::new(py, frames.iter().map(|frame| PyBytes::new(py, frame)))
}

#[pymodule]
fn known_answers(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(encrypt_in_rust, module)?)?;
    module.add_class::<KnownSession>()
}
