//! Ids of the errors of encrypted tables.

use crate::append::RepeatedRowError;
use crate::blocks::BlockError;
use crate::correct::{MatchError, RepeatedCorrectionError};
use crate::csv_rows::CsvError;
use crate::drop_table::OtherNameError;
use crate::merge::RangeError;
use crate::prune::{UnknownSegmentsError, UnsavedStateError};
use crate::recover::{ForkError, ManyStatesError, NoStateError, NoSuchStateError, OldStateError};
use crate::rekey::RekeyError;
use crate::schema::{SchemaError, WidenError};
use crate::sql::SqlError;
use crate::state::{IncompleteError, IndexError, NoSchemaError};
use crate::storage::StorageError;
use alpheus_node::errors::ErrorId;
use alpheus_verifiable_table::error::{PlanError, SavedStateError, VerifyError};
use alpheus_verifiable_table::owner::{AppendError, CorrectError, StateError};
use std::error::Error;

/// The id of an error of tables, if it is one.
#[must_use]
pub fn of(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    of_rows(error).or_else(|| of_state(error))
}

fn of_rows(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    alpheus_node::error_ids!(error;
        SqlError as _ => ErrorId::TableQuery,
        PlanError as _ => ErrorId::TableQuery,
        CsvError as _ => ErrorId::TableFile,
        AppendError as _ => ErrorId::TableFile,
        CorrectError as _ => ErrorId::TableFile,
        RepeatedRowError as _ => ErrorId::TableFile,
        RepeatedCorrectionError as _ => ErrorId::TableFile,
        MatchError as _ => ErrorId::TableFile,
        SchemaError as _ => ErrorId::TableSchema,
        WidenError as _ => ErrorId::TableSchema,
        VerifyError as _ => ErrorId::TableUnverified,
    )
}

fn of_state(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    alpheus_node::error_ids!(error;
        StateError as _ => ErrorId::TableState,
        SavedStateError as _ => ErrorId::TableState,
        IncompleteError as _ => ErrorId::TableState,
        IndexError as _ => ErrorId::TableState,
        NoSchemaError as _ => ErrorId::TableState,
        NoStateError as _ => ErrorId::TableState,
        OldStateError as _ => ErrorId::TableState,
        ForkError as _ => ErrorId::TableState,
        ManyStatesError as _ => ErrorId::TableState,
        UnsavedStateError as _ => ErrorId::TableState,
        RekeyError as _ => ErrorId::TableState,
        NoSuchStateError as _ => ErrorId::NotFound,
        UnknownSegmentsError as _ => ErrorId::NotFound,
        OtherNameError as _ => ErrorId::CommandLine,
        RangeError as _ => ErrorId::CommandLine,
        BlockError as _ => ErrorId::StateDamaged,
        StorageError as _ => ErrorId::IoFailed,
    )
}
