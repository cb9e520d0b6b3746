//! Keys of uploads: what they sign, what they seal, and what the aggregator discloses of that.

use super::json::{array, cases, element, from_hex, script_rng};
use alpheus_crypto::labels;
use alpheus_crypto::onetime::{
    Disclosure, OneTimeKey, OneTimePublic, OneTimeSignature, RecipientKey,
};
use alpheus_crypto::secret::Secret;
use serde_json::Value;

pub(super) fn signature(value: &Value) -> OneTimeSignature {
    let bytes = from_hex(value);
    OneTimeSignature::from_bytes([&bytes[..32], &bytes[32..]].map(|half| half.try_into().unwrap()))
}

fn disclosure(value: &Value) -> Disclosure {
    Disclosure::from_parts(element(&value["shared"]), from_hex(&value["proof"]))
}

#[test]
fn uploads_are_signed_sealed_and_disclosed_as_the_script_does() {
    for case in cases("upload_key") {
        let seed = |name: &str| Secret::from_bytes(array(&case[name]));
        let key = OneTimeKey::from_seed(labels::STATISTICS_EPHEMERAL, &seed("seed")).unwrap();
        let to = RecipientKey::from_seed(labels::STATISTICS_RECIPIENT, &seed("to_seed")).unwrap();
        assert_eq!(key.public().as_bytes(), &array::<32>(&case["public"]));
        assert_eq!(*to.public(), element(&case["to"]));
        let bytes = |name: &str| from_hex(&case[name]);
        let (aggregate, content) = (bytes("aggregate"), bytes("content"));
        let context = [aggregate.as_slice(), &content];
        let context = (labels::STATISTICS_UPLOAD_SEALING, context.as_slice());
        let sealed = key.seal(to.public(), context, &bytes("upload")).unwrap();
        assert_eq!(sealed, bytes("sealed"));
        assert_eq!(*to.open(&key.public(), context, &sealed).unwrap(), bytes("upload"));
        let rng = &mut script_rng(&case["signature_randomness"]);
        let signed = key.sign(labels::STATISTICS_DEPOSIT, &bytes("about"), rng).unwrap();
        assert_eq!(signed.to_bytes().as_flattened(), bytes("signature"));
        let rng = &mut script_rng(&case["disclosure"]["randomness"]);
        let about = bytes("about");
        let about = (labels::STATISTICS_DISCLOSURE, about.as_slice());
        let shown = to.disclose(&key.public(), about, rng).unwrap();
        assert_eq!(shown, disclosure(&case["disclosure"]));
        let seen = shown.verify(to.public(), &key.public(), about).unwrap();
        assert_eq!(*seen.open(context, &sealed).unwrap(), bytes("upload"));
    }
}

#[test]
fn false_disclosures_and_signatures_are_refused() {
    for (at, case) in cases("upload_key_bad_disclosure").iter().enumerate() {
        let (shown, about) = (disclosure(&case["disclosure"]), from_hex(&case["about"]));
        let from = OneTimePublic::from_bytes(array(&case["public"]));
        let about = (labels::STATISTICS_DISCLOSURE, about.as_slice());
        assert!(shown.verify(&element(&case["to"]), &from, about).is_err(), "{at}");
    }
    for (at, case) in cases("upload_key_bad_signature").iter().enumerate() {
        let (key, message) = (array(&case["public"]), from_hex(&case["message"]));
        let (key, signed) = (OneTimePublic::from_bytes(key), signature(&case["signature"]));
        assert!(key.verify(labels::STATISTICS_DEPOSIT, &message, &signed).is_err(), "{at}");
    }
}
