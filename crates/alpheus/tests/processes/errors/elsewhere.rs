//! Failures that another test provokes, since they need more than a command: the id, and the test, which
//! holds the id that is printed.

pub(super) const TESTS: &[(&str, &str, &str)] = &[
    ("line-refused", "../../src/errors.rs", "causes_that_no_command_ends_with_have_their_ids"),
    ("wrong-peer", "../../src/errors.rs", "causes_that_no_command_ends_with_have_their_ids"),
    (
        "stream-quota",
        "floods.rs",
        "a_device_that_sends_more_than_a_stream_may_is_refused_and_fills_no_disk",
    ),
    (
        "masks-unsafe",
        "../../../stream-runtime/src/refusal_ids.rs",
        "masks_that_are_not_safe_have_their_own_id",
    ),
    (
        "certificate-refused",
        "revocations.rs",
        "a_table_server_refuses_an_owner_whose_certificate_is_revoked",
    ),
    (
        "clock-wrong",
        "start_clock.rs",
        "a_process_waits_for_a_clock_that_starts_in_1970_and_refuses_one_that_is_years_ahead",
    ),
    ("state-old", "stats/beginnings.rs", "who_comes_back_from_the_first_day_is_not_new"),
    ("state-of-other", "copies.rs", "a_state_of_another_host_is_refused"),
    (
        "board-not-written",
        "board/attacks.rs",
        "a_writer_waits_in_the_background_and_asks_for_a_crowd",
    ),
    (
        "board-entry",
        "../../../board-service/src/error_ids.rs",
        "a_key_that_is_not_the_writers_has_its_own_id",
    ),
    ("board-disagrees", "board/lies.rs", "a_table_is_read_from_any_server_that_has_it"),
    ("stats-not-counted", "stats/replay.rs", "samples_that_find_no_slot_are_reported"),
    (
        "stats-refused",
        "../../../stats-service/src/error_ids.rs",
        "a_registration_that_is_refused_has_its_own_id",
    ),
    ("table-unverified", "table/lies.rs", "every_lie_of_a_server_is_rejected_alike"),
    ("table-state", "table/recover.rs", "states_of_separate_copies_are_for_the_owner_to_choose"),
];
