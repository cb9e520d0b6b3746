//! A stream's device: it encrypts events, keeps their frames until the service has them, and sends
//! borders on time. It is what `alpheus produce` runs, on a thread of its own.

use crate::columns::{Row, Table, copied};
use crate::errors;
use crate::process::{Home, not_copied};
use crate::shape::Shape;
use alpheus_input::rows::Cell;
use alpheus_node::failure::{Category, Failure};
use alpheus_node::globals::Globals;
use alpheus_node::service::shutdown::Trigger;
use alpheus_streams::produce::device::{Device, DeviceArgs};
use alpheus_streams::produce::lines::Line;
use alpheus_streams::produce::live_device::{Pace, Summary, time_of_line};
use alpheus_streams::settings;
use alpheus_time::Timestamp;
use clap::Parser;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum number of events that wait to be encrypted; then adding more waits.
const AHEAD: usize = 1024;
/// How often a wait looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(20);
/// A pause while too many events wait.
const FULL: Duration = Duration::from_millis(1);

/// The command line of a device: what `alpheus produce` understands, less its input.
#[derive(Parser)]
struct DeviceLine {
    #[command(flatten)]
    globals: Globals,
    #[command(flatten)]
    device: DeviceArgs,
}

/// A stream that is sent.
#[pyclass(name = "Stream", module = "alpheus._native", frozen)]
pub(crate) struct PyStream {
    home: Home,
    shape: Arc<Shape>,
    timed: bool,
    state: Mutex<State>,
}

/// The device's thread, until it has ended, and how it ended.
struct State {
    running: Option<DeviceThread>,
    ended: Option<Summary>,
}

struct DeviceThread {
    lines: Option<SyncSender<Result<Line, Failure>>>,
    thread: JoinHandle<Result<Summary, Failure>>,
    stop: Trigger,
    /// The last stated time that was sent.
    last: Timestamp,
    added: u64,
}

impl PyStream {
    /// Acts on the state, in the process that opened the stream, while other threads of Python run.
    fn on<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut State) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.home.check()?;
        py.detach(|| act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// When a line's event happens, if the stream's events say it.
    fn time(
        &self,
        at_us: Option<i64>,
        last: Timestamp,
        row: Option<usize>,
    ) -> PyResult<Option<Timestamp>> {
        let wrong = |what| Err(errors::event(row, "Time", what));
        match (self.timed, at_us) {
            (false, None) => Ok(None),
            (false, Some(_)) => wrong(
                "the stream takes times from its clock; open it with times=\"given\" to state them",
            ),
            (true, None) => {
                wrong("the stream was opened with times=\"given\", and the event has none")
            }
            (true, Some(at)) => {
                let said =
                    u64::try_from(at).ok().map(Timestamp).filter(|at| *at < Timestamp::LIMIT);
                let Some(said) = said else {
                    return wrong("the time lies before 1970 or after 2112");
                };
                let at = time_of_line(said, last, self.shape.schema.tick);
                at.map(Some).map_err(|late| errors::event(row, "NotAscending", late))
            }
        }
    }

    /// Gives an event to the device. While too many wait, Ctrl-C ends the call.
    fn send(&self, py: Python<'_>, mut cells: Vec<Cell>, at_us: Option<i64>) -> PyResult<()> {
        while let Some(back) = self.on(py, |state| self.try_send(state, cells, at_us, None))? {
            pause(py)?;
            cells = back;
        }
        Ok(())
    }

    /// Gives an event to the device, or back if too many wait.
    fn try_send(
        &self,
        state: &mut State,
        cells: Vec<Cell>,
        at_us: Option<i64>,
        row: Option<usize>,
    ) -> PyResult<Option<Vec<Cell>>> {
        let State { running: Some(running), .. } = state else {
            return Err(closed());
        };
        let time = self.time(at_us, running.last, row)?;
        let place = format!("event {}", running.added + 1);
        let Some(lines) = &running.lines else { return Err(closed()) };
        match lines.try_send(Ok(Line { place, time, cells, record: None })) {
            Ok(()) => {
                running.added += 1;
                running.last = time.unwrap_or(running.last);
                Ok(None)
            }
            Err(TrySendError::Full(Ok(line))) => Ok(Some(line.cells)),
            // The device has ended by itself, and its failure says why.
            Err(TrySendError::Full(Err(_)) | TrySendError::Disconnected(_)) => {
                state.end()?;
                Err(closed())
            }
        }
    }
}

/// A pause while too many events wait. The stream is not locked meanwhile: a handler of a signal may
/// use it.
fn pause(py: Python<'_>) -> PyResult<()> {
    py.detach(|| std::thread::sleep(FULL));
    py.check_signals()
}

fn closed() -> PyErr {
    errors::session("the stream is closed; open it again")
}

impl State {
    /// Takes the outcome of a thread that has ended, or ends now.
    fn end(&mut self) -> PyResult<Option<Summary>> {
        let Some(running) = self.running.take() else { return Ok(self.ended) };
        drop(running.lines);
        let panicked =
            |_| Err(Failure::new(Category::Io, "the device panicked; this is a bug in Alpheus"));
        let summary = running.thread.join().unwrap_or_else(panicked);
        let summary = summary.map_err(|failure| errors::failure(&failure))?;
        self.ended = Some(summary);
        Ok(self.ended)
    }
}

#[pymethods]
impl PyStream {
    /// Opens a device's stream. `arguments` are those of `alpheus produce`.
    #[staticmethod]
    fn open(py: Python<'_>, arguments: Vec<String>, timed: bool) -> PyResult<PyStream> {
        let line =
            DeviceLine::try_parse_from(std::iter::once("alpheus".to_owned()).chain(arguments));
        let DeviceLine { mut globals, device } = line
            .map_err(|error| errors::failure(&Failure::new(Category::Usage, error.to_string())))?;
        globals.parts = &settings::KEYS;
        let opened = py.detach(|| Device::open(&device, &globals));
        let device = opened.map_err(|failure| errors::failure(&failure))?;
        let shape = Shape::of(device.schema().clone())?;
        let ((lines, received), stop) = (sync_channel(AHEAD), Trigger::new());
        let (shutdown, pace) = (stop.shutdown(), if timed { Pace::Stated } else { Pace::AtOnce });
        let thread = std::thread::Builder::new().name("device".into());
        let thread = thread.spawn(move || device.run(received, pace, &shutdown))?;
        let last = Timestamp(0);
        let running = DeviceThread { lines: Some(lines), thread, stop, last, added: 0 };
        let state = Mutex::new(State { running: Some(running), ended: None });
        Ok(PyStream { home: Home::here(), shape, timed, state })
    }

    /// Adds one event, once it was checked.
    #[pyo3(signature = (event, at_us = None))]
    fn add(&self, py: Python<'_>, event: &Bound<'_, PyDict>, at_us: Option<i64>) -> PyResult<()> {
        let row = Row::of(event, &self.shape.schema, None)?;
        row.check(&self.shape.encoder, None)?;
        self.send(py, row.0, at_us)
    }

    /// Adds rows of columns, once all are checked. Says how many.
    #[pyo3(signature = (columns, times_us = None))]
    fn add_columns(
        &self,
        py: Python<'_>,
        columns: &Bound<'_, PyDict>,
        times_us: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        let schema = &self.shape.schema;
        let table = Table::of(columns, schema)?;
        let times = times_us.map(copied::<i64>).transpose()?;
        if times.as_ref().is_some_and(|times| times.len() != table.rows()) {
            return Err(errors::event(None, "WrongLength", "there is not one time for each row"));
        }
        self.on(py, |state| {
            table.check(&self.shape)?;
            self.check_times(state, times.as_deref(), table.rows())
        })?;
        let mut next = 0;
        loop {
            next = self.on(py, |state| {
                for row in next..table.rows() {
                    let at = times.as_ref().and_then(|times| times.get(row).copied());
                    let back = self.try_send(state, table.row(row, schema)?.0, at, Some(row))?;
                    if back.is_some() {
                        return Ok(row);
                    }
                }
                Ok(table.rows())
            })?;
            if next == table.rows() {
                return Ok(next);
            }
            pause(py)?;
        }
    }

    /// Closes the session at the end of its tick, and waits until the service has all frames. Ctrl-C
    /// ends the wait, at once: the device ends by itself at the end of its tick, and what is left then
    /// waits on disk for the next start. Gives the numbers of events encrypted and refused.
    fn close(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.on(py, |state| {
            if let Some(running) = &mut state.running {
                drop(running.lines.take());
            }
            Ok(())
        })?;
        while !self.on(py, |state| Ok(state.has_ended()))? {
            py.detach(|| std::thread::sleep(LOOK));
            if let Err(signal) = py.check_signals() {
                self.on(py, |state| {
                    state.stop();
                    Ok(())
                })?;
                return Err(signal);
            }
        }
        let summary = self.on(py, State::end)?.unwrap_or_default();
        Ok((summary.events, summary.refused))
    }

    /// Whether it is closed, or has ended by itself.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.on(py, |state| Ok(state.has_ended()))
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(not_copied("a stream"))
    }
}

impl PyStream {
    /// Checks all times, so that no row is sent if one is wrong.
    fn check_times(&self, state: &State, times: Option<&[i64]>, rows: usize) -> PyResult<()> {
        let mut last = state.running.as_ref().map_or(Timestamp(0), |running| running.last);
        for row in 0..rows {
            let at = times.and_then(|times| times.get(row).copied());
            last = self.time(at, last, Some(row))?.unwrap_or(last);
        }
        Ok(())
    }
}

impl State {
    fn has_ended(&self) -> bool {
        self.running.as_ref().is_none_or(|running| running.thread.is_finished())
    }

    fn stop(&self) {
        self.running.iter().for_each(|running| running.stop.stop());
    }
}
