//! Ids of the errors of workers.

use crate::group::WorkerError;
use alpheus_node::error_ids::{self as node, store};
use alpheus_node::errors::ErrorId;
use std::error::Error;

/// The id of an error of workers, if it is one.
#[must_use]
pub fn of(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    alpheus_node::error_ids!(error;
        WorkerError as error => match error {
            WorkerError::Store(error) => store(error),
            WorkerError::Join(error) => node::of(error).unwrap_or(ErrorId::IoFailed),
            WorkerError::Name(_)
            | WorkerError::Keys { .. }
            | WorkerError::Version { .. }
            | WorkerError::Clock(_) => ErrorId::SettingWrong,
            WorkerError::Journal { .. }
            | WorkerError::Behind { .. }
            | WorkerError::Mark { .. }
            | WorkerError::Missing { .. }
            | WorkerError::State { .. } => {
                ErrorId::StateDamaged
            }
        },
    )
}
