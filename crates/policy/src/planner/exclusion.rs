//! Why a stream does not take part in a query.

use crate::budget::Epsilon;
use crate::fraction::Fraction;
use crate::query::QuerySpan;
use alpheus_time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// Why a stream does not take part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Error)]
#[non_exhaustive]
pub enum ExclusionError {
    /// The stream has another version of the schema.
    #[error("they have another version of the schema")]
    OtherVersion,
    /// The stream has no value to group by.
    #[error("they have no value of `{metadata}` to group by")]
    NoValue {
        /// The metadata attribute.
        metadata: String,
    },
    /// The owner keeps the attribute private.
    #[error("their owners keep `{attribute}` private")]
    Private {
        /// The attribute.
        attribute: String,
    },
    /// The policy requires noise.
    #[error(
        "their policy `{option}` (dp-aggregate) releases `{attribute}` only with noise; add WITH (epsilon = …)"
    )]
    NeedsNoise {
        /// The attribute.
        attribute: String,
        /// The chosen option.
        option: String,
    },
    /// A window would cost more ε than the policy allows.
    #[error(
        "their policy `{option}` allows at most ε = {most} per window for `{attribute}`, but the query needs {asked}"
    )]
    Epsilon {
        /// The attribute.
        attribute: String,
        /// The chosen option.
        option: String,
        /// What the query would cost the attribute.
        asked: String,
        /// The maximum that the option allows.
        most: Epsilon,
    },
    /// The query needs a δ, and the policy allows none.
    #[error(
        "their policy `{option}` allows no delta for `{attribute}`; use mechanism = 'laplace' in tumbling windows"
    )]
    NoDelta {
        /// The attribute.
        attribute: String,
        /// The chosen option.
        option: String,
    },
    /// Too fine in time.
    #[error("their policy `{option}` releases `{attribute}` only in windows that are multiples of {}", QuerySpan(*allowed))]
    Window {
        /// The attribute.
        attribute: String,
        /// The chosen option.
        option: String,
        /// Windows must be multiples of this.
        allowed: Span,
    },
    /// Not for this consumer.
    #[error("their policy `{option}` releases `{attribute}` only to {}, sealed to its key; add RELEASE TO", .allowed.join(", "))]
    Consumer {
        /// The attribute.
        attribute: String,
        /// The chosen option.
        option: String,
        /// The consumers that may receive results.
        allowed: Vec<String>,
    },
    /// Too fine in values.
    #[error("their policy `{option}` releases `{bucketed}` only in buckets of {buckets}")]
    Finer {
        /// The chosen option.
        option: String,
        /// The attribute that is generalised.
        bucketed: String,
        /// A description of the buckets.
        buckets: String,
    },
    /// Already in a running plan.
    #[error(
        "their `{attribute}` is already released by the running query `{query}`, and only one query may release it; its consumer can end it with `DROP STREAM {query}`"
    )]
    Locked {
        /// The attribute.
        attribute: String,
        /// The query.
        query: String,
    },
    /// The option does not allow plans whose members decide what rows say.
    #[error("the policy `{option}` of `{attribute}` does not allow `integrity = '{word}'`")]
    Integrity {
        /// What the query asks for.
        word: String,
        /// The attribute.
        attribute: String,
        /// The option.
        option: String,
    },
    /// The owner's streams are at two controllers.
    #[error(
        "their owner has another stream at another controller, and each owner counts only once"
    )]
    SplitOwner,
    /// The population is too small for the policy or the query.
    #[error("at least {needed} owners with data are required, {}", too_few((*present, *counted), (*tolerated, *controllers), (*alpha, *colluders), *enough))]
    TooFew {
        /// The minimum population.
        needed: u32,
        /// The number of owners.
        present: u32,
        /// Their number as an honest controller counts them.
        counted: u32,
        /// t.
        tolerated: u32,
        /// N.
        controllers: u32,
        /// α.
        alpha: Fraction,
        /// c.
        colluders: u32,
        /// The smallest number of controllers, with one owner each, that is enough.
        enough: u32,
    },
    /// The policy's minimum is so close to all that there are that everybody's windows would
    /// be lost.
    #[error(
        "their policies require at least {least} owners; with that minimum, {losses} of 1000 windows would be lost for everybody if 1 % of controllers failed"
    )]
    Brittle {
        /// The policies' minimum.
        least: u32,
        /// Windows lost.
        losses: u32,
    },
    /// The policy's minimum is above the query's maximum.
    #[error("their policies require at least {least} owners, but the query allows at most {most}")]
    MaximumTooLow {
        /// The policies' minimum.
        least: u32,
        /// The query's maximum.
        most: u32,
    },
    /// The query has its maximum of owners.
    #[error("the query already has its maximum of {most} owners")]
    BeyondMaximum {
        /// The query's maximum.
        most: u32,
    },
    /// More streams than the schema's digits can hold.
    #[error("the schema's capacity of {most} streams per window is used up")]
    BeyondCapacity {
        /// The schema's.
        most: u64,
    },
    /// A rule that only the plan as a whole breaks.
    #[error("their controllers would refuse the plan (rule `{rule}`)")]
    Refused {
        /// The rule's name.
        rule: String,
    },
}

/// A fraction in query syntax.
pub(crate) struct Share(pub(crate) Fraction);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Fraction { numerator: 0, .. } => f.write_str("0"),
            Fraction { numerator, denominator } => write!(f, "{numerator}/{denominator}"),
        }
    }
}

/// How many owners there are, and where some controllers may collude, how many count.
fn too_few(
    (present, counted): (u32, u32),
    (tolerated, controllers): (u32, u32),
    (alpha, colluders): (Fraction, u32),
    enough: u32,
) -> String {
    match tolerated {
        0 => format!("and there are {present}"),
        _ => format!(
            "but {present} owners count as {counted} if {tolerated} of {controllers} controllers collude (alpha {}, colluders {colluders}); {enough} controllers with one owner each would be enough",
            Share(alpha)
        ),
    }
}
