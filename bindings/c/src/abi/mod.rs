//! What C sees: the functions and structures of `include/alpheus.h`, which cbindgen makes of this module.
//!
//! Handles come as references that may be missing, so most functions touch no pointer. Lengths are
//! explicit. A panic never crosses: it becomes `ALPHEUS_INTERNAL_ERROR`.

#![expect(unsafe_code, reason = "C passes pointers, and finds functions by their names")]

pub mod memory;
pub mod pass;
pub mod schema;
pub mod session;
pub mod values;

use crate::codes::Code;
use std::ffi::c_char;
use std::time::{SystemTime, UNIX_EPOCH};

/// The library's version, as text that a zero byte ends.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// The id of a code, as `alpheus errors` explains it; NULL for a number that is no code.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_code_id(code: i32) -> *const c_char {
    let known = Code::ALL.iter().find(|known| **known as i32 == code);
    known.map_or(std::ptr::null(), |known| known.id().as_ptr())
}

/// The system's clock, in microseconds since 1970. No other function reads it.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
