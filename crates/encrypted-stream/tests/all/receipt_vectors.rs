//! Known answers from an independent script: `vectors/receipts`.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::known_answers::{array, bytes, cases, words};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::Signed;
use alpheus_encrypted_stream::announced_plan::AnnouncedPlan;
use alpheus_encrypted_stream::certificate::{Certificate, Deployment};
use alpheus_encrypted_stream::messages::Announcement;
use alpheus_encrypted_stream::receipt::Receipt;
use alpheus_encrypted_stream::tick::claim::RootPrefix;
use alpheus_encrypted_stream::tick::parts::{NeededBlocks, PartialSum};
use alpheus_encrypted_stream::tick::sums::Blocks;
use alpheus_policy::plan::Release;
use alpheus_time::{Timestamp, Window};
use serde::Deserialize;

#[derive(Deserialize)]
struct Part {
    blocks: Vec<u16>,
    rows: Vec<Vec<u16>>,
    sum: Vec<String>,
    words: Vec<String>,
    path: Vec<String>,
    root: String,
}

#[test]
fn parts_of_sums_match_the_script() {
    for case in cases::<Part>("receipts/v1/parts.json") {
        let release = Release { rows: case.rows };
        let needed = NeededBlocks::of(&Blocks::of_lengths(&case.blocks), &release);
        let path = case.path.iter().map(|digest| Digest(array(digest))).collect();
        let expected = PartialSum { words: words(&case.words), path };
        let root = RootPrefix(array(&case.root));
        assert_eq!(needed.part(&words(&case.sum)), (expected.clone(), root));
        let (mut found, mut whole) = (vec![0; release.outputs()], vec![0; release.outputs()]);
        needed.check(&expected, &root).unwrap().add_to(&release, &mut found);
        release.add(&words(&case.sum), &mut whole);
        assert_eq!(found, whole);
    }
}

#[derive(Deserialize)]
struct BadPart {
    why: String,
    blocks: Vec<u16>,
    rows: Vec<Vec<u16>>,
    words: Vec<String>,
    path: Vec<String>,
    root: String,
}

#[test]
fn parts_that_lead_to_no_root_are_refused() {
    let all = cases::<BadPart>("receipts/v1/parts_bad.json");
    assert!(!all.is_empty());
    for case in all {
        let release = Release { rows: case.rows };
        let needed = NeededBlocks::of(&Blocks::of_lengths(&case.blocks), &release);
        let path = case.path.iter().map(|digest| Digest(array(digest))).collect();
        let part = PartialSum { words: words(&case.words), path };
        let root = RootPrefix(array(&case.root));
        assert!(needed.check(&part, &root).is_err(), "{}", case.why);
    }
}

#[derive(Deserialize)]
struct Case {
    authority: String,
    service: String,
    /// By epochs the receipt has a list instead.
    #[serde(default)]
    announcement: String,
    receipt: String,
    start: u64,
    end: u64,
    row: Option<Vec<String>>,
    population: Option<u32>,
    signers: Option<u32>,
    #[serde(default)]
    excluded: Vec<ExcludedStreams>,
    error: Option<String>,
}

#[derive(Deserialize, PartialEq, Debug)]
struct ExcludedStreams {
    controller: u32,
    streams: Vec<u32>,
}

impl Case {
    fn deployment(&self) -> Deployment {
        let authority = VerifyingKey::from_bytes(array(&self.authority)).unwrap();
        let service: Signed<Certificate> = postcard::from_bytes(&bytes(&self.service)).unwrap();
        Deployment::new(authority, &service).unwrap()
    }

    fn announced(&self) -> AnnouncedPlan {
        let deployment = self.deployment();
        let signed: Signed<Announcement> =
            postcard::from_bytes(&bytes(&self.announcement)).unwrap();
        AnnouncedPlan::open(&signed, &deployment).unwrap()
    }

    fn window(&self) -> Window {
        Window { start: Timestamp(self.start), end: Timestamp(self.end) }
    }
}

/// The name of an error's variant.
fn name(error: impl std::fmt::Debug) -> String {
    format!("{error:?}").chars().take_while(char::is_ascii_alphanumeric).collect()
}

#[test]
fn receipts_match_the_script() {
    for case in cases::<Case>("receipts/v2/receipts.json") {
        let receipt = Receipt::from_bytes(&bytes(&case.receipt)).unwrap();
        let row = receipt.verify(&case.announced(), case.window()).unwrap();
        assert_eq!(row.words(), words(case.row.as_ref().unwrap()));
        assert_eq!(Some((row.population(), row.signers())), case.population.zip(case.signers));
        let excluded = row.exclusions().iter().map(|own| ExcludedStreams {
            controller: own.controller,
            streams: own.streams.iter().map(|(at, _)| *at).collect(),
        });
        assert_eq!(excluded.collect::<Vec<_>>(), case.excluded);
    }
}

#[test]
fn receipts_that_do_not_hold_are_refused_as_the_script_says() {
    for case in cases::<Case>("receipts/v2/receipts_bad_content.json") {
        let receipt = Receipt::from_bytes(&bytes(&case.receipt)).unwrap();
        let refused = receipt.verify(&case.announced(), case.window()).unwrap_err();
        assert_eq!(Some(name(refused)), case.error);
    }
}

/// The plan follows from the receipt's list.
#[test]
fn receipts_with_lists_match_the_script() {
    for case in cases::<Case>("receipts/v3/receipts.json") {
        let receipt = Receipt::from_bytes(&bytes(&case.receipt)).unwrap();
        let announced = receipt.listed_plan(&case.deployment()).unwrap().unwrap();
        let row = receipt.verify(&announced, case.window()).unwrap();
        assert_eq!(row.words(), words(case.row.as_ref().unwrap()));
        assert_eq!(Some((row.population(), row.signers())), case.population.zip(case.signers));
    }
    for case in cases::<Case>("receipts/v3/receipts_bad_content.json") {
        let receipt = Receipt::from_bytes(&bytes(&case.receipt)).unwrap();
        let refused = match receipt.listed_plan(&case.deployment()).unwrap() {
            Err(refused) => name(refused),
            Ok(announced) => name(receipt.verify(&announced, case.window()).unwrap_err()),
        };
        assert_eq!(Some(refused), case.error);
    }
}

#[derive(Deserialize)]
struct Form {
    receipt: String,
    error: String,
}

#[test]
fn bytes_that_are_no_receipt_are_refused_as_the_script_says() {
    for file in ["receipts/v2/receipts_bad_form.json", "receipts/v3/receipts_bad_form.json"] {
        for case in cases::<Form>(file) {
            assert_eq!(name(Receipt::from_bytes(&bytes(&case.receipt)).unwrap_err()), case.error);
        }
    }
}
