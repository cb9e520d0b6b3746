//! The numbers that messages and records have for reasons. A party of another build reads them, so none
//! may change: a new reason gets the next number.

use std::fmt::Debug;

use alpheus_encrypted_stream::error::{
    ExclusionError, PlanRefusalError, PlanShapeError, ReleaseError, UncheckedProofsError,
    WindowRefusalError,
};
use alpheus_policy::bounded_terms::NotBoundableError;
use alpheus_policy::plan::NotVerifiableError;
use serde::de::DeserializeOwned;

/// The names of all reasons, in the order of their numbers.
fn names<T: DeserializeOwned + Debug>() -> Vec<String> {
    let read = |code: u8| {
        // Whatever else a reason has is zero.
        let bytes = [&[code][..], &[0; 128]].concat();
        postcard::take_from_bytes::<T>(&bytes).ok().map(|(reason, _)| format!("{reason:?}"))
    };
    let name = |said: String| said.split([' ', '(']).next().unwrap_or_default().to_owned();
    (0..128).map_while(read).map(name).collect()
}

#[test]
fn reasons_why_plans_are_malformed_keep_their_numbers() {
    let expected = [
        "Roster",
        "Streams",
        "Window",
        "Release",
        "Population",
        "Terms",
        "NoiseInEpoch",
        "Epoch",
        "Fraction",
        "NotVerifiable",
        "Selection",
        "ConditionInEpoch",
        "BoundedForm",
        "BoundedTerms",
    ];
    assert_eq!(names::<PlanShapeError>(), expected);
    for code in 0..14 {
        let bytes = [&[code][..], &[0; 128]].concat();
        let (reason, _) = postcard::take_from_bytes::<PlanShapeError>(&bytes).unwrap();
        assert_eq!(reason.code(), u32::from(code), "{reason:?}");
    }
    let boundable = [
        "Cells", "Column", "Events", "TooWide", "Capacity", "Rows", "Alone", "Sealed", "Picks",
        "Owners",
    ];
    assert_eq!(names::<NotBoundableError>(), boundable);
    let verifiable = ["Frames", "NoColluders", "Totals", "Epochs"];
    assert_eq!(names::<NotVerifiableError>(), verifiable);
}

#[test]
fn reasons_why_plans_are_refused_keep_their_numbers() {
    let expected = [
        "NotTheService",
        "Certificate",
        "Repeated",
        "Malformed",
        "NotInRoster",
        "OwnerSplit",
        "NotHeld",
        "WrongOwner",
        "WrongSchema",
        "Form",
        "NoConsent",
        "Policy",
        "Locked",
        "UnsafeMasks",
        "BadKey",
        "Ended",
        "NoiseForFewer",
        "NoiseUnfit",
        "TooFewPicks",
        "TooManyRosters",
        "Consumer",
        "TotalsLost",
        "Entry",
        "OwnerInTwoEntries",
        "EntryKey",
        "EntryChanged",
        "NotAttended",
        "EpochBeforeRestore",
        "OtherList",
        "ListTooSmall",
        "ListedAlone",
        "PicksInEpoch",
        "TooManySeeds",
        "RevokedController",
        "RevokedConsumer",
        "NotSelected",
    ];
    assert_eq!(names::<PlanRefusalError>(), expected);
}

#[test]
fn reasons_why_windows_are_refused_keep_their_numbers() {
    let refusals = "NotTheService NotForMe UnknownPlan PlanEnded WrongWindow NotEnded Settled \
        CountsAsReleased MalformedSummons NotPresent MalformedMembership NotAMember \
        PresenceMisstated OwnersMisstated OwnersInvented AlreadySpent Overlaps \
        PolicyChanged PopulationTooSmall PopulationTooLarge NoNeighbours NoToken \
        NothingToOpen OtherMembership AlreadyOpened NotInOpeningSet NotASubset \
        BelowQuorum NoiseUnfit TooFewPicks BadNeighbour TotalsOutOfOrder TotalsLost \
        NotTerms AlreadyAttended NothingToGive SeedsUnderWay BeforeAcceptance TooManySets \
        TooManySummonses KeysGone BadMaskKey RevokedMember NotProvable NotOpened \
        BadStrike";
    let refusals: Vec<&str> = refusals.split(' ').collect();
    assert_eq!(names::<WindowRefusalError>(), refusals);
}

#[test]
fn reasons_why_windows_fail_keep_their_numbers() {
    let failures = [
        "PopulationTooSmall",
        "PopulationTooLarge",
        "QuorumLost",
        "ControllerRefused",
        "OpeningLost",
        "CheckWord",
        "WrongLength",
        "SumsLost",
        "Retired",
        "SumsLate",
        "OtherSums",
        "NotListed",
        "NothingReported",
        "StateLost",
        "FaultyOpening",
        "NotTheRow",
        "Unchecked",
    ];
    assert_eq!(names::<ReleaseError>(), failures);
    assert_eq!(names::<UncheckedProofsError>(), ["QueueFull", "Late", "Broken"]);
}

#[test]
fn reasons_why_streams_are_left_out_keep_their_numbers() {
    let expected = [
        "Incomplete",
        "TooManyEvents",
        "ForgedBorder",
        "NotTiled",
        "MissingTicks",
        "SessionOverlap",
        "CheckWord",
        "Policy",
        "Revoked",
        "Released",
        "ControllerAbsent",
        "Unconfirmed",
        "BeyondNoise",
        "BudgetSpent",
        "Cloned",
        "CertificateRevoked",
        "SumMismatch",
        "Restless",
        "HeldElsewhere",
        "OutOfBounds",
        "Moved",
    ];
    assert_eq!(names::<ExclusionError>(), expected);
}
