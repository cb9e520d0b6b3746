//! Ids of the errors of files that people write, and of recordings.

use crate::convert::ConvertError;
use crate::refusals::RowError;
use crate::rows::ReadError;
use crate::source::SourceError;
use alpheus_node::error_ids;
use alpheus_node::errors::ErrorId;
use alpheus_policy::document::DocumentError;
use alpheus_policy::schema::layout::LayoutError;
use std::error::Error;

/// The id of an error of a file, if it is one.
#[must_use]
pub fn of(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    error_ids!(error;
        SourceError as _ => ErrorId::SourceInvalid,
        ReadError as _ => ErrorId::RecordingInvalid,
        ConvertError as _ => ErrorId::RecordingInvalid,
        RowError as _ => ErrorId::LineRefused,
        DocumentError as _ => ErrorId::FileInvalid,
        LayoutError as _ => ErrorId::SchemaInvalid,
    )
}
