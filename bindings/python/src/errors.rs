//! Our errors as Python's. The classes are in `alpheus._errors`.

use alpheus_encrypted_stream::encode::EncodeError;
use alpheus_node::failure::{Category, Failure};
use alpheus_policy::schema::SchemaError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fmt::{Debug, Display};

/// The module of the classes.
const CLASSES: &str = "alpheus._errors";

/// An exception of a class, with these named values.
fn of(class: &str, message: String, values: &[(&str, Option<String>)]) -> PyErr {
    Python::attach(|py| {
        let made = || -> PyResult<PyErr> {
            let class = py.import(CLASSES)?.getattr(class)?;
            let named = PyDict::new(py);
            for (name, value) in values {
                named.set_item(name, value)?;
            }
            Ok(PyErr::from_value(class.call((message,), Some(&named))?))
        };
        made().unwrap_or_else(|error| error)
    })
}

/// The first word of an error's variant, which is how vectors name it.
fn variant(error: &impl Debug) -> Option<String> {
    let text = format!("{error:?}");
    let name: String = text.chars().take_while(char::is_ascii_alphanumeric).collect();
    (!name.is_empty()).then_some(name)
}

/// A session cannot do this any more, or not here.
pub(crate) fn session(what: impl Display) -> PyErr {
    of("SessionError", what.to_string(), &[])
}

/// A session cannot do this, for a reason of the protocol.
pub fn refused(error: &(impl Debug + Display)) -> PyErr {
    of("SessionError", error.to_string(), &[("reason", variant(error))])
}

/// An event is not as the schema declares, in a row if there are several. It names the attribute,
/// never the value.
pub(crate) fn encode(error: &EncodeError, row: Option<usize>) -> PyErr {
    let attribute = match error {
        EncodeError::Missing { attribute }
        | EncodeError::WrongType { attribute, .. }
        | EncodeError::OutOfBounds { attribute, .. }
        | EncodeError::TooLong { attribute, .. } => Some(attribute.clone()),
        EncodeError::WrongLength { .. } => None,
    };
    let mut values = vec![("reason", variant(error)), ("attribute", attribute)];
    of("EventError", at_row(row, error, &mut values), &values)
}

/// An event is wrong as a whole, in a row if there are several.
pub(crate) fn event(row: Option<usize>, reason: &str, what: impl Display) -> PyErr {
    let mut values = vec![("reason", Some(reason.to_owned()))];
    of("EventError", at_row(row, what, &mut values), &values)
}

/// A message that names the row, which is noted too.
fn at_row(
    row: Option<usize>,
    what: impl Display,
    values: &mut Vec<(&'static str, Option<String>)>,
) -> String {
    let Some(row) = row else { return what.to_string() };
    values.push(("row", Some(row.to_string())));
    format!("row {row}: {what}")
}

/// A schema is not valid.
pub(crate) fn schema(error: &SchemaError) -> PyErr {
    of("SchemaError", error.to_string(), &[("reason", variant(&error.problem))])
}

/// A failure of a kind that commands have too.
pub(crate) fn failure(failure: &Failure) -> PyErr {
    let class = match failure.category() {
        Category::Refused => "RefusedError",
        Category::Input => "InputError",
        Category::Usage => "UsageError",
        Category::Undecided => "UndecidedError",
        Category::Check => "CheckError",
        Category::Io | Category::Interrupted => "ServiceError",
    };
    let text = failure.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let (message, help) = match text.split_once("\nhelp: ") {
        Some((message, help)) => (message.to_owned(), Some(help.to_owned())),
        None => (text.to_owned(), None),
    };
    of(class, message, &[("help", help)])
}
