//! Why something was refused, excluded or failed: one variant for each rule.
//!
//! These errors travel: a controller's refusal reaches the service, which counts refusals
//! and shows them beside the result. So none holds a value, a key, or anything that the
//! service does not know already.

mod annotation;
mod certificate;
mod consumer;
mod exclusion;
mod grant;
mod message;
mod moves;
mod plan_refusal;
mod plan_shape;
mod release;
mod restore;
mod violation;
mod window_refusal;

pub use annotation::AnnotationError;
pub use certificate::CertificateError;
pub use consumer::{PlanConsumerError, UnsealError};
pub use exclusion::ExclusionError;
pub use grant::{GrantError, RawReadError};
pub use message::MessageError;
pub use moves::MoveError;
pub use plan_refusal::PlanRefusalError;
pub use plan_shape::PlanShapeError;
pub use release::{ReleaseError, UncheckedProofsError};
pub use restore::RestoreError;
pub use violation::PolicyViolationError;
pub use window_refusal::WindowRefusalError;
