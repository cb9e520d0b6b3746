//! The caller's memory: arguments that are read, places that are written, and errors.

use crate::codes::Code;
use crate::refusal::Refusal;
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call failed. The caller owns it, and may pass NULL in its place. Both texts end with a zero byte,
/// and hold no secret and no value of an event.
#[repr(C)]
pub struct Error {
    /// One of `ALPHEUS_…`; `ALPHEUS_OK` if the call succeeded.
    pub code: i32,
    /// The rule by its name, such as `OutOfBounds`.
    pub reason: [c_char; 64],
    /// What happened and how to fix it, in UTF-8.
    pub message: [c_char; 512],
}

/// A place for what a function says.
pub type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

impl Error {
    fn of(code: Code, reason: &str, message: &str) -> Error {
        Error { code: code as i32, reason: text(reason), message: text(message) }
    }
}

/// A text with a zero byte, cut where a character begins if it is too long.
fn text<const N: usize>(said: &str) -> [c_char; N] {
    let mut out = [0; N];
    let mut end = said.len().min(N - 1);
    while !said.is_char_boundary(end) {
        end -= 1;
    }
    for (place, byte) in out.iter_mut().zip(&said.as_bytes()[..end]) {
        *place = c_char::from_ne_bytes([*byte]);
    }
    out
}

/// Does what a function does, and says how it ended.
pub fn call(error: Out<'_, Error>, act: impl FnOnce() -> Result<(), Refusal>) -> i32 {
    // What a panic leaves half done is in a handle, whose lock is poisoned then.
    let ended = catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        let what = "this is a fault in the library; the handle that was used is closed";
        Err(Refusal::new(Code::InternalError, "Panicked", what))
    });
    let (code, said) = match &ended {
        Ok(()) => (Code::Ok, Error::of(Code::Ok, "", "")),
        Err(Refusal { code, reason, message }) => (*code, Error::of(*code, reason, message)),
    };
    if let Some(place) = error {
        place.write(said);
    }
    code as i32
}

/// Frees what a handle holds. Its variable is NULL afterwards, so a second call does nothing.
pub fn free<T>(handle: Option<&mut Option<Box<T>>>) {
    if let Some(handle) = handle {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(handle.take())));
    }
}

/// An argument that must be there.
///
/// # Errors
/// [`Code::ArgumentWrong`].
pub fn there<T>(argument: Option<T>, name: &str) -> Result<T, Refusal> {
    argument.ok_or_else(|| Refusal::argument("Missing", format_args!("`{name}` is NULL")))
}

/// Things that C passes as a pointer and their number. NULL is an empty list.
///
/// # Safety
/// `first` is NULL, or the first of `count` things that nobody changes meanwhile.
///
/// # Errors
/// [`Code::ArgumentWrong`] if there are things at NULL, more than memory has, or at a wrong place.
pub unsafe fn list<'a, T>(first: *const T, count: usize, name: &str) -> Result<&'a [T], Refusal> {
    if count == 0 {
        return Ok(&[]);
    }
    let fits =
        count.checked_mul(size_of::<T>()).is_some_and(|bytes| isize::try_from(bytes).is_ok());
    if first.is_null() || !first.is_aligned() || !fits {
        let what = format!("`{name}` is NULL, at a wrong place, or its length is wrong");
        return Err(Refusal::argument("WrongLength", what));
    }
    // SAFETY: it is not NULL, is aligned, and its bytes fit; the caller answers for the rest.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// A text in UTF-8.
///
/// # Safety
/// As [`list`].
///
/// # Errors
/// [`Code::ArgumentWrong`], or [`Code::FileNotText`].
pub unsafe fn utf8<'a>(
    first: *const c_char,
    length: usize,
    name: &str,
) -> Result<&'a str, Refusal> {
    // SAFETY: the caller answers for it.
    let bytes = unsafe { list(first.cast::<u8>(), length, name) }?;
    std::str::from_utf8(bytes).map_err(|_| {
        let what = format!("`{name}` is not UTF-8; decompress it, or save it again as UTF-8");
        Refusal::new(Code::FileNotText, "NotUtf8", what)
    })
}

/// A buffer of the caller's.
pub struct Buffer<'a, T> {
    first: *mut T,
    capacity: usize,
    length: &'a mut MaybeUninit<usize>,
}

impl<'a, T: Copy> Buffer<'a, T> {
    /// A buffer, and the place for the length of what is written.
    ///
    /// # Safety
    /// `first` is NULL, or the first of `capacity` places that may be written and that nobody else uses meanwhile.
    ///
    /// # Errors
    /// [`Code::ArgumentWrong`].
    pub unsafe fn new(
        first: *mut T,
        capacity: usize,
        length: Out<'a, usize>,
    ) -> Result<Buffer<'a, T>, Refusal> {
        let length = there(length, "length")?;
        if (first.is_null() && capacity > 0) || !first.is_aligned() {
            return Err(Refusal::argument("Missing", "`buffer` is NULL, or at a wrong place"));
        }
        Ok(Buffer { first, capacity, length })
    }

    /// Fails if less than this fits, and says so.
    ///
    /// # Errors
    /// [`Code::BufferSmall`].
    pub fn holds(&mut self, length: usize) -> Result<(), Refusal> {
        self.length.write(length);
        if length <= self.capacity {
            return Ok(());
        }
        let what = format!("the buffer has {} places, and {length} are needed", self.capacity);
        Err(Refusal::new(Code::BufferSmall, "BufferSmall", what))
    }

    /// Writes, if it fits.
    ///
    /// # Errors
    /// [`Code::BufferSmall`].
    pub fn write(&mut self, content: &[T]) -> Result<(), Refusal> {
        self.holds(content.len())?;
        if !content.is_empty() {
            // SAFETY: it is not NULL and aligned, as its capacity is at least the content's length, which
            // is not zero; the caller answers for that capacity, and nobody else uses it.
            unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), self.first, content.len()) };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &[c_char]) -> String {
        let bytes = text.iter().take_while(|byte| **byte != 0).map(|byte| byte.to_ne_bytes()[0]);
        String::from_utf8(bytes.collect()).unwrap()
    }

    #[test]
    fn a_panic_is_an_error() {
        let mut error = MaybeUninit::uninit();
        let code = call(Some(&mut error), || {
            let none: Option<()> = None;
            none.map_or_else(|| std::panic::resume_unwind(Box::new(())), Ok)
        });
        // SAFETY: `call` has written it.
        let error = unsafe { error.assume_init() };
        assert_eq!((code, error.code), (Code::InternalError as i32, code));
        assert_eq!(said(&error.reason), "Panicked");
        assert_eq!(call(None, || Ok(())), 0);
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(said(&text::<4>("ab")), "ab");
        assert_eq!(said(&text::<4>("abcd")), "abc");
        assert_eq!(said(&text::<4>("abé")), "ab");
        assert_eq!(said(&text::<1>("é")), "");
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let three = [1_u64, 2, 3];
        // SAFETY: the list has three things; no other call gets to read any.
        unsafe {
            assert_eq!(list(three.as_ptr(), 3, "x").unwrap(), three);
            assert!(list::<u64>(std::ptr::null(), 0, "x").unwrap().is_empty());
            assert!(list::<u64>(std::ptr::null(), 1, "x").is_err());
            assert!(list(three.as_ptr(), usize::MAX / 4, "x").is_err());
            assert!(list(three.as_ptr().cast::<u8>().add(1).cast::<u64>(), 1, "x").is_err());
        }
        let (mut out, mut length) = ([0_u8; 2], MaybeUninit::uninit());
        // SAFETY: the buffer has two bytes.
        let mut buffer = unsafe { Buffer::new(out.as_mut_ptr(), 2, Some(&mut length)) }.unwrap();
        assert_eq!(buffer.write(&[1, 2, 3]).unwrap_err().code, Code::BufferSmall);
        buffer.write(&[7]).unwrap();
        assert_eq!(out, [7, 0]);
    }
}
