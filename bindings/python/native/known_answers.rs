//! The module `known_answers`, for tests alone: sessions whose number and keys are chosen. The wheel
//! does not have it.

use alpheus_crypto::secret::Secret;
use alpheus_encrypted_stream::keys::MasterSecret;
use alpheus_encrypted_stream::producer::{Producer, Start};
use alpheus_policy::ids::{SchemaId, StreamId};
use alpheus_python::{Running, refused};
use alpheus_streams::runtime::producing::StreamProducer;
use alpheus_time::{Span, Timestamp};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use rand_core::{TryCryptoRng, TryRng};
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

/// What a session draws: a number that is chosen, and nothing else.
struct Chosen(u64);

impl TryRng for Chosen {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(0)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        out.fill(0);
        Ok(())
    }
}

impl TryCryptoRng for Chosen {}

/// A session of words, under a chosen number.
#[pyclass(frozen)]
struct KnownSession(Mutex<Option<Running<Chosen>>>);

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
        let running = Running::open(producer, (Start::First, Timestamp(at)), Chosen(number))?;
        Ok(KnownSession(Mutex::new(Some(running))))
    }

    /// Encrypts words; gives the frames since the last call.
    fn event<'py>(&self, py: Python<'py>, t: u64, plain: Vec<u64>) -> PyResult<Bound<'py, PyList>> {
        let mut session = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let session = session.as_mut().ok_or_else(|| PyValueError::new_err("closed"))?;
        let encode =
            |_: &mut Chosen, vector: &mut alpheus_encrypted_stream::producer::EventVector<'_>| {
                for (at, word) in (0..).zip(&plain) {
                    vector.add(at, *word);
                }
                Ok::<(), Infallible>(())
            };
        session.event(Timestamp(t), encode, |never| match never {})?;
        frames(py, session.take())
    }

    fn close<'py>(&self, py: Python<'py>, at: u64) -> PyResult<Bound<'py, PyList>> {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let session = session.ok_or_else(|| PyValueError::new_err("closed"))?;
        frames(py, session.close(Timestamp(at))?)
    }
}

fn frames(py: Python<'_>, frames: Vec<Vec<u8>>) -> PyResult<Bound<'_, PyList>> {
    PyList::new(py, frames.iter().map(|frame| PyBytes::new(py, frame)))
}

#[pymodule]
fn known_answers(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<KnownSession>()
}
