//! Errors of the kernel: proofs, sums, keys and logarithms, one variant per rule. No variant holds
//! a value that the other side does not know already.

use alpheus_crypto::group::ElementError;
use alpheus_crypto::sigma::ProofFormatError;

/// An unusable interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntervalError {
    /// Fewer than two values.
    #[error("the interval has fewer than two values; its highest value must exceed its lowest")]
    Empty,
    /// More than 2³² values, or values of 2⁴⁰ and more.
    #[error("the interval has more than 2^32 values or reaches 2^40; take larger steps")]
    TooWide,
}

/// The value is not in the interval. The error does not say which value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value is outside the definition's interval; clamp it or contribute nothing")]
pub struct OutOfIntervalError;

/// Bytes that do not encode a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TupleFormatError {
    /// The length is not that of a tuple of the interval.
    #[error("the tuple's length is not the one that its interval requires")]
    Length,
    /// An element of the ciphertexts is invalid.
    #[error("an element of the tuple is invalid: {0}")]
    Element(#[from] ElementError),
    /// The proof of well-formedness is malformed.
    #[error("the tuple's proof is malformed: {0}")]
    Proof(#[from] ProofFormatError),
    /// An element of the range proof is the identity or not reduced, or a scalar is not reduced.
    #[error(
        "the tuple's range proof is malformed: an element is the identity or not canonically encoded"
    )]
    Range,
}

/// Why a tuple does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TupleError {
    /// Not well-formed, or made for another key, interval or binding.
    #[error("the tuple is not proven to be well-formed for this key, interval and binding")]
    Statement,
    /// Its value is not proven to be in the interval.
    #[error("the tuple's value is not proven to be in the interval")]
    Range,
}

/// Why no tuple or partial decryption was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProvingError {
    /// The value is outside the interval.
    #[error(transparent)]
    OutOfInterval(#[from] OutOfIntervalError),
    /// A chance of 2^-252, or a broken generator.
    #[error("no proof could be made; fix the random number generator")]
    Generator,
    /// The share belongs to another key.
    #[error("the share does not belong to this key; use the share of the key's own epoch")]
    OtherKey,
}

/// Why a tuple or a sum cannot be added to a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SumError {
    /// Checked for another key or interval.
    #[error("the tuple was checked for a different key or interval from the sum's")]
    Terms,
    /// Bound to another aggregate.
    #[error("the tuple is bound to a different aggregate from the sum's")]
    Aggregate,
    /// Stored bytes that are not a sum of these terms.
    #[error("the stored sum is damaged; add up the tuples again")]
    Damaged,
}

/// An unusable committee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a committee needs 1 <= t and 3t - 2 <= n <= 64")]
pub struct CommitteeError;

/// Public values that do not make up a shared key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there must be one public share per member, and all must lie on one polynomial with the key"
)]
pub struct SharedKeyError;

/// A share that is not the member's share of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the share is not this member's share of this key, or one of its parts is missing")]
pub struct ShareError;

/// Why a dealer refuses a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DealerError {
    /// No such member.
    #[error("the committee has no such member")]
    NoMember,
    /// The member's announcement was not made from this seed, or did not arrive.
    #[error("the member has not announced this seed's key in this ceremony; begin a new attempt")]
    NotAnnounced,
    /// Pledges are missing.
    #[error("a dealing is revealed only when one's own pledge and enough others have arrived")]
    Pledges,
    /// The stored dealing was not made from this seed.
    #[error("the stored dealing was not made from this seed; begin a new attempt")]
    OtherDealing,
    /// A chance of 2^-252, or a broken generator.
    #[error("no proof could be made; fix the random number generator")]
    Generator,
}

/// Why a dealing does not count. Its dealer is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum DealingError {
    /// Bytes that do not encode a dealing of the committee.
    #[error("the dealing is malformed")]
    Malformed,
    /// Not the dealing that the dealer pledged.
    #[error("the dealing is not the one that its dealer pledged")]
    NotPledged,
    /// The dealer has not proven that it knows the constant.
    #[error("the dealer has not proven that it knows what it dealt")]
    Proof,
}

/// Why no key was settled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettlementError {
    /// As many members as the threshold, or more.
    #[error(
        "the number of members left out of the key has reached the threshold; repair them and begin a new attempt"
    )]
    TooManyLeftOut(Vec<u16>),
    /// A dealing belongs to another ceremony.
    #[error("a dealing belongs to another ceremony")]
    OtherCeremony,
    /// Two dealings of one dealer.
    #[error("member {0} has dealt twice; one pledge allows one dealing")]
    Twice(u16),
    /// A sum is the identity: a chance of 2^-252, or an attack.
    #[error("the key is degenerate; begin a new attempt")]
    Vanished,
}

/// Why a partial decryption does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartialError {
    /// Bytes that do not encode a partial decryption.
    #[error("the partial decryption is malformed")]
    Malformed,
    /// Not from a member of the committee.
    #[error("the committee has no member {0}")]
    NoMember(u16),
    /// Its proof is invalid.
    #[error("member {0} has not proven its partial decryption; ask another member")]
    Wrong(u16),
}

/// Too few partial decryptions of this ciphertext in this context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{have} members have decrypted and {needed} are needed; ask others")]
pub struct TooFewPartialsError {
    /// How many members have.
    pub have: usize,
    /// How many are needed.
    pub needed: usize,
}

/// Why an opened sum could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogarithmError {
    /// No number within the bounds.
    #[error("the opened sum is not a number within the bounds that the other sums allow")]
    NotThere,
    /// The bounds are too far apart for the table.
    #[error(
        "the bounds are too far apart to search; take larger steps, fewer slots or a larger table"
    )]
    TooFar,
}
