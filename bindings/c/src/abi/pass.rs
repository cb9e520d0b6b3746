//! Passes: requests, logins, connections and stamps.

use super::memory::{Buffer, Error, call, free, list, there, utf8};
use crate::codes::Code;
use crate::constants::*;
use crate::pass::card::Card;
use crate::pass::store::{Store, Write};
use crate::pass::{self, Handle, NextStep, authorization};
use crate::randomness::Randomness;
use crate::refusal::Refusal;
use alpheus_access_pass::file::{Contents, Evidence};
use alpheus_access_pass::request::Target;
use alpheus_anonymous_credential::holder::Timing;
use alpheus_crypto::hash::Digest;
use alpheus_crypto::vault::Hardness;
use alpheus_time::Timestamp;
use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

/// A pass. Any thread of the process that opened it may use it, one call at a time: a second one gets
/// `ALPHEUS_HANDLE_BUSY`. Its secrets are wiped when it is freed.
pub struct Pass(Handle);

/// A connection of a session, whose requests it stamps. Threads may share it.
pub struct Connection(pass::Connection);

/// Makes a pass file durable in place of the one before, and returns 0; anything else means that it did not. The library sends
/// nothing before. Use one file in one process at a time, and never an older copy of it: two presentations in one epoch expose
/// that they are of one pass. It must not use the pass.
pub type PassStore =
    Option<unsafe extern "C" fn(context: *mut c_void, file: *const u8, length: usize) -> i32>;

/// What to do next.
#[repr(C)]
pub struct PassStep {
    /// One of `ALPHEUS_STEP_…`.
    pub step: i32,
    /// Nothing before this time, in microseconds, if the step is `ALPHEUS_STEP_WAIT`.
    pub until_us: u64,
}

impl Pass {
    /// A pass for C.
    #[must_use]
    pub fn new(handle: Handle) -> Pass {
        Pass(handle)
    }

    /// What it is over.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.0
    }
}

/// How the caller stores files.
///
/// # Safety
/// The function may be called with this context as long as the pass lives.
///
/// # Errors
/// [`Code::ArgumentWrong`] if there is no function.
pub unsafe fn writer(store: PassStore, context: *mut c_void) -> Result<Write, Refusal> {
    let store = there(store, "store")?;
    Ok(Box::new(move |file| {
        // SAFETY: the caller answers for it.
        unsafe { store(context, file.as_ptr(), file.len()) == 0 }
    }))
}

fn timing(when: i32) -> Result<Timing, Refusal> {
    match when {
        ALPHEUS_RUNNING => Ok(Timing::Running),
        ALPHEUS_NEXT => Ok(Timing::Next),
        _ => Err(Refusal::argument("When", "`when` is RUNNING or NEXT")),
    }
}

/// Creates a pass for an account of a deployment, and stores its file. `card` is the deployment's `card.json`. `secret` is what the account
/// shows the issuer; without one, show an ID token. `key` locks the file: 32 random bytes that lie elsewhere, or a long passphrase.
///
/// # Safety
/// Each argument has as many bytes as its length says. `store` takes `context` as long as the pass lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_pass_create(
    card: *const c_char,
    card_length: usize,
    account: *const c_char,
    account_length: usize,
    secret: *const c_char,
    secret_length: usize,
    key: *const u8,
    key_length: usize,
    store: PassStore,
    context: *mut c_void,
    pass: Option<&mut MaybeUninit<Option<Box<Pass>>>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let out = there(pass, "pass")?.write(None);
        let mut contents = Contents::default();
        // SAFETY: the caller answers for the card,
        contents.card = unsafe { list(card.cast(), card_length, "card") }?.to_vec();
        // SAFETY: the account,
        contents.account = unsafe { utf8(account, account_length, "account") }?.to_owned();
        // SAFETY: the secret,
        let secret = unsafe { utf8(secret, secret_length, "secret") }?.to_owned();
        contents.evidence = Evidence::Secret(secret);
        // SAFETY: and the key.
        let key = unsafe { list(key, key_length, "key") }?;
        Card::read(&contents.card)?;
        let rng = Randomness::system()?;
        // SAFETY: as for all arguments.
        let write = unsafe { writer(store, context) }?;
        let store = Store::create(contents, key, Hardness::default(), rng, write)?;
        *out = Some(Box::new(Pass(Handle::new(store)?)));
        Ok(())
    })
}

/// Opens a pass file with its key.
///
/// # Safety
/// Each argument has as many bytes as its length says. `store` takes `context` as long as the pass lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_pass_open(
    file: *const u8,
    file_length: usize,
    key: *const u8,
    key_length: usize,
    store: PassStore,
    context: *mut c_void,
    pass: Option<&mut MaybeUninit<Option<Box<Pass>>>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let out = there(pass, "pass")?.write(None);
        // SAFETY: the caller answers for the file,
        let file = unsafe { list(file, file_length, "file") }?;
        // SAFETY: and for the key.
        let key = unsafe { list(key, key_length, "key") }?;
        // SAFETY: as for all arguments.
        let write = unsafe { writer(store, context) }?;
        let store = Store::open(file, key, Randomness::system()?, write)?;
        *out = Some(Box::new(Pass(Handle::new(store)?)));
        Ok(())
    })
}

/// Frees a pass, wipes its secrets, and sets the variable to NULL.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_pass_free(pass: Option<&mut Option<Box<Pass>>>) {
    free(pass);
}

/// The fingerprint of the pass's card: 32 bytes. Compare it with other subscribers': another card could be used to track you.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_pass_fingerprint(
    pass: Option<&Pass>,
    fingerprint: Option<&mut MaybeUninit<[u8; 32]>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let out = there(fingerprint, "fingerprint")?;
        let said = there(pass, "pass")?.0.read(|card, _| Ok(*card.fingerprint.as_bytes()))?;
        out.write(said);
        Ok(())
    })
}

/// A text of the pass's card or account: `text` is one of `ALPHEUS_CARD_…`. No zero byte ends it.
///
/// # Safety
/// `buffer` has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_pass_card(
    pass: Option<&Pass>,
    text: i32,
    buffer: *mut c_char,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Pass(handle) = there(pass, "pass")?;
        // SAFETY: the caller answers for it.
        let mut buffer = unsafe { Buffer::new(buffer.cast::<u8>(), capacity, length) }?;
        handle.read(|card, store| match text {
            ALPHEUS_CARD_ISSUER => buffer.write(card.issuer.as_bytes()),
            ALPHEUS_CARD_GATEWAY => buffer.write(card.gateway.as_bytes()),
            ALPHEUS_CARD_AUTHORITY => {
                buffer.write(card.authority.as_deref().unwrap_or_default().as_bytes())
            }
            ALPHEUS_CARD_AUTHORIZATION => buffer.write(authorization(store)?.as_bytes()),
            _ => Err(Refusal::argument("Text", "`text` is one of ALPHEUS_CARD_…")),
        })
    })
}

/// Gives a message that fits `ALPHEUS_MAX_MESSAGE`. A smaller buffer is refused before anything is burnt.
fn message(
    mut buffer: Buffer<'_, u8>,
    make: impl FnOnce() -> Result<Vec<u8>, Refusal>,
) -> Result<(), Refusal> {
    buffer.holds(ALPHEUS_MAX_MESSAGE)?;
    let made = make()?;
    let long = |_| Refusal::new(Code::InternalError, "Long", "a message is longer than expected");
    buffer.write(&made).map_err(long)
}

/// The body of the issuer's `POST /v1/pass` for the pass of a period; of length 0 if the file has it. `when` is `ALPHEUS_RUNNING` or
/// `ALPHEUS_NEXT`. Send it at a time that has nothing to do with a login, with the header `Authorization`.
///
/// # Safety
/// `buffer` has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_pass_request(
    pass: Option<&Pass>,
    when: i32,
    now_us: u64,
    buffer: *mut u8,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Pass(handle) = there(pass, "pass")?;
        // SAFETY: the caller answers for it.
        let buffer = unsafe { Buffer::new(buffer, capacity, length) }?;
        message(buffer, || handle.request(timing(when)?, Timestamp(now_us)))
    })
}

/// Takes the issuer's answer, and stores the pass.
///
/// # Safety
/// `answer` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_pass_issued(
    pass: Option<&Pass>,
    answer: *const u8,
    length: usize,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Pass(handle) = there(pass, "pass")?;
        // SAFETY: the caller answers for it.
        handle.issued(unsafe { list(answer, length, "answer") }?)
    })
}

/// What to do next, at moments that do not distinguish this subscriber from others. Ask often, with the time now.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_pass_next(
    pass: Option<&Pass>,
    now_us: u64,
    step: Option<&mut MaybeUninit<PassStep>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let out = there(step, "step")?;
        let (step, until_us) = match there(pass, "pass")?.0.next(Timestamp(now_us))? {
            NextStep::Wait(until) => (ALPHEUS_STEP_WAIT, until.0),
            NextStep::ReUp => (ALPHEUS_STEP_RE_UP, 0),
            NextStep::LogIn(Timing::Running) => (ALPHEUS_STEP_LOG_IN, 0),
            NextStep::LogIn(Timing::Next) => (ALPHEUS_STEP_LOG_IN_NEXT, 0),
        };
        out.write(PassStep { step, until_us });
        Ok(())
    })
}

/// The body of the gateway's `POST /.alpheus/pass/login`, on a fresh connection. `hello` is what `GET /.alpheus/pass` gave on it. If the pass was
/// presented before in the epoch, the same bytes come, or a re-up's: a body of `ALPHEUS_RE_UP_LENGTH` goes to `…/re-up`.
///
/// # Safety
/// `hello` has `hello_length` bytes, `buffer` room for `capacity`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_pass_log_in(
    pass: Option<&Pass>,
    when: i32,
    hello: *const u8,
    hello_length: usize,
    now_us: u64,
    buffer: *mut u8,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Pass(handle) = there(pass, "pass")?;
        // SAFETY: the caller answers for the hello,
        let hello = unsafe { list(hello, hello_length, "hello") }?;
        // SAFETY: and for the buffer.
        let buffer = unsafe { Buffer::new(buffer, capacity, length) }?;
        let nothing = Digest([0; 32]);
        message(buffer, || handle.log_in(timing(when)?, hello, &nothing, Timestamp(now_us)))
    })
}

/// The body of the gateway's `POST /.alpheus/pass/re-up`, on the session's connection.
///
/// # Safety
/// `buffer` has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_pass_re_up(
    pass: Option<&Pass>,
    now_us: u64,
    buffer: *mut u8,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Pass(handle) = there(pass, "pass")?;
        // SAFETY: the caller answers for it.
        let buffer = unsafe { Buffer::new(buffer, capacity, length) }?;
        message(buffer, || handle.re_up(Timestamp(now_us)))
    })
}

/// Takes the gateway's answer to the last login or re-up.
///
/// # Safety
/// `answer` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_pass_acknowledged(
    pass: Option<&Pass>,
    answer: *const u8,
    length: usize,
    now_us: u64,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Pass(handle) = there(pass, "pass")?;
        // SAFETY: the caller answers for it.
        handle.acknowledged(unsafe { list(answer, length, "answer") }?, Timestamp(now_us))
    })
}

/// The body of the gateway's `POST /.alpheus/pass/connect`, for the session that was acknowledged last. `hello` is a new one.
///
/// # Safety
/// `hello` has `hello_length` bytes, `buffer` room for `capacity`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_pass_connect(
    pass: Option<&Pass>,
    hello: *const u8,
    hello_length: usize,
    buffer: *mut u8,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Pass(handle) = there(pass, "pass")?;
        // SAFETY: the caller answers for the hello,
        let hello = unsafe { list(hello, hello_length, "hello") }?;
        // SAFETY: and for the buffer.
        let buffer = unsafe { Buffer::new(buffer, capacity, length) }?;
        message(buffer, || handle.connect(hello))
    })
}

/// Takes the gateway's answer, and gives the connection.
///
/// # Safety
/// `answer` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_pass_connected(
    pass: Option<&Pass>,
    answer: *const u8,
    length: usize,
    connection: Option<&mut MaybeUninit<Option<Box<Connection>>>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let out = there(connection, "connection")?.write(None);
        let Pass(handle) = there(pass, "pass")?;
        // SAFETY: the caller answers for it.
        let made = handle.connected(unsafe { list(answer, length, "answer") }?)?;
        *out = Some(Box::new(Connection(made)));
        Ok(())
    })
}

/// The body of the gateway's `POST /.alpheus/pass/logout`, for the session that was acknowledged last. The pass forgets it: send the
/// bytes until they are answered.
///
/// # Safety
/// `buffer` has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_pass_log_out(
    pass: Option<&Pass>,
    buffer: *mut u8,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Pass(handle) = there(pass, "pass")?;
        // SAFETY: the caller answers for it.
        let buffer = unsafe { Buffer::new(buffer, capacity, length) }?;
        message(buffer, || handle.log_out())
    })
}

/// The value of the header `alpheus-pass` for one request, to be used once: `method` such as `GET`, `authority` the host and port,
/// `path` with the query, as they are sent. `ALPHEUS_MAX_STAMP` bytes hold any; no zero byte ends it.
///
/// # Safety
/// Each argument has as many bytes as its length says, `buffer` room for `capacity`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_connection_stamp(
    connection: Option<&Connection>,
    method: *const c_char,
    method_length: usize,
    authority: *const c_char,
    authority_length: usize,
    path: *const c_char,
    path_length: usize,
    buffer: *mut c_char,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Connection(connection) = there(connection, "connection")?;
        // SAFETY: the caller answers for the method,
        let method = unsafe { utf8(method, method_length, "method") }?;
        // SAFETY: the authority,
        let authority = unsafe { utf8(authority, authority_length, "authority") }?;
        // SAFETY: the path,
        let path = unsafe { utf8(path, path_length, "path") }?;
        // SAFETY: and the buffer.
        let mut buffer = unsafe { Buffer::new(buffer.cast::<u8>(), capacity, length) }?;
        buffer.holds(ALPHEUS_MAX_STAMP)?;
        buffer.write(connection.stamp(&Target { method, authority, path })?.as_bytes())
    })
}

/// Frees a connection, wipes its key, and sets the variable to NULL.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_connection_free(connection: Option<&mut Option<Box<Connection>>>) {
    free(connection);
}
