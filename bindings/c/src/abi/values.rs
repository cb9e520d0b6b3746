//! An event's values.

use super::memory::{list, utf8};
use crate::constants::{
    ALPHEUS_KIND_BOOLEAN, ALPHEUS_KIND_DECIMAL, ALPHEUS_KIND_NUMBER, ALPHEUS_KIND_TEXT,
};
use crate::refusal::Refusal;
use crate::values::InputValue;
use std::ffi::c_char;
use std::ptr::null;

/// The value of one attribute, made by the functions below. An attribute without a value is missing.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    /// The attribute's name, of `name_length` bytes.
    pub name: *const c_char,
    /// Bytes of the name.
    pub name_length: usize,
    /// One of `ALPHEUS_KIND_…`.
    pub kind: i32,
    /// Decimal places of `integer`.
    pub decimals: u32,
    /// Units, or a truth value.
    pub integer: i64,
    /// A number in natural units.
    pub number: f64,
    /// A text.
    pub text: *const c_char,
    /// Bytes of the text.
    pub text_length: usize,
}

impl Value {
    fn new(name: *const c_char, name_length: usize, kind: i32) -> Value {
        Value {
            name,
            name_length,
            kind,
            decimals: 0,
            integer: 0,
            number: 0.0,
            text: null(),
            text_length: 0,
        }
    }
}

/// A whole number.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_integer(name: *const c_char, name_length: usize, value: i64) -> Value {
    alpheus_decimal(name, name_length, value, 0)
}

/// `units` times 10^-`decimals`, exactly: 415 and 1 are 41.5.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_decimal(
    name: *const c_char,
    name_length: usize,
    units: i64,
    decimals: u32,
) -> Value {
    let value = Value::new(name, name_length, ALPHEUS_KIND_DECIMAL);
    Value { integer: units, decimals, ..value }
}

/// A number, read by its shortest digits: 0.285 is 0.29 at two places.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_number(name: *const c_char, name_length: usize, value: f64) -> Value {
    Value { number: value, ..Value::new(name, name_length, ALPHEUS_KIND_NUMBER) }
}

/// A truth value: 0 is false.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_boolean(name: *const c_char, name_length: usize, value: i32) -> Value {
    let value_of = Value::new(name, name_length, ALPHEUS_KIND_BOOLEAN);
    Value { integer: i64::from(value != 0), ..value_of }
}

/// A text in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_text(
    name: *const c_char,
    name_length: usize,
    text: *const c_char,
    text_length: usize,
) -> Value {
    Value { text, text_length, ..Value::new(name, name_length, ALPHEUS_KIND_TEXT) }
}

/// The values of an event, with their names.
///
/// # Safety
/// As [`list`], also for the names and texts.
pub(super) unsafe fn given<'a>(
    values: *const Value,
    count: usize,
) -> Result<Vec<(&'a str, InputValue<'a>)>, Refusal> {
    // SAFETY: the caller answers for it.
    let values = unsafe { list(values, count, "values") }?;
    let one = |value: &Value| {
        // SAFETY: the caller answers for it.
        let name = unsafe { utf8(value.name, value.name_length, "name") }?;
        let given = match value.kind {
            ALPHEUS_KIND_DECIMAL => {
                InputValue::Decimal { units: value.integer, decimals: value.decimals }
            }
            ALPHEUS_KIND_NUMBER => InputValue::Number(value.number),
            ALPHEUS_KIND_BOOLEAN => InputValue::Boolean(value.integer != 0),
            ALPHEUS_KIND_TEXT => {
                // SAFETY: the caller answers for it.
                InputValue::Text(unsafe { utf8(value.text, value.text_length, "text") }?.as_bytes())
            }
            _ => return Err(Refusal::argument("Kind", "a value has no `ALPHEUS_KIND_…`")),
        };
        Ok((name, given))
    };
    values.iter().map(one).collect()
}
