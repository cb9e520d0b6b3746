//! Why the runtime stops.

use super::controller_host::HostError;
use super::keys::RootError;
use super::service_error::ServiceError;
use alpheus_encrypted_stream::encode::LayoutMismatchError;
use alpheus_encrypted_stream::error::{
    AnnotationError, CertificateError, PlanRefusalError, RestoreError,
};
use alpheus_encrypted_stream::producer::SetupError;
use alpheus_node::fence::FenceError;
use alpheus_policy::layout::LayoutError;
use thiserror::Error;

/// Why the runtime stops.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// The store.
    #[error(transparent)]
    Store(#[from] alpheus_transport::Error),
    /// The service.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The controllers' host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The fence.
    #[error(transparent)]
    Fence(#[from] FenceError),
    /// The root secret.
    #[error(transparent)]
    Root(#[from] RootError),
    /// A controller's ledger.
    #[error("a controller cannot be restored from its ledger: {0}")]
    Restore(#[from] RestoreError),
    /// A certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// An annotation.
    #[error("a controller refused its owner's annotation: {0}")]
    Annotation(#[from] AnnotationError),
    /// A plan.
    #[error("the plan does not check out: {0}")]
    Plan(#[from] PlanRefusalError),
    /// The layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The encoder.
    #[error(transparent)]
    Encoder(#[from] LayoutMismatchError),
    /// A producer.
    #[error(transparent)]
    Producer(#[from] SetupError),
    /// Stored plans.
    #[error(
        "the stored plans cannot be read; restore the state folder from a backup, or start with a new --state folder"
    )]
    DamagedPlans,
}
