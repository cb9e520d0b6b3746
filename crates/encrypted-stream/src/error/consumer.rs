//! What stands against a consumer that results are sealed to, and why it cannot
//! read one.

use serde::{Deserialize, Serialize};

/// Why a plan's consumer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ConsumerFault {
    /// The plan names a certificate, and none comes with it.
    #[error("the plan is sealed to a consumer whose certificate does not come with it")]
    Missing,
    /// A certificate comes with a plan that is sealed to nobody.
    #[error("a consumer's certificate comes with a plan that is sealed to nobody")]
    Unwanted,
    /// The authority has not signed the certificate.
    #[error("its certificate is not signed by the deployment's authority")]
    Unsigned,
    /// The certificate is a controller's or a service's.
    #[error("its certificate is for another role")]
    Role,
    /// The certificate is not the one that the plan names.
    #[error("its certificate is not the one that the plan is sealed to")]
    OtherCertificate,
    /// The certificate is another party's than the plan says.
    #[error("its certificate has another name than the plan says in RELEASE TO")]
    OtherName,
    /// It shares its key with a controller of the plan, or with the service.
    #[error("its key is also a controller's of the plan, or the service's")]
    SharedKey,
    /// Its key would make every pad public.
    #[error("its agreement key has small order")]
    LowOrder,
}

/// Why a consumer cannot read a sealed sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The plan is sealed to nobody.
    #[error("the plan is not sealed: the service opens its windows")]
    NotSealed,
    /// The plan is sealed to another certificate.
    #[error(
        "the results are sealed to another certificate: read them with the identity folder that asked for them"
    )]
    OtherConsumer,
    /// A controller's key would make its pads public.
    #[error("the key of roster position {position} has small order")]
    LowOrder {
        /// Position in the roster.
        position: u32,
    },
    /// The sum is of another plan.
    #[error("the sum is of another plan")]
    OtherPlan,
    /// The sum's window is none of the plan's.
    #[error("the sum's window is none of the plan's")]
    OtherWindow,
    /// The set of those who count is empty, or over another roster.
    #[error("those who count are nobody, or not of the plan's roster")]
    OtherRoster,
    /// Not one word for each row of the release.
    #[error("the sum has another length than the plan's outputs")]
    WrongLength,
    /// Without its pads the check word is not zero.
    #[error(
        "the check word is not zero: the window's keys or masks did not cancel, or the service changed the sum, its membership or who counts"
    )]
    CheckWord,
}
