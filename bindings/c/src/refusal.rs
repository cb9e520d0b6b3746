//! Why a call fails: a code, the reason by its name in the vectors, and words for people.

use crate::codes::Code;
use std::fmt::{Debug, Display};

/// Why a call fails. It never holds a secret or a value of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: Code,
    /// The rule, as the vectors name it.
    pub reason: String,
    /// What happened, and how to fix it.
    pub message: String,
}

impl Refusal {
    /// A refusal of this interface's own.
    #[must_use]
    pub fn new(code: Code, reason: &str, message: impl Display) -> Refusal {
        Refusal { code, reason: reason.to_owned(), message: message.to_string() }
    }

    /// The refusal for an error of a crate, whose variant is the reason.
    #[must_use]
    pub fn of(code: Code, error: &(impl Debug + Display)) -> Refusal {
        Refusal { code, reason: variant(&format!("{error:?}")), message: error.to_string() }
    }

    /// An argument that the function does not take.
    #[must_use]
    pub fn argument(reason: &str, message: impl Display) -> Refusal {
        Refusal::new(Code::ArgumentWrong, reason, message)
    }
}

/// The names of an error's variants, one in the other, without fields.
fn variant(text: &str) -> String {
    let of_names = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '(' | ')');
    let name: String = text.chars().take_while(of_names).collect();
    match name.matches('(').count() == name.matches(')').count() {
        true => name,
        false => name.split('(').next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_no_field() {
        assert_eq!(variant("Missing { attribute: \"power\" }"), "Missing");
        assert_eq!(variant("Malformed(Proof(Length))"), "Malformed(Proof(Length))");
        assert_eq!(variant("Key(KeyError { at: 3 })"), "Key");
        assert_eq!(variant("Response"), "Response");
    }
}
