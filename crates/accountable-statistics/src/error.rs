//! Why something was refused: one name for each rule. No name holds a value that
//! the other side does not know already.

use alpheus_crypto::group::InvalidElement;
use alpheus_crypto::sigma::MalformedProof;

/// An interval that is not to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadInterval {
    /// Fewer than two values.
    #[error("the interval has fewer than two values; its highest value must exceed its lowest")]
    Empty,
    /// More than 2³² values, or values of 2⁴⁰ and more.
    #[error("the interval has more than 2^32 values or reaches 2^40; take larger steps")]
    TooWide,
}

/// The value is not in the interval; it is not said which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value is outside the definition's interval; contribute nothing or clamp it")]
pub struct OutOfInterval;

/// Bytes that are no tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not as long as a tuple of the interval is.
    #[error("the tuple has another length than its interval asks for")]
    Length,
    /// An element of the ciphertexts is none.
    #[error("an element of the tuple is none: {0}")]
    Element(#[from] InvalidElement),
    /// The proof of well-formedness is none.
    #[error("the tuple's proof is malformed: {0}")]
    Proof(#[from] MalformedProof),
    /// An element of the range proof is the identity or not reduced, or a scalar is not reduced.
    #[error(
        "the tuple's range proof is malformed: an element is the identity, or not in its one encoding"
    )]
    Range,
}

/// Why a tuple does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not well-formed, or made for another key, interval or binding.
    #[error("the tuple is not proven to be well-formed for this key, interval and binding")]
    Statement,
    /// Its value is not proven to be in the interval.
    #[error("the tuple's value is not proven to be in the interval")]
    Range,
}

/// Why no tuple was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotProven {
    /// The value is outside.
    #[error(transparent)]
    OutOfInterval(#[from] OutOfInterval),
    /// A chance of 2^-252, or a broken generator.
    #[error("no proof could be made; mend the random number generator")]
    Generator,
}

/// What is added up belongs to another sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOfThisSum {
    /// Another key or interval.
    #[error("the tuple was checked for another key or interval than the sum's")]
    Terms,
    /// Another aggregate.
    #[error("the tuple is bound to another aggregate than the sum's")]
    Aggregate,
    /// Stored bytes that are no sum of these terms.
    #[error("the stored sum is damaged; add up the tuples again")]
    Damaged,
}
