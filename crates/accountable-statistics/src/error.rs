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
    /// The share is of another key.
    #[error("the share is not of this key; use that epoch's")]
    OtherKey,
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

/// A committee that is not to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a committee needs 1 <= t and 3t - 2 <= n <= 64")]
pub struct BadCommittee;

/// What is said to be public of a key, and is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the public shares are not one for each member, or not of one polynomial with the key")]
pub struct BadSharedKey;

/// A share of a key that is not the member's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the share is not this member's of this key, or one that it is made of is missing")]
pub struct BadShare;

/// Why a dealer does not do what it is asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDealt {
    /// No such member.
    #[error("the committee has no such member")]
    NoMember,
    /// The seed is not the one that the member's announcement was made from, or the
    /// announcement did not come in.
    #[error("the member has not announced this seed's key in this ceremony; begin a new attempt")]
    NotAnnounced,
    /// Pledges are missing.
    #[error("the dealing is shown when one's own pledge and enough others are in")]
    Pledges,
    /// The stored dealing is not of this seed.
    #[error("the stored dealing is not of this seed; begin a new attempt")]
    OtherDealing,
    /// A chance of 2^-252, or a broken generator.
    #[error("no proof could be made; mend the random number generator")]
    Generator,
}

/// Why a dealing does not count: its dealer is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum BadDealing {
    /// Bytes that are no dealing of the committee.
    #[error("the dealing is malformed")]
    Malformed,
    /// Not what the dealer is bound to.
    #[error("the dealing is not the one that its dealer pledged")]
    NotPledged,
    /// Its constant is not proven to be known.
    #[error("the dealer has not proven that it knows what it dealt")]
    Proof,
}

/// Why no key was settled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSettled {
    /// As many as the threshold, or more.
    #[error(
        "as many members as the threshold are left out of the key; mend them and begin a new attempt"
    )]
    TooManyLeftOut(Vec<u16>),
    /// A dealing of another ceremony.
    #[error("a dealing is of another ceremony")]
    OtherCeremony,
    /// Two dealings of one dealer.
    #[error("member {0} has dealt twice; one pledge allows for one dealing")]
    Twice(u16),
    /// A sum is the identity: a chance of 2^-252, or intent.
    #[error("the key is degenerate; begin a new attempt")]
    Vanished,
}

/// Why a partial decryption does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPartial {
    /// Bytes that are none.
    #[error("the partial decryption is malformed")]
    Malformed,
    /// Of nobody in the committee.
    #[error("the committee has no member {0}")]
    NoMember(u16),
    /// Its proof does not hold.
    #[error("member {0} has not proven its partial decryption; ask another member")]
    Wrong(u16),
}

/// Too few partial decryptions of this ciphertext in this context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{have} members have decrypted, {needed} are needed; ask others")]
pub struct NotOpened {
    /// So many have.
    pub have: usize,
    /// So many are needed.
    pub needed: usize,
}

/// Why an opened sum could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLogarithm {
    /// No number between the bounds.
    #[error("the opened sum is no number within what the other sums allow")]
    NotThere,
    /// The bounds are too far apart for the table.
    #[error(
        "the bounds are too far apart to search; take larger steps, fewer slots or a larger table"
    )]
    TooFar,
}
