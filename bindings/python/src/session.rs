//! A session that encrypts, for those who send frames themselves.

use crate::columns::{Row, Table, copied};
use crate::errors;
use crate::process::{Home, not_copied};
use crate::schema::PySchema;
use crate::shape::Shape;
use alpheus_encrypted_stream::encode::{EncodeError, Value};
use alpheus_encrypted_stream::producer::{
    CloseError, EventError, EventVector, OpeningSecrets, SetupError, Start,
};
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Category, Failure};
use alpheus_node::network::revocations::open_identity;
use alpheus_node::network::role::Role;
use alpheus_stream_runtime::stream_producer::{StreamProducer, StreamSession};
use alpheus_streams::ingest_keys::DeviceIdentity;
use alpheus_streams::owner::DeviceFile;
use alpheus_streams::produce::live_device::time_of_line;
use alpheus_time::Timestamp;
use chacha20::ChaCha20Rng;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use rand_core::CryptoRng;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A session, its randomness, and the frames that were made and not fetched yet.
pub struct OpenSession<R> {
    session: StreamSession,
    rng: R,
    frames: Vec<Vec<u8>>,
}

impl<R: CryptoRng> OpenSession<R> {
    /// Opens a session at a tick.
    ///
    /// # Errors
    /// The producer's reason as an exception.
    pub fn open(
        producer: StreamProducer,
        (start, at): (Start, Timestamp),
        mut rng: R,
    ) -> PyResult<OpenSession<R>> {
        let mut frames = Vec::new();
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        let opened = producer.open(start, at, None, &mut rng, sink);
        let session = opened.map_err(|(_, error)| errors::refused(&error))?;
        Ok(OpenSession { session, rng, frames })
    }

    /// Encrypts one event.
    ///
    /// # Errors
    /// The session's reason, or what `error` makes of the encoding's.
    pub fn event<E>(
        &mut self,
        at: Timestamp,
        encode: impl FnOnce(&mut R, &mut EventVector<'_>) -> Result<(), E>,
        error: impl FnOnce(E) -> PyErr,
    ) -> PyResult<()> {
        let frames = &mut self.frames;
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        self.session.event(at, &mut self.rng, encode, sink).map_err(|refused| match refused {
            EventError::Encoding(own) => error(own),
            EventError::Time(own) => errors::refused(&own),
            EventError::Vector(own) => errors::refused(&own),
        })
    }

    /// Makes the borders of all ticks up to a time.
    ///
    /// # Errors
    /// The session's reason.
    pub fn advance(&mut self, now: Timestamp) -> PyResult<()> {
        let frames = &mut self.frames;
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        self.session.advance(now, &mut self.rng, sink).map_err(|error| errors::refused(&error))
    }

    /// Makes one frame for all ticks that have passed since the last event, where a frame is a tick.
    ///
    /// # Errors
    /// The session's reason.
    pub fn sleep_until(&mut self, now: Timestamp) -> PyResult<()> {
        let frames = &mut self.frames;
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        self.session.sleep_until(now, &mut self.rng, sink).map_err(|error| errors::refused(&error))
    }

    /// Closes the session at a tick, and returns the last frames. A session that does not close is gone.
    ///
    /// # Errors
    /// The session's reason.
    pub fn close(mut self, at: Timestamp) -> PyResult<Vec<Vec<u8>>> {
        let mut frames = std::mem::take(&mut self.frames);
        let sink = &mut |frame: &[u8]| frames.push(frame.to_vec());
        let closed = self.session.close(at, &mut self.rng, sink);
        closed.map_err(|(_, error)| match error {
            CloseError::Time(own) => errors::refused(&own),
            CloseError::NotATick { .. } => errors::refused(&error),
        })?;
        Ok(frames)
    }

    /// The frames that were made since the last call.
    pub fn take(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.frames)
    }
}

/// A session of a stream.
#[pyclass(name = "Session", module = "alpheus._native", frozen)]
pub struct PySession {
    home: Home,
    shape: Arc<Shape>,
    stream: String,
    running: Mutex<Option<OpenSession<ChaCha20Rng>>>,
}

impl PySession {
    /// Acts on the session, in the process that opened it, while other threads of Python run: a
    /// thread that waits for the session must not hold the interpreter.
    fn on<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Option<OpenSession<ChaCha20Rng>>) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.home.check()?;
        py.detach(|| act(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The same until it is closed.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut OpenSession<ChaCha20Rng>) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.on(py, |running| match running {
            Some(running) => act(running),
            None => Err(errors::session("the session is closed; open another")),
        })
    }

    fn encrypt(
        &self,
        running: &mut OpenSession<ChaCha20Rng>,
        at: Timestamp,
        values: &[Value<'_>],
        row: Option<usize>,
    ) -> PyResult<()> {
        let encoder = &self.shape.encoder;
        running.event(
            at,
            |rng, vector| encoder.encode(values, rng, |word, addend| vector.add(word, addend)),
            |error: EncodeError| errors::encode(&error, row),
        )
    }
}

#[pymethods]
impl PySession {
    /// Opens a session at the next tick of the clock; as the stream's first at the tick at or before `at_us`.
    #[staticmethod]
    #[pyo3(signature = (schema, device, identity = None, first = false, at_us = None))]
    fn open(
        py: Python<'_>,
        schema: &PySchema,
        device: PathBuf,
        identity: Option<PathBuf>,
        first: bool,
        at_us: Option<u64>,
    ) -> PyResult<PySession> {
        let shape = Arc::clone(&schema.0);
        let opened = py.detach(|| producer(&shape, &device, identity.as_deref()));
        let producer = opened.map_err(|failure| errors::failure(&failure))?;
        let rng = entropy::rng().map_err(|failure| errors::failure(&failure))?;
        let now = clock::now();
        let stream = producer.stream().to_string();
        let start = if first {
            let at = at_us.map_or(now, Timestamp);
            (Start::First, at.floor(shape.schema.tick))
        } else {
            (Start::Again { now }, producer.next_tick(at_us.map_or(now, Timestamp).max(now)))
        };
        let running = Mutex::new(Some(OpenSession::open(producer, start, rng)?));
        Ok(PySession { home: Home::here(), shape, stream, running })
    }

    /// Frames that wait: after opening, the session's first.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let frames = self.with(py, |running| Ok(running.take()))?;
        as_bytes(py, frames)
    }

    /// Encrypts one event at a time in microseconds.
    fn event<'py>(
        &self,
        py: Python<'py>,
        event: &Bound<'py, PyDict>,
        at_us: u64,
    ) -> PyResult<Bound<'py, PyList>> {
        let row = Row::of(event, &self.shape.schema, None)?;
        let frames = self.with(py, |running| {
            self.encrypt(running, Timestamp(at_us), &row.values(), None)?;
            Ok(running.take())
        })?;
        as_bytes(py, frames)
    }

    /// Encrypts rows of columns. All are checked before the first is encrypted. A row of the same
    /// millisecond as the one before, or on a tick, gets the next free microsecond.
    fn events<'py>(
        &self,
        py: Python<'py>,
        columns: &Bound<'py, PyDict>,
        times_us: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let schema = &self.shape.schema;
        let (table, times) = (Table::of(columns, schema)?, copied::<i64>(times_us)?);
        let frames = self.with(py, |running| {
            let placed = placed(&table, &times, running.session.last(), &self.shape)?;
            for (row, at) in placed.into_iter().enumerate() {
                let cells = table.row(row, schema)?;
                self.encrypt(running, at, &cells.values(), Some(row))?;
            }
            Ok(running.take())
        })?;
        as_bytes(py, frames)
    }

    /// Makes the borders of all ticks up to a time in microseconds.
    fn advance<'py>(&self, py: Python<'py>, now_us: u64) -> PyResult<Bound<'py, PyList>> {
        let frames = self.with(py, |running| {
            running.advance(Timestamp(now_us))?;
            Ok(running.take())
        })?;
        as_bytes(py, frames)
    }

    /// The device slept up to a time in microseconds.
    fn sleep_until<'py>(&self, py: Python<'py>, now_us: u64) -> PyResult<Bound<'py, PyList>> {
        let frames = self.with(py, |running| {
            running.sleep_until(Timestamp(now_us))?;
            Ok(running.take())
        })?;
        as_bytes(py, frames)
    }

    /// Ends the session at the end of its tick, or at a later tick.
    #[pyo3(signature = (at_us = None))]
    fn close<'py>(&self, py: Python<'py>, at_us: Option<u64>) -> PyResult<Bound<'py, PyList>> {
        let frames = self.on(py, |running| match running.take() {
            Some(running) => {
                let at = at_us.map_or(running.session.next_border(), Timestamp);
                running.close(at)
            }
            None => Ok(Vec::new()),
        })?;
        as_bytes(py, frames)
    }

    #[getter]
    fn stream(&self) -> &str {
        &self.stream
    }

    /// The session's number, which is public.
    #[getter]
    fn number(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |running| Ok(running.session.number()))
    }

    /// The time of its last event or border, in microseconds.
    #[getter]
    fn last_us(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |running| Ok(running.session.last().0))
    }

    /// The time of the next border, in microseconds.
    #[getter]
    fn next_border_us(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |running| Ok(running.session.next_border().0))
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.on(py, |running| Ok(running.is_none()))
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(not_copied("a session"))
    }

    fn __repr__(&self) -> String {
        format!("<alpheus.Session of stream {}>", self.stream)
    }
}

/// The producer of a device's file, with the device's key if the schema needs one.
fn producer(
    shape: &Shape,
    device: &Path,
    identity: Option<&Path>,
) -> Result<StreamProducer, Failure> {
    let (stream, master) = DeviceFile::read(device, &shape.schema)?;
    let secrets = || -> Result<OpeningSecrets, ProducerError> {
        let folder = identity.ok_or(ProducerError::NoIdentity)?;
        let folder = open_identity(folder, Role::Producer).map_err(ProducerError::Identity)?;
        Ok(DeviceIdentity::open(&folder).map_err(ProducerError::Identity)?.secrets)
    };
    let made = StreamProducer::for_schema(&master, stream, &shape.schema, &shape.layout, secrets);
    made.map_err(|error| match error {
        ProducerError::Identity(failure) => failure,
        ProducerError::Setup(error) => Failure::new(Category::Input, error),
        ProducerError::NoIdentity => {
            let what =
                "this schema has one frame a tick, and opening a session takes the device's key";
            Failure::new(Category::Usage, what)
                .with_help("give `identity`, the device's folder from `alpheus ca issue`")
        }
    })
}

/// Why there is no producer.
enum ProducerError {
    Setup(SetupError),
    Identity(Failure),
    NoIdentity,
}

impl From<SetupError> for ProducerError {
    fn from(error: SetupError) -> Self {
        ProducerError::Setup(error)
    }
}

/// The time of each row, once all rows are checked.
fn placed(
    table: &Table,
    times: &[i64],
    mut last: Timestamp,
    shape: &Shape,
) -> PyResult<Vec<Timestamp>> {
    if times.len() != table.rows() {
        return Err(errors::event(None, "WrongLength", "there is not one time for each row"));
    }
    table.check(shape)?;
    let place = |(row, time): (usize, &i64)| {
        let said = u64::try_from(*time).ok().map(Timestamp).filter(|at| *at < Timestamp::LIMIT);
        let said =
            said.ok_or_else(|| errors::event(Some(row), "BeyondLimit", "no time of an event"))?;
        let at = time_of_line(said, last, shape.schema.tick);
        last = at.map_err(|late| errors::event(Some(row), "NotAscending", late))?;
        Ok(last)
    };
    times.iter().enumerate().map(place).collect()
}

/// Frames as Python's bytes, each freed as it is copied: thousands of large ones are not held twice.
pub(crate) fn as_bytes(py: Python<'_>, frames: Vec<Vec<u8>>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for frame in frames {
        list.append(PyBytes::new(py, &frame))?;
    }
    Ok(list)
}
