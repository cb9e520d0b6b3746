//! Why a plan's consumer is refused, and why a consumer cannot read a sealed sum.

use serde::{Deserialize, Serialize};

/// Why a plan's consumer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum PlanConsumerError {
    /// The plan names a certificate, but comes without it.
    #[error("the plan is sealed to a consumer but comes without the consumer's certificate")]
    Missing,
    /// The plan comes with a certificate but is sealed to nobody.
    #[error("the plan comes with a consumer's certificate but is sealed to nobody")]
    Unwanted,
    /// The authority did not sign the certificate.
    #[error("its certificate is not signed by the deployment's authority")]
    Unsigned,
    /// The certificate is a controller's or a service's.
    #[error("its certificate is for another role")]
    Role,
    /// The certificate is not the one named in the plan.
    #[error("its certificate is not the one that the plan is sealed to")]
    OtherCertificate,
    /// The certificate names another party than the plan does.
    #[error("its certificate has a different name from RELEASE TO in the plan")]
    OtherName,
    /// It shares a key with a controller of the plan, or with the service.
    #[error("it shares a key with a controller of the plan, or with the service")]
    SharedKey,
    /// Its key would make every pad public.
    #[error("its agreement key has small order")]
    LowOrder,
}

/// Why a consumer cannot read a sealed sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    /// The plan is sealed to nobody.
    #[error("the plan is not sealed; the service opens its windows")]
    NotSealed,
    /// The plan is sealed to another certificate.
    #[error(
        "the results are sealed to another certificate; read them with the identity folder that asked for them"
    )]
    OtherConsumer,
    /// A controller's key would make its pads public.
    #[error("the key of roster position {position} has small order")]
    LowOrder {
        /// Position in the roster.
        position: u32,
    },
    /// The sum is of another plan.
    #[error("the sum belongs to another plan")]
    OtherPlan,
    /// The sum's window is not one of the plan's.
    #[error("the sum's window is not one of the plan's")]
    OtherWindow,
    /// The set of counted controllers is empty, or over another roster.
    #[error("the set of counted controllers is empty, or not of the plan's roster")]
    OtherRoster,
    /// Not one word for each row of the release.
    #[error("the sum's length differs from that of the plan's outputs")]
    WrongLength,
    /// With the pads removed, the check word is not zero.
    #[error(
        "the check word is not zero: the window's keys or masks did not cancel, or the service changed the sum, its membership or its set of controllers"
    )]
    CheckWord,
}
