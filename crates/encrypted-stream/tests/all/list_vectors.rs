//! Known answers from an independent script: `vectors/epochs`.

use crate::known_answers::{array, cases};
use alpheus_crypto::agree::AgreementPublic;
use alpheus_encrypted_stream::epoch_list::{list_digest, plan_of};
use alpheus_encrypted_stream::error::PlanRefusalError;
use alpheus_encrypted_stream::messages::{List, ListEntry, ListedOwner};
use alpheus_policy::ids::{ControllerId, OwnerId, PlanId, SchemaId, StreamId};
use alpheus_policy::plan::Integrity;
use alpheus_policy::plan::{Fraction, MaskStrategy, Plan, PopulationBounds, Release};
use alpheus_policy::select::ReleasePlan;
use alpheus_policy::selection::Selection;
use alpheus_time::{Span, Timestamp, Window};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    terms: String,
    start: u64,
    windows: u32,
    entries: Vec<Entry>,
    digest: String,
}

#[derive(Deserialize)]
struct Entry {
    controller: String,
    agreement: String,
    owners: Vec<Owner>,
}

#[derive(Deserialize)]
struct Owner {
    owner: String,
    streams: Vec<String>,
}

fn entries(shown: Vec<Entry>) -> Vec<ListEntry> {
    let owner = |shown: Owner| ListedOwner {
        owner: OwnerId(array(&shown.owner)),
        streams: shown.streams.iter().map(|stream| StreamId(array(stream))).collect(),
    };
    let entry = |shown: Entry| ListEntry {
        controller: ControllerId(array(&shown.controller)),
        agreement: AgreementPublic(array(&shown.agreement)),
        owners: shown.owners.into_iter().map(owner).collect(),
    };
    shown.into_iter().map(entry).collect()
}

fn list(terms: PlanId, start: u64, windows: u32, entries: Vec<ListEntry>) -> List {
    let start = Timestamp(start);
    let window = Window { start, end: start.plus(Span::seconds(10)) };
    List { terms, window, windows, masks: MaskStrategy::Clique, entries }
}

#[test]
fn digests_of_lists_match_the_script() {
    for case in cases::<Case>("epochs/v1/list.json") {
        let terms = PlanId(array(&case.terms));
        let list = list(terms, case.start, case.windows, entries(case.entries));
        assert_eq!(list_digest(&list).0, array(&case.digest));
    }
}

/// The terms of any query.
fn terms() -> Plan {
    Plan {
        nonce: [1; 16],
        name: "sums".into(),
        consumer: "tests".into(),
        sealed_to: None,
        schema: SchemaId([3; 32]),
        group: vec![],
        window: Span::seconds(10),
        grace: Span(0),
        from: Timestamp(0),
        release: Release { rows: vec![vec![0]] },
        select: ReleasePlan::default(),
        integrity: Integrity::Plain,
        selection: Selection::default(),
        privacy: None,
        attributes: vec![],
        population: PopulationBounds { min: 1, max: 1000 },
        alpha: Fraction::ZERO,
        colluders: 0,
        dropout: Fraction::FIFTH,
        delta_exponent: 9,
        masks: MaskStrategy::Single,
        epoch: None,
        roster: vec![],
        streams: vec![],
    }
}

#[test]
fn bad_lists_are_refused_by_the_entry_that_the_script_names() {
    #[derive(Deserialize)]
    struct Bad {
        entries: Vec<Entry>,
        error: String,
        position: u32,
    }
    let names = [
        "order",
        "repeated",
        "no_owner",
        "no_stream",
        "owner_order",
        "stream_order",
        "owner_in_two",
        "stream_in_two",
    ];
    for name in names {
        for bad in cases::<Bad>(&format!("epochs/v1/list_bad_{name}.json")) {
            let position = bad.position;
            let expected = match bad.error.as_str() {
                "OwnerInTwoEntries" => PlanRefusalError::OwnerInTwoEntries { position },
                _ => PlanRefusalError::Entry { position },
            };
            let (terms, entries) = (terms(), entries(bad.entries));
            let list = list(terms.id(), 1_700_006_400_000_000, 1, entries);
            assert_eq!(plan_of(&terms, &list), Err(expected), "{name}");
        }
    }
}
