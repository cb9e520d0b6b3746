//! Entries, receipts, certificates and a closing's roots, and invalid ones.

use super::json::{array, cases, from_hex, small};
use super::uploads::signature;
use alpheus_accountable_statistics::closing::Trees;
use alpheus_accountable_statistics::configuration::{KeyEpoch, SmootherId};
use alpheus_accountable_statistics::endorsement::{Endorsed, SignatureListError};
use alpheus_accountable_statistics::messages::{Entry, Receipt, decode};
use alpheus_crypto::hash::Digest;
use alpheus_crypto::labels;
use alpheus_crypto::onetime::OneTimePublic;
use alpheus_crypto::sign::VerifyingKey;
use alpheus_crypto::signed_message::Signed;
use serde_json::Value;
use std::collections::BTreeMap;

fn number(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

fn key(value: &Value) -> VerifyingKey {
    VerifyingKey::from_bytes(array(value)).unwrap()
}

fn entry(case: &Value) -> Entry {
    Entry {
        aggregate: Digest(array(&case["aggregate"])),
        key_epoch: KeyEpoch(number(&case["key_epoch"])),
        slot: number(&case["slot"]).try_into().unwrap(),
        revision: number(&case["revision"]),
        ephemeral: OneTimePublic::from_bytes(array(&case["ephemeral"])),
        content: Digest(array(&case["content"])),
        sealed: Digest(array(&case["sealed"])),
    }
}

#[test]
fn entries_and_their_signatures_match_the_script() {
    let case = cases("entry").remove(0);
    let keys: Vec<VerifyingKey> = case["keys"].as_array().unwrap().iter().map(key).collect();
    let mut entries = BTreeMap::new();
    for vector in case["entries"].as_array().unwrap() {
        let (entry, bytes) = (entry(vector), from_hex(&vector["bytes"]));
        assert_eq!(postcard::to_allocvec(&entry).unwrap(), bytes);
        assert_eq!(decode::<Entry>(&bytes), Some(entry));
        let Receipt { by, entry: signed } = decode(&from_hex(&vector["receipt"])).unwrap();
        let opened = signed.open(&keys[usize::from(by.0)]).unwrap();
        assert_eq!((opened.digest(), *opened), (Digest(array(&vector["digest"])), entry));
        let by_client = signature(&vector["deposited"]);
        assert!(entry.ephemeral.verify(labels::STATISTICS_DEPOSIT, &bytes, &by_client).is_ok());
        let certificate: Endorsed<Entry> = decode(&from_hex(&vector["certificate"])).unwrap();
        for (by, signed) in certificate.signatures() {
            assert_eq!(*signed.open(&keys[usize::from(by.0)]).unwrap(), entry);
        }
        assert_eq!(certificate.signatures().count(), 3);
        entries.insert(entry.slot, entry);
    }
    let rejected: Vec<u16> = case["rejected"].as_array().unwrap().iter().map(small).collect();
    let counts = |slot: u32| rejected.iter().all(|other| u32::from(*other) != slot);
    let trees = Trees::new(small(&case["slots"]).into(), &entries, counts);
    let expected = [&case["ledger"], &case["tuples"]].map(|root| Digest(array(root)));
    assert_eq!([trees.ledger(), trees.tuples()], expected);
}

#[test]
fn invalid_entries_and_certificates_are_rejected_with_the_expected_error() {
    let case = cases("entry_bad").remove(0);
    for vector in case["entries"].as_array().unwrap() {
        let signed: Signed<Entry> = decode(&from_hex(&vector["signed"])).unwrap();
        let refused = format!("{:?}", signed.open(&key(&case["key"])).unwrap_err());
        assert_eq!(refused, vector["error"].as_str().unwrap());
    }
    for vector in case["certificates"].as_array().unwrap() {
        let bytes = from_hex(&vector["certificate"]);
        assert_eq!(decode::<Endorsed<Entry>>(&bytes), None);
        let several = decode::<Vec<(SmootherId, Signed<Entry>)>>(&bytes).map(Endorsed::try_from);
        let refused = match several {
            None => "Malformed",
            Some(Err(SignatureListError)) => "NotSeveral",
            Some(Ok(_)) => panic!("{vector}"),
        };
        assert_eq!(refused, vector["error"].as_str().unwrap());
    }
}
