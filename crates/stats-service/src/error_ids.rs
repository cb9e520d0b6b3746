//! Ids of the errors of accountable statistics.

use crate::card::StatsCardError;
use crate::client::NotCountedError as SampleNotCountedError;
use crate::client::inclusion_check::InclusionError;
use crate::client::input::OtherFileError;
use crate::client_ledger::OldCopyError;
use crate::counts::tally_client::NotAcknowledgedError;
use crate::define::{DefineError, OperatorKeyError};
use crate::keys::KeyFileError;
use crate::parties::StatsError;
use crate::plan::PlanError;
use crate::replay::driver::{NoResultError, ProcessEndedError};
use crate::replay::samples::NoSamplesError;
use crate::replay::{NotCountedError, WithoutResultError};
use crate::results_reader::UnsignedResultsError;
use crate::smoother::NoSmootherError;
use crate::smoother::key_store::DamagedKeyStoreError;
use alpheus_accountable_statistics::definition::DefinitionError;
use alpheus_accountable_statistics::role_error::{
    ContributionError, RegistrationError, RestoreError,
};
use alpheus_accountable_statistics::tally::TallyError;
use alpheus_node::error_ids::request;
use alpheus_node::errors::ErrorId;
use std::error::Error;

/// The id of an error of accountable statistics, if it is one.
#[must_use]
pub fn of(error: &(dyn Error + 'static)) -> Option<ErrorId> {
    alpheus_node::error_ids!(error;
        StatsError as error => parties(error),
        DefineError as error => match error {
            DefineError::Bad(_) => ErrorId::StatsDefinition,
            DefineError::Parties(error) => parties(error),
        },
        DefinitionError as _ => ErrorId::StatsDefinition,
        PlanError as _ => ErrorId::StatsDefinition,
        OperatorKeyError as _ => ErrorId::StatsDefinition,
        TallyError as _ => ErrorId::StatsDefinition,
        NotCountedError as _ => ErrorId::StatsNotCounted,
        SampleNotCountedError as _ => ErrorId::StatsNotCounted,
        InclusionError as _ => ErrorId::StatsNotCounted,
        NotAcknowledgedError as _ => ErrorId::StatsNotCounted,
        NoResultError as _ => ErrorId::StatsNotCounted,
        WithoutResultError as _ => ErrorId::StatsNotCounted,
        UnsignedResultsError as _ => ErrorId::CheckFailed,
        ContributionError as _ => ErrorId::StatsRefused,
        RegistrationError as _ => ErrorId::StatsRefused,
        NoSamplesError as _ => ErrorId::RecordingEmpty,
        OtherFileError as _ => ErrorId::StateOfOther,
        OldCopyError as _ => ErrorId::StateOld,
        DamagedKeyStoreError as _ => ErrorId::StateDamaged,
        RestoreError as _ => ErrorId::StateDamaged,
        NoSmootherError as _ => ErrorId::CardInvalid,
        StatsCardError as _ => ErrorId::CardInvalid,
        KeyFileError as _ => ErrorId::KeyWrong,
        ProcessEndedError as _ => ErrorId::InternalError,
    )
}

fn parties(error: &StatsError) -> ErrorId {
    match error {
        StatsError::Link(error) => request(error),
        StatsError::NotContributed(_) | StatsError::Holder(_) | StatsError::NotRegistered(_) => {
            ErrorId::StatsRefused
        }
        StatsError::NoKey | StatsError::TooFew { .. } => ErrorId::StatsSmoothers,
        StatsError::Machine(_) => ErrorId::IoFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_that_is_refused_has_its_own_id() {
        let refused = StatsError::NotRegistered(RegistrationError::Number);
        assert_eq!(of(&refused).map(ErrorId::id), Some("stats-refused"));
    }
}
