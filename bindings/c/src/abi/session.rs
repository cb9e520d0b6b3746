//! Sessions: events become frames, and frames become uploads.

use super::memory::{Buffer, Error, call, free, list, there};
use super::schema::Device;
use super::values::{Value, given};
use crate::constants::{ALPHEUS_AGAIN, ALPHEUS_FIRST};
use crate::refusal::Refusal;
use crate::session::{Handle, Opening};
use alpheus_time::Timestamp;
use std::mem::MaybeUninit;

/// A session of a device: the only thing that encrypts. It is never stored and never resumed. Threads of the process that
/// opened it may share it: calls wait for each other. Its keys are wiped when it is freed.
pub struct Session(Handle);

impl Session {
    /// A session for C.
    #[must_use]
    pub fn new(handle: Handle) -> Session {
        Session(handle)
    }

    /// What it is over.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.0
    }
}

/// What is known about a session.
#[repr(C)]
pub struct SessionInfo {
    /// Its number, which is public; it changes at midnight.
    pub number: u64,
    /// Time of its last event or border, in microseconds.
    pub last_us: u64,
    /// Time of the next border: call `alpheus_session_advance` then.
    pub next_border_us: u64,
    /// Frames that wait.
    pub frames: usize,
    /// 1 once it is closed; then the first three are 0.
    pub closed: i32,
}

/// What became of an upload.
#[repr(C)]
pub struct Receipt {
    /// 1 if the frames are durable at the service. They wait no longer.
    pub taken: i32,
    /// 1 if the service does not know the stream yet: send the same upload again, later.
    pub early: i32,
    /// 1 if the stream's owner has withdrawn it: stop, for good.
    pub withdrawn: i32,
    /// 1 if the service lost this session: introduce the device again, and open another.
    pub reopen: i32,
    /// Frames that count for nothing, of this upload or earlier ones.
    pub refused: u32,
}

/// Opens a session. `start` is `ALPHEUS_AGAIN`: at the next tick, and `at_us` is the time now. Or it is `ALPHEUS_FIRST`,
/// for a stream that never had one: at the tick at or before `at_us`.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_session_open(
    device: Option<&Device>,
    start: i32,
    at_us: u64,
    session: Option<&mut MaybeUninit<Option<Box<Session>>>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let out = there(session, "session")?.write(None);
        let Device(device) = there(device, "device")?;
        let opening = match start {
            ALPHEUS_AGAIN => Opening::Again(Timestamp(at_us)),
            ALPHEUS_FIRST => Opening::First(Timestamp(at_us)),
            _ => return Err(Refusal::argument("Start", "`start` is AGAIN or FIRST")),
        };
        *out = Some(Box::new(Session(Handle::open(device, opening)?)));
        Ok(())
    })
}

/// Frees a session, wipes its keys, and sets the variable to NULL. Events since its last border are lost unless it was closed,
/// and so are frames that wait.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_session_free(session: Option<&mut Option<Box<Session>>>) {
    free(session);
}

/// Encrypts one event at a time in microseconds. Each time is later than the one before, and none is a border's.
///
/// # Safety
/// `values` has `count` values with their names and texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_session_event(
    session: Option<&Session>,
    at_us: u64,
    values: *const Value,
    count: usize,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Session(handle) = there(session, "session")?;
        // SAFETY: the caller answers for it.
        handle.event(Timestamp(at_us), &unsafe { given(values, count) }?)
    })
}

/// Makes the borders of all ticks up to a time. With one frame a tick, their frames are made now.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_session_advance(
    session: Option<&Session>,
    now_us: u64,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || there(session, "session")?.0.advance(Timestamp(now_us)))
}

/// The device slept up to a time. With one frame a tick, one frame says so for all ticks without an event.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_session_sleep(
    session: Option<&Session>,
    now_us: u64,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || there(session, "session")?.0.sleep_until(Timestamp(now_us)))
}

/// Closes a session at a tick; 0 is the end of the open one. Frames that wait stay. A second call says
/// `ALPHEUS_HANDLE_CLOSED`.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_session_close(
    session: Option<&Session>,
    at_us: u64,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let at = Some(Timestamp(at_us)).filter(|at| at.0 > 0);
        there(session, "session")?.0.close(at)
    })
}

/// What is known about a session.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_session_describe(
    session: Option<&Session>,
    info: Option<&mut MaybeUninit<SessionInfo>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let (standing, frames) = there(session, "session")?.0.standing()?;
        let of = |read: fn(&crate::session::SessionState) -> u64| standing.as_ref().map_or(0, read);
        there(info, "info")?.write(SessionInfo {
            number: of(|own| own.number),
            last_us: of(|own| own.last.0),
            next_border_us: of(|own| own.next_border.0),
            frames,
            closed: standing.is_none().into(),
        });
        Ok(())
    })
}

/// Takes the oldest frame that waits, for those who carry frames themselves; of length 0 if none waits. It cannot be made
/// again. `ALPHEUS_MAX_FRAME` bytes hold any.
///
/// # Safety
/// `buffer` has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_session_frame(
    session: Option<&Session>,
    buffer: *mut u8,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Session(handle) = there(session, "session")?;
        // SAFETY: the caller answers for it.
        let mut buffer = unsafe { Buffer::new(buffer, capacity, length) }?;
        handle.take_frame(|frame| buffer.write(frame))
    })
}

/// The body of `POST /v1/events` with the oldest frames that wait; of length 0 if none waits. Until its answer has come,
/// the same body comes again. `ALPHEUS_MAX_UPLOAD` bytes hold any.
///
/// # Safety
/// `buffer` has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_session_upload(
    session: Option<&Session>,
    buffer: *mut u8,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Session(handle) = there(session, "session")?;
        // SAFETY: the caller answers for it.
        let mut buffer = unsafe { Buffer::new(buffer, capacity, length) }?;
        handle.upload(|body| buffer.write(body))
    })
}

/// Takes the body of the service's answer, of status 200, to the last upload.
///
/// # Safety
/// `answer` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_session_receipt(
    session: Option<&Session>,
    answer: *const u8,
    length: usize,
    receipt: Option<&mut MaybeUninit<Receipt>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let (Session(handle), out) = (there(session, "session")?, there(receipt, "receipt")?);
        // SAFETY: the caller answers for it.
        let answered = handle.answer(unsafe { list(answer, length, "answer") }?)?;
        out.write(Receipt {
            taken: answered.taken.into(),
            early: answered.early.into(),
            withdrawn: answered.withdrawn.into(),
            reopen: answered.reopen.into(),
            refused: answered.refused,
        });
        Ok(())
    })
}
